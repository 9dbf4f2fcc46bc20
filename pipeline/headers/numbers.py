"""Numbers in header texts: other scripts' digits, halves and quarters, points and stones."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

REMEMBERED = 1024  # texts that each reader keeps what it read of: most records repeat those of others
_FRACTIONS = str.maketrans({"−": "-", "½": ".5", "¼": ".25", "¾": ".75", "⁄": "/"})
_DIGITS = {
    **{digit: value for value, digit in enumerate("〇一二三四五六七八九")},
    **{digit: value for value, digit in enumerate("零壹贰叁肆伍陆柒捌玖")},
    "○": 0, "两": 2, "兩": 2, "貳": 2, "參": 3, "弐": 2, "参": 3, "陸": 6,
}  # fmt: skip
_TENS = {"十": 10, "拾": 10, "百": 100}
_NUMERALS = re.compile(f"[{''.join([*_DIGITS, *_TENS])}]{{1,12}}")
# "3", "3.75", "3又3/4", "3/4", "1又4分之3"; a half comes after the unit or in its place.
_AMOUNT = re.compile(
    r"(?:(?P<whole>[0-9]{1,9}(?:[.,。][0-9]{0,9})?|[.,。][0-9]{1,9})(?![0-9/分]))?"
    r"(?:\s*[又と加個个]?\s*(?:(?P<part>[1-9])/(?P<of>[2-9])|(?P<of_parts>[2-9])分[之の](?P<parts>[1-9])))?(?![0-9/])"
    r"\s*(?:个|個)?(?P<early_half>半|반)?"
    r"\s*(?P<unit>子|目|もく|집|호|점|points?|pts?\b\.?|moku|stones?)?"
    r"\s*(?P<half>半|반)?(?:\s*(?P<late_unit>子|目|집))?"
)
_UNITS: dict[str, Literal["points", "stones"]] = {"子": "stones", "stone": "stones", "stones": "stones"}


@dataclass(frozen=True, slots=True)
class Amount:
    """A number and what it counts: points, or stones of the Chinese count, two points each; None: not said."""

    number: float
    unit: Literal["points", "stones"] | None

    @property
    def points(self) -> float:
        """The amount in points; what has no unit is taken for points."""
        return self.number * 2 if self.unit == "stones" else self.number


def plain(text: str) -> str:
    """A text with full-width forms made ASCII, lower case, no blanks around."""
    return unicodedata.normalize("NFKC", text.translate(_FRACTIONS)).translate(_FRACTIONS).strip().lower()


def arabic(text: str) -> str:
    """The text with the numerals of Chinese and Japanese, up to 999, as digits: ``二十三`` becomes 23."""
    return _NUMERALS.sub(lambda match: str(_value(match[0])), text)


def read_amount(text: str, start: int = 0) -> tuple[Amount, int] | None:
    """The amount that stands at ``start`` of a text as ``plain`` and ``arabic`` leave it, and where it ends."""
    match = _AMOUNT.match(text, start)
    if match is None or not (match["whole"] or match["part"] or match["parts"] or match["early_half"] or match["half"]):
        return None
    number = float((match["whole"] or "0").replace(",", ".").replace("。", "."))
    if match["part"] or match["parts"]:
        number += int(match["part"] or match["parts"]) / int(match["of"] or match["of_parts"])
    if match["early_half"] or match["half"]:
        number += 0.5
    unit = match["unit"] or match["late_unit"]
    return Amount(number, _UNITS.get(unit, "points") if unit else None), match.end()


def _value(numerals: str) -> int:
    """``一九九八`` is read digit by digit; with tens or hundreds in it, as a number in words."""
    if not any(numeral in _TENS for numeral in numerals):
        return int("".join(str(_DIGITS[numeral]) for numeral in numerals))
    total = 0
    digit: int | None = None
    for numeral in numerals:
        if numeral in _TENS:
            total += (1 if digit is None else digit) * _TENS[numeral]
            digit = None
        else:
            digit = _DIGITS[numeral]
    return total + (digit or 0)
