"""A plan: one key order for one join problem, apart from all data; and a plan bound to data.

:func:`compile_plan` lays a :class:`~lftj.search.problem.JoinProblem` out for one key
order, as the records that :mod:`lftj.search.base.records` describes, with gaps where
addresses and codes of constants belong.  :meth:`Plan.bind` fills them in for tables and
for the constants of a problem of the same shape: some tens of microseconds, so a plan
serves many versions and many constants.

Invariants

1. One index whose columns begin those of another one is read as part of that, so that
   atoms share more iterators (:mod:`lftj.search.outline`).
2. A plan holds no data.  A bound plan keeps its tries, patches and rank tables alive;
   its array holds their addresses.
3. A list is as long as the longest that is written there, results on the way included.
   A stage intersects its participants one after the other in one list, so that has room for
   what the stage before, or the first participant, shares with the next one: later ones may have fewer keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import address
from lftj.process import debug
from lftj.search.base import plan_check
from lftj.search.base.binding import CursorRow, FactorRow, StageRow
from lftj.search.base.records import (
    BLOCK,
    FILTERS_KEYS,
    FILTERS_POSITIONS,
    MOVE_OPEN,
    TAIL_COUNT,
    TAIL_EXISTS,
    TAIL_NONE,
    Cursor,
    Factor,
    Node,
    Search,
    Stage,
)
from lftj.search.conditions import Condition, ConditionRow, fill_conditions
from lftj.search.outline import Outline
from lftj.search.plan_memory import PlanMemory
from lftj.search.problem import JoinAtom, JoinProblem, emit_depth, needs_distinct, segments_of
from lftj.storage.catalog import Catalog, IndexUse, SearchView, Side, Table
from lftj.storage.trie import Trie


@dataclass(frozen=True, eq=False)
class Plan:
    """A join problem under one key order; ``bind`` makes it ready for the kernel."""

    problem: JoinProblem
    outline: Outline
    template: np.ndarray  # int64, read-only: the records, with gaps
    addresses: np.ndarray  # items of it that name others
    length: int  # of a search's memory, less the room of stages
    uses: tuple[IndexUse, ...]
    segments: tuple[tuple[int, int], ...]  # first and last depth of each short circuit
    needs_distinct: bool
    nodes: tuple[int, ...]  # items at which records begin, by depth
    cursor_names: dict[int, tuple[str, int]]  # atom and level of each cursor, for people
    cursors: tuple[CursorRow, ...]
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
        kind = self.search.tail_kind
        below = {TAIL_COUNT: "assignments are counted", TAIL_EXISTS: "the first success is enough"}
        lines = self.outline.program()
        for first, last in self.segments:
            lines.append(f"{', '.join(self.order[first : last + 1])}: the first success is enough")
        if kind in below:
            lines.append(f"from {self.order[self.emit]} on {below[kind]}")
        return "\n".join([*lines, f"emit {', '.join(self.problem.emitted) or 'nothing'}"])

    @property
    def search(self) -> Search:
        return Search.view(self.template)

    @property
    def emit(self) -> int:
        """The first depth of the tail."""
        return int(self.search.tail)

    def stages(self, depth: int) -> int:
        """Number of stages of a depth."""
        node = Node.view(self.template, self.nodes[depth])
        return int(node.stages_end - node.stages) // Stage.BYTES

    @cached_property
    def counter_places(self) -> np.ndarray:
        """Where opens, nexts, seeks stand in a search's memory: int64 (depths, 3)."""
        places = [Node.place(field) for field in ("opens", "nexts", "seeks")]
        return np.array(self.nodes, np.int64).reshape(-1, 1) + np.array(places)

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
        for cursor in self.cursors:
            patch = views[cursor.use].patch if cursor.level == 0 else None
            if patch is not None and cursor.walks_root(patch, problem):
                views[cursor.use] = views[cursor.use].rooted
        memory = self.template.copy()
        for cursor in self.cursors:
            cursor.fill(memory, views[cursor.use])
        kept = [factor.fill(memory, views[factor.use]) for factor in self.factors]
        length, named = self.length, []
        for stage in self.stage_rows:
            length, places = stage.fill(memory, views, length)
            named += places
        addresses = np.append(self.addresses, np.array(named, np.int64)) if named else self.addresses
        kept += fill_conditions(memory, self.condition_rows, problem)
        memory.setflags(write=False)
        if debug.enabled:
            levels = {cursor.row: cursor.level_of(views[cursor.use]) for cursor in self.cursors}
            plan_check.check_bound(memory, addresses, levels, self.length, length)
        empty, factor_of_all = False, 1
        for atom, negated in problem.unbound:
            size = atom.n_rows(table_of(atom.relation, atom.side))
            empty = empty or (size > 0) == negated
            factor_of_all *= size if atom.counted and not negated else 1
        empty = empty or any(views[use].n_tuples == 0 for use in self.atom_uses[: self._n_positive])
        return BoundPlan(
            self, problem, memory, addresses, length, factor_of_all, empty, tuple(views), tuple(kept)
        )

    @property
    def _n_positive(self) -> int:
        return sum(1 for atom in self.problem.atoms if atom.variables)


@dataclass(frozen=True, eq=False)
class BoundPlan:
    """A plan over tables, ready for the kernel; good as long as it lives, whatever becomes of the tables."""

    plan: Plan
    problem: JoinProblem  # with the constants that it is bound to
    memory: np.ndarray  # int64, read-only: the records that a search begins with
    addresses: np.ndarray  # items of it that name others
    length: int  # of a search's memory
    factor: int  # assignments that every row stands for (atoms without walked columns)
    empty: bool  # an atom has no rows, or a negated one without walked columns has
    views: tuple[SearchView, ...]
    kept: tuple[np.ndarray, ...]  # rank tables and offsets

    def with_constants(self, problem: JoinProblem) -> BoundPlan | None:
        """The same over the same tables, for the constants of another problem of the same shape.

        None where a patch has to list a root for them that it leaves out: then the plan is bound anew.
        """
        for cursor in self.plan.cursors:
            patch = self.views[cursor.use].patch if cursor.level == 0 else None
            if patch is not None and not patch.is_rooted and cursor.walks_root(patch, problem):
                return None
        memory = self.memory.copy()
        for row, condition in self.plan.condition_rows:
            memory[row + Condition.place("offset")] = condition.offset(problem)
        memory.setflags(write=False)
        return BoundPlan(
            self.plan,
            problem,
            memory,
            self.addresses,
            self.length,
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
        return len(self.plan.order)

    @property
    def first_trie(self) -> Trie | None:
        """The base with the shortest level 0 that takes part at the first depth that no literal pins."""
        roots = [self.views[use].base for use in self.plan.split_roots]
        return min(roots, key=lambda trie: len(trie.keys[0]), default=None)

    def new_counters(self) -> np.ndarray:
        """No operations, int64 (depths, 3): opens, nexts, seeks."""
        return np.zeros((self.depths, 3), dtype=np.int64)

    def new_memory(self) -> tuple[np.ndarray, int]:
        """The memory of a search that has not begun, and its address: it has to stay there."""
        memory = np.zeros(self.length, dtype=np.int64)
        memory[: len(self.memory)] = self.memory
        where = address(memory)
        memory[self.addresses] += where
        return memory, where


def compile_plan(problem: JoinProblem, order: Sequence[str], write: bool, share: bool = True) -> Plan:
    """Lay a problem out for the kernel under ``order``.

    ``write``: rows are wanted, not only their number; ``share``: atoms may share iterators.
    """
    return Compilation(problem, tuple(order), share).plan(write)


class Compilation:
    """Writes the records of a plan, then hands out the room of its lists."""

    def __init__(self, problem: JoinProblem, order: tuple[str, ...], share: bool) -> None:
        self.problem = problem
        self.order = order
        self.outline = Outline(problem, order, share)
        self.segments = segments_of(problem, order)
        self.memory = PlanMemory()
        self.search = self.memory.room(Search.LENGTH)
        self.nodes = [self.memory.room(Node.LENGTH) for _ in order]
        self.cursors: dict[int, int] = {}
        """By number of the iterator."""
        self.with_positions: set[int] = set()
        """Iterators of which positions are asked for: something hangs or counts below them."""
        self.stage_rows: list[StageRow] = []
        self.condition_rows: list[tuple[int, ConditionRow]] = []

    def plan(self, write: bool) -> Plan:
        problem, order, outline, memory = self.problem, self.order, self.outline, self.memory
        atom_uses, counted = self.add_atoms()
        staged = [self.stages(depth) for depth in range(len(order))]
        for depth, (own, _) in enumerate(staged):
            for iterator in (*own, *outline.negations[depth]):
                self.cursors[iterator] = memory.room(Cursor.LENGTH)
        for iterator, cursor in self.cursors.items():
            self.write_cursor(iterator, cursor)
        for depth, (own, stages) in enumerate(staged):
            self.write_node(depth, own, stages)
        split = next((d for d in range(len(order)) if order[d] not in problem.pinned), 0)
        factors = self.write_factors(counted)
        self.write_search(write, split, len(counted))
        length = memory.length
        self.give_lists()
        template = memory.template(length)
        template.setflags(write=False)
        if debug.enabled:
            filled = template.copy()
            fill_conditions(filled, self.condition_rows, problem)
            plan_check.check_base(filled, np.array(memory.addresses), memory.length)
        roots = [outline.iterators[number] for number in (outline.participants[split] if order else [])]
        return Plan(
            problem=problem,
            outline=outline,
            template=template,
            addresses=np.array(memory.addresses, dtype=np.int64),
            length=memory.length,
            uses=tuple(outline.indexes),
            segments=self.segments,
            needs_distinct=needs_distinct(problem, order, self.segments),
            nodes=tuple(self.nodes),
            cursor_names={
                self.cursors[number]: (f"!{walked.label}" if walked.negated else walked.label, walked.level)
                for number, walked in enumerate(outline.iterators)
            },
            cursors=tuple(self.cursor_row(number) for number in range(len(outline.iterators))),
            factors=tuple(factors),
            stage_rows=tuple(self.stage_rows),
            condition_rows=tuple(self.condition_rows),
            split_roots=tuple(root.index for root in roots if root.level == 0),
            atom_uses=atom_uses,
            openings=tuple(
                tuple(self.cursors[i] for i in outline.opening(depth)) for depth in range(len(order))
            ),
        )

    def write_search(self, write: bool, split: int, n_factors: int) -> None:
        problem, order, memory = self.problem, self.order, self.memory
        tail = emit_depth(problem, order)
        kind = TAIL_NONE if tail == len(order) else TAIL_COUNT if problem.counted else TAIL_EXISTS
        outputs = [self.outline.place[name] for name in problem.emitted]
        memory.put(self.search, Search, depths=len(order), tail=tail, tail_kind=kind, writes=write)
        memory.put(self.search, Search, split=split, n_factors=n_factors, n_outputs=len(outputs))
        memory.put(self.search, Search, low=KEY_MIN, high=KEY_MAX, move=MOVE_OPEN)
        memory.point(self.search, Search, nodes=self.search + Search.LENGTH, outputs=memory.listed(outputs))

    def give_lists(self) -> None:
        """The lists, which a search begins with as zeros."""
        memory = self.memory
        memory.point(self.search, Search, keys=memory.room(len(self.order)))
        for node in self.nodes:
            memory.point(node, Node, matches=memory.room(BLOCK))
        for iterator in sorted(self.with_positions):
            memory.point(self.cursors[iterator], Cursor, positions=memory.room(BLOCK))

    # -- atoms --------------------------------------------------------------------------

    def add_atoms(self) -> tuple[tuple[int, ...], list[tuple[JoinAtom, int]]]:
        """Add all iterators; what each atom reads, and those that count with their last iterator."""
        outline = self.outline
        walked = [(atom, False) for atom in self.problem.atoms if atom.variables]
        walked += [(atom, True) for atom in self.problem.negations if atom.variables]
        read = [_index_of(atom, self.order) for atom, _ in walked]
        uses = tuple(outline.number_of(_longest(own, read)) for own in read)
        paths = [outline.add_atom(*atom, use) for atom, use in zip(walked, uses, strict=True)]
        counted: list[tuple[JoinAtom, int]] = []
        for (atom, negated), path in zip(walked, paths, strict=True):
            if negated:
                continue
            if atom.counted:
                counted.append((atom, path[-1]))
            self.with_positions.update(path if atom.counted else path[:-1])
        return uses, counted

    def write_cursor(self, iterator: int, at: int) -> None:
        outline, parent = self.outline, self.outline.parents[iterator]
        depth, is_last = outline.iterators[iterator].depth, outline.is_last(iterator)
        self.memory.put(at, Cursor, depth=depth, is_last=is_last)
        if parent >= 0:
            self.memory.point(at, Cursor, parent=self.cursors[parent])

    def cursor_row(self, number: int) -> CursorRow:
        walked = self.outline.iterators[number]
        pinned = (
            number
            for number, condition in enumerate(self.problem.conditions)
            if condition.left == self.order[walked.depth]
            and condition.operator == "="
            and condition.right is None
        )
        return CursorRow(self.cursors[number], walked.index, walked.level, next(pinned, None))

    def write_factors(self, counted: Sequence[tuple[JoinAtom, int]]) -> list[FactorRow]:
        """Write the factors of the atoms that count below an iterator."""
        memory, rows = self.memory, [self.memory.room(Factor.LENGTH) for _ in counted]
        factors = []
        for row, (atom, iterator) in zip(rows, counted, strict=True):
            walked = self.outline.iterators[iterator]
            deeper = walked.level + len(atom.counted)
            inner = walked.depth + 1 == len(self.order)
            memory.put(row, Factor, inner=inner, column=deeper)
            memory.point(row, Factor, parent=self.cursors[iterator])
            factors.append(FactorRow(row, walked.index, walked.level, deeper))
        if rows:
            memory.point(self.search, Search, factors=rows[0])
        return factors

    # -- depths ----------------------------------------------------------------------------

    def write_node(self, depth: int, own: Sequence[int], stages: Sequence[int]) -> None:
        """Write a node, its conditions and its stages.

        ``own``: its participants; ``stages``: how many of them each stage covers.
        """
        outline, memory, node = self.outline, self.memory, self.nodes[depth]
        conditions, negations = outline.conditions[depth], outline.negations[depth]
        first = next((self.cursors[iterator] for iterator in (*own, *negations)), memory.length)
        behind = first + len(own) * Cursor.LENGTH
        end = behind + len(negations) * Cursor.LENGTH
        memory.point(node, Node, participants=first, negations=behind, negations_end=end)
        places = [memory.room(Condition.LENGTH) for _ in conditions]
        if places:
            memory.point(node, Node, conditions=places[0])
        self.condition_rows += zip(places, conditions, strict=True)
        memory.put(node, Node, n_conditions=len(conditions), back=_back(depth, self.segments))
        if outline.drops_matches(depth):
            positions = self.with_positions.intersection(own)
            memory.put(node, Node, filters=FILTERS_POSITIONS if positions else FILTERS_KEYS)
        is_proof = any(begin <= depth <= last for begin, last in self.segments)
        memory.put(node, Node, first_block=1 if is_proof else BLOCK)
        rows = [memory.room(Stage.LENGTH) for _ in stages]
        start = rows[0] if rows else memory.length
        memory.point(node, Node, stages=start, stages_end=start + len(rows) * Stage.LENGTH)
        for row, before, covered in zip(rows, (0, *stages), stages, strict=False):
            self.write_stage(row, own, before, covered)

    def stages(self, depth: int) -> tuple[list[int], list[int]]:
        """Participants of a depth, staged ones first, and how many of them each of its stages covers.

        Staged are participants on the last level of their atom whose parent is bound
        before the depth above: they stay the same while that depth varies.
        """
        bound_at = self.outline.bound_at
        own = self.outline.participants[depth]
        staged = [i for i in own if i not in self.with_positions and 0 <= bound_at(i) < depth - 1]
        if len(own) < 2 or not staged:
            return own, []
        staged.sort(key=bound_at)
        parents = [bound_at(iterator) for iterator in staged]
        ends = [end for end in range(1, len(staged) + 1) if parents[end - 1 : end] != parents[end : end + 1]]
        return staged + [i for i in own if i not in staged], ends

    def write_stage(self, row: int, participants: Sequence[int], before: int, covered: int) -> None:
        """Write a stage of the first ``covered`` participants of its depth.

        ``before``: how many of them the stage before it covers, 0 where there is none.
        """
        outline = self.outline
        rest = self.cursors[participants[0]] + covered * Cursor.LENGTH
        bound_at = self.nodes[outline.bound_at(participants[covered - 1])]
        self.memory.point(row, Stage, rest=rest, bound_at=bound_at)
        levels = tuple((outline.iterators[i].index, outline.iterators[i].level) for i in participants)
        first_result = levels[: max(before, 1) + 1] if covered > 1 else ()
        self.stage_rows.append(StageRow(row, first_result, levels))


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
