"""Evaluating a checked program: bodies to rows, rows to heads, strata in order.

A head is the union, over its rules and the bodies of each, of projected rows.
Rows travel as int64 code columns and become Arrow values only at the end, or
where an expression needs them.

How a head's rows are made distinct, cheapest way that holds:

* nothing to do: one body, every emitted variable in the head, and an order
  under which rows come out distinct (:attr:`lftj.search.base.plan.Plan.needs_distinct`);
* else all rows go through :class:`lftj.storage.zset.Distinct`.

An aggregate's input is a Z-set of assignments projected to group keys and
arguments; the search itself counts the assignments behind each row.  Heads of one
rule share it (:mod:`lftj.evaluation.sharing`).  Heads that depend on themselves are
evaluated together, in rounds (:mod:`lftj.evaluation.fixpoint`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from lftj.aggregates.shared_rows import SharedRows, keeps_no_rows
from lftj.errors import CartesianProductWarning, EvaluationError, OrderError, RangeError
from lftj.evaluation.finishing import finish
from lftj.evaluation.fixpoint import Fixpoint
from lftj.evaluation.plans import LEAST_SCANNED, BodyRun, Plans, Wanted, lowered_body
from lftj.evaluation.sharing import searches
from lftj.evaluation.wanted import common_variables, grouped_together, wanted_together, wanted_variables
from lftj.language.body import MAX_ROUNDS, Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.diagnostics import warn_caller, with_rule
from lftj.language.several_aggregates import joins_auxiliary, shown_name
from lftj.language.syntax import Aggregate
from lftj.planning.lowering import Lowered
from lftj.process.progress import Advance
from lftj.search.base.search import batches, count_assignments, count_rows
from lftj.search.problem import JoinProblem
from lftj.search.regions.evaluation import Operations
from lftj.search.scan import Scan
from lftj.storage.catalog import Catalog, Table
from lftj.storage.relation import Relation
from lftj.storage.zset import Distinct
from lftj.values.collector import Lease
from lftj.values.functional import refuse_conflicts
from lftj.values.literals import Value

Columns = list[np.ndarray]

SCANNED_ROWS = 1 << 14
"""Of a batch: its columns stay in the processor's cache."""


@dataclass(frozen=True)
class Settings:
    """How to run: threads of the search, rows of a batch, a pinned key order, progress, rounds at most."""

    threads: int = 1
    batch_rows: int = 1 << 16
    order: tuple[str, ...] | None = None
    advance: Advance | None = None
    max_rounds: int = MAX_ROUNDS


@dataclass
class ScanRun:
    """One body that is scanned for aggregate heads."""

    rule: CheckedRule
    heads: tuple[CheckedHead, ...]
    lowered: Lowered
    scan: Scan
    rows: int = 0


@dataclass
class Evaluation:
    """A program over tables.  ``runs`` gathers what was planned and measured, for ``explain``."""

    program: CheckedProgram
    relations: dict[str, Table]
    settings: Settings = field(default_factory=Settings)
    target: str | None = None  # the head that Settings.order is meant for
    runs: list[BodyRun] = field(default_factory=list)
    plans: Plans = field(default_factory=Plans)  # kept by the database for the next evaluation of the program
    values: Mapping[str, Value] = field(default_factory=dict)  # of the program's parameters
    warned: set[str] = field(default_factory=set)  # what this evaluation has warned about
    needed: set[str] = field(default_factory=set)  # the heads that are going to be asked for
    searches: dict[int, list[list[CheckedHead]]] = field(default_factory=dict)  # aggregate heads by rule
    aggregated: dict[tuple[int, int], tuple[Columns, pa.Array]] = field(default_factory=dict)  # not yet taken
    fixpoints: list[Fixpoint] = field(default_factory=list)  # of the recursive heads that were evaluated
    scans: list[ScanRun] = field(default_factory=list)  # of the bodies that were not searched
    # What to evaluate where a program with views raises RangeError.
    instead: Callable[[CheckedProgram], CheckedProgram] | None = None
    lease: Lease | None = None  # for codes of values that it computes

    @property
    def operations(self) -> Operations:
        """What all searches so far took, and scans: a row as a step, a look-up as a seek."""
        took = Operations()
        for scanned in self.scans:
            n_rows = scanned.scan.relation.n_rows
            took.add(Operations(nexts=n_rows, seeks=scanned.scan.steps - n_rows))
        for run in self.runs:
            took.add(Operations(*run.counters.sum(axis=0).tolist()))
        for fixpoint in self.fixpoints:
            for body in fixpoint.bodies:
                took.add(body.operations)
        return took

    # -- heads ------------------------------------------------------------------

    def derive_for(self, head: str) -> None:
        """Evaluate every derived relation that ``head`` reads, in stratum order."""
        while True:
            try:
                self._derive_for(head)
            except RangeError:
                if not self._goes_over():
                    raise
            else:
                return

    def _goes_over(self) -> bool:
        """Whether something else is evaluated from now on, where views could not hold a value."""
        if self.instead is None or self.program.written is None:
            return False
        self.program = self.instead(self.program)
        return True

    def _derive_for(self, head: str) -> None:
        self.needed = {head}
        if len(self.program.strata) == 1:
            return
        needed = self.program.read_by(head)
        self.needed |= needed
        # A relation is complete in the last stratum that one of its rules stands in.
        numbered = enumerate(self.program.strata)
        last = {h.relation: number for number, stratum in numbered for rule in stratum for h in rule.heads}
        for name in sorted(last, key=last.__getitem__):
            if name in needed and name != head and name not in self.relations:
                if component := self.program.component_of(name):
                    self.relations.update(self.recursive(component))
                else:
                    self.relations[name] = self.relation(name)

    def relation(self, name: str) -> Relation:
        """The whole head as a relation of its own."""
        if component := self.program.component_of(name):
            return self.recursive(component)[name]
        schema = self.program.derived[name]
        collected = Distinct(len(schema.columns))
        for columns in self._head_batches(name):
            collected.add(columns, np.ones(len(columns[0]) if columns else 1, dtype=np.int64))
        columns, _ = collected.finish()
        return Relation.from_codes(name, schema, columns)

    def recursive(self, component: Sequence[str]) -> dict[str, Relation]:
        """All relations that are evaluated together because they depend on each other.

        Raises OrderError where the target is one of them and a key order is given, and RoundLimitError.
        """
        return self._fixpoint(component).relations(self._recursion_begins)

    def _fixpoint(self, component: Sequence[str]) -> Fixpoint:
        if self.settings.order is not None and self.target in component:
            raise OrderError(f"order= is for one search: {self.target} depends on itself, and has many")
        known = next((one for one in self.fixpoints if one.component == tuple(component)), None)
        if known is None:
            max_rounds, advance = self.settings.max_rounds, self.settings.advance
            known = Fixpoint(self.program, component, self.relations, self.values, max_rounds, advance)
            self.fixpoints.append(known)
        return known

    def _recursion_begins(self, rule: CheckedRule, head: CheckedHead, body: Body) -> Iterator[Columns]:
        """What a body that reads nothing of its head's component gives the head."""
        run = self.plan_body(rule, head, body, wanted_variables(head), counted=False)
        for rows, _ in self._rows(run):
            yield [rows[name] for name in head.columns]

    def head_batches(self, name: str) -> Generator[Columns, None, None]:
        """The head's rows as code columns, each row once, in batches of any size.

        Raises FunctionalConflictError when a functional head has two values for one key.
        """
        while self.program.written is not None:
            try:
                found = list(self._head_batches(name))
            except RangeError:  # what was to be added up, perhaps, and not the sum
                if not self._goes_over():
                    raise
                self.derive_for(name)
            else:
                yield from found
                return
        yield from self._head_batches(name)

    def _head_batches(self, name: str) -> Generator[Columns, None, None]:
        if component := self.program.component_of(name):
            columns = self._fixpoint(component).columns(name, self._recursion_begins)
            if len(columns[0]):
                yield columns
            return
        schema = self.program.derived[name]
        rules = self.program.rules_of(name)
        aggregated = all(isinstance(head.value, Aggregate) for _, head in rules)
        if len(rules) == 1 and (not schema.functional or aggregated):
            yield from self._rule_batches(*rules[0])
            return
        collected = Distinct(len(schema.columns))
        for rule, head in rules:
            for columns in self._rule_batches(rule, head):
                collected.add(columns, np.ones(len(columns[0]) if columns else 1, dtype=np.int64))
        columns, weights = collected.finish()
        if schema.functional:
            refuse_conflicts(name, schema, columns, " ".join(rule.text for rule, _ in rules))
        if len(weights):
            yield columns

    def _rule_batches(self, rule: CheckedRule, head: CheckedHead) -> Iterator[Columns]:
        """A head's rows from one rule."""
        if isinstance(head.value, Aggregate):
            return self._aggregate_batches(rule, head)
        return self._set_batches(rule, head)

    # -- sets of rows --------------------------------------------------------------

    def _set_batches(self, rule: CheckedRule, head: CheckedHead) -> Iterator[Columns]:
        """Distinct rows of a head without aggregate, from one rule."""
        names = head.columns
        runs = self._plan_bodies(rule, [head])
        if len(runs) == 1 and not self._needs_distinct(runs[0], names):
            for rows, _ in self._rows(runs[0]):
                yield [rows[name] for name in names]
            return
        collected = Distinct(len(names))
        for run in runs:
            for rows, weights in self._rows(run):
                collected.add([rows[name] for name in names], weights)
        columns, weights = collected.finish()
        if len(weights):
            yield columns

    @staticmethod
    def _needs_distinct(run: BodyRun, names: Sequence[str]) -> bool:
        assigned = {assignment.variable for assignment in run.lowered.assignments}
        covered = set(run.lowered.problem.emitted) <= set(names) - assigned
        return run.plan.plan.needs_distinct or not covered or not names

    # -- aggregates -------------------------------------------------------------------

    def _aggregate_batches(self, rule: CheckedRule, head: CheckedHead) -> Iterator[Columns]:
        place = (id(rule), id(head))
        if place not in self.aggregated:
            heads = self._fed_together(rule, head)
            try:
                for fed, found in zip(heads, self._aggregated(rule, heads), strict=True):
                    self.aggregated[id(rule), id(fed)] = found
            except (RangeError, EvaluationError) as error:
                raise with_rule(error, rule.text) from error.__cause__
        keys, values = self.aggregated.pop(place)
        if len(values):
            yield [*keys, head.schema.columns[-1].type.domain.encode(values)]

    def _fed_together(self, rule: CheckedRule, head: CheckedHead) -> Sequence[CheckedHead]:
        """The aggregate heads that are fed by one search with ``head``, itself among them."""
        if head.relation not in self.needed:
            return [head]
        if id(rule) not in self.searches:
            heads = [h for h in rule.heads if isinstance(h.value, Aggregate) and h.relation in self.needed]
            # A key order is given for the target alone.
            by_target = [[h for h in heads if self._is_target(h) == is_target] for is_target in (True, False)]
            self.searches[id(rule)] = [
                fed for some in by_target for fed in searches(some, rule, partial(self._problem, rule))
            ]
        return next(fed for fed in self.searches[id(rule)] if any(head is other for other in fed))

    def _problem(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> tuple[JoinProblem, Catalog]:
        """What is searched for aggregate heads of a rule with one body, and over what."""
        wanted, keys = wanted_together(heads), grouped_together(heads)
        body = rule.bodies[0]
        lowered = lowered_body(body, self.values, self.relations, Wanted(tuple(wanted), True, keys))
        return lowered.problem, lowered.tables(self.relations)

    def _aggregated(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> list[tuple[Columns, pa.Array]]:
        """Key columns and values of aggregate heads that are fed together."""
        feed = SharedRows(heads, rule.bodies[0].types)
        scan = self._scan(rule, heads)
        if scan is not None:
            for rows, weights in self._scanned(scan):
                feed.add(rows, weights)
            return list(feed.finish())
        runs = self._plan_bodies(rule, heads)
        if len(runs) == 1:
            for rows, weights in self._rows(runs[0]):
                feed.add(rows, weights)
            return list(feed.finish())
        # The same assignment of several alternatives counts once.
        common = common_variables(rule)
        collected = Distinct(len(common))
        for run in runs:
            for rows, ones in self._rows(run):
                collected.add([rows[name] for name in common], ones)
        columns, weights = collected.finish()
        feed.add(dict(zip(common, columns, strict=True)), weights)
        return list(feed.finish())

    # -- scans -----------------------------------------------------------------------------

    def _scan(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> ScanRun | None:
        """The body as a scan with look-ups, where that can be, costs less, and no key order is given."""
        ordered = self.settings.order is not None and any(map(self._is_target, heads))
        body = rule.bodies[0]
        if len(rule.bodies) > 1 or ordered or joins_auxiliary(body) or not keeps_no_rows(heads, body.types):
            return None
        if all(self.relations[name].n_rows < LEAST_SCANNED for name in body.relations):
            return None
        wanted = Wanted(tuple(wanted_together(heads)), True, grouped_together(heads))
        lowered, scan = self.plans.scanned(body, self.values, self.relations, wanted)
        if lowered is None or scan is None:
            return None
        run = ScanRun(rule, tuple(heads), lowered, scan)
        self.scans.append(run)
        return run

    def _scanned(self, run: ScanRun) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """As :meth:`_rows`."""
        emitted = run.lowered.problem.emitted
        for columns, n_rows in run.scan.batches(SCANNED_ROWS, self.settings.advance):
            rows = {name: columns[name] for name in emitted}
            rows, weights = self._finished(run, rows, np.ones(n_rows, np.int64))
            run.rows += len(weights)
            if len(weights):
                yield rows, weights

    def _finished(
        self, run: BodyRun | ScanRun, rows: dict[str, np.ndarray], weights: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Rows with what the search could not do (:mod:`lftj.evaluation.finishing`)."""
        if run.lowered.finishes_in_search:
            return rows, weights
        try:
            return finish(run.lowered, rows, weights, self.relations)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, run.rule.text) from error.__cause__

    # -- bodies ----------------------------------------------------------------------------

    def _plan_bodies(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> list[BodyRun]:
        """Every body of a rule, planned for the rows of a head, or of aggregate heads fed together."""
        first, *others = heads
        aggregated = isinstance(first.value, Aggregate)
        several = len(rule.bodies) > 1
        wanted = common_variables(rule) if aggregated and several else wanted_together(heads)
        counted, keys = aggregated and not several, grouped_together(heads)
        runs = [self.plan_body(rule, first, body, wanted, counted, grouped=keys) for body in rule.bodies]
        for run in runs:
            run.shared_with = tuple(others)
        return runs

    def _is_target(self, head: CheckedHead) -> bool:
        return shown_name(head.relation) == self.target

    def plan_body(
        self,
        rule: CheckedRule,
        head: CheckedHead,
        body: Body,
        wanted: Sequence[str],
        counted: bool,
        write: bool = True,
        grouped: Sequence[str] | None = None,
    ) -> BodyRun:
        """Lower a body, choose its order, compile its plan; warn of a cartesian product, once.

        ``grouped``: variables that can't be NaN, by default the keys of a functional ``head``.
        """
        # Of a head that joins its auxiliary heads, the caller knows the bodies of these.
        ordered = self._is_target(head) and not joins_auxiliary(body)
        order = self.settings.order if ordered else None
        grouped = grouped_together([head]) if grouped is None else tuple(grouped)
        planned = self.plans.planned(
            rule, body, self.values, self.relations, Wanted(tuple(wanted), counted, grouped, write, order)
        )
        if planned.warning and planned.warning not in self.warned:
            self.warned.add(planned.warning)
            warn_caller(planned.warning, CartesianProductWarning)
        run = BodyRun(
            rule,
            head,
            body,
            planned.lowered,
            planned.choice,
            planned.plan,
            planned.plan.new_counters(),
            kept=planned.kept,
        )
        self.runs.append(run)
        return run

    def _rows(self, run: BodyRun) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Rows of a body by variable, finished (:mod:`lftj.evaluation.finishing`), and their weights."""
        lowered, plan = run.lowered, run.plan
        if lowered.empty:
            return
        counted = lowered.problem.counted
        for columns, weights in batches(
            plan,
            run.counters,
            self.settings.batch_rows,
            self.settings.threads,
            weighted=counted,
            advance=self.settings.advance,
        ):
            n_rows = len(columns[0]) if columns else 1
            if weights is None:
                weights = np.ones(n_rows, dtype=np.int64)
            rows = dict(zip(plan.problem.emitted, columns, strict=True))
            rows, weights = self._finished(run, rows, weights)
            run.rows += len(weights)
            if len(weights):
                yield rows, weights

    def plan_head(self, name: str) -> None:
        """Plan every body of a head without running it; ``runs`` then holds the plans.

        Of a recursive head those that begin: the others are planned over what the rounds before gave.
        """
        if component := self.program.component_of(name):
            self.fixpoints.append(Fixpoint(self.program, component, self.relations, self.values))
            for rule, head, body in self.fixpoints[-1].first:
                self.plan_body(rule, head, body, wanted_variables(head), counted=False)
            return
        for rule, head in self.program.rules_of(name):
            heads = self._fed_together(rule, head) if isinstance(head.value, Aggregate) else [head]
            if self._scan(rule, heads) is None:
                self._plan_bodies(rule, heads)

    # -- counting -----------------------------------------------------------------------------

    def count(self, name: str) -> int:
        """Number of rows of a head, without building it where the search can count."""
        if component := self.program.component_of(name):
            return len(self._fixpoint(component).columns(name, self._recursion_begins)[0])
        rules = self.program.rules_of(name)
        if len(rules) == 1:
            rule, head = rules[0]
            plain = (
                head.value is None
                and len(rule.bodies) == 1
                and len(set(head.variables)) == len(head.variables)
            )
            if plain:
                counted = self._count_in_search(rule, head)
                if counted is not None:
                    return counted
        return sum(len(columns[0]) if columns else 1 for columns in self.head_batches(name))

    def _count_in_search(self, rule: CheckedRule, head: CheckedHead) -> int | None:
        body = rule.bodies[0]
        if not head.variables:
            return None
        listed = self.plans.listed(body, self.values, self.relations, head.variables)
        listed.check(self.relations)
        if not listed.finishes_in_search:
            return None
        are_assignments = set(body.atom_variables()) == set(head.variables)
        wanted = () if are_assignments else head.variables
        run = self.plan_body(rule, head, body, wanted, counted=are_assignments, write=are_assignments)
        if run.plan.plan.needs_distinct or not run.lowered.finishes_in_search:
            self.runs.remove(run)
            return None
        if run.lowered.empty is None:
            count = count_assignments if are_assignments else count_rows
            run.rows = count(run.plan, run.counters, self.settings.threads, self.settings.advance)
        return run.rows
