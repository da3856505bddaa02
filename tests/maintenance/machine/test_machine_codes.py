"""Texts by the commit machine: their codes keep their values as long as anybody has them, and no longer."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from lftj import errors
from lftj.values import collector
from maintenance import Workspace
from maintenance.machine import interned_values, machine
from support.machine_workspace import of
from support.rows import rows_of

RULES = "some(t) <- e(_, t). n[t] = count() <- e(_, t)."


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


@pytest.fixture
def ws() -> Workspace:
    """With the first texts, its machine at work; what goes the general way too would be held by that."""
    ws = Workspace(single_changes="machine")
    of(ws).checks = False
    ws.load("e", pa.table({"a": pa.array([], pa.int64()), "t": pa.array([], pa.string())}))
    ws.load("unread", pa.table({"t": pa.array([], pa.string())}))
    ws.install(RULES, "delta")
    of(ws)._wait = 1
    for i in range(3):
        insert(ws, (i, "first"))
    assert insert(ws, (3, "first")).stats.fast == 1
    return ws


def insert(ws: Workspace, *rows: tuple[Any, ...]) -> Any:
    with ws.transaction() as tx:
        tx.insert("e", list(rows))
    return tx


def erase(ws: Workspace, *rows: tuple[Any, ...]) -> Any:
    with ws.transaction() as tx:
        tx.erase("e", list(rows))
    return tx


def forget(ws: Workspace) -> None:
    """What nobody needs, without a look at the state, and let others have its codes."""
    ws.domains.collector.sweep()
    ws.domains.of(pa.string()).encode(pa.array([f"another {i}" for i in range(50)]))


def test_a_text_is_there_while_only_the_machine_has_it(ws: Workspace) -> None:
    insert(ws, (7, "late"), (8, "later"))
    forget(ws)
    assert insert(ws, (9, "late")).stats.fast == 1
    assert sorted(ws["e"])[-3:] == [(7, "late"), (8, "later"), (9, "late")]
    assert sorted(ws["n"]) == [("first", 4), ("late", 2), ("later", 1)]
    ws.verify()


def begin_to_forget(ws: Workspace) -> None:
    """The values are looked for that nobody needs, and not all are looked at yet."""
    with mock.patch.multiple(collector, LEAST_ADDED=1, LEAST=1, PACE=0, LEAST_PACE=0, WALKED_PER_ADDED=1000):
        ws.domains.of(pa.string()).encode(pa.array(["new"]))
        ws.domains.collector.advance()
    assert ws.domains.of(pa.string()).is_moving  # type: ignore[attr-defined]


def test_a_text_that_was_staged_before_others_are_forgotten_stays(ws: Workspace) -> None:
    tx = ws.transaction()
    tx.insert("unread", [("staged",)])
    assert ws["e"].count == 4
    begin_to_forget(ws)
    tx.commit()
    forget(ws)
    assert tx.stats.fast == 1 and list(ws["unread"]) == [("staged",)]


def test_a_text_that_is_staged_is_there_when_it_is_committed(ws: Workspace) -> None:
    tx = ws.transaction()
    tx.insert("e", [(7, "staged")])
    other = ws.transaction()
    forget(ws)
    insert(ws, *((i, "many") for i in range(70)))
    other.insert("e", [(8, "staged"), (8, "other")])
    forget(ws)
    for each in (tx, other):
        each.commit()
        assert each.stats.fast == 1
        forget(ws)
    assert {(7, "staged"), (8, "staged"), (8, "other")} <= set(ws["e"])
    ws.verify()


def test_changes_are_read_when_their_texts_are_gone(ws: Workspace) -> None:
    came, went = insert(ws, (7, "short")), erase(ws, (7, "short"))
    insert(ws, *((i, "many") for i in range(70)))
    forget(ws)
    forget(ws)
    assert rows_of(came.changes["some"]) == [("short", 1)]
    assert rows_of(went.changes["some"]) == [("short", -1)]
    assert came.stats.fast == went.stats.fast == 1


def test_texts_that_nobody_has_are_forgotten() -> None:
    """Also where no transaction goes another way: a walk goes on where versions are folded."""
    ws = Workspace(single_changes="machine")
    with mock.patch.multiple(collector, LEAST_ADDED=1, LEAST=1 << 10, WALKED_PER_ADDED=1000):
        ws.load("e", pa.table({"a": pa.array([], pa.int64()), "t": pa.array([], pa.string())}))
        ws.install(RULES, "delta")
        of(ws)._wait = 1
        fast = 0
        for i in range(600):
            fast += insert(ws, (0, f"text {i}")).stats.fast
            fast += erase(ws, (0, f"text {i}")).stats.fast
            if i % 20 == 0:
                assert not ws["e"].count
    assert fast > 1100
    assert ws.domains.of(pa.string()).n_values < 200
    ws.verify()


def test_what_was_found_before_is_forgotten_with_the_value(ws: Workspace) -> None:
    insert(ws, (7, "there"))
    erase(ws, (7, "there"))
    assert not [row for row in ws["e"] if row[1] == "there"]
    insert(ws, *((i, "many") for i in range(70)))
    forget(ws)
    insert(ws, (1, "many"))
    assert insert(ws, (8, "there")).stats.fast == 1
    assert (8, "there") in ws["e"] and ("there",) in ws["some"]


def test_a_text_that_is_staged_while_others_are_forgotten_stays(ws: Workspace) -> None:
    insert(ws, (7, "there"))
    erase(ws, (7, "there"))
    assert ws["e"].count == 4
    begin_to_forget(ws)
    tx = ws.transaction()
    tx.insert("e", [(8, "there")])
    forget(ws)
    tx.commit()
    assert (8, "there") in ws["e"] and ("there",) in ws["some"]


def test_what_is_kept_of_values_has_a_bound(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interned_values, "MOST_KNOWN", 4)
    for i in range(20):
        assert insert(ws, (i, f"text {i % 7}")).stats.fast == 1
    assert {text for _, text in ws["e"]} == {"first", *(f"text {i}" for i in range(7))}


def test_a_commit_that_fails_leaves_texts_to_nobody(ws: Workspace) -> None:
    ws.install("x[t] = sum(a) <- e(a, t).", "delta")
    insert(ws, (2**62, "sum"))
    insert(ws, (1, "sum"))
    before, texts = sorted(ws["e"]), ws.domains.of(pa.string())
    with pytest.raises(errors.RangeError):
        insert(ws, (2**62 + 5, "sum"), (2, "lost"))
    assert texts.encode_constant("lost") is not None, "as in other transactions"
    assert sorted(ws["e"]) == before
    insert(ws, (5, "sum"))
    ws.compact()
    assert texts.encode_constant("lost") is None
    ws.verify()


@pytest.mark.parametrize("order", ["t < u", 't >= "b"', "t != u", 't = "b"', "t is not null", "t is null"])
def test_tests_of_texts_are_as_the_general_way_has_them(order: str) -> None:
    """By the machine, where the search decides, or not at all."""
    both = [Workspace(single_changes="machine"), Workspace(single_changes="general")]
    table = pa.table({"t": pa.array([], pa.string()), "u": pa.array([], pa.string())})
    for each in both:
        each.load("e", table, nulls="keep")
        each.install(f"p(t, u) <- e(t, u), {order}. q(u) <- p(t, u), e(u, _).", "delta")
    of(both[0])._wait = 1
    values = ("b", "a", None, "c", "aa", "")
    for i in range(30):
        for each in both:
            with each.transaction() as tx:
                (tx.erase if i % 7 == 6 else tx.insert)("e", [(values[i * 5 % 6], values[(i + i // 6) % 6])])
    one, other = ({head: sorted(ws[head], key=str) for head in "pq"} for ws in both)
    assert one == other and other["p"]
    both[0].verify()


def test_leases_are_as_many_as_open_transactions(ws: Workspace) -> None:
    for i in range(50):
        insert(ws, (i, "same"))
        erase(ws, (i, "same"))
    assert len(ws.domains.collector._leases) <= 1
    open_ = [ws.transaction() for _ in range(5)]
    for tx in open_:
        tx.insert("e", [(1, "open")])
    assert len(ws.domains.collector._leases) <= 1
    for tx in open_:
        tx.roll_back()
