"""The command: arguments in, one call, the result out. Nothing is decided here but how it is said.

Standard output holds the result (with ``--json`` one JSON value and nothing else), standard error what is
said on the way. What commands need is imported when they run, so that ``--help`` and ``--version`` are fast.
"""

import difflib
import itertools
import json
import multiprocessing.util
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from pipeline import __version__
from pipeline.exits import FAILED, INTERRUPTED, WRONG_USAGE, Ending, told

Function = TypeVar("Function", bound=Callable[..., Any])

_LOGGED = ("build", "compact")  # commands that a schedule runs: their logs have a last line for whoever watches them


class Failure(click.ClickException):
    """What ends a command: a message for standard error, and the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """What click ends the process with."""
        return self.code

    def show(self, file: Any = None) -> None:
        """Print the message, without a word of click's."""
        click.echo(f"goplanes: {self.message}", file=file, err=file is None)


class Commands(click.Group):
    """The commands, with a suggestion for a misspelt one, and exit codes for what can go wrong."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command by name; suggest the one that was meant."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(self.list_commands(ctx))}"
            ctx.fail(f"no command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line; where nobody watches it, the last line on standard error says how it ended."""
        ending = options.setdefault("obj", Ending())
        try:
            return super().main(*arguments, **options)
        except SystemExit as end:
            _say_ending(ending, end.code)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an expected error becomes a message and an exit code, and is noted for the last line."""
        try:
            return self._told(ctx)
        except click.ClickException as error:
            ctx.obj.reason = error.format_message()
            raise

    def _told(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.Abort:
            raise Failure("stopped: nothing was changed", INTERRUPTED) from None
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, ValueError, RuntimeError, OSError, MemoryError) as error:
            expected = told(error)
            if expected is None:
                raise
            raise Failure(*expected) from error
        finally:
            if ctx.invoked_subcommand in _LOGGED:
                ctx.obj.command = ctx.invoked_subcommand


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="goplanes", message="%(prog)s %(version)s")
def cli() -> None:
    """Turn archives of Go game records (SGF) into training sets of packed feature planes."""


def _say(as_json: bool, facts: Any, lines: Iterable[str]) -> None:
    """Print a result: one JSON value, or lines of text. A reader that has gone away is no error."""
    try:
        for line in (json.dumps(facts, allow_nan=False),) if as_json else lines:
            click.echo(line)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()


def _say_ending(ending: Ending, code: Any) -> None:
    """Print the last line of a log; at a terminal the summary is enough."""
    line = None if sys.stderr.isatty() else ending.line(code if isinstance(code, int) else FAILED)
    if line is not None:
        click.echo(line, err=True)


def _say_built(as_json: bool, built: Any, config: Any, outcome: str | None = None) -> None:
    """Print the summary of a build, and end with 1 where it did not go well. ``outcome``: in place of its own."""
    from pipeline import report

    _say(as_json, report.facts(built, config), report.lines(built, config))
    ending = click.get_current_context().obj
    ending.facts = report.log_fields(built, outcome)
    if failures := report.failures(built, config):
        ending.reason = "; ".join(failures)
        raise click.exceptions.Exit(FAILED)


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _forget_output() -> None:
    """Send what is left to print nowhere, so that nobody fails on it again at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _json_option(function: Function) -> Function:
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(function)


def _set_option(function: Function) -> Function:
    return click.option(
        "--set", "assignments", multiple=True, metavar="TABLE.KEY=VALUE", help="Set one key of the configuration."
    )(function)


def _build_options(function: Function) -> Function:
    """Add the arguments that ``build`` and ``plan`` share."""
    options = (
        click.argument("what", nargs=-1, metavar="[PRESET|CONFIG.toml] [RECORDS]..."),
        click.option("--input", "-i", "inputs", multiple=True, metavar="PATH", help="Records, or a data set."),
        click.option("--output", "-o", metavar="DIR", help="The data set's folder."),
        click.option("--scheme", metavar="NAME", help="The feature planes; see `goplanes schemes`."),
        click.option("--workers", type=click.IntRange(min=0), metavar="N", help="Worker processes (0: none)."),
        click.option("--executor", metavar="NAME", help="Where tasks run: local, dask or dask://host:port."),
    )
    for option in reversed(options):
        function = option(function)
    return _set_option(function)


@cli.command()
@_build_options
@click.option("--overwrite", is_flag=True, help="Replace the data set in the folder; asks first at a terminal only.")
@click.option("--yes", is_flag=True, help="Do not ask before replacing, at a terminal either.")
@_json_option
def build(overwrite: bool, yes: bool, as_json: bool, **arguments: Any) -> None:
    """Build a data set, go on with one that was interrupted, or let one grow by the inputs it has gained.

    Everything but an input has a default: `goplanes build games.zip` makes 19x19 AlphaGo Zero planes. A data set as
    the input is built again from its game table, without the archives.
    """
    from pipeline.arguments import Arguments, config_of
    from pipeline.build import build as build_dataset
    from pipeline.build import output_path
    from pipeline.progress import Progress

    config = config_of(Arguments(**arguments))
    output = output_path(config)
    if overwrite and not yes and _at_a_terminal() and (output / "dataset.json").exists():
        click.confirm(f"Replace the data set in {output}?", abort=True, err=True)
    _say_built(as_json, build_dataset(config, overwrite=overwrite, progress=Progress()), config)


@cli.command()
@click.argument("dataset", metavar="DATASET")
@click.option("--output", "-o", metavar="DIR", help="Leave the data set as it is, and write another one.")
@click.option("--workers", type=click.IntRange(min=0), metavar="N", help="Worker processes (0: none).")
@click.option("--executor", metavar="NAME", help="Where tasks run: local.")
@_set_option
@_json_option
def compact(
    dataset: str,
    output: str | None,
    workers: int | None,
    executor: str | None,
    assignments: tuple[str, ...],
    as_json: bool,
) -> None:
    """Build a data set that grew again, from its own game table, as one build of all its inputs would have made it.

    Counts are exact again and all rows are mixed. The data set can be read until the new one takes its place; on the
    way there is room for both.
    """
    from pipeline.arguments import run_settings
    from pipeline.compact import compact as compact_dataset
    from pipeline.config import make_config
    from pipeline.progress import Progress

    run = run_settings(assignments, workers, executor)
    built = compact_dataset(dataset, run=run, output=output, progress=Progress())
    config = make_config(built.manifest.config, "dataset.json: config").model_copy(update={"run": run})
    _say_built(as_json, built, config, "compacted")


@cli.command()
@_build_options
@_json_option
def plan(as_json: bool, **arguments: Any) -> None:
    """Estimate what a build would make (games, rows, bytes, time) from a sample of its records.

    Takes the arguments of `build` and writes nothing in the output folder.
    """
    from pipeline import plan as plans
    from pipeline.arguments import Arguments, config_of
    from pipeline.progress import Progress

    estimate = plans.estimate(config_of(Arguments(**arguments)), Progress())
    _say(as_json, plans.facts(estimate), plans.lines(estimate))


@cli.command()
@click.argument("dataset", metavar="DATASET")
@_json_option
def inspect(dataset: str, as_json: bool) -> None:
    """Say what a data set holds: scheme, parts, counts, sums, configuration."""
    from pipeline import summary
    from pipeline.load import open_dataset

    _require_path(dataset)
    opened = open_dataset(dataset)
    _say(as_json, summary.dataset_facts(opened), summary.dataset_lines(opened))


@cli.command()
@click.argument("what", metavar="DATASET|GAME.sgf")
@click.argument("row", required=False, type=click.IntRange(min=0))
@click.option("--split", type=click.Choice(["train", "val", "test"]), default="train", show_default=True)
@click.option("--ply", type=click.IntRange(min=0), metavar="N", help="Of a record: after N moves (default: all).")
@click.option("--game", type=click.IntRange(min=1), metavar="K", default=1, help="Of a record file: its Kth game.")
@click.option("--scheme", metavar="NAME", help="Of a record: the scheme of the planes.")
@click.option("--planes", metavar="A,B", default="", help="Draw these planes, by name or number.")
@click.option("--png", metavar="FILE.png", help="Draw the board and the planes (default: all) into a picture.")
@_json_option
def show(
    what: str,
    row: int | None,
    split: str,
    ply: int | None,
    game: int,
    scheme: str | None,
    planes: str,
    png: str | None,
    as_json: bool,
) -> None:
    """Draw a row of a data set, or a game record after N moves.

    ROW counts from 0 in the stored order of the part.
    """
    from pipeline import show as shows
    from pipeline.arguments import config_without_inputs
    from pipeline.load import open_dataset
    from pipeline.progress import Progress

    _require_path(what)
    chosen = [name.strip() for name in planes.split(",") if name.strip()]
    if os.path.isdir(what):
        _refuse_given(("ply", "game", "scheme"), f"is for record files, and {what} is a folder")
        if row is None:
            raise click.UsageError(f"which row of {what}? `goplanes show {what} 0` draws the first")
        dataset = open_dataset(what)
        if row >= dataset.rows(split):
            raise click.UsageError(f"no row {row} in {split}, which has {dataset.rows(split):,} rows, from 0")
        facts, text = shows.show_row(dataset, split, row, chosen, Progress(), png)
    else:
        if row is not None:
            raise click.UsageError(f"{what} is no data set; a move of a record is chosen with --ply {row}")
        _refuse_given(("split",), f"is for data sets, and {what} is none")
        config = config_without_inputs(None, (), scheme)
        facts, text = shows.show_record(what, game, ply, chosen, config, Progress(), png)
    _say(as_json, facts, text)


@cli.command()
@click.argument("what", metavar="FILE|DATASET")
@click.option("--game", metavar="ID|SOURCE", help="Only this game: its id, or its file, member or file/member.")
@click.option("--status", type=click.Choice(["kept", "duplicate", "conflicting", "filtered", "rejected"]))
@click.option("--config", "source", metavar="PRESET|CONFIG.toml", help="What a build of FILE would be told.")
@_set_option
@click.option("--rejects", metavar="FOLDER|FILE.zip", help="Write the rejected records there instead.")
@click.option(
    "--input", "-i", "inputs", multiple=True, metavar="PATH", help="With --rejects: what DATASET was built from."
)
@_json_option
def explain(
    what: str, game: str | None, status: str | None, source: str | None, assignments: tuple[str, ...],
    rejects: str | None, inputs: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Say of every record of a file, an archive or a data set why it is kept, repaired or rejected.

    With --rejects the rejected records are written out, to look at and to run again. A data set does not hold the
    bytes of its records: they are taken from the inputs it was built from.
    """
    from pipeline import explain as explains

    if rejects == "":
        raise click.UsageError("--rejects needs the name of a folder or of a .zip file")
    if rejects and status not in {None, "rejected"}:
        raise click.UsageError(f"--rejects writes rejected records, not those that are {status}")
    wanted = explains.Wanted(game, "rejected" if rejects else status)
    found, config = _explained(what, wanted, source, assignments, inputs if rejects else None)
    first = next(found, None)
    if first is None and not (rejects and game is None):
        asked = "record" if game is None else f"record {game!r}"
        of_status = "" if wanted.status is None else f" that is {wanted.status}"
        raise Failure(f"{what}: no {asked}{of_status}", FAILED if game is None else WRONG_USAGE)
    rows = itertools.chain([] if first is None else [first], found)
    if rejects:
        _write_rejects(rows, config, rejects, as_json)
    elif as_json:
        _say(True, list(rows), ())
    else:
        _say(False, None, itertools.chain(explains.lines(next(rows)), *(["", *explains.lines(row)] for row in rows)))


def _explained(
    what: str, wanted: Any, source: str | None, assignments: tuple[str, ...], inputs: tuple[str, ...] | None
) -> tuple[Iterator[Any], Any]:
    """Return the records of a file or a data set, and the configuration to read them with again from its inputs.

    ``inputs`` None: they are not to be read again.
    """
    from pipeline import explain as explains
    from pipeline.arguments import config_without_inputs
    from pipeline.load import open_dataset
    from pipeline.progress import Progress

    for path in (what, *(inputs or ())):
        _require_path(path)
    if not os.path.exists(os.path.join(what, "dataset.json")):
        if inputs:
            raise click.UsageError(f"--input is for data sets, and {what} is none")
        config = config_without_inputs(source, assignments)
        return explains.of_records(what, config, wanted, Progress()), explains.with_inputs(config, (what,))
    if source or assignments:
        raise click.UsageError("--config and --set are for files: a data set was built with its own configuration")
    if inputs == ():
        raise click.UsageError(f"{what} does not hold the bytes of its records: name its inputs with --input PATH")
    dataset = open_dataset(what)
    return explains.of_dataset(dataset, wanted), explains.with_inputs(explains.config_of(dataset), inputs or ())


def _write_rejects(found: Iterable[Any], config: Any, target: str, as_json: bool) -> None:
    """Write the rejected ones among ``found`` and say which; 1 where the inputs do not hold some of them any more."""
    from pipeline import rejects

    done = rejects.write_rejects(found, config, target)
    _say(as_json, rejects.facts_of(done), rejects.lines(done))
    if done.missing:
        raise click.exceptions.Exit(FAILED)


@cli.command()
@click.argument("dataset", metavar="DATASET")
@click.option("--sample", type=click.IntRange(min=0), default=200, show_default=True, help="Rows to encode again.")
@_json_option
def verify(dataset: str, sample: int, as_json: bool) -> None:
    """Check a data set: sums, checksums, every row against its game, and a sample encoded again."""
    from pipeline import verify as verifies
    from pipeline.progress import Progress

    _require_path(dataset)
    checks = verifies.verify(dataset, sample, Progress())
    _say(as_json, verifies.facts(dataset, checks), verifies.lines(dataset, checks))
    if any(check.faults for check in checks):
        raise click.exceptions.Exit(FAILED)


@cli.command()
@click.argument("dataset", metavar="DATASET")
@_json_option
def stats(dataset: str, as_json: bool) -> None:
    """Count what a data set is made of: results, ranks, lengths, sources, repeats, duplicates."""
    from pipeline import statlines
    from pipeline import stats as statistics
    from pipeline.load import open_dataset

    _require_path(dataset)
    found = statistics.facts(open_dataset(dataset))
    _say(as_json, found, statlines.lines(found))


@cli.command()
@click.argument("kind", type=click.Choice(["katago"]))
@click.argument("dataset", metavar="DATASET")
@click.argument("folder", metavar="FOLDER")
@click.option("--split", type=click.Choice(["train", "val", "test"]), default="train", show_default=True)
@click.option("--rows", type=click.IntRange(min=1), metavar="N", help="The first N rows (default: all).")
@click.option("--rows-per-file", type=click.IntRange(min=1), default=16_384, show_default=True, metavar="N")
@click.option("--max-weight", type=click.FloatRange(min=0), metavar="W", help="No row counts more (default: as it is).")
@_json_option
def export(
    kind: str,
    dataset: str,
    folder: str,
    split: str,
    rows: int | None,
    rows_per_file: int,
    max_weight: float | None,
    as_json: bool,
) -> None:
    """Write rows as another program reads them: `katago`, the npz files of its shuffler and trainer.

    DATASET has the scheme katago_v7; FOLDER appears whole: it is empty or not there yet.
    """
    from pipeline import katago_export
    from pipeline.load import open_dataset

    _require_path(dataset)
    done = katago_export.export(
        open_dataset(dataset), folder, split=split, rows=rows, rows_per_file=rows_per_file, max_weight=max_weight
    )
    _say(as_json, katago_export.facts(done), katago_export.lines(done))


@cli.command()
@click.argument("name", required=False)
@_json_option
def schemes(name: str | None, as_json: bool) -> None:
    """List the feature-plane schemes, or the planes of one."""
    from pipeline import summary
    from pipeline.config import ConfigError
    from pipeline.schemes import SCHEMES, find_scheme

    if name is None:
        _say(as_json, [summary.scheme_facts(scheme) for scheme in SCHEMES.values()], summary.all_scheme_lines())
        return
    try:
        scheme = find_scheme(name)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    _say(as_json, summary.scheme_facts(scheme), summary.scheme_lines(scheme))


@cli.command()
@_json_option
def init(as_json: bool) -> None:
    """Print a configuration with every key, its default and one line on it."""
    from pipeline import summary

    _say(as_json, summary.template_facts(), summary.template().splitlines())


def _require_path(path: str) -> None:
    if not os.path.lexists(path):
        raise click.UsageError(f"no such file or folder: {path}")


def _refuse_given(names: Iterable[str], why: str) -> None:
    """Refuse options of this command that would do nothing."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} {why}")


def _open_closed_streams() -> None:
    """Let nothing take the place of a standard stream that was closed before we were started (``>&-``)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for as long as the process lives


def main() -> NoReturn:
    """Run the command line and end the process."""
    # A stop by the system ends a build as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot show is no reason to fail.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    ending = Ending()

    def say_fault(*fault: Any) -> None:
        sys.__excepthook__(*fault)
        _say_ending(ending, FAILED)

    sys.excepthook = say_fault  # of our own faults a log tells everything, and ends as all logs do
    code: Any = 0
    try:
        cli.main(prog_name="goplanes", obj=ending)
    except SystemExit as end:
        code = end.code
    try:
        sys.stdout.flush()
    except OSError:
        _forget_output()
    if code == INTERRUPTED:
        sys.stderr.flush()
        # The locks of the workers are given back, or the system's helper complains of them later.
        multiprocessing.util._run_finalizers(0)  # type: ignore[attr-defined]
        # Waiting for worker processes is what the user has just asked not to do.
        os._exit(INTERRUPTED)
    sys.exit(code)
