"""A join problem in one key order, laid out for the search, apart from any version of the data.

Invariants

1. Two atoms that share iterators (:mod:`lftj.search.outline`) share their records.
2. A participant has a record stream unless its atom's variables up to its level
   are the first ones of the key order: then a surgery itself names the region
   (docs/design/engine.md section 4; ILFTJ 4.2, last paragraph).  Of a negated atom only the
   last level can have one.
3. A plan is a :class:`~lftj.search.records.Search` and all that it leads to, with byte offsets from its
   beginning where addresses belong: each search has a copy.
4. The room of a stage is as long as the longest list that is written there, results on the way included.  A
   stage intersects its participants one after the other in one list, so that has room for what the stage
   before, or the first participant, shares with the next one: later ones may have fewer keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from indices.records import WORD
from lftj.memory import address
from lftj.process import debug
from lftj.search.conditions import OP_DIFFERS, Condition, ConditionRow, fill_conditions
from lftj.search.machine import plan_check
from lftj.search.marks import mark_words
from lftj.search.outline import AtomLevel, Outline
from lftj.search.plan_memory import PlanMemory
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.records import (
    CURSOR,
    MOVE_BEGIN,
    SHORT_BLOCK,
    Cursor,
    Cut,
    Factor,
    Node,
    NodeLog,
    Search,
    Stage,
    StreamLog,
)
from lftj.storage.catalog import IndexUse, SearchView
from lftj.storage.relation_version import levels_of

FIRST_BLOCK = 8
"""Leader keys that a node tries first, where it is not to stop at its first success."""

CUT_ROOM = 1 << 20
"""Most keys of lists that a stage has cut."""

CUT_MOST = 1 << 22
"""Most lists of which a stage cuts some: each has a Cut, of 24 bytes, whether it is or not."""


@dataclass(frozen=True)
class Participant(AtomLevel):
    """One level of one atom in the search, as maintenance sees it.

    ``stream``: number of its record stream, or None.  Of a negated atom the branch matters when it goes.
    """

    stream: int | None

    @property
    def context_places(self) -> tuple[int, ...]:
        """Depths bound above this one that the record's prefix does not hold."""
        return tuple(depth for depth in range(self.depth) if depth not in self.places[:-1])


@dataclass(frozen=True)
class StageRow:
    """A stage, whose room depends on the data.  Participants are given by index and level."""

    row: int  # item at which the record begins
    first: tuple[tuple[int, int], ...]  # what the first intersection is of; one where nothing is listed
    participants: tuple[tuple[int, int], ...]  # of all of the depth
    cut: tuple[int, int] | None  # whose lists it cuts

    def fill(self, memory: np.ndarray, views: Sequence[SearchView], length: int) -> tuple[int, list[int]]:
        """Give the stage its room behind ``length`` items; the new length, and the items that name it."""
        ranges = [views[use].key_ranges[level] for use, level in self.participants]
        largest = max(len(views[use].base.keys[level]) for use, level in self.participants)
        marks_first, words = mark_words(ranges, largest)
        cuts, room = self.cut_rooms(views) if words else (0, 0)
        stage = Stage.view(memory, self.row)
        stage.marks_words, stage.marks_first, stage.room_length = words, marks_first, room
        named = []
        sizes = {"list": self.list_room(views), "marks": words, "cuts": cuts, "room": room}
        for field, size in sizes.items():
            if size:
                setattr(stage, field, length * WORD)
                named.append(self.row + Stage.place(field))
                length += size
        return length, named

    def list_room(self, views: Sequence[SearchView]) -> int:
        """Items of the list.  A refused last key is written too."""
        if len(self.first) < 2:
            return 0
        return 1 + min(views[use].max_fanouts[level] for use, level in self.first)

    def cut_rooms(self, views: Sequence[SearchView]) -> tuple[int, int]:
        """Items of the Cuts and of their keys.  A refused last key is written too."""
        if self.cut is None:
            return 0, 0
        use, level = self.cut
        lists, keys = len(views[use].base.keys[level - 1]), len(views[use].base.keys[level])
        return (lists * Cut.LENGTH, 1 + min(keys, CUT_ROOM)) if lists <= CUT_MOST else (0, 0)


@dataclass(frozen=True)
class FactorRow:
    """A factor: branches of level ``deeper`` below those of ``level`` are counted."""

    row: int
    use: int
    level: int
    deeper: int

    def fill(self, memory: np.ndarray, view: SearchView) -> np.ndarray:
        """Write the address of the offsets, which are returned."""
        offsets = view.base.offsets(self.level, self.deeper)
        memory[self.row + Factor.place("offsets")] = address(offsets)
        return offsets


@dataclass(frozen=True)
class Shape:
    """What is asked of a search, beside the problem and its key order.

    ``gap``: an iterator that seeks on by at most this many keys stays one record; with 0 the records are the
    trace's own.  ``tail``: the depth from which on the search stops at its first success
    (docs/design/engine.md section 5.5).  ``listed``: the depth from which on assignments are counted.
    ``outputs``: the depths that are columns of the rows.  ``weighs``: rows have a column for the number of
    assignments that they stand for.  ``segments``: first and last depth of each that stops at its first
    success before the tail.  ``in_blocks``: a query: nothing is ever recorded; the tail goes in blocks too.
    """

    gap: int
    tail: int
    listed: int
    outputs: tuple[int, ...]
    weighs: bool = False
    segments: tuple[tuple[int, int], ...] = ()
    in_blocks: bool = False

    def back(self, depth: int) -> int:
        """The depth to return to from ``depth``: the one before, but never into a finished segment."""
        back = depth - 1
        for first, last in reversed(self.segments):
            if back == last:
                back = first - 1
        return back

    def is_proof(self, depth: int) -> bool:
        """Whether one success at a depth is enough."""
        return depth >= self.tail or any(first <= depth <= last for first, last in self.segments)


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """``template``: int64, read-only (invariant 3); ``addresses``: items of it where an address belongs."""

    outline: Outline
    shape: Shape
    template: np.ndarray
    addresses: np.ndarray
    indexes: tuple[IndexUse, ...]
    participants: tuple[Participant, ...]
    streams: tuple[Participant, ...]  # the participants that record, by stream number
    cursors: tuple[int, ...]  # items at which they begin, as those that follow: in the order of the memory
    nodes: tuple[int, ...]  # by depth
    stream_logs: tuple[int, ...]  # by stream number
    node_logs: tuple[tuple[int, int, tuple[int, ...]], ...]  # depth, item, the streams of the depth
    stages: tuple[StageRow, ...]
    factors: tuple[FactorRow, ...]
    conditions: tuple[tuple[int, ConditionRow], ...]  # where each stands, and what it says
    names: dict[int, tuple[str, int]]  # atom and level of each cursor, for people
    is_one_atom: bool  # and nothing else: no negation, no condition
    counted: tuple[tuple[Participant, str], ...]  # per atom that counts: below whose branches, and its label

    @property
    def order(self) -> tuple[str, ...]:
        return self.outline.order

    @property
    def depths(self) -> int:
        return len(self.order)

    @property
    def tail(self) -> int:
        """The first depth of the tail; the number of depths where there is none."""
        return self.shape.tail

    @property
    def listed(self) -> int:
        """How many depths rows hold; if not all, the column behind has the assignments below each."""
        return self.shape.listed

    @property
    def width(self) -> int:
        """Columns of the rows, of which there is one at least."""
        return max(1, len(self.shape.outputs) + self.shape.weighs)

    @property
    def has_conditions(self) -> bool:
        return bool(self.conditions)

    def __repr__(self) -> str:
        """The program: an instruction per depth, and where it counts or stops at the first success."""
        lines = self.outline.program()
        for first, last in self.shape.segments:
            lines.append(f"{', '.join(self.order[first : last + 1])}: the first success is enough")
        if self.tail < self.depths:
            lines.append(f"from {self.order[self.tail]} on the first success is enough")
        if self.listed < self.depths:
            lines.append(f"from {self.order[self.listed]} on assignments are counted")
        lines += [f"stream {one.stream}: {one.label} at {self.order[one.depth]}" for one in self.streams]
        return "\n".join(lines)

    @cached_property
    def least_bound(self) -> int:
        """Leading depths that regions have to bind to single values, for nothing else does."""
        return plan_check.least_bound(self.template)

    @cached_property
    def recording(self) -> np.ndarray:
        """Items that are 0 where nothing records."""
        streams = [item + Cursor.place("stream") for item in self.cursors]
        logs = [item + Node.place("log") for item in self.nodes]
        return np.array([Search.place("records"), *streams, *logs])

    @cached_property
    def staging(self) -> np.ndarray:
        """Items that are 0 where stages have no room."""
        return np.array([item + Node.place("n_stages") for item in self.nodes], np.int64)

    @property
    def lists_an_index(self) -> bool:
        """Whether the rows are the branches of one index down to the last depth: nothing joins or drops."""
        return self.is_one_atom and self.tail == self.depths and not self.counted

    @cached_property
    def counter_places(self) -> np.ndarray:
        """Where opens, nexts, seeks stand in a search's memory: int64 (depths, 3)."""
        places = [Node.place(field) for field in ("opens", "nexts", "seeks")]
        return np.array(self.nodes, np.int64).reshape(-1, 1) + np.array(places)

    def new_memory(self, record: bool) -> np.ndarray:
        """The memory of a search that has not begun, without stages; it has to stay where it is."""
        memory = placed(self.template, self.addresses, len(self.template))
        memory[self.staging] = 0
        if not record:
            memory[self.recording] = 0
        return memory

    def staged_memory(self, record: bool, views: Sequence[SearchView]) -> np.ndarray:
        """The same with stages, that have room for these versions of the indices."""
        memory = placed(*self.with_stages(views))
        if not record:
            memory[self.recording] = 0
        return memory

    def with_stages(self, views: Sequence[SearchView]) -> tuple[np.ndarray, np.ndarray, int]:
        """The template and the addresses with the room of stages, and the length of a memory."""
        if not self.stages:
            return self.template.copy(), self.addresses, len(self.template)
        template, length, named = self.template.copy(), len(self.template), []
        for stage in self.stages:
            length, places = stage.fill(template, views, length)
            named += places
        if debug.enabled:
            plan_check.check_staged(template, length, views)
        return template, np.append(self.addresses, np.array(named, np.int64)), length


def placed(template: np.ndarray, addresses: np.ndarray, length: int) -> np.ndarray:
    """A memory of ``length`` items that begins with a template; ``addresses``: items that name others."""
    memory = np.zeros(length, np.int64)
    memory[: len(template)] = template
    memory[addresses] += address(memory)
    return memory


def compile_regions(
    problem: JoinProblem, order: Sequence[str], gap: int, tail: int | None = None, listed: int | None = None
) -> RegionPlan:
    """Lay a problem out for searches below regions, with records.  Every atom must have a variable.

    ``gap``, ``tail`` or ``listed``: as of :class:`Shape`.
    """
    depths = len(order)
    assert tail is None or listed is None
    tail, listed = depths if tail is None else tail, depths if listed is None else listed
    weighs = listed < depths
    shape = Shape(gap, tail, listed, tuple(range(listed if weighs else depths)), weighs)
    uses = [
        IndexUse(
            atom.relation,
            (levels_of(atom.levels(order)[0], atom.equal, atom.identity), atom.equal),
            atom.side,
        )
        for atom in (*problem.atoms, *problem.negations)
    ]
    plan = Compilation(problem, tuple(order), shape, uses, factors=False).plan()
    assert all(row.operator <= OP_DIFFERS for _, row in plan.conditions), "ranks change with a dictionary"
    return plan


class Compilation:
    """Writes the records of a plan one after the other."""

    def __init__(
        self,
        problem: JoinProblem,
        order: tuple[str, ...],
        shape: Shape,
        uses: Sequence[IndexUse],
        factors: bool,
        share: bool = True,
    ) -> None:
        """``uses``: the index that each atom reads, positive ones first.

        ``factors``: the search counts what atoms count; ``share``: atoms may share iterators.
        """
        self.problem = problem
        self.order = order
        self.shape = shape
        self.uses = uses
        self.outline = Outline(problem, order, share)
        self.memory = PlanMemory()
        self.counts = factors
        self.counting: list[tuple[JoinAtom, int]] = []
        """The atoms that count, and the iterator below whose branches they do."""
        self.cursor_of: dict[int, int] = {}
        """The item of each iterator's cursor."""
        self.stages: list[StageRow] = []
        self.conditions: list[tuple[int, ConditionRow]] = []

    # -- the plan ----------------------------------------------------------------------------------

    def plan(self) -> RegionPlan:
        problem, outline, n = self.problem, self.outline, len(self.order)
        self.add_atoms()
        participants = self.participants()
        streams = [one for one in participants if one.stream is not None]
        search = self.memory.room(Search.LENGTH)
        nodes = [self.memory.room(Node.LENGTH) for _ in range(n)]
        numbers = [i for depth in range(n) for i in (*outline.opening(depth), *outline.negations[depth])]
        cursors = [self.memory.room(CURSOR // WORD) for _ in numbers]
        self.cursor_of = dict(zip(numbers, cursors, strict=True))
        stream_logs = [self.memory.room(StreamLog.LENGTH) for _ in streams]
        first_cursor = search + Search.LENGTH + n * Node.LENGTH
        self.write_search(search, len(cursors), first_cursor)
        for number, cursor in self.cursor_of.items():
            self.write_cursor(participants[number], number, cursor, stream_logs)
        for stream, log in enumerate(stream_logs):
            self.memory.put(log, StreamLog, number=stream)
        node_logs = []
        for depth, node in enumerate(nodes):
            first = first_cursor + sum(participants[i].depth < depth for i in numbers) * (CURSOR // WORD)
            self.write_node(depth, node, first)
            self.write_stages(depth, node, nodes)
            its = [participants[i].stream for i in numbers if participants[i].depth == depth]
            recording = tuple(stream for stream in its if stream is not None)
            if recording:
                node_logs.append((depth, self.write_node_log(depth, node), recording))
        factors = self.write_factors(search) if self.counts else []
        template = self.memory.template()
        fill_conditions(template, self.conditions, problem)
        template.setflags(write=False)
        plan = RegionPlan(
            outline=outline,
            shape=self.shape,
            template=template,
            addresses=np.array(self.memory.addresses, np.int64),
            indexes=tuple(outline.indexes),
            participants=tuple(participants),
            streams=tuple(streams),
            cursors=tuple(cursors),
            nodes=tuple(nodes),
            stream_logs=tuple(stream_logs),
            node_logs=tuple(node_logs),
            stages=tuple(self.stages),
            factors=tuple(factors),
            conditions=tuple(self.conditions),
            names={
                self.cursor_of[number]: (f"!{walked.label}" if walked.negated else walked.label, walked.level)
                for number, walked in enumerate(outline.iterators)
            },
            counted=tuple((participants[number], atom.label) for atom, number in self.counting),
            is_one_atom=len(problem.atoms) == 1 and not problem.negations and not problem.conditions,
        )
        if debug.enabled:
            plan_check.check_regions(template, plan.addresses)
        return plan

    def write_search(self, search: int, n_cursors: int, first_cursor: int) -> None:
        memory, shape, n = self.memory, self.shape, len(self.order)
        lists_last = shape.outputs.index(n - 1) if n - 1 in shape.outputs else len(shape.outputs)
        memory.put(search, Search, depths=n, nodes=search + Search.LENGTH, keys=memory.room(n))
        memory.put(search, Search, cursors=first_cursor, n_cursors=n_cursors)
        memory.put(search, Search, outputs=memory.listed(list(shape.outputs)), n_outputs=len(shape.outputs))
        memory.put(search, Search, tail=shape.tail, listed=shape.listed, gap=shape.gap)
        memory.put(search, Search, weighs=shape.weighs, scratch=lists_last, records=not shape.in_blocks)
        memory.put(search, Search, counts_on=shape.in_blocks, move=MOVE_BEGIN)

    def add_atoms(self) -> None:
        """Add all iterators."""
        atoms = [(atom, False) for atom in self.problem.atoms]
        atoms += [(atom, True) for atom in self.problem.negations]
        numbers = [self.outline.number_of(use) for use in self.uses]
        for (atom, negated), index in zip(atoms, numbers, strict=True):
            path = self.outline.add_atom(atom, negated, index)
            if atom.counted and not negated:
                self.counting.append((atom, path[-1]))

    def participants(self) -> list[Participant]:
        """The iterators by number, those that record with their streams (invariant 2)."""
        made: list[Participant] = []
        streams = 0
        for number, walked in enumerate(self.outline.iterators):
            records = not self.outline.names_region(number) and (walked.tested or not walked.negated)
            records = records and not self.shape.in_blocks
            stream = streams if records else None
            streams += records
            made.append(Participant(**vars(walked), stream=stream))
        return made

    def write_cursor(self, walked: Participant, number: int, at: int, stream_logs: Sequence[int]) -> None:
        is_last = self.outline.is_last(number)
        counts = self.counts and any(number == counting for _, counting in self.counting)
        parent = self.outline.parents[number]
        self.memory.put(at, Cursor, number=walked.index, level_number=walked.level, depth=walked.depth)
        self.memory.put(at, Cursor, parent=self.cursor_of[parent] if parent >= 0 else 0)
        self.memory.put(at, Cursor, is_last=is_last, leads=not is_last or counts, ranges=at + Cursor.LENGTH)
        if walked.stream is not None:
            self.memory.put(at, Cursor, stream=stream_logs[walked.stream])

    # -- depths ------------------------------------------------------------------------------------

    def write_node(self, depth: int, at: int, first: int) -> None:
        """Write a node, and room for its conditions.

        ``first``: its first cursor.
        """
        outline, memory, shape, n = self.outline, self.memory, self.shape, len(self.order)
        own, negations = outline.opening(depth), outline.negations[depth]
        conditions = outline.conditions[depth]
        words = CURSOR // WORD
        places = [memory.room(Condition.LENGTH) for _ in conditions]
        self.conditions += zip(places, conditions, strict=True)
        memory.put(at, Node, conditions=min(places, default=0), n_conditions=len(conditions))
        memory.put(at, Node, filters=any(condition.is_filter for condition in conditions))
        memory.put(at, Node, participants=first, n_participants=len(own), ring=memory.room(len(own)))
        negated = first + len(own) * words
        memory.put(at, Node, negations=negated, end=negated + len(negations) * words)
        lists_matches = depth + 1 == n == shape.tail and len(own) > 0
        memory.put(at, Node, lists_matches=lists_matches, back=shape.back(depth))
        if own and not lists_matches and (shape.in_blocks or depth < shape.tail):
            # a refused last key is written too
            memory.put(at, Node, matches=memory.room(SHORT_BLOCK + 1))
        first_block = SHORT_BLOCK if shape.in_blocks else FIRST_BLOCK
        memory.put(at, Node, first_block=1 if shape.is_proof(depth) else first_block)

    def write_stages(self, depth: int, node: int, nodes: Sequence[int]) -> None:
        """Write the stages of a depth, and which of them its participants belong to.

        Staged are participants whose parent is bound before the depth above: they stay the same while that
        varies.  One stage each covers those that one depth fixes; the first one those on level 0 too.
        """
        outline, memory = self.outline, self.memory
        own = outline.opening(depth)
        fixed = [i for i in own if 0 <= outline.bound_at(i) < depth - 1]
        if len(own) < 2 or not fixed:
            return
        groups: dict[int, list[int]] = {bound: [] for bound in sorted({outline.bound_at(i) for i in fixed})}
        for i in fixed:
            groups[outline.bound_at(i)].append(i)
        roots = [i for i in own if outline.bound_at(i) < 0]
        rows = [memory.room(Stage.LENGTH) for _ in groups]
        memory.put(node, Node, stages=rows[0], n_stages=len(rows))
        levels = [self.level_of(i) for i in own]
        varying = self.varying(depth)
        if varying is not None:
            memory.put(node, Node, varying=self.cursor_of[varying])
            if self.is_counted(depth) and len(own) == len(fixed) + len(roots) + 1:
                memory.put(nodes[depth - 1], Node, counts_below=1)
        before: list[int] = []
        for number, (row, (bound, group)) in enumerate(zip(rows, groups.items(), strict=True), 1):
            # in the order in which the stage intersects them
            covered = [group[0], *roots, *group[1:]] if number == 1 else group
            for i in covered:
                memory.put(self.cursor_of[i], Cursor, staged=number)
            memory.put(row, Stage, bound_at=nodes[bound])
            first = tuple(self.level_of(i) for i in (*before[:1], *covered)[:2])
            cut = self.level_of(varying) if varying is not None and number < len(groups) else None
            self.stages.append(StageRow(row, first, tuple(levels), cut))
            before = before or group

    def varying(self, depth: int) -> int | None:
        """The first participant that the depth above binds and nobody asks for its position."""
        counting = {number for _, number in self.counting} if self.counts else set()
        for i in self.outline.opening(depth):
            if self.outline.bound_at(i) == depth - 1 and self.outline.is_last(i) and i not in counting:
                return i
        return None

    def is_counted(self, depth: int) -> bool:
        """Whether all that is asked of a depth is its number of matches below those of the one above."""
        outline, shape, n = self.outline, self.shape, len(self.order)
        if not depth + 1 == n == shape.tail or shape.listed >= depth or (self.counts and self.counting):
            return False
        if outline.conditions[depth] or outline.negations[depth] or outline.negations[depth - 1]:
            return False
        return shape.back(depth) == depth - 1 and shape.back(depth - 1) == depth - 2

    def level_of(self, iterator: int) -> tuple[int, int]:
        """Index and level that an iterator walks."""
        return self.outline.iterators[iterator].index, self.outline.iterators[iterator].level

    def write_factors(self, search: int) -> list[FactorRow]:
        """Write the factors of the atoms that count below an iterator."""
        memory, rows = self.memory, [self.memory.room(Factor.LENGTH) for _ in self.counting]
        factors = []
        for row, (atom, iterator) in zip(rows, self.counting, strict=True):
            walked = self.outline.iterators[iterator]
            deeper = walked.level + len(atom.counted)
            is_inner = walked.depth + 1 == len(self.order)
            memory.put(row, Factor, parent=self.cursor_of[iterator], inner=is_inner, column=deeper)
            factors.append(FactorRow(row, walked.index, walked.level, deeper))
        memory.put(search, Search, factors=min(rows, default=0), n_factors=len(rows))
        return factors

    def write_node_log(self, depth: int, node: int) -> int:
        log = self.memory.room(NodeLog.LENGTH)
        self.memory.put(log, NodeLog, bound=depth)
        self.memory.put(node, Node, log=log)
        return log
