"""Recovery of a workspace: from a checkpoint or an image, and the changes of the journal behind it.

Invariant: what comes out is what was there when the last change was made.  Without an image the base
relations are brought to the end first and rules are installed over them then, each once; so changes of
rules that are not there any more are never gone through.

Cost: without an image that of reading, of adding the changes up, and of installing; with one, that of
reading it and of one transaction with what changed since.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from lftj.errors import DurabilityError, LftjError
from lftj.language.parser import parse
from lftj.language.syntax import ColumnName, Key, Program
from lftj.storage.relation import Nulls, Relation
from lftj.storage.relation_table import RelationTable
from lftj.values.domains import Domains
from lftj.values.schema import is_wide
from maintenance.durable.data_files import read_rows
from maintenance.durable.entries import Changed, Entry, Installed, Loaded, StrategySet, Uninstalled
from maintenance.durable.reading import FoundFolder
from maintenance.event_time.growing import grown_of
from maintenance.event_time.stream_state import StreamState, states_of, stream_state_of
from maintenance.heads.grown import Grown
from maintenance.heads.strategies import DEFAULT
from maintenance.workspace.batch import Applied
from maintenance.workspace.image_cache import read_cache
from maintenance.workspace.transaction import Transaction

_log = logging.getLogger(__name__)


class Recoverable(Protocol):
    """A workspace, as far as changes of a journal are applied to it."""

    domains: Domains

    def __getitem__(self, name: str) -> RelationTable: ...
    def add(self, relation: Relation) -> None: ...
    def transaction(self) -> Transaction: ...
    def apply_many(self, changes: Mapping[str, Any]) -> Applied: ...
    @property
    def install(self) -> Callable[..., None]: ...
    def uninstall(self, *heads: str) -> None: ...
    def set_strategy(self, head: str, strategy: str) -> None: ...
    def strategy_of(self, head: str) -> str: ...
    def refresh(self) -> int: ...
    @property
    def grown(self) -> Collection[str]: ...
    def add_grown(self, relation: Relation, one: Grown) -> None: ...
    def restore_streams(self, streams: Mapping[str, StreamState]) -> None: ...


Recovered = TypeVar("Recovered", bound=Recoverable)


def recovered(
    make: Callable[..., Recovered],
    found: FoundFolder,
    wanted: Mapping[str, Any],
    threads: int,
    progress: bool | None,
) -> Recovered:
    """The workspace as a folder has it: of an image and what came since, or made anew.

    ``make``: its class; ``wanted``: settings in place of those that it has.  Raises as :func:`rebuild`.
    """
    settings = {**found.manifest.settings, **wanted}
    if settings == found.manifest.settings and (image := read_cache(found)) is not None:
        made, number = image
        if type(made) is make:
            try:
                with Replay(made, found.folder) as replay:
                    for _, entry in found.entries(number):
                        replay.take(entry)
                return made
            except LftjError as error:
                _log.warning("%s: the image can't be used: %s", found.folder, error)
    made = make(**settings)
    rebuild(made, found, threads, progress)
    return made


def rebuild(workspace: Recoverable, found: FoundFolder, threads: int, progress: bool | None) -> None:
    """Bring an empty workspace to where a folder is.

    Raises DurabilityError where a program can't be installed any more, such as one with an aggregate that is
    not registered here, and DamagedFolderError.
    """
    with Replay(workspace, found.folder) as replay:
        for loaded in found.manifest.relations:
            replay.take(loaded)
        for _, entry in found.entries(found.manifest.number):
            if isinstance(entry, Loaded | Changed):
                replay.take(entry)
            elif isinstance(entry, Uninstalled):
                replay.take(Uninstalled(tuple(name for name in entry.heads if name in workspace.grown)))
            elif isinstance(entry, Installed):
                for loaded in entry.loaded:
                    replay.take(loaded)
    keys = {loaded.relation: loaded.key for loaded in found.contents.relations.values() if loaded.key}
    if keys:
        workspace.install(Program((), keys=keys_of(keys)), DEFAULT)
    if found.contents.streams:
        workspace.restore_streams(states_of(found.contents.streams))
    for definition in found.contents.definitions:
        if not definition.strategies:
            continue
        try:
            workspace.install(
                definition.program,
                definition.strategies,
                sensitivity_bytes=definition.sensitivity_bytes,
                order=definition.order,
                max_rounds=definition.max_rounds,
                results=definition.wanted,
                threads=threads,
                progress=progress,
            )
        except LftjError as error:
            raise DurabilityError(f"{found.folder}: the rules can't be installed again: {error}") from error


class Replay:
    """Changes of a journal, applied in their order; those of transactions are committed together.

    A context manager: at the end of its block all is committed, unless it raises.

    ``rows``: gives those of a relation that was loaded.
    """

    def __init__(
        self, workspace: Recoverable, folder: Path, rows: Callable[[Loaded], pa.Table] | None = None
    ) -> None:
        self._workspace = workspace
        self._rows = rows or (lambda loaded: read_rows(folder, loaded.file))
        self._transaction: Transaction | None = None

    def take(self, entry: Entry) -> None:
        """Do what an entry says.  Raises what that raises, and DamagedFolderError."""
        if isinstance(entry, Changed):
            if self._transaction is None:
                self._transaction = self._workspace.transaction()
            self._transaction.tell(entry.streams)
            for name, table in entry.changes.items():
                self._transaction.apply(name, table)
            return
        self._finish()
        if isinstance(entry, Loaded):
            relation = relation_of(entry, self._rows(entry), self._workspace.domains)
            if entry.grown is None:
                self._workspace.add(relation)
            else:
                one = grown_of(entry.relation, entry.grown, self._workspace.domains)
                self._workspace.add_grown(relation, one)
        elif isinstance(entry, Installed):
            options: dict[str, Any] = {
                "replace": entry.replace,
                "sensitivity_bytes": entry.sensitivity_bytes,
                "order": entry.order,
                "max_rounds": entry.max_rounds,
                "results": entry.wanted,
            }
            if entry.streams:
                self._workspace.restore_streams(states_of(entry.streams))
            tree = replace(parse(entry.text), keys=keys_of(entry.keys), streams=())
            if tree.rules or tree.keys:
                self._workspace.install(tree, entry.strategy, **options)
        elif isinstance(entry, Uninstalled):
            self._workspace.uninstall(*entry.heads)
        elif isinstance(entry, StrategySet):
            for head, strategy in entry.strategies.items():
                if self._workspace.strategy_of(head) != strategy:  # not changed with one that it depends on
                    self._workspace.set_strategy(head, strategy)

    def _finish(self) -> None:
        """Commit what is waiting."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.commit()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            self._finish()
        elif self._transaction is not None:
            self._transaction.roll_back()


def keys_of(keys: Mapping[str, Sequence[str]]) -> tuple[Key, ...]:
    """Keys by relation, as a program declares them."""
    return tuple(Key(name, tuple(ColumnName(column) for column in key)) for name, key in keys.items())


def relation_of(loaded: Loaded, rows: pa.Table, domains: Domains) -> Relation:
    """A relation with rows, as it was loaded."""
    nulls: Nulls = "keep" if loaded.keeps_null else "refuse"
    wide = not loaded.bag and loaded.grown is None and is_wide(rows.schema.types)
    name, key = loaded.relation, loaded.key
    relation = Relation.from_table(name, rows, domains, nulls, bag=loaded.bag, wide=wide, key=key)
    if loaded.stream is not None:
        relation = relation.with_stream(stream_state_of(loaded.stream).stream)
    schema = replace(relation.schema, functional=loaded.functional)
    return Relation(name, schema, relation.codes, loaded.dropped_rows, loaded.duplicate_rows)
