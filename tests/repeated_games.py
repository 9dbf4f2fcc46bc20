"""Small games in which positions come again and again, many of them symmetric, for the tests of merging."""

from pathlib import Path
from random import Random

from random_games import Line, random_line, turned
from stages import KOMIS, RESULTS, sgf_of

SIZES = [(2, 2), (3, 3), (3, 5), (5, 5)]
FRAME = (6, 7)  # larger than any of the boards
SIZES_ASKED_FOR = [2, 3, "3x5", 5, "6x7"]
CORNERS = ((0, 0), (0, 4), (4, 0), (4, 4))


def made_up_lines(seed: str) -> list[Line]:
    """Return games whose positions come again and again, many of them symmetric, some long, some with setup."""
    rng = Random(seed)
    lines = [random_line(rng, *SIZES[number % 4], rng.randint(6, 14), 0.15, number % 5 == 4) for number in range(44)]
    lines += [random_line(rng, *SIZES[number % 2], (40, 110)[number // 6], 0.2) for number in range(9)]
    centre = (((2, 2), 1), (None, 2), ((2, 1), 1), ((1, 1), 2))
    square = tuple((0, point, 1) for point in CORNERS)
    lines += [turned(Line(5, 5, centre[:length], square), turn) for turn, length in ((0, 4), (1, 3), (6, 2), (3, 1))]
    lines += [turned(Line(5, 5, centre[:length]), turn) for turn, length in ((0, 4), (2, 3), (5, 4), (4, 2))]
    line = Line(5, 5, (*centre, ((3, 3), 1), ((3, 1), 2)), ((4, (2, 2), 0), (4, (0, 2), 2)))
    return [*lines, line, turned(line, 7)]


def write_collection(folder: Path, seed: str) -> Path:
    """Write the games of ``made_up_lines`` into one file, with results and komis of every kind."""
    folder.mkdir()
    records = [
        sgf_of(line, RE=RESULTS[number % len(RESULTS)], KM=KOMIS[number % len(KOMIS)], GN=str(number))
        for number, line in enumerate(made_up_lines(seed))
    ]
    (folder / "games.sgf").write_text("".join(records))
    return folder
