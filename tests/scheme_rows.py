"""Rows of schemes for tests: of all positions of games, unpacked, and of turned games; and what shards say."""

from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from random_games import Line, games_of, turned

from pipeline import symmetry
from pipeline.encode import encode_whole
from pipeline.games import Games
from pipeline.schemes import Scheme

Size = tuple[int, int]


def all_rows(games: Games) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return game and ply of every position."""
    lengths = np.diff(games.move_start)
    row_games = np.repeat(np.arange(games.number, dtype=np.int64), lengths)
    return row_games, np.arange(len(row_games), dtype=np.int64) - games.move_start[row_games]


def encode_all(scheme: Scheme, lines: Sequence[Line], frame: Size) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return the packed planes and the globals of all positions."""
    games = games_of(lines)
    return encode_whole(scheme, games, *all_rows(games), frame)


def unpacked(planes: NDArray[np.uint8], frame: Size) -> NDArray[np.uint8]:
    """Return uint8[..., *frame]; fails where a padding bit is set."""
    bits = np.unpackbits(planes, axis=-1)
    assert not bits[..., frame[0] * frame[1] :].any()
    return bits[..., : frame[0] * frame[1]].reshape(*planes.shape[:-1], *frame)


def assert_turns(scheme: Scheme, line: Line, frame: Size) -> None:
    """Fail unless every symmetry of a game turns every plane of every position, and leaves its globals alone."""
    packed, numbers = encode_all(scheme, [line], frame)
    planes = unpacked(packed, frame)
    for turn in range(symmetry.count(line.rows, line.cols)):
        image, same_numbers = encode_all(scheme, [turned(line, turn)], frame)
        expected = np.zeros_like(planes)
        for row in range(line.rows):
            for col in range(line.cols):
                there = symmetry.image_point(row, col, line.rows, line.cols, turn)
                expected[:, :, there[0], there[1]] = planes[:, :, row, col]
        wrong = np.argwhere((unpacked(image, frame) != expected).any(axis=(2, 3)))
        assert not len(wrong), (line, turn, [(at, scheme.plane_names[plane]) for at, plane in wrong[:5]])
        assert same_numbers.tobytes() == numbers.tobytes(), (line, turn)


def shard_texts(folder: Path) -> list[str]:
    """Return what each shard says of its scheme."""
    texts = [pq.read_schema(path).metadata[b"goplanes"].decode() for path in folder.glob("*/*.parquet")]
    for path in folder.glob("*/*.h5"):
        with h5py.File(path) as file:
            texts.append(bytes(file.attrs["goplanes"]).decode())
    return texts
