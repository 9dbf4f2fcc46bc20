"""Rule sets: their names, their single rules, and which one a record was played under.

The sets and their single rules are those of KataGo's rule presets (SCHEMES.md, section 4.8).
"""

import difflib
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from pipeline.config import Rules, RuleTable
from pipeline.reasons import Flag

KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL, KO_SPIGHT = range(4)
SCORING_AREA, SCORING_TERRITORY = range(2)
TAX_NONE, TAX_SEKI, TAX_ALL = range(3)
BONUS_NONE, BONUS_N_MINUS_1, BONUS_N = range(3)

_KO_CODES = {"simple": KO_SIMPLE, "positional": KO_POSITIONAL, "situational": KO_SITUATIONAL, "spight": KO_SPIGHT}
_SCORING_CODES = {"area": SCORING_AREA, "territory": SCORING_TERRITORY}
_TAX_CODES = {"none": TAX_NONE, "seki": TAX_SEKI, "all": TAX_ALL}
_BONUS_CODES = {"0": BONUS_NONE, "N-1": BONUS_N_MINUS_1, "N": BONUS_N}
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class RuleSet:
    """One set of rules; ``name`` alone gives it back through ``rule_set``.

    ``tax``: groups taxed two points (none, those in seki, all). ``suicide``: of more than one stone.
    ``bonus``: points for White in a game with N handicap stones. ``komi``: where a record has none.
    """

    name: str
    ko: Literal["simple", "positional", "situational", "spight"]
    scoring: Literal["area", "territory"]
    tax: Literal["none", "seki", "all"]
    suicide: bool
    button: bool
    bonus: Literal["0", "N-1", "N"]
    komi: float

    @property
    def ko_code(self) -> int:
        """The ko rule as the kernels take it: KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL or KO_SPIGHT."""
        return _KO_CODES[self.ko]

    @property
    def scoring_code(self) -> int:
        """SCORING_AREA or SCORING_TERRITORY."""
        return _SCORING_CODES[self.scoring]

    @property
    def tax_code(self) -> int:
        """TAX_NONE, TAX_SEKI or TAX_ALL."""
        return _TAX_CODES[self.tax]

    @property
    def bonus_code(self) -> int:
        """BONUS_NONE, BONUS_N_MINUS_1 or BONUS_N."""
        return _BONUS_CODES[self.bonus]


RULE_SETS: dict[str, RuleSet] = {
    rules.name: rules
    for rules in (
        RuleSet("tromp-taylor", "positional", "area", "none", True, False, "0", 7.5),
        RuleSet("chinese", "simple", "area", "none", False, False, "N", 7.5),
        RuleSet("chinese-ogs", "positional", "area", "none", False, False, "N", 7.5),
        RuleSet("chinese-kgs", "positional", "area", "none", False, False, "N", 7.5),
        RuleSet("japanese", "simple", "territory", "seki", False, False, "0", 6.5),
        RuleSet("korean", "simple", "territory", "seki", False, False, "0", 6.5),
        RuleSet("aga", "situational", "area", "none", False, False, "N-1", 7.5),
        RuleSet("aga-button", "situational", "area", "none", False, True, "N-1", 7.0),
        RuleSet("bga", "situational", "area", "none", False, False, "N-1", 7.5),
        RuleSet("french", "situational", "area", "none", False, False, "N-1", 7.5),
        RuleSet("new-zealand", "situational", "area", "none", True, False, "0", 7.0),
        RuleSet("ing", "positional", "area", "none", True, False, "0", 7.5),
        RuleSet("stone-scoring", "simple", "area", "all", False, False, "0", 7.5),
        RuleSet("ancient-territory", "simple", "territory", "all", False, False, "0", 6.5),
    )
}

# What RU says (letters and digits only, lower case, without a final "rules") to a name above.
_SPELLINGS = {
    **{re.sub(r"[^a-z]", "", name): name for name in RULE_SETS},
    "tt": "tromp-taylor", "logical": "tromp-taylor",
    "cn": "chinese", "china": "chinese", "中国": "chinese", "中國": "chinese", "중국": "chinese",
    "ogs": "chinese-ogs", "kgs": "chinese-kgs",
    "jp": "japanese", "jpn": "japanese", "japan": "japanese", "日本": "japanese", "일본": "japanese",
    "kr": "korean", "korea": "korean", "韩国": "korean", "韓国": "korean", "韓國": "korean", "한국": "korean",
    "us": "aga", "american": "aga", "usa": "aga", "british": "bga", "france": "french", "ffg": "french",
    "nz": "new-zealand", "newzealand": "new-zealand",
    "goe": "ing", "inggoe": "ing", "应氏": "ing", "應氏": "ing", "応氏": "ing", "stone": "stone-scoring",
    "ancient": "ancient-territory",
}  # fmt: skip
_RULES_WORD = re.compile(r"(?:rules?|ruleset|规则|規則|ルール|룰|규칙)$")
_TABLE_NAME = re.compile(
    r"ko=(?P<ko>simple|positional|situational|spight),scoring=(?P<scoring>area|territory),"
    r"tax=(?P<tax>none|seki|all),suicide=(?P<suicide>true|false),button=(?P<button>true|false),"
    r"bonus=(?P<bonus>0|N-1|N),komi=(?P<komi>-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
)
# The form in which KataGo writes its rules into RU.
_KATAGO = re.compile(
    r"ko(?P<ko>simple|positional|situational|spight)score(?P<scoring>area|territory)"
    r"tax(?P<tax>none|seki|all)sui(?P<suicide>[01])(?:button(?P<button>[01]))?(?:whb(?P<bonus>0|n-1|n))?(?:fpok[01])?"
)


def rule_set(name: str) -> RuleSet:
    """The rule set of a name: one of ``RULE_SETS``, or the name that a table of rules was given.

    Raises ``ValueError`` with the known names, and the nearest one, for any other text.
    """
    if name in RULE_SETS:
        return RULE_SETS[name]
    match = _TABLE_NAME.fullmatch(name)
    if match:
        try:
            return _from_table(RuleTable.model_validate(match.groupdict()))
        except ValidationError:
            raise ValueError(f"the komi of a rule set is -150 to 150: {name[:_MAX_TEXT]!r}") from None
    close = difflib.get_close_matches(name[:_MAX_TEXT], RULE_SETS, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"no rule set is named {name[:_MAX_TEXT]!r}{hint}; known: {', '.join(RULE_SETS)}")


def read_rules(text: str) -> RuleSet | None:
    """Understand the text of RU, in any case and with or without the word "rules"; None if it cannot be."""
    plain = unicodedata.normalize("NFKC", text[:_MAX_TEXT]).casefold().strip()
    katago = _KATAGO.fullmatch(plain)
    if katago:
        return _from_table(_katago_table(katago))
    letters = re.sub(r"[\W_]", "", plain)
    name = _SPELLINGS.get(letters) or _SPELLINGS.get(_RULES_WORD.sub("", letters))
    return None if name is None else RULE_SETS[name]


def resolve(ru_text: str | None, rules: Rules) -> tuple[RuleSet, frozenset[Flag]]:
    """The rules of a record: ``rules.force``, else its RU, else ``rules.default``.

    RULES_UNREAD is set where RU says something that is not understood and the default is used.
    Raises ``ValueError`` if the configuration names no rule set that is known.
    """
    if rules.force is not None:
        return _configured(rules.force), frozenset()
    if ru_text is None or not ru_text.strip():
        return _configured(rules.default), frozenset()
    stated = read_rules(ru_text)
    if stated is not None:
        return stated, frozenset()
    return _configured(rules.default), frozenset({Flag.RULES_UNREAD})


def _configured(value: str | RuleTable) -> RuleSet:
    return rule_set(value) if isinstance(value, str) else _from_table(value)


def _from_table(table: RuleTable) -> RuleSet:
    if not math.isfinite(table.komi):
        raise ValueError(f"the komi of a rule set must be a finite number, not {table.komi}")
    name = (
        f"ko={table.ko},scoring={table.scoring},tax={table.tax},suicide={str(table.suicide).lower()},"
        f"button={str(table.button).lower()},bonus={table.bonus},komi={table.komi!r}"
    )
    return RuleSet(name, table.ko, table.scoring, table.tax, table.suicide, table.button, table.bonus, table.komi)


def _katago_table(match: re.Match[str]) -> RuleTable:
    parts = {key: value for key, value in match.groupdict().items() if value is not None}
    if "bonus" in parts:
        parts["bonus"] = parts["bonus"].upper()
    return RuleTable.model_validate({**parts, "komi": 6.5 if parts["scoring"] == "territory" else 7.5})
