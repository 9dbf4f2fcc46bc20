"""The README says what is true: reasons and flags, presets, schemes, commands."""

import re
from pathlib import Path

import pytest

from pipeline.config import preset_names
from pipeline.encode import SCHEMES
from pipeline.reasons import Flag, Reason

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


@pytest.mark.parametrize("word", [*Reason, *Flag])
def test_every_reason_and_flag_is_explained(word: Reason | Flag) -> None:
    assert f"| `{word.value}` | {word.meaning} |" in README


def test_nothing_is_explained_that_does_not_exist() -> None:
    known = {word.value for word in [*Reason, *Flag]}
    section = README[README.index("Records that are **rejected**") : README.index("## Limits")]
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \|", section, re.MULTILINE)) == known


def test_schemes_and_presets_are_named() -> None:
    for name, scheme in SCHEMES.items():
        assert f"| `{name}` | {len(scheme.planes)} |" in README
    for name in preset_names():
        assert f"`{name}`" in README
