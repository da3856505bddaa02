"""`explain_maintenance`: how heads are kept, and how changes flow from head to head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lftj.evaluation.explain import strata_text
from lftj.storage.relation_version import RelationVersion
from maintenance.heads.head import MaintainedHead


def explain_head(head: MaintainedHead) -> str:
    """Strategy and why, what makes the head's tuples, and each search with what it keeps."""
    lines = [f"  {line}" for line in head.describe()]
    return "\n".join([f"{head.name}: strategy {head.strategy}", *lines])


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
