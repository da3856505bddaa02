"""A rule as SQL, for comparing with a database on data too large for nested loops in Python.

Plain rules only: one head without aggregate, one conjunction of atoms, negated
atoms and comparisons over variables that positive atoms bind.  Columns of
every relation are named c0, c1, ...
"""

from __future__ import annotations

from typing import Any

from support.rules import (
    OPERATORS,
    Arithmetic,
    Atom,
    Call,
    Comparison,
    Constant,
    Expression,
    Minus,
    Rule,
    Variable,
    Wildcard,
)

SIGNS = {"!=": "<>", "<=>": "is not distinct from", "<!=>": "is distinct from"}


def sql_literal(value: Any) -> str:
    """
    >>> sql_literal(5), sql_literal(-5), sql_literal("it's")
    ('5', '(-5)', "'it''s'")
    """
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"({value})" if value < 0 else str(value)


def sql_expression(node: Expression, places: dict[str, str]) -> str:
    if isinstance(node, Variable):
        return places[node.name]
    if isinstance(node, Constant):
        return sql_literal(node.value)
    if isinstance(node, Minus):
        return f"(-{sql_expression(node.operand, places)})"
    if isinstance(node, Call):
        first, *others = (sql_expression(argument, places) for argument in node.arguments)
        if node.function in ("and", "or", *OPERATORS):
            return f"({first} {SIGNS.get(node.function, node.function)} {others[0]})"
        if node.function == "is null":
            return f"({first} is null)"
        if node.function == "not":
            return f"(not {first})"
        if node.function == "if":
            return f"(case when {first} then {' else '.join(others)} end)"
        if node.function == "in":
            return f"({first} in ({', '.join(others)}))"
        if node.function == "like":
            return f"({first} like {' escape '.join(others)})"
        if node.function == "||":
            return f"({first} || {others[0]})"
        name = {"position": "strpos"}.get(node.function, node.function)
        return f"{name}({', '.join([first, *others])})"
    assert isinstance(node, Arithmetic)
    return f"({sql_expression(node.left, places)} {node.operator} {sql_expression(node.right, places)})"


def conditions(atom: Atom, alias: str, places: dict[str, str]) -> list[str]:
    """What the atom's terms ask of row ``alias``; variables that are new get their place there."""
    asked = []
    for column, term in enumerate(atom.terms):
        here = f"{alias}.c{column}"
        if isinstance(term, Constant):
            asked.append(f"{here} = {sql_literal(term.value)}")
        elif isinstance(term, Variable):
            if places.setdefault(term.name, here) != here:
                asked.append(f"{here} = {places[term.name]}")
        else:
            assert isinstance(term, Wildcard)
    return asked


def to_sql(rule: Rule) -> str:
    """The query whose rows are the head's tuples, each once.

    >>> from support.rules import atom, compare, head, no
    >>> to_sql(Rule((head("h", "a"),), (atom("e", "a", "b"), compare("a", "<", "b"))))
    'select distinct p0.c0 from e p0 where (p0.c0 < p0.c1)'
    >>> to_sql(Rule((head("h", "a"),), (atom("e", "a", 5), no("f", "_", "a"))))
    'select distinct p0.c0 from e p0 where p0.c1 = 5 and not exists (select 1 from f n0 where n0.c1 = p0.c0)'
    """
    positive = [literal for literal in rule.body if isinstance(literal, Atom) and not literal.negated]
    negative = [literal for literal in rule.body if isinstance(literal, Atom) and literal.negated]
    places: dict[str, str] = {}
    asked = []
    for number, atom in enumerate(positive):
        asked += conditions(atom, f"p{number}", places)
    for number, atom in enumerate(negative):
        inner = " and ".join(["true", *conditions(atom, f"n{number}", places)]).removeprefix("true and ")
        asked.append(f"not exists (select 1 from {atom.relation} n{number} where {inner})")
    for comparison in rule.body:
        if isinstance(comparison, Comparison):
            left, right = (sql_expression(side, places) for side in (comparison.left, comparison.right))
            asked.append(f"({left} {SIGNS.get(comparison.operator, comparison.operator)} {right})")
    columns = ", ".join(places[variable.name] for variable in rule.heads[0].variables)
    tables = ", ".join(f"{atom.relation} p{number}" for number, atom in enumerate(positive))
    return f"select distinct {columns} from {tables}" + (f" where {' and '.join(asked)}" if asked else "")
