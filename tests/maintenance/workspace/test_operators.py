"""differential: heads of Python functions against what they give anew, within programs, and refusals."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lftj.errors import (
    ChangeError,
    DurabilityError,
    FunctionError,
    ImageError,
    StrategyError,
    UnknownRelationError,
    UnusableNameError,
    VerificationError,
)
from lftj.process import debug
from maintenance import Workspace
from maintenance.image import write_image

pytestmark = pytest.mark.kernel

EDGES = [(1, 2), (2, 3), (3, 3)]


def workspace(**more: Any) -> Workspace:
    ws = Workspace()
    ws.load("edge", EDGES, columns=["a", "b"], **more)
    ws.load("node", [(1, "x"), (2, None)], columns=["id", "label"], nulls="keep")
    return ws


def reversed_edges(edge: pa.Table) -> pa.Table:
    return pa.table({"to": edge["b"], "of": edge["a"], "weight": edge["weight"]})


def ends(edge: pa.Table) -> pa.Table:
    """Two rows of each, of which many are alike."""
    weights = pa.concat_tables([edge.select(["weight"])] * 2)["weight"]
    return pa.table(
        {"n": pa.chunked_array([*edge["a"].chunks, *edge["b"].chunks], pa.int64()), "weight": weights}
    )


def largest(edge: pa.Table) -> list[tuple[int]] | pa.Table:
    return pa.table({"top": pa.array([pc.max(edge["b"]).as_py()] if edge.num_rows else [], pa.int64())})


CASES: dict[str, tuple[Callable[..., Any], bool, Callable[[set[Any]], set[Any]]]] = {
    "reversed": (reversed_edges, True, lambda e: {(b, a) for a, b in e}),
    "ends": (ends, True, lambda e: {(n,) for row in e for n in row}),
    "largest": (largest, False, lambda e: {(max(b for _, b in e),)} if e else set()),
}


@pytest.mark.parametrize("case", CASES)
def test_a_head_is_what_its_function_gives(case: str) -> None:
    fn, linear, on_sets = CASES[case]
    rng, there, ws = random.Random(5), set(EDGES), workspace()
    ws.operator("out", fn, ["edge"], linear=linear)
    assert set(ws["out"]) == on_sets(there)
    for _ in range(25):
        before, rows = on_sets(there), {(rng.randrange(4), rng.randrange(4)) for _ in range(rng.randrange(4))}
        with ws.transaction() as tx:
            tx.erase("edge", sorted(rows & there))
            tx.insert("edge", sorted(rows - there))
        there ^= rows
        after = on_sets(there)
        assert set(ws["out"]) == after
        if rows:
            change = {tuple(row.values()) for row in tx.changes["out"].to_pylist()}
            assert change == {(*r, 1) for r in after - before} | {(*r, -1) for r in before - after}
        ws.verify()
        ws.check_invariants()


def test_a_linear_function_sees_what_changed_alone() -> None:
    seen = []

    def noted(edge: pa.Table, node: pa.Table) -> pa.Table:
        seen.append((edge.num_rows, node.num_rows))
        return reversed_edges(edge)

    ws = workspace()
    debugging, debug.enabled = debug.enabled, False
    try:
        ws.operator("out", noted, ["edge", "node"], linear=True)
        with ws.transaction() as tx:
            tx.insert("edge", [(7, 7)])
            tx.erase("edge", [(1, 2)])
        with ws.transaction() as tx:
            tx.insert("edge", [(7, 7)])
        with ws.transaction() as tx:
            tx.insert("node", [(9, "y")])
    finally:
        debug.enabled = debugging
    assert seen == [(3, 2), (2, 0), (0, 1)]
    assert not tx.changes["out"].num_rows


def test_operators_between_heads() -> None:
    """Rules over an operator over rules, in one transaction; in batches and under subscribers too."""
    ws, heard = workspace(), []
    ws.install("two(a, c) <- edge(a, b), edge(b, c).")
    ws.operator("back", lambda two: two.rename_columns(["to", "of", "weight"]), ["two"], linear=True)
    ws.install("n[a] = count() <- back(a, _). far(a) <- back(a, b), !edge(a, b).")
    ws.operator("total", lambda n: pa.table({"sum": [sum(n["count"].to_pylist())]}), ["n"])
    ws.subscribe("total", lambda change: heard.append(change.to_pylist()))
    assert (sorted(ws["back"]), sorted(ws["far"]), sorted(ws["total"])) == (
        [(1, 3), (2, 3), (3, 3)],
        [(1,)],
        [(3,)],
    )
    with ws.transaction() as tx:
        tx.insert("edge", [(3, 4)])
    assert sorted(ws["total"]) == [(5,)] and heard == [[{"sum": 3, "weight": -1}, {"sum": 5, "weight": 1}]]
    rows = {"a": [4, 3, 4], "b": [1, 4, 1], "weight": [1, -1, -1], "txn": [1, 2, 3]}
    applied = ws.apply_many({"edge": rows})
    assert [changes["total"].num_rows for changes in applied] == [2, 2, 2]
    assert applied.stats.one_by_one["back"] == "it is an operator"
    ws.verify()
    assert sorted(ws["total"]) == [(3,)]
    assert ws.sql('select of from back where "to" = 1').to_pylist() == [{"of": 3}]
    assert ws.query("q(a) <- total(a).").to_pylist() == [{"a": 3}]


def test_other_types_nulls_equal_rows_and_functions() -> None:
    ws = Workspace()
    day = datetime.date(2024, 1, 2)
    ws.load("word", pa.table({"w": ["a b", "b"], "d": [day, day]}), bag=True)
    ws.load("label", [(1, "x"), (2, None)], columns=["id", "l"], nulls="keep")
    ws.install("size[w] = count() <- word(w, _).")

    def split(word: pa.Table) -> list[tuple[Any, ...]]:
        return [(part, row["d"], row["weight"]) for row in word.to_pylist() for part in row["w"].split()]

    schema = pa.schema([pa.field("part", pa.string(), False), pa.field("d", pa.date32(), False)])
    ws.operator("part", split, ["word"], linear=True, schema=schema)
    ws.operator(
        "copy", lambda label, size: label, ["label", "size"], schema=pa.schema({"id": "int64", "l": "string"})
    )
    with ws.transaction() as tx:
        tx.insert("word", [("b", day), ("c", day)])
        tx.insert("label", [(3, None)])
    assert sorted(part for part, _ in ws["part"]) == ["a", "b", "c"]
    assert tx.changes["part"].to_pylist() == [{"part": "c", "d": day, "weight": 1}]
    assert ws.query("q(i) <- copy(i, l), l is null.").num_rows == 2
    with ws.transaction() as tx:
        tx.erase("word", [("b", day), ("a b", day)])
    assert sorted(part for part, _ in ws["part"]) == ["b", "c"]
    ws.verify()


def test_a_relation_of_many_columns() -> None:
    ws = Workspace()
    ws.load("wide", pa.table({f"c{i}": [i, i + 1] for i in range(40)}))
    ws.operator("first", lambda wide: wide.select(["c0", "weight"]), ["wide"], linear=True)
    with ws.transaction() as tx:
        tx.insert("wide", pa.table({f"c{i}": [i + 7] for i in range(40)}))
    assert sorted(ws["first"]) == [(0,), (1,), (7,)]
    ws.verify()


def test_a_column_called_weight() -> None:
    ws = Workspace()
    ws.load("item", [(1, 5)], columns=["id", "weight"])
    ws.operator("same", lambda item: item, ["item"], linear=True)
    with ws.transaction() as tx:
        tx.insert("item", [(2, 6)])
    assert tx.changes["same"].to_pylist() == [{"id": 2, "weight": 6, "weight_": 1}]


def test_what_says_how_heads_are_kept_knows_operators() -> None:
    ws = workspace()
    ws.operator("out", reversed_edges, ["edge"], linear=True)
    ws.operator("top", largest, ["edge"])
    assert ws.explain_maintenance("out") == (
        "out: strategy operator\n  operator    reversed_edges(edge), linear: it sees changes\n"
        "  batches     one transaction after the other: it is an operator\n"
        "  single changes go the general way: an operator"
    )
    assert "operator    largest(edge), it sees all rows, whenever some change" in ws.explain_maintenance(
        "top"
    )
    assert "1  out   <- edge  operator, 3 rows" in ws.explain_maintenance()
    assert "out: as operator does it, not by terms" in ws.triggers("out")
    assert ws.strategy_of("out") == "operator" and not ws.views
    assert ws.stats.as_dict()["rows"]["out"] == 3
    version = ws.version
    with ws.transaction() as tx:
        tx.insert("edge", [(8, 9)])
    assert tx.stats["out"].head_changes == 1
    assert ws.changes_since(version, "out").table.to_pylist() == [{"to": 9, "of": 8, "weight": 1}]


def test_it_is_uninstalled_and_replaced_as_any_head() -> None:
    ws = workspace()
    ws.operator("out", reversed_edges, ["edge"], linear=True)
    ws.install("h(a) <- out(a, _).")
    with pytest.raises(ChangeError, match="the rules of 'h' read 'out'"):
        ws.uninstall("out")
    with pytest.raises(ChangeError, match="can't be replaced"):
        ws.load("edge", [(1, 2)], columns=["a", "b"])
    with pytest.raises(ChangeError, match="'out' is the head"):
        ws.load("out", [(1, 2)], columns=["a", "b"])
    ws.uninstall("h", "out")
    ws.install("out(a) <- edge(a, _).")
    ws.uninstall("out")
    ws.operator("out", largest, ["edge"])
    ws.install("out(b) <- edge(_, b).", replace=True)
    with ws.transaction() as tx:
        tx.insert("edge", [(5, 6)])
    assert sorted(ws["out"]) == [(2,), (3,), (6,)]


def wrong(edge: pa.Table) -> pa.Table:
    return pa.table({"n": pc.unique(edge["a"]), "weight": pa.array([1] * len(pc.unique(edge["a"])))})


def failing_for_13(edge: pa.Table) -> pa.Table:
    if 13 in edge["a"].to_pylist():
        raise KeyError(13)
    return edge


def test_a_commit_for_which_the_function_fails_is_rolled_back() -> None:
    ws = workspace()
    ws.operator("out", failing_for_13, ["edge"], linear=True)
    transaction = ws.transaction()
    transaction.insert("edge", [(13, 1)])
    with pytest.raises(FunctionError, match=r"'out', failing_for_13\(edge\): KeyError: 13") as raised:
        transaction.commit()
    assert isinstance(raised.value.__cause__, KeyError)
    assert sorted(ws["edge"]) == sorted(ws["out"]) == EDGES
    with ws.transaction() as tx:
        tx.insert("edge", [(12, 1)])
    assert tx.changes["out"].num_rows == 1
    ws.check_invariants()


def test_a_function_that_is_not_linear_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debug, "enabled", False)
    ws = workspace()
    ws.operator("starts", wrong, ["edge"], linear=True)
    with ws.transaction() as tx:
        tx.erase("edge", [(1, 2)])
    with pytest.raises(VerificationError, match="head 'starts' differs"):
        ws.verify()
    monkeypatch.setattr(debug, "enabled", True)
    transaction = ws.transaction()
    transaction.erase("edge", [(2, 3)])
    with pytest.raises(FunctionError, match="it is not linear: the negative of its tables"):
        transaction.commit()


def test_a_negative_count_is_refused() -> None:
    def negative(edge: pa.Table) -> pa.Table:
        return edge.set_column(2, "weight", pc.negate(edge["weight"]))

    ws = workspace()
    with pytest.raises(FunctionError, match=r"no linear function, or what it gives no set: \{'a': 1"):
        ws.operator("out", negative, ["edge"], linear=True)
    assert ws.heads == () and "out" not in ws.relations


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda ws: ws.operator("edge", largest, ["edge"]), ChangeError, "'edge' is there already"),
        (lambda ws: ws.operator("a b", largest, ["edge"]), UnusableNameError, "a b"),
        (lambda ws: ws.operator("out", largest, ["egde"]), UnknownRelationError, "egde"),
        (lambda ws: ws.operator("out", largest, "edge"), ChangeError, "give a list"),
        (lambda ws: ws.operator("out", largest, []), ChangeError, "give a list"),
        (lambda ws: ws.operator("out", lambda edge: edge, []), ChangeError, "give a list"),
        (lambda ws: ws.operator("out", lambda edge: [], ["edge"]), FunctionError, "schema="),
        (lambda ws: ws.operator("out", lambda edge: 3, ["edge"]), FunctionError, "schema="),
        (
            lambda ws: ws.operator("out", largest, ["edge"], linear=True),
            FunctionError,
            "no rows of the head: .*weight",
        ),
        (
            lambda ws: ws.operator("out", largest, ["edge"], schema=pa.schema({"x": "int64"})),
            FunctionError,
            "no rows of the head",
        ),
        (lambda ws: ws.operator("out", lambda node: node, ["node"]), FunctionError, "'label': .*NULL"),
        (lambda ws: ws.operator("out", lambda e: pa.table({"a b": [1]}), ["edge"]), UnusableNameError, "a b"),
    ],
)
def test_what_is_no_operator_is_refused(
    act: Callable[[Workspace], None], error: type[Exception], says: str
) -> None:
    ws = workspace()
    with pytest.raises(error, match=says):
        act(ws)
    assert ws.heads == ()
    ws.verify()


def test_functions_are_kept_in_no_folder_and_no_image(tmp_path: Path) -> None:
    ws = workspace()
    ws.operator("out", largest, ["edge"])
    with pytest.raises(DurabilityError, match="out: what has no text, as an operator"):
        ws.save(tmp_path / "copy")
    with pytest.raises(ImageError, match="'out' is an operator"):
        write_image(ws, tmp_path / "image")
    with pytest.raises(StrategyError, match="'out' is an operator"):
        ws.set_strategy("out", "delta")
    with Workspace.open(tmp_path / "kept") as kept:
        kept.load("edge", EDGES, columns=["a", "b"])
        with pytest.raises(DurabilityError, match="folders keep no functions"):
            kept.operator("out", largest, ["edge"])
        assert kept.heads == ()
    with Workspace.open(tmp_path / "kept") as kept:
        assert kept.heads == ()
