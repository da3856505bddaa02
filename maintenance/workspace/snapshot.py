"""What readers see: one immutable state, and snapshots that hold on to one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lftj.database.database import Database
from lftj.display.contents import Entry, contents, relations_table
from lftj.display.grid import Grid
from lftj.errors import ChangeError, UnknownRelationError
from lftj.language.diagnostics import unknown_name
from lftj.language.recent import is_recent
from lftj.language.several_aggregates import is_auxiliary
from lftj.storage.relation_table import RelationTable
from lftj.storage.relation_version import RelationVersion
from lftj.values.domains import Domains
from lftj.values.schema import Schema
from maintenance.strategies.strategy import Versions
from maintenance.workspace.state import State

if TYPE_CHECKING:
    from lftj.database.asking import Translations


class VersionedRelations(Mapping[str, RelationTable]):
    """The relations and heads of a state that have a user's name; ``hidden``: not these, with what to say."""

    def __init__(self, versions: Mapping[str, RelationVersion], hidden: Mapping[str, str]) -> None:
        self._versions = {
            name: versions[name]
            for name in versions
            if not (is_auxiliary(name) or is_recent(name) or name in hidden)
        }
        self._hidden = hidden

    def __getitem__(self, name: str) -> RelationTable:
        if name in self._hidden:
            raise UnknownRelationError(self._hidden[name])
        if name not in self:
            raise unknown_name("relation", name, self)
        return RelationTable(self._versions[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._versions

    def __repr__(self) -> str:
        return relations_table(self.entries())

    def entries(self, kept_by: Callable[[str], str] = lambda name: "") -> list[Entry]:
        """What is shown of each; ``kept_by``: how a head is kept."""
        return [Entry(name, table.count, table.schema, kept_by(name)) for name, table in self.items()]


class Snapshot(Database):
    """The relations and heads of a workspace as they were at one moment; to be read and queried only.

    Commits that follow don't change it; it may be used by another thread.
    """

    def __init__(self, domains: Domains, state: State, known: Translations | None = None) -> None:
        super().__init__()
        self.domains, self._translated = domains, known
        self._state = State(state.versions, number=state.number)
        self._hidden = state.hidden

    def _contents(self) -> Grid:
        return contents(f"Snapshot of version {self.version:,}", self.relations.entries())

    @property
    def version(self) -> int:
        """The version of the workspace that it shows."""
        return self._state.number

    @property
    def versions(self) -> Versions:
        """What it has of relations and heads, by name."""
        return self._state.versions

    @property
    def relations(self) -> VersionedRelations:
        return VersionedRelations(self._state.versions, self._hidden)

    def load(self, *arguments: Any, **options: Any) -> None:
        """A snapshot does not change: raises ChangeError."""
        raise ChangeError("a snapshot can't be changed: load into its workspace")

    def _now(self) -> tuple[Mapping[str, RelationTable], Mapping[str, Schema]]:
        return readable(self._state, self._hidden)

    def _installed(self) -> Mapping[str, str]:
        return self._hidden


def readable(
    state: State, hidden: Mapping[str, str]
) -> tuple[Mapping[str, RelationTable], Mapping[str, Schema]]:
    """The relations of a state that are not hidden, each built when it is asked for, and their schemas."""
    schemas = {name: version.schema for name, version in state.versions.items() if name not in hidden}
    return VersionedRelations(state.versions, hidden), schemas
