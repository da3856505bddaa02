"""A maintained head whose rows come from elsewhere: from cells that each evaluate a part of its rules.

Each cell maintains what its assignments give of a head; tuples and groups cross
cells, so what a cell says of them is no change of the head yet.  Put together it is:

    set of rows    support of a tuple = the cells and rules that have it; visible where it is above 0
    aggregate      rows of group keys and arguments, weighing assignments  ->  groups and values

The accumulators are those of :mod:`maintenance.heads.rule_source`; only the rows come another way.

Invariants

1. Every row stands in one cell at a time, and what all cells sent adds up: supports and
   numbers of assignments are never negative.
2. A change takes two steps (:mod:`maintenance.staged`): ``stage`` computes and publishes nothing.
   One that raises has dropped what it staged.
3. A head of one rule with an aggregate keeps no supports: it has one tuple per group.
   Any other keeps, of aggregate rules too, the number of those that have a tuple.
4. A functional head has one value per key; a step that would give it two raises.
5. The codes of tuples keep their values (:mod:`lftj.values.collector`); whoever has the rows sees to those
   of an aggregate's arguments.

Cost: a sort of the m signed rows, O(m log n) for supports, what the accumulators
take, and of functional heads O(log n) per tuple that came.  ``rows`` is O(n log n).

Source: ILFTJ 2.2 for supports, 2.3.3 and 2.3.4 for aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lftj.aggregates.whole import argument_names
from lftj.errors import EvaluationError, RangeError
from lftj.language.body import CheckedHead, CheckedRule
from lftj.language.diagnostics import with_rule
from lftj.language.syntax import Aggregate
from lftj.storage.signed_rows import Columns, gathered, net_rows, table_of
from lftj.values.collector import Held
from lftj.values.functional import conflict, refuse_conflicts
from lftj.values.schema import Schema
from maintenance.groups.boundaries import group_boundaries
from maintenance.groups.grouped import GroupedAggregate
from maintenance.groups.shared_scans import SharedScans, Sharer
from maintenance.staged import Staged
from maintenance.staged_support import StagedSupport

Part = tuple[int, Columns, np.ndarray]
"""Signed rows of the rule of that number: int64 code columns and weights, in any order, may repeat."""


class CombinedHead(Staged):
    """One head over the rows of all cells.

    >>> import pyarrow as pa
    >>> from lftj.language.body import Body
    >>> from lftj.values.schema import Column, ColumnType
    >>> from lftj.values.domains import Domains
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("a", integer),))
    >>> head = CheckedHead("seen", ("a",), None, schema, (0, 0))
    >>> rule = CheckedRule((head,), (Body((), (), (), (), {"a": integer}),), "seen(a) <- edge(a, _).", (0, 0))
    >>> seen = CombinedHead("seen", schema, [(rule, head)], rule.text)
    >>> first, second = (0, [np.array([7, 5])], np.array([1, 1])), (0, [np.array([7])], np.array([1]))
    >>> columns, signs = seen.stage([first, second])
    >>> columns[0].tolist(), signs.tolist()
    ([5, 7], [1, 1])
    >>> seen.keep()
    >>> columns, signs = seen.stage([(0, [np.array([7, 5])], np.array([-1, -1]))])
    >>> columns[0].tolist(), signs.tolist()
    ([5], [-1])
    >>> seen.drop()
    >>> seen.rows()[0].tolist()
    [5, 7]
    """

    def __init__(
        self, name: str, schema: Schema, rules: Sequence[tuple[CheckedRule, CheckedHead]], text: str
    ) -> None:
        """``schema``: of the head; ``rules``: its own, numbered by place; ``text``: of all, for messages.

        A rule's rows are the head's columns, or where it has an aggregate the group keys and then the
        aggregate's arguments in the order of :func:`lftj.aggregates.whole.argument_names`.
        """
        self.name = name
        self.schema = schema
        self.text = text
        self._shares = [_share_of(rule, head) for rule, head in rules]
        (first, *others) = self._shares
        self._only = first if not others else None
        types = {number: column.type for number, column in enumerate(schema.columns)}
        self._support = StagedSupport(len(types), types)
        self._is_staged = False
        if self._only is not None:
            schema.hold(self)

    @property
    def parts(self) -> tuple[Staged, ...]:
        return (*(share for share in self._shares if share is not None), self._support)

    # -- changes --------------------------------------------------------------------

    def stage(self, parts: Sequence[Part]) -> tuple[Columns, np.ndarray]:
        """The head's visible change: sorted distinct tuples, 1 (was absent) or -1 (was present).

        ``parts``: what came of all cells, of one rule as many as there are.  Nothing is published: call
        :meth:`keep` or :meth:`drop` before the next.  Raises :class:`~lftj.errors.FunctionalConflictError`,
        :class:`~lftj.errors.RangeError` or :class:`~lftj.errors.AggregateError` with the rule's text;
        then nothing is staged.
        """
        assert not self._is_staged, "what was staged has to be kept or dropped first"
        self._is_staged = True
        try:
            return self._change([self._of_rule(rule, parts) for rule in range(len(self._shares))])
        except BaseException:
            self.drop()
            raise

    def _of_rule(self, rule: int, parts: Sequence[Part]) -> tuple[Columns, np.ndarray]:
        """A rule's signed tuples of the head."""
        share = self._shares[rule]
        arity = len(self.schema.columns) if share is None else share.arity
        none: list[np.ndarray] = [np.empty(0, np.int64)] * arity
        own = [(columns, weights) for number, columns, weights in parts if number == rule]
        assert all(len(columns) == arity for columns, _ in own), "a part has the columns of its rule"
        columns, weights = gathered([(none, np.empty(0, np.int64)), *own])
        return (columns, weights) if share is None else share.stage(columns, weights)

    def _change(self, tuples: list[tuple[Columns, np.ndarray]]) -> tuple[Columns, np.ndarray]:
        if self._only is not None:
            return tuples[0]
        self._support.staged, columns, signs = self._support.kept.step(*gathered(tuples))
        if self.schema.functional:
            self._refuse_two_values(columns, signs)
        return columns, signs

    def _refuse_two_values(self, columns: Columns, signs: np.ndarray) -> None:
        """Look at the keys that got a tuple, and only at these."""
        came = signs > 0
        if not came.any():
            return
        keys, offsets = group_boundaries(
            table_of(columns, len(signs)).compress(came, axis=1), len(columns) - 1
        )
        _, rows, _ = self._support.newest.below(keys, len(offsets) - 1)
        refuse_conflicts(self.name, self.schema, rows, self.text)

    def _keep_own(self) -> None:
        self._is_staged = False

    def _drop_own(self) -> None:
        self._is_staged = False

    # -- what there is ----------------------------------------------------------------

    def held(self) -> list[Held]:
        """The codes of groups and values that are to keep their values; those of supports are held apart."""
        assert self._only is not None
        rows = np.array(self._only.rows())
        return [Held(rows, [(domain, rows[number]) for number, domain in self.schema.dictionaries])]

    def rows(self) -> list[np.ndarray]:
        """The columns of all visible tuples, sorted; of those that were kept."""
        return self._support.kept.visible() if self._only is None else self._only.rows()

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return self._support.kept.nbytes + sum(share.nbytes for share in self._shares if share is not None)

    def tidy(self) -> None:
        """Give back the memory of groups that are gone.  Nothing may be staged."""
        assert not self._is_staged
        for share in self._shares:
            if share is not None:
                share.tidy()

    def _check_own(self) -> None:
        assert self._is_staged or self._support.staged is None
        aggregated = [share.rows() for share in self._shares if share is not None]
        if self._only is not None:
            assert not self._support.kept.runs
        elif len(aggregated) == len(self._shares):
            ones = [(rows, np.ones(len(rows[0]), np.int64)) for rows in aggregated]
            wanted, counts = net_rows(*gathered(ones))
            held, supports = self._support.kept.tuples()
            assert np.array_equal(wanted, np.array(held)) and np.array_equal(counts, supports)
        if self.schema.functional:
            assert conflict(self.rows()) is None


class _AggregateShare(Staged):
    """An aggregate rule's groups over the rows of all cells."""

    def __init__(self, rule: CheckedRule, head: CheckedHead) -> None:
        assert isinstance(head.value, Aggregate)
        self._rule = rule
        self._names = (*head.variables, *argument_names(head.value))
        sharer = Sharer(rule, head, {name: name for name in self._names})
        self._scans = SharedScans([sharer])
        self._groups = GroupedAggregate(head, rule.bodies[0].types, self._scans.accumulator(sharer))

    @property
    def parts(self) -> tuple[Staged, ...]:
        return self._scans, self._groups

    @property
    def arity(self) -> int:
        return len(self._names)

    @property
    def nbytes(self) -> int:
        return self._groups.nbytes + self._scans.nbytes

    def stage(self, columns: Columns, weights: np.ndarray) -> tuple[Columns, np.ndarray]:
        try:
            self._scans.stage(dict(zip(self._names, columns, strict=True)), weights)
            return self._groups.stage(columns, weights)
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, self._rule.text) from error.__cause__

    def rows(self) -> list[np.ndarray]:
        return self._groups.rows()

    def tidy(self) -> None:
        self._groups.tidy()


def _share_of(rule: CheckedRule, head: CheckedHead) -> _AggregateShare | None:
    """None for a rule without aggregate: its rows are the tuples."""
    return _AggregateShare(rule, head) if isinstance(head.value, Aggregate) else None
