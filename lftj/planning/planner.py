"""Choosing the key order: estimates for all orders, then a pilot of the best few.

docs/design/engine.md section 3 asks for an order by cost from statistics.  Estimates alone
are off by large factors on skewed and correlated data, so where much is at
stake this planner goes one step further: it *measures* the few orders that the
estimates leave, each on a sample of the data (:mod:`lftj.planning.pilot`), with the
kernel's own counters (``tests/planning/test_planner.py`` compares with the best of all
orders).

0. A body of more than ``LONG`` atoms has greedy orders only: from each first variable, as many as
   ``GREEDY_EXTENSIONS`` allow, the next one is the cheapest of those that something ties to what is bound.
1. A greedy order from every first variable.  Where the best is expected to take fewer than
   ``SEARCHED_FROM`` operations, it is taken.
2. Else dynamic programming over sets of bound variables, once per first variable:
   the best order of a set is the best order of the set less one variable,
   extended.  The cost of an extension comes from :mod:`lftj.planning.cost_model`.
   Paths that cost more than ``WORTH`` times a whole greedy order are dropped.
   Of more than ``EXACT_UP_TO`` variables those that nothing else depends on
   stand behind, unsearched: wide tables have many of them.
3. Existential components are either *segments* (put where all variables that
   they touch are bound, left at the first success) or *free* (ordered like
   others; the rows then have to be made distinct).  All combinations are tried.
4. The cheapest orders are improved by moving one variable at a time: an
   operation count also depends on which variable varies last, of which (2)
   knows nothing, and so do distinct rows.
5. When the best estimate is above ``PILOT_FROM`` operations, the best orders
   are piloted, as many as their fixed cost allows.  Those of a mere scan, one atom without
   conditions, are not: they differ by little but the index that one of them would need.

Cost: O(2^n * n^2) estimates of a few microseconds for n variables up to
``EXACT_UP_TO``; beyond that the same search keeps only the cheapest sets of each size,
``BEAM`` or as many as ``EXTENSIONS`` estimates allow, and (4) moves variables no farther than
``MOVED_PLACES`` allow: besides the greedy orders, O(n^3), a middling body costs what a short one does.
A long one takes O(n) estimates for each greedy order.
A pilot takes about ``PILOT_SHARE`` of the operations that
the query is estimated at.  Where many data sets are alike, it is all done for
one of them (:mod:`lftj.planning.kept_orders`).
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import or_

from lftj.errors import OrderError
from lftj.planning.cost_model import START, CostModel, DepthEstimate, OrderPath
from lftj.planning.kept_orders import answered, is_kept, shape_of, sizes_of
from lftj.planning.pilot import pilot
from lftj.search.problem import JoinProblem
from lftj.storage.catalog import Catalog

LONG = 20
"""Bodies of more atoms than this are ordered greedily: any other search takes O(n^3) estimates, and that for
each term of a delta rule."""

GREEDY_EXTENSIONS = 16_000
"""So many extensions of paths, about, are spent on greedy orders of a long body, or on all terms of one."""

TRIED_AGAIN = 4
"""So many variables of a greedy order are tried again in each place, besides those newly within reach."""

EXACT_UP_TO = 8
BEAM = 100
WORTH = 8.0
"""Orders estimated at more than this many times the best one are neither kept nor piloted."""

FIRSTS = 16
EXTENSIONS = 60_000
"""Longer bodies are searched from so many first variables, those of the cheapest greedy orders, with about so
many extensions of paths in all."""

IMPROVED = 2
"""Orders that are improved by moves, and rounds of moves for each."""

MOVED_PLACES = 8_000
"""Estimates of single places in a round of moves, about; bodies of up to 20 variables take no more."""

SEARCHED_FROM = 5_000
"""Greedy orders that take fewer operations are not improved upon: that would take longer."""

PILOT_FROM = 1_000_000
PILOT_ORDERS = 4
SWITCH = 1.5
"""Queries take the pilot's best order where the best estimated one costs more than so many times as much."""

PILOT_ORDER_COST = 250_000
"""Operations that take as long as piloting one order does besides its own operations."""


GREEDILY = f"bodies of more than {LONG} atoms are ordered greedily"
"""For ``explain``."""


def is_long(problem: JoinProblem) -> bool:
    """Whether key orders are greedy ones."""
    return len(problem.atoms) + len(problem.negations) > LONG


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
    problem: JoinProblem,
    catalog: Catalog,
    pinned_order: Sequence[str] | None = None,
    known: Iterable[str] = (),
    head_first: bool = False,
    switch: float = SWITCH,
    sorts: bool = False,
) -> OrderChoice:
    """The key order for a problem; ``pinned_order`` is the caller's, checked and completed.

    ``known``: all variables of the body; those that the search needs not walk may be in ``pinned_order``.
    ``head_first``: only orders in which the existential components stand behind all other variables.
    ``switch``: the pilot's best order is taken where the best estimated one costs more than so many times as
    much in the pilot.  ``sorts``: the rows of a sum are sorted by group where they do not come in order.
    Raises OrderError when ``pinned_order`` does not fit.
    """

    def choose() -> OrderChoice:
        return _chosen(problem, catalog, pinned_order, known, head_first, switch, sorts)

    if pinned_order is not None or not is_kept():
        return choose()
    question = "order", shape_of(problem), sizes_of(problem, catalog), head_first, switch, sorts
    return answered(question, choose)


def least_operations(problem: JoinProblem, catalog: Catalog) -> float:
    """What a search is estimated to take by the best greedy key order; nothing is tried on the data."""
    model = CostModel(problem, catalog)
    if len(problem.variables) < 2:
        return sum(estimate.operations for estimate in model.estimates(problem.variables))
    return min(candidates(model, searched_from=math.inf).values())


def _chosen(
    problem: JoinProblem,
    catalog: Catalog,
    pinned_order: Sequence[str] | None,
    known: Iterable[str],
    head_first: bool,
    switch: float,
    sorts: bool,
) -> OrderChoice:
    model = CostModel(problem, catalog, sorts)
    if pinned_order is not None:
        order = complete_order(problem, catalog, pinned_order, known)
        return OrderChoice(order, model.estimates(order), "given by the caller")
    if len(problem.variables) < 2:
        return OrderChoice(problem.variables, model.estimates(problem.variables), "the only order")
    costs = head_first_candidates(model) if head_first else candidates(model)
    ranked = sorted(costs, key=lambda order: costs[order])
    best = ranked[0]
    noun = "order" if len(ranked) == 1 else "orders"
    kind = "greedy" if costs[best] < SEARCHED_FROM or is_long(problem) else "candidate"
    reason = f"least estimated cost of {len(ranked)} {kind} {noun}"
    is_scan = len(problem.atoms) == 1 and not (problem.negations or problem.conditions)
    worth = [] if is_scan else _worth_piloting(ranked, costs)
    piloted: list[tuple[tuple[str, ...], float]] = []
    if len(worth) > 1:
        piloted = pilot(problem, catalog, [(order, costs[order]) for order in worth])
        measured, least = min(piloted, key=lambda pair: pair[1])
        reason = f"least estimated cost; a pilot of the {len(worth)} best orders found none much better"
        if least * switch < piloted[0][1]:
            best = measured
            reason = f"least operations in a pilot of the {len(worth)} best estimated orders"
    if is_long(problem):
        reason += f"; {GREEDILY}"
    return OrderChoice(best, model.estimates(best), reason, tuple(piloted))


def _worth_piloting(
    ranked: Sequence[tuple[str, ...]], costs: dict[tuple[str, ...], float]
) -> list[tuple[str, ...]]:
    """The best orders, at most half of them with the same first variable."""
    least = costs[ranked[0]]
    if least < PILOT_FROM:
        return []
    wanted = min(PILOT_ORDERS, int(least / PILOT_ORDER_COST))
    chosen: list[tuple[str, ...]] = []
    for order in ranked:
        alike = sum(other[0] == order[0] for other in chosen)
        if costs[order] <= WORTH * least and len(chosen) < wanted and alike < max(1, wanted // 2):
            chosen.append(order)
    return chosen


def complete_order(
    problem: JoinProblem, catalog: Catalog, wanted: Sequence[str], known: Iterable[str] = ()
) -> tuple[str, ...]:
    """The caller's order, constants first and left-out existentials last; OrderError when it does not fit."""
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
    unbound = _unbound(CostModel(problem, catalog), order)
    if unbound is not None:
        raise OrderError(f"order= puts {unbound!r} before the variables that determine it")
    return order


def _unbound(model: CostModel, order: Sequence[str]) -> str | None:
    """The first variable of an order that nothing gives keys where it stands."""
    bound = 0
    for name in order:
        if not model.bindable(name, bound):
            return name
        bound |= model.bit[name]
    return None


def candidates(model: CostModel, searched_from: float = SEARCHED_FROM) -> dict[tuple[str, ...], float]:
    """Orders worth comparing with their estimated costs: the best of each way of treating existentials.

    ``searched_from``: they are greedy ones where these are expected to take fewer operations.
    """
    components = model.problem.components
    ways: Iterable[tuple[bool, ...]] = [(True,) * len(components)]
    if len(components) <= 4:
        ways = itertools.product((True, False), repeat=len(components))
    costs: dict[tuple[str, ...], float] = {}
    for way in ways:
        segments = [component for component, segment in zip(components, way, strict=True) if segment]
        for order in _best_orders(model, segments, searched_from):
            costs[order] = model.cost(order)
    if is_long(model.problem):
        return costs
    ranked = sorted(costs, key=lambda order: costs[order])
    rounds = 1 if costs[ranked[0]] < searched_from else IMPROVED
    for order in ranked[:rounds]:
        _improve(model, order, costs, rounds)
    return costs


def head_first_candidates(model: CostModel) -> dict[tuple[str, ...], float]:
    """Orders with all existential components behind all other variables."""
    behind = frozenset(model.problem.variables) - frozenset().union(*model.problem.components)
    return {o: model.cost(o) for o in _best_orders(model, model.problem.components, SEARCHED_FROM, behind)}


def _best_orders(
    model: CostModel,
    segments: Sequence[frozenset[str]],
    searched_from: float,
    behind: frozenset[str] = frozenset(),
) -> list[tuple[str, ...]]:
    """The cheapest order from every first variable, found set by set; segments stand behind ``behind``.

    Where a greedy order takes fewer operations than ``searched_from``, the greedy ones.
    """
    problem = model.problem
    constants = frozenset(problem.labels)
    within = frozenset().union(*segments)
    free = [name for name in problem.variables if name not in constants and name not in within]
    loose = _loose(model, free)
    free = [name for name in free if name not in loose]
    touching = [
        (segment, model.mask(segment), model.mask((_touched_by(problem, segment) | behind) - constants))
        for segment in segments
    ]

    # How a segment is ordered depends on what is bound of all that its nodes can depend on.
    near = {own: functools.reduce(or_, (model.reach[n] for n in segment)) for segment, own, _ in touching}
    inside: dict[tuple[int, int], list[str]] = {}

    def with_segments(path: OrderPath) -> OrderPath:
        """Append every segment whose touching variables are all bound now."""
        for segment, own, touched in touching:
            if not own & path.bound and not touched & ~path.bound:
                known = own, path.bound & near[own]
                if known not in inside:
                    inside[known] = _order_within(model, path, segment)
                path = model.extend_segment(path, inside[known])
        return path

    def longer(path: OrderPath) -> list[OrderPath]:
        """The path extended by each variable that can be next."""
        names = [n for n in free if not model.bit[n] & path.bound and model.bindable(n, path.bound)]
        paths = [model.extend(path, name) for name in names]
        return [with_segments(path) for path in paths] if touching else paths

    def closed(path: OrderPath) -> tuple[str, ...]:
        """The whole order, with the loose variables behind."""
        return with_segments(functools.reduce(model.extend, loose, path)).order if loose else path.order

    start = with_segments(functools.reduce(model.extend, problem.labels, START))
    if not free:
        return [closed(start)]
    if is_long(problem):
        paths = _greedy_paths(model, start, model.mask(free), with_segments)
        return list(dict.fromkeys(closed(path) for path in paths))
    firsts = longer(start)
    finished: list[OrderPath] = []
    for path in firsts:
        for _ in range(len(free) - 1):
            path = min(longer(path), key=lambda path: path.cost + path.nodes)
        finished.append(path)
    greedy = min(finished, key=lambda path: path.cost)
    if greedy.cost < searched_from:
        return list(dict.fromkeys(closed(path) for path in finished))
    # One line of descent per first variable: good orders that begin alike would crowd out the others.
    beam = 1 << EXACT_UP_TO
    if len(free) > EXACT_UP_TO:
        ranked = sorted(range(len(firsts)), key=lambda place: finished[place].cost)[:FIRSTS]
        firsts = [firsts[place] for place in ranked]
        beam = max(1, min(BEAM, 2 * EXTENSIONS // (len(firsts) * len(free) ** 2)))
    for first in firsts:
        level = {first.bound: first}
        for _ in range(len(free) - 1):
            following: dict[int, OrderPath] = {}
            for path in level.values():
                for extended in longer(path):
                    known = following.get(extended.bound)
                    if extended.cost <= WORTH * greedy.cost and (known is None or extended.cost < known.cost):
                        following[extended.bound] = extended
            if len(following) > beam:
                cheapest = sorted(following.values(), key=lambda path: path.cost)[:beam]
                following = {path.bound: path for path in cheapest}
            level = following
        finished += level.values()
    return list(dict.fromkeys(closed(path) for path in finished))


def _greedy_paths(
    model: CostModel, start: OrderPath, free: int, with_segments: Callable[[OrderPath], OrderPath]
) -> list[OrderPath]:
    """The cheapest of greedy paths from a beginning on, which bind all of ``free``."""

    def extended(path: OrderPath, name: str) -> OrderPath:
        return with_segments(model.extend(path, name))

    left = free & ~start.bound
    # What literals pin may say little; what else is bound is there before everything else.
    given = start.bound & ~model.mask(model.problem.pinned)
    names = _ready(model, start.bound, left, model.neighbours(given) if given else left)
    firsts = sorted((extended(start, name) for name in names), key=lambda path: path.cost + path.nodes)
    finished: list[OrderPath] = []
    # Of what a term of a delta rule begins with there are as many problems as there are atoms.
    most = GREEDY_EXTENSIONS // len(model.problem.atoms) if given else GREEDY_EXTENSIONS
    spent = 0
    for first in firsts:
        path, steps = _greedy_path(model, first, free & ~first.bound, extended)
        finished.append(path)
        spent += steps
        if spent > most:
            break
    return sorted(finished, key=lambda path: path.cost)[:FIRSTS]


def _greedy_path(
    model: CostModel, path: OrderPath, left: int, extended: Callable[[OrderPath, str], OrderPath]
) -> tuple[OrderPath, int]:
    """A path that goes on to the nearest variables until none is left; how many extensions were tried.

    Of those that were tried before only the ``TRIED_AGAIN`` that were cheapest then are tried again.
    """
    border, steps = model.neighbours(path.bound), 0
    prices: dict[str, float] = {}
    while left:
        ready = _ready(model, path.bound, left, border)
        names = [name for name in ready if name not in prices]
        names += heapq.nsmallest(TRIED_AGAIN, prices.keys() & ready, key=lambda name: (prices[name], name))
        longer = [extended(path, name) for name in names]
        steps += len(names)
        for name, one in zip(names, longer, strict=True):
            prices[name] = (one.cost - path.cost + one.nodes) / path.nodes if path.nodes else 0.0
        before = path.bound
        path = min(longer, key=lambda path: path.cost + path.nodes)
        border |= model.neighbours(path.bound & ~before)
        left &= ~path.bound
    return path, steps


def _ready(model: CostModel, bound: int, left: int, border: int) -> list[str]:
    """Those left that can be next: within a border, or else anywhere."""
    for mask in (left & border, left):
        names = [name for name in model.names(mask) if model.bindable(name, bound)]
        if names:
            return names
    return model.names(left)


def _loose(model: CostModel, free: Sequence[str]) -> list[str]:
    """Of many variables those that only one atom has and nothing bounds: the fewest keys first.

    They narrow nothing down, so wherever they stand they multiply what stands behind them.
    """
    if len(free) <= EXACT_UP_TO:
        return []
    ties = Counter(name for edge in model.problem.edges for name in edge)
    return sorted((name for name in free if ties[name] == 1), key=model.distinct_keys)


def _touched_by(problem: JoinProblem, segment: frozenset[str]) -> frozenset[str]:
    """Variables that an atom, negation or condition ties to a segment's."""
    tied = [edge for edge in problem.edges if segment.intersection(edge)]
    return frozenset(name for edge in tied for name in edge) - segment


def _order_within(model: CostModel, path: OrderPath, segment: frozenset[str]) -> list[str]:
    """A segment's own variables, the cheapest next one first."""
    if is_long(model.problem):
        ordered, _ = _greedy_path(model, path, model.mask(segment), model.extend)
        return list(ordered.order[len(path.order) :])
    order: list[str] = []
    left = sorted(segment)
    while left:
        ready = [name for name in left if model.bindable(name, path.bound)] or left
        path, name = min(((model.extend(path, name), name) for name in ready), key=lambda pair: pair[0].cost)
        order.append(name)
        left.remove(name)
    return order


def _improve(
    model: CostModel, order: tuple[str, ...], costs: dict[tuple[str, ...], float], rounds: int
) -> None:
    """Move one variable at a time to where the order is cheapest; every order tried is added to ``costs``."""
    fixed = len(model.problem.labels)
    moving = range(fixed, len(order) - len(_loose(model, order[fixed:])))
    farthest = max(1, MOVED_PLACES // (len(moving) ** 2 + 1))
    for _ in range(rounds):
        tried = []
        for source, target in itertools.permutations(moving, 2):
            if abs(source - target) > farthest:
                continue
            rest = order[:source] + order[source + 1 :]
            moved = rest[:target] + order[source : source + 1] + rest[target:]
            if moved not in costs and _unbound(model, moved) is None:
                costs[moved] = model.cost(moved)
                tried.append(moved)
        better = min(tried, key=lambda order: costs[order], default=order)
        if costs[better] >= costs[order]:
            break
        order = better
