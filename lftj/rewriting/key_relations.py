"""Relations of keys: what heads are evaluated for, where they are not evaluated whole.

Invariants

1. Heads that are read with the same keys have one relation of keys.
2. A relation of keys has a mark in its name that no other relation has; its columns may hold NULL.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lftj.language.body import Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.one_row import ONE_ROW, schema_of_one_row
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Variable
from lftj.rewriting.computed_keys import holds_computed
from lftj.rewriting.rule_text import body_text, head_text
from lftj.rewriting.shared_views import free_name, is_view
from lftj.storage.catalog import Catalog
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema

KEYS = "#keys"
"""Stands in the names of relations of keys, and in no other name."""


def holds_keys(relation: str) -> bool:
    """Whether this names a relation of keys.

    >>> holds_keys("reach#keys1"), holds_keys("reach#view1"), holds_keys("reach")
    (True, False, False)
    """
    return KEYS in relation


def is_set_of_keys(relation: str) -> bool:
    """Whether this names keys, asked for or computed: each body that reads them reads what it was written of.

    >>> is_set_of_keys("reach#keys1"), is_set_of_keys("reach#computed1"), is_set_of_keys("reach#view1")
    (True, True, False)
    """
    return holds_keys(relation) or holds_computed(relation)


def is_made(relation: str) -> bool:
    """Whether this names a head that a rewriting made: of keys that are asked for or computed, or a view.

    >>> is_made("reach#keys1"), is_made("reach#view1"), is_made("reach#computed1"), is_made("reach#1")
    (True, True, True, False)
    """
    return is_set_of_keys(relation) or is_view(relation)


def is_restricted(program: CheckedProgram, name: str) -> bool:
    """Whether a head is evaluated for some keys only."""
    bodies = (body for rule, _ in program.rules_of(name) for body in rule.bodies)
    return any(holds_keys(atom.relation) for body in bodies for atom in body.atoms)


def type_of_keys(type_: ColumnType) -> ColumnType:
    """The type of what a column is looked up by, which may come from a column of other binary strings."""
    is_fixed = pa.types.is_fixed_size_binary(type_.arrow)
    return replace(type_, arrow=pa.large_binary()) if is_fixed else type_


@dataclass(frozen=True)
class KeyRule:
    """A rule of a relation of keys, before it has a name."""

    names: tuple[str, ...]
    body: Body

    @property
    def text(self) -> str:
        return f"({', '.join(self.names)}) <- {body_text(self.body)}."


@dataclass
class KeyRelations:
    """``reads``: what each head, and each relation of keys, reads."""

    program: CheckedProgram
    catalog: Catalog
    domains: Domains
    reads: dict[str, set[str]]
    rules: list[CheckedRule] = field(default_factory=list)
    derived: dict[str, Schema] = field(default_factory=dict)
    _known: dict[frozenset[str], str] = field(default_factory=dict)

    def named(self, name: str, columns: Sequence[int], rules: Sequence[KeyRule]) -> str:
        """The relation with these rules, for columns of a head: another head's, if it has the same."""
        if len(rules) == 1:
            (rule,) = rules
            (first, *others), body = rule.body.atoms, rule.body
            plain = not (others or body.negations or body.comparisons or body.assignments)
            if plain and holds_keys(first.relation) and tuple(map(Variable, rule.names)) == first.terms:
                return first.relation
        texts = frozenset(rule.text for rule in rules)
        if texts not in self._known:
            keys = self._known[texts] = self.new_name(name)
            self.define(keys, name, columns, rules)
        return self._known[texts]

    def new_name(self, name: str) -> str:
        """One that nothing has; from now on it is taken."""
        names = (f"{shown_name(name)}{KEYS}{number}" for number in itertools.count(1))
        taken = (*self.derived, *self.program.derived, *self.catalog)
        found = next(one for one in names if one not in taken)
        self.derived[found] = Schema(())
        return found

    def define(self, keys: str, name: str, columns: Sequence[int], rules: Sequence[KeyRule]) -> None:
        """Add a relation of keys of a head's columns, some twice perhaps."""
        of = self.program.derived[name].columns
        schema_columns = []
        names: dict[str, None] = {}
        for column in columns:
            called = free_name(of[column].name, names)
            names[called] = None
            schema_columns.append(Column(called, replace(type_of_keys(of[column].type), nullable=True)))
        schema = self.derived[keys] = Schema(tuple(schema_columns))
        for rule in rules:
            head = CheckedHead(keys, rule.names, None, schema, (0, 0))
            text = f"{head_text(keys, rule.names, None)} <- {body_text(rule.body)}."
            self.rules.append(CheckedRule((head,), (rule.body,), text, (0, 0)))
            self.reads.setdefault(keys, set()).update(rule.body.relations)
            if ONE_ROW in rule.body.relations:
                self.derived[ONE_ROW] = schema_of_one_row(self.domains)

    def depends(self, name: str, on: Collection[str]) -> bool:
        """Whether a relation reads one of some heads, directly or not, or is one."""
        seen, todo = {name}, [name]
        while todo:
            one = todo.pop()
            if one in on:
                return True
            more = self.reads.get(one, set()) - seen
            seen |= more
            todo += more
        return False
