"""`explain_maintenance`: how heads are kept, and how changes flow from head to head."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from lftj.database.view_text import view_in
from lftj.evaluation.strata_text import strata_boxes, strata_text
from lftj.language.several_aggregates import is_auxiliary
from lftj.pictures.drawing import Drawing
from lftj.pictures.layers import Box, layered
from lftj.rewriting.key_relations import is_made
from lftj.rewriting.programs import shown_rules
from lftj.rewriting.thresholds import Forms
from lftj.storage.relation_version import RelationVersion
from lftj.values.shown_text import ShownText, counted, preformatted
from maintenance.heads.head import MaintainedHead
from maintenance.heads.stratum import Strata

_RULE = re.compile(r"(?:bag )?(?P<head>\w+)[(\[]")
"""A rule in the program of a view, which stands on one line."""


def explain_head(
    head: MaintainedHead, heads: Mapping[str, MaintainedHead], versions: Mapping[str, RelationVersion]
) -> str:
    """Strategy and why, what makes the head's tuples, and each search with what it keeps.

    Of a head with views (:mod:`lftj.rewriting`) first the rules that are kept instead of its own, and behind
    it each view; of one that is kept for some keys these, and of one that is wanted what is kept for it
    (:mod:`lftj.rewriting.wanted_heads`).  ``heads``: all that are installed; ``versions``: of all relations.
    """
    lines = [f"{head.name}: strategy {head.strategy}", *_wanted(head), *_thresholds(head, versions)]
    parts = [name for name in hidden_below(head, heads) if not is_made(name)]
    notes = (head.program.notes.get(name) for name in (*parts, head.name))
    lines += [f"  views       {note}" for note in dict.fromkeys(filter(None, notes))]
    lines += [f"    {text}" for text in shown_rules(head.program, head.name)]
    lines += [f"  {line}" for line in head.describe()]
    for name in hidden_below(head, heads):
        if is_made(name):
            lines += [f"{name}:", *(f"  {line}" for line in heads[name].describe())]
    return "\n".join(lines)


def explain_view(
    name: str, text: str, heads: Mapping[str, MaintainedHead], versions: Mapping[str, RelationVersion]
) -> str:
    """A view of SQL: its text, and each head of it in turn, rules behind the SQL that they come from.

    ``text``: of the program that keeps it (:mod:`lftj.database.view_text`).
    """
    of = view_in(text)
    assert of is not None
    sql = of[1].split("\n")
    rules: dict[str, list[str]] = {}
    gathered: list[str] = []
    for line in text.split("\n")[len(sql) :]:
        gathered.append(line)
        if (rule := _RULE.match(line)) is not None:
            rules.setdefault(rule["head"], []).extend(gathered)
            gathered = []
    parts = ["\n".join([f"view {name}:", *(f"  {line}" for line in sql)])]
    for head, lines in rules.items():
        if head in heads:
            for other in hidden_below(heads[head], heads):
                if not is_made(other):
                    lines += [f"{other}:", *(f"  {line}" for line in heads[other].describe())]
            lines.append(explain_head(heads[head], heads, versions))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _wanted(head: MaintainedHead) -> list[str]:
    """What is kept for a wanted head, or for what another is kept."""
    program = head.program
    if program.wanted is None or is_made(head.name):
        return []
    if head.kept_for:
        return [f"  kept for    {', '.join(head.kept_for)}: {program.demand[head.name]}"]
    others = [name for name in program.wanted.whole.derived if name in program.wanted.others]
    below = program.wanted.whole.read_by(head.name)
    return [f"  for it      {name}: {program.demand[name]}" for name in others if name in below]


def _thresholds(head: MaintainedHead, versions: Mapping[str, RelationVersion]) -> list[str]:
    """Whether sums of ranges are used, or what was written (:mod:`lftj.rewriting.thresholds`)."""
    program = head.program
    forms = {name: Forms.of(program, name) for name in (head.name, *sorted(program.read_by(head.name)))}
    return [
        f"  thresholds  {of.shown(name, versions[of.irregular].n_rows > 0)}"
        for name, of in forms.items()
        if of is not None
    ]


def hidden_below(
    head: MaintainedHead, heads: Mapping[str, MaintainedHead], kept_for: bool = False
) -> list[str]:
    """The hidden heads that a head reads, directly or by others of them, each behind those that it reads.

    ``kept_for``: also heads of the rules that can't be read, as they are kept for others alone.
    """
    found: dict[str, None] = {}
    seen = {head.name, *head.component}

    def below(reader: MaintainedHead) -> None:
        for name in sorted(reader.reads):
            if name not in heads or name in seen:
                continue
            if is_auxiliary(name) or (kept_for and heads[name].kept_for):
                seen.add(name)
                below(heads[name])
                found[name] = None

    below(head)
    return list(found)


class StrataText(ShownText):
    """The strata as text, which notebooks also draw."""

    boxes: tuple[Box, ...]

    def svg(self) -> str:
        """The picture of it, an SVG document."""
        drawing = Drawing()
        layered(self.boxes, drawing)
        return drawing.svg("the strata of the installed rules")

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f"{preformatted(self)}\n{self.svg()}"


def explain_strata(strata: Strata, versions: Mapping[str, RelationVersion]) -> StrataText:
    """The strata of all rules: each relation with what it reads, its strategy, its rows and its indices."""
    heads = strata.heads

    def about(name: str) -> str:
        rows = counted(versions[name].n_rows, "row")
        if name in heads and heads[name].is_beside:
            return f"{heads[name].strategy}, a column of {heads[name].shown_name}"
        n_indices = len(versions[name].index_keys)
        rows += f", {n_indices} indices" if n_indices > 1 else ""
        if name in strata.grown:
            return f"only grows, {rows}"
        head = heads.get(name)
        if head is None:
            return rows
        return f"{head.strategy}, {rows}"

    rules = [replace(rule, heads=(own,)) for head in heads.values() for rule, own in head.rules]
    boxes = strata_boxes(rules, about, {name: sorted(one.reads) for name, one in strata.grown.items()})
    text = StrataText(strata_text(boxes))
    text.boxes = boxes
    return text
