"""``dataset.json``: what a data set is, what went into it, and where its rows are.

Written once, at the end of a build: a folder with a manifest is a whole data set. It says nothing of the
run (time, host, workers, memory) and holds no absolute path, so equal builds give equal bytes.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pipeline import __version__
from pipeline.columns import FORMAT_VERSION, SUFFIXES, Format, Layout, describe
from pipeline.files import NotAFileError, require_file, write_whole
from pipeline.values import MAX_SIDE

NAME = "dataset.json"
GAMES: Final = "games.parquet"
SPLITS = ("train", "val", "test")
SOFTWARE = f"goplanes {__version__}"
MAX_BYTES = 2**30

Count = Annotated[int, Field(ge=0)]
Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
Split = Literal["train", "val", "test"]
Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
SHARD_PATH = re.compile(r"(train|val|test)/shard-[0-9]{5,9}(\.parquet|\.h5)")


class ManifestError(ValueError):
    """A ``dataset.json`` that is missing, damaged or of another format; the text starts with its path."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Scheme(_Part):
    """What the planes are: order and number of ``planes`` are those of the shards."""

    name: str
    version: int
    options: dict[str, str | int | bool]
    planes: tuple[str, ...] = Field(min_length=1)
    globals: tuple[str, ...] = ()


class Storage(_Part):
    """What a reader must know of the shards beside the scheme."""

    format: Format
    packed: bool
    aggregate: bool
    key_bits: Literal[64, 128]

    @model_validator(mode="after")
    def _only_what_a_file_can_be(self) -> "Storage":
        if self.format == "parquet" and not self.packed:
            raise ValueError("planes in Parquet are always packed")
        return self


class Fingerprints(_Part):
    """Of the config (with scheme and versions) and of the contents of the inputs."""

    config: Hex
    inputs: Hex


class InputEntry(_Part):
    """One loose record or one archive, as it was when it was read."""

    source: str
    bytes: Count
    sha256: Sha256


class Members(_Part):
    """Files met in the inputs and in archives."""

    seen: Count
    with_records: Count
    skipped: Count
    refused: Count


class OmittedEntry(_Part):
    """A member that was not read, and why."""

    source: str
    member: str | None
    status: Literal["skipped", "refused"]
    reason: str
    detail: str


class Records(_Part):
    """Records by outcome."""

    seen: Count
    kept: Count
    duplicate: Count
    conflicting: Count
    filtered: Count
    rejected: Count


class Positions(_Part):
    """Positions of the kept games, before augmentation; by ply those of val and test, and their overlap."""

    seen: Count
    stored: Count
    merged: Count
    overlap: Count
    sampled_out: Count
    held_out_by_ply: dict[str, Count] = {}
    overlap_by_ply: dict[str, Count] = {}


class Rows(_Part):
    """Rows in the shards, augmentation included."""

    train: Count
    val: Count
    test: Count


class ShardEntry(_Part):
    """One shard: ``path`` is relative to the folder, ``<split>/shard-NNNNN.parquet`` or ``.h5``; ``mixing``: how many
    different games there are among 1,000 rows one after the other, on average (None: not known)."""

    split: Split
    path: str
    rows: Count
    bytes: Count
    sha256: Sha256
    mixing: Annotated[float, Field(ge=0, le=1000)] | None = None

    @field_validator("path")
    @classmethod
    def _inside_the_folder(cls, path: str) -> str:
        if not SHARD_PATH.fullmatch(path):
            raise ValueError(f"not the path of a shard: {path[:80]!r} (a shard is <split>/shard-NNNNN.parquet or .h5)")
        return path

    @model_validator(mode="after")
    def _in_its_split(self) -> "ShardEntry":
        if not self.path.startswith(self.split + "/"):
            raise ValueError(f"shard {self.path} is listed under {self.split}")
        return self


class GrowthEntry(_Part):
    """One growth after the first build: files that the ``inputs`` gained, ``records`` seen in them and games ``kept``;
    positions ``seen`` and ``stored``; those ``left_out`` since a row has them already (they are among the merged), and
    how many rows are ``stale``: they do not count these."""

    inputs: Count
    records: Count
    kept: Count
    seen: Count
    stored: Count
    left_out: Count
    stale: Count


class GamesEntry(_Part):
    """The table of all records seen."""

    path: Literal["games.parquet"] = GAMES
    bytes: Count
    sha256: Sha256


class Manifest(_Part):
    """The whole of ``dataset.json``."""

    format_version: Literal[1] = FORMAT_VERSION
    software: str = SOFTWARE
    scheme: Scheme
    frame: tuple[Side, Side]
    storage: Storage
    config: dict[str, Any]
    fingerprints: Fingerprints
    inputs: tuple[InputEntry, ...]
    members: Members
    omitted: tuple[OmittedEntry, ...]
    records: Records
    reasons: dict[str, Count]
    flags: dict[str, Count]
    positions: Positions
    rows: Rows
    shards: tuple[ShardEntry, ...]
    games: GamesEntry
    growths: tuple[GrowthEntry, ...] = ()

    @field_validator("config")
    @classmethod
    def _plain_numbers(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Refuse what cannot be written as JSON again: no build stores it."""
        pending: list[Any] = [config]
        while pending:
            value = pending.pop()
            if isinstance(value, (dict, list)):
                pending += value.values() if isinstance(value, dict) else value
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{value} is no number")
            elif isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ValueError("an integer of more than 64 bits")
        return config

    @model_validator(mode="after")
    def _shards_fit(self) -> "Manifest":
        paths = [shard.path for shard in self.shards]
        if len(set(paths)) != len(paths):
            raise ValueError("a shard is listed twice")
        suffix = SUFFIXES[self.storage.format]
        if wrong := [path for path in paths if not path.endswith(suffix)]:
            raise ValueError(f"shard {wrong[0]} is not a {suffix} file, as storage.format says")
        return self

    @property
    def shard_rows(self) -> int:
        """Rows of all shards, augmentation included."""
        return sum(shard.rows for shard in self.shards)

    @property
    def shard_bytes(self) -> int:
        """Bytes of all shards."""
        return sum(shard.bytes for shard in self.shards)

    @property
    def layout(self) -> Layout:
        """What its shards must look like (``compression`` is the writer's business and left at its default)."""
        scheme = self.scheme
        return Layout(
            format=self.storage.format,
            frame=self.frame,
            planes=scheme.planes,
            globals=scheme.globals,
            description=describe(
                scheme.name, scheme.version, scheme.options, scheme.planes, scheme.globals, self.frame
            ),
            packed=self.storage.packed,
            aggregate=self.storage.aggregate,
            key_bits=self.storage.key_bits,
        )


def storage_of(layout: Layout) -> Storage:
    """Return what a manifest says of shards written with ``layout``."""
    return Storage(
        format=layout.format,
        packed=layout.packed,
        aggregate=layout.aggregate,
        key_bits=128 if layout.key_bits == 128 else 64,
    )


def sum_faults(manifest: Manifest) -> list[str]:
    """Return one line for each sum that does not add up (none: all hold).

    Left to those who see the games: positions seen = plies of kept games after cutting at illegal moves.
    """
    members, records, positions = manifest.members, manifest.records, manifest.positions
    skipped = sum(entry.status == "skipped" for entry in manifest.omitted)
    sums = [
        (
            "members seen = with records + skipped + refused",
            members.seen,
            members.with_records + members.skipped + members.refused,
        ),
        ("members skipped = those listed as omitted", members.skipped, skipped),
        ("members refused = those listed as omitted", members.refused, len(manifest.omitted) - skipped),
        (
            "records seen = kept + duplicate + conflicting + filtered + rejected",
            records.seen,
            records.kept + records.duplicate + records.conflicting + records.filtered + records.rejected,
        ),
        ("records filtered + rejected = reasons", records.filtered + records.rejected, sum(manifest.reasons.values())),
        (
            "positions seen = stored + merged + overlap + sampled out",
            positions.seen,
            positions.stored + positions.merged + positions.overlap + positions.sampled_out,
        ),
    ]
    for split in SPLITS:
        in_shards = sum(shard.rows for shard in manifest.shards if shard.split == split)
        sums.append((f"rows of {split} = rows of its shards", getattr(manifest.rows, split), in_shards))
    faults = [f"{name}: {left} is not {right}" for name, left, right in sums if left != right]
    return faults + _image_fault(manifest) + list(_growth_faults(manifest))


def _growth_faults(manifest: Manifest) -> Iterator[str]:
    """Yield where growths count more than there is: each alone, and all of them in the whole set."""
    stored = manifest.positions.stored - sum(growth.stored for growth in manifest.growths)  # by the first build
    for number, growth in enumerate(manifest.growths, 1):
        for name, part, whole in (
            ("games kept, of records seen", growth.kept, growth.records),
            ("positions stored and left out, of those seen", growth.stored + growth.left_out, growth.seen),
            ("rows that are stale, of positions left out", growth.stale, growth.left_out),
            ("rows that are stale, of those there were", growth.stale, stored),
        ):
            if part > whole:
                yield f"growth {number}: {name}: {part} of {whole}"
        stored += growth.stored
    totals = {name: sum(getattr(growth, name) for growth in manifest.growths) for name in GrowthEntry.model_fields}
    for name, whole in (
        ("inputs", len(manifest.inputs)),
        ("records", manifest.records.seen),
        ("kept", manifest.records.kept),
        ("seen", manifest.positions.seen),
        ("stored", manifest.positions.stored),
        ("left_out", manifest.positions.merged),
    ):
        if totals[name] > whole:
            yield f"growths: {name}: {totals[name]} of {whole}"


def _image_fault(manifest: Manifest) -> list[str]:
    """Compare rows with positions stored: 1 image each, or with ``augment.mode = "all"`` up to 8."""
    rows = manifest.rows.train + manifest.rows.val + manifest.rows.test
    stored = manifest.positions.stored
    augment = manifest.config.get("augment")
    every = isinstance(augment, dict) and augment.get("mode") == "all"
    most = 8 if every else 1
    if stored <= rows <= most * stored:
        return []
    return [f"rows = positions stored x images: {rows} is not {stored} x {'1 to 8' if every else 1}"]


def write_manifest(folder: Path | str, manifest: Manifest) -> None:
    """Write ``dataset.json`` whole: fields in the order of the model, tables sorted by key, a newline at the end.

    Raises ManifestError where it is too large to be read again, OSError where the disk refuses.
    """
    path = Path(folder) / NAME
    facts = manifest.model_dump(mode="json")
    for table in ("config", "reasons", "flags"):
        facts[table] = _sorted(facts[table])
    facts["scheme"]["options"] = _sorted(facts["scheme"]["options"])
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    data = text.encode()
    if len(data) > MAX_BYTES:
        raise ManifestError(f"{path}: would have {len(data)} bytes, more than {MAX_BYTES}")
    write_whole(path, data)


def read_manifest(folder: Path | str) -> Manifest:
    """Read and check ``dataset.json``.

    Raises ManifestError where it is missing, too large, not JSON, of an unknown format version, or names
    the first field that is wrong; OSError where the system refuses to read it.
    """
    path = Path(folder) / NAME
    try:
        require_file(path)
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except NotAFileError as error:
        raise ManifestError(str(error)) from None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise ManifestError(f"{path}: not found: {folder} is no data set, or its build is not finished") from error
    if len(data) > MAX_BYTES:
        raise ManifestError(f"{path}: has more than {MAX_BYTES} bytes")
    try:
        version = _Version.model_validate_json(data).format_version
        if version != FORMAT_VERSION:
            raise ManifestError(f"{path}: format_version {version} is unknown to {SOFTWARE} (not {FORMAT_VERSION})")
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ManifestError(f"{path}: {place + ': ' if place else ''}{first['msg'][:300]}") from error


class _Version(BaseModel):
    """What is read first: the rest of an unknown format is not looked at."""

    format_version: int


def _sorted(table: Any) -> Any:
    """Return nested tables with their keys in order."""
    if isinstance(table, dict):
        return {key: _sorted(table[key]) for key in sorted(table)}
    return table
