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

Cost: a plan and at least ``FIRST_SAMPLES`` kernel calls of some
microseconds per order, and ``PILOT_SHARE`` of the operations that the orders
are estimated at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.planning.cost_model import DISTINCT_COST
from lftj.planning.statistics import Histogram, histogram
from lftj.search.conditions import Condition
from lftj.search.problem import JoinCondition, JoinProblem
from lftj.search.queries.plan import Plan, compile_plan
from lftj.search.queries.search import Search
from lftj.storage.catalog import Catalog

PILOT_SHARE = 0.05
FIRST_SAMPLES = 16
MORE_SAMPLES = 16
CLOSE = 3.0
LEAST_BUDGET = 50_000
MOST_BUDGET = 20_000_000
"""Operations of one order's pilot: some tens of milliseconds, whatever the query is estimated at."""

MOST_RANGES = 16
"""A second variable's keys are cut into at most this many ranges."""


def pilot(
    problem: JoinProblem, catalog: Catalog, estimates: Sequence[tuple[tuple[str, ...], float]]
) -> list[tuple[tuple[str, ...], float]]:
    """Operations of a whole evaluation by sampling, for orders with their estimated operations.

    The random draws are seeded: one problem gives one answer.
    """
    budget = PILOT_SHARE * min(cost for _, cost in estimates) / len(estimates)
    pilots = [
        OrderPilot(problem, catalog, order, cost, min(MOST_BUDGET, max(LEAST_BUDGET, budget)))
        for order, cost in estimates
    ]
    for one in pilots:
        one.draw(FIRST_SAMPLES)
    least = min(one.operations for one in pilots)
    for one in pilots:
        if one.operations <= CLOSE * least:
            one.estimate = max(one.estimate, one.operations)
            one.draw(MORE_SAMPLES)
    return [(order, one.operations) for (order, _), one in zip(estimates, pilots, strict=True)]


class OrderPilot:
    """The pilot of one order: draws samples and sums up what they say of the whole."""

    def __init__(
        self,
        problem: JoinProblem,
        catalog: Catalog,
        order: tuple[str, ...],
        estimate: float,
        budget: float,
    ) -> None:
        self.estimate = estimate
        self.budget = budget  # operations that may still be spent
        self.total = 0.0  # estimates of the whole, one per sample, summed up
        self.samples = 0
        self.generator = np.random.default_rng(0)
        first = next((depth for depth, name in enumerate(order) if name not in problem.pinned), 0)
        self.second = first + 1
        self.ranges = _ranges(problem, catalog, order[self.second]) if self.second < len(order) else None
        n_conditions = len(problem.conditions)
        if self.ranges is not None:
            limits = [JoinCondition(order[self.second], operator, None) for operator in (">=", "<=")]
            problem = replace(problem, conditions=(*problem.conditions, *limits))
        self.plan = plan = compile_plan(problem, order, write=False).bind(catalog)
        self.keys, self.starts = first_keys(plan.plan, catalog, first)
        # A short circuit ends with its first success: no sample shows how soon that is.
        self.indivisible = any(low <= first <= high for low, high in plan.plan.segments) or not len(self.keys)
        self.search = Search(self.plan)
        self.limits = [
            Condition.view(self.search.memory, item)
            for item, condition in plan.plan.condition_rows
            if condition.number >= n_conditions
        ]
        # of the second variable and those below
        self.counters = plan.plan.counter_places[self.second :].ravel()

    @property
    def operations(self) -> float:
        """Estimate of the operations of a whole evaluation, distinct rows included."""
        if not self.samples:
            return self.estimate
        walked = 0.0 if self.indivisible else 2.0 * len(self.keys)  # the first variable's own node
        return walked + self.total / self.samples

    def draw(self, wanted: int) -> None:
        """Search ``wanted`` samples, or as many as the budget allows."""
        if self.plan.empty or self.budget <= 0:
            return
        if self.indivisible:
            if not self.samples:
                opens, below = self._search(KEY_MIN, KEY_MAX)
                self.total = opens + below if self.search.done else max(opens + below, self.estimate)
                self.samples = 1
            return
        where = (np.arange(wanted) + self.generator.random(wanted)) * (self.starts[-1] / wanted)
        rows = np.minimum(np.searchsorted(self.starts, where, side="right") - 1, len(self.keys) - 1)
        keys, shares = self.keys[rows], np.diff(self.starts)[rows] / self.starts[-1]
        pieces = np.clip(np.floor(self.estimate * shares * wanted / self.budget), 1, MOST_RANGES)
        lows, highs, parts = self._second_ranges(pieces)
        for at in self.generator.permutation(wanted):
            self._limit_second(lows[at], highs[at])
            opens, below = self._search(keys[at], keys[at])
            self.total += (opens + below / parts[at]) / shares[at]
            self.samples += 1
            if self.budget <= 0:
                break

    def _second_ranges(self, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw one of each number of ranges of the second variable's keys: its limits, its share of rows."""
        if self.ranges is None:
            return pieces, pieces, np.ones(len(pieces))
        keys, starts = self.ranges.keys, self.ranges.starts
        where = self.generator.random(len(pieces)) * starts[-1]
        drawn = np.minimum(np.searchsorted(starts, where, side="right") - 1, len(keys) - 1)
        width = starts[-1] / pieces
        piece = np.floor(starts[drawn] / width)
        low = np.minimum(np.searchsorted(starts[:-1], piece * width), drawn)
        high = np.maximum(np.searchsorted(starts[:-1], (piece + 1) * width), drawn + 1)
        lows = np.where(low == 0, KEY_MIN, keys[low])
        highs = np.where(high == len(keys), KEY_MAX, keys[np.minimum(high, len(keys) - 1)] - 1)
        return lows, highs, (starts[high] - starts[low]) / starts[-1]

    def _limit_second(self, low: int, high: int) -> None:
        """Write the limits into the last two conditions on the second variable."""
        for condition, limit in zip(self.limits, (low, high), strict=False):
            condition.offset = limit

    def _search(self, low: int, high: int) -> tuple[float, float]:
        """Search first keys ``low`` to ``high``: opens of the second variable's node, other operations below.

        Where that node is limited to a range, the seeks that find it are left out: the whole has none.
        """
        search, memory = self.search, self.search.memory
        memory[self.counters] = 0
        rows = search.total
        search.restart(low, high)
        search.count_only(int(self.budget))
        counters = memory[self.counters]
        operations = float(counters.sum())
        self.budget -= operations
        opens = float(counters[0]) if len(counters) else 0.0
        below = operations - opens * (1.0 if self.ranges is None else 2.0)
        if self.plan.plan.needs_distinct:
            below += DISTINCT_COST * (search.total - rows)
        return opens, below


def _ranges(problem: JoinProblem, catalog: Catalog, name: str) -> Histogram | None:
    """The keys to cut a second variable's range by; None where a range would not show its part."""
    if name in problem.existentials or name in problem.pinned:
        return None
    columns = [
        histogram(catalog[atom.relation], atom.columns[atom.variables.index(name)])
        for atom in problem.atoms
        if name in atom.variables
    ]
    return min(columns, key=lambda column: column.n_keys, default=None)


def first_keys(plan: Plan, catalog: Catalog, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """The first variable's keys, in its shortest list, the tuples before each, and the number of all.

    ``depth``: of the first variable that no literal pins.  Of a version, as its base has them.
    """
    problem, name = plan.problem, plan.order[depth]
    codes = {c.left: c.offset for c in problem.conditions if c.operator == "=" and c.right is None}
    lists = []
    for atom in problem.atoms:
        if name not in atom.variables:
            continue
        columns, variables = atom.levels(plan.order)
        trie = catalog[atom.relation].view(((*columns, *atom.counted), atom.equal)).base
        low, high = 0, len(trie.keys[0])
        level = variables.index(name)
        for above in range(level):
            code = codes[variables[above]]
            node = low + int(np.searchsorted(trie.keys[above][low:high], code))
            found = node < high and trie.keys[above][node] == code
            low, high = trie.children[above][node : node + 2] if found else (0, 0)
        keys = trie.keys[level][low:high]
        starts = trie.leaf_offsets(level)[low : high + 1]
        for condition in problem.conditions:
            if condition.left == name and condition.right is None and condition.ranked is None:
                side: Literal["left", "right"] = "right" if condition.operator in (">", "<=") else "left"
                cut = int(np.searchsorted(keys, condition.offset, side=side))
                if condition.operator in (">", ">="):
                    keys, starts = keys[cut:], starts[cut:]
                elif condition.operator in ("<", "<="):
                    keys, starts = keys[:cut], starts[: cut + 1]
        lists.append((keys, starts - starts[0]))
    nothing = (np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    return min(lists, key=lambda pair: len(pair[0]), default=nothing)
