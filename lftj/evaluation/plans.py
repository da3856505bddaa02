"""Plans that are kept: from one evaluation of a program to the next, whatever became of the data.

A plan is apart from data, so it holds for every version of the relations and every value of the
parameters.  Its key order was chosen for the sizes that the relations had then: when one of them
is no longer alike (``ALIKE`` times as large or as small), the order is chosen anew.

Invariants

1. Nothing here keeps data alive: what a plan was bound to last goes with the tables.
2. What is kept is replaced, never changed: other threads run it, with other parameters.

Cost: a plan over the tables of last time none, with other constants their codes and a copy of the plan's
memory; over other tables one binding, and one lowering where the body depends on constants in other ways.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from lftj.evaluation.nearest import Nearest
from lftj.evaluation.products import product_warning
from lftj.evaluation.wanted import wanted_together
from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.parameters import with_values
from lftj.language.syntax import Constant
from lftj.planning.kept_orders import ALIKE, FEW_ROWS
from lftj.planning.lowered import Lowered
from lftj.planning.lowering import Fetches, compared_names, lower
from lftj.planning.planner import OrderChoice, choose_order
from lftj.planning.reducing import Reduced, count_read, is_bought, reduced, scan_with_lookups
from lftj.process.interrupts import deaf
from lftj.rewriting.nearest_join import NearestJoin, asked_extremum, nearest_join
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.queries.plan import BoundPlan, Plan, compile_plan
from lftj.search.scan import Scan
from lftj.storage.catalog import Catalog, Table
from lftj.values.literals import Value


@dataclass(frozen=True)
class Wanted:
    """A body, and what its plan is for: see :func:`lftj.planning.lowering.lower`.

    ``order``: the key order that is given.  ``whole``: all rows of the relations are searched, as they are
    where an order is given.  ``summed``: variables of which nothing but values is read, to be added up.
    """

    body: Body
    variables: tuple[str, ...]
    counted: bool
    grouped: tuple[str, ...] = ()
    write: bool = True
    order: tuple[str, ...] | None = None
    whole: bool = False
    summed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planned:
    """A body over tables, ready to run.

    ``lowered``: with constants of another run perhaps; those of this one stand in the problem of ``plan``.
    ``warning``: of a cartesian product.  ``kept``: where the key order comes from, if not from this run.
    ``parts``: what is searched in place of relations, by name.
    """

    lowered: Lowered
    choice: OrderChoice
    plan: BoundPlan
    warning: str | None = None
    kept: str | None = None
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scanned:
    """A body over tables that is scanned.

    ``scan``: None where it is searched.  ``atom``: the whole one, where an index for it might become the
    better way.
    """

    lowered: Lowered
    scan: Scan | None
    atom: JoinAtom | None = None


@dataclass(frozen=True)
class _Read:
    """A body over tables, its rows filtered; with the values of this run."""

    lowered: Lowered
    reduced: Reduced


_RuleOf = tuple[tuple[CheckedHead, ...], tuple[Body, ...]]
"""Heads of a rule, and its bodies: heads that are wanted for some keys alone have others."""

Fed = Sequence[Sequence[CheckedHead]]
"""Aggregate heads by the search that feeds them."""


Made = TypeVar("Made")


class _Bound(Generic[Made]):
    """What was made for tables last, as long as all of them live."""

    def __init__(self, tables: Sequence[Table], made: Made) -> None:
        self._made: Made | None = made
        forget = partial(self._forget, weakref.ref(self))
        self._tables = [weakref.ref(table, forget) for table in tables]

    @staticmethod
    @deaf
    def _forget(own: weakref.ref[_Bound[Made]], _: object) -> None:
        """By a reference that does not hold it: it would be a circle, which stays for the collector."""
        bound = own()
        if bound is not None:
            bound._made = None

    def over(self, tables: Sequence[Table]) -> Made | None:
        """It, if these are the tables."""
        same = all(known() is table for known, table in zip(self._tables, tables, strict=True))
        return self._made if same else None


@dataclass
class _Kept:
    """One plan.  ``rows``: of each relation when its order was chosen."""

    names: tuple[str, ...]  # of the relations that its body reads
    rows: dict[str, int]
    choice: OrderChoice
    plan: Plan
    warning: str | None
    bound: _Bound[Planned] | None = None


@dataclass
class Plans:
    """The plans of a program's bodies, which stay the same objects.  Safe to use from several threads."""

    _kept: dict[Wanted, _Kept] = field(default_factory=dict)
    _lowered: dict[Wanted, Lowered] = field(default_factory=dict)
    _scanned: dict[Wanted, _Bound[Scanned]] = field(default_factory=dict)
    _looked_at: dict[Wanted, _Bound[_Read]] = field(default_factory=dict)
    _listed: dict[Wanted, Lowered] = field(default_factory=dict)
    _fed: dict[_RuleOf, tuple[dict[str, int], Fed]] = field(default_factory=dict)
    _nearest: dict[_RuleOf, Nearest | str | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __reduce__(self) -> tuple[type[Plans], tuple[()]]:
        """Of an image, plans are made again."""
        return Plans, ()

    def planned(
        self, rule: CheckedRule, wanted: Wanted, values: Mapping[str, Value], catalog: Catalog
    ) -> Planned:
        """A body of a rule with values of its parameters, over the tables of a catalog.

        Raises OrderError; NanError and FunctionalConflictError about the data.
        """
        return self._planned(rule, wanted, values, catalog, None)

    def _planned(
        self,
        rule: CheckedRule,
        wanted: Wanted,
        values: Mapping[str, Value],
        catalog: Catalog,
        read: _Read | None,
    ) -> Planned:
        body = wanted.body
        with self._lock:
            kept = self._kept.get(wanted)
            bound = kept.bound if kept else None
        names = kept.names if kept else body.relations
        tables = [catalog[name] for name in names]
        last = bound.over(tables) if bound else None
        if last is not None and not values:
            return last
        if read is None:
            lowered, problem = self._problem(wanted, values, catalog)
            if last is not None and last.lowered is lowered and not last.parts:
                again = last.plan.with_constants(problem)
                if again is not None:
                    return Planned(lowered, last.choice, again, last.warning, last.kept)
            read = _read(wanted, lowered, problem, catalog)
        lowered, problem, everything = read.lowered, read.reduced.problem, read.reduced.tables
        rows = {name: table.n_rows for name, table in zip(names, tables, strict=True)}
        rows |= {name: everything[name].n_rows for name in read.reduced.parts}
        moved = kept is not None and kept.rows.keys() == rows.keys() and _moved(kept.rows, rows)
        note = None
        if kept is not None and kept.rows != rows:
            note = f"the key order was chosen when there were {_sizes(kept.rows)}"
            if moved:
                note += ", and is chosen anew"
        if kept is None or kept.plan.problem.shape != problem.shape or moved:
            choice = self._choice_beside(wanted, rows, problem) or choose_order(
                problem, everything, wanted.order, body.atom_variables(), sorts=wanted.counted
            )
            plan = compile_plan(problem, choice.order, wanted.write)
            warning = product_warning(rule, body, wanted.variables, wanted.counted)
            kept = _Kept(names, rows, choice, plan, warning)
        elif note:
            note += f"; a relation {ALIKE} times as large or as small has it chosen anew"
        bound_plan = kept.plan.bind(everything, problem)
        planned = Planned(lowered, kept.choice, bound_plan, kept.warning, note, read.reduced.parts)
        with self._lock:
            kept.bound = _Bound(tables, replace(planned, kept=None) if moved else planned)
            self._kept[wanted] = kept
        return planned

    def _problem(
        self, wanted: Wanted, values: Mapping[str, Value], catalog: Catalog
    ) -> tuple[Lowered, JoinProblem]:
        """A body lowered, for these values or for others, and the problem with these."""
        with self._lock:
            lowered = self._lowered.get(wanted)
        code_read_columns(wanted.body, catalog)
        problem = lowered.problem_for(values) if lowered else None
        if lowered is None or problem is None:
            lowered = lowered_body(wanted, values, catalog)
            problem = lowered.problem
            if lowered.constants is not None:
                with self._lock:
                    self._lowered[wanted] = lowered
        return lowered, problem

    def _choice_beside(
        self, wanted: Wanted, rows: Mapping[str, int], problem: JoinProblem
    ) -> OrderChoice | None:
        """The key order of the plan that counts what this one lists, or the other way round."""
        with self._lock:
            beside = self._kept.get(replace(wanted, write=not wanted.write))
        if beside is None or beside.rows != rows or beside.plan.problem.shape != problem.shape:
            return None
        return beside.choice

    def found(
        self,
        rule: CheckedRule,
        wanted: Wanted,
        values: Mapping[str, Value],
        catalog: Catalog,
        looks_up: bool,
        fresh: Collection[str] = (),
    ) -> Planned | Scanned:
        """As :meth:`planned`, or as a scan where that costs less than a search.

        ``looks_up``: the rows of a scan with look-ups are not kept.  ``fresh``: relations of this evaluation
        alone.
        """
        tables = [catalog[name] for name in wanted.body.relations]
        with self._lock:
            known, kept = self._scanned.get(wanted), self._kept.get(wanted)
            bound = kept.bound if kept else None
        scanned = known.over(tables) if known and not values else None
        read = None
        if scanned is None or (scanned.atom and is_bought(catalog[scanned.atom.relation], scanned.atom)):
            last = bound.over(tables) if bound and values else None
            if last is not None and not last.parts:
                return self._planned(rule, wanted, values, catalog, None)
            with self._lock:
                bound_read = self._looked_at.pop(wanted, None)
            read = bound_read.over(tables) if bound_read and not values else None
            if read is None:
                read = _read(wanted, *self._problem(wanted, values, catalog), catalog, fresh)
            scanned = _as_scan(read, looks_up)
            if not values:
                with self._lock:
                    self._scanned[wanted] = _Bound(tables, scanned)
        if scanned.atom is not None:
            count_read(catalog[scanned.atom.relation], scanned.atom)
        if scanned.scan is not None:
            return scanned
        return self._planned(rule, wanted, values, catalog, read)

    def is_filtered(self, wanted: Wanted, values: Mapping[str, Value], catalog: Catalog) -> bool:
        """Whether fewer rows than its relations have are searched, or they are scanned."""
        lowered = lowered_body(wanted, values, catalog)
        read = _read(wanted, lowered, lowered.problem, catalog)
        if not values:  # who evaluates it then goes on from there
            tables = [catalog[name] for name in wanted.body.relations]
            with self._lock:
                self._looked_at[wanted] = _Bound(tables, read)
        return read.reduced.scan is not None or bool(read.reduced.parts)

    def fed_together(
        self, rule: CheckedRule, heads: Sequence[CheckedHead], rows: dict[str, int], found: Callable[[], Fed]
    ) -> Fed:
        """Which aggregate heads of a rule are fed by one search: as it was for relations of such sizes."""
        key = tuple(heads), tuple(rule.bodies)
        with self._lock:
            known = self._fed.get(key)
        if known is not None and not _moved(known[0], rows):
            return known[1]
        fed = found()
        with self._lock:
            self._fed[key] = rows, fed
        return fed

    def nearest(self, rule: CheckedRule, heads: Sequence[CheckedHead]) -> Nearest | str | None:
        """How what heads of a rule aggregate is found by searches for the nearest, or why it is not."""
        key = tuple(heads), tuple(rule.bodies)
        with self._lock:
            if key in self._nearest:
                return self._nearest[key]
        asked = asked_extremum(heads)
        found: NearestJoin | str | None = None
        if asked is not None and len(rule.bodies) == 1:
            found = nearest_join(rule.bodies[0], *asked, wanted_together(heads))
        made = Nearest(found) if isinstance(found, NearestJoin) else found
        with self._lock:
            return self._nearest.setdefault(key, made)

    def listed(self, wanted: Wanted, values: Mapping[str, Value], catalog: Catalog) -> Lowered:
        """A body lowered for its rows, with the values that it came with first."""
        with self._lock:
            known = self._listed.get(wanted)
        if known is None:
            known = lowered_body(wanted, values, catalog)
            with self._lock:
                self._listed[wanted] = known
        return known


def code_read_columns(body: Body, catalog: Catalog) -> None:
    """Have what literals are compared with in the dictionaries: what is not there matches none."""
    wide = [atom for atom in (*body.atoms, *body.negations) if catalog[atom.relation].schema.wide]
    if wide:
        compared = compared_names(body)
        for atom in wide:
            table = catalog[atom.relation]
            for number, _ in table.schema.dictionaries:
                term = atom.terms[number]
                if number and (isinstance(term, Constant) or getattr(term, "name", None) in compared):
                    table.code(number)


def _read(
    wanted: Wanted, lowered: Lowered, problem: JoinProblem, catalog: Catalog, fresh: Collection[str] = ()
) -> _Read:
    """A body over tables with its rows filtered.  ``problem``: with the constants of this run."""
    lowered.check(catalog)
    tables = lowered.tables(catalog)
    whole = lowered.empty or wanted.whole or wanted.order is not None
    return _Read(lowered, Reduced(problem, tables) if whole else reduced(problem, tables, fresh))


def _as_scan(read: _Read, looks_up: bool) -> Scanned:
    lowered, over = read.lowered, read.reduced
    if lowered.negations or lowered.empty:
        return Scanned(lowered, None)
    if over.scan is not None:
        return Scanned(lowered, over.scan, over.scanned)
    return Scanned(lowered, scan_with_lookups(over) if looks_up else None)


def lowered_body(wanted: Wanted, values: Mapping[str, Value], catalog: Catalog) -> Lowered:
    """A body with values of its parameters, lowered over the tables of a catalog."""
    schemas = {name: catalog[name].schema for name in wanted.body.relations}
    body = with_values(wanted.body, values)
    code_read_columns(wanted.body, catalog)
    fetches = Fetches.NUMBERS if wanted.summed and not wanted.whole else Fetches.NOTHING
    coded = set(wanted.variables) - set(wanted.summed)
    return lower(
        body,
        schemas,
        wanted.variables,
        wanted.counted,
        grouped=wanted.grouped,
        fetches=fetches,
        coded=coded,
        rows={name: catalog[name].n_rows for name in wanted.body.relations},
    )


def _sizes(rows: dict[str, int]) -> str:
    return ", ".join(f"{n_rows:,} rows of {name}" for name, n_rows in rows.items())


def _moved(before: dict[str, int], now: dict[str, int]) -> bool:
    """Whether a relation is so much larger or smaller that another order may be better."""
    return any(
        max(FEW_ROWS, rows) > ALIKE * max(FEW_ROWS, before[name])
        or max(FEW_ROWS, before[name]) > ALIKE * max(FEW_ROWS, rows)
        for name, rows in now.items()
    )
