"""What a strategy is: it plans how a rule's body, or a whole head, is kept up to date.

There are two kinds, by what they keep.  A `BodyStrategy` plans the searches of one body; heads add
up what their bodies give (:mod:`maintenance.heads`).  A `HeadStrategy` plans a whole head.  The
list of all is :mod:`maintenance.heads.strategies`.

Invariants

1. ``build`` and ``step`` stage (:mod:`maintenance.staged`); one of them is kept or dropped before the next.
2. What ``build`` and the steps that were kept gave adds up to what evaluating over the newest versions gives.
3. A `Round` grows upwards: a relation's change is entered before anything that reads it is stepped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np

from indices.sensitivity import SensitivityIndex
from lftj.language.body import Body, CheckedProgram, CheckedRule
from lftj.planning.lowered import Lowered
from lftj.process.progress import Advance
from lftj.search.problem import JoinAtom
from lftj.storage.catalog import IndexKey
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns
from maintenance.changes.change import Change
from maintenance.staged import Staged
from maintenance.stats import RuleStats

Made = TypeVar("Made")

Versions = Mapping[str, RelationVersion]
Assignments = tuple[Columns, np.ndarray]
"""One column per variable, and the signed weight of each assignment."""
Tuples = tuple[Columns, np.ndarray]
"""One column per column of a head, and the sign of each tuple."""
Read = tuple[str, IndexKey]
"""A relation, and one of its indices."""


class Shared:
    """What is worked out once for all that ask in a round."""

    def __init__(self) -> None:
        self._made: dict[Hashable, object] = {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` gives for whoever asks first; ``key`` stands for nothing else."""
        if key not in self._made:
            self._made[key] = make()
        return cast("Made", self._made[key])


@dataclass(eq=False)
class Round:
    """One maintenance round: both versions of every relation, and what lies between them."""

    old: Versions
    new: dict[str, RelationVersion]
    changes: dict[str, Change]
    """Of the relations that changed, as far as the round has come."""
    shared: Shared = field(default_factory=Shared)
    stepped: dict[object, tuple[Mapping[str, np.ndarray], np.ndarray]] = field(default_factory=dict)
    """Rows and signs of bodies whose step is known before it is asked for."""

    def enter(self, name: str, change: Change) -> RelationVersion:
        """Enter a relation's change, which has rows; returns its new version."""
        self.changes[name] = change
        version = self.new[name] = self.new[name].advance(change.columns, change.weights)
        return version

    def beside(self, name: str, old: RelationVersion, new: RelationVersion, change: Change) -> Round:
        """This round with a relation that only the caller knows; what is shared is shared by both."""
        changes = {**self.changes, name: change} if len(change) else self.changes
        return Round({**self.old, name: old}, {**self.new, name: new}, changes, self.shared, self.stepped)


@dataclass(frozen=True, eq=False)
class Building:
    """An evaluation from nothing: over these versions, by so many threads, with what moves a bar."""

    versions: Versions
    threads: int = 1
    advance: Advance | None = None


# -- one body --------------------------------------------------------------------------


@dataclass(frozen=True)
class BodyRequest:
    """A body that is to be kept.

    ``wanted``: variables that rows must hold.  ``every``: rows are assignments of all variables.
    ``added_up``: rows only have to add up to that many: one may stand for several.
    ``extremum``: ``("max", "u")`` where of each group's rows only the greatest u counts, so that others may
    be left out.  ``grouped``: those of ``wanted`` that are keys of a functional head.  ``order``: the
    caller's key order.  ``gap``: an iterator that seeks on by at most this many keys stays one record.
    ``relations``: the relations that the body is planned over, as they are.
    """

    rule: CheckedRule
    body: Body
    relations: Versions
    wanted: Sequence[str]
    every: bool = False
    added_up: bool = False
    extremum: tuple[str, str] | None = None
    grouped: Sequence[str] = ()
    order: Sequence[str] | None = None
    gap: int = 0


class BodySearch(Staged, ABC):
    """A search whose rows are kept up to date.

    Each row has weight 1, or where some variables are only counted, the number of assignments that it stands
    for.  Rows of ``build`` are all different.
    """

    @property
    def is_distinct(self) -> bool:
        """Whether the rows hold all variables, so that none of them stands for several assignments."""
        return True

    @property
    def lists_assignments(self) -> bool:
        """Whether its rows add up to all assignments of the body's variables, none left out as another's."""
        return False

    @property
    def keeps_something(self) -> bool:
        """Whether a step stages anything."""
        return True

    stages = True
    """Whether a step may ever stage anything."""

    @property
    def budget(self) -> int | None:
        """Operations after which a step goes another way; None where there is none."""
        return None

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """What the columns of its rows are."""

    @abstractmethod
    def build(self, building: Building) -> Assignments:
        """All rows over the versions, sorted by the variables in their order."""

    def pieces(self, building: Building) -> Iterator[Assignments]:
        """Rows that add up to those of :meth:`build`, in pieces; rows of several pieces may be alike.

        Staged, like a build, when the last piece was taken.
        """
        yield self.build(building)

    @abstractmethod
    def step(self, change: Round, stats: RuleStats) -> Assignments:
        """The rows that came (+1) and went (-1); ``stats`` gets what it took."""

    @abstractmethod
    def rows(self, change: Round, after: bool) -> Assignments:
        """All rows before the round, or, to be asked for when it was stepped, ``after`` it."""

    def tidy(self, versions: Versions) -> bool:
        """Give back what is no more needed, over versions that are published; True for a build anew."""
        return False

    @property
    def reads(self) -> Iterable[Read]:
        """The indices that its steps read, which are held while it is installed."""
        return ()

    @property
    def sensitivity(self) -> Sequence[SensitivityIndex]:
        """The sensitivity records that it keeps, which may be shrunk between two rounds."""
        return ()

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory of what it keeps."""

    @abstractmethod
    def describe(self) -> list[str]:
        """For ``explain``: the order of its variables, then a line for each thing that it keeps."""


class BodyTest(BodySearch):
    """A search whose rows let all rows of a body pass, or none."""

    @property
    @abstractmethod
    def holds(self) -> bool:
        """Whether it has a row."""

    @property
    @abstractmethod
    def will_hold(self) -> bool:
        """:attr:`holds`, after what is staged."""


@dataclass(frozen=True)
class BodySearches:
    """How a body is kept.

    ``rows``: searches that must all hold a row.  ``tests``: searches that must all hold for any row.
    ``unbound``: atoms that bind no variable, with whether they are negated: they ask if there is a tuple.
    ``notes``: what was decided, for ``explain``.
    """

    rows: tuple[BodySearch, ...]
    tests: tuple[BodyTest, ...]
    unbound: tuple[tuple[JoinAtom, bool], ...]
    notes: tuple[str, ...]


class BodyStrategy(ABC):
    """Keeps rules body by body."""

    fetches = True
    """Whether what is joined with nothing is read off the rows of wide relations when they were found."""

    @abstractmethod
    def plan(self, request: BodyRequest, lowered: Lowered) -> BodySearches:
        """The searches of a body; nothing is evaluated yet.

        ``lowered``: the request's body.  Raises OrderError when the request's order does not fit.
        """


# -- one head --------------------------------------------------------------------------


@dataclass(frozen=True)
class HeadRequest:
    """A head that is to be kept: one of a program's.  ``reads``: the relations in its rules."""

    name: str
    program: CheckedProgram
    reads: frozenset[str]


class HeadSource(Staged, ABC):
    """Where tuples of a head come from: one of its rules, or all of them at once."""

    is_distinct: bool
    """Each tuple is given once; else as often as its support counts."""
    is_function: bool
    """No two tuples agree on all columns but the last."""
    is_net = False
    """The tuples of a step are sorted, and each comes once."""
    sorted_by: tuple[int, ...] | None
    """The permutation of the head's columns by which the distinct tuples of ``build`` are sorted, if any."""

    @property
    def searches(self) -> Sequence[BodySearch]:
        """The searches that the head pays for."""
        return ()

    @property
    def keeps_something(self) -> bool:
        """Whether a step stages anything."""
        return True

    @property
    def reads(self) -> Iterable[Read]:
        """The indices that its steps read, those of its searches among them."""
        return ()

    @property
    def nan_free(self) -> frozenset[tuple[str, int]]:
        """Columns of relations, by number, that must hold no NaN."""
        return frozenset()

    @property
    def shared(self) -> frozenset[Staged]:
        """Those of its parts that other heads may have too; a round steps them once."""
        return frozenset()

    @abstractmethod
    def build(self, building: Building) -> Tuples:
        """All tuples."""

    @abstractmethod
    def step(self, change: Round, stats: RuleStats) -> Tuples:
        """The tuples that came and went, signed; ``stats`` gets what it took."""

    def tidy(self, versions: Versions) -> int:
        """Give back what is no more needed, over versions that are published; how many searches it built."""
        return 0

    def check_counters(self, versions: Versions) -> None:
        """Raise AssertionError where what it counts is not what the versions that are published give."""

    def hand_over(self) -> None:
        """Let others pay for what is shared with them."""

    def leave(self) -> None:
        """Give up what is shared with others."""

    def describe(self) -> list[str]:
        """For ``explain``: how the tuples are made."""
        return []


class HeadStrategy(ABC):
    """Keeps heads whole."""

    @abstractmethod
    def plan(self, request: HeadRequest) -> HeadSource:
        """The source of a head; nothing is evaluated yet."""


Strategy = BodyStrategy | HeadStrategy
