"""The house keeps its shape: imports point up one list, and every module has its place in it."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pipeline"

# From the ground up: a module may import only what stands before it.
_LIST = """
    reasons values config settings machine files pieces coordinates jit words symmetry
    charsets text membernames scan rules headers.numbers headers.size headers.komi headers.result headers.handicap
    headers.rank headers.date dialects vendor trees nodes properties
    board zobrist games replay gamekeys faults trace
    spotset passalive areas eyes ladder_search ladder_answers ladders ladders_alphago whatif
    katago_history katago_moves katago_globals katago
    streams tars zips unpacker libarchives archives sources mainline handicaps game plain parse genre weights
    filters table ordering stored read
    traces
    planes.group planes.stones planes.constants planes.liberties planes.ko planes.recent planes.moves planes.edges
    planes.eyes planes.katago planes.ladders planes.areas planes.terms planes.legality
    schemes compose encode keys augment unpack position
    columns parquet_format shard_parquet shard_hdf5 shard manifest epochs forms part lookup prefetch load torch_data
    dedup near sampled compare decide claims labels blocks mixing rows steps gamestages positionstages
    growth workfolder fence dask_pool executors progress warm card publish stages rebuild build compact
    report summary gamefile gametable rowcheck expected recount verify sheet show explain rejects plan stats statlines
    katago_export arguments exits cli __main__
"""
ORDER = _LIST.split()


def modules() -> list[str]:
    names = [path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".") for path in PACKAGE.rglob("*.py")]
    return sorted(name for name in names if not name.endswith("__init__"))


def imports(name: str) -> set[str]:
    """Return the modules of the package that a module imports, at the top or inside a function."""
    path = PACKAGE / (name.replace(".", "/") + ".py")
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: relative import"
            if node.module and node.module.split(".")[0] == "pipeline":
                base = node.module.removeprefix("pipeline").strip(".")
                candidates = [f"{base}.{alias.name}".strip(".") for alias in node.names]
                found |= {name if name in ORDER else base for name in candidates} - {""}
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("pipeline.")]
            found |= {name.removeprefix("pipeline.") for name in names}
    return found


def test_every_module_has_its_place() -> None:
    assert modules() == sorted(ORDER)


def test_the_map_shows_the_same_list() -> None:
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text("utf-8")
    cells = re.findall(r"^\| [a-z ]+ \| (`[^|]*`) \|", text, re.MULTILINE)
    named = [name.strip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert named == list(dict.fromkeys(name.split(".")[0] for name in ORDER if name != "__main__"))


@pytest.mark.parametrize("name", ORDER)
def test_imports_point_up(name: str) -> None:
    before = set(ORDER[: ORDER.index(name)])
    wrong = {other for other in imports(name) if other != "presets" and other not in before}
    assert not wrong, f"{name} imports {sorted(wrong)}, which stand below it"


def test_one_module_imports_sgfmill() -> None:
    trees = {name: ast.parse((PACKAGE / (name.replace(".", "/") + ".py")).read_text("utf-8")) for name in modules()}
    users = [name for name, tree in trees.items() if any(_imports_sgfmill(node) for node in ast.walk(tree))]
    assert users == ["trees"]


def _imports_sgfmill(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "sgfmill"
    return isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "sgfmill" for alias in node.names)
