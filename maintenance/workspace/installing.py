"""Installing rules and taking them away: from one state to the next.

Nothing here changes a state: heads are built over it, beside what is there, and the
workspace publishes the state that comes out by one assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from lftj.errors import ChangeError, UnknownRelationError
from lftj.language.body import CheckedProgram
from lftj.language.several_aggregates import is_auxiliary, shown_name
from maintenance.heads.head import MaintainedHead, plan_orders, plan_strategies, rules_of
from maintenance.heads.intermediate import Intermediates
from maintenance.strategies.trace.body_trace import Advance
from maintenance.workspace.budget import Budget
from maintenance.workspace.state import State
from maintenance.workspace.verification import heads_in_order


@dataclass(frozen=True)
class Wishes:
    """How a user wants the heads of a program to be kept; see :meth:`maintenance.Workspace.install`."""

    strategy: str | Mapping[str, str] = "trace"
    sensitivity_bytes: Mapping[str, int] = field(default_factory=dict)
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    record_gap: int = 0


def with_rules(
    state: State,
    program: CheckedProgram,
    wishes: Wishes,
    threads: int,
    bar: Callable[[str], AbstractContextManager[Advance | None]],
) -> State:
    """The state in which a checked program is installed, its heads evaluated.

    ``bar``: shows the progress of a head.  Raises RuleError, StrategyError, DataError and EvaluationError.
    """
    heads = heads_in_order(program)
    strategies = plan_strategies(wishes.strategy, heads)
    shown = [name for name in heads if not is_auxiliary(name)]
    for name in {*wishes.sensitivity_bytes, *wishes.order} - set(shown):
        raise UnknownRelationError(f"the program has no head {name!r}; heads are {', '.join(shown)}")
    orders = plan_orders(wishes.order, heads)
    versions = dict(state.versions)
    traced = [rule for name in heads if strategies[name] == "trace" for rule in rules_of(program, name)]
    intermediates = Intermediates(traced, wishes.record_gap, orders)
    installed = {}
    for name in heads:
        head = MaintainedHead(
            name, program, strategies[name], versions, intermediates, wishes.record_gap, orders.get(name)
        )
        with bar(f"installing {name}") as advance:
            versions[name] = head.build(versions, threads, advance)
        installed[name] = head
    for head in installed.values():
        head.keep()
    functions = state.functions.union(*(head.reads_as_functions for head in installed.values()))
    budgets = {name: Budget(limit) for name, limit in wishes.sensitivity_bytes.items()}
    return State(versions, {**state.heads, **installed}, functions, {**state.budgets, **budgets})


def without_heads(state: State, names: Collection[str]) -> State:
    """The state less some heads, named as the user did.

    Raises UnknownRelationError, and ChangeError where rules of others read one of them.
    """
    for name in names:
        if name not in state.heads:
            known = (
                ", ".join(known for known in state.heads if not is_auxiliary(known)) or "none is installed"
            )
            raise UnknownRelationError(f"no head is called {name!r}; heads are {known}")
    gone = {name for name in state.heads if shown_name(name) in names}
    for head in state.heads.values():
        read = sorted(shown_name(name) for name in head.reads & gone)
        if read and head.name not in gone:
            raise ChangeError(
                f"the rules of {shown_name(head.name)!r} read {read[0]!r}:"
                f" uninstall {shown_name(head.name)!r} before it or with it"
            )
    heads = {name: head for name, head in state.heads.items() if name not in gone}
    return replace(
        state,
        versions={name: version for name, version in state.versions.items() if name not in gone},
        heads=heads,
        functions=frozenset().union(*(head.reads_as_functions for head in heads.values())),
        budgets={name: budget for name, budget in state.budgets.items() if name not in names},
        commit=None,
    )


def is_installed(state: State, program: CheckedProgram, wishes: Wishes) -> bool:
    """Whether the same rules are there already, kept as is wished."""
    names = heads_in_order(program)
    strategies, orders = plan_strategies(wishes.strategy, names), plan_orders(wishes.order, names)
    shown = {shown_name(name) for name in names}
    if {name for name in state.heads if shown_name(name) in shown} != set(names):
        return False
    if not all(
        state.heads[name].is_as(program, strategies[name], wishes.record_gap, orders.get(name))
        for name in names
    ):
        return False
    limits = {name: budget.limit for name, budget in state.budgets.items() if name in shown}
    return limits == dict(wishes.sensitivity_bytes)
