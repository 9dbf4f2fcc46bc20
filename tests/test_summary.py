"""What inspect, schemes and init say."""

import tomllib
from pathlib import Path

import pytest
from example_builds import build_examples

from pipeline.config import Config, make_config
from pipeline.load import open_dataset
from pipeline.schemes import SCHEMES
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
