"""Compiling everything beforehand: for container images, CI and Spark nodes.

Invariants

1. After :func:`warm_up` or :func:`rehearse` no work compiles anything; only a user's own aggregates are
   compiled, in each process that registers them.
2. What is compiled can be read by other users of the machine, and be written by this one only.

A kernel is compiled for the arguments that it gets, so what compiles it is work that
reaches it, over a few rows.  The packages above this one have work of their own
(``steps`` of a module ``warming``); they are known here by their name only.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa

from indices import announcement
from indices.cache_folder import cache_folder, share
from indices.monoid import SUM
from lftj.aggregates.running_sums import RunningSums
from lftj.aggregates.superaccumulator import sum_integers
from lftj.database.database import Database
from lftj.planning.reducing import LEAST_ROWS
from lftj.process.progress import bar
from lftj.process.siblings import check_siblings
from lftj.storage.best_values import IN_ORDER, BestValues
from lftj.storage.best_values import LEAST_ROOM as LEAST_GROUPS
from lftj.storage.radix import sort_words
from lftj.storage.signed_rows import PACKED_ROWS, net_rows
from lftj.storage.sorting import SMALL_ROWS, sort_distinct
from lftj.storage.tuple_set import TupleSet
from lftj.values.interner import Interner
from lftj.values.semigroup import Semigroup

Step = Callable[[], object]

_ABOVE = {"maintenance": ["maintenance.workspace.warming", "maintenance.sources.warming"]}
"""Packages above this one, if they are installed, and where each has work of its own."""

BETWEEN_COLLECTIONS = 50_000
"""Objects made, not yet gone, until garbage is collected while kernels are compiled."""

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
SHORTEST = "near[b] = min(i) <- edge(1, b), i = 1. near[c] = min(j) <- near[b] = i, edge(b, c), j = i + 1."
CLOSURE = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), path(b, c)."
SUMS = "s(k, {}) <- value(k, i, j, f, d).".format(
    ", ".join(f"{name}({column})" for name in ("sum", "avg") for column in "ifd")
)
EDGES = [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4)]
VALUES = pa.table(
    {
        "k": ["a", "a", "b", "b"],
        "i": [1, 2, 3, 4],
        "j": [5, 6, 7, 8],
        "f": [0.5, 1.5, 2.5, 3.5],
        "d": [Decimal(f"{units}.25") for units in range(4)],
    }
)


_one_at_a_time = threading.RLock()
_rehearsed = False  # or about to be: the work itself installs rules


def warm_up(progress: bool = True) -> Path | None:
    """Compile all kernels that are not compiled yet; returns the folder that they are kept in.

    ``progress``: show a bar on stderr, where that is a terminal.  Takes half a minute to a minute once,
    and about two seconds when everything is there.  The folder can be read by other users afterwards,
    so an image can be made by one user and used by another.  None: no folder can be written to, and
    each process compiles for itself.
    """
    global _rehearsed
    todo = [*steps(), *_steps_above()]
    with (
        _one_at_a_time,
        announcement.silence(),
        _rare_collections(),
        bar("compiling the kernels", progress) as advance,
    ):
        _rehearsed = True
        for done, step in enumerate(todo):
            step()
            advance((done + 1) / len(todo))
    folder = cache_folder()
    if folder is not None:
        share(folder)
    return folder


def rehearse() -> None:
    """Compile what is not compiled yet, before work begins that has no time for it; once per process.

    Says on stderr which part it is at.  Where no folder can keep what is compiled, does nothing: each process
    would compile all kernels, and not only those that it calls.
    """
    global _rehearsed
    with _one_at_a_time:
        folder = cache_folder()
        if _rehearsed or folder is None or not os.access(folder, os.W_OK):
            return
        _rehearsed = True
        for part, work in (("2 of 3: commits", _steps_above), ("3 of 3: queries", steps)):
            with announcement.part_of(part), _rare_collections():
                for step in work():  # what brings it in may compile, too
                    step()


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Numba makes millions of objects: to look for garbage after every 700 takes a tenth of compiling."""
    before = gc.get_threshold()
    gc.set_threshold(before[0] and max(before[0], BETWEEN_COLLECTIONS), *before[1:])  # 0: never
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _steps_above() -> list[Step]:
    """The work of the packages above this one."""
    check_siblings(*_ABOVE)
    above = [modules for package, modules in _ABOVE.items() if find_spec(package) is not None]
    return [step for modules in above for module in modules for step in import_module(module).steps()]


def steps() -> Sequence[Step]:
    """The work that reaches every kernel of this package."""
    database = Database()
    database.load("edge", EDGES, columns=["src", "dst"])
    database.load("value", VALUES)
    return [
        lambda: database.query(TRIANGLES, threads=1),
        lambda: database.trace(TRIANGLES),
        lambda: database.query(SUMS),
        lambda: database.query(CLOSURE),
        lambda: database.query(SHORTEST),
        _tuples,
        _groups,
        _scan,
        _strings,
        _sorts,
        _own_aggregates,
    ]


def _tuples() -> None:
    far_apart = np.array([-1 << 40, 1 << 40])
    for arity in (1, 2):  # packed, hashed
        TupleSet(arity, fewest_bits=1).add([far_apart] * arity)
    many = np.arange(2 * LEAST_GROUPS)
    BestValues(1, largest=False).add([many], many, IN_ORDER)


def _groups() -> None:
    far_apart = np.array([-1 << 40, 1 << 40])
    once = np.ones(2, np.int64)
    RunningSums(1, 1, [True]).add([far_apart], [far_apart], [far_apart], once)
    sum_integers(np.ones((2, 2), np.uint32), once, np.array([0, 2]))


def _scan() -> None:
    """Rows of a relation, and its look-ups in itself."""
    database = Database()
    database.load("next", [(n, n + 1) for n in range(LEAST_ROWS)], columns=["n", "m"])
    database.query("h[n] = sum(k) <- next(n, m), next(m, k).")


def _strings() -> None:
    interner = Interner()
    codes = interner.codes(np.zeros(100, np.uint8), np.arange(100))
    interner.begin()
    interner.keep(codes, 0, len(codes))
    interner.taken(codes)


def _sorts() -> None:
    words = np.arange(1 << 10, dtype=np.uint64)
    sort_words(words, words.copy(), 0, 10)
    sort_distinct([np.array([1 << 62, -1 << 62] * SMALL_ROWS)] * 3)
    net_rows([np.arange(PACKED_ROWS, 0, -1)], np.ones(PACKED_ROWS, np.int64))


def _own_aggregates() -> None:
    for number in (np.int64, np.float64):
        operation = Semigroup("sum", SUM.combine).operation(number)
        values, once = np.ones(2, number), np.ones(2, np.int64)
        operation.fold(values, once, np.array([0, 2]), str)
        with operation.watched():
            operation.powers(values, once)
