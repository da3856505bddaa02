"""Quantiles: the value at which a share of a group's weight is reached.

``quantile(v, q, w)`` is the least v such that at least the share q of the group's weight lies at v or below,
``upper_quantile`` the greatest such that it lies at v or above.  Without w each assignment weighs 1: then
they are SQL's ``percentile_disc(q) within group (order by v)``, and with ``order by v desc``.

Invariants

1. Weights are whole numbers from 0, and those of all groups add up to 64 bits at most: nothing is rounded.
2. A group whose weights are all 0 has the value that any share of nothing reaches: its first in the order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from indices.keys import KEY_MAX
from lftj.errors import EvaluationError, RangeError
from lftj.language.syntax import Aggregate, share_of


def skipped(call: Aggregate, totals: np.ndarray) -> np.ndarray:
    """How much weight lies before the value, in ascending order, at most; ``totals``: of each group.

    Of a group that weighs nothing it is 0.

    >>> from lftj.language.syntax import Constant, Variable
    >>> weights = np.array([4, 5])
    >>> for function in ("quantile", "upper_quantile"):
    ...     skipped(Aggregate(function, (Variable("v"), Constant(0.25))), weights).tolist()
    [0, 1]
    [3, 3]
    """
    share = share_of(call)
    reached = [-(-share.numerator * total // share.denominator) for total in totals.tolist()]
    if call.function == "quantile":
        return np.array([max(least - 1, 0) for least in reached], np.int64)
    return totals - np.array(reached, np.int64)


def checked_amounts(
    supports: np.ndarray, weights: np.ndarray | None, name: Callable[[int], str]
) -> tuple[np.ndarray, int]:
    """What rows weigh, each as often as it is there, and all of them together.

    ``weights``: of each, 1 without; ``name``: what a message calls a row's group.  Raises EvaluationError for
    a weight below 0, RangeError where they come to more than 64 bits.
    """
    if weights is None:
        return supports, int(supports.sum())
    if len(weights) and weights.min() < 0:
        row = int(weights.argmin())
        raise EvaluationError(f"{name(row)}: {weights[row]} is no weight: weights are whole numbers from 0")
    total = int(supports @ weights)
    if supports.astype(np.float64) @ weights.astype(np.float64) >= KEY_MAX // 2:  # it may have wrapped
        total = sum(n * weight for n, weight in zip(supports.tolist(), weights.tolist(), strict=True))
        refuse_heavy(total, name)
    return supports * weights, total


def refuse_heavy(total: int, name: Callable[[int], str]) -> None:
    """Raise RangeError where weights come to more than 64 bits."""
    if total > KEY_MAX:
        raise RangeError(f"{name(0)}: the weights of all groups come to {total}, more than 64 bits hold")
