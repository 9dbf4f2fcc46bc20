"""Every file of configs/ is a preset, and every preset builds."""

from pathlib import Path

import pytest
from example_builds import EXAMPLES

from pipeline.arguments import Arguments, config_of
from pipeline.build import build
from pipeline.load import open_dataset
from pipeline.settings import preset_names
from pipeline.verify import verify

CONFIGS = Path(__file__).parents[1] / "configs"


def test_the_files_are_the_presets() -> None:
    assert preset_names() == sorted(path.stem for path in CONFIGS.glob("*.toml"))
    known = {
        "quickstart",
        "agz17",
        "alphago48",
        "katago_v7",
        "leela_zero18",
        "9x9",
        "hdf5",
        "several_sizes",
        "own_planes",
    }
    assert known <= set(preset_names())


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.glob("*.toml")))
def test_a_preset_builds_a_sound_data_set(name: str, tmp_path: Path) -> None:
    arguments = Arguments(what=(name,), inputs=(str(EXAMPLES),), output=str(tmp_path / "out"), workers=0)
    built = build(config_of(arguments))
    assert built.manifest.records.kept > 0
    assert open_dataset(built.path).rows("train") > 0
    assert [check.faults for check in verify(built.path) if check.faults] == []


def test_quickstart_has_rows_in_every_part(tmp_path: Path) -> None:
    arguments = Arguments(what=("quickstart",), inputs=(str(EXAMPLES),), output=str(tmp_path / "out"), workers=0)
    rows = build(config_of(arguments)).manifest.rows
    assert min(rows.train, rows.val, rows.test) > 0
