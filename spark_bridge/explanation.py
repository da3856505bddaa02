"""`explain`: which cells a join would have, and what would be sent to them.

    tri(a, b, c), 8 partitions, one shuffle
      tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).
        8 cells, planned once: a in 2 parts, b in 2 parts, c in 2 parts
          edge(a, b)  200,000 rows, 2 copies
          edge(b, c)  200,000 rows, 2 copies
          edge(a, c)  200,000 rows, 2 copies
          sent: 1,200,000 rows, 150,000 to a cell (estimated)

Each worker process plans the cells of a grid once, by the first that it gets.  Rows are estimated from the
sample that the join itself would take (:mod:`spark_bridge.placing.key_sample`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lftj.values.shown_text import ShownText
from spark_bridge.join import checked_grids, chosen_partitions, head_frames
from spark_bridge.placing.grids import Grid, HeadGrids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.key_sample import sampled_grids
from spark_bridge.placing.placing import Nulls
from spark_bridge.placing.schemas import arrow_schemas


def explain(
    rule: str,
    relations: Mapping[str, DataFrame],
    *,
    head: str | None = None,
    partitions: int | None = None,
    shares: Mapping[str, int] | None = None,
    nulls: Nulls = "refuse",
) -> ShownText:
    """How :func:`~spark_bridge.join.join` would cut and send its inputs, as a text.

    Runs the query that samples the inputs, and of heads that other heads read the joins; nothing else.
    Raises as ``join`` does.
    """
    text = ProgramText(rule, head, arrow_schemas(relations))
    plans = text.plans()
    n_partitions = chosen_partitions(next(iter(relations.values())).sparkSession, partitions)
    frames = head_frames(text, relations, n_partitions, shares, nulls)
    if shares is None:
        grids = [sampled_grids(frames, text, number, n_partitions) for number in range(len(plans))]
    else:
        grids = [checked_grids(plans, plan, shares, n_partitions) for plan in plans]
    return explained(plans, grids)


def explained(plans: Sequence[HeadPlan], grids: Sequence[HeadGrids]) -> ShownText:
    """The text of :func:`explain` for heads with their grids."""
    lines = [line for plan, of_head in zip(plans, grids, strict=True) for line in _head(plan, of_head)]
    return ShownText("\n".join(lines))


def _head(plan: HeadPlan, grids: HeadGrids) -> list[str]:
    columns = ", ".join(column.name for column in plan.schema.columns)
    shuffles = "two shuffles: what cells give is combined by key" if plan.crosses else "one shuffle"
    lines = [f"{plan.name}({columns}), {_number(grids.partitions, 'partition')}, {shuffles}"]
    for number, rule in enumerate(plan.rules):
        lines += [f"  {line.strip()}" for line in rule.checked.text.strip().splitlines()]
        for grid in grids.grids:
            if grid.rule == number:
                lines += _grid(plan, grid, grids)
    return lines


def _grid(plan: HeadPlan, grid: Grid, grids: HeadGrids) -> list[str]:
    cuts = ", ".join(f"{axis} in {share} parts" for axis, share in grid.shares) or "nothing is cut"
    heavy = grids.heavy[grid.rule]
    kinds = [f"{axis} heavy ({_number(len(heavy[axis]), 'value')})" for axis in grid.heavy]
    kinds += [f"{axis} not heavy" for axis in grid.light]
    cells = _number(grid.n_cells, "cell") + (", planned once" if grid.n_cells > 1 else "")
    lines = [f"    {cells}: {cuts}{'; ' if kinds else ''}{', '.join(kinds)}"]
    placements = plan.rules[grid.rule].placements(grid.marks)
    width = max((len(one.label) for one in placements), default=0)
    expected = dict(grid.expected)
    for one in placements:
        known = f"{expected[one.label]:,.0f}" if one.label in expected else "?"
        lines.append(
            f"      {one.label:<{width}}  {known} rows, {_number(grid.copies(one), 'copy', 'copies')}"
        )
    if expected:
        total = sum(expected[one.label] * grid.copies(one) for one in placements)
        lines.append(f"      sent: {total:,.0f} rows, {total / grid.n_cells:,.0f} to a cell (estimated)")
    return lines


def _number(n: int, one: str, many: str = "") -> str:
    """
    >>> _number(1, "cell"), _number(2000, "cell"), _number(2, "copy", "copies")
    ('1 cell', '2,000 cells', '2 copies')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
