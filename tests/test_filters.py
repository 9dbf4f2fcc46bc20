"""Each filter: what it lets through, what it leaves out, and what it says."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.config import Config, Filter, make_config
from pipeline.filters import unwanted
from pipeline.game import Game
from pipeline.parse import parse_member
from pipeline.reasons import Reason

RECORD = b"(;GM[1]SZ[9]KM[6.5]HA[2]RE[B+2.5]BR[2d]WR[3k]PB[Uma]PW[Ivo]DT[2016-03-09]AB[aa][ii];W[cc];B[dd];W[])"


def game(**changes: Any) -> Game:
    config = Config()
    (parsed,) = parse_member(RECORD, config.input, config.parse, config.rules)
    assert isinstance(parsed, Game)
    return replace(parsed, **changes)


def wanted(**keys: Any) -> Filter:
    return make_config({"filter": {"sizes": "any", **keys}}, "test").filter


@pytest.mark.parametrize(
    ("keys", "changes", "reason", "detail"),
    [
        ({"sizes": [9]}, {}, None, ""),
        ({"sizes": [19, "9x13"]}, {}, Reason.SIZE_FILTERED, "9x9"),
        ({"sizes": ["9x13"]}, {"cols": 13}, None, ""),
        ({"sizes": ["13x9"]}, {"cols": 13}, Reason.SIZE_FILTERED, "9x13"),
        ({"min_moves": 3}, {}, None, ""),
        ({"min_moves": 4}, {}, Reason.TOO_SHORT, "3 moves"),
        ({"max_moves": 3}, {}, None, ""),
        ({"max_moves": 2}, {}, Reason.TOO_LONG, "3 moves"),
        ({"handicap": [2, 2]}, {}, None, ""),
        ({"handicap": [0, 0]}, {}, Reason.HANDICAP_FILTERED, "handicap 2"),
        ({"handicap": [3, 9]}, {}, Reason.HANDICAP_FILTERED, "handicap 2"),
        ({"komi": [6.5, 7.5]}, {}, None, ""),
        ({"komi": [7.5, 7.5]}, {}, Reason.KOMI_FILTERED, "komi 6.5"),
        ({"komi": [0, 9]}, {"komi": None}, Reason.KOMI_FILTERED, "komi unknown"),
        ({"results": ["score", "resign"]}, {}, None, ""),
        ({"results": ["resign"]}, {}, Reason.RESULT_FILTERED, "score"),
        ({"min_rank": "3k"}, {}, None, ""),
        ({"min_rank": "1d"}, {}, Reason.RANK_FILTERED, "rank 3k"),
        ({"min_rank": "3d"}, {}, Reason.RANK_FILTERED, "rank 2d"),
        ({"min_rank": "30k"}, {"black_rank": None, "raw": {}}, Reason.RANK_FILTERED, "rank unknown"),
        ({"min_rank": "2d", "rank_of": "either"}, {}, None, ""),
        ({"min_rank": "3d", "rank_of": "either"}, {}, Reason.RANK_FILTERED, "rank 2d"),
        ({"min_rank": "3k", "rank_of": "either"}, {"black_rank": None, "raw": {}}, None, ""),
        ({"players": ["Ivo", "Ann"]}, {}, None, ""),
        ({"players": ["Uma"]}, {}, None, ""),
        ({"players": ["uma"]}, {}, Reason.PLAYER_MISSING, "Uma and Ivo"),
        ({"players": []}, {"black": ""}, Reason.PLAYER_MISSING, "unknown and Ivo"),
        ({"rules": ["chinese", "aga"]}, {}, None, ""),
        ({"rules": ["aga"]}, {}, Reason.RULES_FILTERED, "chinese"),
        ({"sources": ["club/*.sgf"]}, {}, None, ""),
        ({"sources": ["club/*", "x"]}, {}, None, ""),
        ({"sources": ["*.zip/2016/*"]}, {}, Reason.SOURCE_FILTERED, "club/a.sgf"),
        ({"players_exclude": ["uma", "Ivo "]}, {}, None, ""),
        ({"players_exclude": ["Ivo"]}, {}, Reason.PLAYER_FILTERED, "Ivo"),
        ({"dates": ["2016-03-09", "2016-03-09"]}, {}, None, ""),
        ({"dates": ["2016-03-10", "2017"]}, {}, Reason.DATE_FILTERED, "2016-03-09"),
        ({"dates": ["2015", "2016-03-08"]}, {}, Reason.DATE_FILTERED, "2016-03-09"),
        ({"dates": ["2016", "2016"]}, {}, None, ""),
        ({"dates": ["2016-03", "2016-03"]}, {}, None, ""),
        ({"dates": ["1000", "2999"]}, {"date": None}, Reason.DATE_FILTERED, "unknown"),
        # A date known to the year or month counts by its first day.
        ({"dates": ["2016-01-01", "2016-01-31"]}, {"date": "2016"}, None, ""),
        ({"dates": ["2016-01-02", "2016-12-31"]}, {"date": "2016"}, Reason.DATE_FILTERED, "2016"),
        ({"dates": ["2016-03-01", "2016-03-02"]}, {"date": "2016-03"}, None, ""),
        ({"dates": ["2016-03-02", "2016-04"]}, {"date": "2016-03"}, Reason.DATE_FILTERED, "2016-03"),
        ({"dates": ["2015", "2016-02"]}, {"date": "2016-03"}, Reason.DATE_FILTERED, "2016-03"),
    ],
)
def test_filters(keys: dict[str, Any], changes: dict[str, Any], reason: Reason | None, detail: str) -> None:
    expected = None if reason is None else (reason, detail)
    assert unwanted(game(**changes), 3, wanted(**keys), "club/a.sgf") == expected


def test_the_source_of_a_member_is_also_its_path_in_the_archive() -> None:
    keys = wanted(sources=["*.zip/2016/*"])
    assert unwanted(game(), 3, keys, "club.zip", "2016/a.sgf") is None
    assert unwanted(game(), 3, keys, "club.zip", "2017/a.sgf") == (Reason.SOURCE_FILTERED, "club.zip")


def test_without_filters_every_game_with_a_move_is_wanted() -> None:
    unknown = game(komi=None, black_rank=None, white_rank=None, date=None, result_kind="unknown", winner=None)
    assert unwanted(unknown, 1, wanted()) is None
    assert unwanted(unknown, 0, wanted()) == (Reason.TOO_SHORT, "0 moves")
    assert unwanted(unknown, 0, wanted(min_moves=0)) is None


def test_19x19_is_what_is_wanted_by_default() -> None:
    assert unwanted(game(), 3, Config().filter) == (Reason.SIZE_FILTERED, "9x9")
    assert unwanted(game(rows=19, cols=19), 3, Config().filter) is None
