"""Why each record is what it is, before a build and after it."""

import zipfile
from pathlib import Path

import pytest
from example_builds import build_examples

from pipeline.config import Config, make_config
from pipeline.explain import Wanted, lines, of_dataset, of_records
from pipeline.load import open_dataset

GAME = "(;GM[1]SZ[9]KM[6.5]PB[Ann]PW[Ben]BR[3d]WR[2k]DT[2020-05-01]RE[B+3.5]RU[Japanese];B[ee];W[ce])"
COPY = GAME.replace("B[ee];W[ce]", "B[ee];W[ec]")  # transposed
CLASH = COPY.replace("RE[B+3.5]", "RE[W+R]")
ILLEGAL = "(;GM[1]SZ[9];B[ee];W[ee])"


@pytest.fixture
def archive(tmp_path: Path) -> str:
    path = tmp_path / "games.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name, text in (("a.sgf", GAME), ("b.sgf", COPY), ("c.sgf", CLASH), ("d.sgf", ILLEGAL), ("e.txt", "note")):
            file.writestr(name, text)
    return str(path)


NINE = make_config({"filter": {"sizes": [9]}}, "test")


def test_every_record_of_an_archive_has_its_status(archive: str) -> None:
    found = {facts["member"]: facts for facts in of_records(archive, NINE, Wanted())}
    assert {name: facts["status"] for name, facts in found.items()} == {
        "a.sgf": "kept",
        "b.sgf": "duplicate",
        "c.sgf": "conflicting",
        "d.sgf": "rejected",
        "e.txt": "skipped",
    }
    assert found["d.sgf"]["reason"] == "occupied"
    assert found["d.sgf"]["meaning"] == "illegal move: on a stone"
    assert found["d.sgf"]["move"] == 2
    assert found["b.sgf"]["duplicate_of"] == found["a.sgf"]["game"]
    assert found["e.txt"]["reason"] == "not-a-record"


def test_the_facts_of_a_record(archive: str) -> None:
    (facts,) = of_records(archive, NINE, Wanted(game="games.zip/a.sgf"))
    assert (facts["board_rows"], facts["moves_recorded"], facts["komi"], facts["rules"]) == (9, 2, 6.5, "japanese")
    assert (facts["winner"], facts["margin"], facts["date"]) == ("B", 3.5, "2020-05-01")
    assert facts["raw"]["RU"] == "Japanese"
    text = "\n".join(lines(facts))
    for words in ("games.zip/a.sgf: kept", "9x9", "Ann - Ben", "3d - 2k", "B by 3.5", "2020-05-01", "japanese"):
        assert words in text


def test_the_configuration_decides(archive: str) -> None:
    statuses = {facts["member"]: facts["status"] for facts in of_records(archive, Config(), Wanted())}
    assert (statuses["a.sgf"], statuses["d.sgf"]) == ("filtered", "rejected")
    cut = make_config({"filter": {"sizes": [9]}, "rules": {"illegal": "keep-prefix"}}, "test")
    (facts,) = of_records(archive, cut, Wanted(game="d.sgf"))
    assert facts["status"] == "kept"
    assert facts["flags"] == {"illegal-tail": "the game was cut before an illegal move"} | facts["flags"]
    assert any("illegal-tail" in line for line in lines(facts))


def test_records_are_chosen_by_status(archive: str) -> None:
    assert [facts["member"] for facts in of_records(archive, NINE, Wanted(status="rejected"))] == ["d.sgf"]
    assert list(of_records(archive, NINE, Wanted(game="z.sgf"))) == []


def test_control_characters_reach_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "odd.sgf"
    path.write_text("(;GM[1]SZ[9]PB[\x1b]0;x\x07];B[ee])".replace("]0", "\\]0"))
    for facts in of_records(str(path), NINE, Wanted()):
        assert all(line.isprintable() for line in lines(facts))


def test_a_data_set_answers_as_the_records_do(tmp_path: Path) -> None:
    dataset = open_dataset(build_examples(tmp_path / "out"))
    everything = list(of_dataset(dataset, Wanted()))
    assert len(everything) == dataset.manifest.records.seen
    by_id = list(of_dataset(dataset, Wanted(game=str(everything[3]["game"]))))
    assert by_id == [everything[3]]
    rejected = list(of_dataset(dataset, Wanted(status="rejected")))
    assert len(rejected) == dataset.manifest.records.rejected
    broken = list(of_dataset(dataset, Wanted(game="loose/broken-illegal-move.sgf")))
    assert [(facts["status"], facts["move"]) for facts in broken] == [("rejected", 42)]
    assert all(lines(facts) for facts in everything)
