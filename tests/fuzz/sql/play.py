"""Plays a case of SQL: its statements once, or as views that are kept through its transactions.

A statement is compared with DuckDB; where another oracle says something else than DuckDB, it is a dispute and
the engine is not judged.  Views are compared after each transaction, and so is what the transaction says has
changed.  What is refused as not taken is counted by construct.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import lftj
from fuzz.case import Case, Commit, Table
from fuzz.difference import Difference
from fuzz.sql import tally
from fuzz.sql.oracles import MOST_ROWS, Answer, DuckDb, Refusal, difference, others, second_opinion, text_of
from fuzz.sql.tree import With
from lftj import errors
from maintenance import Workspace
from support.reference import Row

STRATEGIES = ("auto", "auto", "delta", "trace", "recompute", "views")

EAGER = "More than one row returned by a subquery"
"""Said of subqueries whose value no row needs in the end, too, by one or the other; the corpus has those that
have to raise."""

STATED = {EAGER: "errors of what nobody needs", "has the code of NULL": "errors of the least integer"}
"""Words of errors that the pages name where DuckDB has rows, and what they are counted as."""

Engine = Callable[[], list[Row]]


def view_name(n: int) -> str:
    """Of the nth statement of a case that is kept."""
    return f"v{n}"


def play_sql(case: Case) -> None:
    """Raises Difference, or whatever the engine raises but should not."""
    tables = [table for table in case.tables if isinstance(table, Table)]
    if case.options.get("kept", False):
        _Kept(case, tables).play()
    else:
        _Once(tables).play(case.statements)


def _construct(error: BaseException) -> str:
    """The kind of what is refused: the message without names, numbers and the text's lines."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\b[a-z]?\d+\b", "_", text)[:110]


def rows_in_order(table: pa.Table) -> list[Row]:
    """Its rows, columns by their places, for names may be there twice."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _ordered(statement: Any) -> bool:
    """Whether the order of its rows leaves nothing open: drawn orders are of all columns."""
    if isinstance(statement, With):
        return _ordered(statement.body)
    return bool(getattr(statement, "order", ())) and not getattr(statement, "distinct_on", ())


class _Once:
    def __init__(self, tables: Sequence[Table]) -> None:
        self.duckdb = DuckDb(tables)
        self.others = others(tables)
        self.database = lftj.Database()
        for table in tables:
            self.database.load(table.name, table.arrow(), **table.options)

    def play(self, statements: Sequence[Any]) -> None:
        """Raise the first thing that is wrong, behind all that is right."""
        wrong: Difference | None = None
        for statement in statements:
            tally.count("statements")
            try:
                self._judge(statement)
            except Difference as error:
                wrong = wrong or error
        if wrong is not None:
            raise wrong

    def _judge(self, statement: Any) -> None:
        text = text_of(statement)
        right = self.duckdb.answer(text)
        if isinstance(right, Refusal) and right.binding:
            tally.count("oracle skips", _construct(ValueError(right.why)))
            return
        if isinstance(right, Answer) and len(right.rows) > MOST_ROWS:
            tally.count("oracle skips", "too many rows")
            return
        if disputed(self.others, statement, text, right):
            return
        judge("once", text, lambda: rows_in_order(self.database.sql(text)), right, _ordered(statement))


def disputed(oracles: Sequence[Any], statement: Any, text: str, right: Answer | Refusal) -> bool:
    """Whether another oracle says something else than DuckDB; it is told."""
    for oracle in oracles:
        types = right.types if isinstance(right, Answer) else ()
        if isinstance(right, Refusal):
            continue
        other = second_opinion(oracle, statement, types)
        if isinstance(other, str):
            tally.count(f"{oracle.name} refuses", _construct(ValueError(other.partition(": select")[0])))
        elif other is not None:
            tally.count(f"by {oracle.name}, too")
            apart = difference(other, right.rows)
            if apart is not None:
                tally.dispute(f"{oracle.name} against DuckDB: {apart}: {text}")
                return True
    return False


def judge(where: str, text: str, engine: Engine, right: Answer | Refusal, ordered: bool = False) -> None:
    """Compare what the engine says, or that it refuses."""
    try:
        got = engine()
    except errors.UnsupportedSqlError as error:
        tally.count("refused", _construct(error))
        return
    except (errors.EvaluationError, errors.DataError) as error:
        if isinstance(right, Refusal):
            tally.count("equal errors")
            return
        if stated := _stated(error):
            tally.count(stated)
            return
        raise Difference(f"{where}, refused by {fault_of(error)}: {error}: {text}") from error
    except Exception as error:
        raise Difference(f"{where}, {fault_of(error)}: {error}: {text}") from error
    tally.count("once" if where == "once" else "compared")
    if isinstance(right, Refusal) and EAGER in right.why:
        tally.count("errors of what nobody needs")
        return
    if isinstance(right, Refusal):
        raise Difference(f"{where}, not refused: {right.why}, but {got[:4]}: {text}")
    apart = difference(got, right.rows, False)
    if apart is not None:
        raise Difference(f"{where}, other rows: {apart}: {text}")
    if ordered and difference(got, right.rows, True) is not None:
        raise Difference(f"{where}, in another order: {difference(got, right.rows, True)}: {text}")


def _stated(error: BaseException) -> str | None:
    return next((what for words, what in STATED.items() if words in str(error)), None)


def fault_of(error: BaseException) -> str:
    """The error's class, where in the engine it was raised, and its message without what differs by case."""
    place = error.__traceback__
    inside = ""
    while place is not None:
        code = place.tb_frame.f_code
        if "/tests/" not in code.co_filename:
            inside = code.co_name
        place = place.tb_next
    said = str(error).strip().splitlines() or [""]
    kind = re.sub(r"_?\d+|;.*|\b(answer|v)_?\w*", "", said[0].replace(":", ""))[:70].strip()
    return f"{type(error).__name__} in {inside}, {kind}"


class _Kept:
    """A workspace with views, and DuckDB beside it, that has the same rows in its tables."""

    def __init__(self, case: Case, tables: Sequence[Table]) -> None:
        self.case, self.tables = case, {table.name: table for table in tables}
        self.duckdb = DuckDb(tables)
        self.workspace = Workspace()
        self.state = {table.name: Counter(table.rows) for table in tables}
        for table in tables:
            self.workspace.load(table.name, table.arrow(), **table.options)
        self.views: dict[str, str] = {}
        self.strategies: dict[str, str] = {}

    def play(self) -> None:
        strategies = self.case.options.get("strategies", ())
        for n, statement in enumerate(self.case.statements):
            tally.count("statements")
            self._create(view_name(n), text_of(statement), strategies[n] if n < len(strategies) else "auto")
        if not self.views:
            return
        for step in self.case.steps:
            assert isinstance(step, Commit)
            if not self._commit(step):
                return
        self.workspace.check_invariants()

    def _create(self, name: str, text: str, strategy: str) -> None:
        right = self.duckdb.answer(text)
        if isinstance(right, Refusal) and right.binding:
            tally.count("oracle skips", _construct(ValueError(right.why)))
            return
        try:
            self.duckdb.create_view(name, text)
        except Exception as error:
            tally.count("oracle skips", _construct(error))
            return

        def create() -> list[Row]:
            try:
                self.workspace.create_view(name, text, strategy=strategy)
            except errors.StrategyError:  # a recursion is kept by other ones
                self.workspace.create_view(name, text)
            return rows_in_order(self.workspace[name].to_arrow())

        if isinstance(right, Answer) and len(right.rows) > MOST_ROWS:
            return
        judge(f"created {strategy}", text, create, right)
        if self._is_there(name):
            tally.count("kept views")
            self.views[name], self.strategies[name] = text, strategy
        else:
            self.duckdb.drop_view(name)

    def _is_there(self, name: str) -> bool:
        try:
            self.workspace[name]
        except errors.LftjError:
            return False
        return True

    def _contents(self) -> dict[str, list[Row]]:
        return {name: rows_in_order(self.workspace[name].to_arrow()) for name in self.views}

    def _commit(self, step: Commit) -> bool:
        """One transaction; whether play goes on."""
        state = {name: counts.copy() for name, counts in self.state.items()}
        for name, row, weight in step.staged:
            if name in state:
                state[name][row] = max(0, state[name][row] + weight)
        touched = {name for name, _, _ in step.staged if name in state}
        self._fill(state, touched)
        right = {name: self.duckdb.answer(f"select * from {name}") for name in self.views}
        refused = [one.why for one in right.values() if isinstance(one, Refusal)]
        before = self._contents()
        try:
            with self.workspace.transaction() as transaction:
                self._stage(transaction, step)
        except (errors.EvaluationError, errors.DataError) as error:
            if not refused and (stated := _stated(error)):
                tally.count(stated)
                return False
            if not refused:
                raise Difference(f"commit, refused by {fault_of(error)}: {error}: {self._told()}") from error
            tally.count("equal errors")
            self._fill(self.state, touched)
            for name, rows in before.items():
                apart = difference(self._contents()[name], rows)
                if apart is not None:
                    raise Difference(f"refused and yet changed: {name} {apart}: {self._told()}") from error
            return True
        except Exception as error:
            raise Difference(f"commit, {fault_of(error)}: {error}: {self._told()}") from error
        tally.count("commits")
        if refused and all(EAGER in why for why in refused):
            tally.count("errors of what nobody needs")
            return False
        if refused:
            raise Difference(f"commit, not refused: {refused[0]}: {self._told()}")
        self.state = state
        for name, rows in self._contents().items():
            strategy = self.strategies[name]
            answer = right[name]
            assert isinstance(answer, Answer)
            apart = difference(rows, answer.rows)
            if apart is not None:
                raise Difference(f"kept by {strategy}, other rows: {name} {apart}: {self._told()}")
            apart = _changes_apart(transaction.changes[name], before[name], rows)
            if apart is not None:
                raise Difference(f"kept by {strategy}, other changes: {name} {apart}: {self._told()}")
        return True

    def _told(self) -> str:
        return "; ".join(f"{name}: {text}" for name, text in self.views.items())

    def _fill(self, state: dict[str, Counter[Row]], names: set[str]) -> None:
        for name in names:
            self.duckdb.fill(name, self.tables[name].arrow(tuple(state[name].elements())))

    def _stage(self, transaction: Any, step: Commit) -> None:
        """What is erased is there; rows that come and go in one transaction come first."""
        for sign, change in ((1, "insert"), (-1, "erase")):
            for name in self.tables:
                rows = [
                    row
                    for of, row, weight in step.staged
                    if of == name and weight * sign > 0
                    for _ in range(abs(weight))
                ]
                if rows:
                    getattr(transaction, change)(name, self.tables[name].arrow(tuple(rows)))


def _hashed(rows: Sequence[Row]) -> Counter[str]:
    return Counter(map(repr, rows))


def _changes_apart(changes: pa.Table, before: Sequence[Row], now: Sequence[Row]) -> str | None:
    """The view before and what changed are the view now, bit by bit, with no row of no weight."""
    place = changes.schema.names.index("weight")
    result = _hashed(before)
    for row in rows_in_order(changes):
        if row[place] == 0:
            return f"a change of no weight {row}"
        result[repr((*row[:place], *row[place + 1 :]))] += row[place]
    right = _hashed(now)
    if {row: n for row, n in result.items() if n} == dict(right):
        return None
    surplus = {row: n - right[row] for row, n in result.items() if n != right[row]}
    surplus |= {row: -n for row, n in right.items() if row not in result}
    few = dict(list(surplus.items())[:5])
    return f"changes give {few} beside the view, changes {rows_in_order(changes)[:6]}"
