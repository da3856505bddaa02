"""oracle: `db.trace` against leapfrog triejoin in plain Python; worked examples: the paper's and our own."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given

import lftj
from lftj import errors
from lftj.evaluation.trace import SCHEMA as TRACE
from support.kinds import KINDS, Kind
from support.plain_triejoin import Case, Operation, PlainTriejoin, cases, head_variables
from support.rows import rows_of
from support.strategies import Scenario, scenarios

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
]


def operations_of(table: pa.Table) -> list[Operation]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def opening_of(operations: list[Operation]) -> dict[int, list[tuple[str, int]]]:
    """Per depth the participants in the order in which its first node opens them."""
    first: dict[int, str] = {}
    opened: dict[int, list[tuple[str, int]]] = {}
    for depth, binding, name, level, operation, _, _ in operations:
        if operation == "open" and first.setdefault(depth, binding) == binding:
            opened.setdefault(depth - 1, []).append((name, level))
    return opened


@given(cases())
def test_trace_is_that_of_plain_leapfrog_triejoin(case: Case) -> None:
    db = case.database()
    operations = operations_of(db.trace(case.text, order=case.order))
    expected = PlainTriejoin(case, opening_of(operations))
    assert operations == expected.operations
    event(f"operations: {'none' if not operations else 'some' if len(operations) < 30 else 'many'}")
    rows = {tuple(binding[name] for name in head_variables(case.rule.heads[0])) for binding in expected.found}
    table = db.query(case.text)
    if not expected.order:  # nothing to walk: the atoms only have to hold
        return
    columns = table.columns[: len(case.rule.heads[0].variables)]
    assert rows == set(zip(*(column.to_pylist() for column in columns), strict=True))


@given(cases(plain=True))
def test_matches_can_be_read_off_the_trace(case: Case) -> None:
    """Where a node's iterators agree, its key is bound: at the last depth that is an assignment."""
    db = case.database()
    depths = db.explain(case.text, order=case.order).bodies[0].depths
    # Every depth has a name only if no literal stands at it.
    names = [depth.variable for depth in depths]
    rows = set()
    for binding, key in matches_of(operations_of(db.trace(case.text, order=case.order)), len(names)):
        values = [part.split("=")[-1] for part in binding.split(", ") if part] + [key]
        found = dict(zip(names, map(int, values), strict=True))
        if all(found[name] == int(name) for name in names if name.isdigit()):
            rows.add(tuple(found[name] for name in head_variables(case.rule.heads[0])))
    if names:
        assert rows == set(rows_of(db.query(case.text)))


@given(scenarios(nulls=True))
def test_any_rule_has_a_trace_or_an_error_of_the_library(scenario: Scenario) -> None:
    """Where the query has rows the trace comes to its last depth."""
    db = lftj.Database()
    for relation in scenario.loaded:
        db.load(relation.name, relation.table(), nulls=relation.nulls)
    for head in scenario.program[0].heads:
        try:
            table = db.trace(scenario.text, head=head.relation)
            n_rows = db.count(scenario.text, head=head.relation)
        except errors.LftjError as error:
            event(type(error).__name__)
            continue
        assert table.schema == TRACE
        depths = db.explain(scenario.text, head=head.relation).bodies[0].depths
        deepest = max(table["depth"].to_pylist(), default=0)
        assert deepest == len(depths) if n_rows else deepest <= len(depths)


def test_a_negated_atom_with_a_literal_that_does_not_occur() -> None:
    """Its other literals bind nothing either."""
    db = lftj.Database()
    db.load("e", {"a": ["x", "y"], "b": ["y", "z"]})
    rule = 'h(a) <- e(a, b), !e("x", "nowhere"), !e("nowhere", "x").'
    assert shown(db.trace(rule)) == shown(db.trace("h(a) <- e(a, b).")) != []
    assert sorted(rows_of(db.query(rule))) == [("x",), ("y",)]


def matches_of(operations: list[Operation], last: int) -> Iterator[tuple[str, str]]:
    """Node and key wherever all iterators of a node at depth ``last`` stand on one key after an operation."""
    here = [row for row in operations if row[0] == last]
    for binding, group in itertools.groupby(here, key=lambda row: row[1]):
        node = list(group)
        n_open = sum(row[4] == "open" for row in node)
        at: list[list[Any]] = []  # iterator (atom and level), and the key it stands on
        for _, _, name, level, operation, start, to in node:
            if operation == "open":
                at.append([(name, level), to])
            else:
                # Equal atoms have one name: of two on different keys the lower one moves.
                standing = [cursor for cursor in at if cursor[0] == (name, level) and cursor[1] is not None]
                moved = min(standing, key=lambda cursor: int(cursor[1]))
                assert operation == "seek" or moved[1] == start
                moved[1] = to
            if len(at) == n_open and to is not None and {key for _, key in at} == {to}:
                yield binding, to


# -- worked examples ---------------------------------------------------------------


def database(**relations: Any) -> lftj.Database:
    """Relations from lists of tuples; columns are named after the letters."""
    db = lftj.Database()
    for name, rows in relations.items():
        db.load(name, rows, columns=list("abcd"[: len(rows[0])]))
    return db


def shown(table: pa.Table) -> list[str]:
    """One line per operation: ``node: atom.level operation from -> to``."""
    return [
        f"{binding}: {name}.{level} {operation} {start or ''} -> {to or 'end'}".replace("  ", " ").lstrip(
            ": "
        )
        for _, binding, name, level, operation, start, to in operations_of(table)
    ]


def test_figure_1_of_the_paper() -> None:
    """Leapfrog join of three unary relations (arXiv 1210.0481, figure 1): A and B and C hold 8 only."""
    db = lftj.Database()
    db.load("A", {"x": [0, 1, 3, 4, 5, 6, 7, 8, 9, 11]})
    db.load("B", {"x": [0, 2, 6, 7, 8, 9]})
    db.load("C", {"x": [2, 4, 5, 8, 10]})
    rule = "J(x) <- A(x), B(x), C(x)."
    assert shown(db.trace(rule)) == [
        "A(x).0 open -> 0",
        "B(x).0 open -> 0",
        "C(x).0 open -> 2",
        "A(x).0 seek 2 -> 3",
        "B(x).0 seek 3 -> 6",
        "C(x).0 seek 6 -> 8",
        "A(x).0 seek 8 -> 8",
        "B(x).0 seek 8 -> 8",
        "C(x).0 next 8 -> 10",
        "A(x).0 seek 10 -> 11",
        "B(x).0 seek 11 -> end",
    ]
    assert db.query(rule).to_pydict() == {"x": [8]}


def test_columns() -> None:
    table = database(e=[(1, 2)]).trace("h(a, b) <- e(a, b), e(b, a).")
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("depth", "int32"),
        ("binding", "string"),
        ("atom", "string"),
        ("level", "int32"),
        ("operation", "string"),
        ("from", "string"),
        ("to", "string"),
    ]


def test_a_triangle() -> None:
    db = database(e=[(1, 2), (1, 3), (2, 3)])
    table = db.trace("tri(a, b, c) <- e(a, b), e(b, c), e(a, c).", order=["a", "b", "c"])
    assert shown(table) == [
        "e(a, b).0 open -> 1",
        "e(a, c).0 open -> 1",
        "a=1: e(a, b).1 open -> 2",
        "a=1: e(b, c).0 open -> 1",
        "a=1: e(b, c).0 seek 2 -> 2",
        "a=1, b=2: e(a, c).1 open -> 2",
        "a=1, b=2: e(b, c).1 open -> 3",
        "a=1, b=2: e(a, c).1 seek 3 -> 3",
        "a=1, b=2: e(b, c).1 next 3 -> end",
        "a=1: e(a, b).1 next 2 -> 3",
        "a=1: e(b, c).0 seek 3 -> end",
        "e(a, b).0 next 1 -> 2",
        "e(a, c).0 seek 2 -> 2",
        "a=2: e(a, b).1 open -> 3",
        "a=2: e(b, c).0 open -> 1",
        "a=2: e(b, c).0 seek 3 -> end",
        "e(a, b).0 next 2 -> end",
    ]


def test_an_existence_stops_at_its_first_success() -> None:
    db = database(e=[(1, 2), (1, 3), (1, 4)], n=[(2,), (3,), (4,)])
    short = "h(a) <- e(a, b), n(b)."
    assert shown(db.trace(short, order=["a", "b"])) == [
        "e(a, b).0 open -> 1",
        "a=1: e(a, b).1 open -> 2",
        "a=1: n(b).0 open -> 2",
        "e(a, b).0 next 1 -> end",
    ]
    # For a count no assignment may be left out.
    assert (
        sum("next" in line for line in shown(db.trace("c[a] = count() <- e(a, b), n(b).", order=["a", "b"])))
        == 4
    )
    # An existential variable that occurs once is not walked at all.
    assert shown(db.trace("h(a) <- e(a, b).")) == ["e(a, b).0 open -> 1", "e(a, b).0 next 1 -> end"]


def test_a_negated_atom_seeks_where_its_branch_is_there() -> None:
    db = database(e=[(1, 2), (1, 3), (2, 3)], not_so=[(1, 3), (3, 3)])
    assert shown(db.trace("h(a, b) <- e(a, b), !not_so(a, b).", order=["a", "b"])) == [
        "e(a, b).0 open -> 1",
        "!not_so(a, b).0 seek 1 -> 1",
        "a=1: e(a, b).1 open -> 2",
        "a=1: !not_so(a, b).1 seek 2 -> 3",
        "a=1: e(a, b).1 next 2 -> 3",
        "a=1: !not_so(a, b).1 seek 3 -> 3",
        "a=1: e(a, b).1 next 3 -> end",
        "e(a, b).0 next 1 -> 2",
        "!not_so(a, b).0 seek 2 -> 3",
        "a=2: e(a, b).1 open -> 3",
        "a=2: e(a, b).1 next 3 -> end",
        "e(a, b).0 next 2 -> end",
    ]


def test_comparisons_bound_the_search() -> None:
    db = database(n=[(1,), (2,), (3,), (4,)])
    assert shown(db.trace("h(a) <- n(a), a > 1, a <= 2.")) == [
        "n(a).0 open -> 1",
        "n(a).0 seek 2 -> 2",
        "n(a).0 next 2 -> 3",
    ]
    assert shown(db.trace("h(a) <- n(a), a > 2, a < 2.")) == []


def test_literals_stand_for_themselves() -> None:
    db = database(colour=[(1, "red"), (2, "blue"), (3, "red")])
    assert shown(db.trace('h(a) <- colour(a, "blue").')) == [
        'colour(a, "blue").0 open -> red',
        'colour(a, "blue").0 seek blue -> blue',
        'blue: colour(a, "blue").1 open -> 2',
        'blue: colour(a, "blue").1 next 2 -> end',
        'colour(a, "blue").0 next blue -> end',
    ]


@pytest.mark.parametrize(
    "rule",
    [
        'h(a) <- colour(a, "absent").',
        "h(a) <- colour(a, _), a > 2, a < a.",
        "h(a) <- colour(a, _), nothing(a, _).",
        "h(a) <- colour(a, _), !colour(_, _).",
    ],
)
def test_bodies_without_hope_have_no_trace(rule: str) -> None:
    db = database(colour=[(1, "red"), (2, "blue")])
    db.load("nothing", pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}))
    table = db.trace(rule)
    assert table.num_rows == 0 and table.column_names[0] == "depth"


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (
            pa.array([2**63 - 1, -(2**63), 0], pa.int64()),
            ["-9223372036854775808", "0", "9223372036854775807"],
        ),
        (pa.array([200, 3], pa.uint8()), ["3", "200"]),
        (pa.array([1.5, -0.25], pa.float32()), ["-0.25", "1.5"]),
        (pa.array([True, False]), ["false", "true"]),
        (pa.array([datetime.date(2026, 1, 31)]), ["2026-01-31"]),
        (pa.array([1], pa.timestamp("ns")), ["1970-01-01 00:00:00.000000001"]),
        (pa.array([Decimal("1.50"), Decimal("100.00")], pa.decimal128(6, 2)), ["1.5", "100"]),
        (pa.array(["b", "a"]), ["b", "a"]),
        (pa.array(["b", "a"]).dictionary_encode(), ["b", "a"]),
        (pa.array([b"\xff"], pa.binary_view()), ['x"ff"']),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_of_all_kinds_are_text(column: pa.Array, texts: list[str]) -> None:
    """String keys are walked in the order of their first appearance."""
    db = lftj.Database()
    db.load("r", pa.table({"x": column}))
    operations = operations_of(db.trace("h(x, y) <- r(x), r(y).", order=["x", "y"]))
    assert [row[-1] for row in operations if row[0] == 1] == [*texts, None]
    assert list(dict.fromkeys(row[1] for row in operations if row[0] == 2)) == [f"x={text}" for text in texts]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_variables_that_no_key_is_found_for_are_text_too(kind: Kind) -> None:
    """The log has rows above a variable, or ends of its iterators, and no value of it."""
    for arrow in dict.fromkeys(kind.types):
        values = pa.array(kind.values(arrow), arrow)
        db = lftj.Database()
        db.load("first", {"x": [1]})
        db.load("pair", pa.table({"x": pa.repeat(2, len(values)), "y": values}))
        db.load("none", pa.table({"y": values.slice(0, 0)}))
        trace = db.trace("h(x, y) <- first(x), pair(x, y).", order=["x", "y"])
        trace.validate(full=True)
        assert shown(trace) == [
            "first(x).0 open -> 1",
            "pair(x, y).0 open -> 2",
            "first(x).0 seek 2 -> end",
        ]
        trace = db.trace("h(y) <- pair(_, y), none(y).")
        trace.validate(full=True)
        assert trace.num_rows == 0


def test_sought_keys_may_not_fit_the_columns_type() -> None:
    db = lftj.Database()
    db.load("small", pa.table({"x": pa.array([100, 101], pa.int8())}))
    db.load("large", pa.table({"x": pa.array([100, 1000], pa.int64())}))
    assert shown(db.trace("h(x) <- small(x), large(x).")) == [
        "small(x).0 open -> 100",
        "large(x).0 open -> 100",
        "small(x).0 next 100 -> 101",
        "large(x).0 seek 101 -> 1000",
        "small(x).0 seek 1000 -> end",
    ]
    assert shown(db.trace("h(x, y) <- small(x), small(y), y >= x + 100.", order=["x", "y"]))[2] == (
        "x=100: small(y).0 seek 200 -> end"
    )


# -- limits and errors -------------------------------------------------------------


@pytest.mark.compiled
def test_the_limit_is_exact() -> None:
    db = database(n=[(k,) for k in range(5000)])
    rule = "h(x) <- n(x)."
    assert db.trace(rule, limit=5001).num_rows == 5001
    with pytest.raises(errors.LimitError, match=r"more than limit=5,000 operations: take a smaller input"):
        db.trace(rule, limit=5000)
    with pytest.raises(errors.LimitError):
        db.trace(rule, limit=0)
    with pytest.raises(ValueError, match="limit is a number of operations, not -1"):
        db.trace(rule, limit=-1)
    assert db.trace("h(x) <- n(x), x < 0.", limit=1).num_rows == 1


@pytest.mark.compiled
def test_the_limit_ends_a_search_without_end() -> None:
    db = lftj.Database()
    db.load("n", {"x": range(3000)})
    rule = "h(a, b, c, d, e) <- n(a), n(b), n(c), n(d), n(e)."
    with pytest.raises(errors.LimitError):  # of more than 3000^5 operations
        db.trace(rule, order=["a", "b", "c", "d", "e"], limit=100_000)


def test_a_trace_is_of_one_body() -> None:
    db = database(e=[(1, 2)])
    for program in ("h(a) <- (e(a, _) ; e(_, a)).", "h(a) <- e(a, _). h(a) <- e(_, a)."):
        with pytest.raises(errors.RuleError, match="h has several bodies"):
            db.trace(program)


def test_a_program_is_traced_at_the_chosen_head() -> None:
    db = database(e=[(1, 2), (2, 3)])
    program = "two(a, c) <- e(a, b), e(b, c). ends(c), starts(a) <- two(a, c)."
    assert shown(db.trace(program, head="ends")) == ["two(a, c).0 open -> 3", "two(a, c).0 next 3 -> end"]
    assert shown(db.trace(program, head="starts")) == ["two(a, c).0 open -> 1", "two(a, c).0 next 1 -> end"]
