"""A problem in one key order, level by level: what the plans of both search machines are written from.

Invariants

1. The order names every variable of the problem once.
2. Two atoms that read one index along one prefix of variables share iterators.  Of a negated
   atom, the last level refuses keys and the others lead on: those are not shared.
3. An iterator hangs below one with a smaller number.
"""

from __future__ import annotations

from dataclasses import dataclass

from lftj.search.conditions import condition_rows
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.storage.catalog import IndexUse


@dataclass(frozen=True)
class AtomLevel:
    """One level of one atom, as an iterator walks it.

    ``places``: depths of the atom's variables up to this level, so a branch of the index is a binding of
    them.
    """

    index: int
    level: int
    places: tuple[int, ...]
    negated: bool
    tested: bool  # of a negated atom: its last level
    label: str

    @property
    def depth(self) -> int:
        return self.places[-1]


class Outline:
    """Iterators by number, and which of them take part at which depth.

    ``share``: atoms may share iterators (invariant 2).
    """

    def __init__(self, problem: JoinProblem, order: tuple[str, ...], share: bool = True) -> None:
        self.order = order
        self.place = {name: depth for depth, name in enumerate(order)}
        self.indexes: dict[IndexUse, int] = {}
        self.iterators: list[AtomLevel] = []
        self.parents: list[int] = []
        """Number of the iterator one level up in the same index, -1 on level 0."""
        self.participants: list[list[int]] = [[] for _ in order]
        self.negations: list[list[int]] = [[] for _ in order]
        self.conditions = condition_rows(problem, self.place)
        self._share = share
        self._shared: dict[tuple[object, ...], int] = {}

    def number_of(self, use: IndexUse) -> int:
        """Of an index that the plan reads."""
        return self.indexes.setdefault(use, len(self.indexes))

    def add_atom(self, atom: JoinAtom, negated: bool, index: int) -> list[int]:
        """The iterators of an atom that reads an index, from level 0 on."""
        places = tuple(self.place[name] for name in atom.levels(self.order)[1])
        path: list[int] = []
        for level in range(len(places)):
            last = level + 1 == len(places)
            walked = AtomLevel(index, level, places[: level + 1], negated, negated and last, atom.label)
            path.append(self._iterator(walked, path[-1] if path else -1))
        return path

    def _iterator(self, walked: AtomLevel, parent: int) -> int:
        """The number of a level below ``parent``; a new one unless it is shared."""
        key = (walked.index, walked.places, walked.negated, walked.tested)
        if self._share and key in self._shared:
            return self._shared[key]
        number = self._shared[key] = len(self.iterators)
        self.iterators.append(walked)
        self.parents.append(parent)
        (self.negations if walked.negated else self.participants)[walked.depth].append(number)
        return number

    def is_last(self, iterator: int) -> bool:
        """Whether none hangs below it."""
        return iterator not in self.parents

    def names_region(self, iterator: int) -> bool:
        """Whether its atom's variables up to it are the key order's first ones: a branch is a binding."""
        walked = self.iterators[iterator]
        return walked.places == tuple(range(walked.level + 1))

    def opening(self, depth: int) -> list[int]:
        """A depth's participants in the order in which the trace opens them.

        Those whose branches name regions, which need no record; then those whose level above was bound first;
        then as the body lists them.
        """
        return sorted(
            self.participants[depth],
            key=lambda number: (not self.names_region(number), self.bound_at(number)),
        )

    def bound_at(self, iterator: int) -> int:
        """Depth of the level above an iterator; -1 on level 0."""
        parent = self.parents[iterator]
        return -1 if parent < 0 else self.iterators[parent].depth

    def drops_matches(self, depth: int) -> bool:
        """Whether a filter or a complete negated atom may refuse a key of a depth that participants share."""
        filters = any(condition.is_filter for condition in self.conditions[depth])
        return filters or any(self.iterators[negation].tested for negation in self.negations[depth])

    def program(self) -> list[str]:
        """What is done at each depth, for people: an instruction per depth."""
        return [self._instruction(depth) for depth in range(len(self.order))]

    def _instruction(self, depth: int) -> str:
        met = ", ".join(map(self._shown, self.opening(depth)))
        refused = [
            f"{'not' if self.iterators[number].tested else 'towards not'} {self._shown(number)}"
            for number in self.negations[depth]
        ]
        tests = [condition.shown(self.order, depth) for condition in self.conditions[depth]] + refused
        return f"{self.order[depth]}: {met or 'one key'}" + (f" where {', '.join(tests)}" if tests else "")

    def _shown(self, number: int) -> str:
        walked = self.iterators[number]
        names = [self.order[place] for place in walked.places]
        return f"{walked.label}({', '.join(names if self.is_last(number) else [*names, '..'])})"
