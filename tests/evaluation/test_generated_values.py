"""``x in l`` for a variable that nothing else binds: a row for each element, against Python's sets."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj import errors
from maintenance import Workspace

STRATEGIES = ["trace", "delta", "views", "recompute", "auto"]
ROWS: list[tuple[int, list[str | None] | None]] = [
    (1, ["a", "b", "a"]),
    (2, []),
    (3, ["c", None]),
    (4, None),
    (5, ["b"]),
]
TABLE = pa.table(
    {"k": [k for k, _ in ROWS], "l": pa.array([some for _, some in ROWS], pa.list_(pa.string()))}
)


def rows(rule: str, **options: Any) -> list[tuple[Any, ...]]:
    database = lftj.Database()
    database.load("r", TABLE, nulls="keep")
    database.load("n", {"k": [1, 2, 7]})
    return sorted(zip(*database.query(rule, **options).to_pydict().values(), strict=True), key=repr)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("h(k, x) <- r(k, l), x in l.", [(1, "a"), (1, "b"), (3, "c"), (5, "b")]),
        ("h(k, x) <- r(k, l), list_contains(l, x).", [(1, "a"), (1, "b"), (3, "c"), (5, "b")]),
        ("h(x) <- r(_, l), x in l.", [("a",), ("b",), ("c",)]),
        ("h(k) <- r(k, l), x in l.", [(1,), (3,), (5,)]),
        ("h[k] = count() <- r(k, l), x in l.", [(1, 2), (3, 1), (5, 1)]),
        ("h[x] = count() <- r(_, l), x in l.", [("a", 1), ("b", 2), ("c", 1)]),
        ("h[] = count() <- r(_, l), x in l.", [(4,)]),
        ("bag h(x) <- r(_, l), x in l.", [("a",), ("b",), ("b",), ("c",)]),
        ("h(k, x) <- r(k, l), x in l, x > \"a\", k < 4.", [(1, "b"), (3, "c")]),
        ("h(k) <- r(k, l), \"a\" in l.", [(1,)]),
        ("h(k) <- r(k, l), \"a\" not in l.", [(2,), (3,), (5,)]),
        ("h(k, m) <- r(k, l), r(m, n), x in l, x in n, k < m.", [(1, 5)]),
        ("h(k, x) <- r(k, l), x in l, x in string_split(\"b,c,d\", \",\").", [(1, "b"), (3, "c"), (5, "b")]),
        ("h(x, y) <- r(1, l), x in l, y in string_split(x || \"-\" || x, \"-\").", [("a", "a"), ("b", "b")]),
        ("h(x) <- x in string_split(\"b a b\", \" \").", [("a",), ("b",)]),
        ("h(k, x) <- r(k, l), x = \"b\", x in l.", [(1, "b"), (5, "b")]),
        ("h(k, x) <- r(k, l), (x in l, k < 2 ; x = \"z\", k = 5).", [(1, "a"), (1, "b"), (5, "z")]),
        ("h(k) <- r(k, l), x in l, !r(_, l), n(k).", []),
        ("h(k, i) <- r(k, l), x in l, i = row_number(by: x, per: k).", [(1, 1), (1, 2), (3, 1), (5, 1)]),
        ("s(x) <- r(5, l), x in l. h(k, x) <- r(k, l), x in l, !s(x).", [(1, "a"), (3, "c")]),
        ("h(k, w) <- n(k), w in hop(k, 4, 2).", [(1, -2), (1, 0), (2, 0), (2, 2), (7, 4), (7, 6)]),
        ("h(k, w) <- n(k), w in hop(k, 1, 3, 1).", [(1, 1), (7, 7)]),
        ("h(k, w) <- n(k), w in if(k > 1, hop(k, 2, 1)), w > k - 1.", [(2, 2), (7, 7)]),
    ],
)  # fmt: skip
def test_a_row_for_each_element(rule: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(rule) == expected
    assert rows(rule, threads=2) == expected


@pytest.mark.parametrize(
    ("elements", "values"),
    [
        (pa.array([[0.0, -0.0, float("nan"), None, 1.5]], pa.list_(pa.float64())), {0.0, 1.5}),
        (pa.array([[3, 3, -(2**63) + 1]], pa.large_list(pa.int64())), {3, -(2**63) + 1}),
        (pa.array([["é", "é", ""]], pa.list_(pa.string_view())), {"é", ""}),
        (pa.array([[b"\0", b"\0"]], pa.list_(pa.binary())), {b"\0"}),
        (pa.array([[True, False, True]], pa.list_(pa.bool_())), {True, False}),
    ],
)
def test_elements_of_every_type(elements: pa.Array, values: set[Any]) -> None:
    database = lftj.Database()
    database.load("r", pa.table({"l": elements}))
    found = database.query("h(x) <- r(l), x in l.")["x"]
    assert len(found) == len(values)
    assert set(found.to_pylist()) == values


def test_lists_of_lists_give_lists() -> None:
    database = lftj.Database()
    database.load("r", pa.table({"l": pa.array([[[1, 2], [1, 2], [None], []]])}))
    assert database.query("h(n) <- r(l), x in l, n = len(x).", order_by="n")["n"].to_pylist() == [0, 1, 2]
    assert database.query("h[] = count() <- r(l), x in l.").to_pylist() == [{"count": 3}]


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=4, unique=True),
    st.integers(1, 50),
    st.integers(1, 20),
    st.integers(-30, 30),
    st.sampled_from([pa.int32(), pa.date32(), pa.timestamp("s"), pa.timestamp("s", "Asia/Tokyo")]),
)
def test_hopping_windows(moments: list[int], length: int, step: int, offset: int, type_: pa.DataType) -> None:
    """All beginnings, of one each step, that are at most a length before the moment, itself included."""
    origin = {"int32": 0, "date32[day]": 10_959}.get(str(type_), 10_959 * 86_400)
    database = lftj.Database()
    whole = pa.array(moments, pa.int64() if pa.types.is_timestamp(type_) else pa.int32())
    database.load("r", pa.table({"n": moments, "x": whole.cast(type_)}))
    unit = "s" if pa.types.is_timestamp(type_) else ""
    written = [f"{number}{unit}" for number in (length, step, offset)]
    found = database.query(f"h(n, w) <- r(n, x), w in hop(x, {', '.join(written)}).")
    counts = found["w"].cast(pa.int32() if type_ == pa.date32() else pa.int64()).to_pylist()
    expected = {
        (n, w) for n in moments for w in range(n - length + 1, n + 1) if (w - origin - offset) % step == 0
    }
    assert found["w"].type == (pa.int64() if type_ == pa.int32() else type_)
    assert set(zip(found["n"].to_pylist(), counts, strict=True)) == expected


def parts(texts: pa.Array, separators: pa.Array) -> pa.Array:
    pairs = zip(texts.to_pylist(), separators.to_pylist(), strict=True)
    return pa.array([text.split(sign) for text, sign in pairs], pa.list_(pa.string()))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_function_of_ones_own_generates(strategy: str) -> None:
    lftj.function("test_parts", parts, ["string", "string"], pa.list_(pa.string()))
    workspace = Workspace()
    workspace.load("page", [(1, "a b a"), (2, "b")], columns=["id", "text"])
    workspace.install('word[x] = count() <- page(_, t), x in test_parts(t, " ").', strategy)
    assert set(workspace["word"]) == {("a", 1), ("b", 2)}
    with workspace.transaction() as transaction:
        transaction.insert("page", [(3, "c a")])
        transaction.erase("page", [(2, "b")])
    assert set(workspace["word"]) == {("a", 2), ("b", 1), ("c", 1)}
    assert sorted(tuple(row.values()) for row in transaction.changes["word"].to_pylist()) == [
        ("a", 1, -1), ("a", 2, 1), ("b", 1, 1), ("b", 2, -1), ("c", 1, 1)
    ]  # fmt: skip
    workspace.verify()


@pytest.mark.parametrize("strategy", ["stages", "recompute", "auto"])
def test_a_recursion_over_generated_values(strategy: str) -> None:
    workspace = Workspace()
    lists = pa.array([[2, 3], [4], [4, 1], []], pa.list_(pa.int64()))
    workspace.load("next", pa.table({"a": [1, 2, 3, 4], "l": lists}))
    workspace.load("begin", {"a": [3]})
    workspace.install("to(a) <- begin(a). to(b) <- to(a), next(a, l), b in l.", strategy)
    assert set(workspace["to"]) == {(3,), (4,), (1,), (2,)}
    with workspace.transaction() as transaction:
        transaction.erase("next", pa.table({"a": [3], "l": pa.array([[4, 1]], pa.list_(pa.int64()))}))
    assert set(workspace["to"]) == {(3,)}
    workspace.verify()


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (
            'h[] = min(l) <- r(_, l). h[] = min(m) <- h[] = l, x in l, m = string_split(x, "").',
            errors.StratificationError,
            "its elements come and go",
        ),
        ("h(x) <- n(k), x in k.", errors.TypeClashError, "'x in k' takes lists, and k is of type int64"),
        (
            "h(x) <- n(k), x not in hop(k, 2, 1).",
            errors.UnboundVariableError,
            "'x', which the comparison needs",
        ),
        ("h(k) <- n(k), _ in hop(k, 2, 1).", errors.RuleSyntaxError, "'_' has no value to compare"),
        ("h(k) <- n(k), x in m(k).", errors.RuleSyntaxError, "unknown function 'm'"),
        ("h(k, x) <- n(k), x in hop(k, 2, 0).", errors.EvaluationError, "a window without a length in hop"),
        ("h(k, x) <- n(k), x in hop(k, 0, 2).", errors.EvaluationError, "a window without a length in hop"),
        (
            "h(k, x) <- n(k), x in hop(k, 9223372036854775807, 1).",
            errors.EvaluationError,
            "more windows than",
        ),
        (
            "h[] = min(k) <- n(k). h[] = min(x) <- h[] = k, x in hop(k, 2, 1).",
            errors.StratificationError,
            "'hop(k, 2, 1)' need not go one way when 'k' falls",
        ),
    ],
)
def test_what_is_refused(rule: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        rows(rule)
