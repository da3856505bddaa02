"""A workspace's public face: tables, transactions, strategies, subscribers, snapshots."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lftj
from lftj import errors
from maintenance import Workspace
from maintenance.changes.write_buffer import WriteBuffer
from maintenance.heads.strategies import STRATEGIES
from maintenance.workspace.transaction import Transaction
from support.example_workspace import EDGES, TRI, Rows, committed, example, rows
from support.sets import load_set


@pytest.fixture
def ws() -> Workspace:
    return example()


# -- tables ----------------------------------------------------------------------


def test_a_head_has_what_a_pyarrow_table_has(ws: Workspace) -> None:
    head = ws["tri"]
    assert head.count == len(head) == 1
    assert head._table is None  # counting builds nothing
    assert head.num_rows == 1
    assert head.column_names == ["a", "b", "c"]
    assert head.schema == pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])
    assert head.to_pylist() == [{"a": 1, "b": 2, "c": 3}]
    assert head["c"].to_pylist() == [3]
    assert head == pa.table({"a": [1], "b": [2], "c": [3]})
    assert head == ws["tri"]
    assert repr(head) == "tri(a: int64, b: int64, c: int64), 1 row\na  b  c\n1  2  3"
    assert pa.table(head) == head.table
    assert pl.DataFrame(head).rows() == [(1, 2, 3)]
    assert head.to_pandas().shape == (1, 3)
    db = lftj.Database()
    db.load("tri", head)
    assert db.count("t(a) <- tri(a, _, _).") == 1
    with pytest.raises(AttributeError):
        _ = head.no_such_thing


def test_a_table_that_was_asked_for_stays_as_it_was(ws: Workspace) -> None:
    before = ws["tri"]
    committed(ws, lambda tx: tx.erase("edge", EDGES))
    assert before.count == 1
    assert rows(before) == [(1, 2, 3)]
    assert ws["tri"].count == 0
    assert ws["edge"].to_pylist() == []


def test_a_workspace_is_queried_like_a_database(ws: Workspace) -> None:
    query = "end(c) <- tri(_, _, c), edge(c, _)."
    assert ws.count(query) == 1
    committed(ws, lambda tx: tx.erase("edge", [(3, 4)]))
    assert ws.count(query) == 0
    assert rows(ws.query("e(a, b) <- edge(a, b).")) == sorted(EDGES[:3])
    assert "tri" in str(ws.explain(query))
    assert ["lonely", "2", "a:", "int64"] in [line.split() for line in repr(ws.relations).splitlines()]


# -- transactions ------------------------------------------------------------------


def test_changes_and_stats(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.insert("edge", [(2, 4), (1, 4), (1, 2)])
        tx.erase("edge", [(1, 3), (9, 9)])
    assert rows(tx.changes["tri"]) == [(1, 2, 3, -1), (1, 2, 4, 1), (2, 3, 4, 1)]
    assert rows(tx.changes["lonely"]) == [(2, -1)]
    assert rows(tx.changes["long"]) == []
    assert tx.changes["long"].column_names == ["a", "weight"]
    assert set(tx.changes) == {"tri", "lonely", "long"}
    assert tx.stats.inserted == {"edge": 2}
    assert tx.stats.erased == {"edge": 1}
    assert tx.stats.no_changes == {"edge": 2}
    assert set(tx.stats) == set(tx.changes)
    assert set(tx.stats.rules) == {"tri", "lonely"}
    figures = tx.stats["tri"]
    assert (figures.strategy, figures.head_changes) == ("auto", 3)
    assert figures.surgeries > 0
    assert figures.regions <= figures.surgeries + figures.matches
    assert 0 < figures.seconds <= tx.stats.seconds
    assert figures.operations >= figures.surgeries + figures.matches
    ws.verify()


def test_changes_of_one_transaction_add_up(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.insert("edge", [(7, 8)])
        tx.erase("edge", [(7, 8)])  # cancels the insertion
        tx.insert("edge", [(1, 2)])
        tx.erase("edge", [(1, 2)])  # and what was there stays
        tx.insert("edge", [(2, 4), (2, 4)])
        tx.erase("edge", [(2, 4)])  # one insertion is left
        tx.apply("edge", {"a": [1, 1], "b": [3, 3], "weight": [-2, 1]})
    assert rows(ws["edge"]) == [(1, 2), (2, 3), (2, 4), (3, 4)]
    assert tx.stats.inserted == tx.stats.erased == {"edge": 1}
    many = [(i, i + 1) for i in range(1000, 2000)]  # more than wait tuple by tuple
    with ws.transaction() as tx:
        tx.insert("edge", many)
        tx.erase("edge", many[1:])
        tx.erase("edge", [(2, 4)])
        tx.insert("edge", [(2, 4)])
    assert rows(ws["edge"]) == [(1, 2), (2, 3), (2, 4), (3, 4), (1000, 1001)]


def test_an_empty_transaction(ws: Workspace) -> None:
    state = ws._state
    with ws.transaction() as tx:
        tx.insert("edge", [])
        tx.erase("edge", [(9, 9)])
    assert ws._state is state
    assert tx.stats.no_changes == {"edge": 1}
    assert not tx.stats.rules and all(figures.operations == 0 for figures in tx.stats.values())
    assert all(table.num_rows == 0 for table in tx.changes.values())
    with ws.transaction() as tx:
        pass
    assert ws._state is state


@pytest.mark.parametrize(
    "source",
    [
        [(5, 6), (6, 7)],
        [[5, 6], [6, 7]],
        {(5, 6), (6, 7)},
        ((i, i + 1) for i in (5, 6)),
        pa.table({"b": [6, 7], "a": [5, 6]}),
        pa.table({"a": pa.array([5, 6], pa.int8()), "b": pa.array([6, 7], pa.uint32())}),
        pa.record_batch({"a": [5, 6], "b": [6, 7]}),
        pa.table({"a": [5, 6], "b": [6, 7]}).to_reader(),
        pl.DataFrame({"a": [5, 6], "b": [6, 7]}),
        pd.DataFrame({"a": [5, 6], "b": [6, 7]}, index=[3, 4]),
        np.array([[5, 6], [6, 7]]),
        np.array([(5, 6), (6, 7)], dtype=[("a", "i4"), ("b", "i8")]),
        {"a": [5, 6], "b": np.array([6, 7])},
    ],
    ids=lambda source: type(source).__name__,
)
def test_every_form_of_input(ws: Workspace, source: Any) -> None:
    committed(ws, lambda tx: tx.insert("edge", source))
    assert rows(ws["edge"]) == sorted([*EDGES, (5, 6), (6, 7)])


def test_files_are_input_too(ws: Workspace, tmp_path: Any) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("a,b\n5,6\n", encoding="utf-8")
    committed(ws, lambda tx: tx.insert("edge", str(path)))
    committed(ws, lambda tx: tx.erase("edge", path))
    assert rows(ws["edge"]) == sorted(EDGES)


def test_all_types_go_in_and_come_out() -> None:
    table = pa.table(
        {
            "text": pa.array(["x", "y"]).dictionary_encode(),
            "day": pa.array([0, 20484], pa.int32()).cast(pa.date32()),
            "size": pa.array([0.5, 2.5], pa.float32()),
            "flag": [True, False],
        }
    )
    workspace = Workspace()
    workspace.load("item", table.slice(0, 1))
    workspace.install("kept(t, d, s, f) <- item(t, d, s, f).")
    tx = committed(workspace, lambda tx: tx.insert("item", table))
    assert workspace["kept"].schema.types == table.schema.types
    assert rows(workspace["kept"]) == rows(table)
    assert rows(tx.changes["kept"]) == [(*row, 1) for row in rows(table.slice(1))]
    back = tx.changes["kept"].rename_columns([*table.column_names, "weight"])
    committed(workspace, lambda tx: tx.apply("item", back))  # already in
    assert rows(workspace["kept"]) == rows(table)


def test_commit_and_roll_back_by_hand(ws: Workspace) -> None:
    tx = ws.transaction()
    tx.insert("edge", [(2, 4)])
    tx.commit()
    assert ws["tri"].count == 2
    dropped = ws.transaction()
    dropped.erase("edge", EDGES)
    dropped.roll_back()
    assert ws["tri"].count == 2
    for over in (tx, dropped):
        with pytest.raises(errors.TransactionError, match="over"):
            over.insert("edge", [(1, 1)])
        with pytest.raises(errors.TransactionError, match="over"), over:
            pass
        before = ws.version
        with pytest.raises(errors.TransactionError, match="the transaction is over: begin another one"):
            over.commit()
        over.roll_back()  # which is so already
        assert (ws.version, ws["tri"].count) == (before, 2)


def test_a_commit_that_failed_is_over_too(ws: Workspace) -> None:
    ws.load("zero", [(1, 0)], columns=["a", "b"])
    with ws.transaction() as tx:
        tx.erase("zero", [(1, 0)])
    ws.install("q(a, c) <- zero(a, b), c = 1 / b.")
    tx = ws.transaction()
    tx.insert("zero", [(2, 0)])
    with pytest.raises(errors.EvaluationError):
        tx.commit()
    with pytest.raises(errors.TransactionError, match="over"):
        tx.commit()
    assert (2, 0) not in ws["zero"]


def test_a_transaction_that_commits_within_its_block(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.insert("edge", [(2, 4)])
        tx.commit()
        with pytest.raises(errors.TransactionError, match="over"):
            tx.commit()
    assert ws["tri"].count == 2


def test_a_transaction_that_is_dropped_with_changes_says_so(ws: Workspace) -> None:
    ws.load("other", [(1,)], columns=["a"])
    before = ws.version
    tx = ws.transaction()
    tx.insert("edge", [(2, 4)])
    tx.insert("other", [(1,)])
    with pytest.warns(
        ResourceWarning, match=r"its changes of 'edge', 'other' with it: .* roll_back\(\)"
    ) as caught:
        del tx
    assert len(caught) == 1 and caught[0].filename == __file__
    assert ws.version == before


@pytest.mark.filterwarnings("error")
def test_other_transactions_are_dropped_in_silence(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    for end in (Transaction.commit, Transaction.roll_back):
        tx = ws.transaction()
        tx.insert("edge", [(2, 4)])
        end(tx)
    with ws.transaction() as tx:
        tx.erase("edge", [(2, 4)])
    with pytest.raises(ZeroDivisionError), ws.transaction() as tx:
        tx.insert("edge", [(3, 4)])
        raise ZeroDivisionError
    tx = ws.transaction()  # nothing is staged, be it of no row or refused
    tx.insert("edge", [])
    with pytest.raises(errors.ChangeError):
        tx.insert("edge", [(1, "two")])
    tx = ws.transaction()
    tx.insert("edge", [(4, 4)])
    with (
        mock.patch.object(WriteBuffer, "stage", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        tx.insert("edge", [(5, 5)])
    del tx
    gc.collect()
    assert raised == []


# -- strategies ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        "n[a] = count() <- edge(a, _).",
        "t(a) <- node(a), edge(_, _).",
        "t(v) <- price[_] = v.",
        "t[a] = v <- price[a] = b, v = b * 2.",
        "t(a) <- node(a), v = a * 2, !node(v).",
        "t(a) <- node(a), edge(b, c), edge(c, b).",
    ],
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_keeps_every_rule(ws: Workspace, rule: str, strategy: str) -> None:
    ws.load("price", {"a": [1], "v": [5]})
    ws.install(rule, strategy)
    name = rule.partition("[")[0].partition("(")[0]
    assert ws.strategy_of(name) == strategy
    with ws.transaction() as tx:
        tx.erase("edge", EDGES)
        tx.insert("price", [(2, 6)])
    ws.verify()
    with ws.transaction() as tx:
        tx.insert("edge", EDGES)
        tx.insert("node", [(50,), (25,)])
        tx.insert("price", [(3, 7)])
    assert tx.stats[name].strategy == strategy
    ws.verify()
    ws.check_invariants()


def test_several_aggregates_in_one_head() -> None:
    """Their auxiliary heads are the engine's affair: nobody is told of them, and settings go to them."""
    ws = Workspace()
    ws.load("e", [(1, 2), (1, 3), (2, 3)], columns=["a", "b"])
    rules = "stats(a, count(), sum(b), max(b)) <- e(a, b), e(_, b).  all(count(), min(a)) <- e(a, _)."
    ws.install(
        rules,
        {"all": "recompute", "stats": "trace"},
        order={"stats": ["b", "a"]},
        sensitivity_bytes={"stats": 500},
    )
    assert ws.heads == ("stats", "all")
    told = ws.explain_maintenance("stats#1")
    assert "key order   b, a\n" in told and "tuples of e(_, b) are counted below b" in told
    assert ws.strategy_of("all#1") == "recompute" and ws.strategy_of("stats#2") == "trace"
    with ws.transaction() as tx:
        tx.insert("e", [(1, 9)])
    assert list(tx.changes) == ["stats", "all"]
    assert sorted(rows(tx.changes["stats"])) == [(1, 3, 8, 3, -1), (1, 4, 17, 9, 1)]
    ws.verify()
    with pytest.raises(errors.StrategyError, match=r"heads are more$"):
        ws.install("more(a, count(), sum(b)) <- e(a, b).", {"stats#1": "trace"})


def test_the_strata_are_drawn() -> None:
    ws = Workspace()
    ws.load("edge", [(1, 2), (2, 3)], columns=["src", "dst"])
    ws.load("node", [(1,), (9,)], columns=["id"])
    ws.install("p(a) <- edge(a, _).\nq[] = count() <- p(a), !node(a).\n", {"q": "recompute"})
    assert ws.explain_maintenance().split("\n") == [
        "strata",
        "  0  edge               2 rows",
        "  0  node               2 rows",
        "  1  p     <- edge      auto, 2 rows",
        "  2  q     <- p, !node  recompute, 1 row",
    ]


def test_strategies_by_head(ws: Workspace) -> None:
    ws.install("p(a) <- edge(a, _).\nq(a) <- p(a), node(a).", {"p": "recompute"})
    assert ws.explain_maintenance("p").startswith("p: strategy recompute")
    assert "auto: delta" in ws.explain_maintenance("q")
    tx = committed(ws, lambda tx: tx.insert("edge", [(5, 1)]))
    assert (tx.stats["p"].strategy, tx.stats["q"].strategy) == ("recompute", "auto")
    assert rows(tx.changes["q"]) == [(5, 1)]


def test_the_memory_of_records_is_kept_to() -> None:
    edges = [(i, (i * j) % 97) for i in range(100) for j in range(20)]
    sizes = []
    for options in ({}, {"sensitivity_bytes": 20_000}):
        workspace = Workspace(record_gap=0, **options)
        load_set(workspace, "edge", edges, columns=["a", "b"])
        workspace.install(TRI, "trace")
        sizes.append(workspace.sensitivity_bytes)
        committed(workspace, lambda tx: tx.erase("edge", edges[::7]))
        workspace.verify()
    assert sizes[1] <= 20_000 < sizes[0]


# -- subscribers -----------------------------------------------------------------------


def test_subscribers_get_each_change_after_its_commit(ws: Workspace) -> None:
    got: list[Rows] = []
    counts: list[int] = []
    stop = ws.subscribe("tri", lambda table: got.append(rows(table)))
    ws.subscribe("tri", lambda table: counts.append(ws["tri"].count))
    committed(ws, lambda tx: tx.insert("edge", [(2, 4)]))
    committed(ws, lambda tx: tx.insert("edge", [(8, 9)]))  # changes no triangle
    stop()
    stop()
    committed(ws, lambda tx: tx.insert("edge", [(1, 4)]))
    assert got == [[(2, 3, 4, 1)]]
    assert counts == [2, 4]


def test_a_subscriber_that_raises_is_reported_and_the_commit_stands(ws: Workspace) -> None:
    got: list[pa.Table] = []

    def falls_over(table: pa.Table) -> None:
        raise ValueError("no more room")

    ws.subscribe("tri", falls_over)
    ws.subscribe("tri", got.append)
    with pytest.warns(errors.SubscriberWarning, match=r"falls_over of 'tri' raised ValueError: no more room"):
        tx = committed(ws, lambda tx: tx.insert("edge", [(2, 4)]))
    ((name, error),) = tx.subscriber_errors
    assert name.endswith("falls_over")
    assert isinstance(error, ValueError)
    assert ws["tri"].count == 2
    assert len(got) == 1
    ws.verify()


def test_a_warning_made_an_error_leaves_the_commit(ws: Workspace) -> None:
    def falls_over(table: pa.Table) -> None:
        raise ValueError("no more room")

    ws.subscribe("tri", falls_over)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.SubscriberWarning)
        with pytest.raises(errors.SubscriberWarning):
            committed(ws, lambda tx: tx.insert("edge", [(2, 4)]))
    assert ws["tri"].count == 2
    ws.verify()


def test_subscribers_get_changes_in_commit_order_also_when_one_commits(ws: Workspace) -> None:
    got: list[Rows] = []

    def commits_once_more(table: pa.Table) -> None:
        if ws["tri"].count == 2:
            committed(ws, lambda tx: tx.insert("edge", [(1, 4)]))

    ws.subscribe("tri", commits_once_more)
    ws.subscribe("tri", lambda table: got.append(rows(table)))
    committed(ws, lambda tx: tx.insert("edge", [(2, 4)]))
    assert got == [[(2, 3, 4, 1)], [(1, 2, 4, 1), (1, 3, 4, 1)]]


# -- snapshots, threads, verification -----------------------------------------------------


def test_a_snapshot_stays_and_is_for_reading_only(ws: Workspace) -> None:
    snapshot = ws.snapshot()
    committed(ws, lambda tx: tx.erase("edge", EDGES))
    assert rows(snapshot["tri"]) == [(1, 2, 3)]
    assert snapshot.count(TRI.replace("tri", "again")) == 1
    assert rows(snapshot.query("l(a) <- lonely(a).")) == [(2,), (5,)]
    assert ws["lonely"].count == 3
    with pytest.raises(errors.ChangeError, match="snapshot"):
        snapshot.load("edge", [(1, 2)], columns=["a", "b"])
    with pytest.raises(errors.UnknownRelationError):
        _ = snapshot["tir"]


def test_readers_see_whole_transactions_while_another_thread_commits() -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["a", "b"])
    workspace.install(TRI)
    held = workspace.snapshot()
    failures: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            snapshot = workspace.snapshot()
            head, expected = snapshot["tri"].count, snapshot.count(TRI.replace("tri", "again"))
            if head != expected:
                failures.append(f"{head} triangles instead of {expected}")
            if rows(held["tri"]) != [(1, 2, 3)]:
                failures.append("the held snapshot changed")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for i in range(10, 110):
            committed(workspace, lambda tx, i=i: tx.insert("edge", [(1, i), (2, i), (3, i)]))
            if i % 3 == 0:
                committed(workspace, lambda tx, i=i: tx.erase("edge", [(1, i - 1), (2, i - 1)]))
    finally:
        done.set()
        reader.join()
    assert failures == []
    assert held.count(TRI.replace("tri", "again")) == 1
    workspace.verify()


def test_threads_commit_one_after_the_other() -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["a", "b"])
    workspace.install("out(a) <- edge(a, _).")

    def commit(first: int) -> None:
        for i in range(first, first + 50):
            committed(workspace, lambda tx, i=i: tx.insert("edge", [(i, i + 1)]))

    threads = [threading.Thread(target=commit, args=(first,)) for first in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert workspace["out"].count == 3 + 100
    workspace.verify()


@pytest.mark.parametrize(("weight", "row"), [(1, (7, 8, 9)), (-1, (1, 2, 3))])
def test_verify_finds_a_wrong_head(ws: Workspace, weight: int, row: tuple[int, ...]) -> None:
    ws.verify()
    wrong = ws._state.versions["tri"].advance([np.array([value]) for value in row], np.array([weight]))
    ws._published.state = replace(ws._state, versions={**ws._state.versions, "tri": wrong})
    word = "too many" if weight > 0 else "missing"
    with pytest.raises(errors.VerificationError, match=rf"'tri'.*{word}, for example: \({row[0]}, {row[1]}"):
        ws.verify()
