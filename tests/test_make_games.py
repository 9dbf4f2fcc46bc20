"""The games of ``benchmarks/make_games.py``: the same each time, all different, and good games to every reader."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sgfmill.sgf import Sgf_game
from sgfmill.sgf_moves import get_setup_and_moves

from benchmarks.make_games import MOST_GAMES, ZipWriter, made_records, make_archive, make_batch, require_distinct
from pipeline.build import build
from pipeline.config import make_config
from pipeline.zips import find_directory, zip_entries, zip_names

COUNT = 300


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of ``COUNT`` games."""
    path = tmp_path_factory.mktemp("made") / "games.zip"
    with np.errstate(over="ignore"):  # fixtures come before conftest's
        make_archive(path, COUNT)
    return path


def contents(path: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as opened:
        return [(name, opened.read(name)) for name in opened.namelist()]


def stones_after(record: bytes, moves: int) -> str:
    """Return the board after the first moves, by sgfmill; every one of them is checked to be legal."""
    board, played = get_setup_and_moves(Sgf_game.from_bytes(record))
    ko = None
    seen = [board.list_occupied_points()]
    for colour, point in played[:moves]:
        if point is None:
            continue
        assert point != ko
        ko = board.play(*point, colour)  # raises ValueError where a stone is
        assert board.get(*point) == colour  # no suicide
        assert board.list_occupied_points() not in seen
        seen.append(board.list_occupied_points())
    return str(board.list_occupied_points())


def test_same_bytes_for_the_same_seed(archive: Path, tmp_path: Path) -> None:
    make_archive(tmp_path / "again.zip", COUNT)
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    make_archive(tmp_path / "other.zip", COUNT, seed=1)
    assert not {data for _, data in contents(tmp_path / "other.zip")} & {data for _, data in contents(archive)}


def test_a_larger_archive_begins_with_a_smaller_one(archive: Path, tmp_path: Path) -> None:
    make_archive(tmp_path / "fewer.zip", 70)
    assert contents(tmp_path / "fewer.zip") == contents(archive)[:70]


def test_batches_do_not_matter(archive: Path) -> None:
    cut = [*made_records(make_batch(0, 7, 0)), *made_records(make_batch(7, COUNT - 7, 0))]
    assert cut == contents(archive)


# Positional superko without suicide: what it allows, all others allow.
@pytest.mark.parametrize("rules", [{}, {"force": "chinese-ogs"}])
def test_a_build_keeps_every_game(archive: Path, tmp_path: Path, rules: dict[str, Any]) -> None:
    tables = {
        "input": {"paths": [str(archive)]},
        "output": {"path": str(tmp_path / "built")},
        "run": {"workers": 0},
        "rules": rules,
    }
    manifest = build(make_config(tables, "test")).manifest
    assert manifest.records.seen == manifest.records.kept == COUNT
    assert not manifest.flags
    assert manifest.positions.seen == sum(make_batch(0, COUNT, 0).plies)
    # Openings repeat as in real archives, and nothing much else does.
    repeats = manifest.positions.merged + manifest.positions.overlap
    assert 0.01 < repeats / manifest.positions.seen < 0.1


def test_sgfmill_agrees_that_moves_are_legal(archive: Path) -> None:
    records = [data for _, data in contents(archive)]
    for record in records[:20]:
        stones_after(record, 1000)


def test_games_look_like_games(archive: Path) -> None:
    records = [data for _, data in contents(archive)]
    games = [Sgf_game.from_bytes(record) for record in records]
    lines = [get_setup_and_moves(game) for game in games]
    assert all(game.get_size() == 19 for game in games)
    assert len({stones_after(record, 3) for record in records}) < COUNT // 3
    assert len({stones_after(record, 60) for record in records}) == COUNT
    lengths = [len(moves) for _, moves in lines]
    assert 110 <= min(lengths) < 150
    assert 190 <= sum(lengths) / COUNT <= 220
    assert 260 < max(lengths) <= 300
    handicaps = {len(board.list_occupied_points()) for board, _ in lines}
    assert {0, 2} < handicaps
    for game, (board, moves) in zip(games, lines, strict=True):
        stones = len(board.list_occupied_points())
        assert game.get_handicap() == (stones or None)
        assert [colour for colour, _ in moves[:4]] == list("wbwb" if stones else "bwbw")
        passed = [point is None for _, point in moves]
        scored = game.get_root().get("RE").strip("BW+").replace(".", "").isdecimal()
        assert sum(passed) == (2 if scored else 0)
        assert not scored or all(passed[-2:])


def test_headers_vary(archive: Path) -> None:
    roots = [Sgf_game.from_bytes(data).get_root() for _, data in contents(archive)]
    for name, least in {"RE": 20, "KM": 4, "RU": 5, "PB": 100, "BR": 15, "DT": 200}.items():
        assert len({root.get_raw(name) for root in roots}) >= least, name


def test_equal_games_are_refused() -> None:
    require_distinct(np.array([3, 1, 2], dtype=np.uint64))
    with pytest.raises(ValueError, match="games 0 and others of 2 are equal"):
        require_distinct(np.array([3, 1, 3], dtype=np.uint64))


def test_equal_up_to_a_symmetry_is_equal() -> None:
    batch = make_batch(0, 2, 0)
    batch.plies[:] = batch.plies[0]
    batch.handicaps[:] = 0
    batch.moves[1] = batch.moves[0]
    on_board = batch.moves[1] < 361
    batch.moves[1, on_board] = 360 - batch.moves[0, on_board]  # turned by half
    with pytest.raises(ValueError, match="equal"):
        require_distinct(batch.keys())


@pytest.mark.parametrize("count", [0, -1, MOST_GAMES + 1])
def test_counts_out_of_range(tmp_path: Path, count: int) -> None:
    with pytest.raises(ValueError, match="games, not"):
        make_archive(tmp_path / "games.zip", count)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [0, 3, 65_534, 65_535, 65_536])
def test_zips_of_any_length(count: int) -> None:
    file = io.BytesIO()
    writer = ZipWriter(file, io.BytesIO())
    for number in range(count):
        writer.add(f"{number}.sgf", b"(;)" * (number % 3))
    writer.close()
    names = [f"{number}.sgf" for number in range(count)]
    with zipfile.ZipFile(file) as opened:
        assert opened.namelist() == names
        assert all(opened.read(name) == b"(;)" * (int(name[:-4]) % 3) for name in names[-5:])
    directory = find_directory(file)
    entries = list(zip_entries(file, directory.start, directory.stop, zip_names(file, directory, ()).read))
    assert [entry.name for entry in entries] == names
