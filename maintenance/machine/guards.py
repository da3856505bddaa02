"""Guards of views: rows with which what a body computes may not fit go the general way.

The general way widens the spans of guarded columns with each commit, and proves its guards anew
(:mod:`maintenance.workspace.guarded`).  Here they are proven once for wider spans, the *limits*; a commit
looks whether its rows are within these, and notes the least and the largest value.

Invariant: within the limits all guards are proven; the state gets the spans of what was seen when versions
are folded.

Cost: two comparisons for each value of a guarded column.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.language.body import Source
from lftj.memory import address, view
from lftj.rewriting.guard import Span, Spans, joined, unproven
from lftj.rewriting.shared_views import is_view
from maintenance.heads.stratum import Strata
from maintenance.machine import records
from maintenance.machine.records import DONE, LEFT, guarded_at, relation_at
from maintenance.strategies.strategy import Versions

_WIDER = (1 << 40, 1 << 20, 1 << 10, 16, 1)
"""How much spans are widened by, times their length; as they are where no guard would be proven."""

GUARDED = records.Guarded.BYTES


@part
def within_limits(its):
    """GUARD: LEFT where a row that comes or goes is beyond the limits."""
    relation = relation_at(its.relation)
    rows = view(relation.rows, relation.arity * relation.room)
    for number in range(its.n_columns):
        column = guarded_at(its.columns + number * GUARDED)
        for row in range(relation.changed):
            value = rows[column.number * relation.room + row]
            if value < column.least or value > column.most:
                return LEFT
    return DONE


@part
def note_seen(its):
    """The commit is published: note the least and the largest values."""
    relation = relation_at(its.relation)
    rows = view(relation.rows, relation.arity * relation.room)
    for number in range(its.n_columns):
        column = guarded_at(its.columns + number * GUARDED)
        for row in range(relation.changed):
            value = rows[column.number * relation.room + row]
            column.least_seen, column.most_seen = min(column.least_seen, value), max(column.most_seen, value)


class Guards:
    """Of one relation, base or head: the op, and its guarded columns."""

    def __init__(self, name: str, relation: int, columns: Sequence[int]) -> None:
        self._sources = [(name, column) for column in columns]
        self._columns = np.zeros((len(columns), records.Guarded.LENGTH), np.int64)
        self._columns[:, 0] = columns
        self.words = np.zeros(records.Guard.LENGTH, np.int64)
        its = records.Guard(self.words)
        its.code, its.relation = records.GUARD, relation
        its.columns, its.n_columns = address(self._columns), len(columns)

    @property
    def address(self) -> int:
        return address(self.words)

    def bind(self, limits: Spans, versions: Versions) -> None:
        """Begin anew, with nothing seen; what is in no order has no limits, so that all is beyond them."""
        for number, (name, column) in enumerate(self._sources):
            is_ordered = versions[name].schema.columns[column].type.domain.ordered
            span = limits.get((name, column)) if is_ordered else None
            least, most = (1, 0) if span is None else (int(span[0]), int(span[1]))
            self._columns[number, 1:] = least, most, KEY_MAX, -KEY_MAX

    def seen(self) -> dict[Source, Span | None]:
        """What came since, by column."""
        return {
            source: (int(least), int(most))
            for source, (least, most) in zip(self._sources, self._columns[:, 3:], strict=True)
            if least <= most
        }


def guards_of(strata: Strata, addresses: Mapping[str, int]) -> dict[str, Guards]:
    """By relation; ``addresses``: of those that may change."""
    columns: dict[str, list[int]] = {}
    for name, column in sorted(strata.guarded_columns):
        if name in addresses:
            columns.setdefault(name, []).append(column)
    return {name: Guards(name, addresses[name], some) for name, some in columns.items()}


def limits_of(strata: Strata, spans: Spans) -> Spans:
    """Spans as wide as the guards allow."""
    heads = [head for head, _ in strata.guarded if any(map(is_view, head.reads))]
    guards = [head.program.guards[head.name] for head in heads]
    for times in _WIDER:
        wider = {source: _widened(span, times) for source, span in spans.items()}
        if all(unproven(guard, wider) is None for guard in guards):
            return wider
    return spans


def _widened(span: Span | None, times: int) -> Span | None:
    if span is None:
        return None
    more = times * (1 + span[1] - span[0])
    return max(span[0] - more, min(-KEY_MAX, span[0])), min(span[1] + more, max(KEY_MAX, span[1]))


def with_seen(spans: Spans, guards: Mapping[str, Guards]) -> Spans:
    """The spans with what came since; themselves where nothing is beyond them."""
    found = {source: span for its in guards.values() for source, span in its.seen().items()}
    wider = {source: joined(spans.get(source), span) for source, span in found.items()}
    return spans if all(spans.get(source) == span for source, span in wider.items()) else {**spans, **wider}
