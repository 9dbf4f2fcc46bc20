"""Presets, files, inputs and single keys become one configuration."""

import re
from pathlib import Path

import pytest

from pipeline.arguments import Arguments, config_of, config_without_inputs, run_settings
from pipeline.config import ConfigError, Run


@pytest.fixture
def records(tmp_path: Path) -> str:
    folder = tmp_path / "records"
    folder.mkdir()
    return str(folder)


def test_a_path_to_records_stands_in_place_of_a_preset(records: str) -> None:
    config = config_of(Arguments(what=(records,)))
    assert config.input.paths == (records,)
    assert config.encode.scheme == "agz17"


def test_a_preset_and_records_and_inputs_go_together(records: str, tmp_path: Path) -> None:
    config = config_of(Arguments(what=("leela_zero18", records), inputs=(str(tmp_path),)))
    assert config.input.paths == (records, str(tmp_path))
    assert config.encode.scheme == "leela_zero18"


def test_the_command_line_goes_before_the_file(records: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[encode]\nscheme = "board"\n[split]\nval = 0.3\ntest = 0.2\n[input]\npaths = ["nowhere"]\n')
    arguments = Arguments((str(file),), (records,), "out", "seven_plane", ("split.val=0.1",), 3, "local")
    config = config_of(arguments)
    assert (config.split.val, config.split.test) == (0.1, 0.2)
    assert (config.encode.scheme, config.output.path, config.run.workers) == ("seven_plane", "out", 3)
    assert config.input.paths == (records,)


def test_an_archive_that_is_missing_is_no_misspelt_preset() -> None:
    with pytest.raises(ConfigError, match=r"no such input: 9x9\.zip$"):
        config_of(Arguments(("9x9.zip",)))


def test_a_bare_word_is_a_string(records: str) -> None:
    assert config_of(Arguments((records,), assignments=("dedup.positions=off",))).dedup.positions == "off"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (Arguments(), "no input"),
        (Arguments(("quickstrat",)), "did you mean 'quickstart'"),
        (Arguments(("agz17", "hdf5")), "agz17 and hdf5"),
        (Arguments(("missing.zip",)), "no such input: missing.zip"),
        (Arguments(inputs=("missing",)), "no such input: missing"),
        (Arguments(inputs=("quickstrat",)), "(did you mean the preset 'quickstart'?)"),
        (Arguments(("agz17.tml",)), "no such input: agz17.tml (did you mean the preset 'agz17'?)"),
        (Arguments(("my.tml",)), "no such input: my.tml (the name of a configuration ends in .toml)"),
        (Arguments(("records",)), "no preset, file or folder 'records': presets are 9x9"),
        (Arguments((".",), assignments=("split.vall=0.1",)), "did you mean 'split.val'"),
        (Arguments((".",), assignments=("split.val=2",)), "split.val = 2"),
        (Arguments((".",), assignments=("split=1",)), "table.key=value"),
        (Arguments((".",), assignments=("encode.scheme.x=1",)), "encode.scheme"),
    ],
)
def test_what_cannot_be_used_is_quoted(arguments: Arguments, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        config_of(arguments)


def test_a_fault_of_a_file_is_told_under_its_name(records: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[split]\nvall = 0.1\n")
    with pytest.raises(ConfigError, match=r"mine\.toml: unknown key 'split\.vall'"):
        config_of(Arguments((str(file), records)))


def test_without_inputs_none_is_asked_for() -> None:
    config = config_without_inputs("hdf5", ("split.val=0.2",), "board")
    assert (config.output.format, config.split.val, config.encode.scheme) == ("hdf5", 0.2, "board")


def test_how_to_run_alone() -> None:
    assert run_settings(("run.memory=4GB", "run.workers=1"), 3, None) == Run(workers=3, memory=4 * 10**9)
    assert run_settings((), None, None) == Run()
    with pytest.raises(ConfigError, match=r"split: a data set keeps its own configuration, only run\.\*"):
        run_settings(("run.workers=1", "split.val=0.05"), None, None)
    with pytest.raises(ConfigError, match=r"did you mean 'run\.workers'"):
        run_settings(("run.worker=1",), None, None)
