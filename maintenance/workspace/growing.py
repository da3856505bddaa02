"""Relations that only grow, from one state to the next: they begin with rules, and go by their names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from lftj.errors import ChangeError, RuleError
from lftj.language.as_of_now import JoinedNow
from lftj.language.diagnostics import error_at
from lftj.language.finals import final_name
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Atom, Program, flat
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.values.domains import Domains
from lftj.values.schema import Schema
from maintenance.event_time.closing import ClosedRows
from maintenance.event_time.joining import JoinedRows
from maintenance.heads.grown import Grown
from maintenance.workspace.declaring import new_finals
from maintenance.workspace.state import State


def with_grown(state: State, version: RelationVersion, one: Grown) -> State:
    """The state with a relation that grows from now on."""
    versions = {**state.versions, version.name: version}
    return replace(state, versions=versions, strata=state.strata.with_grown(one), commit=None)


def without_grown(state: State, names: Collection[str]) -> State:
    """The state less relations that grow.  Raises ChangeError where something that stays reads one."""
    for one in state.strata.members:
        if one.name not in names:
            _refuse_read(one.name, one.reads & {*names})
    versions = {name: version for name, version in state.versions.items() if name not in names}
    return replace(state, versions=versions, strata=state.strata.without(names), commit=None)


def refuse_grown_from(state: State, heads: Collection[str]) -> None:
    """Raise ChangeError where a relation grows by some heads, or other relations."""
    for one in state.strata.grown.values():
        _refuse_read(one.name, {shown_name(name) for name in one.reads} & {*heads})


def _refuse_read(reader: str, read: Collection[str]) -> None:
    for name in sorted(read)[:1]:
        raise ChangeError(
            f"the rules of {shown_name(reader)!r} read {name!r}: uninstall {shown_name(reader)!r} before it"
            " or with it"
        )


def _is_there(state: State, one: Grown) -> bool:
    """Whether a relation grows so already.  Raises ChangeError where its name is taken."""
    if one.name not in state.versions:
        return False
    there = state.strata.grown.get(one.name)
    if there is None:
        raise ChangeError(f"{one.name!r} is there already: take another name for what grows")
    if there.record != one.record:
        raise ChangeError(
            f"{one.name!r} has {there.what}, by other rules: uninstall it, which takes its rows away, or take"
            " another name"
        )
    return True


def by_level(
    state: State, tree: Program, joined: Sequence[JoinedNow]
) -> list[tuple[Program, list[JoinedNow]]]:
    """A program in parts, each to be installed over those before it: rules that read what grows stand behind
    that, and it behind what it reads.

    ``joined``: what its rules that join as of now make.  Raises RuleError where something is made of itself.
    """
    reads: dict[str, set[str]] = {}
    for rule in tree.rules:
        atoms = {literal.relation for literal in flat(rule.body) if isinstance(literal, Atom)}
        heads = {head.relation for head in rule.heads}
        for name in heads:
            reads.setdefault(name, set()).update(atoms | heads)
    made = {one.name: {*one.reads} for one in joined}
    names = {final_name(one.head): one.head for one in tree.finals}
    made |= {name: {head} for name, head in names.items() if name not in reads}
    for one in state.strata.grown.values():
        if not one.reads.isdisjoint({*reads, *made}):
            made.setdefault(one.name, {*one.reads})
    level = dict.fromkeys([*reads, *made], 0)
    for _ in range(len(level) + 1):
        before = dict(level)
        for name in level:
            read = [other for other in reads.get(name, made.get(name, ())) if other in level]
            behind = (level[other] + (name in reads and other in made) for other in read)
            level[name] = max([level[name], *behind])
        if level == before:
            break
    else:
        circle = next(rule for rule in tree.rules for head in rule.heads if level[head.relation] > len(made))
        message = "this is made of what only grows, and that of this: leave one of them out"
        raise error_at(RuleError, tree.text, circle.span, message)
    parts = []
    for number in range(max(level.values(), default=0) + 1):
        rules = tuple(rule for rule in tree.rules if level[rule.heads[0].relation] == number)
        finals = tuple(one for one in tree.finals if level.get(one.head, 0) == number)
        some = [one for one in joined if level[one.name] == number]
        if rules or finals or some:
            parts.append((replace(tree, rules=rules, finals=finals), some))
    return parts or [(tree, [])]


def with_new_grown(
    state: State, tree: Program, joined: Collection[JoinedNow], domains: Domains
) -> tuple[State, list[Relation]]:
    """The state in which what a program lets grow begins, with nothing, and the relations that are new.

    ``tree``: the rules of its heads, which are installed.  Raises RuleError, and ChangeError for a name that
    is taken.
    """
    relations: list[Relation] = []

    def begin(one: Grown, schema: Schema) -> None:
        nonlocal state
        columns = tuple(replace(column, required=False) for column in schema.columns)
        empty = [np.empty(0, np.int64) for _ in columns]
        relations.append(Relation.from_codes(one.name, Schema(columns), empty))
        state = with_grown(state, RelationVersion(relations[-1]), one)

    for final in new_finals(state, tree):
        if not _is_there(state, ClosedRows(final)):
            begin(ClosedRows(final), state.versions[final.head].schema)
    for each in joined:
        rows = JoinedRows(each, domains)
        if not _is_there(state, rows):
            readable = {name: each for name, each in state.versions.items() if name not in state.hidden}
            begin(rows, rows.checked(readable).derived[rows.name])
    return state, relations
