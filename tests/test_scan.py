"""The fast reading of plain records gives what the grammar gives, field by field, or leaves the record to it."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.config import Config, make_config
from pipeline.game import Game
from pipeline.parse import Rejected, records_of
from pipeline.reasons import Flag
from pipeline.sources import Member, find_inputs, read_all

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
CONFIG = Config()
TABLES = CONFIG.input, CONFIG.parse, CONFIG.rules
RECORD = (
    b"(;GM[1]FF[4]CA[UTF-8]AP[Alpha:1]SZ[9]KM[6.5]RU[Japanese]HA[2]PB[Uma]PW[Ivo]BR[2d]WR[3k]RE[B+2.5]DT[2016-03-09]"
    b"AB[cc][gg]PL[W];W[ee];B[];W[gc]C[a ; comment \\] with (everything)];B[tt];W[ih]BL[12]OW[3])\n"
)


def same(one: Game | Rejected, other: Game | Rejected) -> bool:
    """Whether two records are the same in every field, dtypes and the order of header texts included."""
    if type(one) is not type(other):
        return False
    for field in fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, np.ndarray):
            if mine.dtype != theirs.dtype or not np.array_equal(mine, theirs):
                return False
        elif isinstance(mine, dict):
            if list(mine.items()) != list(theirs.items()):
                return False
        elif mine != theirs:
            return False
    return True


def both(data: bytes, config: Config = CONFIG) -> tuple[list[Game | Rejected], bool]:
    """Return the records of a file, having read it both ways, and whether it took the fast one."""
    tables = config.input, config.parse, config.rules
    slow = list(records_of(data, *tables, fast=False))
    quick = list(records_of(data, *tables, fast=True))
    assert len(slow) == len(quick)
    for (one, text), (other, other_text) in zip(slow, quick, strict=True):
        assert same(one, other), f"{data!r}\n{one}\n{other}"
        assert text == other_text
    return [record for record, _ in quick], is_plain(data, config)


def is_plain(data: bytes, config: Config = CONFIG) -> bool:
    """Whether a file takes the fast path: the grammar would fail if it were asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.parse.read_trees", lambda _: (_ for _ in ()).throw(LookupError))
        try:
            list(records_of(data, config.input, config.parse, config.rules))
        except LookupError:
            return False
    return True


def test_a_plain_record() -> None:
    (game,), plain = both(RECORD)
    assert plain
    assert isinstance(game, Game)
    assert game.moves.tolist() == [40, 81, 24, 81, 71]
    assert game.colours.tolist() == [2, 1, 2, 1, 2]
    assert (game.setup_points.tolist(), game.setup_colours.tolist()) == ([20, 60], [1, 1])
    assert (game.komi, game.handicap, game.winner, game.margin) == (6.5, 2, "B", 2.5)
    assert list(game.raw)[:4] == ["GM", "FF", "CA", "AP"]


@pytest.mark.parametrize(
    "record",
    [
        b"(;SZ[9];B[aa];W[bb])",
        b"(;SZ[9];B[aa];;W[bb];)",
        b" \r\n(\n;SZ [9]\n;B\t[aa] ; W [bb]\n)\n\x00\x1a",
        b"(;SZ[9]AB[aa][bb]AW[cc]AE[];B[dd])",
        b"(;SZ[9];AB[aa]AW[bb];B[dd])",
        b"(;SZ[9];AB[aa]AW[bb]B[dd];W[ee])",
        b"(;SZ[9];B[dd]AB[aa]AW[bb];W[ee])",
        b"(;SZ[9]PL[W]B[aa];W[bb];B[cc])",
        b"(;SZ[9]PL[B]PL[W];B[aa])",
        b"(;SZ[9];B[aa];W[bb]PL[B];B[cc])",
        b"(;SZ[9]AP[one]AP[foxwq]C[root text]C[more];B[aa]C[not a header])",
        b"(;SZ[9];B[aa]RE[B+R]PB[Uma];W[bb]RE[W+R])",
        b"(;B[aa];SZ[9]KM[5.5];W[bb])",
        b"(;SZ[9];B[aa];B[bb])",
        b"(;SZ[9]LB[aa:1]TR[bb];B[aa];W[bb])",
        b"(;SZ[9]PB[a\\]b\\\nc];B[aa])",
        b"(;SZ[7:5];B[ga];W[ae])",
        b"(;GM[1];B[ss];W[tt])",
        b"(;SZ[9])",
        b"(;)",
        b"(;SZ[9][aa];B[bb])",
        b"(;SZ[9]N[]GB[1]DM[2]UNKNOWNX[y];B[aa]BM[1]KO[])",
    ],
)
def test_both_ways_are_one(record: bytes) -> None:
    assert both(record)[1]


@pytest.mark.parametrize(
    "record",
    [
        b"(;SZ[9];B[aa](;W[bb])(;W[cc]))",
        b"(;SZ[9];B[aa]W[bb])",
        b"(;SZ[9];B[aa][bb])",
        b"(;SZ[9];B[aa];AB[bb];W[cc])",
        b"(;SZ[9]AB[aa:cc];B[dd])",
        b"(;SZ[9]AB[aa]AW[aa];B[dd])",
        b"(;SZ[9]AB[zz];B[dd])",
        b"(;SZ[9];PL[W];W[aa])",
        b"(;SZ[9];B[ss])",
        b"(;SZ[9];B[ aa ])",
        b"(;SZ[9];B[a])",
        b"(;SZ[9];Black[aa])",
        b"(;SiZe[9];B[aa])",
        b"(;SZ[9];B[aa]))",
        b"(;SZ[9];B[aa]) tail",
        b"(;SZ[9];B[aa])(;SZ[9];B[bb])",
        b"junk (;SZ[9];B[aa])",
        b"(SZ[9];B[aa])",
        b";SZ[9];B[aa])",
        b"(;SZ[9];B[aa]",
        b"(;SZ[9];B[aa",
        b"(;SZ[9]PB[x\\",
        b"(;SZ[9]PB;B[aa])",
        b"(;GM[2]SZ[9];B[aa])",
        b"(;SZ[0];B[aa])",
        b"7\t;B[aa];W[bb]",
    ],
)
def test_whatever_is_not_plain_is_left_to_the_grammar(record: bytes) -> None:
    assert not both(record)[1]


@pytest.mark.parametrize("keys", [{"after_two_passes": "stop"}, {"branch": "longest"}, {"two_moves": "split"}])
def test_settings_of_the_grammar_hold(keys: dict[str, str]) -> None:
    config = make_config({"parse": keys}, "test")
    both(RECORD, config)
    both(b"(;SZ[9];B[aa];W[];B[];W[cc])", config)


@pytest.mark.parametrize(
    ("moves", "plain", "count"),
    [
        (b";B[aa];W[];B[]", True, 3),
        (b";B[];W[aa];B[]", True, 3),
        (b";B[tt];W[]RE[B+R]C[end];C[no move]", True, 2),
        (b";B[aa];W[];B[];W[cc]", False, 3),
        (b";B[];W[tt];B[]", False, 2),
        (b";B[aa];W[];W[];B[bb];W[cc]", False, 3),
    ],
)
def test_a_line_that_stops_after_two_passes_is_plain_if_nothing_follows(moves: bytes, plain: bool, count: int) -> None:
    record = b"(;SZ[9]" + moves + b")"
    assert both(record)[1]
    (game,), fast = both(record, make_config({"parse": {"after_two_passes": "stop"}}, "test"))
    assert isinstance(game, Game)
    assert (fast, len(game.moves)) == (plain, count)


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not there")
@pytest.mark.parametrize(
    "archive", sorted(path.name for path in CORPUS.glob("*") if path.suffix != ".md") if CORPUS.exists() else []
)
def test_every_record_of_the_corpus_reads_the_same(archive: str) -> None:
    plain = total = 0
    config = make_config({"input": {"paths": [str(CORPUS / archive)]}}, "test")
    files, _ = find_inputs(config.input)
    for member in read_all(files, config.input):
        if isinstance(member, Member):
            total += 1
            plain += both(member.data, config)[1]
    assert total
    if archive.split(".", maxsplit=1)[0] in {"kgs-6d", "fox", "yenw-ai"}:
        assert plain >= 0.9 * total


PIECES = st.sampled_from(
    [
        b"(", b")", b";", b"[", b"]", b"\\", b"B", b"W", b"AB", b"AW", b"AE", b"SZ[9]", b"B[aa]", b";W[bb]", b";B[]",
        b";B[tt]", b"[cc]", b"PL[W]", b"KM[6.5]", b"C[", b"LB[aa:1]", b" ", b"\n", b"\0", b"\x1a", b"Black", b"GM[1]",
        b"AB[dd][ee]", b"PB[\xe4\xb8\xad]", b"\xe4", b"RE[W+R]", b"HA[2]", b"AP[foxwq]", b";AB[ff]W[gg]", b"\t",
    ]
)  # fmt: skip
MUTATION = st.tuples(st.integers(0, len(RECORD)), st.integers(0, 12), PIECES | st.binary(max_size=4))


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(MUTATION, max_size=4))
def test_records_that_were_changed_read_the_same_both_ways(changes: list[tuple[int, int, bytes]]) -> None:
    data = RECORD
    for place, length, piece in changes:
        data = data[:place] + piece + data[place + length :]
    both(data)


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=40).map(b"".join))
@example(b"(;SZ[9]AB[dd][ee];AB[ff]W[gg])")
def test_pieces_in_any_order_read_the_same_both_ways(data: bytes) -> None:
    both(data)
    both(b"(;" + data + b")")
    both(b"(;SZ[9]" + data + b")", make_config({"parse": {"after_two_passes": "stop"}}, "test"))


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=80))
def test_any_bytes_read_the_same_both_ways(data: bytes) -> None:
    both(data)
    both(b"(;SZ[9];B[aa]" + data + b")")


def test_a_flag_of_the_line_comes_from_both() -> None:
    (game,), plain = both(b"(;SZ[9]PL[W];B[aa];B[bb])")
    assert plain
    assert isinstance(game, Game)
    assert {Flag.COLOUR_TWICE, Flag.PLAYER_MISMATCH} <= set(game.flags)
