"""What keeps a recursive component: heads that depend on each other and so are stepped together.

The list of strategies that can is beside that of all others, :mod:`maintenance.heads.strategies`.

Invariants

1. ``build`` and ``step`` stage (:mod:`maintenance.staged`), for all heads of the component at once.
2. What ``build`` and the steps that were kept gave adds up, head by head, to the least fixpoint of the
   component's rules over the newest versions of what they read beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lftj.language.body import MAX_ROUNDS, CheckedProgram
from maintenance.staged import Staged
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Building, Read, Round, Tuples, Versions


@dataclass(frozen=True)
class ComponentRequest:
    """A component that is to be kept: some of a program's heads.

    ``reads``: the relations in its rules that are not its own.  ``max_rounds``: after so many rounds with new
    tuples a recursion is given up.
    """

    names: tuple[str, ...]
    program: CheckedProgram
    reads: frozenset[str]
    max_rounds: int = MAX_ROUNDS

    def extremum_of(self, name: str) -> str | None:
        """``"min"`` or ``"max"`` of a head ``dist[x] = min(d)``; else None."""
        return next((head.extremum for _, head in self.program.rules_of(name)), None)


class KeptComponent(Staged, ABC):
    """A component that is kept up to date."""

    _built: Mapping[str, Tuples] | None = None

    def built(self, building: Building) -> Mapping[str, Tuples]:
        """What :meth:`build` gives; built by the first call, until that is kept or dropped."""
        if self._built is None:
            self._built = self.build(building)
        return self._built

    def _keep_own(self) -> None:
        self._built = None

    def _drop_own(self) -> None:
        self._built = None

    @property
    def reads(self) -> Iterable[Read]:
        """The indices that its steps read."""
        return ()

    @property
    def nan_free(self) -> frozenset[tuple[str, int]]:
        """Columns of relations, by number, that must hold no NaN."""
        return frozenset()

    @abstractmethod
    def build(self, building: Building) -> Mapping[str, Tuples]:
        """All tuples of each head, sorted.  Raises RoundLimitError, and what rules raise on a row."""

    @abstractmethod
    def step(self, change: Round, stats: RuleStats) -> Mapping[str, Tuples]:
        """The tuples of each head that came and went, sorted, each once; ``stats`` gets what it took."""

    def check_counters(self, versions: Versions) -> None:
        """Raise AssertionError where what it counts is not what the versions that are published give."""

    @abstractmethod
    def describe(self) -> list[str]:
        """For ``explain``: how the component is kept."""


class ComponentStrategy(ABC):
    """Keeps recursive components."""

    @abstractmethod
    def plan(self, request: ComponentRequest) -> KeptComponent:
        """What keeps a component; nothing is evaluated yet."""
