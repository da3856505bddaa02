"""Streams in a workspace: a machine of transactions, batches, failures and reopenings against the history."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.image import read_image, write_image
from support.kept_lives import without_image
from support.small_limits import small_limits, wide_relations
from support.stream_model import Batch, Model, ModelStream, Row
from support.turns import drawn_in_turns, share

RULES = """
vol[s] = sum(q) <- trade(s, q, t).
n[s] = count() <- trade(s, _, _).
best[s] = max(q) <- trade(s, q, _).
pair(s, t, u) <- trade(s, _, t), quote(s, p, u), p > 1.
alone(s, t) <- quote(s, _, t), !trade(s: s).
inverse(t, i) <- trade(_, q, t), i = 12 / (q - 9).
"""
FINAL = "span[s, w] = sum(q) <- quote(s, q, t), w = tumble(t, {0}). final span at w + {0}."
SPAN = 4
RECENT = "fresh(s, t) <- quote(s, _, t), t > now() - {}."
WINDOWED = "cell[s, w] = sum(q) <- trade(s, q, t), w = div(t, 4)."
"""Of times that are integers."""

BAD = 9
"""A q that a rule can't take."""

EPOCH = datetime(2026, 1, 1)
TIMES = st.integers(-12, 6)
"""Of rows, counted from the latest."""

BATCH = st.lists(
    st.tuples(TIMES, st.integers(0, 2), st.integers(1, 4), st.sampled_from([1, 1, 1, -1])), max_size=5
)
BATCHES = st.fixed_dictionaries({}, optional={"trade": BATCH, "quote": BATCH})


class Times:
    """Model times as values of a column: whole numbers, or timestamps, a second each."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.arrow = {"integer": pa.int64(), "timestamp": pa.timestamp("ms"), "date": pa.date32()}[kind]

    @property
    def past_a_window(self) -> int:
        """What the time 0 is behind the beginning of a window."""
        return (EPOCH - datetime(2000, 1, 3)).days % SPAN if self.kind == "date" else 0

    def value(self, time: int) -> Any:
        if self.kind == "integer":
            return time
        if self.kind == "date":
            return EPOCH.date() + timedelta(days=time)
        return EPOCH + timedelta(seconds=time)

    def span(self, span: int) -> Any:
        return {"integer": span, "date": f"{span}d", "timestamp": timedelta(seconds=span)}[self.kind]

    def table(self, batch: Batch, n: str | None = None) -> dict[str, Any]:
        rows = [row for row, _ in batch]
        return {
            "s": pa.array([row[1] for row in rows], pa.int64()),
            "q": pa.array([row[2] for row in rows], pa.int64()),
            "t": pa.array([self.value(row[0]) for row in rows], self.arrow),
            "weight": pa.array([weight for _, weight in batch], pa.int64()),
        }

    def shown(self, rows: Counter[Row]) -> Counter[Any]:
        return Counter({(s, q, self.value(t)): n for (t, s, q), n in rows.items()})


def heads(trades: Counter[Any], quotes: Counter[Any], since: Any) -> dict[str, set[Any]]:
    vol: Counter[int] = Counter()
    n: Counter[int] = Counter()
    best: dict[int, int] = {}
    for (s, q, _), copies in trades.items():
        vol[s] += q * copies
        n[s] += copies
        best[s] = max(best.get(s, q), q)
    return {
        "vol": set(vol.items()),
        "n": set(n.items()),
        "best": set(best.items()),
        "pair": {(s, t, u) for s, _, t in trades for r, p, u in quotes if r == s and p > 1},
        "alone": {(s, t) for s, _, t in quotes if s not in vol},
        "fresh": {(s, t) for s, _, t in quotes if since is None or t > since},
        "inverse": {(t, 12 / (q - BAD)) for _, q, t in trades},
    }


@drawn_in_turns
class StreamMachine(RuleBasedStateMachine):
    """A workspace in a folder, and the history of its streams."""

    @initialize(
        strategy=st.sampled_from([name for name in STRATEGIES if name != "stages"]),
        kind=st.sampled_from(["integer", "timestamp", "date"]),
        wide=st.booleans(),
        bag=st.booleans(),
        declared=st.booleans(),
        merges=st.sampled_from([(4096, 8), (0, 100), (0, 1)]),
        settings=st.tuples(st.integers(0, 4), st.sampled_from([0, 6, 150]), st.integers(0, 3)),
        loaded=BATCH,
    )
    def make(
        self,
        strategy: str,
        kind: str,
        wide: bool,
        bag: bool,
        declared: bool,
        merges: tuple[int, int],
        settings: tuple[int, int, int],
        loaded: list[Any],
    ) -> None:
        self.patches = ExitStack()
        self.patches.enter_context(small_limits(merges))
        self.patches.enter_context(wide_relations(wide))
        self.place = Path(self.patches.enter_context(tempfile.TemporaryDirectory()))
        self.folder = self.place / "folder"
        self.times = Times(kind)
        late, more, other = settings
        self.model = Model()
        streams = {
            "trade": ModelStream(late, late + more, bag),
            "quote": ModelStream(other, other + 7, extent=SPAN),
        }
        self.latest = 0
        self.heard: dict[str, list[Any]] = {"trade": [], "quote": []}
        self.workspace = Workspace.open(self.folder)
        for name, stream in streams.items():
            rows: Batch = [((time, s, q), 1) for time, s, q, _ in (loaded if name == "trade" else [])]
            if not stream.is_bag:
                rows = [*dict.fromkeys(rows)]
            self.model.load(name, stream, [row for row, _ in rows])
            source = {label: column for label, column in self.times.table(rows).items() if label != "weight"}
            spans = self.times.span(stream.lateness), self.times.span(stream.keep)
            options = {"time": "t", "lateness": spans[0], "keep": spans[1], "on_late": self.hears(name)}
            if declared:
                self.workspace.load(name, pa.table(source), bag=stream.is_bag, not_null=["t"])
                late_, keep = (f"{span}{'' if kind == 'integer' else 'd' if kind == 'date' else 's'}"
                               for span in (stream.lateness, stream.keep))  # fmt: skip
                self.workspace.install(f"stream {name}(t) late {late_} keep {keep}.")
                self.workspace.on_late(name, self.hears(name))
            else:
                self.workspace.load(name, pa.table(source), bag=stream.is_bag, **options)
        recent = RECENT.format({"integer": "5", "date": "5d", "timestamp": "5s"}[kind])
        recent += FINAL.format({"integer": "4", "date": "4d", "timestamp": "4s"}[kind])
        self.installed = self.model.now
        self.workspace.install(RULES + recent + (WINDOWED if kind == "integer" else ""), strategy)
        self.told = {name: Counter(self.workspace[name]) for name in (*self.workspace.heads, "span_final")}

    def hears(self, name: str) -> Any:
        return lambda table: self.heard[name].append(table)

    def rows_of(self, drawn: dict[str, list[Any]]) -> dict[str, Batch]:
        found: dict[str, Batch] = {}
        for name, rows in drawn.items():
            there = sorted(self.model.streams[name].contents)
            found[name] = [
                (
                    there[time % len(there)]
                    if weight < 0 and there and q > 1
                    else (self.latest + time, s, q),
                    weight,
                )
                for time, s, q, weight in rows
            ]
        return found

    def tell(self, changes: Any) -> None:
        for name in (*self.workspace.heads, "span_final"):
            for row in changes[name].to_pylist():
                weight = row.pop("weight")
                self.told[name][tuple(row.values())] += weight
            self.told[name] = +self.told[name]

    @rule(
        drawn=BATCHES,
        advance=st.sampled_from([None, None, None, -3, 0, 2, 9]),
        way=st.sampled_from(["rows", "apply"]),
    )
    def change(self, drawn: dict[str, list[Any]], advance: int | None, way: str) -> None:
        batches = self.rows_of(drawn)
        to = None if advance is None else self.latest + advance
        now = self.model.now
        with self.workspace.transaction() as tx:
            if to is not None and now is not None and to < now:
                with pytest.raises(errors.StreamError, match="does not go back"):
                    tx.advance(self.times.value(to))
                to = None
            for name, batch in batches.items():
                if way == "apply":
                    tx.apply(name, pa.table(self.times.table(batch)))
                for row, weight in batch if way == "rows" else ():
                    one = pa.table(self.times.table([(row, weight)])).drop_columns("weight")
                    (tx.insert if weight > 0 else tx.erase)(name, one)
            if to is not None:
                tx.advance(self.times.value(to))
        self.heard_of(batches, tx.stats, *self.model.commit(batches, to))
        self.tell(tx.changes)
        self.latest = max([self.latest, *(row[0] for batch in batches.values() for row, _ in batch)])

    def heard_of(
        self, batches: dict[str, Batch], stats: Any, late: dict[str, Any], expired: dict[str, int]
    ) -> None:
        assert stats.late == {name: len(rows) for name, rows in late.items()}
        assert stats.expired == expired
        for name, batch in batches.items():
            taken = stats.inserted.get(name, 0) + stats.erased.get(name, 0) + stats.no_changes.get(name, 0)
            assert taken + stats.late.get(name, 0) == len(batch), "late + accepted = given"
        for name, tables in self.heard.items():
            heard = Counter(tuple(row.values()) for table in tables for row in table.to_pylist())
            wanted = Counter((s, q, self.times.value(t), w) for (t, s, q), w in late.get(name, ()))
            assert heard == wanted
            tables.clear()

    @rule(drawn=st.lists(BATCHES, min_size=1, max_size=4))
    def batch(self, drawn: list[dict[str, list[Any]]]) -> None:
        """Many transactions in one call are these, one after the other."""
        parts: dict[str, list[Any]] = {}
        late: dict[str, list[Any]] = {}
        expired: Counter[str] = Counter()
        all_rows: dict[str, Batch] = {}
        for number, one in enumerate(drawn):
            batches = self.rows_of(one)
            for name, rows in batches.items():
                table = pa.table(self.times.table(rows))
                parts.setdefault(name, []).append(
                    table.append_column("txn", pa.array([number] * len(rows), pa.int64()))
                )
                all_rows.setdefault(name, []).extend(rows)
            if any(batches.values()):
                its_late, its_expired = self.model.commit(batches)
                for name, rows in its_late.items():
                    late.setdefault(name, []).extend(rows)
                expired.update(its_expired)
            self.latest = max([self.latest, *(row[0] for rows in batches.values() for row, _ in rows)])
        if not any(all_rows.values()):
            return
        applied = self.workspace.apply_many(
            {name: pa.concat_tables(tables) for name, tables in parts.items()}
        )
        self.heard_of(all_rows, applied.stats, late, dict(expired))
        for changes in applied:
            self.tell(changes)

    @rule(drawn=BATCHES, many=st.booleans())
    def fail(self, drawn: dict[str, list[Any]], many: bool) -> None:
        """A transaction that fails leaves waterlines, clock, late counts and rows as they were."""
        batches = self.rows_of(drawn)
        line = self.model.streams["trade"].waterline
        time = self.latest + 3 if line is None else max(line, self.latest + 3)
        batches.setdefault("trade", []).append(((time, 1, BAD), 1))
        before = {name: self.workspace[name].table for name in self.workspace.relations}
        state = self.workspace.now, self.workspace.late("trade"), self.workspace.late("quote")
        with pytest.raises(errors.EvaluationError):
            if many:
                self.workspace.apply_many(
                    {name: pa.table(self.times.table(rows)) for name, rows in batches.items()}
                )
            else:
                with self.workspace.transaction() as tx:
                    for name, rows in batches.items():
                        tx.apply(name, pa.table(self.times.table(rows)))
        assert state == (self.workspace.now, self.workspace.late("trade"), self.workspace.late("quote"))
        assert all(self.workspace[name].table == table for name, table in before.items())
        assert not any(self.heard.values())

    @rule()
    def roll_back(self) -> None:
        tx = self.workspace.transaction()
        tx.apply("trade", pa.table(self.times.table([((self.latest + 50, 1, 1), 1)])))
        tx.roll_back()

    @rule(image=st.booleans(), checkpoint=st.booleans())
    def reopen(self, image: bool, checkpoint: bool) -> None:
        if checkpoint:
            self.workspace.checkpoint()
        self.workspace.close()
        if not image:
            without_image(self.folder)
        self.workspace = Workspace.open(self.folder)
        self.listen()

    @rule(how=st.sampled_from(["killed", "copied", "image"]))
    def leave(self, how: str) -> None:
        """The journal alone, behind a manifest of long ago; a copy; an image."""
        if how == "image":
            path = self.place / "image.arrow"
            write_image(self.workspace, path)
            again = read_image(path)
            assert again.now == self.workspace.now and again.late("trade") == self.workspace.late("trade")
            assert all(set(again[name]) == set(self.workspace[name]) for name in again.relations)
            return
        copy = self.place / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        if how == "copied":
            self.workspace.save(copy)
        else:
            shutil.copytree(self.folder, copy)
            without_image(copy)
            (copy / "lock").unlink(missing_ok=True)
        self.workspace.close()
        shutil.rmtree(self.folder)
        copy.rename(self.folder)
        self.workspace = Workspace.open(self.folder)
        self.listen()

    @rule()
    def compact(self) -> None:
        self.workspace.compact()

    def listen(self) -> None:
        for name in self.heard:
            self.workspace.on_late(name, self.hears(name))

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "workspace"):
            return
        now, shown = self.model.now, {}
        assert self.workspace.now == (None if now is None else self.times.value(now))
        for name, stream in self.model.streams.items():
            assert self.workspace.late(name) == (stream.inserted_late, stream.erased_late)
            shown[name] = self.times.shown(stream.contents)
            assert Counter(self.workspace[name]) == shown[name], "contents = filter of history"
            if now is not None and stream.bound is not None and stream.extent is None:
                assert all(row[0] >= now - stream.keep - stream.bucket for row in stream.contents)
        since = None if now is None else self.times.value(now - 5)
        for name, rows in heads(shown["trade"], shown["quote"], since).items():
            assert set(self.workspace[name]) == rows, name
        assert set(self.workspace["span_final"]) == self.closed(now)
        for name, rows in self.told.items():
            assert rows == Counter(self.workspace[name]), f"changes of {name} add up to it"

    def closed(self, now: int | None) -> set[Any]:
        """Of the whole history, the windows that have closed since the rules were installed."""
        sums: Counter[Any] = Counter()
        for (t, s, q), n in self.model.streams["quote"].history.items():
            begin = t - (t + self.times.past_a_window) % SPAN
            is_new = self.installed is None or self.installed < begin + SPAN
            if now is not None and is_new and begin + SPAN <= now:
                sums[s, self.times.value(begin)] += q * n
        return {(s, w, q) for (s, w), q in sums.items()}

    def teardown(self) -> None:
        if hasattr(self, "workspace"):
            self.workspace.verify()
            self.workspace.check_invariants()
            self.workspace.close()
        if hasattr(self, "patches"):
            self.patches.close()


TestStreams = StreamMachine.TestCase
TestStreams.settings = settings(max_examples=share(60), stateful_step_count=14, deadline=None)
