"""`join`: a rule over Spark DataFrames, as a DataFrame.

Per head of the program one shuffle of its inputs, as packets (:mod:`spark_bridge.placing.packets`),
and one Python pass behind it that evaluates the cells; a second, small shuffle where cells
have to be combined.  Everything is a plan of public DataFrame operations: nothing runs
before an action, and Classic and Connect run the same.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lftj.errors import CartesianProductWarning, LimitError, NoCycleWarning, OrderError
from lftj.language.several_aggregates import shown_name
from spark_bridge.acyclic.equal_meaning import OnlyCells
from spark_bridge.acyclic.own_head import OwnHead, own_heads
from spark_bridge.acyclic.own_operators import own_frame, refuse_only_cells
from spark_bridge.cells.cell_search import CellSearch
from spark_bridge.cells.combining import Combining
from spark_bridge.placing.grids import HeadGrids, given_grids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.key_sample import plan_frame
from spark_bridge.placing.known_sizes import small_grids
from spark_bridge.placing.packets import SPARK_SCHEMA
from spark_bridge.placing.placing import InputNulls, Placer, check_nulls
from spark_bridge.placing.read_columns import read_program
from spark_bridge.placing.schemas import spark_schema
from spark_bridge.placing.tagged_input import TaggedInput, TagReader, plan_of
from spark_bridge.placing.worker_process import Batches, TaskFunction, in_worker

MOST_PARTITIONS = 1_000_000

When = Literal["always", "cyclic"]
"""Of which heads cells are searched: of all, or of those that have a cycle."""

BY_OWN = "no cycle: by Spark's own operators"
OWN_IS_QUICKER = (
    'no cycle: if it joins by foreign keys Spark\'s own plan will be quicker, and when="cyclic" takes it'
)


def join(
    rule: str,
    relations: Mapping[str, DataFrame],
    *,
    head: str | None = None,
    partitions: int | None = None,
    shares: Mapping[str, int] | None = None,
    nulls: InputNulls = "refuse",
    when: When = "always",
) -> DataFrame:
    """The rows of a head as a DataFrame, each once; lazy, as any DataFrame operation is.

    ``relations``: by the names that the rule reads; columns count by their place.  ``head``: which head's
    rows, by default the last rule's only head.  ``partitions``: of each shuffle, by default
    ``spark.sql.shuffle.partitions``, in local mode at most one per thread.  ``shares``: into how many parts
    each variable's values are cut; by default what sends least, by a sample taken when the query runs, or
    without one where the inputs are known to be small and the partitions are few.
    ``nulls="drop"`` leaves out rows with a NULL, ``"keep"`` keeps them, but for columns that Spark declares
    NOT NULL; rules treat them as :class:`lftj.Database` does.  Heads may hold NULL whatever is said here.

    ``when="cyclic"``: heads whose bodies have no cycle are joined and aggregated by Spark's own operators,
    where these give the same rows, which is quicker for joins by foreign keys; NULL that is refused and NaN
    are Spark's errors then, with our text.  Without it NoCycleWarning says so, once for each place of a call.

    Raises RuleError, SourceError, UnsupportedTypeError and LimitError at once; errors in the data (NullError,
    NanError, RangeError, FunctionalConflictError, EvaluationError) come out of the action as Spark's
    PythonException, whose text has ours.
    """
    check_nulls(nulls)
    check_when(when)
    text, read, columns = read_program(rule, head, relations, nulls)
    for warning in (found for plan in text.plans() for rule in plan.rules for found in rule.products()):
        warnings.warn(warning, CartesianProductWarning, stacklevel=2)
    n_partitions = chosen_partitions(next(iter(relations.values())).sparkSession, partitions)
    once = columns.each_once(relations) if when == "cyclic" else None
    frames, choices = head_frames(text, read, n_partitions, shares, nulls, once)
    quicker = [name for name, choice in choices.items() if choice == OWN_IS_QUICKER]
    if quicker:
        warnings.warn(f"{quicker[-1]!r} has {OWN_IS_QUICKER}\n  {rule.strip()}", NoCycleWarning, stacklevel=2)
    return frames[text.plans()[-1].name]


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
    once: Mapping[str, DataFrame] | None = None,
) -> tuple[dict[str, DataFrame], dict[str, str]]:
    """The relations, and the heads that a program's result depends on as DataFrames over them.

    ``once``: the relations with each row once, where heads without a cycle are to be Spark's.  Beside the
    frames, by head without a cycle, what is to be said of that.
    """
    frames, choices = dict(relations), {}
    own = {name: head for name, head in own_heads(text).items() if head.has_no_cycle}
    for number, plan in enumerate(text.plans()):
        name = shown_name(plan.name)
        if name in own and name not in choices:
            choices[name] = _choice(own[name], text, frames, once is not None)
        if choices.get(name) == BY_OWN:
            if name == plan.name:
                schemas = _schemas(text, own[name])
                frames[name] = own_frame(own[name], schemas, frames, nulls, {**frames, **(once or {})})
        else:
            given = known_grids(text, number, relations, partitions, shares)
            frames[plan.name] = head_frame(text, number, plan, frames, partitions, given, nulls)
    return frames, choices


def _choice(head: OwnHead, text: ProgramText, frames: Mapping[str, DataFrame], wanted: bool) -> str:
    """What is to be said of a head without a cycle."""
    try:
        refuse_only_cells(head, _schemas(text, head), frames)
    except OnlyCells as reason:
        return f"no cycle, and by cells: {reason}"
    if wanted:
        return BY_OWN
    return OWN_IS_QUICKER if head.joins else "no cycle, and no join"


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
) -> DataFrame:
    """A head over the relations and heads that it reads; without ``given`` grids by a sample of these."""
    schemas = text.schemas(head)
    tagged = TaggedInput.of(frames, list(schemas.items()))
    combining = plan.combined_in(partitions)
    search = CellSearch(text, head, schemas, combining)
    if given is None:
        rows = tagged.with_plan(plan_frame(tagged, text, head, partitions))
    else:
        rows = tagged.frame
    packets = rows.mapInArrow(in_worker(placing(tagged.reader(), text, head, given, nulls)), SPARK_SCHEMA)
    placed = packets.repartitionById(partitions, "pid")
    schema = spark_schema(plan.arrow_schema)
    if not plan.crosses:
        return placed.mapInArrow(in_worker(search.rows), schema)
    contributed = placed.mapInArrow(in_worker(search.packets), SPARK_SCHEMA)
    combined = in_worker(Combining(text, head).rows)
    return contributed.repartitionById(combining, "pid").mapInArrow(combined, schema)


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
