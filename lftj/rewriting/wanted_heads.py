"""Programs of which some heads are wanted: the others are kept for them, and where that pays for some keys.

    q(n) <- supplier(s, n), line(o, s), !other(o, s).        wanted: q
    other(o, s) <- line(o, s), line(o, t), t != s.           for the keys (o, s) that q reads

Invariants

1. The wanted heads have the rows of the program as written (:mod:`lftj.rewriting.demand`).
2. What other heads hold nobody else may read, whether they are whole or not: estimates decide about that.
3. What is chosen is chosen once: :class:`Wanted` has it, for a program that is made again later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lftj.errors import UnknownRelationError
from lftj.language.body import CheckedProgram, CheckedRule, Wanted
from lftj.language.diagnostics import unknown_name
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.rewriting.demand import with_demand
from lftj.rewriting.demand_choices import DemandChoices
from lftj.rewriting.key_relations import is_restricted
from lftj.storage.catalog import Catalog
from lftj.values.domains import Domains


@dataclass(frozen=True)
class Results:
    """The heads of a program that are wanted, and what was chosen for the others, if it was."""

    names: tuple[str, ...]
    choices: Mapping[str, Any] | None = None


def wanted_results(given: str | Collection[str] | Results | None) -> Results | None:
    """What a user names: one head or several.

    >>> wanted_results("q"), wanted_results(None)
    (Results(names=('q',), choices=None), None)
    """
    if given is None or isinstance(given, Results):
        return given
    return Results((given,) if isinstance(given, str) else tuple(given))


def for_results(
    program: CheckedProgram, results: Results, catalog: Catalog, domains: Domains
) -> CheckedProgram:
    """The program that gives some of its heads: less the heads that these do not need.

    ``catalog``: the relations that are there.  Its ``demand`` says of each other head what it is kept for.
    Raises UnknownRelationError.
    """
    heads = [name for name in program.derived if not is_auxiliary(name)]
    for name in results.names:
        if name not in heads:
            raise unknown_name("head", name, heads)
    if not results.names:
        raise UnknownRelationError(f"results= names no head: the program's heads are {', '.join(heads)}")
    needed = _needed(program, results.names)
    choices = DemandChoices()
    before = DemandChoices.of(results.choices)
    made = with_demand(needed, results.names, catalog, domains, choices=choices, before=before)
    others = frozenset(shown_name(name) for name in needed.derived) - {*results.names}
    notes = {name: _note(made, name, catalog) for name in needed.derived if shown_name(name) in others}
    if before is not None:
        notes = {name: before.notes.get(name, note) for name, note in notes.items()}
    choices.notes = notes
    wanted = Wanted(tuple(dict.fromkeys(results.names)), others, program, choices.as_dict())
    return replace(made, demand=notes, wanted=wanted)


def _needed(program: CheckedProgram, results: Collection[str]) -> CheckedProgram:
    """The program less the heads that results do not read."""
    needed = {*results}.union(*map(program.read_by, results))

    def left(rule: CheckedRule) -> CheckedRule | None:
        heads = tuple(head for head in rule.heads if head.relation in needed)
        return rule if heads == rule.heads else replace(rule, heads=heads) if heads else None

    strata = (tuple(filter(None, map(left, stratum))) for stratum in program.strata)
    return replace(
        program,
        strata=tuple(filter(None, strata)),
        derived={name: schema for name, schema in program.derived.items() if name in needed},
        components=tuple(each for each in program.components if each[0] in needed),
    )


def _note(program: CheckedProgram, name: str, catalog: Catalog) -> str:
    """What to say of a head that is not wanted itself."""
    note = (
        program.demand.get(name) or "evaluated whole: not all that reads it binds columns it could be kept by"
    )
    if is_restricted(program, name):
        return f"{note} when it was installed"
    read = {one for head in (name, *program.read_by(name)) for one in _reads(program, head)}
    empty = sorted(one for one in read if one in catalog and not catalog[one].n_rows)
    if not empty:
        return note
    return f"{note}; {empty[0]} was empty when it was installed: install(..., replace=True) chooses anew"


def _reads(program: CheckedProgram, name: str) -> set[str]:
    return {one for rule, _ in program.rules_of(name) for body in rule.bodies for one in body.relations}
