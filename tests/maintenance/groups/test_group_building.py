"""differential: groups built from pieces against the same rows in one change, and how many rows are held.

An installed aggregate takes its assignments piece by piece; what is counted here is the
largest piece, and that no search lists all of them.
"""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import AggregateError, RangeError
from lftj.storage.signed_rows import Columns
from lftj.storage.zset import Weighted
from lftj.values import semigroup
from maintenance import Workspace
from maintenance.groups.grouped import GroupedAggregate
from maintenance.strategies.auto import auto_body
from maintenance.strategies.delta import whole_search
from support.maintained_sums import Maintained

KINDS = (
    ("count", pa.int64(), pa.int64()),
    ("sum", pa.int64(), pa.int64()),
    ("avg", pa.int64(), pa.float64()),
    ("sum", pa.float64(), pa.float64()),
    ("avg", pa.float64(), pa.float64()),
)

NUMBERS = {
    pa.int64(): st.one_of(st.integers(-5, 5), st.sampled_from((-(2**62), 2**31, 2**32 - 1, 2**40, 2**61))),
    pa.float64(): st.sampled_from((0.0, 1.5, -1.5, 1e300, 5e-324, math.inf, -math.inf, math.nan)),
}


@st.composite
def built_cases(draw: st.DrawFn) -> tuple[Any, list[list[tuple[int, Any, int]]]]:
    """A kind of aggregate, and pieces of rows: key, value, weight."""
    kind = draw(st.sampled_from(KINDS))
    weights = st.one_of(st.integers(1, 3), st.sampled_from((2**31 - 1, 2**31, 2**33)))
    row = st.tuples(st.integers(0, 3), NUMBERS[kind[1]], weights)
    return kind, draw(st.lists(st.lists(row, max_size=6), max_size=5))


def columns_of(maintained: Maintained, rows: list[tuple[int, Any, int]]) -> tuple[Columns, np.ndarray]:
    keys = np.array([key for key, _, _ in rows], np.int64)
    columns = [keys][: maintained.n_keys] + [maintained.codes(rows)] * (maintained.function != "count")
    return columns, np.array([weight for _, _, weight in rows], np.int64)


def outcome(change: Any) -> Any:
    """A head's change in plain lists, or the message of the error that it raises."""
    try:
        columns, weights = change()
    except RangeError as error:
        return str(error)
    return [column.tolist() for column in columns], weights.tolist()


@pytest.mark.kernel
@given(built_cases(), st.sampled_from((0, 1)))
def test_pieces_and_one_change_give_the_same_groups(case: tuple[Any, Any], keys: int) -> None:
    (kind, pieces), whole = case, Maintained(*case[0], keys=keys)
    built = Maintained(*kind, keys=keys)
    built.types, built.head, built.declared = whole.types, whole.head, whole.declared
    built.restart()
    wanted = outcome(lambda: whole.groups.stage(*columns_of(whole, [row for rows in pieces for row in rows])))
    for keep in (False, True):  # what was dropped leaves nothing
        for rows in pieces:
            built.groups.add(*columns_of(built, rows))
        assert outcome(built.groups.built) == wanted
        built.groups.keep() if keep else built.groups.drop()
        built.groups.check_invariants()
        assert keep or (not built.contents() and built.groups.rows()[-1].tolist() == [])
    if not isinstance(wanted, str):
        whole.groups.keep()
        assert built.contents() == whole.contents()
        change = columns_of(built, [(1, 1.5 if kind[1] == pa.float64() else 7, 1)])
        assert outcome(lambda: built.groups.stage(*change)) == outcome(lambda: whole.groups.stage(*change))


def test_a_sum_may_leave_its_type_between_two_pieces() -> None:
    built = Maintained("sum", pa.int64(), pa.int64())
    for rows in ([(1, 2**62, 1), (1, 2**62, 2)], [(1, -(2**62), 3), (1, 5, 1)]):
        built.groups.add(*columns_of(built, rows))
    (keys, values), weights = built.groups.built()
    assert (keys.tolist(), values.tolist(), weights.tolist()) == ([1], [5], [1])


# -- installing -----------------------------------------------------------------------------

PIECE = 64

HEADS = (
    "p[a] = sum(c) <- one(a, b), two(b, c).",
    "p[a] = avg(c) <- one(a, b), two(b, c).",
    "p[a] = count() <- one(a, b), two(b, c), b < c.",
    "p[a] = max(c) <- one(a, b), two(b, c).",
    "p[] = sum(c) <- one(_, b), two(b, c).",
    "p[a] = sum(d) <- one(a, b), two(b, c), d = b * c.",
    "p[a] = sum(b) <- (one(a, b), two(b, c) ; two(a, b), one(b, c)).",
    "p[a] = sum(c), q[a] = min(c), r[c] = count() <- one(a, b), two(b, c).",
    "p(a, c) <- one(a, b), two(b, c).",
)


@contextmanager
def pieces_counted() -> Iterator[list[int]]:
    """Small pieces; the sizes of those that any groups take, and no search that lists all rows."""
    sizes: list[int] = []
    add = GroupedAggregate.add

    def counted(groups: GroupedAggregate, columns: Columns, weights: np.ndarray, are_unscaled: bool) -> None:
        sizes.append(len(weights))
        add(groups, columns, weights, are_unscaled)

    with (
        mock.patch.object(whole_search, "BATCH_ROWS", PIECE),
        mock.patch.object(whole_search, "all_rows", side_effect=AssertionError("all rows are held")),
        mock.patch.object(GroupedAggregate, "add", counted),
    ):
        yield sizes


def bipartite(ws: Workspace, n: int, m: int) -> None:
    """``one`` from n to m nodes, ``two`` from these to m others: n * m * m paths."""
    ws.load("one", {"a": np.repeat(np.arange(n), m), "b": np.tile(np.arange(m), n)})
    ws.load("two", {"b": np.repeat(np.arange(m), m), "c": np.tile(np.arange(m), m)})


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.parametrize("text", HEADS)
@pytest.mark.parametrize("strategy", ["delta", "auto"])
def test_an_install_holds_a_piece_of_the_assignments(text: str, strategy: str) -> None:
    n, m = 5, 20
    plain, ws = Workspace(), Workspace()
    for each in (plain, ws):
        bipartite(each, n, m)
    plain.install(text, "recompute")
    with pieces_counted() as sizes:
        ws.install(text, strategy)
    assert all(rows(ws[name]) == rows(plain[name]) for name in plain.heads)
    assert max(sizes, default=0) <= PIECE
    if "p[a] = sum(c)" in text:
        assert sum(sizes) >= n * m * m  # nothing was added up before
    for each in (plain, ws):
        with each.transaction() as tx:
            tx.insert("one", [(0, 99), (7, 1)])
            tx.erase("two", [(1, 2), (0, 0)])
    assert all(rows(ws[name]) == rows(plain[name]) for name in plain.heads)
    ws.verify()


def test_a_commit_that_evaluates_again_holds_distinct_rows() -> None:
    """`auto` subtracts two whole evaluations, each added up on the way: (a, c), not (a, b, c)."""
    n, m = 5, 20
    ws, largest, finish = Workspace(), 0, Weighted.finish
    bipartite(ws, n, m)

    def measured(found: Weighted) -> Any:
        nonlocal largest
        columns, weights = finish(found)
        largest = max(largest, len(weights))
        return columns, weights

    with (
        pieces_counted(),
        mock.patch.object(auto_body, "LEAST_BUDGET", 0),
        mock.patch.object(Weighted, "finish", measured),
    ):
        ws.install("p[a] = sum(c) <- one(a, b), two(b, c).", "auto")
        (search,) = ws._state.heads["p"].searches
        assert isinstance(search, auto_body.AutoBody)
        search._whole = 0  # operations that a step may take
        with ws.transaction() as tx:
            tx.erase("two", [(b, b) for b in range(m)])
    assert tx.stats.rules["p"].recomputed == 1 and largest == n * m
    ws.verify()


def test_what_is_only_counted_is_not_listed() -> None:
    """A star of three: two of its rays are numbers of edges, so the rows are those of the third."""
    ws, n = Workspace(), 40
    ws.load("e", {"a": np.repeat(np.arange(n), n), "b": np.tile(np.arange(n), n)})
    with pieces_counted() as sizes:
        ws.install("s[a] = sum(x) <- e(a, x), e(a, _), e(a, _).", "delta")
    assert sum(sizes) == n * n
    assert rows(ws["s"]) == {(a, n * n * sum(range(n))): 1 for a in range(n)}


def test_numbers_of_assignments_that_do_not_fit_are_refused() -> None:
    """Three rays of 2**21 edges each: 2**63 assignments."""
    ws, n = Workspace(), 1 << 21
    ws.load("e", {"a": np.zeros(n, np.int64), "b": np.arange(n)})
    with pytest.raises(RangeError, match="assignments"):
        ws.install("n[a] = count() <- e(a, _), e(a, _), e(a, _).", "delta")
    assert not ws.heads


@pytest.mark.parametrize("function", ["sum", "max"])
def test_memory_of_an_install_follows_the_groups(function: str) -> None:
    """3.2 million assignments with 8,000 distinct rows; held, they took 150 MB."""
    peaks = []
    for n in (1, 20):  # the first compiles and imports
        ws = Workspace()
        bipartite(ws, n, 400)
        gc.collect()
        tracemalloc.start()
        try:
            ws.install(f"p[a] = {function}(c) <- one(a, b), two(b, c).", "delta")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert ws["p"].count == n
    assert peaks[-1] < 24 << 20


def test_an_error_amid_the_pieces_installs_nothing() -> None:
    def refusing(left: int, right: int) -> int:
        if left > 17 or right > 17:
            raise ValueError("too large")
        return min(left, right)

    ws, body = Workspace(), "one(a, b), two(b, c)"
    bipartite(ws, 5, 20)
    semigroup.register("least_of_small", numba.njit(refusing))
    with pieces_counted(), pytest.raises(AggregateError, match="too large"):
        ws.install(f"p[a] = least_of_small(c) <- {body}.", "delta")
    assert not ws.heads
    ws.install(f"p[a] = least_of_small(c) <- {body}, c < 10.", "delta")
    assert rows(ws["p"]) == {(a, 0): 1 for a in range(5)}
