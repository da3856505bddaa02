"""How the existential part of a body is kept: by support counts, by witnesses, by tests of its own.

Existential variables connected to each other are a *component* (docs/design/engine.md section 3).

* A component that no head variable touches asks one question, whose answer lets
  all rows pass or none: it is a *test*, searched on its own.
* The others are either all enumerated, and support counts tell how many assignments
  stand behind a row; or each is a separate search that stops at its first success
  and keeps a witness.  With several searches a row holds when all of them hold it.
  Where keys determine all of them by what is emitted, one assignment stands behind a row, and is enumerated.

Which of the two costs less is estimated as for a query: the operations of the best
order that enumerates everything, against those of the best orders with the
existential variables behind, left at the first success.  Where a strategy does both, it may
charge witnesses for what matching records takes beside operations: a change that meets few assignments
is counted sooner.  A key order that the caller gives decides by itself: witnesses, if the existential
variables stand behind.

What the searches are is the strategy's: it makes them, of the parts and key orders that are decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from lftj.planning.lowered import Lowered
from lftj.planning.planner import OrderChoice, choose_order, complete_order
from lftj.search.problem import JoinProblem
from lftj.storage.catalog import Catalog
from maintenance.strategies.strategy import BodyRequest, BodySearch, BodySearches, BodyTest


class SearchMaker(Protocol):
    """Makes a strategy's searches of parts of a body, whose problem ``lowered`` has, in a key order."""

    @property
    def keeps_witnesses(self) -> bool:
        """Whether it can keep rows by a search that stops at its first success."""

    @property
    def witness_operations(self) -> float:
        """What a changed row costs by witnesses beside its operations."""

    @property
    def switch(self) -> float:
        """How much better in a pilot an order has to be, see :func:`lftj.planning.planner.choose_order`."""

    def enumerated(self, problem: JoinProblem) -> JoinProblem:
        """The problem whose rows add up to all assignments, as it is enumerated."""

    def enumerating(self, lowered: Lowered, choice: OrderChoice) -> BodySearch:
        """One whose rows add up to all assignments."""

    def stopping(self, lowered: Lowered, choice: OrderChoice, tail: int) -> BodyTest:
        """One whose rows are the bindings of the first ``tail`` variables that some assignment has."""


def plan_existence(request: BodyRequest, lowered: Lowered, make: SearchMaker) -> BodySearches:
    """Decide how a body is kept.  Raises OrderError when the request's order does not fit."""
    order, known = request.order, request.body.atom_variables()
    # Orders are tried out: the indices that this takes are none that commits would have to step.
    catalog: Catalog = {name: version.aside() for name, version in request.relations.items()}
    problem, unbound = lowered.problem.without_unbound(), lowered.problem.unbound
    apart = [component for component in problem.components if not _touches_rows(problem, component)]
    joined = [component for component in problem.components if component not in apart]
    notes = [
        f"{{{', '.join(sorted(component))}}}: a test of its own, apart from the rows" for component in apart
    ]
    notes += [f"{'!' if negated else ''}{atom.label}: a test of its own" for atom, negated in unbound]
    tests = []
    for component in apart:
        alone = _test_of(problem, component)
        tests.append(
            _stopping(make, lowered, alone, choose_order(alone, catalog, head_first=True, switch=make.switch))
        )
    problem = _without(problem, frozenset().union(*apart))
    every = make.enumerated(problem)
    if not problem.atoms:  # no variable is left: one row, for the tests to let through
        if problem.negations:  # of constants
            notes += [f"!{atom.label}: a test of its own" for atom in problem.negations]
            tests.append(make.stopping(replace(lowered, problem=every), choose_order(every, catalog), 0))
        return BodySearches((), tuple(tests), unbound, tuple(notes))
    if not joined:
        choice = choose_order(every, catalog, order, known, switch=make.switch)
        search = make.enumerating(replace(lowered, problem=every), choice)
        return BodySearches((search,), tuple(tests), unbound, tuple(notes))
    pieces = [_without(problem, frozenset().union(*joined) - component) for component in joined]
    shown = ", ".join(f"{{{', '.join(sorted(component))}}}" for component in joined)
    counted = None
    by_keys = all(component <= problem.determined for component in joined)
    if by_keys or not make.keeps_witnesses:
        by_witness, why = False, "all assignments are needed"
    elif order is not None:
        whole = complete_order(problem, catalog, order, known)
        by_witness = _is_behind(whole, frozenset().union(*joined))
        why = "the key order was given"
    else:
        counted = choose_order(every, catalog, switch=make.switch)
        choices = [choose_order(piece, catalog, head_first=True, switch=make.switch) for piece in pieces]
        enumerated, stopped = counted.operations, sum(c.operations for c in choices)
        # Evaluated whole, an assignment is met once; by changes of all rows, once for each atom.
        n_rows = sum(catalog[atom.relation].n_rows for atom in problem.atoms)
        charged = make.witness_operations * n_rows / len(problem.atoms)
        by_witness = stopped + charged <= enumerated
        why = f"estimated operations: short circuit {stopped:,.0f}, support counts {enumerated:,.0f}"
        why += f"; {charged:,.0f} for matching records" if charged else ""
    if not by_witness:
        counted = counted or choose_order(every, catalog, order, known, switch=make.switch)
        of_rows = "by keys one for each row" if by_keys else f"rows have support counts ({why})"
        notes.append(f"{shown}: enumerated, {of_rows}")
        search = make.enumerating(replace(lowered, problem=every), counted)
        return BodySearches((search,), tuple(tests), unbound, tuple(notes))
    if order is not None:
        choices = [
            choose_order(
                piece,
                catalog,
                [name for name in whole if name in piece.variables and name not in piece.labels],
            )
            for piece in pieces
        ]
    searches = "short circuit" if len(pieces) == 1 else f"{len(pieces)} separate short circuits"
    notes.append(f"{shown}: {searches}, a witness per row ({why})")
    rows = [_stopping(make, lowered, piece, choice) for piece, choice in zip(pieces, choices, strict=True)]
    return BodySearches(tuple(rows), tuple(tests), unbound, tuple(notes))


def _stopping(make: SearchMaker, lowered: Lowered, problem: JoinProblem, choice: OrderChoice) -> BodyTest:
    (component,) = problem.components
    assert _is_behind(choice.order, component)
    return make.stopping(replace(lowered, problem=problem), choice, len(choice.order) - len(component))


def _is_behind(order: Sequence[str], names: frozenset[str]) -> bool:
    return names == set(order[len(order) - len(names) :])


def counting(problem: JoinProblem) -> JoinProblem:
    """The problem whose rows are all assignments."""
    return replace(problem, emitted=tuple(name for name in problem.variables if name not in problem.labels))


def _touches_rows(problem: JoinProblem, component: frozenset[str]) -> bool:
    """Whether something ties the component to a variable of the rows."""
    tied = {name for edge in problem.edges if component & set(edge) for name in edge}
    return bool(tied & set(problem.emitted))


def _without(problem: JoinProblem, names: frozenset[str]) -> JoinProblem:
    """The problem less some existential components: of an atom that touches them the other columns are left.

    Each row of the problem is a row of this one.
    """
    if not names:
        return problem
    atoms = []
    for atom in problem.atoms:
        kept = [i for i, name in enumerate(atom.variables) if name not in names]
        if kept:
            columns = tuple(atom.columns[i] for i in kept)
            atoms.append(replace(atom, columns=columns, variables=tuple(atom.variables[i] for i in kept)))
    return replace(
        problem,
        atoms=tuple(atoms),
        negations=tuple(a for a in problem.negations if names.isdisjoint(a.variables)),
        conditions=tuple(c for c in problem.conditions if names.isdisjoint(c.variables)),
    )


def _test_of(problem: JoinProblem, component: frozenset[str]) -> JoinProblem:
    """The part of the problem that a component without rows is about."""
    atoms = tuple(a for a in problem.atoms if component.intersection(a.variables))
    negations = tuple(a for a in problem.negations if component.intersection(a.variables))
    tied = [c for c in problem.conditions if component.intersection(c.variables)]
    names = {name for part in (*atoms, *negations) for name in part.variables}
    names.update(name for condition in tied for name in condition.variables)
    return replace(
        problem,
        atoms=atoms,
        negations=negations,
        conditions=tuple(c for c in problem.conditions if set(c.variables) <= names),
        emitted=(),
        labels={name: text for name, text in problem.labels.items() if name in names},
    )
