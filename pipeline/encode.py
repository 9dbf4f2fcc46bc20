"""Positions + scheme -> packed planes, and globals where the scheme has them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipeline.games import Games
from pipeline.schemes import Scheme
from pipeline.traces import Traces

_POSITIONS_AT_ONCE = 4096  # boards traced together: a few MB, so that they are still cached when drawn

Size = tuple[int, int]


def plane_bytes(frame: Size) -> int:
    """Return the bytes of one packed plane: ceil(rows * cols / 8)."""
    return (frame[0] * frame[1] + 7) // 8


def chunks(games: Games, row_games: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut rows, ordered by game, into runs of whole games of one size, some thousand positions each."""
    starts = np.flatnonzero(np.diff(row_games, prepend=-1))
    lengths = np.diff(games.move_start)
    first, positions = 0, 0
    for number, start in enumerate(starts):
        game = row_games[start]
        size_changes = number > 0 and (
            games.rows[game] != games.rows[row_games[start - 1]] or games.cols[game] != games.cols[row_games[start - 1]]
        )
        if start > first and (size_changes or positions + lengths[game] > _POSITIONS_AT_ONCE):
            yield first, int(start)
            first, positions = int(start), 0
        positions += int(lengths[game])
    if len(row_games) > first:
        yield first, len(row_games)


def encode(
    scheme: Scheme, games: Games, row_games: NDArray[np.int64], row_plies: NDArray[np.int64], frame: Size
) -> NDArray[np.uint8]:
    """Return uint8[N, P, B]: the packed planes of the positions before move ``row_plies`` of ``row_games``.

    Rows must come in the order of games; the games' moves must be legal up to the last ply asked for.
    """
    return encode_whole(scheme, games, row_games, row_plies, frame)[0]


def encode_whole(
    scheme: Scheme, games: Games, row_games: NDArray[np.int64], row_plies: NDArray[np.int64], frame: Size
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return what ``encode`` does, and float32[N, G]: the globals of the positions."""
    planes = np.zeros((len(row_games), len(scheme.planes), plane_bytes(frame)), dtype=np.uint8)
    numbers = np.zeros((len(row_games), len(scheme.globals)), dtype=np.float32)
    plies = np.zeros(games.number, dtype=np.int64)
    np.maximum.at(plies, row_games, row_plies + 1)
    for first, last in chunks(games, row_games):
        chunk = row_games[first:last]
        order = chunk[np.flatnonzero(np.diff(chunk, prepend=-1))]
        start_of = np.zeros(games.number, dtype=np.int64)
        start_of[order] = np.cumsum(plies[order]) - plies[order]
        positions = start_of[chunk] + row_plies[first:last]
        traces = scheme.traces(games, order, plies, frame)
        _draw(scheme, traces, positions, planes[first:last], numbers[first:last])
    return planes, numbers


def _draw(
    scheme: Scheme,
    traces: Traces,
    positions: NDArray[np.int64],
    planes: NDArray[np.uint8],
    numbers: NDArray[np.float32],
) -> None:
    """Draw all planes and globals of the traced ``positions``, groups in their order."""
    plane = number = 0
    for group in scheme.groups:
        group.draw(traces, positions, planes, plane)
        plane += len(group.planes)
        if group.fill is not None:
            numbers[:, number : number + len(group.globals)] = group.fill(traces, positions)
            number += len(group.globals)
