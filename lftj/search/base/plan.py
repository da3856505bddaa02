"""A plan: one key order for one join problem, apart from all data; and a plan bound to data.

:func:`compile_plan` lays a :class:`~lftj.search.problem.JoinProblem` out for one key
order, as the flat array that :mod:`lftj.search.base.layout` describes, with gaps where
addresses and codes of constants belong.  :meth:`Plan.bind` fills them in for tables and
for the constants of a problem of the same shape: some tens of microseconds, so a plan
serves many versions and many constants.

Invariants

1. The order names every variable of the problem once.
2. Two atoms that read one index along one prefix of variables share iterators.  One
   index whose columns begin those of another one is read as part of that.
3. A plan holds no data.  A bound plan keeps its tries, patches and rank tables alive;
   its array holds their addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import address
from lftj.search.base import layout as L
from lftj.search.conditions import C_OFFSET, CONDITION_FIELDS, ConditionRow, condition_rows
from lftj.search.marks import mark_words
from lftj.search.problem import JoinAtom, JoinProblem, emit_depth, needs_distinct, segments_of
from lftj.storage.catalog import Catalog, IndexUse, SearchView, Side, Table
from lftj.storage.patch import PATCH_FIELDS, Patch
from lftj.storage.trie import Trie


@dataclass(frozen=True)
class _Iterator:
    """Which level of which index an iterator row reads."""

    row: int
    use: int
    level: int
    deeper: bool  # it has iterators below it
    cursor: int
    pinned_by: int | None  # number of the condition with the constant that is sought, if only that is

    def walks_root(self, patch: Patch, problem: JoinProblem) -> bool:
        """Of one on level 0: whether it comes upon keys of the root that the base has otherwise."""
        return self.pinned_by is None or patch.moves_root(problem.conditions[self.pinned_by].offset)


@dataclass(frozen=True)
class _Factor:
    """A factor row: branches of level ``deeper`` below those of ``level`` are counted."""

    row: int
    use: int
    level: int
    deeper: int


@dataclass(frozen=True)
class _Stage:
    """A stage row, whose room in the state depends on the data."""

    row: int
    covered: tuple[tuple[int, int], ...]  # use and level of the participants that it intersects
    participants: tuple[tuple[int, int], ...]  # of all of the depth
    lists: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """A join problem under one key order; ``bind`` makes it ready for the kernel."""

    problem: JoinProblem
    order: tuple[str, ...]
    template: np.ndarray  # int64, read-only: layout.py, with gaps
    state_length: int  # less the room of stages
    uses: tuple[IndexUse, ...]
    segments: tuple[tuple[int, int], ...]  # first and last depth of each short circuit
    needs_distinct: bool
    counter_places: np.ndarray  # int64 (depths, 3): where opens, nexts, seeks stand in a search's state
    iterator_names: dict[int, tuple[str, int]]  # atom and level of each iterator row, for people
    iterators: tuple[_Iterator, ...]
    factors: tuple[_Factor, ...]
    stage_rows: tuple[_Stage, ...]
    condition_rows: tuple[tuple[int, ConditionRow], ...]  # where each stands, and what it says
    split_roots: tuple[int, ...]  # uses whose level 0 takes part at the first depth that no literal pins
    atom_uses: tuple[int, ...]  # per atom with variables, in order: positive ones, then negated ones

    @property
    def depths(self) -> int:
        return len(self.order)

    @property
    def emit(self) -> int:
        return int(self.template[L.H_EMIT])

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
        kept: list[np.ndarray] = []
        for iterator in self.iterators:
            _bind_iterator(memory, iterator, views[iterator.use], start)
        for factor in self.factors:
            base = views[factor.use].base
            offsets = base.offsets(factor.level, factor.deeper)
            kept.append(offsets)
            memory[factor.row + L.F_OFFSETS] = address(offsets)
            memory[factor.row + L.F_COLUMN] = factor.deeper
        length = self.state_length
        for stage in self.stage_rows:
            length = _bind_stage(memory, stage, views, length)
        for row, condition in self.condition_rows:
            memory[row : row + CONDITION_FIELDS], table = condition.fields(problem)
            if table is not None:
                kept.append(table)
        memory[L.H_STATE] = length
        memory.setflags(write=False)
        empty, factor_of_all = False, 1
        for atom, negated in [*((a, False) for a in problem.atoms), *((a, True) for a in problem.negations)]:
            if not atom.variables:
                size = atom.n_rows(table_of(atom.relation, atom.side))
                empty = empty or (size > 0) == negated
                factor_of_all *= size if atom.counted and not negated else 1
        empty = empty or any(views[use].n_tuples == 0 for use in self.atom_uses[: self._n_positive])
        return BoundPlan(self, problem, memory, factor_of_all, empty, tuple(views), tuple(kept), tuple(start))

    @property
    def _n_positive(self) -> int:
        return sum(1 for atom in self.problem.atoms if atom.variables)


def _bind_iterator(
    memory: np.ndarray, iterator: _Iterator, view: SearchView, start: list[tuple[int, int]]
) -> None:
    """Fill an iterator's row in, and say what its cursor starts with."""
    row, level, base, patch = iterator.row, iterator.level, view.base, view.patch
    where, length, children = base.places[level]
    part, ranks = 0, base.ranks
    if patch is not None:
        memory[row + L.I_PATCH] = patch.address + 8 * PATCH_FIELDS * level
        if level == 0 and patch.relists_root:
            part = 1
            where, length = patch.keys_at(0)
            ranks = None if iterator.pinned_by is not None else patch.root_ranks
    memory[row + L.I_KEYS] = where
    memory[row + L.I_LENGTH] = length
    start += [(iterator.cursor + L.P_LIST, where), (iterator.cursor + L.P_PART, part)]
    if iterator.deeper:
        memory[row + L.I_CHILDREN] = children
    if level == 0 and ranks is not None:
        memory[row + L.I_RANKS] = address(ranks) if part else base.ranks_place
        memory[row + L.I_BASE] = patch.root_low if part and patch else base.key_ranges[0][0]
        memory[row + L.I_SPREAD] = len(ranks) - 1


def _bind_stage(memory: np.ndarray, stage: _Stage, views: Sequence[SearchView], length: int) -> int:
    """Give a stage its room in the state, behind ``length`` items; returns the new length."""
    ranges = [views[use].key_ranges[level] for use, level in stage.participants]
    largest = max(len(views[use].base.keys[level]) for use, level in stage.participants)
    if stage.lists:
        memory[stage.row + L.S_LIST] = length
        # a rejected last key is written too
        length += 1 + min(views[use].max_fanouts[level] for use, level in stage.covered)
    memory[stage.row + L.S_BASE], words = mark_words(ranges, largest)
    memory[stage.row + L.S_MARKS] = length if words else -1
    return length + words


@dataclass(frozen=True, eq=False)
class BoundPlan:
    """A plan over tables, ready for the kernel; good as long as it lives, whatever becomes of the tables."""

    plan: Plan
    problem: JoinProblem  # with the constants that it is bound to
    memory: np.ndarray  # int64, read-only: layout.py
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
            memory[row + C_OFFSET] = condition.offset(problem)
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
        state[L.R_SPLIT_LO], state[L.R_SPLIT_HI] = KEY_MIN, KEY_MAX
        for place, value in self.start:
            state[place] = value
        return state


def compile_plan(problem: JoinProblem, order: Sequence[str], write: bool, share: bool = True) -> Plan:
    """Lay a problem out for the kernel under ``order``.

    ``write``: rows are wanted, not only their number; ``share``: atoms may share iterators (invariant 2).
    """
    return _Compilation(problem, tuple(order), share).plan(write)


class _Compilation:
    """Gathers iterators, then writes rows into the plan and hands out places in the state."""

    def __init__(self, problem: JoinProblem, order: tuple[str, ...], share: bool) -> None:
        self.problem = problem
        self.order = order
        self.place = {name: depth for depth, name in enumerate(order)}
        self.memory: list[int] = [0] * L.HEADER
        self.state_length = L.REGISTERS
        self.share = share
        self.shared: dict[tuple[object, ...], int] = {}
        self.uses: dict[IndexUse, int] = {}
        self.iterators: dict[int, _Iterator] = {}
        self.names: dict[int, tuple[str, int]] = {}
        self.participants: list[list[int]] = [[] for _ in order]
        self.negations: list[list[int]] = [[] for _ in order]
        self.factors: list[tuple[list[int], tuple[int, int, int]]] = []
        self.stage_data: list[_Stage] = []
        self.atom_uses: list[int] = []

    # -- memory -------------------------------------------------------------------

    def row(self, fields: Sequence[int]) -> int:
        """Append to the plan; returns the offset."""
        self.memory.extend(int(field) for field in fields)
        return len(self.memory) - len(fields)

    def in_state(self, length: int) -> int:
        """Take ``length`` items of the state; returns the offset."""
        self.state_length += length
        return self.state_length - length

    # -- the whole ------------------------------------------------------------------

    def plan(self, write: bool) -> Plan:
        problem, order = self.problem, self.order
        n = len(order)
        self.add_atoms()
        segments = segments_of(problem, order)
        emit = emit_depth(problem, order)
        tail = L.TAIL_NONE if emit == n else L.TAIL_COUNT if problem.counted else L.TAIL_EXISTS
        conditions = condition_rows(problem, self.place)
        nodes = [self.in_state(L.NODE_FIELDS) for _ in order]
        condition_places: list[tuple[int, ConditionRow]] = []
        rows = [
            self.depth_fields(depth, nodes, conditions[depth], condition_places, segments)
            for depth in range(n)
        ]
        split = next((d for d in range(n) if order[d] not in problem.pinned), 0)
        header = [0] * L.HEADER
        header[L.H_DEPTHS], header[L.H_EMIT], header[L.H_TAIL], header[L.H_WRITE] = n, emit, tail, int(write)
        header[L.H_SPLIT] = split
        header[L.H_DEPTH_ROWS] = self.row([field for fields in rows for field in fields])
        header[L.H_FACTORS] = self.row([field for fields, _ in self.factors for field in fields])
        header[L.H_N_FACTORS] = len(self.factors)
        header[L.H_OUTPUTS] = self.row([self.place[name] for name in problem.emitted])
        header[L.H_N_OUTPUTS] = len(problem.emitted)
        header[L.H_KEYS] = self.in_state(n)
        self.memory[: L.HEADER] = header
        template = np.array(self.memory, dtype=np.int64)
        template.setflags(write=False)
        roots = [self.iterators[i] for i in (self.participants[split] if n else [])]
        return Plan(
            problem=problem,
            order=order,
            template=template,
            state_length=self.state_length,
            uses=tuple(self.uses),
            segments=segments,
            needs_distinct=needs_distinct(problem, order, segments),
            counter_places=_counter_places([fields[L.D_COUNTERS] for fields in rows]),
            iterator_names=self.names,
            iterators=tuple(self.iterators.values()),
            factors=tuple(
                _Factor(header[L.H_FACTORS] + number * L.FACTOR_FIELDS, *where)
                for number, (_, where) in enumerate(self.factors)
            ),
            stage_rows=tuple(self.stage_data),
            condition_rows=tuple(condition_places),
            split_roots=tuple(root.use for root in roots if root.level == 0),
            atom_uses=tuple(self.atom_uses),
        )

    # -- atoms --------------------------------------------------------------------------

    def add_atoms(self) -> None:
        problem, last = self.problem, len(self.order) - 1
        walked = [atom for atom in (*problem.atoms, *problem.negations) if atom.variables]
        read = [_index_of(atom, self.order) for atom in walked]
        for number, (atom, own) in enumerate(zip(walked, read, strict=True)):
            negated = number >= sum(1 for positive in problem.atoms if positive.variables)
            use = self.uses.setdefault(_longest(own, read), len(self.uses))
            self.atom_uses.append(use)
            columns, variables = atom.levels(self.order)
            iterator = self.add_atom(use, variables, f"!{atom.label}" if negated else atom.label, negated)
            if atom.counted and not negated:
                self.ask_position(iterator)
                inner = int(self.place[variables[-1]] == last)
                level = len(columns) - 1
                self.factors.append(([iterator, 0, inner, 0], (use, level, level + len(atom.counted))))

    def add_atom(self, use: int, variables: tuple[str, ...], label: str, negated: bool) -> int:
        """Add the iterators of one atom, sharing those that are there; return the last one's row."""
        parent = -1
        for level, name in enumerate(variables):
            deeper = level + 1 < len(variables)
            # Of a negated atom, the last level refuses and others lead on: those are not shared.
            key = (use, variables[: level + 1], negated, negated and deeper)
            iterator = self.shared.get(key, -1) if self.share else -1
            if iterator < 0:
                iterator = self.shared[key] = self.add_iterator(use, level, parent, name)
                self.names[iterator] = (label, level)
                (self.negations if negated else self.participants)[self.place[name]].append(iterator)
            if deeper:
                self.iterators[iterator] = replace(self.iterators[iterator], deeper=True)
                if not negated:
                    self.ask_position(iterator)
            parent = iterator
        return parent

    def add_iterator(self, use: int, level: int, parent: int, name: str) -> int:
        fields = [0] * L.ITERATOR_FIELDS
        fields[L.I_PARENT] = parent
        fields[L.I_DEPTH] = self.place[name]
        fields[L.I_SLOT] = -1
        fields[L.I_CURSOR] = self.in_state(L.CURSOR_FIELDS)
        row = self.row(fields)
        pinned = (
            number
            for number, condition in enumerate(self.problem.conditions)
            if condition.left == name and condition.operator == "=" and condition.right is None
        )
        self.iterators[row] = _Iterator(row, use, level, False, fields[L.I_CURSOR], next(pinned, None))
        return row

    def ask_position(self, iterator: int) -> None:
        """Give the iterator a list for the positions of its matches."""
        if self.memory[iterator + L.I_SLOT] < 0:
            self.memory[iterator + L.I_SLOT] = self.in_state(L.BLOCK)

    # -- depths ----------------------------------------------------------------------------

    def depth_fields(
        self,
        depth: int,
        nodes: list[int],
        conditions: list[ConditionRow],
        places: list[tuple[int, ConditionRow]],
        segments: tuple[tuple[int, int], ...],
    ) -> list[int]:
        """One depth row; what it names is written before it.  ``places`` gets where the conditions stand."""
        own, stages = self.stages(depth, nodes)
        negations = self.negations[depth]
        filters = any(condition.is_filter for condition in conditions)
        complete = any(not self.iterators[iterator].deeper for iterator in negations)
        fields = [0] * L.DEPTH_FIELDS
        fields[L.D_FIRST], fields[L.D_PARTICIPANTS] = self.row(own), len(own)
        fields[L.D_STAGE] = self.row([field for stage, _ in stages for field in stage])
        fields[L.D_STAGES] = len(stages)
        self.stage_data += [
            replace(data, row=fields[L.D_STAGE] + number * L.STAGE_FIELDS)
            for number, (_, data) in enumerate(stages)
        ]
        fields[L.D_NEGATION], fields[L.D_NEGATIONS] = self.row(negations), len(negations)
        fields[L.D_CONDITION] = self.row([0] * (CONDITION_FIELDS * len(conditions)))
        fields[L.D_CONDITIONS] = len(conditions)
        places += [
            (fields[L.D_CONDITION] + at * CONDITION_FIELDS, condition)
            for at, condition in enumerate(conditions)
        ]
        fields[L.D_BACK] = _back(depth, segments)
        fields[L.D_SLOT] = self.in_state(L.BLOCK)
        fields[L.D_BLOCK] = 1 if any(first <= depth <= last for first, last in segments) else L.BLOCK
        fields[L.D_NODE] = nodes[depth]
        fields[L.D_COUNTERS] = self.in_state(L.COUNTERS)
        if filters or complete:
            positions = any(self.memory[iterator + L.I_SLOT] >= 0 for iterator in own)
            fields[L.D_FILTERS] = L.FILTERS_POSITIONS if positions else L.FILTERS_KEYS
        return fields

    def stages(self, depth: int, nodes: list[int]) -> tuple[list[int], list[tuple[list[int], _Stage]]]:
        """Participants of a depth, staged ones first, and its stage rows.

        Staged are participants on the last level of their atom whose parent is bound
        before the depth above: they stay the same while that depth varies.
        """
        own = self.participants[depth]

        def bound_at(iterator: int) -> int:
            parent = self.memory[iterator + L.I_PARENT]
            return -1 if parent < 0 else self.memory[parent + L.I_DEPTH]

        def places(iterators: Sequence[int]) -> tuple[tuple[int, int], ...]:
            return tuple((self.iterators[i].use, self.iterators[i].level) for i in iterators)

        staged = [i for i in own if self.memory[i + L.I_SLOT] < 0 and 0 <= bound_at(i) < depth - 1]
        if len(own) < 2 or not staged:
            return own, []
        staged.sort(key=bound_at)
        own = staged + [i for i in own if i not in staged]
        rows = []
        for covered in range(1, len(staged) + 1):
            if covered < len(staged) and bound_at(staged[covered]) == bound_at(staged[covered - 1]):
                continue
            fields = [0] * L.STAGE_FIELDS
            fields[L.S_COVERED] = covered
            fields[L.S_BOUND_AT] = nodes[bound_at(staged[covered - 1])]
            fields[L.S_STATE] = self.in_state(L.STAGE_STATE_FIELDS)
            rows.append((fields, _Stage(-1, places(staged[:covered]), places(own), covered > 1)))
        return own, rows


def _counter_places(rows: Sequence[int]) -> np.ndarray:
    """Places of the counters, which begin at ``rows``, one per depth."""
    return np.array(rows, dtype=np.int64).reshape(-1, 1) + np.arange(L.COUNTERS)


def _index_of(atom: JoinAtom, order: Sequence[str]) -> IndexUse:
    """The index that an atom reads under an order: its columns, then those that it counts."""
    return IndexUse(atom.relation, ((*atom.levels(order)[0], *atom.counted), atom.equal), atom.side)


def _longest(own: IndexUse, read: Sequence[IndexUse]) -> IndexUse:
    """The first of the longest indices that begin with the columns of one of them (invariant 2)."""
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
