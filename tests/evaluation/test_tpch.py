"""oracle: the 22 queries of TPC-H against DuckDB, as loaded and while a business changes them.

As SQL, of which views have all rows (without LIMIT), and as rules written by hand.

Whole numbers and decimals are equal exactly, floats within 1e-12 (:func:`bench.tpch.peer.check`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import lftj
from bench.datasets import DataMissing
from bench.tpch.peer import Peer, check
from bench.tpch.queries import QUERIES
from bench.tpch.tables import Changes, tables
from maintenance import Workspace
from support.business import Business
from support.rows import rows_of

pytestmark = pytest.mark.compiled

SIZES = [1, 300, 100, 400, 40, 2_000, 1, 500, 30, 16]
UNCHANGED = {2, 11, 16}
"""They read no relation that the business changes."""

ASKED_ABOUT = [
    "update part set p_brand = 'Brand#23', p_container = 'MED BOX' where p_partkey <= 5",
    """
    update part set p_name = 'forest' where p_partkey in (
        select min(ps_partkey) from partsupp, supplier, nation
        where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'CANADA'
            and not exists (
                from lineitem
                where l_partkey = ps_partkey and l_suppkey = s_suppkey and year(l_shipdate) = 1994)
        group by s_suppkey)
    """,
]
"""Parts that Q17 and Q20 ask about, of which there are too few at this scale."""

POPULAR = """
    select ps_partkey, ps_suppkey from part, partsupp, supplier, nation
    where p_partkey = ps_partkey and ps_suppkey = s_suppkey and s_nationkey = n_nationkey and (
        p_name like 'forest%' and n_name = 'CANADA' or p_brand = 'Brand#23' and p_container = 'MED BOX'
        or p_brand = 'Brand#12' and p_container like 'SM %' and p_size <= 5)
    union all
    select p_partkey, s_suppkey from part, supplier, nation
    where p_type = 'ECONOMY ANODIZED STEEL' and s_nationkey = n_nationkey and n_name = 'BRAZIL'
    order by all
"""
"""Items that Q8, Q17, Q19 and Q20 ask about, which random ones would miss."""

OVER_NOTHING = {17}
"""At this scale their sum has nothing to sum."""


@cache
def loaded(data_folder: Path) -> dict[str, pa.Table]:
    pytest.importorskip("duckdb")
    if not (data_folder / "tpch-sf0.01").is_dir():
        pytest.skip("no TPC-H tables in the data folder")
    try:
        assert all(query.sql for query in QUERIES.values())
    except DataMissing:
        pytest.skip("no TPC-H queries in the data folder")
    return tables(0.01)


@cache
def untouched(data_folder: Path) -> tuple[lftj.Database, Peer]:
    """The engine and DuckDB with the data as published."""
    db = lftj.Database()
    for name, table in loaded(data_folder).items():
        db.load(name, table)
    return db, Peer(loaded(data_folder))


@dataclass
class Told:
    """What DuckDB says of a business, which has the same days with whatever keeps the heads."""

    relations: dict[str, pa.Table]
    days: list[tuple[Changes, dict[str, pa.Table]]]
    """Changes, and behind them each head."""


@cache
def told(data_folder: Path) -> Told:
    peer = Peer(loaded(data_folder))
    for statement in ASKED_ABOUT:
        peer.answer(statement)
    relations = {**loaded(data_folder), "part": peer.answer("from part order by all")}
    days = []
    for changes in Business(relations, rows_of(peer.answer(POPULAR)), seed=5).transactions(SIZES):
        peer.apply(changes)
        days.append((changes, {query.head: peer.answer(query.unlimited_sql) for query in QUERIES.values()}))
    return Told(relations, days)


@pytest.mark.parametrize("number", QUERIES)
def test_a_text_over_the_data_as_loaded(number: int, data_folder: Path) -> None:
    pytest.importorskip("lftj.sql")
    db, peer = untouched(data_folder)
    query = QUERIES[number]
    found, expected = db.sql(query.sql), peer.answer(query.sql)
    assert found.column_names == expected.column_names
    check(query.head, found, expected, query.sql_order)


@pytest.mark.parametrize("number", QUERIES)
def test_rules_over_the_data_as_loaded(number: int, data_folder: Path) -> None:
    db, peer = untouched(data_folder)
    query = QUERIES[number]
    found = db.query(query.rules, head=query.head, order_by=query.order_by, limit=query.limit)
    assert (found.num_rows > 0) == (number not in OVER_NOTHING)
    check(query.head, found, peer.answer(query.sql), query.order_by, sums=False)


@pytest.mark.in_turns
@pytest.mark.parametrize(("form", "strategy"), [("sql", "auto"), ("sql", "trace"), ("rules", "auto")])
def test_heads_are_right_after_every_transaction(form: str, strategy: str, data_folder: Path) -> None:
    """All views, or programs, in one workspace."""
    business = told(data_folder)
    workspace = Workspace()
    for relation, table in business.relations.items():
        workspace.load(relation, table)
    if form == "sql":
        for query in QUERIES.values():
            workspace.create_view(query.head, query.unlimited_sql, strategy=strategy)
    else:
        workspace.install("\n".join(query.rules for query in QUERIES.values()), strategy=strategy)
    heads = [query.head for query in QUERIES.values()]
    before = {head: Counter(rows_of(workspace[head].to_arrow())) for head in heads}
    changed = set()
    for changes, right in business.days:
        with workspace.transaction() as transaction:
            for relation, (erased, inserted) in changes.items():
                transaction.erase(relation, erased)
                transaction.insert(relation, inserted)
        assert not sum(transaction.stats.no_changes.values())
        for query in QUERIES.values():
            now = workspace[query.head].to_arrow()
            check(query.head, now, right[query.head], sums=form == "sql")
            reported: Counter[tuple[object, ...]] = Counter()
            for row in rows_of(transaction.changes[query.head]):
                reported[row[:-1]] += row[-1]
                changed.add(query.number)
            after = Counter(rows_of(now))
            assert all(reported[row] == after[row] - before[query.head][row] for row in reported | after)
            before[query.head] = after
    assert changed == QUERIES.keys() - UNCHANGED
