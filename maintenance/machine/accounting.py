"""What the machine's commits took, for the accounts of heads under `auto`: told when versions are folded.

Design: docs/design/strategies.md section 1.

A body's account (:class:`~maintenance.strategies.auto.auto_body.AutoBody`) is entered as if each commit had
gone the general way, but that what it has lost is compared with the price of a change at folds only; that of
a head which may have views (:class:`~maintenance.strategies.auto.view_choice.ViewChoice`) gets all commits as
one.

Invariant: what a commit took is added up where it is published, and forgotten where it is not.

Cost: of a commit a few additions for each body and relation.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from indices.compiled import part
from lftj.memory import view
from maintenance.machine.records import Account, Relation, account_at, relation_at
from maintenance.stats import RuleStats
from maintenance.strategies.auto import auto_body
from maintenance.strategies.auto.auto_body import AutoBody


@part(makes_arrays=True)
def forget(program):
    """Nothing was taken by the commit that begins."""
    for where in view(program.accounts, program.n_accounts):
        account = account_at(where)
        account.taken = account.branches = account.rows = 0


@part
def note_join(op, operations, n_branches, n_rows):
    """Let the account of a JOIN's body have what that took."""
    if op.account != 0:
        account = account_at(op.account)
        account.taken += operations + n_branches
        account.branches += n_branches
        account.rows += n_rows


@part(makes_arrays=True)
def add_up(program):
    """The commit is published."""
    for where in view(program.relations, program.n_relations):
        relation = relation_at(where)
        if relation.touched:
            relation.steps += 1
            relation.all_changed += relation.changed
            relation.all_opens += relation.opens
            relation.all_nexts += relation.nexts
            relation.all_seeks += relation.seeks
            relation.all_failed += relation.failed
            relation.all_surgeries += relation.surgeries
            relation.all_regions += relation.regions
            program.taken += relation.opens + relation.nexts + relation.seeks + relation.surgeries
    for where in view(program.accounts, program.n_accounts):
        account = account_at(where)
        if account.branches > 0:
            by_rows = account.per_row * (account.branches + account.rows)
            account.steps += 1
            account.all_taken += account.taken
            account.all_branches += account.branches
            account.all_prior += min(account.per_operation * account.taken, by_rows)


@dataclass(frozen=True)
class Taken:
    """What commits took together: by head in how many of them it was stepped, and its figures; and by
    relation how many rows came and went."""

    steps: dict[str, int] = field(default_factory=dict)
    rules: dict[str, RuleStats] = field(default_factory=dict)
    n_changed: dict[str, int] = field(default_factory=dict)


def taken_since(relations: Mapping[str, Relation], strategies: Mapping[str, str]) -> Taken:
    """What was added up since this was last asked; ``strategies``: those of heads."""
    taken = Taken()
    for name, its in relations.items():
        steps = int(its.steps)
        if not steps:
            continue
        taken.n_changed[name] = int(its.all_changed)
        if name in strategies:
            taken.steps[name] = steps
            figures = taken.rules[name] = RuleStats(strategies[name], head_changes=int(its.all_changed))
            figures.opens, figures.nexts, figures.seeks = map(
                int, (its.all_opens, its.all_nexts, its.all_seeks)
            )
            figures.empty_regions, figures.surgeries = int(its.all_failed), int(its.all_surgeries)
            figures.regions = int(its.all_regions)
        its.steps = its.all_changed = its.all_opens = its.all_nexts = its.all_seeks = 0
        its.all_failed = its.all_surgeries = its.all_regions = 0
    return taken


class BodyAccount:
    """Of one body, and the record that JOINs write."""

    def __init__(self, body: AutoBody) -> None:
        self.body = body
        self.words = np.zeros(Account.LENGTH, np.int64)
        its = self._record = Account(self.words)
        its.per_operation, its.per_row = int(auto_body.TRACE_PRIOR), int(auto_body.ROW_PRIOR)

    def enter(self) -> None:
        """Let the body have what came since this was last done."""
        its = self._record
        steps, taken, branches, prior = map(int, (its.steps, its.all_taken, its.all_branches, its.all_prior))
        its.steps = its.all_taken = its.all_branches = its.all_prior = 0
        if steps:
            self.body.enter_steps(steps, taken, branches, prior)
