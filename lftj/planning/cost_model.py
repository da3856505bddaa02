"""What a key order is expected to cost: bindings and operations, depth by depth.

A key order is extended one variable at a time.  A node that binds variable x
below a binding of other variables has one list of keys per atom with x; how
long they are (*fan-outs*) and how many keys they share come from
:mod:`lftj.planning.statistics`.  From that follow

* the *matches* of a node: a key stands in all lists with the product of the
  probabilities that it stands in each, which follow how often it occurs in the
  list's column, so that frequent keys meet frequent keys; less what conditions
  refuse;
* its *operations*, as the kernel counts them: one open per list, one next per
  key of the shortest list, one seek in every other list; less where lists stay
  the same while the variable before varies, for these are intersected once
  (:mod:`lftj.search.machine.stage`), and where the last variable is only counted.

Invariant: what a node is expected to do depends on the set of variables bound
before it and, for its operations, on the last of them, not on their order.
Variables are bits of an int, so a set of them is an int.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.planning.statistics import Histogram, combinations, histogram
from lftj.search.machine.stage import MARKS_RATIO
from lftj.search.problem import JoinAtom, JoinProblem, needs_distinct, segments_of
from lftj.storage.catalog import Catalog
from lftj.values.operators import FLIPPED

DISTINCT_COST = 10.0
"""Operations that making one row distinct is worth."""

SORTING_COST = 2.0
"""Operations that sorting one row of a sum by its group is worth, where rows do not come in order."""

CONDITION_SAMPLE = 64
"""Keys of one variable for which the range that a condition leaves to another is looked up."""

STAGED_FROM = 2.0
"""A stage is expected to be built when the variable before has at least this many matches per node."""


class DepthEstimate(NamedTuple):
    """What the planner expects at one depth."""

    variable: str
    nodes: float  # bindings of the depths before
    matches: float  # bindings of this depth, over all nodes
    operations: float


class OrderPath(NamedTuple):
    """A key order, or the beginning of one, with what it is expected to cost."""

    cost: float
    nodes: float  # bindings at its end
    bound: int  # set of its variables
    last: int  # bit of its last variable, 0 for none
    fanout: float  # matches per node of its last variable
    proved: int  # set of the variables of its short circuits: they do not multiply what comes later
    order: tuple[str, ...]


START = OrderPath(0.0, 1.0, 0, 0, 1.0, 0, ())


class _Node(NamedTuple):
    """A node that binds one variable below a set of others."""

    matches: float
    operations: float  # without stages
    fanouts: tuple[float, ...]
    fixed_by: tuple[int, ...]  # per list: the variables that fix it if it can be staged, else 0
    fixed: bool  # some list can be staged
    domain: float  # keys that the variable can take
    in_bounds: float  # share of the keys that the conditions' bounds leave
    checks: int  # negated atoms that each match is looked up in
    counts_at_once: bool  # as the last one its matches are counted without being listed


class _KeyBound(NamedTuple):
    """A condition seen from one variable: ``x OP other + offset``; ``filters``: it narrows no range."""

    other: str | None
    operator: str
    offset: int
    filters: bool


class CostModel:
    """Estimates for one problem; they are kept, as orders share most of their nodes."""

    def __init__(self, problem: JoinProblem, catalog: Catalog, sorts: bool = False) -> None:
        """``sorts``: the rows of a sum are sorted by group where they do not come in order."""
        self.problem = problem
        self.sorts = sorts and problem.counted and len(problem.emitted) > 1
        self.catalog = catalog
        self.bit = {name: 1 << place for place, name in enumerate(problem.variables)}
        self.everything = (1 << len(self.bit)) - 1
        # Atoms that say the same are one.
        same = {(a.relation, a.columns, a.variables, a.equal): a for a in problem.atoms if a.variables}
        self.atoms = list(same.values())
        self.masks = [self.mask(atom.variables) for atom in self.atoms]
        self.uses: dict[str, list[tuple[int, JoinAtom, int]]] = {name: [] for name in problem.variables}
        for at, atom in enumerate(self.atoms):
            for name, column in zip(atom.variables, atom.columns, strict=True):
                self.uses[name].append((at, atom, column))
        self.negated = [self.mask(atom.variables) for atom in problem.negations]
        self.codes = {c.left: c.offset for c in problem.conditions if c.operator == "=" and c.right is None}
        self.bounds = _bounds(problem)
        # What a node of a variable can depend on: its atoms, and the atoms that bring keys to them.
        near = {name: self.bit[name] for name in problem.variables}
        for mask in [*self.masks, *self.negated, *(self.mask(c.variables) for c in problem.conditions)]:
            for name in self.names(mask):
                near[name] |= mask
        self.near = {self.bit[name]: mask for name, mask in near.items()}
        self.reach = {
            name: _union(near[other] for other in self.names(near[name])) for name in problem.variables
        }
        self.repeated = {
            name: len({(atom.relation, column) for _, atom, column in uses}) < len(uses)
            for name, uses in self.uses.items()
        }
        self.nodes: dict[tuple[str, int], _Node] = {}
        self.averages: dict[tuple[int, int, int], float] = {}
        self.combinations: dict[tuple[str, frozenset[int]], float] = {}
        self.histograms: dict[tuple[str, int], Histogram] = {}
        self.smallest: dict[str, Histogram | None] = {}
        self.shares: dict[tuple[str, str | None, int, int, bool], float] = {}
        self.fanouts: dict[tuple[int, int, int], float] = {}
        self.keys: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.counts: dict[tuple[str, int], np.ndarray] = {}
        self.held: dict[tuple[str, int, float], np.ndarray] = {}
        self.spreads: dict[tuple[str, tuple[tuple[int, float], ...]], np.ndarray] = {}
        self.brought: dict[tuple[int, str, tuple[tuple[int, float], ...]], float] = {}
        self.domains: dict[str, float] = {}

    def mask(self, names: Iterable[str]) -> int:
        """The set of the names."""
        return _union(self.bit[name] for name in names)

    def names(self, mask: int) -> list[str]:
        """The variables of a set, in the problem's order."""
        names = []
        while mask:
            least = mask & -mask
            names.append(self.problem.variables[least.bit_length() - 1])
            mask ^= least
        return names

    def neighbours(self, mask: int) -> int:
        """The variables that an atom, negation or condition ties to those of a set, and these."""
        return _union(self.near[self.bit[name]] for name in self.names(mask))

    def bindable(self, name: str, bound: int) -> bool:
        """Whether an atom, a literal or an equality with a bound variable gives ``name`` its keys."""
        if self.uses[name] or name in self.codes:
            return True
        return any(
            b.operator == "=" and b.other is not None and self.bit[b.other] & bound for b in self.bounds[name]
        )

    # -- nodes --------------------------------------------------------------------

    def node(self, name: str, bound: int) -> _Node:
        """What is expected of a node that binds ``name`` below a binding of ``bound``."""
        bound &= self.reach[name]
        key = (name, bound)
        if key not in self.nodes:
            self.nodes[key] = self._node(name, bound)
        return self.nodes[key]

    def _node(self, name: str, bound: int) -> _Node:
        uses = self.uses[name]
        after = bound | self.bit[name]
        checks = sum(mask & after == mask and bool(mask & self.bit[name]) for mask in self.negated)
        if name in self.codes:
            ones = (1.0,) * len(uses)
            return _Node(
                1.0, 2.0 * len(uses) + checks, ones, (0,) * len(uses), False, 1.0, 1.0, checks, False
            )
        fanouts: list[float] = []
        fixed_by: list[int] = []
        lists: list[tuple[int, float]] = []
        seen: set[tuple[str, int, frozenset[tuple[int, str]]]] = set()
        rooted = 0
        for use, (at, atom, column) in enumerate(uses):
            before = self.masks[at] & bound
            if self.repeated[name]:
                pairs = zip(atom.columns, atom.variables, strict=True)
                prefix = frozenset(pair for pair in pairs if self.bit[pair[1]] & before)
                if (atom.relation, column, prefix) in seen:
                    continue  # one iterator serves both atoms
                seen.add((atom.relation, column, prefix))
            rooted += not before
            fanouts.append(self._fanout(at, bound, column))
            fixed_by.append(before if self.masks[at] & ~after == 0 else 0)
            lists.append((use, fanouts[-1] if before else math.inf))
        in_bounds, passing = self._shares(name, bound, of_rows=rooted < len(fanouts))
        passing *= self._left_by_negations(name)
        if not fanouts:
            return _Node(in_bounds * passing, 2.0 + checks, (), (), False, 1.0, 1.0, checks, False)
        matches = min(fanouts)
        operations = len(fanouts) * (1.0 + matches * in_bounds)
        if len(lists) > 1:
            matches = min(matches, float(self._spread(name, tuple(lists)).sum()))
        matches *= in_bounds * passing
        return _Node(
            matches=matches,
            operations=operations + checks * matches,
            fanouts=tuple(fanouts),
            fixed_by=tuple(fixed_by),
            fixed=len(fanouts) > 1 and any(fixed_by),
            domain=self.distinct_keys(name),
            in_bounds=in_bounds,
            checks=checks,
            counts_at_once=self.problem.counted
            and name not in self.problem.emitted
            and len(fanouts) == 1
            and passing == 1.0
            and not checks,
        )

    def distinct_keys(self, name: str) -> float:
        """Keys that a variable can take, by its longest column."""
        if name not in self.domains:
            columns = [self._column(atom.relation, column) for _, atom, column in self.uses[name]]
            self.domains[name] = float(max([1, *(column.n_keys for column in columns)]))
        return self.domains[name]

    def _spread(self, name: str, lists: tuple[tuple[int, float], ...]) -> np.ndarray:
        """How often each key of :meth:`_keys_of` is in all lists, given as (number of the use, keys)."""
        key = (name, lists)
        if key not in self.spreads:
            spread = self._keys_of(name)[1]
            for use, fanout in lists:
                spread = spread * self._held(name, use, fanout)
            self.spreads[key] = spread
        return self.spreads[key]

    def _keys_of(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A sample of the keys that a variable can take, and how many keys each stands for."""
        if name not in self.keys:
            column = self._histogram(name)
            assert column is not None
            keys, weights = column.sample()
            self.keys[name] = keys, weights / column.at(keys)
        return self.keys[name]

    def _held(self, name: str, use: int, fanout: float) -> np.ndarray:
        """Probability for each key of :meth:`_keys_of` to be in a list of ``fanout`` keys; of inf: in any."""
        key = (name, use, fanout)
        if key not in self.held:
            _, atom, column = self.uses[name][use]
            counts = self._counts(name, use)
            if fanout == math.inf:
                self.held[key] = np.minimum(counts, 1.0)
            else:
                draws = self._column(atom.relation, column).draws(fanout)
                self.held[key] = -np.expm1(counts * -draws)
        return self.held[key]

    def _counts(self, name: str, use: int) -> np.ndarray:
        """Rows in which each key of :meth:`_keys_of` occurs in a column."""
        if (name, use) not in self.counts:
            _, atom, column = self.uses[name][use]
            self.counts[name, use] = self._column(atom.relation, column).at(self._keys_of(name)[0])
        return self.counts[name, use]

    def _fanout(self, at: int, bound: int, column: int) -> float:
        """Keys of an atom's column below a binding of those of its variables that are bound."""
        before = self.masks[at] & bound
        if before & (before - 1):
            key = (at, column, before)
        else:  # one variable: it also matters what brings its keys
            key = (at, column, bound & self.near.get(before, 0))
        if key not in self.fanouts:
            self.fanouts[key] = self._new_fanout(at, bound, before, column)
        return self.fanouts[key]

    def _new_fanout(self, at: int, bound: int, before: int, column: int) -> float:
        atom = self.atoms[at]
        average = self.averages.get((at, before, column))
        if average is None:
            columns = {c for c, v in zip(atom.columns, atom.variables, strict=True) if self.bit[v] & before}
            average = self._distinct(atom.relation, columns | {column})
            average /= self._distinct(atom.relation, columns)
            self.averages[at, before, column] = average
        if not before or before & (before - 1):
            return average
        name = self.problem.variables[before.bit_length() - 1]
        # The keys as often as the search comes upon them, when this variable is bound after the others.
        others = bound & ~before
        lists: list[tuple[int, float]] = []
        if name not in self.codes:
            for use, (other_at, _, other_column) in enumerate(self.uses[name]):
                tied = self.masks[other_at] & others
                lists.append((use, self._fanout(other_at, others, other_column) if tied else math.inf))
        key = at, name, tuple(lists)
        if key not in self.brought:
            self.brought[key] = self._rows_brought(*key)
        return average * self.brought[key]

    def _rows_brought(self, at: int, name: str, lists: tuple[tuple[int, float], ...]) -> float:
        """Rows of an atom per key of ``name`` as the search comes upon them, by those of its average key.

        ``lists``: of the variable's uses, as for :meth:`_spread`; none of a literal.
        """
        atom = self.atoms[at]
        own = self._column(atom.relation, atom.columns[atom.variables.index(name)])
        if not own.n_keys:
            return 0.0
        if name in self.codes:
            return float(own.at(np.array([self.codes[name]]))[0]) * own.n_keys / own.n_rows
        use = max(use for use, (other, _, _) in enumerate(self.uses[name]) if other == at)
        spread = self._spread(name, lists)
        total = float(spread.sum())
        return float(spread @ self._counts(name, use)) / total * own.n_keys / own.n_rows if total else 0.0

    def _column(self, relation: str, column: int) -> Histogram:
        known = relation, column
        if known not in self.histograms:
            self.histograms[known] = histogram(self.catalog[relation], column)
        return self.histograms[known]

    def _distinct(self, relation: str, columns: Iterable[int]) -> float:
        """Of sets of columns, which orders have in common."""
        known = relation, frozenset(columns)
        if known not in self.combinations:
            keys = {column: self._column(relation, column).n_keys for column in sorted(known[1])}
            self.combinations[known] = combinations(self.catalog[relation], keys)
        return self.combinations[known]

    def _shares(self, name: str, bound: int, of_rows: bool) -> tuple[float, float]:
        """Share of a variable's keys that bounds leave, and share of those that filters pass."""
        ready = [b for b in self.bounds[name] if b.other is None or self.bit[b.other] & bound]
        if not ready:
            return 1.0, 1.0
        in_bounds, passing = 1.0, 1.0
        for other in dict.fromkeys(b.other for b in ready if not b.filters):
            low, high = KEY_MIN, KEY_MAX
            for bound_ in ready:
                if bound_.other == other and not bound_.filters:
                    step = (bound_.operator == ">") - (bound_.operator == "<")
                    if bound_.operator in (">", ">=", "="):
                        low = max(low, bound_.offset + step)
                    if bound_.operator in ("<", "<=", "="):
                        high = min(high, bound_.offset + step)
            key = (name, other, low, high, of_rows)
            if key not in self.shares:
                self.shares[key] = self._share_between(*key)
            in_bounds *= self.shares[key]
        for bound_ in ready:
            if bound_.filters and bound_.operator != "!=":
                passing *= 0.5
        return in_bounds, passing

    def _left_by_negations(self, name: str) -> float:
        """The share of a variable's rows whose key no negated atom has that reads it alone."""
        share = 1.0
        for atom in self.problem.negations:
            column = self._histogram(name) if atom.variables == (name,) and not atom.equal else None
            if column is not None and column.n_keys:
                keys, weights = column.sample()
                negated = self._column(atom.relation, atom.columns[0]).at(keys) > 0.0
                share *= float(weights[~negated].sum() / weights.sum())
        return max(share, 1e-6)

    def _share_between(self, name: str, other: str | None, low: int, high: int, of_rows: bool) -> float:
        """Share of a variable's keys from ``other + low`` to ``other + high``; KEY_MIN, KEY_MAX: no limit."""
        column = self._histogram(name)
        if column is None:
            return 1.0
        keys, weights = np.zeros(1, dtype=np.int64), np.ones(1)
        brought = None if other is None else self._histogram(other)
        if brought is not None:
            keys, weights = brought.sample(CONDITION_SAMPLE)
            if not len(keys):
                return 1.0
        lows, highs = (
            np.array(
                [limit if limit in (KEY_MIN, KEY_MAX) else _clipped(key + limit) for key in keys.tolist()]
            )
            for limit in (low, high)
        )
        shares = column.share_between(lows, highs, of_rows)
        return max(float((shares * weights).sum() / weights.sum()), 1e-6)

    def _histogram(self, name: str) -> Histogram | None:
        """The smallest histogram of a variable's columns; None where no atom holds it."""
        if name not in self.smallest:
            columns = [self._column(atom.relation, column) for _, atom, column in self.uses[name]]
            self.smallest[name] = min(columns, key=lambda column: column.n_keys, default=None)
        return self.smallest[name]

    # -- orders --------------------------------------------------------------------

    def extend(self, path: OrderPath, name: str) -> OrderPath:
        """The path with one more variable bound after it."""
        cost, nodes, bound, last, fanout, proved, order = path
        node = self.node(name, bound & ~proved)
        operations = node.operations
        if node.fixed and fanout >= STAGED_FROM:
            operations = _staged(node, last, fanout)
        bit = self.bit[name]
        bound |= bit
        if bound == self.everything and node.counts_at_once:
            operations = 1.0
        fanout = node.matches
        return OrderPath(
            cost + nodes * operations, nodes * fanout, bound, bit, fanout, proved, (*order, name)
        )

    def extend_segment(self, path: OrderPath, names: Sequence[str]) -> OrderPath:
        """The path with a short circuit after it, left at the first success: one of as many as there are."""
        end = path
        for name in names:
            end = self.extend(end, name)
        expected = max(1.0, end.nodes / path.nodes) if path.nodes else 1.0
        least = path.nodes * (1.0 + len(self.uses[names[0]]))  # opening the first node, and one key
        return end._replace(
            cost=path.cost + max(min(least, end.cost - path.cost), (end.cost - path.cost) / expected),
            nodes=end.nodes / expected,
            proved=path.proved | self.mask(names),
        )

    def path(self, order: Sequence[str]) -> OrderPath:
        """The whole order."""
        path = START
        for first, last in self._parts(order):
            path = self.extend_segment(path, order[first:last]) if last else self.extend(path, order[first])
        return path

    def estimates(self, order: Sequence[str]) -> tuple[DepthEstimate, ...]:
        """What is expected at each depth of a whole order."""
        found: list[DepthEstimate] = []
        path = START
        for first, last in self._parts(order):
            end = self.extend_segment(path, order[first:last]) if last else self.extend(path, order[first])
            steps = list(itertools.accumulate(order[first : last or first + 1], self.extend, initial=path))
            walked = steps[-1].cost - path.cost
            scale = (end.cost - path.cost) / walked if walked else 1.0
            for name, before, after in zip(order[first:], steps, steps[1:], strict=False):
                found.append(
                    DepthEstimate(name, before.nodes, after.nodes, scale * (after.cost - before.cost))
                )
            path = end
        return tuple(found)

    def _parts(self, order: Sequence[str]) -> Iterator[tuple[int, int]]:
        """The depths one by one, as (depth, 0), and segments, as (first depth, depth after the last)."""
        segments = dict(segments_of(self.problem, order)) if self.problem.components else {}
        depth = 0
        while depth < len(order):
            if depth in segments:
                yield depth, segments[depth] + 1
                depth = segments[depth] + 1
            else:
                yield depth, 0
                depth += 1

    def cost(self, order: Sequence[str]) -> float:
        """Expected operations of a whole order, distinct or sorted rows included."""
        path = self.path(order)
        if self.sorts:
            emitted, fixed = self.problem.emitted, len(self.problem.labels)
            if tuple(order[fixed : fixed + len(emitted)]) != emitted:
                rows = self.path(order[: 1 + max(map(order.index, emitted))]).nodes
                return path.cost + SORTING_COST * rows
        if self.problem.components and needs_distinct(self.problem, order, segments_of(self.problem, order)):
            return path.cost + DISTINCT_COST * path.nodes
        return path.cost


def _staged(node: _Node, last: int, fanout: float) -> float:
    """Operations at a node, on average over ``fanout`` nodes in a row between which only ``last`` varies."""
    size, moving, shortest = node.domain, 0, math.inf
    for keys, fixed_by in zip(node.fanouts, node.fixed_by, strict=True):
        if fixed_by and not fixed_by & last:
            size *= min(1.0, keys / node.domain)
        else:
            moving += 1
            shortest = min(shortest, keys)
    if moving == len(node.fanouts):
        return node.operations
    if size * MARKS_RATIO >= shortest:
        size = shortest  # testing marks is so quick that the kernel rather tries the shortest list
    staged = (1.0 + moving) * (1.0 + size * node.in_bounds) + node.checks * node.matches
    return (
        2.0 * node.operations + (fanout - 1.0) * staged
    ) / fanout  # one node before it is built, one to build it


def _bounds(problem: JoinProblem) -> dict[str, list[_KeyBound]]:
    """The conditions on each variable, turned so that it stands on the left."""
    found: dict[str, list[_KeyBound]] = {name: [] for name in problem.variables}
    for condition in problem.conditions:
        filters = condition.operator == "!=" or (condition.ranked is not None and condition.operator != "=")
        found[condition.left].append(
            _KeyBound(condition.right, condition.operator, condition.offset, filters)
        )
        if condition.right is not None and condition.right != condition.left:
            turned = FLIPPED[condition.operator], -condition.offset
            found[condition.right].append(_KeyBound(condition.left, *turned, filters))
    return found


def _union(masks: Iterable[int]) -> int:
    """The union of sets.

    >>> _union([1, 4, 5])
    5
    """
    union = 0
    for mask in masks:
        union |= mask
    return union


def _clipped(key: int) -> int:
    return max(KEY_MIN, min(KEY_MAX, key))
