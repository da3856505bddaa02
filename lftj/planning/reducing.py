"""Filtering before joining: what of large relations can belong to an assignment, found without their indices.

A one-off query over a large relation would pay most for indices: of all rows, though it joins few.  So

1. the rows of each atom are tested by the conditions of the atom alone, and by whether the keys that atoms
   before it have left occur (semi-joins; Bernstein and Chiu 1981, Yannakakis 1981), from small atoms to
   large ones;
2. of an atom of which that leaves a part, the part is what is joined: a table of this query
   (:class:`~lftj.storage.part.Part`) with the columns that are read, its conditions done;
3. an atom of one variable that is one key for each row is done with when its keys have filtered another part;
4. where only one atom is left, nothing is joined: its rows are scanned (:mod:`lftj.search.scan`);
5. where rows are counted that differ in columns which the query does not read, one level that numbers the
   rows stands in an index for all these columns.

An index serves the queries to come, too.  So the filters of one atom's columns over one relation are
counted: the ``READS``-th buys the index, and from then on the relation is joined as a whole, as it is where
the index is there already.  A scan goes on even then where that is estimated to take less.

Invariant: the assignments, and how many there are for each of the emitted variables, stay the same.

Cost: a pass over each large relation per column that is tested, some nanoseconds a row; nothing where all
are small.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np

from lftj.planning.planner import least_operations
from lftj.search.problem import JoinAtom, JoinCondition, JoinProblem
from lftj.search.row_filter import RowFilter, RowTest, membership, own_conditions, own_tests, tests_text
from lftj.search.scan import Scan, scan_of
from lftj.storage.catalog import Catalog, Side, Table
from lftj.storage.key_set import KeySet
from lftj.storage.part import Part
from lftj.storage.relation import Relation
from lftj.values.schema import Schema

LEAST_ROWS = 1 << 14
"""Relations with fewer rows are indexed as soon as filtered."""

PART = 0.75
"""A filter that leaves more of a relation's rows is not worth an index of its own."""

SAMPLE = 1024
WORTH = 0.875
"""Keys are not sought where more than so many of a sample of the rows are found."""

FEW = 4
"""Keys of an atom that is not filtered are sought in relations of so many times its rows."""

READS = 16
"""An index costs about as much as so many filters of the rows."""

SCAN_STEP = 0.15
"""What a row of a scan takes of the time of a search's operation, and each look-up."""

TEST_STEP = 0.03
"""And a test of a row."""


@dataclass(frozen=True)
class Reduced:
    """A problem of fewer rows over the tables that it names.

    ``scan``: all that is left to do, instead of a search.  ``scanned``: the atom whose rows these are, if an
    index for it may become the better way.  ``parts``: by name what each part is, for ``explain``.
    """

    problem: JoinProblem
    tables: Catalog
    scan: Scan | None = None
    scanned: JoinAtom | None = None
    parts: Mapping[str, str] = field(default_factory=dict)


def reduced(problem: JoinProblem, tables: Catalog, fresh: Collection[str] = ()) -> Reduced:
    """The problem over parts of its large relations, or as it is.

    ``fresh``: relations that are made for this evaluation, which have no index and never will be asked for
    one again: a body of one of them is scanned however small it is.
    """
    reduction = _Reduction(problem, tables, fresh)
    return reduction.run() if reduction.is_worth else Reduced(problem, tables)


def scan_with_lookups(over: Reduced) -> Scan | None:
    """What is left to do as a scan with look-ups, where that can be and is estimated to take less."""
    scan = scan_of(over.problem, over.tables, LEAST_ROWS)
    if scan is None or SCAN_STEP * scan.steps > least_operations(over.problem, over.tables):
        return None
    return scan


@dataclass(eq=False)
class _Rows:
    """What is known of an atom's rows."""

    atom: JoinAtom
    table: Table
    relation: Relation | None  # if its rows may be filtered
    needed: tuple[str, ...] = ()  # variables that something besides the atom asks for
    tests: list[RowTest] = field(default_factory=list)
    filters: list[_Rows] = field(default_factory=list)  # those whose keys were sought, all of them
    rows: np.ndarray | None = None
    n_kept: int = 0
    part: Part | None = None
    is_done: bool = False  # it is not joined: its keys have filtered the others

    @property
    def column_of(self) -> dict[str, int]:
        return dict(zip(self.atom.variables, self.atom.columns, strict=True))

    @property
    def is_large(self) -> bool:
        return self.table.n_rows >= LEAST_ROWS

    def codes(self, column: int) -> np.ndarray:
        assert self.relation is not None
        if self.rows is None:
            return self.relation.column(column)
        return self.relation.taken(column, self.rows)


class _Reduction:
    def __init__(self, problem: JoinProblem, tables: Catalog, fresh: Collection[str]) -> None:
        self.problem = problem
        self.tables = tables
        self.atoms = [_Rows(atom, tables[atom.relation], None) for atom in problem.atoms]
        self.fresh = fresh
        wide = [atom.relation for atom in problem.atoms if len(atom.variables) > 1]
        is_one = len(problem.atoms) == 1 or len(wide) == 1
        relations = [one for one in self.atoms if isinstance(one.table, Relation)]
        self.is_worth = any(one.is_large or (is_one and one.atom.relation in fresh) for one in relations)
        self.keys: dict[str, list[tuple[_Rows, KeySet]]] = {}

    def run(self) -> Reduced:
        bought = []
        for one in self.atoms:
            if isinstance(one.table, Relation) and self._is_whole(one.atom):
                one.relation = one.table
                one.needed = self._needed(one.atom)
                one.tests = own_tests(self.problem, one.atom)
                if one.is_large and is_bought(one.table, one.atom):
                    bought.append(one)
        single = self._single_keys()
        waiting = [one for one in self.atoms if one.relation is not None]
        while waiting:
            one = min(
                waiting, key=lambda one: (one not in single, not self._is_linked(one), one.table.n_rows)
            )
            waiting.remove(one)
            self._seek(one, single)
            if not waiting and (scan := self._scan(one)) is not None:
                if one not in bought:
                    return Reduced(self.problem, self.tables, scan, one.atom)
                if self._costs_less(scan):
                    return Reduced(self.problem, self.tables, scan)
            if one in bought:
                one.relation = None
                continue
            self._filter(one)
            for name in one.needed:
                receivers = [other for other in waiting if name in other.atom.variables]
                if receivers and (one in single or self._says_much(one, receivers)):
                    keys = KeySet.of(one.codes(one.column_of[name]))
                    self.keys.setdefault(name, []).append((one, keys))
                    if one in single:
                        one.is_done = not self.problem.counted or keys.n_keys == one.n_kept
        return self._reduced()

    def _is_whole(self, atom: JoinAtom) -> bool:
        """Whether the atom's assignments are the rows of its relation, or need not be counted."""
        known = {*atom.columns, *atom.counted}
        known |= {second for first, second in atom.equal if first in known}
        counts_rows = not self.problem.counted or known.issuperset(atom.identity)
        return atom.side is Side.NEW and bool(atom.variables) and counts_rows

    def _needed(self, atom: JoinAtom) -> tuple[str, ...]:
        """Its variables that stand elsewhere, too; constants do not."""
        problem = self.problem
        elsewhere = set(problem.emitted)
        for other in (*problem.atoms, *problem.negations):
            if other is not atom:
                elsewhere.update(set(other.variables) - problem.pinned)
        own = own_conditions(problem, atom)
        elsewhere.update(name for c in problem.conditions if c not in own for name in c.variables)
        return tuple(name for name in atom.variables if name in elsewhere)

    def _single_keys(self) -> list[_Rows]:
        """Atoms with one variable that is needed; of each variable not all."""
        found: list[_Rows] = []
        for one in sorted(self.atoms, key=lambda one: one.table.n_rows):
            if one.relation is not None and len(one.needed) == 1:
                (name,) = one.needed
                others = [
                    o for o in self.atoms if o is not one and o not in found and name in o.atom.variables
                ]
                if any(other.relation is not None for other in others):
                    found.append(one)
        return found

    def _is_linked(self, one: _Rows) -> bool:
        return any(name in self.keys for name in one.needed)

    def _says_much(self, one: _Rows, others: Sequence[_Rows]) -> bool:
        """Whether the keys that are left of an atom may be few of the others'."""
        return one.n_kept < one.table.n_rows or any(
            FEW * one.n_kept <= other.table.n_rows for other in others
        )

    def _seek(self, one: _Rows, single: Sequence[_Rows]) -> None:
        """Add the tests of keys that other atoms have left."""
        assert one.relation is not None
        candidates = []
        for name in one.needed:
            for other, keys in self.keys.get(name, ()):
                label = other.atom.label  # of a relation's atom, or of a comparison
                if label.startswith(other.atom.relation):
                    label = f"{name} in {other.atom.relation}"
                test = membership(one.column_of[name], keys, label)
                share = RowFilter.of(one.relation, [test]).share(SAMPLE)
                if share <= WORTH or (other in single and other.is_done):
                    candidates.append((share, test, other))
        for _, test, other in sorted(candidates, key=lambda candidate: candidate[0]):
            one.tests.append(test)
            one.filters.append(other)

    def _filter(self, one: _Rows) -> None:
        """Find the rows that pass, and whether they are a part."""
        assert one.relation is not None
        n_rows = one.table.n_rows
        if one.tests and n_rows:
            one.rows = RowFilter.of(one.relation, one.tests).rows()
        one.n_kept = n_rows if one.rows is None else len(one.rows)

    def _scan(self, one: _Rows) -> Scan | None:
        """The rows of the last atom that pass, where all others are done with."""
        others = [other for other in self.atoms if other is not one]
        is_last = all(other.is_done and other in one.filters for other in others)
        is_fresh = one.atom.relation in self.fresh
        if not is_last or not (one.is_large or is_fresh) or self.problem.negations or one.relation is None:
            return None
        read = [name for name in one.atom.variables if name in self.problem.emitted]
        atom = replace(one.atom, columns=tuple(one.column_of[name] for name in read), variables=tuple(read))
        return Scan.of(atom, one.relation, one.tests)

    def _costs_less(self, scan: Scan) -> bool:
        """Whether a scan is estimated to take less than a search by an index."""
        steps = scan.n_rows * (TEST_STEP * len(scan.rows.tests) + SCAN_STEP * scan.rows.share(SAMPLE))
        return steps < least_operations(self.problem, self.tables)

    # -- what is joined then ---------------------------------------------------------------

    def _reduced(self) -> Reduced:
        parts = [one for one in self.atoms if one.relation is not None and one.is_large]
        parts = [one for one in parts if one.n_kept <= PART * one.table.n_rows]
        for one in self.atoms:
            one.is_done = one.is_done and any(one in other.filters for other in parts if not other.is_done)
        parts = [one for one in parts if not one.is_done]
        left = [one for one in self.atoms if not one.is_done]
        whole = [one for one in left if one not in parts]
        conditions = tuple(c for c in self.problem.conditions if self._is_open(c, whole))
        tables: dict[str, Table] = dict(self.tables)
        atoms: list[JoinAtom] = []
        parts_of: dict[str, str] = {}
        for number, one in enumerate(left):
            if one in parts:
                atom, part = self._part(number, one, left, conditions)
                tables[part.name] = part
                parts_of[part.name] = (
                    f"of {one.atom.label} only {one.n_kept:,} of {one.table.n_rows:,} rows are joined, "
                    f"where {tests_text(one.tests)}"
                )
                count_read(one.table, one.atom)
            else:
                atom = self._numbered(one)
            atoms.append(atom)
        present = {name for atom in (*atoms, *self.problem.negations) for name in atom.variables}
        labels = {name: label for name, label in self.problem.labels.items() if name in present}
        problem = replace(self.problem, atoms=tuple(atoms), conditions=conditions, labels=labels)
        return Reduced(problem, tables, parts=parts_of)

    def _is_open(self, condition: JoinCondition, whole: Sequence[_Rows]) -> bool:
        """Whether a condition is still to be seen to.  ``whole``: atoms whose rows are joined unfiltered."""
        names = set(condition.variables)
        if not any(names <= set(one.atom.variables) for one in self.atoms if one not in whole):
            return True
        # A constant narrows what is not filtered.
        atoms = (*(one.atom for one in whole), *self.problem.negations)
        return len(names) == 1 and any(names <= set(atom.variables) for atom in atoms)

    def _part(
        self, number: int, one: _Rows, left: Sequence[_Rows], conditions: Sequence[JoinCondition]
    ) -> tuple[JoinAtom, Part]:
        """The part of a relation, and the atom over it."""
        problem, atom = self.problem, one.atom
        asked = set(problem.emitted) | {n for c in conditions if c.right is not None for n in c.variables}
        for other in (*(other.atom for other in left if other is not one), *problem.negations):
            asked.update(set(other.variables) - problem.pinned)
        names = [name for name in atom.variables if name in asked]
        columns = [one.column_of[name] for name in names]
        schema = Schema(tuple(atom.schema.columns[column] for column in columns))
        part = Part(f"part {number} of {atom.relation}", schema, list(map(one.codes, columns)), one.n_kept)
        fixed = {one.column_of[name] for name in atom.variables if name in problem.pinned}
        fixed |= {second for _, second in atom.equal}
        numbered = problem.counted and not fixed.union(columns).issuperset(atom.identity)
        read = tuple(range(len(columns)))
        counted = (len(columns),) if numbered else ()
        return JoinAtom(part.name, schema, read, tuple(names), counted=counted, label=atom.label), part

    def _numbered(self, one: _Rows) -> JoinAtom:
        """The atom over the whole relation, its rows numbered where several columns are counted."""
        atom = one.atom
        numbered = _is_numbered(atom) and isinstance(one.table, Relation) and self._is_whole(atom)
        return replace(atom, counted=(atom.arity,)) if numbered else atom


_reads: WeakKeyDictionary[Table, Counter[frozenset[int]]] = WeakKeyDictionary()
_counting = threading.Lock()


def count_read(table: Table, atom: JoinAtom) -> None:
    """Note that the rows of a relation were filtered for an atom."""
    assert isinstance(table, Relation)
    with _counting:
        _reads.setdefault(table, Counter())[_levels(atom)] += 1


def _levels(atom: JoinAtom) -> frozenset[int]:
    """The columns of an index for the atom."""
    return frozenset((*atom.columns, *((atom.arity,) if _is_numbered(atom) else atom.counted)))


def _is_numbered(atom: JoinAtom) -> bool:
    """Whether a level that numbers the rows is less than the levels of what is counted."""
    return len(atom.counted) > 1 and not atom.equal


def is_bought(relation: Table, atom: JoinAtom) -> bool:
    """Whether there is an index for the atom, or there were so many filters that there should be one."""
    levels = _levels(atom)
    with _counting:
        reads = _reads[relation][levels] if relation in _reads else 0
    keys = relation.index_keys
    return reads >= READS or any(
        frozenset(columns) == levels and equal == atom.equal for columns, equal in keys
    )
