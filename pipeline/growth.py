"""A data set whose inputs gained files: what is new, what stays, and what the whole of both is.

The first build of a data set has growth number 0. A later one reads the gained files alone: games that are there keep
their ids, parts and rows, new ones add rows of positions that no row has.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.dedup import PARTS
from pipeline.manifest import NAME, GrowthEntry, Manifest, ManifestError
from pipeline.reasons import Reason
from pipeline.sources import InputFile, Omitted

Listed = list[dict[str, Any]]

MAX_GROWTHS = 2**16 - 1  # the game table has their number in 16 bits


@dataclass(frozen=True, slots=True)
class Growth:
    """One growth of a data set: its ``number``, the manifest of the state ``before`` it, and where that state's game
    table is."""

    number: int
    before: Manifest
    games: Path

    def shards(self, folder: Path) -> list[tuple[str, int, str]]:
        """Return (path, part, sha256) of the shards that are there already."""
        return [(str(folder / entry.path), PARTS.index(entry.split), entry.sha256) for entry in self.before.shards]

    @property
    def next_shards(self) -> list[int]:
        """Return the number of the first new shard of each part."""
        numbers: list[list[int]] = [[-1] for _ in PARTS]
        for entry in self.before.shards:
            numbers[PARTS.index(entry.split)].append(int(Path(entry.path).stem.partition("-")[2]))
        return [max(found) + 1 for found in numbers]


def input_list(inputs: Iterable[InputFile]) -> Listed:
    """Return what is recorded of the inputs: source, bytes, sha256."""
    return [{"source": file.source, "bytes": file.size, "sha256": file.sha256} for file in inputs]


def input_fingerprint(inputs: Iterable[dict[str, Any]]) -> str:
    """Return a SHA-256 over the names and contents of the inputs, in whatever order they are listed."""
    lines = sorted(f"{item['source']}\0{item['sha256']}" for item in inputs)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def input_fault(before: Listed, now: Listed, gone_too: bool = True) -> str | None:
    """Say which input of ``before`` changed in place or (``gone_too``) is gone; None where there is none such."""
    old, new = _counted(before), _counted(now)
    gained_names = {source for source, _ in new - old}
    for source, _ in sorted((old - new).elements()):
        if source in gained_names:
            return f"{source} changed in place (put it back as it was, and give what is new a new name)"
        if gone_too:
            return f"{source} is no longer there (put it back or name it again, and the same command goes on)"
    return None


def gained(before: Listed, files: Sequence[InputFile]) -> list[InputFile]:
    """Return the files that are not listed."""
    left = _counted(before)
    found = []
    for file in files:
        if left[file.source, file.sha256] > 0:
            left[file.source, file.sha256] -= 1
        else:
            found.append(file)
    return found


def _counted(inputs: Listed) -> Counter[tuple[str, str]]:
    return Counter((item["source"], item["sha256"]) for item in inputs)


def all_inputs(before: Listed, new: Listed) -> Listed:
    """Return the inputs of the whole data set, in the order in which one build would list them."""
    return sorted([*before, *new], key=lambda item: (item["source"], item["sha256"]))


def listed_inputs(manifest: Manifest) -> Listed:
    """Return the inputs of a finished data set as ``input_list`` has them."""
    return [item.model_dump() for item in manifest.inputs]


def listed_omitted(manifest: Manifest, path: Path) -> Iterator[Omitted]:
    """Yield what the data set at ``path`` lists as not read. Raises ManifestError for a reason that nobody knows."""
    known = {reason.value: reason for reason in Reason}
    for entry in manifest.omitted:
        if entry.reason not in known:
            raise ManifestError(f"{path / NAME}: omitted: no reason is named {entry.reason[:80]!r}")
        yield Omitted(entry.source, entry.member, entry.status, known[entry.reason], entry.detail)


def all_omitted(manifest: Manifest, path: Path, found: Sequence[Omitted], new: Iterable[InputFile]) -> list[Omitted]:
    """Return what the data set at ``path`` did not read, and after it what was ``found`` in folders and is not among
    that. Files that it could not read, and that are read now (``new``), are left out; not the members of an input
    that has the name of a new one."""
    read = {file.source for file in new} - {item.source for item in manifest.inputs}
    kept = [item for item in listed_omitted(manifest, path) if item.source not in read]
    there = set(kept)
    return kept + [item for item in found if item not in there]


def growth_entry(growth: Growth, inputs: int, records: int, kept: int, positions: dict[str, int]) -> GrowthEntry:
    """Return what ``dataset.json`` says of a growth; ``records`` and ``kept`` are those of the whole data set now, the
    ``positions`` (seen, stored, left_out, stale) those of the growth."""
    before = growth.before.records
    return GrowthEntry(inputs=inputs, records=records - before.seen, kept=kept - before.kept, **positions)
