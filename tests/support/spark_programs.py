"""Random rules beside the SQL that says the same, over relations of every type that Spark and rules share.

Data are dense: of each type a few values, a NULL now and then, equal rows; so about three of four programs
give twenty rows or more.  Heads have the rows of :attr:`SparkProgram.sql`, each once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge import MaintainedJoin, join

MOMENTS = (
    "2026-03-29 02:30:00",
    "2026-01-01 00:00:00.000001",
    "1969-12-31 23:59:59",
    "2026-10-25 02:30:00",
    "2026-10-25 02:30:00.5",
    "2000-02-29 12:00:00",
)
SMALL = ("0", "1", "2", "3", "4", "5", "6", "-2")
VALUES = {
    "bigint": (*SMALL, "-9223372036854775807"),
    "int": (*SMALL, "2147483647"),
    "smallint": SMALL,
    "tinyint": SMALL,
    "string": ("", "a", "b", "\u00e4", "ab", "ba", "A", "c"),
    "date": ("2026-01-31", "1970-01-01", "1583-01-01", "2026-02-01", "2026-02-02", "2026-02-03"),
    "decimal(9,2)": ("0.00", "1.50", "-2.25", "3.00", "4.01", "9999999.99"),
    "decimal(38,0)": (*SMALL, "99999999999999999999999999999999999999"),
    "boolean": ("true", "false"),
    "binary": ("", "a", "bc", "cb", "d", "e"),
    "timestamp": MOMENTS,
    "timestamp_ntz": MOMENTS,
    "interval day to second": ("0 00:00:01", "-1 00:00:00", "2 03:04:05.000006", "0 00:00:00", "3 00:00:00"),
    "float": ("0.0", "-0.0", "1.5", "2.5", "-3.25"),
    "double": ("0.0", "-0.0", "0.1", "1e300", "2.5"),
}
"""Of each type, as text that Spark casts to it."""

ORDERED = ("bigint", "int", "smallint", "tinyint", "string", "date")
"""Types of which rules and SQL write literals alike, but for texts' quotes."""

SUMMED = ("bigint", "int", "smallint", "tinyint", "decimal(9,2)")
JOINED = tuple(type_ for type_ in VALUES if type_ not in ("float", "double"))

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class SparkProgram:
    """``columns``: the types of each relation's.  ``condition``, ``shown``: to be asked of the head."""

    columns: dict[str, tuple[str, ...]]
    rows: dict[str, tuple[Row, ...]]
    rule: str
    sql: str
    condition: str
    shown: tuple[str, ...]

    def frames(self, spark: SparkSession) -> dict[str, DataFrame]:
        """The relations, and views of them under their names."""
        found = {name: frame_of(spark, types, self.rows[name]) for name, types in self.columns.items()}
        for name, frame in found.items():
            frame.createOrReplaceTempView(name)
        return found


def frame_of(
    spark: SparkSession, types: tuple[str, ...], rows: tuple[Row, ...], weights: tuple[int, ...] | None = None
) -> DataFrame:
    """Rows as text, cast to the types of the columns ``c0``, ``c1`` and so on."""
    names = [f"c{place}" for place in range(len(types))]
    arrays: list[Any] = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(types))]
    casts = [f"CAST({name} AS {type_}) AS {name}" for name, type_ in zip(names, types, strict=True)]
    if weights is not None:
        arrays.append(pa.array(weights, pa.int64()))
        names, casts = [*names, "weight"], [*casts, "weight"]
    return spark.createDataFrame(pa.table(arrays, names)).selectExpr(*casts)


def found_rows(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    """The rows with how often each is there."""
    return Counter(
        tuple(bytes(value) if isinstance(value, bytearray) else value for value in row)
        for row in frame.collect()
    )


def drawn_rows(random: Random, types: tuple[str, ...], most: int) -> tuple[Row, ...]:
    """Rows, some of them equal, each value NULL once in eight."""
    return tuple(
        tuple(None if random.random() < 0.125 else random.choice(VALUES[type_]) for type_ in types)
        for _ in range(random.randint(most // 2, most))
    )


def draw_program(random: Random, *, most_rows: int = 120) -> SparkProgram:
    """A program of one rule."""
    return _Drawing(random, most_rows).program()


class _Drawing:
    def __init__(self, random: Random, most_rows: int) -> None:
        self._random, self._most_rows = random, most_rows
        some = random.sample([type_ for type_ in JOINED if type_ != "boolean"], 2)
        self._columns = {
            name: tuple(
                random.choice((*some, random.choice(tuple(VALUES)))) for _ in range(random.randint(2, 3))
            )
            for name in ("r", "s", "t")
        }
        self._rows = {name: drawn_rows(random, types, most_rows) for name, types in self._columns.items()}
        self._types: dict[str, str] = {}
        self._sql: dict[str, str] = {}
        self._literals: list[str] = []
        self._tables: list[str] = []
        self._where: list[str] = []

    def program(self) -> SparkProgram:
        for _ in range(self._random.choice((1, 2, 2, 2, 3, 3))):
            self._atom()
        if not self._types:
            return _Drawing(self._random, self._most_rows).program()
        if self._random.random() < 0.15:
            self._negation()
        if self._random.random() < 0.2:
            self._comparison()
        head, shown, sql = self._head()
        names = {name for name in self._columns if f"{name}(" in " ".join(self._literals)}
        condition = self._condition(shown)
        return SparkProgram(
            {name: types for name, types in self._columns.items() if name in names},
            {name: rows for name, rows in self._rows.items() if name in names},
            f"{head} <- {', '.join(self._literals)}.",
            sql,
            condition,
            tuple(self._random.sample(shown, self._random.randint(1, len(shown)))),
        )

    def _atom(self) -> None:
        name, table = self._random.choice("rst"), f"t{len(self._tables)}"
        terms = []
        for place, type_ in enumerate(self._columns[name]):
            column = f"{table}.c{place}"
            known = [variable for variable, of in self._types.items() if of == type_ and type_ in JOINED]
            choice = self._random.random()
            if known and choice < 0.4:
                variable = self._random.choice(known)
                safe = self._random.random() < 0.25
                terms.append(f"<=> {variable}" if safe else variable)
                self._where.append(f"{self._sql[variable]} {'<=>' if safe else '='} {column}")
            elif choice < 0.9 or not self._types:
                variable = f"v{len(self._types)}"
                self._types[variable], self._sql[variable] = type_, column
                terms.append(variable)
            elif type_ in ORDERED and choice < 0.91:
                rule, sql = self._literal(type_)
                terms.append(rule)
                self._where.append(f"{column} = {sql}")
            else:
                terms.append("_")
        self._literals.append(f"{name}({', '.join(terms)})")
        self._tables.append(f"(SELECT DISTINCT * FROM {name}) {table}")

    def _negation(self) -> None:
        name = self._random.choice("rst")
        terms, where, tests = [], [], []
        for place, type_ in enumerate(self._columns[name]):
            known = [variable for variable, of in self._types.items() if of == type_ and type_ in JOINED]
            if not known or self._random.random() < 0.3:
                terms.append("_")
                continue
            variable, safe = self._random.choice(known), self._random.random() < 0.5
            terms.append(f"<=> {variable}" if safe else variable)
            where.append(f"n.c{place} {'<=>' if safe else '='} {self._sql[variable]}")
            if not safe:
                tests.append(f"{self._sql[variable]} IS NOT NULL")
        if where:
            self._literals.append(f"!{name}({', '.join(terms)})")
            self._where += [*tests, f"NOT EXISTS (SELECT 1 FROM {name} n WHERE {' AND '.join(where)})"]

    def _comparison(self) -> None:
        known = [variable for variable, of in self._types.items() if of in ORDERED]
        if known:
            variable, operator = self._random.choice(known), self._random.choice(("<", ">=", "!=", "="))
            rule, sql = self._literal(self._types[variable])
            self._literals.append(f"{variable} {operator} {rule}")
            self._where.append(f"{self._sql[variable]} {operator} {sql}")

    def _literal(self, type_: str) -> tuple[str, str]:
        """In a rule and in SQL."""
        text = self._random.choice(VALUES[type_][:3])
        if type_ == "string":
            return f'"{text}"', f"'{text}'"
        return (text, f"DATE'{text}'") if type_ == "date" else (text, text)

    def _head(self) -> tuple[str, list[str], str]:
        names = list(self._types)
        keys = self._random.sample(names, min(len(names), self._random.choice((0, 3, 3, 3, 4, 4, 4, 4))))
        source = f"FROM {', '.join(self._tables)}" + self._conditions()
        if self._random.random() < 0.6:
            keys = keys or names[:1]
            columns = ", ".join(f"{self._sql[name]} AS {name}" for name in keys)
            return f"h({', '.join(keys)})", keys, f"SELECT DISTINCT {columns} {source}"
        calls: list[tuple[str, str]] = [("count()", "count(*)")]
        for name in names:
            functions = ("min", "max") if self._types[name] not in ("boolean", "float", "double") else ()
            if self._types[name] in SUMMED and "-9223372036854775807" not in VALUES[self._types[name]]:
                functions = (*functions, "sum")
            calls += [(f"{function}({name})", f"{function}({self._sql[name]})") for function in functions]
        chosen = self._random.sample(calls, min(len(calls), self._random.choice((1, 1, 2, 3))))
        shown = [*keys, *(f"x{place}" for place in range(len(chosen)))]
        group = ", ".join(self._sql[name] for name in keys)
        columns = [f"{self._sql[name]} AS {name}" for name in keys]
        columns += [f"{sql} AS x{place}" for place, (_, sql) in enumerate(chosen)]
        terms = [*keys, *(f"x{place}: {rule}" for place, (rule, _) in enumerate(chosen))]
        grouped = f" GROUP BY {group}" if keys else ""
        return (
            f"h({', '.join(terms)})",
            shown,
            f"SELECT {', '.join(columns)} {source}{grouped} HAVING count(*) > 0",
        )

    def _conditions(self) -> str:
        return f" WHERE {' AND '.join(self._where)}" if self._where else ""

    def _condition(self, shown: list[str]) -> str:
        column = self._random.choice(shown)
        type_ = self._types.get(column, "")
        if type_ in ORDERED and self._random.random() < 0.8:
            return f"{column} {self._random.choice(('<', '>=', '<>', '='))} {self._literal(type_)[1]}"
        return f"{column} IS {self._random.choice(('', 'NOT '))}NULL"


def refuse_differences(spark: SparkSession, drawn: SparkProgram) -> None:
    """A program by cells and by Spark's operators, whole and asked for less, has the rows of its SQL."""
    frames = drawn.frames(spark)
    expected = found_rows(spark.sql(drawn.sql))
    fewer = f"SELECT * FROM ({drawn.sql}) WHERE {drawn.condition}"
    some = found_rows(spark.sql(fewer))
    shown = found_rows(spark.sql(f"SELECT DISTINCT {', '.join(drawn.shown)} FROM ({fewer})"))
    types = []
    for when in ("cyclic", "always"):
        joined = partial(join, drawn.rule, frames, nulls="keep", partitions=2, when=when)
        found = joined()
        types.append([(field.name, field.dataType) for field in found.schema])
        assert found_rows(found) == expected, drawn
        assert found_rows(joined(where=drawn.condition)) == some, drawn
        assert found_rows(joined(where=drawn.condition, columns=drawn.shown)) == shown, drawn
    assert types[0] == types[1], drawn


def refuse_other_chains(spark: SparkSession, drawn: SparkProgram, random: Random, **options: Any) -> None:
    """What is asked of a join's DataFrame by methods is what Spark's methods find in its rows.

    Rows are there as often; of what a limit leaves so many, and of those that are there without it.
    """
    found = join(drawn.rule, drawn.frames(spark), nulls="keep", partitions=2, **options)
    rows = spark.createDataFrame(found.collect(), found.schema)
    unlimited, limited, done = rows, False, []
    for _ in range(random.randint(2, 5)):
        name, args = _drawn_step(random, rows.columns, drawn, limited)
        done.append((name, args))
        found, rows = getattr(found, name)(*args), getattr(rows, name)(*args)
        assert found.columns == rows.columns, (drawn, done)
        if name == "limit":
            limited = True
        else:
            unlimited = getattr(unlimited, name)(*args)
    expected, there = found_rows(rows), found_rows(found)
    if limited:
        assert there.total() == expected.total(), (drawn, done)
        assert there <= found_rows(unlimited), (drawn, done)
    else:
        assert there == expected, (drawn, done)


def _drawn_step(
    random: Random, columns: list[str], drawn: SparkProgram, limited: bool
) -> tuple[str, tuple[Any, ...]]:
    """A method's name and its arguments; ``limited``: a limit was asked before, so not all rows are known."""
    some = random.sample(columns, random.randint(1, len(columns)))
    steps: list[tuple[str, tuple[Any, ...]]] = [("select", tuple(some)), ("select", (some,))]
    if len(some) < len(columns):
        steps.append(("drop", tuple(some)))
    steps.append(("limit", (random.randint(0, 9),)))
    if not limited:
        steps += [("distinct", ()), ("dropDuplicates", ()), ("orderBy", tuple(some))]
        column = random.choice(columns)
        steps.append(("where", (f"{column} IS NOT NULL",)))
        steps.append(("filter", (F.col(column).isNotNull() | F.col(column).isNull(),)))
        if drawn.condition.split()[0] in columns:
            steps += 3 * [("where", (drawn.condition,))]
    return random.choice(steps)


def refuse_other_batches(
    spark: SparkSession, drawn: SparkProgram, random: Random, state: Path, **options: Any
) -> None:
    """A program that is kept has the rows of its SQL after each batch, and batches tell what has changed."""
    kept = MaintainedJoin(drawn.rule, drawn.frames(spark), state=state, nulls="keep", **options)
    before, rows = found_rows(spark.sql(drawn.sql)), dict(drawn.rows)
    assert found_rows(kept.table()) == before, drawn
    for _ in range(2):
        changes = {}
        for name, types in drawn.columns.items():
            there = list(dict.fromkeys(map(_as_value, rows[name])))
            goes = random.sample(there, len(there) // 4)
            comes = [row for row in drawn_rows(random, types, 12) if _as_value(row) not in goes]
            weights = (-1,) * len(goes) + (1,) * len(comes)
            changes[name] = frame_of(spark, types, (*goes, *comes), weights)
            rows[name] = (*(row for row in there if row not in goes), *comes)
        found = found_rows(kept.apply(changes))
        replace(drawn, rows=rows).frames(spark)
        after = found_rows(spark.sql(drawn.sql))
        expected = Counter({(*row, 1): n for row, n in (after - before).items()})
        expected.update({(*row, -1): n for row, n in (before - after).items()})
        assert found == expected, drawn
        assert found_rows(kept.table()) == after, drawn
        before = after
    kept.check()
    kept.close()


def _as_value(row: Row) -> Row:
    """Rows of equal values as equal texts."""
    return tuple("0.0" if text == "-0.0" else text for text in row)


def dense_edges(spark: SparkSession) -> DataFrame:
    """A graph of 12 vertices in which paths and triangles are many: ``src``, ``dst``."""
    random = Random(3)
    pairs = {(random.randrange(12), random.randrange(12)) for _ in range(70)}
    return spark.sql(f"SELECT * FROM VALUES {', '.join(map(str, sorted(pairs)))} t(src, dst)")
