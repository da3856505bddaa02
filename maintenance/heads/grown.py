"""`Grown`: a relation that only grows: what commits add to it is kept, and in the journal.

It stands among the heads in the order in which a commit steps them, behind what it reads and before what
reads it; but nothing makes it again: to rules, and to whoever verifies or recovers, it is a relation like
those that are loaded.

Invariants

1. What a commit adds is not there before.
2. A commit that is done again, or taken back, is told what it added (:class:`Moment` is None then).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lftj.language.body import Source
from maintenance.changes.change import Change
from maintenance.changes.timed_change import TimedChange
from maintenance.staged import Staged
from maintenance.strategies.strategy import Round
from maintenance.strategies.timed_round import TimedRound


@dataclass(frozen=True)
class Moment:
    """A commit: the clock before it and behind it; by base relation, what it brought, before rows leave."""

    before: int | None
    now: int | None
    came: Mapping[str, Change]


class Grown(ABC):
    """One relation."""

    name: str
    reads: frozenset[str]
    read_columns: frozenset[Source] = frozenset()
    reads_as_functions: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[frozenset[Staged]] = frozenset()
    timed_refusal: str | None = None
    """Why :meth:`gained_each` can't be had, if so."""

    @property
    @abstractmethod
    def what(self) -> str:
        """What its rows are, for messages: ``"the rows of 'vol' that have closed"``."""

    @property
    @abstractmethod
    def record(self) -> Mapping[str, Any]:
        """All of it, as the journal has it."""

    @property
    @abstractmethod
    def explanation(self) -> str:
        """For ``explain``: by what it grows."""

    @abstractmethod
    def may_gain(self, changed: Set[str], moves: bool) -> bool:
        """Whether a batch may add rows that changes these relations, and ``moves`` the clock on."""

    @abstractmethod
    def gained(self, change: Round, moment: Moment) -> Change | None:
        """What a commit adds; None for nothing."""

    def gained_each(self, batch: TimedRound, before: int | None, nows: np.ndarray) -> TimedChange:
        """What each transaction of a batch adds.

        ``before``: the clock before it; ``nows``: int64 (transactions,), behind each.
        """
        raise NotImplementedError(self.timed_refusal)
