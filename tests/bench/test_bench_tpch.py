"""The benchmark of TPC-H queries kept up to date: changes are refreshes, and wrong heads are noticed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from bench import tpch, tpch_views

pytestmark = pytest.mark.compiled


@cache
def loaded(data_folder: Path) -> dict[str, pa.Table]:
    pytest.importorskip("duckdb")
    try:
        return tpch.tables(data_folder)
    except FileNotFoundError:
        pytest.skip("no TPC-H tables in the data folder")


def test_orders_go_with_their_items_and_come_back(data_folder: Path) -> None:
    refreshes = tpch_views.Refreshes(loaded(data_folder), seed=1)
    first, second = refreshes.batch(5), refreshes.batch(3)
    gone = {row[0] for row in first["orders"][0]}
    assert len(gone) == 5 and not first["orders"][1]
    assert {row[0] for row in first["lineitem"][0]} == gone
    for name in ("orders", "lineitem"):
        assert second[name][1] == first[name][0]
    assert not gone & {row[0] for row in second["orders"][0]}


def test_rows_of_the_table(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpch_views, "BATCHES", {2: 2})
    rows = list(tpch_views.measure("Q3", loaded(data_folder), ("delta", "views")))
    assert [row[:3] for row in rows] == [["Q3", "2", kept] for kept in ("delta", "views", "DuckDB, anew")]
    assert rows[0][5] == "0" and int(rows[1][5].replace(",", "")) > 0


def test_a_wrong_head_is_noticed(data_folder: Path) -> None:
    kept = tpch_views.Kept.by("delta", tpch.QUERIES["Q6"], loaded(data_folder))
    answers = tpch.Sql(loaded(data_folder)).answers(tpch.QUERIES["Q6"])
    kept.check(answers)
    with pytest.raises(AssertionError, match="revenue is not DuckDB's"):
        kept.check({"revenue": {(): 1}})
