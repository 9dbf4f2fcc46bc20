"""The cases under ``cases/`` run through the product; every key of their JSON blocks is compared.

Run with ``pytest tests/test_cases.py -rP`` to see case, key and value, and what is not run.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.register_assert_rewrite("case_builds", "case_loader", "case_records", "case_runner")

import case_builds  # noqa: E402 (rewritten only if imported after that)
import case_loader  # noqa: E402
import case_records  # noqa: E402
from case_runner import CASES, Case, Expected, json_block, say  # noqa: E402

# Cases and keys of cases that speak of what does not exist yet.
NOT_YET: dict[str, str] = {}

RUN: dict[str, Callable[[Case], None]] = {
    "001-gbk-no-ca": case_records.gb18030_text,
    "003-charset-lies": case_records.charset_lies,
    "004-non-number-header": case_records.non_number_header,
    "005-komi-in-hundredths": case_records.komi_in_hundredths,
    "007-old-server-noise": case_records.old_server_noise,
    "009-escapes-and-parentheses": case_records.escapes,
    "010-every-move-opens-a-branch": case_records.branch_before_every_move,
    "012-three-games-one-file": case_records.three_games_one_file,
    "013-compressed-points": case_records.compressed_points,
    "015-board-size-spellings": case_records.size_spellings,
    "017-snapback-is-not-ko": case_records.snapback,
    "018-capture-before-own-liberties": case_records.capture_first,
    "021-who-moves-first": case_records.who_moves_first,
    "022-handicap-as-black-moves": case_records.handicap_as_moves,
    "025-one-node-one-move": case_records.one_node_one_move,
    "026-illegal-moves-by-kind": case_records.illegal_moves,
    "028-hash-after-capture": case_records.hash_after_capture,
    "029-axis-order": case_records.axis_order,
    "030-liberties-after-capture": case_records.liberties_after_capture,
    "033-history-and-side": case_records.history_and_side,
    "032-self-atari-and-capture-size": case_records.self_atari_and_capture_size,
    "037-counters-past-255": case_records.past_255,
    "038-result-strings": case_records.result_strings,
    "039-value-side": case_records.value_side,
    "041-result-in-odd-places": case_records.odd_places,
    "043-planes-and-policy-turn-together": case_builds.planes_turn_together,
    "045-same-game-from-two-sources": case_builds.two_sources,
    "047-split-does-not-move": case_builds.split_does_not_move,
    "048-bit-order-and-last-bit": case_builds.bit_order,
    "049-shard-cut-by-a-kill": case_builds.shard_cut_by_a_kill,
    "051-handle-opened-before-fork": case_loader.opened_before_fork,
    "053-every-row-once-per-epoch": case_loader.every_row_once,
    "055-killed-and-resumed": case_builds.killed_and_resumed,
    "057-order-of-the-folder": case_builds.order_of_the_folder,
    "059-archive-paths": case_builds.archive_paths,
    "060-archive-that-swells": case_builds.archive_that_swells,
    "063-hdf5-that-points-elsewhere": case_builds.points_elsewhere,
}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("name", RUN)
def test_case(name: str, tmp_path: Path) -> None:
    folder = CASES / name
    expected = Expected(name, json_block((folder / "expect.md").read_text("utf-8")), NOT_YET)
    RUN[name](Case(folder, expected, tmp_path))
    expected.require_all_compared()


def test_every_case_is_run_or_named_as_not_yet_run() -> None:
    for name, reason in NOT_YET.items():
        say(f"not yet run: {name}: {reason}")
    whole = {name for name in NOT_YET if "." not in name}
    assert not whole & set(RUN)
    assert whole | set(RUN) == {folder.name for folder in CASES.iterdir() if folder.is_dir()}
    for name in set(NOT_YET) - whole:
        case, _, key = name.partition(".")
        assert case in RUN
        assert key in json_block((CASES / case / "expect.md").read_text("utf-8"))


def test_a_key_that_nothing_compares_is_a_failure() -> None:
    expected = Expected("made-up", {"a": 1, "b": {"c": 2, "d": 3}, "later": 4}, ["made-up.later"])
    expected.check("a", 1)
    with pytest.raises(AssertionError, match="made-up: nothing compares b"):
        expected.require_all_compared()
    inner = expected.table("b")
    inner.check("c", 2)
    with pytest.raises(AssertionError, match=r"made-up\.b: nothing compares d"):
        expected.require_all_compared()
    with pytest.raises(AssertionError, match=r"made-up\.b\.d: 4, not 3"):
        inner.check("d", 4)
    with pytest.raises(KeyError):
        expected.check("unknown", 1)
