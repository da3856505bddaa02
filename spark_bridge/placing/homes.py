"""Homes: of the cells that a tuple is copied to the one where it is counted, and read from again.

A relation's home is one atom that reads it.  A tuple goes to the cells of all grids of the atom's rule whose
heavy axes allow it, and in each to all parts of the axes that the atom does not have.  Its home is the cell
where those axes are neither heavy nor cut off from their first part.

Invariant: each tuple of a relation is in one cell that :meth:`Homes.of` names for the relation.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_bridge.placing.grids import Grid, HeadGrids
from spark_bridge.placing.head_plan import HeadPlan
from spark_bridge.placing.head_rule import Role


class Homes:
    """The homes of relations in the cells of a head that reads them."""

    def __init__(self, plan: HeadPlan, grids: HeadGrids, relations: Iterable[str]) -> None:
        self._grids = grids
        self._roles: dict[str, tuple[int, Role]] = {}
        for name in relations:
            reading = ((n, role) for n, rule in enumerate(plan.rules) for role in rule.roles)
            self._roles[name] = next((n, role) for n, role in reading if role.relation == name)

    def of(self, cell: int) -> dict[str, str]:
        """The relations of which some tuples have their home in this cell, with the labels of placements."""
        grid = next(grid for grid in reversed(self._grids.grids) if grid.first <= cell)
        parts = _parts(grid, cell)
        found = {}
        for name, (rule, role) in self._roles.items():
            axes = {axis for _, axis in role.axes}
            first = all(part == 0 for axis, part in parts.items() if axis not in axes)
            if rule == grid.rule and axes.issuperset(grid.heavy) and first:
                found[name] = role.placement(grid.marks).label
        return found


def _parts(grid: Grid, cell: int) -> dict[str, int]:
    """The part of each cut axis that a cell is of."""
    left, parts = cell - grid.first, {}
    for axis, share in reversed(grid.shares):
        left, parts[axis] = divmod(left, share)
    return parts
