"""The relations of rules by stratum, each with what it reads, as text; the boxes are also what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lftj.language.body import CheckedRule
from lftj.language.strata import components
from lftj.pictures.layers import Box


def strata_boxes(
    rules: Sequence[CheckedRule],
    about: Callable[[str], str] = lambda name: "",
    others: Mapping[str, Iterable[str]] | None = None,
) -> tuple[Box, ...]:
    """Relations by stratum, lowest first.

    ``about``: what to say of each.  Rules stand in evaluation order.  ``others``: what relations are made of
    that no rule here makes.
    """
    reads = {name: dict.fromkeys(read) for name, read in (others or {}).items()}
    for rule in rules:
        for head in rule.heads:
            found = reads.setdefault(head.relation, {})
            for body in rule.bodies:
                found.update((atom.relation, None) for atom in body.atoms)
                found.update((f"!{atom.relation}", None) for atom in body.negations)
    atoms = {name: [read.lstrip("!") for read in found] for name, found in reads.items()}
    every = dict.fromkeys([*atoms, *(read for found in atoms.values() for read in found)])
    level: dict[str, int] = {}
    recursive: set[str] = set()
    for component in components({name: atoms.get(name, []) for name in every}):
        below = [read for name in component for read in atoms.get(name, ()) if read not in component]
        level.update(dict.fromkeys(component, 1 + max((level[read] for read in below), default=-1)))
        if any(read in component for name in component for read in atoms.get(name, ())):
            recursive.update(component)
    return tuple(
        Box(name, stratum, tuple(reads.get(name, ())), about(name), name in recursive)
        for name, stratum in sorted(level.items(), key=lambda item: item[1])
    )


def strata_text(boxes: Sequence[Box]) -> str:
    """A relation per line, each head with what its rules read; a recursive one behind ``<-*``."""
    if not boxes:
        return "strata\n  no rules"
    rows = []
    for box in boxes:
        arrow = "<-*" if box.recursive else "<-"
        source = f"{arrow} {', '.join(box.reads)}" if box.reads else ""
        rows.append((str(box.layer), box.name, source, box.about))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["strata"]
    for row in rows:
        cells = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
        lines.append(f"  {cells}  {row[3]}".rstrip())
    return "\n".join(lines)
