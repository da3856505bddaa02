"""Programs whose sums are kept by views: hidden heads below the heads as they were written.

Invariants

1. Heads as written keep name, schema and tuples; their rules keep text and place, for messages.
2. The rules of a head stand in a stratum behind those of the views that it reads.
3. Equal views of a program are one (:mod:`lftj.rewriting.shared_views`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from lftj.language.body import Body, CheckedHead, CheckedProgram, CheckedRule, Guard, ViewCosts
from lftj.language.several_aggregates import is_auxiliary, joins_auxiliary, shown_name
from lftj.language.syntax import Aggregate
from lftj.rewriting.guard import Spans, guard_of, spans_of, unproven
from lftj.rewriting.key_relations import holds_keys
from lftj.rewriting.rule_text import body_text, call_text, head_text
from lftj.rewriting.semi_joins import SemiJoins
from lftj.rewriting.shared_views import SharedViews, is_view, replace_views
from lftj.rewriting.summand import NotRewritten
from lftj.rewriting.view_tree import ViewTree
from lftj.storage.catalog import Catalog
from lftj.values.domains import Domains

Worth = Callable[[CheckedRule, CheckedHead, Body, ViewTree | SemiJoins], bool]
"""Whether a body of a rule is to be evaluated by views, as they would be."""

WIDE_NOTE = "; partial sums have 128 bits"


def with_views(
    program: CheckedProgram,
    heads: Collection[str],
    catalog: Catalog,
    domains: Domains,
    taken: Collection[str] = (),
    *,
    wide: bool = False,
    once: bool = False,
    is_worth: Worth | None = None,
    spans: Spans | None = None,
) -> CheckedProgram:
    """The program with views below those of ``heads`` that gain by them; its ``notes`` say why others do not.

    ``catalog``: the relations that are there, for their sizes.  ``taken``: names that no view may have.
    ``wide``: whether partial sums of whole numbers have 128 bits, and not 64.  ``once``: it is to be
    evaluated once, and not to be kept; then ``is_worth`` says which bodies are evaluated by views, semi-joins
    for heads that sum nothing.  ``spans``: of columns of which more is known than the catalog says.
    """
    shared = SharedViews({*taken, *program.derived}, domains, wide, once)
    guards = _Guards(catalog, spans or {})
    notes: dict[str, str] = {}
    costs: dict[str, ViewCosts] = {}
    strata: list[tuple[CheckedRule, ...]] = []
    for stratum in program.strata:
        before = [len(rules) for rules in shared.rules]
        rules = [
            one
            for rule in stratum
            for one in _rewritten(rule, heads, catalog, shared, guards, notes, costs, is_worth)
        ]
        for place, made in enumerate(shared.rules):
            new = made[before[place] :] if place < len(before) else made
            strata += [tuple(new)] if new else []
        strata.append(tuple(rules))
    strata = _without_unread(strata)
    read = _read_by(rule for stratum in strata for rule in stratum)
    views = {name: schema for name, schema in shared.derived.items() if name in read}
    if not views:
        return replace(program, notes=notes, guards=guards.found)
    return replace(
        program,
        strata=tuple(strata),
        derived={**program.derived, **views},
        written=program.as_written,
        notes=notes,
        view_costs=costs,
        guards=guards.found,
        wide_views=wide,
    )


class _Guards:
    """Whether what the bodies of rules compute fits, by the spans of their columns."""

    def __init__(self, catalog: Catalog, spans: Spans) -> None:
        self._catalog = catalog
        self._spans = spans
        self.found: dict[str, Guard] = {}

    def check(self, rule: CheckedRule, head: CheckedHead) -> None:
        """Raise NotRewritten where something may not fit; the guard is found either way."""
        guard = guard_of(rule.bodies[0])
        if guard is None:
            return
        self.found[head.relation] = guard
        spans = {**spans_of(guard.columns - self._spans.keys(), self._catalog), **self._spans}
        why = unproven(guard, spans)
        if why is not None:
            raise NotRewritten(why)


def _rewritten(
    rule: CheckedRule,
    heads: Collection[str],
    catalog: Catalog,
    shared: SharedViews,
    guards: _Guards,
    notes: dict[str, str],
    costs: dict[str, ViewCosts],
    is_worth: Worth | None,
) -> Iterable[CheckedRule]:
    """The rule, less the heads that have a rule over views instead, and these."""
    left: list[CheckedHead] = []
    roots: list[CheckedRule] = []
    for head in rule.heads:
        if head.relation not in heads:
            left.append(head)
            continue
        if is_worth is not None and not isinstance(head.value, Aggregate):
            bodies = [_semi_joined(rule, head, body, catalog, shared, is_worth) for body in rule.bodies]
            if any(map(operator.is_not, bodies, rule.bodies)):
                roots.append(replace(rule, heads=(head,), bodies=tuple(bodies)))
            else:
                left.append(head)
            continue
        try:
            tree = ViewTree(rule, head, catalog, shared)
            guards.check(rule, head)
            if is_worth is not None and not is_worth(rule, head, rule.bodies[0], tree):
                raise NotRewritten(f"about {tree.plain:,.0f} assignments are listed about as soon")
            roots.append(tree.root())
            n_atoms = len(rule.bodies[0].atoms)
            costs[head.relation] = ViewCosts(tree.cost / n_atoms, tree.plain / n_atoms)
            note = f"a change takes about {tree.cost:,.0f} operations, and {tree.plain:,.0f} without them"
            note += WIDE_NOTE if shared.wide else ""
        except NotRewritten as refused:
            left.append(head)
            note = f"none: {refused}"
        if isinstance(head.value, Aggregate):
            notes[head.relation] = f"of {call_text(head.value)}: {note}"
        elif not any(map(joins_auxiliary, rule.bodies)):
            notes[head.relation] = note
    return [*([replace(rule, heads=tuple(left))] if left else []), *roots]


def _semi_joined(
    rule: CheckedRule,
    head: CheckedHead,
    body: Body,
    catalog: Catalog,
    shared: SharedViews,
    is_worth: Worth,
) -> Body:
    """The body over views that are sets, or as it is."""
    try:
        joined = SemiJoins(body, head.columns, catalog)
    except NotRewritten:
        return body
    return joined.body(shared, shown_name(head.relation)) if is_worth(rule, head, body, joined) else body


def shown_rules(program: CheckedProgram, name: str) -> list[str]:
    """The rules of a head as they are kept, views as functions, each behind what it reads of the rewriting.

    None for a head that has no view.
    """
    found: dict[str, list[str]] = {}

    def walk(relation: str) -> None:
        texts = []
        for rule, head in program.rules_of(relation):
            for body in rule.bodies:
                read = (atom.relation for atom in body.atoms)
                hidden = [one for one in read if is_auxiliary(one) and not holds_keys(one)]
                for other in hidden:
                    if other not in found:
                        walk(other)
                functions = {view: program.derived[view] for view in hidden if is_view(view)}
                text = head_text(relation, head.variables, head.value)
                texts.append(f"{text} <- {body_text(replace_views(body, functions))}.")
        found[relation] = texts

    walk(name)
    return [text for texts in found.values() for text in texts] if any(map(is_view, found)) else []


def _without_unread(strata: Sequence[tuple[CheckedRule, ...]]) -> list[tuple[CheckedRule, ...]]:
    """The strata less the views of a rule that was left as it is in the end."""
    left: list[tuple[CheckedRule, ...]] = []
    for stratum in reversed(strata):
        read = _read_by(rule for behind in left for rule in behind)
        kept = tuple(r for r in stratum if not is_view(r.heads[0].relation) or r.heads[0].relation in read)
        left += [kept] if kept else []
    return left[::-1]


def _read_by(rules: Iterable[CheckedRule]) -> set[str]:
    return {atom.relation for rule in rules for body in rule.bodies for atom in body.atoms}
