"""Made-up rows for the tests of shards, the manifest and the loader."""

from typing import Any

import numpy as np

from pipeline.columns import Columns, Layout, describe
from pipeline.manifest import Manifest

PLANES = ("own", "opp", "ko")


def make_layout(
    file_format: str = "parquet",
    *,
    frame: tuple[int, int] = (19, 19),
    planes: tuple[str, ...] = PLANES,
    global_names: tuple[str, ...] = (),
    **facts: Any,
) -> Layout:
    description = describe("made_up", 1, {}, planes, global_names, frame)
    return Layout(
        format=file_format, frame=frame, planes=planes, globals=global_names, description=description, **facts
    )


def make_rows(count: int, layout: Layout, seed: int = 0) -> Columns:
    """Return ``count`` rows with every value in its range; about a third of the nullable values are NaN."""
    rng = np.random.default_rng(seed)
    dense = rng.random((count, len(layout.planes), layout.area)) < 0.2
    lengths = rng.integers(1, 4, count)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    unknown = rng.random((3, count)) < 0.3
    columns: Columns = {
        "planes": np.packbits(dense, axis=-1),
        "globals": rng.standard_normal((count, len(layout.globals))).astype(np.float32),
        "move": rng.integers(0, layout.area + 1, count).astype(np.int16),
        "policy_moves": rng.integers(0, layout.area + 1, int(offsets[-1])).astype(np.int16),
        "policy_counts": rng.integers(1, 9, int(offsets[-1])).astype(np.uint32),
        "policy_offsets": offsets,
        "value": np.where(unknown[0], np.nan, rng.choice([-1, 0, 1], count)).astype(np.float32),
        "wins": rng.integers(0, 3, count).astype(np.uint32),
        "draws": rng.integers(0, 3, count).astype(np.uint32),
        "losses": rng.integers(0, 3, count).astype(np.uint32),
        "weight": rng.integers(1, 5, count).astype(np.float32),
        "score": np.where(unknown[1], np.nan, rng.integers(-9, 9, count) + 0.5).astype(np.float32),
        "to_play": rng.integers(1, 3, count).astype(np.int8),
        "komi": np.where(unknown[2], np.nan, 7.5).astype(np.float32),
        "rows": np.full(count, layout.frame[0], np.uint8),
        "cols": np.full(count, layout.frame[1], np.uint8),
        "symmetry": rng.integers(0, 8, count).astype(np.uint8),
        "game": rng.integers(0, 2**64, count, dtype=np.uint64),
        "ply": rng.integers(0, 65_536, count).astype(np.uint16),
        "key": rng.integers(0, 2**64, count, dtype=np.uint64),
        "key_hi": rng.integers(0, 2**64, count, dtype=np.uint64),
    }
    return {name: columns[name] for name in layout.names}


def make_manifest(shards: list[dict[str, Any]], layout: Layout) -> Manifest:
    """Return a manifest whose sums hold: every row of the shards is a position of one kept game a shard."""
    rows = {split: sum(s["rows"] for s in shards if s["split"] == split) for split in ("train", "val", "test")}
    positions = sum(rows.values())
    facts = {
        "format_version": 1,
        "software": "goplanes 0.0.1",
        "scheme": {
            "name": "made_up",
            "version": 1,
            "options": {},
            "planes": layout.planes,
            "globals": layout.globals,
        },
        "frame": layout.frame,
        "storage": {
            "format": layout.format,
            "packed": layout.packed,
            "aggregate": layout.aggregate,
            "key_bits": layout.key_bits,
        },
        "config": {"augment": {"mode": "none"}},
        "fingerprints": {"config": "0" * 32, "inputs": "1" * 32},
        "inputs": ({"source": "made-up.zip", "bytes": 10, "sha256": "2" * 64},),
        "members": {"seen": 9, "with_records": 7, "skipped": 1, "refused": 1},
        "omitted": (
            {"source": "made-up.zip", "member": ".a", "status": "skipped", "reason": "hidden", "detail": ""},
            {"source": "b.zip", "member": None, "status": "refused", "reason": "damaged-archive", "detail": "x"},
        ),
        "records": {"seen": 15, "kept": 5, "duplicate": 1, "conflicting": 2, "filtered": 3, "rejected": 4},
        "reasons": {"too-short": 3, "ko": 4},
        "flags": {"size-assumed": 2},
        "positions": {"seen": positions + 6, "stored": positions, "merged": 1, "overlap": 2, "sampled_out": 3},
        "rows": rows,
        "shards": tuple(shards),
        "games": {"path": "games.parquet", "bytes": 1, "sha256": "3" * 64},
    }
    return Manifest.model_validate(facts)
