"""Relations and heads are one kind of object: a set of tuples to Python, a table to Arrow, and readable."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
import uuid
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import ArityError, UnknownRelationError
from lftj.storage.relation import Relation
from lftj.storage.relation_table import DECODED_ROWS, SHOWN_ROWS, RelationTable
from maintenance import Workspace
from support.peak_memory import least_peak

EDGES = [(1, 2), (1, 3), (2, 3), (3, 4)]
TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."

Holder = lftj.Database


def database() -> lftj.Database:
    db = lftj.Database()
    db.load("edge", EDGES, columns=["a", "b"])
    db.load("tri", db.query(TRI))
    return db


def workspace() -> Workspace:
    ws = Workspace()
    ws.load("edge", EDGES, columns=["a", "b"])
    ws.install(TRI)
    return ws


def changed_workspace() -> Workspace:
    """The same relations, of a base and runs."""
    ws = Workspace()
    ws.load("edge", [*EDGES[:3], (9, 9)], columns=["a", "b"])
    ws.install(TRI)
    with ws.transaction() as tx:
        tx.insert("edge", EDGES[3:])
        tx.erase("edge", [(9, 9)])
    return ws


HOLDERS: dict[str, Callable[[], Holder]] = {
    "database": database,
    "workspace": workspace,
    "changed": changed_workspace,
    "snapshot": lambda: changed_workspace().snapshot(),
}


@pytest.fixture(params=HOLDERS)
def holder(request: pytest.FixtureRequest) -> Holder:
    return HOLDERS[request.param]()


# -- one kind of object, in every place ---------------------------------------------------


def test_relations_and_heads_are_one_kind_of_object(holder: Holder) -> None:
    for table in (holder["edge"], holder["tri"], holder.relations["edge"], holder.relations["tri"]):
        assert type(table) is RelationTable
    assert holder["edge"] == holder.relations["edge"]
    assert (holder["tri"].name, holder["edge"].name) == ("tri", "edge")


def test_a_relation_is_a_set_of_tuples(holder: Holder) -> None:
    tri, edge = holder["tri"], holder["edge"]
    assert len(tri) == tri.count == tri.num_rows == 1
    assert len(edge) == edge.count == edge.num_rows == 4
    assert list(tri) == [(1, 2, 3)]
    assert sorted(edge) == EDGES
    assert (1, 2, 3) in tri and (3, 2, 1) not in tri
    assert all(row in edge for row in EDGES)
    assert not any(row in edge for row in [(9, 9), (1, 4), (0, 0), (4, 1), (3, 3)])
    assert [1, 2] in edge
    assert edge._table is None, "nothing was built for it"


def test_names_are_asked_as_of_a_mapping(holder: Holder) -> None:
    assert "tri" in holder and "edge" in holder and "tir" not in holder
    assert 3 not in holder and None not in holder and [] not in holder
    assert set(holder) == {"edge", "tri"} and len(holder) == 2
    assert "tri" in holder.relations and 3 not in holder.relations and len(holder.relations) == 2
    assert {name: len(holder[name]) for name in holder} == {"edge": 4, "tri": 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tir", "unknown relation 'tir'; did you mean 'tri'?"),
        ("xyz", "unknown relation 'xyz'; there are 'edge' and 'tri'"),
        (3, "unknown relation 3: names are text; there are 'edge' and 'tri'"),
        (None, "unknown relation None: names are text; there are 'edge' and 'tri'"),
        (("a", "b"), "unknown relation ('a', 'b'): names are text; there are 'edge' and 'tri'"),
    ],
)
def test_what_is_not_there_is_named(holder: Holder, name: Any, text: str) -> None:
    for asked in (holder, holder.relations):
        with pytest.raises(UnknownRelationError) as raised:
            asked[name]
        assert str(raised.value) == text
        assert isinstance(raised.value, KeyError)
    assert holder.relations.get(name) is None


def test_an_empty_database_is_a_database() -> None:
    for empty in (lftj.Database(), Workspace(), Workspace().snapshot()):
        assert len(empty) == 0 and list(empty) == [] and bool(empty)
    with pytest.raises(UnknownRelationError, match="unknown relation 'edge'; there are none"):
        lftj.Database()["edge"]


def test_what_was_asked_for_stays_as_it_was() -> None:
    ws = workspace()
    before, rows = ws["edge"], iter(ws["edge"])
    first = next(rows)
    with ws.transaction() as tx:
        tx.erase("edge", EDGES)
    assert before.count == 4 and (1, 2) in before and sorted([first, *rows]) == EDGES
    assert len(ws["edge"]) == 0 and (1, 2) not in ws["edge"] and list(ws["edge"]) == []
    db = database()
    loaded = db["edge"]
    db.load("edge", [(5, 6)], columns=["x", "y"])
    assert sorted(loaded) == EDGES and list(db["edge"]) == [(5, 6)]


# -- looking a tuple up ----------------------------------------------------------------------


@pytest.mark.parametrize("row", [(), (1,), (1, 2, 3), [1]])
def test_a_tuple_of_another_width_is_refused(holder: Holder, row: Any) -> None:
    with pytest.raises(ArityError) as raised:
        assert row in holder["edge"]
    assert (
        str(raised.value) == f"edge(a: int64, b: int64) has 2 columns, but the tuple {row!r} has {len(row)}"
    )


@pytest.mark.parametrize("row", [5, "ab", b"ab", None, {"a": 1, "b": 2}, {1, 2}])
def test_what_is_no_tuple_is_refused(holder: Holder, row: Any) -> None:
    with pytest.raises(
        TypeError, match=r"edge\(a: int64, b: int64\) holds tuples: look for \(\.\.\., \.\.\.\)"
    ):
        assert row in holder["edge"]


@pytest.mark.parametrize(
    "value",
    [None, "2", b"2", 2.5, True, 2**63, -(2**70), float("nan"), float("inf"), NotImplemented, [2], (2,),
     datetime.date(2026, 1, 1), decimal.Decimal("2.5"), np.float64(2.5), pa.scalar("2"), pa.scalar(None)],
    ids=repr,
)  # fmt: skip
def test_values_that_can_not_be_there_are_not(holder: Holder, value: Any) -> None:
    assert (1, value) not in holder["edge"]
    assert (value, 2) not in holder["edge"]


@pytest.mark.parametrize(
    "value", [2, 2.0, decimal.Decimal(2), np.int8(2), np.uint64(2), np.float32(2), pa.scalar(2, pa.int16())]
)
def test_a_number_is_found_whatever_its_type(holder: Holder, value: Any) -> None:
    assert (1, value) in holder["edge"]
    assert (value, value) not in holder["edge"]


UTC = datetime.UTC
EVERY_TYPE: dict[str, tuple[pa.Array, Any]] = {
    # one value, and another that is not there
    "bool": (pa.array([True]), False),
    "int8": (pa.array([-3], pa.int8()), 3),
    "uint64": (pa.array([2**63 - 1], pa.uint64()), 2**63),
    "float16": (pa.array([np.float16(0.5)], pa.float16()), 0.25),
    "float32": (pa.array([0.1], pa.float32()), 0.1),
    "float64": (pa.array([0.1]), np.float32(0.1)),
    "nan": (pa.array([float("nan")]), 0.0),
    "infinity": (pa.array([float("inf")]), float("-inf")),
    "string": (pa.array(["é"]), "e"),
    "string_view": (pa.array(["a" * 50], pa.string_view()), "a"),
    "dictionary": (pa.array(["q"]).dictionary_encode(), "r"),
    "binary": (pa.array([b"\x00\xff"]), "\x00"),
    "fixed": (pa.array([b"abc"], pa.binary(3)), b"abcd"),
    "decimal": (pa.array([decimal.Decimal("1.50")]), decimal.Decimal("1.51")),
    "date32": (pa.array([datetime.date(2026, 1, 31)]), datetime.datetime(2026, 1, 31, 1)),
    "date64": (pa.array([datetime.date(2026, 1, 31)], pa.date64()), datetime.date(2026, 1, 30)),
    "dates by dictionary": (pa.array([datetime.date(2026, 1, 31)]).dictionary_encode(), "2026-01-31"),
    "time32": (pa.array([datetime.time(1, 2, 3)], pa.time32("s")), datetime.time(1, 2, 3, 4)),
    "time64": (pa.array([datetime.time(1, 2, 3, 4)]), datetime.time(1, 2, 3)),
    "timestamp": (pa.array([datetime.datetime(2026, 1, 31, 1, 2, 3, 4)]), datetime.datetime(2026, 1, 31)),
    "nanoseconds": (pa.array([1], pa.timestamp("ns")), pd.Timestamp(2)),
    "zone": (pa.array([datetime.datetime(2026, 1, 31, tzinfo=UTC)]), datetime.datetime(2026, 1, 31)),
    "duration": (pa.array([datetime.timedelta(seconds=3)]), datetime.timedelta(seconds=4)),
    "uuid": (pa.array([uuid.UUID(int=7)], pa.uuid()), uuid.UUID(int=8)),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())), False),
}


@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_a_value_of_every_type_is_found_as_it_comes_out(kind: str) -> None:
    array, other = EVERY_TYPE[kind]
    plain, live = lftj.Database(), Workspace()
    for here in (plain, live):
        here.load("one", pa.table({"x": array}))
        (row,) = here["one"]
        assert row in here["one"] and [array[0]] in here["one"] and (other,) not in here["one"]
        assert not any((value,) in here["one"] for value in (None, NotImplemented, [1], "never seen"))
        assert here["one"].to_arrow() == pa.table({"x": array}) or kind == "nan"
        assert len(repr(here["one"]).splitlines()) == 3


def test_numpy_times_are_found_exactly() -> None:
    db = lftj.Database()
    db.load(
        "t",
        pa.table({"t": pa.array([10**18 + 1], pa.timestamp("ns")), "d": pa.array([7], pa.duration("ns"))}),
    )
    moment, span = np.datetime64(10**18 + 1, "ns"), np.timedelta64(7, "ns")
    assert (moment, span) in db["t"]
    assert (moment + 1, span) not in db["t"] and (moment.astype("M8[us]"), span) not in db["t"]


def test_looking_up_adds_nothing_to_a_dictionary() -> None:
    db = lftj.Database()
    db.load("s", pa.table({"s": ["a"]}))
    domain = db.domains.of(pa.string())
    assert ("b",) not in db["s"] and len(domain.values()) == 1  # type: ignore[attr-defined]


VALUES = st.integers(-3, 3)
ROWS = st.sets(st.tuples(VALUES, VALUES, VALUES), max_size=30)


@given(base=ROWS, inserted=ROWS, erased=ROWS)
def test_membership_is_that_of_a_set(base: set[Any], inserted: set[Any], erased: set[Any]) -> None:
    """oracle: Python's own set, over a loaded relation, one with runs, and a head."""
    columns, types = ["x", "y", "z"], pa.schema([(name, pa.int64()) for name in ("x", "y", "z")])
    table = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in base], schema=types)
    ws = Workspace()
    ws.load("r", table)
    ws.install("h(z, x) <- r(x, _, z).")
    with ws.transaction() as tx:
        tx.insert("r", list(inserted - erased))
        tx.erase("r", list(erased - inserted))
    rows = (base | (inserted - erased)) - (erased - inserted)
    assert set(ws["r"]) == rows and set(ws["h"]) == {(z, x) for x, _, z in rows}
    for row in base | inserted | erased | {(0, 0, 0), (4, 0, 0), (-4, 1, 1)}:
        assert (row in ws["r"]) == (row in rows)
        assert (row[:2] in ws["h"]) == (row[:2] in set(ws["h"]))


def test_a_look_up_does_not_scan() -> None:
    """laws: a look-up in four million rows makes nothing of that length."""
    n = 4_000_000
    db, ws = lftj.Database(), Workspace()
    for here in (db, ws):
        here.load("r", {"a": np.arange(n) // 100, "b": np.arange(n) % 100})
    with ws.transaction() as tx:
        tx.insert("r", [(-1, -1)])
    assert (-1, -1) in ws["r"] and (-1, -1) not in db["r"]
    for here in (db, ws):
        table = here["r"]
        rows = [(row // 100, row % 100) for row in range(0, n, n // 1000)]
        assert all(row in table for row in rows)
        assert least_peak(lambda table=table, rows=rows: sum(row in table for row in rows)) < n // 8
        assert sum(row in table for row in rows) == 1000
        assert table._table is None


# -- iteration and tables ----------------------------------------------------------------------


def test_iteration_decodes_in_batches() -> None:
    n = 2 * DECODED_ROWS + 5
    db = lftj.Database()
    db.load("r", {"a": np.arange(n), "b": [str(number) for number in range(n)]})
    rows = iter(db["r"])
    assert next(rows) == (0, "0") and type(next(rows)[0]) is int
    assert list(db["r"]) == [(number, str(number)) for number in range(n)]


def test_a_relation_is_a_table_to_everyone(holder: Holder) -> None:
    tri = holder["tri"]
    expected = pa.table({"a": [1], "b": [2], "c": [3]})
    assert tri.schema == expected.schema and tri.column_names == ["a", "b", "c"]
    assert (tri.num_columns, tri.shape) == (3, (1, 3))
    assert tri._table is None
    assert tri.table == tri.to_arrow() == pa.table(tri) == tri == expected
    assert pa.schema(tri) == expected.schema
    assert tri != expected.slice(0, 0) and tri == holder["tri"] and tri != "tri"
    with pytest.raises(TypeError, match="unhashable"):
        hash(tri)
    assert tri.to_pylist() == [{"a": 1, "b": 2, "c": 3}] and tri.to_pydict() == {"a": [1], "b": [2], "c": [3]}
    assert tri["b"].to_pylist() == tri[1].to_pylist() == [2]
    assert tri.select(["c"]).to_pylist() == [{"c": 3}]
    assert tri.to_polars().equals(pl.DataFrame(tri)) and pl.DataFrame(tri).rows() == [(1, 2, 3)]
    pd.testing.assert_frame_equal(tri.to_pandas(), expected.to_pandas())
    assert str(tri.to_pandas(types_mapper=pd.ArrowDtype)["a"].dtype) == "int64[pyarrow]"
    assert duckdb.sql("select a + c from tri").fetchall() == [(4,)]
    assert {"to_batches", "filter", "count", "to_polars"} <= set(dir(tri))
    again = lftj.Database()
    again.load("tri", tri)
    assert (1, 2, 3) in again["tri"]
    with pytest.raises(AttributeError):
        _ = tri.no_such_thing


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database()["edge"]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"to_{package}\(\) needs {package}: pip install {package}"):
        getattr(table, f"to_{package}")()


def test_looking_needs_no_heavy_package() -> None:
    code = """
import sys
import lftj
db = lftj.Database()
db.load("edge", [(1, 2)], columns=["a", "b"])
assert (1, 2) in db["edge"] and list(db["edge"]) == [(1, 2)] and "edge" in repr(db["edge"])
print(*(name for name in ("numba", "polars", "rich", "lark") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# -- what it looks like ------------------------------------------------------------------------


def test_the_repr_shows_name_types_rows_and_the_first_of_them(holder: Holder) -> None:
    assert repr(holder["edge"]) == str(holder["edge"])
    assert repr(holder["edge"]).splitlines() == [
        "edge(a: int64, b: int64), 4 rows",
        "a  b",
        "1  2",
        "1  3",
        "2  3",
        "3  4",
    ]
    assert repr(holder["tri"]).startswith("tri(a: int64, b: int64, c: int64), 1 row\na  b  c\n1  2  3")


def test_columns_are_aligned_and_long_tables_cut() -> None:
    db = lftj.Database()
    db.load("sale", {"item": [f"item {n}" for n in range(12)], "pence": [10**n for n in range(12)]})
    assert repr(db["sale"]).splitlines() == [
        "sale(item: string, pence: int64), 12 rows",
        "item           pence",
        *(f'"item {n}"  {10**n:>10}' for n in range(10)),
        "... 2 more",
    ]
    db.load("empty", pa.table({"a": pa.array([], pa.int64())}))
    assert repr(db["empty"]) == "empty(a: int64), 0 rows"
    db.load("long", {"text": ["x" * 500 + "\n"]})
    assert repr(db["long"]).splitlines()[1:] == ["text", '"' + "x" * 36 + "..."]


def test_what_python_can_not_hold_is_shown() -> None:
    db = lftj.Database()
    db.load("far", pa.table({"day": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}))
    assert repr(db["far"]).splitlines()[-1] == "5881580-07-11"


class Cells(HTMLParser):
    """The texts of a page; an unclosed or unknown tag shows as a difference."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_notebooks_get_a_table(holder: Holder) -> None:
    page = holder["tri"]._repr_html_()
    assert Cells(page).texts == ["tri(a: int64, b: int64, c: int64), 1 row", "a", "b", "c", "1", "2", "3"]


def test_html_is_escaped_and_cut() -> None:
    db = lftj.Database()
    values = ["<script>alert(1)</script>", *(f"&{n}" for n in range(SHOWN_ROWS))]
    db.add(Relation.from_table("page", pa.table({"a<b": values}), db.domains))
    page = db["page"]._repr_html_()
    assert "<script>" not in page
    texts = Cells(page).texts
    assert texts[:3] == ["page(a<b: string), 11 rows", "a<b", '"<script>alert(1)</script>"']
    assert texts[-1] == "... 1 more"
