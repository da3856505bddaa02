"""oracle: TUMBLE and HOP, functions of a table, against DuckDB's join with all windows that there are."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lftj.errors import SqlError, UnsupportedSqlError
from lftj.statements.time_windows import as_call
from maintenance import Workspace
from support.rows import rows_of

TYPES = {"t": pa.timestamp("ms"), "u": pa.timestamp("us", "UTC"), "d": pa.date32()}
WINDOWS = {  # a call: column, length, step and offset
    "TUMBLE(bid, t, INTERVAL 10 SECONDS)": ("t", "10 s", "10 s", "0 s"),
    "tumble(bid, t, INTERVAL 10 SECONDS, INTERVAL 3 SECONDS)": ("t", "10 s", "10 s", "3 s"),
    "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(t), INTERVAL '10' SECOND))": ("t", "10 s", "10 s", "0 s"),
    "TABLE(TUMBLE(DATA => TABLE bid, TIMECOL => DESCRIPTOR(t), SIZE => INTERVAL '1' MINUTE))": (
        *("t", "1 min", "1 min", "0 s"),
    ),
    "hop('bid', t, INTERVAL 2 SECONDS, INTERVAL 10 SECONDS)": ("t", "10 s", "2 s", "0 s"),
    "hop(bid, t, INTERVAL 3 SECONDS, INTERVAL 10 SECONDS, INTERVAL 1 SECOND)": ("t", "10 s", "3 s", "1 s"),
    "hop(bid, t, INTERVAL 10 SECONDS, INTERVAL 4 SECONDS)": ("t", "4 s", "10 s", "0 s"),
    "TABLE(HOP(TABLE bid, DESCRIPTOR(u), INTERVAL '5' SECOND, INTERVAL '15' SECOND))": (
        *("u", "15 s", "5 s", "0 s"),
    ),
    "TABLE(HOP(DATA => TABLE bid, TIMECOL => DESCRIPTOR(d), SLIDE => to_days(1), SIZE => to_days(2)))": (
        *("d", "2 days", "1 day", "0 s"),
    ),
}


def bids(random: Random, n: int) -> pa.Table:
    """Times of two minutes around 2000, some NULL; rows may be equal."""

    def moment(unit: int) -> int | None:
        return None if random.random() < 0.1 else (946_684_800 + random.randrange(-60, 60)) * unit

    return pa.table(
        {
            "a": [random.randrange(3) for _ in range(n)],
            "t": pa.array([moment(1000) for _ in range(n)], TYPES["t"]),
            "u": pa.array([moment(10**6) for _ in range(n)], TYPES["u"]),
            "d": pa.array([random.choice([None, *range(10_950, 10_965)]) for _ in range(n)], TYPES["d"]),
        }
    )


def by_all_windows(column: str, length: str, step: str, offset: str) -> str:
    """The same rows by a join with windows that begin at steps from the origin on."""
    moment = f"({column}::TIMESTAMPTZ AT TIME ZONE 'UTC')" if column == "u" else f"{column}::TIMESTAMP"
    first = f"TIMESTAMP '2000-01-03' + INTERVAL '{offset}' + (n * INTERVAL '{step}')"
    window = f"SELECT {first} AS s FROM range(-100_000, 1_000) AS r(n)"
    within = f"s <= {moment} AND {moment} < s + INTERVAL '{length}'"
    return f"SELECT a, t, u, d, s FROM bid JOIN ({window}) ON {within}"


@pytest.fixture
def peer() -> Any:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """In an order; zones and dates as moments of UTC."""
    found = [tuple(None if value is None else str(value)[:19] for value in row) for row in rows_of(table)]
    return sorted(found, key=repr)


@pytest.mark.in_turns
@pytest.mark.parametrize("call", WINDOWS)
def test_windows_of_a_table_once_and_kept(call: str, peer: Any) -> None:
    random = Random(call)
    table = bids(random, 40)
    workspace = Workspace()
    workspace.load("bid", table, bag=True, nulls="keep")
    is_date = WINDOWS[call][0] == "d"
    text = f"SELECT a, t, u, d, window_start{'::TIMESTAMP' if is_date else ''} AS s FROM {call}"
    grouped = f"SELECT a, window_start, count(*) AS n FROM {call} GROUP BY a, window_start, window_end"
    workspace.create_view("kept", text)
    workspace.create_view("grouped", grouped)
    for turn in range(4):
        peer.register("incoming", table)
        peer.execute("CREATE OR REPLACE TABLE bid AS FROM incoming")
        right = by_all_windows(*WINDOWS[call])
        expected = rows(peer.sql(right).to_arrow_table())
        counts = f"SELECT a, s, count(*) FROM ({right}) GROUP BY a, s"
        assert expected and rows(workspace.sql(text)) == expected
        assert rows(workspace["kept"].to_arrow()) == expected
        shown = "SELECT a, window_start::TIMESTAMP AS w, n FROM grouped" if is_date else "FROM grouped"
        assert rows(workspace.sql(shown)) == rows(peer.sql(counts).to_arrow_table())
        gone, come = table.slice(turn, 5), bids(random, 5)
        with workspace.transaction() as tx:
            tx.erase("bid", gone)
            tx.insert("bid", come)
        table = pa.concat_tables([table.slice(0, turn), table.slice(turn + 5), come])


def test_the_end_is_a_length_behind_the_beginning(peer: Any) -> None:
    workspace = Workspace()
    workspace.load("bid", bids(Random(0), 20), nulls="keep")
    found = workspace.sql(
        "SELECT DISTINCT window_end - INTERVAL 10 SECONDS = window_start AS same"
        " FROM hop(bid, t, INTERVAL 2 SECONDS, INTERVAL 10 SECONDS)"
    )
    assert found.to_pylist() == [{"same": True}]


@pytest.mark.parametrize(
    "moment",
    ["u + INTERVAL 90 MINUTES", "INTERVAL '-3.5 seconds' + u", "u - INTERVAL 1 HOUR"],
)
def test_a_moment_with_a_zone_is_moved_by_what_is_as_long_in_every_zone(moment: str, peer: Any) -> None:
    table = bids(Random(2), 20).select(["u"])
    workspace = Workspace()
    workspace.load("bid", table, nulls="keep", bag=True)
    peer.register("bid", table)
    text = f"SELECT {moment} AS m FROM bid"
    assert rows(workspace.sql(text)) == rows(peer.sql(text).to_arrow_table())
    with pytest.raises(UnsupportedSqlError, match="TIME ZONE, INTERVAL"):
        workspace.sql("SELECT u + INTERVAL 1 DAY FROM bid")


def test_date_bin_of_postgresql(peer: Any) -> None:
    table = bids(Random(3), 20).select(["t"])
    workspace = Workspace()
    workspace.load("bid", table, nulls="keep", bag=True)
    peer.register("bid", table)
    text = "SELECT date_bin({}, t, TIMESTAMP '2001-01-01 00:00:02') AS t FROM bid"
    right = peer.sql(text.format("INTERVAL 15 SECONDS").replace("date_bin", "time_bucket"))
    expected = rows(right.to_arrow_table())
    assert rows(workspace.sql(text.format("INTERVAL 15 SECONDS"))) == expected
    assert rows(workspace.sql(text.format("'15 seconds'"), dialect="postgres")) == expected


def test_of_what_with_names_and_of_a_view() -> None:
    workspace = Workspace()
    workspace.load("bid", bids(Random(1), 20), nulls="keep")
    workspace.create_view("few", "SELECT a, t FROM bid WHERE a > 0")
    of_view = "SELECT a, window_start FROM tumble(few, t, INTERVAL 5 SECONDS)"
    of_with = (
        "WITH few_of AS (SELECT a, t FROM bid WHERE a > 0)"
        " SELECT a, window_start FROM TABLE(TUMBLE(TABLE few_of, DESCRIPTOR(t), INTERVAL '5' SECOND))"
    )
    assert rows(workspace.sql(of_view)) == rows(workspace.sql(of_with)) != []
    assert workspace.tables_of(of_view) == {"few"}
    assert workspace.tables_of(of_with) == {"bid"}
    assert workspace.tables_of("FROM hop(data => bid, timecol => t, slide => null, size => null)") == {"bid"}


def test_the_text_of_a_view_stays_as_it_is() -> None:
    workspace = Workspace()
    workspace.load("bid", bids(Random(1), 20), nulls="keep")
    text = "SELECT a FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(t), INTERVAL '5' SECOND))"
    workspace.sql(f"CREATE VIEW v AS {text}")
    assert workspace.views["v"] == text


def test_mistakes_have_a_place_in_the_text() -> None:
    workspace = Workspace()
    workspace.load("bid", bids(Random(1), 20), nulls="keep")
    with pytest.raises(SqlError, match=r'column "when" not found(.|\n)*\^') as error:
        workspace.sql('SELECT a FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR("when"), INTERVAL 5 SECOND))')
    assert error.value.span == (20, 76)
    with pytest.raises(SqlError, match="no relation 'bids'; did you mean 'bid'"):
        workspace.sql("FROM tumble(bids, t, INTERVAL 5 SECOND)")
    with pytest.raises(UnsupportedSqlError, match=r"time_bucket.*without months") as refused:
        workspace.sql("FROM tumble(bid, t, INTERVAL 1 MONTH)")
    assert refused.value.span is None
    with pytest.raises(SqlError, match="tumble"):
        workspace.sql("FROM tumble(bid, t)")


@pytest.mark.parametrize(
    "text",
    [
        "select descriptor from t",
        "select 'TABLE(TUMBLE(TABLE bid, DESCRIPTOR(t)' -- TABLE(HOP(TABLE a, DESCRIPTOR(b)",
        "from range(3) as descriptor(n), (table t), f(table)",
    ],
)
def test_what_is_no_window_stays(text: str) -> None:
    assert as_call(text) in (text, text.replace("descriptor(n)", "           n "))


@pytest.mark.parametrize(
    "text", ["TABLE(TUMBLE(TABLE bid, DESCRIPTOR(t", "DESCRIPTOR(", "TABLE(HOP DESCRIPTOR"]
)
def test_a_text_that_ends_early(text: str) -> None:
    assert len(as_call(text)) == len(text)
