"""oracle: the queries of Nexmark, as rules and as SQL, kept through transactions, against DuckDB."""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bench.nexmark import __main__ as command
from bench.nexmark.events import Tables, events, transactions
from bench.nexmark.peer import check
from bench.nexmark.queries import QUERIES, Query
from maintenance import Workspace

pytestmark = pytest.mark.compiled

N_EVENTS, FIRST, SIZE = 25_000, 21_000, 1_000
"""Of events, those that are loaded, and those of a transaction."""
STATEFUL = ("q4", "q5", "q7", "q8", "q9", "q11", "q15", "q18", "q20", "q23")


@cache
def all_events(per_second: float = 1_000) -> Tables:
    return events(N_EVENTS, per_second, disorder=30)


class Beside:
    """A query kept by a workspace, and DuckDB with the same rows."""

    def __init__(self, query: Query, written: str, strategy: str, per_second: float = 1_000) -> None:
        tables = all_events(per_second)
        self.query = query
        self.rest = list(transactions(tables, FIRST, SIZE))
        self.here = {name: table.slice(0, _before(table)) for name, table in tables.items()}
        self.workspace = Workspace()
        for name, table in {**self.here, **query.tables}.items():
            self.workspace.load(name, table)
        if written == "rules":
            self.workspace.install(query.rules, strategy=strategy)
        else:
            self.workspace.create_view("out", query.sql, strategy=strategy)

    def play(self, random: Random) -> None:
        """Rows come, and some of those that are there are taken back."""
        for coming in self.rest:
            with self.workspace.transaction() as tx:
                for name, table in self.here.items():
                    gone = sorted(random.sample(range(table.num_rows), 3))
                    tx.erase(name, table.take(gone))
                    stay = np.delete(np.arange(table.num_rows), gone)
                    self.here[name] = pa.concat_tables(
                        [table.take(stay), *_of(coming, name)]
                    ).combine_chunks()
                for name, table in coming.items():
                    tx.insert(name, table)
            self.compare()

    def compare(self) -> None:
        connection = duckdb.connect()
        for name, table in {**self.here, **self.query.tables}.items():
            connection.register(name, table)
        right = connection.sql(self.query.peer).to_arrow_table()
        check(self.query.name, self.workspace["out"].to_arrow(), right)


def _before(table: pa.Table) -> int:
    return int(np.searchsorted(table["event"].to_numpy(), FIRST))


def _of(coming: Tables, name: str) -> list[pa.Table]:
    return [coming[name]] if name in coming else []


@pytest.mark.in_turns
@pytest.mark.parametrize("written", ["rules", "sql"])
@pytest.mark.parametrize("name", QUERIES)
def test_kept_as_duckdb_answers(name: str, written: str) -> None:
    Beside(QUERIES[name], written, "auto").play(Random(name))


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", ["delta", "trace", "views"])
@pytest.mark.parametrize("name", STATEFUL)
def test_kept_by_every_strategy(name: str, strategy: str) -> None:
    beside = Beside(QUERIES[name], "rules", strategy)
    beside.rest = beside.rest[:2]
    beside.play(Random(name))


@pytest.mark.parametrize("name", ["q10", "q11", "q12", "q14", "q17"])
def test_events_of_a_day(name: str) -> None:
    """Hours of each kind, and sessions that end."""
    for written in ("rules", "sql"):
        Beside(QUERIES[name], written, "auto", per_second=0.3).play(Random(name))


def test_events_are_as_the_benchmark_has_them() -> None:
    tables = events(10_000, disorder=1)
    assert [tables[name].num_rows for name in ("person", "auction", "bid")] == [200, 600, 9_200]
    assert tables["auction"]["id"].to_pylist() == list(range(1_000, 1_600))
    assert tables["bid"].schema.field("date_time").type == pa.timestamp("ms")
    times = tables["bid"]["date_time"].to_pylist()
    assert times == sorted(times) and (times[-1] - times[0]).total_seconds() == pytest.approx(1, rel=0.01)
    hot = [bidder % 100 == 1 for bidder in tables["bid"]["bidder"].to_pylist()]
    assert 0.72 < sum(hot) / len(hot) < 0.8


def test_events_out_of_order_are_the_same_but_for_their_times() -> None:
    plain, moved = events(1_000), events(1_000, disorder=30)
    for name in plain:
        assert plain[name]["event"] == moved[name]["event"]
    times = moved["bid"]["date_time"].to_pylist()
    assert times != sorted(times)


def test_transactions_have_every_event_once() -> None:
    tables = events(1_000)
    parts = list(transactions(tables, 300, 90))
    numbers = [number for part in parts for table in part.values() for number in table["event"].to_pylist()]
    assert sorted(numbers) == list(range(300, 1_000)) and len(parts) == 8


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ({"a": [1], "b": [0.1]}, "1 rows, DuckDB 2"),
        ({"a": [1, 3], "b": [0.1, 0.2]}, "column 0"),
        ({"a": [1, None], "b": [0.1, 0.2]}, "column 0"),
        ({"a": [1, 2], "b": [0.1, 0.2 + 1e-11]}, "column 1"),
        ({"a": [1, 2], "b": [0.1, None]}, "column 1"),
    ],
)
def test_answers_that_differ(found: dict[str, list[Any]], complaint: str) -> None:
    expected = pa.table({"x": pa.array([2, 1], pa.int32()), "y": [Decimal("0.2"), Decimal("0.1")]})
    check("near", pa.table({"a": [1, 2], "b": [0.1 + 1e-15, 0.2]}), expected)
    with pytest.raises(AssertionError, match=complaint):
        check("other", pa.table(found), expected)


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--events", "9000", "--only", "q12", "--only", "q22", "--out", os.fspath(tmp_path)])
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert text.strip() == capsys.readouterr().out.strip()
    lines = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| q")]
    assert lines == ["query", "q12", "q22"] and "Geometric mean over DuckDB: " in text


def test_a_wrong_query_is_noticed() -> None:
    right = QUERIES["q12"]
    wrong = replace(right, rules=right.rules.replace("10s", "9s"))
    with pytest.raises(AssertionError, match=r"q12 as rules: .*DuckDB"):
        command.measured(wrong, events(9_000, 1_000), 9_000)
