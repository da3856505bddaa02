"""Windows in a body, ``r = row_number(by: (p desc, i), per: c)``, as rules without them.

What stands behind the parser knows windows as terms of a head that has a rule of its own.  So the rule::

    best(c, i, r) <- bought(c, i, p), p > 0, r = top(3, by: (p desc, i), per: c), r > 1.

becomes these two::

    best_window(c, i, r: top(...)) <- bought(c, i, p), p > 0.
    best(c, i, r) <- best_window(c, i, r), r > 1.

Invariants

1. Behind :func:`with_windows` no body has a :class:`WindowLiteral`, and every rule but the windows' stands
   where it stood among the others: the last one stays the last.
2. Literals that depend on what a window gives, directly or not, are read after it (SQL's QUALIFY), all others
   before it (SQL's WHERE).
3. A window's rows are the assignments of what is read before it.  Of those the window's head has the
   variables that anything reads afterwards; where aggregates or bags do, each row has a number, too, and so
   none is counted with another.
4. The window's head has a name that stands nowhere in the program as it was written, and one rule.

Source: SQL:2003, 4.14.9 (windowed tables); 7.11 (window clause).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lftj.errors import RuleSyntaxError
from lftj.language.diagnostics import error_at
from lftj.language.normal_form import order_assignments
from lftj.language.syntax import (
    Atom,
    ColumnName,
    Comparison,
    Head,
    Literal,
    Rule,
    Span,
    Variable,
    Wildcard,
    Window,
    flat,
)
from lftj.language.top_rows import TopRows, free_name, relations_of, variables_in


@dataclass(frozen=True)
class WindowLiteral:
    """``target = window``; without a target the window leaves out rows, and its value is nobody's."""

    target: Variable | None
    window: Window
    span: Span


def with_windows(rules: Sequence[Rule], text: str) -> list[Rule]:
    """The rules as they are evaluated; ``text`` is the program's, for messages.

    >>> from lftj.language.parser import parse
    >>> program = parse("best(a, r) <- sale(a, v), r = rank(by: v).")
    >>> [head.relation for rule in program.rules for head in rule.heads]
    ['best_window', 'best']
    """
    found: list[Rule] = []
    taken = {name for rule in rules for name in relations_of(rule)}
    for rule in rules:
        windows = [literal for literal in rule.body if isinstance(literal, WindowLiteral)]
        if not windows:
            found.append(rule)
            continue
        for literal in rule.body:
            if isinstance(literal, TopRows):
                message = f"'{literal.function}' by one variable and a window: take two rules"
                raise error_at(RuleSyntaxError, text, literal.span, message)
        first = windows[0].window
        for other in windows[1:]:
            if (other.window.per, other.window.by) != (first.per, first.by):
                message = "the windows of a rule have the same per: and by: take a rule for each"
                raise error_at(RuleSyntaxError, text, other.span, message)
        name = free_name(f"{rule.heads[0].relation}_window", taken)
        taken.add(name)
        found += _without_windows(rule, windows, name)
    return found


def _without_windows(rule: Rule, windows: Sequence[WindowLiteral], name: str) -> tuple[Rule, Rule]:
    counted = any(head.counts for head in rule.heads)
    body = tuple(literal for literal in rule.body if not isinstance(literal, WindowLiteral))
    span, first = windows[0].span, windows[0].window
    targets: list[Variable | Wildcard] = [one.target or Wildcard(one.span) for one in windows]
    after = _depending(body, {target.name for target in targets if isinstance(target, Variable)})
    before = tuple(literal for literal in body if literal not in after)
    bound = _names(before)
    read = [variable for head in rule.heads for variable in head.variables]
    read += variables_in(after)
    calls = [one.window for one in windows]
    if counted:
        read += first.per
        calls.append(Window("row_number", (), first.per, first.by, span=span))
        targets.append(Wildcard(span))
    columns = {variable.name: variable for variable in read if variable.name in bound}
    taken = set(columns)
    names = [ColumnName(column, span) for column in columns]
    for call, target in zip(calls, targets, strict=True):
        shown = target.name if isinstance(target, Variable) else free_name(call.function, taken)
        taken.add(shown)
        names.append(ColumnName(shown, target.span))
    head = Head(name, tuple(columns.values()), None, span, span, tuple(names), tuple(calls))
    atom = Atom(name, (*columns.values(), *targets), span=span, name_span=span)
    return Rule((head,), before, span), replace(rule, body=(atom, *after))


def _depending(body: Sequence[Literal], targets: set[str]) -> list[Literal]:
    """The literals that read what windows give, or what is computed or joined from it."""
    known = set(targets)
    while True:
        after = [literal for literal in body if not known.isdisjoint(_names([literal]))]
        more = _names(after) - _bound([literal for literal in body if literal not in after])
        if more <= known:
            return after
        known |= more


def _bound(literals: Sequence[Literal]) -> set[str]:
    """The variables that literals bind by themselves."""
    atoms = [one for one in flat(literals) if isinstance(one, Atom) and not one.negated]
    bound = _names(atoms)
    comparisons = [one for one in literals if isinstance(one, Comparison)]
    assignments, _ = order_assignments(comparisons, bound)
    return bound | {assignment.variable for assignment in assignments}


def _names(literals: Iterable[Literal]) -> set[str]:
    return {variable.name for variable in variables_in(literals)}
