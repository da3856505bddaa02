"""One maintained head: its rules' bodies, its support counts, and its visible tuples.

With strategy ``trace`` every body is a :class:`~maintenance.body_trace.BodyTrace`;
its signed assignments, finished (late comparisons, assigned variables) and
projected to the head's columns, add to the support counts.  A head whose only
body binds nothing but head variables has support 1 throughout: no counts are
kept.  With ``recompute`` the head is evaluated again and subtracted.

Invariant: a step changes nothing that readers see; the workspace publishes what
it returns, or drops it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lftj.body import CheckedHead, CheckedProgram, CheckedRule
from lftj.errors import EvaluationError, RangeError, StrategyError
from lftj.evaluation import Evaluation, Settings
from lftj.finishing import finish
from lftj.lowering import lower
from lftj.planner import choose_order
from lftj.problem import JoinProblem
from lftj.region_plan import compile_regions
from lftj.relation import Relation
from lftj.relation_version import RelationVersion
from lftj.sorting import sort_distinct, sort_distinct_weighted
from lftj.syntax import Variable
from maintenance.body_trace import BodyTrace, Round, Versions
from maintenance.stats import RuleStats
from maintenance.support import SupportVersion

Columns = list[np.ndarray]
Advance = Callable[[float], None]

STRATEGIES = ("trace", "recompute")

RECORD_GAP = 8
"""An iterator that skips at most this many keys stays one record (:mod:`lftj.region_cursor`)."""


class _TracedBody:
    """A body and how its assignments become tuples of the head."""

    def __init__(self, rule: CheckedRule, head: CheckedHead, trace: BodyTrace) -> None:
        self.rule = rule
        self.trace = trace
        self.variables = head.variables
        free = set(trace.plan.order) - trace.lowered.problem.pinned
        # Each assignment is a tuple of its own.
        self.is_distinct = free <= set(head.variables)

    def tuples(self, columns: Columns, signs: np.ndarray) -> tuple[Columns, np.ndarray]:
        """Signed assignments as signed tuples of the head."""
        lowered = self.trace.lowered
        rows = dict(zip(self.trace.plan.order, columns, strict=True))
        rows = {name: rows[name] for name in lowered.problem.emitted}
        if not lowered.finishes_in_search and len(signs):
            try:
                rows, signs = finish(lowered, rows, signs, {})
            except (RangeError, EvaluationError) as error:
                raise type(error)(f"{error}\n  {self.rule.text}") from None
        elif not len(signs):
            return [np.empty(0, np.int64) for _ in self.variables], signs
        return [rows[name] for name in self.variables], signs


class MaintainedHead:
    """A derived relation that follows its inputs."""

    def __init__(
        self,
        name: str,
        program: CheckedProgram,
        strategy: str,
        versions: Versions,
        record_gap: int = RECORD_GAP,
        order: Sequence[str] | None = None,
    ) -> None:
        """Plan the rules of ``name`` over the versions as they are; nothing is evaluated yet."""
        self.name = name
        self.program = program
        self.schema = program.derived[name]
        self.reasons: tuple[str, ...] = ()
        self._rules = Evaluation(program, {}).rules_of(name)
        self.reads = frozenset(
            atom.relation
            for rule, _ in self._rules
            for body in rule.bodies
            for atom in (*body.atoms, *body.negations)
        )
        self.bodies: list[_TracedBody] = []
        self.strategy = strategy
        if strategy == "trace":
            self._plan_traces(versions, record_gap, order)
        self.counts_support = not (len(self.bodies) == 1 and self.bodies[0].is_distinct)

    def _plan_traces(self, versions: Versions, record_gap: int, order: Sequence[str] | None) -> None:
        relations = {name: versions[name].relation() for name in self.reads}
        reasons = [reason for rule, head in self._rules for reason in _obstacles(rule, head)]
        lowered_bodies = []
        for rule, head in self._rules if not reasons else ():
            for body in rule.bodies:
                lowered = lower(body, relations, head.variables, counted=False, lasting=True)
                reasons += _unbound_atoms(lowered.problem) + _separate_tests(lowered.problem)
                lowered_bodies.append((rule, head, body, lowered))
        if reasons:  # kept the other way, and said so by ``explain`` and ``stats``
            self.reasons = tuple(dict.fromkeys(reasons))
            self.strategy = "recompute"
            return
        for rule, head, body, lowered in lowered_bodies:
            choice = choose_order(lowered.problem, order, body.atom_variables())
            plan = compile_regions(lowered.problem, choice.order, record_gap)
            self.bodies.append(_TracedBody(rule, head, BodyTrace(lowered, choice, plan)))

    def joins_by(self, relation: str, column: int) -> bool:
        """Whether the records of this head are about a relation's column."""
        for body in self.bodies:
            problem = body.trace.lowered.problem
            for atom in (*problem.atoms, *problem.negations):
                columns = {*atom.columns, *(column for pair in atom.equal for column in pair)}
                if atom.relation.name == relation and column in columns:
                    return True
        return False

    @property
    def index_bytes(self) -> int:
        return sum(body.trace.index_bytes for body in self.bodies)

    @property
    def n_records(self) -> int:
        return sum(body.trace.n_records for body in self.bodies)

    # -- evaluation -----------------------------------------------------------------

    def build(
        self, versions: Versions, threads: int = 1, advance: Advance | None = None
    ) -> tuple[RelationVersion, SupportVersion]:
        """The head over the versions, and its support counts."""
        support = SupportVersion(len(self.schema.columns))
        if self.strategy == "recompute":
            return RelationVersion(self._recomputed(versions, threads, advance)), support
        if not self.counts_support:
            return self._built_in_key_order(versions, threads, advance), support
        columns, signs = self._gathered(
            [body.tuples(*body.trace.build(versions, threads, advance)) for body in self.bodies]
        )
        support, columns, _ = support.step(columns, signs)
        return RelationVersion(Relation.from_codes(self.name, self.schema, columns)), support

    def _built_in_key_order(
        self, versions: Versions, threads: int, advance: Advance | None
    ) -> RelationVersion:
        """The head whose tuples are the assignments of its one body, kept sorted as the search gives them."""
        (body,) = self.bodies
        columns, signs = body.trace.build(versions, threads, advance)
        tuples, _ = body.tuples(columns, signs)
        walked = [name for name in body.trace.plan.order if name in body.variables]
        if len(body.variables) == len(walked):
            order = tuple(body.variables.index(name) for name in walked)
            return RelationVersion.of_sorted(self.name, self.schema, order, [tuples[i] for i in order])
        columns = sort_distinct(tuples)  # assigned or repeated variables stand among the columns
        return RelationVersion(Relation.from_codes(self.name, self.schema, columns))

    def step(
        self, change: Round, support: SupportVersion, stats: RuleStats
    ) -> tuple[SupportVersion, Columns, np.ndarray]:
        """The visible change: sorted distinct tuples, +1 (was absent) or -1 (was present)."""
        stats.strategy = self.strategy
        if self.strategy == "recompute":
            old, new = change.old[self.name], self._recomputed(change.new, 1, None)
            columns, weights = _difference(new.codes, old.columns())
            return support, columns, weights
        columns, signs = self._gathered(
            [body.tuples(*body.trace.step(change, stats)) for body in self.bodies]
        )
        if not len(signs):
            return support, columns, signs
        if self.counts_support:
            return support.step(columns, signs)
        if len(signs) > 1:
            columns, signs = sort_distinct_weighted(columns, signs)
        return support, columns, signs

    def tidy(self, versions: Versions) -> int:
        """Build worn records anew, over versions that are published; returns for how many bodies."""
        return sum([body.trace.tidy(versions) for body in self.bodies])

    def _gathered(self, parts: list[tuple[Columns, np.ndarray]]) -> tuple[Columns, np.ndarray]:
        if len(parts) == 1:
            return parts[0]
        columns = [np.concatenate(columns) for columns in zip(*(c for c, _ in parts), strict=True)]
        return columns, np.concatenate([signs for _, signs in parts])

    def _recomputed(self, versions: Versions, threads: int, advance: Advance | None) -> Relation:
        relations = {name: versions[name].relation() for name in self.reads}
        settings = Settings(threads=threads, advance=advance)
        return Evaluation(self.program, relations, settings).relation(self.name)

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the structures."""
        for body in self.bodies:
            for index in body.trace.sensitivity:
                index.check_invariants()


def _obstacles(rule: CheckedRule, head: CheckedHead) -> list[str]:
    """Why ``trace`` can't keep a rule, in words."""
    found = []
    if head.value is not None:
        found.append("the head is functional")
    elif not head.variables:
        found.append("the head has no column")
    for body in rule.bodies:
        bound = set(body.atom_variables())
        found += [
            f"{a.relation} is read as a function" for a in (*body.atoms, *body.negations) if a.functional
        ]
        for negation in body.negations:
            if not {term.name for term in negation.terms if isinstance(term, Variable)} <= bound:
                found.append(f"!{negation.relation} tests a computed value")
    return found


def _unbound_atoms(problem: JoinProblem) -> list[str]:
    """Atoms that the search has no variable for: they only ask whether there is any tuple."""
    atoms = (*problem.atoms, *problem.negations)
    return [f"{atom.label} binds no variable of the search" for atom in atoms if not atom.variables]


def _separate_tests(problem: JoinProblem) -> list[str]:
    """Existential parts that no head variable touches: their support would multiply that of all the rest."""
    found = []
    for component in problem.components:
        touching = {name for edge in problem.edges if component & set(edge) for name in edge}
        if not touching - component - problem.pinned:
            found.append(f"{{{', '.join(sorted(component))}}} is an existence test apart from the head")
    return found


def _difference(new: Sequence[np.ndarray], old: Sequence[np.ndarray]) -> tuple[Columns, np.ndarray]:
    """Sorted tuples of ``new`` that are not in ``old`` with +1, and the other way round with -1."""
    columns = [np.concatenate(pair) for pair in zip(new, old, strict=True)]
    signs = np.concatenate([np.ones(len(new[0]), np.int64), np.full(len(old[0]), -1, np.int64)])
    rows, weights = sort_distinct_weighted(columns, signs)
    changed = weights != 0
    return [column[changed] for column in rows], weights[changed]


def plan_strategies(strategy: str | Mapping[str, str], heads: Sequence[str]) -> dict[str, str]:
    """The strategy of each head of a program.  Raises StrategyError."""
    chosen = {head: strategy if isinstance(strategy, str) else strategy.get(head, "trace") for head in heads}
    if not isinstance(strategy, str):
        for head in strategy:
            if head not in chosen:
                raise StrategyError(
                    f"strategy= names {head!r}, but the program's heads are {', '.join(heads)}"
                )
    for head, name in chosen.items():
        if name not in STRATEGIES:
            raise StrategyError(
                f"there is no strategy {name!r} for {head!r}: there are {' and '.join(STRATEGIES)}"
            )
    return chosen
