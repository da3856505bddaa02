"""One maintained head: what its sources give, its support counts, and its visible tuples.

The strategy says whether the head is kept whole, by one source, or body by body: then every rule is
a source (:mod:`maintenance.heads.rule_source`), and their signed tuples add up.  A head whose only
source gives each tuple once keeps no counts; else support counts say when a tuple comes or goes, and in a bag
how many copies of it.

Invariants

1. A step changes nothing that readers see: it stages.  The workspace publishes what it returns and calls
   :meth:`MaintainedHead.keep`, or calls :meth:`MaintainedHead.drop`.
2. A functional head has one value per key; a step that would give it two raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lftj.errors import RangeError
from lftj.evaluation.plans import Plans
from lftj.language.body import CheckedProgram
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.language.syntax import Wildcard
from lftj.storage.bags import copies_between
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import Columns, gathered, net_rows
from lftj.storage.sorting import sort_distinct
from lftj.storage.support import SupportVersion
from maintenance.changes.timed_change import TimedChange, running, starts_of, timed
from maintenance.groups.shared_scans import Sharer
from maintenance.heads.counted_source import BagSource, WindowSource
from maintenance.heads.functional_check import refuse_head_conflict
from maintenance.heads.intermediate import Intermediates
from maintenance.heads.keeping import Keeping
from maintenance.heads.maintained_body import one_by_one
from maintenance.heads.recursive_source import KeptComponents, component_reads
from maintenance.heads.rule_source import (
    AggregateSource,
    BesideSource,
    ProjectedSource,
    RuleSource,
    SetSource,
    SideBySideSource,
)
from maintenance.heads.strategies import AUTO
from maintenance.staged import Staged, StagedValue
from maintenance.stats import RuleStats
from maintenance.strategies.strategy import (
    BodySearch,
    Building,
    HeadRequest,
    HeadSource,
    HeadStrategy,
    Read,
    Round,
    Tuples,
    Versions,
)
from maintenance.strategies.timed_round import TimedRound

if TYPE_CHECKING:
    from maintenance.strategies.auto.view_choice import ViewChoice


class MaintainedHead(Staged):
    """A derived relation that follows its inputs."""

    def __init__(
        self,
        name: str,
        program: CheckedProgram,
        keeping: Keeping,
        versions: Versions,
        intermediates: Intermediates,
        components: KeptComponents,
    ) -> None:
        """Plan the rules of ``name`` over the versions as they are; nothing is evaluated yet."""
        self.name = name
        self.shown_name = shown_name(name)
        """That of the head that a user wrote."""
        self.program = program
        self.schema = program.derived[name]
        self.rules = program.rules_of(name)
        self.text = " ".join(rule.text for rule, _ in self.rules)
        atoms = [a for rule, _ in self.rules for b in rule.bodies for a in (*b.atoms, *b.negations)]
        self.component = program.component_of(name)
        """The heads that it is stepped with; none, unless it depends on itself."""
        self.reads = component_reads(program, self.component or (name,)) | intermediates.read_by(name)
        self.read_columns = frozenset(
            (atom.relation, number)
            for atom in atoms
            for number, term in enumerate(atom.terms)
            if not isinstance(term, Wildcard)
        )
        """Columns that its rules read, by relation and number."""
        self.reads_as_functions = frozenset(
            atom.relation
            for rule, _ in self.rules
            for body in ([] if intermediates.joins(rule) else rule.bodies)
            for atom in (*body.atoms, *body.negations)
            if atom.functional
        )
        self.keeping = keeping
        self.plans = Plans()
        """Of its evaluation from the base relations, when it is verified."""
        self.sources = self._planned(versions, intermediates, components)
        self.counts_support = len(self.sources) > 1 or not all(s.is_distinct for s in self.sources)
        self._support = StagedValue(SupportVersion(len(self.schema.shown.columns)))
        self._parts = (*self.sources, self._support)
        only_function = len(self.sources) == 1 and self.sources[0].is_function
        self._checks_values = self.schema.functional and not only_function
        """Whether two values of one key are possible."""
        self.choice = None if self.component or keeping.order is not None else self._first_choice()
        """Under `auto`, of a head that a user wrote: whether it has views, where it may have some."""
        self.looks_for_views = False
        """Whether it may have views again that were taken away, for what may not fit has gone."""
        self.was_refused_range = False
        """Whether the last step came upon a value that does not fit its type."""

    def _planned(
        self, versions: Versions, intermediates: Intermediates, components: KeptComponents
    ) -> list[HeadSource]:
        if self.component:
            return [components.source_of(self.name)]
        strategy = self.keeping.made()
        if isinstance(strategy, HeadStrategy):
            return [strategy.plan(HeadRequest(self.name, self.program, self.reads))]
        relations = {read: versions[read] for read in self.reads}
        sources: list[HeadSource] = []
        for rule, head in self.rules:
            if intermediates.joins(rule):
                sources.append(SideBySideSource(rule, *intermediates.joined(rule)))
                continue
            extremum = one_by_one(rule, head, self.keeping)
            if extremum is not None and not intermediates.shares(rule, head):
                sources.append(SetSource(rule, head, relations, strategy, self.keeping, extremum))
                continue
            shared = intermediates.of(rule, head, relations, strategy)
            if shared is not None:
                intermediate, sharer = shared
                if not isinstance(sharer, Sharer):
                    sources.append(ProjectedSource(intermediate, sharer))
                elif intermediates.is_beside(head):
                    sources.append(BesideSource(intermediate, sharer))
                else:
                    sources.append(AggregateSource(intermediate, sharer))
            else:
                kind = BagSource if self.schema.bag else WindowSource if head.windows else SetSource
                sources.append(kind(rule, head, relations, strategy, self.keeping))
        return sources

    def _first_choice(self) -> ViewChoice | None:
        if self.keeping.strategy != AUTO or is_auxiliary(self.name):
            return None
        from maintenance.strategies.auto.view_choice import first_choice

        return first_choice(self.program.as_written, self.name)

    @property
    def parts(self) -> tuple[Staged, ...]:
        return self._parts

    @property
    def keeps_something(self) -> bool:
        """Whether a step stages anything."""
        return self.counts_support or any(source.keeps_something for source in self.sources)

    @property
    def kept_for(self) -> tuple[str, ...]:
        """The wanted heads of its program, where it is kept for them alone."""
        wanted = self.program.wanted
        return () if wanted is None or shown_name(self.name) in wanted.results else wanted.results

    @property
    def is_beside(self) -> bool:
        """Whether its tuples are not there, but columns of the head that reads it."""
        return any(isinstance(source, BesideSource) for source in self.sources)

    @property
    def strategy(self) -> str:
        """The name of its strategy."""
        return self.keeping.strategy

    @property
    def searches(self) -> Sequence[BodySearch]:
        """All searches that this head pays for."""
        if len(self.sources) == 1:
            return self.sources[0].searches
        return [search for source in self.sources for search in source.searches]

    @property
    def indices(self) -> Iterator[Read]:
        """Those that its steps read."""
        for source in self.sources:
            yield from source.reads
        if self._checks_values:
            yield self.name, (tuple(range(len(self.schema.columns))), ())

    @property
    def shared(self) -> frozenset[Staged]:
        """Those of its parts that other heads may have too."""
        return frozenset().union(*(source.shared for source in self.sources))

    def is_as(self, program: CheckedProgram, keeping: Keeping) -> bool:
        """Whether a program defines this head as it is, and to be kept as it is."""
        here, there = (
            [
                (rule.text, [body.relations for body in rule.bodies])
                for rule, _ in one.as_written.rules_of(self.name)
            ]
            for one in (self.program, program)
        )
        results, wanted = (
            None if one.wanted is None else one.wanted.results for one in (self.program, program)
        )
        return (here, self.schema, self.keeping, results) == (
            there,
            program.derived[self.name],
            keeping,
            wanted,
        )

    def joins_by(self, relation: str, column: int) -> bool:
        """Whether what is kept of this head is about a relation's column, so that it can't hold NaN."""
        return any((relation, column) in source.nan_free for source in self.sources)

    @property
    def index_bytes(self) -> int:
        """Memory of the searches."""
        return sum([search.nbytes for search in self.searches])

    @property
    def n_records(self) -> int:
        """Sensitivity records of the searches."""
        return sum([index.n_records for search in self.searches for index in search.sensitivity])

    # -- evaluation -----------------------------------------------------------------

    def build(self, building: Building) -> RelationVersion:
        """The head over the versions; staged, like a step."""
        columns, signs = gathered([source.build(building) for source in self.sources])
        if self.counts_support:
            columns, signs = self._visible(columns, signs)
        version = self._first_version(columns)
        if self._checks_values:
            refuse_head_conflict(version, columns, signs, self.text)
        return version

    def _first_version(self, columns: Columns) -> RelationVersion:
        """Distinct tuples as a relation, kept sorted as the source gives them where that is possible."""
        order = None if self.counts_support else self.sources[0].sorted_by
        if order is None:
            return RelationVersion(Relation.from_codes(self.name, self.schema, sort_distinct(list(columns))))
        return RelationVersion.of_sorted(self.name, self.schema, order, [columns[i] for i in order])

    def step(self, change: Round, stats: RuleStats) -> Tuples:
        """The visible change: sorted distinct tuples, +1 (was absent) or -1 (was present)."""
        self.was_refused_range = False
        try:
            columns, signs = gathered([source.step(change, stats) for source in self.sources])
        except RangeError:
            self.was_refused_range = True
            raise
        if not len(signs):
            return [signs for _ in self.schema.columns], signs
        if self.counts_support:
            columns, signs = self._visible(columns, signs)
        elif not self.sources[0].is_net:
            columns, signs = net_rows(columns, signs)
        return columns, signs

    def _visible(self, columns: Columns, signs: np.ndarray) -> Tuples:
        """The tuples that come and go with what all sources give; stages the support counts."""
        if self.schema.bag:
            self._support.staged, rows, before, after = self._support.kept.added(columns, signs)
            columns, signs, _ = copies_between(rows, before, after)
        else:
            self._support.staged, columns, signs = self._support.kept.step(columns, signs)
        return columns, signs

    @property
    def timed_refusal(self) -> str | None:
        """Why :meth:`timed_step` can't be had, if so."""
        if self.component:
            return "it depends on itself"
        if self._checks_values:
            return "two values of one key are possible"
        for source in self.sources:
            refusal = source.timed_refusal if isinstance(source, RuleSource) else "it is evaluated whole"
            if refusal is not None:
                return refusal
        return None

    def timed_step(self, change: TimedRound, stats: RuleStats) -> TimedChange:
        """The visible changes through a batch.  Nothing is staged."""
        parts = []
        for source in self.sources:
            assert isinstance(source, RuleSource)
            columns, times, signs = source.timed_step(change, stats)
            parts.append(([*columns, times], signs))
        (*columns, times), signs = gathered(parts)
        rows, times, signs = timed(columns, times, signs)
        if not len(signs):
            return TimedChange(np.empty((len(self.schema.columns), 0), np.int64), times, signs)
        if self.counts_support:
            offsets = starts_of(rows)
            tuples = np.ascontiguousarray(rows[:, offsets[:-1]])
            supports = self._support.kept.totals(tuples, len(offsets) - 1)
            before, after = running(offsets, supports, signs)
            assert after.min() >= 0, "an assignment went that had not been there"
            if self.schema.bag:
                tuples, signs, counts = copies_between(rows, before, after)
                return TimedChange(*timed(tuples, np.repeat(times, counts), signs))
            crosses = (before > 0) != (after > 0)
            rows, times = np.ascontiguousarray(rows[:, crosses]), times[crosses]
            signs = np.where(after[crosses] > 0, 1, -1)
        return TimedChange(rows, times, signs)

    def check_values(self, version: RelationVersion, columns: Columns, weights: np.ndarray) -> None:
        """Raise FunctionalConflictError where a change, after which this is the version, breaks the head."""
        if self._checks_values:
            refuse_head_conflict(version, columns, weights, self.text)

    def tidy(self, versions: Versions) -> int:
        """Give back what is no more needed, over versions that are published; how many searches it built."""
        return sum([source.tidy(versions) for source in self.sources])

    def hand_over(self) -> None:
        """From now on other heads pay for searches that they share with this one; it goes on as it was."""
        for source in self.sources:
            source.hand_over()

    def leave(self) -> None:
        """The head is uninstalled: what only it needed of shared structures goes."""
        for source in self.sources:
            source.leave()

    def describe(self) -> list[str]:
        """For ``explain``: what makes the tuples, each search, and whether a batch goes at once."""
        lines = [f"views       {line}" for line in self.choice.describe()] if self.choice else []
        lines += [line for source in self.sources for line in source.describe()]
        if len(self.sources) > 1:
            what = "how often they give" if self.schema.bag else "how many of them give"
            lines.append(f"several rules: support counts say {what} a tuple")
        if self.timed_refusal is not None:
            lines.append(f"batches     one transaction after the other: {self.timed_refusal}")
        return lines

    def check_counters(self, versions: Versions) -> None:
        """Raise AssertionError where what it counts is not what the versions that are published give."""
        for source in self.sources:
            source.check_counters(versions)

    def _check_own(self) -> None:
        assert self._support.staged is None
