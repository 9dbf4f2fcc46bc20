"""The exact shuffle: the same rows as with blocks, all in one random order, in shards of one length."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stages import RULES, made_up_games

from pipeline import shard
from pipeline.blocks import mixing
from pipeline.build import build
from pipeline.columns import Columns, join, slice_rows
from pipeline.config import make_config
from pipeline.load import open_dataset
from pipeline.verify import verify
from pipeline.words import chain_words, seed_word


def test_how_well_rows_are_mixed() -> None:
    """Different games in windows of 1,000 rows, on average; the last rows count where there are no others."""

    def of(*games: int) -> float:
        return mixing(np.array(games, dtype=np.uint64))

    assert of(*[7] * 3000) == 1
    assert of(*range(1000), *[7] * 1000, *range(999)) == 500.5
    assert of(1, 2, 2) == 2
    assert of(*range(1000), *[7] * 1000, *[1, 2] * 500) == 334.3


def built(folder: Path, name: str, **tables: Any) -> Path:
    """Build random games."""
    inputs = folder / "in"
    if not inputs.exists():
        inputs.mkdir()
        for title, text in made_up_games("mixing", [(5, 5), (3, 5)], 70, 14).items():
            (inputs / title).write_text(text)
    asked = {
        "rules": RULES,
        "filter": {"sizes": "any"},
        "split": {"val": 0.2, "test": 0.1, "plies": 4},
        "encode": {"scheme": tables.get("scheme", "board")},
        "augment": {"mode": tables.get("augment", "all")},
        "dedup": {"positions": tables.get("positions", "aggregate"), "key_bits": 128},
        "input": {"paths": [str(inputs)]},
        "output": {
            "path": str(folder / name),
            "games_per_block": tables.get("games_per_block", 9),
            "rows_per_shard": tables.get("rows_per_shard", 130),
            "format": tables.get("format", "parquet"),
            "shuffle": tables.get("shuffle", "exact"),
        },
        "run": {"workers": 0},
    }
    return build(make_config(asked, "test")).path


def rows_of(folder: Path, split: str) -> tuple[Columns, list[int]]:
    """Return all rows of a part in their order, and the lengths of its shards."""
    dataset = open_dataset(folder)
    entries = [entry for entry in dataset.manifest.shards if entry.split == split]
    batches = [batch for entry in entries for batch in shard.read(folder / entry.path, dataset.manifest.layout)]
    return join(batches), [entry.rows for entry in entries]


def texts_of(columns: Columns) -> list[str]:
    """Return every row as a text of all its columns."""
    texts = []
    for number in range(shard.count(columns)):
        row = slice_rows(columns, number, number + 1)
        texts.append(" ".join(f"{name}={values.tolist()}" for name, values in row.items() if name != "policy_offsets"))
    return texts


@pytest.mark.parametrize(
    ("scheme", "positions", "augment", "file_format"),
    [
        ("board", "aggregate", "all", "parquet"),
        ("katago_v7", "first", "random", "hdf5"),
        ("agz17", "off", "none", "hdf5"),
    ],
)
def test_the_same_rows_in_the_order_of_their_words(
    tmp_path: Path, scheme: str, positions: str, augment: str, file_format: str
) -> None:
    settings = {"scheme": scheme, "positions": positions, "augment": augment, "format": file_format}
    exact = built(tmp_path, "exact", **settings)
    blocks = built(tmp_path, "blocks", shuffle="blocks", **settings)
    for split in ("train", "val", "test"):
        (rows, lengths), (others, _) = rows_of(exact, split), rows_of(blocks, split)
        assert sorted(texts_of(rows)) == sorted(texts_of(others))
        words = chain_words(seed_word("shuffle", 0), rows["game"], rows["ply"], rows["symmetry"])
        assert np.all(words[1:] > words[:-1])
        total = sum(lengths)
        assert len(lengths) == -(-total // 130)
        assert max(lengths) - min(lengths) <= 1
        assert max(lengths) <= 130
    assert {check.name: check.faults for check in verify(exact) if check.faults} == {}


def test_the_order_does_not_depend_on_blocks(tmp_path: Path) -> None:
    one, other = built(tmp_path, "one"), built(tmp_path, "other", games_per_block=1000)
    names = sorted(path.relative_to(one) for path in one.glob("*/shard-*"))
    assert len(names) > 10
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_no_game_at_all(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert open_dataset(built(tmp_path, "out")).manifest.shards == ()


def test_shards_of_so_few_rows_that_shares_are_empty(tmp_path: Path) -> None:
    """A shard's share of the words may have no row in any block."""
    settings = {"augment": "all", "games_per_block": 3}
    exact = built(tmp_path, "exact", rows_per_shard=3, **settings)
    blocks = built(tmp_path, "blocks", shuffle="blocks", **settings)
    for split in ("train", "val", "test"):
        (rows, lengths), (others, _) = rows_of(exact, split), rows_of(blocks, split)
        assert sorted(texts_of(rows)) == sorted(texts_of(others))
        assert max(lengths) <= 3
