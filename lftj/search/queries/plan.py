"""A plan of a query: one key order for one join problem, apart from all data; and a plan bound to data.

:func:`compile_plan` lays a :class:`~lftj.search.problem.JoinProblem` out for one key
order, for the search of :mod:`lftj.search.machine.search`: over patched bases, without
records.  :meth:`Plan.bind` fills in what depends on tables and on the constants of a problem of the same
shape: some tens of microseconds, so a plan serves many versions and many constants.

Invariants

1. One index whose columns begin those of another one is read as part of that, so that
   atoms share more iterators (:mod:`lftj.search.outline`).
2. A plan holds no data.  A bound plan keeps its tries, patches and rank tables alive;
   its arrays hold their addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import address
from lftj.process import debug
from lftj.search.conditions import Condition, ConditionRow, fill_conditions
from lftj.search.machine import plan_check
from lftj.search.machine.plan import Compilation, RegionPlan, Shape, placed
from lftj.search.problem import JoinAtom, JoinProblem, emit_depth, needs_distinct, segments_of
from lftj.search.records import Node
from lftj.storage.catalog import Catalog, IndexUse, SearchView, Side, Table
from lftj.storage.patch import Patch
from lftj.storage.trie import Trie


@dataclass(frozen=True, eq=False)
class Plan:
    """A join problem under one key order; ``bind`` makes it ready for a search."""

    problem: JoinProblem
    layout: RegionPlan
    writes: bool  # rows are wanted, not only their number
    needs_distinct: bool  # one row may come up several times
    pinning: tuple[int, ...]  # numbers of the conditions that say which constants the first depths are
    atom_uses: tuple[int, ...]  # per atom with variables, in order: positive ones, then negated ones

    @cached_property
    def order(self) -> tuple[str, ...]:
        return self.layout.order

    @cached_property
    def depths(self) -> int:
        return len(self.order)

    @property
    def split(self) -> int:
        """The first depth that no constant pins: shares are ranges of its keys."""
        return len(self.pinning)

    @property
    def uses(self) -> tuple[IndexUse, ...]:
        return self.layout.indexes

    @property
    def emit(self) -> int:
        """The first depth behind all that are put out."""
        return emit_depth(self.problem, self.order)

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """First and last depth of each short circuit."""
        return self.layout.shape.segments

    @cached_property
    def weighs(self) -> bool:
        """Whether the last column of the rows says for how many assignments each stands."""
        return self.layout.shape.weighs

    @property
    def condition_rows(self) -> tuple[tuple[int, ConditionRow], ...]:
        """Where each condition stands in a search's memory, and what it says."""
        return self.layout.conditions

    @property
    def counter_places(self) -> np.ndarray:
        """Where opens, nexts, seeks stand in a search's memory: int64 (depths, 3)."""
        return self.layout.counter_places

    def __repr__(self) -> str:
        """The program: an instruction per depth, and what leaves."""
        return f"{self.layout!r}\nemit {', '.join(self.problem.emitted) or 'nothing'}"

    def stages(self, depth: int) -> int:
        """Number of stages of a depth."""
        return int(Node.view(self.layout.template, self.layout.nodes[depth]).n_stages)

    @cached_property
    def _roots(self) -> tuple[_Root, ...]:
        """Who walks the root of which index."""
        outline = self.layout.outline
        return tuple(
            _Root(walked.index, _pinned_by(self.problem, self.order[walked.depth]))
            for walked in outline.iterators
            if walked.level == 0
        )

    @cached_property
    def _split_roots(self) -> tuple[int, ...]:
        """The indices whose level 0 takes part at the first depth that no literal pins."""
        outline = self.layout.outline
        numbers = outline.participants[self.split] if self.depths else []
        return tuple(outline.iterators[i].index for i in numbers if outline.iterators[i].level == 0)

    def bind(
        self,
        catalog: Catalog,
        problem: JoinProblem | None = None,
        others: Mapping[Side, Catalog] | None = None,
    ) -> BoundPlan:
        """The plan over tables by name; O(iterators).

        ``problem``: one of the same shape, for its constants.  ``others``: the tables of other sides than
        the new one, where the plan reads them.
        """
        problem = problem or self.problem

        def table_of(name: str, side: Side) -> Table:
            return (catalog if side is Side.NEW or others is None else others[side])[name]

        views = [table_of(use.relation, use.side).view(use.key) for use in self.uses]
        for root in self._roots:
            if views[root.use].patch is not None and root.walks(views[root.use].patch, problem):
                views[root.use] = views[root.use].rooted
        template, addresses, length = self.layout.with_stages(views)
        kept = [factor.fill(template, views[factor.use]) for factor in self.layout.factors]
        kept += fill_conditions(template, self.condition_rows, problem)
        template.setflags(write=False)
        sought = {root.use for root in self._roots if root.pinned_by is not None}
        sought -= {root.use for root in self._roots if root.pinned_by is None}
        memories = [view.pinned_memory if use in sought else view.memory for use, view in enumerate(views)]
        empty, factor_of_all = False, 1
        for atom, negated in problem.unbound:
            size = atom.n_rows(table_of(atom.relation, atom.side))
            empty = empty or (size > 0) == negated
            factor_of_all *= size if atom.counted and not negated else 1
        empty = empty or any(views[use].n_tuples == 0 for use in self.atom_uses[: self._n_positive])
        return BoundPlan(
            self,
            problem,
            template,
            addresses,
            length,
            np.array([address(memory) for memory in memories], np.int64),
            factor_of_all,
            empty,
            tuple(views),
            (*kept, *memories),
        )

    @property
    def _n_positive(self) -> int:
        return sum(1 for atom in self.problem.atoms if atom.variables)


@dataclass(frozen=True)
class _Root:
    """An iterator on level 0 of an index."""

    use: int
    pinned_by: int | None  # number of the condition with the constant that is sought, if only that is

    def walks(self, patch: Patch | None, problem: JoinProblem) -> bool:
        """Whether it comes upon keys of the root that the base has otherwise."""
        if self.pinned_by is None or patch is None:
            return True
        return patch.moves_root(problem.conditions[self.pinned_by].offset)


def _pinned_by(problem: JoinProblem, name: str) -> int | None:
    """The number of the condition that says which constant a variable is."""
    numbers = (
        number
        for number, condition in enumerate(problem.conditions)
        if condition.left == name and condition.operator == "=" and condition.right is None
    )
    return next(numbers, None)


@dataclass(frozen=True, eq=False)
class BoundPlan:
    """A plan over tables, ready for a search; good as long as it lives, whatever becomes of the tables."""

    plan: Plan
    problem: JoinProblem  # with the constants that it is bound to
    template: np.ndarray  # int64, read-only: the records that a search begins with
    addresses: np.ndarray  # items of it that name others
    length: int  # of a search's memory
    versions: np.ndarray  # int64: the address of the memory of each index
    factor: int  # assignments that every row stands for (atoms without walked columns)
    empty: bool  # an atom has no rows, or a negated one without walked columns has
    views: tuple[SearchView, ...]
    kept: tuple[np.ndarray, ...]  # rank tables, offsets, memories of indices

    def with_constants(self, problem: JoinProblem) -> BoundPlan | None:
        """The same over the same tables, for the constants of another problem of the same shape.

        None where a patch has to list a root for them that it leaves out: then the plan is bound anew.
        """
        for root in self.plan._roots:
            patch = self.views[root.use].patch
            if patch is not None and not patch.is_rooted and root.walks(patch, problem):
                return None
        template = self.template.copy()
        for row, condition in self.plan.condition_rows:
            template[row + Condition.place("offset")] = condition.offset(problem)
        template.setflags(write=False)
        return BoundPlan(
            self.plan,
            problem,
            template,
            self.addresses,
            self.length,
            self.versions,
            self.factor,
            self.empty,
            self.views,
            self.kept,
        )

    @property
    def order(self) -> tuple[str, ...]:
        return self.plan.order

    @property
    def depths(self) -> int:
        return self.plan.depths

    @property
    def first_trie(self) -> Trie | None:
        """The base with the shortest level 0 that takes part at the first depth that no literal pins."""
        roots = [self.views[use].base for use in self.plan._split_roots]
        return min(roots, key=lambda trie: len(trie.keys[0]), default=None)

    def new_counters(self) -> np.ndarray:
        """No operations, int64 (depths, 3): opens, nexts, seeks."""
        return np.zeros((self.depths, 3), dtype=np.int64)

    def new_memory(self) -> np.ndarray:
        """The memory of a search that has not begun: it has to stay where it is."""
        return placed(self.template, self.addresses, self.length)

    def region(self, low: int = KEY_MIN, high: int = KEY_MAX) -> np.ndarray:
        """A range of the keys of the first depth that no literal pins, as a region: int64 (1, 2 + depths)."""
        plan, conditions = self.plan, self.problem.conditions
        pinned = [conditions[number].offset for number in plan.pinning]
        rest = [0] * (plan.depths - len(pinned) - 1)
        return np.array([[len(pinned) + 1, high, *pinned, low, *rest]], np.int64)


def compile_plan(problem: JoinProblem, order: Sequence[str], write: bool, share: bool = True) -> Plan:
    """Lay a problem out for searches under ``order``.

    ``write``: rows are wanted, not only their number; ``share``: atoms may share iterators.
    """
    order = tuple(order)
    walked = problem.without_unbound()
    depths, tail = len(order), emit_depth(problem, order)
    counts = problem.counted and tail < depths
    place = {name: depth for depth, name in enumerate(order)}
    shape = Shape(
        gap=0,
        tail=depths if problem.counted else tail,
        listed=(tail if counts else depths) if write else 0,
        outputs=tuple(place[name] for name in problem.emitted) if write else (),
        weighs=problem.counted or not write,
        segments=segments_of(problem, order),
        in_blocks=True,
    )
    atoms = (*walked.atoms, *walked.negations)
    read = [_index_of(atom, order) for atom in atoms]
    uses = [_longest(own, read) for own in read]
    layout = Compilation(walked, order, shape, uses, factors=problem.counted, share=share).plan()
    if debug.enabled:
        plan_check.check_bindings(0, layout.least_bound)
    pinned = [] if problem.pinned.issuperset(order) else list(takewhile(problem.pinned.__contains__, order))
    return Plan(
        problem=problem,
        layout=layout,
        writes=write,
        needs_distinct=needs_distinct(problem, order, shape.segments),
        pinning=tuple(number for name in pinned if (number := _pinned_by(problem, name)) is not None),
        atom_uses=tuple(layout.indexes.index(use) for use in uses),
    )


def _index_of(atom: JoinAtom, order: Sequence[str]) -> IndexUse:
    """The index that an atom reads under an order: its columns, then those that it counts."""
    return IndexUse(atom.relation, ((*atom.levels(order)[0], *atom.counted), atom.equal), atom.side)


def _longest(own: IndexUse, read: Sequence[IndexUse]) -> IndexUse:
    """The first of the longest indices that begin with the columns of one of them (invariant 1)."""
    columns, equal = own.key
    fitting = [
        use
        for use in read
        if (use.relation, use.side, use.key[1]) == (own.relation, own.side, equal)
        and use.key[0][: len(columns)] == columns
    ]
    return max(fitting, key=lambda use: len(use.key[0]))
