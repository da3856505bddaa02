"""The benchmarks of aggregates and of existence: their sides agree, and figures count what they say."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from bench import __main__ as command
from bench import datasets, workloads
from bench.graphs import arrivals
from bench.maintenance import edge_window, order_book, order_book_replay, signed_sums
from bench.maintenance.edge_window import Window, window_steps
from bench.maintenance.order_book_replay import DuckReplay, LftjReplay, Replay
from bench.maintenance.signed_sums_run import DuckSums, MaintainedSums
from bench.report.measurement import Measurement
from bench.report.verdict import judge
from bench.workload import Workload

# -- order book --------------------------------------------------------------


def changes(count: int) -> dict[str, pa.Table]:
    return {"changes": order_book.random_changes(3_000).slice(0, count)}


def sides(count: int, batch: int) -> tuple[LftjReplay, DuckReplay]:
    pytest.importorskip("duckdb")
    workload = workloads.named(f"order-book-500-by-{batch}")
    found = LftjReplay(workload, changes(count)), DuckReplay(workload, changes(count))
    for side in found:
        side.load()
    return found


def expected_heads(rows: list[dict[str, int]]) -> dict[str, list[tuple[int, float]]]:
    """The heads by their definition, of rows that are there."""
    found: dict[str, dict[int, float]] = {head: {} for head in order_book.HEADS}
    for side, name, best in (("bid", "BIDS", max), ("ask", "ASKS", min)):
        here = [row for row in rows if row["relation"] == name]
        for row in here:
            broker, price, volume = row["broker"], row["price"], row["volume"]
            value, amount = found[f"{side}_value"], found[f"{side}_volume"]
            value[broker] = value.get(broker, 0) + price * volume
            amount[broker] = amount.get(broker, 0) + volume
            found[f"best_{side}"][broker] = best(price, found[f"best_{side}"].get(broker, price))
            level = found[f"{side}_level"]
            level[price] = level.get(price, 0) + volume
        found[f"{side}_vwap"] = {b: value[b] / n for b, n in amount.items() if n} if here else {}
    return {head: sorted(values.items()) for head, values in found.items()}


@pytest.mark.parametrize("batch", [1, 100])
def test_oracle_heads_of_both_sides_after_every_batch(batch: int) -> None:
    count = 120 if batch == 1 else 2_000
    ours, theirs = sides(count, batch)
    held: Counter[tuple[tuple[str, int], ...]] = Counter()
    done = 0
    for (end, mine), (_, yours) in zip(
        ours.batches(ours.cuts(batch)), theirs.batches(theirs.cuts(batch)), strict=True
    ):
        for row in ours.changes.slice(done, end - done).to_pylist():
            held[tuple((name, value) for name, value in row.items() if name != "weight")] += row["weight"]
        done = end
        ours.apply(ours.prepare(mine))
        theirs.apply(theirs.prepare(yours))
        assert set(held.values()) <= {0, 1}
        expected = expected_heads([dict(row) for row, there in held.items() if there])
        for side in (ours, theirs):
            assert {head: sorted(rows) for head, rows in side.heads().items()} == expected
    assert done == count
    ours.workspace.verify()


def test_a_replay_that_differs_at_a_checkpoint_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, _ = sides(300, 100)
    ours.first()
    monkeypatch.setattr(LftjReplay, "heads", lambda self: {"best_bid": [(1, 2)]})
    with pytest.raises(AssertionError, match="at the checkpoints"):
        list(ours.times(1, 0.0))


def test_sampled_changes_are_single_and_evenly_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_book_replay, "SAMPLE", 30)
    _, theirs = sides(300, 1)
    expected = theirs.first()
    applied: list[int] = []
    batches = Replay.batches

    def noted(self, cuts):  # type: ignore[no-untyped-def]
        applied[:] = cuts
        return batches(self, cuts)

    monkeypatch.setattr(Replay, "batches", noted)
    assert len(list(theirs.times(1, 0.0))) == 30
    assert {end for end in applied if end % 10 == 0} == set(range(10, 301, 10))
    assert {end - 1 for end in applied if end % 10 == 0} <= set(applied)
    found = theirs.figures()
    assert found["timed batches"] == 30
    assert found["changes/s"] == pytest.approx(300 / found["total s"])
    assert theirs._expected == expected


def test_a_batch_adds_its_changes_up() -> None:
    row = {"relation": "BIDS", "time": 1, "id": 1, "broker": 1, "volume": 5, "price": 7}
    other = {**row, "id": 2}
    rows = [
        {**row, "weight": -1},
        {**other, "weight": 1},
        {**row, "weight": 1},
        {**other, "relation": "ASKS", "weight": 1},
    ]
    part = pa.Table.from_pylist(rows).select(["relation", "weight", *order_book.COLUMNS])
    assert order_book_replay._net(part, "bids").to_pylist() == [
        {name: value for name, value in {**other, "weight": 1}.items() if name != "relation"}
    ]
    assert order_book_replay._net(part, "asks").num_rows == 1


# -- existence on a sliding window -------------------------------------------


def hubs(edges: set[tuple[int, int]]) -> set[int]:
    return {a for a, b in edges for c in {d for s, d in edges if s == b} if (a, c) in edges}


def test_steps_of_a_window_are_the_differences_of_its_contents() -> None:
    source, destination = arrivals(4)
    edges = list(zip(source.tolist(), destination.tolist(), strict=True))
    held = set(edges[:60])
    for number, step in enumerate(window_steps(source, destination, 60), start=1):
        for sign, edge in step:
            assert (edge in held) == (sign < 0)
            (held.add if sign > 0 else held.remove)(edge)
        assert held == set(edges[number : number + 60])
    assert number == len(edges) - 60


def small_window() -> tuple[Workload, dict[str, pa.Table]]:
    source, destination = arrivals(5)
    tables = {"e": pa.table({"src": source, "dst": destination})}
    return replace(workloads.named("existence-random-8"), window=150), tables


def test_figures_of_a_window_count_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_window, "WARM_UP_STEPS", 20)
    monkeypatch.setattr(edge_window, "STEPS", 200)
    workload, tables = small_window()
    window = Window(workload, tables)
    window.load()
    edges = set(zip(window.source[:150].tolist(), window.destination[:150].tolist(), strict=True))
    assert not any(a == b for a, b in edges)
    assert window.first() == len(hubs(edges))
    times = list(window.times(1, 0.0))
    steps = islice(window_steps(window.source, window.destination, 150), 20, 220)
    assert len(times) == sum(len(step) for step in steps)
    found = window.figures()
    assert (found["steps"], found["changes"]) == (200, len(times))
    parts = sum(found[name] for name in ("matches", "opens", "nexts", "seeks"))
    assert found["operations and matches"] == pytest.approx(parts)
    ratio = found["operations of delta rules"] / found["operations and matches"]
    assert found["operations ratio"] == pytest.approx(ratio)
    assert found["edges in the window"] == len(
        set(zip(window.source[220:370].tolist(), window.destination[220:370].tolist(), strict=True))
    )


def test_a_head_change_that_differs_from_the_delta_rules_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload, tables = small_window()
    window = Window(workload, tables)
    window.load()
    window.first()
    monkeypatch.setattr(Window, "_change_by_rules", lambda self, sign, edge: [(-1, 1)])
    with pytest.raises(AssertionError, match="by delta rules"):
        list(window.times(1, 0.0))


# -- in the harness ----------------------------------------------------------


def test_the_expected_hubs_are_those_of_the_first_window() -> None:
    workload = workloads.named("existence-random-8")
    window = Window(workload, {"e": datasets.table("stream-random-8")})
    window.load()
    assert window.first() == workload.expected
    assert window.delta[window.head].count == workload.expected


def test_quick_runs_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    selected = ["--only", "order-book", "--only", "existence", "--engines", "lftj,duckdb"]
    assert command.main(["--quick", *selected, "--out", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "results.json").read_text())
    rows = {(row["workload"], row["engine"]): row for row in written["measurements"]}
    assert set(rows) == {
        *((f"order-book-500-by-{batch}", engine) for batch in (1, 100) for engine in ("lftj", "duckdb")),
        ("existence-random-8", "lftj"),
    }
    assert {row["status"] for row in rows.values()} == {"ok"}
    batches = rows["order-book-500-by-100", "lftj"]
    assert batches["n_runs"] == 5
    assert batches["figures"]["p50 ms"] == pytest.approx(1000 * batches["median"])
    assert batches["answer"] == rows["order-book-500-by-1", "duckdb"]["answer"]
    text = (tmp_path / "results.md").read_text()
    assert "times faster than DuckDB" in text
    assert "| operations ratio" in text


def test_a_verdict_on_the_operations_ratio() -> None:
    workload = workloads.named("existence-mathoverflow")
    ours = Measurement("w", "lftj", 1, "ok", runs=[1.0], figures={"operations ratio": 12.5})
    (verdict,) = judge(workload, [ours])
    assert (verdict.value, verdict.floor_reached, verdict.goal_reached) == (12.5, True, False)
    assert verdict.asks == "operations of delta rules / lftj's"


# -- exact sums ---------------------------------------------------------------


def test_both_sides_sum_the_same_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """lftj's sums are compared with math.fsum, bit by bit, in its first run."""
    monkeypatch.setattr(signed_sums, "GROUPS", 50)
    workload = workloads.named("signed-sums-100000")
    tables = {"summands": signed_sums.random_summands(2_000)}
    figures = []
    for side in (MaintainedSums, DuckSums):
        subject = side(workload, tables)
        subject.load()
        assert subject.first() == 50
        assert len(list(subject.times(2, 0.0))) >= 2
        figures.append(subject.figures())
    assert figures[0]["summands/s"] > 0 and figures[0]["inexact groups"] == 0
    assert 0 <= figures[1]["inexact groups"] <= 50


def test_erased_summands_were_there() -> None:
    summands = signed_sums.random_summands(60_000).to_pydict()
    left = Counter[tuple[int, float]]()
    for group, value, weight in zip(*summands.values(), strict=True):
        left[group, value] += weight
        assert left[group, value] >= 0
    assert len({group for (group, _), count in left.items() if count}) == signed_sums.GROUPS
