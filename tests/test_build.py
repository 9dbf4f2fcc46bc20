"""One call from a configuration to a data set."""

from pathlib import Path
from typing import Any

import pytest
from example_builds import EXAMPLES

import pipeline
from pipeline.config import Config, make_config


def config(output: Path) -> Config:
    tables = {"input": {"paths": [str(EXAMPLES)]}, "output": {"path": str(output)}, "run": {"workers": 0}}
    return make_config(tables, "test")


@pytest.mark.parametrize("wrong", ["my.toml", {"input": {"paths": ["games.zip"]}}, None])
def test_anything_but_a_configuration_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"make_config\), not a {type(wrong).__name__}"):
        pipeline.build(wrong)


def test_what_a_run_did_is_told_apart_from_what_was_done_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pipeline.build(config(tmp_path / "whole"))
    manifest = whole.manifest
    stored = sum(shard.rows for shard in manifest.shards)
    seen = manifest.records.seen, manifest.positions.seen
    assert whole.done == {"read": seen[0], "index": seen[1], "encode": stored}

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipeline.stages.publish", stop)
        with pytest.raises(KeyboardInterrupt):
            pipeline.build(config(tmp_path / "resumed"))
    resumed = pipeline.build(config(tmp_path / "resumed"))
    assert resumed.done == {"read": 0, "index": seen[1], "encode": 0}
    assert pipeline.build(config(tmp_path / "resumed")).done == {}
