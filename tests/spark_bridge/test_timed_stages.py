"""oracle: streams in the stages of a maintained join, against a workspace and the history in Python.

Batches come out of order and late, erase, say that a time has come, are empty or refused; what cells there
are, which tasks run twice, and which engines are lost, is drawn as :mod:`stage_pipeline` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from maintenance import Workspace
from maintenance.event_time.stream_state import clock
from spark_bridge.placing.event_time import TimeSettings
from spark_bridge.stages import worker as stage_worker
from support.cell_pipeline import random_grids
from support.rows import rows_of
from support.stage_pipeline import StagePipeline
from support.stream_model import Batch, Model, ModelStream, Row

pytest.importorskip("pyspark")

INT = pa.int64()
SCHEMAS = {
    "a": pa.schema([("k", INT), ("t", INT), ("v", INT)]),
    "b": pa.schema([("t", INT), ("k", INT)]),
    "c": pa.schema([("k", INT), ("x", INT)]),
}
C_ROWS = [(0, 5), (1, 5), (1, 6), (3, 5)]
Found = set[Row]


@dataclass(frozen=True)
class Case:
    """Rules with a head, and what it has: of the rows of ``a`` and ``b``, time first, and the clock.

    ``close``: of a row, when it closes.
    """

    text: str
    head: str
    rows: Callable[[set[Row], set[Row], int | None], Found]
    extents: dict[str, int | None]
    close: Callable[[Row], int] | None = None


def pairs(a: set[Row], b: set[Row], now: int | None) -> Found:
    return {(k, t, u) for t, k, _ in a for u, other in b if k == other and t <= u <= t + 5}


def sums(a: set[Row], b: set[Row], now: int | None) -> Found:
    windows: dict[tuple[int, int], int] = {}
    for t, k, v in a:
        for c, _ in C_ROWS:
            if c == k:
                windows[k, t // 8 * 8] = windows.get((k, t // 8 * 8), 0) + v
    return {(*key, total) for key, total in windows.items()}


def hops(a: set[Row], b: set[Row], now: int | None) -> Found:
    windows: dict[int, list[int]] = {}
    for t, _, v in a:
        for w in (t // 4 * 4, t // 4 * 4 - 4):
            windows.setdefault(w, []).append(v)
    return {(w, len(values), max(values)) for w, values in windows.items()}


def lately(a: set[Row], b: set[Row], now: int | None) -> Found:
    recent = {row for row in b if now is None or row[0] >= now - 6}
    return {(k, t) for t, k, _ in a if (now is None or t > now - 3) and k not in {row[1] for row in recent}}


NONE: dict[str, int | None] = {"a": None, "b": None}
CASES = {
    "pairs": Case("h(k, t, u) <- a(k, t, _), b(u, k), u >= t, u <= t + 5.", "h", pairs, NONE),
    "sums": Case("h[k, w] = sum(v) <- a(k, t, v), c(k, _), w = tumble(t, 8).", "h", sums, NONE),
    "hops": Case("h(w, count(), max(v)) <- a(_, t, v), w in hop(t, 8, 4).", "h", hops, NONE),
    "lately": Case(
        "r(k) <- b(u, k), u >= now() - 6. h(k, t) <- a(k, t, _), t > now() - 3, !r(k).", "h", lately, NONE
    ),
    "closed sums": Case(
        "h[k, w] = sum(v) <- a(k, t, v), c(k, _), w = tumble(t, 8). final h at w + 8.",
        "h_final",
        sums,
        {"a": 8, "b": None},
        lambda row: row[1] + 8,
    ),
    "closed pairs": Case(
        "h(k, t, u) <- a(k, t, _), b(u, k), u >= t, u <= t + 5. final h at t + 6.",
        "h_final",
        pairs,
        {"a": 6, "b": 6},
        lambda row: row[1] + 6,
    ),
}
KEEP, LATENESS = {"a": 20, "b": 30}, {"a": 4, "b": 0}
TIMES = TimeSettings({"a": "t", "b": "t"}, LATENESS, KEEP)


PLACES = {"a": (1, 0, 2), "b": (0, 1)}
"""By column of the relation, the place in a row of the model, whose first is the time."""


def table(name: str, batch: Batch) -> pa.Table:
    schema = SCHEMAS[name].append(pa.field("weight", INT))
    rows = [(*(row[place] for place in PLACES[name]), weight) for row, weight in batch]
    columns = [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


class Followed:
    """A pipeline, a workspace and the model over the same transactions."""

    def __init__(self, case: Case, path: Path, partitions: int, seed: int) -> None:
        self.case, self.random, self.model = case, Random(seed), Model()
        self.workspace = Workspace()
        for name in ("a", "b"):
            stream = ModelStream(LATENESS[name], KEEP[name], extent=case.extents[name])
            self.model.load(name, stream, [])
            self.workspace.load(
                name, SCHEMAS[name].empty_table(), time="t", lateness=LATENESS[name], keep=KEEP[name]
            )
        self.workspace.load("c", C_ROWS, columns=["k", "x"])
        self.workspace.install(case.text)
        self.closed: Found = set()
        first: dict[str, Batch] = {name: [(row, 1) for row in self.new_rows(name, 6)] for name in ("a", "b")}
        tables = {n: table(n, batch).drop_columns(["weight"]) for n, batch in first.items()}
        tables["c"] = pa.table({"k": [k for k, _ in C_ROWS], "x": [x for _, x in C_ROWS]}, SCHEMAS["c"])
        self.pipeline = StagePipeline(
            case.text, tables, path, partitions, random_grids, Random(seed), head=case.head, times=TIMES
        )
        self.commit(first, None)
        self.check()

    def new_rows(self, name: str, n: int) -> list[Row]:
        now = max((s.waterline for s in self.model.streams.values() if s.waterline is not None), default=40)
        rows = {(self.random.randint(now - 12, now + 4), *self.more(name)) for _ in range(n)}
        return sorted(rows)

    def more(self, name: str) -> Row:
        return tuple(self.random.randrange(4) for _ in range(1 if name == "b" else 2))

    def random_batches(self) -> dict[str, Batch]:
        batches: dict[str, Batch] = {}
        for name in self.random.sample(("a", "b"), self.random.randint(0, 2)):
            there = sorted(self.model.streams[name].history)
            weights = (1, 1, 1, 2)
            batch = [
                (row, self.random.choice(weights)) for row in self.new_rows(name, self.random.randint(1, 8))
            ]
            batch += [(row, -1) for row in self.random.sample(there[-9:], min(len(there), 2))]
            batch += [(row, -1) for row in self.new_rows(name, 1)] + batch[:1]
            self.random.shuffle(batch)
            batches[name] = batch
        return batches

    def commit(self, batches: dict[str, Batch], advance: int | None) -> dict[str, int]:
        was = self.model.now
        _, expired = self.model.commit(batches, advance)
        now = self.model.now
        with self.workspace.transaction() as transaction:
            for name, batch in batches.items():
                transaction.apply(name, table(name, batch))
            if advance is not None:
                transaction.advance(advance)
        self.late = transaction.stats.late
        assert transaction.stats.expired == expired
        if self.case.close is not None and now is not None:
            # Of all that ever came: that rows have left by then is of no account.
            history = [{*self.model.streams[name].history} for name in ("a", "b")]
            for row in self.case.rows(*history, now):
                if (was is None or was < self.case.close(row)) and self.case.close(row) <= now:
                    self.closed.add(row)
        return expired

    def expected(self) -> Found:
        if self.case.close is not None:
            return self.closed
        contents = [{*self.model.streams[name].contents} for name in ("a", "b")]
        return self.case.rows(*contents, self.model.now)

    def batch(self) -> None:
        batches, now = self.random_batches(), self.model.now
        advance = None if self.random.randrange(4) or now is None else now + self.random.choice((1, 5, 40))
        self.take(batches, advance, [self.random_batches()] if self.random.randrange(3) == 0 else [])

    def take(
        self, batches: dict[str, Batch], advance: int | None, tried: Sequence[dict[str, Batch]] = ()
    ) -> None:
        """A batch; ``tried``: those of before whose outcome is lost."""
        before = self.expected().copy()
        expired = self.commit(batches, advance)
        changes = {name: table(name, batch) for name, batch in batches.items()}
        lost = [{name: table(name, batch) for name, batch in each.items()} for each in tried]
        told = rows_of(self.pipeline.apply(changes, lost, advance))
        after = self.expected()
        assert Counter(told) == Counter(
            [(*row, 1) for row in after - before] + [(*row, -1) for row in before - after]
        )
        assert self.pipeline.late == self.late
        read = {*self.pipeline.chain.timed}
        assert self.pipeline.expired == {name: n for name, n in expired.items() if name in read}

    def check(self) -> None:
        found = rows_of(self.pipeline.table())
        assert {*found} == self.expected() and len(found) == len({*found})
        assert {*rows_of(self.workspace[self.case.head].table)} == self.expected()
        states = self.pipeline.clock_states()
        assert clock(states) == self.model.now == self.workspace.now
        for name, state in states.items():
            assert state.late == self.workspace.late(name)
            assert state.waterline == self.model.streams[name].waterline


@pytest.mark.in_turns
@pytest.mark.parametrize(("name", "most_logged"), [*zip(CASES, (0, 2, 32, 2, 32, 0), strict=True)])
def test_oracle_streams(name: str, most_logged: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_worker, "MOST_LOGGED", most_logged)
    random = Random(f"{name} {most_logged}")
    followed = Followed(CASES[name], tmp_path, random.choice((2, 3)), random.randrange(1 << 20))
    seen: Counter[str] = Counter()
    for _ in range(14):
        followed.batch()
        followed.check()
        seen["late"] += sum(followed.late.values())
        seen["expired"] += sum(followed.pipeline.expired.values())
        seen["rows"] += len(followed.expected())
        if random.randrange(5) == 0:
            followed.pipeline.lose_engines()
    followed.pipeline.check_files()
    assert seen["late"] and seen["rows"] and (seen["expired"] or name == "lately"), seen


def test_what_closed_stays_when_a_part_of_its_window_leaves(tmp_path: Path) -> None:
    followed = Followed(CASES["closed sums"], tmp_path, 2, 7)
    assert followed.model.now is not None
    window = (followed.model.now // 8 + 2) * 8
    k = C_ROWS[0][0]
    followed.take({"a": [((window + 1, k, 2), 1), ((window + 6, k, 3), 1)]}, None)
    for now, n_left in ((window + 8, 2), (window + 23, 2), (window + 24, 1)):
        followed.take({}, now)
        followed.check()
        assert len([t for t, *_ in followed.model.streams["a"].contents if t >= window]) == n_left
    assert (k, window, 5) in followed.closed and (k, window, 3) not in followed.closed
