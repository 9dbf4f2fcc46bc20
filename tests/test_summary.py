"""What inspect, schemes and init say."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from example_builds import build_examples

from pipeline.compose import compose
from pipeline.config import Config, make_config
from pipeline.load import open_dataset
from pipeline.manifest import GrowthEntry
from pipeline.schemes import SCHEMES, scheme_options
from pipeline.summary import (
    all_scheme_lines,
    changed_keys,
    dataset_facts,
    dataset_lines,
    scheme_facts,
    scheme_lines,
    template,
)


def test_the_template_is_the_default_configuration_and_names_every_key() -> None:
    text = template()
    assert make_config(tomllib.loads(text), "template") == Config()
    lines = text.splitlines()
    for table, model in Config().model_dump().items():
        assert f"[{table}]" in lines
        for key in model:
            assert any(line.startswith((f"{key} = ", f"# {key} =")) for line in lines), key


def test_the_template_says_a_line_on_every_key() -> None:
    lines = template().splitlines()
    settings = [number for number, line in enumerate(lines) if " =" in line and not line.startswith("# board sizes")]
    assert all(lines[number - 1].startswith("# ") and "None" not in lines[number - 1] for number in settings)
    assert any('"first" | "longest"' in line for line in lines)


def test_only_changed_keys_are_told() -> None:
    config = make_config({"filter": {"sizes": [9, "5x9"]}, "split": {"val": 0.2}}, "test")
    assert dict(changed_keys(config.published())) == {"filter.sizes": [[9, 9], [5, 9]], "split.val": 0.2}
    assert list(changed_keys(Config().published())) == []


def test_a_data_set_in_numbers(tmp_path: Path) -> None:
    dataset = open_dataset(build_examples(tmp_path / "out", encode={"scheme": "board"}, split={"val": 0.3}))
    facts = dataset_facts(dataset)
    assert facts["rows"] == sum(part["rows"] for part in facts["parts"].values()) == dataset.manifest.positions.stored
    assert facts["bytes"] == sum(file.stat().st_size for file in (tmp_path / "out").glob("*/shard-*"))
    assert facts["config"] == {"encode.scheme": "board", "split.val": 0.3}
    text = "\n".join(dataset_lines(dataset))
    assert "board version 1, 3 planes on a frame of 19x19" in text
    assert "all add up" in text
    assert facts["growths"] == []


def test_growths_of_a_data_set(tmp_path: Path) -> None:
    dataset = open_dataset(build_examples(tmp_path / "out", encode={"scheme": "board"}))
    counts = {"inputs": 1, "records": 3, "kept": 2, "seen": 9, "stored": 5, "left_out": 1, "stale": 1}
    dataset = replace(dataset, manifest=dataset.manifest.model_copy(update={"growths": (GrowthEntry(**counts),)}))
    assert dataset_facts(dataset)["growths"] == [counts]
    text = dataset_lines(dataset)
    assert "growth 1      1 input, 3 records, 2 games, 5 positions stored, 1 repeat left out" in text


@pytest.mark.parametrize("name", list(SCHEMES))
def test_every_plane_of_a_scheme_is_listed(name: str) -> None:
    scheme = SCHEMES[name]
    facts, lines = scheme_facts(scheme), scheme_lines(scheme)
    assert [plane["name"] for plane in facts["planes"]] == list(scheme.plane_names)
    assert [plane["index"] for plane in facts["planes"]] == list(range(len(scheme.planes)))
    for number, plane in enumerate(scheme.planes):
        assert any(line.split()[:2] == [str(number), plane.name] and plane.meaning in line for line in lines)
    assert any(line.split()[0] == name for line in all_scheme_lines())
    words = next(line for line in lines if line.startswith("mover: "))
    assert all(f"{plane.perspective}: " in words for plane in scheme.planes)


@pytest.mark.parametrize("name", list(SCHEMES))
def test_globals_and_options_of_a_scheme_are_listed(name: str) -> None:
    scheme, options = SCHEMES[name], scheme_options(name)
    facts, lines = scheme_facts(scheme), scheme_lines(scheme)
    assert [each["name"] for each in facts["globals"]] == list(scheme.global_names)
    for number, each in enumerate(scheme.globals):
        assert any(line.split()[:2] == [str(number), each.name] and each.meaning in line for line in lines)
    assert facts["options"] == {option.name: option.values[0] for option in options}
    for option in options:
        choices = " | ".join(json.dumps(value) for value in option.values)
        assert any(line.startswith(f"  {option.name} = {choices} ") and option.meaning in line for line in lines)
    assert any("encode.options" in line for line in lines) == bool(options)


def listed_groups() -> list[str]:
    """Return the lines on the groups that a scheme can be composed of."""
    lines = all_scheme_lines()
    return lines[lines.index("") + 2 :]


def test_every_group_is_listed_as_it_is_asked_for() -> None:
    with pytest.raises(ValueError, match="known are ") as refused:
        compose(["nothing"])
    assert [line.split()[0] for line in listed_groups()] == str(refused.value).split("known are ")[1].split(", ")
    for line in listed_groups():
        name, number = line.split()[0], re.search(r"\(N = (\d+) unless written, (\d+) at most\)$", line)
        if number:
            assert compose([f"{name}={number[1]}"]).planes == compose([name]).planes
            assert compose([f"{name}={number[2]}"]).planes != compose([name]).planes
            with pytest.raises(ValueError, match=f"1 to {number[2]}"):
                compose([f"{name}={int(number[2]) + 1}"])
            with pytest.raises(ValueError, match=f"1 to {number[2]}"):
                compose([f"{name}=00019999"])
        else:
            with pytest.raises(ValueError, match="takes no number"):
                compose(["ones", f"{name}=1"])


def test_one_thing_is_not_called_many() -> None:
    composed = [compose([line.split()[0], "ones"]) for line in listed_groups() if not line.startswith("ones ")]
    for scheme in [*SCHEMES.values(), *composed]:
        for each in (*scheme.planes, *scheme.globals):
            assert not re.search(
                r"\b1 (turns|stones|liberties|lines)\b|\b([02-9]|more) (turn|stone|liberty|line)\b", each.meaning
            )
