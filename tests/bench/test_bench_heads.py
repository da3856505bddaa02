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
from bench.maintenance import edge_window, signed_sums
from bench.maintenance.edge_window import Window, window_steps
from bench.maintenance.signed_sums_run import DuckSums, MaintainedSums
from bench.report.measurement import Measurement
from bench.report.verdict import judge
from bench.workload import Workload

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


@pytest.mark.in_turns
def test_quick_runs_end_to_end(tmp_path: Path) -> None:
    selected = ["--only", "existence", "--engines", "lftj"]
    assert command.main(["--quick", *selected, "--out", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "results.json").read_text())
    rows = {(row["workload"], row["engine"]): row for row in written["measurements"]}
    assert set(rows) == {("existence-random-8", "lftj")}
    row = rows["existence-random-8", "lftj"]
    assert row["status"] == "ok"
    assert row["figures"]["p50 ms"] == pytest.approx(1000 * row["median"])
    text = (tmp_path / "results.md").read_text()
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
