"""The commit machine: what goes by it, all or nothing, whoever interrupts; readers see the last commit."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.image import read_image, write_image
from maintenance.machine import machine
from maintenance.machine.structures import Sizes
from support.machine_workspace import contents, erase, insert, made, of
from support.rows import rows_of


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


# -- what a transaction tells ------------------------------------------------------------------------


def test_a_transaction_tells_what_it_did() -> None:
    ws = made()
    tx = insert(ws, (1, 3), (1, 2), (5, 5))
    assert tx.stats.fast == 1 and tx.stats.inserted == {"e": 2} and tx.stats.no_changes == {"e": 1}
    assert tx.changes["deg"].to_pylist() == [
        {"a": 1, "count": 1, "weight": -1},
        {"a": 1, "count": 2, "weight": 1},
        {"a": 5, "count": 1, "weight": 1},
    ]
    assert tx.changes["tri"].num_rows == 2 and tx.stats["tri"].head_changes == 2
    assert tx.stats["tri"].operations > 0 and tx.stats.seconds > 0
    assert tx.changes is tx.changes
    with pytest.raises(errors.UnknownRelationError):
        tx.changes["e"]
    ws.verify()


def test_changes_stay_when_the_log_goes_on() -> None:
    ws = made(sizes=Sizes(log=120))
    kept = [(i, insert(ws, (100 + i, i))) for i in range(40)]
    for i, tx in kept:
        assert tx.stats.fast == 1
        assert rows_of(tx.changes["deg"]) == [(100 + i, 1, 1)]
    assert ws["deg"].count == 42


def test_what_changes_nothing_is_no_version() -> None:
    ws = made()
    before = ws.stats
    tx = insert(ws, (1, 2))
    assert tx.stats.fast == 1 and tx.stats.no_changes == {"e": 1} and tx.changes["deg"].num_rows == 0
    after = ws.stats
    assert (after.version, after.commits) == (before.version, before.commits)


def test_versions_and_history_count_every_commit() -> None:
    ws, other = made(), Workspace(single_changes="general")
    before = ws.stats
    for i in range(300):
        insert(ws, (i, i))
    after = ws.stats
    assert after.version - before.version == after.commits - before.commits == 300
    spans = after.history
    assert sum(span.commits for span in spans) == after.commits
    assert len({span.commits for span in spans[:-1]}) == 1
    assert not other.stats.commits


def test_a_transaction_may_be_staged_both_ways() -> None:
    ws = made()
    with ws.transaction() as tx:
        tx.insert("e", [(5, 6), (1, 2)])
        tx.apply("e", pa.table({"a": [5], "b": [6], "weight": [-1]}))
        tx.erase("e", [(1, 2)])
        tx.insert("e", [(1, 2)])
    assert tx.stats.fast == 0 and tx.stats.no_changes == {"e": 5}
    assert not tx.changes["deg"].num_rows
    assert insert(ws, (5, 6)).stats.fast == 1


def test_a_transaction_that_is_dropped_says_so() -> None:
    ws = made()
    tx = ws.transaction()
    tx.insert("e", [(5, 6)])
    with pytest.warns(ResourceWarning, match="'e'"):
        del tx
    assert (5, 6) not in ws["e"]
    tx = ws.transaction()
    tx.insert("e", [(5, 6)])
    tx.roll_back()
    with pytest.raises(errors.TransactionError, match="rolled back"):
        tx.changes["deg"]
    with pytest.raises(errors.TransactionError, match="is over"):
        tx.insert("e", [(5, 6)])


def test_a_relation_that_is_loaded_anew_is_told_of() -> None:
    ws = made("")
    tx = ws.transaction()
    tx.insert("e", [(5, 6)])
    ws.load("e", [(1, 2)], columns=["a", "b"])
    with pytest.raises(errors.TransactionError, match="loaded anew"):
        tx.commit()
    assert ws["e"].count == 1


# -- who is in ---------------------------------------------------------------------------------------


def test_what_is_not_plain_goes_the_general_way() -> None:
    ws = made()
    assert insert(ws, *((i, 0) for i in range(65))).stats.fast == 0
    insert(ws, (1, 5))
    assert insert(ws, (1, 6)).stats.fast == 1
    ws.verify()


def test_subscribers_hear_of_each_commit_once_in_order() -> None:
    ws = made()
    heard: list[Any] = []
    end = ws.subscribe("deg", lambda table: heard.append(rows_of(table)))
    for i in range(5):
        tx = insert(ws, (60, i))
        assert tx.stats.fast == 1
        assert heard[-1] == rows_of(tx.changes["deg"]) and len(heard) == i + 1
    assert insert(ws, (60, 0)).stats.fast == 1 and len(heard) == 5, "nothing changed"
    insert(ws, *((i, 0) for i in range(70)))
    assert len(heard) == 6
    end()
    insert(ws, (60, 9))
    assert len(heard) == 6

    def raises(table: pa.Table) -> None:
        raise ValueError("not now")

    ws.subscribe("deg", raises)
    with pytest.warns(errors.SubscriberWarning, match="not now"):
        tx = insert(ws, (61, 9))
    assert [type(error) for _, error in tx.subscriber_errors] == [ValueError]


def test_a_subscriber_may_commit() -> None:
    ws = made()
    depth = []

    def again(table: pa.Table) -> None:
        if len(depth) < 3:
            depth.append(insert(ws, (70, len(depth))).stats.fast)

    ws.subscribe("deg", again)
    insert(ws, (71, 1))
    assert depth == [1, 1, 1] and {(70, 0), (70, 1), (70, 2)} <= set(ws["e"])
    ws.verify()


def test_what_is_kept_for_followers_has_each_commit() -> None:
    ws = made()
    for i in range(5):
        insert(ws, (50, i))
    before = ws.version
    for i in range(20):
        assert insert(ws, (60 + i % 3, i)).stats.fast == 1
        if i == 9:
            ws.verify()
        if i == 12:
            insert(ws, *((i, 0) for i in range(70)))
    assert ws.version == before + 21
    since = ws.changes_since(before, "deg")
    steps = list(ws.follow("deg", since=before, timeout=0))
    assert [step.version for step in steps] == list(range(before + 1, before + 22))
    added = Counter[Any]()
    for step in steps:
        for *row, weight in rows_of(step.table):
            added[tuple(row)] += weight
    assert {row: n for row, n in added.items() if n} == {row[:-1]: row[-1] for row in rows_of(since.table)}


def test_versions_before_somebody_asked_are_not_there() -> None:
    """Nobody is told that nothing changed in between."""
    ws = made()
    before = ws.stats.version
    insert(ws, (1, 7))
    insert(ws, (1, 8))
    now = ws.version
    assert now == before + 2
    with pytest.raises(errors.CursorError):
        ws.changes_since(before, "deg")
    insert(ws, (1, 9))
    assert ws.changes_since(now, "deg").table.num_rows == 2


def test_explanations_say_who_is_in() -> None:
    ws = made("deg[a] = count() <- e(a, _).")
    assert "single changes go by the machine" in str(ws.explain_maintenance("deg"))
    ws.install("values[a] = count(distinct b, a) <- e(a, b).", "delta")
    text = str(ws.explain_maintenance("values"))
    assert "single changes go the general way: an aggregate count distinct" in text
    text = str(ws.explain_maintenance("deg"))
    assert "single changes go the general way: 'e', which it reads" in text


def test_other_relations_go_the_general_way() -> None:
    ws = Workspace(single_changes="machine")
    ws.load("e", {"a": pa.array([1, 2], pa.uint64()), "b": [2, 3]})
    ws.load("name", {"a": [1], "b": [["x"]]})
    ws.load("u", {"a": [1, 2]})
    ws.install("deg[a] = count() <- e(a, _), u(a). named(b) <- u(a), name(a, b).", "delta")
    for i in range(6):
        with ws.transaction() as tx:
            tx.insert("e", [(i + 50, i)])
            tx.insert("u", [(i + 50,)])
            tx.insert("name", [(i + 50, [f"node {i}"])])
        assert tx.stats.fast == 0 and tx.changes["deg"].num_rows == tx.changes["named"].num_rows == 1
    ws.verify()
    its = of(ws)
    assert its.layout is None or not {"e", "name"} & its.layout.staged.keys()
    told = [its.describe(head, ws._state, ws._published) for head in ("named", "deg")]
    assert all("general way: " in text for text in told)
    assert "of type uint64" in told[1]


def test_an_image_has_all_that_was_committed(tmp_path: Any) -> None:
    ws = made()
    for i in range(5):
        insert(ws, (i, i))
    write_image(ws, tmp_path / "image")
    ws.save(tmp_path / "folder")
    for again in (read_image(tmp_path / "image"), Workspace.load_from(tmp_path / "folder")):
        assert contents(again) == contents(ws)
        assert insert(again, (80, 81)).stats.fast == 0
        again.verify()
    assert ws.stats.memory_bytes["single changes"] > 0


def test_only_two_ways_are_known() -> None:
    with pytest.raises(ValueError, match="it can be general, machine"):
        Workspace(single_changes="fast")  # type: ignore[arg-type]


def test_a_head_that_the_machine_does_not_take_takes_its_relations_along() -> None:
    ws = made()
    ws.install("values[a] = count(distinct b, a) <- e(a, b).", "delta")
    for i in range(4):
        assert insert(ws, (i, 50)).stats.fast == 0
    ws.uninstall("values")
    for i in range(4):
        tx = insert(ws, (i, 60))
    assert tx.stats.fast == 1
    ws.verify()


def test_copies_of_rows_come_and_go() -> None:
    both = [Workspace(single_changes="machine"), Workspace(single_changes="general")]
    for ws in both:
        ws.load("e", {"a": [1, 1], "b": [2, 2]}, bag=True)
        ws.install("n[a] = count() <- e(a, _). some(a) <- e(a, _). x[] = sum(b) <- e(_, b).", "delta")
    of(both[0])._wait = 1
    insert(both[0], (1, 2)), insert(both[1], (1, 2))
    for change, rows in (
        (insert, [(1, 2), (1, 2), (5, 6)]),
        (erase, [(1, 2)] * 3),
        (erase, [(1, 2)] * 50),
        (insert, [(1, 2), (7, 7), (1, 2)] * 20),
        (erase, [(7, 7)] * 19 + [(8, 8)]),
    ):
        one, other = (change(ws, *rows) for ws in both)
        assert one.stats.fast == 1
        assert rows_of(one.changes["n"]) == rows_of(other.changes["n"])
        for its in ("inserted", "erased", "no_changes"):
            assert getattr(one.stats, its) == getattr(other.stats, its), its
        assert Counter(both[0]["e"]) == Counter(both[1]["e"])
    both[0].verify()


def test_more_copies_than_there_is_room_for_go_the_general_way() -> None:
    ws = Workspace(single_changes="machine")
    of(ws).sizes = Sizes(rows=30)
    ws.load("e", {"a": [1], "b": [2]}, bag=True)
    of(ws)._wait = 1
    assert [insert(ws, *[(1, 2)] * n).stats.fast for n in (1, 30, 31, 30, 30)] == [0, 1, 0, 1, 1]
    assert ws["e"].count == 1 + 122


# -- all or nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["far[a] = sum(c) <- e(a, b), e(b, c).", "x[] = sum(b) <- e(_, b)."])
def test_a_sum_that_does_not_fit_changes_nothing(rule: str) -> None:
    ws = made(f"deg[a] = count() <- e(a, _). {rule} two(a, c) <- e(a, b), e(b, c).")
    insert(ws, (2, 2**62))
    state, before = contents(ws), ws.stats.version
    tx = ws.transaction()
    tx.insert("e", [(2, 2**62 + 5), (1, 77), (77, 2**62)])
    with pytest.raises(errors.RangeError):
        tx.commit()
    with pytest.raises(errors.TransactionError):
        tx.changes["deg"]
    assert contents(ws) == state and ws.stats.version == before
    ws.verify()
    ws.check_invariants()
    assert insert(ws, (3, 4)).stats.fast + insert(ws, (3, 5)).stats.fast
    ws.verify()


def test_what_was_refused_is_not_published_later() -> None:
    """Also where nothing was committed since the program was bound, so that it goes on as it is."""
    ws = Workspace(single_changes="machine")
    ws.load("r", [(1, 2**62)], columns=["a", "b"])
    ws.load("s", [(1, 1)], columns=["a", "b"])
    ws.install("x[] = sum(b) <- r(_, b). y[a] = count() <- s(a, _).", "delta")

    def change(name: str, row: tuple[int, int]) -> Any:
        with ws.transaction() as tx:
            tx.insert(name, [row])
        return tx

    for i in range(3):
        change("s", (2, i))
    assert ws["s"].count == 4
    assert change("s", (1, 1)).stats.fast == 1
    with pytest.raises(errors.RangeError):
        change("r", (2, 2**62 + 5))
    assert change("s", (5, 5)).stats.fast == 1
    assert ws["r"].count == 1 and ws["s"].count == 5
    ws.verify()
    ws.check_invariants()


def test_groups_find_room() -> None:
    ws = made("deg[a] = count() <- e(a, _).", Sizes(rows=8))
    for i in range(500):
        insert(ws, (i, i), (i + 1000, i))
        if i % 3 == 0:
            erase(ws, (i, i))
    assert ws["deg"].count == 1000 - 167
    ws.verify()
    ws.check_invariants()


def test_layers_begin_small_and_grow_to_their_bound() -> None:
    ws = made("deg[a] = count() <- e(a, _). two(a, c) <- e(a, b), e(b, c).", Sizes(first=8))
    insert(ws, (0, 1))
    small = ws.stats.memory_bytes["single changes"]
    assert sum(insert(ws, (i, i % 7), (i, -i)).stats.fast for i in range(2, 1200)) > 1150
    with ws.transaction() as tx:  # three times, for each index, more than there is room for
        for part in range(4):
            tx.insert("e", [(100 * part + i, 5000 + i) for i in range(60)])
    assert tx.stats.fast == 1
    grown = ws.stats.memory_bytes["single changes"]
    layers = of(ws)._program._every_layer
    assert small + 50_000 < grown
    assert all(sum(b.nbytes for b in its.buffers) <= Sizes().layer_bytes + 32 for its in layers)
    assert {its.record.many_room for its in layers if its.changes} != {8}
    ws.verify()
    ws.check_invariants()


def test_what_is_gone_is_held_by_nobody() -> None:
    """A state that another followed the general way, and the workspace: nothing waits to be collected."""
    ws = made()
    insert(ws, (1, 7))
    assert insert(ws, (1, 8)).stats.fast == 1
    state, published = weakref.ref(ws._state), weakref.ref(ws._published)
    insert(ws, *((i, 0) for i in range(70)))
    assert state() is None
    assert insert(ws, (1, 9)).stats.fast + insert(ws, (1, 10)).stats.fast
    del ws
    assert published() is None
