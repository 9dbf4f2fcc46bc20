"""One call from records to a data set: check the configuration, find the inputs, take the folder, run the stages."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline import manifest as manifests
from pipeline.columns import FORMAT_VERSION, Layout, describe
from pipeline.compose import COMPOSED, configured_scheme
from pipeline.config import Config, ConfigError
from pipeline.executors import require_executor, workers_of
from pipeline.fence import wait_for_tasks
from pipeline.growth import (
    MAX_GROWTHS,
    Growth,
    all_inputs,
    all_omitted,
    gained,
    input_fault,
    input_fingerprint,
    input_list,
    listed_inputs,
)
from pipeline.headers.rank import read_rank
from pipeline.jit import KERNEL_VERSION
from pipeline.manifest import Manifest
from pipeline.progress import Progress
from pipeline.publish import BuildError, Job
from pipeline.rebuild import Origin, origin_of
from pipeline.rules import rule_set
from pipeline.schemes import Scheme
from pipeline.shard import require_codec
from pipeline.sources import find_inputs
from pipeline.stages import Stages, worker_count
from pipeline.workfolder import DamagedTable, WorkFolder

__all__ = ["BuildError", "Built", "build", "check_config", "config_fingerprint", "output_path"]


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build: where it is, what it holds, the seconds of each stage (none: nothing was to do), and how many
    records, positions and rows this run took through "read", "index" and "encode"."""

    path: Path
    manifest: Manifest
    seconds: dict[str, float]
    done: dict[str, int] = field(default_factory=dict)

    @property
    def rejected_share(self) -> float:
        """Share of the records seen that were rejected."""
        return self.manifest.records.rejected / max(1, self.manifest.records.seen)


def build(config: Config, *, overwrite: bool = False, progress: Progress | None = None) -> Built:
    """Build a data set, or go on with one, and return it.

    Raises ConfigError for a configuration that cannot work, FolderMismatch where the folder belongs to
    something else, FolderBusy where another build holds it, BuildError and OSError (a lost cluster is one); and
    where a data set is built again ManifestError, ShardError and TableError if it is damaged.
    """
    if not isinstance(config, Config):
        raise TypeError(f"build takes a Config (see pipeline.config.make_config), not a {type(config).__name__}")
    progress = progress or Progress(quiet=True)
    job, origin = _job(config, progress)
    if origin is not None:
        job = replace(job, omitted=origin.omitted, with_records=origin.with_records)
    return run_job(job, overwrite, progress)


def job_again(config: Config, progress: Progress) -> Job:
    """Return the job of building a data set, the one input of ``config``, from its own game table, as one build of all
    its inputs would have.

    Raises ConfigError where this version would not have built it, and where it is damaged what ``build`` raises.
    """
    job, origin = _job(config, progress)
    if origin is None:
        raise ConfigError(f"{', '.join(config.input.paths)}: not a data set")
    if origin.manifest.fingerprints.config != job.fingerprint:
        raise ConfigError(
            f"{config.input.paths[0]} was built by {origin.manifest.software}, whose results are not those of "
            f"{manifests.SOFTWARE}: build it anew from its records"
        )
    return replace(job, inputs=listed_inputs(origin.manifest), omitted=origin.omitted, with_records=origin.with_records)


def _job(config: Config, progress: Progress) -> tuple[Job, Origin | None]:
    """Return what a configuration asks for, and the data set that it is to be built from, if any."""
    scheme, layout = check_config(config)
    if not config.input.paths:
        raise ConfigError("no input: name files or folders with --input, or in input.paths")
    folder = WorkFolder(_place(config))
    with progress.stage("find", 0, "files"):
        files, omitted = find_inputs(config.input, str(folder.path))
    origin = origin_of(config, files, omitted, folder.path)
    fingerprint = config_fingerprint(config, scheme)
    return Job(config, fingerprint, scheme, layout, folder, files, input_list(files), omitted), origin


def run_job(job: Job, overwrite: bool, progress: Progress) -> Built:
    """Take the folder of a job, ``overwrite``: with nothing in it, and run the stages. Raises what ``build`` raises."""
    config, folder = job.config, job.folder
    folder.require_place()
    with folder.locked(), workers_of(config, worker_count(config), folder.private) as workers:
        wait_for_tasks(folder.private, progress.line)
        if overwrite:
            workers.reach()  # before anything is erased: a cluster that does not answer costs nobody a data set
            folder.erase()
        folder.clear_leftovers()
        published = folder.published()
        if published is not None:
            job = _grown(job, published)
            if job.files and published.fingerprints.config == job.fingerprint:
                # Before the folder is noted to grow: one that cannot must stay what it is for its old inputs.
                job = replace(job, growth=_growth(folder, published))
        if folder.claim(config.published(), job.fingerprint, job.inputs):
            progress.line("inputs were added: the unfinished work starts anew")
        if published is not None and not job.files:
            return Built(folder.path, _finished(folder, published), {})
        if job.growth is not None:
            progress.line(f"growing the data set by {len(job.files):,} new of {len(job.inputs):,} inputs")
        workers.reach()
        stages = Stages(job, workers, progress)
        return Built(folder.path, stages.run(), progress.seconds, stages.done)


def _grown(job: Job, published: Manifest) -> Job:
    """Return the job of what a data set that is there lacks: the files that its inputs gained.

    Raises FolderMismatch for an input that changed in place, ConfigError where it was built from another data set.
    """
    before = listed_inputs(published)
    if input_fingerprint(before) == input_fingerprint(job.inputs):
        return replace(job, files=())
    new = gained(before, job.files)
    if published.fingerprints.config == job.fingerprint:  # or else it is refused for that
        if fault := input_fault(before, job.inputs, gone_too=False):
            raise job.folder.other_inputs(fault, before, job.inputs)
        if any(file.kind == "table" for file in new):
            raise ConfigError(f"{job.folder.path} cannot grow by a data set: build one from all records")
        if new and any(item["source"] == manifests.GAMES for item in before):
            raise ConfigError(f"{job.folder.path} was built from another data set and cannot grow: let that one grow")
    return replace(
        job,
        files=new,
        inputs=all_inputs(before, input_list(new)),
        omitted=all_omitted(published, job.folder.path, job.omitted, new),
        with_records=published.members.with_records,
    )


def _growth(folder: WorkFolder, published: Manifest) -> Growth:
    """Return the growth of a data set that is whole. Raises BuildError where it is not."""
    require_files(folder, published)
    if len(published.growths) >= MAX_GROWTHS:
        raise BuildError(f"{folder.path} has grown {MAX_GROWTHS:,} times: run goplanes compact {folder.path} first")
    try:
        before, games = folder.pinned()
    except DamagedTable as error:
        raise BuildError(str(error)) from None
    return Growth(len(before.growths) + 1, before, games)


def check_config(config: Config) -> tuple[Scheme, Layout]:
    """Return the scheme and the shards' layout. Raises ConfigError for what no build can do."""
    try:
        scheme = configured_scheme(config.encode)
        _require_rules(config)
        names = scheme.plane_names
        layout = Layout(
            format=config.output.format,
            frame=config.frame,
            planes=names,
            globals=scheme.global_names,
            description=describe(
                scheme.name, scheme.version, dict(scheme.options), names, scheme.global_names, config.frame
            ),
            packed=config.output.packed,
            compression=config.output.compression,
            aggregate=config.dedup.positions == "aggregate",
            key_bits=config.dedup.key_bits,
        )
        require_codec(layout)
        _require_encodings(config)
    except (ValueError, LookupError) as error:
        raise ConfigError(str(error)) from None
    ranks = [("filter.min_rank", config.filter.min_rank)]
    ranks += [("sample.weights: min_rank", rule.min_rank) for rule in config.sample.weights]
    for key, rank in ranks:
        if rank is not None and read_rank(rank)[0] is None:
            raise ConfigError(f"{key} = {rank!r}: not a rank (write 5k, 3d or 1p)")
    require_executor(config)
    return scheme, layout


def _require_rules(config: Config) -> None:
    """Raise ConfigError where rules have a name that is not known."""
    for key, rules in (("default", config.rules.default), ("force", config.rules.force)):
        if isinstance(rules, str):
            try:
                rule_set(rules)
            except ValueError as error:
                raise ConfigError(f"rules.{key} = {rules!r}: {error}") from None
    for name in config.filter.rules or ():
        try:
            rule_set(name)
        except ValueError as error:
            raise ConfigError(f"filter.rules: {error}") from None


def _require_encodings(config: Config) -> None:
    """Raise ConfigError where an encoding is not known, or none of texts."""
    for encoding in config.input.encodings:
        try:
            "".encode(encoding)
        except (ValueError, LookupError) as error:
            raise ConfigError(f"input.encodings: {encoding!r}: {error}") from None


def config_fingerprint(config: Config, scheme: Scheme) -> str:
    """Return the fingerprint of a configuration with the scheme's, the format's and the kernels' versions."""
    return config.fingerprint(scheme=scheme.version, format=FORMAT_VERSION, kernels=KERNEL_VERSION)


def output_path(config: Config) -> Path:
    """Return the data set's folder: as configured, or named after the first input and the scheme."""
    if config.output.path:
        return Path(config.output.path)
    name = Path(os.path.abspath(config.input.paths[0])).name
    return Path(f"{name.split('.')[0] or 'games'}-{COMPOSED if config.encode.planes else config.encode.scheme}")


def _place(config: Config) -> Path:
    """Return the data set's folder as tasks are told of it: workers of a cluster stand in folders of their own."""
    return output_path(config) if config.run.executor == "local" else output_path(config).absolute()


def _finished(folder: WorkFolder, manifest: Manifest) -> Manifest:
    """Return the manifest of a folder that is complete. Raises BuildError where a file is missing."""
    require_files(folder, manifest)
    table = folder.path / manifests.GAMES
    if table.stat().st_size != manifest.games.bytes:
        raise _cut_short(table)
    folder.clear_finished()
    return manifest


def require_files(folder: WorkFolder, manifest: Manifest) -> None:
    """Raise BuildError where a shard is missing or cut short, or there is no game table."""
    for shard in manifest.shards:
        path = folder.path / shard.path
        if not path.is_file() or path.stat().st_size != shard.bytes:
            raise _cut_short(path)
    if not (folder.path / manifests.GAMES).is_file():
        raise _cut_short(folder.path / manifests.GAMES)


def _cut_short(path: Path) -> BuildError:
    return BuildError(f"{path}: missing or cut short; build again with --overwrite")
