"""Fitting the claim: operations <= c * distance * log2(n) + c' * (surgeries + dropped records).

A record is dropped at most once, and was left by one operation of an earlier trace: so the records
that are dropped in all commits are no more than the edits of all traces (ILFTJ 4.1 has it so, by
removing what is matched).  This makes the claim one about any sequence of commits.

A :class:`Point` is one commit.  Any finite set of commits has a bound; what
speaks for or against the claim is how large it is, how far the points lie below
it, and whether the ratio of operations to the claim's terms grows with the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

GROWS = 0.2
"""A ratio that grows faster than the data to this power is no constant."""


SMALL_RATIO = 10.0
"""Ratios up to this are what a few operations for one surgery come to, whatever their trend."""


@dataclass(frozen=True)
class Point:
    """One commit, kept by trace with records of one gap, beside the same commit by recomputation.

    Attributes:
        family: The workload's name.
        tuples: Tuples of all relations of the body, before the change.
        change: Tuples that the change inserted or erased.
        gap: ``record_gap`` of the workspace; 0 keeps the trace's own records.
        distance: The exact trace edit distance.
        trace: Operations of the full trace after the change: what recomputation by plain leapfrog costs.
        operations: Maintenance operations: of evaluation, matches and surgeries.
        dropped: Matched records that were found dead and dropped.
        touched: What stabbing the sensitivity records looked at, in records and scan nodes.
        seconds, recompute_seconds: Of the whole commit, by trace and by recomputation.
        records: Sensitivity records after the commit.
        record_bytes: Their memory.
        rebuilt: Bodies whose records were built anew, the last piece of them within the commit.
    """

    family: str
    tuples: int
    change: int
    gap: int
    distance: int
    trace: int
    operations: int
    surgeries: int
    matches: int
    regions: int
    empty_regions: int
    dropped: int
    touched: int
    head_changes: int
    records: int
    record_bytes: int
    rebuilt: int
    seconds: float
    recompute_seconds: float

    @property
    def claimed(self) -> float:
        """``distance * log2(n)``."""
        return self.distance * math.log2(max(2, self.tuples))

    @property
    def paid(self) -> int:
        """Surgeries and dropped records: what ``c'`` stands for."""
        return self.surgeries + self.dropped

    @property
    def ratio(self) -> float:
        """Operations over the claim's terms with c = c' = 1."""
        return self.operations / (self.claimed + self.paid)


@dataclass(frozen=True)
class Bound:
    """``c`` of the distance's term and ``c_paid`` of surgeries and dropped records."""

    c: float
    c_paid: float

    def of(self, point: Point) -> float:
        return self.c * point.claimed + self.c_paid * point.paid


def usable(points: Iterable[Point]) -> list[Point]:
    """Points with a surgery or a distance: else there is nothing to fit."""
    return [point for point in points if point.operations and (point.paid or point.distance)]


def _terms(points: Sequence[Point]) -> np.ndarray:
    """float (points, 2): both terms of each point, relative to its operations."""
    return np.array([[p.claimed / p.operations, p.paid / p.operations] for p in points])


def least_bound(points: Iterable[Point]) -> Bound:
    """The bound on all points that is least in the mean of bound over operations; a linear program.

    Its optimum lies where two constraints meet, or one and an axis; only constraints
    that no other one implies have to be tried.
    """
    terms = _terms(usable(points))
    if not len(terms):
        return Bound(0.0, 0.0)
    tight = _not_implied(terms)
    # Multiples of one term alone that bound everything, where there are any.
    candidates = []
    with np.errstate(divide="ignore"):
        for axis in range(2):
            alone = float(np.max(1 / tight[:, axis]))
            if math.isfinite(alone):
                candidates.append(np.array([alone, 0.0]) if axis == 0 else np.array([0.0, alone]))
    for first in range(len(tight)):
        for second in range(first):
            pair = tight[[first, second]]
            if abs(np.linalg.det(pair)) > 1e-12:
                candidates.append(np.linalg.solve(pair, np.ones(2)))
    allowed = [at for at in candidates if (at >= -1e-12).all() and (tight @ at >= 1 - 1e-9).all()]
    best = min(allowed, key=lambda at: float(terms.sum(axis=0) @ at))
    return Bound(max(0.0, float(best[0])), max(0.0, float(best[1])))


def _not_implied(terms: np.ndarray) -> np.ndarray:
    """The constraints ``terms @ at >= 1`` that no other one implies, for non-negative ``at``."""
    order = np.lexsort((terms[:, 1], terms[:, 0]))
    kept, least = [], math.inf
    for row in order:
        if terms[row, 1] < least:
            kept.append(row)
            least = terms[row, 1]
    return terms[kept]


def least_squares(points: Iterable[Point]) -> Bound:
    """The non-negative pair that fits best, each point's error taken relative to its operations."""
    terms = _terms(usable(points))
    if not len(terms):
        return Bound(0.0, 0.0)
    both = np.linalg.lstsq(terms, np.ones(len(terms)), rcond=None)[0]
    if (both >= 0).all():
        return Bound(float(both[0]), float(both[1]))
    alone = terms.sum(axis=0) / np.maximum((terms**2).sum(axis=0), 1e-300)
    axis = int(np.argmin([((terms[:, i] * alone[i] - 1) ** 2).sum() for i in range(2)]))
    return Bound(float(alone[0]) if axis == 0 else 0.0, float(alone[1]) if axis == 1 else 0.0)


def worst(points: Iterable[Point]) -> Point:
    """The point whose operations exceed the claim's terms most."""
    return max(usable(points), key=lambda point: point.ratio)


def growth(points: Iterable[Point]) -> float | None:
    """The worst ratio of each data size grows as the data to this power; None for fewer than two sizes.

    Sizes are told apart by their power of ten, and changes that not all sizes have are left out.
    """
    found = usable(points)
    sizes = sorted({decade(point) for point in found})
    if len(sizes) < 2:
        return None
    changes = [{p.change for p in found if decade(p) == size} for size in sizes]
    shared = set.intersection(*changes) or set.union(*changes)
    top = [
        max(
            (p for p in found if decade(p) == size and p.change in shared),
            key=lambda p: p.ratio,
            default=None,
        )
        for size in sizes
    ]
    known = [point for point in top if point is not None]
    if len(known) < 2:
        return None
    x, y = (np.log([p.tuples for p in known]), np.log([p.ratio for p in known]))
    return float(np.polyfit(x, y, 1)[0])


def fails(points: Sequence[Point]) -> bool:
    """Whether the worst ratio grows with the data and is no longer small."""
    power = growth(points)
    return power is not None and power > GROWS and worst(points).ratio > SMALL_RATIO


def decade(point: Point) -> int:
    """The power of ten next to the number of tuples."""
    return round(math.log10(max(1, point.tuples)))


def crossover(points: Iterable[Point]) -> float | None:
    """The change from which on recomputing is cheaper, in tuples; None when it never is.

    Between two change sizes it is interpolated on log-log axes of the median times.
    """
    found = list(points)
    curve = []
    for change in sorted({point.change for point in found}):
        here = [point for point in found if point.change == change]
        ours, theirs = (
            float(np.median([getattr(point, name) for point in here]))
            for name in ("seconds", "recompute_seconds")
        )
        curve.append((change, math.log(ours / theirs)))
    last = max((i for i, (_, gain) in enumerate(curve) if gain < 0), default=-1)
    if last + 1 == len(curve):
        return None
    change, gain = curve[last + 1]
    if last < 0:
        return float(change)
    before, lead = curve[last]
    share = -lead / (gain - lead)
    return float(math.exp(math.log(before) + share * (math.log(change) - math.log(before))))
