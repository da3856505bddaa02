"""The maintenance benchmarks' own facts: changes, distances, fits, reports.  No time is asserted."""

from __future__ import annotations

import csv
import json
import re
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import lftj
from bench import __main__ as command
from bench import kills, trace_distance, workloads
from bench.distance import bound_fit
from bench.distance import plots as distance_plots
from bench.distance.bound_fit import Bound, Point
from bench.distance.edit_distance import Trace, distance, distance_by_sorting, full_trace
from bench.distance.measurement import GAPS, FamilyMeasurement, Skipped
from bench.distance.measurement import measure as measure_family
from bench.distance.report import DistanceResults
from bench.distance.workloads import FAMILIES, after, columns
from bench.graphs import rmat
from bench.maintenance import folders, journals
from bench.maintenance.edge_stream import EdgeStream, rmat_stream
from bench.maintenance.maintained import subject
from bench.report.markdown import number
from bench.report.measurement import MOST_RUNS, Measurement
from bench.report.verdict import judge, memory_ratio
from bench.workload import Target

TRIANGLE = "t(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
ORDER = ["a", "b", "c"]


def database(edges: list[tuple[int, int]]) -> lftj.Database:
    found = lftj.Database()
    found.load("edge", edges, columns=["src", "dst"])
    return found


# -- edit distance -----------------------------------------------------------


def operations(edges: list[tuple[int, int]]) -> set[tuple[object, ...]]:
    """The trace as ``Database.trace`` tells it."""
    rows = database(edges).trace(TRIANGLE, order=ORDER).to_pylist()
    found = {tuple(row.values()) for row in rows}
    assert len(found) == len(rows)
    return found


def test_worked_example_distance_of_two_unary_joins() -> None:
    """a = {1, 3}, b = {3, 9} and then b = {3, 5}: the next of b lands elsewhere, and so does what follows."""
    traces = []
    for last in (9, 5):
        db = lftj.Database()
        db.load("a", [(1,), (3,)], columns=["x"])
        db.load("b", [(3,), (last,)], columns=["x"])
        traces.append(full_trace(db, "m(x) <- a(x), b(x).", ["x"], 100))
    # in one only: b next 3 -> 9, a seek 9 -> end; in the other only: b next 3 -> 5, a seek 5 -> end
    assert distance(*traces) == 4
    assert distance(traces[0], traces[0]) == 0


@pytest.mark.parametrize("seed", range(5))
def test_oracle_distance_is_the_symmetric_difference_of_the_traces(seed: int) -> None:
    generator = np.random.default_rng(seed)
    edges = sorted({tuple(row) for row in generator.integers(0, 12, (60, 2)).tolist()})
    kept = [edge for edge in edges if generator.random() < 0.9] + [(3, 40), (40, 5)]
    before, after_ = (full_trace(database(rows), TRIANGLE, ORDER, 10_000) for rows in (edges, kept))
    expected = operations(edges) ^ operations(kept)
    assert distance(before, after_) == len(expected) == distance_by_sorting(before, after_)


def test_distance_from_an_empty_trace_is_the_other_one() -> None:
    empty = full_trace(database([(1, 2)]), TRIANGLE, ORDER, 100)
    none = Trace(np.empty((0, 9), np.int64), ())
    assert distance(none, empty) == len(empty)
    assert distance(none, none) == 0


def test_rows_whose_hashes_collide_are_compared_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    atoms = (("a", 0),)
    one, two = Trace(np.array([[1, 2], [3, 4]]), atoms), Trace(np.array([[1, 2], [3, 5]]), atoms)
    monkeypatch.setattr("bench.distance.edit_distance._hashes", lambda rows: rows[:, 0].astype(np.uint64))
    assert distance(one, two) == 2
    assert distance(one, Trace(np.array([[1, 2], [1, 4]]), atoms)) == 2


def test_a_trace_above_the_limit_leaves_the_size_out() -> None:
    (star,) = (family for family in FAMILIES if family.name == "star")
    found = measure_family(star, 300, {1: 1}, limit=50)
    assert isinstance(found, Skipped)
    assert "50 operations" in found.reason


# -- changes -----------------------------------------------------------------


def test_every_change_of_a_stream_is_a_change() -> None:
    source, destination = rmat(8)
    stream = rmat_stream(source, destination, 8)
    held = set(zip(source.tolist(), destination.tolist(), strict=True))
    for weight, edge in (next(stream) for _ in range(2_000)):
        assert (edge in held) == (weight < 0)
        (held.remove if weight < 0 else held.add)(edge)
    assert set(stream.edges) == held
    assert len(stream.edges) == len(held)


def test_a_stream_without_fresh_edges_brings_erased_ones_back() -> None:
    stream = EdgeStream([(1, 2), (2, 3)], iter([]), seed=3)
    for _ in range(50):
        assert {next(stream)[0], next(stream)[0]} == {1, -1}
        assert set(stream.edges) == {(1, 2), (2, 3)}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_changes_of_a_family_are_changes(family: object) -> None:
    assert isinstance(family, type(FAMILIES[0]))
    data = family.data(300)
    generator = np.random.default_rng(5)
    for count in (1, 40):
        for name, (gone, came) in family.next_change(generator, data, 300, count).items():
            assert np.isin(gone, data[name]).all()
            assert not np.isin(came, data[name]).any()
            following = after(data, {name: (gone, came)})[name]
            assert len(following) == len(data[name]) - len(gone) + len(came)
            assert (np.diff(following) > 0).all()


def rows_of(words: np.ndarray) -> set[tuple[int, int]]:
    first, second = columns(words)
    return set(zip(first.tolist(), second.tolist(), strict=True))


def test_points_count_what_the_traces_and_the_changes_say() -> None:
    (family,) = (family for family in FAMILIES if family.name == "triangle-uniform")
    measurement = FamilyMeasurement(family, 200, 100_000)
    before = rows_of(measurement.data["e"])
    points = list(measurement.commits(np.random.default_rng(1), 6, 1))
    now = rows_of(measurement.data["e"])
    rule = family.rule.replace("h(", "t(").replace("e(", "edge(")
    traces = []
    for rows in (before, now):
        table = database(sorted(rows)).trace(rule, order=measurement.order)
        traces.append({tuple(row.values()) for row in table.to_pylist()})
    assert [point.gap for point in points] == list(GAPS)
    for point in points:
        assert point.change == len(before ^ now)
        assert point.distance == len(traces[0] ^ traces[1])
        assert point.trace == len(traces[1])


# -- fits --------------------------------------------------------------------


def point(operations: int, distance: int, surgeries: int = 1, tuples: int = 1024, **more: float) -> Point:
    names = [field.name for field in fields(Point)]
    given = {"family": "star", "change": 1, "trace": 100, "seconds": 1.0, "recompute_seconds": 2.0}
    found = Point(**{**dict.fromkeys(names, 0), **given})
    return replace(
        found, operations=operations, distance=distance, surgeries=surgeries, tuples=tuples, **more
    )


def test_oracle_the_least_bound_is_that_of_a_search_over_a_grid() -> None:
    generator = np.random.default_rng(4)
    drawn = (generator.integers(low, high, 40).tolist() for low, high in ((1, 500), (0, 60), (1, 30)))
    points = [point(*counts) for counts in zip(*drawn, strict=True)]
    least = bound_fit.least_bound(points)
    assert all(least.of(p) >= p.operations * (1 - 1e-9) for p in points)

    def cost(bound: Bound) -> float:
        return sum(bound.of(p) / p.operations for p in points)

    best = min((bound for c in np.linspace(0, 20, 201) for bound in [_tightest(float(c), points)]), key=cost)
    assert cost(least) <= cost(best) * (1 + 1e-9)


def _tightest(c: float, points: list[Point]) -> Bound:
    """For a fixed c the least c' that bounds everything."""
    return Bound(c, max(0.0, max((p.operations - c * p.claimed) / p.surgeries for p in points)))


def test_a_line_through_the_points_is_fitted_and_bounds_them() -> None:
    points = [point(30 * d + 5 * s, d, s) for d, s in ((1, 1), (2, 1), (5, 3), (9, 2))]
    for found in (bound_fit.least_bound(points), bound_fit.least_squares(points)):
        assert found.c == pytest.approx(3.0)  # log2(1024) is 10
        assert found.c_paid == pytest.approx(5.0)


def test_a_ratio_that_grows_with_the_data_fails_the_claim_and_a_constant_one_does_not() -> None:
    grows = [point(n, 0, tuples=n) for n in (1_000, 10_000, 100_000)]
    assert bound_fit.growth(grows) == pytest.approx(1.0)
    assert bound_fit.fails(grows)
    assert not bound_fit.fails([point(40, 0, tuples=n) for n in (1_000, 10_000, 100_000)])
    assert not bound_fit.fails(grows[:1])


def test_crossover_lies_between_the_changes_where_the_faster_strategy_differs() -> None:
    points = [point(1, 1, change=k, seconds=k * 0.01, recompute_seconds=1.0) for k in (1, 10, 1_000)]
    assert bound_fit.crossover(points) == pytest.approx(100.0)
    assert bound_fit.crossover(points[:2]) is None
    assert bound_fit.crossover(points[2:]) == 1_000


# -- the report --------------------------------------------------------------


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace-distance")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_distance, "QUICK_SIZES", (100, 400))
        assert trace_distance.main(["--quick", "--out", str(folder)]) == 0
    return folder


def test_quick_measures_every_family_and_writes_report_points_and_plots(quick: Path) -> None:
    results = DistanceResults.from_json(json.loads((quick / "results.json").read_text()))
    assert results.complete
    assert set(results.families()) == {family.name for family in FAMILIES}
    assert {point.gap for point in results.points} == set(GAPS)
    for plot in ("operations", "times", "records"):
        assert (quick / f"{plot}.png").stat().st_size > 5_000
        assert (quick / f"{plot}.svg").exists()
    rows = list(csv.DictReader((quick / "points.csv").open()))
    assert [int(row["operations"]) for row in rows] == [point.operations for point in results.points]


def test_the_report_is_made_of_the_points_alone(quick: Path) -> None:
    results = DistanceResults.from_json(json.loads((quick / "results.json").read_text()))
    text = (quick / "report.md").read_text()
    assert results.as_markdown() == text
    for gap in GAPS:
        for hostile in (False, None):
            found = bound_fit.usable(results.of(gap, hostile))
            bound = bound_fit.least_bound(found)
            assert all(bound.of(point) >= point.operations * (1 - 1e-9) for point in found)
            said = f"{number(bound.c)} * distance * log2(n) + {number(bound.c_paid)} * (surgeries + dropped)"
            assert said in text
            hardest = max(
                found,
                key=lambda p: p.operations / (p.distance * np.log2(p.tuples) + p.surgeries + p.dropped),
            )
            assert f"{hardest.operations:,} operations, distance {hardest.distance:,}" in text
    failing = {name for gap in GAPS for name in results.failing(gap)}
    said_to_fail = re.search(r"\*\*The claim fails\*\* for (.*):", text)
    assert set(said_to_fail[1].split(", ") if said_to_fail else []) == failing


def test_matches_are_bounded_by_regions_and_exact_records_match_less_than_coarse_ones(quick: Path) -> None:
    results = DistanceResults.from_json(json.loads((quick / "results.json").read_text()))
    for found in results.points:
        assert found.regions <= found.surgeries + found.matches
        assert found.empty_regions <= found.regions
    coarse = [sum(p.matches for p in results.of(gap, family="coarse")) for gap in GAPS]
    assert coarse[0] < coarse[1]


def test_a_report_without_points_and_one_that_is_partial_say_so(tmp_path: Path) -> None:
    machine = {
        "processor": "P", "cores": 2, "memory_bytes": 2**30, "system": "S", "python": "CPython 3",
        "versions": {"lftj": "0"}, "date": "today", "load": 0.0,
    }  # fmt: skip
    results = DistanceResults(machine, skipped=[Skipped("star", 10, "too long")])
    assert "Partial" in results.as_markdown()
    assert "star at 10 tuples: too long" in results.as_markdown()
    assert distance_plots.draw(results, tmp_path) == []
    results.points = [point(5, 1, gap=gap) for gap in GAPS]
    assert "growth cannot be told" in results.as_markdown()


def test_an_unknown_workload_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        trace_distance.main(["--only", "nothing"])
    assert stop.value.code == 2
    assert "no workload has 'nothing'" in capsys.readouterr().err


def test_sizes_for_which_the_time_does_not_suffice_are_named(tmp_path: Path) -> None:
    chosen = ["--only", "toggled", "--sizes", "20,10", "--minutes", "0", "--out", str(tmp_path)]
    assert trace_distance.main(chosen) == 0
    results = DistanceResults.from_json(json.loads((tmp_path / "results.json").read_text()))
    assert results.options == "only toggled; sizes 10, 20" and not results.points
    assert [(size.size, size.reason) for size in results.skipped] == [
        (10, "the time was over"),
        (20, "the time was over"),
    ]


def test_sizes_that_are_none_are_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        trace_distance.main(["--sizes", "1000,many"])
    assert "'1000,many': numbers of tuples, at least 10" in capsys.readouterr().err


# -- maintenance workloads in the harness ------------------------------------


@pytest.mark.parametrize("name", ["commit-rmat-9", "apply-many-rmat-9", "build-rmat-9", "bulk-load-rmat-9"])
def test_variants_of_a_maintenance_workload_find_the_expected_count(name: str) -> None:
    workload = workloads.named(name)
    tables = {relation: _table(table) for relation, table in workload.tables.items()}
    for key in workload.queries:
        engine, _, variant = key.partition(":")
        if engine == "lftj":
            found = subject(workload, variant, tables)
            if workload.task != "bulk load":
                found.load()
            assert found.first() == workload.expected


def _table(name: str):  # type: ignore[no-untyped-def]
    from bench import datasets

    return datasets.table(name)


@pytest.mark.in_turns
def test_quick_maintenance_runs_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each workload lftj and one variant; that all variants find what is expected is tested above."""
    monkeypatch.setattr(command, "_keys", lambda workload, engines: list(workload.queries)[:2])
    selected = ["--only", "build-rmat", "--only", "commit-rmat", "--engines", "lftj"]
    assert command.main(["--quick", *selected, "--out", str(tmp_path)]) == 0
    written = json.loads((tmp_path / "results.json").read_text())
    rows = {(row["workload"], row["engine"]): row for row in written["measurements"]}
    assert len(rows) == 4
    assert {row["status"] for row in rows.values()} == {"ok"}
    commits = rows["commit-rmat-9", "lftj"]
    assert commits["n_runs"] == 2_000
    assert len(commits["runs"]) == 101
    assert commits["figures"]["p50 ms"] == pytest.approx(1000 * commits["median"])
    assert commits["figures"]["p50 ms"] <= commits["figures"]["p99 ms"] <= commits["figures"]["max ms"]
    assert rows["build-rmat-9", "lftj"]["figures"]["bytes/record"] > 0
    assert "| p99 ms" in (tmp_path / "results.md").read_text()


def test_engines_without_a_query_are_listed_for_joins_and_not_for_maintained_rules() -> None:
    commits, joins = workloads.named("commit-rmat-9"), workloads.named("triangles-rmat-10")
    assert command._keys(commits, ["lftj", "duckdb", "pathway"]) == list(commits.queries)
    assert "graphblas" in command._keys(joins, ["lftj", "graphblas", "pathway"])
    assert "pathway" not in command._keys(joins, ["lftj", "pathway"])


def test_verdicts_on_memory_and_on_bytes_per_record() -> None:
    workload = replace(
        workloads.named("bulk-load-pathway"),
        targets=(Target("memory ratio", 5, 20, "pathway"), Target("bytes/record", 24, 12)),
    )
    ours = Measurement("w", "lftj", 1, "ok", runs=[1.0], peak_bytes=100, figures={"bytes/record": 13.0})
    theirs = Measurement("w", "pathway", 1, "ok", runs=[9.0], peak_bytes=700)
    memory, record = judge(workload, [ours, theirs])
    assert (memory.value, memory.floor_reached, memory.goal_reached) == (7.0, True, False)
    assert (record.value, record.floor_reached, record.goal_reached) == (13.0, True, False)
    absent = Measurement("w", "pathway", 1, "not installed")
    assert memory_ratio([ours, absent], "pathway") == (None, "Pathway: not installed")


def test_very_many_runs_are_written_as_percentiles() -> None:
    runs = [float(run) for run in range(MOST_RUNS + 1)]
    row = Measurement("w", "lftj", 1, "ok", runs=runs, processor_seconds=runs).as_json()
    assert (row["n_runs"], row["median"], len(row["runs"])) == (MOST_RUNS + 1, 100.0, 101)
    assert row["runs"][0] == 0.0
    assert row["runs"][50] == 100.0
    assert row["runs"][-1] == 200.0


# -- kills -------------------------------------------------------------------


@pytest.mark.in_turns
def test_a_short_run_of_kills_compares_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert kills.main(["--kills", "12", "--changes", "20000", "--seed", "3"]) == 0
    told = re.match(r"12 kills survived, [\d,]+ transactions with ([\d,]+) changes", capsys.readouterr().out)
    assert told is not None and int(told[1].replace(",", "")) >= 20_000


def test_a_run_of_kills_without_options_is_the_promised_one() -> None:
    assert (kills.KILLS, kills.CHANGES) == (1_000, 10_000_000)
    oracle = kills.Oracle()
    oracle.follow(3)
    before = oracle.changes
    number = oracle.number_behind(5_000)
    oracle.follow(number - 1)
    assert oracle.changes < before + 5_000
    oracle.follow(number)
    assert oracle.changes >= before + 5_000


def test_what_a_folder_costs_is_measured_beside_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"SCALE": 8, "SINGLE": 21, "TOGETHER": 50, "ROUNDS": 2, "COMMITS": 2}.items():
        monkeypatch.setattr(folders, name, value)
    folders.main(["--rows", "1000"])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:12] for line in lines if line[0] != " "] == [
        *("one edge, in", "one edge, in", "600 bytes wr", "100 changes,", "100 changes,"),
        *("load 1,000 t", "install 1,00", "open 1,000 t", "open 1,000 t"),
    ]


def test_the_journal_is_measured_beside_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"ROUNDS": 2, "COMMITS": 5}.items():
        monkeypatch.setattr(journals, name, value)
    monkeypatch.setattr(sys, "argv", ["journals", str(tmp_path)])
    journals.main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(line[0], line[4]) for line in lines] == [
        (rows, store) for rows in ("1", "1,000") for store in ("file", "SQLite")
    ]


@pytest.mark.parametrize("wrong", ["edge", "out", "tri", "transaction"])
def test_the_oracle_of_kills_sees_a_difference(wrong: str) -> None:
    workspace = kills.Workspace()
    workspace.load("edge", [(-1, 0)], columns=["a", "b"])
    workspace.install(kills.RULES)
    oracle = kills.Oracle()
    for each in range(1, 31):
        kills._commit(workspace, each)
    returned = 30
    if wrong == "transaction":
        returned = 28
    else:
        oracle.follow(30)
        row = min(oracle.rows)
        if wrong == "edge":
            oracle.rows.remove(row)
            oracle.rows.add(row - 1)
        else:
            rule = {
                "out": "out[a] = count() <- edge(a, b), b > 0.",
                "tri": "tri(a, b, c) <- edge(a, b), c = b.",
            }
            workspace.install(rule[wrong], replace=True)
    with pytest.raises(AssertionError, match=wrong):
        oracle.compare(workspace, returned)
        oracle.compare_triangles(workspace)
