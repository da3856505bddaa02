"""Syntax errors in the language's own words: what was expected, what stands there, what to write."""

from __future__ import annotations

import re
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from lftj.errors import RuleSyntaxError
from lftj.language.diagnostics import error_at, quoted_list

_PUNCTUATION = {
    "COMMA": ",",
    "DOT": ".",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "EQUAL": "=",
    "SEMICOLON": ";",
    "_ARROW": "<-",
}
_KEYWORDS = {"distinct", "if", "in", "like", "is", "escape", "asof", "bag", "key", "stream", "final"}
_HEAD_VALUE = "a head's value is a variable or an aggregate: write v here and v = ... in the body"
_SQL = re.compile(
    r"\s*\(*\s*(select|with|from|values|insert|update|delete|merge|create|drop)\s+[\w(*\"']", re.IGNORECASE
)
"""No rule begins so: a bracket stands behind the name of a head."""
_IS_SQL = (
    "this is SQL, where a rule stands, such as h(a) <- r(a, b).; sql() takes it, and create_view() keeps it"
    " up to date"
)
_HINTS_BY_CHARACTER = {
    "'": "strings stand in double quotes",
    "#": "comments start with //",
    "&": "literals are separated by commas",
    "|": "alternatives are separated by ';', in parentheses",
    '"': "the string is not closed on its line",
}


def syntax_error(text: str, error: UnexpectedInput, grammar: Lark) -> RuleSyntaxError:
    """The error to raise for what a parser of ``grammar`` found unexpected in ``text``.

    >>> from lftj.language.parser import parse
    >>> parse("a(x) <- b(x)")
    Traceback (most recent call last):
        ...
    lftj.errors.RuleSyntaxError: the rule does not end with a dot
      a(x) <- b(x)
                  ^
    """
    if (sql := _SQL.match(text)) is not None:
        return error_at(RuleSyntaxError, text, sql.span(1), _IS_SQL)
    if isinstance(error, UnexpectedCharacters):
        place: Any = error  # lark declares the position as None
        start = place.pos_in_stream
        character = text[start]
        message = _HINTS_BY_CHARACTER.get(character, f"unexpected character {character!r}")
        end = text.find("\n", start) if character in "\"'" else start + 1
        return error_at(RuleSyntaxError, text, (start, end if end >= 0 else len(text)), message)
    assert isinstance(error, UnexpectedToken) and error.interactive_parser is not None
    token: Any = error.token
    if token.type == "COLON" and text.startswith(":-", token.start_pos):
        span = (token.start_pos, token.start_pos + 2)
        return error_at(RuleSyntaxError, text, span, "an arrow is written <-")
    accepted = set(error.interactive_parser.accepts()) - {
        "_BAG",
        "_KEY",
        "_STREAM",
        "_FINAL",
    }  # a name stands there, too
    at_end = token.type == "$END"
    span = (len(text), len(text)) if at_end else (token.start_pos, token.end_pos)
    if token.type == "PERCENT" and accepted <= {"NAME", "$END"}:
        return error_at(RuleSyntaxError, text, (token.start_pos, token.end_pos), "comments start with //")
    previous = _last_token(text[: span[0]], grammar)
    before: int = (previous.end_pos or 0) if previous is not None else 0
    on_new_line = token.type == "NAME" and "\n" in text[before : span[0]]
    if "DOT" in accepted and (at_end or on_new_line):
        return error_at(RuleSyntaxError, text, (before, before), "the rule does not end with a dot")
    if at_end:
        return error_at(RuleSyntaxError, text, (before, before), _expected(accepted, "the end"))
    if previous is not None and _stands_in_head_value(token, previous, accepted):
        return error_at(RuleSyntaxError, text, span, _HEAD_VALUE)
    in_head = not any(
        isinstance(part, Token) and part.type == "_ARROW"
        for part in error.interactive_parser.parser_state.value_stack
    )
    hint = _head_hint if in_head else _body_hint
    message = _expected(accepted, f"'{token}'") + hint(token, previous, accepted, text[before : span[0]])
    return error_at(RuleSyntaxError, text, span, message)


def _stands_in_head_value(token: Token, previous: Token, accepted: set[str]) -> bool:
    """Whether something other than a variable or an aggregate is a functional head's value."""
    if previous.type == "EQUAL":
        return accepted == {"NAME"}
    return "_ARROW" in accepted and token.type in ("PLUS", "MINUS", "STAR", "SLASH")


def _last_token(text: str, grammar: Lark) -> Token | None:
    tokens = list(grammar.lex(text))
    return tokens[-1] if tokens else None


def _expected(accepted: set[str], found: str) -> str:
    """``expected ',' or '.', not 'c'``."""
    if accepted >= {"NAME", "INTEGER"}:
        return f"expected a variable or a constant, not {found}"
    if accepted & {"COMMA", "DOT", "RPAR"} and "OPERATOR" in accepted:
        accepted = accepted - {"OPERATOR", "EQUAL"}  # an atom, or a call to be compared
    if "COMMA" in accepted:
        accepted = accepted - {"LPAR"}  # of an aggregate: what stands before it is a variable
    words = [mark for terminal, mark in _PUNCTUATION.items() if terminal in accepted]
    if accepted <= {"NAME", "$END"}:
        return f"expected the name of a relation, not {found}"
    if "OPERATOR" in accepted:
        return f"expected a comparison, not {found}"
    return f"expected {quoted_list(words)}, not {found}"


def _head_hint(token: Token, previous: Any, accepted: set[str], between: str) -> str:
    """What to write instead, where the mistake is a common one, in front of the arrow."""
    if previous is None:
        return ""
    if token.type == "LSQB":
        return "; a functional atom stands in the body: F[k] = v"
    if previous.type == "RSQB" and "EQUAL" in accepted:
        return "; a functional predicate is written F[k] = v"
    if previous.type == "RPAR" and token.type == "EQUAL" and "_ARROW" in accepted:
        return "; a functional head is written F[k] = v"
    if previous.type == "LPAR" and token.type == "STAR":
        return "; assignments are counted by count()"
    return _small_letters(previous)


def _small_letters(previous: Any) -> str:
    word = str(previous)
    return f"; keywords have small letters: {word.lower()}" if word.lower() in _KEYWORDS - {word} else ""


def _body_hint(token: Token, previous: Any, accepted: set[str], between: str) -> str:
    """What to write instead, where the mistake is a common one, behind the arrow."""
    kind, word = token.type, str(token).lower()
    if word == "and":
        return "; literals are separated by ','"
    if word == "or":
        return "; alternatives stand in parentheses: (a(x) ; b(x))"
    if kind == "SEMICOLON":
        return "; put alternatives in parentheses: (a(x) ; b(x))"
    if kind == "LSQB":
        return "; a functional atom stands alone: F[k] = v"
    if previous.type == "RSQB" and "EQUAL" in accepted:
        return "; a functional predicate is written F[k] = v"
    if kind in ("OPERATOR", "EQUAL") and not between and str(previous) + token in ("==", "=<", "=>", "<>"):
        return "; the comparisons are < <= > >= = != <=>"
    chained = accepted & {"COMMA", "DOT"} and "OPERATOR" not in accepted and previous.type != "RPAR"
    if kind in ("OPERATOR", "NULL_SAFE", "EQUAL") and chained:
        return "; comparisons don't chain: write a < b, b < c"
    if kind == "LPAR" and previous.type == "NAME":
        return "; functions stand only in heads, as in n[a] = count()"
    if str(previous).lower() == "not" and kind == "NAME":
        return "; negation is written !"
    if str(previous) == "!" and kind == "LPAR":
        return "; only atoms can be negated"
    if previous.type == "DATE" and token.startswith("T"):
        return "; a timestamp is written 2026-01-31T10:00:00"
    return _small_letters(previous) or _small_letters(token)
