"""`explain`: how a program is evaluated, and with ``analyze`` what that cost.

For every body: the key order with its reason, the index that each atom reads,
per depth what happens there with the estimated and measured figures, and what
the search cannot do and is done on its rows instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lftj.aggregates.group_names import spelled_call
from lftj.aggregates.shared_rows import keeps_no_rows
from lftj.evaluation.evaluation import Evaluation
from lftj.evaluation.nearest import Nearest
from lftj.evaluation.orientation import cheaper_orientation
from lftj.evaluation.plan_picture import plan_picture
from lftj.evaluation.reports import EXISTS, BodyReport, DepthReport
from lftj.evaluation.runs import BodyRun, ScanRun
from lftj.evaluation.strata_text import strata_boxes, strata_text
from lftj.evaluation.wanted import wanted_variables
from lftj.language.body import CheckedHead, CheckedProgram, CheckedRule
from lftj.language.several_aggregates import joins_auxiliary
from lftj.language.syntax import Aggregate
from lftj.pictures.layers import Box
from lftj.planning.lowered import Lowered
from lftj.rewriting.computed_keys import holds_computed, shown_rule
from lftj.rewriting.key_relations import is_restricted
from lftj.search.problem import JoinAtom, connected
from lftj.search.row_filter import tests_text
from lftj.values.shown_text import preformatted

HELD = "all distinct rows are held in memory"


@dataclass(frozen=True)
class Explanation:
    """``str()`` is the text to read; ``bodies`` has the figures."""

    bodies: tuple[BodyReport, ...]
    analyzed: bool
    seconds: float | None
    strata: tuple[Box, ...] = ()  # where a head reads another one
    recursion: tuple[str, ...] = ()  # of each recursive component its rules' terms, and the rounds
    sql: str = ""  # what was asked, and the rules that it becomes

    def __str__(self) -> str:
        parts = [self.sql] if self.sql else []
        parts += [strata_text(self.strata)] if self.strata else []
        parts += [_text(body, self.analyzed) for body in self.bodies]
        parts += self.recursion
        if self.seconds is not None:
            parts.append(f"evaluated in {self.seconds:.3f} s")
        return "\n\n".join(parts)

    __repr__ = __str__

    def svg(self) -> str:
        """The plans as a picture, an SVG document: a row per key variable, a column per atom."""
        return plan_picture(self.bodies, self.strata)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f"{preformatted(str(self))}\n{self.svg()}"


def explain(evaluation: Evaluation, analyze: bool) -> Explanation:
    """Plan (and when ``analyze`` evaluate) everything that the target needs."""
    started = time.perf_counter()
    if analyze:
        for _ in evaluation.batches():
            pass
    else:
        evaluation.plan()
    seconds = time.perf_counter() - started if analyze else None
    done = evaluation.done
    reports = (
        *(report for run in done.bodies for report in _reports(evaluation, run, analyze)),
        *(_scan_report(evaluation, run, analyze) for run in done.scans),
        *map(_joined_report, done.joined),
    )
    drawn: tuple[Box, ...] = ()
    if len(evaluation.program.strata) > 1 or done.fixpoints:
        program = evaluation.program
        drawn = strata_boxes(
            [rule for stratum in program.strata for rule in stratum], _demand(program, analyze)
        )
    recursion = tuple("\n".join(fixpoint.describe()) for fixpoint in done.fixpoints)
    return Explanation(reports, analyze, seconds, drawn, recursion)


def _demand(program: CheckedProgram, analyze: bool) -> Callable[[str], str]:
    """What to say of a head that is read with bound keys; why it is whole where that was measured."""

    def about(name: str) -> str:
        return program.demand.get(name, "") if analyze or is_restricted(program, name) else ""

    return about


def _reports(evaluation: Evaluation, run: BodyRun, analyze: bool) -> Iterator[BodyReport]:
    """What was planned and measured, and for each further head that it feeds a report that says so."""
    report = _report(evaluation, run, analyze)
    yield report
    first, *others = run.heads
    for head in others:
        note = f"{_spelled(head)}: no search of its own, its rows are those of {_spelled(first)}"
        yield replace(
            report,
            head=head.relation,
            piloted=(),
            indexes=(),
            depths=(),
            notes=(note,),
            shared=first.relation,
        )


def _spelled(head: CheckedHead) -> str:
    """An aggregate head as a rule would write it: ``total[p] = sum(c)``."""
    assert isinstance(head.value, Aggregate)
    return f"{head.relation}[{', '.join(head.variables)}] = {spelled_call(head.value)}"


def _report(evaluation: Evaluation, run: BodyRun, analyze: bool) -> BodyReport:
    planned, plan = run.planned, run.planned.plan
    problem = plan.problem
    notes = _notes(evaluation, run)
    depths = []
    for depth, (name, estimate) in enumerate(zip(plan.order, planned.choice.estimates, strict=True)):
        opens, nexts, seeks = run.counters[depth].tolist() if analyze else (None, None, None)
        depths.append(
            DepthReport(
                variable=problem.labels.get(name, name),
                participants=tuple(a.label for a in problem.atoms if name in a.variables),
                notes=tuple(_depth_notes(run, depth, name)),
                estimated_matches=estimate.matches,
                estimated_operations=estimate.operations,
                opens=opens,
                nexts=nexts,
                seeks=seeks,
            )
        )
    if planned.lowered.empty:
        notes.append(f"empty without a search: {planned.lowered.empty}")
    whole = not planned.parts
    if analyze and whole and (oriented := cheaper_orientation(problem, plan.order, evaluation.relations)):
        notes.append(oriented)
    return BodyReport(
        head=run.heads[0].relation,
        rule=shown_rule(run.rule),
        order=tuple(problem.labels.get(name, name) for name in plan.order),
        reason=planned.choice.reason,
        piloted=planned.choice.piloted,
        indexes=tuple(
            [_index_text(atom, plan.order) for atom in problem.atoms]
            + ["not " + _index_text(atom, plan.order) for atom in problem.negations]
        ),
        depths=tuple(depths),
        notes=tuple(notes),
        rows=run.rows if analyze else None,
    )


def _scan_report(evaluation: Evaluation, run: ScanRun, analyze: bool) -> BodyReport:
    """Of a body that was not searched."""
    first, scan = run.heads[0], run.scan
    added_up = keeps_no_rows(run.heads, run.rule.bodies[0].types)
    notes = [f"{', '.join(map(_spelled, run.heads))}: added up as the rows come"] if added_up else []
    if (nearest := _nearest_note(evaluation, run, run.lowered)) is not None:
        notes = [nearest]
    if evaluation.request.threads > 1:
        notes.append("one thread scans")
    tested = f", those where {tests_text(scan.rows.tests)}" if scan.rows.tests else ""
    return BodyReport(
        head=first.relation,
        rule=shown_rule(run.rule),
        order=(),
        reason="",
        piloted=(),
        indexes=(),
        depths=(),
        notes=(*notes, *_row_notes(run.lowered, "scan")),
        rows=run.rows if analyze else None,
        scanned=f"{scan.atom.label}: {scan.n_rows:,} rows{'' if scan.lookups else ', no index'}{tested}",
        lookups=tuple(f"{one.atom.label}  by {one.by}" for one in scan.lookups),
    )


def _joined_report(rule: CheckedRule) -> BodyReport:
    """Of a joining rule."""
    first, *others = [atom.relation for atom in rule.bodies[0].atoms]
    note = f"no search: its columns are those of {', '.join([first, *others])}, which have the same groups"
    return BodyReport(
        head=rule.heads[0].relation,
        rule=" ".join(rule.text.split()),
        order=(),
        reason="",
        piloted=(),
        indexes=(),
        depths=(),
        notes=(note,),
        rows=None,
        shared=first,
    )


def _held(evaluation: Evaluation, run: BodyRun) -> list[str]:
    """Why rows can't leave as the search finds them."""
    head, plan = run.heads[0], run.planned.plan
    reasons = []
    if head.schema.functional:
        reasons.append("a key may come up with two values")
    if len(evaluation.program.rules_of(head.relation)) > 1 or len(run.rule.bodies) > 1:
        reasons.append("rows of several bodies may be equal")
    known = plan.problem.closure(wanted_variables(head))
    hidden = [name for name in plan.problem.emitted if name not in known]
    if hidden:
        reasons.append(f"{', '.join(hidden)} is not in the head")
    if plan.plan.needs_distinct:
        reasons.append("an existential variable stands before a head variable")
    return reasons


def _notes(evaluation: Evaluation, run: BodyRun) -> list[str]:
    (head, *others), problem, kept = run.heads, run.planned.plan.problem, run.planned.kept
    notes = [*([kept] if kept else []), *run.planned.parts.values()]
    parts = connected(frozenset(problem.variables) - problem.labels.keys(), problem.edges)
    multiplying = [part for part in parts if problem.counted or part & set(problem.emitted)]
    if len(multiplying) > 1 and not (joins_auxiliary(run.body) or holds_computed(head.relation)):
        shown = "; ".join(", ".join(sorted(part)) for part in multiplying)
        notes.append(f"cartesian product of parts that share no variable: {shown}")
    if evaluation.program.component_of(head.relation) and head.extremum:
        notes.append(f"{head.extremum}: one value per key is held")
    elif head.windows:
        functions = dict.fromkeys(window.function for window in head.windows)
        notes.append(f"windows {', '.join(functions)}: {HELD}, and ordered by partition")
    elif head.schema.bag:
        notes.append(f"copies of a bag: {HELD}, with how often each is there")
    elif isinstance(head.value, Aggregate):
        if (nearest := _nearest_note(evaluation, run, run.planned.lowered)) is not None:
            notes.append(nearest)
        functions = dict.fromkeys(h.value.function for h in run.heads if isinstance(h.value, Aggregate))
        one_body = "the search counts the assignments behind each row"
        several = f"{HELD}, for an assignment of several alternatives counts once"
        notes.append(f"{', '.join(functions)}: {one_body if len(run.rule.bodies) == 1 else several}")
        if others:
            notes.append(f"this search also feeds {', '.join(map(_spelled, others))}")
    else:
        notes += [f"{reason}: {HELD}" for reason in _held(evaluation, run)]
    return [*notes, *_row_notes(run.planned.lowered, "search")]


def _nearest_note(evaluation: Evaluation, run: BodyRun | ScanRun, lowered: Lowered) -> str | None:
    """Of what an extremum is found in: which side of its searches this is, or why there are none."""
    found = evaluation.nearest(run.rule, run.heads)
    if isinstance(found, Nearest):
        return (
            f"nearest {'answers' if found.join.value in lowered.types else 'askers'}: {found.join.described}"
        )
    return None if found is None else f"nearest: no search for it: {found}"


def _row_notes(lowered: Lowered, before: str) -> list[str]:
    """What is done on the rows that a search or a scan gives."""
    return [f"on the rows, after the {before}: {text}" for text in lowered.on_rows]


def _depth_notes(run: BodyRun, depth: int, name: str) -> list[str]:
    plan = run.planned.plan
    problem = plan.problem
    notes = []
    bound = set(plan.order[: depth + 1])
    for condition in problem.conditions:
        if name in condition.variables and set(condition.variables) <= bound and name not in problem.labels:
            notes.append(condition.label)
    for atom in problem.negations:
        if name in atom.variables and set(atom.variables) <= bound:
            notes.append(f"not {atom.label}")
    for first, last in plan.plan.segments:
        if first <= depth <= last:
            notes.append(EXISTS)
    if depth >= plan.plan.emit and problem.counted:
        notes.append("counted")
    if plan.plan.stages(depth):
        notes.append("fixed part intersected once")
    return list(dict.fromkeys(notes))  # one comparison may be two bounds


def _index_text(atom: JoinAtom, order: tuple[str, ...]) -> str:
    """``edge(a, b)  by src, dst``: the atom and its index's columns in key order."""
    place = {name: depth for depth, name in enumerate(order)}
    names = [c.name for c in atom.schema.columns]
    pairs = sorted(zip(atom.variables, atom.columns, strict=True), key=lambda pair: place[pair[0]])
    columns = ", ".join(names[column] for _, column in pairs) or "its number of rows"
    same = "".join(f", where {names[a]} = {names[b]}" for a, b in atom.equal)
    return f"{atom.label}  by {columns}{same}"


def _text(body: BodyReport, analyzed: bool) -> str:
    if body.shared:
        return "\n".join([body.rule, *(f"  note: {note}" for note in body.notes)])
    if body.scanned:
        lines = [
            body.rule,
            f"  scan        {body.scanned}",
            *(f"  look-up     {one}" for one in body.lookups),
        ]
        return "\n".join([*lines, *_endings(body)])
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
    return "\n".join([*lines, *_endings(body)])


def _endings(body: BodyReport) -> list[str]:
    """The notes, and what was measured."""
    lines = [f"  note: {note}" for note in body.notes]
    if body.rows is not None:
        noun = "row" if body.rows == 1 else "rows"
        searched = "" if body.scanned else f", {body.operations:,} operations"
        lines.append(f"  measured: {body.rows:,} {noun}{searched}")
    return lines
