"""Which variables of a body its heads read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.syntax import Aggregate, Variable
from lftj.values.schema import ColumnType


def wanted_variables(head: CheckedHead) -> list[str]:
    """Variables that a head reads from its body, each once: all that its tuples are made of."""
    names = list(head.variables)
    if isinstance(head.value, Aggregate):
        names += [argument.name for argument in head.value.arguments if isinstance(argument, Variable)]
    elif head.value is not None:
        names.append(head.value)
    names += [variable.name for window in head.windows for variable in window.variables]
    if head.copies is not None:
        names.append(head.copies)
    return list(dict.fromkeys(names))


def wanted_together(heads: Sequence[CheckedHead]) -> list[str]:
    """Variables that any of the heads reads, each once."""
    return list(dict.fromkeys(name for head in heads for name in wanted_variables(head)))


def grouped_together(heads: Sequence[CheckedHead]) -> tuple[str, ...]:
    """Variables that are keys of a functional head among these, each once."""
    names = (name for head in heads if head.schema.functional for name in head.variables)
    return tuple(dict.fromkeys(names))


def common_variables(rule: CheckedRule) -> list[str]:
    """The variables that every body binds, of which an aggregate over several takes the assignments."""
    return [name for name in rule.bodies[0].types if all(name in body.types for body in rule.bodies)]


def common_types(rule: CheckedRule) -> dict[str, ColumnType]:
    """The types of the variables that every body binds; one that may be NULL in some body may be so."""
    return {
        name: replace(type_, nullable=any(body.types[name].nullable for body in rule.bodies))
        for name in common_variables(rule)
        for type_ in [rule.bodies[0].types[name]]
    }
