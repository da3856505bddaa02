"""Which variables of a body its heads read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.expressions import variables_of
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


def summed_together(heads: Sequence[CheckedHead]) -> tuple[str, ...]:
    """What these heads add up or compute sums of, and read in no other way: not by its codes."""
    kinds = [head.value.function if isinstance(head.value, Aggregate) else None for head in heads]
    coded = {
        name
        for head, kind in zip(heads, kinds, strict=True)
        for name in (head.variables if kind in ("sum", "avg", "count") else wanted_variables(head))
    }
    return tuple(name for name in wanted_together(heads) if name not in coded)


def common_variables(rule: CheckedRule) -> list[str]:
    """The variables that every body binds, of which an aggregate over several takes the assignments."""
    return [name for name in rule.bodies[0].types if all(name in body.types for body in rule.bodies)]


def alternative_variables(rule: CheckedRule, heads: Sequence[CheckedHead]) -> list[str] | None:
    """By which variables the assignments of a rule's bodies can be told apart, where all join the same atoms.

    Bodies whose rows agree on these have the same assignments behind them, so their number is known of each
    body. None where the bodies join different atoms, or have no such variables.
    """
    first = rule.bodies[0]
    joined = set(first.atom_variables())
    if any((body.atoms, body.negations) != (first.atoms, first.negations) for body in rule.bodies):
        return None
    negated = {term.name for atom in first.negations for term in atom.terms if isinstance(term, Variable)}
    if not negated <= joined:
        return None
    names = wanted_together(heads) + [name for name in common_variables(rule) if name not in joined]
    for body in rule.bodies:
        for comparison in body.comparisons:
            if all(comparison in other.comparisons for other in rule.bodies):
                continue  # it leaves the same assignments everywhere
            names += [v.name for side in (comparison.left, comparison.right) for v in variables_of(side)]
        for assignment in body.assignments:
            if all(assignment in other.assignments for other in rule.bodies):
                continue
            names += [variable.name for variable in variables_of(assignment.expression)]
            names += [assignment.variable] if assignment.each else []
    common = set(common_variables(rule))
    return [name for name in dict.fromkeys(names) if name in common] or None


def common_types(rule: CheckedRule) -> dict[str, ColumnType]:
    """The types of the variables that every body binds; one that may be NULL in some body may be so."""
    return {
        name: replace(type_, nullable=any(body.types[name].nullable for body in rule.bodies))
        for name in common_variables(rule)
        for type_ in [rule.bodies[0].types[name]]
    }
