"""The scheme ``katago_v7`` against KataGo's own rows: every plane and global of every view."""

import numpy as np
import pytest
from area_rows import solve_rows
from katago_views import FILES, VIEWS, Arrays, kata_options, needs_vectors, stored_game, vectors
from numpy.typing import NDArray
from random_games import plain_terms

from pipeline.areas import AreaTrace, trace_areas
from pipeline.encode import encode_whole
from pipeline.games import Games
from pipeline.katago import KataTrace, trace_katago
from pipeline.schemes import SCHEMES
from pipeline.traces import Traces

SCHEME = SCHEMES["katago_v7"]
FRAME = (19, 19)
WANTS = frozenset(want for group in SCHEME.groups for want in group.wants)
ONE = np.zeros(1, dtype=np.int64)

# The shortcut of SEMANTICS.md 6.5, which depends on the order in which a chain grew: we leave it out.
QUIRK = {("hard", "g_quirk11.sgf", row, 17) for row in (102, 114)}


def cut_to(games: Games, rows: int) -> Games:
    """Return a game of so many positions: what is made after the last one is a pass."""
    area = int(games.rows[0]) * int(games.cols[0])
    return games._replace(
        move_start=np.array([0, rows], dtype=np.int64),
        moves=np.append(games.moves[: rows - 1], np.uint16(area)),
        colours=games.colours[:rows],
    )


def black_leads(areas: AreaTrace) -> NDArray[np.int16]:
    """Return Black's points on the board less White's, where groups are not taxed."""
    counts = np.bitwise_count(areas.planes).sum(axis=-1, dtype=np.int16)
    return counts[:, 0] - counts[:, 1]


def drawn(traces: Traces, positions: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return planes and globals of traced positions, group by group."""
    planes = np.zeros((len(positions), len(SCHEME.planes), 46), dtype=np.uint8)
    numbers = np.zeros((len(positions), len(SCHEME.globals)), dtype=np.float32)
    first = 0
    for group in SCHEME.groups:
        group.draw(traces, positions, planes, first)
        first += len(group.planes)
        if group.fill is not None:
            numbers[:] = group.fill(traces, positions)
    return planes, numbers


def boards_of(katago: KataTrace, size: tuple[int, int]) -> Games:
    """Return a game for each position: its stones set up, then a pass by the side to move."""
    number = len(katago.stones)
    stones = np.unpackbits(katago.stones, axis=-1, count=361).reshape(number, 2, 19, 19)[..., : size[0], : size[1]]
    at, side, row, col = np.nonzero(stones)
    return Games(
        np.full(number, size[0], dtype=np.uint8),
        np.full(number, size[1], dtype=np.uint8),
        np.zeros(number, dtype=np.int8),
        np.zeros(number, dtype=np.bool_),
        np.arange(number + 1, dtype=np.int64),
        np.full(number, size[0] * size[1], dtype=np.uint16),
        katago.to_play,
        np.searchsorted(at, np.arange(number + 1)).astype(np.int64),
        np.zeros(len(at), dtype=np.uint16),
        (row * size[1] + col).astype(np.uint16),
        (side + 1).astype(np.int8),
        plain_terms(number),
    )


def encore_traces(katago: KataTrace, games: Games) -> Traces:
    """Return traces for positions of the encore, where stones are not those of a plain replay: from the stones of
    each position, there being no ko point in the encore."""
    number, size = len(katago.stones), (int(games.rows[0]), int(games.cols[0]))
    boards = boards_of(katago, size)
    traces = Traces(boards, np.arange(number, dtype=np.int64), np.ones(number, dtype=np.int64), FRAME, WANTS)
    shown, second = (np.unpackbits(stones, axis=-1, count=361) for stones in (katago.stones, katago.second))
    rules = [np.full(number, part[0]) for part in (games.terms.scoring, games.terms.tax, games.suicide)]
    owned = solve_rows(np.tile(size, (number, 1)), shown, second, katago.phase == 2, *rules)[:, :2]
    traces.__dict__ |= {"katago": katago, "areas": AreaTrace(np.packbits(owned, axis=-1))}
    return traces


def rows_of(games: Games, view: str) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return planes and globals of all positions of a game under the parameters of a view."""
    whole, options = np.diff(games.move_start), kata_options(*VIEWS[view])
    katago = trace_katago(games, ONE, whole, FRAME, options._replace(passing_hacks=False))
    # The stones of the encore are not those of a plain replay: a retaken ko there is a pass.
    plies = whole if not katago.phase.any() else np.array([np.argmax(katago.phase > 0)])
    traces = Traces(games, ONE, plies, FRAME, WANTS, options)
    if view == "cn_pasui":  # life has to withstand suicide though it is illegal
        alive = games._replace(suicide=np.ones(1, dtype=np.bool_))
        traces.__dict__["areas"] = trace_areas(alive, ONE, plies, FRAME)
    if options.passing_hacks:
        leads = black_leads(traces.areas)
        traces.__dict__["katago"] = trace_katago(games, ONE, plies, FRAME, options, leads=leads)
    planes, numbers = drawn(traces, np.arange(plies[0], dtype=np.int64))
    if plies[0] < whole[0]:
        encore = drawn(encore_traces(katago, games), np.arange(plies[0], whole[0], dtype=np.int64))
        planes, numbers = np.concatenate([planes, encore[0]]), np.concatenate([numbers, encore[1]])
    return planes, numbers


def differing(name: str, data: Arrays, view: str) -> set[tuple[str, str, int, int]]:
    """Return (file, game, row, plane) wherever a plane differs, and -1 for the plane where globals do."""
    found = set()
    for game, title in enumerate(data["game_name"].tolist()):
        start, stop = data[f"{view}_pos_offsets"][game : game + 2].tolist()
        games = cut_to(stored_game(data, view, game, VIEWS[view][0]), stop - start)
        planes, numbers = rows_of(games, view)
        spatial, stored = data[f"{view}_spatial"][start:stop], data[f"{view}_global"][start:stop]
        wrong = np.argwhere((planes != spatial).any(axis=-1)).tolist()
        found |= {(name, title, row, plane) for row, plane in wrong}
        uneven = (numbers.view(np.uint32) != stored.view(np.uint32)).any(axis=1)
        found |= {(name, title, row, -1) for row in np.flatnonzero(uneven).tolist()}
    return found


@needs_vectors
@pytest.mark.parametrize(("name", "view"), [(name, view) for name, views in FILES.items() for view in views.split()])
def test_every_plane_and_global_of_every_view(name: str, view: str) -> None:
    assert differing(name, vectors(name), view) == {row for row in QUIRK if row[0] == name}


@needs_vectors
@pytest.mark.parametrize("name", ["gnugo", "random", "superko"])
def test_a_data_set_has_the_rows_of_katagos_own_tool(name: str) -> None:
    """View ``cn_nofp``, through ``encode_whole``: friendly passes are off."""
    data = vectors(name)
    for game in range(len(data["game_name"])):
        start, stop = data["cn_nofp_pos_offsets"][game : game + 2].tolist()
        games = cut_to(stored_game(data, "cn_nofp", game, VIEWS["cn_nofp"][0]), stop - start)
        plies = np.arange(stop - start, dtype=np.int64)
        planes, numbers = encode_whole(SCHEME, games, np.zeros(len(plies), dtype=np.int64), plies, FRAME)
        assert np.array_equal(planes, data["cn_nofp_spatial"][start:stop])
        assert np.array_equal(numbers, data["cn_nofp_global"][start:stop])
