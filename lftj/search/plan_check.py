"""What kernels take on trust of a plan, looked at when one is made, for those who change that.

A kernel follows addresses and offsets without asking.  Numba's bounds checks see a wrong one only where it
leaves the whole array: a list that is too short writes into its neighbour.  So a plan is read as the kernels
read it, under ``LFTJ_DEBUG=1`` (:mod:`lftj.process.debug`), and AssertionError names what does not hold.

The invariants: :mod:`lftj.search.base.plan_check`, :mod:`lftj.search.regions.plan_check`.
"""

from __future__ import annotations

from collections.abc import Iterable

Extent = tuple[int, int, str, int]
"""Offset, length, and what stands there: a name with a place for a number, and that."""


def holds(number: int, condition: object, what: str, *named: int) -> None:
    """``what``: with a place for each number that is named; put together only where it is told."""
    if not condition:
        raise AssertionError(f"plan invariant {number}: {what.format(*named)}")


def apart(number: int, extents: Iterable[Extent], start: int, end: int) -> None:
    """All of them lie in [start, end), and no two share a place."""
    before, last, of = start, "the start", 0
    for place, length, what, row in sorted(extent for extent in extents if extent[1]):
        if place < before or place + length > end:
            bounds = f"from {before}, where {last.format(of)} ends, to {end}"
            raise AssertionError(f"plan invariant {number}: {what.format(row)} at {place} is not {bounds}")
        before, last, of = place + length, what, row
