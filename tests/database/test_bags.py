"""oracle: bags count and sum as SQL's tables do; nobody sees the numbers of the copies."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

import lftj
from lftj.errors import ArityError, SourceError, UnknownColumnError

COLUMNS = ["k", "v"]


def drawn(random: Random, n_rows: int) -> list[tuple[str, int]]:
    return [(random.choice("abc"), random.randint(0, 3)) for _ in range(n_rows)]


def test_rules_take_every_copy() -> None:
    random = Random(5)
    sale, price = drawn(random, 60), drawn(random, 20)
    db = lftj.Database()
    db.load("sale", sale, columns=COLUMNS, bag=True)
    db.load("price", price, columns=COLUMNS, bag=True)
    db.load("kind", [("a",), ("b",)], columns=["k"])

    def rows(rule: str) -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in db.query(rule).to_pylist())

    joined = Counter((k, v, w) for k, v in sale for p, w in price if p == k)
    by_key: Counter[str] = Counter()
    for (k, v, _), n in joined.items():
        by_key[k] += v * n
    assert rows("t[k] = sum(v) <- sale(k, v), price(k, _).") == sorted(by_key.items())
    assert rows("n[] = count() <- sale(k, v), price(k, w).") == [(joined.total(),)]
    assert rows("n[] = count() <- sale(k: k), kind(k).") == [(sum(k != "c" for k, _ in sale),)]
    either = len(
        {(k, v) for k, v in sale if k == "a"} | {(k, v) for k, v in price if v == 3}
    )  # a set, as ever
    assert rows('n[x] = count() <- x = 1, (sale(a, v), a = "a" ; price(a, v), v = 3).') == [(1, either)]
    assert rows("s(k) <- sale(k, _).") == sorted({(k,) for k, _ in sale})
    assert rows("s(k, v) <- sale(k, v), !price(k, v).") == sorted(set(sale) - set(price))
    assert rows('c[k] = concat(t, "-") <- sale(k, v), v = 0, t = k.') == sorted(
        (k, "-".join([k] * n)) for (k, v), n in Counter(sale).items() if v == 0
    )
    assert db.count("all(k, v) <- sale(k, v).") == len(set(sale))


def test_a_bag_is_shown_with_its_copies() -> None:
    db = lftj.Database()
    table = pa.table({"k": ["b", "a", "b"], "v": [1, 2, 1]})
    db.load("sale", table, bag=True)
    sale = db["sale"]
    assert (len(sale), sale.duplicate_rows, sale.column_names) == (3, 0, ["k", "v"])
    assert Counter(sale) == {("b", 1): 2, ("a", 2): 1}
    assert sale.table.sort_by("k").to_pylist() == table.sort_by("k").to_pylist()
    assert (("b", 1) in sale, ("b", 2) in sale) == (True, False)
    assert repr(sale).splitlines()[0] == "sale(k: string, v: int64), 3 rows"
    assert "#" not in repr(sale) + repr(db.relations) + sale._repr_html_() + repr(sale.relation)
    db.load("again", sale, bag=True)
    assert Counter(db["again"]) == Counter(sale)
    db.load("none", table.slice(0, 0), bag=True)
    assert (len(db["none"]), db.count("n(k) <- none(k, _).")) == (0, 0)


def test_no_rule_can_ask_for_the_copy() -> None:
    db = lftj.Database()
    db.load("sale", [("a", 1), ("a", 1)], columns=COLUMNS, bag=True)
    for rule in ("s(k) <- sale(k, v, c).", "s(k) <- sale(k)."):
        with pytest.raises(ArityError, match=r"'sale' has 2 columns \(k, v\), not"):
            db.query(rule)
    with pytest.raises(UnknownColumnError, match="'sale' has no column 'copy'"):
        db.query("s(k) <- sale(k: k, copy: c).")
    for function in ("sale[k] = v", "sale[k, v] = c"):
        with pytest.raises(ArityError, match=r"'sale' is a bag: it is no function, write sale\(k, v\)"):
            db.query(f"s(k) <- {function}.")
    with pytest.raises(SourceError, match="bag=True keeps equal rows, row_number= leaves none: choose one"):
        db.load("sale", [("a", 1)], columns=COLUMNS, bag=True, row_number="n")
