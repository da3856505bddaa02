"""What `explain` says of a rule: key order, indices, what is left to do, and the measured counters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import lftj
from lftj import errors
from lftj.evaluation.explain import Explanation
from lftj.evaluation.reports import BodyReport
from support.plain_triejoin import Case, cases

TRIANGLE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
HELD = "all distinct rows are held in memory"


@pytest.fixture(scope="module")
def db() -> lftj.Database:
    made = lftj.Database()
    edges = [(i, j) for i in range(12) for j in range(i + 1, 12) if (i * j) % 5 < 3]
    made.load("edge", edges, columns=["src", "dst"])
    made.load("node", {"id": range(15)})
    made.load("colour", [(1, "red"), (2, "blue"), (3, "red")], columns=["id", "name"])
    made.load("base", [("tea", 100), ("soup", 250)], columns=["item", "pence"])
    made.load("weight", pa.table({"id": [1, 2, 3], "w": [0.5, 1.5, 2.5]}))
    made.load("nothing", pa.table({"a": pa.array([], pa.int64())}))
    return made


def only(explanation: Explanation) -> BodyReport:
    (body,) = explanation.bodies
    return body


def notes_at(body: BodyReport, variable: str) -> tuple[str, ...]:
    (depth,) = (depth for depth in body.depths if depth.variable == variable)
    return depth.notes


# -- order and indices -----------------------------------------------------------


def test_a_pinned_order_is_the_order(db: lftj.Database) -> None:
    body = only(db.explain(TRIANGLE, order=["c", "a", "b"]))
    assert body.order == ("c", "a", "b")
    assert body.reason == "given by the caller"
    assert body.indexes == (
        "edge(a, b)  by src, dst",
        "edge(b, c)  by dst, src",
        "edge(a, c)  by dst, src",
    )
    assert [depth.variable for depth in body.depths] == ["c", "a", "b"]
    assert [set(depth.participants) for depth in body.depths] == [
        {"edge(b, c)", "edge(a, c)"},
        {"edge(a, b)", "edge(a, c)"},
        {"edge(a, b)", "edge(b, c)"},
    ]
    assert body.notes == () and body.rows is None


def test_the_text_has_all_of_it(db: lftj.Database) -> None:
    text = str(db.explain(TRIANGLE + "  // three", order=["a", "b", "c"]))
    lines = text.splitlines()
    assert lines[0] == TRIANGLE
    assert lines[1] == "  key order   a, b, c   (given by the caller)"
    assert lines[2:5] == [
        "  index       edge(a, b)  by src, dst",
        "  index       edge(b, c)  by src, dst",
        "  index       edge(a, c)  by src, dst",
    ]
    assert re.split(r"\s{2,}", lines[5].strip()) == [
        "depth",
        "key",
        "participants",
        "est. matches",
        "est. operations",
    ]
    assert [line.split()[:2] for line in lines[6:]] == [["1", "a"], ["2", "b"], ["3", "c"]]
    assert "fixed part intersected once" in lines[8]
    assert repr(db.explain(TRIANGLE, order=["a", "b", "c"])) == text


def test_the_planner_says_why(db: lftj.Database) -> None:
    body = only(db.explain(TRIANGLE))
    assert sorted(body.order) == ["a", "b", "c"]
    assert re.match(r"least estimated cost of \d+ (candidate|greedy) orders$", body.reason)
    assert only(db.explain('h(a) <- colour(a, "red").')).reason == "least estimated cost of 1 greedy order"
    assert only(db.explain("h(a) <- node(a).")).reason == "the only order"


def test_literals_come_first_and_repeated_variables_restrict(db: lftj.Database) -> None:
    body = only(db.explain('h(a) <- colour(a, "red"), edge(a, a).'))
    assert body.order == ('"red"', "a")
    assert body.indexes == ('colour(a, "red")  by name, id', "edge(a, a)  by src, where src = dst")
    assert body.depths[0].notes == ()


def test_columns_that_need_no_walk(db: lftj.Database) -> None:
    body = only(db.explain("h(a) <- edge(a, b), base(_, _), !colour(a, _)."))
    assert body.order == ("a",)
    assert body.indexes == (
        "edge(a, b)  by src",
        "base(_, _)  by its number of rows",
        "not colour(a, _)  by id",
    )
    counted = only(db.explain("n[a] = count() <- edge(a, _)."))
    assert counted.order == ("a",) and counted.indexes == ("edge(a, _)  by src",)


@pytest.mark.parametrize(
    ("rule", "order", "message"),
    [
        (TRIANGLE, ["a", "b"], "order= leaves out c; give all of a, b, c"),
        (
            TRIANGLE,
            ["a", "b", "c", "d"],
            "order= names 'd', which is no key variable of the rule; it has a, b, c",
        ),
        (TRIANGLE, ["a", "b", "b", "c"], "order= names 'b' twice"),
        (TRIANGLE, "abc", "order= takes a list of variables, not the string 'abc'"),
        (TRIANGLE, [], "order= leaves out a, b, c; give all of a, b, c"),
        ("h(v) <- edge(a, b), v = a + b.", ["a", "b", "v"], "order= names 'v', which is no key variable"),
    ],
)
@pytest.mark.parametrize("call", ["query", "stream", "count", "explain", "trace"])
def test_orders_that_do_not_fit(
    db: lftj.Database, call: str, rule: str, order: Sequence[str], message: str
) -> None:
    with pytest.raises(errors.OrderError) as caught:
        result: Any = getattr(db, call)(rule, order=order)
        list(result)
    assert message in str(caught.value)


def test_an_order_is_for_the_heads_own_rule(db: lftj.Database) -> None:
    program = "two(a, c) <- edge(a, b), edge(b, c). h(a, c) <- two(a, c), !edge(a, c)."
    first, second = db.explain(program, order=["c", "a"]).bodies
    assert second.order == ("c", "a") and second.reason == "given by the caller"
    assert set(first.order) == {"a", "b", "c"} and first.reason != "given by the caller"


# -- what happens at a depth -----------------------------------------------------------


def test_comparisons_are_bounds_where_they_are_complete(db: lftj.Database) -> None:
    body = only(db.explain("h(a, b) <- edge(a, b), a < b, b <= 7, a != 3.", order=["a", "b"]))
    assert notes_at(body, "a") == ("a != 3",)
    assert set(notes_at(body, "b")) == {"a < b", "b <= 7"}
    assert notes_at(only(db.explain("h(i) <- weight(i, w), w < 2.")), "w")[0] == "w < 2"


def test_comparisons_of_strings_become_relations_or_ranks(db: lftj.Database) -> None:
    body = only(db.explain('h(a) <- colour(a, n), n > "black".'))
    assert 'n > "black"  by n' in body.indexes
    body = only(db.explain("h(n, m) <- colour(a, n), colour(b, m), n < m.", order=["n", "m", "a", "b"]))
    assert notes_at(body, "m") == ("n < m",)


def test_negated_atoms_are_tested_where_they_are_complete(db: lftj.Database) -> None:
    body = only(db.explain("h(a, c) <- edge(a, b), edge(b, c), !edge(a, c).", order=["b", "a", "c"]))
    assert body.indexes[-1] == "not edge(a, c)  by src, dst"
    assert "not edge(a, c)" in notes_at(body, "c") and not notes_at(body, "a")


def test_short_circuits(db: lftj.Database) -> None:
    exists = "exists: stops at the first success"
    body = only(db.explain("h(a) <- edge(a, b), edge(b, c), node(c).", order=["a", "b", "c"]))
    assert not notes_at(body, "a") and exists in notes_at(body, "b") and exists in notes_at(body, "c")
    assert body.notes == ()
    late = only(db.explain("h(c) <- edge(a, b), edge(b, c).", order=["b", "c"]))
    assert late.notes == (f"an existential variable stands before a head variable: {HELD}",)
    counted = only(db.explain("n[a] = count() <- edge(a, b), node(b).", order=["a", "b"]))
    assert notes_at(counted, "b") == ("counted",)
    assert counted.notes == ("count: the search counts the assignments behind each row",)


# -- notes on the whole ------------------------------------------------------------------


def test_what_is_done_on_the_rows(db: lftj.Database) -> None:
    body = only(db.explain("h(a, v) <- edge(a, b), v = a + b, v * 2 > b, a * b = 6, !node(v)."))
    assert [note.removeprefix("on the rows, after the search: ") for note in body.notes] == [
        f"b is not in the head: {HELD}",
        "v * 2 > b",
        "a * b = 6",
        "v = a + b",
        "not node, of an assigned variable",
    ]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("p[i] = b <- base(i, b).", "a key may come up with two values"),
        ("h(a) <- (edge(a, _) ; edge(_, a)).", "rows of several bodies may be equal"),
        ("h(a) <- edge(a, _). h(b) <- edge(_, b).", "rows of several bodies may be equal"),
        ("h(a) <- edge(a, b), a * b > 3.", "b is not in the head"),
    ],
)
def test_why_rows_are_held(db: lftj.Database, rule: str, reason: str) -> None:
    for body in db.explain(rule).bodies:
        assert f"{reason}: {HELD}" in body.notes


def test_rows_that_leave_as_they_are_found(db: lftj.Database) -> None:
    for rule in (TRIANGLE, "h(a) <- edge(a, b), node(b).", "h(b, a) <- edge(a, b), a < b."):
        assert not any(HELD in note for note in only(db.explain(rule)).notes)


def test_alternatives_are_counted_once(db: lftj.Database) -> None:
    bodies = db.explain("n[a] = count() <- (edge(a, b) ; edge(b, a)).").bodies
    assert len(bodies) == 2
    for body in bodies:
        assert body.notes == (f"count: {HELD}, for an assignment of several alternatives counts once",)


@pytest.mark.parametrize(
    "rule",
    [
        "n[a] = sum(b) <- (edge(a, b), edge(b, c) ; edge(a, b), edge(c, b)).",
        "n[] = max(a) <- (edge(a, b), edge(b, c), edge(a, c) ; node(a), edge(b, a), edge(b, c)).",
        "n[a] = count() <- (edge(a, _) ; edge(_, a)).",
        "n[a] = count() <- edge(a, b), node(b).",
        "h(a) <- (edge(a, b), node(b) ; edge(b, a), node(b)).",
        "h(a, a) <- edge(a, b), edge(b, _).",
        "p[a, b] = b <- edge(a, b), node(a).",
    ],
)
def test_the_plan_that_is_shown_is_the_one_that_runs(db: lftj.Database, rule: str) -> None:
    shown, run = db.explain(rule).bodies, db.explain(rule, analyze=True).bodies
    for planned, measured in zip(shown, run, strict=True):
        assert planned.order == measured.order and planned.reason == measured.reason
        assert planned.indexes == measured.indexes and planned.notes == measured.notes
        for before, after in zip(planned.depths, measured.depths, strict=True):
            assert (before.notes, before.participants) == (after.notes, after.participants)
            assert before.estimated_operations == after.estimated_operations


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
def test_cartesian_products(db: lftj.Database) -> None:
    product = "cartesian product of parts that share no variable"
    assert only(db.explain("h(a, i) <- node(a), base(i, _).")).notes == (f"{product}: a; i",)
    body = only(db.explain("n[a] = count() <- node(a), colour(b, n), edge(b, c), edge(c, d), d < b."))
    assert body.notes[0] == f"{product}: a; b, c, d"
    assert only(db.explain("h(a, i) <- node(a), base(i, p), colour(x, _), edge(x, 7).")).notes[0] == (
        f"{product}: a; i"
    )
    # Parts that only have to hold multiply nothing; neither do literals.
    for rule in ("h(a) <- node(a), base(i, _).", "n[a] = count() <- node(a), edge(1, 2)."):
        assert not any(product in note for note in only(db.explain(rule)).notes)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ('h(a) <- colour(a, "green").', '"green" does not occur in colour'),
        ("h(a) <- node(a), a < a.", "a < a never holds"),
        ('h(a) <- colour(a, n), n = "green".', 'n = "green" never holds'),
        ("h(a) <- node(a), a = 2.5.", "a = 2.5 never holds"),
    ],
)
@pytest.mark.parametrize("analyze", [False, True])
def test_bodies_that_need_no_search(db: lftj.Database, rule: str, why: str, analyze: bool) -> None:
    body = only(db.explain(rule, analyze=analyze))
    assert body.notes == (f"empty without a search: {why}",)
    assert body.operations == 0 and body.rows == (0 if analyze else None)


def test_empty_relations(db: lftj.Database) -> None:
    body = only(db.explain("h(a) <- node(a), nothing(a).", analyze=True))
    assert body.rows == 0 and body.operations == 0


def test_every_rule_that_the_head_needs(db: lftj.Database) -> None:
    program = """
        two(a, c) <- edge(a, b), edge(b, c).
        unused(a) <- node(a).
        far(a, c) <- two(a, c), !edge(a, c).
        n[a] = count() <- far(a, _).
    """
    explanation = db.explain(program, analyze=True)
    assert [body.head for body in explanation.bodies] == ["two", "far", "n"]
    assert str(explanation).count("key order") == 2 and str(explanation).count("  scan  ") == 1
    assert db.explain(program, head="two").bodies[0].head == "two"


# -- what was measured -------------------------------------------------------------------------


def test_counters_are_those_of_the_text(db: lftj.Database) -> None:
    explanation = db.explain(TRIANGLE, analyze=True)
    body = only(explanation)
    assert explanation.analyzed and explanation.seconds is not None and explanation.seconds >= 0
    counters = [(depth.opens, depth.nexts, depth.seeks) for depth in body.depths]
    assert body.rows == db.count(TRIANGLE) > 0
    assert body.operations == sum(n for row in counters for n in row if n is not None) > 0
    lines = str(explanation).splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:2] == ["depth", "key"])
    assert lines[start].split()[-3:] == ["opens", "nexts", "seeks"]
    for line, row in zip(lines[start + 1 :], counters, strict=False):
        assert [f"{n:,}" for n in row if n is not None] == re.findall(r"[\d,]+", line.split("fixed")[0])[-3:]
    assert f"  measured: {body.rows:,} rows, {body.operations:,} operations" in lines
    assert re.fullmatch(r"evaluated in \d+\.\d{3} s", lines[-1])


def test_nothing_is_measured_unless_asked(db: lftj.Database) -> None:
    explanation = db.explain(TRIANGLE)
    assert not explanation.analyzed and explanation.seconds is None
    assert "measured" not in str(explanation) and "opens" not in str(explanation)
    assert all(depth.opens is None for depth in only(explanation).depths)
    assert all(depth.estimated_operations > 0 for depth in only(explanation).depths)


def test_one_row(db: lftj.Database) -> None:
    assert "  measured: 1 row, " in str(db.explain("h(a) <- node(a), a = 3.", analyze=True))


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
@settings(max_examples=40)
@given(cases())
def test_analyze_runs_what_query_runs(case: Case) -> None:
    """Its rows, under the order that is shown without analyzing, whatever the rule."""
    db = case.database()
    planned, analyzed = only(db.explain(case.text)), only(db.explain(case.text, analyze=True))
    assert analyzed.order == planned.order and analyzed.indexes == planned.indexes
    n_rows = db.query(case.text).num_rows
    assert analyzed.rows is not None
    if any(HELD in note for note in analyzed.notes):
        assert analyzed.rows >= n_rows
    else:
        assert analyzed.rows == n_rows
    shown = [name for name in planned.order if not name.isdigit()]
    assert only(db.explain(case.text, order=shown)).order == planned.order


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
def test_explaining_costs_little_whatever_the_estimate() -> None:
    """A join of 10^17 assignments is planned, not run: that would take years."""
    n = 300
    db = lftj.Database()
    db.load("e", {"a": [i // n for i in range(n * n)], "b": [i % n for i in range(n * n)]})
    db.load("n", {"x": range(3000)})
    db.explain("h(a, b, c) <- e(a, b), e(b, c), e(c, a), n(a).")  # kernels are compiled
    product = only(db.explain("h(a, b, c, d, f) <- n(a), n(b), n(c), n(d), n(f)."))
    path = only(db.explain("h(a, b, c, d, f, g) <- e(a, b), e(b, c), e(c, d), e(d, f), e(f, g), e(g, a)."))
    assert product.depths[-1].estimated_matches > 1e17 and path.depths[-1].estimated_matches > 1e14
    assert "a pilot of the" in path.reason and path.piloted
    text = str(db.explain(path.rule))
    for order, operations in path.piloted:
        assert f"    pilot     {', '.join(order)}: {operations:,.0f} operations" in text


@pytest.mark.parametrize("rule", [TRIANGLE, "q(c, b, a) <- edge(b, a), edge(c, b), edge(c, a)."])
def test_edges_that_lead_the_dearer_way(rule: str) -> None:
    """A hub's 1,000 edges lead away from it: a million pairs."""
    db = lftj.Database()
    rim = [(a, a + 1) for a in range(1, 1000)]
    db.load("edge", [(0, a) for a in range(1, 1001)] + rim, columns=["src", "dst"])
    order = ["a", "b", "c"] if rule == TRIANGLE else ["c", "b", "a"]
    (note,) = (n for n in only(db.explain(rule, analyze=True, order=order)).notes if "if each edge led" in n)
    assert note.startswith("edge: ") and note.endswith("now at up to 1,000,999")
    assert "if each edge led" not in str(db.explain(rule, order=order))
    assert "if each edge led" not in str(db.explain(rule, analyze=True, order=order[::-1]))
    both = [(b, a) for a, b in rim]
    db.load("edge", rim + both + [(0, a) for a in range(1, 1001)], columns=["src", "dst"])
    assert "if each edge led" not in str(db.explain(rule, analyze=True, order=order))


def test_strata_are_drawn_where_a_head_reads_another(db: lftj.Database) -> None:
    program = "two(a, c) <- edge(a, b), edge(b, c).  far(a) <- edge(a, _), !two(a, _)."
    lines = str(db.explain(program)).split("\n")
    assert lines[:4] == ["strata", "  0  edge", "  1  two   <- edge", "  2  far   <- edge, !two"]
    assert not str(db.explain("two(a, c) <- edge(a, b), edge(b, c).")).startswith("strata")


def test_a_test_of_a_text_is_an_atom_where_nothing_else_narrows_the_search() -> None:
    db = lftj.Database()
    names = ["green tea", "tea", None, "evergreen", "black"]
    db.load("part", pa.table({"p": range(5), "n": names}), nulls="keep")
    db.load("sold", pa.table({"p": [0, 0, 1, 2, 3, 4, 7], "q": [1, 2, 3, 4, 5, 6, 7]}))
    rule = 'h(p, q) <- part(p, n), n like "%green%", sold(p, q).'
    assert db.query(rule).to_pydict() == {"p": [0, 0, 3], "q": [1, 2, 5]}
    assert 'index       n like "%green%"  by n' in str(db.explain(rule))
    assert db.query(rule.replace(" like", " not like")).to_pydict()["p"] == [1, 4]
    narrow = rule.replace("sold(p, q)", "sold(p, q), q = 5")
    assert db.query(narrow).to_pydict() == {"p": [3], "q": [5]}
    assert 'on the rows, after the search: n like "%green%"' in str(db.explain(narrow))
    db.load("part", pa.table({"p": [1], "n": ["greens"]}))
    assert db.query(rule).to_pydict() == {"p": [1], "q": [3]}


def test_heads_of_several_aggregates_are_joined_without_a_search() -> None:
    db = lftj.Database()
    db.load("r", [(1, 2), (1, 3), (2, 5)], columns=["a", "b"])
    rule = "h(count(), a, sum(b)) <- r(a, b)."
    last = db.explain(rule, analyze=True).bodies[-1]
    assert (last.head, last.depths, last.notes) == (
        "h",
        (),
        ("no search: its columns are those of h#1, h#2, which have the same groups",),
    )
    assert sorted(zip(*db.query(rule).to_pydict().values(), strict=True)) == [(1, 2, 5), (2, 1, 5)]
    assert db.count(rule) == 2
    assert db.query("h(count(), sum(b)) <- r(a, b), a > 9.").num_rows == 0


def test_a_test_of_many_texts_waits_where_few_rows_are_joined_with_them() -> None:
    db = lftj.Database()
    db.load("part", pa.table({"p": range(50), "n": [f"green {n}" for n in range(50)]}))
    db.load("few", pa.table({"p": [3]}))
    rule = 'h(p) <- part(p, n), n like "%green%", few(p).'
    assert db.query(rule).to_pydict() == {"p": [3]}
    assert 'on the rows, after the search: n like "%green%"' in str(db.explain(rule))
