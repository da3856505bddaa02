"""`auto`: budgets, the account, and what changing phases cost beside the best fixed choices."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintenance import Workspace
from maintenance.strategies.auto import auto_body
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.auto.ledger import Ledger
from maintenance.strategies.trace import body_trace

Edge = tuple[int, int]
TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
OPEN = "open(a, b, c) <- edge(a, b), edge(b, c), !edge(a, c)."


def graph(n: int, degree: int, seed: int = 1) -> list[Edge]:
    random = Random(seed)
    return sorted({(random.randrange(n), random.randrange(n)) for _ in range(n * degree)})


def workspace(rule: str, strategy: str, edges: list[Edge]) -> Workspace:
    ws = Workspace(single_changes="general")
    ws.load("edge", edges, columns=["a", "b"])
    ws.install(rule, strategy)
    return ws


def commit(ws: Workspace, inserted: list[Edge], erased: list[Edge] = ()) -> int:  # type: ignore[assignment]
    """Counted operations of the only head, those of sampling or preparing another way included."""
    with ws.transaction() as tx:
        tx.erase("edge", erased)
        tx.insert("edge", inserted)
    (figures,) = tx.stats.rules.values()
    return figures.operations


def body_of(ws: Workspace) -> AutoBody:
    (head,) = ws._state.heads.values()
    (search,) = head.searches
    assert isinstance(search, AutoBody)
    return search


# -- the account -----------------------------------------------------------------------------

COSTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=200)


@given(COSTS, st.integers(1, 200))
def test_law_of_the_account(costs: list[tuple[int, int]], price: int) -> None:
    """At most three times the best sequence of ways, but for two prices and the steps where it goes over."""
    ledger, way, total, late = Ledger(price), 0, 0, 0
    best = [0, price]  # cheapest sequence that ends in each way
    for pair in costs:
        total += pair[way]
        ledger.enter(pair[way], pair[1 - way])
        best = [min(best[0], best[1] + price) + pair[0], min(best[1], best[0] + price) + pair[1]]
        if ledger.says_change:
            way, total, late = 1 - way, total + price, late + max(pair)
            ledger.changed(price)
    assert total <= 3 * min(best) + 2 * price + 2 * late


@given(COSTS)
def test_oracle_below_its_price_the_balance_is_what_was_lost_less_what_was_won(
    costs: list[tuple[int, int]],
) -> None:
    ledger = Ledger(50 * 200 + 1)
    for pair in costs:
        ledger.enter(*pair)
    assert ledger.balance == sum(active - other for active, other in costs)


def test_twice_the_price_is_lost_before_the_way_back() -> None:
    """Also where it was won before: more than the price is not counted."""
    back, won = Ledger(10), Ledger(10)
    back.changed(10)
    for _ in range(5):
        won.enter(0, 7)
    for ledger in (back, won):
        steps = 0
        while not ledger.says_change:
            ledger.enter(1, 0)
            steps += 1
        assert steps == 20


# -- budgets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [TRIANGLES, OPEN])
def test_a_bulk_load_is_not_maintained_row_by_row(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes two evaluations and a bounded try, and the head is right."""
    monkeypatch.setattr(auto_body, "LEAST_BUDGET", 2_000)
    edges = graph(200, 8)
    ws, whole = workspace(rule, "auto", edges[:20]), workspace(rule, "auto", edges)
    with ws.transaction() as tx:
        tx.insert("edge", edges[20:])
    (figures,) = tx.stats.rules.values()
    body = body_of(whole)
    assert figures.chosen == ("recompute",) and figures.recomputed == 1
    assert figures.operations <= 3 * (body._whole + auto_body.LEAST_BUDGET)
    assert set(ws[figures_head(ws)]) == set(whole[figures_head(whole)])
    ws.verify()
    ws.check_invariants()
    assert "evaluated again in 1 commits" in str(ws.explain_maintenance(figures_head(ws)))
    assert commit(ws, [(1, 3_000)]) < auto_body.LEAST_BUDGET
    assert body_of(ws).recomputed == 1


def figures_head(ws: Workspace) -> str:
    (name,) = ws.heads
    return name


def test_a_recomputed_commit_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_body, "LEAST_BUDGET", 2_000)
    edges = graph(150, 8)
    ws = workspace(OPEN, "auto", edges[:20])
    ws.install("bad(a, v) <- open(a, _, c), v = 1 / (c - 7777).")
    before = set(ws["open"])
    with pytest.raises(Exception, match="zero"), ws.transaction() as tx:
        tx.insert("edge", [*edges[20:], (1, 5), (5, 7777)])
    assert set(ws["open"]) == before
    (search,) = ws._state.heads["open"].searches
    assert isinstance(search, AutoBody) and search.recomputed == 1
    ws.check_invariants()
    commit_all = workspace(OPEN, "auto", edges)
    with ws.transaction() as tx:
        tx.insert("edge", edges[20:])
    assert set(ws["open"]) == set(commit_all["open"])
    ws.verify()


# -- the way in use ----------------------------------------------------------------------------


def test_the_first_way_is_said_and_explained() -> None:
    assert "auto: delta: no negated atom" in str(
        workspace(TRIANGLES, "auto", graph(50, 4)).explain_maintenance("tri")
    )
    assert "auto: trace: a negated atom of several others' variables" in str(
        workspace(OPEN, "auto", graph(50, 4)).explain_maintenance("open")
    )
    assert "auto: delta: each negated atom is guarded by another" in str(
        workspace("alone(a, b) <- edge(a, b), !edge(b, a).", "auto", graph(50, 4)).explain_maintenance(
            "alone"
        )
    )


def phases(n: int, length: int) -> Iterator[tuple[list[Edge], list[Edge]]]:
    """By turns: edges between the hubs' neighbours, which close nothing, and edges far from every hub."""
    random = Random(7)
    for phase in range(4):
        for step in range(length):
            far = phase % 2 == 0
            edge = (10 * n + random.randrange(n), 20 * n + step) if far else (0, 1)
            yield ([edge], []) if step % 2 == 0 or far else ([], [edge])


@pytest.mark.parametrize("rule", [TRIANGLES, OPEN])
def test_an_adversary_of_changing_phases_gains_a_factor_at_most(rule: str) -> None:
    n = 400
    edges = [(0, 2 * i) for i in range(1, n)] + [(1, 2 * i + 1) for i in range(1, n)] + graph(60, 4)
    edges = sorted({(a, b) for a, b in edges} - {(0, 1)})
    totals = {}
    with mock.patch.object(auto_body, "LEAST_BUDGET", 2_000):
        for strategy in ("auto", "trace", "delta"):
            ws = workspace(rule, strategy, edges)
            totals[strategy] = sum(commit(ws, *changes) for changes in phases(n, 60))
            ws.verify()
    assert totals["auto"] <= 3 * min(totals["trace"], totals["delta"]) + 3 * 2_000, totals


def goes_over_to_trace(ws: Workspace) -> AutoBody:
    """The only body, after whose next commit records for `trace` are begun."""
    body = body_of(ws)
    assert body.way == "delta"
    body._per_branch = 0.0  # trace is taken to cost nothing
    body.ledger.balance = body.ledger.price
    return body


def test_the_way_changes_and_back() -> None:
    """Where `trace` was right once and is not any more: records go, and come again."""
    ws = workspace(OPEN, "auto", graph(60, 6))
    body = body_of(ws)
    assert body.way == "trace" and ws.sensitivity_bytes > 0
    body.ledger.balance = body.ledger.price
    commit(ws, [(900, 901)])
    assert body.way == "delta" and ws.sensitivity_bytes == 0 and body.changes == 1
    assert "delta: trace had lost" in str(ws.explain_maintenance("open"))
    ws.check_invariants()
    commit(ws, [(3, 901), (901, 4)], [(900, 901)])
    ws.verify()
    body.ledger.balance = body.ledger.price
    commit(ws, [(901, 5)])
    assert body.way == "trace" and ws.sensitivity_bytes > 0
    commit(ws, [], [(901, 4), (901, 5)])
    ws.verify()
    ws.check_invariants()


def test_a_sample_ends_where_it_costs_far_more_than_the_way_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair of t is one of u: no change of s changes that for `trace`; `delta` looks for all of them."""
    monkeypatch.setattr(auto_body, "LEAST_BUDGET", 2_000)
    taken = {}
    for strategy in ("auto", "delta"):
        ws = Workspace(single_changes="general")
        for name, column in (("r", 0), ("t", 1), ("u", 2)):
            ws.load(name, [(a, column) for a in range(9_000)], columns=["a", "b"])
        ws.load("s", [(-1,)], columns=["a"])
        ws.load("n", [(-1, -1)], columns=["a", "b"])
        rule = "h(a, c, b) <- r(a, b), s(b), t(a, c), u(a, c), !n(b, c)."
        ws.install(rule, strategy, order={"h": ["a", "c", "b"]})
        with ws.transaction() as tx:
            tx.insert("s", [(0,)])
        taken[strategy] = tx.stats["h"].operations
    assert taken["delta"] > 20_000
    assert 2_000 < taken["auto"] < 2 * 2_000


@pytest.mark.parametrize(
    "rule", [TRIANGLES, "path(a, b, c, d) <- edge(a, b), edge(b, c), edge(c, d), a < d."]
)
def test_no_commit_pays_for_the_records_when_the_way_changes(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are made in pieces of a stated size, while `delta` goes on; and they cover what came meanwhile."""
    least = 128
    monkeypatch.setattr(auto_body, "PREPARED_LEAST", 0)
    monkeypatch.setattr(body_trace, "RENEWED_LEAST", least)
    random, edges = Random(3), graph(60, 4)
    ws = workspace(rule, "auto", edges)
    body = goes_over_to_trace(ws)
    there, pieces, made = set(edges), 0, 0
    while body.way == "delta":
        edge = random.choice(edges)
        with ws.transaction() as tx:
            (tx.erase if edge in there else tx.insert)("edge", [edge])
        there ^= {edge}
        (figures,) = tx.stats.rules.values()
        assert figures.chosen == ("delta",)
        assert body.prepares or body.traces
        piece, made = body.trace.renewed_operations - made, body.trace.renewed_operations
        assert piece <= 2 * (least + figures.operations + figures.shadow_operations), "soon after its size"
        assert ("records for trace are being made" in str(ws.explain_maintenance(figures_head(ws)))) == (
            body.way == "delta"
        )
        ws.check_invariants()
        pieces += 1
        assert pieces * least <= body._whole + 2 * least, "not more pieces than there is to evaluate"
    assert pieces > 5 and body.changes == 1
    for _ in range(40):
        edge = random.choice(edges)
        commit(ws, [] if edge in there else [edge], [edge] if edge in there else [])
        there ^= {edge}
        ws.verify()
    assert body.way == "trace"
    ws.check_invariants()


def test_a_batch_and_a_bulk_load_while_records_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is followed; what is too much begins them anew."""
    monkeypatch.setattr(auto_body, "PREPARED_LEAST", 0)
    monkeypatch.setattr(body_trace, "RENEWED_LEAST", 128)
    monkeypatch.setattr(auto_body, "LEAST_BUDGET", 2_000)
    edges = graph(80, 6)
    ws = workspace(TRIANGLES, "auto", edges[:200])
    body = goes_over_to_trace(ws)
    commit(ws, [(900, 901)])
    assert body.prepares
    ws.apply_many({"edge": {"a": [1, 2, 1], "b": [2, 3, 3], "weight": [1, 1, 1], "txn": [1, 2, 3]}})
    assert body.prepares
    with ws.transaction() as tx:
        tx.insert("edge", edges[200:])
    assert tx.stats["tri"].chosen == ("recompute",)
    body.ledger.balance = body.ledger.price
    commits = 0
    while body.way == "delta":
        commit(ws, [(2_000 + commits, 3_000)])
        commits += 1
        assert commits < 1_000
    commit(ws, [], edges[::7])
    ws.verify()
    ws.check_invariants()


def test_following_costs_the_price_of_a_change_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where changes cost `trace` more than was thought, the records are left half made, as after a change."""
    monkeypatch.setattr(auto_body, "PREPARED_LEAST", 0)
    monkeypatch.setattr(body_trace, "RENEWED_LEAST", 1)
    edges = graph(60, 4)
    ws = workspace(TRIANGLES, "auto", edges)
    body = goes_over_to_trace(ws)
    body.ledger.price = body.ledger.balance = 30
    followed, was_prepared = 0, 0
    for edge in edges:
        with ws.transaction() as tx:
            tx.erase("edge", [edge])
        followed += tx.stats["tri"].shadow_operations
        was_prepared += body.prepares
        if was_prepared and not body.prepares:
            break
    assert body.way == "delta" and body.changes == 0
    assert was_prepared and followed > 30
    assert body.ledger.balance <= 0, "twice the price has to be lost again"
    assert ws.sensitivity_bytes == 0
    commit(ws, edges[:3])
    ws.verify()
    ws.check_invariants()


@pytest.mark.filterwarnings("ignore::lftj.errors.HousekeepingWarning")
@pytest.mark.parametrize("left", ["records", "ledger"])
@pytest.mark.parametrize("start", ["trace", "delta"])
def test_a_change_of_way_that_is_left_half_way_does_no_harm(left: str, start: str) -> None:
    """Whatever is in use covers what comes; the next commit does the rest."""
    ws = workspace(OPEN if start == "trace" else TRIANGLES, "auto", graph(60, 6))
    body = body_of(ws)
    assert body.way == start
    body.ledger.balance = body.ledger.price
    if start == "delta":
        body._per_branch = 0.0  # trace is taken to cost nothing
    records = "take" if start == "trace" else "begin"
    of, name = (body.trace, records) if left == "records" else (body.ledger, "changed")
    done = getattr(of, name)

    def then_interrupted(*arguments: object) -> None:
        done(*arguments)
        raise KeyboardInterrupt

    with mock.patch.object(of, name, then_interrupted), pytest.raises(KeyboardInterrupt):
        commit(ws, [(900, 901)])
    body.ledger.balance = 0.0  # the next commit changes nothing of the way
    commit(ws, [(3, 901), (901, 4), (3, 4)], [(900, 901)])
    ws.verify()
    commit(ws, [(901, 5)], [(3, 4)])
    ws.verify()
    ws.check_invariants()
