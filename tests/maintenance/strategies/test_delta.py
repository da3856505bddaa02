"""`delta`: a step is what two evaluations differ in; its terms, their key orders, the indices they read."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings

from lftj.planning.lowering import Lowered
from lftj.planning.planner import OrderChoice
from maintenance import Workspace
from maintenance.stats import RuleStats
from maintenance.strategies.delta.delta_body import DeltaBody
from support.bodies import Case, brute_rows, cases, change_between, first_versions, rows_of
from support.records import round_of

MORE = settings(
    max_examples=2 * settings.default.max_examples if settings.default else 200,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.kernel
@MORE
@given(cases(most_rows=10))
def test_oracle_a_step_is_the_difference_of_two_builds(case: Case) -> None:
    """``step == build(new) - build(old)``, and both are what brute force finds."""
    versions = first_versions(case)
    body = DeltaBody(Lowered(case.problem, {}), OrderChoice(case.order, (), "given"), versions)
    columns, weights = body.build(versions)
    rows = brute_rows(case.problem, body.variables, case.states[0])
    assert rows_of(columns) == rows and set(weights.tolist()) <= {1}
    for before, after in itertools.pairwise(case.states):
        change = round_of(case, versions, before, after)
        stats = RuleStats()
        columns, signs = body.step(change, stats)
        found: Counter[tuple[int, ...]] = Counter()
        for row, sign in zip(rows_of(columns), signs.tolist(), strict=True):
            found[row] += sign
        following = brute_rows(case.problem, body.variables, after)
        assert {row: n for row, n in found.items() if n} == change_between(set(rows), set(following))
        assert rows_of(body.rows(change, after=False)) == rows
        assert rows_of(body.rows(change, after=True)) == following
        assert stats.regions <= stats.surgeries and stats.matches == 0
        event("rows came or went" if found else "nothing changed")
        versions, rows = dict(change.new), following


TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


def workspace(rule: str, strategy: str = "delta") -> Workspace:
    ws = Workspace()
    edges = [(a, b) for a in range(30) for b in range(a + 1, 30) if (a * b) % 3 != 1]
    ws.load("edge", edges, columns=["a", "b"])
    ws.load("wide", [(a, b, a + b + 1) for a, b in edges], columns=["a", "b", "c"])
    ws.install(rule, strategy)
    return ws


@pytest.mark.parametrize(
    ("rule", "n_indices"),
    [
        (TRIANGLES, 2),
        ("c(a, b, c, d) <- edge(a, b), edge(b, c), edge(c, d), edge(d, a).", 2),
        ("k(a, b, c, d) <- edge(a, b), edge(a, c), edge(a, d), edge(b, c), edge(b, d), edge(c, d).", 2),
        ("p(a, b, c) <- edge(a, b), edge(b, c).", 2),
        ("w(a, b, c, d) <- wide(a, b, c), wide(a, b, d).", 1),
        ("s(a, b, c, d, e) <- wide(a, b, c), wide(a, d, e).", 1),
        ("d[a] = count() <- edge(a, b).", 1),
    ],
)
def test_terms_share_indices(rule: str, n_indices: int) -> None:
    """The fewest permutations that serve all terms, the one that every relation has among them."""
    text = str(workspace(rule).explain_maintenance(rule.partition("(")[0].partition("[")[0]))
    read = set(re.findall(r"(?:new|old) \w+ by columns \((.*)\)", text))
    every = "0, 1, 2" if "wide" in rule else "0, 1"
    assert len(read | {every}) == n_indices


def test_a_transaction_is_searched_in_one_call_per_term() -> None:
    """What came and what went together; stats count the regions of each term."""
    ws = workspace(TRIANGLES)
    erased = [row for row in ws["edge"] if row[0] < 3]
    inserted = [(50, 51), (51, 52), (50, 52), (1, 4), (60, 61)]
    before = set(ws["tri"])
    with ws.transaction() as tx:
        tx.erase("edge", erased)
        tx.insert("edge", inserted)
    figures = tx.stats["tri"]
    assert figures.strategy == "delta"
    assert figures.regions == figures.surgeries == 3 * (len(set(erased) ^ set(inserted)))
    assert (figures.matches, figures.records, figures.index_bytes) == (0, 0, 0)
    assert (50, 51, 52) in ws["tri"] and before - set(ws["tri"])
    ws.verify()


def test_a_change_of_another_relation_costs_nothing() -> None:
    ws = workspace(TRIANGLES)
    with ws.transaction() as tx:
        tx.insert("wide", [(900, 901, 902)])
    assert tx.stats["tri"].operations == 0


def test_explanation_lists_terms_with_their_orders_and_indices() -> None:
    text = str(workspace("t(a, b, c) <- edge(a, b), wide(b, c, _), !edge(a, c).").explain_maintenance("t"))
    assert "t: strategy delta" in text
    for line in (
        "change of edge(a, b): ",
        "change of wide(b, c, _): ",
        "change of !edge(a, c): ",
        "  new edge by columns (",
        "  old wide by columns (",
    ):
        assert line in text, text


def test_existential_components_are_enumerated_or_tested() -> None:
    ws = workspace("hub(a) <- edge(a, b), edge(b, c), wide(_, d, d).")
    text = str(ws.explain_maintenance("hub"))
    assert "enumerated, rows have support counts (all assignments are needed)" in text
    assert "a test of its own" in text
    assert ws["hub"].count == 0
    with ws.transaction() as tx:
        tx.insert("wide", [(1, 7, 7)])
    assert ws["hub"].count > 0
    ws.verify()
    with ws.transaction() as tx:
        tx.erase("wide", [(1, 7, 7)])
    assert ws["hub"].count == 0
