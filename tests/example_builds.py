"""Data sets of the example games, for the tests of what looks at data sets."""

from pathlib import Path
from typing import Any

from pipeline.build import build
from pipeline.config import make_config

EXAMPLES = Path(__file__).parents[1] / "examples" / "games"


def build_examples(folder: Path, **tables: dict[str, Any]) -> Path:
    """Build the example games in this process under the given tables of keys; return the folder."""
    tables = {**tables}
    tables["input"] = {**tables.get("input", {}), "paths": [str(EXAMPLES)]}
    tables["output"] = {**tables.get("output", {}), "path": str(folder)}
    tables["run"] = {"workers": 0}
    return build(make_config(tables, "test")).path


def published_files(folder: Path) -> dict[str, bytes]:
    """Return every published file of a data set."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".goplanes" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
