"""oracle: relations that keep NULLs against DuckDB; and what the language says of NULL by itself."""

from __future__ import annotations

import datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from support.rows import rows_of

# rule, and SQL over r(a, b), s(a, b) and c(a), which has no NULL
RULES = {
    "rows as they are": ("h(a, b) <- r(a, b).", "select distinct a, b from r"),
    "an existential column": ("h(a) <- r(a, _).", "select distinct a from r"),
    "join": ("h(a, b, d) <- r(a, b), s(b, d).", "select distinct r.a, r.b, s.b from r join s on r.b = s.a"),
    "join in one atom": ("h(a) <- r(a, a).", "select distinct a from r where a = b"),
    "join with a column that has none": (
        "h(a, b) <- r(a, b), c(b).",
        "select distinct r.a, b from r join c on b = c.a",
    ),
    "is null": ("h(a) <- r(a, b), b is null.", "select distinct a from r where b is null"),
    "is not null": ("h(a, b) <- r(a, b), b is not null.", "select distinct a, b from r where b is not null"),
    "of a joined variable": ("h(b) <- r(_, b), s(b, _), b is null.", "select 1 where false"),
    "either": (
        "h(a, b) <- r(a, b), (b is null ; b > 2 ; s(b, a)).",
        "select distinct a, b from r where b is null or b > 2"
        " or exists (select 1 from s where s.a = r.b and s.b = r.a)",
    ),
    "constant": ("h(a) <- r(a, 3).", "select distinct a from r where b = 3"),
    "less": ("h(a, b) <- r(a, b), b < 3.", "select distinct a, b from r where b < 3"),
    "different": ("h(a, b) <- r(a, b), b != 3.", "select distinct a, b from r where b <> 3"),
    "two columns": ("h(a, b) <- r(a, b), a <= b.", "select distinct a, b from r where a <= b"),
    "late comparison": ("h(a, b) <- r(a, b), a * b != 4.", "select distinct a, b from r where a * b <> 4"),
    "in": ("h(a, b) <- r(a, b), b not in (1, 3).", "select distinct a, b from r where b not in (1, 3)"),
    "computed": ("h(a, v) <- r(a, b), v = b + 1.", "select distinct a, b + 1 from r where b is not null"),
    "negated atom": (
        "h(a, b) <- r(a, b), !s(b, _).",
        "select distinct a, b from r where b is not null and not exists (select 1 from s where s.a = r.b)",
    ),
    "negated atom as in not exists": (
        "h(a, b) <- r(a, b), (b is null ; !s(b, _)).",
        "select distinct a, b from r where not exists (select 1 from s where s.a = r.b)",
    ),
    "negated computed": (
        "h(a) <- r(a, b), v = b + 1, !s(v, _).",
        "select distinct a from r where b is not null and not exists (select 1 from s where s.a = r.b + 1)",
    ),
    "groups": ("h[a] = count() <- r(a, b).", "select a, count(*) from r group by a"),
    "sum": ("h[a] = sum(b) <- r(a, b).", "select a, sum(b) from r group by a having count(b) > 0"),
    "avg": ("h[a] = avg(b) <- r(a, b).", "select a, avg(b) from r group by a having count(b) > 0"),
    "min": ("h[a] = min(b) <- r(a, b).", "select a, min(b) from r group by a having count(b) > 0"),
    "max of a join": (
        "h[d] = max(a) <- r(a, b), s(b, d).",
        "select s.b, max(r.a) from r join s on r.b = s.a group by s.b having count(r.a) > 0",
    ),
    "several aggregates": (
        "h(a, n: count(), t: sum(b)) <- r(a, b).",
        "select a, count(*), sum(b) from r group by a",
    ),
    "of a group that is NULL": (
        "h(a, count(), max(d)) <- r(a, b), s(b, d).",
        "select r.a, count(*), max(s.b) from r join s on r.b = s.a group by r.a",
    ),
    "a head with NULLs, read": (
        "g(b) <- r(_, b). g(b) <- c(b). h(b) <- g(b), b is null. h(b) <- g(b), s(b, _).",
        "with g as (select b from r union select a from c) select distinct b from g where b is null"
        " or b in (select a from s where a is not null)",
    ),
    "recursion": (
        "h(a, b) <- r(a, b). h(a, d) <- h(a, b), r(b, d).",
        "with recursive h as (select a, b from r union select h.a, r.b from h join r on h.b = r.a)"
        " select a, b from h",
    ),
}
N_ROWS = 60


def drawn(random: Random, width: int, null: float, most: int) -> list[tuple[int | None, ...]]:
    return [
        tuple(None if random.random() < null else random.randint(0, most) for _ in range(width))
        for _ in range(N_ROWS)
    ]


def spread(rows: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.fixture(scope="module")
def sides() -> Any:
    duckdb = pytest.importorskip("duckdb")
    random = Random(5)
    db, connection = lftj.Database(), duckdb.connect()
    for name, width, null, most in (("r", 2, 0.3, 5), ("s", 2, 0.3, 3), ("c", 1, 0.0, 4)):
        rows = list(dict.fromkeys(drawn(random, width, null, most)))  # a relation is a set
        table = pa.table({"ab"[i]: pa.array([row[i] for row in rows], pa.int64()) for i in range(width)})
        db.load(name, table, nulls="keep" if null else "refuse")
        connection.register(name, table)
    return db, connection


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
@pytest.mark.parametrize("case", RULES)
def test_rules_agree_with_sql(case: str, sides: Any) -> None:
    db, connection = sides
    rule, sql = RULES[case]
    expected = spread(connection.execute(sql).fetchall())
    assert spread(rows_of(db.query(rule, head="h", threads=1))) == expected
    assert (
        spread([row for batch in db.stream(rule, head="h", batch_rows=3) for row in rows_of(batch)])
        == expected
    )
    assert db.count(rule, head="h") == len(expected)
    assert expected or case == "of a joined variable"


TYPES = {
    "int8": (pa.int8(), -128),
    "uint64": (pa.uint64(), 2**63 - 1),
    "float": (pa.float64(), float("-inf")),
    "string": (pa.string(), ""),
    "view": (pa.string_view(), "a longer text than fits a view itself"),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "a"),
    "binary": (pa.binary(2), b"\x00\x01"),
    "decimal": (pa.decimal32(5, 2), Decimal("1.50")),
    "boolean": (pa.bool_(), False),
    "date": (pa.date32(), datetime.date(1900, 1, 1)),
    "date64": (pa.date64(), datetime.date(1900, 1, 1)),
    "timestamp": (pa.timestamp("ns", "UTC"), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
    "extension": (pa.bool8(), True),
}


def column(arrow: pa.DataType, values: list[Any]) -> pa.Array:
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, pa.array(values).cast(arrow.storage_type))
    return pa.array(values, arrow)


@pytest.mark.parametrize("name", TYPES)
def test_nulls_of_all_types_come_out_as_they_went_in(name: str) -> None:
    arrow, value = TYPES[name]
    db = lftj.Database()
    db.load("r", pa.table({"a": [1, 2, 3], "v": column(arrow, [value, None, None])}), nulls="keep")
    db.load("bare", pa.table({"v": column(arrow, [None])}), nulls="keep")
    found = db.query("h(a, v) <- r(a, v).", order_by="a")
    assert found["v"].type == arrow
    assert found["v"].to_pylist() == [value, None, None]
    assert db.query("h(v) <- bare(v).")["v"].to_pylist() == [None]
    assert db.query("h(a) <- r(a, v), r(_, v).").to_pydict() == {"a": [1]}
    assert db["r"].count == 3 and (2, None) in db["r"] and (1, None) not in db["r"]
    assert list(db.query("h(v) <- r(_, v), v is not null.")["v"].to_pylist()) == [value]


def test_order_has_nulls_last() -> None:
    db = lftj.Database()
    rows = [(1, "b"), (2, None), (3, "a"), (None, "b")]
    db.load("r", rows, columns=["a", "b"], nulls="keep")
    for order, expected in (
        ("b", [(3, "a"), (1, "b"), (None, "b"), (2, None)]),
        ("b desc, a desc", [(1, "b"), (None, "b"), (3, "a"), (2, None)]),
        ("a desc", [(3, "a"), (2, None), (1, "b"), (None, "b")]),
    ):
        assert rows_of(db.query("h(a, b) <- r(a, b).", order_by=order)) == expected
    assert rows_of(db.query("h(a, b) <- r(a, b).", order_by="a", limit=2)) == [(1, "b"), (2, None)]


def test_the_value_that_has_the_code_of_null_is_refused() -> None:
    least = -(2**63)
    db = lftj.Database()
    db.load("keeps", [(1, None), (1, 2)], columns=["a", "b"], nulls="keep")
    with pytest.raises(errors.RangeError, match=r"relation 'r', column 'a', row 1 .*has the code of NULL"):
        db.load("r", [(5,), (least,)], columns=["a"])
    assert db.query(f"h(a) <- keeps(a, {least}).").num_rows == 0
    assert db.query(f"h(a, b) <- keeps(a, b), b != {least}.").num_rows == 1
    with pytest.raises(errors.RangeError, match="has the code of NULL"):
        db.query(f"h(v) <- keeps(a, _), v = {least} + a - 1.")
    db = lftj.Database()
    db.load("r", [(least,)], columns=["a"])
    with pytest.raises(errors.RangeError, match=r'value -9223372036854775808 .*nulls="drop"'):
        db.load("keeps", [(1, None), (1, 2)], columns=["a", "b"], nulls="keep")
    assert db.query("h(a) <- r(a), a is null.").num_rows == 0
    assert rows_of(db.query("h(a) <- r(a), a is not null.")) == [(least,)]


def test_what_says_that_it_may_be_null_is_tested() -> None:
    """As programs write it that know of NULL and not of what is computed."""
    db = lftj.Database()
    db.load("r", [(1, None), (2, 2)], columns=["a", "b"], nulls="keep")
    for computed, null in {
        "b + 1": {1},
        "1 = 1": set(),
        "coalesce(b, 0) + 1": set(),
        "if(1 <= b, b, if(b = 0, b, 3))": set(),
        "if(a = 1, null, a)": {1},
    }.items():
        for word, right in (("is", null), ("is not", {1, 2} - null)):
            found = rows_of(db.query(f"h(a) <- r(a, b), coalesce({computed}, null) {word} null."))
            assert {a for (a,) in found} == right, computed


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("h(a) <- r(a, b), 3 is not null.", "'3' is computed, so it is never NULL"),
        ("h(a) <- r(a, b), _ is null.", "'_' has no value to test"),
        ("h(a) <- r(a, b), v = b + 1, v is null.", "'v' is computed, so it is never NULL"),
        ("h(a) <- r(a, b), v is null.", "'v', which the comparison needs, is bound by no"),
        ("h(a) <- r(a, b), b = null.", "null equals nothing: ask 'b is null'"),
        ("h(a) <- r(a, NULL).", "'NULL' is written null"),
        ("h(null) <- r(null, _).", "a head takes variables only"),
        ("h(a) <- r(null, a).", "null equals nothing: write a variable x here, and 'x is null' beside 'r'"),
        ("h(a) <- r(a, b), b <=> c.", "'c', which the comparison needs, is bound by no"),
        ("h(a) <- r(a, b), r(<!=> b, _).", "an atom takes <=> before a variable, not <!=>"),
        ("h(a, w) <- r(a, b), v = null, w = coalesce(v, b).", "'v' is null, which has no type here"),
        ("h(a, sum(v)) <- r(a, b), v = null.", "'v' is null, which has no type here"),
    ],
)
def test_what_can_not_be_null_is_not_tested(rule: str, message: str) -> None:
    db = lftj.Database()
    db.load("r", [(1, None), (1, 2)], columns=["a", "b"], nulls="keep")
    with pytest.raises(errors.RuleError, match=message):
        db.query(rule)


def test_explain_shows_the_tests_and_trace_the_bound() -> None:
    db = lftj.Database()
    db.load("r", [(1, None), (2, "x"), (None, "x")], columns=["a", "b"], nulls="keep")
    rule = "h(a, c) <- r(a, b), r(c, b)."
    assert "b is not null" in str(db.explain(rule))
    assert "is not null" not in str(db.explain("h(a, b) <- r(a, b)."))
    found = db.trace("h(a, b) <- r(a, b).")
    assert "NULL" in found["to"].to_pylist()
    found = db.trace("h(b, a) <- r(a, b), b is not null.", order=["b", "a"])
    assert "not NULL" in {*found["from"].to_pylist(), *found["to"].to_pylist()}


def test_an_empty_relation_keeps_nulls_too() -> None:
    db = lftj.Database()
    db.load("r", [(-(2**63),)], columns=["a"])
    with pytest.raises(errors.RangeError, match="relation 'empty', column 'a': there is, or was, the value"):
        db.load("empty", pa.table({"a": pa.array([], pa.int64())}), nulls="keep")


def test_the_least_number_is_a_value_where_there_is_no_null() -> None:
    """A computed variable that is compared on the rows: the code of NULL is the least number's."""
    rule = "h(v) <- r(k, v), 0 >= w, k = w."
    least = pa.table({"a": pa.array([-(2**63), 5], pa.int64()), "b": [-1, -2]})
    db = lftj.Database()
    db.load("r", least)
    assert db.query(rule).to_pylist() == [{"v": -1}]
    kept = lftj.Database()
    kept.load("r", pa.table({"a": pa.array([None, -3], pa.int64()), "b": [-1, -2]}), nulls="keep")
    assert kept.query(rule).to_pylist() == [{"v": -2}]
