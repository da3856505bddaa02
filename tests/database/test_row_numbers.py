"""oracle: numbered rows count and sum as SQL's bags do, in joins and under changes."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

import lftj
from lftj.errors import SourceError, UnusableNameError
from maintenance import Workspace
from support import peer

RULES = """
total[k] = sum(v) <- sale(k, v, _), price(k, _, _).
sold[k] = count() <- sale(key: k).
pairs[] = count() <- sale(k, v, _), price(k, v, _).
"""
SQL = {
    "total": "select k, sum(sale.v) from sale join price using (k) group by k",
    "sold": "select k, count(*) from sale group by k",
    "pairs": "select count(*) from sale join price using (k, v) having count(*) > 0",
}
Row = tuple[str, int]


def expected(sale: list[Row], price: list[Row]) -> dict[str, list[tuple[object, ...]]]:
    with peer.connection() as connection:
        for name, rows in (("sale", sale), ("price", price)):
            connection.register(name, pa.table({"k": [k for k, _ in rows], "v": [v for _, v in rows]}))
        return {name: sorted(connection.execute(query).fetchall()) for name, query in SQL.items()}


def drawn(random: Random, n_rows: int) -> list[Row]:
    return [(random.choice("abc"), random.randint(0, 3)) for _ in range(n_rows)]


def test_a_bag_counts_and_sums() -> None:
    random = Random(3)
    sale, price = drawn(random, 40), drawn(random, 15)
    assert max(Counter(sale).values()) > 2
    db = lftj.Database()
    db.load("sale", sale, columns=["key", "v"], row_number="n")
    db.load("price", price, columns=["k", "v"], row_number="n")
    assert (db.relations["sale"].duplicate_rows, len(db.relations["sale"])) == (0, 40)
    found = {
        name: sorted(tuple(row.values()) for row in db.query(RULES, head=name).to_pylist()) for name in SQL
    }
    assert found == expected(sale, price)


def test_a_bag_changes_row_by_row() -> None:
    random = Random(4)
    sale, price = dict(enumerate(drawn(random, 20))), drawn(random, 10)
    ws = Workspace()
    ws.load("sale", list(sale.values()), columns=["key", "v"], row_number="n")
    ws.load("price", price, columns=["k", "v"], row_number="n")
    ws.install(RULES)
    for number in range(20, 28):
        gone = random.choice(sorted(sale))
        with ws.transaction() as tx:
            tx.erase("sale", [(*sale.pop(gone), gone)])
            sale[number] = random.choice(sorted(sale.values()))  # one that is there already
            tx.insert("sale", [(*sale[number], number)])
        assert {name: sorted(ws[name]) for name in SQL} == expected(list(sale.values()), price)


def test_numbers_are_those_of_the_source() -> None:
    db = lftj.Database()
    db.load("e", pa.table({"a": pa.chunked_array([[5, None], [5]])}), nulls="drop", row_number="n")
    assert db.relations["e"].to_pylist() == [{"a": 5, "n": 0}, {"a": 5, "n": 2}]
    with pytest.raises(SourceError, match="'e' has a column 'a' already: row_number= names a new one"):
        db.load("e", [(1,)], columns=["a"], row_number="a")
    with pytest.raises(UnusableNameError, match="'my row'"):
        db.load("e", [(1,)], columns=["a"], row_number="my row")
