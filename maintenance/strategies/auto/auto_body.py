"""One body, kept by `trace` or by `delta`, whichever costs less, or evaluated again when both cost more.

Decisions, in counted operations (docs/design/strategies.md section 1, "auto"):

* *per commit*: the way in use may take as many operations as evaluating the body took last; when they are
  spent its rows are dropped, the body is evaluated over the old and the new versions, and what they differ in
  is the step.  So a step costs at most that much more than the better one of the two;
* *per body*: an account (:mod:`maintenance.strategies.auto.ledger`) of what the way in use costs and what the
  other one would.  What `delta` would take is measured while `trace` is in use, on a sample of the changed
  branches in every ``SHADOW_EVERY``-th step.  What `trace` would take can't be sampled without its records:
  it is taken to be what it took per changed branch when it was last in use, and before that ``TRACE_PRIOR``
  times what `delta` takes, but not more than ``ROW_PRIOR`` for each branch and each row that changed: where
  `delta` takes far more than that, `trace` is tried.

Invariants

1. Rows add up to the same whichever way is in use.
2. While `delta` is in use there are no records but those that are being prepared; the indices that `delta`
   reads are there always.
3. The way changes between two commits (:meth:`AutoBody.tidy`), never amid one, by one assignment: while
   `trace` is in use its records cover the newest versions, wherever an exception or Ctrl-C came.
4. No commit pays for the records of a whole evaluation.  They are *prepared*, a piece after each commit,
   while `delta` is still in use; those that are there follow each change.  Where following has taken the
   price of a change it ends without one, and as much has to be lost again as after a change; where a commit
   costs `delta` more than the budget it begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from indices.sensitivity import SensitivityIndex
from lftj.search.problem import JoinProblem
from lftj.search.regions.evaluation import Operations, OverBudget
from lftj.storage.signed_rows import difference, net_rows
from maintenance.staged import Staged
from maintenance.stats import RuleStats
from maintenance.strategies.auto.ledger import Ledger
from maintenance.strategies.delta.delta_body import DeltaBody
from maintenance.strategies.strategy import Assignments, BodySearch, Building, Read, Round, Versions
from maintenance.strategies.trace.body_trace import BodyTrace, Built

LEAST_BUDGET = 1 << 16
"""Operations that no step is denied, and the least price of a change: about a millisecond."""

SHADOW_EVERY = 32
SHADOW_SAMPLE = 64
"""Changed branches of each term that a sample has."""

SHADOW_SHARE = 4
"""A sample ends where it has taken so many times what the way in use took, or :data:`LEAST_BUDGET`."""

TRACE_PRIOR = 4.0
"""What `trace` costs is taken to be so many times what `delta` does, as long as nothing is known of it."""

ROW_PRIOR = 16.0
"""And at most so many operations for each changed branch and row: its cost follows what a change changes."""

PREPARED_LEAST = 1 << 14
"""Operations of a piece of the records that are prepared, beside as many as the commit took."""

Phase = Literal["delta", "prepares", "trace"]


def _is_guarded(variables: Sequence[str], problem: JoinProblem) -> bool:
    """Whether one atom has all these: what is found below a change of the negated atom are its rows."""
    return any(set(variables) <= set(atom.variables) for atom in problem.atoms)


class AutoBody(BodySearch):
    """A body whose rows hold the emitted variables and add up to their assignments."""

    def __init__(self, delta: DeltaBody, trace: BodyTrace) -> None:
        self.delta = delta
        self.trace = trace
        problem = delta.lowered.problem
        guarded = [_is_guarded(negated.variables, problem) for negated in problem.negations]
        self._phase: Phase = "delta" if all(guarded) else "trace"
        self._may_have_records = self.traces
        self.ledger = Ledger(LEAST_BUDGET)
        self.changes = 0
        self.recomputed = 0
        self._why = "a negated atom of several others' variables"
        if all(guarded):
            self._why = "each negated atom is guarded by another" if guarded else "no negated atom"
        self._whole = 0  # operations of the last whole evaluation
        self._steps = 0
        self._followed = 0  # operations of following changes in records that are being prepared
        self._per_branch: float | None = None  # what trace took per changed branch when it was last in use
        self._shadow: float | None = None  # what delta would take per changed branch, by the last sample
        self._staged: Built | None = None
        self._places = [trace.variables.index(name) for name in delta.variables]

    @property
    def traces(self) -> bool:
        """Whether `trace` is in use."""
        return self._phase == "trace"

    @property
    def prepares(self) -> bool:
        """Whether records for `trace` are being made while `delta` is in use."""
        return self._phase == "prepares"

    @property
    def parts(self) -> Sequence[Staged]:
        return (self.trace,) if self.keeps_something else ()

    @property
    def variables(self) -> tuple[str, ...]:
        return self.delta.variables

    @property
    def reads(self) -> Iterable[Read]:
        return (*self.delta.reads, *self.trace.reads)

    @property
    def lists_assignments(self) -> bool:
        return True

    @property
    def keeps_something(self) -> bool:
        return self._phase != "delta"

    @property
    def is_distinct(self) -> bool:
        return self.delta.is_distinct

    @property
    def budget(self) -> int:
        return max(LEAST_BUDGET, self._whole)

    @property
    def way(self) -> str:
        """What is in use."""
        return "trace" if self.traces else "delta"

    @property
    def sensitivity(self) -> Sequence[SensitivityIndex]:
        return self.trace.sensitivity if self.keeps_something else ()

    @property
    def nbytes(self) -> int:
        return self.trace.nbytes if self.keeps_something else 0

    def build(self, building: Building) -> Assignments:
        self.delta.prepare(building.versions)
        if not self.traces:
            rows, operations = self.delta.whole.evaluated(building)
            self._measured(operations.total)
            return rows
        rows, self._staged = self.trace.rebuilt(building)
        self._measured(self._staged.operations)
        return self._netted(self._of_trace(rows))

    def pieces(self, building: Building) -> Iterator[Assignments]:
        if self.traces:
            yield self.build(building)
            return
        self.delta.prepare(building.versions)
        operations = Operations()
        yield from self.delta.whole.searched(building, operations)
        self._measured(operations.total)

    def step(self, change: Round, stats: RuleStats) -> Assignments:
        before, branches = stats.operations, stats.surgeries
        chosen = self.way
        try:
            if self.traces:
                found = self._of_trace(self.trace.step_within(change, stats, self.budget))
            else:
                found = self.delta.step_within(change, stats, self.budget)
        except OverBudget:
            chosen = "recompute"
            self._give_up()
            found = self._recomputed(change, stats)
        stats.chosen = (*stats.chosen, chosen)
        taken = stats.operations - before
        self._enter(change, stats, taken, stats.surgeries - branches, len(found[1]))
        if self.prepares:
            self.trace.taken += taken
            self._follow(change, stats)
        return found

    def _follow(self, change: Round, stats: RuleStats) -> None:
        """Let the records that are there follow a change, whose rows `delta` has found."""
        figures, price = RuleStats(), int(self.ledger.price)
        try:
            self.trace.step_within(change, figures, price - self._followed)
        except OverBudget:
            self._give_up()
            self.ledger.changed(price)
        self._followed += figures.operations
        stats.shadow_operations += figures.operations

    def _give_up(self) -> None:
        """Prepare no further: what is recorded does not cover the newest versions."""
        if self.prepares:
            self._phase = "delta"

    def rows(self, change: Round, after: bool) -> Assignments:
        return self.delta.rows(change, after)

    def _of_trace(self, rows: Assignments) -> Assignments:
        columns, weights = rows
        return [columns[place] for place in self._places], weights

    def _netted(self, rows: Assignments) -> Assignments:
        """Rows of the trace, each once."""
        return rows if self.is_distinct else net_rows(*rows)

    def _recomputed(self, change: Round, stats: RuleStats) -> Assignments:
        """The step by two evaluations."""
        stats.recomputed += 1
        self.recomputed += 1
        (old, old_weights), operations = self.delta.whole.evaluated(Building(change.old))
        stats.count(operations)
        if self.traces:
            rows, self._staged = self.trace.rebuilt(Building(change.new))
            new, new_weights = self._netted(self._of_trace(rows))
            whole = self._staged.operations
            stats.nexts += whole
        else:
            (new, new_weights), operations = self.delta.whole.evaluated(Building(change.new))
            stats.count(operations)
            whole = operations.total
        self._measured(whole)
        return difference(new, new_weights, old, old_weights)

    def _measured(self, whole: int) -> None:
        self._whole = whole
        self.ledger.price = max(LEAST_BUDGET, whole)

    def _enter(self, change: Round, stats: RuleStats, taken: int, branches: int, rows: int) -> None:
        """Note what a step took, and what the other way would have taken."""
        if not branches:
            return
        if not self.traces:
            self.enter_steps(1, taken, branches, min(TRACE_PRIOR * taken, ROW_PRIOR * (branches + rows)))
            return
        self._steps += 1
        self._per_branch = taken / branches
        if self._shadow is None or self._steps % SHADOW_EVERY == 0:
            enough = max(LEAST_BUDGET, SHADOW_SHARE * taken)
            operations, sampled = self.delta.sampled_operations(change, SHADOW_SAMPLE, enough)
            self._shadow = operations / branches
            stats.shadow_operations += sampled
        self.ledger.enter(taken, self._shadow * branches)

    def enter_steps(self, steps: int, taken: int, branches: int, prior: float) -> None:
        """Note what so many steps by `delta` took together; ``prior``: what `trace` would, by the priors."""
        self._steps += steps
        self.ledger.enter(taken, prior if self._per_branch is None else self._per_branch * branches)

    def tidy(self, versions: Versions) -> bool:
        if self.ledger.says_change and not self.keeps_something:
            self._may_have_records = True
            self.trace.begin()
            self._followed = 0
            self._phase = "prepares"
        if self.prepares:
            self.trace.taken += PREPARED_LEAST
        rebuilt = self.keeps_something and self.trace.tidy(versions)
        if self.trace.is_whole if self.prepares else self.ledger.says_change:
            self._change_way()
        if self._may_have_records and not self.keeps_something:  # also where a change was left half way
            self.trace.take(None)
            self._may_have_records = False
        return rebuilt

    def _change_way(self) -> None:
        self._why = f"{self.way} had lost {self.ledger.price:,.0f} operations, the price of a change"
        # Decides: before it `trace` has records, behind it they may go.
        self._phase = "delta" if self.traces else "trace"
        self.changes += 1
        self._shadow = None
        self.ledger.changed(max(LEAST_BUDGET, self._whole))

    def keep(self) -> None:
        if self._phase != "delta":
            super().keep()

    def _keep_own(self) -> None:
        if self._staged is not None:
            self.trace.take(self._staged)
            self._staged = None

    def _drop_own(self) -> None:
        self._staged = None

    def _check_own(self) -> None:
        assert self._staged is None
        assert self._may_have_records or not self.trace.n_records

    def describe(self) -> list[str]:
        order, *others = (self.trace if self.traces else self.delta).describe()
        ledger = self.ledger
        if self.prepares:
            made = self.trace.renewed_operations
            others = [*others, f"records for trace are being made: {made:,} operations so far"]
        return [
            order,
            f"auto: {self.way}: {self._why}",
            f"lost {ledger.balance:,.0f} of {ledger.price:,.0f} operations; changed {self.changes} times,"
            f" evaluated again in {self.recomputed} commits",
            *others,
        ]
