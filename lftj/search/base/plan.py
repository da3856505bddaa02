"""A plan: one key order for one join problem, apart from all data; and a plan bound to data.

:func:`compile_plan` lays a :class:`~lftj.search.problem.JoinProblem` out for one key
order, as the flat array that :mod:`lftj.search.base.layout` describes, with gaps where
addresses and codes of constants belong.  :meth:`Plan.bind` fills them in for tables and
for the constants of a problem of the same shape: some tens of microseconds, so a plan
serves many versions and many constants.

Invariants

1. One index whose columns begin those of another one is read as part of that, so that
   atoms share more iterators (:mod:`lftj.search.outline`).
2. A plan holds no data.  A bound plan keeps its tries, patches and rank tables alive;
   its array holds their addresses.
3. A list in the state is as long as the longest that is written there, results on the way included.
   A stage intersects its participants one after the other in one list, so that has room for
   what the stage before, or the first participant, shares with the next one: later ones may have fewer keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.process import debug
from lftj.search.base import layout as L
from lftj.search.base import plan_check
from lftj.search.base.binding import FactorRow, IteratorRow, StageRow
from lftj.search.conditions import Condition, ConditionRow, fill_conditions
from lftj.search.outline import Outline
from lftj.search.problem import JoinAtom, JoinProblem, emit_depth, needs_distinct, segments_of
from lftj.storage.catalog import Catalog, IndexUse, SearchView, Side, Table
from lftj.storage.trie import Trie


@dataclass(frozen=True, eq=False)
class Plan:
    """A join problem under one key order; ``bind`` makes it ready for the kernel."""

    problem: JoinProblem
    outline: Outline
    template: np.ndarray  # int64, read-only: lftj.search.base.layout, with gaps
    state_length: int  # less the room of stages
    uses: tuple[IndexUse, ...]
    segments: tuple[tuple[int, int], ...]  # first and last depth of each short circuit
    needs_distinct: bool
    counter_places: np.ndarray  # int64 (depths, 3): where opens, nexts, seeks stand in a search's state
    iterator_names: dict[int, tuple[str, int]]  # atom and level of each iterator row, for people
    iterators: tuple[IteratorRow, ...]
    factors: tuple[FactorRow, ...]
    stage_rows: tuple[StageRow, ...]
    condition_rows: tuple[tuple[int, ConditionRow], ...]  # where each stands, and what it says
    split_roots: tuple[int, ...]  # uses whose level 0 takes part at the first depth that no literal pins
    atom_uses: tuple[int, ...]  # per atom with variables, in order: positive ones, then negated ones
    openings: tuple[tuple[int, ...], ...]  # per depth its participants in the order of the trace

    @property
    def order(self) -> tuple[str, ...]:
        return self.outline.order

    @property
    def depths(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        """The program: an instruction per depth, and what leaves."""
        kind = int(self.template[L.H_TAIL_KIND])
        below = {L.TAIL_COUNT: "assignments are counted", L.TAIL_EXISTS: "the first success is enough"}
        lines = self.outline.program()
        for first, last in self.segments:
            lines.append(f"{', '.join(self.order[first : last + 1])}: the first success is enough")
        if kind in below:
            lines.append(f"from {self.order[self.emit]} on {below[kind]}")
        return "\n".join([*lines, f"emit {', '.join(self.problem.emitted) or 'nothing'}"])

    @property
    def emit(self) -> int:
        return int(self.template[L.H_TAIL])

    def stages(self, depth: int) -> int:
        """Number of stages of a depth."""
        return int(self.template[self.template[L.H_DEPTH_ROWS] + depth * L.DEPTH_FIELDS + L.D_STAGES])

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
        for iterator in self.iterators:
            patch = views[iterator.use].patch if iterator.level == 0 else None
            if patch is not None and iterator.walks_root(patch, problem):
                views[iterator.use] = views[iterator.use].rooted
        memory = self.template.copy()
        start: list[tuple[int, int]] = []
        for iterator in self.iterators:
            start += iterator.fill(memory, views[iterator.use])
        kept = [factor.fill(memory, views[factor.use]) for factor in self.factors]
        length = self.state_length
        for stage in self.stage_rows:
            length = stage.fill(memory, views, length)
        kept += fill_conditions(memory, self.condition_rows, problem)
        memory[L.H_STATE] = length
        memory.setflags(write=False)
        if debug.enabled:
            levels = {iterator.row: iterator.level_of(views[iterator.use]) for iterator in self.iterators}
            plan_check.check_bound(memory, levels, self.state_length)
        empty, factor_of_all = False, 1
        for atom, negated in problem.unbound:
            size = atom.n_rows(table_of(atom.relation, atom.side))
            empty = empty or (size > 0) == negated
            factor_of_all *= size if atom.counted and not negated else 1
        empty = empty or any(views[use].n_tuples == 0 for use in self.atom_uses[: self._n_positive])
        return BoundPlan(self, problem, memory, factor_of_all, empty, tuple(views), tuple(kept), tuple(start))

    @property
    def _n_positive(self) -> int:
        return sum(1 for atom in self.problem.atoms if atom.variables)


@dataclass(frozen=True, eq=False)
class BoundPlan:
    """A plan over tables, ready for the kernel; good as long as it lives, whatever becomes of the tables."""

    plan: Plan
    problem: JoinProblem  # with the constants that it is bound to
    memory: np.ndarray  # int64, read-only: lftj.search.base.layout
    factor: int  # assignments that every row stands for (atoms without walked columns)
    empty: bool  # an atom has no rows, or a negated one without walked columns has
    views: tuple[SearchView, ...]
    kept: tuple[np.ndarray, ...]  # rank tables and offsets
    start: tuple[tuple[int, int], ...]  # what a new state holds beside zeros

    def with_constants(self, problem: JoinProblem) -> BoundPlan | None:
        """The same over the same tables, for the constants of another problem of the same shape.

        None where a patch has to list a root for them that it leaves out: then the plan is bound anew.
        """
        for iterator in self.plan.iterators:
            patch = self.views[iterator.use].patch if iterator.level == 0 else None
            if patch is not None and not patch.is_rooted and iterator.walks_root(patch, problem):
                return None
        memory = self.memory.copy()
        for row, condition in self.plan.condition_rows:
            memory[row + Condition.place("offset")] = condition.offset(problem)
        memory.setflags(write=False)
        return BoundPlan(
            self.plan, problem, memory, self.factor, self.empty, self.views, self.kept, self.start
        )

    @property
    def order(self) -> tuple[str, ...]:
        return self.plan.order

    @property
    def depths(self) -> int:
        return len(self.plan.order)

    @property
    def first_trie(self) -> Trie | None:
        """The base with the shortest level 0 that takes part at the first depth that no literal pins."""
        roots = [self.views[use].base for use in self.plan.split_roots]
        return min(roots, key=lambda trie: len(trie.keys[0]), default=None)

    def new_counters(self) -> np.ndarray:
        """No operations, int64 (depths, 3): opens, nexts, seeks."""
        return np.zeros((self.depths, L.COUNTERS), dtype=np.int64)

    def new_state(self) -> np.ndarray:
        """The state of a search that has not begun."""
        state = np.zeros(self.memory[L.H_STATE], dtype=np.int64)
        state[L.R_LOW], state[L.R_HIGH] = KEY_MIN, KEY_MAX
        for place, value in self.start:
            state[place] = value
        return state


def compile_plan(problem: JoinProblem, order: Sequence[str], write: bool, share: bool = True) -> Plan:
    """Lay a problem out for the kernel under ``order``.

    ``write``: rows are wanted, not only their number; ``share``: atoms may share iterators.
    """
    return Compilation(problem, tuple(order), share).plan(write)


class Compilation:
    """Writes rows into a plan and hands out places in the state, each once."""

    def __init__(self, problem: JoinProblem, order: tuple[str, ...], share: bool) -> None:
        self.problem = problem
        self.order = order
        self.outline = Outline(problem, order, share)
        self.segments = segments_of(problem, order)
        self.memory: list[int] = [0] * L.HEADER
        self.state_length = L.REGISTERS
        self.nodes = [self.in_state(L.NODE_FIELDS) for _ in order]
        self.rows: list[int] = []
        """Of the iterators, by number."""
        self.stage_rows: list[StageRow] = []
        self.condition_rows: list[tuple[int, ConditionRow]] = []

    def row(self, fields: Sequence[int]) -> int:
        """Append to the plan; returns the offset."""
        self.memory.extend(int(field) for field in fields)
        return len(self.memory) - len(fields)

    def in_state(self, length: int) -> int:
        """Take ``length`` items of the state; returns the offset."""
        self.state_length += length
        return self.state_length - length

    def plan(self, write: bool) -> Plan:
        problem, order, outline, header = self.problem, self.order, self.outline, self.memory
        n = len(order)
        atom_uses, counted = self.add_atoms()
        depths = [self.depth_fields(depth) for depth in range(n)]
        split = next((d for d in range(n) if order[d] not in problem.pinned), 0)
        emit = emit_depth(problem, order)
        header[L.H_TAIL_KIND] = (
            L.TAIL_NONE if emit == n else L.TAIL_COUNT if problem.counted else L.TAIL_EXISTS
        )
        header[L.H_WRITE] = int(write)
        header[L.H_SPLIT] = split
        header[L.H_FACTORS], header[L.H_N_FACTORS] = len(header), len(counted)
        factors = [self.factor(atom, iterator) for atom, iterator in counted]
        header[L.H_OUTPUTS] = self.row([outline.place[name] for name in problem.emitted])
        header[L.H_N_OUTPUTS] = len(problem.emitted)
        header[L.H_DEPTHS] = n
        header[L.H_DEPTH_ROWS] = self.row([field for fields in depths for field in fields])
        header[L.H_KEYS] = self.in_state(n)
        header[L.H_TAIL] = emit
        template = np.array(header, dtype=np.int64)
        template.setflags(write=False)
        if debug.enabled:
            filled = template.copy()
            fill_conditions(filled, self.condition_rows, problem)
            plan_check.check_base(filled, self.state_length)
        roots = [outline.iterators[number] for number in (outline.participants[split] if n else [])]
        return Plan(
            problem=problem,
            outline=outline,
            template=template,
            state_length=self.state_length,
            uses=tuple(outline.indexes),
            segments=self.segments,
            needs_distinct=needs_distinct(problem, order, self.segments),
            counter_places=_counter_places([fields[L.D_COUNTERS] for fields in depths]),
            iterator_names={
                row: (f"!{walked.label}" if walked.negated else walked.label, walked.level)
                for row, walked in zip(self.rows, outline.iterators, strict=True)
            },
            iterators=tuple(self.iterator(number) for number in range(len(outline.iterators))),
            factors=tuple(factors),
            stage_rows=tuple(self.stage_rows),
            condition_rows=tuple(self.condition_rows),
            split_roots=tuple(root.index for root in roots if root.level == 0),
            atom_uses=atom_uses,
            openings=tuple(tuple(self.rows[i] for i in outline.opening(depth)) for depth in range(n)),
        )

    # -- atoms --------------------------------------------------------------------------

    def add_atoms(self) -> tuple[tuple[int, ...], list[tuple[JoinAtom, int]]]:
        """Add all iterators; what each atom reads, and those that count with their last iterator."""
        outline = self.outline
        walked = [(atom, False) for atom in self.problem.atoms if atom.variables]
        walked += [(atom, True) for atom in self.problem.negations if atom.variables]
        read = [_index_of(atom, self.order) for atom, _ in walked]
        uses = tuple(outline.number_of(_longest(own, read)) for own in read)
        paths = [outline.add_atom(*atom, use) for atom, use in zip(walked, uses, strict=True)]
        for number, (level, parent) in enumerate(zip(outline.iterators, outline.parents, strict=True)):
            fields = [0] * L.ITERATOR_FIELDS
            fields[L.I_PARENT] = self.rows[parent] if parent >= 0 else -1
            fields[L.I_DEPTH] = level.depth
            fields[L.I_CURSOR] = self.in_state(L.CURSOR_FIELDS)
            fields[L.I_LAST] = int(outline.is_last(number))
            fields[L.I_SLOT] = -1
            self.rows.append(self.row(fields))
        counted: list[tuple[JoinAtom, int]] = []
        for (atom, negated), path in zip(walked, paths, strict=True):
            if negated:
                continue
            if atom.counted:
                counted.append((atom, path[-1]))
            for number in path if atom.counted else path[:-1]:
                self.ask_position(number)
        return uses, counted

    def ask_position(self, iterator: int) -> None:
        """Give the iterator a list for the positions of its matches."""
        if not self.has_positions(iterator):
            self.memory[self.rows[iterator] + L.I_SLOT] = self.in_state(L.BLOCK)

    def has_positions(self, iterator: int) -> bool:
        return self.memory[self.rows[iterator] + L.I_SLOT] >= 0

    def iterator(self, number: int) -> IteratorRow:
        walked, row = self.outline.iterators[number], self.rows[number]
        pinned = (
            number
            for number, condition in enumerate(self.problem.conditions)
            if condition.left == self.order[walked.depth]
            and condition.operator == "="
            and condition.right is None
        )
        cursor = self.memory[row + L.I_CURSOR]
        return IteratorRow(row, walked.index, walked.level, cursor, next(pinned, None))

    def factor(self, atom: JoinAtom, iterator: int) -> FactorRow:
        """Write the factor row of an atom that counts below an iterator."""
        walked = self.outline.iterators[iterator]
        fields = [0] * L.FACTOR_FIELDS
        fields[L.F_PARENT] = self.rows[iterator]
        fields[L.F_INNER] = int(walked.depth + 1 == len(self.order))
        deeper = walked.level + len(atom.counted)
        return FactorRow(self.row(fields), walked.index, walked.level, deeper)

    # -- depths ----------------------------------------------------------------------------

    def depth_fields(self, depth: int) -> list[int]:
        """One depth row; what it names is written before it."""
        outline = self.outline
        own, stages = self.stages(depth)
        conditions, negations = outline.conditions[depth], outline.negations[depth]
        fields = [0] * L.DEPTH_FIELDS
        fields[L.D_FIRST], fields[L.D_PARTICIPANTS] = self.row([self.rows[i] for i in own]), len(own)
        fields[L.D_NEGATION] = self.row([self.rows[i] for i in negations])
        fields[L.D_NEGATIONS] = len(negations)
        fields[L.D_CONDITION] = self.row([0] * (Condition.LENGTH * len(conditions)))
        fields[L.D_CONDITIONS] = len(conditions)
        self.condition_rows += [
            (fields[L.D_CONDITION] + number * Condition.LENGTH, condition)
            for number, condition in enumerate(conditions)
        ]
        fields[L.D_NODE] = self.nodes[depth]
        if outline.drops_matches(depth):
            positions = any(map(self.has_positions, own))
            fields[L.D_FILTERS] = L.FILTERS_POSITIONS if positions else L.FILTERS_KEYS
        fields[L.D_STAGE], fields[L.D_STAGES] = len(self.memory), len(stages)
        self.stage_rows += [self.stage(own, *ends) for ends in zip([0, *stages], stages, strict=False)]
        fields[L.D_BACK] = _back(depth, self.segments)
        fields[L.D_SLOT] = self.in_state(L.BLOCK)
        fields[L.D_BLOCK] = 1 if any(first <= depth <= last for first, last in self.segments) else L.BLOCK
        fields[L.D_COUNTERS] = self.in_state(L.COUNTERS)
        return fields

    def stages(self, depth: int) -> tuple[list[int], list[int]]:
        """Participants of a depth, staged ones first, and how many of them each of its stages covers.

        Staged are participants on the last level of their atom whose parent is bound
        before the depth above: they stay the same while that depth varies.
        """
        bound_at = self.outline.bound_at
        own = self.outline.participants[depth]
        staged = [i for i in own if not self.has_positions(i) and 0 <= bound_at(i) < depth - 1]
        if len(own) < 2 or not staged:
            return own, []
        staged.sort(key=bound_at)
        parents = [bound_at(iterator) for iterator in staged]
        ends = [end for end in range(1, len(staged) + 1) if parents[end - 1 : end] != parents[end : end + 1]]
        return staged + [i for i in own if i not in staged], ends

    def stage(self, participants: Sequence[int], before: int, covered: int) -> StageRow:
        """Write the row of a stage of the first ``covered`` participants of its depth.

        ``before``: how many of them the stage before it covers, 0 where there is none.
        """
        outline = self.outline
        fields = [0] * L.STAGE_FIELDS
        fields[L.S_COVERED] = covered
        fields[L.S_BOUND_AT] = self.nodes[outline.bound_at(participants[covered - 1])]
        fields[L.S_STATE] = self.in_state(L.STAGE_STATE_FIELDS)
        levels = tuple((outline.iterators[i].index, outline.iterators[i].level) for i in participants)
        first_result = levels[: max(before, 1) + 1] if covered > 1 else ()
        return StageRow(self.row(fields), first_result, levels)


def _counter_places(rows: Sequence[int]) -> np.ndarray:
    """Places of the counters, which begin at ``rows``, one per depth."""
    return np.array(rows, dtype=np.int64).reshape(-1, 1) + np.arange(L.COUNTERS)


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


def _back(depth: int, segments: tuple[tuple[int, int], ...]) -> int:
    """The depth to fall back to from ``depth``: the one before, but never into a finished segment."""
    back = depth - 1
    for first, last in reversed(segments):
        if back == last:
            back = first - 1
    return back
