"""`explain`: how a program is evaluated, and with ``analyze`` what that cost.

For every body: the key order with its reason, the index that each atom reads,
per depth what happens there with the estimated and measured figures, and what
the search cannot do and is done on its rows instead.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from lftj import layout as L
from lftj.evaluation import BodyRun, Evaluation
from lftj.problem import JoinAtom, connected
from lftj.syntax import Aggregate


@dataclass(frozen=True)
class DepthReport:
    """One depth of a plan: estimates, and measured operations when analyzed."""

    variable: str
    participants: tuple[str, ...]
    notes: tuple[str, ...]
    estimated_matches: float
    estimated_operations: float
    opens: int | None
    nexts: int | None
    seeks: int | None


@dataclass(frozen=True)
class BodyReport:
    """One body of one rule for one head."""

    head: str
    rule: str
    order: tuple[str, ...]
    reason: str
    piloted: tuple[tuple[tuple[str, ...], float], ...]
    indexes: tuple[str, ...]
    depths: tuple[DepthReport, ...]
    notes: tuple[str, ...]
    rows: int | None

    @property
    def operations(self) -> int:
        """Measured opens, nexts and seeks together; 0 when not analyzed."""
        return sum((d.opens or 0) + (d.nexts or 0) + (d.seeks or 0) for d in self.depths)


@dataclass(frozen=True)
class Explanation:
    """``str()`` is the text to read; ``bodies`` has the figures."""

    bodies: tuple[BodyReport, ...]
    analyzed: bool
    seconds: float | None

    def __str__(self) -> str:
        return "\n\n".join(_text(body, self.analyzed) for body in self.bodies) + (
            f"\n\nevaluated in {self.seconds:.3f} s" if self.seconds is not None else ""
        )

    __repr__ = __str__


def explain(evaluation: Evaluation, name: str, analyze: bool) -> Explanation:
    """Plan (and when ``analyze`` evaluate) everything that ``name`` needs."""
    started = time.perf_counter()
    evaluation.derive_for(name)  # later rules are planned on the data of earlier ones
    if analyze:
        for _ in evaluation.head_batches(name):
            pass
    else:
        evaluation.plan_head(name)
    seconds = time.perf_counter() - started if analyze else None
    return Explanation(tuple(_report(run, analyze) for run in evaluation.runs), analyze, seconds)


def _report(run: BodyRun, analyze: bool) -> BodyReport:
    plan, problem, lowered = run.plan, run.plan.problem, run.lowered
    notes = list(_notes(run))
    depths = []
    for depth, (name, estimate) in enumerate(zip(plan.order, run.choice.estimates, strict=True)):
        counts = run.counters.table[depth] if analyze else np.zeros(3, dtype=np.int64)
        depths.append(
            DepthReport(
                variable=problem.labels.get(name, name),
                participants=tuple(a.label for a in problem.atoms if name in a.variables),
                notes=tuple(_depth_notes(run, depth, name)),
                estimated_matches=estimate.matches,
                estimated_operations=estimate.operations,
                opens=int(counts[L.OPENS]) if analyze else None,
                nexts=int(counts[L.NEXTS]) if analyze else None,
                seeks=int(counts[L.SEEKS]) if analyze else None,
            )
        )
    if lowered.empty:
        notes.append(f"empty without a search: {lowered.empty}")
    return BodyReport(
        head=run.head.relation,
        rule=" ".join(run.rule.text.split()),
        order=tuple(problem.labels.get(name, name) for name in plan.order),
        reason=run.choice.reason,
        piloted=run.choice.piloted,
        indexes=tuple(
            [_index_text(atom, plan.order) for atom in problem.atoms]
            + ["not " + _index_text(atom, plan.order) for atom in problem.negations]
        ),
        depths=tuple(depths),
        notes=tuple(notes),
        rows=run.rows if analyze else None,
    )


def _notes(run: BodyRun) -> list[str]:
    plan, problem, lowered = run.plan, run.plan.problem, run.lowered
    notes = []
    parts = connected(frozenset(problem.variables), problem.edges)
    if len(parts) > 1 and not problem.existentials:
        shown = "; ".join(", ".join(problem.labels.get(n, n) for n in sorted(part)) for part in parts)
        notes.append(f"cartesian product of parts that share no variable: {shown}")
    if plan.needs_distinct:
        notes.append("an existential variable stands before a head variable: all distinct rows are held in memory")
    if isinstance(run.head.value, Aggregate):
        notes.append(f"{run.head.value.function}: the search counts the assignments behind each row")
    from lftj.expressions import text_of

    for comparison in lowered.comparisons:
        text = f"{text_of(comparison.left)} {comparison.operator} {text_of(comparison.right)}"
        notes.append(f"on the rows, after the search: {text}")
    for assignment in lowered.assignments:
        notes.append(f"on the rows, after the search: {assignment.variable} = {text_of(assignment.expression)}")
    for negation in lowered.negations:
        notes.append(f"on the rows, after the search: not {negation.relation}, which reads an assigned variable")
    return notes


def _depth_notes(run: BodyRun, depth: int, name: str) -> list[str]:
    plan, problem = run.plan, run.plan.problem
    notes = []
    bound = set(plan.order[: depth + 1])
    for condition in problem.conditions:
        if name in condition.variables and set(condition.variables) <= bound and name not in problem.labels:
            notes.append(condition.label)
    for atom in problem.negations:
        if name in atom.variables and set(atom.variables) <= bound:
            notes.append(f"not {atom.label}")
    for first, last in plan.segments:
        if first <= depth <= last:
            notes.append("exists: stops at the first success")
    if depth >= plan.emit and problem.counted:
        notes.append("counted")
    if plan.stages(depth):
        notes.append("fixed part intersected once")
    return notes


def _index_text(atom: JoinAtom, order: tuple[str, ...]) -> str:
    """``edge(a, b)  by src, dst``: the atom and its index's columns in key order."""
    place = {name: depth for depth, name in enumerate(order)}
    names = [c.name for c in atom.relation.schema.columns]
    pairs = sorted(zip(atom.variables, atom.columns, strict=True), key=lambda pair: place[pair[0]])
    columns = ", ".join(names[column] for _, column in pairs) or "its number of rows"
    same = "".join(f", where {names[a]} = {names[b]}" for a, b in atom.equal)
    return f"{atom.label}  by {columns}{same}"


def _text(body: BodyReport, analyzed: bool) -> str:
    lines = [body.rule, f"  key order   {', '.join(body.order) or '(none)'}   ({body.reason})"]
    for order, operations in body.piloted:
        lines.append(f"    pilot     {', '.join(order)}: {operations:,.0f} operations")
    lines += [f"  index       {text}" for text in body.indexes]
    head = ["depth", "key", "participants", "est. matches", "est. operations"]
    head += ["opens", "nexts", "seeks"] if analyzed else []
    rows = [head]
    for number, depth in enumerate(body.depths, 1):
        row = [str(number), depth.variable, " ∩ ".join(depth.participants)]
        row += [f"{depth.estimated_matches:,.0f}", f"{depth.estimated_operations:,.0f}"]
        row += [f"{n:,}" for n in (depth.opens, depth.nexts, depth.seeks) if n is not None]
        rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row, depth_notes in zip(rows, [(), *(d.notes for d in body.depths)], strict=True):
        cells = [
            f"{cell:<{width}}" if i < 3 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"  {'  '.join(cells)}   {'; '.join(depth_notes)}".rstrip())
    lines += [f"  note: {note}" for note in body.notes]
    if body.rows is not None:
        lines.append(f"  measured: {body.rows:,} rows, {body.operations:,} operations")
    return "\n".join(lines)
