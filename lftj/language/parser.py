"""`parse`: the text of a program to its syntax tree.

The grammar stands in ``grammar.lark`` (LALR(1), so parsing is linear in the
text); it is read on first use.  What it accepts and the language does not
(facts, constants in heads, expressions inside atoms) is refused by
:mod:`lftj.language.reader`, where the message can say what to write instead.

Invariants

1. Every node's ``span`` is the place it was read from.
2. ``Negative`` never stands before a number: ``-5`` and ``-(5)`` are ``Constant(-5)``.
3. No tree is nested deeper than :data:`MAX_NESTING`: later passes may recurse.
4. What is short for other rules is taken apart (:mod:`lftj.language.filtered_aggregates`,
   :mod:`lftj.language.top_rows`, :mod:`lftj.language.nearest_rows`).
5. A tree never changes: who asks for one text again may get the same one.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lftj.errors import RuleSyntaxError
from lftj.language.diagnostics import error_at
from lftj.language.syntax import (
    BinaryOperation,
    Call,
    ColumnName,
    Comparison,
    DeclaredFinal,
    DeclaredStream,
    Disjunction,
    Key,
    Negative,
    Program,
    Rule,
)

if TYPE_CHECKING:
    import lark

MAX_NESTING = 100
"""Levels of parentheses and operators: a bound that keeps later passes off Python's recursion limit."""

REMEMBERED = 64
"""Texts whose trees are kept: those that were asked for last."""

LONGEST_REMEMBERED = 1_000
"""Characters of a text whose tree is kept: a tree takes some 70 bytes for each."""


def parse(text: str) -> Program:
    """The syntax tree of a program: a list of rules, each ended by a dot.

    Raises :class:`~lftj.errors.RuleSyntaxError`, with a caret under the place.

    >>> program = parse("hub(a) <- edge(a, b), edge(b, _).")
    >>> program.rules[0].heads[0].relation, len(program.rules[0].body)
    ('hub', 2)
    """
    if not isinstance(text, str):
        raise TypeError(f"a program is a str, not {type(text).__name__}")
    return _parsed(text) if len(text) <= LONGEST_REMEMBERED else _parsed.__wrapped__(text)


@functools.lru_cache(REMEMBERED)
def _parsed(text: str) -> Program:
    import lark

    from lftj.language.filtered_aggregates import without_filters
    from lftj.language.messages import syntax_error
    from lftj.language.nearest_rows import with_nearest
    from lftj.language.reader import Reader
    from lftj.language.top_rows import with_bars
    from lftj.language.window_rows import with_windows

    try:
        tree = _grammar().parse(text)
    except lark.exceptions.UnexpectedInput as error:
        raise syntax_error(text, error, _grammar()) from None
    stated = Reader(text).read(tree)
    keys = tuple(one for one in stated if isinstance(one, Key))
    rules = [one for one in stated if isinstance(one, Rule)]
    streams = tuple(one for one in stated if isinstance(one, DeclaredStream))
    finals = tuple(one for one in stated if isinstance(one, DeclaredFinal))
    program = Program(tuple(without_filters(rules)), text, keys, streams, finals)
    _refuse_deep_nesting(program)
    rules, nearest = with_nearest(program.rules, text)
    names = tuple(ColumnName(one.function, one.name_span) for one in nearest)
    return replace(program, rules=tuple(with_bars(with_windows(rules, text), text)), nearest=names)


@functools.cache
def _grammar() -> lark.Lark:
    """Its tables are kept beside the compiled sources, where Python keeps these: to make them takes longer
    than to import lark.  What is of another grammar, lark or Python, or not whole, is made anew.
    """
    import lark

    source = files("lftj.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    kept = Path(__file__).with_name("__pycache__") / f"grammar.{sys.implementation.cache_tag}.tables"
    cache = not sys.dont_write_bytecode and str(kept)
    return lark.Lark(source, parser="lalr", propagate_positions=True, cache=cache)


def _refuse_deep_nesting(program: Program) -> None:
    pending: list[tuple[Any, int]] = [(literal, 0) for rule in program.rules for literal in rule.body]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_NESTING:
            raise error_at(
                RuleSyntaxError, program.text, node.span, f"nested deeper than {MAX_NESTING} levels"
            )
        if isinstance(node, Disjunction):
            pending.extend((literal, depth + 1) for part in node.alternatives for literal in part)
        elif isinstance(node, Comparison | BinaryOperation):
            pending.extend((side, depth + 1) for side in (node.left, node.right))
        elif isinstance(node, Negative):
            pending.append((node.operand, depth + 1))
        elif isinstance(node, Call):
            pending.extend((argument, depth + 1) for argument in node.arguments)
