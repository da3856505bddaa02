"""Lists of dicts and record batches, graphs, and what queries give, as relations and as changes."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import lftj
from lftj.errors import ChangeError, NullError, SourceError, UnnamedIndexWarning
from lftj.files.sources import read_table
from maintenance import Workspace

nx = pytest.importorskip("networkx")

BATCHES = [pa.record_batch({"a": [1], "b": ["x"]}), pa.record_batch({"a": [2], "b": ["y"]})]
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def rows_of(source: Any, columns: Any = None) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in read_table(source, columns).to_pylist()]


# -- dicts and record batches -----------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [lambda: ROWS, lambda: iter(ROWS), lambda: BATCHES, lambda: iter(BATCHES), lambda: tuple(BATCHES)],
    ids=["dicts", "a generator of dicts", "batches", "a generator of batches", "a tuple of batches"],
)
def test_rows_that_know_their_columns(made: Any) -> None:
    assert read_table(made()).to_pylist() == ROWS
    assert rows_of(made(), ["b", "a"]) == [("x", 1), ("y", 2)]
    ws = Workspace()
    ws.load("r", made(), {"b": "c"})
    assert ws["r"].column_names == ["a", "c"]
    ws.load("s", [(0, "z")], columns=["a", "b"])
    with ws.transaction() as tx:
        tx.insert("s", made())
    assert sorted(ws["s"]) == [(0, "z"), (1, "x"), (2, "y")]
    with ws.transaction() as tx:
        tx.erase("s", made())
    assert sorted(ws["s"]) == [(0, "z")]


def test_what_a_dict_lacks_is_null() -> None:
    rows = [{"a": 1}, {"b": 2, "a": 3}]
    assert rows_of(rows) == [(1, None), (3, 2)]
    db = lftj.Database()
    with pytest.raises(NullError, match=r"column 'b'.*row 0"):
        db.load("r", rows)
        db.query("q(b) <- r(_, b).")
    db.load("r", rows, nulls="keep")
    assert sorted(db["r"], key=str) == [(1, None), (3, 2)]


def test_changes_with_other_names_are_refused() -> None:
    ws = Workspace()
    ws.load("r", [(0, "z")], columns=["a", "b"])
    for rows in ([{"a": 1, "c": 2}], iter([{"a": 1, "b": "x", "c": 2}])):
        with pytest.raises(ChangeError, match="no column 'c'"), ws.transaction() as tx:
            tx.insert("r", rows)


def test_batches_of_several_schemas_are_refused() -> None:
    with pytest.raises(SourceError, match=r"record batch 1 .* another schema than batch 0: cast it before"):
        read_table([BATCHES[0], pa.record_batch({"a": [1.5], "b": ["x"]})])


# -- graphs of networkx -----------------------------------------------------------------------


def test_an_undirected_graph_has_its_edges_in_both_directions() -> None:
    graph = nx.Graph([(1, 2, {"w": 5}), (2, 3, {"w": 7}), (3, 3, {"w": 1})])
    table = read_table(graph)
    assert table.column_names == ["source", "target", "w"]
    assert sorted(rows_of(graph)) == [(1, 2, 5), (2, 1, 5), (2, 3, 7), (3, 2, 7), (3, 3, 1)]
    assert sorted(rows_of(graph.edges)) == [(1, 2, 5), (2, 3, 7), (3, 3, 1)]
    assert {tuple(row[:2]) for row in rows_of(graph)} == {(a, b) for a in graph for b in graph[a]}


def test_triangles_are_those_of_networkx() -> None:
    graph = nx.gnp_random_graph(30, 0.3, seed=7)
    db = lftj.Database()
    db.load("edge", graph)
    found = db.count("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c), a < b, b < c.")
    assert found == sum(nx.triangles(graph).values()) // 3


def test_directed_graphs_and_multigraphs() -> None:
    assert sorted(rows_of(nx.DiGraph([(1, 2), (2, 1), (2, 3)]))) == [(1, 2), (2, 1), (2, 3)]
    multi = nx.MultiDiGraph([(1, 2, {"w": 5}), (1, 2, {"w": 7})])
    for source in (multi, multi.edges):
        assert read_table(source).column_names == ["source", "target", "key", "w"]
        assert sorted(rows_of(source)) == [(1, 2, 0, 5), (1, 2, 1, 7)]
    assert sorted(rows_of(nx.MultiGraph([(1, 2), (1, 2)]))) == [(1, 2, 0), (1, 2, 1), (2, 1, 0), (2, 1, 1)]


def test_vertices_have_their_attributes() -> None:
    graph = nx.Graph()
    graph.add_node("u", size=3)
    graph.add_node("v", size=4)
    assert read_table(graph.nodes).to_pylist() == [{"node": "u", "size": 3}, {"node": "v", "size": 4}]
    assert sorted(rows_of(nx.path_graph(3).nodes)) == [(0,), (1,), (2,)]


def test_an_attribute_that_an_edge_lacks_is_null_and_one_that_is_called_as_an_end_refused() -> None:
    assert rows_of(nx.DiGraph([(1, 2, {"w": 5}), (2, 3)])) == [(1, 2, 5), (2, 3, None)]
    with pytest.raises(SourceError, match="an attribute is called 'source'"):
        read_table(nx.DiGraph([(1, 2, {"source": 5})]))


def test_edges_are_inserted() -> None:
    ws = Workspace()
    ws.load("edge", [(9, 9)], columns=["source", "target"])
    with ws.transaction() as tx:
        tx.insert("edge", nx.Graph([(1, 2)]))
    assert sorted(ws["edge"]) == [(1, 2), (2, 1), (9, 9)]


# -- what queries give ------------------------------------------------------------------------


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:")
    opened.execute("create table t (a integer, b text)")
    opened.executemany("insert into t values (?, ?)", [(1, "x"), (2, "y")])
    yield opened
    opened.close()


def test_a_cursor_gives_its_rows(connection: sqlite3.Connection) -> None:
    assert read_table(connection.execute("select a, b from t order by a")).to_pylist() == ROWS
    assert rows_of(connection.execute("select b, a from t order by a"), ["a"]) == [(1,), (2,)]


class Result:
    """What SQLAlchemy's ``execute`` gives, as far as it is asked: a cursor with ``keys()``."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self.rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self.rows

    def __next__(self) -> Any:
        return next(self.rows)

    def keys(self) -> list[str]:
        return ["a", "b"]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self.rows)


class ArrowCursor:
    """A cursor of ADBC: its rows are Arrow's."""

    description = (("a",), ("b",))

    def fetchall(self) -> list[Any]:
        raise AssertionError("Arrow is asked first")

    def fetch_arrow_table(self) -> pa.Table:
        return pa.Table.from_batches(BATCHES)


class Engine:
    """As SQLAlchemy's."""

    dialect = "sqlite"

    def connect(self) -> None: ...


def test_results_of_sqlalchemy_and_adbc() -> None:
    assert read_table(Result([(1, "x"), (2, "y")])).to_pylist() == ROWS
    assert read_table(ArrowCursor()).to_pylist() == ROWS


def test_what_has_no_rows_says_what_does(connection: sqlite3.Connection) -> None:
    with pytest.raises(SourceError, match=r"a Connection is no rows: .*cursor.execute\('SELECT"):
        read_table(connection)
    with pytest.raises(SourceError, match=r"the Cursor has no rows: cursor.execute"):
        read_table(connection.cursor())
    with pytest.raises(SourceError, match=r"an? Engine is no rows: .*connection.execute\(sqlalchemy.text"):
        read_table(Engine())
    with duckdb.connect() as other:
        other.execute("create table t as select 1 a")
        with pytest.raises(SourceError, match=r"connection.sql\('SELECT"):
            read_table(other)
        assert rows_of(other.sql("select a from t")) == [(1,)]
    with pytest.raises(SourceError, match="two columns of the Cursor have one name"):
        read_table(connection.execute("select a, a from t"))


# -- pandas -----------------------------------------------------------------------------------


def test_days_of_pandas_are_dates() -> None:
    ws = Workspace()
    ws.load("r", pa.table({"d": pa.array([0], pa.date32())}))
    with ws.transaction() as tx:
        tx.insert("r", pd.DataFrame({"d": pd.to_datetime(["2026-01-01"])}))
    assert ws["r"].count == 2
    late = pd.DataFrame({"d": pd.to_datetime(["2026-01-01T00:00", "2026-01-01T03:00"])})
    with pytest.raises(ChangeError, match=r"row 1 .*03:00:00.* exactly"), ws.transaction() as tx:
        tx.insert("r", late)


def test_an_index_without_a_name_is_left_out_and_told_of_where_it_is_data() -> None:
    db = lftj.Database()
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.to_datetime(["2026-01-01", "2026-01-02"]))
    with pytest.warns(UnnamedIndexWarning, match=r"'r': the frame's index has no name .* frame.rename_axis"):
        db.load("r", frame)
    assert db["r"].column_names == ["x"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db.load("s", frame.rename_axis("day"))
        db.load("t", frame.reset_index(drop=True)[lambda one: one.x > 1])
    assert db["s"].column_names == ["day", "x"] and db["t"].column_names == ["x"]
