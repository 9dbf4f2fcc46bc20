"""``dataset.json``: what is written is read, what is wrong is named, sums are added up."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from shard_rows import make_layout, make_manifest

from pipeline import manifest as manifest_module
from pipeline.manifest import NAME, ManifestError, read_manifest, storage_of, sum_faults, write_manifest

SHARDS = [
    {"split": "train", "path": "train/shard-00000.parquet", "rows": 70, "bytes": 700, "sha256": "a" * 64},
    {"split": "train", "path": "train/shard-00001.parquet", "rows": 7, "bytes": 70, "sha256": "b" * 64},
    {"split": "val", "path": "val/shard-00000.parquet", "rows": 5, "bytes": 50, "sha256": "c" * 64},
]


def facts() -> dict[str, Any]:
    return make_manifest(SHARDS, make_layout()).model_dump(mode="json")


def put(folder: Path, value: object) -> None:
    (folder / NAME).write_text(value if isinstance(value, str) else json.dumps(value))


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the facts with the value at a dotted path replaced (or added)."""
    whole = facts()
    place: Any = whole
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[int(last) if isinstance(place, list) else last] = value
    return whole


def test_what_is_written_is_read(tmp_path: Path) -> None:
    manifest = make_manifest(SHARDS, make_layout())
    write_manifest(tmp_path, manifest)
    assert read_manifest(tmp_path) == manifest
    assert [entry.name for entry in tmp_path.iterdir()] == [NAME]


def test_the_text_is_stable_and_readable(tmp_path: Path) -> None:
    write_manifest(tmp_path, make_manifest(SHARDS, make_layout()))
    first = (tmp_path / NAME).read_bytes()
    other = facts() | {"reasons": {"ko": 4, "too-short": 3}, "config": {"augment": {"mode": "none"}}}
    write_manifest(tmp_path, type(make_manifest(SHARDS, make_layout())).model_validate_json(json.dumps(other)))
    assert (tmp_path / NAME).read_bytes() == first
    assert first.endswith(b"}\n")
    text = json.loads(first)
    assert list(text)[:3] == ["format_version", "software", "scheme"]
    assert list(text["reasons"]) == ["ko", "too-short"]


def test_names_in_any_script_are_kept_as_they_are(tmp_path: Path) -> None:
    put(tmp_path, changed("inputs.0.source", "棋谱/甲乙.zip"))
    manifest = read_manifest(tmp_path)
    write_manifest(tmp_path, manifest)
    assert "棋谱/甲乙.zip" in (tmp_path / NAME).read_text(encoding="utf-8")
    assert read_manifest(tmp_path) == manifest


def test_missing_file_and_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"dataset\.json: not found"):
        read_manifest(tmp_path)
    with pytest.raises(ManifestError, match="not found"):
        read_manifest(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(ManifestError, match="not found"):
        read_manifest(tmp_path / "file")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "\x00" * 50, "[" * 100_000, '{"format_version": 1, "a": ' * 5000]
)
def test_what_is_not_a_manifest_is_refused(tmp_path: Path, text: str) -> None:
    put(tmp_path, text)
    with pytest.raises(ManifestError, match=NAME):
        read_manifest(tmp_path)


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999", str(2**63), "9" * 5000])
def test_a_configuration_with_what_json_cannot_hold_is_refused(tmp_path: Path, number: str) -> None:
    put(tmp_path, json.dumps(changed("config.split", {"plies": [1, "HERE"]})).replace('"HERE"', number))
    with pytest.raises(ManifestError, match=r"dataset\.json: "):
        read_manifest(tmp_path)


def test_a_pipe_is_no_manifest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(ManifestError, match=r"dataset\.json: is a pipe"):
        read_manifest(tmp_path)


def test_an_unknown_format_is_named_before_anything_else(tmp_path: Path) -> None:
    put(tmp_path, {"format_version": 2, "everything": "else differs"})
    with pytest.raises(ManifestError, match="format_version 2 is unknown"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "/train/shard-00000.parquet",
        "../train/shard-00000.parquet",
        "train/../shard-00000.parquet",
        "train/shard-00000.parquet/..",
        "train/shard-00000.parquet\n",
        "train//shard-00000.parquet",
        "train\\shard-00000.parquet",
        "train/shard-0.parquet",
        "train/shard-٠٠٠٠٠.parquet",
        "train/shard-00000.csv",
        "shard-00000.parquet",
        "other/shard-00000.parquet",
        "",
    ],
)
def test_shard_paths_that_are_not_shard_paths(tmp_path: Path, path: str) -> None:
    put(tmp_path, changed("shards.0.path", path))
    with pytest.raises(ManifestError, match=r"shards\.0\.path: .*not the path of a shard"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("shards.0.split", "val", "listed under val"),
        ("shards.1.path", "train/shard-00000.parquet", "listed twice"),
        ("storage.format", "hdf5", "not a .h5 file"),
        ("storage.packed", False, "always packed"),
        ("extra", 1, "extra: Extra inputs"),
        ("records.kept", -1, r"records\.kept"),
        ("records.kept", "5", r"records\.kept"),
        ("frame", [19, 26], r"frame\.1"),
        ("scheme.planes", [], r"scheme\.planes"),
        ("shards.0.sha256", "A" * 64, r"shards\.0\.sha256"),
        ("games.path", "../games.parquet", r"games\.path"),
    ],
)
def test_the_first_wrong_field_is_named(tmp_path: Path, path: str, value: object, message: str) -> None:
    put(tmp_path, changed(path, value))
    with pytest.raises(ManifestError, match=message):
        read_manifest(tmp_path)


def test_a_file_beyond_the_limit_is_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, facts())
    size = (tmp_path / NAME).stat().st_size
    monkeypatch.setattr(manifest_module, "MAX_BYTES", size)
    read_manifest(tmp_path)
    monkeypatch.setattr(manifest_module, "MAX_BYTES", size - 1)
    with pytest.raises(ManifestError, match="more than"):
        read_manifest(tmp_path)


def test_sums_that_hold() -> None:
    assert sum_faults(make_manifest(SHARDS, make_layout())) == []


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("members.seen", 8, "members seen"),
        ("members.skipped", 2, "members skipped"),
        ("members.refused", 2, "members refused"),
        ("records.seen", 14, "records seen"),
        ("records.duplicate", 0, "records seen"),
        ("reasons.ko", 3, "= reasons"),
        ("positions.merged", 2, "positions seen"),
        ("positions.sampled_out", 2, "positions seen"),
        ("rows.val", 6, "rows of val"),
        ("shards.0.rows", 69, "rows of train"),
        ("rows.test", 1, "images"),
    ],
)
def test_sums_that_do_not(path: str, value: int, message: str) -> None:
    model = type(make_manifest(SHARDS, make_layout()))
    faults = sum_faults(model.model_validate_json(json.dumps(changed(path, value))))
    assert any(message in fault for fault in faults), faults


@pytest.mark.parametrize(("images", "holds"), [(0, False), (1, True), (3, True), (8, True), (9, False)])
def test_all_symmetries_make_one_to_eight_rows_of_a_position(images: int, holds: bool) -> None:
    whole = changed("config", {"augment": {"mode": "all"}})
    for shard in whole["shards"]:
        shard["rows"] *= images
    whole["rows"] = {split: rows * images for split, rows in whole["rows"].items()}
    model = type(make_manifest(SHARDS, make_layout()))
    assert (sum_faults(model.model_validate_json(json.dumps(whole))) == []) is holds


@pytest.mark.parametrize("config", [{}, {"augment": None}, {"augment": "all"}, {"augment": {"mode": ["all"]}}])
def test_a_strange_config_does_not_stop_the_adding_up(config: dict[str, Any]) -> None:
    model = type(make_manifest(SHARDS, make_layout()))
    assert sum_faults(model.model_validate_json(json.dumps(changed("config", config)))) == []


# The set of SHARDS has 82 positions stored of 88, 1 of them merged, and 5 kept of 15 records of one input.
GROWTH = {"inputs": 1, "records": 4, "kept": 2, "seen": 9, "stored": 5, "left_out": 1, "stale": 1}


def grown(*growths: dict[str, int]) -> Any:
    model = type(make_manifest(SHARDS, make_layout()))
    return model.model_validate_json(json.dumps(changed("growths", growths)))


def test_growths_are_read_back_and_files_without_them_too(tmp_path: Path) -> None:
    manifest = grown(GROWTH, GROWTH | {"inputs": 0, "left_out": 0, "stale": 0, "stored": 9})
    write_manifest(tmp_path, manifest)
    assert read_manifest(tmp_path) == manifest
    assert sum_faults(manifest) == []
    older = facts()
    assert older.pop("growths") == []
    put(tmp_path, older)
    assert read_manifest(tmp_path).growths == ()


@pytest.mark.parametrize("wrong", [GROWTH | {"stale": -1}, GROWTH | {"more": 1}, {"inputs": 1}, GROWTH | {"kept": "2"}])
def test_a_growth_is_whole(tmp_path: Path, wrong: dict[str, Any]) -> None:
    put(tmp_path, changed("growths", [wrong]))
    with pytest.raises(ManifestError, match=r"growths\.0\."):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"kept": 5}, "growth 1: games kept, of records seen: 5 of 4"),
        ({"stored": 9}, "growth 1: positions stored and left out, of those seen: 10 of 9"),
        ({"stale": 2}, "growth 1: rows that are stale, of positions left out: 2 of 1"),
        ({"stored": 82, "seen": 83}, "growth 1: rows that are stale, of those there were: 1 of 0"),
        ({"inputs": 2}, "growths: inputs: 2 of 1"),
        ({"records": 16}, "growths: records: 16 of 15"),
        ({"records": 15, "kept": 6}, "growths: kept: 6 of 5"),
        ({"seen": 89}, "growths: seen: 89 of 88"),
        ({"seen": 88, "stored": 83, "stale": 0}, "growths: stored: 83 of 82"),
        ({"left_out": 2}, "growths: left_out: 2 of 1"),
    ],
)
def test_growths_that_count_more_than_there_is(counts: dict[str, int], message: str) -> None:
    assert sum_faults(grown(GROWTH)) == []
    assert message in sum_faults(grown(GROWTH | counts))


def test_growths_are_added_up() -> None:
    rest = GROWTH | {"inputs": 0, "left_out": 0, "stale": 0}
    assert sum_faults(grown(GROWTH, rest | {"kept": 3})) == []
    assert sum_faults(grown(GROWTH, rest | {"kept": 4})) == ["growths: kept: 6 of 5"]


@pytest.mark.parametrize("key_bits", [64, 128])
def test_the_layout_comes_back(key_bits: int) -> None:
    layout = make_layout("hdf5", packed=False, aggregate=True, key_bits=key_bits, global_names=("komi",))
    manifest = make_manifest([], layout)
    assert manifest.layout == layout
    assert manifest.storage == storage_of(layout)
