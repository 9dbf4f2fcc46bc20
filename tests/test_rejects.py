"""Rejected records written out, and run again. The records are made here."""

import json
import os
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipeline.build import build
from pipeline.cli import cli
from pipeline.config import ConfigError, make_config
from pipeline.explain import Wanted, of_records, with_inputs
from pipeline.rejects import LIST, write_rejects
from pipeline.text import decode

HEAD = "GM[1]SZ[9]KM[6.5]RE[B+R]"
GOOD = f"(;{HEAD};B[ee];W[cc])"
NINE = make_config({"filter": {"sizes": [9]}}, "test")
NAMES = {
    "occupied.sgf": f"(;{HEAD}PB[甲];B[ee];W[ee])".encode("gb18030"),
    "deep/../deep/name with (odd) 字 and \u2028 signs.sgf": b"(;SZ[big];B[aa])",
    "good.sgf": GOOD.encode(),
    "many.sgf": f"{GOOD}(;{HEAD}PB[乙];B[ee] 5 (;W[cc])){GOOD}(;GM[4];B[aa]){GOOD}".encode("gb18030"),
    "lines.txt": b"1\t;B[ee]\n2\t;B[ee];W[ee]\n",
    "nothing.sgf": b"\0" * 20,
    "." + "x" * 10 + ".sgf": b"hidden",
    "y" * 200 + ".sgf": b"",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inputs = tmp_path / "in"
    for name, data in NAMES.items():
        path = inputs / os.path.normpath(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return inputs


def facts_of(inputs: Path, **tables: Any) -> Iterator[dict[str, Any]]:
    config = make_config({"filter": {"sizes": "any"}, **tables}, "test")
    return of_records(str(inputs), config, Wanted(status="rejected"))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def reasons(inputs: Path) -> list[str]:
    return sorted(facts["reason"] for facts in facts_of(inputs))


def test_every_reject_has_a_file_that_is_rejected_again(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = write_rejects(facts_of(folder), with_inputs(NINE, (str(folder),)), str(out))
    assert done.missing == []
    listed = json.loads((out / LIST).read_text("utf-8"))
    assert sorted(entry["reason"] for entry in listed) == [
        "bad-size", "bad-syntax", "no-game", "no-game", "not-go", "occupied", "occupied"
    ]  # fmt: skip
    assert {entry["file"] for entry in listed} | {LIST} == {path.name for path in out.iterdir()}
    assert reasons(out) == sorted(entry["reason"] for entry in listed)
    by_source = {(entry["source"], entry["index"]): entry for entry in listed}
    alone = by_source["occupied.sgf", 0]
    assert (out / alone["file"]).read_bytes() == NAMES["occupied.sgf"]
    assert (alone["move"], alone["detail"].startswith("move 2 (W E5)")) == (2, True)
    # Of a file with several records, the record alone.
    assert "PB[乙]" in (out / by_source["many.sgf", 1]["file"]).read_text("utf-8")
    assert (out / by_source["many.sgf", 3]["file"]).read_text() == "(;GM[4];B[aa])"
    assert (out / by_source["lines.txt", 1]["file"]).read_text() == "2\t;B[ee];W[ee]"


def test_names_are_safe(folder: Path, tmp_path: Path) -> None:
    write_rejects(facts_of(folder), with_inputs(NINE, (str(folder),)), str(tmp_path / "out"))
    names = [path.name for path in (tmp_path / "out").iterdir()]
    assert len(names) == 8
    for name in names:
        assert name.isprintable()
        assert not name.startswith(".")
        assert not set(name) & set('/\\:*?"<>| ')
        assert len(name.encode()) < 200


def test_a_zip_holds_the_same_files(folder: Path, tmp_path: Path) -> None:
    config = with_inputs(NINE, (str(folder),))
    write_rejects(facts_of(folder), config, str(tmp_path / "out"))
    for name in ("a.zip", "b.ZIP"):
        write_rejects(facts_of(folder), config, str(tmp_path / name))
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        held = {name: file.read(name) for name in file.namelist()}
    assert held == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.ZIP").read_bytes()
    assert reasons(tmp_path / "a.zip") == reasons(tmp_path / "out")


@pytest.mark.parametrize("name", ["丙丁", "é", "A"])
def test_a_part_of_a_text_is_read_as_the_same_text_again(tmp_path: Path, name: str) -> None:
    """Whatever charset the record names: where UTF-8 would be taken for that one it is not written in UTF-8."""
    bad = f"(;CA[gb18030]PB[{name}];B[ee];W[ee])"
    text = f"{GOOD}{bad}"
    (tmp_path / "in.sgf").write_bytes(text.encode("gb18030"))
    done = write_rejects(facts_of(tmp_path / "in.sgf"), with_inputs(NINE, (f"{tmp_path}/in.sgf",)), f"{tmp_path}/out")
    data = (tmp_path / "out" / done.written[0]["file"]).read_bytes()
    assert decode(data, NINE.input.encodings)[0] == bad


def test_members_of_one_name_are_all_written(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of what it is asked to do here
        for data in ("(;SZ[big];B[aa])", "(;SZ[tiny];B[aa])", "(;SZ[big];B[aa])"):
            file.writestr("a.sgf", data)
    config = with_inputs(NINE, (f"{tmp_path}/in.zip",))
    done = write_rejects(facts_of(tmp_path / "in.zip"), config, str(tmp_path / "out"))
    assert len({entry["file"] for entry in done.written}) == 3
    assert done.missing == []


def test_nothing_that_is_there_is_overwritten(folder: Path, tmp_path: Path) -> None:
    config = with_inputs(NINE, (str(folder),))
    for name in ("a.zip", "a-file", "full"):
        path = tmp_path / name
        if name == "full":
            path.mkdir()
            path /= "mine.txt"
        path.write_text("mine")
        with pytest.raises(ConfigError, match=f"{name} is"):
            write_rejects(facts_of(folder), config, str(tmp_path / name))
        assert path.read_text() == "mine"
    (tmp_path / "empty").mkdir()
    write_rejects(facts_of(folder), config, str(tmp_path / "empty"))
    assert (tmp_path / "empty" / LIST).exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_failure_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(5, "disk trouble")

    monkeypatch.setattr("pipeline.rejects.records_of", broken)
    for name in ("out", "out.zip"):
        with pytest.raises(OSError, match=r"disk trouble|Input/output error"):
            write_rejects(facts_of(folder), with_inputs(NINE, (str(folder),)), str(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def dataset_of(folder: Path, out: Path) -> Path:
    tables = {"input": {"paths": [str(folder)]}, "output": {"path": str(out)}, "run": {"workers": 0}}
    return build(make_config({**tables, "filter": {"sizes": [9]}, "encode": {"scheme": "board"}}, "test")).path


def test_rejects_of_a_data_set_are_taken_from_its_inputs(folder: Path, tmp_path: Path) -> None:
    dataset = dataset_of(folder, tmp_path / "set")
    result = run("explain", dataset, "--rejects", tmp_path / "out", "--input", folder)
    assert result.exit_code == 0, result.output
    assert "7 rejected records written to" in result.stdout
    assert "2 occupied" in result.stdout
    write_rejects(facts_of(folder), with_inputs(NINE, (str(folder),)), str(tmp_path / "direct"))
    # The same files, whether a data set remembers them or the records are read for the first time.
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        path.name for path in (tmp_path / "direct").iterdir()
    }
    one = run("explain", dataset, "--rejects", tmp_path / "one.zip", "-i", folder, "--game", "many.sgf", "--json")
    facts = json.loads(one.stdout)
    assert [entry["reason"] for entry in facts["written"]] == ["bad-syntax", "not-go"]


def test_inputs_that_are_gone_or_changed_are_named(folder: Path, tmp_path: Path) -> None:
    dataset = dataset_of(folder, tmp_path / "set")
    (folder / "nothing.sgf").unlink()
    (folder / "occupied.sgf").write_text(GOOD)
    result = run("explain", dataset, "--rejects", tmp_path / "out", "--input", folder)
    assert result.exit_code == 1
    assert "5 rejected records written" in result.stdout
    assert "2 rejected records not in the inputs, or changed there:\n  nothing.sgf\n  occupied.sgf" in result.stdout
    gone = run("explain", dataset, "--rejects", tmp_path / "more", "--input", tmp_path / "gone")
    assert (gone.exit_code, "no such file or folder" in gone.stderr) == (2, True)
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SET", "--rejects", "out"], "does not hold the bytes of its records: name its inputs with --input PATH"),
        (["SET", "--rejects", "out", "--input", "IN", "--status", "kept"], "not those that are kept"),
        (["IN", "--rejects", "out", "--input", "IN"], "--input is for data sets"),
    ],
)
def test_wrong_usage(folder: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    places = {"SET": str(dataset_of(folder, tmp_path / "set")), "IN": str(folder), "out": str(tmp_path / "out")}
    result = run("explain", *(places.get(word, word) for word in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_no_reject_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "good.sgf").write_text(GOOD)
    result = run("explain", tmp_path / "good.sgf", "--rejects", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (0, "no rejected record: nothing written\n")
    assert not (tmp_path / "out").exists()
