"""differential: motifs as rules, without Spark, by looking."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

import lftj
from lftj import errors
from spark_bridge.front_ends.motif import rule_of_motif

VERTICES = [(1, "ann"), (2, "bob"), (3, "cy"), (4, "ann"), (5, "di"), (6, "eve")]
EDGES = [(1, 2, 5), (1, 2, 6), (2, 3, 5), (3, 1, 5), (3, 4, 9), (4, 9, 1), (2, 2, 0), (5, 6, 3)]


def by_looking(steps: Iterable[tuple[str, str, str, bool]], names: list[str]) -> list[tuple[Any, ...]]:
    """What the motif's names are found in: vertices by their rows, edges by theirs."""
    steps = list(steps)
    positive = [step for step in steps if not step[3]]
    found = set()
    for edges in itertools.product(EDGES, repeat=len(positive)):
        bound: dict[str, Any] = {}
        fits = True
        for (source, edge, target, _), row in zip(positive, edges, strict=True):
            for name, vertex in ((source, row[0]), (target, row[1])):
                known = [one for one in VERTICES if one[0] == vertex]
                if name:
                    fits &= bool(known) and bound.setdefault(name, known[0]) == known[0]
            bound[edge or ""] = row
            if not fits:
                break
        if fits and all(
            not any(
                (not source or row[0] == bound[source][0]) and (not target or row[1] == bound[target][0])
                for row in EDGES
            )
            for source, _, target, negated in steps
            if negated
        ):
            found.add(tuple(value for name in names for value in bound[name]))
    return sorted(found)


@pytest.mark.parametrize(
    ("pattern", "steps", "names"),
    [
        ("(a)-[e]->(b)", [("a", "e", "b", False)], ["a", "e", "b"]),
        ("(a)-[]->(b); (b)-[]->(c)", [("a", "", "b", False), ("b", "", "c", False)], ["a", "b", "c"]),
        (
            " (a)-[e]->(b) ;(b)-[f]->(c);!(c)-[]->(a); ",
            [("a", "e", "b", False), ("b", "f", "c", False), ("c", "", "a", True)],
            ["a", "e", "b", "f", "c"],
        ),
        ("(a)-[]->(); !()-[]->(a)", [("a", "", "", False), ("", "", "a", True)], ["a"]),
        ("()-[e]->(b); !(b)-[]->()", [("", "e", "b", False), ("b", "", "", True)], ["e", "b"]),
        ("(a)-[e]->(a)", [("a", "e", "a", False)], ["a", "e"]),
    ],
)
def test_a_motif_is_where_one_sees_it(pattern: str, steps: list[Any], names: list[str]) -> None:
    rule = rule_of_motif(pattern, ["id", "name"], ["src", "dst", "weight"])
    assert [one.name for one in rule.names] == names
    database = lftj.Database()
    database.load("vertex", VERTICES, columns=["id", "name"])
    database.load("edge", EDGES, columns=["src", "dst", "weight"])
    table = database.query(rule.text)
    variables = [variable for one in rule.names for variable in one.variables]
    found = [tuple(row[variable] for variable in variables) for row in table.to_pylist()]
    assert sorted(found) == by_looking(steps, names)
    assert len(set(found)) == table.num_rows > 0


@pytest.mark.parametrize(
    ("pattern", "error", "named"),
    [
        ("(a)-[e]-(b)", errors.RuleSyntaxError, "a step is"),
        ("", errors.RuleSyntaxError, "a step is"),
        ("(a)-[e]->(b); (b)-[e]->(c)", errors.RuleSyntaxError, "'e' stands twice"),
        ("(a)-[a]->(b)", errors.RuleSyntaxError, "'a' stands twice"),
        ("(a)-[e]->(b); (e)-[]->(b)", errors.RuleSyntaxError, "'e' stands twice"),
        ("(a)-[]->(b); !(a)-[e]->(b)", errors.RuleSyntaxError, "has no name"),
        ("(a)-[]->(b); !(b)-[]->(c)", errors.UnboundVariableError, "'c'"),
        ("()-[]->()", errors.UnboundVariableError, "names nothing"),
    ],
)
def test_what_is_no_motif_is_refused(pattern: str, error: type[Exception], named: str) -> None:
    with pytest.raises(error) as caught:
        rule_of_motif(pattern, ["id"], ["src", "dst"])
    assert named in str(caught.value)
