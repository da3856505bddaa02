"""Tables that the workloads read, by name: generated, or from the data folder.

A name says everything: ``rmat-17`` is generated, ``email-enron`` is read.
The data folder is ``$LFTJ_DATA``, or ``../shared/data`` beside the checkout.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import graphs
from bench.maintenance import document, order_book, signed_sums


class DataMissing(Exception):
    """The data folder, or a file in it, is not there."""


def data_folder() -> Path:
    """Where published data sets are looked for; it need not exist."""
    given = os.environ.get("LFTJ_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"


def _read(path: str, columns: list[str] | None = None) -> pa.Table:
    file = data_folder() / f"{path}.parquet"
    if not file.is_file():
        raise DataMissing(f"{path}.parquet is not in the data folder; set LFTJ_DATA to where it is")
    return pq.read_table(file, columns=columns)


def _edges(columns: graphs.Edges) -> pa.Table:
    return pa.table({"src": columns[0], "dst": columns[1]})


def _undirected(name: str) -> pa.Table:
    """Each edge of a published graph once, as (smaller end, larger end)."""
    read = _read(f"graphs/{name}")
    return _edges(graphs.oriented(read["src"].to_numpy(), read["dst"].to_numpy()))


def _directed(name: str) -> pa.Table:
    """The edges of a published graph as they are given."""
    return _read(f"graphs/{name}").select([0, 1]).rename_columns(["src", "dst"])


def _orders_at_scale(orders: int) -> dict[str, pa.Table]:
    """Keys of customer, orders and lineitem in TPC-H's proportions: 1 to 10 to 40, 1 to 7 items an order."""
    generator = np.random.default_rng(1)
    customers = orders // 10
    items = generator.integers(1, 8, orders)
    order_of_item = np.repeat(np.arange(orders), items)
    first_item = np.repeat(np.cumsum(items) - items, items)
    return {
        "customer": pa.table(
            {"custkey": np.arange(customers), "segment": generator.integers(0, 5, customers)}
        ),
        "orders": pa.table(
            {"orderkey": np.arange(orders), "custkey": generator.integers(0, customers, orders)}
        ),
        "lineitem": pa.table(
            {
                "orderkey": order_of_item,
                "linenumber": np.arange(len(order_of_item)) - first_item + 1,
            }
        ),
    }


def _sales(rows: int) -> dict[str, pa.Table]:
    """Sales, and what their keys lead to: products, stores in cities, customers."""
    generator = np.random.default_rng(1)
    return {
        "sale": pa.table(
            {
                "sale": np.arange(rows),
                "product": generator.integers(0, 2_000, rows),
                "store": generator.integers(0, 300, rows),
                "customer": generator.integers(0, 10_000, rows),
                "amount": generator.integers(1, 1_000, rows),
            }
        ),
        "product": pa.table({"product": np.arange(2_000), "kind": generator.integers(0, 20, 2_000)}),
        "store": pa.table(
            {
                "store": np.arange(300),
                "region": generator.integers(0, 10, 300),
                "city": generator.integers(0, 100, 300),
            }
        ),
        "customer": pa.table({"customer": np.arange(10_000), "segment": generator.integers(0, 5, 10_000)}),
        "city": pa.table({"city": np.arange(100), "country": generator.integers(0, 8, 100)}),
    }


_TPCH_COLUMNS = {
    "customer": ["c_custkey", "c_mktsegment"],
    "orders": ["o_orderkey", "o_custkey", "o_orderdate"],
    "lineitem": ["l_orderkey", "l_linenumber", "l_shipdate"],
}

_PATTERNS: Mapping[str, Callable[..., pa.Table]] = {
    r"rmat-(\d+)": lambda scale: _edges(graphs.rmat(int(scale))),
    r"rmat-(\d+)-(\d+)": lambda scale, factor: _edges(graphs.rmat(int(scale), int(factor))),
    r"power-law-(\d+)-(\d+)": lambda vertices, edges: _edges(graphs.power_law(int(vertices), int(edges))),
    r"star-(\d+)": lambda spokes: _edges(graphs.star(int(spokes))),
    r"pairs-(\d+)-(\d+)bit": lambda rows, bits: _edges(graphs.pairs(int(rows), bits=int(bits))),
    r"orders-(\d+)/(\w+)": lambda orders, table: _orders_at_scale(int(orders))[table],
    r"sales-(\d+)/(\w+)": lambda rows, table: _sales(int(rows))[table],
    r"(email-enron)": _undirected,
    r"directed/([\w-]+)": _directed,
    r"upward-(\d+)-(\d+)": lambda nodes, edges: _edges(graphs.upward(int(nodes), int(edges))),
    r"tree-(\d+)": lambda nodes: _edges(graphs.tree(int(nodes))),
    r"order-book": lambda: _read("dbtoaster-finance/orderbook-changes"),
    r"order-book-(\d+)": lambda changes: order_book.random_changes(int(changes)),
    r"summands-(\d+)": lambda rows: signed_sums.random_summands(int(rows)),
    r"stream-mathoverflow": lambda: _read("temporal/sx-mathoverflow-all", ["src", "dst"]),
    r"stream-random-(\d+)": lambda scale: _edges(graphs.arrivals(int(scale))),
    r"(recursion/[\w-]+)": _read,
    r"document-(\d+)/(\w+)": lambda positions, table: document.random_edits(int(positions))[table],
    r"lsqb/(\w+)": lambda name: _read(f"lsqb-sf0.1/{name}"),
    r"tpch/(\w+)": lambda name: _read(f"tpch-sf0.01/{name}", _TPCH_COLUMNS[name]),
}


def table(name: str) -> pa.Table:
    """Generate or read the table called ``name``.

    Raises:
        DataMissing: It has to be read and is not there.
        KeyError: No table is called so.

    >>> table("star-3").num_rows
    5
    """
    for pattern, make in _PATTERNS.items():
        match = re.fullmatch(pattern, name)
        if match:
            return make(*match.groups())
    raise KeyError(f"no table is called {name!r}")


def file(name: str, folder: Path) -> Path:
    """The table as a Parquet file in ``folder``, written when it is not there yet.

    All engines load from the same file, so loading times can be compared.
    """
    path = folder / f"{name.replace('/', '-')}.parquet"
    if not path.exists():
        part = path.with_suffix(".part")
        pq.write_table(table(name), part)
        part.replace(path)
    return path
