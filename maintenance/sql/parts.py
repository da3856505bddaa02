"""`parts_of`: the SELECTs that an INSERT, UPDATE, DELETE or MERGE comes to.

sqlglot takes the statement apart, and what it says of rows is put into SELECTs: of the rows that go, of the
values that come.  All of them read one state, so the parts of a MERGE don't see each other.

=============================== =====================================================================
``delete from t where p``       rows: ``select t.* from t where p``
``delete from t using s``       rows: ``select t.* from t where exists (select 1 from s where p)``
``update t set a = e where p``  pairs: ``select t.*, e from t where p``
``update t set a = e from s``   pairs: ``select distinct t.*, e from t, s where p``, and the rows that go
``merge into t using s on p``   of each WHEN: one of these, for rows that no WHEN before it takes
=============================== =====================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lftj.errors import UnsupportedSqlError
from lftj.statements.binder import quoted
from lftj.statements.given import placed
from lftj.statements.time_windows import as_call

INCOMING = "incoming rows"
"""What an INSERT of a part reads: the rows of its SELECT.  No relation has such a name."""


@dataclass(frozen=True)
class Insertion:
    """Rows of a SELECT, and the statement that puts them in, as DuckDB casts and fills them."""

    rows: str
    statement: str
    by_name: bool = False


@dataclass(frozen=True)
class Deletion:
    """The rows that go, each copy."""

    rows: str


@dataclass(frozen=True)
class Update:
    """``pairs``: rows that go, and values of the ``computed`` columns behind them.

    ``rows``: the rows that go, each copy; None: the pairs have each copy.  ``constant``: of the other
    assigned columns, expressions that no row has a part in.  ``computed`` is None: all, in their order.
    """

    pairs: str
    rows: str | None
    computed: tuple[str, ...] | None
    constant: Mapping[str, str]


Part = Insertion | Deletion | Update


@dataclass(frozen=True)
class Parts:
    """``alias``: what the statement calls the relation, for ``returning``, which is a list as of a SELECT."""

    target: str
    alias: str
    parts: tuple[Part, ...]
    returning: str | None = None


def parts_of(sql: str) -> Parts:
    """Of a statement that DuckDB binds.  Raises UnsupportedSqlError, and ImportError without sqlglot."""
    exp, found = _exp(), parsed(sql)
    if isinstance(found, exp.TruncateTable):
        return Statement(found.expressions[0]).parts([Deletion(Statement(found.expressions[0]).rows([]))])
    table = found.this.this if isinstance(found.this, exp.Schema) else found.this
    statement = Statement(table, found)
    if isinstance(found, exp.Insert):
        return statement.parts([statement.insertion(found)])
    if isinstance(found, exp.Delete):
        return statement.parts([statement.deletion(found.args.get("using") or [], _where(found))])
    if isinstance(found, exp.Update):
        from_ = found.args.get("from_")
        return statement.parts(
            [statement.update(found.expressions, [from_.this] if from_ else [], _where(found))]
        )
    if isinstance(found, exp.Merge):
        return statement.parts(statement.merged(found))
    raise UnsupportedSqlError(f"{found.key.upper()} is not taken: write INSERT, UPDATE, DELETE or MERGE")


@dataclass
class Statement:
    """Makes SELECTs over the changed relation.  ``whole``: the statement that changes it."""

    table: Any
    whole: Any = None
    alias: str = field(init=False)

    def __post_init__(self) -> None:
        self.alias = self.table.alias or self.table.name
        with_ = self.whole.args.get("with_") if self.whole is not None else None
        self._with = f"{_text(with_)} " if with_ else ""
        self._from = f"{quoted(self.table.name)} AS {quoted(self.alias)}"
        self._star = f"{quoted(self.alias)}.*"

    def parts(self, parts: Sequence[Part]) -> Parts:
        returning = self.whole.args.get("returning") if self.whole is not None else None
        if returning is None:
            return Parts(self.table.name, self.alias, tuple(parts))
        shown = ", ".join(
            f"{quoted(self.alias)}.{_text(each)}" if isinstance(each, _exp().Star) else _text(each)
            for each in returning.expressions
        )
        return Parts(self.table.name, self.alias, tuple(parts), shown)

    def rows(self, where: Sequence[str]) -> str:
        """The rows of the relation for which all of some conditions hold."""
        return f"{self._with}SELECT {self._star} FROM {self._from}{_filter(where)}"

    def insertion(self, insert: Any) -> Insertion:
        source, into = insert.expression, insert.copy()
        if source is None:
            raise UnsupportedSqlError(
                "DEFAULT VALUES is not taken with RETURNING and ON CONFLICT: write VALUES (NULL, ...)"
            )
        if isinstance(source, _exp().Values):
            for value in source.find_all(_exp().Var):
                value.replace(_exp().Null())
        for name in ("with_", "returning"):
            into.set(name, None)
        into.set("expression", _exp().select("*").from_(_exp().to_identifier(INCOMING, quoted=True)))
        rows = f"{self._with}SELECT * FROM ({_text(source)})" if self._with else _text(source)
        return Insertion(rows, _text(into), bool(insert.args.get("by_name")))

    def deletion(self, using: Sequence[Any], where: Sequence[str]) -> Deletion:
        return Deletion(self.rows([_exists(using, where)] if using else where))

    def update(self, assignments: Sequence[Any], using: Sequence[Any], where: Sequence[str]) -> Update:
        exp = _exp()
        set_ = dict(pair for each in assignments for pair in _assigned(each))
        free = [
            name for name, of in set_.items() if _value(of) == "NULL" or not of.find(exp.Column, exp.Query)
        ]
        constant = {name: _value(set_[name]) for name in free}
        computed = tuple(name for name in set_ if name not in constant)
        values = "".join(f", {_text(set_[name])} AS value_{number}" for number, name in enumerate(computed))
        if not using:
            pairs = f"{self._with}SELECT {self._star}{values} FROM {self._from}{_filter(where)}"
            return Update(pairs, None, computed, constant)
        return Update(*self._met(values, using, where), computed, constant)

    def _met(self, values: str, using: Sequence[Any], where: Sequence[str]) -> tuple[str, str]:
        """The pairs of rows and values of what they meet, and the rows."""
        tables = ", ".join([self._from, *map(_text, using)])
        pairs = f"{self._with}SELECT DISTINCT {self._star}{values} FROM {tables}{_filter(where)}"
        return pairs, self.rows([_exists(using, where)])

    def merged(self, merge: Any) -> list[Part]:
        using, on = merge.args["using"], merge.args.get("on")
        if on:
            meets = _text(on)
        else:
            sides = [quoted(self.alias), quoted(using.alias or using.name)]
            meets = " AND ".join(
                " = ".join(f"{side}.{_text(column)}" for side in sides) for column in merge.args["using_cond"]
            )
        of_none = {
            "target": f"NOT EXISTS (SELECT 1 FROM {self._from} WHERE {meets})",
            "source": f"NOT {_exists([using], [meets])}",
        }
        taken: dict[str, list[str]] = {}
        found: list[Part] = []
        for when in merge.args["whens"].expressions:
            missing = None if when.args["matched"] else "source" if when.args["source"] else "target"
            before = taken.setdefault(missing or "", [])
            condition = [_text(when.args["condition"])] if when.args.get("condition") else []
            where = [of_none[missing] if missing else meets, *condition, *before]
            before += [f"NOT coalesce({each}, FALSE)" for each in condition or ["TRUE"]]
            found += self._merged(when.args["then"], [] if missing else [using], where, using, missing)
        return found

    def _merged(
        self, then: Any, joined: Sequence[Any], where: Sequence[str], using: Any, missing: str | None
    ) -> list[Part]:
        exp = _exp()
        if isinstance(then, exp.Var) and then.name.upper() == "DO NOTHING":
            return []
        if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
            return [self.deletion(joined, where)]
        if isinstance(then, exp.Update) and then.expressions and isinstance(then.expressions[0], exp.EQ):
            return [self.update(then.expressions, joined, where)]
        star = f"{quoted(using.alias or using.name)}.*"
        whole = not then.expressions and isinstance(then.this, exp.Star | None)
        whole = whole or [type(each) for each in then.expressions] == [exp.Star]
        values = then.args.get("expression")
        if isinstance(then, exp.Update) and whole and joined:
            return [Update(*self._met(f", {star}", joined, where), None, {})]
        if isinstance(then, exp.Insert) and whole and not values and missing == "target":
            into = f"INSERT INTO {quoted(self.table.name)} SELECT * FROM {quoted(INCOMING)}"
            return [Insertion(f"{self._with}SELECT {star} FROM {_text(using)}{_filter(where)}", into)]
        if isinstance(then, exp.Insert) and missing == "target" and isinstance(values, exp.Tuple):
            columns = (
                f" ({', '.join(quoted(each.name) for each in then.this.expressions)})" if then.this else ""
            )
            listed = ", ".join(f"{_value(each)} AS value_{n}" for n, each in enumerate(values.expressions))
            rows = f"{self._with}SELECT {listed} FROM {_text(using)}{_filter(where)}"
            into = f"INSERT INTO {quoted(self.table.name)}{columns} SELECT * FROM {quoted(INCOMING)}"
            return [Insertion(rows, into)]
        raise UnsupportedSqlError(
            f"{_text(then)} is not taken in a MERGE: write UPDATE SET column = value, DELETE,"
            " INSERT (columns) VALUES (values) or DO NOTHING"
        )


def _assigned(assignment: Any) -> list[tuple[str, Any]]:
    """Columns, and what they are set to."""
    exp = _exp()
    to, value = assignment.this, assignment.expression
    if isinstance(to, exp.Column):
        return [(to.name.casefold(), value)]
    if isinstance(to, exp.Tuple) and isinstance(value, exp.Tuple):
        return [
            (each.name.casefold(), of) for each, of in zip(to.expressions, value.expressions, strict=True)
        ]
    raise UnsupportedSqlError(f"SET {_text(assignment)} is not taken: write column = value for each column")


def _value(value: Any) -> str:
    """As SQL; no relation has a default."""
    exp = _exp()
    named = value.this if isinstance(value, exp.Column) and not value.table else value
    is_default = isinstance(named, exp.Identifier | exp.Var) and named.name.upper() == "DEFAULT"
    return "NULL" if is_default and not named.args.get("quoted") else _text(value)


def _where(statement: Any) -> list[str]:
    where = statement.args.get("where")
    return [_text(where.this)] if where else []


def _filter(where: Sequence[str]) -> str:
    return " WHERE " + " AND ".join(f"({each})" for each in where) if where else ""


def _exists(tables: Sequence[Any], where: Sequence[str]) -> str:
    return f"EXISTS (SELECT 1 FROM {', '.join(map(_text, tables))}{_filter(where)})"


def _text(node: Any) -> str:
    return str(node.sql(dialect="duckdb", comments=False))


def _exp() -> Any:
    try:
        from sqlglot import exp
    except ModuleNotFoundError as error:
        raise ImportError(
            "statements that change data are taken apart by sqlglot: pip install 'lftj[sql]'", name="sqlglot"
        ) from error
    return exp


def parsed(sql: str) -> Any:
    _exp()
    import sqlglot

    try:
        return sqlglot.parse_one(as_call(sql), read="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise placed(UnsupportedSqlError, sql, error, "the statement can't be taken apart") from None
