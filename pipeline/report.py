"""The closing summary of a build: one line for each thing worth knowing, and whether it went well."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.build import Built
from pipeline.config import Config
from pipeline.manifest import SPLITS, GrowthEntry, Manifest, Positions
from pipeline.reasons import FILTERS, Reason

WIDTH = 100  # columns of a terminal
_MOST_REASONS = 6
_MOST_GROWTHS = 5
_SHORT = 0.05  # seconds of a stage that are not worth a line
_UNITS = {"read": "records", "index": "positions"}  # of the work of a stage; rows of the others


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size_text(count: int) -> str:
    """Return a number of bytes for people: ``812 bytes``, ``3.4 MB``."""
    if count < 1000:
        return counted(count, "byte")
    value, units = count / 1000, iter(("kB", "MB", "GB", "TB", "PB"))
    unit = next(units)
    while value >= 999.95:
        value, unit = value / 1000, next(units)
    return f"{value:.1f} {unit}"


def time_text(seconds: float) -> str:
    """Return a duration for people: ``0.4 s``, ``75 s``, ``12 min``, ``3.2 h``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def wrapped(text: Iterable[str]) -> list[str]:
    """Break lines that no terminal has room for, their rest under the second column."""
    wrapper = textwrap.TextWrapper(WIDTH, subsequent_indent=" " * 14, break_on_hyphens=False, break_long_words=False)
    pieces = [[line] if len(line) <= WIDTH else wrapper.wrap(line) for line in text]
    return [line for piece in pieces for line in piece]


def false_merges(keys: int, bits: int = 64) -> float:
    """Return how many of ``keys`` different positions are expected to share a key: n^2 / 2^65 for 64 bits.

    The upper half of a key of 128 bits is worth 61: it is the smallest of eight words.
    """
    return keys**2 / 2.0 ** (bits + 1 if bits == 64 else 64 + 61 + 1)


def failures(built: Built, config: Config) -> list[str]:
    """Return why a finished build exits with 1: nothing kept, or more rejected than allowed."""
    records, budget = built.manifest.records, config.run.error_budget
    if records.kept == 0:
        return ["no game was kept"]
    if unread := built.manifest.reasons.get(Reason.TASK_FAILED.value):
        return [f"{counted(unread, 'record')} not read: a task ended its worker process, time after time (task-failed)"]
    if built.rejected_share > budget:
        share = f"{100 * built.rejected_share:.2f} % of the records were rejected"
        return [f"{share}, more than run.error_budget = {budget:g} allows"]
    return []


def facts(built: Built, config: Config) -> dict[str, Any]:
    """Return the summary as one JSON object."""
    manifest = built.manifest
    return {
        "path": str(built.path),
        "nothing_to_do": not built.seconds,
        "members": manifest.members.model_dump(),
        "records": manifest.records.model_dump(),
        "reasons": dict(manifest.reasons),
        "flags": dict(manifest.flags),
        "omitted": dict(_by_reason(manifest)),
        "positions": manifest.positions.model_dump(),
        "rows": manifest.rows.model_dump(),
        "growths": [growth.model_dump() for growth in manifest.growths],
        "shards": len(manifest.shards),
        "bytes": manifest.shard_bytes,
        "expected_false_merges": false_merges(_keys(manifest), manifest.storage.key_bits),
        "seconds": {name: round(seconds, 3) for name, seconds in built.seconds.items()},
        "rejected_share": built.rejected_share,
        "failures": failures(built, config),
    }


def log_fields(built: Built, outcome: str | None = None) -> dict[str, Any]:
    """Return the fields of the last line of a log; ``outcome``: what was done, in place of ``built`` or ``grown``.

    Counts are those of the whole data set; ``new_*`` are of its last growth, ``stale`` adds up all of them.
    """
    manifest = built.manifest
    if not built.seconds:
        outcome = "nothing-to-do"
    records, growths = manifest.records, manifest.growths
    fields = {
        "outcome": outcome or ("grown" if growths else "built"),
        "path": built.path,
        "seconds": round(sum(built.seconds.values()), 1),
        "inputs": len(manifest.inputs),
        "records": records.seen,
        "kept": records.kept,
        "rejected": records.rejected,
        "rows": manifest.shard_rows,
        "growths": len(growths),
        "stale": sum(growth.stale for growth in growths),
    }
    if growths and built.seconds:
        last = growths[-1]
        fields |= {"new_inputs": last.inputs, "new_records": last.records, "new_kept": last.kept}
        fields |= {"new_stored": last.stored}
    return fields


def lines(built: Built, config: Config) -> list[str]:
    """Return the summary for people, a line each."""
    manifest = built.manifest
    text = [*count_lines(manifest), *_row_lines(manifest), *_empty_lines(manifest, config)]
    if built.seconds:
        text += ["", *_time_lines(built)]
        text += [f"done: {built.path}"] if manifest.records.kept else []
    else:
        text += ["", f"nothing to do: {built.path} is finished, and no input is new"]
    return wrapped(text + [f"FAILED: {failure}" for failure in failures(built, config)])


def count_lines(manifest: Manifest) -> list[str]:
    """Return the lines on members, records and positions."""
    records, members = manifest.records, manifest.members
    text = [f"seen          {counted(records.seen, 'record')} in {counted(members.with_records, 'file')}"]
    if omitted := _by_reason(manifest):
        both = ((members.skipped, "skipped"), (members.refused, "refused"))
        words = ", ".join(f"{count:,} {word}" for count, word in both if count)
        text.append(f"not read      {words}: {_reasons(omitted)}")
    text.append(f"kept          {counted(records.kept, 'game')}")
    if repeats := records.duplicate + records.conflicting:
        clash = f", {records.conflicting:,} conflicting (another result or komi)" if records.conflicting else ""
        text.append(f"repeats       {counted(repeats, 'game')}: {records.duplicate:,} duplicate{clash}")
    for name, count, wanted in (("filtered", records.filtered, True), ("rejected", records.rejected, False)):
        if count:
            chosen = {key: number for key, number in manifest.reasons.items() if (key in FILTERS) == wanted}
            text.append(f"{name:<14}{counted(count, 'record')}: {_reasons(chosen)}")
    if manifest.flags:
        text.append(f"flagged       {_reasons(manifest.flags)}")
    return text + _position_lines(manifest) + _mixing_lines(manifest) + _growth_lines(manifest)


def mixing_of(manifest: Manifest, split: str) -> tuple[float, float] | None:
    """Return how many different games there are among 1,000 rows one after the other: on average over the rows of a
    part, and in the shard that has the fewest. None where no shard says so."""
    said = [
        (entry.mixing, entry.rows) for entry in manifest.shards if entry.split == split and entry.mixing is not None
    ]
    rows = sum(count for _, count in said)
    if not rows:
        return None
    return sum(games * count for games, count in said) / rows, min(games for games, _ in said)


def _mixing_lines(manifest: Manifest) -> list[str]:
    if (mixing := mixing_of(manifest, "train")) is None:
        return []
    mean, least = mixing
    return [
        f"mixing        {mean:.0f} different games among 1,000 rows of train ({least:.0f} in the least mixed shard)"
    ]


def _position_lines(manifest: Manifest) -> list[str]:
    positions = manifest.positions
    text = [f"positions     {positions.seen:,} seen, {positions.stored:,} stored"]
    if positions.merged:
        text.append(f"merged {counted(positions.merged, 'repeat')}; dedup.positions=off keeps them")
    if positions.overlap:
        text.append(f"overlap       {positions.overlap:,} left out, met in another part; split.overlap=keep keeps them")
        text.append(f"by ply        {_left_out(positions)} of val and test left out")
    if positions.sampled_out:
        text.append(f"sampled out   {counted(positions.sampled_out, 'position')}{_of_the_encore(manifest)}")
    keys = _keys(manifest)
    if keys and manifest.config.get("dedup", {}).get("positions") != "off":
        bits = manifest.storage.key_bits
        text.append(f"false merges  {false_merges(keys, bits):.1e} expected of {counted(keys, 'key')} of {bits} bits")
    return text


def _growth_lines(manifest: Manifest) -> list[str]:
    """Return a line for each of the last growths, one for those before, and what rows do not know."""
    growths = list(enumerate(manifest.growths, 1))
    if not growths:
        return []
    text = [f"grown         {counted(len(growths), 'time')} since the first build"]
    if earlier := growths[:-_MOST_GROWTHS]:
        text.append(f"growth 1-{len(earlier):<5}{_brought([growth for _, growth in earlier])}")
    text += [f"growth {number:<7}{_brought([growth])}" for number, growth in growths[-_MOST_GROWTHS:]]
    left_out = sum(growth.left_out for growth in manifest.growths)
    if left_out:
        stale = sum(growth.stale for growth in manifest.growths)
        text.append(
            f"left out      {counted(left_out, 'repeat')} of rows that were there, so the counts of up to "
            f"{counted(stale, 'row')} are stale; goplanes compact makes them exact"
        )
    return text


def _brought(growths: Sequence[GrowthEntry]) -> str:
    """Return what growths brought together."""
    inputs, records, kept, stored, left_out = (
        sum(getattr(growth, name) for growth in growths) for name in ("inputs", "records", "kept", "stored", "left_out")
    )
    repeats = f", {counted(left_out, 'repeat')} left out" if left_out else ""
    files, games = counted(inputs, "input"), counted(kept, "game")
    return f"{files}, {counted(records, 'record')}, {games}, {counted(stored, 'position')} stored{repeats}"


def _of_the_encore(manifest: Manifest) -> str:
    """Return what left out positions where no sample was asked for: the scheme."""
    asked = manifest.config.get("sample")
    sampled = not isinstance(asked, dict) or any(asked.get(name) is not None for name in ("per_game", "plies"))
    return "" if sampled else f", all of the encore: {manifest.scheme.name} has no rows of it"


def _left_out(positions: Positions) -> str:
    """Return the share of val and test that is overlap, by band of plies: ``0-9: 58 %, 10-29: 3 %``."""
    shares = ((band, positions.overlap_by_ply.get(band, 0), count) for band, count in positions.held_out_by_ply.items())
    return ", ".join(f"{band}: {100 * left_out / count:.3g} %" for band, left_out, count in shares if count)


def _row_lines(manifest: Manifest) -> list[str]:
    parts = ", ".join(f"{getattr(manifest.rows, split):,} {split}" for split in SPLITS)
    total, size = manifest.shard_rows, manifest.shard_bytes
    each = f", {size / total:,.0f} bytes a row" if total else ""
    shards = counted(len(manifest.shards), "shard")
    return [f"rows          {total:,}: {parts}", f"written       {size_text(size)} in {shards}{each}"]


def _empty_lines(manifest: Manifest, config: Config) -> list[str]:
    """Return a line for each part that got no rows although it was to have a share of the games."""
    shares = {"val": config.split.val, "test": config.split.test}
    return [
        f"empty         no rows in {split} for split.{split} = {share:g}: too few games, or train has all the positions"
        for split, share in shares.items()
        if share > 0 and manifest.records.kept and not getattr(manifest.rows, split)
    ]


def _time_lines(built: Built) -> list[str]:
    """Return seconds by stage, with the rate of what this run did itself; too short a time has no rate."""
    spent = {name: seconds for name, seconds in built.seconds.items() if seconds >= _SHORT}
    spent["all"] = sum(built.seconds.values())
    done = {"all": built.done.get("encode", 0)} | built.done
    text = []
    for name, seconds in spent.items():
        rate = ""
        if done.get(name) and seconds >= _SHORT:
            rate = f"  {done[name] / seconds:>12,.0f} {_UNITS.get(name, 'rows')} a second"
        text.append(f"{name:<14}{seconds:>8.1f} s{rate}")
    return text


def _keys(manifest: Manifest) -> int:
    return manifest.positions.seen - manifest.positions.sampled_out


def _by_reason(manifest: Manifest) -> Counter[str]:
    return Counter(entry.reason for entry in manifest.omitted)


def _reasons(counts: dict[str, int] | Counter[str]) -> str:
    """Return the most frequent reasons with their counts, the rest as one number."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count:,} {name}" for name, count in ranked[:_MOST_REASONS]]
    if rest := ranked[_MOST_REASONS:]:
        shown.append(f"{sum(count for _, count in rest):,} of {counted(len(rest), 'other kind')}")
    return ", ".join(shown)
