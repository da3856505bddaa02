"""The terms of a delta rule: the change of each atom, joined with the others.

Design: docs/design/strategies.md section 1.

    d(A1 ... An) = SUM_i  new(A1) ... new(A_i-1) * dA_i * old(A_i+1) ... old(An)

The change of atom i are the branches of its last walked level that came or went; where its
further columns are counted, the branches below which their number changed, with the
difference.  They are *bindings* of the search of the others: each row begins with the keys of one, whose
weight it gets.  Variables behind those that are wanted are counted, not listed.

Terms whose changed branches are those of one index, as are most of a relation that is joined with
itself, are searched in one call (:mod:`lftj.search.regions.weighted`), all branches of a transaction
together.

A branch's last variable may be only *carried* to the rows: nothing else reads it, as of the value of a
function.  Branches that differ in it alone, an old value and the new one, are searched once; meanwhile it
holds the number of the branch.

Of a negated atom the branches weigh the other way round: what came forbids.

Where all atoms are functions of the same keys, as the auxiliary heads of one with several aggregates are,
and most of them change, the terms would look each key up once for each atom and other atom.  Then the keys of
which any atom changed are searched twice, in the new versions and in the old ones:

    d(A1 ... An) = new(A1 ... An) below K - old(A1 ... An) below K        K = the keys of dA1 ... dAn

Cost: O(changed branches * path tests + operations below them); nothing is kept but the search's buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lftj.language.several_aggregates import is_auxiliary
from lftj.planning.term import TermPlan, left_over, plan_term
from lftj.planning.term_order import TermChoice, choose_term_orders, read_key
from lftj.search.machine.plan import compile_regions
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.regions.evaluation import OverBudget
from lftj.search.regions.weighted import WeightedSearch, WeightedSearches
from lftj.storage.catalog import Catalog, IndexUse, Side
from lftj.storage.index_version import IndexVersion
from lftj.storage.signed_rows import Columns, gathered, net_rows, table_of
from lftj.storage.sorting import sort_distinct
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import Assignments, Read, Round, Versions
from maintenance.strategies.surgery import surgeries_in

_FEW = 2
"""Atoms that are joined by their terms even if they are functions of the same keys."""


def plan_terms(
    problem: JoinProblem, catalog: Catalog, variables: Sequence[str], *, by_keys: bool = False
) -> Terms:
    """The terms of a problem's delta rule; ``variables``: of their rows, in this order.

    ``by_keys``: whether the versions of a round have one row for each key of what is a function.
    """
    parts = left_over(problem)
    orders = choose_term_orders(problem, parts, catalog)
    plans = [
        plan_term(atom, place >= len(problem.atoms), rest, order)
        for place, ((atom, rest), order) in enumerate(zip(parts, orders, strict=True))
    ]
    keys = _common_keys(problem) if by_keys else ()
    order = [name for name in plans[0].choice.order if name in keys] if keys else []
    return Terms(plans, variables, _Keyed(problem, order, plans, variables) if keys else None)


def _common_keys(problem: JoinProblem) -> tuple[str, ...]:
    """The keys of which all atoms are functions, where there are many of them; else none."""
    if len(problem.atoms) <= _FEW or problem.negations:
        return ()
    keys = [_keys_of(atom) for atom in problem.atoms]
    return keys[0] if all(set(own) == set(keys[0]) for own in keys) else ()


def _keys_of(atom: JoinAtom) -> tuple[str, ...]:
    """The variables that have one row for each of their values; none where others may have several."""
    schema = atom.schema
    numbers = schema.key_numbers
    if schema.functional and is_auxiliary(atom.relation):
        numbers = tuple(range(len(schema.columns) - 1))
    of_column = dict(zip(atom.columns, atom.variables, strict=True))
    if atom.equal or atom.counted or len(set(atom.variables)) < len(atom.variables):
        return ()
    return tuple(of_column[number] for number in numbers) if of_column.keys() >= set(numbers) else ()


class Terms:
    """The terms of one delta rule at work.

    ``plans``: in the order of the atoms, the negated ones last.  ``keyed``: what is searched in their place
    where that is less.
    """

    def __init__(
        self, plans: Sequence[TermPlan], variables: Sequence[str], keyed: _Keyed | None = None
    ) -> None:
        self.plans = tuple(plans)
        self._keyed = keyed
        alike: dict[tuple[object, ...], list[TermPlan]] = {}
        for plan in plans:
            place = plan.change.relation, plan.change.key, plan.level, plan.choice.bound
            alike.setdefault(place, []).append(plan)
        self._groups = [_Group(group, variables) for group in alike.values()]

    def rows(self, change: Round, stats: RuleStats, budget: int | None = None) -> Assignments | None:
        """The signed rows of all terms in a round, which may repeat; None where there is none.

        Raises OverBudget soon after more than ``budget`` operations.
        """
        parts: list[tuple[Columns, np.ndarray]] = []
        before = stats.operations
        for group in self._asked(change):
            branches = group.branches(change)
            if branches is None:
                continue
            left = None if budget is None else max(0, budget + before - stats.operations)
            stats.surgeries += len(branches[1]) * len(group.plans)
            stats.regions += len(branches[1]) * group.searches.n_searched
            parts.append(group.rows(change, *branches, stats, left))
        return gathered(parts) if parts else None

    def sampled_operations(self, change: Round, sample: int, budget: int) -> tuple[float, int]:
        """What the terms would take in a round, by some of the changed branches; and what these took.

        Where these take more than ``budget``, it is left at that: they would take that much at least.
        """
        estimate, taken = 0.0, 0
        for group in self._asked(change):
            branches = group.branches(change)
            if branches is None:
                continue
            columns, weights = branches
            n_rows = len(weights)
            places = np.unique(np.linspace(0, n_rows - 1, min(n_rows, sample)).astype(np.int64))
            figures = RuleStats()
            left = max(0, budget - taken)
            try:
                group.rows(change, np.ascontiguousarray(columns[:, places]), weights[places], figures, left)
            except OverBudget:
                left = 0
            estimate += figures.operations * n_rows / len(places)
            taken += figures.operations
            if left == 0:
                break
        return estimate, taken

    def _asked(self, change: Round) -> Sequence[_Group | _Keyed]:
        """What is searched in a round."""
        if self._keyed is None:
            return self._groups
        n_changed = sum(plan.change.relation in change.changes for plan in self.plans)
        return [self._keyed] if n_changed * (len(self.plans) - 1) > 2 * len(self.plans) else self._groups

    @property
    def reads(self) -> Iterator[Read]:
        """The indices that the terms read."""
        yield from reads_of(self.plans)
        if self._keyed is not None:
            yield from self._keyed.reads

    def prepare(self, versions: Versions) -> None:
        """Build the indices that the terms read, so that commits step them."""
        for relation, key in self.reads:
            versions[relation].index_at(key)

    def describe(self, labels: Mapping[str, str]) -> list[str]:
        """For ``explain``: each term's key order, and the indices that it reads; ``labels``: of variables."""
        lines = [] if self._keyed is None else self._keyed.describe(labels)
        for plan in self.plans:
            order, bound = plan.choice.order, plan.choice.bound
            listed = len(plan.variables)
            free = f" | {shown(order[bound:listed], labels)}" if order[bound:listed] else ""
            free += f" (counted: {shown(order[listed:], labels)})" if order[listed:] else ""
            sign = "!" if plan.sign < 0 else ""
            lines.append(f"change of {sign}{plan.atom.label}: {shown(order[:bound], labels)}{free}")
            for use in plan.uses:
                columns = ", ".join(str(column) for column in use.key[0])
                lines.append(f"  {use.side.value} {use.relation} by columns ({columns})")
            for part, label in plan.search.counted if plan.search else ():
                below = shown(tuple(order[place] for place in part.places), labels)
                lines.append(f"  tuples of {label} are counted below {below}")
        return lines


def shown(names: Sequence[str], labels: Mapping[str, str]) -> str:
    """Variables as a rule would write them."""
    return ", ".join(labels.get(name, name) for name in names)


def reads_of(plans: Iterable[TermPlan]) -> Iterator[Read]:
    """The indices that terms read."""
    for plan in plans:
        yield from ((use.relation, use.key) for use in plan.uses)
        if plan.level + 1 < len(plan.change.key[0]):  # else the changed tuples are the branches
            yield plan.change.relation, plan.change.key


class _Group:
    """Terms with the same changed branches."""

    def __init__(self, plans: Sequence[TermPlan], variables: Sequence[str]) -> None:
        self.plans = plans
        first = plans[0]
        self._relation, self._key = first.change.relation, first.change.key
        self._level, self._bound = first.level, first.choice.bound
        self.searches = WeightedSearches(
            [
                WeightedSearch(plan.search, plan.sign, tuple(map(plan.choice.order.index, variables)))
                for plan in plans
            ]
        )
        carried = {_column_of_carried(plan, variables) for plan in plans}
        self._carried = carried.pop() if len(carried) == 1 and self.searches.n_searched else None
        """The column of the rows that holds what is carried; None if that is not so in all terms, or no term
        has anything to search."""

    def branches(self, change: Round) -> tuple[np.ndarray, np.ndarray] | None:
        """The changed branches, int64 (bound variables, n), sorted, and their weights; None for none."""
        found = surgeries_in(change, self._relation, self._key)
        if found is None:
            return None
        columns, weights = found.at_level(self._level)
        if self._bound <= self._level:  # the columns behind are counted
            columns, weights = net_rows(columns[: self._bound], weights)
        return (columns, weights) if len(weights) else None

    def rows(
        self, change: Round, columns: np.ndarray, weights: np.ndarray, stats: RuleStats, budget: int | None
    ) -> Assignments:
        """The rows of all terms below some changed branches."""
        if self._carried is not None and len(weights) > 1:
            new = np.any(columns[:-1, 1:] != columns[:-1, :-1], axis=0)
            if not new.all() and np.abs(weights).max() == 1:
                starts = np.flatnonzero(np.concatenate([[True], new]))
                numbered = table_of([*columns[:-1, starts], np.arange(len(starts))], len(starts))
                ones = np.ones(len(starts), np.int64)
                found = _searched(self.searches, change, numbered, ones, stats, budget)
                return _with_carried(found, self._carried, starts, columns[-1], weights)
        return _searched(self.searches, change, columns, weights, stats, budget)


def _searched(
    searches: WeightedSearches,
    change: Round,
    columns: np.ndarray,
    weights: np.ndarray,
    stats: RuleStats,
    budget: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of searches in a round, int64 (variables, n), and their weights."""
    indexes = [_index(use, change) for use in searches.uses]
    try:
        rows, weighted, operations = searches.run(indexes, columns, weights, budget)
    except OverBudget as over:
        stats.count(over.operations)
        raise
    stats.count(operations)
    return rows, weighted


class _Keyed:
    """Atoms that are functions of the same keys: their rows below those that changed, new less old."""

    def __init__(
        self, problem: JoinProblem, keys: Sequence[str], plans: Sequence[TermPlan], variables: Sequence[str]
    ) -> None:
        self.plans = plans
        self._keys = tuple(keys)
        self._order = tuple(dict.fromkeys((*keys, *problem.variables)))
        self._changes = [(atom.relation, read_key(atom, self._order)) for atom in problem.atoms]
        listed = TermChoice(self._order, len(keys), 1).listed(problem)
        places = tuple(map(self._order.index, variables))
        searches = []
        for side, sign in ((Side.NEW, 1), (Side.OLD, -1)):
            of_side = replace(problem, atoms=tuple(replace(atom, side=side) for atom in problem.atoms))
            plan = compile_regions(of_side, self._order, gap=0, listed=listed)
            searches.append(WeightedSearch(plan, sign, places))
        self.searches = WeightedSearches(searches)

    @property
    def reads(self) -> Iterator[Read]:
        return iter(dict.fromkeys((use.relation, use.key) for use in self.searches.uses))

    def branches(self, change: Round) -> tuple[np.ndarray, np.ndarray] | None:
        """The keys of which any atom changed, int64 (keys, n), sorted, and ones; None for none."""
        parts = []
        for relation, key in self._changes:
            found = surgeries_in(change, relation, key)
            if found is not None:
                parts.append(found.rows[: len(self._keys)])
        if not parts:
            return None
        columns = sort_distinct(list(np.concatenate(parts, axis=1)))
        return table_of(columns, len(columns[0])), np.ones(len(columns[0]), np.int64)

    def rows(
        self, change: Round, columns: np.ndarray, weights: np.ndarray, stats: RuleStats, budget: int | None
    ) -> Assignments:
        """The rows below some keys."""
        return _searched(self.searches, change, columns, weights, stats, budget)

    def describe(self, labels: Mapping[str, str]) -> list[str]:
        """For ``explain``: the key order, and the indices that are read."""
        free = self._order[len(self._keys) :]
        lines = [f"many changed keys: {shown(self._keys, labels)} | {shown(free, labels)}, new less old"]
        return [*lines, *(f"  {name} by columns ({', '.join(map(str, key[0]))})" for name, key in self.reads)]


def _column_of_carried(plan: TermPlan, variables: Sequence[str]) -> int | None:
    """Where among the variables of rows a term's last bound one stands; None where others read it too."""
    name = plan.choice.order[plan.choice.bound - 1] if plan.choice.bound > 1 else None
    return variables.index(name) if plan.carries and name in variables else None


def _with_carried(
    found: tuple[np.ndarray, np.ndarray],
    column: int,
    starts: np.ndarray,
    carried: np.ndarray,
    weights: np.ndarray,
) -> Assignments:
    """Each row once for each branch of its number: those from ``starts`` of it to that of the next.

    ``carried``, ``weights``: of the branches, int64 (branches,).
    """
    rows, row_weights = found
    numbers = rows[column]
    counts = np.diff(starts, append=len(carried))[numbers]
    source = np.repeat(np.arange(len(numbers)), counts)
    behind = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    branches = starts[numbers][source] + behind
    columns = rows[:, source]
    columns[column] = carried[branches]
    return list(columns), row_weights[source] * weights[branches]


def _index(use: IndexUse, change: Round) -> IndexVersion:
    versions = change.old if use.side is Side.OLD else change.new
    return versions[use.relation].index_at(use.key)
