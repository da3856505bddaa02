"""DBToaster's six finance views, once, beside its published answers."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lftj
from sql.answers import Row, difference, rows_of
from sql.tables import plain

pytest.importorskip("lftj.sql")

pytestmark = pytest.mark.compiled

_BELOW = """0.25 * (select sum({0}1.volume) from {1} {0}1)
    > (select coalesce(sum({0}2.volume), 0) from {1} {0}2 where {0}2.price > {0}.price)"""

FINANCE = {
    "vwap": f"select sum(b.price * b.volume) from bids b where {_BELOW.format('b', 'bids')}",
    "axfinder": "select b.broker, sum(a.volume - b.volume) from bids b, asks a where b.broker = a.broker"
    " and (a.price - b.price > 1000 or b.price - a.price > 1000) group by b.broker",
    "brokerspread": "select x.broker, sum(x.volume * x.price - y.volume * y.price) from bids x, bids y"
    " where x.broker = y.broker and x.time > y.time group by x.broker",
    "pricespread": "select sum(a.price - b.price) from bids b, asks a where"
    " b.volume > 0.0001 * (select sum(b1.volume) from bids b1)"
    " and a.volume > 0.0001 * (select sum(a1.volume) from asks a1)",
    "missedtrades": "select b.broker, sum(a.price * a.volume - b.price * b.volume) from bids b, asks a"
    f" where {_BELOW.format('a', 'asks')} and {_BELOW.format('b', 'bids')} group by b.broker",
    "brokervariance": "select x.broker, sum(0.5 * (x.volume * x.price)::double * y.volume * y.price)"
    " from bids x, bids y where x.broker = y.broker group by x.broker",
}


@pytest.fixture(scope="module")
def folder(data_folder: Path) -> Path:
    return data_folder / "dbtoaster-finance"


@pytest.fixture(scope="module")
def book(folder: Path) -> lftj.Database:
    """The bids and asks that are there after all changes of the tiny order book."""
    sides = duckdb.connect()
    sides.execute(f"create view changes as from '{folder / 'orderbook-tiny.parquet'}'")
    names = [row[0] for row in sides.execute("describe changes").fetchall()]
    values = ", ".join(name for name in names if name not in ("weight", "relation"))
    database = lftj.Database()
    for side in ("bids", "asks"):
        rows: pa.Table = sides.sql(
            f"select {values} from changes where lower(relation) = '{side}'"
            " group by all having sum(weight) > 0"
        ).to_arrow_table()
        database.load(side, plain(rows))
    return database


@pytest.mark.parametrize("view", FINANCE)
def test_finance(book: lftj.Database, folder: Path, view: str) -> None:
    lines = (folder / "answers" / f"{view}_tiny.csv").read_text(encoding="utf-8").split()
    right: list[Row] = [tuple(map(float, row)) for row in csv.reader(lines)]
    mine = [tuple(map(float, row)) for row in rows_of(book.sql(FINANCE[view]))]
    assert (found := difference(mine, right)) is None, found
