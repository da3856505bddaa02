"""`StagedSupport`: support counts in two steps, of tuples that stand in no relation.

Invariant: the codes of tuples that have support keep their values (:mod:`lftj.values.collector`).
Counts of tuples that a relation's version has too, or whose variables are bound by relations
that are there, need no more than a :class:`~maintenance.staged.StagedValue`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lftj.storage.support import SupportVersion
from lftj.values.collector import Held
from lftj.values.schema import ColumnType
from maintenance.staged import StagedValue


class StagedSupport(StagedValue[SupportVersion]):
    """Support counts of tuples, none at first."""

    def __init__(self, arity: int, types: Mapping[int, ColumnType]) -> None:
        """``types``: of columns by number, at least of all whose domains have a dictionary."""
        super().__init__(SupportVersion(arity))
        self._dictionaries = [
            (number, type_.domain) for number, type_ in types.items() if type_.domain.collector is not None
        ]
        self._hold()

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._hold()

    def _hold(self) -> None:
        for collector in {domain.collector for _, domain in self._dictionaries}:
            assert collector is not None
            collector.hold(self)

    def held(self) -> list[Held]:
        """The codes that are to keep their values."""
        versions = [version for version in (self.kept, self.staged) if version is not None]
        runs = {id(run): run for version in versions for run in version.runs}
        return [
            Held(run, [(domain, columns[number]) for number, domain in self._dictionaries])
            for run in runs.values()
            for columns in [run.columns(self.kept.arity)]
        ]
