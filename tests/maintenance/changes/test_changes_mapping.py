"""`tx.changes` and `tx.stats` are mappings like any other, and say so when there is nothing yet."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from lftj.errors import RangeError, TransactionError, UnknownRelationError
from maintenance import Transaction, Workspace
from maintenance.changes.head_changes import Changes

CHANGED = pa.table({"a": [1], "b": [2], "c": [3], "weight": [1]})
UNCHANGED = pa.table({"a": pa.array([], pa.int64()), "weight": pa.array([], pa.int64())})


@pytest.fixture
def ws() -> Workspace:
    workspace = Workspace()
    workspace.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
    workspace.load("other", [(7,)], columns=["a"])
    workspace.install("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).")
    workspace.install("same(a) <- other(a).", strategy="recompute")
    return workspace


@pytest.fixture
def tx(ws: Workspace) -> Transaction:
    with ws.transaction() as transaction:
        transaction.insert("edge", [(1, 3)])
    return transaction


# -- after the commit -----------------------------------------------------------------


def test_changes_are_a_mapping(tx: Transaction) -> None:
    changes = tx.changes
    assert isinstance(changes, Mapping)
    assert changes.get("tri") == changes["tri"] == CHANGED
    assert changes.get("same") == UNCHANGED
    assert changes.get("tir") is None and changes.get("tir", 5) == 5
    assert list(changes) == list(changes.keys()) == ["tri", "same"] and len(changes) == 2
    assert list(changes.values()) == [CHANGED, UNCHANGED]
    assert dict(changes.items()) == dict(changes) == {**changes} == {"tri": CHANGED, "same": UNCHANGED}
    assert "tri" in changes and "tir" not in changes and 3 not in changes
    assert changes.keys() & {"tri", "x"} == {"tri"}
    match changes:
        case {"tri": table}:
            assert table == CHANGED
        case _:
            pytest.fail("a mapping matches by its keys")


def test_changes_do_not_change(tx: Transaction) -> None:
    for mutation in ("__setitem__", "__delitem__", "pop", "update", "clear", "setdefault"):
        assert not hasattr(tx.changes, mutation)


def test_changes_are_equal_by_their_tables(ws: Workspace, tx: Transaction) -> None:
    assert tx.changes == {"tri": CHANGED, "same": UNCHANGED}
    assert tx.changes != {"tri": CHANGED}
    with ws.transaction() as back:
        back.erase("edge", [(1, 3)])
    assert back.changes != tx.changes
    with ws.transaction() as again:
        again.insert("edge", [(1, 3)])
    assert again.changes == tx.changes


def test_changes_show_heads_and_numbers_of_rows(tx: Transaction) -> None:
    assert repr(tx.changes) == "<changes: tri +1 -0, same +0 -0>"
    html = tx.changes._repr_html_()
    assert "<td>tri</td><td>1</td><td>0</td>" in html
    with Workspace().transaction() as nothing:
        pass
    assert repr(nothing.changes) == "<changes: no head is installed>"


def test_showing_changes_never_raises() -> None:
    def table_of(name: str) -> pa.Table:
        if name == "bad":
            raise RangeError("a value that its type can't hold")
        return CHANGED

    changes = Changes(("bad", "tri"), table_of)
    assert repr(changes) == "<changes: bad +? -?, tri +1 -0>"
    assert "<td>bad</td><td>?</td>" in changes._repr_html_()
    with pytest.raises(RangeError):
        changes["bad"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_changes_and_figures_are_pickled_without_the_workspace(tx: Transaction, protocol: int) -> None:
    changes = pickle.loads(pickle.dumps(tx.changes, protocol))
    assert type(changes) is Changes and changes == tx.changes and list(changes) == ["tri", "same"]
    assert repr(changes) == repr(tx.changes)
    assert pickle.loads(pickle.dumps(changes, protocol)) == changes
    assert len(pickle.dumps(tx.changes)) < 5_000
    assert pickle.loads(pickle.dumps(tx.stats, protocol)) == tx.stats


def test_copies_of_changes(tx: Transaction) -> None:
    for copied in (copy.copy(tx.changes), copy.deepcopy(tx.changes)):
        assert copied == tx.changes
    assert copy.deepcopy(tx.stats) == tx.stats


def test_tables_are_built_when_asked_for_and_once_for_all_threads() -> None:
    at_once = threading.Barrier(4)
    built = []

    def table_of(name: str) -> pa.Table:
        at_once.wait(timeout=60)
        built.append(name)
        return pa.table({"weight": [1]})

    changes = Changes(("h",), table_of)
    assert list(changes) == ["h"] and "h" in changes and len(changes) == 1 and not built
    found: list[pa.Table] = []
    threads = [threading.Thread(target=lambda: found.append(changes["h"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(table is found[0] for table in found) and changes["h"] is found[0]


def test_later_commits_do_not_change_changes(ws: Workspace, tx: Transaction) -> None:
    with ws.transaction() as later:
        later.erase("edge", [(1, 3)])
    assert tx.changes["tri"] == CHANGED
    assert later.changes["tri"]["weight"].to_pylist() == [-1]


def test_figures_are_a_mapping_of_all_heads(tx: Transaction) -> None:
    stats = tx.stats
    assert isinstance(stats, Mapping)
    assert list(stats) == ["tri", "same"] and len(stats) == 2
    assert stats["tri"].head_changes == 1 and stats["tri"] is stats.rules["tri"]
    untouched = stats["same"].as_dict()
    assert untouched.pop("strategy") == "recompute"
    assert untouched.pop("chosen") == ()
    assert set(untouched.values()) == {0}
    assert "same" in stats and "same" not in stats.rules and "tir" not in stats
    assert stats.get("tir") is None
    assert [figures.head_changes for figures in stats.values()] == [1, 0]
    json.dumps({head: figures.as_dict() for head, figures in stats.items()})


def test_recomputing_counts_what_evaluating_takes() -> None:
    """At least an operation for each row that it finds again; what follows the change takes a few."""
    workspace = Workspace()
    workspace.load("edge", [(number, number + 1) for number in range(300)], columns=["a", "b"])
    for name, strategy in (("anew", "recompute"), ("followed", "delta")):
        workspace.install(
            f"{name}(a, c) <- edge(a, b), edge(b, c). n_{name}[a] = count() <- edge(a, _).", strategy
        )
    workspace.install("path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c), a > 280.", "recompute")
    with workspace.transaction() as tx:
        tx.insert("edge", [(300, 301)])
    for name in ("anew", "n_anew"):
        assert tx.stats[name].operations >= 300
    assert tx.stats["path"].operations >= workspace["path"].count == 301 + 20 * 21 // 2 - 20
    for name in ("followed", "n_followed"):
        assert 0 < tx.stats[name].operations < 50


@pytest.mark.parametrize("of", [lambda tx: tx.changes, lambda tx: tx.stats], ids=["changes", "stats"])
def test_an_unknown_head_is_named_with_the_nearest(tx: Transaction, of: Callable[[Transaction], Any]) -> None:
    with pytest.raises(UnknownRelationError) as raised:
        of(tx)["tir"]
    assert str(raised.value) == "unknown head 'tir'; did you mean 'tri'?"
    with pytest.raises(KeyError):
        of(tx)[3]


# -- before the commit, and without one ------------------------------------------------------

ASKED: dict[str, Callable[[Any], object]] = {
    "item": lambda mapping: mapping["tri"],
    "get": lambda mapping: mapping.get("tri"),
    "in": lambda mapping: "tri" in mapping,
    "iteration": list,
    "len": len,
    "bool": bool,
    "keys": lambda mapping: mapping.keys(),
    "items": lambda mapping: mapping.items(),
    "values": lambda mapping: mapping.values(),
    "dict": dict,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "attribute": lambda mapping: mapping.inserted,
}


def outcomes(ws: Workspace) -> dict[str, tuple[Transaction, str]]:
    """Transactions without changes, and what they say."""
    begun, rolled_back, raised, failed = (ws.transaction() for _ in range(4))
    rolled_back.roll_back()
    with pytest.raises(ZeroDivisionError), raised:
        raise ZeroDivisionError
    ws.load("late", [(1,)], columns=["a"])
    failed.insert("late", [(2,)])
    ws.load("late", [(1,)], columns=["a"])
    with pytest.raises(TransactionError, match="loaded anew"):
        failed.commit()
    return {
        "begun": (begun, "not committed yet: leave its with block, or call commit()"),
        "rolled back": (rolled_back, "was rolled back: stage the changes in another one"),
        "raised": (raised, "was rolled back: stage the changes in another one"),
        "failed": (failed, "the commit failed, nothing changed: stage the changes in another transaction"),
    }


@pytest.mark.parametrize("outcome", ["begun", "rolled back", "raised", "failed"])
@pytest.mark.parametrize("asked", ASKED)
def test_without_a_commit_asking_says_why_there_is_nothing(ws: Workspace, outcome: str, asked: str) -> None:
    transaction, why = outcomes(ws)[outcome]
    for mapping in (transaction.changes, transaction.stats):
        with pytest.raises(TransactionError) as raised:
            ASKED[asked](mapping)
        assert why in str(raised.value)
        assert why in repr(mapping) and why in str(mapping)
        assert mapping == mapping and not hasattr(mapping, "_repr_html_")
        hash(mapping)


def test_what_was_taken_before_the_commit_says_so_after_it(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.insert("edge", [(1, 3)])
        early = tx.changes
    with pytest.raises(TransactionError, match="taken before the commit: take it from the transaction again"):
        early["tri"]
    assert tx.changes["tri"] == CHANGED


def test_subscribers_see_the_changes_of_their_transaction(ws: Workspace) -> None:
    transaction = ws.transaction()
    seen = []
    ws.subscribe(
        "tri", lambda table: seen.append((table, transaction.changes.get("tri"), len(transaction.stats)))
    )
    transaction.insert("edge", [(1, 3)])
    transaction.commit()
    assert seen == [(CHANGED, CHANGED, 2)]


def test_rolling_back_after_the_commit_changes_nothing(tx: Transaction) -> None:
    tx.roll_back()
    assert tx.changes["tri"] == CHANGED
