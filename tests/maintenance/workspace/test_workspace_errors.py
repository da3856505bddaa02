"""What a workspace refuses, and that it is exactly as before then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lftj
from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support.example_workspace import EDGES, TRI, Step, committed, contents, example, rows


@pytest.fixture
def ws() -> Workspace:
    return example()


# -- changes


def test_an_exception_in_the_block_leaves_everything_as_it_was(ws: Workspace) -> None:
    state, before = ws._state, contents(ws)
    with pytest.raises(ZeroDivisionError), ws.transaction() as tx:
        tx.insert("edge", [(2, 4)])
        _ = 1 / 0
    assert ws._state is state
    assert contents(ws) == before
    assert rows(committed(ws, lambda tx: tx.insert("edge", [(2, 4)])).changes["tri"]) == [(2, 3, 4, 1)]


def test_heads_forget_what_a_refused_transaction_made_of_them() -> None:
    """Those that had stepped when a later one refused it: existence, a count, a sum."""
    workspace = Workspace()
    workspace.load("edge", [(1, 2)], columns=["a", "b"])
    workspace.install(
        "source(a) <- edge(a, _). n[a] = count() <- edge(a, _). total[a] = sum(b) <- edge(a, b)."
        " part(a, c) <- edge(a, b), c = 12 / b."
    )
    before = contents(workspace)
    with pytest.raises(errors.EvaluationError, match="zero"):
        committed(workspace, lambda tx: tx.insert("edge", [(7, 0)]))
    assert contents(workspace) == before
    committed(workspace, lambda tx: tx.insert("edge", [(7, 3)]))
    assert rows(workspace["n"]) == [(1, 1), (7, 1)]
    assert rows(workspace["total"]) == [(1, 2), (7, 3)]
    committed(workspace, lambda tx: tx.erase("edge", [(7, 3)]))
    assert contents(workspace) == before
    workspace.verify()


def test_a_transaction_can_go_on_after_a_refused_change(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.insert("edge", [(2, 4)])
        with pytest.raises(errors.ChangeError):
            tx.insert("edge", [(7, 8), (7, None)])
    assert rows(ws["edge"]) == sorted([*EDGES, (2, 4)])


WITH_NAN = pa.table({"a": [3, 4], "v": [2.5, float("nan")]})

BAD_CHANGES: dict[str, tuple[Step, type[Exception], str]] = {
    "unknown relation": (lambda tx: tx.insert("egde", [(1, 2)]), errors.UnknownRelationError, "'egde'"),
    "a head": (lambda tx: tx.insert("tri", [(1, 2, 3)]), errors.ChangeError, "'tri' is derived"),
    "a head, erased": (lambda tx: tx.erase("lonely", [(5,)]), errors.ChangeError, "'lonely' is derived"),
    "too many values": (lambda tx: tx.insert("edge", [(1, 2, 3)]), errors.ChangeError, "'edge'.*3 values"),
    "too few values": (lambda tx: tx.insert("edge", [(1, 2), (3,)]), errors.ChangeError, "row 1"),
    "no tuple": (lambda tx: tx.insert("edge", (5, 6)), errors.ChangeError, "not a tuple"),
    "too few columns": (lambda tx: tx.insert("edge", {"a": [1]}), errors.ChangeError, "no column 'b'.*a, b"),
    "other columns": (
        lambda tx: tx.insert("edge", {"a": [1], "c": [1]}),
        errors.ChangeError,
        "'edge' have no column 'c'; there may be a, b$",
    ),
    "other columns, with weights": (
        lambda tx: tx.apply("edge", {"a": [1], "c": [1], "weight": [1]}),
        errors.ChangeError,
        "'edge' have no column 'c'; there may be a, b, weight$",
    ),
    "a string": (lambda tx: tx.insert("edge", [(1, "x")]), errors.ChangeError, "'b'.*string.*int64"),
    "a float": (lambda tx: tx.insert("edge", [(1, 2.0)]), errors.ChangeError, "'b'.*double.*int64"),
    "a boolean": (lambda tx: tx.insert("edge", [(1, True)]), errors.ChangeError, "'b'.*bool.*int64"),
    "a large integer": (lambda tx: tx.insert("edge", [(1, 2**63)]), errors.ChangeError, "64 bits"),
    "NULL": (lambda tx: tx.insert("edge", [(1, 2), (1, None)]), errors.ChangeError, "'b'.*NULL in row 1"),
    "NaN": (lambda tx: tx.insert("length", WITH_NAN), errors.NanError, "'length', column 'v'"),
    "no table": (lambda tx: tx.insert("edge", 7), errors.ChangeError, "can't load from a int"),
    "no file": (lambda tx: tx.insert("edge", "no.csv"), errors.ChangeError, "no.csv: there is no such file"),
    "no weight": (lambda tx: tx.apply("edge", {"a": [1], "b": [2]}), errors.ChangeError, "'weight'"),
    "a weight of 1.0": (
        lambda tx: tx.apply("edge", {"a": [1], "b": [2], "weight": [1.0]}),
        errors.ChangeError,
        "weight is of type double",
    ),
    "a weight as text": (
        lambda tx: tx.apply("edge", {"a": [1], "b": [2], "weight": ["1"]}),
        errors.ChangeError,
        "weight is of type string",
    ),
    "no weight in one row": (
        lambda tx: tx.apply("edge", {"a": [1, 1], "b": [2, 2], "weight": pa.array([1, None])}),
        errors.ChangeError,
        "weight of row 1 .* is NULL",
    ),
    "a large weight": (
        lambda tx: tx.apply("edge", {"a": [1], "b": [2], "weight": pa.array([2**64 - 1], pa.uint64())}),
        errors.ChangeError,
        "weight of row 0 .* is 18446744073709551615",
    ),
}


@pytest.mark.parametrize("case", BAD_CHANGES)
def test_bad_changes_are_refused_and_leave_everything_as_it_was(ws: Workspace, case: str) -> None:
    step, kind, message = BAD_CHANGES[case]
    state, before = ws._state, contents(ws)
    called: list[pa.Table] = []
    ws.subscribe("tri", called.append)
    with pytest.raises(kind, match=message) as caught, ws.transaction() as tx:
        tx.insert("edge", [(2, 4)])
        step(tx)
    assert isinstance(caught.value, lftj.LftjError)
    assert ws._state is state
    assert contents(ws) == before
    assert called == []
    ws.verify()
    assert rows(committed(ws, lambda tx: tx.insert("edge", [(2, 4)])).changes["tri"]) == [(2, 3, 4, 1)]


# -- commits and programs


MORE = pa.table({"a": [8], "b": [9], "bb": ["x"]})
WITH_ONE_MORE: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "reader": lambda table: table.to_reader(),
    "pandas": lambda table: table.to_pandas(),
    "dict": lambda table: table.to_pydict(),
    "mapping": lambda table: MappingProxyType(table.to_pydict()),
    "structured array": lambda table: table.to_pandas().to_records(index=False),
    "path": lambda table: parquet_of(table, Path("more.parquet")),
    "path as text": lambda table: str(parquet_of(table, Path("more.parquet"))),
}


def parquet_of(table: pa.Table, path: Path) -> Path:
    parquet.write_table(table, path)
    return path


@pytest.mark.parametrize("form", WITH_ONE_MORE)
def test_no_form_of_changes_may_have_other_columns(
    ws: Workspace, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one that is silently left out, whether the changes have weights or not."""
    monkeypatch.chdir(tmp_path)
    weighted = MORE.append_column("weight", pa.array([1]))
    same = "^changes of 'edge' have no column 'bb'; there may be a, b"
    with ws.transaction() as tx:
        for step in (tx.insert, tx.erase):
            with pytest.raises(errors.ChangeError, match=f"{same}$"):
                step("edge", WITH_ONE_MORE[form](MORE))
        with pytest.raises(errors.ChangeError, match=f"{same}, weight$"):
            tx.apply("edge", WITH_ONE_MORE[form](weighted))
        tx.insert("edge", WITH_ONE_MORE[form](MORE.select(["b", "a"])))
        tx.apply("edge", WITH_ONE_MORE[form](weighted.select(["weight", "b", "a"])))
    assert (8, 9) in rows(ws["edge"])


def test_changes_in_files_without_a_header_have_the_relations_columns(ws: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "more.csv"
    file.write_text("8,9\n", encoding="utf-8")
    with ws.transaction() as tx:
        tx.insert("edge", file)
    with ws.transaction() as tx:
        tx.insert("edge", str(file))
        tx.apply("edge", [])
    assert (8, 9) in rows(ws["edge"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_commit_that_fails_in_a_rule_leaves_everything_as_it_was(strategy: str) -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["a", "b"])
    workspace.install(TRI, strategy)
    workspace.install("share(a, v) <- edge(a, b), v = 12 / (b - 7).", strategy)
    state, before = workspace._state, contents(workspace)
    for _ in range(2):
        with pytest.raises(errors.EvaluationError, match="share"), workspace.transaction() as tx:
            tx.insert("edge", [(2, 4), (5, 7)])
        assert workspace._state is state
        assert contents(workspace) == before
    tx = committed(workspace, lambda tx: tx.insert("edge", [(2, 4), (5, 8)]))
    assert rows(tx.changes["tri"]) == [(2, 3, 4, 1)]
    assert rows(tx.changes["share"]) == [(2, -4.0, 1), (5, 12.0, 1)]
    workspace.verify()
    workspace.check_invariants()


def test_a_function_with_two_values_is_refused() -> None:
    workspace = Workspace()
    workspace.load("price", {"item": ["tea"], "pence": [100]})
    workspace.install("double[i] = v <- price[i] = p, v = p * 2.")
    before = contents(workspace)
    with pytest.raises(errors.FunctionalConflictError), workspace.transaction() as tx:
        tx.insert("price", [("tea", 120)])
    assert contents(workspace) == before
    with workspace.transaction() as tx:
        tx.insert("price", [("tea", 120)])
        tx.erase("price", [("tea", 100)])
    assert rows(tx.changes["double"]) == [("tea", 200, -1), ("tea", 240, 1)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nan_in_a_column_that_joins(strategy: str) -> None:
    workspace = Workspace()
    workspace.load("length", {"a": [1, 2], "v": [0.5, 0.5]})
    workspace.install("same(a, b) <- length(a, v), length(b, v).", strategy)
    before = contents(workspace)
    with pytest.raises(errors.NanError, match="'length', column 'v'"), workspace.transaction() as tx:
        tx.insert("length", WITH_NAN)
    assert contents(workspace) == before
    committed(workspace, lambda tx: tx.insert("length", WITH_NAN.slice(0, 1)))
    assert workspace["same"].count == 5


def test_nan_may_be_the_value_of_a_function() -> None:
    workspace = Workspace()
    workspace.load("length", {"a": [1], "v": [0.5]})
    workspace.install("copy[a] = v <- length[a] = v.")
    tx = committed(workspace, lambda tx: tx.insert("length", WITH_NAN))
    assert tx.changes["copy"].num_rows == 2
    assert sorted(map(str, workspace["copy"]["v"].to_pylist())) == ["0.5", "2.5", "nan"]


@pytest.mark.parametrize(
    ("program", "options", "kind", "message"),
    [
        ("t(a) <- egde(a, _).", {}, errors.UnknownRelationError, "did you mean 'edge'"),
        ("t(a) <- edge(a).", {}, errors.ArityError, "2 columns"),
        ("t(a) <- edge(a, _), !t(a).", {}, errors.StratificationError, "negation"),
        ("t(a) <- edge(a, b), t(b).", {}, errors.RuleError, "'t' can't begin"),
        ("t(a) <- edge(a, _), u(a).\nu(a) <- node(a), !t(a).", {}, errors.StratificationError, "negation"),
        ("t(a <- edge(a, _).", {}, errors.RuleSyntaxError, r"\^"),
        ("tri(a) <- edge(a, _).", {}, errors.RuleError, "'tri'"),
        ("edge(a, b) <- tri(a, b, _).", {}, errors.RuleError, "'edge'"),
        (
            "t(a) <- edge(a, _).",
            {"strategy": "fast"},
            errors.StrategyError,
            "'fast'.*auto, trace, delta, recompute",
        ),
        ("t(a) <- edge(a, _).", {"strategy": {"u": "trace"}}, errors.StrategyError, "'u'.*heads are t"),
        ("t(a) <- edge(a, _).", {"order": {"t": ["z"]}}, errors.OrderError, "z"),
        ("u(a) <- node(a).\nt(a, v) <- node(a), v = 1 / (a - 5).", {}, errors.EvaluationError, "zero"),
    ],
)
def test_bad_programs_are_refused_and_nothing_is_installed(
    ws: Workspace, program: str, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    state, before = ws._state, contents(ws)
    with pytest.raises(kind, match=message):
        ws.install(program, **options)
    assert ws._state is state
    assert contents(ws) == before
    committed(ws, lambda tx: tx.insert("edge", [(2, 4)]))
    ws.verify()
    ws.install("t(a) <- edge(a, _).")  # the name is free
    assert rows(ws["t"]) == [(1,), (2,), (3,)]


def test_loads_that_would_change_what_rules_read(ws: Workspace) -> None:
    state = ws._state
    with pytest.raises(errors.ChangeError, match="'edge' can't be replaced, the rules of 'tri' read it"):
        ws.load("edge", [(1, 2)], columns=["a", "b"])
    with pytest.raises(errors.ChangeError, match="'tri' is the head of an installed rule"):
        ws.load("tri", [(1, 2, 3)], columns=["a", "b", "c"])
    assert ws._state is state
    ws.load("other", [(1,)], columns=["a"])
    ws.load("other", [(2,)], columns=["a"])
    assert rows(ws["other"]) == [(2,)]
    with pytest.raises(errors.SourceError):
        ws.load("other", "no.csv")
    assert rows(ws["other"]) == [(2,)]


def test_names_that_are_not_there(ws: Workspace) -> None:
    for call in (
        lambda: ws["tir"],
        lambda: ws.explain_maintenance("edge"),
        lambda: ws.subscribe("edge", print),
    ):
        with pytest.raises(errors.UnknownRelationError, match="tri"):
            call()
    tx = committed(ws, lambda tx: tx.insert("edge", [(2, 4)]))
    with pytest.raises(
        errors.UnknownRelationError, match="unknown head 'edge'; there are 'lonely', 'long' and 'tri'"
    ):
        _ = tx.changes["edge"]


def test_nan_in_a_column_that_no_rule_uses() -> None:
    """What can be there when the rule is installed can come later."""
    workspace = Workspace()
    workspace.load("length", WITH_NAN)
    workspace.install("named(a) <- length(a, _).")
    assert workspace["named"].count == 2
    committed(workspace, lambda tx: tx.erase("length", WITH_NAN))
    committed(workspace, lambda tx: tx.insert("length", WITH_NAN))
    assert workspace["named"].count == 2


def test_a_relation_that_is_replaced_while_changes_of_it_wait(ws: Workspace) -> None:
    ws.load("other", [(1, 2)], columns=["a", "b"])
    tx = ws.transaction()
    tx.insert("other", [(3, 4)])
    ws.load("other", [("x", "y")], columns=["a", "b"])
    with pytest.raises(lftj.LftjError):
        tx.commit()
    assert rows(ws["other"]) == [("x", "y")]
