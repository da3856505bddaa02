"""A pilot: what a whole evaluation costs, measured on a sample of it.

A sample is one key of the order's first variable and a range of keys of its
second: small enough also where a few first keys hold most of the work.  The
kernel searches it as it would search a thread's share.  Keys are drawn with
probability proportional to their number of tuples, and the operations of each
sample, divided by its probability, are an estimate of the whole without bias
(Horvitz and Thompson).  First keys are drawn one from each of as many strata in
key order.

All orders are sampled a little; those that then are within ``CLOSE`` of the
best are sampled again.

Cost: a plan and ``FIRST_SAMPLES`` or ``SAMPLES`` kernel calls of some
microseconds per order, and ``PILOT_SHARE`` of the operations that the orders
are estimated at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from lftj import layout as L
from lftj.cost_model import DISTINCT_COST
from lftj.plan import Plan, compile_plan
from lftj.problem import JoinCondition, JoinProblem
from lftj.search import Search
from lftj.statistics import Histogram, histogram

PILOT_SHARE = 0.05
FIRST_SAMPLES = 16
SAMPLES = 32
CLOSE = 3.0
LEAST_BUDGET = 50_000
MOST_RANGES = 16
"""A second variable's keys are cut into at most this many ranges."""


def pilot(
    problem: JoinProblem, estimates: Sequence[tuple[tuple[str, ...], float]]
) -> list[tuple[tuple[str, ...], float]]:
    """Operations of a whole evaluation by sampling, for orders with their estimated operations.

    The random draws are seeded: one problem gives one answer.
    """
    budget = PILOT_SHARE * min(cost for _, cost in estimates) / len(estimates)
    pilots = [OrderPilot(problem, order, cost, max(LEAST_BUDGET, budget)) for order, cost in estimates]
    for one in pilots:
        one.draw(FIRST_SAMPLES)
    least = min(one.operations for one in pilots)
    for one in pilots:
        if one.operations <= CLOSE * least:
            one.estimate = max(one.estimate, one.operations)
            one.draw(SAMPLES)
    return [(order, one.operations) for (order, _), one in zip(estimates, pilots, strict=True)]


class OrderPilot:
    """The pilot of one order: draws samples and sums up what they say of the whole."""

    def __init__(self, problem: JoinProblem, order: tuple[str, ...], estimate: float, budget: float) -> None:
        self.estimate = estimate
        self.budget = budget  # operations that may still be spent
        self.generator = np.random.default_rng(0)
        first = next((depth for depth, name in enumerate(order) if name not in problem.pinned), 0)
        self.ranges = _ranges(problem, order[first + 1]) if first + 1 < len(order) else None
        if self.ranges is not None:
            limits = [JoinCondition(order[first + 1], op, None, L.KEY_MIN) for op in (">=", "<=")]
            problem = replace(problem, conditions=(*problem.conditions, *limits))
        plan = compile_plan(problem, order, write=False)
        self.plan = replace(plan, memory=plan.memory.copy())
        self.first = first
        self.keys, self.starts = first_keys(plan, first)
        self.search = Search(self.plan)
        self.total = 0.0  # estimates of the whole, one per sample, summed up
        self.samples = 0
        # A short circuit ends with its first success: no sample shows how soon that is.
        self.indivisible = any(low <= first <= high for low, high in plan.segments) or not len(self.keys)

    @property
    def operations(self) -> float:
        """Estimate of the operations of a whole evaluation, distinct rows included."""
        walked = 0.0 if self.indivisible else 2.0 * len(self.keys)  # the first variable's own node
        return walked + (self.total / self.samples if self.samples else self.estimate)

    def draw(self, wanted: int) -> None:
        """Search ``wanted`` samples, or as many as the budget allows."""
        if self.plan.empty or self.budget <= 0:
            return
        if self.indivisible:
            if not self.samples:
                opens, below = self._search(L.KEY_MIN, L.KEY_MAX)
                self.total = opens + below if self.search.done else max(opens + below, self.estimate)
                self.samples = 1
            return
        where = (np.arange(wanted) + self.generator.random(wanted)) * (self.starts[-1] / wanted)
        rows = np.minimum(np.searchsorted(self.starts, where, side="right") - 1, len(self.keys) - 1)
        shares = np.diff(self.starts)[rows] / self.starts[-1]
        pieces = np.clip(self.estimate * shares * wanted / self.budget, 1, MOST_RANGES)
        for at in self.generator.permutation(wanted):
            part = self._limit_second(self.ranges, pieces[at]) if self.ranges is not None else 1.0
            key = int(self.keys[rows[at]])
            opens, below = self._search(key, key)
            self.total += (opens + below / part) / shares[at]
            self.samples += 1
            if self.budget <= 0:
                break

    def _limit_second(self, column: Histogram, pieces: float) -> float:
        """Draw one of about ``pieces`` ranges of the second variable's keys; returns its share of the rows."""
        keys, starts = column.keys, column.starts
        if pieces < 2 or len(keys) < 2:
            low, high = 0, len(keys)
        else:
            width = starts[-1] / int(pieces)
            drawn = np.searchsorted(starts, self.generator.random() * starts[-1], side="right") - 1
            piece = starts[drawn] // width
            low, high = np.searchsorted(starts[:-1], [piece * width, (piece + 1) * width])
        row = self.plan.memory[L.H_DEPTH_ROWS] + (self.first + 1) * L.DEPTH_FIELDS
        last = self.plan.memory[row + L.D_CONDITION] + self.plan.memory[row + L.D_CONDITIONS] * L.CONDITION_FIELDS
        low_key = int(keys[low]) if low else L.KEY_MIN
        high_key = int(keys[high]) - 1 if high < len(keys) else L.KEY_MAX
        self.plan.memory[last - 2 * L.CONDITION_FIELDS + L.C_OFFSET] = low_key
        self.plan.memory[last - L.CONDITION_FIELDS + L.C_OFFSET] = high_key
        return float(starts[high] - starts[low]) / float(starts[-1])

    def _search(self, low: int, high: int) -> tuple[float, float]:
        """Search first keys from ``low`` to ``high``: opens of the second variable's node, other operations below.

        Where that node is limited to a range, the seeks that find it are left out: a whole evaluation has none.
        """
        search, second = self.search, self.first + 1
        before, rows = search.counters, search.total
        search.restart(low, high)
        search.count_only(int(self.budget))
        counters = search.counters - before
        self.budget -= float(counters.sum())
        if second == len(counters):
            return 0.0, 0.0
        opens = float(counters[second, L.OPENS])
        below = float(counters[second:].sum()) - opens * (1.0 if self.ranges is None else 2.0)
        if self.plan.needs_distinct:
            below += DISTINCT_COST * (search.total - rows)
        return opens, below


def _ranges(problem: JoinProblem, name: str) -> Histogram | None:
    """The keys to cut a second variable's range by; None where a range would not show its part of the work."""
    if name in problem.existentials or name in problem.pinned:
        return None
    columns = [
        histogram(atom.relation, atom.columns[atom.variables.index(name)])
        for atom in problem.atoms
        if name in atom.variables
    ]
    return min(columns, key=lambda column: column.n_keys, default=None)


def first_keys(plan: Plan, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """The first variable's keys, in its shortest list, and the tuples before each; then the number of all tuples.

    ``depth``: of the first variable that no literal pins.
    """
    problem, name = plan.problem, plan.order[depth]
    codes = {c.left: c.offset for c in problem.conditions if c.operator == "=" and c.right is None}
    lists = []
    for atom in problem.atoms:
        if name not in atom.variables:
            continue
        trie, variables = atom.trie(plan.order)
        low, high = 0, len(trie.keys[0])
        level = variables.index(name)
        for above in range(level):
            code = codes[variables[above]]
            node = low + int(np.searchsorted(trie.keys[above][low:high], code))
            found = node < high and trie.keys[above][node] == code
            low, high = trie.children[above][node : node + 2] if found else (0, 0)
        keys = trie.keys[level][low:high]
        starts = np.arange(low, high + 1)
        for children in trie.children[level:]:
            starts = children[starts]
        for condition in problem.conditions:
            if condition.left == name and condition.right is None and condition.table is None:
                side: Literal["left", "right"] = "right" if condition.operator in (">", "<=") else "left"
                cut = int(np.searchsorted(keys, condition.offset, side=side))
                if condition.operator in (">", ">="):
                    keys, starts = keys[cut:], starts[cut:]
                elif condition.operator in ("<", "<="):
                    keys, starts = keys[:cut], starts[: cut + 1]
        lists.append((keys, starts - starts[0]))
    nothing = (np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    return min(lists, key=lambda pair: len(pair[0]), default=nothing)
