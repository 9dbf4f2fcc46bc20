"""The command: what it prints where, and its exit codes."""

import errno
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from example_builds import EXAMPLES, build_examples

import pipeline
from pipeline import manifest
from pipeline.cli import cli
from pipeline.config import Config, make_config
from pipeline.exits import told

ROOT = Path(__file__).parents[1]
COMMANDS = ("build", "compact", "explain", "export", "init", "inspect", "plan", "schemes", "show", "stats", "verify")
ADA = str(EXAMPLES / "loose" / "ada-and-bo.sgf")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def command(*arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run the command as a process of its own, as a user does."""
    line = [sys.executable, "-m", "pipeline", *(str(argument) for argument in arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120, env=environment, **options)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_examples(tmp_path_factory.mktemp("cli") / "out")


def test_the_version_is_one_number_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert run("--version").output == f"goplanes {pipeline.__version__}\n"
    assert project["version"] == pipeline.__version__
    assert f"goplanes {pipeline.__version__}" == manifest.SOFTWARE


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_json(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "--json" in result.output
    assert sorted(cli.commands) == sorted(COMMANDS)


def test_help_and_version_load_no_compiler() -> None:
    for argument in ("--help", "--version"):
        program = (
            "import sys\nfrom pipeline.cli import cli\n"
            f"cli([{argument!r}], standalone_mode=False)\n"
            "sys.exit(bool({'numba', 'numpy', 'pyarrow', 'pydantic', 'h5py', 'matplotlib'} & set(sys.modules)))"
        )
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr


def test_a_build_from_the_shell(tmp_path: Path) -> None:
    done = command("build", EXAMPLES, "--output", "out", "--workers", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "29 games" in done.stdout
    assert "done: out" in done.stdout
    assert (tmp_path / "out" / "dataset.json").exists()
    again = command("build", EXAMPLES, "--output", "out", "--json", cwd=tmp_path)
    assert again.returncode == 0
    assert json.loads(again.stdout)["nothing_to_do"] is True
    assert command("verify", "out", cwd=tmp_path).returncode == 0


def test_an_archive_alone_is_enough(tmp_path: Path) -> None:
    """The first line of the README; the folder is named after the archive, whatever names the work in it has."""
    folder = tmp_path / "x games-2024"
    folder.mkdir()
    with zipfile.ZipFile(folder / "games.zip", "w") as file:
        file.write(ADA, "ada.sgf")
    done = command("build", "games.zip", "--workers", "0", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "done: games-agz17\n" in done.stdout
    assert "empty         no rows in val for split.val = 0.05" in done.stdout
    assert sorted(entry.name for entry in folder.iterdir()) == ["games-agz17", "games.zip"]
    assert command("verify", "games-agz17", cwd=folder).returncode == 0


def test_the_json_of_a_build_is_all_there_is_on_standard_output(tmp_path: Path) -> None:
    result = run("build", EXAMPLES, "-o", tmp_path / "out", "--workers", "0", "--json")
    facts = json.loads(result.stdout)
    assert facts["records"]["kept"] == 29
    assert facts["rows"]["train"] > 0
    assert facts["failures"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build"], "no input: name a folder"),
        (["biuld"], "did you mean 'build'"),
        (["build", "quickstrat"], "did you mean 'quickstart'"),
        (["build", "no.zip"], "no such input: no.zip"),
        (["build", ADA, "--scheme", "agz71"], "did you mean 'agz17'"),
        (["build", ADA, "--set", "split.vall=0.1"], "did you mean 'split.val'"),
        (["build", ADA, "--set", "encode.planes=['own_0']"], "no group of planes is named 'own_0'"),
        (["build", ADA, "--executor", "nothing"], "dask://host:port"),
        (["build", ADA, "--workers", "-1"], "-1"),
        (["schemes", "sevenplane"], "did you mean 'seven_plane'"),
        (["show", "no.sgf"], "no such file or folder: no.sgf"),
        (["show", "nope", "3"], "no such file or folder: nope"),
        (["inspect", "nope"], "no such file or folder: nope"),
        (["explain", ADA, "--rejects", ""], "--rejects needs the name of a folder or of a .zip file"),
        (["stats", "nope"], "no such file or folder: nope"),
        (["verify", "nope"], "no such file or folder: nope"),
        (["show", ADA, "--scheme", "x"], "unknown scheme 'x'"),
        (["show", ADA, "--ply", "999"], "0 to 200"),
        (["show", ADA, "3"], "--ply 3"),
        (["show", ADA, "--split", "val"], "--split is for data sets"),
        (["show", ADA, "--planes", "nix"], "no plane 'nix': the planes are own_0"),
        (["show", ADA, "--planes", "0000009"], "no plane '0000009'"),
        (["show", ADA, "--png", "a.jpg"], "a.jpg: the name of a picture ends in .png"),
        (["explain", "no.sgf"], "no such file"),
        (["explain", ADA, "--game", "7"], "no record '7'"),
        (["explain", ADA, "--config", "nix"], "no preset"),
    ],
)
def test_wrong_usage_is_2_and_says_what_was_meant(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_another_configuration_on_a_folder_is_2_and_names_the_way_out(dataset: Path) -> None:
    result = run("build", EXAMPLES, "-o", dataset, "--workers", "0", "--set", "split.val=0.2")
    assert result.exit_code == 2
    assert "split.val 0.05 -> 0.2" in result.stderr
    assert "--overwrite" in result.stderr


def test_overwrite_replaces_without_asking_where_there_is_no_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(build_examples(tmp_path / "first"), folder)
    result = run("build", EXAMPLES, "-o", folder, "--workers", "0", "--scheme", "board", "--overwrite")
    assert result.exit_code == 0, result.output
    assert json.loads((folder / "dataset.json").read_text())["scheme"]["name"] == "board"


@pytest.mark.parametrize(("answer", "replaced"), [("n", False), ("y", True)])
def test_overwrite_asks_on_a_terminal(
    answer: str, replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build_examples(tmp_path / "out")
    monkeypatch.setattr("pipeline.cli._at_a_terminal", lambda: True)
    arguments = ["build", str(EXAMPLES), "-o", str(folder), "--workers", "0", "--scheme", "board", "--overwrite"]
    result = CliRunner().invoke(cli, arguments, input=f"{answer}\n")
    assert result.exit_code == (0 if replaced else 130)
    assert (json.loads((folder / "dataset.json").read_text())["scheme"]["name"] == "board") is replaced
    if not replaced:
        assert CliRunner().invoke(cli, [*arguments, "--yes"]).exit_code == 0


def test_a_folder_that_is_being_built_is_3(tmp_path: Path) -> None:
    folder = tmp_path / "out" / ".goplanes"
    folder.mkdir(parents=True)
    with open(folder / "lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        result = run("build", EXAMPLES, "-o", tmp_path / "out", "--workers", "0")
    assert result.exit_code == 3
    assert "4711" in result.stderr


def test_trouble_with_the_disk_is_4(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("build", EXAMPLES, "-o", tmp_path / "file" / "out", "--workers", "0")
    assert result.exit_code == 4
    assert str(tmp_path / "file") in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_under_the_output_is_4() -> None:
    line = [sys.executable, "-m", "pipeline", "schemes"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w") as device:
        done = subprocess.run(line, stdout=device, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    assert done.returncode == 4
    assert done.stderr == "goplanes: No space left on device\n"


def test_a_full_disk_says_which_file_and_that_the_build_goes_on() -> None:
    said = told(OSError(errno.ENOSPC, "No space left on device", "/out/train/shard-00000.parquet"))
    assert said == (
        "No space left on device: /out/train/shard-00000.parquet\nthe same command goes on once there is room",
        4,
    )
    assert told(FileNotFoundError(errno.ENOENT, "no such file", "/a")) == ("no such file: /a", 4)


def test_nothing_to_do_needs_the_game_table_too(tmp_path: Path) -> None:
    line = ["build", EXAMPLES, "-o", tmp_path / "out", "--workers", "0"]
    assert run(*line).exit_code == 0
    assert run(*line).exit_code == 0
    with open(tmp_path / "out" / "games.parquet", "ab") as file:
        file.write(b"x")
    result = run(*line)
    assert result.exit_code == 1
    assert "games.parquet: missing or cut short" in result.stderr


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rules.default", "klingon"),
        ("rules.force", "klingon"),
        ("input.encodings", ["utf-9"]),
        ("input.encodings", ["rot13"]),
    ],
)
def test_names_that_are_not_known_are_told_with_their_key(key: str, value: object, tmp_path: Path) -> None:
    given = json.dumps(value)
    result = run("build", EXAMPLES, "-o", tmp_path / "out", "--set", f"{key}={given}", "--set", "rules.komi_default=0")
    assert result.exit_code == 2
    assert f"goplanes: {key}" in result.stderr
    assert str(json.loads(given)[0] if given.startswith("[") else value) in result.stderr
    assert not (tmp_path / "out").exists()


def test_too_long_a_list_of_members_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.publish.MAX_OMITTED", 100)
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as file:
        file.writestr("a.sgf", "(;SZ[9];B[aa])")
        for number in range(5):
            file.writestr(f"{number}.txt", "note")
    result = run("build", tmp_path / "games.zip", "-o", tmp_path / "out", "--workers", "0")
    assert result.exit_code == 1
    assert "5 members are not read" in result.stderr


@pytest.mark.parametrize("column", ["komi", "margin"])
def test_a_game_table_with_what_is_no_number_is_damaged(column: str, dataset: Path, tmp_path: Path) -> None:
    shutil.copytree(dataset, tmp_path / "set")
    path = tmp_path / "set" / "games.parquet"
    table = pq.read_table(path)
    values = [float("inf")] * table.num_rows
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(values, pa.float32())), path)
    result = run("explain", tmp_path / "set", "--json")
    assert result.exit_code == 1
    assert f"a record has a {column} that is no number" in result.stderr


def test_pipes_in_place_of_files_of_a_data_set_are_told(dataset: Path, tmp_path: Path) -> None:
    shutil.copytree(dataset, tmp_path / "set")
    shard = min((tmp_path / "set" / "train").iterdir())
    for path, commands in (
        (shard, ("verify", "show")),
        (tmp_path / "set" / "games.parquet", ("verify", "explain", "stats")),
        (tmp_path / "set" / "dataset.json", ("verify", "explain", "stats", "inspect", "show")),
    ):
        path.unlink()
        os.mkfifo(path)
        for name in commands:
            result = run(name, tmp_path / "set", *(["0"] if name == "show" else []))
            assert result.exit_code == 1, name
            assert path.name in result.stdout + result.stderr


def test_a_build_that_keeps_nothing_is_1(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.sgf").write_text("(;SZ[9];B[aa])")
    result = run("build", tmp_path / "in", "-o", tmp_path / "out", "--workers", "0")
    assert result.exit_code == 1
    assert "no game was kept" in result.stdout
    assert "done" not in result.stdout


def test_a_build_over_its_error_budget_is_1(tmp_path: Path) -> None:
    arguments = ["build", EXAMPLES, "--workers", "0", "--set"]
    assert run(*arguments, "run.error_budget=0.01", "-o", tmp_path / "a").exit_code == 1
    assert run(*arguments, "run.error_budget=0.1", "-o", tmp_path / "b").exit_code == 0


def test_what_is_no_data_set_is_1(tmp_path: Path) -> None:
    for arguments in (["inspect"], ["stats"], ["verify"], ["show"]):
        result = run(*arguments, tmp_path, *(["0"] if arguments == ["show"] else []))
        assert result.exit_code == 1
        assert "is no data set" in result.stderr


def test_verify_finds_a_fault_and_is_1(dataset: Path, tmp_path: Path) -> None:
    assert json.loads(run("verify", dataset, "--json").stdout)["sound"] is True
    shutil.copytree(dataset, tmp_path / "set")
    (tmp_path / "set" / "games.parquet").unlink()
    result = run("verify", tmp_path / "set", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["sound"] is False


def test_a_reader_that_goes_away_is_no_error() -> None:
    line = f"{sys.executable} -m pipeline init | head -n 1; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_error(closed: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for arguments, code in ((f"inspect {ROOT} ", 1), ("schemes ", 0), ("schemes nothing ", 2)):
        line = f"{sys.executable} -m pipeline {arguments} {closed}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_is_130_and_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    many = tmp_path / "many.zip"
    record = (EXAMPLES / "loose" / "gnugo-19a.sgf").read_text()
    with zipfile.ZipFile(many, "w") as file:
        for game in range(1500):
            file.writestr(f"{game}.sgf", record)
    arguments = ["build", str(many), "-o", str(tmp_path / "out"), "--workers", "1"]
    line = [sys.executable, "-m", "pipeline", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, **pipes, text=True, env=environment) as process:
        for _ in range(600):
            if (tmp_path / "out" / ".goplanes" / "build.json").exists():
                break
            time.sleep(0.02)
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted: the same command goes on from here" in errors
    assert "Traceback" not in errors
    assert "leaked" not in errors
    last = 'failed: command=build exit=130 reason="interrupted: the same command goes on from here"'
    assert errors.splitlines()[-1] == last
    assert output == ""
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    assert "1,500 records" in done.stdout


def test_inspect_show_explain_schemes_in_both_forms(dataset: Path) -> None:
    lines = [
        ["inspect", dataset],
        ["show", dataset, "0", "--split", "val", "--planes", "own_0"],
        ["show", ADA, "--ply", "3", "--planes", "own_0,16"],
        ["explain", dataset, "--status", "rejected"],
        ["explain", ADA],
        ["schemes"],
        ["schemes", "agz17"],
        ["init"],
        ["plan", ADA],
    ]
    for arguments in lines:
        text, facts = run(*arguments), run(*arguments, "--json")
        assert (text.exit_code, facts.exit_code) == (0, 0), text.output
        assert text.stdout
        assert json.loads(facts.stdout)
        assert max(map(len, text.stdout.splitlines())) <= 120


def test_init_prints_the_default_configuration() -> None:
    assert tomllib.loads(run("init").stdout)
    told = json.loads(run("init", "--json").stdout)
    assert told == tomllib.loads(run("init").stdout) | told
    assert make_config(told, "init") == Config()


def test_show_draws_a_picture(dataset: Path, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    for arguments in ([dataset, "0"], [ADA, "--ply", "9", "--scheme", "seven_plane", "--planes", "ko"]):
        picture.write_bytes(b"old")
        text, facts = run("show", *arguments, "--png", picture), run("show", *arguments, "--png", picture, "--json")
        assert (text.exit_code, facts.exit_code) == (0, 0), text.output
        assert f"picture      {picture}" in text.stdout
        assert json.loads(facts.stdout)["png"] == str(picture)
        assert picture.read_bytes().startswith(b"\x89PNG\r\n")
        assert list(tmp_path.iterdir()) == [picture]
    nowhere = run("show", dataset, "0", "--png", tmp_path / "no" / "a.png")
    assert nowhere.exit_code == 4
    assert "No such file or directory" in nowhere.stderr


def test_a_picture_without_matplotlib_is_2_and_says_what_to_install(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for arguments in ([dataset, "0"], [ADA]):
        result = run("show", *arguments, "--png", tmp_path / "a.png")
        assert result.exit_code == 2
        assert 'pip install "goplanes[pictures]"' in result.stderr
        assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []
    assert run("show", dataset, "0").exit_code == 0


def test_a_row_that_is_not_there_is_2(dataset: Path) -> None:
    result = run("show", dataset, "999999")
    assert result.exit_code == 2
    assert re.search(r"no row 999999 in train, which has [\d,]+ rows", result.stderr)
    assert run("show", dataset).exit_code == 2


def test_what_is_for_record_files_is_refused_for_a_row(dataset: Path) -> None:
    for option in (["--ply", "3"], ["--game", "1"], ["--scheme", "board"]):
        result = run("show", dataset, "0", *option)
        assert result.exit_code == 2
        assert f"{option[0]} is for record files" in result.stderr


def test_no_data_set_is_made_in_another_one_or_on_a_file(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "games.zip").write_bytes(b"")
    for output, message in ((dataset / "sub", "lies in the data set"), (tmp_path / "games.zip", "is a file")):
        result = run("build", ADA, "-o", output, "--workers", "0")
        assert result.exit_code == 2
        assert f"{message}" in result.stderr
    assert not (dataset / "sub").exists()


@pytest.mark.parametrize(
    "arguments", [("show", ADA), ("show", ADA, "--planes", "own_0"), ("explain", ADA), ("plan", ADA)]
)
def test_kernels_that_are_compiled_are_told_of_on_standard_error(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernels of this process are loaded, so that only the words are new."""
    monkeypatch.setattr("pipeline.warm.cache_folder", lambda: tmp_path)
    first = run(*arguments, "--json")
    assert json.loads(first.stdout)
    assert first.stderr.startswith("compiling kernels, once for this version")
    assert run(*arguments).stderr == ""


def test_verify_and_show_tell_of_kernels_too(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, arguments in enumerate((["verify", dataset], ["show", dataset, "0"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr("pipeline.warm.cache_folder", lambda folder=folder: folder)
        assert run(*arguments).stderr.startswith("compiling kernels, once for this version")


def test_explain_chooses_a_game(dataset: Path) -> None:
    result = run("explain", dataset, "--game", "loose/broken-cut.sgf")
    assert "bad-syntax" in result.stdout
    for arguments in (["nobody.sgf"], ["nobody.sgf", "--json"], ["123", "--status", "kept"]):
        missing = run("explain", dataset, "--game", *arguments)
        assert missing.exit_code == 2
        assert f"no record {arguments[0]!r}" in missing.stderr
    assert run("explain", dataset, "--set", "split.val=0.1").exit_code == 2
    assert "illegal-tail" in run("explain", EXAMPLES / "loose" / "broken-illegal-move.sgf", "--set",
                                 "rules.illegal=keep-prefix").stdout  # fmt: skip


def test_a_record_with_an_illegal_move_is_1_from_there_on() -> None:
    broken = EXAMPLES / "loose" / "broken-illegal-move.sgf"
    assert run("show", broken, "--ply", "41").exit_code == 0
    result = run("show", broken, "--ply", "42")
    assert result.exit_code == 1
    assert "move 42" in result.stderr


def last_line(result: Result) -> str:
    return str(result.stderr.splitlines()[-1])


def test_the_last_line_of_a_log_says_what_a_build_did(tmp_path: Path) -> None:
    line = ["build", EXAMPLES, "-o", tmp_path / "out", "--workers", "0"]
    assert last_line(run(*line)).startswith("done: command=build exit=0 outcome=built path=")
    assert re.search(r" records=43 kept=29 rejected=2 rows=[1-9]\d+ growths=0 ", last_line(run(*line)))
    assert last_line(run(*line, "--json")).startswith("done: command=build exit=0 outcome=nothing-to-do path=")


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["build", "--nope"], 2, "No such option"),
        (["build", "no.zip"], 2, "no such input: no.zip"),
        (["build", ADA, "-o", "file/out"], 4, "file"),
        (["build", ADA, "-o", "empty", "--set", "filter.min_moves=999"], 1, "no game was kept"),
        (["build", EXAMPLES, "-o", "over", "--set", "run.error_budget=0.01"], 1, "% of the records were rejected"),
        (["compact", "nothing"], 2, "no such file or folder: nothing"),
        (["compact", "."], 1, "is no data set"),
    ],
)
def test_the_last_line_of_a_log_says_what_failed(
    arguments: list[Any], code: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    result = run(*arguments)
    assert result.exit_code == code
    assert last_line(result).startswith(f"failed: command={arguments[0]} exit={code} reason=")
    assert reason in last_line(result)
    assert ("records=" in last_line(result)) == result.stdout.startswith("seen")  # counts of what is there all the same


def test_no_last_line_where_nobody_needs_one(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (["build", "--help"], ["verify", "nothing"], ["inspect", dataset], ["biuld"], ["--version"]):
        assert not re.search("^(done|failed):", run(*arguments).stderr, re.MULTILINE)
    parent, child = os.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "pipeline", "build", "no.zip"]
    done = subprocess.run(line, stdout=child, stderr=child, env=environment, check=False)
    os.close(child)
    said = os.read(parent, 10_000).decode()
    os.close(parent)
    assert done.returncode == 2
    assert "no such input" in said
    assert "failed:" not in said


def test_a_fault_of_ours_ends_a_log_too(tmp_path: Path) -> None:
    program = (
        "import sys, pipeline.arguments\n"
        "def fail(*_):\n    raise ZeroDivisionError('made up')\n"
        "pipeline.arguments.config_of = fail\n"
        "from pipeline.cli import main\n"
        "sys.argv = ['goplanes', 'build', '.']\n"
        "main()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-c", program]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 1
    assert "ZeroDivisionError: made up" in done.stderr
    last = 'failed: command=build exit=1 reason="a fault of goplanes itself, see above"'
    assert done.stderr.splitlines()[-1] == last
