"""differential: SELECTs and motifs as rules, without Spark: against DuckDB and by looking."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lftj
from lftj import errors
from spark_bridge.front_ends.conjunctive_select import rule_of_select
from spark_bridge.front_ends.motif import rule_of_motif

EDGE = ["src", "dst"]
COLUMNS = {"edge": EDGE, "person": ["id", "name", "age"], "Odd": ["in", "a b", "x"]}

TABLES = {
    "edge": pa.table({"src": [1, 1, 2, 2, 3, 4], "dst": [2, 3, 3, 4, 4, 1]}),
    "person": pa.table({"id": [1, 2, 3, 4], "name": ["ann", "bob", "cy", "ann"], "age": [30, 41, 41, 7]}),
    "Odd": pa.table({"in": [1, 2], "a b": [2.5, 7.0], "x": [3, 4]}),
}


WITH_NULLS = {
    "edge": pa.table({"src": [1, 1, 2, None, 3, None, 4], "dst": [2, None, 3, 4, None, None, 1]}),
    "person": pa.table(
        {"id": [1, 2, None, 4], "name": ["ann", None, "cy", "ann"], "age": [30, None, None, 2]},
    ),
}
"""The same, of which rows differ in what is NULL."""


def database(tables: dict[str, pa.Table]) -> lftj.Database:
    found = lftj.Database()
    for name, table in tables.items():
        table = table.rename_columns(["c0", "c1", "c2"]) if name == "Odd" else table
        found.load(name, table, nulls="refuse" if tables is TABLES else "keep")
    return found


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    found = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted(found, key=lambda row: [(value is None, 0 if value is None else value) for value in row])


def answer(sql: str, tables: dict[str, pa.Table] = TABLES) -> list[tuple[Any, ...]]:
    """By the rule; what join_sql leaves out is left out."""
    rule = rule_of_select(sql, COLUMNS, keeps_null=tables is WITH_NULLS)
    return rows(database(tables).query(rule.text).select(range(len(rule.columns))))


def by_duckdb(sql: str, tables: dict[str, pa.Table] = TABLES) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        text = sql.replace("`", '"').replace("<=>", "IS NOT DISTINCT FROM")
        return rows(connection.sql(text).to_arrow_table())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT e.src, f.src, f.dst FROM edge e, edge f, edge g"
        " WHERE e.dst = f.src AND f.dst = g.dst AND g.src = e.src",
        "SELECT DISTINCT a.src, b.dst FROM edge a JOIN edge b ON a.dst = b.src AND a.src < b.dst",
        "SELECT * FROM edge",
        "SELECT * FROM edge e JOIN person p ON e.src = p.id WHERE NOT p.age IN (7, 8)",
        "SELECT DISTINCT p.* FROM edge JOIN person p ON p.id = dst WHERE name LIKE 'a%'",
        "SELECT DISTINCT name, age + 2 * id AS later, -age FROM person WHERE age BETWEEN 7 AND 30",
        "SELECT DISTINCT src FROM edge JOIN edge g USING (src) WHERE g.dst <> edge.dst",
        "SELECT DISTINCT * FROM edge JOIN edge g USING (src)",
        "SELECT DISTINCT greatest(src, dst), least(src, dst), abs(src - dst) FROM edge",
        "SELECT DISTINCT SRC FROM EDGE, person p WHERE Edge.Dst >= 3 AND p.NAME = 'ann' AND P.id = src",
        "SELECT DISTINCT `a b`, `in` FROM Odd, edge WHERE x = dst AND `a b` < 7e0 AND `in` < .5 + 3",
        "SELECT src, count(*) AS n FROM edge GROUP BY src",
        "SELECT count(*), name FROM edge e, person p WHERE e.src = p.id GROUP BY 2, e.src",
        "SELECT name AS who, sum(age) AS total, max(dst), min(dst), avg(dst * 1.0), count(id)"
        " FROM person JOIN edge ON src = id WHERE age IS NOT NULL GROUP BY who",
        "SELECT count(DISTINCT name) AS names, age FROM person GROUP BY age",
        "SELECT count(DISTINCT src % 2) FROM edge",
        "SELECT src, count(*), count(DISTINCT dst), count(DISTINCT dst % 2) FROM edge GROUP BY src",
        "SELECT count(*), sum(src + dst) FROM edge WHERE src <> dst",
        "SELECT age FROM person GROUP BY age",
        "SELECT e.src FROM edge e, edge f WHERE e.src = e.dst AND f.src = e.src AND f.dst = f.src",
    ],
)
def test_differential_selects_find_what_duckdb_finds(sql: str) -> None:
    assert answer(sql) == by_duckdb(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM edge WHERE src IS NULL",
        "SELECT DISTINCT e.dst, f.dst FROM edge e JOIN edge f ON e.src <=> f.src",
        "SELECT DISTINCT e.dst, f.dst FROM edge e, edge f, edge g WHERE e.src <=> f.src AND g.src <=> f.src",
        "SELECT DISTINCT e.dst, f.dst FROM edge e, edge f, edge g WHERE e.src <=> f.src AND g.src = f.src",
        "SELECT DISTINCT e.dst, f.dst FROM edge e, edge f WHERE e.src <=> f.src AND e.src = f.src",
        "SELECT DISTINCT e.dst FROM edge e WHERE e.src <=> e.dst",
        "SELECT DISTINCT e.dst FROM edge e WHERE e.src = e.src",
        "SELECT DISTINCT e.dst FROM edge e WHERE e.src <=> 1 + 0",
        "SELECT DISTINCT src + dst AS s, -dst FROM edge",
        "SELECT DISTINCT src FROM edge WHERE dst IS NOT NULL AND src + 1 IS NULL",
        "SELECT src, count(*), count(dst), sum(dst), max(dst + 1), count(DISTINCT dst) FROM edge GROUP BY 1",
        "SELECT name, age, count(id) FROM person WHERE NOT age IS NULL GROUP BY name, age",
        "SELECT p.name, count(DISTINCT e.dst) FROM edge e JOIN person p ON p.id <=> e.src GROUP BY 1",
    ],
)
def test_differential_selects_over_nulls(sql: str) -> None:
    assert answer(sql, WITH_NULLS) == by_duckdb(sql, WITH_NULLS) != []


def random_select(random: Random, operators: Sequence[str]) -> str:
    aliases = ["t", "u", "v"][: random.randint(1, 3)]
    tables = [random.choice(["edge", "person"]) for _ in aliases]
    numbers = {"edge": EDGE, "person": ["id", "age"]}
    columns = [
        f"{alias}.{name}" for alias, table in zip(aliases, tables, strict=True) for name in numbers[table]
    ]
    conditions = [
        f"{random.choice(columns)} {random.choice(operators)} "
        f"{random.choice([*columns, '3', 't.' + numbers[tables[0]][0] + ' + 1'])}"
        for _ in range(random.randint(0, 3))
    ]
    shown = random.sample(columns, random.randint(1, len(columns)))
    text = ", ".join(f"{table} {alias}" for alias, table in zip(aliases, tables, strict=True))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if random.random() < 0.4:
        called = random.choice(["count(*)", f"sum({random.choice(columns)})", f"count(DISTINCT {shown[0]})"])
        return f"SELECT {', '.join([*shown[1:], called])} FROM {text}{where}" + (
            f" GROUP BY {', '.join(shown[1:])}" if shown[1:] else ""
        )
    return f"SELECT DISTINCT {', '.join(shown)} FROM {text}{where}"


@pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tables", [TABLES, WITH_NULLS], ids=["values", "nulls"])
def test_differential_random_selects(tables: dict[str, pa.Table], seed: int) -> None:
    random = Random(seed)
    for _ in range(15):
        operators = ["=", "=", "=", "<", "<>", "<=", *(["<=>"] * 4 if tables is WITH_NULLS else [])]
        sql = random_select(random, operators)
        found, expected = answer(sql, tables), by_duckdb(sql, tables)
        if not found and "GROUP BY" not in sql and len(expected) == 1:
            continue  # aggregates over nothing: join_sql's affair
        assert found == expected, sql


@pytest.mark.parametrize(
    ("sql", "error", "named"),
    [
        ("SELEKT 1", errors.RuleSyntaxError, "not SQL"),
        ("SELECT src FROM edge", errors.RuleSyntaxError, "without 'edge.dst'"),
        ("SELECT DISTINCT src FROM edge ORDER BY src", errors.RuleSyntaxError, "ORDER BY src"),
        ("SELECT DISTINCT src FROM edge LIMIT 3", errors.RuleSyntaxError, "LIMIT 3"),
        ("SELECT src, count(*) FROM edge GROUP BY src HAVING count(*) > 1", errors.RuleSyntaxError, "HAVING"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", errors.RuleSyntaxError, "WITH"),
        ("SELECT * FROM edge UNION SELECT * FROM edge", errors.RuleSyntaxError, "one SELECT"),
        ("SELECT DISTINCT src FROM (SELECT * FROM edge) e", errors.RuleSyntaxError, "give a DataFrame"),
        (
            "SELECT DISTINCT e.src FROM edge e LEFT JOIN edge f ON e.dst = f.src",
            errors.RuleSyntaxError,
            "LEFT",
        ),
        ("SELECT DISTINCT src FROM edge NATURAL JOIN person", errors.RuleSyntaxError, "NATURAL"),
        ("SELECT DISTINCT src FROM edge WHERE src = 1 OR dst = 1", errors.RuleSyntaxError, "OR"),
        ("SELECT DISTINCT src FROM edge WHERE EXISTS (SELECT 1)", errors.RuleSyntaxError, "EXISTS"),
        (
            "SELECT DISTINCT src FROM edge WHERE dst IS NULL",
            errors.RuleSyntaxError,
            "IS NULL`: with nulls='keep'",
        ),
        ("SELECT DISTINCT soundex(name) FROM person", errors.RuleSyntaxError, "SOUNDEX"),
        ("SELECT DISTINCT src FROM edge TABLESAMPLE (5 ROWS)", errors.RuleSyntaxError, "TABLESAMPLE"),
        ("SELECT src FROM edge, edge", errors.RuleSyntaxError, "alias"),
        ("SELECT DISTINCT src FROM edge, edge f", errors.RuleSyntaxError, "say whose"),
        ("SELECT count(DISTINCT src, dst) FROM edge", errors.RuleSyntaxError, "it counts one column"),
        ("SELECT dst, count(*) FROM edge GROUP BY src", errors.RuleSyntaxError, "GROUP BY"),
        ("SELECT stddev(src) FROM edge", errors.RuleSyntaxError, "STDDEV"),
        ("SELECT sum(src) OVER (ORDER BY dst) FROM edge", errors.RuleSyntaxError, "OVER"),
        ("SELECT DISTINCT src FROM egde", errors.UnknownRelationError, "'edge'"),
        ("SELECT DISTINCT e.scr FROM edge e", errors.UnknownColumnError, "'src'"),
        ("SELECT DISTINCT scr FROM edge e", errors.UnknownColumnError, "'src'"),
        ("SELECT DISTINCT f.src FROM edge e", errors.UnknownRelationError, "'f'"),
        ("SELECT f.* FROM edge e", errors.UnknownRelationError, "'f'"),
        ("SELECT 1", errors.RuleSyntaxError, "FROM"),
    ],
)
def test_what_a_rule_cannot_say_is_refused(sql: str, error: type[Exception], named: str) -> None:
    with pytest.raises(error) as caught:
        rule_of_select(sql, COLUMNS)
    assert named in str(caught.value)


# -- motifs ---------------------------------------------------------------------

VERTICES = [(1, "ann"), (2, "bob"), (3, "cy"), (4, "ann"), (5, "di"), (6, "eve")]
EDGES = [(1, 2, 5), (1, 2, 6), (2, 3, 5), (3, 1, 5), (3, 4, 9), (4, 9, 1), (2, 2, 0), (5, 6, 3)]


def by_looking(steps: Iterable[tuple[str, str, str, bool]], names: list[str]) -> list[tuple[Any, ...]]:
    """What the motif's names are found in: vertices by their rows, edges by theirs."""
    steps = list(steps)
    positive = [step for step in steps if not step[3]]
    found = set()
    for edges in itertools.product(EDGES, repeat=len(positive)):
        bound: dict[str, Any] = {}
        fits = True
        for (source, edge, target, _), row in zip(positive, edges, strict=True):
            for name, vertex in ((source, row[0]), (target, row[1])):
                known = [one for one in VERTICES if one[0] == vertex]
                if name:
                    fits &= bool(known) and bound.setdefault(name, known[0]) == known[0]
            bound[edge or ""] = row
            if not fits:
                break
        if fits and all(
            not any(
                (not source or row[0] == bound[source][0]) and (not target or row[1] == bound[target][0])
                for row in EDGES
            )
            for source, _, target, negated in steps
            if negated
        ):
            found.add(tuple(value for name in names for value in bound[name]))
    return sorted(found)


@pytest.mark.parametrize(
    ("pattern", "steps", "names"),
    [
        ("(a)-[e]->(b)", [("a", "e", "b", False)], ["a", "e", "b"]),
        ("(a)-[]->(b); (b)-[]->(c)", [("a", "", "b", False), ("b", "", "c", False)], ["a", "b", "c"]),
        (
            " (a)-[e]->(b) ;(b)-[f]->(c);!(c)-[]->(a); ",
            [("a", "e", "b", False), ("b", "f", "c", False), ("c", "", "a", True)],
            ["a", "e", "b", "f", "c"],
        ),
        ("(a)-[]->(); !()-[]->(a)", [("a", "", "", False), ("", "", "a", True)], ["a"]),
        ("()-[e]->(b); !(b)-[]->()", [("", "e", "b", False), ("b", "", "", True)], ["e", "b"]),
        ("(a)-[e]->(a)", [("a", "e", "a", False)], ["a", "e"]),
    ],
)
def test_a_motif_is_where_one_sees_it(pattern: str, steps: list[Any], names: list[str]) -> None:
    rule = rule_of_motif(pattern, ["id", "name"], ["src", "dst", "weight"])
    assert [one.name for one in rule.names] == names
    database = lftj.Database()
    database.load("vertex", VERTICES, columns=["id", "name"])
    database.load("edge", EDGES, columns=["src", "dst", "weight"])
    table = database.query(rule.text)
    variables = [variable for one in rule.names for variable in one.variables]
    found = [tuple(row[variable] for variable in variables) for row in table.to_pylist()]
    assert sorted(found) == by_looking(steps, names)
    assert len(set(found)) == table.num_rows > 0


@pytest.mark.parametrize(
    ("pattern", "error", "named"),
    [
        ("(a)-[e]-(b)", errors.RuleSyntaxError, "a step is"),
        ("", errors.RuleSyntaxError, "a step is"),
        ("(a)-[e]->(b); (b)-[e]->(c)", errors.RuleSyntaxError, "'e' stands twice"),
        ("(a)-[a]->(b)", errors.RuleSyntaxError, "'a' stands twice"),
        ("(a)-[e]->(b); (e)-[]->(b)", errors.RuleSyntaxError, "'e' stands twice"),
        ("(a)-[]->(b); !(a)-[e]->(b)", errors.RuleSyntaxError, "has no name"),
        ("(a)-[]->(b); !(b)-[]->(c)", errors.UnboundVariableError, "'c'"),
        ("()-[]->()", errors.UnboundVariableError, "names nothing"),
    ],
)
def test_what_is_no_motif_is_refused(pattern: str, error: type[Exception], named: str) -> None:
    with pytest.raises(error) as caught:
        rule_of_motif(pattern, ["id"], ["src", "dst"])
    assert named in str(caught.value)
