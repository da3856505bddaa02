"""Published and recomputed counts of the real data sets, and whole results beside DuckDB's.

What the files hold (their README): ego-facebook and as-caida have each
undirected edge once, the smaller end first; email-enron and LSQB's ``knows``
have both directions; wiki-vote and p2p-gnutella04 are directed, some pairs
both ways, and are symmetrised by rules here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import lftj

pytestmark = pytest.mark.compiled

ONCE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
BOTH_WAYS = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c), a < b, b < c."
DIRECTED = """
    link(a, b) <- edge(a, b), a < b.
    link(b, a) <- edge(a, b), b < a.
    tri(a, b, c) <- link(a, b), link(b, c), link(a, c).
"""
DIRECTED_BY_DISJUNCTION = """
    link(a, b) <- (edge(a, b) ; edge(b, a)), a < b.
    tri(a, b, c) <- link(a, b), link(b, c), link(a, c).
"""
CLIQUES = """
    clique(a, b, c, d) <- edge(a, b), edge(a, c), edge(a, d), edge(b, c), edge(b, d), edge(c, d),
                          a < b, b < c, c < d.
"""
LSQB = {
    "q3": (
        """q3(a, b, c, n) <- knows(a, b), knows(b, c), knows(c, a),
                             located_in(a, p), part_of(p, n),
                             located_in(b, q), part_of(q, n),
                             located_in(c, r), part_of(r, n).""",
        30_456,
    ),
    "q6": ("q6(a, b, c, t) <- knows(a, b), knows(b, c), interest(c, t), a != c.", 55_607_896),
    "q9": ("q9(a, b, c, t) <- knows(a, b), knows(b, c), interest(c, t), a != c, !knows(a, c).", 51_009_398),
}


def graph(data_folder: Path, name: str) -> lftj.Database:
    db = lftj.Database()
    db.load("edge", data_folder / "graphs" / f"{name}.parquet")
    return db


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("name", "program", "n_triangles"),
    [
        ("ego-facebook", ONCE, 1_612_010),
        ("as-caida20071105", ONCE, 36_365),
        ("email-enron", BOTH_WAYS, 727_044),
        ("wiki-vote", DIRECTED, 608_389),
        ("wiki-vote", DIRECTED_BY_DISJUNCTION, 608_389),
        ("p2p-gnutella04", DIRECTED, 934),
        ("p2p-gnutella04", DIRECTED_BY_DISJUNCTION, 934),
    ],
    ids=lambda value: value.replace(" ", "").strip()[:12] if isinstance(value, str) else str(value),
)
def test_triangles(data_folder: Path, name: str, program: str, n_triangles: int, threads: int) -> None:
    assert graph(data_folder, name).count(program, threads=threads) == n_triangles


@pytest.mark.parametrize("threads", [1, 2])
def test_cliques_of_four(data_folder: Path, threads: int) -> None:
    assert graph(data_folder, "email-enron").count(CLIQUES, threads=threads) == 2_341_639


def test_directed_triangles_are_found_in_all_rotations_and_orders(data_folder: Path) -> None:
    db = graph(data_folder, "email-enron")
    assert db.count(ONCE) == 6 * 727_044
    assert db.count("n(a) <- edge(a, b), edge(b, c), edge(c, a).") == len(
        db.query("n(c) <- edge(a, b), edge(b, c), edge(a, c).")
    )


def test_counting_by_aggregate_gives_the_same(data_folder: Path) -> None:
    db = graph(data_folder, "as-caida20071105")
    total = db.query("n[] = count() <- edge(a, b), edge(b, c), edge(a, c).")
    assert total.column(0).to_pylist() == [36_365]
    corners = db.query("n[a] = count() <- edge(a, b), edge(b, c), edge(a, c).")
    assert sum(corners.column(1).to_pylist()) == 36_365


@pytest.mark.parametrize("query", LSQB)
def test_lsqb(data_folder: Path, query: str) -> None:
    db = lftj.Database()
    for relation in ("knows", "located_in", "part_of", "interest"):
        db.load(relation, data_folder / "lsqb-sf0.1" / f"{relation}.parquet")
    rule, expected = LSQB[query]
    assert db.count(rule) == expected


@pytest.mark.parametrize(
    ("name", "rule", "sql"),
    [
        (
            "as-caida20071105",
            ONCE,
            "select p.src a, p.dst b, q.dst c from edge p, edge q, edge r"
            " where p.dst = q.src and r.src = p.src and r.dst = q.dst",
        ),
        (
            "p2p-gnutella04",
            "open(a, c) <- edge(a, b), edge(b, c), !edge(a, c), a < c + 100.",
            "select distinct p.src a, q.dst c from edge p, edge q where p.dst = q.src and p.src < q.dst + 100"
            " and not exists (select 1 from edge r where r.src = p.src and r.dst = q.dst)",
        ),
        (
            "wiki-vote",
            "leaf(a) <- edge(a, b), !edge(b, _).",
            "select distinct src a from edge where dst not in (select src from edge)",
        ),
        (
            "ego-facebook",
            "degree[a] = count() <- edge(a, b), edge(b, _).",
            "select p.src a, count(*) from edge p, edge q where p.dst = q.src group by p.src",
        ),
    ],
    ids=["triangles", "open wedges", "leaves", "degrees"],
)
def test_whole_results_beside_sql(data_folder: Path, name: str, rule: str, sql: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = data_folder / "graphs" / f"{name}.parquet"
    connection = duckdb.connect()
    connection.execute(f"create table edge as select * from '{path}'")
    expected = connection.execute(sql).fetchall()
    got = graph(data_folder, name).query(rule)
    assert sorted(zip(*(column.to_pylist() for column in got.columns), strict=True)) == sorted(expected)
