"""Who keeps a view up to date: lftj by a strategy, Pathway by its dataflow, and DuckDB by asking again.

Invariants

1. ``commit`` is all that is timed: from the changes of a transaction, or of several that are in flight
   together, as Arrow tables in memory, to a head that is up to date and, where the question is asked again,
   fetched.
2. ``digest`` is of the heads after the last commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.digest import Digest
from bench.grid.changes import Rows, Stream, Transaction, netted
from bench.grid.view import View
from bench.peers.pathway_engine import Dataflow
from maintenance import Workspace
from maintenance.changes.head_changes import Changes
from maintenance.stats import TransactionStats


class Counted(NamedTuple):
    """Of a commit, where it is counted: see :class:`bench.grid.cell.Cell`."""

    operations: int | None = None
    head_changes: int | None = None
    instances: int | None = None


class Keeper(ABC):
    """One view over the tables of one stream; ``load`` comes first.

    ``ending``: what is called when nothing is asked any more.
    """

    gathers = False
    """Whether several transactions can be handed over in one commit."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.ending = ExitStack()

    def _table(self, name: str, rows: Rows) -> pa.Table:
        """Rows of a relation, or its changes, as an Arrow table."""
        names = (*self.view.columns[name], "weight")[: rows.shape[1]]
        return pa.table(dict(zip(names, rows.T, strict=True)))

    @abstractmethod
    def load(self, stream: Stream) -> None:
        """Take the tables in, and bring the heads up."""

    @abstractmethod
    def prepare(self, transactions: Sequence[Transaction]) -> Any:
        """Changes in the form that ``commit`` takes: of one transaction, or of several of who ``gathers``."""

    @abstractmethod
    def commit(self, prepared: Any) -> None:
        """What was prepared."""

    @abstractmethod
    def digest(self) -> tuple[int, int]:
        """Weight and checksum of the heads now."""

    def counted(self) -> Counted:
        """What the last commit took."""
        return Counted()


class Kept(Keeper):
    """Rules installed in a workspace."""

    gathers = True

    def __init__(self, view: View, strategy: str) -> None:
        super().__init__(view)
        self._strategy = strategy
        self._digest = Digest()
        self._last: Sequence[Changes] | None = None
        self._stats = TransactionStats()

    def load(self, stream: Stream) -> None:
        self.workspace = Workspace()
        for name, rows in stream.tables.items():
            self.workspace.load(name, self._table(name, rows))
        self.workspace.install(self.view.rules, self._strategy)

    def prepare(self, transactions: Sequence[Transaction]) -> tuple[int, dict[str, pa.Table]]:
        """The number of transactions, and the changes of each relation, with their transactions' numbers."""
        if len(transactions) == 1:
            return 1, {name: self._table(name, rows) for name, rows in transactions[0].items() if len(rows)}
        tables = {}
        for name in self.view.columns:
            parts = [transaction.get(name, _NO_ROWS) for transaction in transactions]
            numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
            if len(numbers):
                rows = np.concatenate([part for part in parts if len(part)])
                tables[name] = self._table(name, rows).append_column("txn", pa.array(numbers))
        return len(transactions), tables

    def commit(self, prepared: tuple[int, dict[str, pa.Table]]) -> None:
        n_transactions, tables = prepared
        if n_transactions > 1:
            applied = self.workspace.apply_many(tables)
            self._last, self._stats = applied, applied.stats
            return
        with self.workspace.transaction() as transaction:
            for name, changes in tables.items():
                transaction.apply(name, changes)
        self._last, self._stats = (transaction.changes,), transaction.stats

    def digest(self) -> tuple[int, int]:
        for number, head in enumerate(self.view.heads):
            if self._last is None:
                self._digest.add_table(self.workspace[head].table, number)
                continue
            for changes in self._last:
                self._digest.add_table(changes[head], number)
        return self._digest.sums

    def counted(self) -> Counted:
        return Counted(
            sum(found.operations for found in self._stats.values()),
            sum(self._stats[head].head_changes for head in self.view.heads),
            self._instances() if self.view.bodies else None,
        )

    def _instances(self) -> int:
        """Of the last commit."""
        if self._strategy == "recompute":
            counts = (self.workspace.query(f"n[] = count() <- {body}.") for body in self.view.bodies)
            return sum(int(count["count"][0].as_py()) for count in counts)
        return sum(found.instances for found in self._stats.values())


_NO_ROWS = np.empty((0, 0), np.int64)


class Asked(Keeper):
    """DuckDB's tables take the changes, and the whole question is asked again.

    Prepared statements, values for a single row, and columns of numpy are its quickest ways in and out.
    """

    def load(self, stream: Stream) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        for name, rows in stream.tables.items():
            self._run(f"CREATE TABLE {name} AS SELECT * FROM part", self._table(name, rows))
        for number, statement in enumerate(self.view.sql.values()):
            self._connection.execute(f"PREPARE question_{number} AS {statement}")
        self._ask()

    def _run(self, statement: str, given: pa.Table | list[int]) -> None:
        """A statement that reads the table ``part``, or one with parameters."""
        if isinstance(given, list):
            self._connection.execute(statement, given)
            return
        self._connection.register("part", given)
        self._connection.execute(statement)
        self._connection.unregister("part")

    def prepare(self, transactions: Sequence[Transaction]) -> list[tuple[str, pa.Table | list[int]]]:
        """Statements with what they are given."""
        (transaction,) = transactions
        found: list[tuple[str, pa.Table | list[int]]] = []
        for name, rows in transaction.items():
            net = netted(rows)
            erased, inserted = (net[net[:, -1] == sign, :-1] for sign in (-1, 1))
            columns = self.view.columns[name]
            if len(erased) == 1:
                equal = " AND ".join(f"{column} = ?" for column in columns)
                found.append((f"DELETE FROM {name} WHERE {equal}", erased[0].tolist()))
            elif len(erased):
                equal = " AND ".join(f"{name}.{column} = part.{column}" for column in columns)
                found.append((f"DELETE FROM {name} USING part WHERE {equal}", self._table(name, erased)))
            if len(inserted) == 1:
                values = ", ".join("?" for _ in columns)
                found.append((f"INSERT INTO {name} VALUES ({values})", inserted[0].tolist()))
            elif len(inserted):
                found.append((f"INSERT INTO {name} SELECT * FROM part", self._table(name, inserted)))
        return found

    def commit(self, prepared: list[tuple[str, pa.Table | list[int]]]) -> None:
        self._connection.execute("BEGIN")
        for statement, given in prepared:
            self._run(statement, given)
        self._connection.execute("COMMIT")
        self._ask()

    def _ask(self) -> None:
        self._answers = [
            list(self._connection.execute(f"EXECUTE question_{number}").fetchnumpy().values())
            for number in range(len(self.view.sql))
        ]

    def digest(self) -> tuple[int, int]:
        found = Digest()
        numbers = {head: number for number, head in enumerate(self.view.heads)}
        for heads, columns in zip(self.view.sql, self._answers, strict=True):
            if len(heads) == 1:
                found.add(columns, None, numbers[heads[0]])
                continue
            for head, values in zip(heads, columns[1:], strict=True):  # a group without a value is masked
                there = ~np.ma.getmaskarray(values)
                found.add([columns[0][there], np.asarray(values)[there]], None, numbers[head])
        return found.sums


class Streamed(Keeper):
    """Pathway's dataflow takes the changes row by row, as its connectors do, and hands out the head's."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._dataflow = Dataflow(view.pathway)
        self.ending.callback(self._dataflow.close)

    def load(self, stream: Stream) -> None:
        (name,) = self.view.columns
        self._digest = Digest()
        self._changes = self._dataflow.commit([(*row, 1) for row in stream.tables[name].tolist()])

    def prepare(self, transactions: Sequence[Transaction]) -> list[list[int]]:
        ((changes,),) = (transaction.values() for transaction in transactions)
        found: list[list[int]] = changes.tolist()
        return found

    def commit(self, prepared: list[list[int]]) -> None:
        self._changes = self._dataflow.commit(prepared)

    def digest(self) -> tuple[int, int]:
        if self._changes:
            *columns, weights = np.array(self._changes, np.int64).T
            self._digest.add(columns, weights)
        return self._digest.sums

    def counted(self) -> Counted:
        return Counted(head_changes=len(self._changes))


def keeper(view: View, engine: str) -> Keeper:
    """Of a key of the grid, ``duckdb``, ``pathway``, ``lftj`` or ``lftj:<strategy>``."""
    if engine == "pathway":
        return Streamed(view)
    return Asked(view) if engine == "duckdb" else Kept(view, engine.partition(":")[2] or "auto")
