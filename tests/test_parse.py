"""Bytes of a member to games and rejects. All records are made here."""

import time
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sgfmill import sgf_grammar

from pipeline.config import Config
from pipeline.game import Game
from pipeline.games import OFF_BOARD
from pipeline.parse import Rejected, parse_member
from pipeline.reasons import Flag, Reason

HEAD = "GM[1]FF[4]SZ[9]KM[6.5]RE[B+R]"


def read(data: str | bytes, **tables: dict[str, object]) -> list[Game | Rejected]:
    config = Config.model_validate(tables)
    return parse_member(data.encode() if isinstance(data, str) else data, config.input, config.parse, config.rules)


def game(data: str | bytes, **tables: dict[str, object]) -> Game:
    (record,) = read(data, **tables)
    assert isinstance(record, Game), record
    return record


def rejected(data: str | bytes, **tables: dict[str, object]) -> tuple[Reason, int | None]:
    (record,) = read(data, **tables)
    assert isinstance(record, Rejected), record
    assert len(record.detail) <= 200
    return record.reason, record.move


def letters(record: Game, points: Iterable[int] | None = None) -> list[str]:
    """Points as SGF writes them; a pass is "", off the board "!!"."""
    names = []
    for point in record.moves if points is None else points:
        row, col = divmod(int(point), record.cols)
        on_board = point < record.rows * record.cols
        names.append(chr(97 + col) + chr(97 + row) if on_board else "!!" if point == OFF_BOARD else "")
    return names


def colours(record: Game) -> str:
    return "".join(".BW"[colour] for colour in record.colours)


def setup(record: Game) -> list[tuple[int, str, str]]:
    names = letters(record, record.setup_points)
    return [
        (int(ply), ".BW"[colour], name)
        for ply, colour, name in zip(record.setup_plies, record.setup_colours, names, strict=True)
    ]


# Facts and types


def test_a_plain_record() -> None:
    record = game(
        "(;GM[1]FF[4]CA[UTF-8]AP[maker:1]SZ[9]RU[Japanese]KM[5.5]HA[0]PB[Ann]PW[Bob]BR[3d]WR[2k]"
        "DT[2003-01-04]RE[W+2.5];B[cc];W[gg];B[])"
    )
    assert (record.index, record.rows, record.cols) == (0, 9, 9)
    assert letters(record) == ["cc", "gg", ""]
    assert colours(record) == "BWB"
    assert (record.moves.dtype, record.colours.dtype) == (np.uint16, np.int8)
    assert (record.setup_plies.dtype, record.setup_points.dtype, record.setup_colours.dtype) == (
        (np.uint16, np.uint16, np.int8)
    )
    assert (record.komi, record.rules, record.handicap) == (5.5, "japanese", 0)
    assert (record.winner, record.result_kind, record.margin) == ("W", "score", 2.5)
    assert (record.black_rank, record.white_rank, record.date) == (33, 29, "2003-01-04")
    assert (record.black, record.white) == ("Ann", "Bob")
    assert record.raw["AP"] == "maker:1"
    assert record.raw["KM"] == "5.5"
    assert record.flags == ()
    assert len(record.content) == 16


def test_point_is_row_times_columns_from_the_top() -> None:
    # sgf "ba": column 1, row 0; "ab": column 0, row 1.
    assert game(f"(;{HEAD};B[ba];W[ab])").moves.tolist() == [1, 9]
    assert game("(;SZ[9:13];B[ba];W[ab];B[im])").moves.tolist() == [1, 9, 12 * 9 + 8]


def test_content_is_of_the_tree_alone() -> None:
    tree = f"(;{HEAD};B[cc])"
    plain, wrapped = game(tree), game(f"junk {tree} \n junk")
    assert plain.content == wrapped.content
    assert plain.content != game(f"(;{HEAD};B[cd])").content
    assert game(tree.encode("utf-16")).content == plain.content


def test_header_texts_are_cut() -> None:
    record = game(f"(;{HEAD}PB[{'x' * 600}]PW[{'é' * 100_000}];B[cc])")
    assert record.black == "x" * 500
    assert record.white == "é" * 500


# Text (cases 001, 003, 009)


@pytest.mark.parametrize(("declared", "flags"), [("", ()), ("CA[UTF-8]", (Flag.CHARSET_MISMATCH,))])
def test_gb18030_without_or_with_a_wrong_charset(declared: str, flags: tuple[Flag, ...]) -> None:
    record = game(f"(;{HEAD}{declared}PB[丁]PW[戊];B[cc];W[gg])".encode("gb18030"))
    assert (record.black, record.white, record.winner) == ("丁", "戊", "B")
    assert record.flags == tuple(sorted((Flag.CHARSET_GUESSED, *flags)))


def test_brackets_inside_two_byte_characters_lose_no_move() -> None:
    # A byte-wise reader takes the second byte of this character for the end of the value.
    name = next(c for c in map(chr, range(0x4E00, 0x9FFF)) if c.encode("gb18030")[1:] == b"]")
    record = game(f"(;{HEAD}CA[gb18030]PB[{name}];B[cc]C[{name}];W[gg])".encode("gb18030"))
    assert record.black == name
    assert letters(record) == ["cc", "gg"]


def test_escapes_and_parentheses_in_text() -> None:
    record = game(rf"(;{HEAD}PB[X \[4d\]]C[no move: ;B[aa\] (;W[bb\]) C:\\];B[cc]C[\\\\\];W[hh\]];W[gg]C[(];B[gc])")
    assert letters(record) == ["cc", "gg", "gc"]
    assert record.black == "X [4d]"
    assert record.raw["C"] == "no move: ;B[aa] (;W[bb]) C:\\"


def test_soft_line_break_and_tabs() -> None:
    assert game(f"(;{HEAD}PB[long\\\nname\tof\nA];B[cc])").black == "longname of A"


def test_lost_bytes_keep_structure() -> None:
    record = game(b"(;SZ[9]PB[\xe4\xb8\xad\xe5]BR[9\xe6\xae\xb5]KM[650]AP[foxwq];B[cc])")
    assert record.komi == 6.5
    assert record.black_rank == 39
    assert record.flags == (Flag.KOMI_REPAIRED, Flag.TEXT_DAMAGED)


# Headers (cases 004, 005, 041)


def test_headers_that_are_no_numbers_lose_no_game() -> None:
    record = game("(;SZ[9]KM[]HA[none]RE[B+1.5];B[cc];W[gg])")
    assert (record.komi, record.handicap, record.winner) == (None, 0, "B")
    assert record.flags == (Flag.HANDICAP_UNUSABLE, Flag.KOMI_UNUSABLE)


def test_komi_default_is_said_to_be_one() -> None:
    for text in ("", "KM[?]"):
        record = game(f"(;SZ[9]{text};B[cc])", rules={"komi_default": 7.0})
        assert record.komi == 7.0
        assert Flag.KOMI_DEFAULT in record.flags
    assert game("(;SZ[9]KM[0];B[cc])", rules={"komi_default": 7.0}).komi == 0.0


def test_the_second_writer_is_seen_too() -> None:
    assert game("(;SZ[9]AP[GNU Go:3.8]KM[375]AP[foxwq];B[cc])").komi == 7.5
    assert game("(;SZ[9]AP[GNU Go:3.8]KM[375];B[cc])").komi is None


def test_header_below_the_root() -> None:
    record = game("(;SZ[9];RE[W+R]B[cc];W[gg]KM[5.5])")
    assert (record.winner, record.komi) == ("W", 5.5)
    assert record.flags == (Flag.INFO_BELOW_ROOT,)
    assert game("(;SZ[9]RE[B+R];RE[W+R]B[cc])").flags == ()
    assert game("(;SZ[9]RE[B+R];RE[W+R]B[cc])").winner == "B"


def test_result_only_in_a_comment_is_unknown() -> None:
    record = game("(;SZ[9]C[RE: B+R];B[cc]C[Result RE[B+R\\]])")
    assert (record.winner, record.result_kind) == (None, "unknown")


def test_properties_after_a_comment_are_read() -> None:
    assert game("(;SZ[9]C[A [5k\\]: RE[B+R\\] is none]RE[W+55.5];B[cc])").margin == 55.5


@pytest.mark.parametrize(
    ("gm", "flags"),
    [
        ("", ()),
        ("GM[1]", ()),
        ("GM[ 01 ]", ()),
        ("GM[1\x1c]", ()),  # a blank to Python's patterns, not to its numbers
        ("GM[5.5]KM[5.5]", (Flag.GAME_VALUE_ODD,)),
        ("GM[go]", (Flag.GAME_VALUE_ODD,)),
        ("GM[0]", (Flag.GAME_VALUE_ODD,)),
        ("GM[41]", (Flag.GAME_VALUE_ODD,)),
    ],
)
def test_game_values_that_are_go(gm: str, flags: tuple[Flag, ...]) -> None:
    assert game(f"(;{gm}SZ[9];B[cc])").flags == flags


@pytest.mark.parametrize("number", [2, 4, 7, 40])
def test_another_game(number: int) -> None:
    assert rejected(f"(;GM[{number}]SZ[9];B[cc])") == (Reason.NOT_GO, None)


def test_rules_of_the_record() -> None:
    assert game("(;SZ[9]RU[nz];B[cc])").rules == "new-zealand"
    assert game("(;SZ[9]RU[nz];B[cc])", rules={"force": "aga"}).rules == "aga"
    record = game("(;SZ[9]RU[of the house];B[cc])", rules={"default": "japanese"})
    assert (record.rules, record.flags) == ("japanese", (Flag.RULES_UNREAD,))


# Sizes (case 015)


@pytest.mark.parametrize(
    ("size", "rows", "cols"), [("9", 9, 9), (" 9 ", 9, 9), ("9:9", 9, 9), ("13:9", 9, 13), ("1", 1, 1), ("25", 25, 25)]
)
def test_sizes(size: str, rows: int, cols: int) -> None:
    record = game(f"(;SZ[{size}];B[aa])")
    assert (record.rows, record.cols, record.flags) == (rows, cols, ())


def test_no_size_is_19() -> None:
    record = game("(;GM[1];B[sa])")
    assert (record.rows, record.cols, record.flags) == (19, 19, (Flag.SIZE_ASSUMED,))
    assert record.moves.tolist() == [18]


def test_sizes_that_are_none() -> None:
    assert rejected("(;SZ[big];B[cc])") == (Reason.BAD_SIZE, None)
    assert rejected("(;SZ[37];B[Aa])") == (Reason.UNSUPPORTED_SIZE, None)


# Structure (cases 007, 010, 012)


def test_long_names_mail_header_and_empty_last_node() -> None:
    record = game("From: C (day 3)\n\n(;GaMe[1]SiZe[9]KoMi[5.5]REsult[B+3.5]PlayerBlack[C];Black[cc];White[gg];)")
    assert letters(record) == ["cc", "gg"]
    assert (record.komi, record.margin, record.black) == (5.5, 3.5, "C")


def test_every_move_opens_a_parenthesis() -> None:
    assert letters(game(f"(;{HEAD}(;B[cc](;W[gg](;B[gc](;W[cg])))))")) == ["cc", "gg", "gc", "cg"]


TREE = f"(;{HEAD};B[aa](;W[bb];B[cc])(;W[dd](;B[ee];W[ff])(;B[gg];W[hh]))(;W[ii]))"


def test_branches() -> None:
    assert letters(game(TREE)) == ["aa", "bb", "cc"]
    assert letters(game(TREE, parse={"branch": "longest"})) == ["aa", "dd", "ee", "ff"]


@pytest.mark.parametrize("branch", ["first", "longest"])
def test_parentheses_that_open_nothing(branch: str) -> None:
    for text in (f"(;{HEAD};B[aa]((;W[bb])))", f"((;{HEAD}((;B[aa]((;W[bb]))))))"):
        assert letters(game(text, parse={"branch": branch})) == ["aa", "bb"]


def test_a_node_without_its_semicolon_after_a_parenthesis() -> None:
    assert letters(game(f"(;{HEAD};B[aa](W[bb]))")) == ["aa", "bb"]


def test_collection_with_a_bad_game_in_the_middle() -> None:
    for middle in ("(;SZ[big];B[cc])", f"(;{HEAD};B[cc] 5 W[gg]", f"(;{HEAD};B[cc]]", f"(;{HEAD}B)"):
        records = read(f"(;{HEAD};B[cc];W[gg])\n{middle}\n(;{HEAD};B[gg])")
        assert [record.index for record in records] == list(range(len(records)))
        assert isinstance(records[0], Game)
        assert isinstance(records[1], Rejected)
        assert isinstance(records[-1], Game), middle
        assert letters(records[-1]) == ["gg"]
        assert len(records) == 3


def test_move_off_the_board_is_left_to_replay() -> None:
    assert letters(game(f"(;{HEAD};B[cc];W[pp];B[Cc])")) == ["cc", "!!", "!!"]


def test_variation_of_a_broken_tree_is_no_game() -> None:
    records = read(f"(;{HEAD};B[cc] 5 (;W[gg];B[gc])(;W[hh]))")
    assert [type(record) for record in records] == [Rejected]


@pytest.mark.parametrize(
    "data",
    [
        f"(;{HEAD};B[cc",
        f"(;{HEAD};B",
        f"(;{HEAD};B;W[cc])",
        f"(;{HEAD};[cc])",
        f"(;{HEAD};B[cc]())",
        f"(;{HEAD};B[cc] 5)",
    ],
)
def test_trees_that_break_off(data: str) -> None:
    assert rejected(data) == (Reason.BAD_SYNTAX, None)
    assert rejected(data, parse={"branch": "longest"})[0] is Reason.BAD_SYNTAX


def test_offset_of_a_reject_is_in_the_decoded_text() -> None:
    (record,) = read("甲乙 (;SZ[big])".encode("gb18030"))
    assert isinstance(record, Rejected)
    assert record.offset == len("甲乙 ".encode())
    assert record.raw["SZ"] == "big"
    assert "big" in record.detail


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 900, b"\x89PNG\r\n\x1a\n" * 50, b"text (but) no game;", b"(B[aa])", b"\xff\xfe"]
)
def test_no_game(data: bytes) -> None:
    (record,) = read(data)
    assert isinstance(record, Rejected)
    assert (record.index, record.reason, record.move, record.offset, record.raw) == (0, Reason.NO_GAME, None, 0, {})


def test_the_smallest_game() -> None:
    assert game("(;)").moves.size == 0
    assert game(" ( ;)").setup_points.size == 0


# Moves (cases 021, 025)


def test_passes() -> None:
    record = game("(;SZ[19];B[tt];W[];B[ ])")
    assert record.moves.tolist() == [361, 361, 361]
    assert game("(;SZ[13:5];B[tt])").moves.tolist() == [65]
    assert letters(game("(;SZ[20];B[tt])")) == ["tt"]
    assert letters(game("(;SZ[19:20];B[tt])")) == ["!!"]


def test_moves_in_the_root() -> None:
    assert letters(game(f"(;{HEAD}B[cc];W[gg])")) == ["cc", "gg"]


@pytest.mark.parametrize("value", ["c", "ccc", "32", "C3", "c:", "cc:dd", "é"])
def test_values_that_are_no_move(value: str) -> None:
    assert rejected(f"(;{HEAD};B[cc];W[{value}])") == (Reason.BAD_MOVE, 2)


@pytest.mark.parametrize(
    ("setup_text", "moves", "movers", "flags"),
    [
        ("AB[cc][gg]", ";B[gc];W[cg]", "BW", ()),
        ("AB[cc]AW[gg]PL[W]", ";W[gc];B[cg]", "WB", ()),
        ("AB[cc]AW[gg]PL[B]", ";W[gc];B[cg]", "WB", (Flag.PLAYER_MISMATCH,)),
        ("AB[cc]PL[2]", ";B[gc];W[cg]", "BW", (Flag.PLAYER_MISMATCH,)),
        ("", ";W[gc];B[cg];B[ee]", "WBB", (Flag.COLOUR_TWICE,)),
    ],
)
def test_the_move_says_who_moves(setup_text: str, moves: str, movers: str, flags: tuple[Flag, ...]) -> None:
    record = game(f"(;{HEAD}{setup_text}{moves})")
    assert (colours(record), record.flags) == (movers, flags)


def test_a_reject_names_the_setting_that_decided() -> None:
    for text, policy in (
        (f"(;{HEAD};B[cc]W[gg])", 'B[cc]W[gg]; parse.two_moves = "reject"'),
        (f"(;{HEAD};B[cc];AB[gg])", 'AB[gg]; parse.setup_after_root = "reject"'),
        (f"(;{HEAD};B[{'x' * 500}]W[])", 'parse.two_moves = "reject"'),
        (f"(;{HEAD};B{'[aa]' * 100})", 'parse.two_moves = "reject"'),
    ):
        (record,) = read(text, parse={"setup_after_root": "reject"})
        assert isinstance(record, Rejected)
        assert record.detail.endswith(policy)
        assert len(record.detail) <= 200


@pytest.mark.parametrize("node", ["B[cc][gg]", "B[cc]W[gg]", "B[cc]C[x]B[cc]"])
def test_two_moves_in_one_node(node: str) -> None:
    assert rejected(f"(;{HEAD};{node};W[gc])") == (Reason.TWO_MOVES, 1)
    assert rejected(f"(;{HEAD};B[aa];{node};W[gc])") == (Reason.TWO_MOVES, 2)


def test_two_moves_split_in_the_order_of_writing() -> None:
    record = game(f"(;{HEAD};W[cc]B[gg];W[gc])", parse={"two_moves": "split"})
    assert letters(record) == ["cc", "gg", "gc"]
    assert colours(record) == "WBW"


def test_after_two_passes() -> None:
    text = f"(;{HEAD};B[cc];W[];B[];W[gg];B[??])"
    assert rejected(text) == (Reason.BAD_MOVE, 5)
    assert letters(game(text, parse={"after_two_passes": "stop"})) == ["cc", "", ""]
    apart = f"(;{HEAD};B[];W[cc];B[];W[gg])"
    assert letters(game(apart, parse={"after_two_passes": "stop"})) == ["", "cc", "", "gg"]


def test_most_moves() -> None:
    assert game("(;SZ[9]" + ";B[aa]" * 65_535 + ")").moves.size == 65_535
    assert rejected("(;SZ[9]" + ";B[aa]" * 65_536 + ")") == (Reason.TOO_MANY_MOVES, 65_536)


# Setup (cases 013, 025)


def test_rectangles_and_lists() -> None:
    record = game(f"(;{HEAD}AB[dd:ef]AW[aa:ca][hh];W[gc])")
    assert sorted(setup(record)) == sorted(
        [(0, "B", name) for name in ("dd", "ed", "de", "ee", "df", "ef")]
        + [(0, "W", name) for name in ("aa", "ba", "ca", "hh")]
    )


def test_rectangle_from_any_corner() -> None:
    assert setup(game(f"(;{HEAD}AB[dd:cc])")) == [(0, "B", name) for name in ("cc", "dc", "cd", "dd")]


def test_setup_in_the_second_node_and_in_that_of_move_1_is_part_of_the_start() -> None:
    record = game(f"(;{HEAD};AB[cc];AW[gg]B[gc];W[aa])")
    assert sorted(setup(record)) == [(0, "B", "cc"), (0, "W", "gg")]
    assert letters(record) == ["gc", "aa"]
    assert record.flags == ()


def test_later_setup_wins_and_only_one_node_can_conflict() -> None:
    record = game(f"(;{HEAD}AE[cc]AW[cc][gg]AB[cc][gg];B[aa])")
    assert setup(record) == [(0, ".", "cc"), (0, "W", "gg")]
    assert record.flags == (Flag.SETUP_CONFLICT,)
    apart = game(f"(;{HEAD}AB[cc];AW[cc];B[aa])")
    assert (setup(apart), apart.flags) == ([(0, "W", "cc")], ())
    twice = game(f"(;{HEAD}AB[cc][cc]AB[cc:dd];B[aa])")
    assert twice.flags == ()


@pytest.mark.parametrize(
    "text", ["AB[jj]", "AB[c]", "AW[cc:jj]", "AE[cc:dd:ee]", "AB[tt]", "AB[Cc]", "AB[cc:]", "AB[c3]"]
)
def test_setup_that_is_no_point(text: str) -> None:
    assert rejected(f"(;{HEAD}{text};B[aa])") == (Reason.BAD_SETUP, None)


def test_setup_and_a_later_move_in_one_node() -> None:
    assert rejected(f"(;{HEAD};B[cc];W[gg];B[gc]AB[dd]AE[gg];W[ee])") == (Reason.MOVE_AND_SETUP, 3)


def test_setup_in_mid_game() -> None:
    text = f"(;{HEAD};B[cc];W[gg];AB[dd]AE[gg];W[ee])"
    applied = game(text)
    assert sorted(setup(applied)) == [(2, ".", "gg"), (2, "B", "dd")]
    assert (letters(applied), applied.flags) == (["cc", "gg", "ee"], (Flag.COLOUR_TWICE, Flag.SETUP_IN_MID_GAME))
    cut = game(text, parse={"setup_after_root": "cut"})
    assert (letters(cut), setup(cut), cut.flags) == (["cc", "gg"], [], (Flag.SETUP_CUT,))
    assert rejected(text, parse={"setup_after_root": "reject"}) == (Reason.SETUP_AFTER_MOVE, 2)


# Hostile input


@pytest.mark.parametrize("branch", ["first", "longest"])
def test_a_very_deep_tree(branch: str) -> None:
    depth = 200_000
    data = f"(;{HEAD}" + "(;C[x]" * depth + "(;B[cc])" + ")" * depth + ")"
    assert letters(game(data, parse={"branch": branch})) == ["cc"]


@pytest.mark.parametrize(
    "piece",
    ["(;GM[1]", "(;GM[1];B[a", "(;GM[1]!", "(;", "(;GM[1];B[c](", "(;)", "(;B[aa])", "(;C[\\a", "(;SZ[25]AB[aa:yy]"],
)
def test_many_pieces_take_linear_time_and_few_records(piece: str) -> None:
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


HOSTILE = [
    "(;GM[1",
    "(;GM[1]",
    "(;GM[1]C[",
    "(;GM[\\x",
    "(;GM[1](",
    "(;GM[1]" + " " * 99,
    "(;GM[1" + "x" * 99,
    "(;GM[a]",
]


@pytest.mark.parametrize("tail", ["", "\\]", " " * 200_000])
@pytest.mark.parametrize("piece", HOSTILE)
def test_work_on_broken_trees_is_bounded(piece: str, tail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: the bytes looked at by the tokeniser, and eight for each token that it makes."""
    work = 0
    tokenise = sgf_grammar.tokenise

    def counting(source: bytes, start: int) -> tuple[list[tuple[str, bytes]], int]:
        nonlocal work
        tokens, end = tokenise(source, start)
        after = bytes(source[end:])
        blank = len(after) - len(after.lstrip())
        work += (len(source) if after[blank : blank + 1] == b"[" else end + blank) - start + 8 * len(tokens)
        return tokens, end

    monkeypatch.setattr(sgf_grammar, "tokenise", counting)
    data = (piece * (400_000 // len(piece)) + tail).encode()
    records = read(data)
    assert all(isinstance(record, Rejected) or Flag.UNCLOSED in record.flags for record in records)
    # The limit, and one tree more that is under way when it is reached.
    assert work <= 16_000_000 + 9 * len(data)


def test_a_broken_game_early_in_a_collection_costs_no_other() -> None:
    games = [f"(;{HEAD}PB[{number}];B[cc];W[gg])" for number in range(300)]
    for number, broken in ((0, games[0][:-1]), (7, games[7].replace("PB", "PB[")), (9, games[9][:-1])):
        games[number] = broken
    records = read("\n".join(games))
    assert {record.black for record in records if isinstance(record, Game)} >= {
        str(number) for number in range(10, 300)
    }


def test_many_broken_trees_then_the_rest() -> None:
    records = read("(;GM[1]!" * 5_000 + f"(;{HEAD};B[cc])")
    assert len(records) == 1_001
    assert all(isinstance(record, Rejected) and record.reason is Reason.BAD_SYNTAX for record in records)
    last = records[-1]
    assert isinstance(last, Rejected)
    assert "rest" in last.detail


def test_setup_of_the_whole_board_again_and_again() -> None:
    record = game("(;SZ[25];B[aa]" + ";AB[aa:yy]" * 20_000 + ")")
    assert record.setup_points.size == 625
    assert rejected("(;SZ[25]" + ";B[aa];AB[aa:yy]" * 2_000 + ")")[0] is Reason.BAD_SETUP


SEEDS = [
    TREE,
    f"(;{HEAD}AB[cc:dd][ee]AW[ff]PL[W]PB[甲];W[gg];B[tt];AE[cc];W[](;B[hh])(;B[ii]))",
    "x (TE[甲]RD[2001-2-3]KO[5.5]PB[乙 二段];B[cc];W[dd](;B[ee])) ;W[ff])(;B[gg])(;GM[5.5];B[aa]",
    ";GM[1]SZ[9]HA[3]AP[foxwq];W[cc];B[dd])(;GM[1]AP[yuanyu];B[aa];B[bb];W[cc](;FF[4]SZ[5];B[aa]",
    "101\t;B[cc];W[dd]\n102\t2001\t;AB[ee]C[甲]B[ff]\n\n(;GM[1];B[aa])\n",
    "(;GM[1]SZ[13:9]KM[375]AP[foxwq]RE[黑胜3/4子]DT[2003年1月]BR[9段];B[aa]W[bb])(;FF[4];B[sa])",
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A record with slices cut out, doubled, or overwritten, in one of several charsets."""
    data = bytearray(draw(st.sampled_from(SEEDS)).encode(draw(st.sampled_from(["utf-8", "gb18030", "utf-16"]))))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 12)))
        data[start:end] = draw(
            st.one_of(
                st.binary(max_size=4),
                st.just(bytes(data[start:end] * 2)),
                st.sampled_from([b"(;", b")", b"[", b"]", b"\\", b";", b"B", b"AB", b"SZ[", b"[aa:ss]", b"CA[zip]"]),
            )
        )
    return bytes(data)


PARSE = st.fixed_dictionaries(
    {
        "branch": st.sampled_from(["first", "longest"]),
        "setup_after_root": st.sampled_from(["apply", "cut", "reject"]),
        "two_moves": st.sampled_from(["reject", "split"]),
        "after_two_passes": st.sampled_from(["keep", "stop"]),
        "handicap_moves": st.sampled_from(["auto", "literal"]),
    }
)


@given(st.one_of(st.binary(max_size=300), mutated()), PARSE)
def test_no_bytes_raise_and_the_answer_is_the_same_twice(data: bytes, parse: dict[str, object]) -> None:
    records = read(data, parse=parse)
    assert records
    assert repr(records) == repr(read(data, parse=parse))
    for index, record in enumerate(records):
        assert record.index == index
        assert len(record.content) == 16
        if isinstance(record, Rejected):
            assert len(record.detail) <= 200
            continue
        area = record.rows * record.cols
        assert len(record.moves) == len(record.colours)
        assert set(record.colours.tolist()) <= {1, 2}
        assert ((record.moves <= area) | (record.moves == OFF_BOARD)).all()
        assert len(record.setup_plies) == len(record.setup_points) == len(record.setup_colours)
        assert (record.setup_points < area).all()
        assert (np.diff(record.setup_plies.astype(int)) >= 0).all()
        assert set(record.setup_colours.tolist()) <= {0, 1, 2}
        assert list(record.flags) == sorted(set(record.flags))
        assert all(len(text) <= 500 for text in record.raw.values())
