"""A join problem in one key order, laid out for the region search, apart from any version of the data.

Invariants

1. Two atoms that share iterators (:mod:`lftj.search.outline`) share their records.
2. A participant has a record stream unless its atom's variables up to its level
   are the first ones of the key order: then a surgery itself names the region
   (docs/design/engine.md section 4; ILFTJ 4.2, last paragraph).  Of a negated atom only the
   last level can have one.
3. A plan is a :class:`~lftj.search.records.Search` and all that it leads to, with byte offsets from its
   beginning where addresses belong: each search has a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from indices.records import WORD
from lftj.memory import address
from lftj.process import debug
from lftj.search.conditions import Condition, ConditionRow, fill_conditions
from lftj.search.outline import AtomLevel, Outline
from lftj.search.plan_memory import PlanMemory
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.records import CURSOR, SHORT_BLOCK, Cursor, Node, NodeLog, Search, StreamLog
from lftj.search.regions import plan_check
from lftj.storage.catalog import IndexUse
from lftj.storage.relation_version import levels_of


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


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """``template``: int64, read-only (invariant 3); ``addresses``: items of it where an address belongs."""

    outline: Outline
    template: np.ndarray
    addresses: np.ndarray
    recording: np.ndarray  # items that are 0 where nothing records
    indexes: tuple[IndexUse, ...]
    participants: tuple[Participant, ...]
    streams: tuple[Participant, ...]  # the participants that record, by stream number
    cursors: tuple[int, ...]  # items at which they begin, as those that follow: in the order of the memory
    nodes: tuple[int, ...]  # by depth
    stream_logs: tuple[int, ...]  # by stream number
    node_logs: tuple[tuple[int, int, tuple[int, ...]], ...]  # depth, item, the streams of the depth
    tail: int  # first depth of the tail; the number of depths where there is none
    listed: int  # depths that rows hold; if not all, the column behind has the assignments below each
    has_conditions: bool
    is_one_atom: bool  # and nothing else: no negation, no condition
    counted: tuple[tuple[Participant, str], ...]  # per atom that counts: below whose branches, and its label

    @property
    def order(self) -> tuple[str, ...]:
        return self.outline.order

    @property
    def depths(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        """The program: an instruction per depth, and where it counts or stops at the first success."""
        lines = self.outline.program()
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

    @property
    def lists_an_index(self) -> bool:
        """Whether the rows are the branches of one index down to the last depth: nothing joins or drops."""
        return self.is_one_atom and self.tail == self.depths and not self.counted

    def new_memory(self, record: bool) -> np.ndarray:
        """The memory of a search that has not begun; it has to stay where it is."""
        memory = self.template.copy()
        memory[self.addresses] += address(memory)
        if not record:
            memory[self.recording] = 0
        return memory


def compile_regions(
    problem: JoinProblem, order: Sequence[str], gap: int, tail: int | None = None, listed: int | None = None
) -> RegionPlan:
    """Lay a problem out.  Every atom must have a variable.

    ``gap``: an iterator that seeks on by at most this many keys stays one record; with 0 the records are the
    trace's own.  ``tail``: the depth from which on the search stops at its first success
    (docs/design/engine.md section 5.5); or ``listed``: the depth from which on assignments are counted.
    """
    depths = len(order)
    assert tail is None or listed is None
    return _Compiler(
        problem, tuple(order), gap, depths if tail is None else tail, depths if listed is None else listed
    ).run()


class _Compiler:
    """Writes the records of a plan one after the other."""

    def __init__(
        self, problem: JoinProblem, order: tuple[str, ...], gap: int, tail: int, listed: int
    ) -> None:
        self.problem = problem
        self.order = order
        self.gap = gap
        self.tail = tail
        self.listed = listed
        self.outline = Outline(problem, order)
        self.memory = PlanMemory()
        self.recording: list[int] = []

    # -- the plan ----------------------------------------------------------------------------------

    def run(self) -> RegionPlan:
        problem, outline, n = self.problem, self.outline, len(self.order)
        paths = [self.add_atom(atom, negated=False) for atom in problem.atoms]
        for atom in problem.negations:
            self.add_atom(atom, negated=True)
        participants = self.participants()
        streams = [one for one in participants if one.stream is not None]
        search = self.memory.room(Search.LENGTH)
        nodes = [self.memory.room(Node.LENGTH) for _ in range(n)]
        numbers = [i for depth in range(n) for i in (*outline.opening(depth), *outline.negations[depth])]
        cursors = [self.memory.room(CURSOR // WORD) for _ in numbers]
        cursor_of = dict(zip(numbers, cursors, strict=True))
        stream_logs = [self.memory.room(StreamLog.LENGTH) for _ in streams]
        self.memory.put(search, Search, depths=n, n_cursors=len(cursors))
        self.memory.put(search, Search, tail=self.tail, listed=self.listed, gap=self.gap)
        first_cursor = search + Search.LENGTH + n * Node.LENGTH
        self.memory.point(search, Search, nodes=search + Search.LENGTH, cursors=first_cursor)
        self.memory.point(search, Search, keys=self.memory.room(n))
        for number, cursor in cursor_of.items():
            self.write_cursor(participants[number], number, cursor, cursor_of, stream_logs)
        for stream, log in enumerate(stream_logs):
            self.memory.put(log, StreamLog, number=stream)
        node_logs = []
        conditions = []
        for depth, node in enumerate(nodes):
            first = first_cursor + sum(participants[i].depth < depth for i in numbers) * (CURSOR // WORD)
            conditions += self.write_node(depth, node, first)
            its = [participants[i].stream for i in numbers if participants[i].depth == depth]
            recording = tuple(stream for stream in its if stream is not None)
            if recording:
                node_logs.append((depth, self.write_node_log(depth, node), recording))
        template = self.memory.template(self.memory.length)
        tables = fill_conditions(template, conditions, problem)
        assert not tables, "ranks of a dictionary change with it"
        template.setflags(write=False)
        plan = RegionPlan(
            outline=outline,
            template=template,
            addresses=np.array(self.memory.addresses, np.int64),
            recording=np.array(self.recording, np.int64),
            indexes=tuple(outline.indexes),
            participants=tuple(participants),
            streams=tuple(streams),
            cursors=tuple(cursors),
            nodes=tuple(nodes),
            stream_logs=tuple(stream_logs),
            node_logs=tuple(node_logs),
            tail=self.tail,
            listed=self.listed,
            has_conditions=bool(conditions),
            counted=tuple(
                (participants[path[-1]], atom.label)
                for atom, path in zip(problem.atoms, paths, strict=True)
                if atom.counted
            ),
            is_one_atom=len(problem.atoms) == 1 and not problem.negations and not problem.conditions,
        )
        if debug.enabled:
            plan_check.check_regions(template, plan.addresses, plan.recording)
        return plan

    def add_atom(self, atom: JoinAtom, negated: bool) -> list[int]:
        columns, _ = atom.levels(self.order)
        use = IndexUse(atom.relation, (levels_of(columns, atom.equal, atom.arity), atom.equal), atom.side)
        return self.outline.add_atom(atom, negated, self.outline.number_of(use))

    def participants(self) -> list[Participant]:
        """The iterators by number, those that record with their streams (invariant 2)."""
        made: list[Participant] = []
        streams = 0
        for number, walked in enumerate(self.outline.iterators):
            records = not self.outline.names_region(number) and (walked.tested or not walked.negated)
            stream = streams if records else None
            streams += records
            made.append(Participant(**vars(walked), stream=stream))
        return made

    def write_cursor(
        self, walked: Participant, number: int, at: int, cursors: dict[int, int], stream_logs: Sequence[int]
    ) -> None:
        self.memory.put(at, Cursor, number=walked.index, level_number=walked.level, depth=walked.depth)
        fixed = self.outline.bound_at(number) < walked.depth - 1
        self.memory.put(at, Cursor, is_last=self.outline.is_last(number), is_fixed=fixed)
        self.memory.point(at, Cursor, ranges=at + Cursor.LENGTH)
        parent = self.outline.parents[number]
        if parent >= 0:
            self.memory.point(at, Cursor, parent=cursors[parent])
        if walked.stream is not None:
            self.memory.point(at, Cursor, stream=stream_logs[walked.stream])
            self.recording.append(at + Cursor.place("stream"))

    def write_node(self, depth: int, at: int, first: int) -> list[tuple[int, ConditionRow]]:
        """Write a node, and room for its conditions: where each stands, and what it says.

        ``first``: its first cursor.
        """
        outline, n = self.outline, len(self.order)
        own, negations = outline.opening(depth), outline.negations[depth]
        conditions = outline.conditions[depth]
        words = CURSOR // WORD
        self.memory.put(at, Node, n_participants=len(own), n_conditions=len(conditions))
        self.memory.point(at, Node, participants=first, negations=first + len(own) * words)
        self.memory.point(at, Node, end=first + (len(own) + len(negations)) * words)
        places = [self.memory.room(Condition.LENGTH) for _ in conditions]
        if places:
            self.memory.point(at, Node, conditions=places[0])
        self.memory.put(at, Node, filters=any(condition.is_filter for condition in conditions))
        self.memory.put(at, Node, lists_matches=depth + 1 == n == self.tail and len(own) > 0)
        fixed = (number for number, i in enumerate(own) if outline.bound_at(i) < depth - 1)
        self.memory.put(at, Node, fixed=next(fixed, -1))
        self.memory.point(at, Node, ring=self.memory.room(len(own)))
        if own and depth + 1 < n and depth < self.tail:
            # a refused last key is written too
            self.memory.point(at, Node, matches=self.memory.room(SHORT_BLOCK + 1))
        return list(zip(places, conditions, strict=True))

    def write_node_log(self, depth: int, node: int) -> int:
        log = self.memory.room(NodeLog.LENGTH)
        self.memory.put(log, NodeLog, bound=depth)
        self.memory.point(node, Node, log=log)
        self.recording.append(node + Node.place("log"))
        return log
