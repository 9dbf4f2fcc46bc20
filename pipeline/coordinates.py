"""Points in letters and numbers, both ways, and the star points.

Letters are columns from the left without I, numbers are rows from the bottom. The corners of 19x19:

==========  ============  ==========  =========
human       (row, col)    point       SGF
==========  ============  ==========  =========
A19         (0, 0)        0           aa
T19         (0, 18)       18          sa
A1          (18, 0)       342         as
T1          (18, 18)      360         ss
D4          (15, 3)       288         dp
pass        none          361         empty
==========  ============  ==========  =========
"""

LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
PASS = "pass"


def point_name(point: int, rows: int, cols: int) -> str:
    """Return the human name of ``point`` = row * cols + col; a pass (rows * cols) is "pass".

    Raises ValueError where the board has no such point.
    """
    if point == rows * cols:
        return PASS
    if not 0 <= point < rows * cols:
        raise ValueError(f"a {rows}x{cols} board has points 0 to {rows * cols - 1}, not {point}")
    row, col = divmod(point, cols)
    return f"{LETTERS[col]}{rows - row}"


def named_point(name: str, rows: int, cols: int) -> int:
    """Return row * cols + col of a human name in any case, rows * cols for "pass".

    Raises ValueError where the name is none or lies off the board.
    """
    text = name.strip().upper()
    if text == PASS.upper():
        return rows * cols
    if len(text) < 2 or text[0] not in LETTERS or not text[1:].isascii() or not text[1:].isdecimal():
        raise ValueError(f"not a point: {name!r} (write a letter without I and a number, e.g. D4)")
    row, col = rows - int(text[1:4]), LETTERS.index(text[0])
    if len(text) > 4 or not (0 <= row < rows and col < cols):
        raise ValueError(f"{name!r} is off a board of {rows} rows and {cols} columns")
    return row * cols + col


def star_points(rows: int, cols: int) -> set[tuple[int, int]]:
    """Return the star points (row, col) of a square board with an odd side from 9 to 19."""
    if rows != cols or rows < 9 or rows > 19 or rows % 2 == 0:
        return set()
    edge, middle = (3 if rows >= 13 else 2), rows // 2
    lines = (edge, middle, rows - 1 - edge)
    if rows >= 15:
        return {(row, col) for row in lines for col in lines}
    return {(row, col) for row in lines for col in lines if (row == middle) == (col == middle)}
