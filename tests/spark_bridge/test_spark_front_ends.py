"""differential: `join_sql` against Spark's own SQL, and `motifs` against the same in SQL."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lftj import errors
from spark_bridge import MaintainedJoin
from spark_bridge.front_ends import select_rules
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.schemas import arrow_schema
from support.by_cells import join_sql, motifs
from support.row_frames import frame_of_rows

PEOPLE = [
    (1, "ann", 30, "oslo", datetime.date(1990, 1, 2), Decimal("10.50"), 1),
    (2, "bob", None, "rome", datetime.date(1975, 5, 5), Decimal("3.25"), 2),
    (3, "cy", 41, None, None, None, None),
    (4, "ann", 7, "oslo", datetime.date(2010, 9, 9), Decimal("0.75"), 4),
    (4, "ann", 7, "oslo", datetime.date(2010, 9, 9), Decimal("0.75"), 4),
    (None, "eve", 41, "rome", datetime.date(1980, 1, 1), Decimal("7.00"), 5),
]
EDGES = [
    *((1, 2, 0.5), (1, 2, 0.5), (1, 3, 1.5), (2, 3, 2.5), (3, 1, 0.25)),
    *((3, None, 1.25), (9, 1, 4.0), (None, 4, 1.0), (1, 2, None)),
]
"""Equal rows, rows that differ in NULL, and NULL in what is joined by."""


ORDERS = "id bigint, of bigint, n bigint"


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    people = "id bigint, name string, age int, city string, born date, pay decimal(10,2), small smallint"
    found = {
        "person": frame_of_rows(spark, PEOPLE, people),
        "edge": frame_of_rows(spark, EDGES, "src bigint, dst bigint, `how much` double"),
        "nobody": frame_of_rows(spark, [], people),
    }
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    return found


def rows(frame: DataFrame, *, ordered: bool = False) -> list[tuple[Any, ...]]:
    found = [tuple(map(_comparable, row)) for row in frame.collect()]
    return found if ordered else sorted(found, key=lambda row: [(one is not None, one) for one in row])


def _comparable(value: Any) -> Any:
    return round(float(value), 9) if isinstance(value, float | Decimal) else value


SELECTS = {
    "filter": "SELECT id, name FROM person WHERE age > 30 AND name <> 'bob'",
    "projection": "SELECT name, age + 1 AS later, upper(name) AS loud FROM person",
    "expressions": "SELECT id * 2 - age AS x, coalesce(age, -1) AS y, city || '!' AS z FROM person",
    "equal rows": "SELECT src FROM edge",
    "or": "SELECT name FROM person WHERE age < 20 OR city = 'oslo'",
    "inner join": "SELECT p.name, e.dst AS d FROM person p JOIN edge e ON p.id = e.src WHERE e.dst > 1",
    "left join": "SELECT p.name, e.dst AS d FROM person p LEFT JOIN edge e ON p.id = e.src",
    "full join": "SELECT p.id, e.src AS s FROM person p FULL JOIN edge e ON p.id = e.src",
    "exists": "SELECT name FROM person p WHERE EXISTS (SELECT 1 FROM edge e WHERE e.src = p.id)",
    "not exists": "SELECT name FROM person p WHERE NOT EXISTS (SELECT 1 FROM edge e WHERE e.src = p.id)",
    "in": "SELECT name FROM person WHERE id IN (SELECT dst FROM edge WHERE src > 1)",
    "not in with NULLs": "SELECT name FROM person WHERE id NOT IN (SELECT dst FROM edge WHERE src > 1)",
    "group by": "SELECT city, count(*) AS n, sum(age) AS s, avg(age) AS m, min(name) AS a FROM person"
    " GROUP BY city",
    "having": "SELECT city, count(*) AS n FROM person GROUP BY city HAVING count(*) > 1",
    "aggregates of nothing": "SELECT count(*) AS n, sum(age) AS s, max(name) AS m FROM nobody",
    "distinct": "SELECT DISTINCT city FROM person",
    "count distinct": "SELECT count(DISTINCT city) AS cities, count(city) AS named FROM person",
    "union all": "SELECT src AS v FROM edge UNION ALL SELECT dst FROM edge",
    "union": "SELECT src AS v FROM edge UNION SELECT dst FROM edge",
    "except": "SELECT src FROM edge EXCEPT SELECT dst FROM edge",
    "intersect": "SELECT src FROM edge INTERSECT SELECT dst FROM edge",
    "scalar subquery": "SELECT name, (SELECT max(dst) FROM edge) AS top FROM person",
    "correlated subquery": "SELECT name, (SELECT count(*) FROM edge e WHERE e.src = p.id) AS n FROM person p",
    "case": "SELECT name, CASE WHEN age < 18 THEN 'child' WHEN age IS NULL THEN '?' ELSE 'adult' END AS k"
    " FROM person",
    "row number": "SELECT id, row_number() OVER (PARTITION BY city ORDER BY name DESC, id) AS r FROM person",
    "window sum": "SELECT id, name, sum(age) OVER (ORDER BY id NULLS LAST) AS running FROM person",
    "window of a join": "SELECT p.name, rank() OVER (PARTITION BY p.city ORDER BY e.dst NULLS LAST) AS r"
    " FROM person p JOIN edge e ON e.src = p.id",
    "first of each": "SELECT * FROM (SELECT name, rank() OVER (PARTITION BY city ORDER BY name) AS r"
    " FROM person) t WHERE r = 1",
    "order and limit": "SELECT name, age FROM person ORDER BY age DESC NULLS LAST, name LIMIT 3",
    "offset": "SELECT id, name FROM person ORDER BY id NULLS FIRST LIMIT 2 OFFSET 1",
    "order by what is not shown": "SELECT name FROM person ORDER BY age NULLS FIRST, id NULLS LAST",
    "limit inside": "SELECT count(*) AS n FROM (SELECT id FROM person ORDER BY id NULLS LAST LIMIT 3) t",
    "with": "WITH d AS (SELECT src, count(*) AS n FROM edge GROUP BY src)"
    " SELECT p.name, d.n FROM person p JOIN d ON d.src = p.id",
    "from a subquery": "SELECT t.city, t.n FROM (SELECT city, count(*) AS n FROM person GROUP BY city) t"
    " WHERE t.n > 1 ORDER BY t.n DESC, t.city",
    "dates": "SELECT id, year(born) AS y, month(born) AS m FROM person WHERE born >= DATE '1980-01-01'",
    "decimals": "SELECT city, sum(pay) AS total FROM person GROUP BY city",
    "rollup": "SELECT city, count(*) AS n FROM person GROUP BY ROLLUP (city)",
    "triangles": "SELECT count(*) AS n FROM edge a, edge b, edge c"
    " WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src",
    "two of one name": "SELECT p.name, q.name FROM person p JOIN person q ON p.city = q.city",
    "no table": "SELECT 1 AS one, 'a' AS text",
    "names in any case": "SELECT P.NAME AS Name, p.id AS name FROM PERSON p"
    " WHERE EXISTS (SELECT 1 FROM Edge)",
    "except all": "SELECT src FROM edge EXCEPT ALL SELECT dst FROM edge",
    "intersect all": "SELECT src FROM edge INTERSECT ALL SELECT dst FROM edge",
    "a series of each row": "SELECT p.id, r.n FROM person p JOIN edge e ON e.src = p.id,"
    " LATERAL (SELECT explode(sequence(1, e.dst)) AS n) r",
}
IN_DUCKDBS_WORDS = {
    "a series of each row": "SELECT p.id, r.n FROM person p JOIN edge e ON e.src = p.id,"
    " generate_series(1, e.dst) r(n)"
}
"""What Spark says in words of its own."""


@pytest.mark.in_turns
@pytest.mark.parametrize("of", SELECTS)
def test_differential_selects(of: str, spark: SparkSession, frames: dict[str, DataFrame]) -> None:
    sql = SELECTS[of]
    found, expected = join_sql(IN_DUCKDBS_WORDS.get(of, sql), frames, partitions=2), spark.sql(sql)
    assert found.columns == expected.columns
    ordered = "ORDER BY" in sql.rpartition(")")[2]
    assert rows(found, ordered=ordered) == rows(expected, ordered=ordered)


def test_types_are_those_of_sql(frames: dict[str, DataFrame]) -> None:
    sql = "SELECT small, age + 1 AS i, sum(pay) AS d FROM person GROUP BY small, age"
    found = join_sql(sql, frames, partitions=1)
    assert [field.dataType.simpleString() for field in found.schema] == ["smallint", "int", "decimal(38,2)"]
    assert found.count() == 5


def test_names_that_no_rule_can_write(frames: dict[str, DataFrame]) -> None:
    sql = 'SELECT max("how much") AS "the most", count(*) AS "copies" FROM edge GROUP BY src > 1'
    found = join_sql(sql, frames, partitions=1)
    assert found.columns == ["the most", "copies"]
    assert rows(found) == [(1.0, 1), (1.5, 4), (4.0, 4)]
    with pytest.raises(errors.UnusableNameError, match="'an edge' cannot be named"):
        join_sql('SELECT src FROM "an edge"', {"an edge": frames["edge"]})


def test_aggregates_in_an_order(frames: dict[str, DataFrame]) -> None:
    sql = "SELECT city, string_agg(name, '+' ORDER BY name DESC) AS names FROM person GROUP BY city"
    expected = [(None, "cy"), ("oslo", "ann+ann+ann"), ("rome", "eve+bob")]
    assert rows(join_sql(sql, frames, partitions=2)) == expected


def test_nulls_of_columns_that_are_read(frames: dict[str, DataFrame]) -> None:
    sql = "SELECT src, count(*) AS n FROM edge GROUP BY src"
    assert rows(join_sql(sql, frames, nulls="drop", partitions=1)) == [(1, 4), (2, 1), (3, 2), (9, 1)]
    with pytest.raises(PySparkException, match="NullError: relation 'edge', column 'src'"):
        join_sql(sql, frames, nulls="refuse", partitions=1).collect()
    counted = "SELECT count(*) AS n FROM edge"
    for nulls in ("drop", "refuse", "keep"):
        assert rows(join_sql(counted, frames, nulls=nulls, partitions=1)) == [(9,)]


@pytest.mark.parametrize(
    ("sql", "error", "named"),
    [
        ("SELEKT 1", errors.SqlError, "SELEKT"),
        ("SELECT nane FROM person", errors.SqlError, "name"),
        ("SELECT name FROM persons", errors.SqlError, "person"),
        ("SELECT random() FROM person", errors.UnsupportedSqlError, "random"),
    ],
)
def test_what_is_refused(sql: str, error: type[Exception], named: str, frames: dict[str, DataFrame]) -> None:
    with pytest.raises(error) as caught:
        join_sql(sql, frames)
    assert named in str(caught.value)


def test_names_that_differ_in_case_are_one_in_sql(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS a, 2 AS A")
    with pytest.raises(errors.SourceError, match="relation 't': 'a' and 'A' are one name in SQL"):
        join_sql("SELECT 1", {"t": frame})
    with pytest.raises(errors.SourceError, match="relations: 't' and 'T' are one name in SQL"):
        join_sql("SELECT 1", {"t": spark.range(1), "T": spark.range(1)})


def test_columns_that_are_counted_by_are_not_cut(frames: dict[str, DataFrame]) -> None:
    relations = (("edge", arrow_schema("edge", frames["edge"].schema)),)
    text = "h(a, b, n) <- edge(a, b, _), edge(b, n, _)."
    assert ProgramText(text, None, relations).plans()[0].rules[0].axes == ("a", "b", "n")
    uncut = ProgramText(text, None, relations, frozenset(["n"])).plans()[0]
    assert uncut.rules[0].axes == ("a", "b")
    assert not uncut.crosses


def test_what_shows_the_keys_has_no_equal_rows(spark: SparkSession, tmp_path: Path) -> None:
    tables = {
        "orders": frame_of_rows(spark, [(1, 7, 5), (2, 7, 5), (3, 8, 2)], ORDERS),
        "person": frame_of_rows(spark, [(7, "ann"), (8, "bob")], "id bigint, name string"),
    }
    sql = "SELECT o.id, p.name, o.n FROM orders o JOIN person p ON p.id = o.of WHERE o.n > 2"
    keys = {"orders": ["id"], "person": ["id"]}
    state = {"state": tmp_path / "state", "partitions": 1}
    kept = MaintainedJoin.from_sql(sql, tables, key=keys, **state)
    assert rows(kept.table()) == [(1, "ann", 5), (2, "ann", 5)]
    changes = frame_of_rows(spark, [("U", 3, 8, 9), ("D", 1, None, None)], f"op string, {ORDERS}")
    assert rows(kept.apply({"orders": changes})) == [(1, "ann", 5, -1), (3, "bob", 9, 1)]
    equal = "SELECT p.name, o.n FROM orders o JOIN person p ON p.id = o.of"
    for wrong, given in ((sql, {"person": ["id"]}), (equal, keys)):
        with pytest.raises(errors.UnsupportedSqlError, match="what has equal rows is not taken"):
            MaintainedJoin.from_sql(wrong, tables, key=given, state=tmp_path / "other")
    with pytest.raises(errors.SourceError, match="key of 'orders' is"):
        MaintainedJoin.from_sql(sql, tables, key={"orders": ["no"]}, state=tmp_path / "other")


@pytest.mark.in_turns
def test_a_select_is_kept(spark: SparkSession, frames: dict[str, DataFrame], tmp_path: Path) -> None:
    sql = (
        "SELECT p.city, count(*) AS n, max(e.dst) AS most FROM person p JOIN edge e ON e.src = p.id"
        " GROUP BY p.city HAVING count(*) > 1"
    )
    known = {"person": frames["person"].distinct(), "edge": frames["edge"].select("src", "dst").distinct()}
    kept = MaintainedJoin.from_sql(sql, known, state=tmp_path / "state", partitions=2)
    assert kept.table().columns == ["city", "n", "most"]
    assert rows(kept.table()) == [(None, 2, 1), ("oslo", 2, 3)]
    changes = frame_of_rows(spark, [(3, 9, 1), (1, 3, -1), (4, 5, 1)], "src bigint, dst bigint, weight int")
    kept.apply({"edge": changes})
    assert rows(kept.table()) == [(None, 3, 9), ("oslo", 2, 5)]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT src FROM edge", "what has equal rows is not taken: write SELECT DISTINCT"),
        ("SELECT count(*) FROM edge", "an aggregate without GROUP BY in what is kept"),
        ("SELECT DISTINCT src FROM edge LIMIT 2", "ORDER BY or LIMIT in what is kept"),
        ("SELECT DISTINCT rank() OVER (ORDER BY src) FROM edge", "a window or LIMIT in what is kept"),
        ("SELECT 1 AS one", "a row of constants in what is kept"),
    ],
)
def test_selects_that_are_not_kept(
    sql: str, named: str, frames: dict[str, DataFrame], tmp_path: Path
) -> None:
    with pytest.raises(errors.UnsupportedSqlError) as caught:
        MaintainedJoin.from_sql(sql, frames, state=tmp_path / "state")
    assert named in str(caught.value)
    with pytest.raises(errors.UnusableNameError, match="column 'how much' can't be kept"):
        MaintainedJoin.from_sql('SELECT DISTINCT "how much" FROM edge', frames, state=tmp_path / "state")


def test_a_motif_has_the_rows_of_its_vertices_and_edges(
    spark: SparkSession, frames: dict[str, DataFrame]
) -> None:
    found = motifs(
        "(a)-[e]->(b); (b)-[]->(c); !(c)-[]->(a)",
        frames["person"],
        frames["edge"],
        shares={},
        nulls="keep",
    )
    assert found.columns == ["a", "e", "b", "c"]
    assert found.select("e.*").columns == frames["edge"].columns
    flat = found.selectExpr("a.id", "a.name", "e.src", "e.dst", "e.`how much`", "b.name", "c.id")
    expected = spark.sql(
        "SELECT DISTINCT a.id, a.name, e.src, e.dst, e.`how much`, b.name, c.id"
        " FROM person a, edge e, person b, edge f, person c WHERE a.id = e.src AND e.dst = b.id"
        " AND f.src = b.id AND f.dst = c.id"
        " AND NOT EXISTS (SELECT 1 FROM edge g WHERE g.src = c.id AND g.dst = a.id)"
    )
    assert rows(flat) == rows(expected) != []


def test_a_motif_has_the_rows_and_columns_that_are_asked_for(
    spark: SparkSession, frames: dict[str, DataFrame]
) -> None:
    found = motifs(
        "(a)-[e]->(b); (b)-[*1..2]-(c)",
        frames["person"],
        frames["edge"],
        where=["a.name < 'd' AND a.id > 0", "a.id <> c.id", "e.`how much` IS NOT NULL"],
        columns=["c.id", "a.name", "a.id"],
        shares={},
        nulls="keep",
    )
    assert [(field.name, field.dataType.names) for field in found.schema] == [
        ("a", frames["person"].select("id", "name").columns),
        ("c", ["id"]),
    ]
    steps = "(SELECT src, dst FROM edge UNION SELECT x.src, y.dst FROM edge x JOIN edge y ON x.dst = y.src)"
    expected = spark.sql(
        "SELECT id, name, cid FROM (SELECT DISTINCT a.id, a.name, b.id AS bid, e.`how much`, c.id AS cid"
        f" FROM person a, edge e, person b, {steps} f, person c WHERE a.id = e.src AND e.dst = b.id"
        " AND (f.src = b.id AND f.dst = c.id OR f.dst = b.id AND f.src = c.id)"
        " AND a.name < 'd' AND a.id > 0 AND a.id <> c.id AND e.`how much` IS NOT NULL)"
    )
    assert rows(found.selectExpr("a.id", "a.name", "c.id")) == rows(expected) != []
    for wrong in ({"columns": ["d"]}, {"columns": ["a.ages"]}, {"where": "a.ages > 3"}, {"columns": []}):
        with pytest.raises(errors.SourceError):
            motifs("(a)-[]->(b)", frames["person"], frames["edge"], **wrong)  # type: ignore[arg-type]


def test_a_motif_comes_as_often_as_its_edges_give_it(
    spark: SparkSession, frames: dict[str, DataFrame]
) -> None:
    edges = frames["edge"].unionAll(frames["edge"].where("src < dst"))
    edges.createOrReplaceTempView("parallel")
    found = motifs(
        "(a)-[e]->(b); (b)-[]->(); !(b)-[]->(a)",
        frames["person"],
        edges,
        where="a.id < b.id",
        columns=["a.id", "e.dst"],
        times=True,
        shares={},
        nulls="keep",
    )
    expected = spark.sql(
        "SELECT a.id, e.dst FROM person a, parallel e, person b, parallel f"
        " WHERE a.id = e.src AND e.dst = b.id AND f.src = b.id AND a.id < b.id"
        " AND NOT EXISTS (SELECT 1 FROM edge g WHERE g.src = b.id AND g.dst = a.id)"
    )
    flat = rows(found.selectExpr("a.id", "e.dst"))
    assert flat == rows(expected) and len(flat) > len(set(flat)) > 0


def test_frames_without_the_columns_of_a_graph_are_refused(frames: dict[str, DataFrame]) -> None:
    with pytest.raises(errors.SourceError, match="vertices have no column 'id'"):
        motifs("(a)-[]->(b)", frames["edge"], frames["edge"])
    with pytest.raises(errors.SourceError, match="edges have no column 'src'"):
        motifs("(a)-[]->(b)", frames["person"], frames["person"])


def test_sql_says_what_it_needs(frames: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    select_rules._binder.cache_clear()
    with pytest.raises(ImportError, match=r"lftj\[sql\]"):
        join_sql("SELECT DISTINCT name FROM person", frames)
