"""The data card names every column of its data set, and no other."""

import re

import pytest
from shard_rows import make_layout, make_manifest

from pipeline.card import data_card
from pipeline.manifest import GrowthEntry, Manifest


@pytest.mark.parametrize("file_format", ["parquet", "hdf5"])
@pytest.mark.parametrize("aggregate", [False, True])
def test_every_column_has_its_meaning(file_format: str, aggregate: bool) -> None:
    layout = make_layout(file_format, aggregate=aggregate, key_bits=128)
    text = data_card(make_manifest([], layout))
    table = text[text.index("## Columns") : text.index("## Planes")]
    named = re.findall(r"^\| (\w+) \| .+ \|$", table, re.MULTILINE)[1:]
    assert named == [name for name in layout.names if file_format == "hdf5" or name != "policy_offsets"]
    assert ("null" in table) == (file_format == "parquet")
    assert ("NaN" in table) == (file_format == "hdf5")


def grown(**counts: int) -> Manifest:
    entry = GrowthEntry(
        **{"inputs": 1, "records": 9, "kept": 2, "seen": 9, "stored": 5, "left_out": 1, "stale": 1} | counts
    )
    return make_manifest([], make_layout()).model_copy(update={"growths": (entry, entry)})


def test_growths_are_told_with_what_the_rows_do_not_know() -> None:
    assert "Grown" not in data_card(make_manifest([], make_layout()))
    (line,) = [line for line in data_card(grown()).splitlines() if line.startswith("Grown")]
    assert line.startswith("Grown 2 times since the first build, by 4 games")
    assert "2 of their positions repeat a row" in line
    assert "up to 2 rows are stale. `goplanes compact`" in line
    assert "stale" not in data_card(grown(left_out=0, stale=0))


def test_unpacked_planes_are_said_to_be_so() -> None:
    packed, dense = (data_card(make_manifest([], make_layout("hdf5", packed=packed))) for packed in (True, False))
    assert "most significant bit first" in packed
    assert "0 or 1 each" in dense
    assert "most significant bit" not in dense
