"""The configuration: defaults, errors that say what to write instead, --set, sizes, presets, fingerprints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from pipeline.config import Config, ConfigError, make_config
from pipeline.settings import preset_names, read_toml, set_value


def problem(tables: dict[str, Any]) -> str:
    """Return what is said about wrong tables."""
    with pytest.raises(ConfigError) as caught:
        make_config(tables, "my.toml")
    return str(caught.value)


def keys(model: type[BaseModel] = Config) -> Iterator[tuple[str, str, FieldInfo]]:
    """Yield (table, key, field) of every key."""
    for table, outer in model.model_fields.items():
        for key, field in outer.default.__class__.model_fields.items():
            yield table, key, field


def test_the_empty_file_is_a_configuration() -> None:
    config = make_config({}, "nothing")
    assert config == Config()
    assert (config.encode.scheme, config.frame, config.filter.sizes) == ("agz17", (19, 19), ((19, 19),))


def test_the_keys_are_those_of_the_contract() -> None:
    contract = {
        "input": "paths include exclude max_member_bytes max_ratio max_members max_depth encodings",
        "parse": "branch setup_after_root two_moves after_two_passes handicap_moves",
        "rules": "default force komi_default illegal",
        "filter": "sizes min_moves max_moves handicap komi results min_rank players_exclude dates",
        "dedup": "games positions reach near key_bits",
        "split": "val test seed plies overlap",
        "sample": "per_game plies",
        "encode": "scheme options planes",
        "augment": "mode seed",
        "output": "format packed rows_per_shard games_per_block compression",
        "run": "workers memory error_budget",
    }
    ours = {(table, key) for table, key, _ in keys()}
    assert ours >= {(table, key) for table, names in contract.items() for key in names.split()}
    assert set(Config.model_fields) == set(contract)


def test_every_key_has_a_default_and_a_description() -> None:
    for table, key, field in keys():
        assert not field.is_required(), f"{table}.{key}"
        assert field.description, f"{table}.{key}"
        assert "\n" not in field.description


def test_nothing_can_be_changed() -> None:
    config = Config()
    with pytest.raises(ValidationError):
        config.split = config.split  # type: ignore[misc]
    with pytest.raises(ValidationError):
        config.split.val = 0.5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"filtre": {}}, "my.toml: unknown key 'filtre': did you mean 'filter'?"),
        ({"filter": {"size": [9]}}, "my.toml: unknown key 'filter.size': did you mean 'filter.sizes'?"),
        ({"sample": {"weights": [{"weight": 1, "weigth": 2}]}}, "did you mean 'sample.weights.0.weight'?"),
        ({"sample": {"weights": [{"weight": 1e-300}]}}, "greater than or equal to 0.000001"),  # 0 as a float32
        ({"run": {"xyz": 1}}, "my.toml: unknown key 'run.xyz': known are workers, memory"),
        (
            {"rules": {"default": {"kko": 1}}},
            "my.toml: unknown key 'rules.default.kko': did you mean 'rules.default.ko'?",
        ),
        ({"rules": {"default": {"ko": "none"}}}, "my.toml: rules.default.ko = 'none': "),
        ({"rules": {"force": 3}}, "my.toml: rules.force = 3: write the name of a rule set, or a table"),
        ({"split": {"val": "much"}}, "my.toml: split.val = 'much': "),
        ({"split": {"val": 0.6, "test": 0.4}}, "val + test must be less than 1, not 0.6 + 0.4"),
        ({"split": {"val": float("nan")}}, "my.toml: split.val = nan: "),
        ({"input": {"max_ratio": float("inf")}}, "my.toml: input.max_ratio = inf: "),
        ({"filter": {"komi": [0, float("inf")]}}, "my.toml: filter.komi.1 = inf: "),
        ({"split": {"seed": -1}}, "my.toml: split.seed = -1: "),
        ({"split": 3}, "my.toml: split = 3: "),
        ({"dedup": {"positions": "frist"}}, "my.toml: dedup.positions = 'frist': "),
        ({"output": {"rows_per_shard": 0}}, "my.toml: output.rows_per_shard = 0: "),
        ({"filter": {"sizes": []}}, "my.toml: filter.sizes = []: write a list of board sizes"),
        ({"filter": {"sizes": 9.5}}, "my.toml: filter.sizes = 9.5: write a list of board sizes"),
        ({"filter": {"sizes": "9x"}}, "not a board size: '9x' (write 19, or \"9x13\""),
        ({"filter": {"sizes": True}}, "not a board size: True"),
        ({"filter": {"handicap": 0}}, "my.toml: filter.handicap = 0: write the first and the last in brackets"),
        ({"filter": {"komi": [7.5]}}, "my.toml: filter.komi = [7.5]: write the first and the last in brackets"),
        ({"sample": {"plies": [1, 2, 3]}}, "my.toml: sample.plies = [1, 2, 3]: write the first and the last"),
        ({"filter": {"dates": 2010}}, 'filter.dates = 2010: write the first and the last in brackets, e.g. ["2010-'),
        (
            {"filter": {"players_exclude": "Ada"}},
            "filter.players_exclude = 'Ada': write a list in brackets, e.g. ['Ada']",
        ),
        ({"filter": {"sizes": ["9y9"]}}, "not a board size: '9y9' (write 19, or \"9x13\""),
        ({"filter": {"sizes": [26]}}, "a board side must be 1 to 25, not 26"),
        ({"filter": {"sizes": ["9x0"]}}, "a board side must be 1 to 25, not '9x0'"),
        ({"filter": {"sizes": [[50, 60]]}}, "a board side must be 1 to 25, not [50, 60]"),
        ({"filter": {"sizes": [["a", 3]]}}, "not a board size: ['a', 3]"),
        ({"filter": {"sizes": [True]}}, "not a board size: True"),
        ({"filter": {"handicap": [5, 2]}}, "my.toml: filter.handicap = [5, 2]: nothing lies between 5 and 2"),
        ({"filter": {"komi": [7.5, 0]}}, "my.toml: filter.komi = [7.5, 0]: nothing lies between"),
        ({"sample": {"plies": [9, 8]}}, "my.toml: sample.plies = [9, 8]: nothing lies between"),
        ({"filter": {"dates": ["2017", "2016"]}}, "nothing lies between 2017 and 2016"),
        ({"filter": {"dates": ["9.3.2016", "2016"]}}, "not a date: '9.3.2016'"),
        ({"filter": {"dates": ["2016-99-99", "2017"]}}, "filter.dates.0 = '2016-99-99': not a date"),
        ({"filter": {"dates": ["2016", "2017-02-29"]}}, "not a date: '2017-02-29'"),
        ({"filter": {"dates": ["2016-13", "2017"]}}, "not a date: '2016-13'"),
        ({"filter": {"komi": [float("nan"), 7]}}, "my.toml: filter.komi.0 = nan: "),
        ({"rules": {"komi_default": 150.5}}, "my.toml: rules.komi_default = 150.5: "),
        ({"rules": {"komi_default": float("nan")}}, "my.toml: rules.komi_default = nan: "),
        ({"rules": {"default": {"komi": -151}}}, "my.toml: rules.default.komi = -151: "),
        ({"rules": {"force": {"komi": float("inf")}}}, "my.toml: rules.force.komi = inf: "),
        ({"input": {"max_member_bytes": "1e300"}}, "my.toml: input.max_member_bytes = '1e300': "),
        ({"output": {"path": "a\0b"}}, "my.toml: output.path = 'a\\x00b': a path cannot hold"),
        ({"split": {"seed": 10**5000}}, "my.toml: split.seed: an integer of more than 64 bits"),
        ({"filter": {"sizes": [-(2**63) - 1]}}, "my.toml: filter.sizes: an integer of more than 64 bits"),
        ({"filter": {"min_rank": ["x" * 5000]}}, "... (5,004 characters)"),
        ({"input": {"max_member_bytes": "16 QB"}}, "not a number of bytes: '16 QB'"),
        ({"input": {"max_member_bytes": "much"}}, "my.toml: input.max_member_bytes = 'much': not a number of bytes"),
        ({"input": {"max_member_bytes": "infMB"}}, "not a number of bytes: 'infMB'"),
    ],
)
def test_errors_name_file_key_and_value(tables: dict[str, Any], said: str) -> None:
    text = problem(tables)
    assert said in text
    assert text.count("\n") == 0  # one mistake, one line


def test_every_mistake_is_named_at_once() -> None:
    lines = problem({"split": {"vall": 0.1, "test": 2}, "sample": {"per_game": 0}}).split("\n")
    assert len(lines) == 3
    assert all(line.startswith("my.toml: ") for line in lines)


@pytest.mark.parametrize(
    ("sizes", "frame"),
    [
        ([9], (9, 9)),
        (["9x13"], (9, 13)),
        (["13X9", 11], (13, 11)),
        ([[5, 9], 7], (7, 9)),
        ([1], (1, 1)),
        ([25], (25, 25)),
        (9, (9, 9)),
        ("9x13", (9, 13)),
        ("any", (25, 25)),
    ],
)
def test_sizes_and_the_frame(sizes: object, frame: tuple[int, int]) -> None:
    """The frame has the largest rows by the largest columns of the sizes that are asked for."""
    assert make_config({"filter": {"sizes": sizes}}, "x").frame == frame


def test_dates_may_lack_days_and_months() -> None:
    for dates in (["2016", "2016"], ["2016-03", "2016"], ["2015-12-31", "2016-01"]):
        assert make_config({"filter": {"dates": dates}}, "x").filter.dates == tuple(dates)


@pytest.mark.parametrize(
    ("text", "count"),
    [("16MiB", 16 * 2**20), ("2 GB", 2 * 10**9), ("1.5KiB", 1536), ("7", 7), ("7 B", 7), ("1kb", 1000), (5, 5)],
)
def test_numbers_of_bytes(text: object, count: int) -> None:
    assert make_config({"run": {"memory": text}}, "x").run.memory == count


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("split.val=0.1", {"split": {"val": 0.1}}),
        ("encode.scheme=board", {"encode": {"scheme": "board"}}),
        ('encode.scheme="board"', {"encode": {"scheme": "board"}}),
        ('filter.sizes=[9, "5x7"]', {"filter": {"sizes": [9, "5x7"]}}),
        ("dedup.games = false", {"dedup": {"games": False}}),
        ("rules.default.ko=simple", {"rules": {"default": {"ko": "simple"}}}),
        ("output.path=a=b", {"output": {"path": "a=b"}}),
        ("filter.min_rank=3d", {"filter": {"min_rank": "3d"}}),
        ("output.path=", {"output": {"path": ""}}),
    ],
)
def test_set(assignment: str, value: dict[str, Any]) -> None:
    """The value is TOML; a bare word is a string."""
    tables: dict[str, Any] = {}
    set_value(tables, assignment)
    assert tables == value


def test_set_changes_one_key() -> None:
    tables = {"split": {"val": 0.2, "test": 0.3}}
    set_value(tables, "split.val=0.1")
    assert tables == {"split": {"val": 0.1, "test": 0.3}}


@pytest.mark.parametrize("assignment", ["split", "split=1", "=1", ".val=1", "split.=1", "split..val=1", "split.val"])
def test_set_without_a_key(assignment: str) -> None:
    with pytest.raises(ConfigError, match=r"write table\.key=value"):
        set_value({}, assignment)


def test_set_below_a_value() -> None:
    with pytest.raises(ConfigError, match="'val' is not a table"):
        set_value({"split": {"val": 1}}, "split.val.x=1")


def test_set_takes_one_key_at_a_time() -> None:
    with pytest.raises(ConfigError, match="one key at a time"):
        set_value({}, "run.error_budget=0.5\nx=1")


@pytest.mark.parametrize(
    ("text", "said"),
    [("1" * 5000, "too many digits"), ("[" * 100_000, "nested too deep"), ("{a=" * 2000, "nested too deep")],
)
def test_values_that_no_reader_takes(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        set_value({}, f"split.seed={text}")
    assert "split.seed" in str(caught.value)
    assert len(str(caught.value)) < 500
    (tmp_path / "my.toml").write_text(f"split.seed={text}")
    with pytest.raises(ConfigError, match=rf"my\.toml: .*{said}"):
        read_toml(str(tmp_path / "my.toml"))


def test_tables_nested_too_deep() -> None:
    tables: dict[str, Any] = {}
    set_value(tables, f"encode.options{'.a' * 50_000}=1")
    with pytest.raises(ConfigError, match=r"my\.toml: encode\.options\.a\.a.*: nested too deep"):
        make_config(tables, "my.toml")


def test_a_configuration_of_more_than_a_megabyte(tmp_path: Path) -> None:
    (tmp_path / "fits.toml").write_text("#" * 2**20)
    assert read_toml(str(tmp_path / "fits.toml")) == {}
    (tmp_path / "large.toml").write_text("#" * 2**20 + "\n")
    with pytest.raises(ConfigError, match=r"large\.toml: .*more than 1048576 bytes"):
        read_toml(str(tmp_path / "large.toml"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"no preset, file or folder 'agz71': did you mean 'agz17'\? Presets are .*agz17"
    ):
        read_toml("agz71")
    (tmp_path / "bad.toml").write_text("[split\n")
    with pytest.raises(ConfigError, match=r"bad.toml: not TOML: .*line 1"):
        read_toml(str(tmp_path / "bad.toml"))
    (tmp_path / "binary.toml").write_bytes(b"# \xff\n")
    with pytest.raises(ConfigError, match=r"binary.toml: not a TOML file \(not UTF-8 at byte 2\)"):
        read_toml(str(tmp_path / "binary.toml"))


def test_presets_are_valid() -> None:
    assert "agz17" in preset_names()
    for name in preset_names():
        make_config(read_toml(name), name)


def test_the_fingerprint_covers_what_decides_the_rows() -> None:
    """Each key but the run, the inputs' and the output's paths changes it, and so does a version."""
    plain = Config().fingerprint(scheme=1)
    other: dict[str, Any] = {
        "input.include": ["a*"], "input.exclude": ["a*"], "input.max_member_bytes": 5, "input.max_ratio": 5,
        "input.max_members": 5, "input.max_depth": 5, "input.encodings": ["big5"],
        "parse.branch": "longest", "parse.setup_after_root": "cut", "parse.two_moves": "split",
        "parse.after_two_passes": "stop", "parse.handicap_moves": "literal",
        "rules.default": "japanese", "rules.force": {"ko": "spight"}, "rules.komi_default": 6.5,
        "rules.illegal": "keep-prefix",
        "filter.sizes": [9], "filter.min_moves": 5, "filter.max_moves": 5, "filter.handicap": [0, 0],
        "filter.komi": [0, 9], "filter.results": ["score"], "filter.min_rank": "1d", "filter.players_exclude": ["x"],
        "filter.dates": ["2016", "2016"], "filter.rank_of": "either", "filter.players": ["x"], "filter.rules": ["aga"],
        "filter.sources": ["x"],
        "filter.problem_moves": 5, "filter.gomoku_boards": [15],
        "dedup.games": False, "dedup.positions": "off", "dedup.reach": "board", "dedup.near": "drop",
        "dedup.key_bits": 128,
        "split.val": 0.2, "split.test": 0.2, "split.seed": 5, "split.plies": 5, "split.overlap": "keep",
        "sample.per_game": 5, "sample.plies": [0, 5], "sample.seed": 5, "sample.weights": [{"weight": 5}],
        "encode.scheme": "board", "encode.options": {"a": 1}, "encode.planes": ["x"],
        "augment.mode": "all", "augment.seed": 5,
        "output.format": "hdf5", "output.packed": False, "output.rows_per_shard": 5, "output.games_per_block": 5,
        "output.compression": "none", "output.shuffle": "exact",
    }  # fmt: skip
    unseen: dict[str, Any] = {"input.paths": ["x"], "output.path": "x"}
    unseen |= {"run.workers": 5, "run.memory": 5, "run.error_budget": 0.5, "run.executor": "dask"}
    assert {f"{table}.{key}" for table, key, _ in keys()} == {*other, *unseen}
    prints = set()
    for name, value in {**other, **unseen}.items():
        table, key = name.split(".")
        fingerprint = make_config({table: {key: value}}, "x").fingerprint(scheme=1)
        assert (fingerprint == plain) == (name in unseen), name
        prints.add(fingerprint)
    assert len(prints) == len(other) + 1
    assert Config().fingerprint(scheme=2) != plain
    assert Config().fingerprint(scheme=1, format=1) != plain


def test_what_is_published_can_be_read_again() -> None:
    tables = {
        "filter": {"sizes": ["9x13"], "dates": ["2016", "2016-03"], "handicap": [0, 2]},
        "rules": {"default": {"ko": "spight"}},
        "run": {"workers": 3},
        "input": {"paths": ["secret"]},
        "output": {"path": "place"},
    }
    config = make_config(tables, "x")
    published = config.published()
    assert "run" not in published
    assert "secret" not in str(published)
    assert "place" not in str(published)
    again = make_config(published, "dataset.json")
    assert again.published() == published
    assert again.fingerprint() == config.fingerprint()
