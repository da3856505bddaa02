"""`State`: all that a workspace is at one moment, replaced by one assignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lftj.errors import ChangeError
from lftj.language.diagnostics import unknown_name
from lftj.language.several_aggregates import is_auxiliary
from lftj.storage.relation_version import RelationVersion

if TYPE_CHECKING:
    from maintenance.heads.head import MaintainedHead
    from maintenance.workspace.budget import Budget

Versions = Mapping[str, RelationVersion]


@dataclass(frozen=True)
class State:
    """The versions of all relations and heads, and the rules that are installed.

    A head's own structures change in place, between two states: by
    :meth:`~maintenance.heads.head.MaintainedHead.keep`.
    """

    versions: Versions = field(default_factory=dict)
    heads: Mapping[str, MaintainedHead] = field(default_factory=dict)
    """Each after those that its rules read."""
    functions: frozenset[str] = frozenset()
    """Relations that a head reads as functions."""
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    """Memory for the sensitivity records of some heads, by the name that the user gave them."""
    commit: object = None
    """A mark of the commit that made this state."""

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
