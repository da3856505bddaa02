"""Installing rules and taking them away: from one state to the next.

Nothing here changes a state: heads are built over it, beside what is there, and the
workspace publishes the state that comes out by one assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from lftj.errors import ChangeError, OrderError, StrategyError, UnknownRelationError
from lftj.language.body import MAX_ROUNDS, CheckedProgram
from lftj.language.diagnostics import unknown_name
from lftj.language.several_aggregates import is_auxiliary, shown_name
from maintenance.heads.head import MaintainedHead
from maintenance.heads.intermediate import Intermediates
from maintenance.heads.keeping import RECORD_GAP, Keeping
from maintenance.heads.recursive_source import KeptComponents
from maintenance.heads.strategies import COMPONENT_STRATEGIES, DEFAULT, STRATEGIES
from maintenance.heads.stratum import Stratum, heads_by_stratum
from maintenance.strategies.strategy import Advance, BodyStrategy
from maintenance.workspace.budget import Budget, Budgets
from maintenance.workspace.state import State


@dataclass(frozen=True)
class Wishes:
    """How a user wants the heads of a program to be kept; see :meth:`maintenance.Workspace.install`."""

    strategy: str | Mapping[str, str] = DEFAULT
    sensitivity_bytes: Mapping[str, int] = field(default_factory=dict)
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    record_gap: int = RECORD_GAP
    max_rounds: int = MAX_ROUNDS

    def keepings(self, program: CheckedProgram, heads: Sequence[str]) -> dict[str, Keeping]:
        """How each of these heads of a program is to be kept.  Raises StrategyError, OrderError."""
        strategies, orders = _strategies(self.strategy, heads), _orders(self.order, heads)
        keepings = {
            name: Keeping(strategies[name], self.record_gap, orders.get(name), self.max_rounds)
            for name in heads
        }
        for name, keeping in keepings.items():
            _check_keeping(name, keeping, program, keepings)
        return keepings


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
    heads = [name for names in heads_by_stratum(program) for name in names]
    keepings = wishes.keepings(program, heads)
    shown = [name for name in heads if not is_auxiliary(name)]
    for name in {*wishes.sensitivity_bytes, *wishes.order} - set(shown):
        raise UnknownRelationError(f"the program has no head {name!r}; heads are {', '.join(shown)}")
    versions = dict(state.versions)
    shared = [name for name in heads if _keeps_bodies(program, name, keepings[name])]
    intermediates = Intermediates([rule for name in shared for rule in program.rules_of(name)], keepings)
    components = KeptComponents(program, keepings)
    strata = []
    for names in heads_by_stratum(program):
        installed = []
        for name in names:
            head = MaintainedHead(name, program, keepings[name], versions, intermediates, components)
            with bar(f"installing {name}") as advance:
                versions[name] = head.build(versions, threads, advance)
            installed.append(head)
        strata.append(Stratum(installed))
    for stratum in strata:
        for head in stratum.heads:
            head.keep()
    budgets: Budgets = {name: Budget(limit) for name, limit in wishes.sensitivity_bytes.items()}
    return State(versions, state.strata.below(strata), {**state.budgets, **budgets})


def with_strategy(state: State, name: str, strategy: str) -> State:
    """The state in which a head, named as the user did, is kept by another strategy; its tuples are the same.

    Raises UnknownRelationError and StrategyError.
    """
    own = [head for head in state.heads.values() if shown_name(head.name) == name]
    if not own:
        raise unknown_name("head", name, [known for known in state.heads if not is_auxiliary(known)])
    program = own[0].program
    own += [state.heads[other] for other in program.component_of(name) if other != name]
    keepings = {head.name: replace(head.keeping, strategy=strategy) for head in own}
    for head_name, keeping in keepings.items():
        _check_keeping(head_name, keeping, program, keepings)
    by_bodies = _keeps_bodies(program, own[0].name, keepings[own[0].name])
    shared = [rule for head in own for rule in head.rules] if by_bodies else []
    intermediates = Intermediates(shared, keepings)
    components = KeptComponents(program, keepings)
    others = {}
    for head in own:
        other = MaintainedHead(
            head.name, program, keepings[head.name], state.versions, intermediates, components
        )
        other.build(state.versions)
        others[head.name] = other
    for other in others.values():
        other.keep()
    return replace(state, strata=state.strata.with_heads(others), commit=None)


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
    return replace(
        state,
        versions={name: version for name, version in state.versions.items() if name not in gone},
        strata=state.strata.without(gone),
        budgets={name: budget for name, budget in state.budgets.items() if name not in names},
        commit=None,
    )


def is_installed(state: State, program: CheckedProgram, wishes: Wishes) -> bool:
    """Whether the same rules are there already, kept as is wished."""
    names = [name for names in heads_by_stratum(program) for name in names]
    keepings = wishes.keepings(program, names)
    shown = {shown_name(name) for name in names}
    if {name for name in state.heads if shown_name(name) in shown} != set(names):
        return False
    if not all(state.heads[name].is_as(program, keepings[name]) for name in names):
        return False
    limits = {name: budget.limit for name, budget in state.budgets.items() if name in shown}
    return limits == dict(wishes.sensitivity_bytes)


def _strategies(strategy: str | Mapping[str, str], heads: Sequence[str]) -> dict[str, str]:
    """The strategy of each head of a program.  Raises StrategyError."""
    named = dict.fromkeys(heads, strategy) if isinstance(strategy, str) else strategy
    shown = [head for head in heads if not is_auxiliary(head)]
    for head in named if named is strategy else ():
        if head not in shown:
            raise StrategyError(f"strategy= names {head!r}, but the program's heads are {', '.join(shown)}")
    return {head: named.get(shown_name(head), DEFAULT) for head in heads}


def _check_keeping(
    head: str, keeping: Keeping, program: CheckedProgram, keepings: Mapping[str, Keeping]
) -> None:
    """Refuse what a head can't be kept by.  ``keepings``: of all heads that are installed with it."""
    component = program.component_of(head)
    possible = COMPONENT_STRATEGIES if component else STRATEGIES
    if keeping.strategy not in possible:
        which = f"{head!r}, which depends on itself," if component else repr(head)
        raise StrategyError(
            f"there is no strategy {keeping.strategy!r} for {which}: strategies are {', '.join(possible)}"
        )
    other = next((name for name in component if keepings[name].strategy != keeping.strategy), None)
    if other is not None:
        raise StrategyError(
            f"{head!r} and {other!r} depend on each other: they can't be kept by"
            f" {keeping.strategy!r} and {keepings[other].strategy!r}"
        )
    if component and keeping.order is not None:
        raise OrderError(
            f"order= names {head!r}, which depends on itself: its rounds have orders of their own"
        )


def _keeps_bodies(program: CheckedProgram, name: str, keeping: Keeping) -> bool:
    """Whether a head is kept body by body."""
    return not program.component_of(name) and isinstance(keeping.made(), BodyStrategy)


def _orders(order: Mapping[str, Sequence[str]], heads: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The caller's key order of each head; where a head was taken apart, of its auxiliary heads."""
    apart = {shown_name(head) for head in heads if is_auxiliary(head)}
    given = (head for head in heads if shown_name(head) in order and head not in apart)
    return {head: tuple(order[shown_name(head)]) for head in given}
