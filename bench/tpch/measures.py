"""What is measured: each function gives the text of a part of the report.

All times are processor time, one thread on both sides; answers are compared before their times count, and
raise AssertionError where they differ.  Ratios are DuckDB's median over ours: above 1 we are ahead.  What is
measured is the SQL as published; the rules written by hand stand beside it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa

from bench.report.markdown import number, table
from bench.tpch.peer import Peer, check
from bench.tpch.queries import Query
from bench.tpch.tables import Changes, Refreshes
from lftj import Database
from lftj.sql.translation.translated import translated
from lftj.statements.binder import Binder
from maintenance import Transaction, Workspace

ORDERS = 10
"""Of a batch: so many go, and so many come back."""

WARMING = 2
"""Batches that are not timed; the first loads kernels."""

IN_A_ROW = 20
"""Batches that are committed one behind the other."""

UNREAD = 200
"""Those that no head reads, which are short."""

Loaded = Mapping[str, pa.Table]
Say = Callable[[str], None]
_Answer = TypeVar("_Answer")


def timed(run: Callable[[], _Answer]) -> tuple[float, _Answer]:
    """Seconds of processor time, and what came of it."""
    started = time.process_time()
    answer = run()
    return time.process_time() - started, answer


def spread(seconds: Sequence[float]) -> str:
    """Median and range in milliseconds."""
    median, least, most = (1e3 * found for found in (statistics.median(seconds), min(seconds), max(seconds)))
    return f"{median:.2f} ({least:.2f} - {most:.2f})"


@dataclass
class Beside:
    """Seconds of the rules and of DuckDB, in turns.

    >>> Beside([2.0, 1.0, 3.0], [1.0, 1.0]).ratio
    0.5
    """

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return statistics.median(self.theirs) / statistics.median(self.ours)

    @property
    def cells(self) -> list[str]:
        return [spread(self.ours), spread(self.theirs), f"{self.ratio:.2f}"]


def summary(title: str, ratios: Mapping[str, float]) -> str:
    """The geometric mean, who is ahead and the least ratio, in one line.

    >>> summary("Once", {"Q1": 2.0, "Q2": 0.5})
    'Once: geometric mean 1.00, ahead in 1 of 2, least 0.50 (Q2).'
    """
    mean = statistics.geometric_mean(ratios.values())
    n_ahead = sum(ratio > 1 for ratio in ratios.values())
    worst = min(ratios, key=lambda name: ratios[name])
    return (
        f"{title}: geometric mean {mean:.2f}, ahead in {n_ahead} of {len(ratios)},"
        f" least {ratios[worst]:.2f} ({worst})."
    )


def megabytes(nbytes: float) -> str:
    return number(nbytes / 1e6)


def loaded_into(base: Database | Workspace, loaded: Loaded) -> None:
    for name, rows in loaded.items():
        base.load(name, rows)


def once(queries: Sequence[Query], loaded: Loaded, turns: int, say: Say) -> str:
    """Each query in a database of its own: the first call, of ``turns`` databases, and five after it."""
    first = {query.head: Beside() for query in queries}
    warm = {query.head: Beside() for query in queries}
    by_hand: dict[str, list[float]] = {query.head: [] for query in queries}
    translating: dict[str, list[float]] = {query.head: [] for query in queries}
    binder = Binder()
    for turn in range(1 + turns):  # the first loads kernels
        peer = Peer(loaded)
        for query in queries:
            say(f"once, turn {turn}: Q{query.number}")
            database, other = Database(), Database()
            loaded_into(database, loaded)
            loaded_into(other, loaded)
            for call in range(6 if turn == turns else 1):
                ours, found = timed(partial(database.sql, query.sql, threads=1))
                rules, rows = timed(partial(_by_hand, other, query))
                theirs, expected = timed(partial(peer.answer, query.sql))
                if call == 0:
                    check(f"Q{query.number}", found, expected, query.sql_order)
                    check(f"Q{query.number} by hand", rows, expected, query.order_by, sums=False)
                if turn > 0:
                    beside = (warm if call else first)[query.head]
                    beside.ours.append(ours)
                    beside.theirs.append(theirs)
                    if call:
                        by_hand[query.head].append(rules)
            translating[query.head].append(timed(partial(_translate, binder, database, query))[0])
    heads = ["query"] + [
        f"{which}{title}" for which in ("", "first, ") for title in ("SQL, ms", "DuckDB, ms", "ratio")
    ]
    heads += ["translation, ms", "rules by hand, ms", "by hand / SQL"]
    rows = []
    for query in queries:
        ratio = statistics.median(by_hand[query.head]) / statistics.median(warm[query.head].ours)
        beside_rules = [spread(translating[query.head]), spread(by_hand[query.head]), f"{ratio:.2f}"]
        rows.append([f"Q{query.number}", *warm[query.head].cells, *first[query.head].cells, *beside_rules])
    means = [
        summary(title, {f"Q{query.number}": found[query.head].ratio for query in queries})
        for title, found in (("Warm", warm), ("First", first))
    ]
    return "\n\n".join(
        [
            "## Asked once",
            f"Warm: five calls. First: on a database just loaded, kernels in the process, {turns} databases."
            f" Medians and ranges. {' '.join(means)}",
            table(heads, rows),
        ]
    )


def _by_hand(database: Database, query: Query) -> pa.Table:
    return database.query(query.rules, head=query.head, order_by=query.order_by, limit=query.limit, threads=1)


def _translate(binder: Binder, database: Database, query: Query) -> None:
    """As `Database.sql` does for a text that it has not seen."""
    schemas = {name: relation.tuples.schema for name, relation in database.relations.items()}
    translated(query.sql, binder, schemas, "answer")


@dataclass
class Kept:
    """A workspace that keeps some queries, and what its batches took.

    ``sums``: as of :func:`~bench.tpch.peer.check`.
    """

    workspace: Workspace
    queries: Sequence[Query]
    sums: bool
    install_seconds: float
    seconds: list[float] = field(default_factory=list)
    in_a_row: list[float] = field(default_factory=list)
    operations: list[float] = field(default_factory=list)
    ways: set[str] = field(default_factory=set)

    @classmethod
    def by(cls, strategy: str, queries: Sequence[Query], loaded: Loaded, *, by_hand: bool = False) -> Kept:
        workspace = Workspace()
        loaded_into(workspace, loaded)
        rules = "\n".join(query.rules for query in queries)
        heads = [query.head for query in queries]

        def install() -> None:
            if by_hand:
                workspace.install(rules, strategy=strategy, results=heads, threads=1)
            else:
                for query in queries:
                    workspace.create_view(query.head, query.unlimited_sql, strategy=strategy)

        seconds, _ = timed(install)
        return cls(workspace, queries, not by_hand, seconds)

    def commit(self, changes: Changes) -> None:
        """One batch, while DuckDB computes before and after it."""
        seconds, transaction = self._committed(changes)
        self.seconds.append(seconds)
        n_rows = sum(erased.num_rows + inserted.num_rows for erased, inserted in changes.values())
        figures = transaction.stats.rules.values()
        self.operations.append(sum(each.operations for each in figures) / n_rows)
        self.ways.update(way for each in figures for way in each.chosen)

    def commit_in_a_row(self, batches: Iterable[Changes]) -> None:
        self.in_a_row += [self._committed(changes)[0] for changes in batches][WARMING:]

    def _committed(self, changes: Changes) -> tuple[float, Transaction]:
        started = time.process_time()
        with self.workspace.transaction() as transaction:
            for name, (erased, inserted) in changes.items():
                transaction.erase(name, erased)
                transaction.insert(name, inserted)
        return time.process_time() - started, transaction

    def check(self, answers: Iterable[pa.Table]) -> None:
        """Raises AssertionError where a head is not what DuckDB computes."""
        for query, answer in zip(self.queries, answers, strict=True):
            check(f"Q{query.number}, kept", self.workspace[query.head].to_arrow(), answer, sums=self.sums)

    @property
    def nbytes(self) -> int:
        return sum(self.workspace.stats.memory_bytes.values())


def _beside_duckdb(
    everyone: Sequence[Kept], queries: Sequence[Query], loaded: Loaded, turns: int
) -> tuple[list[float], int]:
    """Take all of them through the same batches: DuckDB's seconds for all queries anew, rows of a batch.

    First in turns with DuckDB, whose queries leave nothing of ours in the processor's caches, then in a row.
    """
    peer, refreshes = Peer(loaded), Refreshes(loaded, seed=1)
    anew, n_rows = [], 0
    for turn in range(WARMING + turns):
        changes = refreshes.batch(ORDERS)
        peer.apply(changes)
        seconds, answers = timed(lambda: [peer.answer(query.unlimited_sql) for query in queries])
        anew.append(seconds)
        for kept in everyone if turn % 2 else everyone[::-1]:
            kept.commit(changes)
            kept.check(answers)
        n_rows = sum(erased.num_rows + inserted.num_rows for erased, inserted in changes.values())
    batches = [refreshes.batch(ORDERS) for _ in range(WARMING + IN_A_ROW)]
    for changes in batches:
        peer.apply(changes)
    answers = [peer.answer(query.unlimited_sql) for query in queries]
    for kept in everyone:
        kept.commit_in_a_row(batches)
        kept.check(answers)
        kept.seconds, kept.operations = kept.seconds[WARMING:], kept.operations[WARMING:]
    return anew[WARMING:], n_rows


def kept(queries: Sequence[Query], loaded: Loaded, turns: int, say: Say, strategies: Sequence[str]) -> str:
    """Each query in a workspace of its own, by each strategy."""
    rows = []
    means: dict[str, dict[str, float]] = {}
    for query in queries:
        say(f"kept: Q{query.number}")
        everyone = [Kept.by(strategy, [query], loaded) for strategy in strategies]
        hands = [Kept.by(strategy, [query], loaded, by_hand=True) for strategy in strategies]
        anew, _ = _beside_duckdb([*everyone, *hands], [query], loaded, turns)
        for strategy, one, hand in zip(strategies, everyone, hands, strict=True):
            beside, row = Beside(one.seconds, anew), Beside(one.in_a_row, anew)
            means.setdefault(f"`{strategy}`, in turns", {})[f"Q{query.number}"] = beside.ratio
            means.setdefault(f"`{strategy}`, in a row", {})[f"Q{query.number}"] = row.ratio
            ways = ", ".join(sorted(one.ways))
            rows.append(
                [
                    f"Q{query.number}",
                    f"{strategy}: {ways}" if ways else strategy,
                    *beside.cells,
                    spread(row.ours),
                    f"{row.ratio:.2f}",
                    number(statistics.median(one.operations)),
                    number(1e3 * one.install_seconds),
                    megabytes(one.nbytes),
                    spread(hand.seconds),
                    f"{Beside(one.seconds, hand.seconds).ratio:.2f}",
                ]
            )
    heads = ["query", "kept by", "commit, ms", "DuckDB anew, ms", "ratio", "in a row, ms", "ratio"]
    heads += ["operations per changed row"]
    heads += ["install, ms", "all memory, MB", "rules by hand, ms", "by hand / SQL"]
    return "\n\n".join(
        [
            "## Kept up to date",
            f"{ORDERS} orders go with their items and {ORDERS} come back, {turns} times in turns with"
            f" DuckDB, which takes the same changes, untimed, and computes the query anew, then"
            f" {IN_A_ROW} times in a row. Medians and ranges. "
            + " ".join(summary(title, found) for title, found in means.items()),
            table(heads, rows),
        ]
    )


def unread(loaded: Loaded, say: Say) -> str:
    """What loading takes, and a commit that no head reads."""
    say("unread")
    workspace, sizes, rows = Workspace(), [0], []
    for name, arrow in loaded.items():
        workspace.load(name, arrow)
        sizes.append(sum(workspace.stats.memory_bytes.values()))
        taken = sizes[-1] - sizes[-2]
        cells = [megabytes(arrow.nbytes), megabytes(taken), f"{taken / arrow.nbytes:.2f}"]
        rows.append([name, f"{arrow.num_rows:,}", *cells])
    everything = sum(arrow.nbytes for arrow in loaded.values())
    rows.append(["all", "", megabytes(everything), megabytes(sizes[-1]), f"{sizes[-1] / everything:.2f}"])
    keeping, peer, refreshes = Kept(workspace, [], True, 0.0), Peer(loaded), Refreshes(loaded, seed=1)
    batches = [refreshes.batch(ORDERS) for _ in range(WARMING + UNREAD)]
    keeping.commit_in_a_row(batches)
    theirs = [timed(partial(peer.apply, changes))[0] for changes in batches]
    n_rows = [sum(gone.num_rows + came.num_rows for gone, came in changes.values()) for changes in batches]
    for name in ("orders", "lineitem"):
        counted = peer.answer(f"select count(*) from {name}").column(0)[0].as_py()
        if len(workspace[name]) != counted:
            raise AssertionError(f"{name}: {len(workspace[name])} rows, DuckDB {counted}")
    beside = Beside(keeping.in_a_row, theirs[WARMING:])
    return "\n\n".join(
        [
            "## Read by no rule",
            "Memory of relations just loaded, before any index.",
            table(["relation", "rows", "Arrow, MB", "loaded, MB", "ratio"], rows),
            f"Commits of {number(statistics.median(n_rows[WARMING:]))} rows, {UNREAD} in a row, beside"
            " DuckDB's transactions of the same, in a row too.",
            table(["commit, ms", "DuckDB, ms", "ratio"], [beside.cells]),
        ]
    )


def workspace(queries: Sequence[Query], loaded: Loaded, turns: int, say: Say, strategy: str) -> str:
    """All queries in one workspace."""
    say("workspace")
    together = Kept.by(strategy, queries, loaded)
    installed = together.nbytes
    anew, n_rows = _beside_duckdb([together], queries, loaded, turns)
    arrow = sum(rows.nbytes for rows in loaded.values())
    by_kind = ", ".join(
        f"{kind} {megabytes(size)}" for kind, size in together.workspace.stats.memory_bytes.items() if size
    )
    heads = [
        "commit, ms",
        "DuckDB all anew, ms",
        "ratio",
        "in a row, ms",
        "ratio",
        "install, s",
        "all memory, MB",
        "Arrow tables, MB",
        "ratio",
    ]
    cells = [
        *Beside(together.seconds, anew).cells,
        spread(together.in_a_row),
        f"{Beside(together.in_a_row, anew).ratio:.2f}",
        number(together.install_seconds),
        megabytes(installed),
        megabytes(arrow),
        f"{installed / arrow:.2f}",
    ]
    return "\n\n".join(
        [
            "## All in one workspace",
            f"{len(queries)} queries kept by `{strategy}`, batches of about {n_rows} rows, {turns} times."
            f" Memory in the end, MB: {by_kind}.",
            table(heads, [cells]),
        ]
    )
