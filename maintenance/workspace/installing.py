"""Installing rules and taking them away: from one state to the next.

Nothing here changes a state: heads are built over it, beside what is there, and the
workspace publishes the state that comes out by one assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from lftj.errors import ChangeError, StrategyError, UnknownRelationError
from lftj.language.body import CheckedProgram
from lftj.language.diagnostics import unknown_name
from lftj.language.several_aggregates import is_auxiliary, shown_name
from maintenance.heads.head import MaintainedHead
from maintenance.heads.intermediate import Intermediates
from maintenance.heads.keeping import RECORD_GAP, Keeping
from maintenance.heads.strategies import DEFAULT, STRATEGIES
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

    def keepings(self, heads: Sequence[str]) -> dict[str, Keeping]:
        """How each head of a program is to be kept.  Raises StrategyError."""
        strategies, orders = _strategies(self.strategy, heads), _orders(self.order, heads)
        return {name: Keeping(strategies[name], self.record_gap, orders.get(name)) for name in heads}


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
    keepings = wishes.keepings(heads)
    shown = [name for name in heads if not is_auxiliary(name)]
    for name in {*wishes.sensitivity_bytes, *wishes.order} - set(shown):
        raise UnknownRelationError(f"the program has no head {name!r}; heads are {', '.join(shown)}")
    versions = dict(state.versions)
    shared = [name for name in heads if isinstance(keepings[name].made(), BodyStrategy)]
    intermediates = Intermediates([rule for name in shared for rule in program.rules_of(name)], keepings)
    strata = []
    for names in heads_by_stratum(program):
        installed = []
        for name in names:
            head = MaintainedHead(name, program, keepings[name], versions, intermediates)
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
    _check_strategy(strategy, name)
    keepings = {head.name: replace(head.keeping, strategy=strategy) for head in own}
    by_bodies = isinstance(keepings[own[0].name].made(), BodyStrategy)
    shared = [rule for head in own for rule in head.rules] if by_bodies else []
    intermediates = Intermediates(shared, keepings)
    others = {}
    for head in own:
        other = MaintainedHead(head.name, head.program, keepings[head.name], state.versions, intermediates)
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
    keepings = wishes.keepings(names)
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
    chosen = {head: named.get(shown_name(head), DEFAULT) for head in heads}
    for head, name in chosen.items():
        _check_strategy(name, head)
    return chosen


def _check_strategy(name: str, head: str) -> None:
    if name not in STRATEGIES:
        raise StrategyError(
            f"there is no strategy {name!r} for {head!r}: strategies are {', '.join(STRATEGIES)}"
        )


def _orders(order: Mapping[str, Sequence[str]], heads: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The caller's key order of each head; where a head was taken apart, of its auxiliary heads."""
    apart = {shown_name(head) for head in heads if is_auxiliary(head)}
    given = (head for head in heads if shown_name(head) in order and head not in apart)
    return {head: tuple(order[shown_name(head)]) for head in given}
