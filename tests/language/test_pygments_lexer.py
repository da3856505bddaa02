"""worked examples and laws: colours of rules."""

from __future__ import annotations

import importlib
import re
import tomllib

import pytest
from pygments.token import Comment, Error, Keyword, Literal, Name, Number, Operator, String

from lftj.language.pygments_lexer import RulesLexer
from support.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```datalog\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALLED = re.compile(r'install\("""(.*?)"""', re.DOTALL)


def tokens(text: str) -> list[tuple[object, str]]:
    return [(kind, part) for kind, part in RulesLexer().get_tokens(text) if part.strip()]


def kinds(text: str) -> dict[str, object]:
    return {part: kind for kind, part in tokens(text)}


def test_a_rule_with_everything() -> None:
    text = """// comment
    bag h(a, n: count(if p < 5), top: max(p) default 0, copies: w)
      <- r(key: a, price: p), !s[a] = _, p >= 1.5, d = 2026-01-31, t > now() - 10m,
         a in (1, "x", $y), w = null."""
    found = kinds(text)
    assert found["// comment"] is Comment.Single and found["bag"] is Keyword.Declaration
    assert found["h"] is found["count"] is found["r"] is found["s"] is found["now"] is Name.Function
    assert found["n"] is found["key"] is found["price"] is Name.Attribute
    assert found["if"] is found["default"] is found["in"] is Keyword
    assert found["<-"] is found["!"] is found[">="] is Operator
    assert found["1.5"] is Number.Float and found["0"] is Number.Integer
    assert found["2026-01-31"] is found["10m"] is Literal.Date
    assert found['"x"'] is String.Double and found["$y"] is Name.Variable.Global
    assert found["null"] is Keyword.Constant and found["_"] is Name.Builtin.Pseudo


@pytest.mark.parametrize("declared", ["key e(a).", "stream e(a) late 5s keep 2h.", "final e at w + 5m."])
def test_declarations(declared: str) -> None:
    word = declared.split()[0]
    assert kinds(declared)[word] is Keyword.Declaration
    assert kinds(f"h({word}) <- r({word}, late).")[word] is Name.Variable


def test_functions_of_keywords_names() -> None:
    """``if`` before a parenthesis chooses, and words that are keywords elsewhere may be columns."""
    assert kinds("h(v) <- r(a), v = if(a > 3, 1, 2).")["if"] is Name.Function
    assert kinds("h(desc: a) <- r(in: a).")["desc"] is Name.Attribute


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_rules_of_pages_have_colours_and_lose_nothing(page: object) -> None:
    text = page.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    for rules in [*FENCE.findall(text), *INSTALLED.findall(text)]:
        found = list(RulesLexer(ensurenl=False, stripnl=False).get_tokens(rules))
        assert "".join(part for _, part in found) == rules
        assert [part for kind, part in found if kind is Error] == []


def test_what_is_no_rule_is_marked() -> None:
    assert kinds("h(a) <- r(a) & s(a).")["&"] is Error


def test_pygments_finds_it() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (place,) = pyproject["project"]["entry-points"]["pygments.lexers"].values()
    module, _, name = place.partition(":")
    assert getattr(importlib.import_module(module), name) is RulesLexer
    assert {"lftj", "datalog"} == set(RulesLexer.aliases)
