"""Whether the sums of a head under `auto` are kept by views, by what that costs.

Design: docs/design/strategies.md sections 1 and 3.4.

A head begins without views, unless a single row were to cost more than building them, by the model; then its
bodies are kept by :mod:`maintenance.strategies.auto.auto_body`.  What its
commits take is metered, and entered into an account (:mod:`maintenance.strategies.auto.ledger`) beside what
the other way would take, per row of its relations that changed.  To step a rule takes its time whatever
changed, ``STEP_OPERATIONS``: so views, each of them a rule, have to spare more where transactions are small.

* *views, before they were in use*: ``VIEW_PRIOR`` times what the model of their rewriting says, and
  ``LEAST_PER_ROW`` before that was asked; afterwards, what they took when they were last in use;
* *without views, while they are in use*: the body's delta terms are run on a sample of the changed branches,
  when ``SHADOW_EVERY`` commits have taken ``SHADOW_SHARE`` times what the last sample took, and where views
  would go by an older one: relations grow.  A sample ends where it has taken that many times what views took.

When the way in use has lost the price of the other one, the head goes over: to views at the price of reading
the relations, back at that of evaluating its body.  Views that take more memory than they may are given back.

Invariants

1. Heads are the same whichever way is in use.
2. A choice belongs to one way: going over makes a new one (:meth:`ViewChoice.gone_over`), for the head that
   is kept by the other, so one assignment publishes both.

Cost: without samples, two additions per commit.  What is refused is looked at again when twice as much was
lost as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lftj.language.body import CheckedProgram
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Aggregate
from lftj.rewriting.view_tree import SUMMED
from maintenance.stats import RuleStats
from maintenance.strategies.auto.auto_body import LEAST_BUDGET, SHADOW_EVERY, SHADOW_SAMPLE, SHADOW_SHARE
from maintenance.strategies.auto.ledger import Ledger
from maintenance.strategies.delta.delta_body import DeltaBody
from maintenance.strategies.strategy import Round

VIEW_PRIOR = 4.0
"""Views are taken to cost so many times what the model says, as long as they were not tried."""

LEAST_PER_ROW = 16.0
"""Operations per changed row below which nobody asks for views."""

STEP_OPERATIONS = 2_000
"""What a rule that is stepped takes besides its operations: a tenth of a millisecond or a little less."""


def first_choice(program: CheckedProgram, name: str) -> ViewChoice | None:
    """The choice of a head of a program as it was written; None where it sums up no join."""
    for head_name in program.derived:
        if shown_name(head_name) != name:
            continue
        for rule, head in program.rules_of(head_name):
            atoms = rule.bodies[0].atoms
            sums = isinstance(head.value, Aggregate) and head.value.function in SUMMED
            if sums and len(rule.bodies) == 1 and len(atoms) > 1:
                return ViewChoice(Counter(atom.relation for atom in atoms))
    return None


class ViewChoice:
    """The choice of one head.

    ``atoms``: how many atoms of its body each relation has.  ``in_use``: whether it has views.
    """

    def __init__(self, atoms: Mapping[str, int], in_use: bool = False) -> None:
        self.atoms = atoms
        self.in_use = in_use
        self.why = ""  # nobody looked for views
        self.ledger = Ledger(LEAST_BUDGET)
        self.n_changes = 0
        self.exceeds: str | None = None
        """Why views that are in use have to go at once, if so."""
        self._views_per_row: float | None = None  # measured where they were in use
        self._was_tried = in_use
        self._foreseen: float | None = None
        self._deltas: Sequence[DeltaBody] = ()
        self._shadow: float | None = None  # of the last sample, per row
        self._spent = 0  # of the last sample
        self._taken, self._rows, self._metered, self._steps = 0, 0, 0, 0
        self._rules = 1
        """That a commit steps without views."""
        self._view_rules = sum(atoms.values()) + 1
        """And with them; as long as they were not tried, a view for each atom and the head."""

    @property
    def wants_change(self) -> bool:
        return self.ledger.says_change or self.exceeds is not None

    def looks_at_memory(self, commits: int) -> bool:
        """Whether it is time for it again, in one of the next commits."""
        return self.in_use and -self._steps % SHADOW_EVERY < commits

    def _samples(self, commits: int) -> bool:
        """Whether it is time to look at what the other way takes: first when as much was taken as is a
        sample's share, so that views of empty tables begin without one."""
        if not self.in_use:
            return False
        if self._shadow is None:
            return SHADOW_SHARE * self._taken >= LEAST_BUDGET
        return self._taken >= SHADOW_SHARE * self._spent and -self._steps % SHADOW_EVERY < commits

    def enter(
        self, taken: int, n_rules: int, n_rows: int, change: Round | None, stats: RuleStats, commits: int = 1
    ) -> None:
        """Commits that changed so many rows of the atoms took so many operations, in so many steps of rules.

        ``change``: of all of them, to sample.
        """
        if not n_rows:
            return
        if change is not None and (self._samples(commits) or self._would_go(taken, n_rules, n_rows, commits)):
            enough = max(LEAST_BUDGET, SHADOW_SHARE * (taken + STEP_OPERATIONS * n_rules))
            samples = [delta.sampled_operations(change, SHADOW_SAMPLE, enough) for delta in self._deltas]
            self._shadow = sum(estimate for estimate, _ in samples) / n_rows
            self._spent = sum(spent for _, spent in samples)
            self._taken = 0
            stats.shadow_operations += self._spent
        self._steps += commits
        self._metered += commits
        self._taken += taken
        self._rows += n_rows
        if self.in_use:
            self._views_per_row, self._view_rules = taken / n_rows, round(n_rules / commits)
            other, more = self._shadow, n_rules - commits * self._rules
        else:
            self._rules = round(n_rules / commits)
            other = LEAST_PER_ROW if self._views_per_row is None else self._views_per_row
            more = n_rules - commits * self._view_rules
        self.ledger.enter(taken + STEP_OPERATIONS * more, taken if other is None else other * n_rows)

    def _would_go(self, taken: int, n_rules: int, n_rows: int, commits: int) -> bool:
        """Whether the account would say so after commits, by a sample of another one."""
        if not self.in_use or self._shadow is None:
            return False
        lost = taken + STEP_OPERATIONS * (n_rules - commits * self._rules) - self._shadow * n_rows
        return self.ledger.balance + lost >= self.ledger.price

    def foresee(self, without: float) -> None:
        """A changed row would take so many operations without views, more than building them."""
        self._foreseen = without

    def pays(self, model: float) -> bool:
        """Whether views that take so many operations per row, by the model, are to be tried now.

        If not, the account goes on with what they would take.
        """
        if self._was_tried or self._foreseen is not None:
            return True
        expected = VIEW_PRIOR * model
        stepping = STEP_OPERATIONS * (self._view_rules - self._rules) * self._metered
        if self._taken > expected * self._rows + stepping:
            return True
        self._views_per_row = expected
        self.why = (
            f"a changed row takes {self._taken / self._rows:,.0f} operations,"
            f" and with views about {model:,.0f}, or {VIEW_PRIOR:.0f} times that"
        )
        self._begin_again(self.ledger.price)
        return False

    def refuse(self, why: str) -> None:
        """There are no views, for now."""
        self.why = why
        self._begin_again(2 * self.ledger.price)

    def _begin_again(self, price: float) -> None:
        self.ledger.price, self.ledger.balance = price, 0.0
        self._taken, self._rows, self._metered = 0, 0, 0

    def gone_over(self, price: float, deltas: Sequence[DeltaBody] = ()) -> ViewChoice:
        """The choice of the same head when it is kept the other way; ``price``: of the way back.

        ``deltas``: of the bodies as they were written, while there are views.
        """
        other = ViewChoice(self.atoms, not self.in_use)
        way = "views" if self.in_use else "keeping all assignments"
        other.why = (
            self.exceeds or f"{way} had lost {self.ledger.balance:,.0f} operations, the price of a change"
        )
        if self._foreseen is None:
            other.n_changes = self.n_changes + 1
        else:
            other.why = f"without them a row was foreseen to take {self._foreseen:,.0f} operations"
        other.ledger.changed(max(LEAST_BUDGET, price))
        if self.exceeds:
            other.ledger.changed(2 * max(self.ledger.price, price))
        other._was_tried = True
        other._views_per_row = self._views_per_row
        other._rules, other._view_rules = self._rules, self._view_rules
        other._deltas = deltas
        return other

    def describe(self) -> list[str]:
        """For ``explain``; nothing as long as nobody looked for views."""
        ledger = self.ledger
        if not self.why:
            return []
        return [
            f"auto: {'views' if self.in_use else 'no views'}: {self.why}",
            f"lost {ledger.balance:,.0f} of {ledger.price:,.0f} operations; changed {self.n_changes} times",
        ]
