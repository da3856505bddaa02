"""A head whose bodies have no cycle, by Spark's own joins and aggregates: the rows that cells would give.

    n[g] = count() <- fact(d, _), dim(d, g).     fact.distinct() JOIN dim.distinct() ON d = d GROUP BY g

A body is read in the checker's normal form, where NULL is a value that joins, and tests say where it is none.

Invariants

1. What is given has the head's columns in the types that cells give, each row once; where rows of a relation
   count as often as they are there, as often as there are assignments.
2. NULL that is refused, and NaN, raise for each row of a relation, whatever it joins: the test stands in a
   filter that Spark moves nothing past, as its partition's number makes it another one each time.
3. Texts for Spark hold no name that a caller gave: columns are ``c0``, ``c1`` and so on, by their places.

Cost: Spark's, and of the plan some dozen calls of Java for each atom: as few DataFrames as there can be, as
each is looked through anew, and no view, as dropping one drops what its caller has cached.  Sets are counted,
so relations are made distinct first where a head counts: a shuffle of those that are large.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from lftj.language.body import Body
from lftj.language.syntax import Aggregate, Atom, Constant, Variable
from spark_bridge.acyclic.equal_meaning import AGGREGATES, is_constant, refuse_other_meaning, variables
from spark_bridge.acyclic.own_head import OwnHead
from spark_bridge.front_ends.row_conditions import condition, quoted
from spark_bridge.placing.head_rule import HeadRule
from spark_bridge.placing.placing import InputNulls, null_refused
from spark_bridge.placing.schemas import plain, spark_schema, type_text


def refuse_only_cells(
    head: OwnHead, schemas: Mapping[str, pa.Schema], given: Mapping[str, StructType]
) -> None:
    """Raise OnlyCells for a head that Spark's operators may give otherwise.

    ``schemas``: of the relations and heads that it reads, NOT NULL where there is to be none; ``given``: as
    Spark has them.
    """
    types = {
        name: [(field.type, plain(of.dataType)) for field, of in zip(schema, given[name], strict=True)]
        for name, schema in schemas.items()
    }
    refuse_other_meaning(head, types)


@dataclass(frozen=True)
class Source:
    """A relation or head that bodies read.

    ``schema``: as rules have it, NOT NULL where there is to be none; ``given``: as Spark has it; ``read``:
    columns that are looked at.  ``once``: its rows each once, where the head counts and they may be equal.
    """

    frame: DataFrame
    schema: pa.Schema
    given: StructType
    read: Collection[str]
    once: DataFrame | None = None


def own_frame(head: OwnHead, sources: Mapping[str, Source], nulls: InputNulls, *, bag: bool) -> DataFrame:
    """The head over relations and heads by Spark's operators; one that :func:`refuse_only_cells` takes.

    ``bag``: rows come as often as there are assignments.
    """
    bodies = _Bodies(sources, nulls)
    schema = spark_schema(head.plan.arrow_schema)
    if head.aggregates:
        found = _aggregated(head, bodies, schema)
    else:
        parts = [part for rule in head.rows.rules for part in _rows(rule, bodies, schema)]
        found = functools.reduce(DataFrame.unionAll, parts)
        found = found if bag else found.distinct()
    return found.toDF(*schema.names)


def _rows(rule: HeadRule, bodies: _Bodies, schema: StructType) -> Iterator[DataFrame]:
    """The head's columns by each body of a rule."""
    for body in rule.checked.bodies:
        found = bodies.joined(body)
        yield _shown(found.frame, [found.columns[name] for name in rule.heads[0].columns], schema)


def _aggregated(head: OwnHead, bodies: _Bodies, schema: StructType) -> DataFrame:
    (body,) = head.rows.rules[0].checked.bodies
    found = bodies.joined(body)
    columns, values = [], []
    for n, column in enumerate(head.columns):
        if isinstance(column, Aggregate):
            _, aggregate = AGGREGATES[column.function]
            names = [found.columns[one.name] for one in column.arguments if isinstance(one, Variable)]
            values.append(f"{aggregate(*((name, bodies.types[name]) for name in names))} AS h{n}")
            columns.append(f"h{n}")
        else:
            columns.append(found.columns[column])
    keys = dict.fromkeys(found.columns[name] for name in head.keys)
    values += [] if keys else ["count(1) AS assignments"]
    groups = found.frame.groupBy(*keys).agg(*map(F.expr, values))
    groups = groups if keys else groups.where("assignments > 0")  # over nothing Spark has a row
    return _shown(groups, columns, schema)


def _shown(frame: DataFrame, columns: list[str], schema: StructType) -> DataFrame:
    """Columns in the types of a head's."""
    typed = zip(columns, schema, strict=True)
    return frame.selectExpr(*(f"CAST({column} AS {type_text(field.dataType)})" for column, field in typed))


@dataclass(frozen=True)
class _Placed:
    """Assignments: ``columns`` by variable, the first at which it stands."""

    frame: DataFrame
    columns: Mapping[str, str]


class _Bodies:
    """Joins bodies over relations; ``types`` of all columns in the joins."""

    def __init__(self, sources: Mapping[str, Source], nulls: InputNulls) -> None:
        self._sources, self._nulls = sources, nulls
        self.types: dict[str, DataType] = {}
        self._nullable: set[str] = set()

    def joined(self, body: Body) -> _Placed:
        """The assignments of a body."""
        known = {
            test.left.name
            for test in body.comparisons
            if test.tests_null and test.operator == "<!=>" and isinstance(test.left, Variable)
        }
        waiting = list(body.atoms)
        found = self._atom(waiting.pop(0))
        while waiting:
            bound = found.columns.keys()
            atom = next((one for one in waiting if bound & set(variables(one))), waiting[0])
            waiting.remove(atom)
            found = self._with(found, self._atom(atom), known, "inner")
        of = {name: (column, self.types[column]) for name, column in found.columns.items()}
        tests = []
        for test in body.comparisons:
            said = condition(test, of)
            assert said is not None, "what Spark may compare otherwise is refused before"
            tests.append(said)
        found = _Placed(_where(found.frame, tests), found.columns)
        for atom in body.negations:
            found = self._with(found, self._atom(atom, negated=True), known, "left_anti")
        return found

    def _with(self, left: _Placed, right: _Placed, known: set[str], how: str) -> _Placed:
        """Two joined by their common variables; ``known``: of which no NULL counts."""
        on = []
        for name in [name for name in right.columns if name in left.columns]:
            one, other = left.columns[name], right.columns[name]
            is_plain = name in known or not {one, other} <= self._nullable
            on.append(f"{one} {'=' if is_plain else '<=>'} {other}")
        frame = left.frame.join(right.frame, F.expr(" AND ".join(on) or "true"), how)
        return _Placed(frame, left.columns if how == "left_anti" else {**right.columns, **left.columns})

    def _atom(self, atom: Atom, *, negated: bool = False) -> _Placed:
        """An atom's rows under names of their own, without those that its constants leave out."""
        source = self._sources[atom.relation]
        frame = source.frame if source.once is None or negated else source.once
        names = [f"c{len(self.types) + place}" for place in range(len(source.schema))]
        columns: dict[str, str] = {}
        tests = []
        for name, field, given, term in zip(names, source.schema, source.given, atom.terms, strict=True):
            self.types[name] = plain(given.dataType)
            if field.nullable:
                self._nullable.add(name)
            if isinstance(term, Constant):
                tests.append(is_constant(name, self.types[name], term))
            elif isinstance(term, Variable) and term.name in columns:
                tests.append(f"{columns[term.name]} <=> {name}")
            elif isinstance(term, Variable):
                columns[term.name] = name
        rows = _sound(atom.relation, frame.toDF(*names), names, source, self._nulls)
        return _Placed(_where(rows, tests), columns)


def _where(frame: DataFrame, tests: Collection[str]) -> DataFrame:
    return frame.where(" AND ".join(tests)) if tests else frame


def _sound(
    name: str, rows: DataFrame, columns: Collection[str], source: Source, nulls: InputNulls
) -> DataFrame:
    """A relation without NULL where its schema has none and without NaN; zeros have one sign."""
    kept, wrong, shown = [], [], []
    for column, field, given in zip(columns, source.schema, source.given, strict=True):
        type_, value = plain(given.dataType), column
        if field.name in source.read:
            if given.nullable and not field.nullable and nulls == "drop":
                kept.append(f"{column} IS NOT NULL")
            elif given.nullable and not field.nullable:
                refused = null_refused(name, field.name, nulls)
                wrong.append((f"{column} IS NULL", f"NullError: {refused}"))
            if pa.types.is_floating(field.type):
                where = f"relation {name!r}, column {field.name!r}"
                wrong.append((f"isnan({column})", f"NanError: {where}: NaN"))
                value = f"{column} + CAST(0 AS {type_text(type_)}) AS {column}"
            elif isinstance(type_, StringType) and (type_ != given.dataType or given.metadata):
                value = f"CAST({column} AS STRING) AS {column}"  # which Spark does not pad
        shown.append(value)
    rows = _where(rows, kept)
    if wrong:
        tests = (f"WHEN {test} THEN CAST(raise_error({quoted(said)}) AS BOOLEAN)" for test, said in wrong)
        rows = rows.where(f"CASE {' '.join(tests)} ELSE spark_partition_id() >= 0 END")
    return rows if shown == list(columns) else rows.selectExpr(*shown)
