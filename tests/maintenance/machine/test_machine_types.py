"""differential: values of other types than int64, by the commit machine and the general way, in folders."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.durable.entries import Changed
from maintenance.durable.reading import read_existing
from maintenance.machine import machine
from support.machine_workspace import of, opened
from support.rows import rows_of
from support.small_limits import wide_relations

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

DAY, MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 23, 59, 59)
VALUES: dict[Any, tuple[Any, ...]] = {
    pa.int8(): (-128, 0, 127, 5),
    pa.uint8(): (0, 255, 7),
    pa.int16(): (-(2**15), 2**15 - 1, 3),
    pa.uint16(): (0, 2**16 - 1, 3),
    pa.int32(): (-(2**31), 2**31 - 1, 3),
    pa.uint32(): (0, 2**32 - 1, 3),
    pa.int64(): (-(2**63) + 1, 2**63 - 1, 3),
    pa.bool_(): (True, False),
    pa.date32(): (DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)),
    pa.timestamp("s"): (MOMENT, dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59)),
    pa.timestamp("ms"): (MOMENT, MOMENT.replace(microsecond=999_000), dt.datetime(1969, 12, 31, 1)),
    pa.timestamp("us"): (MOMENT, MOMENT.replace(microsecond=1), dt.datetime(9999, 12, 31, 1, 2, 3, 4)),
    pa.float64(): (0.0, -0.0, -1.5, 1e308, 5e-324, -5e-324, math.inf, -math.inf),
    pa.string(): (TEXTS := ("", "tea", "Tea", "té", "😀", "a\0b", "x" * 300)),
    pa.large_string(): TEXTS,
    pa.string_view(): TEXTS,
    pa.dictionary(pa.int8(), pa.string()): TEXTS,
    pa.binary(): (b"", b"tea", b"\xff\0", b"x" * 300),
    pa.large_binary(): (b"", b"tea", b"\xff\0"),
    pa.binary(2): (b"ab", b"\0\0", b"\xff\xfe"),
    pa.decimal128(5, 2): tuple(map(Decimal, ("0", "-0", "1.5", "1.50", "-999.99", "999.99", "1E+2", "7"))),
    pa.decimal128(38, 0): tuple(map(Decimal, (10**38 - 1, 1 - 10**38, 0, 5))),
    pa.decimal128(38, 38): tuple(map(Decimal, ("0.5", "1E-38", "-1E-38"))),
    pa.decimal256(76, 38): tuple(map(Decimal, ("9" * 38 + "." + "9" * 38, "-1E-38", "2"))),
    pa.decimal128(5, -2): tuple(map(Decimal, ("1E+2", "-7E+2", "9.9999E+6"))),
}
"""By type values that the machine takes."""

OTHERS = (
    *(
        True,
        1,
        300,
        -1,
        2**31,
        2**63,
        1.0,
        1.5,
        math.nan,
        "x",
        None,
        DAY,
        MOMENT,
        MOMENT.replace(microsecond=5),
    ),
    MOMENT.replace(tzinfo=dt.UTC),
    *("half a \ud800", b"x", b"abc", bytearray(b"ab"), Decimal("0.001"), Decimal("1.500"), Decimal(10) ** 40),
    *map(Decimal, ("NaN", "sNaN", "Infinity", "12345", "1E-39")),
)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


RULES = """
n[a] = count() <- e(a, _). some[k] = count() <- e(_, k). total[a] = sum(k) <- e(a, k).
twice(a, k, l) <- e(a, k), e(a, l), k < l. back(k, a) <- e(a, k).
"""


def in_order(entry: Changed) -> Any:
    return {name: sorted(rows_of(table), key=str) for name, table in entry.changes.items()}


JOINED = "same(a) <- e(a, _), e(a, 2). both(k) <- e(_, k), e(_, k)."
"""Of wide relations: what stands in one place of them is read off the rows, which goes the general way."""


def both_of(folder: Path, kind: Any, nulls: Any, is_wide: bool) -> list[Workspace]:
    both = [
        opened(folder / "one"),
        Workspace.open(folder / "other", durability="interval", single_changes="general"),
    ]
    for ws in both:
        ws.load("e", pa.table({"a": pa.array([], kind), "k": pa.array([], pa.int16())}), nulls=nulls)
        ws.install(JOINED if is_wide else RULES)
    its = of(both[0])
    its._wait, its.checks = 1, False  # the other one says what is right
    return both


def outcome(ws: Workspace, change: str, rows: list[tuple[Any, ...]]) -> Any:
    """What becomes of a transaction: changes of heads, or an error; and whether it went by the machine."""
    try:
        with ws.transaction() as tx:
            tx.insert("e", [])
            getattr(tx, change)("e", rows)
    except (errors.LftjError, TypeError, ValueError, ArithmeticError) as error:
        return f"{type(error).__name__}: {error}", 0
    return {head: rows_of(table) for head, table in tx.changes.items()}, tx.stats.fast


@pytest.fixture
def is_wide(request: pytest.FixtureRequest) -> Iterator[bool]:
    with wide_relations(request.param):
        yield request.param


@pytest.mark.in_turns
@pytest.mark.parametrize("is_wide", [False, True], ids=["narrow", "wide"], indirect=True)
@pytest.mark.parametrize("nulls", ["refuse", "keep"])
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_values_are_taken_as_the_general_way_takes_them(
    tmp_path: Path, kind: Any, nulls: Any, is_wide: bool
) -> None:
    both, draw, fast = both_of(tmp_path, kind, nulls, is_wide), Random(str(kind)), 0
    known, numbers = VALUES[kind], tuple(range(-3, 3))
    if nulls == "keep":
        known, numbers = (*known, None), (*numbers, None)
    for i in range(80):
        pool = known if i % 4 else OTHERS
        rows = [(draw.choice(pool), draw.choice(numbers)) for _ in range(draw.choice((1, 1, 3)))]
        change = draw.choice(("insert", "insert", "erase"))
        (one, by_machine), (other, _) = (outcome(ws, change, rows) for ws in both)
        if is_wide and isinstance(one, dict) and isinstance(other, dict):  # as entries, below
            one, other = ({head: sorted(its, key=str) for head, its in each.items()} for each in (one, other))
        assert one == other, (change, rows)
        assert by_machine or pool is OTHERS or i < 9, (change, rows)
        fast += by_machine
    assert fast > 50
    assert sorted(rows_of(both[0]["e"].table), key=str) == sorted(rows_of(both[1]["e"].table), key=str)
    for ws in both:
        ws.verify()
        ws.close()
    changes = [
        [entry for _, entry in read_existing(tmp_path / name).entries(0) if isinstance(entry, Changed)]
        for name in ("one", "other")
    ]
    if is_wide:  # by code, which a row has got that was refused along with another one
        changes = [[in_order(entry) for entry in each] for each in changes]
    assert changes[0] == changes[1] and len(changes[0]) > 20
    with Workspace.open(tmp_path / "one") as again:
        again.verify()


@pytest.mark.parametrize(
    "kind",
    [pa.uint64(), pa.float32(), pa.list_(pa.int8()), pa.date64(), pa.timestamp("us", "UTC"), pa.time64("us")],
)
def test_other_types_go_the_general_way(kind: Any) -> None:
    ws = Workspace(single_changes="machine")
    ws.load("e", pa.table({"a": pa.array([], kind), "k": pa.array([], pa.int64())}))
    ws.install("n[k] = count() <- e(_, k).")
    text = str(ws.explain_maintenance("n"))
    assert f"single changes go the general way: 'e', which it reads: its column 'a' is of type {kind}" in text


@pytest.mark.parametrize("value", ["0.001", "12345.5", "-0.0000", "1.500"])
def test_a_decimal_that_a_longer_column_has_is_as_refused_as_any(tmp_path: Path, value: str) -> None:
    """Columns of decimals have their values' codes in common."""
    both = both_of(tmp_path, pa.decimal128(5, 2), "refuse", is_wide=False)
    for ws in both:
        ws.load("longer", pa.table({"a": pa.array([], pa.decimal128(12, 4)), "k": pa.array([], pa.int16())}))
        ws.install("of_longer[a] = count() <- longer(a, _).")
        for _ in range(3):
            with ws.transaction() as tx:
                tx.insert("longer", [(Decimal(value), 1)])
    for known, by_machine in (("1.5", False), ("2.5", False), ("1.5", True), (value, False)):
        (one, fast), (other, _) = (outcome(ws, "insert", [(Decimal(known), 1)]) for ws in both)
        assert one == other and fast >= by_machine
