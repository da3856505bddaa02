"""Which relations and heads the commit machine takes, and of the others why not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import pyarrow as pa

from lftj.values.schema import Schema
from lftj.values.unscaled import SCALE
from maintenance.groups.accumulator import Accumulator
from maintenance.groups.distinct_counts import DistinctCounts
from maintenance.groups.shared_scans import Sharer
from maintenance.groups.sums import GroupSums
from maintenance.groups.whole_sums import WholeSums
from maintenance.heads.counted_source import BagSource
from maintenance.heads.head import MaintainedHead
from maintenance.heads.intermediate import Intermediate
from maintenance.heads.maintained_body import RangeBody
from maintenance.heads.operator_head import OperatorSource
from maintenance.heads.rule_body import RuleBody
from maintenance.heads.rule_source import BesideSource
from maintenance.machine.ranges import refusal_of_ranges
from maintenance.machine.row_code import Wanted, refusal_of_rows, texts_of_answers
from maintenance.machine.scans import FUNCTIONS
from maintenance.machine.sources import (
    Aggregates,
    alternatives_of,
    bodies_of,
    constant_row,
    is_taken,
    sharers_of,
    terms_of,
    wanted_of,
)
from maintenance.machine.staged_values import staging_of
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.range_sums import RangeSums
from maintenance.strategies.strategy import HeadSource, Versions


def refusals(versions: Versions, heads: Mapping[str, MaintainedHead]) -> dict[str, str]:
    """By relation and head why it does not go by the machine, of those that don't.

    A head does where all heads that read it do, a base relation likewise.
    """
    functions = {name for name, version in versions.items() if version.schema.functional}
    found = {name: why for name, head in heads.items() if (why := refusal_of_head(head, functions))}
    for name, version in versions.items():
        if name not in heads and (why := refusal_of_schema(version.schema)):
            found[name] = why
    for name, head in reversed(list(heads.items())):
        if name in found:
            for read in head.reads:
                found.setdefault(read, f"{name!r}, which reads it, does not: {found[name]}")
    streams = [name for name, version in versions.items() if version.schema.stream is not None]
    for name in [name for name in streams if name in found][:1]:
        for other in streams:
            found.setdefault(other, f"{name!r}, whose clock it has, does not: {found[name]}")
    return found


def refusal_of_schema(schema: Schema) -> str | None:
    """Why rows of a base relation are not staged as numbers, if so."""
    if schema.stream is not None and schema.wide:
        return "it is a stream of many columns"
    for column in schema.shown.columns:
        if staging_of(column.type) is None:
            return f"its column {column.name!r} is of type {column.type.arrow}"
    return None


def refusal_of_head(head: MaintainedHead, functions: Collection[str]) -> str | None:
    """Why a head can't be stepped by the machine, if so.  ``functions``: heads of one value per key."""
    if head.component:
        return "it depends on itself"
    if head.schema.wide:
        return "its rows are wide"
    if not head.reads_as_functions <= set(functions):
        return "it reads as a function what may have two values of one key"
    (source, *others) = head.sources
    if not others and isinstance(source, BesideSource):
        return None  # it is as the head that has it side by side
    return next(filter(None, map(_refusal_of_source, head.sources)), None)


def _refusal_of_source(source: HeadSource) -> str | None:
    if isinstance(source, OperatorSource):
        return "an operator"
    if isinstance(source, BagSource) and source._head.copies is not None:
        return "how many copies there are is computed"
    if not is_taken(source):
        return "a window, or evaluated whole"
    if isinstance(source, Aggregates):
        accumulators = source._groups._accumulators
        for sharer, accumulator in zip(sharers_of(source), accumulators, strict=False):
            if why := _refusal_of_aggregate(sharer, accumulator, source._intermediate):
                return why
    wanted, alternatives = wanted_of(source), alternatives_of(source)
    if alternatives is not None:
        if why := refusal_of_rows(alternatives.lowered, wanted, alternatives.names):
            return why
        wanted = alternatives.wanted
    return _refusal_of_bodies(bodies_of(source), wanted)


def _refusal_of_aggregate(
    sharer: Sharer, accumulator: Accumulator | None, intermediate: Intermediate
) -> str | None:
    call = sharer.call
    counted = call.function == "count" and accumulator is None
    summed = isinstance(accumulator, WholeSums)
    of_doubles = isinstance(accumulator, GroupSums) and accumulator.is_of_doubles
    if of_doubles and sharer.head.schema.columns[-1].type.arrow != pa.float64():
        return f"{call.function} of floats, as {sharer.head.schema.columns[-1].type.arrow}"
    distinct = isinstance(accumulator, DistinctCounts) and accumulator.counts_one
    if not (counted or summed or of_doubles or distinct or call.function in FUNCTIONS):
        known = "count, sum and avg, min, max, quantiles and count distinct of one variable"
        return f"an aggregate {call.function}, other than {known}"
    if call.function in FUNCTIONS:
        scan = intermediate.own_scan(sharer)
        if scan is None:
            return f"{call.function} by a tree that heads share"
        if scan._labels:
            return f"{call.function} of values whose codes are in no order"
    if summed and sharer.scale is not None and not 0 <= sharer.scale <= SCALE:
        return f"{call.function} of decimals in units of 10**{-sharer.scale}"
    return None


def computed_in_python(head: MaintainedHead) -> list[str]:
    """What the machine has no code for on the rows of a head that it takes, as rules write it."""
    found = list[str]()
    for source in head.sources:
        for body in bodies_of(source) if is_taken(source) else ():
            if constant_row(body) is None:
                found += texts_of_answers(body.lowered)
    return list(dict.fromkeys(found))


def _refusal_of_bodies(bodies: Iterable[RuleBody], wanted: Sequence[Wanted]) -> str | None:
    for body in bodies:
        if isinstance(body, RangeBody):
            (search,) = body.searches
            assert isinstance(search, RangeSums)
            if why := refusal_of_ranges(search) or refusal_of_rows(body.lowered, wanted):
                return why
            continue
        if constant_row(body) is not None:
            if any(scale is not None for _, scale in wanted):
                return "decimals are added up of a body without variables"
            continue
        if type(body) is not RuleBody or len(body.searches) != 1 or terms_of(body.searches[0]) is None:
            return "a body that is not kept by one search under delta"
        (search,) = body.searches
        if isinstance(search, AutoBody) and search.keeps_something:
            return "auto keeps a body by trace" if search.traces else "auto makes records for trace"
        if not body._always_passes:
            return "a test beside the rows"
        if why := refusal_of_rows(body.lowered, wanted):
            return why
    return None
