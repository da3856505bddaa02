"""`delta`: a step is what two evaluations differ in; its terms, their key orders, the indices they read."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from lftj.planning import planner
from lftj.planning.lowered import Lowered
from lftj.planning.planner import OrderChoice
from lftj.search.regions import weighted
from lftj.storage.relation_version import levels_of
from lftj.storage.signed_rows import Columns
from maintenance import Workspace
from maintenance.changes.change import Change
from maintenance.stats import RuleStats
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.delta import term
from maintenance.strategies.delta.delta_body import DeltaBody
from maintenance.strategies.strategy import Building, Round
from support.bodies import Case, Contents, brute_rows, cases, first_versions, rows_of
from support.records import round_of

MORE = settings(
    max_examples=2 * settings.default.max_examples if settings.default else 200,
    suppress_health_check=list(HealthCheck),
)


def counted(case: Case, body: DeltaBody, state: Contents) -> Counter[tuple[int, ...]]:
    """The bindings of the body's variables by brute force, with the number of assignments of the others."""
    rows = brute_rows(case.problem, case.order, state)
    places = [case.order.index(name) for name in body.variables]
    return Counter(tuple(row[place] for place in places) for row in rows)


def added_up(columns: Columns, weights: np.ndarray) -> dict[tuple[int, ...], int]:
    found: Counter[tuple[int, ...]] = Counter()
    rows = rows_of(list(columns)) if len(columns) else [()] * len(weights)
    for row, weight in zip(rows, weights.tolist(), strict=True):
        found[row] += weight
    return {row: weight for row, weight in found.items() if weight}


@pytest.mark.kernel
@MORE
@given(cases(most_rows=10), st.integers(0, 2**8), st.sampled_from((1, 3, 1 << 10)))
def test_oracle_a_step_is_the_difference_of_two_builds(case: Case, left_out: int, room: int) -> None:
    """``step == build(new) - build(old)``, and both are what brute force finds; also in tiny buffers."""
    names = [name for place, name in enumerate(case.order) if left_out >> place & 3]
    problem = replace(case.problem, emitted=tuple(names))
    versions = first_versions(case)
    with mock.patch.object(weighted, "BUFFERED_ROWS", room):
        body = DeltaBody(Lowered(problem, {}), OrderChoice(case.order, (), "given"), versions)
        built = body.build(Building(versions))
        rows = counted(case, body, case.states[0])
        assert added_up(*built) == rows and len(built[1]) in (len(rows), 1)
        for before, after in itertools.pairwise(case.states):
            change = round_of(case, versions, before, after)
            stats = RuleStats()
            found = added_up(*body.step(change, stats))
            following = counted(case, body, after)
            assert found == {
                row: following[row] - rows[row] for row in {*rows, *following} if following[row] != rows[row]
            }
            assert added_up(*body.rows(change, after=False)) == rows
            assert added_up(*body.rows(change, after=True)) == following
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


def test_the_rows_of_one_atom_are_the_change_itself() -> None:
    """No kernel is called for them, and no branch is searched once for several."""
    ws = workspace("n[a] = count() <- edge(a, _).")
    with (
        mock.patch.object(weighted, "_search_all", side_effect=AssertionError),
        mock.patch.object(term, "_with_carried", side_effect=AssertionError),
        ws.transaction() as tx,
    ):
        tx.insert("edge", [(1, 100), (1, 101), (200, 1)])
    assert (1, 100) in ws["edge"] and tx.changes["n"].num_rows == 3
    ws.verify()


def test_what_is_not_wanted_is_counted_not_listed() -> None:
    """A row per changed edge, however many triangles it closes."""
    ws = workspace(
        "t[] = count() <- edge(a, b), edge(b, c), edge(a, c). s[a] = sum(b) <- edge(a, b), edge(b, c)."
    )
    text = str(ws.explain_maintenance("t"))
    assert "(counted: " in text
    change = round_with(ws, [(2, 90), (90, 5)])
    for name in ("t", "s"):
        (head,) = [head for head in ws._state.heads.values() if head.name == name]
        (search,) = head.searches
        weights = search.step(change, RuleStats())[1]
        assert len(weights) <= 6 and "c" not in search.variables
        search.drop()
    ws.verify()


@pytest.mark.parametrize(
    "rule", ["n[a] = count() <- edge(a, _).", "n[a] = sum(d) <- wide(a, b, c), edge(c, d), edge(b, _)."]
)
def test_orders_that_are_tried_out_leave_no_index(rule: str) -> None:
    """Commits would step it for ever; a mere scan reads the index that is there."""
    with mock.patch.multiple(planner, SEARCHED_FROM=0, PILOT_FROM=0, PILOT_ORDER_COST=1):
        ws = workspace(rule, "auto")
    (search,) = ws._heads["n"].searches
    assert isinstance(search, AutoBody) and search.delta.whole._plan is not None
    terms = search.delta.terms.plans
    uses = [*search.delta.whole._plan.uses, *(use for plan in terms for use in (plan.change, *plan.uses))]
    for name, version in ws._state.versions.items():
        arity = len(version.schema.columns)
        read = {
            (levels_of(use.key[0], use.key[1], range(arity)), use.key[1])
            for use in uses
            if use.relation == name
        }
        assert version.index_keys <= read | {(tuple(range(arity)), ())}, name
    assert len(ws._state.versions["edge"].index_keys) == 1


def round_with(ws: Workspace, edges: list[tuple[int, int]]) -> Round:
    """A round in which the edges come."""
    old = dict(ws._state.versions)
    columns = [np.array(column) for column in zip(*sorted(edges), strict=True)]
    change = Round(old, dict(old), {})
    change.enter("edge", Change(columns, np.ones(len(edges), dtype=np.int64)))
    return change


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
