"""What a build would make, estimated: a sample of its records is built for real in a temporary folder."""

import hashlib
import heapq
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.build import Built, build, check_config, output_path
from pipeline.config import Config, ConfigError, Input
from pipeline.manifest import SPLITS
from pipeline.progress import Progress
from pipeline.report import counted, size_text, time_text, wrapped
from pipeline.sources import InputFile, Omitted, find_inputs, read_all
from pipeline.stages import worker_count
from pipeline.warm import warm_up

SAMPLE = 200  # files that may hold records
_SAMPLE_BYTES = 64 * 2**20
# Stages whose work is shared among worker processes.
_SHARED = ("read", "index", "encode")
_START_SECONDS = 2.0  # until worker processes have loaded their libraries and kernels


@dataclass(frozen=True, slots=True)
class Estimate:
    """What was found and what was built of it; ``scale`` is all files per file of the sample."""

    output: Path
    files: int
    bytes: int
    omitted: int
    sampled: int
    scale: float
    built: Built
    seconds: float
    workers: int


def estimate(config: Config, progress: Progress | None = None) -> Estimate:
    """Build a sample of about 200 files, chosen by a hash of their names, and return it with its scale.

    Every input is read once; nothing is written but in a temporary folder. Compiling kernels is not part of the
    time. Raises ConfigError, OSError, BuildError.
    """
    scheme, _ = check_config(config)
    start = time.perf_counter()
    files, omitted = find_inputs(config.input)
    finding = time.perf_counter() - start
    if tables := [file.path for file in files if file.kind == "table"]:
        dataset = Path(tables[0]).parent
        raise ConfigError(f"{dataset} is a finished data set: `goplanes inspect` says what it holds, `build` takes it")
    warm_up(progress or Progress(quiet=True), scheme, config.augment.mode != "none")
    start = time.perf_counter()
    chosen, count, size, left_out = _sample(files, config.input)
    reading = time.perf_counter() - start
    with tempfile.TemporaryDirectory(prefix="goplanes-") as folder:
        built = _build_sample(chosen, config, Path(folder))
    scale = count / len(chosen) if chosen else 1.0
    workers = worker_count(config)
    seconds = finding + reading + (_START_SECONDS if workers else 0.0)
    for name, spent in built.seconds.items():
        if name not in {"find", "compile"}:
            seconds += spent * scale / (max(1, workers) if name in _SHARED else 1)
    return Estimate(
        output_path(config), count, size, len(omitted) + left_out, len(chosen), scale, built, seconds, workers
    )


def _sample(files: Sequence[InputFile], limits: Input) -> tuple[list[bytes], int, int, int]:
    """Return the contents of the files with the smallest hashes of (source, member), and how many files,
    bytes and files left out there are in all."""
    heap: list[tuple[int, int, bytes]] = []
    count = size = held = left_out = 0
    for found in read_all(files, limits):
        if isinstance(found, Omitted):
            left_out += 1
            continue
        name = f"{found.source}\0{found.member}".encode(errors="surrogatepass")
        rank = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")
        heapq.heappush(heap, (-rank, count, found.data))
        count, size, held = count + 1, size + len(found.data), held + len(found.data)
        while len(heap) > SAMPLE or (held > _SAMPLE_BYTES and len(heap) > 1):
            held -= len(heapq.heappop(heap)[2])
    return [data for _, _, data in sorted(heap, reverse=True)], count, size, left_out


def _build_sample(chosen: Sequence[bytes], config: Config, folder: Path) -> Built:
    (folder / "in").mkdir()
    for number, data in enumerate(chosen):
        (folder / "in" / f"{number:04d}.sgf").write_bytes(data)
    limits = config.input.model_copy(update={"paths": (str(folder / "in"),), "include": ("*",), "exclude": ()})
    output = config.output.model_copy(update={"path": str(folder / "out")})
    run = config.run.model_copy(update={"workers": 0})
    return build(config.model_copy(update={"input": limits, "output": output, "run": run}))


def facts(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as one JSON object."""
    manifest = estimate.built.manifest
    scaled = {name: round(count * estimate.scale) for name, count in manifest.records.model_dump().items()}
    rows = {split: round(getattr(manifest.rows, split) * estimate.scale) for split in SPLITS}
    return {
        "output": str(estimate.output),
        "files": estimate.files,
        "file_bytes": estimate.bytes,
        "not_read": estimate.omitted,
        "sampled": estimate.sampled,
        "exact": estimate.sampled == estimate.files,
        "records": scaled,
        "reasons": {name: round(count * estimate.scale) for name, count in manifest.reasons.items()},
        "rows": rows,
        "bytes": round(manifest.shard_bytes * estimate.scale),
        "seconds": round(estimate.seconds, 1),
        "workers": estimate.workers,
    }


def _rough(number: float) -> int:
    """Round a number to two significant digits: a sample tells no more."""
    return round(float(f"{number:.1e}"))


def lines(estimate: Estimate) -> list[str]:
    """Return an estimate for people: exact numbers where the sample is all there is, else rough ones."""
    found = facts(estimate)
    exact = found["exact"]
    about, told = ("", round) if exact else ("about ", _rough)
    size = size_text(told(found["bytes"]))
    records = {name: told(count) for name, count in found["records"].items()}
    rows = {split: told(count) for split, count in found["rows"].items()}
    others = ", ".join(f"{count:,} {name}" for name, count in records.items() if name not in {"seen", "kept"} and count)
    reasons = ", ".join(f"{told(count):,} {name}" for name, count in sorted(found["reasons"].items()))
    text = [
        f"inputs        {counted(found['files'], 'file')}, {size_text(found['file_bytes'])}"
        + (f"; {found['not_read']:,} not read" if found["not_read"] else ""),
        f"sample        {counted(found['sampled'], 'file')}" + (": all of them" if exact else ""),
        f"records       {about}{counted(records['seen'], 'record')}",
        f"kept          {about}{counted(records['kept'], 'game')}" + (f" ({others})" if others else ""),
    ]
    if reasons:
        text.append(f"reasons       {about}{reasons}")
    if not exact:
        text.append("              repeats between files outside the sample are not foreseen")
    seconds = found["seconds"] if found["seconds"] < 10 else _rough(found["seconds"])
    text += [
        f"rows          {about}{told(sum(found['rows'].values())):,}: "
        + ", ".join(f"{rows[split]:,} {split}" for split in SPLITS),
        f"bytes         {about}{size if exact else size.replace('.0 ', ' ')} in {estimate.output}",
        f"time          about {time_text(seconds)} with {counted(found['workers'], 'worker')}",
    ]
    return wrapped(text)
