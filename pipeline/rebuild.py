"""A finished data set as the input of a build: what must agree with it, and what is carried over from it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.columns import ShardError
from pipeline.config import Config, ConfigError
from pipeline.growth import listed_omitted
from pipeline.manifest import Manifest, read_manifest
from pipeline.sources import InputFile, Omitted

# Tables of the configuration that act on the bytes of records, which a game table does not hold.
_OF_BYTES = ("input", "parse")


@dataclass(frozen=True, slots=True)
class Origin:
    """A data set that is built again: its manifest, and what was found beside the records, its members with records and
    the rest."""

    manifest: Manifest
    with_records: int
    omitted: tuple[Omitted, ...]


def origin_of(config: Config, files: Sequence[InputFile], omitted: Sequence[Omitted], output: Path) -> Origin | None:
    """Return what is carried over from the data set among the inputs; None where there is none.

    Raises ConfigError for other inputs beside it, for an output folder inside it and for settings that would need
    its archives, ShardError where its game table is not the manifest's, ManifestError, OSError.
    """
    tables = [file for file in files if file.kind == "table"]
    if not tables:
        return None
    table = tables[0]
    folder = Path(table.path).parent
    if len(files) > 1 or omitted:
        raise ConfigError(f"{folder} is a finished data set: it is built again alone, without other inputs")
    if output.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{output} lies in the data set that is built again: choose another --output folder")
    manifest = read_manifest(folder)
    if table.sha256 != manifest.games.sha256:
        raise ShardError(f"{table.path}: its sha256 is not the manifest's: damaged or changed")
    if differences := list(_differences(manifest.config, config.published())):
        raise ConfigError(
            f"the records of {folder} are not read again, so how they were read cannot change:\n"
            + "\n".join(differences)
        )
    return Origin(manifest, manifest.members.with_records, tuple(listed_omitted(manifest, folder)))


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each setting that acted on the records as they were read, and is another one now."""
    for name in _OF_BYTES:
        stored = before.get(name)
        for key, value in now[name].items():
            old = stored.get(key, value) if isinstance(stored, dict) else value
            if old != value:
                setting = f"{name}.{key}={json.dumps(old)}"
                yield f"  {name}.{key} = {json.dumps(value)}: keep what it was with --set '{setting}'"
