"""Key orders that are chosen once for many data sets that are alike.

The cells of a Spark join evaluate one rule over parts of the same relations: what is a good order in
one of them is one in all.  Within :func:`keeping` the planners ask these orders first.

Invariants

1. An order stays correct whatever the data are; only how good it is depends on them.  It is taken for
   problems of the same shape, over relations whose sizes are alike: not ``ALIKE`` times apart, or small.
2. Nothing here keeps data alive, nor a dictionary: a question has names and numbers only.
3. An answer is never changed.  Threads that choose the same at once choose twice, and one of them is kept.

Cost: a question and its answer some KB, for each problem and sizes; at most ``MOST`` of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar, cast

from lftj.search.problem import JoinAtom, JoinProblem
from lftj.storage.catalog import Catalog

ALIKE = 4
"""Relations up to so many times as large as others are alike."""

FEW_ROWS = 1 << 10
"""Relations of at most so many rows are all alike."""

MOST = 1 << 10
"""Answers that are kept; when there are more, those go that came first."""

Answer = TypeVar("Answer")

_asked: ContextVar[KeptOrders | None] = ContextVar("kept_orders", default=None)


class KeptOrders:
    """What planners chose, by what they were asked.

    >>> kept = KeptOrders()
    >>> with keeping(kept):
    ...     [answered(("a question",), lambda: "an answer"), answered(("a question",), lambda: "another")]
    ['an answer', 'an answer']
    >>> kept.n_chosen
    1
    """

    def __init__(self) -> None:
        self._answers: dict[Hashable, object] = {}
        self.n_chosen = 0

    def answer(self, question: Hashable, choose: Callable[[], Answer]) -> Answer:
        if question not in self._answers:
            self.n_chosen += 1
            chosen = choose()
            while len(self._answers) >= MOST:
                del self._answers[next(iter(self._answers))]
            self._answers[question] = chosen
        return cast(Answer, self._answers[question])


@contextmanager
def keeping(kept: KeptOrders) -> Iterator[None]:
    """Within the block the planners of this thread ask these orders."""
    outer = _asked.set(kept)
    try:
        yield
    finally:
        _asked.reset(outer)


def each_keeping(kept: KeptOrders, items: Iterator[Answer]) -> Iterator[Answer]:
    """The items, each of which is made within :func:`keeping`; what is done with them is not."""
    while True:
        with keeping(kept):
            found = list(itertools.islice(items, 1))
        if not found:
            return
        yield found[0]


def answered(question: Hashable, choose: Callable[[], Answer]) -> Answer:
    """The answer that is kept, or what ``choose`` gives, which is kept from then on."""
    kept = _asked.get()
    return choose() if kept is None else kept.answer(question, choose)


def is_kept() -> bool:
    """Whether orders are being kept: else no question has to be put."""
    return _asked.get() is not None


def shape_of(problem: JoinProblem) -> Hashable:
    """What tells problems apart, but the codes of constants and what belongs to one data set alone."""
    compared = tuple((c.left, c.operator, c.right, c.ranked is None) for c in problem.conditions)
    atoms = tuple(_atom(atom) for atom in problem.atoms), tuple(_atom(atom) for atom in problem.negations)
    return atoms, compared, problem.emitted, problem.counted, tuple(problem.labels)


def sizes_of(problem: JoinProblem, catalog: Catalog) -> Hashable:
    """By relation the class of its size."""
    names = sorted(problem.relations)
    return tuple((name, _size_class(catalog[name].n_rows)) for name in names)


def _size_class(n_rows: int) -> int:
    """
    >>> [_size_class(n) for n in (0, 1024, 1025, 4096, 4097)]
    [0, 0, 1, 1, 2]
    """
    size, bound = 0, FEW_ROWS
    while n_rows > bound:
        size, bound = size + 1, bound * ALIKE
    return size


def _atom(atom: JoinAtom) -> Hashable:
    return (atom.relation, atom.columns, atom.variables, atom.equal, atom.counted, atom.identity, atom.side)
