"""The commit machine and `auto`: accounts that are told at folds, phases that end and come back, views."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from maintenance import Workspace
from maintenance.machine import machine
from maintenance.machine.structures import Sizes
from maintenance.strategies.auto import auto_body, view_choice
from maintenance.strategies.auto.auto_body import AutoBody
from support.machine_workspace import erase, insert, made, of
from support.rows import rows_of

TRIANGLES = "tri(a, b, c) <- e(a, b), e(b, c), e(a, c)."
PATHS = "far[a] = sum(c) <- e(a, b), e(b, c)."


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


def bodies(ws: Workspace) -> list[AutoBody]:
    searches = [search for head in ws._state.heads.values() for search in head.searches]
    assert all(isinstance(search, AutoBody) for search in searches)
    return searches  # type: ignore[return-value]


def in_step(rules: str, **more: Any) -> tuple[Workspace, Workspace]:
    """Two workspaces over the same rows, with and without the machine, that had the same transactions."""
    rows = [(i, i * i % 11) for i in range(11)] + [(i, i * i * i % 11) for i in range(11)]
    ws, other = made(rules, rows=rows, strategy="auto", **more), Workspace(single_changes="general")
    other.load("e", rows, columns=["a", "b"])
    other.install(rules, "auto")
    for _ in range(3):
        insert(other, (90, 91))
        erase(other, (90, 91))
    return ws, other


def test_heads_under_auto_go_by_it() -> None:
    ws = made(f"{TRIANGLES} {PATHS}", strategy="auto")
    tx = insert(ws, (1, 3))
    assert tx.stats.fast == 1 and tx.stats["tri"].strategy == "auto"
    assert tx.stats["tri"].chosen == tx.stats["far"].chosen == ("delta",)
    assert "single changes go by the machine" in str(ws.explain_maintenance("tri"))
    ws.verify()


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64()])
def test_left_joins_go_by_it(kind: Any) -> None:
    """NULL is a constant of any type."""
    pytest.importorskip("duckdb")
    values = pa.array([5, 6, 7]).cast(kind).to_pylist()
    both = Workspace(single_changes="machine"), Workspace(single_changes="general")
    for ws in both:
        ws.load("e", [(1, 2), (2, 3), (4, 5)], columns=["a", "b"])
        ws.load("c", pa.table({"b": [2, 3], "v": pa.array(values[:2], kind)}))
        ws.create_view("x", "select e.a, c.v from e left join c on e.b = c.b")
    of(both[0])._wait = 1
    fast = 0
    for row in [(5, values[2]), (6, values[0]), (5, values[1]), (2, values[2])]:
        told = []
        for change in ("insert", "erase"):
            for ws in both:
                with ws.transaction() as tx:
                    getattr(tx, change)("c", [row])
                    tx.insert("e", [(row[0] + 3, 6)])
                fast += tx.stats.fast
                told.append(sorted(rows_of(tx.changes["x"]), key=str))
        assert told[::2] == told[1::2]
    assert fast > 4
    both[0].verify()


def test_accounts_are_those_of_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies and choices have lost and won the same, of commits that were folded together.

    But for the few operations more or less that a search takes where an index has other runs.
    """
    for module in (auto_body, view_choice):
        monkeypatch.setattr(module, "LEAST_BUDGET", 1 << 30)
    ws, other = in_step(f"{TRIANGLES} {PATHS} hop(b, c) <- e(3, b), e(b, c).")
    of(ws).checks = False
    for each in (ws, other):
        fast = [insert(each, (i % 11, i * 5 % 11), (i % 7, i % 3)).stats.fast for i in range(40)]
        fast += [erase(each, (i % 11, i * 5 % 11)).stats.fast for i in range(20)]
        assert set(fast) == {int(each is ws)}
        if each is ws:
            assert of(ws).is_ahead(ws._published.as_bound)
    balances = [body.ledger.balance for body in bodies(other)]
    assert [body.ledger.balance for body in bodies(ws)] == pytest.approx(balances, rel=0.03)
    assert [body._steps for body in bodies(ws)] == [body._steps for body in bodies(other)]
    one, two = (each._state.heads["far"].choice for each in (ws, other))
    assert one is not None and two is not None
    assert one.ledger.balance == pytest.approx(two.ledger.balance, rel=0.03)
    assert (one._steps, one._metered, one._rows) == (two._steps, two._metered, two._rows)
    assert one._taken == pytest.approx(two._taken, rel=0.03)


def test_what_is_checked_is_entered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_body, "LEAST_BUDGET", 1 << 30)
    ws, other = in_step(TRIANGLES)
    of(ws).checks = True
    for each in (ws, other):
        for i in range(20):
            insert(each, (i % 11, i * 5 % 11))
    ws.verify()
    assert bodies(ws)[0].ledger.balance == pytest.approx(bodies(other)[0].ledger.balance, rel=0.03)


def test_a_phase_takes_its_relation_out_and_brings_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand, the account says so after 150 commits, and after 350."""
    monkeypatch.setattr(auto_body, "LEAST_BUDGET", 2_000)
    ws = Workspace(single_changes="machine")
    for name in ("e", "f"):
        ws.load(name, [(i % 40, i * 7 % 40) for i in range(200)], columns=["a", "b"])
    ws.install(f"{TRIANGLES} n[a] = count() <- f(a, _).", "auto")
    of(ws)._wait, of(ws).sizes = 1, Sizes(taken=500)
    (body,) = [body for body in bodies(ws) if len(body.delta.variables) == 3]
    phases, fast, texts = [], [], []
    for i in range(600):
        if i in (150, 350):
            body.ledger.balance = 2 * body.ledger.price
        rows = [(i % 40, i * 11 % 40)]
        with ws.transaction() as tx:
            (tx.insert if i % 3 else tx.erase)("e", rows)
        with ws.transaction() as beside:
            beside.insert("f", [(i, i)])
        phases.append(body._phase)
        fast.append((tx.stats.fast, beside.stats.fast))
        if i % 50 == 0:
            texts.append((str(ws.explain_maintenance("tri")), body._phase))
    assert {"delta", "trace"} <= set(phases) and body.changes == 2
    ran = {phase: {fast for p, (fast, _) in zip(phases, fast, strict=True) if p == phase} for phase in phases}
    assert 1 in ran["delta"] and 1 not in ran["trace"]
    last = len(phases) - 1 - phases[::-1].index("trace")
    assert 1 in {one for one, _ in fast[last:]}, "it has come back"
    assert sum(one for _, one in fast) > 500, "what is beside goes on"
    for text, phase in texts:
        assert ("auto keeps a body by trace" in text) == (phase == "trace")
        assert ("single changes go by the machine" in text) == (phase == "delta")
    ws.verify()
    ws.check_invariants()


CHAIN = {"R": ("a", "b"), "S": ("b", "c"), "T": ("c", "d")}


def test_a_head_goes_over_to_views_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commits of the machine took leads there; it goes on with the views then."""
    for module in (auto_body, view_choice):
        monkeypatch.setattr(module, "LEAST_BUDGET", 2_000)
    monkeypatch.setattr(view_choice, "STEP_OPERATIONS", 0)
    ws = Workspace(single_changes="machine")
    for name, columns in CHAIN.items():
        ws.load(name, [(i % 16, i // 16) for i in range(256)], columns=list(columns))
    ws.install("h[] = sum(d) <- R(a, b), S(b, c), T(c, d).", "auto")
    of(ws)._wait, of(ws).sizes = 1, Sizes(taken=1_000)

    def toggle(times: int, key: int) -> list[int]:
        fast = []
        for _ in range(times):
            for change in ("insert", "erase"):
                with ws.transaction() as tx:
                    getattr(tx, change)("R", [(999, key)])
                fast.append(tx.stats.fast)
        return fast

    before = [ws._heads["h"].choice]
    fast = toggle(40, 3)
    choice = ws._heads["h"].choice
    assert choice is not None and choice.in_use and before[0] is not choice
    assert sum(fast) > 60
    with ws.transaction() as tx:
        tx.insert("R", [(998, 3)])
    assert tx.stats.fast == 1 and tx.stats["h"].chosen == ("views",)
    ws.verify()
    steps = choice._steps
    assert steps and choice._shadow is not None, "what views spare was sampled"
    ws.check_invariants()
