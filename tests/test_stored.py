"""Rows of a game table to games again."""

from pathlib import Path

from pipeline.config import Input, Parse, Rules
from pipeline.game import HEADER_FLAGS, Game
from pipeline.parse import parse_member
from pipeline.reasons import Flag
from pipeline.sources import Unit, find_inputs
from pipeline.stored import BLOCK_RECORDS, spool_table, stored_records

from example_builds import build_examples  # isort: skip

# Noted after a record is parsed: in the read stage, or once all records are known.
LATER = {"komi-assumed", "illegal-tail", "turned-copy", "prefix-of", "near-duplicate-of"}


def test_blocks_hold_all_records_in_their_order(tmp_path: Path) -> None:
    dataset = build_examples(tmp_path / "set")
    (file,), _ = find_inputs(Input(paths=(str(dataset),)))
    (tmp_path / "spool").mkdir()
    units = spool_table(file, str(tmp_path / "spool"))
    assert [unit.kind for unit in units] == ["table"]
    assert units == spool_table(file, str(tmp_path / "spool"))
    found = [(row["source"], row["member"]) for unit in units for row, _ in stored_records(unit, Rules())]
    assert len(found) == 43 == sum(unit.stop for unit in units) <= BLOCK_RECORDS
    assert found == sorted(found, key=lambda name: (name[0].encode(), (name[1] or "").encode()))
    assert isinstance(units[0], Unit)


def test_every_flag_is_known_to_be_carried_read_again_or_noted_later() -> None:
    """A flag that parsing notes from now on must be thought of in ``stored``."""
    carried = {
        "charset-mismatch", "charset-unknown", "charset-guessed", "text-damaged", "info-below-root", "size-assumed",
        "game-value-odd", "player-mismatch", "setup-conflict", "setup-in-mid-game", "setup-cut", "colour-twice",
        "opening-repaired", "unclosed", "remains", "lecture", "handicap-folded", "handicap-placed", "handicap-missing",
    }  # fmt: skip
    headers = {flag.value for flag in HEADER_FLAGS}
    assert carried | headers | LATER == {flag.value for flag in Flag}
    assert len(carried) + len(headers) + len(LATER) == len(Flag)


def test_header_flags_are_those_that_header_texts_set() -> None:
    bare = parse_member(b"(;GM[1]SZ[19];B[bb];W[cc])", Input(), Parse(), Rules())[0]
    assert isinstance(bare, Game)
    assert bare.flags == ()
    noted: set[Flag] = set()
    unread = ("KM[x]", "RU[x]", "RE[x]", "HA[x]", "BR[x]", "WR[x]", "DT[x]")
    komi = ("AP[foxwq]KM[375]", "AP[foxwq]KM[0]")
    others = (
        "RE[B+0.25]", "RE[B+0.02]", "HA[二子]AB[dd][pp]", "BR[1500]", "WR[名人]", "PB[甲 二段]", "DT[99-12-31]",
        "RD[2001]", "GM[5.5]",
    )  # fmt: skip
    for header in (*unread, *komi, *others, "AP[foxwq]KM[6.5];B[dd]"):
        (game,) = parse_member(f"(;SZ[19]{header};B[bb];W[cc])".encode(), Input(), Parse(), Rules())
        assert isinstance(game, Game)
        noted |= set(game.flags) - {Flag.GAME_VALUE_ODD, Flag.HANDICAP_FOLDED}
    (game,) = parse_member(b"(;GM[1]SZ[19];B[bb])", Input(), Parse(), Rules(komi_default=7))
    assert isinstance(game, Game)
    assert noted | set(game.flags) == HEADER_FLAGS
