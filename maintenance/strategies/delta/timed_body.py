"""One body through a batch: the assignments that come or go, and when (docs/design/strategies.md section 1).

Each assignment that is not there all the time is found once, by the delta rule of
:class:`~maintenance.strategies.timed_round.TimedRound`: a kernel call per term for all transactions
together.  It is there while all its tuples are: the product of their histories, of which most have one.

Invariant: for every transaction the rows at its time add up to the assignments after it less those before it.

Cost: that of one delta step with all touched tuples, and O(changes of the tuples) per assignment.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from indices.compiled import kernel
from lftj.planning.lowered import Lowered
from lftj.storage.signed_rows import table_of
from maintenance.stats import RuleStats
from maintenance.strategies.delta.term import plan_terms
from maintenance.strategies.strategy import Read, Versions
from maintenance.strategies.timed_round import Histories, TimedRound, places_in


class TimedBody:
    """A body without negated atoms, all of whose assignments are listed."""

    def __init__(self, lowered: Lowered, versions: Versions) -> None:
        """``lowered``: counts nothing; it is planned over the versions, whose indices are built."""
        problem = lowered.problem
        assert not problem.negations and not any(atom.counted for atom in problem.atoms)
        self.lowered = lowered
        self.variables = problem.variables
        listing = replace(problem, emitted=self.variables, counted=True)
        self._terms = plan_terms(listing, versions, self.variables)
        self._terms.prepare(versions)
        self._relations = tuple(dict.fromkeys(atom.relation for atom in problem.atoms))
        self._paths = [
            [self.variables.index(name) for name in plan.choice.order[: plan.choice.bound]]
            for plan in self._terms.plans
        ]

    @property
    def reads(self) -> Iterator[Read]:
        """The indices that its terms read."""
        return self._terms.reads

    def rows(
        self, change: TimedRound, stats: RuleStats, budget: int | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Assignments, int64 (variables, n), the time of each, and 1 where it comes, -1 where it goes.

        Raises OverBudget soon after more than ``budget`` operations.
        """
        universe = change.universe_of(self._relations)
        found = self._terms.rows(universe, stats, budget)
        if found is None or not len(found[1]):
            none = np.empty(0, np.int64)
            return np.empty((len(self.variables), 0), np.int64), none, none
        assignments = table_of(found[0], len(found[1]))
        tuples, histories = [], []
        for plan, path in zip(self._terms.plans, self._paths, strict=True):
            own = change.histories(plan.change.relation, plan.change.key, plan.level)
            if own is not None:
                tuples.append(places_in(own.paths, assignments[path]))
                histories.append(own)
        numbers, times, signs = _product(np.array(tuples), *_joined(histories))
        return assignments.take(numbers, axis=1), times, signs


def _joined(histories: list[Histories]) -> tuple[np.ndarray, ...]:
    """Histories one behind the other: the number of the first branch of each, and their arrays."""
    firsts = np.cumsum([0, *(len(own.were_there) for own in histories)])
    ends = np.cumsum([0, *(len(own.times) for own in histories)])
    offsets = [own.offsets[:-1] + end for own, end in zip(histories, ends[:-1], strict=True)]
    return (
        firsts[:-1],
        np.concatenate([*offsets, ends[-1:]]),
        np.concatenate([own.times for own in histories]),
        np.concatenate([own.signs for own in histories]),
        np.concatenate([own.were_there for own in histories]).astype(np.int64),
    )


@kernel(makes_arrays=True)
def _product(tuples, firsts, offsets, all_times, all_signs, were_there):
    """When assignments come and go: the number of one, the time and the sign of each change.

    tuples: int64 (atoms, n), the branch of each atom, -1 where it is there all the time.  firsts: int64
    (atoms,), the number of each atom's branch 0; by that number: offsets, int64, of the changes in all_times
    and all_signs; were_there: int64, 1 or 0 at first.
    """
    atoms, n = tuples.shape
    room = 0
    for row in range(n):
        for atom in range(atoms):
            if tuples[atom, row] >= 0:
                branch = firsts[atom] + tuples[atom, row]
                room += offsets[branch + 1] - offsets[branch]
    numbers, times, signs = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    at, end, there = np.empty(atoms, np.int64), np.empty(atoms, np.int64), np.empty(atoms, np.int64)
    found = 0
    for row in range(n):
        missing = 0
        for atom in range(atoms):
            at[atom] = end[atom] = 0
            if tuples[atom, row] >= 0:
                branch = firsts[atom] + tuples[atom, row]
                at[atom], end[atom] = offsets[branch], offsets[branch + 1]
                there[atom] = were_there[branch]
                missing += 1 - there[atom]
        going = True
        while going:
            going = False
            time = np.int64(0)
            for atom in range(atoms):
                if at[atom] < end[atom] and (not going or all_times[at[atom]] < time):
                    going, time = True, all_times[at[atom]]
            if not going:
                break
            before = missing
            for atom in range(atoms):
                if at[atom] < end[atom] and all_times[at[atom]] == time:
                    missing -= all_signs[at[atom]]
                    at[atom] += 1
            if (before == 0) != (missing == 0):
                numbers[found], times[found] = row, time
                signs[found] = 1 if missing == 0 else -1
                found += 1
    return numbers[:found].copy(), times[:found].copy(), signs[:found].copy()
