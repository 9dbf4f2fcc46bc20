"""Where game trees begin and end: what is mended, what is passed over, and what is refused. All bytes are made here."""

import time

import pytest

from pipeline.config import Config
from pipeline.game import Game
from pipeline.parse import Rejected, parse_member
from pipeline.reasons import Flag, Reason
from pipeline.trees import Tree, read_trees

HEAD = "GM[1]FF[4]SZ[9]KM[6.5]RE[B+R]"
GAME = f"(;{HEAD};B[cc];W[gg])"
OTHER = f"(;{HEAD}PB[other];B[gg];W[cc];B[ee])"


def trees(text: str) -> list[Tree]:
    return list(read_trees(text.encode()))


def read(data: str | bytes) -> list[Game | Rejected]:
    config = Config()
    return parse_member(data.encode() if isinstance(data, str) else data, config.input, config.parse, config.rules)


def moves(record: Game | Rejected) -> str:
    """Moves as letters: ``cc gg``."""
    assert isinstance(record, Game), record
    return " ".join(chr(97 + point % record.cols) + chr(97 + point // record.cols) for point in record.moves.tolist())


def seen(text: str | bytes) -> list[tuple[str, set[Flag]]]:
    """Moves and flags of each record, or the reason of a reject."""
    return [
        (record.reason.value, set()) if isinstance(record, Rejected) else (moves(record), set(record.flags))
        for record in read(text)
    ]


# Both ends of a tree


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (GAME, set()),
        (f"\ufeff {GAME}", set()),
        (f"To: B (day 3)\nSubject: [game] ;-)\n\n{GAME}\n-- \nA; no more\n", set()),
        (f"{GAME}\n\0\0\x1a", set()),
        # Parentheses: too many, or too few.
        (f"({GAME}", set()),
        (f"(({GAME}))", {Flag.REMAINS}),
        (f"{GAME})", {Flag.REMAINS}),
        (GAME[:-1], {Flag.UNCLOSED}),
        (f"{GAME[:-1]}\r\n\x1a", {Flag.UNCLOSED}),
        (f"(;{HEAD};B[cc](;W[gg])", {Flag.UNCLOSED}),
        (f"(;{HEAD}(;B[cc](;W[gg]", {Flag.UNCLOSED}),
        # The tail of an older, longer save, cut anywhere.
        (f"{GAME};B[ee];W[dd])", {Flag.REMAINS}),
        (f"{GAME}e];W[dd])", {Flag.REMAINS}),
        (f"{GAME}[ee];W[dd])", {Flag.REMAINS}),
        (f"{GAME}])", {Flag.REMAINS}),
        # Without "(" or ";".
        (GAME[1:], {Flag.OPENING_REPAIRED}),
        (f"\n {GAME[1:]}", {Flag.OPENING_REPAIRED}),
        (GAME[1:-1], {Flag.OPENING_REPAIRED, Flag.UNCLOSED}),
        (f"; {GAME[2:]}", {Flag.OPENING_REPAIRED}),
        (f"({GAME[2:]}", {Flag.OPENING_REPAIRED}),
        (f"(\r\n{GAME[2:]}", {Flag.OPENING_REPAIRED}),
        (f"A wrote\n( {GAME[2:]}", {Flag.OPENING_REPAIRED}),
        # Semicolons that nothing follows are empty nodes.
        (f"(;;;{HEAD};B[cc];;W[gg];)", {Flag.INFO_BELOW_ROOT}),
    ],
)
def test_one_game_is_found(text: str, flags: set[Flag]) -> None:
    assert seen(text) == [("cc gg", flags)]


def test_the_hash_of_a_record_is_that_of_its_tree_whatever_stands_around_it() -> None:
    for text in (f"junk\n{GAME}", f"{GAME};B[ee])", f"({GAME})", f"{GAME}\n{OTHER}"):
        assert read(text)[0].content == read(GAME)[0].content
    for text in (GAME[1:], GAME[:-1], f"({GAME[2:]}"):
        assert read(text)[0].content != read(GAME)[0].content


@pytest.mark.parametrize("first", [GAME[:-1], GAME[1:-1], f"({GAME[2:-1]}", f"(;{HEAD}(;B[cc](;W[gg])"])
@pytest.mark.parametrize("between", ["", "\n\n"])
def test_a_game_without_its_end_before_another(first: str, between: str) -> None:
    found = seen(first + between + OTHER + OTHER)
    assert [text for text, _ in found] == ["cc gg", "gg cc ee", "gg cc ee"]
    assert [Flag.UNCLOSED in flags for _, flags in found] == [True, False, False]


def test_all_games_of_a_collection_without_their_ends() -> None:
    found = seen("\n".join([GAME[:-1], OTHER[:-1], GAME[:-1]]))
    assert found == [("cc gg", {Flag.UNCLOSED}), ("gg cc ee", {Flag.UNCLOSED}), ("cc gg", {Flag.UNCLOSED})]


def test_what_looks_like_a_game_inside_a_comment_is_none() -> None:
    comment = "C[see (;GM[1\\]SZ[9\\];B[aa\\]) and (;FF[4\\]"
    assert seen(f"(;{HEAD}{comment}];B[cc];W[gg]") == [("cc gg", {Flag.UNCLOSED})]
    assert seen(f"(;{HEAD}{comment}];B[cc];W[gg]{OTHER}") == [("cc gg", {Flag.UNCLOSED}), ("gg cc ee", set())]


def test_a_variation_that_opens_like_a_root_does_not_end_a_whole_tree() -> None:
    assert seen(f"(;{HEAD};B[cc];W[gg](;GN[a try];B[ee])(;B[dd]))") == [("cc gg ee", {Flag.INFO_BELOW_ROOT})]


def test_a_variation_outside_its_tree_is_no_game() -> None:
    records = read(f"(;{HEAD};B[cc](;W[gg]))(;W[dd];B[ee])){OTHER}")
    assert moves(records[0]) == "cc gg"
    assert isinstance(records[1], Rejected)
    assert (records[1].reason, records[1].detail) == (Reason.BAD_SYNTAX, "a variation outside its game tree")
    assert moves(records[2]) == "gg cc ee"


def test_games_without_headers_are_games() -> None:
    assert seen("(;B[cc];W[gg])(;B[ee])\n(;W[dd])") == [(text, {Flag.SIZE_ASSUMED}) for text in ("cc gg", "ee", "dd")]


def test_after_a_broken_tree_only_what_opens_like_a_root_begins_a_game() -> None:
    found = seen(f"(;{HEAD};B[cc] 5 (;W[gg])(;B[dd]))\n{OTHER}")
    assert found == [("bad-syntax", set()), ("gg cc ee", set())]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (f"(;{HEAD};B[cc];W[gg", f"breaks off at byte {len(GAME) - 5}: '[gg'"),
        (f"(;{HEAD};B[cc] 5)", f"breaks off at byte {len(GAME) - 7}: '5)'"),
        (f"(;{HEAD};B", "a property without a value in node 2"),
        (f"(;{HEAD};b[cc];W[gg])", "a property name without a capital letter in node 2"),
    ],
)
def test_what_is_lost_is_not_mended(text: str, detail: str) -> None:
    (record,) = read(text)
    assert isinstance(record, Rejected)
    assert record.reason is Reason.BAD_SYNTAX
    assert record.detail.endswith(detail)


def test_nothing_before_a_file_is_taken_for_a_start() -> None:
    # A text that begins with a semicolon and a move, or a parenthesis and a move, is no game.
    for text in (";B[cc];W[gg])", "(B[cc];W[gg])", "[cc];W[gg])", ";a comment [of some program]\nx=1"):
        assert [reason for reason, _ in seen(text)] == ["no-game"]


def test_tokens_of_a_mended_tree_are_balanced() -> None:
    for text in (GAME[1:-1], f"(;{HEAD}(;B[cc](;W[gg]", f"({GAME[2:-1]}{OTHER}"):
        for tree in trees(text):
            assert tree.tokens.count(("D", b"(")) == tree.tokens.count(("D", b")")) > 0
            assert tree.tokens[:2] == [("D", b"("), ("D", b";")]


def test_offsets_are_of_the_file() -> None:
    text = f"junk {GAME[:-1]} {OTHER}"
    first, second = trees(text)
    assert (first.start, first.end) == (5, 4 + len(GAME))
    assert (second.start, second.end) == (len(text) - len(OTHER), len(text))
    (bare,) = trees(f"xx({GAME[2:]}")
    assert (bare.start, bare.end) == (2, len(GAME) + 1)


# Hostile files


@pytest.mark.parametrize(
    "piece",
    [
        GAME[:-1], f"({GAME[2:]}", f"({GAME[2:-1]}", f"{GAME};B[ee])", f"{GAME}(;B[aa])", "(;GM[1]C[(;GM[1\\]]",
        "(TE[a]", "(TE[", "(GM[1](;B[aa]", "(;GM[1];B[aa])]", "( ( (;GM[1])",
    ],
)  # fmt: skip
def test_time_is_linear(piece: str) -> None:
    def seconds(size: int) -> tuple[float, int]:
        data = (piece * (size // len(piece))).encode()
        start = time.process_time()
        records = read(data)
        return time.process_time() - start, len(records)

    small, _ = seconds(100_000)
    large, count = seconds(800_000)
    # Eight times the bytes: quadratic time would be 64 times as long.
    assert large < 24 * small + 0.5
    assert count <= 1_001 + 800_000 // 64
