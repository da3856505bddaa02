"""`State`: all that a workspace is at one moment, replaced by one assignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lftj.errors import ChangeError
from lftj.language.diagnostics import unknown_name
from lftj.language.several_aggregates import is_auxiliary
from lftj.storage.relation_version import RelationVersion
from maintenance.heads.head import MaintainedHead
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
    commit: object = None
    """A mark of the commit that made this state."""
    number: int = 0
    """Of the change that led to it: each is one more than the one before."""
    since: Mapping[str, int] = field(default_factory=dict)
    """The number of the change that installed each head as it is."""

    def following(self, before: State) -> State:
        """This, as what follows a state.

        A head of which neither the rules nor the tuples are those of before was installed by this change.
        """
        number = before.number + 1
        since = before.since
        if self.strata is not before.strata:
            since = {
                name: before.since[name]
                if name in before.since and self._is_as_before(name, before)
                else number
                for name in self.heads
            }
        return replace(self, number=number, since=since)

    def _is_as_before(self, name: str, before: State) -> bool:
        is_same_head = self.heads[name] is before.heads.get(name)
        return is_same_head or self.versions[name] is before.versions.get(name)

    @property
    def heads(self) -> Mapping[str, MaintainedHead]:
        """Each after those that its rules read."""
        return self.strata.heads

    def version(self, name: str) -> RelationVersion:
        """A relation's or head's version.  Raises UnknownRelationError."""
        version = self.versions.get(name)
        if version is None:
            raise unknown_name(
                "relation", name, [known for known in self.versions if not is_auxiliary(known)]
            )
        return version

    def base_version(self, name: str) -> RelationVersion:
        """A base relation's version.  Raises UnknownRelationError, and ChangeError for a head."""
        if name in self.heads:
            raise ChangeError(f"{name!r} is derived by a rule: change what the rule reads")
        return self.version(name)
