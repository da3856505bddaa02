"""Heads whose views stand as long as what their rules compute fits (:mod:`lftj.rewriting.guard`).

The state has the spans of the columns that guards ask for, as commits widen them.  A commit that brings what
may not fit raises :class:`~lftj.rewriting.guard.MayNotFit` before anything is staged: the workspace takes the
views of those heads away and does it again, so that what is refused is what the rules refuse.  A head that is
to be kept by `views` has them again when a row that stood at an end of a span is gone, or the commit was
refused after all.

Invariants

1. Spans hold all that was in a column since they were looked at; a head that has views is proven by them.
2. Without rows beyond the spans a commit costs one look at each column that a guard asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from lftj.language.body import Source
from lftj.language.several_aggregates import shown_name
from lftj.rewriting.guard import MayNotFit, Span, Spans, joined, span_of, spans_of, unproven
from lftj.rewriting.shared_views import is_view
from lftj.storage.signed_rows import Columns
from maintenance.heads.head import MaintainedHead
from maintenance.heads.strategies import VIEWS
from maintenance.heads.stratum import Guarded
from maintenance.workspace.state import State


class HasColumns(Protocol):
    """Of a relation: those that come and go, through one transaction or many."""

    @property
    def columns(self) -> Columns: ...


def has_views(head: MaintainedHead) -> bool:
    """Whether a head reads views."""
    return any(map(is_view, head.reads))


def with_spans(state: State, names: Collection[str], known: Spans) -> State:
    """The state with the spans of all columns that its guards ask for.

    ``known``: what is known of some beyond what the versions hold.  Raises MayNotFit where one of the named
    heads has views that it is not to have.
    """
    spans = spans_of(state.strata.guarded_columns, state.versions)
    spans |= {source: span for source, span in known.items() if source in spans}
    _refuse_unproven([pair for pair in state.strata.guarded if pair[0].name in names], spans, spans)
    return replace(state, spans=spans)


def widened(state: State, spans: Spans, changes: Mapping[str, HasColumns]) -> Spans:
    """The spans with the rows of a change, those that go among them.

    Raises MayNotFit where a head has views that it is not to have then.
    """
    wider: dict[Source, Span | None] = {}
    guarding = state.strata.guarding
    read = [columns for name in changes if name in guarding for _, columns in guarding[name]]
    for source in frozenset[Source]().union(*read) if read else ():
        change = changes.get(source[0])
        if change is None:
            continue
        type_ = state.versions[source[0]].schema.columns[source[1]].type
        span = joined(spans[source], span_of(np.asarray(change.columns[source[1]]), type_))
        if span != spans[source]:
            wider[source] = span
    if not wider:
        return spans
    spans = {**spans, **wider}
    _refuse_unproven(state.strata.guarded, spans, wider)
    return spans


def _refuse_unproven(guarded: Sequence[Guarded], spans: Spans, among: Iterable[Source]) -> None:
    for head, columns in guarded:
        if not columns.isdisjoint(among) and has_views(head):
            why = unproven_of(head, spans)
            if why is not None:
                raise MayNotFit(f"{shown_name(head.name)}: {why}", spans)


def unproven_of(head: MaintainedHead, spans: Spans) -> str | None:
    """What of a head's rules may not fit, as a half sentence, if anything."""
    guard = head.program.guards.get(head.name)
    return None if guard is None else unproven(guard, spans)


def note_narrowed(state: State, changes: Mapping[str, tuple[Columns, np.ndarray]]) -> None:
    """Let heads that wait for views look again where a row that stood at an end of a span went.

    ``changes``: rows and weights by relation, of a commit that stands.
    """
    guarding = state.strata.guarding
    found = {head: columns for name in changes if name in guarding for head, columns in guarding[name]}
    for head, columns in found.items():
        if not waits(head, state.spans):
            continue
        for relation, column in columns:
            if relation not in changes:
                continue
            rows, weights = changes[relation]
            type_ = state.versions[relation].schema.columns[column].type
            gone = span_of(np.asarray(rows[column])[weights < 0], type_)
            span = state.spans[relation, column]
            if gone is not None and span is not None and (gone[0] == span[0] or gone[1] == span[1]):
                head.looks_for_views = True


def waits(head: MaintainedHead, spans: Spans) -> bool:
    """Whether a head is to be kept by views, and has none for what its rules compute may not fit."""
    return head.strategy == VIEWS and not has_views(head) and unproven_of(head, spans) is not None
