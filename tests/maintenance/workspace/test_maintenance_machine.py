"""stateful: a workspace under random transactions, against the brute-force reference and a recomputing one.

A random program of up to four chained rules, with negation, is kept by trace
(with small records, a budget, runs that merge early) and by recomputation side
by side.  Transactions of up to 200 changes hold duplicates, changes of nothing,
insertions and erasures of one tuple; some raise inside the block or hold a
change that is refused.  Snapshots are held across commits and read at the end.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    run_state_machine_as_test,
)

from support.maintenance_machine import MaintenanceMachine

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]


def test_maintenance_machine() -> None:
    base = settings.default.max_examples if settings.default else 100
    run_state_machine_as_test(
        MaintenanceMachine,
        settings=settings(
            max_examples=base,
            stateful_step_count=12,
            suppress_health_check=list(HealthCheck),
        ),
    )
