"""`explain_maintenance`: how heads are kept, and how changes flow from head to head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lftj.evaluation.strata_text import strata_boxes, strata_text
from lftj.language.several_aggregates import is_auxiliary
from lftj.pictures.drawing import Drawing
from lftj.pictures.layers import Box, layered
from lftj.rewriting.programs import shown_rules
from lftj.rewriting.shared_views import is_view
from lftj.storage.relation_version import RelationVersion
from lftj.values.shown_text import ShownText, counted, preformatted
from maintenance.heads.head import MaintainedHead


def explain_head(head: MaintainedHead, heads: Mapping[str, MaintainedHead]) -> str:
    """Strategy and why, what makes the head's tuples, and each search with what it keeps.

    Of a head with views (:mod:`lftj.rewriting`) first the rules that are kept instead of its own, and behind
    it each view.  ``heads``: all that are installed.
    """
    lines = [f"{head.name}: strategy {head.strategy}"]
    parts = [name for name in hidden_below(head, heads) if not is_view(name)]
    notes = (head.program.notes.get(name) for name in (*parts, head.name))
    lines += [f"  views       {note}" for note in dict.fromkeys(filter(None, notes))]
    lines += [f"    {text}" for text in shown_rules(head.program, head.name)]
    lines += [f"  {line}" for line in head.describe()]
    for name in hidden_below(head, heads):
        if is_view(name):
            lines += [f"{name}:", *(f"  {line}" for line in heads[name].describe())]
    return "\n".join(lines)


def hidden_below(head: MaintainedHead, heads: Mapping[str, MaintainedHead]) -> list[str]:
    """The hidden heads that a head reads, directly or by others of them, each behind those that it reads."""
    found: dict[str, None] = {}
    for name in sorted(head.reads):
        if is_auxiliary(name):
            found |= dict.fromkeys((*hidden_below(heads[name], heads), name))
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


def explain_strata(
    heads: Mapping[str, MaintainedHead], versions: Mapping[str, RelationVersion]
) -> StrataText:
    """The strata of all rules: each relation with what it reads, its strategy, its rows and its indices."""

    def about(name: str) -> str:
        rows = counted(versions[name].n_rows, "row")
        n_indices = len(versions[name].index_keys)
        rows += f", {n_indices} indices" if n_indices > 1 else ""
        head = heads.get(name)
        if head is None:
            return rows
        return f"{head.strategy}, {rows}"

    rules = [replace(rule, heads=(own,)) for head in heads.values() for rule, own in head.rules]
    boxes = strata_boxes(rules, about)
    text = StrataText(strata_text(boxes))
    text.boxes = boxes
    return text
