"""The closing summary says each thing once, in words a person reads."""

from pathlib import Path

import pytest
from example_builds import build_examples

from pipeline.build import Built
from pipeline.config import make_config
from pipeline.load import open_dataset
from pipeline.manifest import GrowthEntry, Manifest, Records
from pipeline.reasons import meaning
from pipeline.report import (
    count_lines,
    counted,
    facts,
    failures,
    false_merges,
    lines,
    log_fields,
    size_text,
    time_text,
    wrapped,
)

CONFIG = make_config({}, "test")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return open_dataset(build_examples(tmp_path_factory.mktemp("report") / "out")).manifest


def with_records(manifest: Manifest, **counts: int) -> Built:
    records = Records(**{name: counts.get(name, 0) for name in Records.model_fields})
    return Built(Path("out"), manifest.model_copy(update={"records": records}), {"encode": 2.0})


def test_numbers_and_nouns_agree() -> None:
    assert [counted(0, "row"), counted(1, "row"), counted(2000, "row")] == ["0 rows", "1 row", "2,000 rows"]
    assert counted(2, "entry", "entries") == "2 entries"


def test_sizes_and_times() -> None:
    sizes = [1, 812, 1000, 999_960, 3_400_000, 2 * 10**12]
    assert [size_text(size) for size in sizes] == ["1 byte", "812 bytes", "1.0 kB", "1.0 MB", "3.4 MB", "2.0 TB"]
    assert [time_text(value) for value in (0.44, 75, 720, 11_520)] == ["0.4 s", "75 s", "12 min", "3.2 h"]


def test_false_merges_follow_the_square_of_the_keys() -> None:
    assert false_merges(2**33) == 2.0
    assert false_merges(0) == 0
    assert false_merges(2**33, 128) == 2.0 ** (66 - 126)


def test_every_count_has_its_line(manifest: Manifest) -> None:
    stored = sum(shard.rows for shard in manifest.shards)
    built = Built(
        Path("out"), manifest, {"read": 2.0, "encode": 4.0}, {"read": manifest.records.seen, "encode": stored}
    )
    text = "\n".join(lines(built, CONFIG))
    records, positions, rows = manifest.records, manifest.positions, manifest.rows
    assert f"{records.seen:,} records" in text
    assert f"{records.kept} games" in text
    assert "1 occupied" in text
    assert "size-filtered" in text
    assert f"merged {positions.merged:,} repeats; dedup.positions=off keeps them" in text.splitlines()
    assert f"{rows.train:,} train, {rows.val:,} val, {rows.test:,} test" in text
    assert f"{records.seen / 2:,.0f} records a second" in text
    assert f"{stored / 4:,.0f} rows a second" in text
    assert f"{stored / 6:,.0f} rows a second" in text
    assert "expected of" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_each_reason_is_told_under_its_status(manifest: Manifest) -> None:
    built = with_records(manifest, seen=5, filtered=3, rejected=2)
    reasons = {"player-missing": 2, "too-short": 1, "occupied": 1, "problem": 1}
    text = lines(Built(built.path, built.manifest.model_copy(update={"reasons": reasons}), built.seconds), CONFIG)
    assert "filtered      3 records: 2 player-missing, 1 too-short" in text
    assert "rejected      2 records: 1 occupied, 1 problem" in text


def test_rates_are_of_what_this_run_did(manifest: Manifest) -> None:
    """A stage whose tasks were all done before has no rate, nor one too short to measure."""
    seconds = {"find": 0.001, "read": 1.0, "index": 0.04, "encode": 2.0}
    text = lines(Built(Path("out"), manifest, seconds, {"read": 0, "index": 500, "encode": 100}), CONFIG)
    timed = [" ".join(line.split()) for line in text if line.startswith(("find", "read", "index", "encode", "all"))]
    assert timed == ["read 1.0 s", "encode 2.0 s 50 rows a second", "all 3.0 s 33 rows a second"]


def test_a_part_without_rows_has_a_line_unless_none_were_wanted(manifest: Manifest) -> None:
    rows = manifest.rows.model_copy(update={"val": 0, "test": 0})
    built = Built(Path("out"), manifest.model_copy(update={"rows": rows}), {})
    config = make_config({"split": {"val": 0.1, "test": 0}}, "test")
    empty = [line for line in lines(built, config) if line.startswith("empty")]
    assert len(empty) == 1
    assert "no rows in val for split.val = 0.1" in empty[0]


def test_a_finished_folder_has_nothing_to_do(manifest: Manifest) -> None:
    built = Built(Path("out"), manifest, {})
    assert any("nothing to do" in line for line in lines(built, CONFIG))
    assert facts(built, CONFIG)["nothing_to_do"] is True


def test_a_build_that_keeps_nothing_or_rejects_too_much_has_failed(manifest: Manifest) -> None:
    strict = make_config({"run": {"error_budget": 0.1}}, "test")
    none = with_records(manifest, seen=4, filtered=4)
    fifth, tenth = (with_records(manifest, seen=10, kept=10 - count, rejected=count) for count in (2, 1))
    assert failures(none, CONFIG) == ["no game was kept"]
    assert "20.00 %" in failures(fifth, strict)[0]
    assert failures(fifth, CONFIG) == failures(tenth, strict) == []
    assert lines(none, CONFIG)[-1] == "FAILED: no game was kept"
    assert not any("done" in line for line in lines(none, CONFIG))
    assert lines(fifth, strict)[-2] == "done: out"


def grown(manifest: Manifest, *left_out: int) -> Manifest:
    entries = [
        GrowthEntry(
            inputs=number, records=20, kept=12, seen=1500, stored=1000 * number, left_out=count, stale=count // 2
        )
        for number, count in enumerate(left_out, 1)
    ]
    return manifest.model_copy(update={"growths": tuple(entries)})


def test_growths_have_a_line_each(manifest: Manifest) -> None:
    assert not any(line.startswith("grow") for line in count_lines(manifest))
    text = count_lines(grown(manifest, 0, 6))
    assert "grown         2 times since the first build" in text
    assert "growth 1      1 input, 20 records, 12 games, 1,000 positions stored" in text
    assert "growth 2      2 inputs, 20 records, 12 games, 2,000 positions stored, 6 repeats left out" in text
    assert any("the counts of up to 3 rows are stale; goplanes compact makes them exact" in line for line in text)
    assert not any("stale" in line for line in count_lines(grown(manifest, 0)))


def test_many_growths_are_told_together(manifest: Manifest) -> None:
    text = [line for line in count_lines(grown(manifest, *[0] * 12)) if line.startswith("growth")]
    assert text[0] == "growth 1-7    28 inputs, 140 records, 84 games, 28,000 positions stored"
    assert [line.split()[1] for line in text] == ["1-7", "8", "9", "10", "11", "12"]


def test_meanings_of_codes() -> None:
    assert meaning("ko") == "illegal move: retakes a ko at once"
    assert meaning("illegal-tail") == "the game was cut before an illegal move"
    assert meaning("later") == "not known to this version"


def test_long_lines_are_broken_and_short_ones_left_alone() -> None:
    long = "rejected      " + ", ".join(["1,234 some-reason"] * 12)
    text = wrapped(["", "a   b", long])
    assert text[:2] == ["", "a   b"]
    assert all(len(line) <= 100 for line in text)
    assert all(line.startswith(" " * 14) for line in text[3:])
    assert " ".join(line.strip() for line in text[2:]) == long


def test_what_is_left_out_is_told_by_ply(tmp_path: Path) -> None:
    """Val and test by bands of plies: the share that train has too."""
    manifest = open_dataset(build_examples(tmp_path / "out", split={"val": 0.3, "test": 0.2})).manifest
    positions = manifest.positions
    (line,) = [line for line in lines(Built(Path("out"), manifest, {}), CONFIG) if line.startswith("by ply")]
    first = 100 * positions.overlap_by_ply["0-9"] / positions.held_out_by_ply["0-9"]
    assert f"0-9: {first:.3g} %" in line
    assert sum(positions.overlap_by_ply.values()) == positions.overlap > 0


def test_the_fields_of_a_log(manifest: Manifest) -> None:
    """Of a first build, of one that grew twice, of one that had nothing to do, and of another command."""
    first = Built(Path("out"), manifest, {"read": 1.25, "encode": 2.0})
    said = log_fields(first)
    assert (said["outcome"], said["seconds"], said["growths"], said["stale"]) == ("built", 3.2, 0, 0)
    assert (said["inputs"], said["records"]) == (len(manifest.inputs), manifest.records.seen)
    assert said["rows"] == sum(entry.rows for entry in manifest.shards)
    assert not any(name.startswith("new_") for name in said)
    counts = {"inputs": 2, "records": 30, "kept": 20, "seen": 900, "stored": 800, "left_out": 70, "stale": 6}
    growths = GrowthEntry(**counts | {"stale": 5}), GrowthEntry(**counts)
    grown = Built(Path("out"), manifest.model_copy(update={"growths": growths}), {"encode": 2.0})
    said = log_fields(grown)
    assert (said["outcome"], said["growths"], said["stale"]) == ("grown", 2, 11)
    new = {name: value for name, value in said.items() if name.startswith("new_")}
    assert new == {"new_inputs": 2, "new_records": 30, "new_kept": 20, "new_stored": 800}
    assert log_fields(first, "compacted")["outcome"] == "compacted"
    idle = Built(Path("out"), grown.manifest, {})
    for outcome in (None, "compacted"):
        said = log_fields(idle, outcome)
        assert said["outcome"] == "nothing-to-do"
        assert "new_inputs" not in said
