"""Rows that several aggregate heads read: each head's groups and values are those that it gets alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lftj.aggregates.shared_rows import SharedRows
from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Variable
from lftj.storage import zset
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema
from support.aggregate_heads import aggregate

pytestmark = pytest.mark.kernel

DOMAINS = Domains()
INTEGER = ColumnType(DOMAINS.of(pa.int64()), pa.int64())
STRING = ColumnType(DOMAINS.of(pa.string()), pa.string())
TYPES = {"a": INTEGER, "b": INTEGER, "s": STRING}
WORDS = ["pear", "fig", "", "apple"]  # in no order of values


def head(name: str, keys: list[str], function: str, *arguments: str) -> CheckedHead:
    value = TYPES[arguments[0]] if function in ("min", "max", "concat") else INTEGER
    schema = Schema((*(Column(key, TYPES[key]) for key in keys), Column("value", value)), functional=True)
    return CheckedHead(
        name, tuple(keys), Aggregate(function, tuple(map(Variable, arguments))), schema, (0, 0)
    )


calls = st.one_of(
    st.just(("count",)),
    st.tuples(st.sampled_from(["sum", "min", "max"]), st.sampled_from(["a", "b"])),
    st.tuples(st.sampled_from(["min", "max"]), st.just("s")),
    st.tuples(st.just("concat"), st.just("s"), st.sampled_from(["a", "b"])),
)
heads = st.lists(
    st.tuples(st.lists(st.sampled_from(["a", "b", "s"]), max_size=3, unique=True), calls),
    min_size=1,
    max_size=5,
)
rows = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.sampled_from(WORDS), st.integers(1, 3)), max_size=20
)


@given(heads, st.lists(rows, max_size=4), st.sampled_from([1, 4, 1 << 20]))
def test_differential_each_head_alone(
    asked: list[tuple[list[str], tuple[str, ...]]],
    batches: list[list[tuple[int, int, str, int]]],
    buffer: int,
) -> None:
    made = [head(f"h{number}", keys, *call) for number, (keys, call) in enumerate(asked)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zset.Weighted.__init__, "__defaults__", (buffer,))
        shared = SharedRows(made, TYPES)
        event(f"{len(shared._rows)} of {len(set(shared._sources))} are fed by the search")
        parts = []
        for batch in batches:
            a, b, s, weights = zip(*batch, strict=True) if batch else ((), (), (), ())
            codes = STRING.domain.encode(pa.array(s, pa.string()))
            columns = {"a": np.array(a, np.int64), "b": np.array(b, np.int64), "s": codes}
            parts.append((columns, np.array(weights, np.int64)))
            shared.add(*parts[-1])
        found = list(shared.finish())
    weights = np.concatenate([np.empty(0, np.int64), *(weights for _, weights in parts)])
    whole = {
        name: np.concatenate([np.empty(0, np.int64), *(columns[name] for columns, _ in parts)])
        for name in TYPES
    }
    for one, (keys, values) in zip(made, found, strict=True):
        alone_keys, alone_values = aggregate(one, whole, weights, TYPES)
        assert [column.tolist() for column in keys] == [column.tolist() for column in alone_keys]
        assert values.equals(alone_values)


def test_rows_are_kept_of_the_widest_variables() -> None:
    made = [head("m", ["b"], "max", "s"), head("g", ["s", "b"], "min", "s"), head("l", ["s"], "min", "s")]
    shared = SharedRows(made, TYPES)
    assert list(shared._rows) == [("b", "s")]
    assert shared._sources == {("b", "s"): None, ("s", "b", "s"): ("b", "s"), ("s", "s"): ("b", "s")}


def test_counts_sums_and_extremes_keep_no_rows() -> None:
    made = [head("n", ["a"], "count"), head("t", ["a"], "sum", "b"), head("m", ["b"], "avg", "a")]
    made += [head("g", ["a"], "max", "b"), head("l", ["a"], "min", "b")]
    shared = SharedRows(made, TYPES)
    assert not shared._rows and list(shared._running) == [("a",), ("b",)]
    assert [list(one.summed) for one in shared._running.values()] == [["b"], ["a"]]
    assert [list(one.compared) for one in shared._running.values()] == [[("max", "b"), ("min", "b")], []]


def test_too_many_assignments_are_the_first_heads_error() -> None:
    shared = SharedRows([head("n", ["a"], "count"), head("t", ["a"], "sum", "b")], TYPES)
    weights = np.array([2**62, 2**62])
    with pytest.raises(RangeError, match=r"^n = count\(\): there are more than 2\*\*63 assignments"):
        shared.add({"a": np.array([1, 2]), "b": np.array([1, 2])}, weights)
