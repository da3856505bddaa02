"""`Database` as a user types it: the ways to run a rule and their arguments, relations, streams."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import lftj
from lftj import errors
from lftj.database import database as database_module
from lftj.database import prepared
from lftj.database.database import Database
from maintenance import Workspace

TRIANGLE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
EDGES = [(a, b) for a in range(20) for b in range(a + 1, 20) if (a * b) % 7 < 4]
Row = tuple[Any, ...]


def rows_of(table: pa.Table | pa.RecordBatch) -> list[Row]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def db() -> Database:
    made = lftj.Database()
    made.load("edge", EDGES, columns=["src", "dst"])
    made.load("node", {"id": np.arange(25)})
    made.load("colour", [(1, "red"), (2, "blue"), (3, "red")], columns=["id", "name"])
    made.load("base", [("tea", 100), ("soup", 250)], columns=["item", "pence"])
    return made


# -- a join, once -------------------------------------------------------------------


def test_join_once_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parquet.write_table(pa.table({"a": [a for a, _ in EDGES], "b": [b for _, b in EDGES]}), "edges.parquet")
    expected = sorted((a, b, c) for a, b in EDGES for c in range(20) if (b, c) in EDGES and (a, c) in EDGES)

    db = lftj.Database()
    db.load("edge", "edges.parquet")
    assert repr(db.relations) == f"relation  rows  columns\nedge       {len(EDGES)}  a: int64, b: int64"

    rule = TRIANGLE
    table = db.query(rule)
    assert isinstance(table, pa.Table) and table.column_names == ["a", "b", "c"]
    assert rows_of(table) == expected
    streamed = []
    for batch in db.stream(rule, batch_rows=65_536):
        assert isinstance(batch, pa.RecordBatch)
        streamed += rows_of(batch)
    assert sorted(streamed) == expected
    assert db.count(rule) == len(expected)
    assert "key order" in str(db.explain(rule)) and "measured" in str(db.explain(rule, analyze=True))
    assert rows_of(db.query(rule, threads=2, order=["b", "a", "c"], progress=True)) == expected


# -- one rule, every way to run it ---------------------------------------------------

PROGRAMS = {
    "full join": TRIANGLE,
    "projection": "h(a, c) <- edge(a, b), edge(b, c).",
    "existence": "h(a) <- edge(a, b), edge(b, c), node(c).",
    "prefix": "h(a) <- edge(a, _).",
    "product": "h(a, i) <- node(a), base(i, _).",
    "negation": "h(a) <- node(a), !edge(a, _).",
    "late negation": "h(a, v) <- edge(a, b), v = a + b, !node(v).",
    "comparisons": "h(a, b) <- edge(a, b), a + 2 < b, b != 7, a >= 1.",
    "late comparison": "h(a) <- edge(a, b), a * b = 14.",
    "literal": 'h(a) <- colour(a, "red"), edge(a, _).',
    "absent literal": 'h(a) <- colour(a, "green").',
    "repeated": "h(a, b, a) <- edge(a, b), b < 5.",
    "loops": "h(a) <- edge(a, a).",
    "disjunction": "h(a) <- (edge(a, 3) ; colour(a, _) ; node(a), a > 22).",
    "union": "h(a) <- edge(a, 3). h(b) <- edge(3, b).",
    "arithmetic": "h(a, v) <- edge(a, b), v = (a - b) / 2.",
    "functional": "h[i] = v <- base[i] = p, v = p * 1.2.",
    "nullary": 'x[] = p <- base["tea"] = p.',
    "count": "n[a] = count() <- edge(a, b), edge(b, _).",
    "all counted": "n[] = count() <- edge(_, _).",
    "sum of alternatives": "s[a] = sum(b) <- (edge(a, b) ; edge(b, a)).",
    "concat": 's[n] = concat(n, "/", i) <- colour(i, n).',
    "program": """
        two(a, c) <- edge(a, b), edge(b, c).
        far(a, c) <- two(a, c), !edge(a, c).
        n[a] = count() <- far(a, _).
        h(a, k) <- n[a] = k, k > 2.
    """,
}


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
@pytest.mark.parametrize("threads", [None, 1, 3])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_all_ways_agree(db: Database, kind: str, threads: int | None) -> None:
    rule = PROGRAMS[kind]
    table = db.query(rule, threads=threads)
    rows = rows_of(table)
    assert len(set(rows)) == len(rows)
    assert (not rows) == (kind in ("absent literal", "loops"))
    assert db.count(rule, threads=threads) == len(rows)
    batches = list(db.stream(rule, batch_rows=3, threads=threads))
    assert all(batch.num_rows == 3 for batch in batches[:-1]) and batches[-1].num_rows <= 3
    assert all(batch.schema == table.schema for batch in batches)
    assert sorted(row for batch in batches for row in rows_of(batch)) == rows
    assert rows_of(db.query(rule, threads=threads)) == rows, "planned once, run twice"


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
@pytest.mark.parametrize("kind", PROGRAMS)
def test_progress_changes_nothing(db: Database, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, list[float]]] = []

    @contextmanager
    def bar(label: str, wanted: bool | None) -> Iterator[Callable[[float], None]]:
        seen.append((label, []))
        yield seen[-1][1].append

    monkeypatch.setattr(database_module, "bar", bar)
    monkeypatch.setattr(database_module, "is_seen", bool)
    rule = PROGRAMS[kind]
    rows = rows_of(db.query(rule))
    assert not seen
    assert rows_of(db.query(rule, progress=True)) == rows
    assert sorted(r for batch in db.stream(rule, progress=True) for r in rows_of(batch)) == rows
    assert db.count(rule, progress=True) == len(rows)
    db.explain(rule, analyze=True, progress=True)
    assert [label for label, _ in seen] == ["joining", "joining", "counting", "joining"]
    for _, fractions in seen:
        assert all(0 < fraction <= 1 for fraction in fractions)
    if kind in ("full join", "existence"):
        assert all(fractions == sorted(fractions) and fractions[-1] == 1 for _, fractions in seen)


def test_heads_are_chosen_by_name(db: Database) -> None:
    program = "low(a), pair(b, a) <- edge(a, b), a < 2. other(a) <- node(a), !low(a)."
    assert rows_of(db.query(program)) == [(a,) for a in range(2, 25)]
    assert rows_of(db.query(program, head="low")) == [(0,), (1,)]
    assert db.query(program, head="pair").column_names == ["b", "a"]
    assert db.count(program, head="pair") == sum(a < 2 for a, _ in EDGES)
    first = program.split(".")[0] + "."
    with pytest.raises(
        errors.RuleError, match="the last rule has several heads, low, pair: say which with head="
    ):
        db.query(first)
    with pytest.raises(errors.UnknownRelationError, match="no rule has the head 'hihg'; heads are low, pair"):
        db.query(first, head="hihg")


def test_rules_that_the_head_does_not_need_are_not_run(db: Database) -> None:
    program = "bad(v) <- edge(a, b), v = b / (a - a). good(a) <- edge(a, _)."
    assert db.count(program, head="good") == db.count("good(a) <- edge(a, _).")
    with pytest.raises(errors.EvaluationError):
        db.query(program, head="bad")


@pytest.mark.parametrize("call", ["query", "count", "stream"])
def test_arguments_out_of_range(db: Database, call: str) -> None:
    with pytest.raises(ValueError, match="threads must be at least 1, not 0"):
        getattr(db, call)(TRIANGLE, threads=0)
    with pytest.raises(ValueError, match="batch_rows must be at least 1, not 0"):
        db.stream(TRIANGLE, batch_rows=0)


def test_large_results_come_in_several_chunks(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "QUERY_BATCH_ROWS", 10)
    for rule in (TRIANGLE, "h(a, c) <- edge(a, b), edge(b, c).", "n[a] = count() <- edge(a, _)."):
        table = db.query(rule)
        assert max(len(chunk) for chunk in table.column(0).chunks) <= 10
        monkeypatch.undo()
        assert rows_of(db.query(rule)) == rows_of(table)
        monkeypatch.setattr(database_module, "QUERY_BATCH_ROWS", 10)


# -- relations ------------------------------------------------------------------------


def test_relations_show_as_a_table(db: Database) -> None:
    assert repr(lftj.Database().relations) == "no relations"
    holes = {"x": pa.array([1, None, 2, None]), "a_longer_name": pa.array(["a", "b", None, "d"])}
    db.load("with_holes", pa.table(holes), nulls="drop")
    db.load("many", {"x": np.arange(12_345)})
    assert repr(db.relations).splitlines() == [
        "relation      rows  columns",
        f"edge        {len(EDGES):>6}  src: int64, dst: int64",
        "node            25  id: int64",
        "colour           3  id: int64, name: string",
        "base             2  item: string, pence: int64",
        "with_holes       1  x: int64, a_longer_name: string  (3 with NULL dropped)",
        "many        12,345  x: int64",
    ]
    assert db.relations["with_holes"].dropped_rows == 3
    assert list(db.relations) == ["edge", "node", "colour", "base", "with_holes", "many"]


def test_loading_again_replaces(db: Database) -> None:
    rule = "h(a) <- edge(a, _)."
    before = db.count(rule)
    stream = db.stream(rule, batch_rows=1)
    next(stream)
    db.load("edge", [(100, 200)], columns=["src", "dst"])
    assert db.query(rule).to_pydict() == {"a": [100]} and db.count(rule) == 1
    assert 1 + sum(batch.num_rows for batch in stream) == before, "a stream keeps what it began with"
    db.load("edge", [("x", "y", "z")], columns=["a", "b", "c"])
    with pytest.raises(errors.ArityError):
        db.query(rule)
    assert db.query("h(c) <- edge(_, _, c).").to_pydict() == {"c": ["z"]}


def test_a_head_may_not_be_loaded_data(db: Database) -> None:
    rule = "h(a) <- edge(a, _)."
    assert db.count(rule) > 1
    db.load("h", [(1,)], columns=["x"])
    with pytest.raises(errors.RuleError, match="'h' is loaded data: give the head another name"):
        db.count(rule)
    del db.relations["h"]
    assert db.count(rule) > 1


def test_programs_remembered_are_bounded(db: Database) -> None:
    for number in range(prepared.PREPARED + 10):
        assert db.count(f"h(a) <- node(a), a >= {number}.") == max(0, 25 - number)
    assert len(db._prepared._programs) == prepared.PREPARED


def test_duplicates_collapse(db: Database) -> None:
    with pytest.warns(errors.EqualRowsWarning) as told:
        db.load("twice", [(1, 2), (1, 2), (3, 4)], columns=["a", "b"])
    assert [str(warning.message) for warning in told] == [
        "relation 'twice' is a set: 1 equal row of its source left out; bag=True keeps such rows (--bag in"
        " the shell), row_number= tells them apart"
    ]
    assert told[0].filename == __file__
    assert db.relations["twice"].duplicate_rows == 1
    assert db.count("h(a, b) <- twice(a, b).") == 2


def test_equal_rows_are_told_of_once_per_load(tmp_path: Path) -> None:
    rows = {"a": [1, 1, 1, 2, None], "b": [5, 5, 5, 6, 7]}
    for made in (lftj.Database(), Workspace(), Workspace.open(tmp_path / "kept")):
        for n, left_out, columns in ((5, 2, ["a", "b"]), (3, 1, ["b"])):
            source = pa.table(rows).slice(0, n)
            with pytest.warns(errors.EqualRowsWarning, match=f": {left_out + (n == 3)} equal rows") as told:
                made.load(f"r{n}", source, columns=columns, nulls="drop")
            assert len(told) == 1 and told[0].filename == __file__
    made.close()


def test_no_word_of_equal_rows_where_none_is_lost(db: Database, tmp_path: Path) -> None:
    """Distinct rows, bags, numbered rows; copies of relations; a folder that is opened again."""
    rows = [(1, 2), (1, 2), (3, 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        db.load("bag", rows, columns=["a", "b"], bag=True)
        db.load("numbered", rows, columns=["a", "b"], row_number="n")
        db.load("copy", db["edge"])
    with Workspace.open(tmp_path / "kept") as kept, pytest.warns(errors.EqualRowsWarning):
        kept.load("twice", rows, columns=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Workspace.open(tmp_path / "kept") as again, again.transaction() as tx:
            tx.insert("twice", [(7, 7), (7, 7)])


def test_a_warning_made_an_error_leaves_the_database_as_it_was(db: Database) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.EqualRowsWarning)
        with pytest.raises(errors.EqualRowsWarning):
            db.load("edge", [(1, 2), (1, 2)], columns=["src", "dst"])
    assert len(db["edge"]) == len(EDGES)


# -- empty relations everywhere -------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_programs_over_nothing(db: Database, kind: str, threads: int) -> None:
    for name, relation in list(db.relations.items()):
        db.load(name, relation.slice(0, 0))
    rule = PROGRAMS[kind]
    table = db.query(rule, threads=threads)
    assert table.num_rows == 0 and table.num_columns > 0
    assert db.count(rule, threads=threads) == 0
    (batch,) = db.stream(rule, threads=threads)
    assert batch.num_rows == 0 and batch.schema == table.schema
    assert str(db.explain(rule, analyze=True))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("h(a) <- node(a), nothing(a).", 0),
        ("h(a) <- node(a), nothing(_).", 0),
        ("h(a) <- node(a), !nothing(a).", 25),
        ("h(a) <- node(a), !nothing(_).", 25),
        ("h(a) <- node(a), (nothing(a) ; a < 3).", 3),
        ("n[] = count() <- node(a), nothing(b).", 0),
        ("n[a] = count() <- node(a), !nothing(a).", 25),
        ("none(a) <- nothing(a). h(a) <- node(a), !none(a).", 25),
        ("none[a] = count() <- nothing(a). h(a) <- node(a), !none(a, _).", 25),
        ("h(a, v) <- node(a), v = a + 1, !nothing(v).", 25),
    ],
)
@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
def test_one_empty_relation(db: Database, rule: str, expected: int) -> None:
    db.load("nothing", pa.table({"x": pa.array([], pa.int64())}))
    assert db.query(rule).num_rows == expected == db.count(rule)


# -- streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
def test_batches_are_full_but_for_the_last(db: Database, batch_rows: int, threads: int) -> None:
    n_rows = db.count(TRIANGLE)
    sizes = [batch.num_rows for batch in db.stream(TRIANGLE, batch_rows=batch_rows, threads=threads)]
    assert sizes[:-1] == [batch_rows] * (n_rows // batch_rows - (n_rows % batch_rows == 0))
    assert sum(sizes) == n_rows


def test_a_wrong_rule_fails_before_the_first_batch(db: Database) -> None:
    with pytest.raises(errors.UnknownRelationError):
        db.stream("h(a) <- egde(a, _).")
