"""`explain`: which cells a join would have, and what would be sent to them.

    tri(a, b, c), 8 partitions, one shuffle
      tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).
        8 cells, planned once: a in 2 parts, b in 2 parts, c in 2 parts
          edge(a, b)  200,000 rows, 2 copies
          edge(b, c)  200,000 rows, 2 copies
          edge(a, c)  200,000 rows, 2 copies
          sent: 1,200,000 rows, 150,000 to a cell (estimated)

Each worker process plans the cells of a grid once, by the first that it gets.  Rows are estimated from the
sample that the join itself would take (:mod:`spark_bridge.placing.key_sample`); of small inputs it takes
none, and they are what their bytes would hold of numbers (:mod:`spark_bridge.placing.known_sizes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.values.shown_text import ShownText, counted
from lftj.values.streams import span_text
from spark_bridge.join import (
    BY_OWN,
    Joining,
    When,
    check_when,
    checked_asked,
    checked_rounds,
    known_grids,
    takes_rounds,
)
from spark_bridge.narrowing.narrowed_rules import Condition
from spark_bridge.placing.grids import Grid, HeadGrids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.head_rule import HeadRule
from spark_bridge.placing.key_sample import sampled_grids
from spark_bridge.placing.known_sizes import IN_PROCESS, ONE_PROCESS
from spark_bridge.placing.placing import InputNulls
from spark_bridge.placing.read_columns import checked_keys
from spark_bridge.placing.recursive_rule import RecursiveRule
from spark_bridge.recursion.rounds import most_rounds
from spark_bridge.recursion.step_rules import best_of


def explain(
    rule: str,
    relations: Mapping[str, DataFrame],
    *,
    head: str | None = None,
    partitions: int | None = None,
    shares: Mapping[str, int] | None = None,
    nulls: InputNulls = "refuse",
    when: When = "cyclic",
    key: Mapping[str, Sequence[str]] | None = None,
    where: Condition | Sequence[Condition] = (),
    columns: Sequence[str] | None = None,
    max_rounds: int | None = None,
) -> ShownText:
    """How :func:`~spark_bridge.join.join` would cut and send its inputs, as a text.

    Runs the query that samples the inputs, where the join would take a sample, of heads that other heads
    read the joins, and of those by rounds a job for each relation, which counts it; no round, and nothing
    else.  Raises as ``join`` does.
    """
    check_when(when)
    rounds, keys = checked_rounds(max_rounds), checked_keys(key or {}, relations)
    whole = Joining(rule, relations, head, partitions, shares, nulls, when, rounds, frozenset(keys))
    joining, asked = whole.narrowed(checked_asked(where, columns, None))
    text, frames = joining.heads(run_rounds=False)
    plans, n_partitions = text.plans(), joining.n_partitions
    choices = dict(joining.choices)
    for plan in (plan for plan in plans if plan.name not in frames):
        is_by_rounds = takes_rounds(plan, shares)
        choices[plan.name] = _rounds(text, plan, frames) if is_by_rounds else "planned behind the rounds"
    read = {name: frames[name] for name, _ in text.relations}
    known = [known_grids(text, number, read, n_partitions, shares) for number in range(len(plans))]
    grids: list[HeadGrids | None] = []
    for number, found in enumerate(known):
        if choices.get(shown_name(plans[number].name)) == BY_OWN or plans[number].name not in frames:
            grids.append(None)
        else:
            grids.append(sampled_grids(frames, text, number, n_partitions) if found is None else found)
    small = [found is not None and shares is None for found in known]
    said = [*asked.pushed, *(f"asked of the rows: {condition}" for condition in asked.behind)]
    return ShownText("\n".join([*said, explained(plans, grids, small, choices=choices)]))


def explained(
    plans: Sequence[HeadPlan],
    grids: Sequence[HeadGrids | None],
    small: Sequence[bool] | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
    timed: ProgramText | None = None,
    choices: Mapping[str, str] | None = None,
) -> ShownText:
    """The text of :func:`explain` for heads with their grids.

    ``small``: whether the inputs of each are known to be small, so that no sample is taken; of none, if None.
    ``keys``: of relations that have one, its columns.  ``timed``: a program that has streams, if it has.
    ``choices``: what is to be said of heads without a cycle; those by Spark's own operators have no grids.
    """
    small = [False] * len(plans) if small is None else small
    heads = zip(plans, grids, small, strict=True)
    lines = [
        f"{name}, key {', '.join(key)}: changes go by the key, in a shuffle before, to its rows"
        for name, key in (keys or {}).items()
    ]
    lines += [] if timed is None else _streams(timed)
    return ShownText("\n".join([*lines, *(line for head in heads for line in _head(*head, choices or {}))]))


def _rounds(text: ProgramText, plan: HeadPlan, frames: Mapping[str, DataFrame]) -> str:
    """What is to be said of a head by rounds: beside which figures other ways are quicker."""
    lines = [
        "by rounds: no column stays the same in each rule",
        f"{counted(most_rounds(text), 'round')} at most, of a checkpoint and three shuffles, a second or so",
    ]
    known = {name: frames[name].count() for name in plan.reads if name in frames}
    lines += [f"{name}  {counted(n_rows, 'row')}" for name, n_rows in known.items()]
    n_bytes = sum(n_rows * len(frames[name].columns) * IN_PROCESS for name, n_rows in known.items())
    if n_bytes <= ONE_PROCESS:
        lines.append(
            f"one process would take {n_bytes:,} bytes for that, and be quicker: shares={{}} (one task),"
            " lftj.Database, or MaintainedJoin(where='driver')"
        )
    else:
        lines.append(f"one process would take {n_bytes:,} bytes for that, and for the head what it has")
    rule = plan.by_rounds
    assert rule is not None
    if best_of(rule, plan.name):
        n_rounds = max(1, sum(known.values())).bit_length()
        lines.append(
            "values go one step a round: for components over ways of more than some"
            f" {n_rounds} steps (log2 of the rows), GraphFrames' connectedComponents takes fewer rounds"
        )
    return "\n".join(lines)


def _streams(text: ProgramText) -> list[str]:
    lines = []
    schemas = dict(text.relations)
    for name, stream in text.streams:
        arrow = schemas[name].field(stream.time).type
        said = [f"late {span_text(stream.lateness, arrow)}"] if stream.lateness else []
        said += [] if stream.keep is None else [f"keep {span_text(stream.keep, arrow)}"]
        said += [f"recent rows as {each.name!r}" for each in text.recents if each.stream == name]
        lines.append(
            f"{', '.join([f'stream {name}({stream.time})', *said])}: changes go by the clock of all streams,"
            " in two shuffles before, to its rows"
        )
    if (final := text.final) is not None:
        lines.append(f"{final.name}: rows of {final.head} as they close, in a shuffle behind")
    return lines


def _head(plan: HeadPlan, grids: HeadGrids | None, is_small: bool, choices: Mapping[str, str]) -> list[str]:
    columns = ", ".join(column.name for column in plan.schema.columns)
    said = choices.get(plan.name)
    if grids is None and is_auxiliary(plan.name) and said is None:
        return []
    if grids is None:
        first, *more = (said or "").splitlines()
        rules = [line for rule in plan.rules for line in _texts(rule)]
        return [f"{plan.name}({columns}), {first}", *rules, *(f"    {line}" for line in more)]
    shuffles = "two shuffles: what cells give is combined by key" if plan.crosses else "one shuffle"
    shuffles += "; small, without a sample" if is_small else ""
    lines = [f"{plan.name}({columns}), {counted(grids.partitions, 'partition')}, {shuffles}"]
    lines += [] if said is None else [f"  {said}"]
    for number, rule in enumerate(plan.rules):
        lines += _texts(rule)
        if isinstance(rule, RecursiveRule):
            stays = f"{', '.join(rule.axes)} the same in each rule" if rule.axes else "all in one cell"
            lines.append(f"    {stays}: a cell goes round by itself")
        for grid in grids.grids:
            if grid.rule == number:
                lines += _grid(plan, grid, grids)
    return lines


def _texts(rule: HeadRule) -> list[str]:
    return [f"  {line.strip()}" for text in rule.texts for line in text.strip().splitlines()]


def _grid(plan: HeadPlan, grid: Grid, grids: HeadGrids) -> list[str]:
    cuts = ", ".join(f"{axis} in {share} parts" for axis, share in grid.shares) or "nothing is cut"
    heavy = grids.heavy[grid.rule]
    kinds = [f"{axis} heavy ({counted(len(heavy[axis]), 'value')})" for axis in grid.heavy]
    kinds += [f"{axis} not heavy" for axis in grid.light]
    cells = counted(grid.n_cells, "cell") + (", planned once" if grid.n_cells > 1 else "")
    lines = [f"    {cells}: {cuts}{'; ' if kinds else ''}{', '.join(kinds)}"]
    placements = plan.rules[grid.rule].placements(grid.marks)
    width = max((len(placement.label) for placement in placements), default=0)
    expected = dict(grid.expected)
    for placement in placements:
        known = f"{expected[placement.label]:,.0f}" if placement.label in expected else "?"
        copies = counted(grid.copies(placement), "copy", "copies")
        lines.append(f"      {placement.label:<{width}}  {known} rows, {copies}")
    if expected:
        total = sum(expected[placement.label] * grid.copies(placement) for placement in placements)
        lines.append(f"      sent: {total:,.0f} rows, {total / grid.n_cells:,.0f} to a cell (estimated)")
    return lines
