"""laws: what holds of shares, grids and placing whatever the rule and the data; and named cases of cells.

Shares are compared with all vectors of shares, grids with the assignments that they have to tell apart.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
import spark_bridge.placing.shares
from lftj import errors
from lftj.values.domains import Domains
from spark_bridge.cells.cell_search import BATCH_ROWS, CellSearch
from spark_bridge.placing.grids import HeadGrids, given_grids
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.shares import Read, choose_shares, load, undominated
from spark_bridge.placing.value_hash import hashes_of, parts, row_hashes
from support.cell_pipeline import (
    ChooseGrids,
    exchanged,
    placed,
    planned_grids,
    program_text,
    random_grids,
    run,
)
from support.rows import rows_of
from support.sets import load_set

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

# -- shares -------------------------------------------------------------------

AXES = "abcd"


@st.composite
def reads(draw: st.DrawFn) -> list[Read]:
    """Atoms of up to three of four variables, over three relations of any sizes."""
    rows = {name: draw(st.sampled_from((0, 1, 7, 100, 100_000))) for name in "efg"}
    found = []
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from("efg"))
        axes = draw(st.lists(st.sampled_from(AXES), max_size=3, unique=True))
        found.append(Read(name, rows[name], tuple(enumerate(axes))))
    return found


def vectors(names: list[str], cells: int) -> list[dict[str, int]]:
    """All shares of these axes whose product is at most ``cells``."""
    all_ = itertools.product(range(1, cells + 1), repeat=len(names))
    return [dict(zip(names, vector, strict=True)) for vector in all_ if math.prod(vector) <= cells]


def used(shares: dict[str, int]) -> int:
    return math.prod(shares.values())


@given(reads=reads(), cells=st.integers(1, 14))
def test_shares_are_the_best_of_all(reads: list[Read], cells: int) -> None:
    """Least load among those that use more than half of the cells, also over dominated axes; of equal
    loads the one that sends least."""
    occurring = [name for name in AXES if any(name == axis for read in reads for _, axis in read.axes)]
    chosen = choose_shares(reads, AXES, cells)
    assert set(chosen) <= set(occurring) and all(share > 1 for share in chosen.values())
    assert used(chosen) <= cells
    assert not occurring or 2 * used(chosen) > cells
    useful = undominated(reads, AXES)
    possible = [vector for vector in vectors(useful, cells) if not useful or 2 * used(vector) > cells]
    assert load(reads, chosen) == pytest.approx(min(load(reads, vector) for vector in possible))
    # Where nothing is read from, nothing is sent, however many cells there are.
    of_least = [used(v) for v in possible if load(reads, v) <= load(reads, chosen) * (1 + 1e-9)]
    assert load(reads, chosen) == 0 or used(chosen) == min(of_least)


@given(reads=reads(), cells=st.integers(1, 40))
def test_the_beam_keeps_the_promises_of_the_exact_search(reads: list[Read], cells: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_bridge.placing.shares, "EXACT", -1)
        beam = choose_shares(reads, AXES, cells)
    exact = choose_shares(reads, AXES, cells)
    assert used(beam) <= cells
    assert not undominated(reads, AXES) or 2 * used(beam) > cells
    assert load(reads, exact) * (1 - 1e-9) <= load(reads, beam) <= load(reads, exact) * 1.5 + 1e-9


@given(reads=reads())
def test_dominated_variables(reads: list[Read]) -> None:
    """Every axis that is left out stands only beside one that is kept; none of those beside another."""
    kept = undominated(reads, AXES)
    occurs = {
        name: {n for n, read in enumerate(reads) if name in dict(map(reversed, read.axes))} for name in AXES
    }  # type: ignore[arg-type]
    for name in AXES:
        if name in kept:
            assert occurs[name]
            assert not any(occurs[name] <= occurs[other] for other in kept if other != name)
        else:
            assert not occurs[name] or any(occurs[name] <= occurs[other] for other in kept)


# -- hashes -------------------------------------------------------------------


@given(values=st.lists(st.integers(-128, 127)), share=st.integers(1, 9))
def test_parts_of_equal_values_are_equal(values: list[int], share: int) -> None:
    """Whatever type they stand in, whichever dictionary they are in."""
    wide, narrow = (hashes_of(pa.array(values, t), Domains()) for t in (pa.int64(), pa.int8()))
    assert wide.tolist() == narrow.tolist()
    texts = [str(value) for value in values]
    shuffled = Domains()
    hashes_of(pa.array(sorted({*texts, "x"}, reverse=True), pa.string()), shuffled)
    text_hashes = hashes_of(pa.array(texts, pa.string()), Domains())
    assert text_hashes.tolist() == hashes_of(pa.array(texts, pa.large_string()), shuffled).tolist()
    for hashes in (wide, text_hashes):
        found = parts(hashes, "a", share)
        assert all(0 <= part < share for part in found.tolist())


def test_parts_are_even_and_axes_independent() -> None:
    hashes = hashes_of(pa.array(range(30_000)), Domains())
    pairs = parts(hashes, "a", 3) * 4 + parts(hashes, "b", 4)
    assert np.bincount(pairs, minlength=12).min() > 2_300
    assert parts(hashes, "a", 1).max() == 0


def test_hashes_of_rows_tell_orders_of_values_and_equal_values_apart() -> None:
    values = hashes_of(pa.array(range(150)), Domains())
    hashes = row_hashes([np.repeat(values, 150), np.tile(values, 150)])
    assert len(np.unique(hashes)) == 150 * 150
    assert np.bincount(parts(hashes, "a", 9)).min() > 2_300


# -- grids --------------------------------------------------------------------

RULES = (
    "h(a, b, c) <- e(a, b), f(b, c), g(a, c).",
    "h(a, b, c, d) <- e(a, b), f(b, c), g(c, d).",
    "h(a, b, c) <- e(a, b), (f(b, c) ; g(b, c)).",
    "h(a, b) <- e(a, b), !f(b, a), g(a, a).",
)
CELLS = st.integers(0, 4)
DATA = st.fixed_dictionaries({name: st.lists(st.tuples(CELLS, CELLS), max_size=12) for name in "efg"})


def tables_of(data: dict[str, list[tuple[int, int]]]) -> dict[str, pa.Table]:
    return {
        name: pa.table({f"c{n}": pa.array([row[n] for row in rows], pa.int64()) for n in range(2)})
        for name, rows in data.items()
    }


@given(
    rule=st.sampled_from(RULES),
    data=DATA,
    partitions=st.integers(1, 7),
    random=st.randoms(use_true_random=False),
    choose=st.sampled_from((random_grids, planned_grids)),
)
def test_every_assignment_is_in_one_cell(
    rule: str,
    data: dict[str, list[tuple[int, int]]],
    partitions: int,
    random: Random,
    choose: ChooseGrids,
) -> None:
    """Also where partitions hold one cell each: what cells find adds up to what there is."""
    tables = tables_of(data)
    program = program_text(rule, tables)
    (plan,) = program.plans()
    read = {name: tables[name] for name in plan.reads}
    grids = choose(program, 0, read, partitions, random)
    apart = HeadGrids(grids.n_cells, grids.grids, grids.heavy, grids.rows)
    search = CellSearch(program, 0, {name: table.schema for name, table in read.items()}, apart.partitions)
    found: Counter[Any] = Counter()
    for packets in exchanged(placed(program, 0, read, apart, random), apart.partitions, random):
        found.update(row for batch in search.rows(iter(packets)) for row in rows_of(batch))
    assert found == Counter(in_memory(rule, tables))


@given(data=DATA, random=st.randoms(use_true_random=False), data_=st.data())
def test_shares_never_change_the_result(
    data: dict[str, list[tuple[int, int]]], random: Random, data_: st.DataObject
) -> None:
    shares = {axis: data_.draw(st.integers(1, 3)) for axis in "abc"}
    rule = "n[a] = count() <- e(a, b), f(b, c), g(a, c), e(_, c)."

    def given_shares(program: ProgramText, number: int, *_: Any) -> HeadGrids:
        return given_grids(program.plans()[number], shares, 3)

    tables = tables_of(data)
    assert sorted(rows_of(run(rule, tables, 3, random, given_shares))) == in_memory(rule, tables)


def in_memory(rule: str, tables: dict[str, pa.Table], head: str | None = None) -> list[tuple[Any, ...]]:
    database = lftj.Database()
    for name, table in tables.items():
        load_set(database, name, table)
    return sorted(rows_of(database.query(rule, head=head, threads=1)))


# -- skew ---------------------------------------------------------------------


def rows_by_partition(rule: str, tables: dict[str, pa.Table], partitions: int, heavy: bool) -> list[int]:
    """Rows that each partition gets, those of all its cells counted."""
    program = program_text(rule, tables)

    def light(program: ProgramText, number: int, *arguments: Any) -> HeadGrids:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("spark_bridge.placing.grids.HEAVY_LOAD", math.inf)
            return planned_grids(program, number, *arguments)

    grids = (planned_grids if heavy else light)(program, 0, tables, partitions, Random(1))
    packets = placed(program, 0, tables, grids, Random(2))
    counts = []
    for mine in exchanged(packets, partitions, Random(3)):
        rows = [
            pa.ipc.read_record_batch(data, two_columns())
            for b in mine
            for data in b.column("rows").to_pylist()
        ]
        counts.append(sum(batch.num_rows for batch in rows))
    return counts


def two_columns() -> pa.Schema:
    return pa.schema([("k", pa.int64()), ("v", pa.int64())])


def test_a_heavy_value_is_split() -> None:
    """60% of the rows of both relations have one key: cut by the key alone, one of eight partitions would
    get more than 60% of all; so no partition gets more than 30% of what is sent."""
    n = 4000
    keys = [0 if i % 5 < 3 else i for i in range(n)]
    tables = {name: pa.table({"k": keys, "v": list(range(n))}, two_columns()) for name in "ef"}
    rule = "h(k, v, w) <- e(k, v), f(k, w)."
    alone = rows_by_partition(rule, tables, 8, heavy=False)
    assert max(alone) > 0.6 * sum(alone)
    split = rows_by_partition(rule, tables, 8, heavy=True)
    assert max(split) <= 0.3 * sum(split)
    assert max(split) <= 0.6 * max(alone)


# -- named cases --------------------------------------------------------------

INT8, INT64 = pa.int8(), pa.int64()
NUMBERS = {
    "small": pa.table({"x": pa.array([1, 2, 3], INT8), "y": pa.array([3, 3, 4], INT8)}),
    "large": pa.table({"x": pa.array([1, 2**40], INT64), "y": pa.array([3, 3], INT64)}),
}

UNIONS = {
    "columns of several widths": "h(x) <- small(x, _). h(x) <- large(x, _).",
    "widths of alternatives": "h(x, y) <- small(y, _), (small(x, y) ; large(x, y)).",
    "widths of alternatives, counted": "h[x] = count() <- small(y, _), (small(x, y) ; large(x, y)).",
    "widths of alternatives, extremes": "h[y] = max(x) <- small(y, _), (small(x, y) ; large(x, y)).",
    "widths of extremes": "h[y] = min(x) <- small(x, y). h[y] = min(x) <- large(x, y), y > 3.",
    "set and aggregate": (
        "h(y, count()) <- small(_, y). h(y, x) <- small(x, y). h(x, y) <- small(y, x), large(y, _)."
    ),
    "aggregates at other places": "h(x, count()) <- small(x, _). h(count(), x) <- small(x, _), large(x, _).",
    "groups of other keys": "h(x, x, count()) <- small(x, _). h(x, y, count()) <- small(x, y), large(x, _).",
    "nothing but aggregates": "h(count(), max(x)) <- small(x, _). h(max(y), count()) <- small(_, y).",
    "one group": "h[] = count() <- small(x, y), (small(y, _) ; large(_, y)).",
    "functional": "h[x] = y <- small(x, y). h[x] = y <- large(x, y).",
}


@pytest.mark.parametrize("name", UNIONS)
def test_unions_of_rules(name: str) -> None:
    """A row that two rules give comes out once, in the type that holds the values of both."""
    expected = in_memory(UNIONS[name], NUMBERS)
    assert expected
    for seed in range(8):
        assert sorted(rows_of(run(UNIONS[name], NUMBERS, 3, Random(seed), random_grids))) == expected


def test_decimals_of_several_scales_meet() -> None:
    tables = {
        "r": pa.table({"x": pa.array(["1.5", "184467440737095516.15"]).cast(pa.decimal128(38, 2))}),
        "s": pa.table({"x": pa.array(["1.50", "7.25"]).cast(pa.decimal128(30, 11))}),
    }
    for rule in ("h(x) <- r(x). h(x) <- s(x).", "h(x) <- r(x), s(x).", "h(min(x)) <- r(x). h(x) <- s(x)."):
        expected = in_memory(rule, tables)
        for seed in range(4):
            assert sorted(rows_of(run(rule, tables, 3, Random(seed), random_grids))) == expected


CONFLICTS = {
    "read": "h(a, v) <- small(a, _), f[a] = v.",
    "read under a constant": "h(v) <- small(a, _), f[2] = v.",
    "read, the value an axis elsewhere": "h(a, v) <- f[a] = v, small(v, b), small(b, a).",
    "read in an alternative": "h(a) <- small(a, b), (f[a] = b ; large(b, a)).",
    "read, of keys of a wildcard": "h(v) <- f[_] = v, small(v, _).",
    "head": "h[a] = v <- f(a, v), small(b, v).",
    "head by two rules": "h[a] = v <- f(a, v), v < 4. h[a] = v <- f(a, v), v > 3.",
    "head by an aggregate": "h[a] = v <- f(a, v), v < 4. h[a] = max(v) <- f(a, v).",
    "head without keys": "h[] = v <- f(a, v).",
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts_are_found_whichever_way_tuples_go(name: str) -> None:
    tables = NUMBERS | {"f": pa.table({"k": [1, 2, 2, 3], "v": [3, 3, 4, 3]})}
    with pytest.raises(errors.FunctionalConflictError):
        in_memory(CONFLICTS[name], tables)
    for seed in range(8):
        with pytest.raises(errors.FunctionalConflictError):
            run(CONFLICTS[name], tables, 3, Random(seed), random_grids)


@pytest.mark.parametrize(
    "rule",
    [
        "h(a) <- r[a] = x, s(x).",
        "h(a) <- r(a, x), !s(x).",
        "h(x) <- r(_, x), r(_, x).",
        "h[x] = count() <- r[_] = x.",
        "h(max(x)) <- r(_, x).",
    ],
)
@pytest.mark.parametrize("others", [[], [1.0]])
def test_nan_keys_are_refused_as_in_memory(rule: str, others: list[float]) -> None:
    """Also where nothing else comes to the cell of the NaN."""
    tables = {
        "r": pa.table({"a": [1, 2], "x": [1.0, math.nan]}),
        "s": pa.table({"x": pa.array(others, pa.float64())}),
    }
    with pytest.raises(errors.NanError):
        in_memory(rule, tables)
    for seed in range(8):
        with pytest.raises(errors.NanError):
            run(rule, tables, 3, Random(seed), random_grids)


NAN_VALUES = (
    "h(a, x) <- r[a] = x.",
    "h[a] = x <- r[a] = x.",
    "h(x) <- r[_] = x. h(x) <- s(x).",
    "h(a, count()) <- r(a, _).",
    "h(sum(x), max(x), avg(x), count()) <- r[a] = x.",
    "h[a] = min(x) <- r[a] = x, s(a).",
    "h[] = max(x) <- r[a] = x, (s(a) ; a > 1).",
)


@pytest.mark.parametrize("rule", NAN_VALUES)
def test_nan_and_both_zeros_as_values(rule: str) -> None:
    """What is no key may be NaN, also where an aggregate looks at it; the zeros are one value everywhere."""
    kind = pa.int64() if "s(a)" in rule else pa.float64()
    tables = {
        "r": pa.table({"a": [1, 1, 2, 3, 4], "x": [0.0, -0.0, math.nan, 1.0, math.nan]}),
        "s": pa.table({"v": pa.array([0, 1, 2]).cast(kind)}),
    }
    expected = sorted(map(repr, in_memory(rule, tables)))
    for seed in range(6):
        assert sorted(map(repr, rows_of(run(rule, tables, 3, Random(seed), random_grids)))) == expected


def test_nulls() -> None:
    tables = {"r": pa.table({"a": [1, None, 2], "b": [2, 2, None]}), "s": pa.table({"b": [2, None]})}
    rule = "h(a, b) <- r(a, b), s(b)."
    for seed in range(4):
        found = run(rule, tables, 3, Random(seed), planned_grids, nulls="drop")
        assert rows_of(found) == [(1, 2)]
        with pytest.raises(
            errors.NullError,
            match=r"^relation '[rs]', column '[ab]': NULL, .* nulls=\"drop\" .* nulls=\"keep\"",
        ):
            run(rule, tables, 3, Random(seed), random_grids)


def nullable(random: Random, n_rows: int, columns: str, values: tuple[Any, ...] = (0, 1, 2, 3)) -> pa.Table:
    """Rows of few values, each once; a quarter of the values are NULL."""
    rows = {tuple(random.choice((None, *values)) for _ in columns): None for _ in range(n_rows)}
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(columns)})


@pytest.mark.in_turns
@pytest.mark.parametrize(
    "rule",
    [
        "h(a, s: sum(c), n: count(if c > 2), m: max(c if c > 9), d: count(distinct b)) <- r(a, b, c).",
        "h(a, m: median(c), v: variance(c), x: any_value(b)) <- r(a, b, c).",
        "h[a, b] = sum(b) <- r(a, b, _).",
        "h[a] = sum(b), h2(a, c) <- r(a, b, c).",
        "h2[a] = sum(b), h(a, c) <- (r(a, b, c) ; r(b, a, c)).",
        "h(a, w) <- r(a, b, _), s(b, w). h(a, w) <- r(a, b, _), !s(<=> b, _), w = null.",
        "h(a, k, w) <- r(a, b, _), (s(b, _), t(k), w = null ; !s(<=> b, _), k = null, w = null)."
        " h(a, k, w) <- r(a, _, _), s(a, w), t(k).",
        "g(a, w) <- r(a, b, _), w = if(b > 2, b). h(w, n: count()) <- g(a, w), r(<=> w, _, _).",
        "g(b, m: max(c if c > 2)) <- r(_, b, c). h(b, m) <- g(b, m), m is null.",
        "h(s: sum(c), m: min(c), n: count()) <- r(_, _, c), c > 100.",
    ],
)
def test_nulls_that_are_kept(rule: str) -> None:
    """As the engine in memory has them; random rules are in ``test_cells_oracle.py``."""
    random = Random(len(rule))
    tables = {
        "r": nullable(random, 60, "abc"),
        "s": nullable(random, 6, "aw"),
        "t": nullable(random, 4, "k", ("x", "y")),
    }
    database = lftj.Database()
    for name, table in tables.items():
        database.load(name, table, nulls="keep")
    expected = sorted(map(repr, rows_of(database.query(rule, head="h"))))
    for seed in range(4):
        for grids in (random_grids, planned_grids):
            found = run(rule, tables, 3, Random(seed), grids, "h", "keep")
            assert sorted(map(repr, rows_of(found))) == expected


def test_null_has_one_hash_whatever_the_type() -> None:
    columns = [pa.array([None, "1"]), pa.array([None, 1]), pa.array([None, 1.5]), pa.array([None, b"1"])]
    hashes = [hashes_of(column, Domains()) for column in columns]
    assert len({int(one[0]) for one in hashes}) == 1
    assert all(one[0] != one[1] for one in hashes)


@pytest.mark.parametrize("rule", ["h(a, b) <- r(a), s(b).", "h(b) <- r(a), s(b). h(a) <- r(a), s(b)."])
def test_batches_are_bounded(rule: str) -> None:
    tables = {name: pa.table({"a": list(range(500 * n, 500 * n + 500))}) for n, name in enumerate("rs")}
    program = program_text(rule, tables)
    (plan,) = program.plans()
    grids = given_grids(plan, {}, 1)
    search = CellSearch(program, 0, {name: table.schema for name, table in tables.items()}, 1)
    packets = placed(program, 0, tables, grids, Random(0))
    if not plan.crosses:
        sizes = [batch.num_rows for batch in search.rows(iter(packets))]
        assert max(sizes) <= BATCH_ROWS and sum(sizes) == 250_000


def test_overflow_is_refused_after_all_cells_only() -> None:
    """Partial sums may leave the type, the sum must not."""
    large = 2**62
    tables = {"r": pa.table({"a": [0, 1, 2, 3, 4, 5], "x": [large, large, large, -large, -large, -large]})}
    rule = "h[] = sum(x) <- r(a, x)."
    beyond = "h[] = sum(x) <- r(a, x), a < 2."
    for seed in range(6):
        assert rows_of(run(rule, tables, 3, Random(seed), random_grids)) == [(0,)]
        with pytest.raises(errors.RangeError, match="which does not fit int64"):
            run(beyond, tables, 3, Random(seed), random_grids)
