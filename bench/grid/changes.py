"""`Stream`: what relations hold at first, and the transactions that follow, the same for every engine.

Invariants

1. Every change of a transaction changes its relation, and no row is twice in one transaction.
2. Rows are int64 (rows, columns); changes have one more column at the end, the weight, +1 or -1.
3. The same name, kind, size and number give the same stream on every machine.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

Rows = np.ndarray
Transaction = Mapping[str, Rows]
"""Relation to its changes."""

Kind = Literal["insert", "erase", "mixed", "window", "hub by edges", "hub by nodes", "replay", "keystrokes"]
"""``mixed``: as many erasures, of any rows, as insertions, of rows that were never there or were erased.
``window``: in order of arrival, the oldest row leaves for each that comes.
``hub by edges``: edges of the vertex that has most, one after the other; first they go, then they come back.
``hub by nodes``: all edges of a vertex at once, the hub's first; they go, then they come back.
``replay``: published changes in their order.
``keystrokes``: a position of a document comes, one after the other in their order, or any that is there
is removed, in turn."""


@dataclass(frozen=True)
class Stream:
    """What relations hold at first, and what follows."""

    tables: Mapping[str, Rows]
    transactions: Sequence[Transaction]


def drawn(rows: Rows, kind: Kind, size: int, count: int, relation: str, seed: int = 1) -> Stream:
    """``count`` transactions of ``size`` changes each on one relation, from the rows that it may hold.

    What is inserted is held back at first.  Of the two halves of a ``mixed`` or ``window`` transaction of
    one change there is one in turn, erasing first.

    >>> stream = drawn(np.arange(20).reshape(10, 2), "insert", 3, 2, "e")
    >>> len(stream.tables["e"]), [len(changes["e"]) for changes in stream.transactions]
    (4, [3, 3])

    Raises:
        ValueError: There are too few rows.
    """
    if size * count >= len(rows):
        raise ValueError(f"{count} transactions of {size} changes need more than {len(rows):,} rows")
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(rows))
    parts = [_part(kind, size, number) for number in range(count)]
    first_absent = len(rows) - sum(inserted for _, inserted in parts)
    present, absent = deque(order[:first_absent].tolist()), deque(order[first_absent:].tolist())
    tables = {relation: rows[np.sort(order[:first_absent])]}
    transactions = []
    for erased, inserted in parts:
        if kind == "mixed":
            for left, wanted in ((present, erased), (absent, inserted)):
                left.rotate(-int(generator.integers(len(left))) if wanted else 0)
        gone = [present.popleft() for _ in range(erased)]
        come = [absent.popleft() for _ in range(inserted)]
        present.extend(come)
        if kind == "mixed":
            absent.extend(gone)
        transactions.append({relation: signed(rows[gone], rows[come])})
    return Stream(tables, transactions)


def _part(kind: Kind, size: int, number: int) -> tuple[int, int]:
    """How many rows the numbered transaction erases and inserts.

    >>> [_part("mixed", 1, number) for number in range(2)], _part("insert", 5, 0)
    ([(1, 0), (0, 1)], (0, 5))
    """
    erased = {"insert": 0, "erase": size}.get(kind, (size + (number + 1) % 2) // 2)
    return erased, size - erased


def signed(erased: Rows, inserted: Rows) -> Rows:
    """Changes: erasures, then insertions."""
    weights = np.repeat(np.array([-1, 1]), [len(erased), len(inserted)])
    return np.column_stack([np.concatenate([erased, inserted]), weights])


def around_hub(edges: Rows, kind: Kind, count: int, relation: str) -> Stream:
    """Single edges of the hub, or all edges of a vertex at once: ``count`` transactions.

    Args:
        edges: int64 (edges, 2).
        kind: ``hub by edges`` or ``hub by nodes``.
        count: The number of transactions; half of them erase.
        relation: What holds the edges.
    """
    degrees = np.bincount(edges.ravel())
    nodes = np.argsort(-degrees, kind="stable")
    transactions: list[Transaction] = []
    if kind == "hub by edges":
        at_hub = edges[(edges == nodes[0]).any(axis=1)]
        chosen = at_hub[np.random.default_rng(1).permutation(len(at_hub))[: count // 2]]
        nothing = edges[:0]
        for row in chosen:
            transactions.append({relation: signed(row[None], nothing)})
        for row in chosen:
            transactions.append({relation: signed(nothing, row[None])})
    else:
        # the hub, then vertices of every degree
        others = nodes[1 : np.count_nonzero(degrees)]
        for node in [nodes[0], *others[:: max(1, len(others) // max(1, count // 2 - 1))]][: count // 2]:
            at_node = edges[(edges == node).any(axis=1)]
            transactions.append({relation: signed(at_node, edges[:0])})
            transactions.append({relation: signed(edges[:0], at_node)})
    return Stream({relation: edges}, transactions)


def keystrokes(insert: Rows, remove: Rows, size: int, count: int, seed: int = 1) -> Stream:
    """``count`` transactions of ``size`` keystrokes each, on the edits of a document.

    The last positions are held back at first, with their removals.

    Args:
        insert: Of each position counter, node, and those of its parent.
        remove: Of each position that is gone counter and node.
        size, count, seed: Of the transactions.

    >>> insert = np.array([[1, 0, 0, 0], [2, 0, 1, 0], [3, 0, 2, 0]])
    >>> [[(name, rows.tolist()) for name, rows in one.items()] for one in
    ...     keystrokes(insert, insert[:1, :2], 1, 2).transactions]
    [[('insert', [[3, 0, 2, 0, 1]])], [('remove', [[2, 0, 1]])]]
    """
    insert = insert[np.lexsort((insert[:, 1], insert[:, 0]))]
    kinds = np.arange(size * count) % 2
    typed, erased = (np.count_nonzero(kinds == kind) for kind in (0, 1))
    before, after = insert[: len(insert) - typed], insert[len(insert) - typed :]
    held_back = set(map(tuple, after[:, :2].tolist()))
    removed = [tuple(row) not in held_back for row in remove.tolist()]
    gone = set(map(tuple, remove.tolist()))
    there = [row for row in before[:, :2].tolist() if tuple(row) not in gone]
    chosen = np.random.default_rng(seed).permutation(len(there))[:erased]
    of_kind = {"insert": after, "remove": np.array(there)[chosen]}
    transactions = []
    for first in range(0, size * count, size):
        numbers = {"insert": (first + 1) // 2, "remove": first // 2}
        ends = {"insert": (first + size + 1) // 2, "remove": (first + size) // 2}
        parts = {name: rows[numbers[name] : ends[name]] for name, rows in of_kind.items()}
        transactions.append({name: signed(rows[:0], rows) for name, rows in parts.items() if len(rows)})
    return Stream({"insert": before, "remove": remove[removed]}, transactions)


def in_batches(changes: Iterable[tuple[int, Sequence[int]]], size: int) -> Iterator[Rows]:
    """Transactions of ``size`` single changes each, netted: weight and row, in their order.

    >>> [batch.tolist() for batch in in_batches([(1, (5, 6)), (-1, (5, 6)), (1, (7, 8))], 2)]
    [[], [[7, 8, 1]]]
    """
    left = iter(changes)
    while part := list(islice(left, size)):
        yield netted(np.array([(*row, weight) for weight, row in part], np.int64))


def netted(changes: Rows) -> Rows:
    """Each row once, where it first stands, with the sum of its weights, the last column; none of sum 0.

    >>> netted(np.array([(5, 6, 1), (7, 8, 1), (5, 6, -1)])).tolist()
    [[7, 8, 1]]
    """
    net = Counter[tuple[int, ...]]()
    for *row, weight in changes.tolist():
        net[tuple(row)] += weight
    rows = [(*row, weight) for row, weight in net.items() if weight]
    return np.array(rows, np.int64).reshape(len(rows), changes.shape[1])
