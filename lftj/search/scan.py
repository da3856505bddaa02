"""A scan: the rows of one relation that pass tests, in their order, and what others have for each of them.

    h[k, r] = sum(v) <- sales(_, p, s, v), product(p, k), store(s, r).

Where the data has one row of each other atom for every value of a variable that is known before, there is
nothing to intersect: an assignment is a row of the scanned relation whose look-ups all succeed.  A search
would find the same by opening nodes of one key each.

Rows that can't belong to an assignment are told from their own columns (:mod:`lftj.search.row_filter`)
before they are looked up, or instead: a body of one atom needs no index at all.

Invariants

1. Where there are look-ups every column of every atom is a variable of its own, or counted: a row of the
   scanned relation is one assignment at most.  A scan alone may give a row of its variables several times.
2. A look-up's index begins with the variable that is known, and has as many keys at level 0 as its relation
   has rows; so at each level the row stands at the same position.
3. Rows come in the order of the scanned relation.

Cost: of a row and test some nanoseconds; of a row that is left and look-up one access to the index, O(log n)
where its keys are sparse.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indices.compiled import kernel
from lftj.memory import view, view32
from lftj.process.progress import Advance
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.row_filter import RowFilter, RowTest, blocks
from lftj.storage.key_set import KeySet
from lftj.storage.part import Part
from lftj.storage.relation import Relation
from lftj.storage.seek import lower_bound
from lftj.storage.trie import Trie

# -- a look-up: a row of int64 ---------------------------------------------------------------
U_SOURCE = 0  # slot of the variable that is known
U_KEYS = 1  # address of the index's first keys, and how many
U_LENGTH = 2
U_RANKS = 3  # address of their rank table, 0 where there is none; the first key, and how many it covers
U_BASE = 4
U_SPREAD = 5
U_FIRST = 6  # first row of its values, and how many
U_VALUES = 7
LOOKUP_FIELDS = 8

# -- a value of a look-up ----------------------------------------------------------------------
G_KEYS = 0  # address of the level's keys
G_SLOT = 1  # where it is written, or compared
G_IS_KNOWN = 2  # 1: it is compared
VALUE_FIELDS = 3


@dataclass(frozen=True)
class Lookup:
    """An atom of which one row at most belongs to a value of ``by``.  ``values``: its other variables."""

    atom: JoinAtom
    by: str
    values: tuple[str, ...]
    trie: Trie


@dataclass(frozen=True)
class Scan:
    """What is scanned, and the look-ups in the order in which their keys are known; it holds no relation.

    ``columns``: of the atom's variables.
    """

    atom: JoinAtom
    columns: tuple[np.ndarray, ...]
    rows: RowFilter
    lookups: tuple[Lookup, ...] = ()

    @classmethod
    def of(
        cls,
        atom: JoinAtom,
        relation: Relation | Part,
        tests: Sequence[RowTest] = (),
        lookups: Sequence[Lookup] = (),
    ) -> Scan:
        """A scan of the atom's relation."""
        columns = tuple(relation.column(column) for column in atom.columns)
        return cls(atom, columns, RowFilter.of(relation, tests), tuple(lookups))

    @property
    def n_rows(self) -> int:
        """Of the relation."""
        return self.rows.n_rows

    @property
    def steps(self) -> int:
        """Rows, and look-ups if none of them fails."""
        return self.n_rows * (1 + len(self.lookups))

    def batches(
        self, n_rows: int, advance: Advance | None = None
    ) -> Iterator[tuple[Mapping[str, np.ndarray], int]]:
        """Columns of every variable, of ``n_rows`` scanned rows at a time, and how many rows are left.

        Where there are look-ups, the arrays are written to again by the next batch.
        """
        if not self.lookups:
            yield from self._left(n_rows, advance)
            return
        slots = {name: slot for slot, name in enumerate(self.atom.variables)}
        lookups: list[list[int]] = []
        values: list[list[int]] = []
        for one in self.lookups:
            trie, first = one.trie, len(values)
            for level, name in enumerate(one.values, 1):
                values.append([trie.keys[level].ctypes.data, slots.get(name, len(slots)), name in slots])
                slots.setdefault(name, len(slots))
            base, last = trie.key_ranges[0]
            spread = 0 if trie.ranks is None else last - base + 1
            row = [slots[one.by], trie.keys[0].ctypes.data, len(trie.keys[0])]
            lookups.append([*row, trie.ranks_place, base, spread, first, len(one.values)])
        plan = (
            np.array(lookups, np.int64).reshape(-1, LOOKUP_FIELDS),
            np.array(values, np.int64).reshape(-1, VALUE_FIELDS),
        )
        rows = np.empty((len(slots) + 2, n_rows), np.int64)
        for scanned, n_scanned in self._left(n_rows, advance):
            for column, out in zip(scanned.values(), rows, strict=False):
                out[:n_scanned] = column
            left = _look_up(*plan, len(scanned), n_scanned, rows)
            yield {name: rows[slot, :left] for name, slot in slots.items()}, left

    def _left(self, n_rows: int, advance: Advance | None) -> Iterator[tuple[dict[str, np.ndarray], int]]:
        """The scanned columns of the rows that pass the tests, of at most ``n_rows`` at a time."""
        waiting: list[list[np.ndarray]] = []
        n_waiting = 0
        for first, last in blocks(self.n_rows, n_rows):
            kept = self.rows.kept(first, last)
            n_found = last - first if kept is None else len(kept)
            found = [column[first:last] for column in self.columns]
            if kept is not None:
                found = [column[kept] for column in found]
            if n_waiting + n_found > n_rows:
                yield self._joined(waiting), n_waiting
                waiting, n_waiting = [], 0
            waiting.append(found)
            n_waiting += n_found
            if advance is not None:
                advance(last / self.n_rows)
        if n_waiting:
            yield self._joined(waiting), n_waiting

    def _joined(self, blocks_of: Sequence[list[np.ndarray]]) -> dict[str, np.ndarray]:
        columns = blocks_of[0] if len(blocks_of) == 1 else map(np.concatenate, zip(*blocks_of, strict=True))
        return dict(zip(self.atom.variables, columns, strict=True))


def scan_of(problem: JoinProblem, tables: Mapping[str, object], least: int) -> Scan | None:
    """A counted problem as a scan of its largest relation, if that has so many rows and nothing is sought."""
    if not problem.counted or problem.conditions or problem.negations:
        return None
    relations: list[Relation | Part] = []
    for atom in problem.atoms:
        relation = tables[atom.relation]
        told_apart = atom.counted == (atom.arity,) or {*atom.columns, *atom.counted}.issuperset(atom.identity)
        whole = told_apart and not atom.equal
        if not isinstance(relation, Relation | Part) or not whole or not atom.columns:
            return None
        relations.append(relation)
    first = max(range(len(relations)), key=lambda number: relations[number].n_rows)
    if relations[first].n_rows < least:
        return None
    known = set(problem.atoms[first].variables)
    waiting = [number for number in range(len(relations)) if number != first]
    lookups: list[Lookup] = []
    while waiting:
        found = None
        for number in waiting:
            found = _lookup(problem.atoms[number], relations[number], known)
            if found is not None:
                break
        if found is None:
            return None
        lookups.append(found)
        known.update(found.values)
        waiting.remove(number)
    return Scan.of(problem.atoms[first], relations[first], (), lookups)


def _lookup(atom: JoinAtom, relation: Relation | Part, known: set[str]) -> Lookup | None:
    """A look-up of an atom by a variable that is known, if one determines its row."""
    for column, by in zip(atom.columns, atom.variables, strict=True):
        if by in known:
            others = [other for other in zip(atom.columns, atom.variables, strict=True) if other[1] != by]
            is_key = len(others) + 1 == len(atom.columns)
            if is_key and KeySet.of(relation.column(column)).n_keys == relation.n_rows:
                trie = relation.view(((column, *(other for other, _ in others)), ())).base
                return Lookup(atom, by, tuple(name for _, name in others), trie)
    return None


@kernel
def _look_up(lookups, values, known, n, rows):
    """Look ``n`` rows up; returns how many are left.

    lookups: int64 (lookups, LOOKUP_FIELDS); values: int64 (values, VALUE_FIELDS).  rows: int64 (slots + 2,
    room), written: a row for each slot, of which the first ``known`` are filled, then one for positions and
    one for the places of what is left.
    """
    places, left = rows[rows.shape[0] - 2], rows[rows.shape[0] - 1]
    for number in range(lookups.shape[0]):
        source = rows[lookups[number, U_SOURCE]]
        length = lookups[number, U_LENGTH]
        keys = view(lookups[number, U_KEYS], length)
        found = np.int64(0)
        if lookups[number, U_RANKS]:
            base, spread = lookups[number, U_BASE], lookups[number, U_SPREAD]
            ranks = view32(lookups[number, U_RANKS], spread + 1)
            for row in range(n):
                offset = np.uint64(source[row]) - np.uint64(base)
                if source[row] >= base and offset < np.uint64(spread):
                    places[found] = ranks[offset]
                    left[found] = row
                    found += ranks[offset + np.uint64(1)] > ranks[offset]
        else:
            for row in range(n):
                place = lower_bound(keys, np.int64(0), length, source[row])
                if place < length and keys[place] == source[row]:
                    places[found] = place
                    left[found] = row
                    found += 1
        for value in range(lookups[number, U_FIRST], lookups[number, U_FIRST] + lookups[number, U_VALUES]):
            if values[value, G_IS_KNOWN]:
                keys, other = view(values[value, G_KEYS], length), rows[values[value, G_SLOT]]
                same = np.int64(0)
                for row in range(found):
                    place, kept = places[row], left[row]
                    places[same] = place
                    left[same] = kept
                    same += keys[place] == other[kept]
                found = same
        if found < n:
            for slot in range(known):
                out = rows[slot]
                for row in range(found):
                    out[row] = out[left[row]]
            n = found
        for value in range(lookups[number, U_FIRST], lookups[number, U_FIRST] + lookups[number, U_VALUES]):
            if not values[value, G_IS_KNOWN]:
                keys, out = view(values[value, G_KEYS], length), rows[values[value, G_SLOT]]
                for row in range(n):
                    out[row] = keys[places[row]]
                known = max(known, values[value, G_SLOT] + 1)
    return n
