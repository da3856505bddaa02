"""Keys and streams, from one state to the next: what programs declare of loaded relations, and loads do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lftj.errors import StreamError
from lftj.language.declared_keys import check_keys, declared_of
from lftj.language.declared_streams import check_streams, clashing, stream_declared
from lftj.language.finals import Final, finals_of
from lftj.language.recent import with_recent
from lftj.language.syntax import Program
from lftj.storage.relation_version import RelationVersion
from lftj.values.schema import ColumnType
from lftj.values.streams import earlier, span_text
from maintenance.event_time.expiry import recent_version, with_expiry
from maintenance.event_time.stream_state import RecentState, StreamState, clock
from maintenance.event_time.tick import Streams
from maintenance.strategies.strategy import Versions
from maintenance.workspace.state import State


@dataclass(frozen=True)
class Declared:
    """By relation, what a program says of it, as the journal has it."""

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    streams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.keys or self.streams)


def with_declared(state: State, tree: Program) -> tuple[State, Declared]:
    """The state in which base relations are what a program declares; itself where they are so.

    Raises RuleError for what they can't be, NullError, KeyConflictError.
    """
    versions, streams = dict(state.versions), dict(state.streams)
    bases = {name: version.schema for name, version in versions.items() if name not in state.heads}
    for key in tree.keys:
        schema = declared_of(tree, key, bases)
        if not schema.key and not schema.bag and schema.stream is None:
            versions[key.relation] = versions[key.relation].with_key(key.names)
            bases[key.relation] = versions[key.relation].schema
    check_keys(tree, bases)
    for each in tree.streams:
        schema = declared_of(tree, each, bases)
        if schema.stream is None and not schema.key:
            version = versions[each.relation].with_stream(stream_declared(tree, each, schema))
            versions[each.relation], bases[each.relation] = version, version.schema
            if problem := clashing(version.name, version.schema, bases):
                raise StreamError(problem)
            streams[each.relation] = begun(version, streams)
    check_streams(tree, bases)
    declared = Declared(
        {key.relation: key.names for key in tree.keys},
        {each.relation: streams[each.relation].record for each in tree.streams},
    )
    if versions == state.versions:
        return state, declared
    return replace(state, versions=versions, streams=streams, commit=None), declared


def with_recents(state: State, tree: Program) -> tuple[State, Program]:
    """The state with relations of the recent rows that a program reads, and the program over these.

    Raises RuleError.
    """
    bases = {name: version.schema for name, version in state.versions.items() if name not in state.heads}
    rewritten, found = with_recent(tree, bases)
    new = {one.name: RecentState(one).left_by(clock(state.streams)) for one in found}
    new = {name: each for name, each in new.items() if name not in state.recents}
    if not new:
        return state, rewritten
    versions = {
        name: recent_version(name, state.versions[each.recent.stream], each.left)
        for name, each in new.items()
    }
    recents = {**state.recents, **new}
    return replace(state, versions={**state.versions, **versions}, recents=recents, commit=None), rewritten


def without_unread(state: State) -> State:
    """The state less relations of recent rows that no rule reads."""
    read = frozenset().union(*(head.reads for head in state.heads.values()))
    gone = state.recents.keys() - read
    if not gone:
        return state
    versions = {name: version for name, version in state.versions.items() if name not in gone}
    return replace(state, versions=versions, recents={n: r for n, r in state.recents.items() if n in read})


def new_finals(state: State, tree: Program) -> list[Final]:
    """What a program that is installed closes.  Raises RuleError."""
    timed = {*state.strata.grown}
    for name, head in state.heads.items():
        if not state.streams_read(head.reads).isdisjoint({*state.streams, *timed}):
            timed.add(name)
    written = {head.relation for rule in tree.rules for head in rule.heads}
    schemas = {name: version.schema for name, version in state.versions.items()}
    derived = {name: schemas[name] for name in written if name in schemas}
    others = {name: schema for name, schema in schemas.items() if name not in {*derived, *state.finals}}
    return finals_of(tree, derived, others, timed)


def with_loaded(state: State, version: RelationVersion) -> State:
    """The state with a base relation that was loaded.  Raises StreamError for a stream that it can't be."""
    versions = {**state.versions, version.name: version}
    streams = {name: each for name, each in state.streams.items() if name != version.name}
    if version.schema.stream is not None:
        before = state.streams.get(version.name)
        if before is not None and before.stream != version.schema.stream:
            raise StreamError(
                f"{version.name!r} is a stream with other settings, {_settings(state, version.name)}: load it"
                " with these, or once without time= to begin anew"
            )
        schemas = {name: each.schema for name, each in versions.items() if name not in state.heads}
        if problem := clashing(version.name, version.schema, schemas):
            raise StreamError(problem)
        streams[version.name] = begun(version, state.streams)
    return replace(state, versions=versions, streams=streams, commit=None)


def _settings(state: State, name: str) -> str:
    """What makes a relation a stream, as `load` takes it."""
    schema, stream = state.versions[name].schema, state.streams[name].stream
    arrow = schema.columns[schema.time_number].type.arrow
    spans = (("lateness", stream.lateness), ("keep", stream.keep), ("ahead", stream.ahead))
    texts = [f"{option}={span_text(span, arrow)}" for option, span in spans if span]
    return ", ".join([f"time={stream.time!r}", *texts])


def begun(version: RelationVersion, streams: Streams) -> StreamState:
    """A stream of which all rows that are there are taken; it is not behind the clock.  O(n)."""
    stream = version.schema.stream
    assert stream is not None
    state = StreamState(stream).raised(clock(streams))
    if not version.n_rows:
        return state
    times = np.asarray(version.columns()[version.schema.time_number])
    return state.raised(earlier(int(times.max()), stream.lateness))


def with_streams(state: State, streams: Streams) -> State:
    """The state with streams as they were left, without what has left them."""
    versions: dict[str, RelationVersion] = dict(state.versions)
    for name, each in streams.items():
        if versions[name].schema.stream is None:
            versions[name] = versions[name].with_stream(each.stream)
        if each.left is not None:
            change, _ = with_expiry(versions[name], None, None, each.left)
            if change is not None:
                versions[name] = versions[name].advance(change.columns, change.weights)
    return replace(state, versions=versions, streams={**state.streams, **streams}, commit=None)


def clock_type(versions: Versions, streams: Streams) -> ColumnType | None:
    """The type that the times of all streams have; None where there is none."""
    for name in streams:
        schema = versions[name].schema
        return schema.columns[schema.time_number].type
    return None
