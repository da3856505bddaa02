"""Installing rules and taking them away: from one state to the next.

Nothing here changes a state: heads are built over it, beside what is there, and the
workspace publishes the state that comes out by one assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import filterfalse
from typing import Any

from indices import announcement
from lftj.errors import ChangeError, OrderError, RangeError, StrategyError, UnknownRelationError
from lftj.evaluation.one_row import one_row
from lftj.language.body import MAX_ROUNDS, CheckedProgram
from lftj.language.checker import check
from lftj.language.diagnostics import unknown_name
from lftj.language.one_row import ONE_ROW
from lftj.language.parser import parse
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.language.syntax import Program
from lftj.process.progress import Advance, bar, is_seen
from lftj.rewriting.computed_keys import with_computed_keys
from lftj.rewriting.guard import MayNotFit, Spans
from lftj.rewriting.key_relations import holds_keys, is_made
from lftj.rewriting.programs import with_views
from lftj.rewriting.shared_views import is_view
from lftj.rewriting.thresholds import with_thresholds
from lftj.rewriting.wanted_heads import Results, for_results
from lftj.storage.relation_version import RelationVersion
from lftj.values.domains import Domains
from maintenance.heads.head import MaintainedHead
from maintenance.heads.intermediate import Intermediates
from maintenance.heads.keeping import RECORD_GAP, Keeping
from maintenance.heads.operator_head import OperatorHead
from maintenance.heads.recursive_source import KeptComponents
from maintenance.heads.strategies import COMPONENT_STRATEGIES, DEFAULT, STRATEGIES, VIEWS
from maintenance.heads.stratum import Stratum, heads_by_stratum
from maintenance.strategies.strategy import BodyStrategy, Building, Versions
from maintenance.workspace.budget import Budget, Budgets, refuse_large_views
from maintenance.workspace.guarded import with_spans
from maintenance.workspace.ready_kernels import load_for
from maintenance.workspace.state import State

TOO_LARGE = "a partial sum does not fit 128 bits"


@dataclass(frozen=True)
class Wishes:
    """How a user wants the heads of a program to be kept; see :meth:`maintenance.Workspace.install`."""

    strategy: str | Mapping[str, str] = DEFAULT
    sensitivity_bytes: Mapping[str, int] = field(default_factory=dict)
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    record_gap: int = RECORD_GAP
    max_rounds: int = MAX_ROUNDS
    results: Results | None = None

    def checked(self, tree: Program, state: State, gone: Collection[str], domains: Domains) -> CheckedProgram:
        """A program over a state less some heads, named as the user did; what is wanted of it.

        Raises RuleError.
        """
        hidden = {name: text for name, text in state.hidden.items() if name not in gone}
        left = _read_by_shown(state, [name for name in state.heads if _is_own(name, gone)])
        there = {
            name: version
            for name, version in state.versions.items()
            if (shown_name(name) not in gone or name in left) and name not in hidden
        }
        heads = [name for name in state.heads if shown_name(name) not in gone]
        installed = {**dict.fromkeys(heads, ""), **hidden}
        schemas = {name: version.schema for name, version in there.items()}
        program = check(replace(tree, finals=()), schemas, domains, installed)
        program = with_computed_keys(program, schemas, domains, self.order)
        if self.results is None:
            return program
        catalog = {name: version for name, version in there.items() if not is_auxiliary(name)}
        return for_results(program, self.results, catalog, domains)

    def without(self, heads: Collection[str]) -> Wishes:
        """What is wished but of some heads."""

        def own(wished: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in wished.items() if name not in heads}

        strategy = self.strategy if isinstance(self.strategy, str) else own(self.strategy)
        return replace(
            self, strategy=strategy, order=own(self.order), sensitivity_bytes=own(self.sensitivity_bytes)
        )

    def rewritten(
        self, tree: Program, state: State, replaces: bool, domains: Domains, grows: bool
    ) -> tuple[Wishes, Program, set[str], CheckedProgram]:
        """A program to be installed, with ranges in the place of thresholds where some heads are wanted.

        ``replaces``: whether heads of its names go; ``grows``: whether its text says more than these rules.
        Returns it between what is wished of it, and these heads and it checked.  Sums of ranges are kept by
        views where no strategy is given.  Raises RuleError.
        """
        gone = written_heads(tree) & set(state.heads) if replaces else set()
        checked = self.checked(tree, state, gone, domains)
        has_text = tree.text and not (grows or state.recents)  # relations of recent rows have no name in one
        if self.results is None or self.results.choices is not None or not has_text:
            return self, tree, gone, checked
        made = {name for each in state.definitions if gone & {*each.strategies} for name in each.strategies}
        there = {name: version.schema for name, version in state.versions.items() if name not in made}
        found = with_thresholds(tree, as_written(checked), there, {*there, *state.hidden} - made)
        if found is None:
            return self, tree, gone, checked
        text, ranges = found
        tree, wishes = parse(text), self
        if self.strategy == DEFAULT or not isinstance(self.strategy, str):
            own = {} if isinstance(self.strategy, str) else self.strategy
            wishes = replace(self, strategy={**dict.fromkeys(ranges, VIEWS), **own})
        gone = written_heads(tree) & set(state.heads) if replaces else set()
        return wishes, tree, gone, self.checked(tree, state, gone, domains)

    def keepings(self, program: CheckedProgram, heads: Sequence[str]) -> dict[str, Keeping]:
        """How each of these heads of a program is to be kept.  Raises StrategyError, OrderError."""
        written = as_written(program)
        named = [name for names in heads_by_stratum(written) for name in names]
        strategies, orders = _strategies(self.strategy, named), _orders(self.order, named)
        keepings = {
            name: Keeping(strategies[name], self.record_gap, orders.get(name), self.max_rounds)
            for name in named
        }
        keepings |= {name: _suited(keepings[name], name, written) for name in named if is_made(name)}
        for name, keeping in keepings.items():
            _check_keeping(name, keeping, written, keepings)
        if program.wanted is None:
            return keepings
        shown = {shown_name(name): keeping for name, keeping in keepings.items()}
        others = {name: replace(shown[shown_name(name)], order=None) for name in heads if is_made(name)}
        return {name: _suited({**keepings, **others}[name], name, program) for name in heads}


def written_heads(tree: Program) -> set[str]:
    return {head.relation for rule in tree.rules for head in rule.heads}


def as_written(program: CheckedProgram) -> CheckedProgram:
    """The program of which this one keeps some heads for what is wanted; itself where all are."""
    return program if program.wanted is None else program.wanted.whole


def _suited(keeping: Keeping, name: str, program: CheckedProgram) -> Keeping:
    """How a head is kept over keys, which may go round where it does not, or not where it did."""
    possible = COMPONENT_STRATEGIES if program.component_of(name) else STRATEGIES
    return keeping if keeping.strategy in possible else replace(keeping, strategy=DEFAULT)


@contextmanager
def shown_bar(title: str, progress: bool | None = None) -> Iterator[Advance | None]:
    """A progress bar, and how to move it on; None where nobody sees one."""
    with bar(title, progress) as advance:
        yield advance if is_seen(progress) else None


def with_rules(
    state: State,
    program: CheckedProgram,
    wishes: Wishes,
    domains: Domains,
    threads: int,
    bar: Callable[[str], AbstractContextManager[Advance | None]],
) -> State:
    """The state in which a checked program is installed, its heads evaluated.

    ``domains``: those of the state's codes.  ``bar``: shows the progress of a head.  Raises RuleError,
    StrategyError, DataError and EvaluationError, ViewBudgetError among them.
    """
    heads = [name for names in heads_by_stratum(program) for name in names]
    keepings = wishes.keepings(program, heads)
    shown = [name for name in as_written(program).derived if not is_auxiliary(name)]
    for name in {*wishes.sensitivity_bytes, *wishes.order} - set(shown):
        raise UnknownRelationError(f"the program has no head {name!r}; heads are {', '.join(shown)}")

    def installed(rewritten: CheckedProgram) -> State:
        following = _with_heads(state, rewritten, _with_views_kept(rewritten, keepings), threads, bar)
        return with_spans(following, heads, {})

    with announcement.part_of("1 of 3: rules"):
        following = _by_views(program, _wanting_views(keepings), state, domains, installed)
    refuse_large_views(following.heads, following.versions, state.view_bytes)
    load_for(following.heads.values())
    budgets: Budgets = {name: Budget(limit) for name, limit in wishes.sensitivity_bytes.items()}
    return replace(following, budgets={**state.budgets, **budgets})


def _wanting_views(keepings: Mapping[str, Keeping]) -> list[str]:
    """A head whose key order is given has no views: the order is that of its rules as written."""
    return [name for name, keeping in keepings.items() if keeping.strategy == VIEWS and keeping.order is None]


def _by_views(
    program: CheckedProgram,
    heads: Collection[str],
    state: State,
    domains: Domains,
    installed: Callable[[CheckedProgram], State],
    wide: bool = False,
    spans: Spans | None = None,
) -> State:
    """What ``installed`` gives of the program with views of some heads, or where sums are too large, without.

    Partial sums have 64 bits, or where one does not fit, or ``wide`` says so, 128.  ``spans``: what is known
    of columns beyond what the versions hold.
    """
    if not heads:
        return installed(program)
    for has_128_bits in (True,) if wide else (False, True):
        rewritten = with_views(
            program,
            heads,
            state.versions,
            domains,
            state.versions,
            wide=has_128_bits,
            spans=spans,
        )
        try:
            return installed(rewritten)
        except MayNotFit as error:  # of heads that are installed together, one reads what another gives
            why = f"none: {error}"
            break
        except RangeError:
            if rewritten.written is None:
                raise
            why = f"none: {TOO_LARGE}"
    return installed(replace(program, notes=dict.fromkeys(heads, why), guards=rewritten.guards))


def _with_views_kept(program: CheckedProgram, keepings: Mapping[str, Keeping]) -> dict[str, Keeping]:
    """How the heads of a program are kept, and as one of them its views."""
    views = [name for name in program.derived if is_view(name)]
    by_views = [keeping for keeping in keepings.values() if keeping.strategy == VIEWS]
    like = next(iter(by_views or keepings.values()))
    return {**dict.fromkeys(views, replace(like, order=None)), **keepings}


def _with_heads(
    state: State,
    program: CheckedProgram,
    keepings: Mapping[str, Keeping],
    threads: int,
    bar: Callable[[str], AbstractContextManager[Advance | None]],
) -> State:
    """The state with the heads of a program on top, evaluated and kept."""
    versions, strata = _built(state, program, heads_by_stratum(program), keepings, threads, bar)
    return replace(state, versions=versions, strata=state.strata.below(strata), commit=None)


def _built(
    state: State,
    program: CheckedProgram,
    names_by_stratum: Sequence[Sequence[str]],
    keepings: Mapping[str, Keeping],
    threads: int = 1,
    bar: Callable[[str], AbstractContextManager[Advance | None]] = shown_bar,
) -> tuple[Versions, list[Stratum]]:
    """Heads of a program over the state, evaluated and kept: all versions, and their strata."""
    versions = dict(state.versions)
    if ONE_ROW in program.derived:
        versions.setdefault(ONE_ROW, RelationVersion(one_row(program.derived[ONE_ROW])))
    heads = [name for names in names_by_stratum for name in names]
    shared = [name for name in heads if _keeps_bodies(program, name, keepings[name])]
    intermediates = Intermediates([rule for name in shared for rule in program.rules_of(name)], keepings)
    components = KeptComponents(program, keepings)
    strata = []
    for names in names_by_stratum:
        installed = []
        for name in names:
            head = MaintainedHead(name, program, keepings[name], versions, intermediates, components)
            with bar(f"installing {shown_name(name)}") as advance:
                versions[name] = head.build(Building(versions, threads, advance))
            installed.append(head)
        strata.append(Stratum(installed))
    for stratum in strata:
        for head in stratum.heads:
            head.keep()
    return versions, strata


def with_strategy(state: State, name: str, strategy: str, domains: Domains) -> State:
    """The state in which a head, named as the user did, is kept by another strategy; its tuples are the same.

    ``domains``: those of the state's codes.  Raises UnknownRelationError, StrategyError and ViewBudgetError.
    """
    members = heads_of(state, name)
    if not members:
        raise unknown_name("head", name, [known for known in state.heads if not is_auxiliary(known)])
    if isinstance(members[0], OperatorHead):
        raise StrategyError(f"{name!r} is an operator: its function makes it, and no strategy")
    program = members[0].program.as_written
    written = as_written(program)
    names = {shown_name(other) for member in members for other in (name, *written.component_of(member.name))}
    keepings = {
        head.name: _suited(replace(head.keeping, strategy=strategy), head.name, program)
        for head in state.heads.values()
        if shown_name(head.name) in names and not is_view(head.name)
    }
    for head_name in filterfalse(is_made, keepings.keys() & written.derived.keys()):
        as_wished = {one: replace(keeping, strategy=strategy) for one, keeping in keepings.items()}
        _check_keeping(head_name, as_wished[head_name], written, as_wished)
    following = kept_anew(state, program, keepings, _wanting_views(keepings), domains)
    refuse_large_views(following.heads, following.versions, state.view_bytes)
    return following


def heads_of(state: State, name: str) -> list[MaintainedHead]:
    """What keeps a head that is named as the user did: several where it has several aggregates.

    Nothing that a rewriting made is among them.
    """
    return [head for head in state.heads.values() if shown_name(head.name) == name and not is_made(head.name)]


def kept_anew(
    state: State,
    program: CheckedProgram,
    keepings: Mapping[str, Keeping],
    by_views: Collection[str],
    domains: Domains,
    *,
    wide: bool = False,
    spans: Spans | None = None,
) -> State:
    """The state in which some heads of a program are kept otherwise; their tuples are the same.

    ``program``: as it was written.  ``by_views``: those that are to have views where they gain by them;
    ``wide``: of 128 bits; ``spans``: what is known of columns beyond what the versions hold.
    """
    names = list(keepings)

    def installed(rewritten: CheckedProgram) -> State:
        wanted = {*names, *(view for view in rewritten.derived if is_view(view))}
        strata = [[name for name in each if name in wanted] for each in heads_by_stratum(rewritten)]
        versions, built = _built(
            state, rewritten, list(filter(None, strata)), _with_views_kept(rewritten, keepings)
        )
        there = {head.name: head for stratum in built for head in stratum.heads}
        views = [Stratum([head for head in stratum.heads if is_view(head.name)]) for stratum in built]
        following = state.strata.with_heads({name: there[name] for name in names}).inserted(views)
        # The tuples are the same, and so are their versions; auxiliary heads may have others.
        same = {name: state.versions[name] for name in names if not is_auxiliary(name)}
        versions = {**versions, **same}
        changed = _without_unread(replace(state, versions=versions, strata=following, commit=None))
        return with_spans(changed, names, spans or {})

    following = _by_views(program, by_views, state, domains, installed, wide, spans)
    load_for(following.heads.values())
    return following


def with_wider_views(state: State, domains: Domains) -> State:
    """The state in which partial sums of 64 bits have 128 where the last step of one was refused.

    The same state where there is none.  Raises RangeError.
    """
    refused = {
        name
        for name, head in state.heads.items()
        if head.was_refused_range and head.program.written is not None and not head.program.wide_views
    }
    for name, head in state.heads.items():  # each behind those that it reads
        if any(is_view(read) and read in refused for read in head.reads):
            refused.add(name)
    for name in dict.fromkeys(shown_name(name) for name in refused if not is_made(name)):
        members = heads_of(state, name)
        if any(is_view(read) for head in members for read in head.reads):
            keepings = {head.name: head.keeping for head in members}
            choice = state.heads[name].choice
            state = kept_anew(
                state, members[0].program.as_written, keepings, list(keepings), domains, wide=True
            )
            state.heads[name].choice = choice
    return state


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
    gone = {name for name in state.heads if _is_own(name, names)}
    left = _read_by_shown(state, gone)
    for head in state.heads.values():
        read = sorted(shown_name(name) for name in head.reads & gone)
        if not read or head.name in gone or head.name not in left or is_view(head.name):
            continue
        reader = shown_name(head.name)
        if holds_keys(head.name):
            raise ChangeError(
                f"{reader!r} is kept for keys that {read[0]!r} gives, until its program is installed anew"
                f" without {read[0]!r} by install(..., replace=True)"
            )
        raise ChangeError(
            f"the rules of {reader!r} read {read[0]!r}: uninstall {reader!r} before it or with it"
        )
    budgets = {name: budget for name, budget in state.budgets.items() if name not in names}
    return replace(_less(state, state.heads.keys() - left), budgets=budgets, commit=None)


def _is_own(name: str, heads: Collection[str]) -> bool:
    """Whether this names what the rules of some heads, named as the user did, say, and not a rewriting."""
    return shown_name(name) in heads and not is_made(name)


def _read_by_shown(state: State, gone: Collection[str] = ()) -> set[str]:
    """The heads that a user may read, but some, and those that they need."""
    todo = [
        head
        for head in state.heads.values()
        if not (is_made(head.name) or head.kept_for or head.name in gone)
    ]
    found = {head.name for head in todo}
    while todo:
        read = (todo.pop().reads & state.heads.keys()) - found - {*gone}
        found |= read
        todo += [state.heads[name] for name in read]
    return found


def _less(state: State, gone: Collection[str]) -> State:
    """The state less some heads, which no other reads that stays."""
    versions = {name: version for name, version in state.versions.items() if name not in gone}
    return replace(state, versions=versions, strata=state.strata.without(gone))


def _without_unread(state: State) -> State:
    """The state less the views, and the heads that are kept for others, that no head reads any more."""
    gone = state.heads.keys() - _read_by_shown(state)
    return _less(state, gone) if gone else state


def is_installed(state: State, program: CheckedProgram, wishes: Wishes) -> bool:
    """Whether the same rules are there already, kept as is wished."""
    names = [name for names in heads_by_stratum(program) for name in names]
    keepings = wishes.keepings(program, names)
    shown = {shown_name(name) for name in names}
    there = {name for name in state.heads if shown_name(name) in shown and not is_view(name)}
    if there != set(names):
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
