"""How the existential part of a body is kept: by support counts, by witnesses, by tests of its own.

Existential variables connected to each other are a *component* (ENGINE.md section 3).

* A component that no head variable touches asks one question, whose answer lets
  all rows pass or none: it is a *test*, searched on its own.
* The others are either all enumerated, and support counts tell how many assignments
  stand behind a row; or each is a separate search that stops at its first success
  and keeps a witness (:mod:`maintenance.strategies.trace.witnessed_trace`).  With several searches a
  row holds when all of them hold it.

Which of the two costs less is estimated as for a query: the operations of the best
order that enumerates everything, against those of the best orders with the
existential variables behind, left at the first success.  A key order that the
caller gives decides by itself: witnesses, if the existential variables stand behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lftj.planning.lowering import Lowered
from lftj.planning.planner import OrderChoice, choose_order, complete_order
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.search.regions.plan import compile_regions
from maintenance.strategies.trace.body_trace import BodyTrace
from maintenance.strategies.trace.witnessed_trace import WitnessedTrace

WITNESS_GAP = 0
"""Most records of searches with witnesses are points, so joining the others would save little: a fifth for
``hub(a) <- e(a, b), e(b, c), e(a, c)`` on a power-law graph of 234,000 edges.  Exact ones match less."""


@dataclass(frozen=True)
class Existence:
    """``rows``: searches that must all hold a row.  ``tests``: searches that must all hold for any row.

    ``unbound``: atoms that bind no variable, with whether they are negated: they ask if there is a tuple.
    ``notes``: what was decided, for ``explain``.
    """

    rows: tuple[BodyTrace, ...]
    tests: tuple[WitnessedTrace, ...]
    unbound: tuple[tuple[JoinAtom, bool], ...]
    notes: tuple[str, ...]


def plan_existence(
    lowered: Lowered, record_gap: int, order: Sequence[str] | None, known: Iterable[str]
) -> Existence:
    """Decide how a body is kept.  ``order``: the caller's key order; ``known``: all variables of the body.

    Raises OrderError when ``order`` does not fit.
    """
    problem, unbound = _without_unbound(lowered.problem)
    apart = [component for component in problem.components if not _touches_rows(problem, component)]
    joined = [component for component in problem.components if component not in apart]
    notes = [
        f"{{{', '.join(sorted(component))}}}: a test of its own, apart from the rows" for component in apart
    ]
    notes += [f"{'!' if negated else ''}{atom.label}: a test of its own" for atom, negated in unbound]
    tests = []
    for component in apart:
        alone = _test_of(problem, component)
        tests.append(_witnessed(lowered, alone, choose_order(alone, head_first=True)))
    problem = _without(problem, frozenset().union(*apart))
    counting = _counting(problem)
    if not problem.atoms:  # no variable is left: one row, for the tests to let through
        return Existence((), tuple(tests), unbound, tuple(notes))
    if not joined:
        choice = choose_order(counting, order, known)
        return Existence(
            (_counted(lowered, counting, choice, record_gap),), tuple(tests), unbound, tuple(notes)
        )
    pieces = [_without(problem, frozenset().union(*joined) - component) for component in joined]
    shown = ", ".join(f"{{{', '.join(sorted(component))}}}" for component in joined)
    if order is not None:
        whole = complete_order(problem, order, known)
        by_witness = _is_behind(whole, frozenset().union(*joined))
        why = "the key order was given"
    else:
        choice = choose_order(counting)
        choices = [choose_order(piece, head_first=True) for piece in pieces]
        enumerated, stopped = choice.operations, sum(c.operations for c in choices)
        by_witness = stopped <= enumerated
        why = f"estimated operations: short circuit {stopped:,.0f}, support counts {enumerated:,.0f}"
    if not by_witness:
        if order is not None:
            choice = choose_order(counting, order, known)
        notes.append(f"{shown}: enumerated, rows have support counts ({why})")
        return Existence(
            (_counted(lowered, counting, choice, record_gap),), tuple(tests), unbound, tuple(notes)
        )
    if order is not None:
        choices = [
            choose_order(
                piece, [name for name in whole if name in piece.variables and name not in piece.labels]
            )
            for piece in pieces
        ]
    searches = "short circuit" if len(pieces) == 1 else f"{len(pieces)} separate short circuits"
    notes.append(f"{shown}: {searches}, a witness per row ({why})")
    rows = [_witnessed(lowered, piece, choice) for piece, choice in zip(pieces, choices, strict=True)]
    return Existence(tuple(rows), tuple(tests), unbound, tuple(notes))


def _counted(lowered: Lowered, problem: JoinProblem, choice: OrderChoice, gap: int) -> BodyTrace:
    return BodyTrace(replace(lowered, problem=problem), choice, compile_regions(problem, choice.order, gap))


def _witnessed(lowered: Lowered, problem: JoinProblem, choice: OrderChoice) -> WitnessedTrace:
    (component,) = problem.components
    tail = len(choice.order) - len(component)
    assert _is_behind(choice.order, component)
    plan = compile_regions(problem, choice.order, WITNESS_GAP, tail)
    return WitnessedTrace(replace(lowered, problem=problem), choice, plan)


def _is_behind(order: Sequence[str], names: frozenset[str]) -> bool:
    return names == set(order[len(order) - len(names) :])


def _counting(problem: JoinProblem) -> JoinProblem:
    """The problem whose rows are all assignments."""
    return replace(problem, emitted=tuple(name for name in problem.variables if name not in problem.labels))


def _touches_rows(problem: JoinProblem, component: frozenset[str]) -> bool:
    """Whether something ties the component to a variable of the rows."""
    tied = {name for edge in problem.edges if component & set(edge) for name in edge}
    return bool(tied & set(problem.emitted))


def _without_unbound(problem: JoinProblem) -> tuple[JoinProblem, tuple[tuple[JoinAtom, bool], ...]]:
    unbound = [(atom, False) for atom in problem.atoms if not atom.variables]
    unbound += [(atom, True) for atom in problem.negations if not atom.variables]
    atoms = tuple(atom for atom in problem.atoms if atom.variables)
    negations = tuple(atom for atom in problem.negations if atom.variables)
    return replace(problem, atoms=atoms, negations=negations), tuple(unbound)


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
