"""The benchmark of TPC-H: changes are refreshes, wrong answers are noticed, and the report has its tables."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from bench.tpch import __main__ as command
from bench.tpch import measures
from bench.tpch.peer import Peer, check
from bench.tpch.queries import QUERIES
from bench.tpch.tables import Refreshes, tables

pytestmark = pytest.mark.compiled


@cache
def loaded(data_folder: Path) -> dict[str, pa.Table]:
    pytest.importorskip("duckdb")
    if not (data_folder / "tpch-sf0.01").is_dir() or not (data_folder / "tpch-queries").is_dir():
        pytest.skip("no TPC-H in the data folder")
    return tables(0.01)


def test_orders_go_with_their_items_and_come_back(data_folder: Path) -> None:
    refreshes = Refreshes(loaded(data_folder), seed=1)
    first, second = refreshes.batch(5), refreshes.batch(3)
    gone = set(first["orders"][0]["o_orderkey"].to_pylist())
    assert len(gone) == 5 and not first["orders"][1].num_rows
    assert set(first["lineitem"][0]["l_orderkey"].to_pylist()) == gone
    items = loaded(data_folder)["lineitem"]["l_orderkey"].to_pylist()
    assert first["lineitem"][0].num_rows == sum(items.count(key) for key in gone)
    for name in ("orders", "lineitem"):
        assert second[name][1] == first[name][0]
    assert not gone & set(second["orders"][0]["o_orderkey"].to_pylist())


def test_a_wrong_head_is_noticed(data_folder: Path) -> None:
    kept = measures.Kept.by("delta", [QUERIES[6]], loaded(data_folder))
    peer, changes = Peer(loaded(data_folder)), Refreshes(loaded(data_folder), seed=1).batch(1_000)
    by_hand = measures.Kept.by("delta", [QUERIES[6]], loaded(data_folder), by_hand=True)
    for one in (kept, by_hand):
        one.check([peer.answer(QUERIES[6].sql)])
    peer.apply(changes)
    for one in (kept, by_hand):
        with pytest.raises(AssertionError, match=r"Q6, kept: .*, DuckDB "):
            one.check([peer.answer(QUERIES[6].sql)])


def test_the_row_of_a_sum_over_nothing() -> None:
    nothing, none = pa.table({"a": pa.nulls(1, pa.int64())}), pa.table({"a": pa.nulls(0, pa.int64())})
    check("rules", none, nothing, sums=False)
    with pytest.raises(AssertionError, match="0 rows, DuckDB 1"):
        check("SQL", none, nothing)


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ({"a": [2, 1], "b": [0.2, 0.1]}, "another order"),
        ({"a": [1, 2], "b": [0.1, 0.2 + 1e-11]}, "DuckDB"),
        ({"a": [1], "b": [0.1]}, "1 rows, DuckDB 2"),
        ({"a": [1, None], "b": [0.1, 0.2]}, "DuckDB"),
    ],
)
def test_answers_that_differ(found: dict[str, list[float | None]], complaint: str) -> None:
    expected = pa.table({"a": [1, 2], "b": [0.1, 0.2]})
    check("same", expected, expected, "a")
    check("near", pa.table({"a": [1, 2], "b": [0.1, 0.2 + 1e-15]}), expected, "a")
    with pytest.raises(AssertionError, match=complaint):
        check("other", pa.table(found), expected, "a")


@pytest.mark.in_turns
def test_the_report(data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(data_folder)
    command.main(["--quick", "--only", "3,12", "--strategies", "delta,views", "--out", os.fspath(tmp_path)])
    text = (tmp_path / "tpch.md").read_text(encoding="utf-8")
    assert text.strip() == capsys.readouterr().out.strip()
    assert text.startswith("# TPC-H by SQL, beside DuckDB (only 3,12; strategies delta,views)\n")
    lines = [line for line in text.splitlines() if line.startswith("| Q")]
    assert [line.split("|")[1].strip() for line in lines] == ["Q3", "Q12", "Q3", "Q3", "Q12", "Q12", "Q3"]
    assert [line.split("|")[2].strip() for line in lines[2:6]] == ["delta", "views"] * 2
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Asked once",
        "## Kept up to date",
        "## Read by no rule",
        "## All in one workspace",
        "## Single orders",
    ]


def test_what_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (("--only", "1,23"), ("--measure", "twice"), ("--strategies", "guess")):
        with pytest.raises(SystemExit):
            command.main([option, value])
        assert f"{option}: {value.split(',')[-1]!r} is none of" in capsys.readouterr().err
