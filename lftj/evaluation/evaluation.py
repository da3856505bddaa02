"""Evaluating a checked program: bodies to rows, rows to heads, strata in order.

A head is the union, over its rules and the bodies of each, of projected rows.
Rows travel as int64 code columns and become Arrow values only at the end, or
where an expression needs them.

How a head's rows are made distinct, cheapest way that holds:

* nothing to do: one body, every emitted variable in the head, and an order
  under which rows come out distinct (:attr:`lftj.search.queries.plan.Plan.needs_distinct`);
* else all rows go through :class:`lftj.storage.zset.Distinct`.

An aggregate's input is a Z-set of assignments projected to group keys and
arguments; the search itself counts the assignments behind each row.  Heads of one
rule share it (:mod:`lftj.evaluation.sharing`).  Heads that depend on themselves are
evaluated together, in rounds (:mod:`lftj.evaluation.fixpoint`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from lftj.aggregates.copies import counted_rows
from lftj.aggregates.shared_rows import SharedRows, keeps_no_rows
from lftj.aggregates.window_frames import row_names
from lftj.aggregates.windows import windowed
from lftj.errors import CartesianProductWarning, EvaluationError, OrderError, RangeError
from lftj.evaluation.finishing import Finishing
from lftj.evaluation.fixpoint import Fixpoint
from lftj.evaluation.nearest import Nearest
from lftj.evaluation.one_row import one_row
from lftj.evaluation.plans import Fed, Planned, Wanted, lowered_body
from lftj.evaluation.request import Request
from lftj.evaluation.runs import BodyRun, Done, ScanRun
from lftj.evaluation.sharing import searches
from lftj.evaluation.wanted import (
    alternative_variables,
    common_types,
    common_variables,
    grouped_together,
    summed_together,
    wanted_together,
)
from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.diagnostics import warn_caller, with_rule
from lftj.language.one_row import ONE_ROW
from lftj.language.several_aggregates import is_auxiliary, joins_auxiliary, joins_groups, shown_name
from lftj.language.syntax import Aggregate, Variable
from lftj.planning.lowered import Lowered
from lftj.rewriting.key_relations import is_set_of_keys
from lftj.search.problem import JoinProblem
from lftj.search.queries.search import batches, count
from lftj.storage.bags import copies_between
from lftj.storage.catalog import Catalog, Table
from lftj.storage.relation import Relation
from lftj.storage.sorting import sort_distinct, sort_distinct_weighted
from lftj.storage.zset import Distinct, Weighted
from lftj.values.functional import refuse_conflicts

Columns = list[np.ndarray]
Rows = tuple[Mapping[str, np.ndarray], np.ndarray]
"""Columns by variable, and weights."""

SCANNED_ROWS = 1 << 14
"""Of a batch: its columns stay in the processor's cache."""

ADDED_ROWS = 1 << 15
"""Of what is computed and added up at a time, likewise."""


class Evaluation:
    """One evaluation of a request."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.program = request.program  # or what is evaluated instead
        self.relations: dict[str, Table] = dict(request.tables)  # and heads that were derived
        if ONE_ROW in self.program.derived:
            self.relations[ONE_ROW] = one_row(self.program.derived[ONE_ROW])
        self.done = Done()
        self._fed: dict[CheckedRule, Fed] = {}  # aggregate heads by search
        self._groups: dict[tuple[CheckedRule, CheckedHead], tuple[Columns, pa.Array]] = {}  # not yet taken

    # -- heads ------------------------------------------------------------------

    def derive(self) -> None:
        """Evaluate every derived relation that the target reads, in stratum order."""
        while True:
            try:
                self._derive()
            except RangeError:
                if not self._goes_over():
                    raise
            else:
                return

    def _goes_over(self) -> bool:
        """Whether something else is evaluated from now on, where views could not hold a value."""
        if self.request.instead is None or self.program.written is None:
            return False
        self.program = self.request.instead(self.relations, self.program)
        return True

    def _derive(self) -> None:
        if len(self.program.strata) == 1:
            return
        # A relation is complete in the last stratum that one of its rules stands in.
        numbered = enumerate(self.program.strata)
        last = {h.relation: number for number, stratum in numbered for rule in stratum for h in rule.heads}
        needed = self._needed - {self.request.target}
        for name in sorted(last, key=last.__getitem__):
            if name in needed and name not in self.relations:
                self.relations.update(self._whole(name))

    @property
    def _needed(self) -> set[str]:
        """The target, and the heads that it reads."""
        return {self.request.target} | self.program.read_by(self.request.target)

    def whole(self) -> dict[str, Relation]:
        """The target as a relation of its own, and all that are evaluated together with it.

        For that, all that it reads is among the tables.  Raises RoundLimitError.
        """
        return self._whole(self.request.target)

    def _whole(self, name: str) -> dict[str, Relation]:
        if component := self.program.component_of(name):
            return self._fixpoint(component).relations(self._recursion_begins)
        schema = self.program.derived[name]
        collected = Distinct(len(schema.columns))
        for columns in self._head_batches(name):
            collected.add(columns, _ones(columns))
        columns, _ = collected.finish()
        return {name: Relation.from_codes(name, schema, columns)}

    def _fixpoint(self, component: Sequence[str]) -> Fixpoint:
        """Raises OrderError where the target is one of the component and a key order is given."""
        if self.request.order is not None and self.request.target in component:
            raise OrderError(
                f"order= is for one search: {self.request.target} depends on itself, and has many"
            )
        known = next((one for one in self.done.fixpoints if one.component == tuple(component)), None)
        if known is None:
            known = Fixpoint(self.program, component, self.relations, self.request)
            self.done.fixpoints.append(known)
        return known

    def _recursion_begins(self, rule: CheckedRule, head: CheckedHead, body: Body) -> Iterator[Columns]:
        """What a body that reads nothing of its head's component gives the head."""
        for rows, _ in self._rows(self._planned(rule, [head], self._wanted(rule, [head], body))):
            yield [rows[name] for name in head.columns]

    def batches(self) -> Generator[Columns, None, None]:
        """The target's rows as code columns, in batches of any size: each once, of a bag each copy.

        Raises FunctionalConflictError when a functional head has two values for one key.
        """
        self.derive()
        while self.program.written is not None:
            try:
                found = list(self._head_batches(self.request.target))
            except RangeError:  # what was to be added up, perhaps, and not the sum
                if not self._goes_over():
                    raise
                self.derive()
            else:
                yield from self._shown(found)
                return
        yield from self._shown(self._head_batches(self.request.target))

    def _shown(self, batches: Iterable[Columns]) -> Iterator[Columns]:
        """The columns of the target that users see."""
        n_shown = len(self.program.derived[self.request.target].shown.columns)
        return (columns[:n_shown] for columns in batches)

    def _head_batches(self, name: str) -> Iterator[Columns]:
        if component := self.program.component_of(name):
            columns = self._fixpoint(component).columns(name, self._recursion_begins)
            if len(columns[0]):
                yield columns
            return
        schema = self.program.derived[name]
        if schema.bag:
            columns, counts = self._counts(name)
            if len(counts):
                yield list(copies_between(np.array(columns), np.zeros_like(counts), counts)[0])
            return
        rules = self.program.rules_of(name)
        aggregated = all(isinstance(head.value, Aggregate) for _, head in rules)
        if len(rules) == 1 and (not schema.functional or aggregated):
            yield from self._rule_batches(*rules[0])
            return
        collected = Distinct(len(schema.columns))
        for rule, head in rules:
            for columns in self._rule_batches(rule, head):
                collected.add(columns, _ones(columns))
        columns, weights = collected.finish()
        if schema.functional:
            refuse_conflicts(name, schema, columns, " ".join(rule.text for rule, _ in rules))
        if len(weights):
            yield columns

    def _rule_batches(self, rule: CheckedRule, head: CheckedHead) -> Iterator[Columns]:
        """A head's rows from one rule."""
        if isinstance(head.value, Aggregate):
            return self._aggregate_batches(rule, head)
        if head.windows:
            return self._window_batches(rule, head)
        side_by_side = self._side_by_side(rule)
        return self._set_batches(rule, head) if side_by_side is None else iter([side_by_side])

    def _side_by_side(self, rule: CheckedRule) -> Columns | None:
        """The columns of a joining rule's head: its relations have the same groups, in the same order."""
        if not joins_groups(rule):
            return None
        columns: dict[str, np.ndarray] = {}
        for atom in rule.bodies[0].atoms:
            relation = self.relations[atom.relation]
            if not isinstance(relation, Relation):
                return None
            for term, codes in zip(atom.terms, relation.codes, strict=True):
                assert isinstance(term, Variable)
                columns.setdefault(term.name, codes)
        self.done.joined.append(rule)
        return [columns[name] for name in rule.heads[0].columns]

    # -- sets of rows --------------------------------------------------------------

    def _set_batches(self, rule: CheckedRule, head: CheckedHead) -> Iterator[Columns]:
        """Distinct rows of a head without aggregate, from one rule."""
        names = head.columns
        runs = self.plan_bodies(rule, [head])
        if len(runs) == 1 and not _needs_distinct(runs[0], names):
            for rows, _ in self._rows(runs[0]):
                yield [rows[name] for name in names]
            return
        columns, weights = self._distinct_rows(runs, names)
        if len(weights):
            yield columns

    def _distinct_rows(
        self, runs: Sequence[BodyRun | ScanRun], names: Sequence[str]
    ) -> tuple[Columns, np.ndarray]:
        collected = Distinct(len(names))
        for run in runs:
            for rows, weights in self._rows(run):
                collected.add([rows[name] for name in names], weights)
        return collected.finish()

    # -- aggregates -------------------------------------------------------------------

    def _aggregate_batches(self, rule: CheckedRule, head: CheckedHead) -> Iterator[Columns]:
        if (rule, head) not in self._groups:
            heads = self._fed_together(rule, head)
            try:
                feed = SharedRows(heads, rule.bodies[0].types)
                for rows, weights in self._assignments(rule, heads):
                    feed.add(rows, weights)
                for fed, found in zip(heads, feed.finish(), strict=True):
                    self._groups[rule, fed] = found
            except (RangeError, EvaluationError) as error:
                raise with_rule(error, rule.text) from error.__cause__
        keys, values = self._groups.pop((rule, head))
        if len(values):
            yield [*keys, head.schema.columns[-1].type.domain.encode(values)]

    def _fed_together(self, rule: CheckedRule, head: CheckedHead) -> Sequence[CheckedHead]:
        """The aggregate heads that are fed by one search with ``head``, itself among them."""
        if rule not in self._fed:
            needed = self._needed
            heads = [h for h in rule.heads if isinstance(h.value, Aggregate) and h.relation in needed]
            # A key order is given for the target alone.
            by_target = [[h for h in heads if self._is_target(h) == is_target] for is_target in (True, False)]
            self._fed[rule] = [fed for some in by_target for fed in self._searches(rule, some)]
        return next(fed for fed in self._fed[rule] if head in fed)

    def _searches(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> Fed:
        if len(heads) < 2:
            return [heads] if heads else []
        read = {name: self.relations[name].n_rows for body in rule.bodies for name in body.relations}
        found = partial(searches, heads, rule, partial(self._problem, rule))
        return self.request.plans.fed_together(rule, heads, read, found)

    def _problem(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> tuple[JoinProblem, Catalog]:
        """What is searched for aggregate heads of a rule with one body, and over what."""
        wanted = self._wanted(rule, heads, rule.bodies[0])
        lowered = lowered_body(wanted, self.request.values, self.relations)
        return lowered.problem, lowered.tables(self.relations)

    def _assignments(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> Iterable[Rows]:
        """What aggregate heads that are fed together aggregate."""
        runs = self.plan_bodies(rule, heads)
        if isinstance(nearest := self.nearest(rule, heads), Nearest):
            found = nearest.all_found(*(self._rows(run) for run in runs))
            return [(found, np.ones(len(found[nearest.join.value]), np.int64))]
        if len(runs) == 1:
            return self._rows(runs[0])
        # The same assignment of several alternatives counts once.
        names = alternative_variables(rule, heads)
        if names is None:
            names = common_variables(rule)
            columns, weights = self._distinct_rows(runs, names)
        else:
            columns, weights = self._united(runs, names)
        return [(dict(zip(names, columns, strict=True)), weights)]

    def _united(self, runs: Sequence[BodyRun | ScanRun], names: Sequence[str]) -> tuple[Columns, np.ndarray]:
        """Rows of bodies with their weights, which are the same wherever a row is found."""
        found = []
        for run in runs:
            collected = Weighted(len(names))
            for rows, weights in self._rows(run):
                collected.add([rows[name] for name in names], weights)
            found.append(collected.finish())
        all_rows = [
            np.concatenate(columns) for columns in zip(*(columns for columns, _ in found), strict=True)
        ]
        all_weights = np.concatenate([weights for _, weights in found])
        columns, total = sort_distinct_weighted(all_rows, all_weights)
        _, n_bodies = sort_distinct_weighted(all_rows, np.ones(len(all_weights), np.int64))
        return columns, total // n_bodies

    # -- windows ---------------------------------------------------------------------------

    def _window_batches(self, rule: CheckedRule, head: CheckedHead) -> Iterator[Columns]:
        """The tuples of a head with windows, of which there is one rule."""
        names = row_names(head)
        collected = Weighted(len(names))
        for rows, weights in self._assignments(rule, [head]):
            collected.add([rows[name] for name in names], weights)
        columns, weights = collected.finish()
        if len(weights):
            try:
                yield sort_distinct(windowed(head, common_types(rule), columns, weights))
            except RangeError as error:
                raise with_rule(error, rule.text) from error.__cause__

    # -- bags ------------------------------------------------------------------------------

    def _counts(self, name: str) -> tuple[Columns, np.ndarray]:
        """The rows of a bag, and how often its rules together give each."""
        counts = Weighted(len(self.program.derived[name].shown.columns))
        for rule, head in self.program.rules_of(name):
            try:
                for rows, weights in self._assignments(rule, [head]):
                    counts.add(*counted_rows(head, rows, weights))
            except RangeError as error:
                raise with_rule(error, rule.text) from error.__cause__
        return counts.finish()

    # -- bodies ----------------------------------------------------------------------------

    def plan_bodies(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> list[BodyRun | ScanRun]:
        """Every body of a rule, planned for the rows of a head, or of aggregate heads fed together.

        Where these are found by searches for the nearest, both sides in the place of the body.
        """
        if isinstance(nearest := self.nearest(rule, heads), Nearest):
            sides = (nearest.join.askers, nearest.join.answers)
            return [self._run_of(rule, heads, Wanted(side.body, side.names, counted=False)) for side in sides]
        return [self._run_of(rule, heads, self._wanted(rule, heads, body)) for body in rule.bodies]

    def nearest(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> Nearest | str | None:
        """The searches by which what heads aggregate is found, or why there are none; None: nobody asks."""
        if self._order_of(heads[0], rule.bodies[0]) is not None:
            return None
        return self.request.plans.nearest(rule, heads)

    def _wanted(self, rule: CheckedRule, heads: Sequence[CheckedHead], body: Body) -> Wanted:
        """What heads want of a body."""
        first = heads[0]
        aggregated = first.aggregates_rows and not self.program.component_of(first.relation)
        names: Sequence[str] | None = wanted_together(heads)
        if aggregated and len(rule.bodies) > 1:
            names = alternative_variables(rule, heads)
        counted, order = aggregated and names is not None, self._order_of(first, body)
        names = common_variables(rule) if names is None else names
        summed = summed_together(heads) if aggregated and order is None else ()
        return Wanted(body, tuple(names), counted, self._grouped(heads), order=order, summed=summed)

    def _grouped(self, heads: Sequence[CheckedHead]) -> tuple[str, ...]:
        """The variables that can't be NaN."""
        return grouped_together(heads) if self.request.grouped is None else self.request.grouped

    def _order_of(self, head: CheckedHead, body: Body) -> tuple[str, ...] | None:
        """The key order that is given for a body of a head."""
        # Of a head that joins its auxiliary heads, the caller knows the bodies of these.
        ordered = self._is_target(head) and not joins_auxiliary(body)
        return self.request.order if ordered else None

    def _is_target(self, head: CheckedHead) -> bool:
        return shown_name(head.relation) == self.request.target

    def search_of(self, rule: CheckedRule, head: CheckedHead) -> BodyRun:
        """The only body of a rule, planned as a search of all rows of its relations."""
        (body,) = rule.bodies
        return self._planned(rule, [head], replace(self._wanted(rule, [head], body), whole=True))

    def _run_of(self, rule: CheckedRule, heads: Sequence[CheckedHead], wanted: Wanted) -> BodyRun | ScanRun:
        """A body that is searched, or scanned where that can be and costs less."""
        body = wanted.body
        if wanted.order is not None or not all(map(is_set_of_keys, filter(is_auxiliary, body.relations))):
            return self._planned(rule, heads, wanted)
        looks_up = rule.bodies == (body,) and keeps_no_rows(heads, body.types)
        request, fresh = self.request, self.program.derived.keys()
        found = request.plans.found(rule, wanted, request.values, self.relations, looks_up, fresh)
        if isinstance(found, Planned):
            return self._searched(rule, heads, wanted, found)
        assert found.scan is not None
        run = ScanRun(rule, heads, found.lowered, found.scan)
        self.done.scans.append(run)
        return run

    def _planned(self, rule: CheckedRule, heads: Sequence[CheckedHead], wanted: Wanted) -> BodyRun:
        """Lower a body, choose its order, compile its plan; warn of a cartesian product, once."""
        planned = self.request.plans.planned(rule, wanted, self.request.values, self.relations)
        return self._searched(rule, heads, wanted, planned)

    def _searched(
        self, rule: CheckedRule, heads: Sequence[CheckedHead], wanted: Wanted, planned: Planned
    ) -> BodyRun:
        if planned.warning and planned.warning not in self.done.warnings:
            self.done.warnings.add(planned.warning)
            warn_caller(planned.warning, CartesianProductWarning)
        run = BodyRun(rule, heads, wanted.body, planned, planned.plan.new_counters())
        self.done.bodies.append(run)
        return run

    def _rows(self, run: BodyRun | ScanRun) -> Iterator[Rows]:
        """Rows of a body, finished."""
        if isinstance(run, ScanRun):
            emitted, finishing = run.lowered.problem.emitted, _finishing(run.lowered)
            for found, n_rows in run.scan.batches(SCANNED_ROWS, self.request.advance):
                if n_rows:
                    rows = {name: found[name] for name in emitted}
                    yield from self._finished(run, finishing, rows, np.ones(n_rows, np.int64))
            return
        request, lowered, plan = self.request, run.planned.lowered, run.planned.plan
        if lowered.empty:
            return
        finishing = _finishing(lowered)
        # An atom that is negated on the rows is searched for once for each piece.
        is_added_up = run.heads[0].aggregates_rows and not lowered.negations
        step = ADDED_ROWS if is_added_up else request.batch_rows
        for columns, weights in batches(
            plan,
            run.counters,
            request.batch_rows,
            request.threads,
            request.advance,
        ):
            weights = _ones(columns) if weights is None else weights
            for first in range(0, len(weights), step):
                piece = slice(first, first + step)
                rows = {name: codes[piece] for name, codes in zip(plan.problem.emitted, columns, strict=True)}
                yield from self._finished(run, finishing, rows, weights[piece])

    def _finished(
        self,
        run: BodyRun | ScanRun,
        finishing: Finishing | None,
        rows: Mapping[str, np.ndarray],
        weights: np.ndarray,
    ) -> Iterator[Rows]:
        """Rows, if any, with what the search could not do (:mod:`lftj.evaluation.finishing`)."""
        if finishing is not None:
            try:
                rows, weights = finishing.finish(rows, weights, self.relations)
            except (RangeError, EvaluationError) as error:
                raise with_rule(error, run.rule.text) from error.__cause__
        run.rows += len(weights)
        if len(weights):
            yield rows, weights

    def plan(self) -> None:
        """Plan every body of the target without running it.

        Of a recursive head those that begin: the others are planned over what the rounds before gave.
        """
        self.derive()  # later rules are planned on the data of earlier ones
        if component := self.program.component_of(self.request.target):
            fixpoint = Fixpoint(self.program, component, self.relations, self.request)
            self.done.fixpoints.append(fixpoint)
            for rule, head, body in fixpoint.first:
                self._planned(rule, [head], self._wanted(rule, [head], body))
            return
        for rule, head in self.program.rules_of(self.request.target):
            if self._side_by_side(rule) is not None:
                continue
            heads = self._fed_together(rule, head) if isinstance(head.value, Aggregate) else [head]
            self.plan_bodies(rule, heads)

    # -- counting -----------------------------------------------------------------------------

    def count(self) -> int:
        """Number of rows of the target, without building it where the search can count."""
        self.derive()
        name = self.request.target
        if component := self.program.component_of(name):
            return len(self._fixpoint(component).columns(name, self._recursion_begins)[0])
        if self.program.derived[name].bag:
            return int(self._counts(name)[1].sum())
        rules = self.program.rules_of(name)
        counted = self._count_in_search(*rules[0]) if len(rules) == 1 else None
        return counted if counted is not None else sum(map(_n_rows, self.batches()))

    def _count_in_search(self, rule: CheckedRule, head: CheckedHead) -> int | None:
        variables = set(head.variables)
        plain = (
            not head.aggregates_rows
            and head.value is None
            and len(rule.bodies) == 1
            and len(variables) == len(head.variables)
        )
        if not plain or not variables or joins_groups(rule):
            return None
        request, body = self.request, rule.bodies[0]
        listed = request.plans.listed(
            Wanted(body, head.variables, counted=False), request.values, self.relations
        )
        listed.check(self.relations)
        if not listed.finishes_in_search:
            return None
        counted = set(body.atom_variables()) == variables  # the rows are the assignments
        names = () if counted else head.variables
        wanted = Wanted(body, names, counted, self._grouped([head]), counted, self._order_of(head, body))
        run = self._run_of(rule, [head], wanted)
        if isinstance(run, ScanRun):
            if counted:
                return sum(len(weights) for _, weights in self._rows(run))
            self.done.scans.remove(run)
            return None
        plan, lowered = run.planned.plan, run.planned.lowered
        if plan.plan.needs_distinct or not lowered.finishes_in_search:
            self.done.bodies.remove(run)
            return None
        if lowered.empty is None:
            run.rows = count(plan, run.counters, request.threads, request.advance)
        return run.rows


def _needs_distinct(run: BodyRun | ScanRun, names: Sequence[str]) -> bool:
    """Whether rows of a body may be equal, less what ``names`` leaves out."""
    if isinstance(run, ScanRun):
        lowered, atom = run.lowered, run.scan.atom
        of_key = atom.key_variables
        by_key = of_key is not None and of_key <= lowered.problem.determined
        repeats = not by_key and not set(atom.identity) <= set(atom.columns)
    else:
        lowered, repeats = run.planned.lowered, run.planned.plan.plan.needs_distinct
    return repeats or not lowered.distinct_by <= lowered.problem.closure(names) or not names


def _finishing(lowered: Lowered) -> Finishing | None:
    return None if lowered.finishes_in_search else Finishing(lowered)


def _n_rows(columns: Columns) -> int:
    return len(columns[0]) if columns else 1


def _ones(columns: Columns) -> np.ndarray:
    return np.ones(_n_rows(columns), dtype=np.int64)
