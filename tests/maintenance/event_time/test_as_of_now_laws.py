"""laws of what only grows, on drawn lives: rows joined as of now, rows that closed, and what reads them.

The reference has the whole history, and evaluates each rule by loops over what is there behind each commit.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support.kept_lives import without_image
from support.stream_model import Model, ModelStream

BELOW = """
best[s] = max(p) <- rate(s, p).
vol[s, w] = sum(q) <- trade(t, s, q, _), w = tumble(t, 5).
"""
GROWS = """
final vol at w + 5.
out(e, p) <- trade(_, s, _, e), rate(s, p) asof now.
deal(e, b) <- trade(_, s, q, e), best[s] = b asof now, !banned(s) asof now, b > q.
deal(e, b) <- click(e, s), best[s] = b asof now.
twin(e, f) <- trade(t, s, _, e), trade(u, s, _, f) asof now, u <= t.
"""
ABOVE = """
n[p] = count() <- out(_, p).
sure(e) <- deal(e, _), !banned(e).
back(e, s, w) <- vol_final(s, w, _), rate(s, e).
chain(e, p) <- deal(e, b), out(b, p).
fx(s, p) <- fixed[s] = p.
"""
CHAINED = "told(e, s) <- out(e, s), vol_final(s, _, _) asof now."
COLUMNS = {
    "trade": ["t", "s", "q", "e"],
    "rate": ["s", "p"],
    "banned": ["s"],
    "click": ["e", "s"],
    "fixed": ["s", "p"],
}
GROWN = ("vol_final", "out", "deal", "twin", "told")
small = st.integers(0, 3)
ids = st.integers(0, 9)
times = st.integers(-8, 9)
signs = st.sampled_from([1, 1, 1, -1])
rows = st.fixed_dictionaries(
    {
        "trade": st.lists(st.tuples(st.tuples(times, small, st.integers(1, 4), ids), signs), max_size=4),
        "rate": st.lists(st.tuples(st.tuples(small, small), signs), max_size=2),
        "banned": st.lists(st.tuples(st.tuples(small), signs), max_size=1),
        "click": st.lists(st.tuples(st.tuples(small, small), signs), max_size=2),
    }
)
Rows = dict[str, list[tuple[tuple[int, ...], int]]]


def table(name: str, rows_: Iterable[tuple[int, ...]]) -> pa.Table:
    columns = [*zip(*rows_, strict=True)] or [[] for _ in COLUMNS[name]]
    return pa.table({c: pa.array(v, pa.int64()) for c, v in zip(COLUMNS[name], columns, strict=True)})


class Reference:
    """``held``: base relations that are no stream; ``grown``: all that was ever added."""

    def __init__(self) -> None:
        self.model = Model()
        self.model.load("trade", ModelStream(3, 40, False, 5), [(1000, 1, 1, 1)])
        self.since = self.model.now
        self.held: dict[str, set[Any]] = {"rate": {(1, 2)}, "banned": {(3,)}, "click": set()}
        self.held["fixed"] = {(1, 1)}
        self.grown: dict[str, set[Any]] = {name: set() for name in GROWN}

    @property
    def trades(self) -> set[Any]:
        return set(self.model.streams["trade"].contents)

    def commit(self, changes: Rows) -> dict[str, set[Any]]:
        """What is added to each."""
        stream, before = self.model.streams["trade"], {name: set(had) for name, had in self.grown.items()}
        earlier = set(stream.history)
        self.model.commit({"trade": changes.get("trade", [])})
        trades, clicks = set(stream.history) - earlier, set()
        for name in ("rate", "banned", "click"):
            net: Counter[Any] = Counter()
            for row, weight in changes.get(name, []):
                net[row] += weight
            for row, weight in net.items():
                if name == "click" and weight > 0 and row not in self.held[name]:
                    clicks.add(row)
                if weight:
                    (self.held[name].add if weight > 0 else self.held[name].discard)(row)
        best = self.best()
        for t, s, q, e in trades:
            self.grown["out"] |= {(e, p) for r, p in self.held["rate"] if r == s}
            if s in best and (s,) not in self.held["banned"] and best[s] > q:
                self.grown["deal"].add((e, best[s]))
            self.grown["twin"] |= {(e, f) for u, r, _, f in self.trades if r == s and u <= t}
        self.grown["deal"] |= {(e, best[s]) for e, s in clicks if s in best}
        sums: Counter[Any] = Counter()
        for t, s, q, _ in stream.history:
            assert self.since is not None and self.model.now is not None
            if self.since < t // 5 * 5 + 5 <= self.model.now:
                sums[s, t // 5 * 5] += q
        self.grown["vol_final"] = {(s, w, q) for (s, w), q in sums.items()}
        assert before["vol_final"] <= self.grown["vol_final"]
        closed = {s for s, _, _ in self.grown["vol_final"]}
        self.grown["told"] |= {(e, s) for e, s in self.grown["out"] - before["out"] if s in closed}
        return {name: self.grown[name] - before[name] for name in GROWN}

    def best(self) -> dict[int, int]:
        best: dict[int, int] = {}
        for s, p in self.held["rate"]:
            best[s] = max(p, best.get(s, p))
        return best

    def above(self) -> dict[str, set[Any]]:
        counts = Counter(p for _, p in self.grown["out"])
        banned = {s for (s,) in self.held["banned"]}
        return {
            "n": set(counts.items()),
            "sure": {(e,) for e, _ in self.grown["deal"] if e not in banned},
            "back": {
                (e, s, w) for s, w, _ in self.grown["vol_final"] for r, e in self.held["rate"] if r == s
            },
            "chain": {(e, p) for e, b in self.grown["deal"] for f, p in self.grown["out"] if f == b},
            "best": set(self.best().items()),
        }


def machine_of(strategy: str) -> type[RuleBasedStateMachine]:
    class Life(RuleBasedStateMachine):
        @initialize(in_folder=st.booleans(), at_once=st.booleans())
        def begin(self, in_folder: bool, at_once: bool) -> None:
            self.at = Path(tempfile.mkdtemp()) if in_folder else None
            self.latest, self.reference = 1000, Reference()
            self.ws = Workspace() if self.at is None else Workspace.open(self.at / "0", durability="none")
            self.ws.load("trade", table("trade", [(1000, 1, 1, 1)]), time="t", lateness=3, keep=40)
            for name, held in self.reference.held.items():
                self.ws.load(name, table(name, held))
            programs = [BELOW + GROWS, CHAINED, ABOVE]
            for program in ["".join(programs)] if at_once else programs:
                self.ws.install(program, strategy)
            self.n_copies = 0

        def placed(self, drawn: Rows) -> Rows:
            """Times behind the latest; half of what is erased is there."""
            moved = [((self.latest + t, *rest), weight) for (t, *rest), weight in drawn["trade"]]
            there = sorted(self.reference.trades)
            moved = [
                (there[row[-1] % len(there)] if weight < 0 and there else row, weight)
                for row, weight in moved
            ]
            self.latest = max([self.latest + 2, *(row[0] for row, weight in moved if weight > 0)])
            return {**drawn, "trade": moved}

        def told(self, changes: Any, gained: dict[str, set[Any]]) -> None:
            for name in GROWN:
                *columns, weights = changes[name].to_pydict().values()
                assert sorted(zip(*columns, strict=True)) == sorted(gained[name]), name
                assert set(weights) <= {1}

        @rule(drawn=rows)
        def commit(self, drawn: Rows) -> None:
            changes = self.placed(drawn)
            with self.ws.transaction() as tx:
                for name, each in changes.items():
                    for row, weight in each:
                        (tx.insert if weight > 0 else tx.erase)(name, [row])
            self.told(tx.changes, self.reference.commit(changes))

        def batch_of(self, each: list[Rows]) -> dict[str, pa.Table]:
            tables = {}
            for name, columns in COLUMNS.items():
                flat = [
                    (*row, weight, number)
                    for number, changes in enumerate(each)
                    for row, weight in changes.get(name, [])
                ]
                if flat:
                    labels = [*columns, "weight", "txn"]
                    tables[name] = pa.table(
                        {label: [row[n] for row in flat] for n, label in enumerate(labels)}
                    )
            return tables

        @rule(drawn=st.lists(rows, min_size=1, max_size=4))
        def batch(self, drawn: list[Rows]) -> None:
            each = [self.placed(one) for one in drawn]
            tables = self.batch_of(each)
            applied = self.ws.apply_many(tables) if tables else []
            left = [changes for changes in each if any(changes.values())]
            for one, changes in zip(applied, left, strict=True):
                self.told(one, self.reference.commit(changes))

        @rule(drawn=st.lists(rows, min_size=1, max_size=3), many=st.booleans())
        def fail(self, drawn: list[Rows], many: bool) -> None:
            latest, each = self.latest, [self.placed(one) for one in drawn]
            self.latest = latest
            each.append({"fixed": [((1, 7), 1)]})
            if many:
                with pytest.raises(errors.FunctionalConflictError):
                    self.ws.apply_many(self.batch_of(each))
                return
            with pytest.raises(errors.FunctionalConflictError), self.ws.transaction() as tx:
                for changes in each:
                    for name, some in changes.items():
                        for row, weight in some:
                            (tx.insert if weight > 0 else tx.erase)(name, [row])

        @precondition(lambda self: self.at is not None)
        @rule(checkpoint=st.booleans(), image=st.booleans(), killed=st.booleans())
        def reopen(self, checkpoint: bool, image: bool, killed: bool) -> None:
            assert self.at is not None
            if checkpoint:
                self.ws.checkpoint()
            folder = self.at / str(self.n_copies)
            if killed:
                self.n_copies += 1
                shutil.copytree(folder, self.at / str(self.n_copies))
                folder = self.at / str(self.n_copies)
                (folder / "lock").unlink(missing_ok=True)
            self.ws.close()
            if not image:
                without_image(folder)
            self.ws = Workspace.open(folder, durability="none")

        @invariant()
        def holds(self) -> None:
            reference = self.reference
            assert set(self.ws["trade"]) == reference.trades
            for name, grown in {**reference.grown, **reference.above()}.items():
                assert set(self.ws[name]) == grown, name

        @rule()
        def verify(self) -> None:
            self.ws.verify()
            self.ws.check_invariants()

        def teardown(self) -> None:
            if hasattr(self, "ws"):
                self.verify()
                self.ws.close()
                if self.at is not None:
                    shutil.rmtree(self.at)

    return Life


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_what_grows_is_what_was_there_when_it_came(strategy: str) -> None:
    run_state_machine_as_test(
        machine_of(strategy), settings=settings(max_examples=12, stateful_step_count=25, deadline=None)
    )
