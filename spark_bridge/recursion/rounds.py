"""A recursion by rounds: each is a join of what the last one found, and is checkpointed.

Invariants

1. What is read from outside is checkpointed first: every round reads the same rows.
2. ``before`` has each tuple once, of best values one per key; ``new`` are those of it that the round before
   the last did not have.

Cost: a round is a job or two for each head, however little comes of it, and three shuffles at most: two of
the join, one for what is there already.  Checkpoints are local, on the disks and in the memory of executors,
and go when nothing refers to them; where ``spark.checkpoint.dir`` is set they are files there, which outlive
an executor.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lftj.errors import FunctionalConflictError, RoundLimitError
from lftj.evaluation.request import MAX_ROUNDS
from lftj.language.syntax import Program
from lftj.values.shown_text import counted
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.job_names import jobs_named
from spark_bridge.placing.recursive_rule import RecursiveRule
from spark_bridge.placing.schemas import spark_schema
from spark_bridge.recursion.step_rules import before, beginning, best_of, following, new

MOST_ROUNDS = 100
"""Where nothing else is said: each takes a second or so."""

MOST_PIECES = 16
"""Rounds whose tuples lie apart before they are put together."""

_log = logging.getLogger(__name__)

Evaluate = Callable[[ProgramText, Mapping[str, DataFrame], Mapping[str, int]], DataFrame]
"""The rows of a program's head over relations, of which each has so many rows."""


def most_rounds(text: ProgramText) -> int:
    """After how many rounds with new tuples a recursion of the program is given up."""
    return MOST_ROUNDS if text.max_rounds == MAX_ROUNDS else text.max_rounds


def found_by_rounds(
    text: ProgramText, head: int, frames: Mapping[str, DataFrame], partitions: int, evaluate: Evaluate
) -> DataFrame:
    """The rows of a head, by number of its plan; runs the rounds.

    ``frames``: of what its rules read.  ``partitions``: of what is put together of many rounds.

    Raises RoundLimitError, and Spark's PythonException for what is wrong with the data.
    """
    plan = text.plans()[head]
    rule = plan.by_rounds
    assert rule is not None
    session = next(iter(frames.values())).sparkSession
    schemas = {name: text.schema_of(name) for name in rule.component}
    rounds = _Rounds(text, rule, session, evaluate, {**text.schemas(head), **_both(schemas)})
    with jobs_named(session, f"{plan.name}: what its rounds read"):
        for name in plan.reads:
            rounds.read(name, frames[name])
    for name, schema in schemas.items():
        rounds.heads[name] = _Head.empty(session, schema, best_of(rule, name), partitions)
    limit = most_rounds(text)
    while rounds.step():
        if rounds.number > limit:
            rules = "".join(f"\n  {one.strip()}" for one in rule.texts)
            raise RoundLimitError(
                f"the recursion of {', '.join(rule.component)} still gave new tuples after"
                f" {counted(limit, 'round')}, {rounds.n_new:,} in the last one: bound what rules compute by"
                " a comparison, allow more with max_rounds=, or evaluate it in one process, by lftj.Database"
                f" or MaintainedJoin(where='driver'){rules}"
            )
    with jobs_named(session, f"{plan.name}: what its rounds found"):
        for name, found in rounds.heads.items():
            _refuse_conflicts(rule, name, found)
    return rounds.heads[plan.name].rows.toDF(*plan.arrow_schema.names)


def _both(schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Schema]:
    return {called(name): schema for name, schema in schemas.items() for called in (new, before)}


def _refuse_conflicts(rule: RecursiveRule, name: str, found: _Head) -> None:
    """Raise FunctionalConflictError where rounds gave a functional head two values for a key."""
    (written,) = next(part.syntax.heads for part in rule.parts if part.name == name)
    if written.value is None or found.best is not None:
        return
    *keys, value = found.schema.names
    values = F.min(value), F.max(value), F.count("*").alias("of a key")
    groups = found.rows.groupBy(*keys, F.lit(True)).agg(*values).drop("true")
    for *key, least, most, _ in groups.where("`of a key` > 1").limit(1).collect():
        texts = "".join(f"\n  {one.strip()}" for one in rule.texts)
        raise FunctionalConflictError(
            f"{name}[{', '.join(map(str, key))}] has two values, {least} and {most};"
            f" a functional head takes one per key{texts}"
        )


@dataclass
class _Head:
    """``rows``: of all rounds, in ``pieces`` checkpoints; ``new``: of the last one, ``n_new`` of them.

    ``schema``: of the columns, which have the names of their places.
    """

    schema: StructType
    best: str | None
    partitions: int
    rows: DataFrame
    new: DataFrame
    n_rows: int = 0
    n_new: int = 0
    pieces: int = 0

    @classmethod
    def empty(cls, session: SparkSession, schema: pa.Schema, best: str | None, partitions: int) -> _Head:
        types = spark_schema(pa.schema([(f"c{n}", field.type) for n, field in enumerate(schema)]))
        nothing = session.createDataFrame([], types)
        return cls(types, best, partitions, nothing, nothing)

    def take(self, found: DataFrame | None) -> None:
        """Take in what a round found."""
        if found is None:
            self.new, self.n_new = self.rows.limit(0), 0
            return
        columns = [F.col(one.name).cast(one.dataType).alias(one.name) for one in self.schema]
        typed = found.toDF(*self.schema.names).select(*columns)
        if self.best is None:
            self.new, self.n_new = kept(typed.subtract(self.rows))
            self.rows, self.n_rows = self.rows.unionAll(self.new), self.n_rows + self.n_new
            self.pieces += 1
            if self.pieces == MOST_PIECES:
                self.rows, _ = kept(self.rows.coalesce(self.partitions))
                self.pieces = 1
            return
        *keys, value = self.schema.names
        choose = F.min if self.best == "min" else F.max
        both = self.rows.unionAll(typed)
        grouped = both.groupBy(
            *keys, F.lit(True).alias("of no key")
        )  # without any there is no row of nothing
        rows, self.n_rows = kept(grouped.agg(choose(value).alias(value)).drop("of no key"))
        self.new, self.n_new = kept(rows.subtract(self.rows))
        self.rows = rows


@dataclass
class _Rounds:
    """The rounds of a component, ``number`` of them with new tuples, ``n_new`` in the last one."""

    text: ProgramText
    rule: RecursiveRule
    session: SparkSession
    evaluate: Evaluate
    schemas: Mapping[str, pa.Schema]
    heads: dict[str, _Head] = field(default_factory=dict)
    number: int = 0
    n_new: int = 0
    _frames: dict[str, DataFrame] = field(default_factory=dict)
    _rows: dict[str, int] = field(default_factory=dict)

    def read(self, name: str, frame: DataFrame) -> None:
        """Keep a relation that the rules read."""
        self._frames[name], self._rows[name] = kept(frame)

    def step(self) -> bool:
        """Another round; whether it found new tuples."""
        started = time.perf_counter()
        names, number = ", ".join(self.rule.component), self.number + 1
        with jobs_named(self.session, f"{names}: round {number}"):
            found = {name: self._found(name) for name in self.rule.component}
            for name, frame in found.items():
                self.heads[name].take(frame)
        self.n_new = sum(head.n_new for head in self.heads.values())
        n_rows, seconds = sum(head.n_rows for head in self.heads.values()), time.perf_counter() - started
        told = f"{counted(self.n_new, 'new tuple')} in {seconds:.1f} s, {n_rows:,} in all"
        _log.info("%s: round %s, %s", names, f"{number:,}", told)
        self.number += self.n_new > 0
        return self.n_new > 0

    def _found(self, head: str) -> DataFrame | None:
        """What the rules of a head give by what the last round found; None: nothing, without looking."""
        changed = [name for name, of in self.heads.items() if of.n_new]
        first = self.number == 0
        trees = beginning(self.rule, head) if first else following(self.rule, head, changed)
        frames, rows = dict(self._frames), dict(self._rows)
        for name, of in self.heads.items():
            frames |= {new(name): of.new, before(name): of.rows}
            rows |= {new(name): of.n_new, before(name): of.n_rows}
        found = [self.evaluate(self._program(tree, head), frames, rows) for tree in trees]
        return reduce(DataFrame.unionAll, found) if found else None

    def _program(self, tree: Program, head: str) -> ProgramText:
        return replace(self.text, head=head, relations=tuple(self.schemas.items()), streams=(), tree=tree)


def kept(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows as they are now, checkpointed, and their number."""
    directory = frame.sparkSession.conf.get("spark.checkpoint.dir", None)
    found = frame.checkpoint(eager=False) if directory else frame.localCheckpoint(eager=False)
    return found, found.count()
