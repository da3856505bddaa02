"""Evaluating a recursive component, semi-naively: rounds until nothing new comes.

Round 1 evaluates the bodies that read nothing of the component.  Each later round joins what came in the
one before, the frontier, with what was there (:mod:`lftj.evaluation.recursive_body`); a
tuple that comes again is dropped as it comes (:mod:`lftj.storage.tuple_set`).  A head ``dist[x] = min(d)``
has one value per key, the best that any of its rules gave so far (:mod:`lftj.storage.best_values`); its
frontier are the keys whose value got better, with that.

Invariants

1. After round k the relations hold the tuples that have a derivation of depth k at most, or better values
   than those, and so in the end those of the least fixpoint: negation and aggregates are over relations that
   are complete, ``min`` and ``max`` inside are monotone (:mod:`lftj.language.monotone`).
2. A functional relation, and one that is read as a function, has one value per key after every round.
3. No column by which a rule joins holds NaN, nor does a value that goes round through ``min`` or ``max``.

Cost: each assignment of a body is found once, of the best values of every round that made one better; memory
is that of the distinct tuples, of the indices that non-linear rules read, and of a piece of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lftj.errors import RoundLimitError
from lftj.evaluation.growing_relation import GrowingRelation, GrowingTuples, GrowingValues
from lftj.evaluation.recursive_body import RecursiveBody
from lftj.evaluation.request import Request
from lftj.language.body import Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.process import allowance
from lftj.storage.catalog import Catalog
from lftj.storage.relation import Relation
from lftj.storage.tuple_set import TupleSet
from lftj.values.domain import NAN_CODE
from lftj.values.functional import refuse_conflicts
from lftj.values.schema import Schema

Columns = list[np.ndarray]
BodyRows = Callable[[CheckedRule, CheckedHead, Body], Iterator[Columns]]
"""The rows that a body over complete relations gives a head."""


@dataclass(frozen=True)
class RoundReport:
    """One round: the new tuples of all relations together, the rows that were found for them, seconds.

    The last one has none that are new.
    """

    new: int
    found: int
    seconds: float


class Fixpoint:
    """One component's evaluation."""

    def __init__(
        self, program: CheckedProgram, component: Sequence[str], relations: Catalog, request: Request
    ) -> None:
        """``relations``: complete ones, of all that the component's rules read beside itself."""
        self.component = tuple(component)
        self.rounds: list[RoundReport] = []
        self._found: dict[str, Relation] | None = None
        self._is_complete = False
        self._max_rounds = request.max_rounds
        self._advance = request.advance
        self._growing = {name: _growing(program, name) for name in component}
        self.first: list[tuple[CheckedRule, CheckedHead, Body]] = []
        """The bodies of round 1."""
        self.bodies: list[RecursiveBody] = []
        self._texts = {name: " ".join(rule.text for rule, _ in program.rules_of(name)) for name in component}
        for name in component:
            for rule, head in program.rules_of(name):
                for body in rule.bodies:
                    if set(body.relations).isdisjoint(component):
                        self.first.append((rule, head, body))
                    else:
                        self.bodies.append(
                            RecursiveBody(rule, head, body, self._growing, relations, request.values)
                        )
        functions = {name for body in self.bodies for name in body.lowered.functions}
        self._keys = {
            name: TupleSet(len(growing.schema.columns) - 1)
            for name, growing in self._growing.items()
            if isinstance(growing, GrowingTuples)
            and (growing.schema.functional or name in functions)
            and len(growing.schema.columns) > 1
        }
        self._nan_free = {place for body in self.bodies for place in body.lowered.nan_free} | {
            (name, len(growing.schema.columns) - 1)
            for name, growing in self._growing.items()
            if isinstance(growing, GrowingValues)
        }

    def relations(self, body_rows: BodyRows) -> dict[str, Relation]:
        """The component's relations; evaluated by the first call.

        Raises RoundLimitError, FunctionalConflictError, NanError, and what the rules raise on a row.
        """
        if self._found is None:
            self._evaluate(body_rows)
            self._found = {name: growing.relation() for name, growing in self._growing.items()}
            for growing in self._growing.values():
                growing.forget()
        return self._found

    def columns(self, name: str, body_rows: BodyRows) -> Columns:
        """One of the relations, its tuples in any order.  Raises as :meth:`relations`."""
        if self._found is not None:
            return list(self._found[name].codes)
        self._evaluate(body_rows)
        return self._growing[name].columns()

    def _evaluate(self, body_rows: BodyRows) -> None:
        """Go round until nothing new comes, if that was not done yet."""
        if self._is_complete:
            return
        started = time.perf_counter()
        n_found = 0
        last: tuple[CheckedRule, str, np.ndarray] | None = None
        for rule, head, body in self.first:
            for columns in body_rows(rule, head, body):
                n_found += len(columns[0])
                new = self._growing[head.relation].add(columns)
                if new.shape[1]:
                    last = rule, head.relation, new[:, -1]
        while n_new := sum([growing.next_round() for growing in self._growing.values()]):
            now = time.perf_counter()
            self.rounds.append(RoundReport(n_new, n_found, now - started))
            self._tell_progress()
            allowance.spend()
            if len(self.rounds) > self._max_rounds:
                assert last is not None
                rule, name, codes = last
                schema = self._growing[name].schema
                raise no_end(self.component, self._max_rounds, rule, name, schema, codes)
            self._check_frontiers()
            started, n_found = now, 0
            for recursive in self.bodies:
                if recursive.is_empty:
                    continue
                growing = self._growing[recursive.head.relation]
                for rows in recursive.rows():
                    n_found += rows.shape[1]
                    new = growing.add(rows)
                    if new.shape[1]:
                        last = recursive.rule, growing.name, new[:, -1]
            self._keep_indices()
        self.rounds.append(RoundReport(0, n_found, time.perf_counter() - started))
        self._is_complete = True

    def _tell_progress(self) -> None:
        """The last round; how many there are going to be nobody knows."""
        if self._advance is not None:
            last = self.rounds[-1]
            n_rows = sum(growing.n_rows for growing in self._growing.values())
            noun = "tuple" if last.new == 1 else "tuples"
            self._advance(
                None,
                f"{', '.join(self.component)}: round {len(self.rounds):,}, {last.new:,} new {noun}"
                f" in {last.seconds:.1f} s, {n_rows:,} in all",
            )

    def _keep_indices(self) -> None:
        for name, growing in self._growing.items():
            growing.keep_indices(
                {use.key for body in self.bodies for use in body.read_keys if use.relation == name}
            )

    def _check_frontiers(self) -> None:
        """Invariants 2 and 3, of what came."""
        for name, keys in self._keys.items():
            growing = self._growing[name]
            frontier = growing.frontier
            if keys.add(frontier[:-1]).shape[1] < frontier.shape[1]:
                refuse_conflicts(name, growing.schema, growing.relation().codes, self._texts[name])
        for name, column in self._nan_free:
            known = self._growing.get(name)
            if known is None or known.schema.columns[column].type.domain.name != "float":
                continue
            if (known.frontier[column] == NAN_CODE).any():
                known.relation().refuse_nan(column)

    def describe(self) -> list[str]:
        """For ``explain``: each recursive rule with its terms, and when it was run its rounds."""
        lines = [f"recursion of {', '.join(self.component)}"]
        for body in self.bodies:
            lines.append(f"  {' '.join(body.rule.text.split())}")
            lines += [f"    {line}" for line in body.describe()]
        if self.rounds:
            new, found = sum(r.new for r in self.rounds), sum(r.found for r in self.rounds)
            seconds = sum(r.seconds for r in self.rounds)
            n_rounds = len(self.rounds) - 1
            noun = "round" if n_rounds == 1 else "rounds"
            lines.append(
                f"  {n_rounds:,} {noun} with new tuples: {new:,} tuples, from {found:,} rows"
                f" that were found, in {seconds:.3f} s"
            )
        return lines


def _growing(program: CheckedProgram, name: str) -> GrowingRelation:
    """One of the relations, empty."""
    schema = program.derived[name]
    extremum = next((head.extremum for _, head in program.rules_of(name)), None)
    return GrowingTuples(name, schema) if extremum is None else GrowingValues(name, schema, extremum)


def no_end(
    component: Sequence[str], max_rounds: int, rule: CheckedRule, name: str, schema: Schema, codes: np.ndarray
) -> RoundLimitError:
    """What is raised when a recursion still gives new tuples; ``codes``: of the last one, by ``rule``."""
    values = ", ".join(
        column.type.spelled(code) for column, code in zip(schema.columns, codes.tolist(), strict=True)
    )
    rounds = f"{max_rounds:,} {'round' if max_rounds == 1 else 'rounds'}"
    return RoundLimitError(
        f"the recursion of {', '.join(component)} still gave new tuples after {rounds}, at last"
        f" {name}({values}):"
        f" bound what the rule computes by a comparison, or allow more with max_rounds=\n  {rule.text}"
    )
