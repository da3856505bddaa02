"""Single edges that go and come, over a relation of any size that stays as large as it is.

Between commits it is asked who is near: what queries make of versions must go with them.
"""

from __future__ import annotations

import numpy as np

from bench.soak.steady import Steadiness
from maintenance import Workspace

RULES = """
tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).
degree[a] = count() <- edge(a, b).
answered(a) <- edge(a, b), edge(b, a).
ends(a, b) <- edge(a, b), !edge(b, _).
"""

QUESTION = "near(b, c) <- edge($k, b), edge(b, c)."
ASKED = 4
"""Transactions from one question to the next."""

PER_VERTEX = 8
SPARE = 1 << 10
"""Edges that are not there at the moment, at least."""

SMALL = 1 << 16
"""Edges up to which every invariant is checked tuple by tuple."""


class EdgeSoak:
    """A workspace that keeps rules over random edges, about PER_VERTEX from each vertex."""

    def __init__(self, seed: int, n_edges: int) -> None:
        self._generator = np.random.default_rng(seed)
        vertices = max(2 * PER_VERTEX, n_edges // PER_VERTEX)
        spare = min(max(SPARE, n_edges // 50), vertices**2 - n_edges)
        words = np.empty(0, np.int64)
        while len(words) < n_edges + spare:
            drawn = self._generator.integers(0, vertices**2, n_edges + spare)
            words = np.union1d(words, drawn)
        words = self._generator.permutation(words)
        self._vertices = vertices
        self._there, self._gone = words[:n_edges], words[n_edges : n_edges + spare]
        self._open: tuple[int, ...] = (0, 0)
        """Where the edge is, or was, that is erased now, and the one that comes for it."""
        self.steady = Steadiness()
        self.transactions = 0
        self.workspace = Workspace()
        first, second = np.divmod(self._there, vertices)
        self.workspace.load("edge", {"a": first, "b": second})
        self.workspace.install(RULES)
        self._ask = self.workspace.prepare(QUESTION)

    def transact(self, most: int) -> int:
        """Erase one edge, or insert another in its place; 1."""
        inserts = self.transactions % 2
        if not inserts:
            self._open = tuple(int(self._generator.integers(len(part))) for part in (self._there, self._gone))
        place, of_gone = self._open
        word = int(self._gone[of_gone] if inserts else self._there[place])
        with self.workspace.transaction() as transaction:
            change = transaction.insert if inserts else transaction.erase
            change("edge", [divmod(word, self._vertices)])
        if inserts:
            self._gone[of_gone], self._there[place] = self._there[place], word
        self.steady.enter(transaction.stats)
        self.transactions += 1
        if self.transactions % ASKED == 0:
            self._ask({"k": word // self._vertices})
        return 1

    def check(self) -> None:
        """Raise VerificationError or AssertionError when something is wrong."""
        self.workspace.verify()
        held = self.workspace["edge"].count
        assert held == len(self._there) - self.transactions % 2, f"edge holds {held:,} tuples"
        if held <= SMALL:
            self.workspace.check_invariants()
