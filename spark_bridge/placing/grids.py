"""Grids: for each rule of a head which cells there are and which tuples go to which.

One grid (:mod:`spark_bridge.placing.shares`) would do but for skew: all tuples of one heavy value
of an axis go to the same part of it.  So assignments are told apart by which axes hold a
heavy value, and each of these kinds has a grid of its own, in which the axes that are
heavy are not cut and others are cut the more.

Invariants

1. Whether a value is heavy depends on nothing but its hash: each assignment has one kind.
2. A cell gets of each placement all tuples that its kind and its parts allow, and no
   other: so it finds all assignments of its own, and none that another cell finds.

Cost: 2**h grids for h axes with heavy values, of which there are at most MOST_HEAVY.

Source: Beame, Koutris and Suciu, "Skew in Parallel Query Processing" (PODS 2014), section 4:
a plan of its own for each set of heavy variables.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_bridge.placing.head_plan import HeadPlan
from spark_bridge.placing.head_rule import CUT, HEAVY, LIGHT, HeadRule, Placement
from spark_bridge.placing.shares import Read, choose_shares, load

MOST_HEAVY = 3
"""Axes of a rule that are looked at for heavy values: the most skewed ones."""

HEAVY_LOAD = 0.5
"""A value is heavy when its tuples alone make a cell larger by this part of what it gets on average."""


UNSURE = 48
"""Rows that a relation may have beside those that the sample tells of: of one row in 16, none is taken of 48
rows in one case of 20 (the rule of three).  So where nothing is known sizes are equal."""


@dataclass(frozen=True)
class InputSample:
    """What is known of the inputs: rows by relation, and by (relation, column) rows of the most frequent
    values, by hash."""

    rows: Mapping[str, float]
    frequent: Mapping[tuple[str, int], Mapping[int, float]]


@dataclass(frozen=True)
class Grid:
    """Cells ``first`` to ``first + n_cells - 1`` of a head: a share for each axis that is cut."""

    rule: int
    shares: tuple[tuple[str, int], ...]
    heavy: tuple[str, ...] = ()  # axes that take heavy values only
    light: tuple[str, ...] = ()  # axes that have heavy values, and take others only
    expected: tuple[tuple[str, float], ...] = ()  # estimated rows by label of a placement, before copying
    first: int = 0

    @property
    def n_cells(self) -> int:
        return math.prod(share for _, share in self.shares)

    @property
    def marks(self) -> dict[str, str]:
        """As :meth:`~spark_bridge.placing.head_plan.Role.placement` reads them."""
        marks = dict.fromkeys(self.light, LIGHT) | dict.fromkeys(self.heavy, HEAVY)
        return marks | {name: CUT for name, _ in self.shares}

    def copies(self, placement: Placement) -> int:
        """To how many cells each tuple of a placement goes."""
        cut = {name for _, name, mark in placement.axes if mark == CUT}
        return math.prod(share for name, share in self.shares if name not in cut)

    def cells_of(self, placement: Placement, parts: Sequence[int]) -> list[int]:
        """The cells that get a tuple whose cut axes, in the placement's order, have these parts."""
        known = dict(zip([name for _, name, mark in placement.axes if mark == CUT], parts, strict=True))
        cells = [0]
        for name, share in self.shares:
            choices = [known[name]] if name in known else range(share)
            cells = [cell * share + part for cell in cells for part in choices]
        return [self.first + cell for cell in cells]


@dataclass(frozen=True)
class HeadGrids:
    """Where everything that a head reads goes.

    ``heavy``: hashes of heavy values by rule and axis.  ``rows``: estimated, by relation.
    """

    partitions: int
    grids: tuple[Grid, ...]
    heavy: tuple[Mapping[str, tuple[int, ...]], ...]
    rows: Mapping[str, float]

    @property
    def n_cells(self) -> int:
        return sum(grid.n_cells for grid in self.grids)

    def partition_of(self, cell: int) -> int:
        """The Spark partition that evaluates a cell."""
        return cell % self.partitions

    def to_json(self) -> str:
        grids = [[grid.rule, grid.shares, grid.heavy, grid.light, grid.expected] for grid in self.grids]
        return json.dumps([self.partitions, grids, [dict(heavy) for heavy in self.heavy], dict(self.rows)])

    @classmethod
    def from_json(cls, text: str) -> HeadGrids:
        partitions, grids, heavy, rows = json.loads(text)
        made = [
            Grid(rule, _pairs(shares), tuple(heavy_axes), tuple(light), _pairs(expected))
            for rule, shares, heavy_axes, light, expected in grids
        ]
        heavy_hashes = [{axis: tuple(hashes) for axis, hashes in of_rule.items()} for of_rule in heavy]
        return cls(partitions, _numbered(made), tuple(heavy_hashes), rows)


def plan_grids(plan: HeadPlan, sample: InputSample, partitions: int) -> HeadGrids:
    """Grids for every rule of a head: the least load, heavy values apart."""
    grids: list[Grid] = []
    heavy = []
    perhaps = replace(sample, rows={name: rows + UNSURE for name, rows in sample.rows.items()})
    for number, rule in enumerate(plan.rules):
        reads = rule.reads(perhaps.rows)
        known = rule.reads(sample.rows)
        skew = _skew(rule, sample)
        even = choose_shares(reads, rule.axes, partitions, skew)
        of_rule = _heavy_values(rule, even, perhaps)
        heavy.append({axis: tuple(sorted(hashes)) for axis, hashes in of_rule.items()})
        axes = tuple(of_rule)
        for mask in range(2 ** len(axes)):
            taken = tuple(axis for place, axis in enumerate(axes) if mask >> place & 1)
            left = tuple(axis for axis in axes if axis not in taken)
            kept = [_restricted(read, taken, left, of_rule, sample) for read in reads]
            shares = choose_shares(kept, [axis for axis in rule.axes if axis not in taken], partitions, skew)
            grid = Grid(number, tuple(shares.items()), taken, left)
            labels = (role.placement(grid.marks).label for role in rule.roles)
            taken_rows = (_restricted(read, taken, left, of_rule, sample).rows for read in known)
            expected = dict(zip(labels, taken_rows, strict=True))
            grids.append(replace(grid, expected=tuple(expected.items())))
    return HeadGrids(partitions, _numbered(grids), tuple(heavy), dict(sample.rows))


def given_grids(plan: HeadPlan, shares: Mapping[str, int], partitions: int) -> HeadGrids:
    """Grids with the caller's shares, for axes that a rule has; nothing is known of sizes and skew."""
    grids = [
        Grid(number, tuple((axis, shares[axis]) for axis in rule.axes if shares.get(axis, 1) > 1))
        for number, rule in enumerate(plan.rules)
    ]
    return HeadGrids(partitions, _numbered(grids), tuple({} for _ in plan.rules), {})


def _pairs(entries: Sequence[Sequence[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in entries)


def _numbered(grids: Sequence[Grid]) -> tuple[Grid, ...]:
    numbered, first = [], 0
    for grid in grids:
        numbered.append(replace(grid, first=first))
        first += grid.n_cells
    return tuple(numbered)


def _skew(rule: HeadRule, sample: InputSample) -> dict[str, float]:
    """By axis, pairs of rows that agree on it, as far as frequent values tell."""
    found: dict[str, float] = {}
    for role in rule.roles:
        for column, axis in role.axes:
            frequent = sample.frequent.get((role.relation, column), {})
            found[axis] = found.get(axis, 0.0) + sum(rows * rows for rows in frequent.values())
    return found


def _heavy_values(rule: HeadRule, even: Mapping[str, int], sample: InputSample) -> dict[str, set[int]]:
    """The hashes of the heavy values of each axis that has any."""
    average = load(rule.reads(sample.rows), even)
    found: dict[str, dict[int, float]] = {}
    for role in rule.roles:
        for column, axis in role.axes:
            if even.get(axis, 1) == 1:
                continue
            others = math.prod(even.get(name, 1) for _, name in role.axes if name != axis)
            for value, rows in sample.frequent.get((role.relation, column), {}).items():
                part = rows / others / average if average else 0.0
                if part > HEAVY_LOAD:
                    of_axis = found.setdefault(axis, {})
                    of_axis[value] = max(part, of_axis.get(value, 0.0))
    worst = sorted(found, key=lambda axis: (-max(found[axis].values()), axis))[:MOST_HEAVY]
    return {axis: set(found[axis]) for axis in rule.axes if axis in worst}


def _restricted(
    read: Read,
    heavy: Sequence[str],
    light: Sequence[str],
    values: Mapping[str, set[int]],
    sample: InputSample,
) -> Read:
    """What a grid takes of a read: heavy values of some axes, none of others; rows are estimated."""
    rows, key = read.rows, read.key
    for column, axis in read.axes:
        if axis in heavy or axis in light:
            key += f" {column}{HEAVY if axis in heavy else LIGHT}"
            counts = sample.frequent.get((read.key, column), {})
            part = sum(counts.get(value, 0.0) for value in values[axis])
            part = min(1.0, part / read.rows) if read.rows else 0.0
            rows *= part if axis in heavy else 1.0 - part
    return replace(read, rows=rows, key=key)
