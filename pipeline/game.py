"""One record that is a game: its main line, and the facts that its header texts state."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from pipeline.config import Parse, ResultKind, Rules
from pipeline.dialects import standard_texts, writes_stones_as_moves
from pipeline.handicaps import with_handicap
from pipeline.headers.date import read_date
from pipeline.headers.handicap import read_handicap
from pipeline.headers.komi import read_komi, writer_of
from pipeline.headers.rank import read_rank
from pipeline.headers.result import Winner, read_result
from pipeline.mainline import Line
from pipeline.reasons import Flag
from pipeline.rules import resolve

# The flags that ``with_headers`` sets.
HEADER_FLAGS = frozenset({
    Flag.KOMI_UNUSABLE, Flag.KOMI_REPAIRED, Flag.KOMI_UNRECORDED, Flag.KOMI_DEFAULT, Flag.RESULT_UNREAD,
    Flag.RESULT_REPAIRED, Flag.RESULT_CODE, Flag.HANDICAP_UNUSABLE, Flag.HANDICAP_REPAIRED, Flag.RANK_UNREAD,
    Flag.RANK_OTHER, Flag.RANK_TITLE, Flag.RANK_IN_NAME, Flag.DATE_UNREAD, Flag.DATE_REPAIRED, Flag.RULES_UNREAD,
    Flag.OTHER_NAMES, Flag.KOMI_IN_GM, Flag.KOMI_OVERRIDDEN,
})  # fmt: skip
_MOST_HANDICAP_KOMI = 0.5  # of a game whose handicap stones a server wrote as moves


@dataclass(frozen=True, slots=True)
class Game:
    """One record that is a game, not yet checked for legality.

    ``index`` is its ordinal in the file (from 0), ``content`` the 16-byte hash of its text. Points
    are ``row * cols + col`` with row 0 on top, a pass is ``rows * cols``, a move outside the board
    is ``games.OFF_BOARD``. ``moves`` uint16[n], ``colours`` int8[n] (1 black, 2 white). Setup:
    ``setup_plies`` uint16[s] (the moves before it), ``setup_points`` uint16[s], ``setup_colours``
    int8[s] (0 empties the point), in order of plies; what it leaves out stays as it is.
    ``komi`` and ``margin`` in points. ``rules`` is a name for ``rules.rule_set``. Ranks are on the
    scale of ``headers.rank``. ``raw`` holds header texts as written, each cut to 500 characters.
    """

    index: int
    content: bytes
    rows: int
    cols: int
    setup_plies: NDArray[np.uint16]
    setup_points: NDArray[np.uint16]
    setup_colours: NDArray[np.int8]
    moves: NDArray[np.uint16]
    colours: NDArray[np.int8]
    komi: float | None
    rules: str
    handicap: int
    winner: Winner | None
    result_kind: ResultKind
    margin: float | None
    black_rank: int | None
    white_rank: int | None
    date: str | None
    black: str
    white: str
    raw: dict[str, str]
    flags: tuple[Flag, ...]


def content_hash(record: bytes) -> bytes:
    """Return ``Game.content``: 16 bytes over the text of a record."""
    return blake2b(record, digest_size=16).digest()


def make_game(
    index: int,
    content: bytes,
    size: tuple[int, int],
    line: Line,
    marked: bool,
    raw: dict[str, str],
    flags: frozenset[Flag],
    parse: Parse,
    rules: Rules,
) -> Game:
    """Return the game of a main line as it is written, its handicap stones set up as ``parse`` says.

    ``marked``: whether points are marked in it; the rest as in ``with_headers``. Raises ``Fault`` as ``with_handicap``.
    """
    handicap, _ = read_handicap(raw.get("HA"))
    line = with_handicap(line, size, handicap, writes_stones_as_moves(raw), parse)
    game = with_headers(index, content, size, line, raw, flags, rules)
    if marked and game.winner is None and not (game.black or game.white):
        game = replace(game, flags=tuple(sorted({*game.flags, Flag.LECTURE})))
    return game


def with_headers(
    index: int,
    content: bytes,
    size: tuple[int, int],
    line: Line,
    raw: dict[str, str],
    flags: frozenset[Flag],
    rules: Rules,
) -> Game:
    """Return the game of a main line on a board of ``size`` (rows, cols), its facts read from the texts ``raw``.

    ``flags``: what was noted of the record before. Raises ``ValueError`` where ``rules`` names unknown rules.
    """
    texts, named = standard_texts(raw)
    handicap, handicap_flags = read_handicap(texts.get("HA"))
    result, result_flags = read_result(texts.get("RE"))
    at_start = int(np.count_nonzero(line.setup_plies == 0))
    folded = Flag.HANDICAP_FOLDED in line.flags
    komi, komi_flags = _komi(texts, handicap == 0 and not at_start, folded, result.margin, rules)
    rule_set, rules_flags = resolve(texts.get("RU"), rules)
    black_rank, black_flags = read_rank(texts.get("BR"))
    white_rank, white_flags = read_rank(texts.get("WR"))
    date, date_flags = read_date(texts.get("DT"))
    flags = flags.union(line.flags, komi_flags, rules_flags, handicap_flags, result_flags)
    flags = flags.union(black_flags, white_flags, date_flags, named)
    return Game(
        index=index,
        content=content,
        rows=size[0],
        cols=size[1],
        setup_plies=line.setup_plies,
        setup_points=line.setup_points,
        setup_colours=line.setup_colours,
        moves=line.moves,
        colours=line.colours,
        komi=komi,
        rules=rule_set.name,
        handicap=at_start if folded else handicap,
        winner=result.winner,
        result_kind=result.kind,
        margin=result.margin,
        black_rank=black_rank,
        white_rank=white_rank,
        date=date,
        black=texts.get("PB", ""),
        white=texts.get("PW", ""),
        raw=raw,
        flags=tuple(sorted(flags)),
    )


def _komi(
    texts: Mapping[str, str], even: bool, folded: bool, margin: float | None, rules: Rules
) -> tuple[float | None, frozenset[Flag]]:
    """Return the komi a game is played at, in points, None where it is not known.

    ``even``: no handicap; ``folded``: its stones were written as moves, by a server that then writes the komi of an
    even game; ``margin``: of the result, in points.
    """
    komi, flags = read_komi(texts.get("KM"), writer_of(texts), even, margin)
    if komi is None and rules.komi_default is not None:
        komi, flags = rules.komi_default, flags | {Flag.KOMI_DEFAULT}
    if folded and (komi is None or not 0 <= komi <= _MOST_HANDICAP_KOMI):
        return 0.0, flags - {Flag.KOMI_DEFAULT} | {Flag.KOMI_OVERRIDDEN}
    return komi, flags
