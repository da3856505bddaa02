"""oracle: counts of distinct values, alone and beside other aggregates, against sets of Python values.

Rows come and go in steps that are kept or dropped; a batch of steps at once gives what they give one by one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.language.body import Assignment, Body, CheckedHead, CheckedRule
from lftj.language.syntax import Aggregate, Call, Constant, Variable
from lftj.values.domains import Domains
from lftj.values.names import DISTINCT_COUNT
from lftj.values.schema import Column, ColumnType, Schema
from maintenance.groups import distinct_counts
from maintenance.groups.distinct_counts import DistinctCounts
from maintenance.groups.grouped import GroupedAggregate, GroupTable, accumulator_for
from maintenance.groups.joined_groups import JoinedGroups
from maintenance.groups.shared_scans import SharedScans, Sharer

pytestmark = pytest.mark.kernel

Row = tuple[int, int | None, str | None]
"""A key, and two values."""

ROWS = st.tuples(
    st.integers(0, 2),
    st.one_of(st.none(), st.integers(-1, 2)),
    st.sampled_from([None, "a", "b"]),
)
STEPS = st.lists(st.tuples(st.lists(ROWS, max_size=6), st.booleans()), max_size=8)
CALLS = {
    "count": ("count", ()),
    "distinct v": (DISTINCT_COUNT, ("v",)),
    "distinct s": (DISTINCT_COUNT, ("s",)),
    "distinct v, s": (DISTINCT_COUNT, ("v", "s")),
    "distinct v if k < 2": (DISTINCT_COUNT, ("v if k < 2",)),
    "distinct v if k > 0": (DISTINCT_COUNT, ("v if k > 0",)),
    "sum": ("sum", ("k",)),
    "min": ("min", ("k",)),
}
FILTERS = {"v if k < 2": ("<", 2), "v if k > 0": (">", 0)}
"""Variables that are v in the rows whose key is below, or above, a number; in the others NULL."""


class Kept:
    """Heads of some calls over one set of rows."""

    def __init__(self, keys: Sequence[str] = ("k",)) -> None:
        domains = Domains()
        arrows = {"k": pa.int64(), "v": pa.int64(), "s": pa.string()}
        self.types = {
            name: ColumnType(domains.of(arrow), arrow, name != "k") for name, arrow in arrows.items()
        }
        self.types |= dict.fromkeys(FILTERS, self.types["v"])
        for name in ("v", "s"):
            self.types[name].domain.encode_nullable(pa.array([None], arrows[name]))
        self.keys = tuple(keys)

    def sharer(self, call: str) -> Sharer:
        function, arguments = CALLS[call]
        columns = [Column(name, self.types["k"]) for name in (*self.keys, "n")]
        value = Aggregate(function, tuple(map(Variable, arguments)))
        head = CheckedHead("h", self.keys, value, Schema(tuple(columns), True), (0, 0))
        filtered = []
        for name, (sign, bound) in FILTERS.items():
            condition = Call(sign, (Variable("k"), Constant(bound)))
            filtered.append(Assignment(name, Call("if", (condition, Variable("v")))))
        rule = CheckedRule((head,), (Body((), (), (), tuple(filtered), self.types),), "", (0, 0))
        return Sharer(rule, head, {name: name for name in self.types})

    def groups(self, call: str) -> GroupedAggregate:
        head = self.sharer(call).head
        return GroupedAggregate(head, self.types, accumulator_for(head, self.types))

    def joined(self, calls: Sequence[str]) -> tuple[SharedScans, JoinedGroups]:
        sharers = [self.sharer(call) for call in calls]
        scans, n_keys = SharedScans(sharers), len(self.keys)
        places = [*range(n_keys + len(calls))]
        return scans, JoinedGroups(sharers, scans.accumulator, places)

    def codes(self, rows: Sequence[Row]) -> dict[str, np.ndarray]:
        columns = {name: [row[name] for row in map(named, rows)] for name in self.types}
        return {
            name: self.types[name].encode(pa.array(of, self.types[name].arrow))
            for name, of in columns.items()
        }


def named(row: Row) -> dict[str, Any]:
    """The values of all variables in a row."""
    k, v, s = row
    passes = {"<": k.__lt__, ">": k.__gt__}
    filtered = {name: v if passes[sign](bound) else None for name, (sign, bound) in FILTERS.items()}
    return {"k": k, "v": v, "s": s, **filtered}


def expected(call: str, rows: Counter[Row], keys: Sequence[str]) -> dict[tuple[int, ...], int]:
    """The value of each group, by set and by list."""
    groups: dict[tuple[int, ...], list[dict[str, Any]]] = {}
    for row in rows.elements():
        groups.setdefault(row[: len(keys)], []).append(named(row))
    function, arguments = CALLS[call]
    found = {}
    for key, own in groups.items():
        if function == DISTINCT_COUNT:
            values = {tuple(one[name] for name in arguments) for one in own}
            found[key] = len([value for value in values if None not in value])
        else:
            values_of_k = [one["k"] for one in own]
            found[key] = {"count": len(own), "sum": sum(values_of_k), "min": min(values_of_k)}[function]
    return found


def values_of(
    calls: Sequence[str], rows: Counter[Row], keys: Sequence[str]
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The values of each group side by side."""
    found = [expected(call, rows, keys) for call in calls]
    return {key: tuple(one[key] for one in found) for key in found[0]}


def follow(there: dict[Any, Any], change: tuple[Any, np.ndarray], n_keys: int) -> dict[Any, Any]:
    """What is there after a change; what goes was there, what comes was not."""
    columns, weights = change
    rows = list(zip(*(np.asarray(column).tolist() for column in columns), strict=True))
    assert len({*rows}) == len(rows) and rows == sorted(rows)
    there = dict(there)
    for row, weight in zip(rows, weights.tolist(), strict=True):
        if weight < 0:
            assert there.pop(row[:n_keys]) == row[n_keys:]
    for row, weight in zip(rows, weights.tolist(), strict=True):
        if weight > 0:
            assert there.setdefault(row[:n_keys], row[n_keys:]) == row[n_keys:]
    return there


def signed(step: Sequence[Row], there: Counter[Row]) -> list[tuple[Row, int]]:
    """Rows that are there often enough go, others come."""
    there, found = Counter(there), []
    for number, row in enumerate(step):
        sign = -1 if there[row] and number % 2 else 1
        there[row] += sign
        found.append((row, sign))
    return found


@given(st.sampled_from(["distinct v", "distinct s", "distinct v, s"]), STEPS, st.sampled_from([("k",), ()]))
def test_counts_are_those_of_sets(
    call: str, steps: list[tuple[list[Row], bool]], keys: tuple[str, ...]
) -> None:
    kept, rows, there = Kept(keys), Counter[Row](), {}
    groups = kept.groups(call)
    for step, keep in steps:
        changes = signed(step, rows)
        codes = kept.codes([row for row, _ in changes])
        names = (*keys, *CALLS[call][1])
        order = [*names[: len(keys)], *names[len(keys) + 1 :], *names[len(keys) : len(keys) + 1]]
        weights = np.array([sign for _, sign in changes], np.int64)
        change = groups.stage([codes[name] for name in order], weights)
        if not keep:
            groups.drop()
        else:
            groups.keep()
            there = follow(there, change, len(keys))
            for row, sign in changes:
                rows[row] += sign
            rows += Counter()
        groups.check_invariants()
        assert {key: value for key, (value,) in there.items()} == expected(call, rows, keys)


@given(
    st.lists(st.sampled_from(sorted(CALLS)), min_size=2, max_size=5, unique=True),
    STEPS,
    st.sampled_from([("k",), ()]),
)
def test_aggregates_side_by_side(
    calls: list[str], steps: list[tuple[list[Row], bool]], keys: tuple[str, ...]
) -> None:
    kept, rows, there = Kept(keys), Counter[Row](), {}
    scans, groups = kept.joined(calls)
    for step, keep in steps:
        changes = signed(step, rows)
        codes, weights = kept.codes([row for row, _ in changes]), np.array([s for _, s in changes], np.int64)
        scans.stage(codes, weights)
        change = groups.stage(codes, weights)
        for one in (scans, groups):
            one.keep() if keep else one.drop()
        if keep:
            there = follow(there, change, len(keys))
            for row, sign in changes:
                rows[row] += sign
            rows += Counter()
        groups.tidy()
        groups.check_invariants()
        assert there == values_of(calls, rows, keys)
        assert list(zip(*(column.tolist() for column in groups.rows()), strict=True)) == sorted(
            (*key, *values) for key, values in there.items()
        )


@given(st.lists(st.lists(ROWS, max_size=5), max_size=4), st.sampled_from([("k",), ()]))
def test_pieces_give_what_one_step_gives(pieces: list[list[Row]], keys: tuple[str, ...]) -> None:
    calls, kept = ["count", "distinct v", "distinct v, s", "distinct v if k < 2", "min"], Kept(keys)
    (scans, built), rows = kept.joined(calls), Counter(itertools.chain(*pieces))
    for piece in pieces:
        codes, ones = kept.codes(piece), np.ones(len(piece), np.int64)
        scans.stage(codes, ones)
        built.add(codes, ones)
    assert follow({}, built.built(), len(keys)) == values_of(calls, rows, keys)
    built.drop()
    built.check_invariants()
    assert built.n_groups == 0 and not len(built.rows()[0])


@given(st.lists(st.lists(ROWS, max_size=5), max_size=5), st.lists(ROWS, max_size=6), st.booleans())
def test_a_batch_gives_what_its_steps_give(steps: list[list[Row]], before: list[Row], alone: bool) -> None:
    calls = (
        ["distinct v, s"]
        if alone
        else ["count", "distinct v if k > 0", "distinct v, s", "distinct v if k < 2", "sum"]
    )
    kept, rows = Kept(), Counter(before)
    groups: GroupTable = kept.groups(calls[0]) if alone else kept.joined(calls)[1]

    def columns(codes: dict[str, np.ndarray]) -> Any:
        return [codes["k"], codes["s"], codes["v"]] if alone else codes

    groups.stage(columns(kept.codes(before)), np.ones(len(before), np.int64))  # type: ignore[attr-defined]
    groups.keep()
    timed: list[tuple[int, Row, int]] = []
    wanted: list[tuple[int, tuple[Any, ...], int]] = []
    there = values_of(calls, rows, ("k",))
    for time, step in enumerate(steps):
        for row, sign in signed(step, rows):
            timed.append((time, row, sign))
            rows[row] += sign
        rows += Counter()
        now = values_of(calls, rows, ("k",))
        wanted += [(time, (*key, *there[key]), -1) for key in there if now.get(key) != there[key]]
        wanted += [(time, (*key, *now[key]), 1) for key in now if there.get(key) != now[key]]
        there = now
    codes = kept.codes([row for _, row, _ in timed])
    times = np.array([time for time, _, _ in timed], np.int64)
    found, when, signs = groups.timed_step(  # type: ignore[attr-defined]
        columns(codes), times, np.array([sign for _, _, sign in timed], np.int64)
    )
    rows_found = zip(*(column.tolist() for column in found), strict=True)
    assert sorted(zip(when.tolist(), rows_found, signs.tolist(), strict=True)) == sorted(wanted)
    groups.check_invariants()


def test_filtered_counts_of_a_value_have_one_table() -> None:
    calls = ["distinct v if k > 0", "count", "distinct s", "distinct v", "distinct v if k < 2"]
    _, groups = Kept(()).joined(calls)
    assert [type(one) for one in groups.parts] == [DistinctCounts, DistinctCounts]
    kept = Kept(())
    rows = [(0, 5, "a"), (1, 5, "a"), (1, 6, None), (2, None, "b")]
    change = groups.stage(kept.codes(rows), np.ones(4, np.int64))
    assert follow({}, change, 0) == {(): (2, 4, 2, 2, 2)}


def test_values_that_went_are_forgotten() -> None:
    """In a window that slides memory follows what is there."""
    kept = Kept()
    groups = kept.groups("distinct v")
    accumulator = groups.parts[0]
    assert isinstance(accumulator, DistinctCounts)
    sizes = []
    for number in range(0, 40_000, 1_000):
        came, went = np.arange(number, number + 1_000), np.arange(number - 1_000, number)
        values = np.concatenate([came, went]) if number else came
        weights = np.repeat((1, -1), (len(came), len(values) - len(came)))
        groups.stage([np.zeros(len(values), np.int64), values], weights)
        groups.keep()
        groups.check_invariants()
        sizes.append(accumulator.nbytes)
    assert max(sizes) == max(sizes[:8]) and accumulator._n_values <= 2_000


def test_groups_that_went_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintenance.groups.grouped._LEAST_TIDIED", 4)
    kept = Kept()
    _, groups = kept.joined(["count", "distinct v", "distinct s"])
    rows = [(key, key % 3, "ab"[key % 2]) for key in range(40)]
    codes, ones = kept.codes(rows), np.ones(40, np.int64)
    groups.stage(codes, ones)
    groups.keep()
    groups.stage({name: column[:30] for name, column in codes.items()}, -ones[:30])
    groups.keep()
    groups.tidy()
    groups.check_invariants()
    assert groups._table.n_rows == 10
    change = groups.stage(kept.codes([(35, 7, "a"), (2, 7, "a")]), ones[:2])
    assert follow({(35,): (1, 1, 1)}, change, 1) == {(35,): (2, 2, 2), (2,): (1, 1, 1)}


def test_strings_keep_their_codes() -> None:
    """Values that no relation has stay as long as they are counted."""
    kept = Kept()
    groups, collector = kept.groups("distinct s"), kept.types["s"].domain.collector
    assert collector is not None
    codes = kept.codes([(0, 0, "here"), (0, 0, "gone")])
    groups.stage([codes["k"], codes["s"]], np.ones(2, np.int64))
    groups.keep()
    groups.stage([codes["k"][1:], codes["s"][1:]], -np.ones(1, np.int64))
    groups.keep()
    accumulator = groups.parts[0]
    assert isinstance(accumulator, DistinctCounts)
    ((_, ((_, held),)),) = accumulator.held()
    assert held.tolist() == codes["s"][:1].tolist()


def test_room_is_made_for_values_amid_a_step() -> None:
    kept = Kept()
    groups = kept.groups("distinct v")
    values = np.arange(5 * distinct_counts._LEAST_TIDIED)
    columns, _ = groups.stage([np.zeros(len(values), np.int64), values], np.ones(len(values), np.int64))
    assert columns[1].tolist() == [len(values)]
    groups.drop()
    groups.check_invariants()
    columns, _ = groups.stage([np.zeros(2, np.int64), values[:2]], np.ones(2, np.int64))
    assert columns[1].tolist() == [2]
