"""The symmetries applied: to packed planes, moves and dense policies; and the averaged prediction.

Numbers and composition of the symmetries are in ``symmetry.py``. A symmetry acts on the board's
rectangle, which is put back into the top-left corner of the frame.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.jit import kernel

_MASKS = np.array([0x0000FFFF, 0x00FF00FF, 0x0F0F0F0F, 0x33333333, 0x55555555], dtype=np.uint32)


@kernel
def _load_lines(plane, rows, cols, frame_cols, lines):
    """Read the board's lines: column c of line r is bit 31 - c of ``lines[r]``; lines below are 0."""
    keep = np.uint32(0xFFFFFFFF) << np.uint32(32 - cols)
    window, have, byte = np.uint64(0), 0, 0
    for row in range(rows):
        while have < frame_cols:
            window = (window << np.uint64(8)) | np.uint64(plane[byte])
            have += 8
            byte += 1
        have -= frame_cols
        lines[row] = np.uint32((window >> np.uint64(have)) << np.uint64(32 - frame_cols)) & keep
    lines[rows:] = np.uint32(0)


@kernel
def _store_lines(lines, rows, frame_cols, plane):
    """Write lines as ``_load_lines`` reads them into a zeroed plane."""
    window, have, byte = np.uint64(0), 0, 0
    for row in range(rows):
        window = (window << np.uint64(frame_cols)) | np.uint64(lines[row] >> np.uint32(32 - frame_cols))
        have += frame_cols
        while have >= 8:
            have -= 8
            plane[byte] = np.uint8((window >> np.uint64(have)) & np.uint64(0xFF))
            byte += 1
    if have > 0:
        plane[byte] = np.uint8((window << np.uint64(8 - have)) & np.uint64(0xFF))


@kernel
def _reverse_columns(lines, rows, cols):
    """Flip each line: reverse all 32 bits by exchanging ever smaller halves, then move back to the left."""
    for row in range(rows):
        line = lines[row]
        for step in range(5):
            shift, mask = np.uint32(16 >> step), _MASKS[step]
            line = ((line >> shift) & mask) | ((line & mask) << shift)
        lines[row] = line << np.uint32(32 - cols)


@kernel
def _transpose_lines(lines):
    """Transpose a 32 x 32 bit matrix in five rounds of block exchanges (Hacker's Delight, 7-3)."""
    width = 16
    for step in range(5):
        shift, mask = np.uint32(width), _MASKS[step]
        for base in range(0, 32, 2 * width):
            for k in range(base, base + width):
                change = (lines[k] ^ (lines[k + width] >> shift)) & mask
                lines[k] ^= change
                lines[k + width] ^= change << shift
        width >>= 1


@kernel
def _turn_planes(planes, rows, cols, frame_cols, turns, lines, out):
    """Turn each row into ``out``, which is 0 before."""
    for i in range(planes.shape[0]):
        turn, height, width = np.int64(turns[i]), np.int64(rows[i]), np.int64(cols[i])
        if turn == 0:
            for plane in range(planes.shape[1]):
                for byte in range(planes.shape[2]):
                    out[i, plane, byte] = planes[i, plane, byte]
            continue
        for plane in range(planes.shape[1]):
            some = np.uint8(0)
            for byte in range(planes.shape[2]):
                some |= planes[i, plane, byte]
            if some == 0:
                continue  # as a third of the planes of many schemes are
            _load_lines(planes[i, plane], height, width, frame_cols, lines)
            if turn & 1:
                for row in range(height // 2):
                    lines[row], lines[height - 1 - row] = lines[height - 1 - row], lines[row]
            if turn & 2:
                _reverse_columns(lines, height, width)
            if turn & 4:
                _transpose_lines(lines)
            _store_lines(lines, height, frame_cols, out[i, plane])


def turn_planes(
    planes: NDArray[np.uint8],
    rows: NDArray[np.uint8],
    cols: NDArray[np.uint8],
    frame_cols: int,
    turns: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """Return packed planes uint8[N, P, B] turned row by row by the symmetries ``turns`` uint8[N].

    ``rows`` and ``cols`` uint8[N] are the boards' sizes. Raises ValueError where a board that is not square is to be
    transposed.
    """
    symmetry.require_turns(rows, cols, turns)
    out = np.zeros_like(planes)
    _turn_planes(planes, rows, cols, frame_cols, turns, np.zeros(32, dtype=np.uint32), out)
    return out


def turn_moves(
    moves: NDArray[Any],
    rows: NDArray[np.uint8],
    cols: NDArray[np.uint8],
    frame_cols: int,
    turns: NDArray[np.uint8],
) -> NDArray[np.int64]:
    """Return frame indices int64[N] turned by ``turns``; a pass (any index off the board) stays as it is."""
    index = moves.astype(np.int64)
    height, width = rows.astype(np.int64), cols.astype(np.int64)
    row, col = index // frame_cols, index % frame_cols
    passes = (row >= height) | (col >= width)
    row = np.where(turns & 1, height - 1 - row, row)
    col = np.where(turns & 2, width - 1 - col, col)
    row, col = np.where(turns & 4, col, row), np.where(turns & 4, row, col)
    return np.where(passes, index, row * frame_cols + col)


def turned_policy(
    columns: Mapping[str, NDArray[Any]], frame_cols: int, turns: NDArray[np.uint8]
) -> dict[str, NDArray[Any]]:
    """Return ``policy_moves`` and ``policy_counts`` of rows turned one by one, the moves of each in rising order again.

    ``columns`` has these, ``policy_offsets``, ``rows`` and ``cols``.
    """
    lengths = np.diff(columns["policy_offsets"])
    row = np.repeat(np.arange(len(lengths)), lengths)
    moves = turn_moves(columns["policy_moves"], columns["rows"][row], columns["cols"][row], frame_cols, turns[row])
    order = np.lexsort((moves, row))
    return {"policy_moves": moves[order].astype(np.int16), "policy_counts": columns["policy_counts"][order]}


def turn_dense(planes: NDArray[Any], turn: int) -> NDArray[Any]:
    """Return planes [..., H, W] turned by one symmetry (the whole frame is the board)."""
    if turn & 1:
        planes = planes[..., ::-1, :]
    if turn & 2:
        planes = planes[..., ::-1]
    if turn & 4:
        planes = np.swapaxes(planes, -1, -2)
    return np.ascontiguousarray(planes)


def turn_policy(policy: NDArray[Any], turn: int, rows: int, cols: int) -> NDArray[Any]:
    """Return a dense policy [..., rows * cols + 1] (pass last) turned by one symmetry."""
    points = policy[..., :-1].reshape(*policy.shape[:-1], rows, cols)
    turned = turn_dense(points, turn).reshape(*policy.shape[:-1], rows * cols)
    return np.concatenate([turned, policy[..., -1:]], axis=-1)


def augment(planes: NDArray[Any], policy: NDArray[Any], value: float) -> list[tuple[NDArray[Any], NDArray[Any], float]]:
    """Return all images of one dense position: (planes [P, H, W], policy [H * W + 1], value) each.

    Image number s is the input turned by symmetry s: 8 of a square board, 4 of a rectangle. The
    value never changes.
    """
    rows, cols = planes.shape[-2:]
    if policy.shape != (rows * cols + 1,):
        raise ValueError(f"the policy of a {rows}x{cols} board has {rows * cols + 1} entries, not {policy.shape}")
    turns = range(symmetry.count(rows, cols))
    return [(turn_dense(planes, turn), turn_policy(policy, turn, rows, cols), value) for turn in turns]


def predict_with_symmetry(
    model: Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]], planes: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a model's (policy [N, H * W + 1], value [N]) averaged over all symmetries.

    ``model`` takes planes [N, P, H, W] and returns policy and value; each image's policy is turned back
    before averaging. ``planes`` may be one position [P, H, W]; then the results have no first axis.
    Raises ValueError for planes of another shape, and for a policy that does not fit them.
    """
    if planes.ndim not in {3, 4}:
        raise ValueError(
            f"planes must be [P, H, W] or [N, P, H, W], not {list(planes.shape)} (np.unpackbits unpacks packed ones)"
        )
    single = planes.ndim == 3
    batch = planes[np.newaxis] if single else planes
    rows, cols = batch.shape[-2:]
    turns = symmetry.count(rows, cols)
    policies, values = [], []
    for turn in range(turns):
        policy, value = model(turn_dense(batch, turn))
        policy = np.asarray(policy)
        if policy.shape != (len(batch), rows * cols + 1):
            expected = f"[{len(batch)}, {rows * cols + 1}] for {len(batch)} boards of {rows}x{cols}"
            raise ValueError(f"the model's policy is {list(policy.shape)}, not {expected} (are the planes packed?)")
        policies.append(turn_policy(policy, symmetry.INVERSE[turn], rows, cols))
        values.append(np.asarray(value))
    policy, value = np.mean(policies, axis=0), np.mean(values, axis=0)
    return (policy[0], value[0]) if single else (policy, value)
