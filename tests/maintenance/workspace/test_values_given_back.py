"""differential, properties: values that come and go for ever leave their dictionaries, not their readers."""

from __future__ import annotations

import io
from collections import deque
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lftj.values import collector
from maintenance import Workspace
from maintenance.image import read_image, write_image

STRATEGIES = ("trace", "delta", "recompute", "auto")

PROGRAM = """
near(a, c) <- link(a, b), link(b, c).
last(a) <- link(a, b), !link(b, _).
some(a) <- link(a, b), link(b, c), c != "k 0".
first[a] = min(b), final[a] = max(b), words[a] = concat(b) <- link(a, b).
paid[a] = sum(v), mean[a] = avg(v) <- link(a, b), cost(b, w), v = w * 1.5.
least[a] = min(v) <- link(a, b), cost(b, w), v = w * 0.1.
"""

NAMES = ("near", "last", "some", "first", "final", "words", "paid", "mean", "least")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks that begin after few values, and make small pieces."""
    for name, number in {"LEAST_ADDED": 8, "LEAST": 16, "PACE": 4}.items():
        monkeypatch.setattr(collector, name, number)


def workspace_of(strategy: str) -> Workspace:
    workspace = Workspace()
    link = pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())})
    workspace.load("link", link)
    workspace.load(
        "cost", pa.table({"b": pa.array([], pa.string()), "w": pa.array([], pa.decimal128(12, 2))})
    )
    workspace.install(PROGRAM, strategy)
    return workspace


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def contents(source: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {name: rows_of(source[name].table) for name in ("link", "cost", *NAMES)}


def n_values(workspace: Workspace) -> int:
    return sum(workspace.domains.of(type_).n_values for type_ in (pa.string(), pa.decimal128(12, 2)))  # type: ignore[attr-defined]


def n_bytes(workspace: Workspace) -> int:
    return sum(workspace.domains.of(type_).nbytes for type_ in (pa.string(), pa.decimal128(12, 2)))  # type: ignore[attr-defined]


class Window:
    """Links between keys that no one has seen before, the oldest of which go."""

    def __init__(self, workspace: Workspace, width: int) -> None:
        self.workspace = workspace
        self.width = width
        self.links: deque[tuple[str, str]] = deque()
        self.costs: deque[tuple[str, Decimal]] = deque()
        self.number = 0

    def step(self, back: int = 1) -> Any:
        """One link and one cost come, and as many go as are too many; ``back``: how far a link reaches."""
        number, self.number = self.number, self.number + 1
        link, cost = (f"k {number}", f"k {max(0, number - back)}"), (f"k {number}", Decimal(number) / 4)
        with self.workspace.transaction() as transaction:
            transaction.insert("link", [link])
            transaction.insert(
                "cost", pa.table({"b": [cost[0]], "w": pa.array([cost[1]], pa.decimal128(12, 2))})
            )
            self.links.append(link)
            self.costs.append(cost)
            if len(self.links) > self.width:
                transaction.erase("link", [self.links.popleft()])
                gone, w = self.costs.popleft()
                gone_rows = pa.table({"b": [gone], "w": pa.array([w], pa.decimal128(12, 2))})
                transaction.erase("cost", gone_rows)
        return transaction


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_keys_that_never_come_back_leave_nothing(strategy: str, eager: None) -> None:
    workspace = workspace_of(strategy)
    window = Window(workspace, 4)
    sizes = []
    for _ in range(80):
        window.step()
        sizes.append((n_values(workspace), n_bytes(workspace)))
    workspace.check_invariants()
    workspace.verify()
    assert max(n for n, _ in sizes) < 150, "each commit brings some 8 values, and 40 stay"
    assert max(n for _, n in sizes) < 40_000


def test_texts_and_sums_of_groups_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """480 commits over as much data as before, many walks: dictionaries and bytes are as they were.

    But for what comes with the commits by which a walk ends sooner or later: 4 values each, where 1,000 came.
    """
    monkeypatch.setattr(collector, "LEAST_ADDED", 48)
    workspace = Workspace()
    rows = pa.table(
        {
            "k": pa.array([f"group {number % 5}" for number in range(40)]),
            "s": pa.array([f"word {number}" for number in range(40)]),
            "w": pa.array([Decimal(number) for number in range(40)], pa.decimal128(12, 2)),
        }
    )
    workspace.load("item", rows)
    workspace.install("texts[k] = concat(s), total[k] = sum(w), mean[k] = avg(w) <- item(k, s, w).")
    sizes = []
    for number in range(480):
        row = rows.slice(number * 7 % 40, 1)
        with workspace.transaction() as transaction:
            (transaction.erase if workspace["item"].count == 40 or number % 3 else transaction.insert)(
                "item", row
            )
            transaction.insert("item", rows.slice(number * 11 % 40, 1))
        sizes.append((n_values(workspace), n_bytes(workspace)))
    workspace.verify()
    assert max(n for n, _ in sizes[240:]) <= max(n for n, _ in sizes[:240]) + 4
    assert max(n for _, n in sizes[240:]) <= 1.01 * max(n for _, n in sizes[:240])


@pytest.mark.in_turns
@pytest.mark.parametrize(("seed", "strategy"), list(enumerate(STRATEGIES)))
def test_whoever_holds_a_version_reads_its_values(seed: int, strategy: str) -> None:
    """Snapshots, tables, undecoded changes, open transactions and half read queries, held at random."""
    with pytest.MonkeyPatch.context() as patch:
        for name, number in {"LEAST_ADDED": 4, "LEAST": 8, "PACE": 3}.items():
            patch.setattr(collector, name, number)
        generator = np.random.default_rng(seed)
        workspace = workspace_of(strategy)
        window = Window(workspace, int(generator.integers(2, 12)))
        heard: dict[str, set[tuple[Any, ...]]] = {name: set() for name in NAMES}

        def listen(name: str) -> Any:
            def callback(table: pa.Table) -> None:
                for *row, weight in rows_of(table):
                    (heard[name].add if weight > 0 else heard[name].discard)(tuple(row))

            return callback

        for name in NAMES:
            workspace.subscribe(name, listen(name))
        held: list[tuple[Any, dict[str, list[tuple[Any, ...]]]]] = []
        changes: list[tuple[Any, dict[str, list[tuple[Any, ...]]], dict[str, list[tuple[Any, ...]]]]] = []
        waiting: list[tuple[Any, tuple[str, str]]] = []
        queries: list[tuple[Any, list[tuple[Any, ...]]]] = []
        after = contents(workspace)
        for step in range(100):
            before = after
            transaction = window.step(int(generator.integers(1, 4)))
            after = contents(workspace)
            choice = int(generator.integers(12))
            if choice < 2:
                held.append((workspace.snapshot(), after))
            elif choice < 4:
                changes.append((transaction.changes, before, after))
            elif choice == 4:
                opened = workspace.transaction()
                row = (f"opened {step}", f"opened {step}")
                opened.insert("link", [row])
                waiting.append((opened, row))
            elif choice == 5 and waiting:
                opened, row = waiting.pop(int(generator.integers(len(waiting))))
                opened.commit()
                assert row in workspace["link"]
                with workspace.transaction() as again:
                    again.erase("link", [row])
                after = contents(workspace)
            elif choice == 6:
                stream = workspace.stream("shown(b, v) <- cost(b, w), v = w * 3.", batch_rows=1)
                queries.append((stream, sorted((b, w * 3) for b, w in after["cost"])))
                next(stream)
                queries[-1][1].clear()
                queries[-1][1].extend(sorted((b, w * 3) for b, w in after["cost"]))
            elif choice == 7 and held:
                held.pop(int(generator.integers(len(held))))
            elif choice == 8 and changes:
                changes.pop(int(generator.integers(len(changes))))
            elif choice == 9:
                queries.clear()
            elif choice == 10 and waiting:
                waiting.pop()
            elif choice == 11:
                file = io.BytesIO()
                write_image(workspace, file)
                again = read_image(file.getvalue())
                assert contents(again) == after
                again.check_invariants()
        for snapshot, wanted in held:
            assert contents(snapshot) == wanted
            assert rows_of(snapshot.query("q(a, b) <- link(a, b).")) == wanted["link"]
            for a, b in wanted["link"]:
                assert rows_of(snapshot.query("q(b) <- link($a, b).", params={"a": a})) == [(b,)]
        for tables, before, after in changes:
            for name in NAMES:
                came, went = set(after[name]) - set(before[name]), set(before[name]) - set(after[name])
                signed = {(*row, 1) for row in came} | {(*row, -1) for row in went}
                assert set(rows_of(tables[name])) == signed
        for stream, wanted_rows in queries:
            left = [row for batch in stream for row in rows_of(batch)]
            assert set(left) < set(wanted_rows) or len(wanted_rows) <= 1
            assert len(left) == max(0, len(wanted_rows) - 1)
        assert {name: set(rows) for name, rows in contents(workspace).items() if name in NAMES} == heard
        workspace.check_invariants()
        workspace.verify()


def test_constants_of_rules_stay(eager: None) -> None:
    """A rule's text comes long after nobody has it."""
    workspace = Workspace()
    workspace.load("seen", pa.table({"s": pa.array(["other"])}))
    workspace.install('found(s) <- seen(s), s = "awaited". rest(s) <- seen(s), s != "awaited".')
    for number in range(100):
        with workspace.transaction() as transaction:
            transaction.insert("seen", [(f"s {number}",)])
            transaction.erase("seen", [(f"s {number - 1}",)])
    with workspace.transaction() as transaction:
        transaction.insert("seen", [("awaited",)])
    assert transaction.changes["found"].to_pylist() == [{"s": "awaited", "weight": 1}]
    assert rows_of(workspace["rest"].table) == [("other",), ("s 99",)]
    workspace.verify()


def test_a_transaction_that_stays_open_keeps_all(eager: None) -> None:
    workspace = workspace_of("delta")
    window = Window(workspace, 3)
    opened = workspace.transaction()
    opened.insert("link", [("early", "bird")])
    for _ in range(80):
        window.step()
    held_back = n_values(workspace)
    opened.commit()
    for _ in range(80):
        window.step()
    assert ("early", "bird") in workspace["link"]
    assert n_values(workspace) < held_back / 2
    workspace.verify()
