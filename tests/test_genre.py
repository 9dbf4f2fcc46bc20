"""What is no game of Go, and what looks like none and is one. The records are made here."""

from pathlib import Path
from typing import Any

import pytest
from stages import read_part

from pipeline.config import Config, make_config
from pipeline.game import Game
from pipeline.genre import no_game
from pipeline.parse import parse_member
from pipeline.read import ReadTask, read_unit
from pipeline.reasons import Reason
from pipeline.sources import find_inputs, units

PLAY = ";B[dd];W[qq];B[cp];W[qd]"


def verdict(text: str, **wanted: Any) -> Reason | None:
    config = make_config({"filter": wanted}, "test")
    (game,) = parse_member(text.encode(), config.input, config.parse, config.rules)
    assert isinstance(game, Game), game
    found = no_game(game, len(game.moves), config.filter)
    return found and found[0]


def moves(count: int, first: str = "B") -> str:
    """Return moves of both sides, one after the other, on points of their own."""
    order = "BW" if first == "B" else "WB"
    return "".join(f";{order[n % 2]}[{chr(97 + n % 19)}{chr(97 + n // 19)}]" for n in range(count))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(;)", Reason.EMPTY),
        ("(;GM[1]FF[4]SZ[9]KM[6.5]C[new game])", Reason.EMPTY),
        ("(;GM[1]SZ[9]PB[Uma])", None),
        ("(;GM[1]SZ[9]RE[B+T])", None),
        ("(;GM[1]SZ[9]HA[2]AB[cc][gg])", None),
        (f"(;GM[1]SZ[19]{PLAY})", None),
        # A start that is no handicap, few moves, no result.
        (f"(;GM[1]SZ[19]AB[aa][bb]AW[cc]{PLAY})", Reason.PROBLEM),
        ("(;GM[1]SZ[19]AB[aa][bb]AW[cc])", Reason.PROBLEM),
        (f"(;GM[1]SZ[19]PB[Black]PW[White]AW[cc]{PLAY})", Reason.PROBLEM),
        (f"(;GM[1]SZ[19];AB[aa][bb]AW[cc];{PLAY[1:]})", Reason.PROBLEM),
        (f"(;GM[1]SZ[19];B[pp];AW[aa][bb]{PLAY})", Reason.PROBLEM),
        (f"(;GM[1]SZ[19];B[pp];AE[pp]{PLAY})", Reason.PROBLEM),
        (f"(;GM[1]SZ[19]AB[aa:jb]{moves(9, 'W').replace('a]', 'm]')})", Reason.PROBLEM),
        (f"(;GM[1]SZ[19]AB[aa][bb][cc]{PLAY})", Reason.PROBLEM),  # Black moves first
        (f"(;GM[1]SZ[19]AB[aa][bb]AW[cc]RE[?]{PLAY})", Reason.PROBLEM),
        # A result, a handicap, many moves, the start of old Chinese games.
        (f"(;GM[1]SZ[19]AB[aa][bb]AW[cc]RE[B+R]{PLAY})", None),
        (f"(;GM[1]SZ[19]AB[aa][bb]AW[cc]RE[0]{PLAY})", None),
        (f"(;GM[1]SZ[19]HA[3]AB[aa][bb][cc]{PLAY[6:]})", None),
        (f"(;GM[1]SZ[19]AB[aa][bb][cc]{PLAY[6:]})", None),
        (f"(;GM[1]SZ[19]HA[2]AB[aa][bb]{PLAY})", None),
        (f"(;GM[1]SZ[19]HA[20]AB[aa:jb]{PLAY[6:].replace('c', 'm')})", None),
        (f"(;GM[1]SZ[19]AB[ss]AW[rs]{moves(60)})", None),
        (f"(;GM[1]SZ[19]AB[ss]AW[rs]{moves(59)})", Reason.PROBLEM),
        (f"(;GM[1]SZ[19]AB[dd][pp]AW[pd][dp]{PLAY[6:]})", None),
        (f"(;GM[1]SZ[19]AW[dd][pp]AB[pd][dp]{PLAY[6:]})", None),
        (f"(;GM[1]SZ[19]AB[dd][pd]AW[pp][dp]{PLAY[6:]})", Reason.PROBLEM),
        (f"(;GM[1]SZ[13]AB[dd][jj]AW[jd][dj]{PLAY[6:]})", None),
        # Marks where nobody plays.
        (f"(;GM[1]SZ[19]{PLAY}LB[aa:A])", Reason.PROBLEM),
        (f"(;GM[1]SZ[19]{PLAY};TR[aa])", Reason.PROBLEM),
        (f"(;GM[1]SZ[19]PB[Uma]{PLAY}LB[aa:A])", None),
        (f"(;GM[1]SZ[19]RE[W+2]{PLAY}LB[aa:A])", None),
        (f"(;GM[1]SZ[19]MA[aa]{moves(60)})", None),
        (f"(;GM[1]SZ[19]{PLAY}C[a remark])", None),
        # Gomoku that calls itself Go.
        (f"(;GM[1]SZ[20]AP[client]KM[6.5]{PLAY})", Reason.NOT_GO),
        (f"(;GM[1]SZ[20]RE[B+3]{PLAY})", None),
        (f"(;GM[1]SZ[20]{moves(60)})", None),
        ("(;GM[1]SZ[20]RE[B+];B[jj];W[aa];B[kj];W[ba];B[ij];W[ca];B[lj];W[sa];B[hj])", Reason.NOT_GO),
        ("(;GM[1]SZ[20]RE[W+];B[jj];W[aa];B[kj];W[bb];B[ij];W[cc];B[ss];W[ee];B[hj];W[dd])", Reason.NOT_GO),
        ("(;GM[1]SZ[20]RE[B+];B[jj];W[aa];B[kj];W[ba];B[ij];W[ca];B[lj];W[sa];B[hj];W[ss])", None),
        ("(;GM[1]SZ[20]RE[B+];B[jj];W[aa];B[kj];W[ba];B[ij];W[ca];B[lj];W[sa];B[nj])", None),
        ("(;GM[1]SZ[19]RE[B+];B[jj];W[aa];B[kj];W[ba];B[ij];W[ca];B[lj];W[sa];B[hj])", None),
    ],
)
def test_verdicts(text: str, reason: Reason | None) -> None:
    assert verdict(text) is reason


def test_the_configuration_decides() -> None:
    problem = f"(;GM[1]SZ[19]AW[cc]{PLAY})"
    assert verdict(problem, problem_moves=4) is None
    assert verdict(problem, problem_moves=5) is Reason.PROBLEM
    assert verdict(problem, problem_moves=0) is None
    gomoku = f"(;GM[1]SZ[15]{PLAY.replace('q', 'h')})"
    assert verdict(gomoku) is None
    assert verdict(gomoku, gomoku_boards=[15]) is Reason.NOT_GO
    assert verdict(f"(;GM[1]SZ[20]{PLAY})", gomoku_boards=[]) is None
    assert (Config().filter.problem_moves, Config().filter.gomoku_boards) == (60, (20,))


def test_old_start_is_no_matter_of_names() -> None:
    # The corners of a board that has no fourth lines apart are no such start.
    assert verdict("(;GM[1]SZ[9]AB[dd][ff]AW[fd][df];B[aa])") is Reason.PROBLEM


def rows_of(folder: Path, texts: dict[str, str], **tables: Any) -> list[dict[str, Any]]:
    (folder / "in").mkdir()
    for name, text in texts.items():
        (folder / "in" / name).write_text(text)
    config = make_config({**tables, "input": {"paths": [str(folder / "in")]}}, "test")
    (unit,) = units(find_inputs(config.input)[0], config.input)
    part = str(folder / "part")
    rows: list[dict[str, Any]] = read_part(part, read_unit(ReadTask(unit, config, part))).to_pylist()
    return rows


def test_what_is_illegal_is_said_first_and_the_facts_are_kept(tmp_path: Path) -> None:
    texts = {
        "a.sgf": "(;GM[1]SZ[19]AB[aa][bb]AW[cc];B[aa])",
        "b.sgf": f"(;GM[1]SZ[19]AB[aa][bb]AW[cc]{PLAY})",
        "c.sgf": f"(;GM[1]SZ[9]AB[aa][bb]AW[cc]{PLAY.replace('q', 'h').replace('p', 'e')})",
    }
    rows = rows_of(tmp_path, texts)
    assert [(row["status"], row["reason"], row["move"]) for row in rows] == [
        ("rejected", "occupied", 1),
        ("rejected", "problem", None),
        ("rejected", "problem", None),  # though the size is not wanted either
    ]
    assert rows[1]["detail"] == "2 Black and 1 White set up, 4 moves, no result; filter.problem_moves = 60"
    assert (len(rows[1]["moves"]), rows[1]["setup_points"]) == (4, [0, 20, 40])
    (tmp_path / "again").mkdir()
    rows = rows_of(tmp_path / "again", texts, rules={"illegal": "keep-prefix"}, filter={"problem_moves": 0})
    assert [(row["status"], row["reason"]) for row in rows] == [
        ("filtered", "too-short"),
        ("kept", None),
        ("filtered", "size-filtered"),
    ]


def test_trees_that_are_found_in_junk_or_cut_off_are_judged_too(tmp_path: Path) -> None:
    licence = "This program (version 2) is free software; see [the licence].\n" * 20
    texts = {
        "pattern.sgf": f"{licence}(;GM[1]FF[3]SZ[19]HA[0]GN[corner patterns];B[qc](;W[pd]MA[ki]C[?];B[qd]",
        "position.sgf": "(;GM[1]SZ[19]KM[4.5];AW[ka][ab]AB[la][ma]PL[B]\n",
        "other.sgf": "(;GM[1]SZ[20]AP[client]KM[6.500000]PB[Black]PW[White];B[rr];W[ss];B[rs])",
        "zeros.sgf": "\0" * 900,
    }
    rows = {row["source"]: row for row in rows_of(tmp_path, texts)}
    assert {name: row["reason"] for name, row in rows.items()} == {
        "pattern.sgf": "problem", "position.sgf": "problem", "other.sgf": "not-go", "zeros.sgf": "no-game"
    }  # fmt: skip
    assert rows["pattern.sgf"]["flags"] == ["lecture", "unclosed"]
    assert len(rows["pattern.sgf"]["moves"]) == 3
