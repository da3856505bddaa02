"""stateful: a workspace under random transactions, against the brute-force reference and another strategy.

A random program of up to four chained rules, with negation, is kept by trace
(with small records, a budget, runs that merge early) and by another strategy side
by side; random recursive programs, of which there are fewer, by all strategies that keep
recursive heads.  Between two commits a head may go over to any other strategy.
Transactions of up to 200 changes hold duplicates, changes of nothing,
insertions and erasures of one tuple; some raise inside the block or hold a
change that is refused.  Snapshots are held across commits and read at the end.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    run_state_machine_as_test,
)

from support.daily import drawn_daily
from support.maintenance_machine import MaintenanceMachine
from support.recursive_machine import RecursiveMachine

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]


def run(machine: type[MaintenanceMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        drawn_daily(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
        ),
    )


def profile_examples() -> int:
    return settings.default.max_examples if settings.default else 100


def test_maintenance_machine() -> None:
    run(MaintenanceMachine, profile_examples(), 12)


def test_recursive_machine() -> None:
    run(RecursiveMachine, max(1, profile_examples() // 15), 5)
