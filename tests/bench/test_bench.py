"""The benchmarks' own facts: generated data, statistics, harness, end to end.  No time is asserted."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import __main__ as command
from bench import child, datasets, demo, graphs, harness, workloads
from bench.joins import startup
from bench.joins.patterns import RMAT_COUNTS, adversarial, triangles
from bench.peers import engine
from bench.report import markdown
from bench.report.measurement import Measurement
from bench.report.results import Results
from bench.report.sweep import Point, Sweep
from bench.report.sweep import run as run_sweep
from bench.report.verdict import Verdict, judge, ratio
from bench.workload import MAINTENANCE, Target, Workload

needs_duckdb = pytest.mark.skipif(
    importlib.util.find_spec("duckdb") is None, reason="duckdb is not installed"
)


def _triangles_by_brute_force(source: np.ndarray, destination: np.ndarray) -> int:
    size = int(max(source.max(), destination.max())) + 1
    adjacent = np.zeros((size, size))  # floats, whose products are quick; small whole ones are exact
    adjacent[source, destination] = 1
    return int(((adjacent @ adjacent) * adjacent).sum())


# -- generated data ----------------------------------------------------------


@pytest.mark.parametrize("scale", [8, 9, 10])
def test_oracle_rmat_has_the_known_triangles(scale: int) -> None:
    source, destination = graphs.rmat(scale)
    assert (source < destination).all()
    assert len(np.unique(np.stack([source, destination]), axis=1).T) == len(source)
    assert _triangles_by_brute_force(source, destination) == RMAT_COUNTS[scale]


def test_rmat_is_the_same_each_time_and_differs_by_seed() -> None:
    assert np.array_equal(graphs.rmat(8)[0], graphs.rmat(8)[0])
    assert not np.array_equal(graphs.rmat(8)[0], graphs.rmat(8, seed=2)[0])


def test_rmat_of_the_targets_has_the_edges_that_they_say() -> None:
    assert len(graphs.rmat(17)[0]) == 971_356


@pytest.mark.parametrize("spokes", [1, 2, 5, 40])
def test_oracle_star_has_3n_minus_2_triangles(spokes: int) -> None:
    source, destination = graphs.star(spokes)
    assert len(source) == 2 * spokes - 1
    assert _triangles_by_brute_force(source, destination) == 3 * spokes - 2 == adversarial(spokes).expected


def test_oriented_keeps_each_undirected_edge_once() -> None:
    source, destination = graphs.oriented(np.array([3, 1, 2, 3]), np.array([1, 3, 2, 0]))
    assert source.tolist() == [0, 1]
    assert destination.tolist() == [3, 3]


def test_generated_orders_refer_to_customers_and_items_are_distinct() -> None:
    customer, orders, items = (
        datasets.table(f"orders-100/{name}") for name in ("customer", "orders", "lineitem")
    )
    assert set(orders["custkey"].to_pylist()) <= set(customer["custkey"].to_pylist())
    assert set(items["orderkey"].to_pylist()) == set(orders["orderkey"].to_pylist())
    assert len(items.group_by(["orderkey", "linenumber"]).aggregate([])) == items.num_rows


def test_a_data_set_that_is_not_there_says_how_to_point_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LFTJ_DATA", str(tmp_path))
    with pytest.raises(datasets.DataMissing, match="LFTJ_DATA"):
        datasets.table("email-enron")
    row = harness.measure(workloads.named("triangles-email-enron"), "lftj", tmp_path)
    assert row.status == "no data"


def test_data_folder_is_taken_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lsqb-sf0.1").mkdir()
    pq.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / "lsqb-sf0.1" / "knows.parquet")
    monkeypatch.setenv("LFTJ_DATA", str(tmp_path))
    assert datasets.table("lsqb/knows").num_rows == 1


def test_a_file_is_written_once(tmp_path: Path) -> None:
    path = datasets.file("star-3", tmp_path)
    before = path.stat().st_mtime_ns
    assert datasets.file("star-3", tmp_path).stat().st_mtime_ns == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["star-3.parquet"]


# -- workloads ---------------------------------------------------------------


def test_names_of_workloads_are_unique_and_found_again() -> None:
    sweeps = [
        workloads.sweep_triangles(range(8, 18)),
        workloads.sweep_adversarial(range(10)),
        workloads.sweep_commits(range(8, 18)),
    ]
    steps = [workload for sweep in sweeps for _, workload in sweep]
    by_name: dict[str, Workload] = {}
    for workload in [*workloads.full(), *workloads.quick(), *steps]:
        known = by_name.setdefault(workload.name, workload)
        assert (known.task, known.tables, known.queries) == (workload.task, workload.tables, workload.queries)
        found = workloads.named(workload.name)
        assert (found.task, found.expected) == (workload.task, workload.expected)


def test_every_workload_asks_lftj_and_every_ratio_names_a_query_of_the_peer() -> None:
    for workload in [*workloads.full(), *workloads.quick()]:
        assert "lftj" in workload.queries
        assert {key.partition(":")[0] for key in workload.queries} <= set(engine.NAMES)
        for target in workload.targets:
            assert target.measure != "ratio" or target.peer in workload.queries


@needs_duckdb
@pytest.mark.parametrize(
    "workload",
    [w for w in workloads.quick() if w.tables and "duckdb" in w.queries and w.task not in MAINTENANCE],
    ids=lambda w: w.name,
)
def test_differential_quick_workloads_have_the_counts_that_duckdb_finds(workload: Workload) -> None:
    peer = engine.engine_class("duckdb")(1)
    peer.load({name: datasets.table(table) for name, table in workload.tables.items()}, workload.ends)
    query = workload.queries["duckdb"]
    ask: Callable[[str], int] = {"list": peer.rows, "load": peer.index}.get(workload.task, peer.count)
    assert ask(query) == workload.expected


# -- statistics and verdicts -------------------------------------------------


def _row(name: str, *runs: float, **more: object) -> Measurement:
    row = Measurement("w", name, 1, status="ok", runs=list(runs), answer=10)
    for attribute, value in more.items():
        setattr(row, attribute, value)
    return row


def test_median_and_quartiles() -> None:
    row = _row("lftj", 5.0, 1.0, 2.0, 4.0, 3.0)
    assert row.median == 3.0
    assert row.quartiles == (2.0, 4.0)
    assert _row("lftj", 1.0).quartiles is None
    assert _row("lftj").median is None


def test_a_first_run_stands_in_when_the_time_limit_left_no_other() -> None:
    row = _row("duckdb", status="time limit", first_seconds=50.0, limit_seconds=60.0)
    assert row.median == 50.0


def test_repeated_makes_the_least_number_of_slow_runs_and_more_of_quick_ones() -> None:
    assert len(list(child.repeated(lambda: None, least=5, spend=0.0))) == 5
    assert len(list(child.repeated(lambda: None, least=5, spend=9.0, most=7))) == 7


def test_ratio_of_a_peer_that_ran_out_of_time_is_a_lower_bound() -> None:
    rows = [_row("lftj", 2.0), _row("duckdb", status="time limit", limit_seconds=60.0)]
    assert ratio(rows, "duckdb") == (30.0, True, "")
    workload = replace(workloads.quick()[0], targets=(Target("ratio", 10, 50, "duckdb"),))
    (verdict,) = judge(workload, rows)
    assert verdict.floor_reached is True
    assert verdict.goal_reached is None  # 30 times or more may or may not be 50


@pytest.mark.parametrize("status", ["wrong answer", "failed", "not installed", "no data"])
def test_no_ratio_without_a_right_answer_on_both_sides(status: str) -> None:
    broken = _row("duckdb", status=status)
    assert ratio([_row("lftj", 2.0), broken], "duckdb") == (None, False, f"DuckDB: {status}")
    broken = _row("lftj", status=status)
    assert ratio([broken, _row("duckdb", 2.0)], "duckdb") == (None, False, f"lftj: {status}")


def test_verdicts_on_seconds_and_on_rows_per_second() -> None:
    workload = replace(
        workloads.quick()[0], expected=10, targets=(Target("seconds", 2, 1), Target("rows/s", 4, 6))
    )
    slow, rate = judge(workload, [_row("lftj", 2.0)])
    assert (slow.value, slow.floor_reached, slow.goal_reached) == (2.0, True, False)
    assert (rate.value, rate.floor_reached, rate.goal_reached) == (5.0, True, False)


def test_a_target_without_a_floor_has_no_verdict_on_it() -> None:
    assert Verdict("w", Target("ratio", None, 1, "graphblas"), 2.0).floor_reached is None


# -- growth ------------------------------------------------------------------


def test_a_sweep_stops_asking_an_engine_that_ran_out_of_time() -> None:
    steps = [(size, replace(workloads.quick()[0], name=f"w{size}")) for size in (10, 20, 40)]
    asked: list[tuple[str, str]] = []

    def measure(workload: Workload, name: str) -> Measurement:
        asked.append((workload.name, name))
        if name == "duckdb" and workload.name == "w20":
            return _row(name, status="time limit", limit_seconds=1.0)
        return _row(name, 1.0)

    known = {"w10": [_row("lftj", 7.0)]}
    sweep = Sweep("s", "growth", "rows")
    run_sweep(sweep, steps, ["lftj", "duckdb"], known, measure)
    assert asked == [("w10", "duckdb"), ("w20", "lftj"), ("w20", "duckdb"), ("w40", "lftj")]
    assert sweep.curve("lftj") == [(10, 7.0), (20, 1.0), (40, 1.0)]
    assert sweep.curve("duckdb") == [(10, 1.0)]
    assert "time limit" in sweep.as_markdown()


def test_exponent_of_growth_is_the_slope_on_log_axes() -> None:
    sweep = Sweep("s", "growth", "rows")
    for size in (10, 20, 40, 80, 160):
        sweep.points.append(Point(size, _row("duckdb", size**1.5)))
    exponent = sweep.exponent("duckdb")
    assert exponent is not None
    assert round(exponent, 6) == 1.5


# -- results -----------------------------------------------------------------


def _results() -> Results:
    machine = {
        "processor": "P", "cores": 2, "memory_bytes": 2**30, "system": "S", "python": "CPython 3",
        "versions": {"lftj": "0"}, "date": "today", "load": 0.0,
    }  # fmt: skip
    return Results(machine)


def test_results_say_that_they_are_partial_and_what_is_missing(tmp_path: Path) -> None:
    results = _results()
    workload = replace(workloads.quick()[0], targets=(Target("ratio", 4, 10, "duckdb"),))
    results.planned = [(workload.title, "lftj"), (workload.title, "duckdb")]
    results.add(workload, _row("lftj", 1.0))
    results.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert f"Partial: the run ended early.** Not measured: {workload.title} (DuckDB)" in text
    written = json.loads((tmp_path / "results.json").read_text())
    assert written["complete"] is False
    assert written["missing"] == [[workload.title, "duckdb"]]


def test_results_show_an_engine_that_was_not_measured_and_why() -> None:
    results = _results()
    workload = workloads.quick()[0]
    results.complete = True
    results.add(workload, _row("lftj", 1.0))
    results.add(workload, _row("ladybug", status="not installed", detail="install lftj[bench]"))
    text = results.as_markdown()
    assert "Partial" not in text
    assert "not installed" in text
    assert "install lftj[bench]" in text
    assert results.wrong() == []


def test_a_wrong_answer_is_kept_apart() -> None:
    results = _results()
    results.add(workloads.quick()[0], _row("duckdb", status="wrong answer", detail="found 3"))
    assert [row.engine for row in results.wrong()] == ["duckdb"]


def test_markdown_table_escapes_bars() -> None:
    assert markdown.table(["a"], [["x|y"]]).splitlines() == ["| a    |", "|------|", "| x\\|y |"]


# -- the harness -------------------------------------------------------------


@needs_duckdb
def test_harness_measures_a_peer_in_a_process_of_its_own(tmp_path: Path) -> None:
    stages: list[str] = []
    workload = workloads.named("triangles-rmat-8")
    row = harness.measure(workload, "duckdb", tmp_path, runs=2, spend=0.0, progress=stages.append)
    assert (row.status, row.detail, row.answer, len(row.runs)) == ("ok", "", 3_868, 2)
    assert row.peak_bytes is not None
    assert row.base_bytes is not None
    assert row.peak_bytes >= row.base_bytes > 1 << 20
    assert stages == ["tables", "opening", "loading", "first run", "run 1", "run 2", "run 3"]


@needs_duckdb
def test_harness_ends_a_run_that_takes_too_long(tmp_path: Path) -> None:
    """Its first event comes after the run: loading, which may take half a second too, is a part of that."""
    row = harness.measure(replace(workloads.named("adversarial-500000"), limit=0.5), "duckdb", tmp_path)
    assert (row.status, row.detail) == ("time limit", "first run took more than 0.5 s")
    assert row.limit_seconds == 0.5
    assert row.peak_bytes is not None


@needs_duckdb
def test_a_wrong_answer_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[dict[str, object]] = []
    monkeypatch.setattr(child, "named", lambda name: replace(workloads.named(name), expected=1))
    file = datasets.file("rmat-8", tmp_path)
    child.measure(child.Assignment("triangles-rmat-8", "duckdb", {"edge": str(file)}, 3, 0.0), events.append)
    assert [event["event"] for event in events] == ["ready", "loaded", "answer", "done"]


@needs_duckdb
def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    file = datasets.file("star-2", tmp_path)
    broken = child.Assignment("triangles-rmat-8", "duckdb", {"wrong_name": str(file)}, 1, 0.0)
    follower = harness._Child(broken, True, 60.0, lambda stage: None)
    row = Measurement("triangles-rmat-8", "duckdb", 1)
    follower.follow(row)
    assert row.status == "failed"
    assert "edge" in row.detail


def test_an_engine_that_is_not_installed_has_a_row_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.engine_class("duckdb"), "module", "no_such_module")
    row = harness.measure(workloads.quick()[0], "duckdb", tmp_path)
    assert (row.status, row.version) == ("not installed", None)


def test_a_question_that_an_engine_has_no_form_for_says_so(tmp_path: Path) -> None:
    assert harness.measure(workloads.named("cliques-rmat-10"), "graphblas", tmp_path).status == "no query"


def test_startup_checks_the_answer_of_a_process() -> None:
    workload = Workload("w", "t", {}, {"lftj": "answer = 2"}, 1, task="process")
    row = Measurement("w", "lftj", 1)
    startup.measure(row, workload, 2, 60.0)
    assert (row.status, row.detail, row.runs) == ("wrong answer", "found 2", [])


def test_startup_reports_what_a_process_complained_of() -> None:
    workload = Workload("w", "t", {}, {"lftj": "raise SystemExit('no good')"}, 1, task="inside")
    row = Measurement("w", "lftj", 1)
    startup.measure(row, workload, 2, 60.0)
    assert (row.status, row.detail) == ("failed", "no good")


# -- end to end --------------------------------------------------------------


@needs_duckdb
@pytest.mark.in_turns
def test_quick_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quick", "--engines", "lftj,duckdb", "--only", "triangles", "--only", "list"]
    assert command.main([*arguments, "--out", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "results.json").read_text())
    assert report["complete"] is True
    assert {row["engine"] for row in report["measurements"]} == {"lftj", "duckdb"}
    assert {row["status"] for row in report["measurements"]} == {"ok"}
    assert all(row["peak_bytes"] and row["median"] for row in report["measurements"])
    assert "A selection: quick; only triangles, list; engines lftj, duckdb." in capsys.readouterr().out
    if importlib.util.find_spec("matplotlib") is not None:
        assert {"times.png", "times.svg", "memory.png", "memory.svg"} <= {p.name for p in tmp_path.iterdir()}


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = iter([_row("lftj", 1.0)])

    def measure(workload: Workload, name: str, *_: object, **__: object) -> Measurement:
        row = next(rows, None)
        if row is None:
            raise KeyboardInterrupt
        return replace(row, workload=workload.name)

    monkeypatch.setattr(harness, "measure", measure)
    assert command.main(["--quick", "--only", "paths", "--out", str(tmp_path)]) == 130
    report = json.loads((tmp_path / "results.json").read_text())
    assert report["complete"] is False
    assert len(report["measurements"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engines", "oracle"], "unknown engine oracle"),
        (["--only", "squares"], "no workload has 'squares'"),
    ],
)
def test_a_wrong_command_is_told_so(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_list_names_the_workloads_and_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["--list"])
    assert stop.value.code == 0
    assert "triangles-rmat-17" in capsys.readouterr().out.splitlines()


@needs_duckdb
def test_demo_compares_and_exits_with_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--scale", "10"]) == 0
    output = capsys.readouterr().out
    assert "24,305" in output
    assert "DIFFER" not in output
    assert "lftj query" in output


def test_triangles_of_a_graph_have_a_name_of_their_own() -> None:
    assert triangles("rmat-9", 1, "RMAT 9/8").name == "triangles-rmat-9"
