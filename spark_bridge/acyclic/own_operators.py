"""A head whose bodies have no cycle, by Spark's own joins and aggregates: the rows that cells would give.

    n[g] = count() <- fact(d, _), dim(d, g).     fact.distinct() JOIN dim.distinct() ON d = d GROUP BY g

A body is read in the checker's normal form, where NULL is a value that joins, and tests say where it is none.

Invariants

1. What is given has the head's columns in the types that cells give, each row once; where rows of a relation
   count as often as they are there, as often as there are assignments.
2. NULL that is refused, and NaN, raise for each row of a relation, whatever it joins: the test stands in a
   filter that Spark moves nothing past, as its partition's number makes it another one each time.

Cost: Spark's.  Sets are counted, so relations are made distinct first: a shuffle of those that are large.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from lftj.language.body import Body
from lftj.language.syntax import Aggregate, Atom, Constant, Variable
from spark_bridge.acyclic.equal_meaning import AGGREGATES, is_constant, refuse_other_meaning, variables
from spark_bridge.acyclic.own_head import OwnHead
from spark_bridge.front_ends.row_conditions import condition
from spark_bridge.placing.head_rule import HeadRule
from spark_bridge.placing.placing import InputNulls
from spark_bridge.placing.schemas import plain, spark_schema

Schemas = Mapping[str, pa.Schema]
Frames = Mapping[str, DataFrame]


def refuse_only_cells(head: OwnHead, schemas: Schemas, given: Mapping[str, StructType]) -> None:
    """Raise OnlyCells for a head that Spark's operators may give otherwise.

    ``schemas``: of the relations and heads that it reads, NOT NULL where there is to be none; ``given``: as
    Spark has them.
    """
    types = {
        name: [(field.type, plain(of.dataType)) for field, of in zip(schema, given[name], strict=True)]
        for name, schema in schemas.items()
    }
    refuse_other_meaning(head, types)


def own_frame(
    head: OwnHead, schemas: Schemas, frames: Frames, nulls: InputNulls, once: Frames | None
) -> DataFrame:
    """The head over relations and heads by Spark's operators; one that :func:`refuse_only_cells` takes.

    ``once``: what it reads with each row once.  None: rows count as often as a relation has them, and come as
    often as there are assignments.
    """
    each_once = once is not None and any(AGGREGATES[call.function][0] for call in head.aggregates)
    bodies = _Bodies(schemas, once if once is not None and each_once else frames, nulls)
    schema = spark_schema(head.plan.arrow_schema)
    if head.aggregates:
        found = _aggregated(head, bodies)
    else:
        parts = [part for rule in head.rows.rules for part in _rows(rule, bodies)]
        found = functools.reduce(DataFrame.unionAll, parts)
        found = found if once is None else found.distinct()
    typed = [F.col(f"h{n}").cast(field.dataType) for n, field in enumerate(schema)]
    return found.select(*typed).toDF(*schema.names)


def _rows(rule: HeadRule, bodies: _Bodies) -> Iterator[DataFrame]:
    """The head's columns by each body of a rule, ``h0``, ``h1`` and so on."""
    for body in rule.checked.bodies:
        found = bodies.joined(body)
        names = rule.heads[0].columns
        yield found.frame.select(*(F.col(found.columns[name]).alias(f"h{n}") for n, name in enumerate(names)))


def _aggregated(head: OwnHead, bodies: _Bodies) -> DataFrame:
    (body,) = head.rows.rules[0].checked.bodies
    found = bodies.joined(body)
    values, keys = [F.count(F.lit(1)).alias("rows")], []
    for n, column in enumerate(head.columns):
        if isinstance(column, Aggregate):
            _, aggregate = AGGREGATES[column.function]
            names = [found.columns[one.name] for one in column.arguments if isinstance(one, Variable)]
            value = aggregate(*((F.col(name), bodies.types[name]) for name in names))
            values.append(value.alias(f"h{n}"))
        else:
            keys.append(F.col(found.columns[column]).alias(f"h{n}"))
    return found.frame.groupBy(*keys).agg(*values).where("rows > 0")  # without keys over nothing it has a row


@dataclass(frozen=True)
class _Placed:
    """Assignments: ``columns`` by variable, the first at which it stands."""

    frame: DataFrame
    columns: Mapping[str, str]


class _Bodies:
    """Joins bodies over relations; ``types`` of all columns in the joins."""

    def __init__(self, schemas: Schemas, frames: Frames, nulls: InputNulls) -> None:
        self._schemas = schemas
        self._frames = {name: _sound(name, frames[name], of, nulls) for name, of in schemas.items()}
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
        of = {name: (F.col(column), self.types[column]) for name, column in found.columns.items()}
        for test in body.comparisons:
            said = condition(test, of)
            assert said is not None, "what Spark may compare otherwise is refused before"
            found = _Placed(found.frame.where(said), found.columns)
        for atom in body.negations:
            found = self._with(found, self._atom(atom), known, "left_anti")
        return found

    def _with(self, left: _Placed, right: _Placed, known: set[str], how: str) -> _Placed:
        """Two joined by their common variables; ``known``: of which no NULL counts."""
        on = F.lit(True)
        for name in [name for name in right.columns if name in left.columns]:
            one, other = left.columns[name], right.columns[name]
            is_plain = name in known or not {one, other} <= self._nullable
            equal = F.col(one) == F.col(other) if is_plain else F.col(one).eqNullSafe(F.col(other))
            on = on & equal
        frame = left.frame.join(right.frame, on, how)
        return _Placed(frame, left.columns if how == "left_anti" else {**right.columns, **left.columns})

    def _atom(self, atom: Atom) -> _Placed:
        """An atom's rows under names of their own, without those that its constants leave out."""
        schema, frame = self._schemas[atom.relation], self._frames[atom.relation]
        names = [f"c{len(self.types) + place}" for place in range(len(schema))]
        columns: dict[str, str] = {}
        rows = frame.toDF(*names)
        for name, field, given, term in zip(names, schema, frame.schema, atom.terms, strict=True):
            self.types[name] = given.dataType
            if field.nullable:
                self._nullable.add(name)
            if isinstance(term, Constant):
                rows = rows.where(is_constant(F.col(name), given.dataType, term))
            elif isinstance(term, Variable) and term.name in columns:
                rows = rows.where(F.col(columns[term.name]).eqNullSafe(F.col(name)))
            elif isinstance(term, Variable):
                columns[term.name] = name
        return _Placed(rows, columns)


def _sound(name: str, frame: DataFrame, schema: pa.Schema, nulls: InputNulls) -> DataFrame:
    """A relation without NULL where ``schema`` has none and without NaN; zeros have one sign."""
    places = [f"c{place}" for place in range(len(schema))]
    rows, columns, wrong = frame.toDF(*places), [], []
    for place, field, given in zip(places, schema, frame.schema, strict=True):
        column, where = F.col(place), f"relation {name!r}, column {field.name!r}"
        if given.nullable and not field.nullable and nulls == "drop":
            rows = rows.where(column.isNotNull())
        elif given.nullable and not field.nullable:
            wrong.append((column.isNull(), f"NullError: {where}: NULL, and it holds none"))
        if pa.types.is_floating(field.type):
            wrong.append((F.isnan(column), f"NanError: {where}: NaN"))
            column = column + F.lit(0.0).cast(given.dataType)
        columns.append(column.cast("string") if isinstance(plain(given.dataType), StringType) else column)
    if wrong:
        sound = F.spark_partition_id() >= 0
        for test, said in wrong:
            sound = F.when(test, F.raise_error(F.lit(said)).cast("boolean")).otherwise(sound)
        rows = rows.where(sound)
    return rows.select(*columns).toDF(*places)
