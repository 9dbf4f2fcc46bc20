"""The README says what is true: reasons and flags, presets, schemes, commands."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from example_builds import EXAMPLES

from pipeline.build import build
from pipeline.columns import Layout
from pipeline.compose import configured_scheme
from pipeline.config import make_config
from pipeline.reasons import FILTERS, Flag, Reason
from pipeline.schemes import SCHEMES, scheme_options
from pipeline.settings import preset_names
from pipeline.table import SCHEMA

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("word", [*Reason, *Flag])
def test_every_reason_and_flag_is_explained(word: Reason | Flag) -> None:
    assert f"| `{word.value}` | {word.meaning} |" in README


def test_nothing_is_explained_that_does_not_exist() -> None:
    known = {word.value for word in [*Reason, *Flag]}
    section = README[README.index("Records that are **rejected**") : README.index("## Limits")]
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \|", section, re.MULTILINE)) == known


def test_the_reasons_of_filters_stand_together() -> None:
    section = README[README.index("Records that are **filtered**") : README.index("Members that are **skipped**")]
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \|", section, re.MULTILINE)) == FILTERS


def test_schemes_and_presets_are_named() -> None:
    for name, scheme in SCHEMES.items():
        assert f"| `{name}` | {len(scheme.planes)} |" in README
    presets = README[README.index("| preset |") : README.index("| command |")]
    assert sorted(re.findall(r"^\| `(\w+)` \|", presets, re.MULTILINE)) == preset_names()


def test_every_option_is_named_with_its_schemes_and_values() -> None:
    table = README[README.index("| option |") : README.index("A scheme of your own")]
    told = re.findall(r'^\| `(\w+)` \| (.*) \| `"(\w+)"`: .* \| `"(\w+)"`: .* \|$', table, re.MULTILINE)
    options = {option.name: option.values for name in SCHEMES for option in scheme_options(name)}
    assert {name: (usual, other) for name, _, usual, other in told} == options
    for name, schemes, _, _ in told:
        having = [scheme for scheme in SCHEMES if name in {option.name for option in scheme_options(scheme)}]
        assert sorted(re.findall(r"`(\w+)`", schemes)) == sorted(having)


def test_the_composed_example_composes() -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    encode = make_config(tomllib.loads(text), "README").encode
    assert configured_scheme(encode).planes


def test_the_columns_of_the_game_table_are_named() -> None:
    section = README[README.index("`games.parquet` has a row") : README.index("## Training from it")]
    first_cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    assert sorted(re.findall("`([^`]+)`", " ".join(first_cells))) == sorted(SCHEMA.names)


def test_the_columns_of_shards_are_named() -> None:
    section = README[README.index("| column | Parquet | HDF5 |") : README.index("Ten lines read it")]
    named = set(re.findall("`([a-z_]+)`", " ".join(re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE))))
    layout = Layout("hdf5", (19, 19), ("own_0",), ("komi",), "", aggregate=True, key_bits=128)
    assert named | {"policy_offsets"} == set(layout.names)


def test_the_python_examples_run_as_they_stand(tmp_path: Path) -> None:
    """All of them in one script, beside the archive and the data sets that they read."""
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as file:
        for path in sorted((EXAMPLES / "loose").glob("*.sgf")):
            file.write(path, path.name)
    for scheme in ("agz17", "katago_v7"):
        tables = {"input": {"paths": [str(tmp_path / "games.zip")]}, "encode": {"scheme": scheme}}
        output = {"path": str(tmp_path / f"games-{scheme}")}
        build(make_config({**tables, "output": output, "run": {"workers": 0}}, "test"))
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    checks = (
        "assert planes.shape == (17, 19, 19) and policy.shape == (362,) and float(value) == 0\n"
        "assert own_komi.shape == (len(batch['globals']),) and 0 < abs(own_komi).max() < 20\n"
        "assert packed.shape == (22, 46) and numbers.shape == (19,) and numbers[5] < 0\n"
    )
    (tmp_path / "script.py").write_text("\n".join([*blocks[:-1], checks, blocks[-1]]))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    line = [sys.executable, "script.py"]
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("games-board ")
