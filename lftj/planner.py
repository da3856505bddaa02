"""Choosing the key order: estimates for all orders, then a pilot of the best few.

ENGINE.md section 3 asks for an order by cost from statistics.  Estimates alone
are off by large factors on skewed and correlated data, so this planner goes one
step further: it *measures* the few orders that the estimates leave, each on a
small sample of first keys, with the kernel's own counters
(``tests/test_planner.py`` compares with the best of all orders).

1. Dynamic programming over sets of bound variables: the best order of a set is
   the best order of the set less one variable, extended.  The cost of an
   extension is the number of bindings so far times the operations at a node
   there; both come from :mod:`lftj.statistics`.
2. Existential components are either *segments* (put where all variables that
   they touch are bound, left at the first success) or *free* (ordered like
   others; the rows then have to be made distinct).  All combinations are tried.
3. The best orders that differ are piloted when the estimate is above
   ``PILOT_FROM`` operations: first keys are drawn with probability proportional
   to their number of tuples, and the sum of measured operations, each divided
   by its key's probability, estimates the whole (Horvitz and Thompson).

Cost: O(2^n * n) estimates for n variables up to ``EXACT_UP_TO``; beyond that the
same search keeps only the ``BEAM`` cheapest sets of each size.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lftj import layout as L
from lftj.errors import OrderError
from lftj.plan import compile_plan
from lftj.problem import JoinAtom, JoinProblem, needs_distinct, segments_of
from lftj.search import Search
from lftj.statistics import Source, distinct, histogram, weighted_fanout

EXACT_UP_TO = 10
BEAM = 200
PILOT_FROM = 100_000
PILOT_ORDERS = 6
PILOT_KEYS = 40
PILOT_BUDGET = 1 << 21
PILOT_RATIO = 30.0
"""Orders estimated at more than this many times the best one are not piloted."""

DISTINCT_COST = 10.0
"""Operations that making one row distinct is worth."""


@dataclass(frozen=True)
class DepthEstimate:
    """What the planner expects at one depth."""

    variable: str
    nodes: float  # bindings of the depths before
    matches: float  # bindings of this depth, over all nodes
    operations: float


@dataclass(frozen=True)
class OrderChoice:
    """The order, why, and what else was looked at."""

    order: tuple[str, ...]
    estimates: tuple[DepthEstimate, ...]
    reason: str
    piloted: tuple[tuple[tuple[str, ...], float], ...] = ()  # order and operations by its pilot

    @property
    def operations(self) -> float:
        return sum(estimate.operations for estimate in self.estimates)


def choose_order(
    problem: JoinProblem, pinned_order: Sequence[str] | None = None, known: Iterable[str] = ()
) -> OrderChoice:
    """The key order for a problem; ``pinned_order`` is the caller's, checked and completed.

    ``known``: all variables of the body; those that the search needs not walk may be in ``pinned_order``.
    Raises OrderError when ``pinned_order`` does not fit.
    """
    model = _CostModel(problem)
    if pinned_order is not None:
        order = complete_order(problem, pinned_order, known)
        return OrderChoice(order, model.path(order).estimates, "given by the caller")
    if len(problem.variables) < 2:
        return OrderChoice(problem.variables, model.path(problem.variables).estimates, "the only order")
    candidates = _candidates(model)
    costs = {order: model.cost(order) for order in candidates}
    ranked = sorted(candidates, key=lambda order: costs[order])
    best = ranked[0]
    piloted: list[tuple[tuple[str, ...], float]] = []
    reason = f"least estimated cost of {len(candidates)} candidate orders"
    if costs[best] >= PILOT_FROM and len(ranked) > 1:
        worth = [order for order in ranked if costs[order] <= PILOT_RATIO * costs[best]][:PILOT_ORDERS]
        if len(worth) > 1:
            piloted = [(order, pilot(problem, order)) for order in worth]
            best = min(piloted, key=lambda pair: pair[1])[0]
            reason = f"least operations in a pilot of the {len(worth)} best estimated orders"
    return OrderChoice(best, model.path(best).estimates, reason, tuple(piloted))


def complete_order(problem: JoinProblem, wanted: Sequence[str], known: Iterable[str] = ()) -> tuple[str, ...]:
    """The caller's order with constants first and left-out existentials last; OrderError when it does not fit."""
    names = [name for name in problem.variables if name not in problem.labels]
    possible = dict.fromkeys([*known, *names])
    unknown = [name for name in wanted if name not in possible]
    if unknown:
        raise OrderError(
            f"order= names {unknown[0]!r}, which is no key variable of the rule; it has {', '.join(possible)}"
        )
    if len(set(wanted)) != len(wanted):
        twice = next(name for name in wanted if list(wanted).count(name) > 1)
        raise OrderError(f"order= names {twice!r} twice")
    wanted = [name for name in wanted if name in names]
    missing = [name for name in names if name not in wanted]
    needed = [name for name in missing if name not in problem.existentials]
    if needed:
        raise OrderError(f"order= leaves out {', '.join(needed)}; give all of {', '.join(names)}")
    order = (*problem.labels, *wanted, *missing)
    unbound = next((name for place, name in enumerate(order) if not _bindable(problem, name, order[:place])), None)
    if unbound is not None:
        raise OrderError(f"order= puts {unbound!r} before the variables that determine it")
    return order


def _bindable(problem: JoinProblem, name: str, before: Iterable[str]) -> bool:
    """Whether an atom, a literal or an equality with an earlier variable gives ``name`` its keys."""
    if any(name in atom.variables for atom in problem.atoms) or name in problem.pinned:
        return True
    bound = set(before)
    return any(
        c.operator == "=" and name in c.variables and set(c.variables) - {name} <= bound for c in problem.conditions
    )


class _CostModel:
    """Estimates of bindings and operations, by set of bound variables."""

    def __init__(self, problem: JoinProblem) -> None:
        self.problem = problem
        self.atoms = [atom for atom in problem.atoms if atom.variables]
        self.extensions: dict[tuple[frozenset[str], str], tuple[float, float]] = {}

    def extension(self, bound: frozenset[str], name: str) -> tuple[float, float]:
        """Expected matches and operations at one node that binds ``name`` below a binding of ``bound``."""
        key = (bound, name)
        if key not in self.extensions:
            self.extensions[key] = self._extension(bound, name)
        return self.extensions[key]

    def _extension(self, bound: frozenset[str], name: str) -> tuple[float, float]:
        if name in self.problem.pinned:
            return 1.0, 1.0 + len([a for a in self.atoms if name in a.variables])
        fanouts: list[float] = []
        spans: list[float] = []
        seen: set[tuple[int, tuple[int, ...]]] = set()
        for atom in self.atoms:
            if name not in atom.variables:
                continue
            before = tuple(sorted(c for c, v in zip(atom.columns, atom.variables, strict=True) if v in bound))
            column = atom.columns[atom.variables.index(name)]
            if not before:
                shared = (id(atom.relation), (column,))
                if shared in seen:
                    continue  # one iterator serves both atoms
                seen.add(shared)
            fanouts.append(self._fanout(atom, bound, before, column))
            spans.append(float(max(1, histogram(atom.relation, column).n_keys)))
        kept = self._condition_share(bound, name)
        if not fanouts:
            return kept, 2.0
        domain = max(spans)
        matches = domain
        for fanout in fanouts:
            matches *= min(1.0, fanout / domain)
        shortest = min(fanouts)
        bounded = kept if kept < 1.0 else 1.0
        operations = len(fanouts) * (1.0 + shortest * bounded)
        return min(matches, shortest) * kept, operations

    def _fanout(self, atom: JoinAtom, bound: frozenset[str], before: tuple[int, ...], column: int) -> float:
        relation = atom.relation
        average = distinct(relation, (*before, column)) / distinct(relation, before)
        if len(before) != 1:
            return average
        key = atom.variables[atom.columns.index(before[0])]
        bringing = []
        for other in self.atoms:
            if other is atom or key not in other.variables:
                continue
            if len(other.variables) == 1 or any(v in bound for v in other.variables if v != key):
                bringing.append(Source(other.relation, other.columns[other.variables.index(key)]))
        if not bringing:
            return average
        plain = weighted_fanout(Source(relation, before[0]), ())
        if not plain:
            return 0.0
        bringing.sort(key=lambda source: (id(source.relation), source.column))
        return average * weighted_fanout(Source(relation, before[0]), tuple(bringing)) / plain

    def _condition_share(self, bound: frozenset[str], name: str) -> float:
        share = 1.0
        column = next(
            (
                histogram(atom.relation, atom.columns[atom.variables.index(name)])
                for atom in self.atoms
                if name in atom.variables
            ),
            None,
        )
        for condition in self.problem.conditions:
            if name not in condition.variables or not set(condition.variables) <= bound | {name}:
                continue
            if condition.operator == "=":
                share *= 1.0 / max(1, column.n_keys) if column is not None else 1.0
            elif condition.operator == "!=" or column is None:
                continue
            elif condition.right is None and condition.table is None:
                low, high = L.KEY_MIN, L.KEY_MAX
                if condition.operator in (">", ">="):
                    low = condition.offset
                else:
                    high = condition.offset
                share *= max(column.share_between(low, high), 1e-6)
            else:
                share *= 0.5
        return share

    def extend(self, path: Path, names: Sequence[str], segment: bool) -> Path:
        """The path with ``names`` bound after it, as one short circuit when ``segment``."""
        nodes, bound = path.nodes, path.bound
        parts: list[DepthEstimate] = []
        for name in names:
            matches, operations = self.extension(bound, name)
            parts.append(DepthEstimate(name, nodes, nodes * matches, nodes * operations))
            nodes *= matches
            bound |= {name}
        if segment:  # left at the first success: one path of the search when there are many
            expected = nodes / path.nodes if path.nodes else 0.0
            scale = min(1.0, 1.0 / expected) if expected else 1.0
            nodes = path.nodes * min(1.0, expected)
            parts = [DepthEstimate(e.variable, e.nodes, e.matches, e.operations * scale) for e in parts]
        cost = path.cost + sum(part.operations for part in parts)
        return Path(cost, nodes, bound, (*path.estimates, *parts))

    def path(self, order: Sequence[str]) -> Path:
        """Estimates along a whole order."""
        segments = dict(segments_of(self.problem, order))
        path = START
        depth = 0
        while depth < len(order):
            last = segments.get(depth)
            stop = depth + 1 if last is None else last + 1
            path = self.extend(path, order[depth:stop], last is not None)
            depth = stop
        return path

    def cost(self, order: Sequence[str]) -> float:
        """Estimated operations of a whole order, distinct rows included."""
        path = self.path(order)
        distinct_rows = needs_distinct(self.problem, order, segments_of(self.problem, order))
        return path.cost + (DISTINCT_COST * path.nodes if distinct_rows else 0.0)


@dataclass(frozen=True)
class Path:
    """A key order, or the beginning of one, with what it is estimated to cost."""

    cost: float
    nodes: float  # bindings at its end
    bound: frozenset[str]
    estimates: tuple[DepthEstimate, ...]

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(estimate.variable for estimate in self.estimates)


START = Path(0.0, 1.0, frozenset(), ())


def _candidates(model: _CostModel) -> list[tuple[str, ...]]:
    """Orders worth comparing: the best few of each way of treating existential components."""
    components = model.problem.components
    ways: Iterable[tuple[bool, ...]] = [(True,) * len(components)]
    if len(components) <= 4:
        ways = itertools.product((True, False), repeat=len(components))
    found: dict[tuple[str, ...], None] = {}
    for way in ways:
        segments = [component for component, segment in zip(components, way, strict=True) if segment]
        found.update(dict.fromkeys(_best_orders(model, segments)))
    return list(found)


def _best_orders(model: _CostModel, segments: Sequence[frozenset[str]]) -> list[tuple[str, ...]]:
    """The cheapest order from every first variable, found set by set."""
    problem = model.problem
    constants = frozenset(problem.labels)
    within = frozenset().union(*segments)
    free = [name for name in problem.variables if name not in constants and name not in within]
    touching = [
        (segment, {n for edge in problem.edges if segment & set(edge) for n in edge} - segment - constants)
        for segment in segments
    ]

    def with_segments(path: Path) -> Path:
        """Append every segment whose touching variables are all bound now."""
        for segment, touched in touching:
            if not segment & path.bound and touched <= path.bound:
                path = model.extend(path, _order_within(model, path.bound, segment), segment=True)
        return path

    start = with_segments(model.extend(START, list(problem.labels), segment=False))
    # One line of descent per first variable: good orders that begin alike would crowd out the others.
    finished: list[Path] = [] if free else [start]
    for first in free:
        if not _bindable(problem, first, start.bound):
            continue
        path = with_segments(model.extend(start, [first], segment=False))
        level = {path.bound: path}
        for _ in range(len(free) - 1):
            following: dict[frozenset[str], Path] = {}
            for path in level.values():
                for name in free:
                    if name in path.bound or not _bindable(problem, name, path.bound):
                        continue
                    longer = with_segments(model.extend(path, [name], segment=False))
                    known = following.get(longer.bound)
                    if known is None or longer.cost < known.cost:
                        following[longer.bound] = longer
            if len(free) > EXACT_UP_TO:
                cheapest = sorted(following.values(), key=lambda p: p.cost)[:BEAM]
                following = {path.bound: path for path in cheapest}
            level = following
        finished += level.values()
    finished.sort(key=lambda path: path.cost)
    return [path.order for path in finished]


def _order_within(model: _CostModel, bound: frozenset[str], segment: frozenset[str]) -> tuple[str, ...]:
    """A segment's own variables, the cheapest next one first."""
    order: list[str] = []
    left = set(segment)
    while left:
        ready = [name for name in sorted(left) if _bindable(model.problem, name, bound)] or sorted(left)
        now = frozenset(bound)
        best = min(ready, key=lambda name: model.extension(now, name)[1])
        order.append(best)
        left.remove(best)
        bound = bound | {best}
    return tuple(order)


def pilot(problem: JoinProblem, order: Sequence[str]) -> float:
    """Operations of a whole evaluation, estimated by evaluating a sample of first keys.

    The random draws are seeded: one problem gives one answer.
    """
    plan = compile_plan(problem, order, write=False)
    if plan.empty or not plan.depths:
        return 0.0
    first = plan.first_trie
    if first is None:  # the first key is not a root's: there is nothing to draw from
        one = Search(plan)
        one.count_only(PILOT_BUDGET)
        return float(one.counters.sum())
    keys = first.keys[0]
    weights = np.diff(first.leaf_offsets(0))
    shares = weights / weights.sum()
    drawn, times = np.unique(np.random.default_rng(0).choice(len(keys), PILOT_KEYS, p=shares), return_counts=True)
    total, used, spent = 0.0, 0, 0
    for row, repeated in sorted(zip(drawn, times, strict=True), key=lambda pair: -pair[1]):
        one = Search(plan, int(keys[row]), int(keys[row]))
        one.count_only(PILOT_BUDGET)
        operations = int(one.counters.sum())
        total += repeated * operations / shares[row]
        used += int(repeated)
        spent += operations
        if spent > PILOT_BUDGET:
            break
    return total / used + len(keys)
