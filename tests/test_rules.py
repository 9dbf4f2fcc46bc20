"""Rule sets: the table, the spellings of RU, and the order in which a record's rules are found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import Rules, RuleTable
from pipeline.reasons import Flag
from pipeline.rules import (
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    KO_SPIGHT,
    RULE_SETS,
    read_rules,
    resolve,
    rule_set,
)

# Written down from SCHEMES.md 4.8 and the views of the KataGo vectors: ko, scoring, tax, suicide, button, bonus, komi.
DEFINED = {
    "tromp-taylor": (KO_POSITIONAL, "area", "none", True, False, "0", 7.5),
    "chinese": (KO_SIMPLE, "area", "none", False, False, "N", 7.5),
    "chinese-ogs": (KO_POSITIONAL, "area", "none", False, False, "N", 7.5),
    "chinese-kgs": (KO_POSITIONAL, "area", "none", False, False, "N", 7.5),
    "japanese": (KO_SIMPLE, "territory", "seki", False, False, "0", 6.5),
    "korean": (KO_SIMPLE, "territory", "seki", False, False, "0", 6.5),
    "aga": (KO_SITUATIONAL, "area", "none", False, False, "N-1", 7.5),
    "aga-button": (KO_SITUATIONAL, "area", "none", False, True, "N-1", 7.0),
    "bga": (KO_SITUATIONAL, "area", "none", False, False, "N-1", 7.5),
    "french": (KO_SITUATIONAL, "area", "none", False, False, "N-1", 7.5),
    "new-zealand": (KO_SITUATIONAL, "area", "none", True, False, "0", 7.0),
    "ing": (KO_POSITIONAL, "area", "none", True, False, "0", 7.5),
    "stone-scoring": (KO_SIMPLE, "area", "all", False, False, "0", 7.5),
    "ancient-territory": (KO_SIMPLE, "territory", "all", False, False, "0", 6.5),
}


def test_table_is_as_defined() -> None:
    assert {
        name: (r.ko_code, r.scoring, r.tax, r.suicide, r.button, r.bonus, r.komi) for name, r in RULE_SETS.items()
    } == DEFINED
    assert all(name == rules.name for name, rules in RULE_SETS.items())


def test_ko_codes_are_those_of_the_kernels() -> None:
    assert (KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL, KO_SPIGHT) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Japanese", "japanese"),
        ("JAPANESE", "japanese"),
        (" japanese rules ", "japanese"),
        ("jp", "japanese"),
        ("日本", "japanese"),
        ("日本ルール", "japanese"),
        ("Chinese", "chinese"),
        ("cn", "chinese"),
        ("中国规则", "chinese"),
        ("中國", "chinese"),
        ("韩国", "korean"),
        ("한국", "korean"),
        ("AGA", "aga"),
        ("AGA-button", "aga-button"),
        ("NZ", "new-zealand"),
        ("New Zealand", "new-zealand"),
        ("GOE", "ing"),
        ("Ing", "ing"),
        ("Ing Goe", "ing"),
        ("Tromp-Taylor", "tromp-taylor"),
        ("Tromp/Taylor", "tromp-taylor"),
        ("Ｃｈｉｎｅｓｅ", "chinese"),
        ("Chinese OGS", "chinese-ogs"),
    ],
)
def test_spellings(text: str, name: str) -> None:
    assert read_rules(text) is RULE_SETS[name]


@pytest.mark.parametrize("text", ["", "   ", "rules", "?", "house", "Japan or China", "x" * 10_000])
def test_what_is_not_understood(text: str) -> None:
    assert read_rules(text) is None


def test_every_name_is_its_own_spelling() -> None:
    for name, rules in RULE_SETS.items():
        assert rule_set(name) is rules
        assert read_rules(name.upper()) is rules


def test_katago_text() -> None:
    rules = read_rules("koPOSITIONALscoreAREAtaxNONEsui1")
    assert rules is not None
    assert (rules.ko, rules.scoring, rules.tax, rules.suicide, rules.button, rules.bonus) == (
        ("positional", "area", "none", True, False, "0")
    )
    other = read_rules("koSIMPLEscoreTERRITORYtaxSEKIsui0button0whbN-1fpok1")
    assert other is not None
    assert (other.ko, other.scoring, other.tax, other.suicide, other.bonus) == (
        ("simple", "territory", "seki", False, "N-1")
    )


def test_name_of_a_table() -> None:
    table = RuleTable(ko="positional", suicide=True)
    rules, flags = resolve(None, Rules(default=table))
    assert rules.name == "ko=positional,scoring=area,tax=none,suicide=true,button=false,bonus=0,komi=7.5"
    assert not flags


@given(
    st.builds(
        RuleTable,
        ko=st.sampled_from(["simple", "positional", "situational", "spight"]),
        scoring=st.sampled_from(["area", "territory"]),
        tax=st.sampled_from(["none", "seki", "all"]),
        suicide=st.booleans(),
        button=st.booleans(),
        bonus=st.sampled_from(["0", "N-1", "N"]),
        komi=st.floats(-150, 150),
    )
)
def test_name_of_any_table_gives_it_back(table: RuleTable) -> None:
    rules, _ = resolve("Japanese", Rules(force=table))
    assert rule_set(rules.name) == rules
    assert (rules.ko, rules.scoring, rules.tax, rules.suicide, rules.button, rules.bonus, rules.komi) == (
        (table.ko, table.scoring, table.tax, table.suicide, table.button, table.bonus, table.komi)
    )


def test_infinite_komi_is_refused() -> None:
    with pytest.raises(ValueError, match="inf"):
        resolve(None, Rules(default=RuleTable(komi=float("inf"))))


def test_a_name_with_a_komi_that_no_game_has() -> None:
    name = "ko=simple,scoring=area,tax=none,suicide=true,button=false,bonus=0,komi=1e9"
    with pytest.raises(ValueError, match="the komi of a rule set is -150 to 150: 'ko=simple"):
        rule_set(name)


def test_order_force_record_default() -> None:
    assert resolve("Japanese", Rules(force="aga"))[0].name == "aga"
    assert resolve("Japanese", Rules(default="aga"))[0].name == "japanese"
    assert resolve(None, Rules(default="aga"))[0].name == "aga"
    assert resolve(None, Rules())[0].name == "chinese"


def test_flag_only_where_a_stated_rule_set_is_passed_over() -> None:
    assert resolve("house rules", Rules())[1] == {Flag.RULES_UNREAD}
    assert resolve("house rules", Rules(force="aga"))[1] == frozenset()
    assert resolve(" ", Rules())[1] == frozenset()
    assert resolve("NZ", Rules())[1] == frozenset()


def test_unknown_name_in_the_configuration() -> None:
    with pytest.raises(ValueError, match=r"'japanes'.*did you mean 'japanese'.*tromp-taylor"):
        resolve(None, Rules(default="japanes"))
    with pytest.raises(ValueError, match="known: "):
        rule_set("ko=simple,scoring=points")
