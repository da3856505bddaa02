"""Families of rule, data and changes on which the trace edit distance is measured.

Ordinary families change their relations at random: half of a change erases
tuples that are there, half inserts tuples drawn as the data was.  Hostile ones
are built so that the claim has a hard time; each says how.

Rows are int64 words, ``first << 32 | second``, both below 2**31.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bench import graphs

Words = np.ndarray
Data = dict[str, Words]
"""Relation name to its rows, ascending and distinct."""
Changes = dict[str, tuple[Words, Words]]
"""Relation name to the rows erased and the rows inserted."""
Draw = Callable[[np.random.Generator, str, int, int], Words]
"""(generator, relation, size of the data, rows wanted) to rows, which may repeat."""

Change = Callable[[np.random.Generator, Data, int], Changes]
"""(generator, the rows there are, tuples wanted) to a change."""

TRIANGLE = "h(a, b, c) <- R(a, b), S(b, c), T(a, c)."


@dataclass(frozen=True)
class Family:
    """One rule over relations of two columns, of growing size.

    Attributes:
        draw: Draws rows of a relation.
        relations: Names, with their shares of the tuples.
        order: The key order, where it is part of the case.
        before: Transactions that come before what is measured, from the data.
        change: The changes of one transaction of a size; None for random ones.
        largest: Larger data would take too long, or makes no difference.
        hostile: What makes it hard, in words; empty for an ordinary family.
    """

    name: str
    title: str
    rule: str
    relations: Mapping[str, float]
    draw: Draw
    order: tuple[str, ...] | None = None
    before: Callable[[Data], list[Changes]] | None = None
    change: Change | None = None
    largest: int = 1_000_000
    hostile: str = ""

    def data(self, size: int) -> Data:
        """About ``size`` tuples in all."""
        generator = np.random.default_rng(1)
        return {
            name: np.unique(self.draw(generator, name, size, max(1, round(size * share))))
            for name, share in self.relations.items()
        }

    def next_change(self, generator: np.random.Generator, data: Data, size: int, count: int) -> Changes:
        """A change of at most ``count`` tuples of ``data``."""
        if self.change is not None:
            return self.change(generator, data, count)
        names = list(self.relations)
        counts = np.bincount(generator.integers(0, len(names), count), minlength=len(names))
        changes = {}
        for name, number in zip(names, counts.tolist(), strict=True):
            erased = number // 2 if count > 1 else int(generator.random() < 0.5) * number
            erased = min(erased, len(data[name]))
            gone = generator.choice(data[name], erased, replace=False)
            drawn = np.unique(self.draw(generator, name, size, 2 * (number - erased) + 8))
            fresh = np.setdiff1d(drawn, data[name], assume_unique=True)
            came = generator.permutation(fresh)[: number - erased]
            changes[name] = gone, came
        return changes


def after(data: Data, changes: Changes) -> Data:
    """The rows after a change."""
    found = dict(data)
    for name, (gone, came) in changes.items():
        found[name] = np.union1d(np.setdiff1d(data[name], gone, assume_unique=True), came)
    return found


def words(first: np.ndarray, second: np.ndarray) -> Words:
    return (first.astype(np.int64) << 32) | second.astype(np.int64)


def columns(rows: Words) -> tuple[np.ndarray, np.ndarray]:
    """Both columns of rows."""
    return rows >> 32, rows & 0xFFFFFFFF


def _rmat(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
    scale = max(3, round(np.log2(size / 8)))
    drawn = words(*graphs.rmat(scale, seed=int(generator.integers(1 << 31))))
    return generator.permutation(drawn)[:count]


def _uniform(tuples_per_key: float) -> Draw:
    def draw(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
        keys = max(4, round(size / tuples_per_key))
        return words(generator.integers(0, keys, count), generator.integers(0, keys, count))

    return draw


def _oriented(tuples_per_key: float) -> Draw:
    """Uniform, the smaller end first."""

    def draw(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
        first, second = columns(_uniform(tuples_per_key)(generator, relation, size, count))
        return words(np.minimum(first, second), np.maximum(first, second) + 1)

    return draw


def _skewed(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
    """``R(a, b)``: b by Zipf's law, a few of them hubs; ``S(b, c)``: b uniform."""
    keys = max(4, size // 2)
    hubs = np.minimum(generator.zipf(1.3, count), keys) - 1
    even = generator.integers(0, keys, count)
    return words(even, hubs) if relation == "R" else words(generator.integers(0, keys, count), even)


def _star(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
    """``(0, i)`` and ``(i, 0)``."""
    ends = generator.integers(0, max(2, size // 6), count)
    hub = np.zeros(count, np.int64)
    to_hub = generator.random(count) < 0.5
    return words(np.where(to_hub, ends, hub), np.where(to_hub, hub, ends))


def _apart(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
    """R's first column is odd, T's even: no branch leads anywhere."""
    keys = max(4, size)
    odd = 2 * generator.integers(0, keys, count) + (relation == "R")
    return words(odd, generator.integers(0, keys, count))


_FAN = 1000  # last key of S(0, .) and of every T(a, .)


def _fan(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
    """``R(a, 0)`` for all a, ``T(a, {0, 1000})``, and ``S(0, .)`` with five keys between these two."""
    if relation == "S":
        return words(np.zeros(7, np.int64), np.array([0, 10, 20, 30, 40, 50, _FAN]))
    ends = np.arange(max(1, size // 3), dtype=np.int64) + 1
    if relation == "R":
        return words(ends, np.zeros(len(ends), np.int64))
    return np.concatenate([words(ends, np.zeros(len(ends), np.int64)), words(ends, np.full(len(ends), _FAN))])


def _narrow_fan(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
    """``R(a, 0)`` for all a, ``T(a, {0, 10, 1000})``, and ``S(0, {0, 1000})``."""
    rows = _fan(generator, relation, size, count)
    if relation == "S":
        return rows[[0, -1]]
    if relation == "R":
        return rows
    ends, _ = columns(rows)
    return np.concatenate([rows, words(ends, np.full(len(ends), 10))])


def _outgrown_fan(generator: np.random.Generator, relation: str, size: int, count: int) -> Words:
    """``R(a, 0)`` for all a, ``T(a, {5, 1000})``, and ``S(0, {10, 1000})``."""
    rows = _fan(generator, relation, size, count)
    if relation == "R":
        return rows
    ends, keys = columns(rows)
    if relation == "S":
        return rows[np.isin(keys, (10, _FAN))]
    return words(ends, np.where(keys == 0, 5, keys))


def _shorten(data: Data) -> list[Changes]:
    """A key of S comes, where all search paths had recorded up to the next one."""
    row = words(np.zeros(1, np.int64), np.array([7]))
    return [{"S": (row[:0], row)}]


def _turn(key: int) -> Change:
    """One key of ``S(0, .)`` comes, or goes again."""

    def change(generator: np.random.Generator, data: Data, count: int) -> Changes:
        row = words(np.zeros(1, np.int64), np.array([key]))
        return {"S": (row, row[:0]) if np.isin(row, data["S"]).all() else (row[:0], row)}

    return change


def _abandon(data: Data) -> list[Changes]:
    """All of R goes."""
    return [{"R": (data["R"], data["R"][:0])}]


def _toggle(data: Data) -> list[Changes]:
    """One tuple of R goes and comes, a hundred times."""
    row = data["R"][:1]
    return [{"R": (row, row[:0])}, {"R": (row[:0], row)}] * 100


_ONE = {"e": 1.0}
_TWO = {"R": 0.5, "S": 0.5}
_THREE = {"R": 1 / 3, "S": 1 / 3, "T": 1 / 3}
_ORDER = ("a", "b", "c")

_EDGES = "e(a, b), e(b, c), e(a, c)"
_CLIQUE = f"{_EDGES}, e(a, d), e(b, d), e(c, d)"
_PATH = "h(a, b, c, d) <- e(a, b), e(b, c), e(c, d)."
_OPEN = "h(a, b, c) <- e(a, b), e(b, c), !e(a, c)."

FAMILIES = (
    Family("triangle-rmat", "triangles, RMAT", f"h(a, b, c) <- {_EDGES}.", _ONE, _rmat),
    Family("triangle-uniform", "triangles, uniform", f"h(a, b, c) <- {_EDGES}.", _ONE, _oriented(2)),
    Family("path-uniform", "paths of 3 edges, uniform", _PATH, _ONE, _uniform(1)),
    Family("clique-rmat", "4-cliques, RMAT", f"h(a, b, c, d) <- {_CLIQUE}.", _ONE, _rmat),
    Family("open-uniform", "open paths (negation), uniform", _OPEN, _ONE, _uniform(2)),
    Family("unanswered", "R without S (negation)", "h(a, b) <- R(a, b), !S(b, a).", _TWO, _uniform(4)),
    Family("join-uniform", "two relations, uniform", "h(a, b, c) <- R(a, b), S(b, c).", _TWO, _uniform(2)),
    Family("join-skewed", "two relations, skewed", "h(a, b, c) <- R(a, b), S(c, b).", _TWO, _skewed),
    Family("star", "adversarial triangle, stars", TRIANGLE, _THREE, _star),
    Family("dead", "triangle, branches that lead nowhere", TRIANGLE, _THREE, _apart),
    Family(
        "hub",
        "triangle, a key that all search paths meet",
        TRIANGLE,
        _THREE,
        _fan,
        order=_ORDER,
        change=_turn(_FAN),
    ),
    Family(
        "coarse",
        "triangle, a key that coarse records hold",
        TRIANGLE,
        _THREE,
        _fan,
        order=_ORDER,
        change=_turn(25),
        hostile="every search path below a key of S passes over the changed key without landing on it: the "
        "trace does not depend on it, while a record that goes on over small gaps holds it",
    ),
    Family(
        "stepped",
        "triangle, a key that only one participant's step meets",
        TRIANGLE,
        _THREE,
        _fan,
        order=_ORDER,
        change=_turn(5),
        hostile="after a match the leapfrog steps the participant whose turn it is; the changed key lies "
        "where the step of another one would meet it",
    ),
    Family(
        "passed",
        "triangle, a key between two that follow each other",
        TRIANGLE,
        _THREE,
        _narrow_fan,
        order=_ORDER,
        change=_turn(5),
        hostile="every search path below a key of S seeks from one key of S to the very next one, past the "
        "changed key: the trace does not depend on it, while a record that goes on over one step holds it",
    ),
    Family(
        "outgrown",
        "triangle, records that later changes have shortened",
        TRIANGLE,
        _THREE,
        _outgrown_fan,
        order=_ORDER,
        before=_shorten,
        change=_turn(8),
        hostile="a key came into S where all search paths had recorded an interval; the trace depends on its "
        "first part only, while the record stays, and the changed key lies in its other part",
    ),
    Family(
        "garbage",
        "triangle, records below branches that are gone",
        TRIANGLE,
        _THREE,
        _fan,
        order=_ORDER,
        before=_abandon,
        change=_turn(_FAN),
        largest=100_000,
        hostile="all of R is erased first, so nothing in the trace depends on S any more; the records of the "
        "search paths that are gone still match, until they are found dead",
    ),
    Family(
        "toggled",
        "triangle, records that came again and again",
        TRIANGLE,
        _THREE,
        lambda generator, relation, size, count: _fan(generator, relation, 3, count),
        order=_ORDER,
        before=_toggle,
        change=_turn(_FAN),
        largest=1_000,
        hostile="one tuple of R is erased and inserted a hundred times first; each time the records below it "
        "are recorded again, and each copy matches until a merge or a match drops it",
    ),
)
