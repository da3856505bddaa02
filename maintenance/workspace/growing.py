"""Relations that only grow, from one state to the next: they begin with rules, and go by their names."""

from __future__ import annotations

from collections.abc import Collection
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


def refuse_read_with(tree: Program, joined: Collection[JoinedNow]) -> None:
    """Raise RuleError where a rule reads what the same program lets grow."""
    names = {one.name for one in joined} | {final_name(one.head) for one in tree.finals}
    for literal in (literal for rule in tree.rules for literal in flat(rule.body)):
        if isinstance(literal, Atom) and literal.relation in names:
            message = (
                f"'{literal.relation}' only grows, and begins when this program is installed: install rules"
                " that read it behind it"
            )
            raise error_at(RuleError, tree.text, literal.name_span, message)


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
