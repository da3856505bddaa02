"""One maintained head: what its rules give, its support counts, and its visible tuples.

With strategy ``trace`` every rule is a :class:`~maintenance.heads.rule_source.RuleSource` whose
signed tuples add up.  A head whose only rule gives each tuple once keeps no counts; else
support counts say when a tuple comes or goes.  With ``recompute`` the head is evaluated
again and subtracted.

Invariants

1. A step changes nothing that readers see: it stages.  The workspace publishes what it returns and calls
   :meth:`MaintainedHead.keep`, or calls :meth:`MaintainedHead.drop`.
2. A functional head has one value per key; a step that would give it two raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lftj.errors import StrategyError
from lftj.evaluation.evaluation import Evaluation, Settings
from lftj.language.body import CheckedHead, CheckedProgram, CheckedRule
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.language.syntax import Aggregate
from lftj.storage.catalog import Table
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns, gathered, net_rows
from lftj.storage.sorting import sort_distinct
from lftj.storage.support import SupportVersion
from maintenance.heads.functional_check import refuse_head_conflict
from maintenance.heads.intermediate import Intermediates
from maintenance.heads.rule_body import RuleBody
from maintenance.heads.rule_source import AggregateSource, RuleSource, SetSource
from maintenance.stats import RuleStats
from maintenance.strategies.trace.body_trace import Advance, BodyTrace, Round, Versions

STRATEGIES = ("trace", "recompute")

RECORD_GAP = 8
"""An iterator that skips at most this many keys stays one record (:mod:`lftj.search.regions.cursor`)."""


class MaintainedHead:
    """A derived relation that follows its inputs."""

    def __init__(
        self,
        name: str,
        program: CheckedProgram,
        strategy: str,
        versions: Versions,
        intermediates: Intermediates,
        record_gap: int = RECORD_GAP,
        order: Sequence[str] | None = None,
    ) -> None:
        """Plan the rules of ``name`` over the versions as they are; nothing is evaluated yet."""
        self.name = name
        self.program = program
        self.schema = program.derived[name]
        self.rules = rules_of(program, name)
        self.text = " ".join(rule.text for rule, _ in self.rules)
        atoms = [a for rule, _ in self.rules for b in rule.bodies for a in (*b.atoms, *b.negations)]
        self.reads = frozenset(atom.relation for atom in atoms)
        self.reads_as_functions = frozenset(atom.relation for atom in atoms if atom.functional)
        self.strategy = strategy
        self.record_gap = record_gap
        self.order = order
        self.sources: list[RuleSource] = []
        if self.strategy == "trace":
            relations = {read: versions[read].relation() for read in self.reads}
            for rule, head in self.rules:
                if isinstance(head.value, Aggregate):
                    self.sources.append(AggregateSource(*intermediates.of(rule, head, relations)))
                else:
                    self.sources.append(SetSource(rule, head, relations, record_gap, order))
        self.counts_support = len(self.sources) > 1 or not all(s.is_distinct for s in self.sources)
        self._support = SupportVersion(len(self.schema.columns))
        self._staged_support: SupportVersion | None = None

    @property
    def bodies(self) -> tuple[RuleBody, ...]:
        """Whose searches this head pays for."""
        return tuple(body for source in self.sources for body in source.bodies)

    @property
    def traces(self) -> tuple[BodyTrace, ...]:
        """All searches that this head pays for."""
        return tuple(trace for body in self.bodies for trace in body.traces)

    def is_as(
        self, program: CheckedProgram, strategy: str, record_gap: int, order: Sequence[str] | None
    ) -> bool:
        """Whether a program defines this head as it is, and to be kept as it is."""
        texts = [rule.text for rule, _ in rules_of(program, self.name)]
        wanted = (texts, program.derived[self.name], strategy, record_gap, order and list(order))
        here = [rule.text for rule, _ in self.rules]
        return wanted == (here, self.schema, self.strategy, self.record_gap, self.order and list(self.order))

    def joins_by(self, relation: str, column: int) -> bool:
        """Whether the records of this head are about a relation's column, so that it can't hold NaN."""
        return any((relation, column) in body.nan_free for body in self.bodies)

    @property
    def index_bytes(self) -> int:
        return sum([trace.index_bytes for trace in self.traces])

    @property
    def n_records(self) -> int:
        return sum([trace.n_records for trace in self.traces])

    # -- evaluation -----------------------------------------------------------------

    def build(self, versions: Versions, threads: int = 1, advance: Advance | None = None) -> RelationVersion:
        """The head over the versions; staged, like a step."""
        if self.strategy == "recompute":
            return RelationVersion(self._recomputed(versions, threads, advance))
        columns, signs = gathered([source.build(versions, threads, advance) for source in self.sources])
        if self.counts_support:
            self._staged_support, columns, signs = self._support.step(columns, signs)
        version = self._first_version(columns)
        if self._checks_values:
            refuse_head_conflict(version, columns, signs, self.text)
        return version

    @property
    def _checks_values(self) -> bool:
        """Whether two values of one key are possible: a lone aggregate has one per group."""
        return self.schema.functional and not (
            len(self.sources) == 1 and isinstance(self.sources[0], AggregateSource)
        )

    def _first_version(self, columns: Columns) -> RelationVersion:
        """Distinct tuples as a relation, kept sorted as the search gives them where that is possible."""
        if not self.counts_support and isinstance(self.sources[0], SetSource):
            (body,) = self.sources[0].bodies
            ((_, head),) = self.rules
            walked = [n for search in body.searches for n in search.variables if n in head.variables]
            if len(columns) == len(walked) and len(body.searches) == 1:
                order = tuple(head.variables.index(name) for name in walked)
                return RelationVersion.of_sorted(self.name, self.schema, order, [columns[i] for i in order])
        return RelationVersion(Relation.from_codes(self.name, self.schema, sort_distinct(list(columns))))

    def step(self, change: Round, stats: RuleStats) -> tuple[Columns, np.ndarray]:
        """The visible change: sorted distinct tuples, +1 (was absent) or -1 (was present)."""
        stats.strategy = self.strategy
        if self.strategy == "recompute":
            old, new = change.old[self.name], self._recomputed(change.new, 1, None)
            return _difference(new.codes, old.columns())
        columns, signs = gathered([source.step(change, stats) for source in self.sources])
        if not len(signs):
            return columns, signs
        if self.counts_support:
            self._staged_support, columns, signs = self._support.step(columns, signs)
        elif len(signs) > 1:
            columns, signs = net_rows(columns, signs)
        return columns, signs

    def check_values(self, version: RelationVersion, columns: Columns, weights: np.ndarray) -> None:
        """Raise FunctionalConflictError where a change, after which this is the version, breaks the head."""
        if self._checks_values:
            refuse_head_conflict(version, columns, weights, self.text)

    def keep(self) -> None:
        """Publish what was staged."""
        for source in self.sources:
            source.keep()
        if self._staged_support is not None:
            self._support = self._staged_support
            self._staged_support = None

    def drop(self) -> None:
        """Forget what was staged."""
        for source in self.sources:
            source.drop()
        self._staged_support = None

    def tidy(self, versions: Versions) -> int:
        """Build worn records anew, over versions that are published; returns for how many searches."""
        for source in self.sources:
            source.tidy()
        return sum([body.tidy(versions) for body in self.bodies])

    def _recomputed(self, versions: Versions, threads: int, advance: Advance | None) -> Relation:
        relations: dict[str, Table] = {name: versions[name] for name in self.reads}
        settings = Settings(threads=threads, advance=advance)
        return Evaluation(self.program, relations, settings).relation(self.name)

    def hand_over(self) -> None:
        """From now on other heads pay for searches that they share with this one; it goes on as it was."""
        for source in self.sources:
            source.hand_over()

    def leave(self) -> None:
        """The head is uninstalled: what only it needed of shared structures goes."""
        for source in self.sources:
            source.leave()

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the structures."""
        for source in self.sources:
            source.check_invariants()
        assert self._staged_support is None
        self._support.check_invariants()


def rules_of(program: CheckedProgram, name: str) -> list[tuple[CheckedRule, CheckedHead]]:
    """The rules of a head."""
    return Evaluation(program, {}).rules_of(name)


def _difference(new: Sequence[np.ndarray], old: Sequence[np.ndarray]) -> tuple[Columns, np.ndarray]:
    """Sorted tuples of ``new`` that are not in ``old`` with +1, and the other way round with -1."""
    parts = [(rows, np.full(len(rows[0]), sign, np.int64)) for rows, sign in ((new, 1), (old, -1))]
    return net_rows(*gathered(parts))


def plan_strategies(strategy: str | Mapping[str, str], heads: Sequence[str]) -> dict[str, str]:
    """The strategy of each head of a program.  Raises StrategyError."""
    named = dict.fromkeys(heads, strategy) if isinstance(strategy, str) else strategy
    shown = [head for head in heads if not is_auxiliary(head)]
    for head in named if named is strategy else ():
        if head not in shown:
            raise StrategyError(f"strategy= names {head!r}, but the program's heads are {', '.join(shown)}")
    chosen = {head: named.get(shown_name(head), "trace") for head in heads}
    for head, name in chosen.items():
        if name not in STRATEGIES:
            raise StrategyError(
                f"there is no strategy {name!r} for {head!r}: there are {' and '.join(STRATEGIES)}"
            )
    return chosen


def plan_orders(order: Mapping[str, Sequence[str]], heads: Sequence[str]) -> dict[str, Sequence[str]]:
    """The caller's key order of each head; where a head was taken apart, of its auxiliary heads."""
    apart = {shown_name(head) for head in heads if is_auxiliary(head)}
    given = (head for head in heads if shown_name(head) in order and head not in apart)
    return {head: order[shown_name(head)] for head in given}
