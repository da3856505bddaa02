"""differential: the commit machine enters values into dictionaries that other threads enter values into."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

import numba
import pyarrow as pa
import pytest

from lftj.process import debug
from maintenance import Workspace
from maintenance.machine import machine

COMMITS = 10 if numba.config.DISABLE_JIT else 300
AT_ONCE = 40
"""Sales."""
RULES = """
due[shop] = sum(v) <- sale(shop: shop, price: price, rate: rate), v = price * rate.
priced(v) <- sale(price: price, rate: rate), v = price + rate.
"""
TYPES = {"id": pa.int64(), "shop": pa.string(), "price": pa.decimal128(15, 2), "rate": pa.decimal128(15, 2)}

Sale = tuple[int, str, Decimal, Decimal]


def sale(number: int) -> Sale:
    return number, f"shop {number % 97} {number // 300}", Decimal(number) / 100, Decimal(number % 7) / 100


def sales(number: int) -> list[Sale]:
    return [sale(one) for one in range(AT_ONCE * number, AT_ONCE * (number + 1))]


@pytest.fixture(autouse=True)
def _by_turns() -> Iterator[None]:
    """Threads take turns as soon as they may."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.in_turns
@pytest.mark.parametrize("keeps", [True, False], ids=["values stay", "values go"])
def test_values_that_several_threads_enter(keeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries compute decimals, other transactions bring texts and decimals; dictionaries grow in each."""
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(debug, "enabled", False)  # or most of the time nothing is entered
    ws = Workspace(single_changes="machine")
    ws.load("sale", pa.table({name: pa.array([], type_) for name, type_ in TYPES.items()}))
    ws.load(
        "other", pa.table({"text": pa.array([], pa.string()), "number": pa.array([], pa.decimal128(15, 2))})
    )
    ws.install(RULES, "delta")
    done, problems, asked = threading.Event(), [], []

    def beside(work: int) -> None:
        number = 0
        try:
            while not done.is_set():
                number += 1
                value = Decimal(10**6 * work + number)
                if work == 1:
                    rate = Decimal(number) / 1000
                    found = ws.query(f"q(p, v) <- sale(price: p), v = p * {rate}.").to_pylist()
                    asked.append(all(row["v"] == row["p"] * rate for row in found))
                    continue
                rows = [(f"other {number} {i}", value + i) for i in range(100)]
                with ws.transaction() as transaction:
                    transaction.insert("other", rows)
                    transaction.erase("other", [] if keeps else rows[1:])
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=beside, args=(work,)) for work in (1, 2)]
    for thread in threads:
        thread.start()
    fast = 0
    try:
        for number in range(COMMITS):
            with ws.transaction() as transaction:
                transaction.insert("sale", sales(number))
                if not keeps and number >= 5:
                    transaction.erase("sale", sales(number - 5))
            fast += transaction.stats.fast
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert problems == []
    assert all(asked)
    there = [one for number in range(0 if keeps else COMMITS - 5, COMMITS) for one in sales(number)]
    due: dict[str, Decimal] = defaultdict(Decimal)
    for _, shop, price, rate in there:
        due[shop] += price * rate
    assert dict(zip(*ws["due"].table.to_pydict().values(), strict=True)) == due
    assert set(ws["priced"].table["v"].to_pylist()) == {price + rate for _, _, price, rate in there}
    assert set(ws["sale"]) == set(there)
    assert fast > 0
    ws.verify()
