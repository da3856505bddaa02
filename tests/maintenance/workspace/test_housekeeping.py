"""laws: no commit pays for all, and what is held stays as large as the data, by counters and not by time.

``tx.stats.housekeeping_rows`` counts what a commit moved for the sake of order alone: pieces of merges of
runs, of bases, of records.  Single changes at constant data size have to move no more than a number that
the sizes of pieces give, however large the relation is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest

from indices import merging
from lftj.storage import index_version, merged_trie
from maintenance import Workspace
from maintenance.strategies.trace import body_trace, built

pytestmark = pytest.mark.compiled

AT_ONCE, PIECE, BASE_PIECE, RENEWED = 64, 16, 512, 64
RULES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c). two(a, c) <- edge(a, b), edge(b, c)."
STRUCTURES = 2 + 3 + 2
"""What is merged on its own: the indices of the relation, those of the heads, support counts and records."""

BOUND = STRUCTURES * (2 * AT_ONCE + 6 * PIECE + BASE_PIECE)
"""Rows that a commit of one change may move: merges at once, a piece of each merge, one of a base; with them
what it renews of two searches."""


@contextlib.contextmanager
def small_pieces() -> Iterator[None]:
    """Merges that are worth spreading already at some thousand rows; searches wear at once."""
    with contextlib.ExitStack() as stack:
        for module, name, value in (
            (merging, "AT_ONCE", AT_ONCE),
            (merging, "PIECE_ROWS", PIECE),
            (index_version, "BASE_LEAST", 512),
            (index_version, "MERGED_LEAST", 128),
            (body_trace, "RENEWED_LEAST", RENEWED),
            (built, "GROWN_LEAST", -(1 << 40)),
        ):
            stack.enter_context(mock.patch.object(module, name, value))
        begun = merged_trie.TrieMerge.__init__
        stack.enter_context(
            mock.patch.object(
                merged_trie.TrieMerge,
                "__init__",
                lambda merge, base, rows, weights, piece=BASE_PIECE, tuples=merged_trie.WHOLE: begun(
                    merge, base, rows, weights, piece, tuples
                ),
            )
        )
        yield


def held_bytes(workspace: Workspace) -> int:
    return sum(version.nbytes for version in workspace._state.versions.values())


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", ["delta", "trace"])
def test_single_changes_move_a_stated_number_of_rows(strategy: str) -> None:
    """The same bound for a relation and for one of four times the size; and memory stays where it is.

    Of ``trace`` the searches wear all the time, and are renewed piece by piece.
    """
    n_renewed = 0
    for n_rows, n_commits in ((2_000, 600), (8_000, 2_400)):
        generator = np.random.default_rng(7)
        edges = {tuple(edge) for edge in generator.integers(0, n_rows // 4, (n_rows, 2)).tolist()}
        there = sorted(edges)
        gone = [there.pop() for _ in range(n_rows // 20)]
        moved, sizes = [], []
        with small_pieces():
            workspace = Workspace(single_changes="general")
            workspace.load("edge", there, columns=["src", "dst"])
            workspace.install(RULES, strategy)
            for number in range(n_commits):
                with workspace.transaction() as transaction:
                    if number % 2:
                        there.append(gone.pop())
                        transaction.insert("edge", there[-1:])
                    else:
                        place = int(generator.integers(len(there)))
                        there[place], there[-1] = there[-1], there[place]
                        gone.insert(0, there.pop())
                        transaction.erase("edge", gone[:1])
                n_renewed += sum(figures.rebuilt for figures in transaction.stats.rules.values())
                moved.append(transaction.stats.housekeeping_rows)
                sizes.append(held_bytes(workspace))
            workspace.verify()
            workspace.check_invariants()
        assert max(moved) <= BOUND
        assert max(moved) <= 8 * np.median(moved), "no commit pays for all"
        half = len(sizes) // 2
        assert max(sizes[half:]) <= 1.1 * max(sizes[:half])
    assert (n_renewed > 0) == (strategy == "trace")
