"""`State`: all that a workspace is at one moment, replaced by one assignment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from lftj.errors import ChangeError, UnknownRelationError
from lftj.language.diagnostics import unknown_name
from lftj.language.finals import Final
from lftj.language.recent import is_recent
from lftj.language.several_aggregates import is_auxiliary
from lftj.rewriting.guard import Spans
from lftj.storage.relation_version import RelationVersion
from lftj.values.schema import Schema
from maintenance.durable.definitions import Definition, following
from maintenance.durable.entries import Entry
from maintenance.event_time.closing import ClosedRows
from maintenance.event_time.stream_state import RecentState, StreamState
from maintenance.heads.head import MaintainedHead
from maintenance.heads.strategies import DEFAULT
from maintenance.heads.stratum import Strata
from maintenance.strategies.strategy import Versions
from maintenance.workspace.budget import Budgets


@dataclass(frozen=True)
class State:
    """The versions of all relations and heads, and the rules that are installed.

    A head's own structures change in place, between two states: by
    :meth:`~maintenance.heads.head.MaintainedHead.keep`.
    """

    versions: Versions = field(default_factory=dict)
    strata: Strata = field(default_factory=Strata)
    budgets: Budgets = field(default_factory=dict)
    """Memory for the sensitivity records."""
    view_bytes: int | None = None
    """Memory for views, where there is a limit."""
    commit: object = None
    """A mark of the commit that made this state."""
    number: int = 0
    """Of the change that led to it: each is one more than the one before."""
    spans: Spans = field(default_factory=dict)
    """Of the columns that guards of views ask for (:mod:`maintenance.workspace.guarded`)."""
    definitions: tuple[Definition, ...] = ()
    """The programs that are installed."""
    streams: Mapping[str, StreamState] = field(default_factory=dict)
    """Where each stream stands, by its relation."""
    recents: Mapping[str, RecentState] = field(default_factory=dict)
    """Of which streams relations have the rows of ``now() - 10m``, by their names."""

    @cached_property
    def since(self) -> Mapping[str, int]:
        """The number of the change that installed each head that is shown, as it is."""
        return {head: each.since for each in self.definitions for head in each.shown}

    @property
    def takes_single_changes(self) -> bool:
        """Whether a commit does nothing beside changing versions and heads, and moving streams on."""
        strata = self.strata
        return self.view_bytes is None and not (self.recents or strata.grown or strata.may_wait_for_views)

    @cached_property
    def shown(self) -> Mapping[str, Schema]:
        """Of the heads that a user knows of, and of relations that grow."""
        grown = {name: self.versions[name].schema for name in self.strata.grown}
        return {**self.strata.schemas, **grown} if grown else self.strata.schemas

    @cached_property
    def finals(self) -> Mapping[str, Final]:
        """Of which heads relations have the rows that have closed, by their names."""
        grown = self.strata.grown.items()
        return {name: one.final for name, one in grown if isinstance(one, ClosedRows)}

    def following(self, before: State, entry: Entry | None) -> State:
        """This, as what follows a state; ``entry``: what led to it, where that was not a commit."""
        number = before.number + 1
        if entry is None:
            return self._changed(number=number)
        definitions = tuple(following(before.definitions, entry, DEFAULT, number))
        return replace(self, number=number, definitions=definitions)

    def committed(
        self,
        versions: Versions,
        commit: object,
        spans: Spans,
        streams: Mapping[str, StreamState],
        recents: Mapping[str, RecentState],
    ) -> State:
        """The state after a commit, which changes versions and what goes with rows, and nothing else."""
        return self._changed(versions=versions, commit=commit, spans=spans, streams=streams, recents=recents)

    def _changed(self, **fields: object) -> State:
        """With other values of fields that no cached one depends on; at a sixth of what ``replace`` takes."""
        following = object.__new__(State)
        following.__dict__.update(self.__dict__, **fields)
        return following

    @property
    def heads(self) -> Mapping[str, MaintainedHead]:
        """Each after those that its rules read."""
        return self.strata.heads

    @property
    def hidden(self) -> Mapping[str, str]:
        """The heads that a user named and may not read, with what to say of them."""
        return self.strata.hidden

    def streams_read(self, names: Collection[str]) -> set[str]:
        """These relations, and the streams whose recent rows some of them have."""
        return {*names, *(self.recents[name].recent.stream for name in names if name in self.recents)}

    def refuse_unknown(self, name: str) -> None:
        """Raise UnknownRelationError where no head of that name can be read."""
        if name in self.hidden:
            raise UnknownRelationError(self.hidden[name])
        if name not in self.shown:
            raise unknown_name("head", name, self.shown)

    def version(self, name: str) -> RelationVersion:
        """A relation's or head's version.  Raises UnknownRelationError."""
        version = self.versions.get(name)
        if version is None:
            raise unknown_name(
                "relation",
                name,
                [known for known in self.versions if not (is_auxiliary(known) or is_recent(known))],
            )
        return version

    def base_version(self, name: str) -> RelationVersion:
        """A base relation's version.  Raises UnknownRelationError, and ChangeError for a head."""
        if name in self.strata.heads or name in self.recents:
            raise ChangeError(f"{name!r} is derived by a rule: change what the rule reads")
        return self.version(name)
