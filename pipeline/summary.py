"""What a finished data set is, from its manifest; what a scheme is; and a configuration with every key."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from pipeline import report
from pipeline.compose import group_lines
from pipeline.config import Config
from pipeline.load import Dataset
from pipeline.manifest import SPLITS, sum_faults
from pipeline.planes.group import Plane
from pipeline.schemes import SCHEMES, Option, Scheme, scheme_options

Facts = dict[str, Any]


def dataset_facts(dataset: Dataset) -> Facts:
    """Return what ``inspect`` says, as one JSON object."""
    manifest = dataset.manifest
    size, rows = manifest.shard_bytes, manifest.shard_rows
    parts = {
        split: {
            "rows": dataset.rows(split),
            "shards": sum(shard.split == split for shard in manifest.shards),
            "bytes": sum(shard.bytes for shard in manifest.shards if shard.split == split),
            "mixing": report.mixing_of(manifest, split),
        }
        for split in SPLITS
    }
    return {
        "path": str(dataset.folder),
        "software": manifest.software,
        "scheme": manifest.scheme.model_dump(mode="json"),
        "frame": list(manifest.frame),
        "storage": manifest.storage.model_dump(mode="json"),
        "columns": list(dataset.columns),
        "parts": parts,
        "rows": rows,
        "bytes": size,
        "bytes_per_row": round(size / rows, 1) if rows else None,
        "games_bytes": manifest.games.bytes,
        "config": dict(changed_keys(manifest.config)),
        "members": manifest.members.model_dump(),
        "records": manifest.records.model_dump(),
        "reasons": dict(manifest.reasons),
        "flags": dict(manifest.flags),
        "positions": manifest.positions.model_dump(),
        "growths": [growth.model_dump() for growth in manifest.growths],
        "fingerprints": manifest.fingerprints.model_dump(),
        "sum_faults": sum_faults(manifest),
    }


def dataset_lines(dataset: Dataset) -> list[str]:
    """Return what ``inspect`` says, for people."""
    manifest, facts = dataset.manifest, dataset_facts(dataset)
    scheme, storage = manifest.scheme, manifest.storage
    text = [
        f"{dataset.folder}, made by {manifest.software}",
        f"scheme        {scheme.name} version {scheme.version}, {report.counted(len(scheme.planes), 'plane')} "
        + (f"and {report.counted(len(scheme.globals), 'global')} " if scheme.globals else "")
        + f"on a frame of {manifest.frame[0]}x{manifest.frame[1]}",
        f"format        {storage.format}, planes {'packed' if storage.packed else 'unpacked'}",
    ]
    for split, part in facts["parts"].items():
        shards = report.counted(part["shards"], "shard")
        text.append(f"{split:<14}{report.counted(part['rows'], 'row')} in {shards}, {report.size_text(part['bytes'])}")
    each = f", {facts['bytes_per_row']:,.0f} bytes a row" if facts["rows"] else ""
    text += [
        f"all           {report.counted(facts['rows'], 'row')}, {report.size_text(facts['bytes'])}{each}",
        *report.count_lines(manifest),
        "sums          " + ("; ".join(facts["sum_faults"]) or "all add up"),
        f"fingerprint   {manifest.fingerprints.config}",
    ]
    changed = [f"  {key} = {json.dumps(value, ensure_ascii=False)}" for key, value in facts["config"].items()]
    title = "configuration " + ("differs from the defaults in" if changed else "is the default")
    return report.wrapped([*text, title, *changed])


def changed_keys(config: Facts) -> Iterator[tuple[str, Any]]:
    """Yield (table.key, value) of a published configuration wherever it is not the default."""
    yield from _changed(Config().published(), config, "")


def _changed(default: Facts, config: Facts, prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        usual = default.get(key)
        if isinstance(usual, dict) and isinstance(value, dict):
            yield from _changed(usual, value, f"{prefix}{key}.")
        elif key not in default or value != usual:
            yield prefix + key, value


def scheme_facts(scheme: Scheme) -> Facts:
    """Return a scheme with its planes, globals and options as one JSON object."""

    def listed(planes: tuple[Plane, ...]) -> list[Facts]:
        return [{"index": number} | asdict(plane) for number, plane in enumerate(planes)]

    return {
        "name": scheme.name,
        "version": scheme.version,
        "summary": scheme.summary,
        "options": dict(scheme.options),
        "choices": [asdict(option) for option in scheme_options(scheme.name)],
        "planes": listed(scheme.planes),
        "globals": listed(scheme.globals),
    }


def scheme_lines(scheme: Scheme) -> list[str]:
    """Return a scheme with its planes, globals and options, a line each."""
    width = max(len(name) for name in (*scheme.plane_names, *scheme.global_names))
    title = f"{scheme.name} version {scheme.version}: {scheme.summary}"
    sources = list(dict.fromkeys(plane.source for plane in scheme.planes))

    def listed(planes: tuple[Plane, ...]) -> Iterator[str]:
        for number, plane in enumerate(planes):
            yield f"{number:>3}  {plane.name:<{width}}  {plane.perspective:<8}  {plane.meaning}"

    return [
        title,
        *listed(scheme.planes),
        *(["globals", *listed(scheme.globals)] if scheme.globals else []),
        "mover: seen from the side to move; absolute: the same whoever is to move",
        *(f"source: {source}" for source in sources),
        *_option_lines(scheme_options(scheme.name)),
    ]


def _option_lines(options: Sequence[Option]) -> Iterator[str]:
    """Yield the options of a scheme, a line each; nothing where it has none."""
    if not options:
        return
    yield "options: encode.options.NAME = VALUE, the first one where none is given"
    written = [f"{option.name} = {' | '.join(json.dumps(value) for value in option.values)}" for option in options]
    width = max(map(len, written))
    for option, text in zip(options, written, strict=True):
        yield f"  {text:<{width}}  {option.meaning}"


def all_scheme_lines() -> list[str]:
    """Return the schemes, and the groups that one can be composed of, a line each."""
    named = [f"{scheme.name:<18}{len(scheme.planes):>3} planes  {scheme.summary}" for scheme in SCHEMES.values()]
    example = 'encode.planes = ["stones=4", "ladders", "ko"]'
    return [*named, "", f"groups of planes to compose a scheme of: {example}", *group_lines()]


def template_facts() -> Facts:
    """Return the default configuration as one JSON object, as ``template`` has it."""
    return Config().model_dump(mode="json")


def template() -> str:
    """Return a TOML configuration with every key at its default, and a line on each; it loads as ``Config()``."""
    text = ["# Every key of a goplanes configuration, at its default. Keys that have no default are commented out."]
    for table, field in Config.model_fields.items():
        model = field.annotation
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            continue
        text += ["", f"# {(model.__doc__ or '').strip()}", f"[{table}]"]
        for key, inner in model.model_fields.items():
            choices = " | ".join(json.dumps(choice) for choice in _choices(inner.annotation))
            about = f"{inner.description}: {choices}" if choices else inner.description
            value = inner.get_default()
            setting = f"# {key} =" if value is None else f"{key} = {_toml(key, value)}"
            text += [f"# {about}", setting]
    return "\n".join([*text, ""])


def _choices(annotation: Any) -> Iterator[str | int]:
    """Yield the values a key may have, where they are a few words or numbers."""
    if get_origin(annotation) is Literal and len(get_args(annotation)) > 1:
        yield from get_args(annotation)
    elif get_origin(annotation) in {Union, UnionType}:
        for part in get_args(annotation):
            yield from _choices(part)


def _toml(key: str, value: Any) -> str:
    """Return a default as TOML, which agrees with JSON on all of them but board sizes and tables."""
    if key == "sizes":
        return json.dumps([rows if rows == cols else f"{rows}x{cols}" for rows, cols in value])
    return "{}" if value == {} else json.dumps(value)
