"""Exported rows read back by a decoder written from the description of the format (SCHEMES.md, 4.9)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from example_builds import build_examples
from shard_rows import make_layout, make_rows

from pipeline.cli import cli
from pipeline.columns import Columns
from pipeline.config import ConfigError
from pipeline.katago_export import export, npz_arrays
from pipeline.load import Dataset, open_dataset

KEYS = {
    "binaryInputNCHWPacked": ("uint8", (22, 46)),
    "globalInputNC": ("float32", (19,)),
    "policyTargetsNCMove": ("int16", (2, 362)),
    "globalTargetsNC": ("float32", (64,)),
    "scoreDistrN": ("int8", (842,)),
    "valueTargetsNCHW": ("int8", (5, 19, 19)),
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("katago") / "examples"
    build_examples(folder, encode={"scheme": "katago_v7"})
    return open_dataset(folder)


def decoded(arrays: Any, row: int) -> dict[str, Any]:
    """Return what KataGo's trainer makes of a row: targets that have a weight, None for those that have none."""
    targets = arrays["globalTargetsNC"][row]
    weights = {
        "td": 1 - targets[24], "row": targets[25], "move": targets[26], "ownership": targets[27], "reply": targets[28],
        "lead": targets[29], "later": targets[33], "area": targets[34], "value": 1 - targets[35],
    }  # fmt: skip
    policy = arrays["policyTargetsNCMove"][row].astype(np.float64)
    pieces = [(41, 22), (42, 22), (43, 20)], [(44, 22), (45, 22), (46, 20)]
    words = []
    for half in pieces:
        word = shift = 0
        for place, bits in half:
            assert targets[place] == int(targets[place]) < 1 << bits
            word |= int(targets[place]) << shift
            shift += bits
        words.append(word)
    return {
        "weights": weights,
        "planes": np.unpackbits(arrays["binaryInputNCHWPacked"][row], axis=-1)[:, :361].reshape(22, 19, 19),
        "move": policy[0] / policy[0].sum(),
        "reply": policy[1] / policy[1].sum(),
        "value": targets[0:3] if weights["value"] else None,
        "score": targets[20],
        "distribution": arrays["scoreDistrN"][row].astype(np.int64),
        "history": targets[36:41].tolist(),
        "hash": words,
        "self_komi": targets[47],
        "area_like": targets[48],
        "turn": targets[51],
        "mode": targets[55],
        "finished": targets[62],
        "format": targets[63],
    }


def check_row(found: dict[str, Any], stored: dict[str, Any], max_weight: float = np.inf) -> None:
    """Compare a decoded row with the row of the data set."""
    for name in ("td", "ownership", "reply", "lead", "later", "area"):
        assert found["weights"][name] == 0, name
    assert found["weights"]["move"] == 1
    assert found["weights"]["row"] == min(stored["weight"], max_weight)
    np.testing.assert_array_equal(found["planes"], stored["planes"])
    np.testing.assert_allclose(found["move"], stored["policy"], atol=1e-4)
    assert (found["reply"] == found["reply"][0]).all()
    if np.isnan(stored["value"]):
        assert found["value"] is None
        assert found["finished"] == 0
    else:
        won, lost, nothing = found["value"]
        assert (won - lost, won + lost, nothing) == pytest.approx((stored["value"], 1, 0))
        assert found["finished"] == 1
    assert found["distribution"].sum() == 100
    assert found["distribution"].min() >= 0
    score = 0.0 if np.isnan(stored["score"]) else float(stored["score"])
    assert found["score"] == score
    points = np.arange(842) - 361 - 60 + 0.5
    assert (found["distribution"] * points).sum() / 100 == pytest.approx(score, abs=0.01)
    assert np.flatnonzero(found["distribution"]).max() - np.flatnonzero(found["distribution"]).min() <= 1
    assert found["history"] == [1] * 5
    assert found["hash"][0] == stored["game"]
    assert found["self_komi"] == pytest.approx(20 * stored["globals"][5], rel=1e-6)
    assert found["area_like"] == (not stored["globals"][9] or bool(stored["globals"][13]))
    assert (found["turn"], found["mode"], found["format"]) == (stored["ply"], 4, 2)


def test_a_thousand_rows(dataset: Dataset, tmp_path: Path) -> None:
    """Keys, dtypes and shapes exactly; planes and numbers those of the data set; every row decoded."""
    done = export(dataset, tmp_path / "out", rows=1000, rows_per_file=300)
    assert done.files == {f"data-{number:05d}.npz": rows for number, rows in enumerate((300, 300, 300, 100))}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == list(done.files)
    rows = dataset.mapped(dtype="uint8", policy="counts")
    first = 0
    games: dict[int, int] = {}
    for name, count in done.files.items():
        with np.load(tmp_path / "out" / name) as file:
            arrays = {key: file[key] for key in file.files}
        assert {key: (values.dtype.name, values.shape[1:]) for key, values in arrays.items()} == KEYS
        assert {len(values) for values in arrays.values()} == {count}
        packed = dataset.mapped()[range(first, first + count)]
        assert (arrays["binaryInputNCHWPacked"] == packed["planes"]).all()
        assert (arrays["globalInputNC"] == packed["globals"]).all()
        assert (arrays["valueTargetsNCHW"] == 0).all()
        for row in range(count):
            found = decoded(arrays, row)
            check_row(found, rows[first + row])
            assert games.setdefault(found["hash"][0], found["hash"][1]) == found["hash"][1]
        first += count
    assert len(set(games.values())) == len(games) > 10


def made_up(count: int, aggregate: bool) -> Columns:
    """Return rows of 22 planes and 19 numbers."""
    layout = make_layout(
        planes=tuple(f"plane_{number}" for number in range(22)),
        global_names=tuple(f"number_{number}" for number in range(19)),
        aggregate=aggregate,
    )
    return make_rows(count, layout)


@pytest.mark.parametrize("aggregate", [False, True])
def test_values_scores_and_counts(aggregate: bool) -> None:
    """Known and unknown, whole and half, beyond the board; counts beyond 16 bits; weights cut."""
    stored = made_up(8, aggregate)
    stored["value"] = np.array([1, -1, 0, np.nan, 0.5, -0.25, 1, np.nan], dtype=np.float32)
    stored["score"] = np.array([0.5, -7, np.nan, 12, 360.5, -421.5, 9999, -9999], dtype=np.float32)
    stored["weight"] = np.array([1, 2, 3, 0.25, 100, 5, 6, 7], dtype=np.float32)
    if aggregate:
        stored["policy_moves"] = np.arange(16, dtype=np.int16) % 2 + 360
        stored["policy_offsets"] = np.arange(0, 17, 2)
        stored["policy_counts"] = np.array([1, 3, 32767, 1, 32768, 32768, 2**32 - 1, 1, *[1] * 8], dtype=np.uint32)
    arrays = npz_arrays(stored, 19, max_weight=4)
    for row in range(8):
        policy = np.zeros(362)
        if aggregate:
            counts = stored["policy_counts"][2 * row : 2 * row + 2]
            policy[360:] = counts / counts.sum()
            assert (arrays["policyTargetsNCMove"][row, 0] > 0).sum() == 2
        else:
            policy[stored["move"][row]] = 1
        planes = np.unpackbits(stored["planes"][row], axis=-1, count=361).reshape(22, 19, 19)
        found = decoded(arrays, row)
        one = {name: stored[name][row] for name in ("value", "weight", "globals", "game", "ply", "score")}
        if row >= 5:  # more points than there are places: the outermost
            assert found["distribution"][841 if one["score"] > 0 else 0] == 100
            assert found["score"] == one["score"]
            continue
        check_row(found, {**one, "planes": planes, "policy": policy}, max_weight=4)


def test_what_cannot_be_exported(dataset: Dataset, tmp_path: Path) -> None:
    build_examples(tmp_path / "zero", encode={"scheme": "agz17"})
    with pytest.raises(ConfigError, match="has the scheme agz17; KataGo reads katago_v7"):
        export(open_dataset(tmp_path / "zero"), tmp_path / "out")
    manifest = dataset.manifest
    fewer = manifest.scheme.model_copy(update={"planes": manifest.scheme.planes[:-1]})
    with pytest.raises(ConfigError, match="does not have all planes of katago_v7"):
        export(Dataset(dataset.folder, manifest.model_copy(update={"scheme": fewer})), tmp_path / "out")
    oblong = manifest.model_copy(update={"frame": (19, 13)})
    with pytest.raises(ConfigError, match="has a frame of 19x13"):
        export(Dataset(dataset.folder, oblong), tmp_path / "out")
    with pytest.raises(ConfigError, match="lies in the data set"):
        export(dataset, dataset.folder / "train" / "npz")
    with pytest.raises(ConfigError, match="both are at least 1"):
        export(dataset, tmp_path / "out", rows=0)
    for weight in (float("nan"), 0.0, float("inf")):
        with pytest.raises(ConfigError, match="the largest weight has to be a number above 0"):
            export(dataset, tmp_path / "out", max_weight=weight)
    empty = dataset.manifest.model_copy(update={"shards": ()})
    with pytest.raises(ConfigError, match="has no rows in val"):
        export(Dataset(dataset.folder, empty), tmp_path / "out", split="val")
    with pytest.raises(OSError, match=f"{tmp_path}/no/out"):
        export(dataset, tmp_path / "no" / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(ConfigError, match="is there already"):
        export(dataset, tmp_path / "full")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "zero"]


def test_nothing_is_left_of_an_export_that_failed(dataset: Dataset, tmp_path: Path, monkeypatch: Any) -> None:
    def full(*arguments: Any, **arrays: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipeline.katago_export.np.savez_compressed", full)
    with pytest.raises(OSError, match="No space left on device"):
        export(dataset, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_same_bytes_each_time(dataset: Dataset, tmp_path: Path) -> None:
    for name in ("a", "b"):
        export(dataset, tmp_path / name, split="val", rows=50)
    one, two = ((tmp_path / name / "data-00000.npz").read_bytes() for name in ("a", "b"))
    assert one == two


def test_the_command(dataset: Dataset, tmp_path: Path) -> None:
    runner = CliRunner()
    arguments = ["export", "katago", str(dataset.folder), str(tmp_path / "out"), "--rows", "70"]
    result = runner.invoke(cli, [*arguments, "--rows-per-file", "40", "--max-weight", "2", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "folder": str(tmp_path / "out"),
        "rows": 70,
        "files": {"data-00000.npz": 40, "data-00001.npz": 30},
    }
    with np.load(tmp_path / "out" / "data-00000.npz") as file:
        assert file["globalTargetsNC"][:, 25].max() <= 2
    again = runner.invoke(cli, arguments)
    assert again.exit_code == 2
    assert "is there already: choose another folder" in again.stderr
    assert runner.invoke(cli, ["export", "leela", str(dataset.folder), str(tmp_path / "x")]).exit_code == 2
