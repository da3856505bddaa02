"""differential: what the commit machine reads off wide rows and dictionaries, beside the general way and
sums of Python's own."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from decimal import Decimal
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from lftj import errors
from lftj.values import schema
from maintenance import Workspace
from maintenance.machine import dictionaries, machine
from support.machine_workspace import of
from support.rows import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

Row = tuple[Any, ...]

SALE = {
    "id": pa.int64(),
    "shop": pa.string(),
    "price": pa.decimal128(15, 2),
    "rate": pa.decimal64(4, 3),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "size": pa.int16(),
    "x": pa.float64(),
    "code": pa.binary(2),
    "paid": pa.bool_(),
    "note": pa.large_string(),
}
SHOP = {"shop": pa.string(), "town": pa.string()}
PLACES = {name: f"{name}: {name}" for name in SALE}

ONE = f"sale({', '.join(PLACES[name] for name in ('id', 'shop', 'price', 'rate', 'day', 'size'))})"
RULES = (
    f"x[shop] = sum(v) <- {ONE}, v = price * (1 - rate).",
    f"x[] = sum(price) <- {ONE}, day > 2024-01-03, size < 3.",
    "x[shop] = avg(price) <- sale(shop: shop, price: price).",
    "x(t, sum(p), count(), avg(r)) <- sale(shop: s, price: p, rate: r), shop(shop: s, town: t).",
    f"x(price, v) <- {ONE}, v = price + rate, v >= 1.005.",
    "x(n, c, b, z, t) <- sale(id: i, note: n, code: c, paid: b, x: z, at: t), z < 2.5, i > 1.",
    f'x(shop) <- {ONE}, price * size > 2 * rate, shop != "s1". y(n) <- x(s), shop(s, n).',
    "x(town, id, note) <- sale(id: id, shop: s, note: note, paid: true), shop(shop: s, town: town).",
    "x[day] = sum(v) <- sale(day: day, size: size, price: p), v = p * size - 0.5 * p, p != 1.00.",
    "x[size] = sum(v) <- sale(size: size, rate: r), v = abs(r - 0.500) * size.",
    "bag x(price) <- sale(price: price, size: size), size >= 0.",
)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


def sale(random: Random, number: int) -> Row:
    return (
        number,
        f"s{random.randrange(4)}",
        Decimal(random.choice((0, 1, -1, 999, 100, 10**15 - 1, random.randrange(10**6)))) / 100,
        Decimal(random.randrange(-10, 2000)) / 1000,
        dt.date(2024, 1, 1 + random.randrange(6)),
        dt.datetime(2024, 1, 1, random.randrange(24)),
        random.randrange(-3, 6),
        random.choice((0.0, -0.0, -1.5, 2.5, 1e300)),
        random.choice((b"ab", b"\0\0")),
        random.random() < 0.5,
        random.choice(("", "a", "long" * 40)),
    )


def table(columns: dict[str, pa.DataType], rows: list[Row]) -> pa.Table:
    arrays = zip(*rows, strict=True) if rows else [[]] * len(columns)
    made = [pa.array(list(of), type_) for of, type_ in zip(arrays, columns.values(), strict=True)]
    return pa.table(dict(zip(columns, made, strict=True)))


def both_of(rules: str, rows: list[Row], is_wide: bool = True, nulls: str = "refuse") -> list[Workspace]:
    both = [Workspace(single_changes=way) for way in ("machine", "general")]
    for ws in both:
        with mock.patch.object(schema, "MOST_NARROW", 0 if is_wide else 100):
            ws.load("sale", table(SALE, rows), nulls=nulls)
        ws.load("shop", table(SHOP, [("s0", "Rome"), ("s1", "Rome"), ("s2", "Bern")]))
        ws.install(rules, "delta")
    of(both[0])._wait, of(both[0]).checks = 1, True
    return both


def outcome(ws: Workspace, gone: list[Row], came: list[Row]) -> tuple[Any, int]:
    try:
        with ws.transaction() as tx:
            tx.erase("sale", gone)
            tx.insert("sale", came)
    except errors.LftjError as error:
        return str(error), 0
    return {name: sorted(rows_of(its), key=repr) for name, its in tx.changes.items()}, tx.stats.fast


@pytest.mark.in_turns
@pytest.mark.kernel
@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("rules", RULES)
def test_it_is_as_the_general_way(rules: str, is_wide: bool) -> None:
    random = Random(f"{rules}{is_wide}")
    there = [sale(random, number) for number in range(12)]
    both, n_fast = both_of(rules, there, is_wide), 0
    for number in range(12, 60):
        gone = random.sample(there, min(len(there), random.randrange(3)))
        came = [sale(random, number * 10 + i) for i in range(random.randrange(3))]
        (one, is_fast), (other, _) = (outcome(ws, gone, came) for ws in both)
        assert one == other
        n_fast += is_fast
        there = [row for row in there if row not in gone] + came
    assert n_fast > 30, "the general way did it: what is tested?"
    for ws in both:
        ws.verify()
    assert sorted(map(repr, both[0]["x"])) == sorted(map(repr, both[1]["x"]))


def test_sums_and_averages_are_those_of_python() -> None:
    rules = "x(shop, sum(v), avg(p)) <- sale(shop: shop, price: p, rate: r), v = p * (1 - r)."
    random = Random(5)
    there = [sale(random, number) for number in range(5)]
    ws, _ = both_of(rules, there)
    for number in range(5, 40):
        came = sale(random, number)
        gone = [there.pop(random.randrange(len(there)))] if number % 2 else []
        outcome(ws, gone, [came])
        there.append(came)
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in there:
        groups[row[1]].append(row)
    expected = {
        (
            shop,
            sum((row[2] * (1 - row[3]) for row in rows), Decimal(0)),
            float(sum(row[2] for row in rows) * 100) / (len(rows) * 100),
        )
        for shop, rows in groups.items()
    }
    assert Counter(ws["x"]) == Counter(expected)


@pytest.mark.parametrize("price", [Decimal(10**16) / 100 - 1, -Decimal(10**13)])
def test_numbers_that_do_not_fit_go_the_general_way(price: Decimal) -> None:
    random = Random(1)
    both = both_of("x[] = sum(v) <- sale(price: p), v = p * p * p.", [])
    for number in range(6):
        row = sale(random, number)
        row = (*row[:2], Decimal(number), *row[3:])
        (one, is_fast), (other, _) = (outcome(ws, [], [row]) for ws in both)
        assert one == other and (is_fast or number < 3)
    row = (*row[:2], min(price, Decimal("9999999999999.99")), *row[3:])
    (one, is_fast), (other, _) = (outcome(ws, [], [row]) for ws in both)
    assert one == other and not is_fast


def test_where_a_dictionary_has_no_room_the_general_way_makes_it() -> None:
    both = both_of("x(id, n) <- sale(id: id, note: n).", [])
    random, ways = Random(2), []
    for number in range(8):
        row = sale(random, number)
        row = (*row[:-1], "n" * (dictionaries.ENTERED_BYTES * number + 1))
        (one, is_fast), (other, _) = (outcome(ws, [], [row]) for ws in both)
        assert one == other
        ways.append(is_fast)
    both[0].verify()
    assert len(both[0]["x"]) == 8


def test_all_goes_by_the_machine_while_dictionaries_grow() -> None:
    random = Random(4)
    both = both_of("x(n, sum(p)) <- sale(note: n, price: p).", [sale(random, 0)])
    ways = []
    for number in range(1, 300):
        row = sale(random, number)
        (one, is_fast), (other, _) = (
            outcome(ws, [], [(*row[:2], Decimal(number), *row[3:-1], f"n{number}" * 9)]) for ws in both
        )
        assert one == other
        ways.append(is_fast)
    assert all(ways[2:])


@pytest.mark.in_turns
@pytest.mark.parametrize("is_wide", [True, False])
def test_batches_read_and_enter_too(is_wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than there is room for at first; and a head that is not stepped one by one enters texts."""
    monkeypatch.setattr(dictionaries, "ENTERED_VALUES", 2)
    rules = (
        "x(n, sum(v)) <- sale(note: n, price: p, rate: r), v = p * (1 - r). y(n, count()) <- sale(note: n)."
    )
    random = Random(7)
    both = both_of(rules, [sale(random, 0)], is_wide)
    for first in (1, 900):
        rows = [
            (number, f"s{number % 3}", Decimal(number), *sale(random, number)[3:-1], f"note {number}" * 3)
            for number in range(first, first + 800)
        ]
        changes = table(SALE, rows).append_column("txn", pa.array(range(800)))
        changes = changes.append_column("weight", pa.array([1] * 800))
        one, other = (ws.apply_many({"sale": changes}) for ws in both)
        assert one.stats.fast == 800 and not other.stats.fast
        for head in "xy":
            assert Counter(map(repr, both[0][head])) == Counter(map(repr, both[1][head]))
    both[0].verify()


def test_null_that_is_read_goes_the_general_way() -> None:
    both = both_of(
        "x(n, p, count(), z) <- sale(shop: s, note: n, price: p, size: z), shop(s, _).", [], nulls="keep"
    )
    random = Random(6)
    for number in range(12):
        row = sale(random, number)
        for place in {4: (2,), 6: (-1,), 8: (6,), 9: (2, -1)}.get(number, ()):
            values = list(row)
            values[place] = None
            row = tuple(values)
        (one, _), (other, _) = (outcome(ws, [], [row]) for ws in both)
        assert one == other
    assert sorted(map(repr, both[0]["x"])) == sorted(map(repr, both[1]["x"]))


def test_null_that_nobody_may_read_is_told_of() -> None:
    both = both_of("x[s] = sum(p) <- sale(shop: s, price: p), p is not null.", [], nulls="keep")
    random = Random(3)
    for number in range(9):
        row = sale(random, number)
        row = (*row[:2], None if number in (5, 6) else row[2], *row[3:])
        (one, _), (other, _) = (outcome(ws, [], [row]) for ws in both)
        assert one == other
    assert sorted(both[0]["x"]) == sorted(both[1]["x"])
