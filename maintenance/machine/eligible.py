"""Which relations and heads the commit machine takes, and of the others why not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.errors import EvaluationError, RangeError
from lftj.values.domain import NULL_CODE
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
from maintenance.heads.rule_source import AggregateSource, BesideSource, SetSource, SideBySideSource
from maintenance.machine.ranges import refusal_of_ranges
from maintenance.machine.row_code import Wanted, refusal_of_rows, texts_of_answers
from maintenance.machine.scans import FUNCTIONS
from maintenance.machine.staged_values import staging_of
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.delta.delta_body import DeltaBody
from maintenance.strategies.range_sums import RangeSums
from maintenance.strategies.strategy import BodySearch, Versions


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
    if not others and isinstance(source, AggregateSource | SideBySideSource):
        return _refusal_of_aggregates(source)
    for source in head.sources:
        if isinstance(source, OperatorSource):
            return "an operator"
        if isinstance(source, BagSource):
            if source._head.copies is not None:
                return "how many copies there are is computed"
            if source._assignments._support is not None:
                return "several alternatives"
        elif type(source) is not SetSource:
            return "an aggregate among several rules, a window, or evaluated whole"
        if why := _refusal_of_bodies(source.bodies, projected(source)):
            return why
    return None


def projected(source: SetSource | BagSource) -> Sequence[Wanted]:
    """What a head has of its bodies' rows."""
    names = source._head.variables if isinstance(source, BagSource) else source._names
    return [(name, None) for name in names]


def sharers_of(source: AggregateSource | SideBySideSource) -> Sequence[Sharer]:
    """The aggregates whose values a head has."""
    return source._groups.sharers if isinstance(source, SideBySideSource) else (source._sharer,)


def _refusal_of_aggregates(source: AggregateSource | SideBySideSource) -> str | None:
    intermediate, sharers = source._intermediate, sharers_of(source)
    for sharer, accumulator in zip(sharers, source._groups._accumulators, strict=False):
        if why := _refusal_of_aggregate(sharer, accumulator, intermediate):
            return why
    if intermediate._support is not None:
        return "several alternatives"
    return _refusal_of_bodies(intermediate.bodies, read_by(source))


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


def read_by(source: AggregateSource | SideBySideSource) -> Sequence[Wanted]:
    """What is read of the rows: those of the groups, and arguments."""
    sharers = sharers_of(source)
    groups: list[Wanted] = [(name, None) for name in sharers[0].groups]
    return [*groups, *dict.fromkeys(one for sharer in sharers for one in arguments_of(sharer))]


def arguments_of(sharer: Sharer) -> Sequence[Wanted]:
    """The arguments of an aggregate: of one that adds up decimals their numbers."""
    return [(name, sharer.scale) for name in sharer.arguments]


def computed_in_python(head: MaintainedHead) -> list[str]:
    """What the machine has no code for on the rows of a head that it takes, as rules write it."""
    found = list[str]()
    for source in head.sources:
        bodies: Sequence[RuleBody] = ()
        if isinstance(source, AggregateSource | SideBySideSource):
            bodies = source._intermediate.bodies
        elif isinstance(source, SetSource | BagSource):
            bodies = source.bodies
        for body in bodies:
            if constant_row(body) is None:
                found += texts_of_answers(body.lowered)
    return list(dict.fromkeys(found))


def terms_of(search: BodySearch) -> DeltaBody | None:
    """What keeps a body by its delta rule, where that can be used."""
    if isinstance(search, AutoBody):
        return search.delta
    return search if type(search) is DeltaBody else None


def constant_row(body: RuleBody) -> Mapping[str, int] | None:
    """The codes of the one row of a body without variables, by name, if it is one whose codes stay."""
    if type(body) is not RuleBody or body.all_searches or body.lowered.empty or not body._unbound:
        return None
    try:
        rows, signs = body._finished([], np.ones(1, np.int64))
    except (EvaluationError, RangeError):  # which is told of when there is a row
        return None
    if len(signs) != 1:
        return None
    found = {name: int(codes[0]) for name, codes in rows.items()}
    stay = [
        code == NULL_CODE or body.lowered.types[name].domain.collector is None for name, code in found.items()
    ]
    return found if all(stay) else None


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
