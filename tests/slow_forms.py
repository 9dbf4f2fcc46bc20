"""What a trainer gets of a row, worked out row by row and point by point from what is stored."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.columns import Columns, Layout
from pipeline.symmetry import compose, image_point


def turned_move(move: int, size: tuple[int, int], frame_cols: int, turn: int) -> int:
    """Return where a move goes; a pass stays what it is."""
    row, col = divmod(move, frame_cols)
    if row >= size[0] or col >= size[1]:
        return move
    row, col = image_point(row, col, *size, turn)
    return row * frame_cols + col


def turned_row(stored: Columns, facts: Layout, row: int, turn: int) -> dict[str, Any]:
    """Return a row turned: its planes uint8[P, H, W], its move, its policy {move: count} and the other columns."""
    height, width = facts.frame
    size = int(stored["rows"][row]), int(stored["cols"][row])
    planes = np.zeros((len(facts.planes), height, width), dtype=np.uint8)
    for plane in range(len(facts.planes)):
        bits = np.unpackbits(stored["planes"][row, plane], count=facts.area)
        for point in np.flatnonzero(bits).tolist():
            planes[plane].reshape(-1)[turned_move(point, size, width, turn)] = 1
    found = {name: values[row] for name, values in stored.items() if not name.startswith("policy_")}
    found |= {
        "planes": planes,
        "move": turned_move(int(stored["move"][row]), size, width, turn),
        "symmetry": compose(int(stored["symmetry"][row]), turn),
    }
    if facts.aggregate:
        start, stop = stored["policy_offsets"][row : row + 2]
        moves, counts = stored["policy_moves"][start:stop].tolist(), stored["policy_counts"][start:stop].tolist()
        found["policy"] = {
            turned_move(move, size, width, turn): count for move, count in zip(moves, counts, strict=True)
        }
    else:
        found["policy"] = {found["move"]: 1}
    return found


def unpacked(planes: NDArray[np.uint8], facts: Layout, dtype: str, order: str) -> NDArray[np.uint8]:
    """Return the planes [P, H, W] of a row of a batch in any form."""
    if dtype == "packed":
        return np.unpackbits(planes, axis=-1, count=facts.area).reshape(len(facts.planes), *facts.frame)
    return (planes if order == "NCHW" else np.moveaxis(planes, -1, 0)).astype(np.uint8)
