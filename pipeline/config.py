"""What to build: one validated model, made of the tables of ``settings``.

Every key has a default, so the empty file is a valid configuration (19x19, ``agz17``). The model is
frozen; ``fingerprint`` covers exactly the keys that decide what the published rows are.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from pipeline.values import MAX_SIDE, Bytes, Dates, FilePath, Komi, KomiSpan, Sizes, Span

_MAX_NESTING = 10
_MAX_SHOWN = 200  # characters of a value in a message
_ANY_FRAME = (MAX_SIDE, MAX_SIDE)


class ConfigError(ValueError):
    """A configuration that cannot be used; the text names the file, the key and the value."""


ResultKind = Literal["score", "resign", "time", "forfeit", "void", "unfinished", "unknown"]


class _Table(BaseModel):
    # JSON, in which a configuration is published, has no infinity.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Input(_Table):
    """Where the records are, and how much of an archive is believed."""

    paths: tuple[str, ...] = Field((), description="folders, .sgf files and archives to read")
    include: tuple[str, ...] = Field(("*",), description="read only members whose path matches one of these globs")
    exclude: tuple[str, ...] = Field((), description="leave out members whose path matches one of these globs")
    max_member_bytes: Bytes = Field(16 * 2**20, description="largest member, counted as it comes out of the archive")
    max_ratio: float = Field(200.0, gt=0, description="an archive may unpack to this many times its size")
    max_members: int = Field(5_000_000, ge=1, description="most members in one archive")
    max_depth: int = Field(2, ge=0, description="how deep archives inside archives are opened (0: not at all)")
    encodings: tuple[str, ...] = Field(
        ("gb18030", "shift_jis", "euc_kr", "big5", "latin-1"),
        description="where a record is not UTF-8: the likeliest of these, the first preferred",
    )


class Parse(_Table):
    """How the grammar is read where records differ."""

    branch: Literal["first", "longest"] = Field("first", description="which variation is the main line")
    setup_after_root: Literal["apply", "cut", "reject"] = Field("apply", description="setup stones in mid-game")
    two_moves: Literal["reject", "split"] = Field("reject", description="two moves in one node")
    after_two_passes: Literal["keep", "stop"] = Field("keep", description="moves after two passes in a row")
    handicap_moves: Literal["auto", "literal"] = Field(
        "auto",
        description="handicap stones a listed server writes as moves: set up; missing: put on fixed points",
    )


class RuleTable(_Table):
    """One rule set, rule by rule (in place of a name)."""

    ko: Literal["simple", "positional", "situational", "spight"] = "simple"
    scoring: Literal["area", "territory"] = "area"
    tax: Literal["none", "seki", "all"] = "none"
    suicide: bool = False
    button: bool = False
    bonus: Literal["0", "N-1", "N"] = "0"
    komi: Komi = 7.5


def _rules_kind(value: object) -> str | None:
    return "rules-name" if isinstance(value, str) else "rules-table" if isinstance(value, (dict, RuleTable)) else None


# With the kind decided first, a wrong table is not also reported as a wrong name.
RulesChoice = Annotated[
    Annotated[str, Tag("rules-name")] | Annotated[RuleTable, Tag("rules-table")],
    Discriminator(
        _rules_kind,
        custom_error_type="rules",
        custom_error_message="write the name of a rule set, or a table of single rules",
    ),
]


class Rules(_Table):
    """Which rules a record was played under."""

    default: RulesChoice = Field("chinese", description="rules of a record whose RU is missing or unknown")
    force: RulesChoice | None = Field(None, description="one rule set for every record, whatever its RU")
    komi_default: Komi | None = Field(None, description="komi of a record that states none (unset: unknown)")
    illegal: Literal["drop", "keep-prefix"] = Field("drop", description="a game with an illegal move")


class Filter(_Table):
    """Which games are wanted; the rest are counted by reason."""

    sizes: Sizes = Field(((19, 19),), description='board sizes: 19, "9x13", or "any"')
    min_moves: int = Field(1, ge=0, description="fewest moves")
    max_moves: int | None = Field(None, ge=1, description="most moves")
    handicap: Span | None = Field(None, description="smallest and largest handicap, [0, 0] for even games")
    komi: KomiSpan | None = Field(None, description="smallest and largest komi")
    results: tuple[ResultKind, ...] | None = Field(
        None, description="kinds of result: score, resign, time, forfeit, void, unfinished, unknown"
    )
    min_rank: str | None = Field(None, description='lowest rank: "5k", "1d", "1p"')
    rank_of: Literal["both", "either"] = Field("both", description="players who must have it")
    players: tuple[str, ...] | None = Field(None, description="only games in which one of these plays")
    players_exclude: tuple[str, ...] = Field((), description="players whose games are left out")
    dates: Dates | None = Field(None, description='first and last date: ["2010-01-01", "2019-12-31"]')
    rules: tuple[str, ...] | None = Field(None, description='names of rule sets: ["chinese", "japanese"]')
    sources: tuple[str, ...] | None = Field(
        None, description="only records whose source (or source/member) matches one of these globs"
    )
    problem_moves: int = Field(
        60, ge=0, description="with fewer moves and no result, a start that is no handicap makes a problem (0: never)"
    )
    gomoku_boards: tuple[Annotated[int, Field(ge=1, le=MAX_SIDE)], ...] = Field(
        (20,), description="boards on which records that look like gomoku are taken for it"
    )


class Dedup(_Table):
    """What counts as the same game and the same position."""

    games: bool = Field(True, description="keep one of games that are equal up to the symmetries")
    positions: Literal["aggregate", "first", "off"] = Field(
        "aggregate",
        description="repeated positions: a row with all labels, with those of the first, or a row each",
    )
    reach: Literal["scheme", "board"] = Field("scheme", description="same to the scheme, or stones, side and ko alone")
    near: Literal["keep", "drop"] = Field(
        "keep",
        description="games that begin a longer one or meet another after 50, 75, 100, ... moves: flagged, or left out",
    )
    key_bits: Literal[64, 128] = Field(64, description="width of a position's key; 128: its upper half in key_hi")


class Split(_Table):
    """Train, val and test, by game."""

    val: float = Field(0.05, ge=0, lt=1, description="share of games in val")
    test: float = Field(0.05, ge=0, lt=1, description="share of games in test")
    seed: int = Field(0, ge=0, lt=2**63, description="another seed, another split")
    plies: int = Field(40, ge=1, le=1000, description="games with the same first moves stay together")
    overlap: Literal["drop", "keep"] = Field("drop", description="positions of train met again in val or test")

    @model_validator(mode="after")
    def _leave_some_for_train(self) -> "Split":
        if self.val + self.test >= 1:
            raise ValueError(f"val + test must be less than 1, not {self.val} + {self.test}")
        return self


class SampleWeight(_Table):
    """How much the games of some sources or players count."""

    source: str = Field("*", description="glob over the source, or the source and member joined by /")
    min_rank: str | None = Field(None, description="lowest rank of both players")
    weight: float = Field(ge=1e-6, le=1e6, description="of each of their positions")


class Sample(_Table):
    """Which positions of a game become rows, and how much they count."""

    per_game: int | None = Field(None, ge=1, description="at most this many positions of a game")
    plies: Span | None = Field(None, description="first and last ply, both included")
    weights: tuple[SampleWeight, ...] = Field(
        (), description='first that fits a game: [{source = "fox*", weight = 0.5}, {min_rank = "1p", weight = 2}]'
    )
    seed: int = Field(0, ge=0, lt=2**63, description="another seed, another sample")


class Encode(_Table):
    """How a position becomes planes."""

    scheme: str = Field("agz17", description="a name from `goplanes schemes`")
    options: dict[str, str | int | bool] = Field({}, description="options of the scheme")
    planes: tuple[str, ...] = Field(
        (), description='in place of a scheme: groups from `goplanes schemes`, e.g. ["stones=8", "ko"]'
    )


class Augment(_Table):
    """The symmetries of the board."""

    mode: Literal["none", "random", "all"] = Field("none", description="as played, one random image, all images")
    seed: int = Field(0, ge=0, lt=2**63, description="of the random images and of the order of rows")


class Output(_Table):
    """The files."""

    path: FilePath | None = Field(
        None, description="the data set's folder (unset: named after the input and the scheme)"
    )
    format: Literal["parquet", "hdf5"] = Field("parquet", description="of the shards")
    packed: bool = Field(True, description="bits packed eight to a byte; false (HDF5 only): (N, P, H, W) bytes")
    rows_per_shard: int = Field(65_536, ge=1, le=2**23, description="most rows in a shard")
    games_per_block: int = Field(2_000, ge=1, description="games shuffled together")
    shuffle: Literal["blocks", "exact"] = Field(
        "blocks", description="each block by itself, or all rows of the data set, in a second pass"
    )
    compression: Literal["default", "zstd", "gzip", "none"] = Field(
        "default", description="default: zstd in Parquet, gzip in HDF5"
    )


class Run(_Table):
    """How to run: never part of the result."""

    workers: int | None = Field(None, ge=0, description="worker processes (unset: one a core; 0: none, in this one)")
    memory: Bytes | None = Field(
        None, description="bounds all processes of a build together (unset: half of the machine's)"
    )
    error_budget: float = Field(1.0, ge=0, le=1, description="allowed share of records rejected, else exit code 1")
    executor: str = Field("local", description='where tasks run: "local", "dask" (a cluster here), "dask://host:port"')


class Config(_Table):
    """The whole configuration, a table per stage."""

    input: Input = Input()
    parse: Parse = Parse()
    rules: Rules = Rules()
    filter: Filter = Filter()
    dedup: Dedup = Dedup()
    split: Split = Split()
    sample: Sample = Sample()
    encode: Encode = Encode()
    augment: Augment = Augment()
    output: Output = Output()
    run: Run = Run()

    @property
    def frame(self) -> tuple[int, int]:
        """Rows and columns of the stored frame: the largest of ``filter.sizes``, never of the data."""
        if self.filter.sizes == "any":
            return _ANY_FRAME
        return max(rows for rows, _ in self.filter.sizes), max(cols for _, cols in self.filter.sizes)

    def fingerprint(self, **versions: str | int) -> str:
        """Return a SHA-256 (hex) over every key that decides the published rows, and ``versions``."""
        text = json.dumps({"config": self.published(), "versions": versions}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def published(self) -> dict[str, Any]:
        """Return the configuration as it is stored with a data set: without the run, the inputs' and the
        output's paths."""
        return self.model_dump(mode="json", exclude={"run": True, "input": {"paths"}, "output": {"path"}})


def make_config(tables: Mapping[str, Any], origin: str) -> Config:
    """Validate tables of keys. Raises ConfigError naming ``origin``, each wrong key and its value."""
    for key, value, depth in _values(tables):
        if depth > _MAX_NESTING:
            raise ConfigError(f"{origin}: {key}: nested too deep")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ConfigError(f"{origin}: {key}: an integer of more than 64 bits")
    try:
        return Config.model_validate(dict(tables))
    except ValidationError as error:
        lines = [
            _explain(problem["loc"], problem["type"], problem["msg"], problem["input"]) for problem in error.errors()
        ]
        raise ConfigError("\n".join(f"{origin}: {line}" for line in dict.fromkeys(lines))) from None


def _values(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Yield every value in nested tables and lists with its key and how deep it lies, outer ones first."""
    pending: list[tuple[str, Any, int]] = [("", tables, 0)]
    while pending:
        key, value, depth = pending.pop()
        yield key, value, depth
        if isinstance(value, Mapping):
            prefix = f"{key}." if key else ""
            pending += [(f"{prefix}{name}", inner, depth + 1) for name, inner in value.items()]
        elif isinstance(value, (list, tuple)):
            pending += [(key, inner, depth + 1) for inner in value]


def shown(value: object) -> str:
    """Return a value as it is shown in a message: long ones cut."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text):,} characters)"


def _explain(where: tuple[int | str, ...], kind: str, message: str, value: object) -> str:
    """Say in one line what is wrong with a key, and which key may have been meant."""
    key = ".".join(str(part) for part in where if not str(part).startswith(("function-", "rules-")))
    if kind == "tuple_type":
        return f"{key} = {shown(value)}: write a list in brackets, e.g. {shown([value])}"
    if kind != "extra_forbidden":
        return f"{key} = {shown(value)}: {message.removeprefix('Value error, ')}"
    known = _known_keys(where[:-1])
    near = difflib.get_close_matches(str(where[-1]), known, 1)
    meant = ".".join([*key.split(".")[:-1], *near])
    hint = f"did you mean {meant!r}?" if near else f"known are {', '.join(known)}"
    return f"unknown key {key!r}: {hint}"


def _known_keys(where: Iterable[int | str]) -> list[str]:
    model: Any = Config
    for part in where:
        if isinstance(part, int):
            (model, *_) = get_args(model)  # a table in a list of tables
            continue
        field = getattr(model, "model_fields", {}).get(part)
        model = RuleTable if field is None else field.annotation
    return list(getattr(model, "model_fields", RuleTable.model_fields))
