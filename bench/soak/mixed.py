"""Chained rules of all kinds over small relations, under transactions of 1 to 200 changes.

There are inserts and erasures, repetitions, no-ops, tuples that come and go in one transaction, and empty
transactions.  Half of the notes that come are texts that nobody has seen before.  The relations are also kept
as plain sets and compared.  Questions are asked between transactions: what queries make of versions must go
with them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from bench.soak.steady import Steadiness
from maintenance import Workspace

MOST_AT_ONCE = 200
KEYS = 24
"""Values of every column: few, so that changes meet."""

TUPLES = {"edge": 230, "node": 20, "barred": 60, "note": 40}
"""Sizes that the base relations move about."""

PROGRAM = """
link(a, b) <- edge(a, b), node(a), node(b).
triangle(a, b, c) <- link(a, b), link(b, c), link(a, c).
open(a, b, c) <- link(a, b), link(b, c), !link(a, c).
apart(a, c) <- barred(a, c), !edge(a, c), node(a).
kept(a, b, c) <- open(a, b, c), !barred(a, b), !apart(a, c).
hub(a) <- edge(a, b), edge(b, c), edge(a, c), barred(c, _).
between(a, c) <- link(a, b), link(b, c), barred(a, d), node(d), barred(e, c), node(e).
degree[a] = count(), highest[a] = max(b), sum_of[a] = sum(w), mean[a] = avg(w) <- link(a, b), w = b * 1.1.
least[a] = min(c), least_by[a, b] = min(c) <- open(a, b, c).
steep[a] = v <- degree[a] = d, highest[a] = h, v = h - d, v > 3.
silent(a) <- node(a), !hub(a), v = a + 1, !node(v).
guarded(a) <- hub(a), barred(b, c), triangle(b, c, _).
said(a, s) <- note(a, s, _), node(a).
unsaid(s) <- note(a, s, _), !node(a).
text[a] = concat(s), foremost[a] = min(s), hindmost[a] = max(s) <- said(a, s).
paid[a] = sum(v), price[a] = avg(w) <- note(a, _, w), v = w * 1.5.
"""

QUESTIONS = (
    "near(b, c) <- edge($k, b), edge(b, c).",
    "spoken[s] = count() <- note(a, s, _), a >= $k.",
    "reached(b) <- edge($k, b). reached(c) <- reached(b), edge(b, c).",
)

COLUMNS = {
    "edge": (pa.int64(), pa.int64()),
    "node": (pa.int64(),),
    "barred": (pa.int64(), pa.int64()),
    "note": (pa.int64(), pa.string(), pa.decimal128(12, 2)),
}

Row = tuple[Any, ...]


class MixedSoak:
    """A workspace with the program, and its base relations as plain sets."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.relations: dict[str, set[Row]] = {name: set() for name in COLUMNS}
        self.workspace = Workspace()
        self.notes = 0
        for name, types in COLUMNS.items():
            rows = [self._row(name) for _ in range(TUPLES[name])]
            self.relations[name] = set(rows)
            columns = zip(types, zip(*sorted(self.relations[name]), strict=True), strict=True)
            arrays = {f"c{number}": pa.array(values, type_) for number, (type_, values) in enumerate(columns)}
            self.workspace.load(name, pa.table(arrays))
        self.workspace.install(PROGRAM)
        self._questions = [self.workspace.prepare(question) for question in QUESTIONS]
        self.transactions = 0
        self.steady = Steadiness()

    def _row(self, relation: str) -> Row:
        """A random row, half of the time one that is there."""
        there = self.relations[relation]
        if there and self.generator.random() < 0.5:
            ordered = sorted(there)
            return ordered[int(self.generator.integers(len(ordered)))]
        keys = self.generator.integers(0, KEYS, len(COLUMNS[relation])).tolist()
        if relation == "note":
            self.notes += 1
            return keys[0], f"note {self.notes}", Decimal(self.notes % 100_000) / 4
        return tuple(keys)

    def transact(self, most: int) -> int:
        """Commit one transaction of at most so many changes; how many it staged."""
        largest = min(most, MOST_AT_ONCE)
        count = int(min(largest, self.generator.geometric(0.08) - 1, most))
        if self.generator.random() < 0.05:
            count = largest
        staged: dict[str, dict[Row, int]] = {name: {} for name in COLUMNS}
        with self.workspace.transaction() as transaction:
            for _ in range(count):
                name = list(COLUMNS)[int(self.generator.integers(len(COLUMNS)))]
                wanted = 0.65 if len(self.relations[name]) < TUPLES[name] else 0.35
                row, weight = self._row(name), 1 if self.generator.random() < wanted else -1
                (transaction.insert if weight > 0 else transaction.erase)(name, [row])
                staged[name][row] = staged[name].get(row, 0) + weight
        self.steady.enter(transaction.stats)
        for name, rows in staged.items():
            self.relations[name] |= {row for row, weight in rows.items() if weight > 0}
            self.relations[name] -= {row for row, weight in rows.items() if weight < 0}
        self.transactions += 1
        ask = self._questions[self.transactions % len(QUESTIONS)]
        ask({"k": self.transactions % KEYS})
        return count

    def check(self) -> None:
        """Raise VerificationError or AssertionError when something is wrong."""
        self.workspace.verify()
        self.workspace.check_invariants()
        for name, rows in self.relations.items():
            table = self.workspace[name].table
            held = set(zip(*(column.to_pylist() for column in table.columns), strict=True))
            assert held == rows, f"{name} holds other tuples than were staged"
