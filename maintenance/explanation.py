"""`explain_maintenance`: how heads are kept, and how changes flow from head to head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lftj.evaluation.explain import strata_text
from lftj.storage.relation_version import RelationVersion
from maintenance.heads.head import MaintainedHead
from maintenance.heads.rule_body import RuleBody
from maintenance.strategies.trace.body_trace import BodyTrace


def explain_head(head: MaintainedHead) -> str:
    """Strategy and why, what makes the head's tuples, and each search with its records."""
    lines = [f"{head.name}: strategy {head.strategy}"]
    for (rule, _), source in zip(head.rules, head.sources, strict=False):
        lines.append(f"  {' '.join(rule.text.split())}")
        lines += [f"    head        {note}" for note in source.notes or ["every row is a tuple of its own"]]
        for body in source.bodies:
            lines += _body_lines(body)
    if len(head.sources) > 1:
        lines.append("  several rules: support counts say how many of them give a tuple")
    return "\n".join(lines)


def draw_strata(heads: Mapping[str, MaintainedHead], versions: Mapping[str, RelationVersion]) -> str:
    """The strata of all rules: each relation with what it reads, its strategy and its rows."""

    def about(name: str) -> str:
        n_rows = versions[name].n_rows
        rows = f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}"
        head = heads.get(name)
        if head is None:
            return rows
        return f"{head.strategy}, {rows}"

    rules = [replace(rule, heads=(own,)) for head in heads.values() for rule, own in head.rules]
    return strata_text(rules, about)


def _body_lines(body: RuleBody) -> list[str]:
    lines = [f"    existence   {note}" for note in body.notes]
    for trace in body.searches:
        lines += _trace_lines(trace, "key order ")
    for trace in body.tests:
        lines += _trace_lines(trace, "test order")
    for trace in body.second_stage:
        lines += _trace_lines(trace, "2nd stage ")
    return lines


def _trace_lines(trace: BodyTrace, title: str) -> list[str]:
    plan = trace.plan
    labels = trace.lowered.problem.labels
    names = [labels.get(name, name) for name in plan.order]
    order = ", ".join(names[: plan.tail])
    if plan.tail < len(names):
        order = f"{order} | {', '.join(names[plan.tail :])}   (behind the bar: until the first success)"
    lines = [f"    {title}  {order}"]
    for participant in plan.participants:
        sign = "!" if participant.negated else ""
        what = "no records, a surgery is the region"
        if participant.stream is not None:
            index = trace.sensitivity[participant.stream]
            what = f"{index.n_records:,} records, {index.nbytes:,} bytes"
        elif participant.negated and not participant.tested:
            what = "no records, its last level has them"
        lines.append(f"    {sign}{participant.label} level {participant.level}: {what}")
    return lines
