"""Heads as they are written: several aggregates are one head, which a program for cells has apart.

stats(a, count(), sum(b)) <- edge(a, b).     rows(a, b) <- edge(a, b), grouped by a: count, sum of b
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from lftj.errors import RuleError
from lftj.language.parser import parse
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.language.syntax import Aggregate, Head, Rule, Variable
from spark_bridge.acyclic.cycles import body_is_acyclic
from spark_bridge.front_ends.rule_names import unused_name, usable
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.recursive_rule import RecursiveRule


@dataclass(frozen=True)
class OwnHead:
    """A head, and whose assignments give it.

    ``columns``: what it has of them, variables and aggregates; of a head without aggregates the rules of
    ``rows`` say that.
    """

    plan: HeadPlan
    rows: HeadPlan
    columns: tuple[str | Aggregate, ...] = ()

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return tuple(column for column in self.columns if isinstance(column, Aggregate))

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables that make its groups, in order."""
        return tuple(column for column in self.columns if isinstance(column, str))

    @property
    def has_no_cycle(self) -> bool:
        """Whether no body has one."""
        return all(body_is_acyclic(body) for rule in self.rows.rules for body in rule.checked.bodies)

    @property
    def meet_themselves(self) -> tuple[str, ...]:
        """The relations that a body joins with themselves."""
        bodies = [body for rule in self.rows.rules for body in rule.checked.bodies]
        came = [Counter(atom.relation for atom in body.atoms) for body in bodies]
        return tuple(dict.fromkeys(name for of in came for name, times in of.items() if times > 1))

    @property
    def joins(self) -> bool:
        """Whether some body brings several atoms together."""
        return any(len(body.atoms) > 1 for rule in self.rows.rules for body in rule.checked.bodies)


def own_heads(text: ProgramText) -> dict[str, OwnHead]:
    """The heads of a program as they are written, by name."""
    plans = text.plans()
    several = {shown_name(plan.name) for plan in plans if is_auxiliary(plan.name)}
    found = {}
    for plan in plans:
        head: OwnHead | None = None
        if isinstance(plan.rules[0], RecursiveRule):
            continue  # Spark's operators find no fixpoint
        if plan.name in several:
            head = _several(text, plan)
        elif not is_auxiliary(plan.name):
            head = OwnHead(plan, plan, _columns(plan.rules[0].syntax.heads[0]) if plan.aggregates else ())
        if head is not None:
            found[plan.name] = head
    return found


def _columns(head: Head) -> tuple[str | Aggregate, ...]:
    return tuple(column.name if isinstance(column, Variable) else column for column in head.columns)


def _several(text: ProgramText, plan: HeadPlan) -> OwnHead | None:
    """A head of several aggregates; None where they read more than variables, or several rules give it."""
    written = [
        (rule, head) for rule in parse(text.text).rules for head in rule.heads if head.relation == plan.name
    ]
    names = [variable.name for _, head in written for variable in head.variables]
    if len(written) != 1 or not names or not all(map(usable, names)):
        return None
    ((rule, head),) = written
    try:
        rows = replace(text, text=_with_rows(text.text, rule, head), head=None).plans()[-1]
    except RuleError:  # of variables that only aggregates know
        return None
    return OwnHead(plan, rows, _columns(head))


def _with_rows(text: str, rule: Rule, head: Head) -> str:
    """A program with one more head, of all that a head takes from its body."""
    name = unused_name(f"{head.relation}_rows", re.findall(r"\w+", text))
    names = dict.fromkeys(variable.name for variable in head.variables)
    body = text[min(literal.span[0] for literal in rule.body) : max(one.span[1] for one in rule.body)]
    return f"{text}\n{name}({', '.join(names)}) <- {body}."
