"""`View`, one question over relations that change, and `Setting`, the changes that are put to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

from bench.grid.changes import Kind, Stream

KEPT_BY = (
    "duckdb",
    "lftj:recompute",
    "lftj:delta",
    "lftj:trace",
    "lftj:stages",
    "lftj:views",
    "lftj",
    "differential",
    "pathway",
)
"""Who keeps the views, those first whose results the others are compared with.

``lftj`` is strategy `auto`, ``lftj:<strategy>`` that strategy.  ``duckdb`` takes the changes in and asks the
whole question again."""

OF_RULES = tuple(engine for engine in KEPT_BY if engine not in ("lftj:stages", "lftj:views"))
"""Who keeps a view without recursion."""

OF_SUMS = ("duckdb", "lftj:recompute", "lftj:delta", "lftj:views", "lftj")
"""Who keeps sums over pairs that an inequality joins."""

OF_THRESHOLDS = ("duckdb", "lftj:views", "lftj")
"""Who keeps sums over pairs of what passes a threshold."""

OF_RECURSION = ("duckdb", "lftj:recompute", "lftj:stages", "lftj", "differential")
"""Who keeps a recursive one."""

COUNTS = {1: 300, 10: 100, 100: 30, 1_000: 30, 10_000: 5}
"""Transactions by size, the warm-up included."""

WARM_UP = {1: 30, 10: 10, 100: 4, 1_000: 2, 10_000: 2}
"""Transactions by size that are checked and not timed."""


@dataclass(frozen=True)
class Setting:
    """One kind and size of change.  ``in_flight``: transactions that may be handed over at once."""

    kind: Kind
    size: int
    in_flight: int = 1

    @property
    def title(self) -> str:
        """
        >>> Setting("mixed", 1_000).title, Setting("mixed", 1, in_flight=1_000).title
        ('mixed 1,000', 'mixed 1, 1,000 in flight')
        """
        return f"{self.kind} {self.size:,}" + (
            f", {self.in_flight:,} in flight" if self.in_flight > 1 else ""
        )

    @property
    def count(self) -> int:
        """Transactions, the warm-up included."""
        return max(COUNTS[self.size], 5 * self.in_flight if self.in_flight > 1 else 0)

    @property
    def warm_up(self) -> int:
        """Transactions that are not timed."""
        return max(WARM_UP[self.size], self.in_flight if self.in_flight > 1 else 0)


@dataclass(frozen=True)
class View:
    """One question over relations that change.

    Attributes:
        name: How ``--only`` calls it.
        title: How the report calls it.
        columns: Relation to the names of its columns.
        rules: The rule program of lftj.
        sql: The heads that a statement answers, by its columns after the first where there are several;
            to the statement; empty where DuckDB is not asked.
        stream: The changes of a setting.
        settings: What is measured.
        differential: The peer's name of the view; empty where it has none.
        pathway: Likewise (:mod:`bench.peers.pathway_engine`).
        kept_by: Of :data:`KEPT_BY`.
        note: What a reader has to know.
        bodies: Of a recursive head, those of its rules: evaluating anew enumerates each of their assignments.
    """

    name: str
    title: str
    columns: Mapping[str, tuple[str, ...]]
    rules: str
    sql: Mapping[tuple[str, ...], str]
    stream: Callable[[Setting], Stream]
    settings: tuple[Setting, ...]
    differential: str = ""
    pathway: str = ""
    kept_by: tuple[str, ...] = OF_RULES
    note: str = ""
    bodies: tuple[str, ...] = ()

    def has(self, engine: str) -> bool:
        """Whether a key of ``kept_by`` can keep it."""
        return bool({"differential": self.differential, "pathway": self.pathway}.get(engine, True))

    @property
    def heads(self) -> tuple[str, ...]:
        """All heads that are compared."""
        return tuple(chain.from_iterable(self.sql))
