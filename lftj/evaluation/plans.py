"""Plans that are kept: from one evaluation of a program to the next, whatever became of the data.

A plan is apart from data, so it holds for every version of the relations and every value of the
parameters.  Its key order was chosen for the sizes that the relations had then: when one of them
is ``MOVED`` times as large or as small, the order is chosen anew.

Invariant: nothing here keeps data alive: what a plan was bound to last goes with the tables.

Cost: a plan over the tables of last time none; over others one lowering and one binding.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

from lftj.language.body import Body
from lftj.planning.lowering import Lowered, lower
from lftj.planning.planner import OrderChoice, choose_order
from lftj.search.base.plan import BoundPlan, Plan, compile_plan
from lftj.storage.catalog import Catalog, Table

MOVED = 4
"""A relation that has become so many times as large or as small has moved far."""

FEW_ROWS = 1 << 10
"""Sizes below this one are alike."""


@dataclass(frozen=True)
class Wanted:
    """What a plan is for, beside the body: see :func:`lftj.planning.lowering.lower`."""

    variables: tuple[str, ...]
    counted: bool
    grouped: tuple[str, ...]
    write: bool
    order: tuple[str, ...] | None


@dataclass(frozen=True)
class Planned:
    """A body over tables, ready to run.  ``kept``: where its key order comes from, if not from this run."""

    lowered: Lowered
    choice: OrderChoice
    plan: BoundPlan
    kept: str | None = None


class _Bound:
    """What a plan was bound to last, as long as all the tables live."""

    def __init__(self, body: Body, tables: Sequence[Table], planned: Planned) -> None:
        self.body = body
        self.planned: Planned | None = planned
        self._tables = [weakref.ref(table, self._forget) for table in tables]

    def _forget(self, _: object) -> None:
        self.planned = None

    def is_over(self, body: Body, tables: Sequence[Table]) -> bool:
        return self.body is body and all(
            known() is table for known, table in zip(self._tables, tables, strict=True)
        )


@dataclass
class _Kept:
    """One plan; ``rows``: of each relation when its order was chosen; ``last``: what was lowered last.

    ``last`` and ``bound`` are replaced as wholes: another thread may run the plan with other constants.
    """

    shape: tuple[object, ...]
    rows: dict[str, int]
    choice: OrderChoice
    plan: Plan
    last: tuple[Body, Lowered]
    bound: _Bound | None = None


@dataclass
class Plans:
    """The plans of a program's bodies.  Safe to use from several threads."""

    _kept: dict[tuple[object, ...], _Kept] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def planned(self, place: object, body: Body, catalog: Catalog, wanted: Wanted) -> Planned:
        """A body, which stands at ``place`` of its program, over the tables of a catalog.

        Raises OrderError; NanError and FunctionalConflictError about the data.
        """
        key = (place, wanted)
        names = list(dict.fromkeys(atom.relation for atom in (*body.atoms, *body.negations)))
        tables = [catalog[name] for name in names]
        with self._lock:
            kept = self._kept.get(key)
            bound = kept.bound if kept else None
            last = kept.last if kept else None
        if bound is not None and bound.is_over(body, tables):
            planned = bound.planned
            if planned is not None:
                return planned
        schemas = {name: table.schema for name, table in zip(names, tables, strict=True)}
        if last is not None and last[0] is body and last[1].is_fixed:
            lowered = last[1]
        else:
            lowered = lower(body, schemas, wanted.variables, wanted.counted, grouped=wanted.grouped)
        lowered.check(catalog)
        everything = lowered.tables(catalog)
        problem = lowered.problem
        rows = {name: table.n_rows for name, table in zip(names, tables, strict=True)}
        moved = kept is not None and _moved(kept.rows, rows)
        note = None
        if kept is not None and kept.rows != rows:
            note = f"the key order was chosen when there were {_sizes(kept.rows)}"
            if moved:
                note += ", and is chosen anew"
        if kept is None or kept.shape != problem.shape or moved:
            choice = choose_order(problem, everything, wanted.order, body.atom_variables())
            plan = compile_plan(problem, choice.order, wanted.write)
            kept = _Kept(problem.shape, rows, choice, plan, (body, lowered))
        elif note:
            note += f"; a relation {MOVED} times as large or as small has it chosen anew"
        planned = Planned(lowered, kept.choice, kept.plan.bind(everything, problem), note)
        with self._lock:
            kept.last = body, lowered
            kept.bound = _Bound(body, tables, planned)
            self._kept[key] = kept
        return planned


def _sizes(rows: dict[str, int]) -> str:
    return ", ".join(f"{n_rows:,} rows of {name}" for name, n_rows in rows.items())


def _moved(before: dict[str, int], now: dict[str, int]) -> bool:
    """Whether a relation is so much larger or smaller that another order may be better."""
    return any(
        max(FEW_ROWS, rows) > MOVED * max(FEW_ROWS, before[name])
        or max(FEW_ROWS, before[name]) > MOVED * max(FEW_ROWS, rows)
        for name, rows in now.items()
    )
