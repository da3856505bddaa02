"""`join`: a rule over Spark DataFrames, as a DataFrame.

Per head of the program one shuffle of its inputs, as packets (:mod:`spark_bridge.placing.packets`),
and one Python pass behind it that evaluates the cells; a second, small shuffle where cells
have to be combined.  Everything is a plan of public DataFrame operations: nothing runs
before an action, and Classic and Connect run the same.
"""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from lftj.errors import CartesianProductWarning, LimitError, NoCycleWarning, OrderError, SourceError
from lftj.evaluation.request import MAX_ROUNDS
from lftj.language.diagnostics import suggestion
from lftj.language.several_aggregates import shown_name
from spark_bridge.acyclic.equal_meaning import OnlyCells, counts
from spark_bridge.acyclic.own_head import OwnHead, own_heads
from spark_bridge.acyclic.own_operators import Source, own_frame, refuse_only_cells
from spark_bridge.cells.cell_search import CellSearch
from spark_bridge.cells.combining import Combining
from spark_bridge.narrowing.asked_frame import asked_behind
from spark_bridge.narrowing.fewer import at_most
from spark_bridge.narrowing.narrowed_rules import Asked, Condition, Narrowed, narrowed, with_columns_of
from spark_bridge.placing.grids import HeadGrids, given_grids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.join_stats import JoinStats
from spark_bridge.placing.key_sample import plan_frame
from spark_bridge.placing.known_sizes import counted_grids, small_grids
from spark_bridge.placing.packets import SPARK_SCHEMA
from spark_bridge.placing.placing import InputNulls, Placer, check_nulls
from spark_bridge.placing.read_columns import ReadColumns, checked_keys, read_program
from spark_bridge.placing.recursive_rule import RecursiveRule
from spark_bridge.placing.schemas import spark_schema
from spark_bridge.placing.tagged_input import TaggedInput, TagReader, plan_of
from spark_bridge.placing.worker_process import Batches, TaskFunction, in_worker
from spark_bridge.recursion.rounds import found_by_rounds

MOST_PARTITIONS = 1_000_000

When = Literal["always", "cyclic"]
"""Of which heads cells are searched: of all, or of those that have a cycle."""

OwnFrame = Callable[[Mapping[str, DataFrame]], DataFrame]
"""A head by Spark's own operators, over other heads."""

BY_OWN = "no cycle: by Spark's own operators"
OWN_IS_QUICKER = (
    'no cycle: if it joins by foreign keys Spark\'s own plan will be quicker; when="cyclic", without shares=,'
    " takes it"
)


def join(
    rule: str,
    relations: Mapping[str, DataFrame],
    *,
    head: str | None = None,
    partitions: int | None = None,
    shares: Mapping[str, int] | None = None,
    nulls: InputNulls = "refuse",
    when: When = "cyclic",
    key: Mapping[str, Sequence[str]] | None = None,
    where: Condition | Sequence[Condition] = (),
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    max_rounds: int | None = None,
    stats: JoinStats | None = None,
) -> DataFrame:
    """The rows of a head as a DataFrame, each once; lazy, as any DataFrame operation is.

    ``relations``: by the names that the rule reads; columns count by their place.  ``head``: which head's
    rows, by default the last rule's only head.  ``partitions``: of each shuffle, by default
    ``spark.sql.shuffle.partitions``, in local mode at most one per thread.  ``shares``: into how many parts
    each variable's values are cut; by default what sends least, by a sample taken when the query runs, or
    without one where the inputs are known to be small and the partitions are few.
    ``nulls="drop"`` leaves out rows with a NULL, ``"keep"`` keeps them, but for columns that Spark declares
    NOT NULL; rules treat them as :class:`lftj.Database` does.  Heads may hold NULL whatever is said here.

    Heads whose bodies have no cycle are joined and aggregated by Spark's own operators, where these give the
    same rows: quicker for joins by foreign keys.  One ``count`` or ``sum`` over a relation that meets itself,
    and has no ``key``, is left to cells, which don't go through each path.  NULL that is refused and NaN are
    Spark's errors then, with our text.  ``when="always"`` asks for cells, and ``shares`` do; NoCycleWarning
    then says that Spark's own plan may be quicker, once for each place of a call.
    ``key``: by relation, columns in which no two of its rows agree: these operators then need not make its
    rows distinct where they are counted, a shuffle of a large relation.  Nobody looks whether that is so.

    ``where``: conditions of the head's columns, as ``DataFrame.where`` takes them; rows of relations that
    don't meet one, where it is about columns of one relation, are not sent, nor looked at for NULL.
    ``columns``: those of the head that are wanted, their rows each once.  ``limit``: so many rows, whichever
    they are, behind which tasks search no further.  What is asked of the DataFrame right behind by its own
    methods reaches the join as these (:mod:`spark_bridge.narrowing.asked_frame`), not over Connect.

    A head that depends on itself is found by cells where a column of it stays the same in each rule.  Where
    none does this call finds it, by rounds of jobs (:mod:`spark_bridge.recursion.rounds`), or with ``shares``
    one task.  ``max_rounds``: rounds with new tuples after which a recursion is given up, by default 100, in
    a cell 1,000,000.  ``stats``: has what the first action sent and found; what is asked of the DataFrame is
    then asked of its rows.

    Raises RuleError, SourceError, UnsupportedTypeError and LimitError at once, and RoundLimitError; errors in
    the data (NullError, NanError, RangeError, FunctionalConflictError, EvaluationError) come out of the
    action, or of this call where it runs rounds, as PySparkException, whose text has ours.
    """
    check_nulls(nulls)
    check_when(when)
    asked = checked_asked(where, columns, limit)
    rounds, keys = checked_rounds(max_rounds), checked_keys(key or {}, relations)
    whole = Joining(rule, relations, head, partitions, shares, nulls, when, rounds, frozenset(keys), stats)
    rules = (one for plan in whole.read[0].plans() for one in plan.rules)
    for warning in (found for one in rules for found in one.products()):
        warnings.warn(warning, CartesianProductWarning, stacklevel=2)
    if stats is not None:
        stats.begin()
    frame = whole.frame(asked)
    quicker = [name for name, choice in whole.choices.items() if choice == OWN_IS_QUICKER]
    if quicker:
        warnings.warn(f"{quicker[-1]!r} has {OWN_IS_QUICKER}\n  {rule.strip()}", NoCycleWarning, stacklevel=2)
    if stats is not None or not whole.may_join_again:
        return frame
    return asked_behind(frame, asked, whole.schema, whole.fewer)


def checked_asked(
    where: Condition | Sequence[Condition], columns: Sequence[str] | None, limit: int | None
) -> Asked:
    """What is asked of a join.  Raises SourceError for no columns, or one twice, and LimitError."""
    conditions = (where,) if isinstance(where, str | Column) else tuple(where)
    if columns is not None and (isinstance(columns, str) or not columns or len(set(columns)) < len(columns)):
        raise SourceError(f"columns is {columns!r}; it names columns of the head, at least one, each once")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise LimitError(f"limit is {limit!r}; it is a whole number from 0")
    return Asked(conditions, None if columns is None else tuple(columns), limit)


def checked_rounds(max_rounds: int | None) -> int:
    """Rounds of a recursion as a program has them.  Raises LimitError."""
    if max_rounds is not None and (isinstance(max_rounds, bool) or max_rounds < 1):
        raise LimitError(f"max_rounds is {max_rounds!r}; it is a whole number from 1")
    return MAX_ROUNDS if max_rounds is None else max_rounds


@dataclass(frozen=True)
class Joining:
    """A program over relations, with the arguments of :func:`join`; ``keyed``: relations with a key."""

    rule: str
    relations: Mapping[str, DataFrame]
    head: str | None
    partitions: int | None
    shares: Mapping[str, int] | None
    nulls: InputNulls
    when: When
    max_rounds: int = MAX_ROUNDS
    keyed: frozenset[str] = frozenset()
    stats: JoinStats | None = None

    @functools.cached_property
    def read(self) -> tuple[ProgramText, Mapping[str, DataFrame], ReadColumns]:
        """The program, and the relations as it reads them; raises as ``read_program`` does."""
        text, frames, columns = read_program(self.rule, self.head, self.relations, self.nulls)
        return replace(text, max_rounds=self.max_rounds), frames, columns

    @property
    def n_partitions(self) -> int:
        return chosen_partitions(next(iter(self.relations.values())).sparkSession, self.partitions)

    def narrowed(self, asked: Asked, like: DataFrame | None = None) -> tuple[Joining, Narrowed]:
        """The joining of the program for what is asked; ``like``: whose columns conditions may have, too.

        Raises SourceError for a column that is none.
        """
        plan, schema = self.read[0].plans()[-1], self.schema
        for name in asked.columns or ():
            if name not in schema.names:
                message = f"columns= names {name!r}{suggestion(name, schema.names)}: {plan.name!r} has none"
                raise SourceError(message)
        wanted = schema.names if asked.columns is None else asked.columns
        is_whole = not asked.where and set(wanted) == set(schema.names)
        if is_whole or isinstance(plan.rules[0], RecursiveRule):  # whose rows rest on others of it
            return self, Narrowed(self.rule, plan.name, self.relations, asked.where, ())
        found = narrowed(self.rule, plan.name, schema, self.relations, asked.where, wanted, like)
        return replace(self, rule=found.rule, head=found.head, relations=found.relations), found

    def heads(
        self, most: int | None = None, *, run_rounds: bool = True
    ) -> tuple[ProgramText, Mapping[str, DataFrame]]:
        """The program, its relations and heads; ``most``: of the result's rows that a task gives.

        ``run_rounds``: else heads by rounds, and what reads them, are left out.
        """
        text, read, _ = self.read
        own = {
            name: functools.partial(self._own, head)
            for name, head in own_heads(text).items()
            if self.choices.get(name) == BY_OWN
        }
        options = (self.n_partitions, self.shares, self.nulls, own, most, run_rounds, self.stats)
        return text, head_frames(text, read, *options)

    def _own(self, head: OwnHead, heads: Mapping[str, DataFrame]) -> DataFrame:
        """A head by Spark's own operators over the relations and heads."""
        text, _, columns = self.read
        bodies = [body for rule in head.rows.rules for body in rule.checked.bodies]
        counted = {atom.relation for body in bodies for atom in body.atoms} if counts(head) else set()
        sources = {}
        for name, schema in _schemas(text, head).items():
            if name in self.relations:
                frame, of = self.relations[name], columns.relations[name]
                once = of.each_once(frame) if name in counted - self.keyed else None
                sources[name] = Source(frame, schema, of.schema, of.read, once)
            else:
                sources[name] = Source(heads[name], schema, spark_schema(schema), schema.names)
        return own_frame(head, sources, self.nulls, bag=False)

    @property
    def schema(self) -> StructType:
        """That of the head."""
        return spark_schema(self.read[0].plans()[-1].arrow_schema)

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def frame(self, asked: Asked) -> DataFrame:
        """The rows that are asked for."""
        frame = self._rows(asked, *self.narrowed(asked))
        return frame if asked.most is None else frame.limit(asked.most)

    def fewer(self, asked: Asked, like: DataFrame) -> DataFrame | None:
        """The rows that are asked for, of each task ``most``; None where the join has no less to do.

        ``like``: those of this joining, whose columns conditions may have.
        """
        known = like if any(isinstance(one, Column) for one in asked.where) else None
        joining, found = self.narrowed(asked, known)
        n_columns = len(joining.names)
        ends = asked.most is not None and not found.behind and n_columns == len(asked.columns or self.names)
        is_less = found.pushed or ends or n_columns < len(self.names)
        return self._rows(asked, joining, found, known) if is_less else None

    def _rows(
        self, asked: Asked, joining: Joining, found: Narrowed, like: DataFrame | None = None
    ) -> DataFrame:
        names = joining.names
        shown = names if asked.columns is None else list(asked.columns)
        projected = len(names) > len(shown)  # the rows of what is left may be equal
        text, frames = joining.heads(None if found.behind or projected else asked.most)
        frame = frames[text.plans()[-1].name]
        if found.behind and like is not None:
            frame = with_columns_of(like, frame)
        frame = functools.reduce(DataFrame.where, found.behind, frame)
        if shown != names:
            frame = frame.select(*(f"`{name}`" for name in shown))
        return frame.distinct() if projected else frame

    @property
    def may_join_again(self) -> bool:
        """Whether what is asked of the rows is worth another plan.

        It is not of recursive heads, whose rows rest on others, nor where the call itself has run rounds, nor
        of Spark's own operators, which it reaches by itself.
        """
        plans = self.read[0].plans()
        is_recursive = isinstance(plans[-1].rules[0], RecursiveRule)
        by_rounds = any(takes_rounds(plan, self.shares) for plan in plans)
        return not (is_recursive or by_rounds or self.choices.get(shown_name(plans[-1].name)) == BY_OWN)

    @functools.cached_property
    def choices(self) -> dict[str, str]:
        """By head without a cycle, what is to be said of that."""
        text, _, columns = self.read
        types = {name: of.schema for name, of in columns.relations.items()}
        types |= {plan.name: spark_schema(plan.arrow_schema) for plan in text.plans()}
        by_own = self.when == "cyclic" and self.shares is None
        found = {}
        for name, head in own_heads(text).items():
            if head.has_no_cycle:
                try:
                    refuse_only_cells(head, _schemas(text, head), types)
                except OnlyCells as reason:
                    found[name] = f"no cycle, and by cells: {reason}"
                else:
                    alone = OWN_IS_QUICKER if head.joins else "no cycle, and no join"
                    found[name] = (self._counted_paths(head) or BY_OWN) if by_own else alone
        return found

    def _counted_paths(self, head: OwnHead) -> str | None:
        """Why cells are quicker for a head without a cycle that counts; None where they may not be.

        Several aggregates are a head each there.
        """
        met = [name for name in head.meet_themselves if name not in self.keyed]
        if not met or not counts(head) or len(head.aggregates) > 1:
            return None
        return (
            f"no cycle, and by cells: {met[0]!r} meets itself, and they count some of the paths without going"
            f" through each; with key={{{met[0]!r}: ...}} Spark's own operators count them"
        )


def check_when(when: str) -> None:
    """Raise ValueError for what ``when=`` can't be."""
    if when not in ("always", "cyclic"):
        raise ValueError(f"when is {when!r}; it can be 'always' or 'cyclic'")


def head_frames(
    text: ProgramText,
    relations: Mapping[str, DataFrame],
    partitions: int,
    shares: Mapping[str, int] | None,
    nulls: InputNulls,
    own: Mapping[str, OwnFrame] | None = None,
    most: int | None = None,
    run_rounds: bool = True,
    stats: JoinStats | None = None,
) -> Mapping[str, DataFrame]:
    """The relations, and the heads that a program's result depends on as DataFrames over them.

    ``own``: heads that Spark's own operators give over relations and heads.
    ``most``: of the result's rows that a task gives.  ``run_rounds``: else heads by rounds, and what reads
    them, are left out.
    """
    frames = ChainMap[str, DataFrame]({}, cast("MutableMapping[str, DataFrame]", relations))
    plans, own = text.plans(), own or {}
    for number, plan in enumerate(plans):
        wanted = most if plan is plans[-1] else None
        if not run_rounds and (takes_rounds(plan, shares) or any(name not in frames for name in plan.reads)):
            continue
        if takes_rounds(plan, shares):
            evaluate = functools.partial(_step, partitions, nulls)
            frames[plan.name] = found_by_rounds(text, number, frames, partitions, evaluate)
        elif shown_name(plan.name) not in own:
            given = known_grids(text, number, relations, partitions, shares)
            options = (partitions, given, nulls, wanted, stats)
            frames[plan.name] = head_frame(text, number, plan, frames, *options)
        elif plan.name in own:
            frames[plan.name] = own[plan.name](frames)
    return frames


def takes_rounds(plan: HeadPlan, shares: Mapping[str, int] | None) -> bool:
    """Whether a head is found by rounds: with shares by hand one cell finds it."""
    return plan.by_rounds is not None and shares is None


def _step(
    partitions: int,
    nulls: InputNulls,
    text: ProgramText,
    frames: Mapping[str, DataFrame],
    rows: Mapping[str, int],
) -> DataFrame:
    """What a step of a recursion gives over relations of so many ``rows``."""
    (plan,) = text.plans()
    given = counted_grids(rows, text.schemas(0), plan, partitions)
    return head_frame(text, 0, plan, frames, partitions, given, nulls)


def _schemas(text: ProgramText, head: OwnHead) -> dict[str, pa.Schema]:
    """The schemas of what a head reads as it is written."""
    known = dict(text.sources) | {plan.name: plan.arrow_schema for plan in text.plans()}
    return {name: known[name] for name in head.rows.reads}


def known_grids(
    text: ProgramText,
    head: int,
    relations: Mapping[str, DataFrame],
    partitions: int,
    shares: Mapping[str, int] | None,
) -> HeadGrids | None:
    """The grids of a head that are known before the query runs; None where they take a sample."""
    plans = text.plans()
    if shares is not None:
        return checked_grids(plans, plans[head], shares, partitions)
    return small_grids(relations, plans[head], partitions)


def head_frame(
    text: ProgramText,
    head: int,
    plan: HeadPlan,
    frames: Mapping[str, DataFrame],
    partitions: int,
    given: HeadGrids | None,
    nulls: InputNulls,
    most: int | None = None,
    stats: JoinStats | None = None,
) -> DataFrame:
    """A head over the relations and heads that it reads; without ``given`` grids by a sample of these.

    ``most``: rows that a task gives, of None all.  ``stats``: count what passes.
    """
    schemas = text.schemas(head)
    tagged = TaggedInput.of(frames, list(schemas.items()))
    combining = plan.combined_in(partitions)
    search = CellSearch(text, head, schemas, combining)
    read = tagged if stats is None else stats.inputs(plan.name, tagged)
    rows = read.frame if given is not None else read.with_plan(plan_frame(tagged, text, head, partitions))
    place = in_worker(placing(tagged.reader(), text, head, given, nulls), f"{plan.name}: place rows")
    packets = rows.mapInArrow(place, SPARK_SCHEMA)
    packets = packets if stats is None else stats.packets(plan.name, packets)
    placed = packets.repartitionById(partitions, "pid")
    schema, does = spark_schema(plan.arrow_schema), f"{plan.name}: search cells"
    if plan.crosses:
        contributed = placed.mapInArrow(in_worker(search.packets, does), SPARK_SCHEMA)
        combined = in_worker(at_most(most, Combining(text, head).rows), f"{plan.name}: combine")
        found = contributed.repartitionById(combining, "pid").mapInArrow(combined, schema)
    else:
        found = placed.mapInArrow(in_worker(at_most(most, search.rows), does), schema)
    return found if stats is None else stats.found(plan.name, found)


def placing(
    reader: TagReader, text: ProgramText, head: int, given: HeadGrids | None, nulls: InputNulls
) -> TaskFunction:
    """What a task of the inputs does; without ``given`` grids it takes those that its first row carries."""

    def place(batches: Batches) -> Batches:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        grids = given
        if grids is None:
            carried = plan_of(first)
            assert carried is not None, "a task's first row has the plan"
            grids = HeadGrids.from_json(carried.decode())
        placer = Placer(text.plans()[head], grids, nulls)
        yield from placer.packets(reader, _with_first(first, batches))

    return place


def _with_first(first: pa.RecordBatch, rest: Batches) -> Batches:
    yield first
    yield from rest


def chosen_partitions(session: SparkSession, partitions: int | None) -> int:
    """The number of partitions: the caller's, or the session's setting.

    Raises LimitError when it is not positive or beyond MOST_PARTITIONS.
    """
    if partitions is None:
        partitions = int(session.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        partitions = min(partitions, _local_threads(session) or partitions)
    if (
        isinstance(partitions, bool)
        or not isinstance(partitions, int)
        or not 0 < partitions <= MOST_PARTITIONS
    ):
        raise LimitError(f"partitions is {partitions!r}; it is a whole number from 1 to {MOST_PARTITIONS:,}")
    return partitions


def _local_threads(session: SparkSession) -> int | None:
    """The number of threads in local mode; None on a cluster."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", session.conf.get("spark.master", "") or "")
    if match is None:
        return None
    threads = match[1] or "1"
    return os.cpu_count() if threads == "*" else int(threads)


def checked_grids(
    plans: tuple[HeadPlan, ...], plan: HeadPlan, shares: Mapping[str, int], partitions: int
) -> HeadGrids:
    """Grids by the caller's shares.

    Raises OrderError for a share of what is no axis, or is no number, and LimitError for too many cells.
    """
    if not isinstance(shares, Mapping):
        raise OrderError(f"shares= is a {type(shares).__name__}; it takes numbers by variable: {{'a': 4}}")
    axes = [axis for each in plans for rule in each.rules for axis in rule.axes]
    for name, share in shares.items():
        if name not in axes:
            known = ", ".join(dict.fromkeys(axes)) or "none"
            raise OrderError(
                f"shares= names {name!r}, by which nothing can be cut; variables that can: {known}"
            )
        if isinstance(share, bool) or not isinstance(share, int) or share < 1:
            raise OrderError(f"shares= gives {name!r} {share!r} parts; it is a whole number from 1")
    grids = given_grids(plan, shares, partitions)
    if grids.n_cells > MOST_PARTITIONS:
        raise LimitError(
            f"shares= cuts {plan.name!r} into {grids.n_cells:,} cells, more than {MOST_PARTITIONS:,}"
        )
    return grids
