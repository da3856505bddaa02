"""Shares: into how many parts each variable's values are cut (HyperCube).

A *grid* gives every *axis*, a variable of a rule, a share; its cells are the
combinations of one part of each axis.  A tuple of an atom goes to every cell whose
parts are those of the tuple's own values: it is copied along the axes that its atom
does not have.  Each assignment of the body has a value of every axis, so it is found
in one cell, whatever the shares are: they decide what is sent, never what comes out.

    load(s) = sum over placements of rows / product of the shares of their axes
    sent(s) = load(s) * product of all shares

A *placement* is a relation with the axes that its columns hold; atoms that share one
read the same tuples, which are sent once.

Invariants

1. The product of the shares is at most the number of cells asked for and, if there is an
   axis, more than half of it: a single cell would send least, and do all work alone.
2. A variable that occurs only beside some other one gets no share of its own: giving it
   to the other sends no more.

Cost: all vectors of shares where there are at most ``EXACT`` of them, else a beam that
raises one share at a time.

Source: Afrati and Ullman, "Optimizing Joins in a Map-Reduce Environment" (EDBT 2010),
sections 3 and 4 (dominated variables); whole shares by trying them all, the least load
first: Chu, Balazinska and Suciu, "From Theory to Practice" (SIGMOD 2015), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

EXACT = 50_000
_BEAM = 64

Shares = dict[str, int]
"""The share of each axis that is cut; those that are not cut, with share 1, are left out."""


@dataclass(frozen=True)
class Read:
    """What an atom reads: ``key`` is the same for atoms that read equal columns of one relation."""

    key: str
    rows: float
    axes: tuple[tuple[int, str], ...]  # column, variable


def choose_shares(
    reads: Sequence[Read], axes: Sequence[str], cells: int, skew: Mapping[str, float] | None = None
) -> Shares:
    """The shares with the least load; of equal ones those that send least, cut less skewed axes, or later.

    Of axes that are alike otherwise the last: patterns over graphs whose edges lead upward, as triangles and
    cliques are counted, are cut evenly by it.  ``skew``: by axis, the more the further its values are from
    being equally frequent.  Parts of an axis with little are alike, and the rules' searches begin with such
    axes: cutting those cuts the work best.

    >>> triangle = [Read("e", 100, ((0, "a"), (1, "b"))), Read("e", 100, ((0, "b"), (1, "c")))]
    >>> triangle.append(Read("e", 100, ((0, "a"), (1, "c"))))
    >>> choose_shares(triangle, "abc", 8)
    {'a': 2, 'b': 2, 'c': 2}
    >>> choose_shares([*triangle[::2], Read("small", 1, ((0, "b"), (1, "c")))], "abc", 8)
    {'a': 8}
    """
    useful = undominated(reads, axes)
    vectors = _all(len(useful), cells) if _number(len(useful), cells) <= EXACT else None

    def cost(vector: Sequence[int]) -> tuple[bool, float, float, float, tuple[int, ...]]:
        shares = dict(zip(useful, vector, strict=True))
        least, used = load(reads, shares), math.prod(vector)
        uneven = sum((skew or {}).get(name, 0.0) for name, share in shares.items() if share > 1)
        return 2 * used <= cells, least, least * used, uneven, tuple(-share for share in reversed(vector))

    best = min(vectors, key=cost) if vectors is not None else _beam(len(useful), cells, cost)
    return {name: share for name, share in zip(useful, best, strict=True) if share > 1}


def load(reads: Sequence[Read], shares: Mapping[str, int]) -> float:
    """Rows that a cell gets on average.

    >>> load([Read("e", 100, ((0, "a"),)), Read("f", 10, ())], {"a": 4})
    35.0
    """
    placed: dict[tuple[str, tuple[tuple[int, str], ...]], float] = {}
    for read in reads:
        cut = tuple(axis for axis in read.axes if shares.get(axis[1], 1) > 1)
        placed[read.key, cut] = read.rows / math.prod(shares[name] for _, name in cut)
    return sum(placed.values())


def undominated(reads: Sequence[Read], axes: Sequence[str]) -> list[str]:
    """The axes worth cutting: of those that occur in the same reads, the first; none that another one covers.

    >>> undominated([Read("e", 1, ((0, "a"), (1, "b"))), Read("f", 1, ((0, "a"),))], ["b", "a"])
    ['a']
    """
    occurs = {name: {n for n, read in enumerate(reads) if (name in dict(_flip(read.axes)))} for name in axes}
    kept: list[str] = []
    for place, name in enumerate(axes):
        others = (other for other in axes if other != name)
        covered = any(
            occurs[name] < occurs[other] or (occurs[name] == occurs[other] and other in axes[:place])
            for other in others
        )
        if not covered and occurs[name]:
            kept.append(name)
    return kept


def _flip(axes: Sequence[tuple[int, str]]) -> list[tuple[str, int]]:
    return [(name, column) for column, name in axes]


def _all(length: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every vector of positive whole numbers whose product is at most ``most``."""
    if not length:
        yield ()
        return
    for first in range(1, most + 1):
        for rest in _all(length - 1, most // first):
            yield (first, *rest)


def _number(length: int, most: int) -> int:
    """How many vectors :func:`_all` gives, or more than EXACT."""
    if length <= 1:
        return most**length
    total = 0
    for first in range(1, most + 1):
        total += _number(length - 1, most // first)
        if total > EXACT:
            break
    return total


def _beam(length: int, most: int, cost) -> tuple[int, ...]:  # type: ignore[no-untyped-def]
    """The best vector met when one share is raised at a time, the cheapest vectors being kept."""
    level = {(1,) * length}
    best = min(level, key=cost)
    while level:
        raised = set()
        for vector in level:
            for place in range(length):
                longer = (*vector[:place], vector[place] + 1, *vector[place + 1 :])
                if math.prod(longer) <= most:
                    raised.add(longer)
        level = set(sorted(raised, key=cost)[:_BEAM])
        best = min(best, *level, key=cost) if level else best
    return best
