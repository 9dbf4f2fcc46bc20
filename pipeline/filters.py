"""Which games are wanted: each filter has its own reason and its own count."""

from pipeline.config import Filter
from pipeline.game import Game
from pipeline.headers.rank import read_rank
from pipeline.reasons import Reason
from pipeline.weights import matches


def unwanted(
    game: Game, plies: int, wanted: Filter, source: str = "", member: str | None = None
) -> tuple[Reason, str] | None:
    """Return the first filter that leaves a game out, with the value at fault; None where it is wanted.

    ``plies``: moves of the game after it was cut at an illegal move; ``source``, ``member``: where it is from.
    """
    if wanted.sources is not None and not matches(wanted.sources, source, member):
        return Reason.SOURCE_FILTERED, source
    if wanted.sizes != "any" and (game.rows, game.cols) not in wanted.sizes:
        return Reason.SIZE_FILTERED, f"{game.rows}x{game.cols}"
    if plies < wanted.min_moves:
        return Reason.TOO_SHORT, f"{plies} moves"
    if wanted.max_moves is not None and plies > wanted.max_moves:
        return Reason.TOO_LONG, f"{plies} moves"
    if wanted.handicap is not None and not wanted.handicap[0] <= game.handicap <= wanted.handicap[1]:
        return Reason.HANDICAP_FILTERED, f"handicap {game.handicap}"
    if wanted.komi is not None and (game.komi is None or not wanted.komi[0] <= game.komi <= wanted.komi[1]):
        return Reason.KOMI_FILTERED, f"komi {'unknown' if game.komi is None else game.komi}"
    if wanted.results is not None and game.result_kind not in wanted.results:
        return Reason.RESULT_FILTERED, game.result_kind
    weak = [] if wanted.min_rank is None else _too_weak(game, wanted.min_rank)
    if len(weak) > (0 if wanted.rank_of == "both" else 1):
        return Reason.RANK_FILTERED, f"rank {weak[0]}"
    if wanted.players is not None and game.black not in wanted.players and game.white not in wanted.players:
        return Reason.PLAYER_MISSING, f"{game.black or 'unknown'} and {game.white or 'unknown'}"
    for player in (game.black, game.white):
        if player in wanted.players_exclude:
            return Reason.PLAYER_FILTERED, player
    if wanted.dates is not None:
        first, last = wanted.dates
        # A date known to the year or month counts by its first day.
        day = None if game.date is None else f"{game.date}-01-01"[:10]
        if day is None or day < first or day[: len(last)] > last:
            return Reason.DATE_FILTERED, game.date or "unknown"
    if wanted.rules is not None and game.rules not in wanted.rules:
        return Reason.RULES_FILTERED, game.rules
    return None


def _too_weak(game: Game, least: str) -> list[str]:
    """Return the ranks, as written, of the players who are not known to have ``least``."""
    lowest, _ = read_rank(least)
    ranks = ((game.black_rank, game.raw.get("BR")), (game.white_rank, game.raw.get("WR")))
    return [text or "unknown" for rank, text in ranks if rank is None or lowest is None or rank < lowest]
