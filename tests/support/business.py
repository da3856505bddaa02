"""Random transactions of a business: TPC-H's customers, orders and line items come, change and go."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from bench.tpch import KEYS, Changes, Row


class Business:
    """The rows of the three large relations, and random transactions on them.

    Invariant: ``rows[relation]`` has each key that is in the relation, with its row.
    """

    def __init__(self, loaded: Mapping[str, pa.Table], seed: int, first: Iterable[Row] = ()) -> None:
        """``first``: keys of line items that the first transaction erases besides random ones."""
        self._first = list(first)
        self.rows: dict[str, dict[Row, Row]] = {}
        for name in ("lineitem", "orders", "customer"):
            columns = [column.to_pylist() for column in loaded[name].columns]
            self.rows[name] = {row[: KEYS[name]]: row for row in zip(*columns, strict=True)}
        self._gone: dict[str, list[Row]] = {name: [] for name in self.rows}
        self._items: dict[Any, list[Row]] = {}
        for key in self.rows["lineitem"]:
            self._items.setdefault(key[0], []).append(key)
        self._draw = np.random.default_rng(seed)

    def transactions(self, sizes: list[int]) -> Iterator[Changes]:
        """One transaction of about each size: of one kind each in turn, the last kind all at once."""
        kinds = (self._erase_items, self._change_items, self._return_items, self._sell, self._cancel)
        for number, size in enumerate(sizes):
            changes: Changes = {}
            chosen = kinds if number % 6 == 5 else kinds[number % 6 : number % 6 + 1]
            for kind in chosen:
                for name, rows in kind(max(1, size // len(chosen)), changes):
                    erased, inserted = changes.setdefault(name, ([], []))
                    erased += rows[0]
                    inserted += rows[1]
            for name, (erased, inserted) in changes.items():
                for row in erased:
                    del self.rows[name][row[: KEYS[name]]]
                self.rows[name].update((row[: KEYS[name]], row) for row in inserted)
            yield changes

    def _present(self, name: str, count: int, changes: Changes) -> list[Row]:
        """Random rows that are there and that this transaction leaves alone so far."""
        touched = {row[: KEYS[name]] for row in changes.get(name, ((), ()))[0]}
        keys = [key for key in self.rows[name] if key not in touched]
        places = self._draw.choice(len(keys), min(count, len(keys)), replace=False)
        return [self.rows[name][keys[place]] for place in places]

    def _erase_items(self, count: int, changes: Changes) -> Iterator[tuple[str, tuple[list[Row], list[Row]]]]:
        erased = [self.rows["lineitem"][key] for key in self._first]
        self._first = []
        erased += self._present("lineitem", count, {**changes, "lineitem": (erased, [])})
        self._gone["lineitem"] += erased
        yield "lineitem", (erased, [])

    def _change_items(
        self, count: int, changes: Changes
    ) -> Iterator[tuple[str, tuple[list[Row], list[Row]]]]:
        erased = self._present("lineitem", count, changes)
        yield "lineitem", (erased, [self._changed(row) for row in erased])

    def _return_items(
        self, count: int, changes: Changes
    ) -> Iterator[tuple[str, tuple[list[Row], list[Row]]]]:
        """Line items that were erased come back, half of them with other prices and dates."""
        gone = self._gone["lineitem"]
        erased_now = {row[:2] for row in changes.get("lineitem", ((), ()))[0]}
        back: list[Row] = []
        kept: list[Row] = []
        for row in gone:
            (kept if len(back) >= count or row[:2] in erased_now else back).append(row)
        self._gone["lineitem"] = kept
        inserted = [row if number % 2 else self._changed(row) for number, row in enumerate(back)]
        yield "lineitem", ([], inserted)

    def _sell(self, count: int, changes: Changes) -> Iterator[tuple[str, tuple[list[Row], list[Row]]]]:
        """Orders of four new items; every other one is by a new customer."""
        customers: list[Row] = []
        orders: list[Row] = []
        items: list[Row] = []
        models = self._present("lineitem", count, changes)
        known = list(self.rows["customer"].values())
        for first in range(0, len(models), 4):
            order = self._fresh("orders", len(orders))
            customer = known[int(self._draw.integers(len(known)))]
            if first % 8 == 0:
                customer = (self._fresh("customer", len(customers)), *customer[1:])
                customers.append(customer)
            model = self.rows["orders"].get(models[first][:1]) or next(iter(self.rows["orders"].values()))
            orders.append((order, customer[0], self._moved(model[2]), *model[3:]))
            for number, row in enumerate(models[first : first + 4]):
                items.append((order, number + 1, *self._changed(row)[2:]))
        yield "customer", ([], customers)
        yield "orders", ([], orders)
        yield "lineitem", ([], items)

    def _cancel(self, count: int, changes: Changes) -> Iterator[tuple[str, tuple[list[Row], list[Row]]]]:
        """Orders go, their items stay for now; customers change their segment."""
        yield "orders", (self._present("orders", max(1, count // 2), changes), [])
        segments = ("BUILDING", "MACHINERY")
        erased = self._present("customer", max(1, count // 4), changes)
        inserted = [(*row[:2], segments[row[2] == segments[0]]) for row in erased]
        yield "customer", (erased, inserted)

    def _fresh(self, name: str, taken: int) -> int:
        return max(key[0] for key in self.rows[name]) + 1 + taken

    def _changed(self, row: Row) -> Row:
        """A line item with another price, discount, quantity, dates and ship mode."""
        price = row[4] + Decimal(int(self._draw.integers(-500, 100_000))).scaleb(-2)
        discount = Decimal(int(self._draw.integers(0, 11))).scaleb(-2)
        quantity = Decimal(int(self._draw.integers(1, 51)))
        mode = ("MAIL", "SHIP", "TRUCK")[int(self._draw.integers(3))]
        dates = (self._moved(day) for day in row[9:12])
        return (*row[:3], quantity, price, discount, *row[6:9], *dates, mode, *row[13:])

    def _moved(self, day: datetime.date) -> datetime.date:
        return day + datetime.timedelta(days=int(self._draw.integers(-60, 61)))
