"""differential: motifs as rules, without Spark, by looking."""

from __future__ import annotations

import itertools
import math
from collections import Counter
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
        ("(a)=[e]=(b)", errors.RuleSyntaxError, "a step is"),
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


def walks(length: int) -> set[tuple[int, int]]:
    """The ends of walks of so many edges."""
    found = {(row[0], row[1]) for row in EDGES}
    for _ in range(length - 1):
        found = {(a, row[1]) for a, b in found for row in EDGES if row[0] == b}
    return found


def reversed_(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(b, a) for a, b in pairs}


ONE = walks(1)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("(a)<-[]-(b)", reversed_(ONE)),
        ("(a)<-[]->(b)", ONE & reversed_(ONE)),
        ("(a)-[]-(b)", ONE | reversed_(ONE)),
        ("(a)-[*2]->(b)", walks(2)),
        ("(a)<-[*3]-(b)", reversed_(walks(3))),
        ("(a)-[*1..3]->(b)", ONE | walks(2) | walks(3)),
        ("(a)-[*2..3]-(b)", walks(2) | walks(3) | reversed_(walks(2)) | reversed_(walks(3))),
        ("(a)<-[*2]->(b)", walks(2) & reversed_(walks(2))),
        ("(a)-[*2]->(b); !(a)-[]-(b)", walks(2) - ONE - reversed_(ONE)),
        ("(a)-[]->(b); !(a)<-[]-(b)", ONE - reversed_(ONE)),
    ],
)
def test_oracle_directions_and_paths(pattern: str, expected: set[tuple[int, int]]) -> None:
    known = {vertex for vertex, _ in VERTICES}
    found = {(row[0], row[2]) for row in found_by(pattern)}
    assert found == {(a, b) for a, b in expected if {a, b} <= known}


def test_a_named_edge_either_way_has_its_row() -> None:
    found = {(row[0], row[2:5], row[5]) for row in found_by("(a)-[e]-(b)")}
    known = {vertex for vertex, _ in VERTICES}
    expected = {(a, row, b) for row in EDGES for a, b in (row[:2], row[1::-1]) if {a, b} <= known}
    assert found == expected


def found_by(pattern: str) -> list[tuple[Any, ...]]:
    database = lftj.Database()
    database.load("vertex", VERTICES, columns=["id", "name"])
    database.load("edge", EDGES, columns=["src", "dst", "day"])
    rule = rule_of_motif(pattern, ["id", "name"], ["src", "dst", "day"])
    rows = [tuple(row.values()) for row in database.query(rule.text).to_pylist()]
    assert len(set(rows)) == len(rows)
    return rows


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a)-[*0]->(b)", "1 to 16 edges"),
        ("(a)-[*3..2]->(b)", "1 to 16 edges"),
        ("(a)-[*1..17]->(b)", "1 to 16 edges"),
        ("(a)-[e*2]->(b)", "leave 'e' out"),
        ("(a)<-[e]->(b)", "leave 'e' out"),
        ("(a); (b); !(a)-[*2]->(b)", "one edge"),
        ("(a); (b); !(a)<-[]->(b)", "say which edge"),
    ],
)
def test_directions_and_paths_that_are_none(pattern: str, text: str) -> None:
    with pytest.raises(errors.RuleSyntaxError, match=text):
        rule_of_motif(pattern, ["id"], ["src", "dst"])


# -- places counted ----------------------------------------------------------------

PARALLEL = [
    (1, 2, "x"),
    (1, 2, "x"),
    (1, 2, "y"),
    (2, 1, "x"),
    (2, 3, "x"),
    (2, 3, "x"),
    (1, 1, "z"),
    (9, 2, "x"),
]
"""Edges with how often they are there, and one from where no vertex is."""


@pytest.mark.parametrize(
    ("pattern", "steps", "names"),
    [
        ("(a)-[]->(b)", [("a", "", "b")], "ab"),
        ("(a)-[]->(b); (b)-[e]->(c)", [("a", "", "b"), ("b", "e", "c")], "abec"),
        ("(a)<-[]-(b)", [("b", "", "a")], "ab"),
        ("(a)<-[]->(b)", [("a", "", "b"), ("b", "", "a")], "ab"),
        ("(a)-[*2]->(b)", [("a", "", "?"), ("?", "", "b")], "ab"),
        ("(a)<-[*2]->(b)", [("a", "", "?"), ("?", "", "b"), ("b", "", "!"), ("!", "", "a")], "ab"),
        ("(a)-[]->()", [("a", "", "?")], "a"),
        ("()-[e]->(b); (b)<-[f]-()", [("?", "e", "b"), ("!", "f", "b")], "ebf"),
        ("(a)-[]->(b); !(b)-[]->(a)", [("a", "", "b")], "ab"),
    ],
)
def test_oracle_places_come_as_often_as_edges_give_them(
    pattern: str, steps: list[tuple[str, str, str]], names: str
) -> None:
    """By looking at each choice of an edge for each step; ``?`` and ``!`` are vertices without a name."""
    known, expected = {1, 2, 3}, Counter[tuple[Any, ...]]()
    for chosen in itertools.product(PARALLEL, repeat=len(steps)):
        bound: dict[str, Any] = {}
        pairs = [
            (name, end)
            for (source, _, target), row in zip(steps, chosen, strict=True)
            for name, end in ((source, row[0]), (target, row[1]))
        ]
        if any(bound.setdefault(name, end) != end for name, end in pairs):
            continue
        if any(end not in known for name, end in pairs if name.isalpha()):
            continue
        if "!" in pattern and any((row[0], row[1]) == (bound["b"], bound["a"]) for row in PARALLEL):
            continue
        bound |= {edge: row for (_, edge, _), row in zip(steps, chosen, strict=True) if edge}
        expected[tuple(bound[name] for name in names)] += 1
    rule = rule_of_motif(pattern, ["id"], ["src", "dst", "day"], times="times")
    database = lftj.Database()
    database.load("vertex", [(vertex,) for vertex in known], columns=["id"])
    edges, ends = Counter(PARALLEL), Counter(row[:2] for row in PARALLEL)
    database.load("edge", [(*row, n) for row, n in edges.items()], columns=["src", "dst", "day", "times"])
    database.load("pair", [(*row, n) for row, n in ends.items()], columns=["src", "dst", "times"])
    found = Counter[tuple[Any, ...]]()
    for row in database.query(rule.text).to_pylist():
        place = []
        for one in rule.names:
            values = tuple(row[variable] for variable in one.variables)
            place.append(values if len(values) > 1 else values[0])
        found[tuple(place)] += math.prod(row[variable] for variable in rule.times)
    assert [one.name for one in rule.names] == list(names)
    assert found == expected != Counter()


@pytest.mark.parametrize("pattern", ["(a)-[]-(b)", "(a)-[e]-(b)", "(a)-[*1..2]->(b)"])
def test_what_can_not_be_counted_is_refused(pattern: str) -> None:
    with pytest.raises(errors.RuleSyntaxError, match="places are counted along"):
        rule_of_motif(pattern, ["id"], ["src", "dst"], times="times")
