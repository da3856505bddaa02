"""Random transactions of a business: TPC-H's customers, orders and line items come, change and go."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from bench.tpch.tables import KEYS, Changes
from support.rows import rows_of

Row = tuple[Any, ...]
Part = tuple[str, list[Row], list[Row]]
"""Of a transaction: a relation, its rows erased, its rows inserted."""


class Business:
    """The rows of the three large relations, and random transactions on them.

    Invariant: ``rows[relation]`` has each key that is in the relation, with its row.
    """

    def __init__(self, loaded: Mapping[str, pa.Table], popular: list[Row], seed: int) -> None:
        """``popular``: parts and their suppliers, which every other changed or sold item is."""
        names = ("lineitem", "orders", "customer")
        self._schemas = {name: loaded[name].schema for name in names}
        self._place = {column: place for s in self._schemas.values() for place, column in enumerate(s.names)}
        self.rows = {name: {self._key(name, row): row for row in rows_of(loaded[name])} for name in names}
        self._popular = popular
        self._gone: list[Row] = []
        self._draw = np.random.default_rng(seed)

    def transactions(self, sizes: list[int]) -> Iterator[Changes]:
        """One transaction of about each size: of one kind each in turn, the last kind all at once."""
        kinds = (self._erase_items, self._change_items, self._return_items, self._sell, self._cancel)
        for number, size in enumerate(sizes):
            erased: dict[str, list[Row]] = {name: [] for name in self.rows}
            inserted: dict[str, list[Row]] = {name: [] for name in self.rows}
            for kind in kinds if number % 6 == 5 else kinds[number % 6 : number % 6 + 1]:
                for name, going, coming in kind(max(1, size // (5 if number % 6 == 5 else 1)), erased):
                    erased[name] += going
                    inserted[name] += coming
            for name, rows in self.rows.items():
                for row in erased[name]:
                    del rows[self._key(name, row)]
                rows.update((self._key(name, row), row) for row in inserted[name])
            yield {
                name: (self._table(name, erased[name]), self._table(name, inserted[name]))
                for name in self.rows
            }

    def _key(self, name: str, row: Row) -> Row:
        return tuple(row[self._place[column]] for column in KEYS[name])

    def _with(self, row: Row, **values: Any) -> Row:
        """The row with other values in some columns."""
        found = list(row)
        for column, value in values.items():
            found[self._place[column]] = value
        return tuple(found)

    def _table(self, name: str, rows: list[Row]) -> pa.Table:
        schema = self._schemas[name]
        columns = list(zip(*rows, strict=True)) or [() for _ in schema]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _present(self, name: str, count: int, erased: Mapping[str, list[Row]]) -> list[Row]:
        """Random rows that are there and that this transaction leaves alone so far."""
        touched = {self._key(name, row) for row in erased[name]}
        keys = [key for key in self.rows[name] if key not in touched]
        places = self._draw.choice(len(keys), min(count, len(keys)), replace=False)
        return [self.rows[name][keys[place]] for place in places]

    def _erase_items(self, count: int, erased: Mapping[str, list[Row]]) -> Iterator[Part]:
        going = self._present("lineitem", count, erased)
        self._gone += going
        yield "lineitem", going, []

    def _change_items(self, count: int, erased: Mapping[str, list[Row]]) -> Iterator[Part]:
        going = self._present("lineitem", count, erased)
        yield "lineitem", going, [self._changed(row) for row in going]

    def _return_items(self, count: int, erased: Mapping[str, list[Row]]) -> Iterator[Part]:
        """Line items that were erased come back, half of them with other prices and dates."""
        erased_now = {self._key("lineitem", row) for row in erased["lineitem"]}
        back: list[Row] = []
        kept: list[Row] = []
        for row in self._gone:
            (kept if len(back) >= count or self._key("lineitem", row) in erased_now else back).append(row)
        self._gone = kept
        yield "lineitem", [], [row if place % 2 else self._changed(row) for place, row in enumerate(back)]

    def _sell(self, count: int, erased: Mapping[str, list[Row]]) -> Iterator[Part]:
        """Orders of four new items; every other one is by a new customer."""
        customers: list[Row] = []
        orders: list[Row] = []
        items: list[Row] = []
        models = self._present("lineitem", count, erased)
        known = list(self.rows["customer"].values())
        for first in range(0, len(models), 4):
            order = self._fresh("orders", len(orders))
            customer = known[int(self._draw.integers(len(known)))]
            if first % 8 == 0:
                customer = self._with(customer, c_custkey=self._fresh("customer", len(customers)))
                customers.append(customer)
            model = self.rows["orders"].get(models[first][:1]) or next(iter(self.rows["orders"].values()))
            day = self._moved(model[self._place["o_orderdate"]])
            orders.append(self._with(model, o_orderkey=order, o_custkey=customer[0], o_orderdate=day))
            for number, row in enumerate(models[first : first + 4]):
                items.append(self._with(self._changed(row), l_orderkey=order, l_linenumber=number + 1))
        yield "customer", [], customers
        yield "orders", [], orders
        yield "lineitem", [], items

    def _cancel(self, count: int, erased: Mapping[str, list[Row]]) -> Iterator[Part]:
        """Orders go, their items stay for now; customers change their segment and their balance."""
        yield "orders", self._present("orders", max(1, count // 2), erased), []
        going = self._present("customer", max(1, count // 4), erased)
        segments, place = ("BUILDING", "MACHINERY"), self._place["c_mktsegment"]
        coming = [
            self._with(
                row, c_mktsegment=segments[row[place] == segments[0]], c_acctbal=self._cents(-99_999, 999_999)
            )
            for row in going
        ]
        yield "customer", going, coming

    def _fresh(self, name: str, taken: int) -> int:
        return max(key[0] for key in self.rows[name]) + 1 + taken

    def _changed(self, row: Row) -> Row:
        """A line item with another price, discount, quantity, dates and ship mode; every other is popular."""
        place = self._place
        if self._draw.integers(2):
            part, supplier = self._popular[int(self._draw.integers(len(self._popular)))]
            row = self._with(row, l_partkey=part, l_suppkey=supplier)
        dates = ("l_shipdate", "l_commitdate", "l_receiptdate")
        return self._with(
            row,
            l_extendedprice=row[place["l_extendedprice"]] + self._cents(-500, 100_000),
            l_discount=self._cents(0, 11),
            l_quantity=Decimal(int(self._draw.integers(1, 51))),
            l_shipmode=("MAIL", "SHIP", "AIR")[int(self._draw.integers(3))],
            **{column: self._moved(row[place[column]]) for column in dates},
        )

    def _cents(self, least: int, behind: int) -> Decimal:
        return Decimal(int(self._draw.integers(least, behind))).scaleb(-2)

    def _moved(self, day: datetime.date) -> datetime.date:
        return day + datetime.timedelta(days=int(self._draw.integers(-60, 61)))
