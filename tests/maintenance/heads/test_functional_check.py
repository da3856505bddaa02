"""One value per key: a second is refused at installing and by a commit, whatever keeps the head.

The check is one kernel with one signature; signs of changes come as all kinds of arrays: with memory of their
own, read-only, or as one number that stands for all.
"""

from __future__ import annotations

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES

PLAIN = "h1[b] = a <- r0(b, a, _)."
OVER_A_HEAD = (
    "h0(a, b, c, d) <- r0(a, b, c), r0(_, _, a), a = d. h1[b] = a <- h0(a, b, c, d), h0(a, b, c, d)."
)
PROJECTED = "h1[b] = a <- r0(b, a, c), r0(_, c, _)."
TWO_RULES = "h1[b] = a <- r0(b, a, _). h1[b] = a <- r0(a, b, _), r0(_, b, _)."
SECOND_VALUES = {PLAIN: (0, 1, 0), OVER_A_HEAD: (1, 0, 1), PROJECTED: (0, 1, 0), TWO_RULES: (0, 1, 0)}
"""By rules a row of ``r0`` that gives key 0 a second value beside that of (0, 0, 0)."""


def test_a_second_value_is_refused_by_every_strategy_in_one_process() -> None:
    for rules, second in SECOND_VALUES.items():
        for strategy in [name for name in STRATEGIES if name != "stages"]:
            workspace = Workspace()
            workspace.load("r0", [(0, 0, 0)], columns=["x", "y", "z"])
            workspace.install(rules, strategy)
            with (
                pytest.raises(errors.FunctionalConflictError, match=r"h1\[0\] has two values"),
                workspace.transaction() as tx,
            ):
                tx.insert("r0", [second])
            assert set(workspace["h1"]) == {(0, 0)}
            with workspace.transaction() as tx:  # another in place of the one that goes is no second one
                tx.insert("r0", [second])
                tx.erase("r0", [(0, 0, 0)])
            assert tx.changes["h1"]["weight"].to_pylist().count(-1) == 1
            workspace.verify()
            fresh = Workspace()
            fresh.load("r0", [(0, 0, 0), second], columns=["x", "y", "z"])
            with pytest.raises(errors.FunctionalConflictError, match=r"h1\[0\] has two values"):
                fresh.install(rules, strategy)
