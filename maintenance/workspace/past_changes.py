"""What a head's rows did in commits whose changes are not in memory any more: worked out of the journal.

    relations as they are now  -  changes since  ->  relations as they were  ->  the head, installed over them
    changes since, one commit after the other    ->  what the head's rows did

So a commit writes nothing for those who may ask later, and all heads can be asked about.  (The changes of
heads beside those of relations in the journal would be read quicker, but every commit would pay for them:
600 bytes and one more encoding for each head that changed, and as many rows as a rule makes of one.)

Invariants

1. The head is defined as it was: its rules are older than the version that is asked from, and so are those of
   the heads that it reads; no relation that rules read can be loaded anew.
2. It is worked out in a workspace of its own, by value: nothing of the one that is asked changes or waits.
3. It reads no stream: what left one is not in the journal, so there is no way back.

Cost: that of installing the head, and those that it reads, over the relations that they read; and of the
commits, some thousand rows in one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import CursorError, DurabilityError
from lftj.language.several_aggregates import shown_name
from lftj.rewriting.key_relations import is_made
from lftj.storage.relation import Nulls, Relation
from lftj.storage.relation_table import RelationTable
from lftj.storage.relation_version import RelationVersion
from lftj.values.domains import Domains
from maintenance.changes.coded_changes import table_of_change
from maintenance.changes.labels import TXN, label_beside, weight_label
from maintenance.durable.entries import Changed
from maintenance.durable.reading import read_changes
from maintenance.workspace.recovery import Recoverable
from maintenance.workspace.state import State

BATCH_ROWS = 1 << 14
"""Changes that are gone through in one call, about."""


@dataclass(frozen=True)
class Past:
    """A head as it was after a change of a folder, and the commits behind it that may have changed it.

    ``workspace``: has the head, and what it reads, as it was.
    """

    head: str
    workspace: Recoverable
    commits: Sequence[tuple[int, Changed]]

    def each(self) -> Iterator[tuple[int, pa.Table]]:
        """The versions that commits led to, each with the change of the head, where it has one."""
        batch: list[tuple[int, Changed]] = []
        n_rows = 0
        for number, commit in self.commits:
            batch.append((number, commit))
            n_rows += sum(table.num_rows for table in commit.changes.values())
            if n_rows >= BATCH_ROWS:
                yield from self._stepped(batch)
                batch, n_rows = [], 0
        yield from self._stepped(batch)

    def all(self) -> pa.Table:
        """What all of the commits together did to the head."""
        with self.workspace.transaction() as transaction:
            for _, commit in self.commits:
                for name, table in commit.changes.items():
                    transaction.apply(name, table)
        return transaction.changes[self.head]

    def _stepped(self, commits: Sequence[tuple[int, Changed]]) -> Iterator[tuple[int, pa.Table]]:
        tables: dict[str, list[pa.Table]] = {}
        for number, commit in commits:
            for name, table in commit.changes.items():
                label = label_beside(TXN, table.column_names[:-1])
                versions = pa.array(np.full(table.num_rows, number))
                tables.setdefault(name, []).append(table.append_column(label, versions))
        if tables:
            applied = self.workspace.apply_many(
                {name: pa.concat_tables(parts) for name, parts in tables.items()}
            )
            for number, changes in zip(applied.transactions, applied, strict=True):
                if changes[self.head].num_rows:
                    yield number, changes[self.head]


@dataclass(frozen=True)
class PastGrown(Past):
    """Of a relation that only grows: the journal has what was added, commit by commit.

    ``workspace``: has the relation, with nothing in it.  ``none``: a change without rows.
    """

    none: pa.Table

    def each(self) -> Iterator[tuple[int, pa.Table]]:
        return ((number, commit.changes[self.head]) for number, commit in self.commits)

    def all(self) -> pa.Table:
        return pa.concat_tables([self.none, *(table for _, table in self.each())])


def past_of(empty: Recoverable, folder: Path, head: str, after: int, state: State) -> Past:
    """A head as it was after a change.

    ``empty``: a workspace with nothing in it; ``state``: as it is now.  Raises CursorError,
    DamagedFolderError, DurabilityError.
    """
    relations, heads = _read_by(state, head)
    if streams := sorted(state.streams_read(relations) & state.streams.keys()):
        raise CursorError(
            f"the changes behind version {after} are not in memory, and the journal has no rows that left the"
            f" stream {streams[0]!r}: read the head as it is now and go on from there, or keep more,"
            " feed_bytes=",
            state.number,
        )
    try:
        entries = read_changes(folder, after, state.number)
    except OSError as error:
        raise DurabilityError(f"{folder}: the journal can't be read: {error.strerror or error}") from error
    commits = [
        (number, replace(entry, changes={n: t for n, t in entry.changes.items() if n in relations}))
        for number, entry in entries
        if not relations.isdisjoint(entry.changes)
    ]
    if head in state.strata.grown:
        return PastGrown(head, empty, commits, table_of_change(state.shown[head], None))
    for name in sorted(relations):
        empty.add(_relation_of(name, state.versions[name], empty.domains))
    with empty.transaction() as back:
        for _, commit in commits:
            for name, table in commit.changes.items():
                back.apply(name, inverse(table, weight_label(state.versions[name].schema)))
    for definition in state.definitions:
        wanted = definition.without(definition.strategies.keys() - heads)
        if wanted.strategies:
            empty.install(
                wanted.program,
                wanted.strategies,
                order=wanted.order,
                max_rounds=wanted.max_rounds,
                results=wanted.wanted,
            )
    return Past(head, empty, commits)


def _read_by(state: State, head: str) -> tuple[set[str], set[str]]:
    """The base relations that a head is made of, and the heads as a user named them, itself one of them."""
    seen: set[str] = set()
    waiting = [name for name in (*state.heads, *state.strata.grown) if shown_name(name) == head]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += state.heads[name].reads if name in state.heads else ()
    heads = {shown_name(name) for name in seen if name in state.heads and not is_made(name)}
    return {name for name in seen if name not in state.heads}, heads


def _relation_of(name: str, version: RelationVersion, domains: Domains) -> Relation:
    nulls: Nulls = "keep" if version.schema.keeps_null else "refuse"
    like = version.schema
    rows = like.as_declared(RelationTable(version).table)
    relation = Relation.from_table(name, rows, domains, nulls, bag=like.bag, wide=like.wide, key=like.key)
    schema = replace(relation.schema, functional=like.functional)
    return Relation(name, schema, relation.codes)


def inverse(table: pa.Table, label: str) -> pa.Table:
    place = table.schema.get_field_index(label)
    return table.set_column(place, label, pc.negate(table.column(place)))
