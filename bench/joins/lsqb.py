"""LSQB: the three queries of the subgraph benchmark whose data comes along, at scale 0.1.

Source: Mhedhbi et al., *LSQB: a large-scale subgraph query benchmark* (GRADES-NDA 2021).
"""

from __future__ import annotations

from collections.abc import Mapping

from bench.workload import Target, Workload

_LSQB_TABLES = ("knows", "located_in", "part_of", "interest")
_LSQB_ENDS = {
    "knows": ("person", "person"),
    "located_in": ("person", "city"),
    "part_of": ("city", "country"),
    "interest": ("person", "tag"),
}


def _lsqb(
    number: int, queries: Mapping[str, str], expected: int, targets: tuple[Target, ...], note: str = ""
) -> Workload:
    relations = _LSQB_TABLES if number == 3 else ("knows", "interest")
    return Workload(
        f"lsqb-q{number}",
        f"LSQB q{number}, scale 0.1",
        {name: f"lsqb/{name}" for name in relations},
        queries,
        expected,
        targets=targets,
        ends=_LSQB_ENDS,
        threads=2,
        note=note,
    )


def lsqb() -> list[Workload]:
    q3 = {
        "lftj": (
            "q3(a, b, c, x, y, z, p) <- knows(a, b), knows(b, c), knows(c, a), located_in(a, x), "
            "located_in(b, y), located_in(c, z), part_of(x, p), part_of(y, p), part_of(z, p)."
        ),
        "duckdb": (
            "SELECT count(*) FROM knows ab, knows bc, knows ca, located_in la, located_in lb, located_in lc, "
            "part_of pa, part_of pb, part_of pc "
            "WHERE ab.dst = bc.src AND bc.dst = ca.src AND ca.dst = ab.src "
            "AND la.person = ab.src AND lb.person = bc.src AND lc.person = ca.src "
            "AND la.city = pa.city AND lb.city = pb.city AND lc.city = pc.city "
            "AND pa.country = pb.country AND pb.country = pc.country"
        ),
        "ladybug": (
            "MATCH (p:country), (a:person)-[:located_in]->(:city)-[:part_of]->(p), "
            "(b:person)-[:located_in]->(:city)-[:part_of]->(p), "
            "(c:person)-[:located_in]->(:city)-[:part_of]->(p), "
            "(a)-[:knows]->(b)-[:knows]->(c)-[:knows]->(a) RETURN count(*)"
        ),
    }
    q6 = {
        "lftj": "q6(a, b, c, t) <- knows(a, b), knows(b, c), interest(c, t), a != c.",
        "duckdb": (
            "SELECT count(*) FROM knows ab, knows bc, interest i "
            "WHERE ab.dst = bc.src AND bc.dst = i.person AND ab.src <> bc.dst"
        ),
        "ladybug": (
            "MATCH (a:person)-[:knows]->(:person)-[:knows]->(c:person)-[:interest]->(:tag) "
            "WHERE id(a) <> id(c) RETURN count(*)"
        ),
    }
    q9 = {
        "lftj": "q9(a, b, c, t) <- knows(a, b), knows(b, c), interest(c, t), a != c, !knows(a, c).",
        "duckdb": (
            q6["duckdb"]
            + " AND NOT EXISTS (SELECT 1 FROM knows ac WHERE ac.src = ab.src AND ac.dst = bc.dst)"
        ),
        "duckdb:left join": (
            "SELECT count(*) FROM knows ab JOIN knows bc ON ab.dst = bc.src AND ab.src <> bc.dst "
            "JOIN interest i ON bc.dst = i.person LEFT JOIN knows ac ON ac.src = ab.src AND ac.dst = bc.dst "
            "WHERE ac.src IS NULL"
        ),
        "ladybug": q6["ladybug"].replace("RETURN", "AND NOT (a)-[:knows]->(c) RETURN"),
    }
    threads = "lftj has as many threads as DuckDB: 2."
    return [
        _lsqb(3, q3, 30_456, (Target("ratio", 1, 10, "duckdb"),), threads),
        _lsqb(6, q6, 55_607_896, (Target("ratio", 1, 10, "duckdb"),), threads),
        _lsqb(
            9,
            q9,
            51_009_398,
            (Target("ratio", 50, None, "duckdb"), Target("ratio", 1, 10, "duckdb:left join")),
            threads + " The target's 7.5 s is DuckDB's NOT EXISTS; the benchmark's own wording, a LEFT JOIN "
            "that must find NULL, is much quicker and stands beside it.",
        ),
    ]
