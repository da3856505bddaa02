"""A scan with look-ups: the rows of one relation in their order, and what others have for each of them.

    h[k, r] = sum(v) <- sales(_, p, s, v), product(p, k), store(s, r).

Where the data has one row of each other atom for every value of a variable that is known before, there is
nothing to intersect: an assignment is a row of the scanned relation whose look-ups all succeed.  A search
would find the same by opening nodes of one key each.

Invariants

1. Every column of every atom is a variable of its own, or counted: a row of the scanned relation is one
   assignment at most.
2. A look-up's index begins with the variable that is known, and has as many keys at level 0 as its relation
   has rows; so at each level the row stands at the same position.
3. Rows come in the order of the scanned relation.

Cost: of a row and look-up one access to the index, O(log n) where its keys are sparse.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from indices.compiled import kernel
from lftj.memory import view, view32
from lftj.process.progress import Advance
from lftj.search.problem import JoinAtom, JoinProblem
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
    """What is scanned, and the look-ups in the order in which their keys are known."""

    atom: JoinAtom
    relation: Relation
    lookups: tuple[Lookup, ...]

    @property
    def steps(self) -> int:
        """Rows, and look-ups if none of them fails."""
        return self.relation.n_rows * (1 + len(self.lookups))

    def batches(
        self, n_rows: int, advance: Advance | None = None
    ) -> Iterator[tuple[Mapping[str, np.ndarray], int]]:
        """Columns of every variable, of ``n_rows`` scanned rows at a time, and how many rows are left.

        The arrays are written to again by the next batch.
        """
        slots = {name: slot for slot, name in enumerate(self.atom.variables)}
        scanned = [self.relation.codes[column].ctypes.data for column in self.atom.columns]
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
        rows = np.empty((len(slots) + 2, n_rows), np.int64)
        plan = (
            np.array(scanned, np.int64),
            np.array(lookups, np.int64).reshape(-1, LOOKUP_FIELDS),
            np.array(values, np.int64).reshape(-1, VALUE_FIELDS),
        )
        total = self.relation.n_rows
        for first in range(0, total, n_rows):
            last = min(total, first + n_rows)
            left = _scan(*plan, first, last, rows)
            if advance is not None:
                advance(last / total)
            yield {name: rows[slot, :left] for name, slot in slots.items()}, left


def scan_of(problem: JoinProblem, tables: Mapping[str, object], least: int) -> Scan | None:
    """A counted problem as a scan of its largest relation, if that has so many rows and nothing is sought."""
    if not problem.counted or problem.conditions or problem.negations:
        return None
    relations = []
    for atom in problem.atoms:
        relation = tables[atom.relation]
        whole = set(atom.identity) <= {*atom.columns, *atom.counted} and not atom.equal
        if not isinstance(relation, Relation) or not whole or not atom.columns:
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
    return Scan(problem.atoms[first], relations[first], tuple(lookups))


def _lookup(atom: JoinAtom, relation: Relation, known: set[str]) -> Lookup | None:
    """A look-up of an atom by a variable that is known, if one determines its row."""
    for column, by in zip(atom.columns, atom.variables, strict=True):
        if by in known:
            others = [other for other in zip(atom.columns, atom.variables, strict=True) if other[1] != by]
            if len(others) + 1 == len(atom.columns):
                trie = relation.index((column, *(other for other, _ in others)))
                if len(trie.keys[0]) == relation.n_rows:
                    return Lookup(atom, by, tuple(name for _, name in others), trie)
    return None


@kernel
def _scan(columns, lookups, values, first, last, rows):
    """Scan rows [first, last); returns how many are left.

    columns: int64, the address of each scanned column; lookups: int64 (lookups, LOOKUP_FIELDS); values: int64
    (values, VALUE_FIELDS).  rows: int64 (slots + 2, room), written: a row for each slot, those of the scanned
    columns first, then one for positions and one for the places of what is left.
    """
    n = last - first
    known = len(columns)
    places, left = rows[rows.shape[0] - 2], rows[rows.shape[0] - 1]
    for slot in range(known):
        keys, out = view(columns[slot], last), rows[slot]
        for row in range(n):
            out[row] = keys[first + row]
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
