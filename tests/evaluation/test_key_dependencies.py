"""oracle: keys as functional dependencies: what is not made distinct because of them is so, at a lower cost.

Against brute force over Python values; with and without the keys, by one thread and by two.
"""

from __future__ import annotations

import re
from itertools import permutations, product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lftj import Database
from lftj.errors import ChangeError
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support.rows import rows_of
from support.small_limits import wide_relations

ORDERS = [(i, i % 7, i % 3, i * i % 5) for i in range(60)]
CUSTOMERS = [(c, c % 3, c % 2) for c in range(6)]
"""Customer 6 has orders, and is not there."""

KEYS: dict[str, list[str]] = {"o": ["id"], "c": ["id", "n"]}
TABLES = {
    "o": ({"id": 0, "c": 1, "a": 2, "b": 3}, ORDERS),
    "c": ({"id": 0, "n": 1, "m": 2}, CUSTOMERS),
}

DETERMINED = {
    "h(i, n) <- o(i, c, a, _), c(c, n, _), a = n.": lambda o, c: (
        o[1] == c[0] and o[2] == c[1] and (o[0], c[1])
    ),
    "h(i, m) <- o(i, c, n, _), c(c, n, m).": lambda o, c: o[1] == c[0] and o[2] == c[1] and (o[0], c[2]),
    "h(m, i) <- o(i, c, n, _), c(c, n, m), m > 0.": lambda o, c: (
        o[1] == c[0] and o[2] == c[1] and c[2] > 0 and (c[2], o[0])
    ),
    "h(i, a) <- o(i, _, a, _).": lambda o, _: (o[0], o[2]),
    "h(i) <- o(i, _, a, b), a < b.": lambda o, _: o[2] < o[3] and (o[0],),
    "h(i, a) <- o(i, _, a, b), a + b > 3.": lambda o, _: o[2] + o[3] > 3 and (o[0], o[2]),
    "h(i, s) <- o(i, _, a, b), s = a * b.": lambda o, _: (o[0], o[2] * o[3]),
    "h(a) <- o(8, _, a, _).": lambda o, _: o[0] == 8 and (o[2],),
    "h(m) <- o(8, c, n, _), c(c, n, m).": lambda o, c: (
        o[0] == 8 and o[1] == c[0] and o[2] == c[1] and (c[2],)
    ),
    "h(c, n, a) <- c(c, n, m), o(m, _, a, _).": lambda o, c: c[2] == o[0] and (c[0], c[1], o[2]),
}
"""What the head shows determines all else, by keys."""

OTHER = {
    "h(i, m) <- o(i, c, _, _), c(c, _, m).": lambda o, c: o[1] == c[0] and (o[0], c[2]),
    "h(c, n) <- o(i, c, n, _), c(c, n, m).": lambda o, c: o[1] == c[0] and o[2] == c[1] and (c[0], c[1]),
    "h(a, b) <- o(_, _, a, b).": lambda o, _: (o[2], o[3]),
    "h(a) <- o(i, _, a, b), a + b > 3.": lambda o, _: o[2] + o[3] > 3 and (o[2],),
    "h(n, a) <- c(c, n, m), o(m, _, a, _).": lambda o, c: c[2] == o[0] and (c[1], o[2]),
    "h(i) <- o(i, c, _, _), !c(c, 0, _).": lambda o, _: (
        not any(c[0] == o[1] and c[1] == 0 for c in CUSTOMERS) and (o[0],)
    ),
}


def database(keyed: bool) -> Database:
    found = Database()
    for name, (columns, rows) in TABLES.items():
        table = pa.table({label: [row[at] for row in rows] for label, at in columns.items()})
        found.load(name, table, key=KEYS[name] if keyed else ())
    return found


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("rule", [*DETERMINED, *OTHER])
def test_oracle_rows_are_distinct(rule: str, wide: bool) -> None:
    made: Any = {**DETERMINED, **OTHER}[rule]
    expected = sorted({made(o, c) for o, c in product(ORDERS, CUSTOMERS)} - {False})
    with wide_relations(wide):
        for keyed in (False, True):
            db = database(keyed)
            for threads in (1, 2):
                assert sorted(rows_of(db.query(rule, threads=threads))) == expected, keyed
                assert db.count(rule, threads=threads) == len(expected), keyed
            streamed = [row for batch in db.stream(rule, batch_rows=3) for row in rows_of(batch)]
            assert sorted(streamed) == expected, keyed
            joined = set(re.findall(r"\b[a-z]\b(?!\()", " ".join(re.findall(r"(?<!!)\b[oc]\(.*?\)", rule))))
            for order in [*permutations(sorted(joined))][:: max(1, len(joined) * 2)]:
                assert sorted(rows_of(db.query(rule, order=order))) == expected, (keyed, order)


@pytest.mark.parametrize("rule", [*DETERMINED, *OTHER])
def test_rows_are_held_only_where_they_may_be_equal(rule: str) -> None:
    held = re.compile(r"distinct rows are held|is not in the head")
    assert not (held.search(str(database(True).explain(rule))) and rule in DETERMINED)


def test_a_chain_by_keys_takes_a_search_alone() -> None:
    """The cheapest order begins where an existential variable stands, and its rows are not made distinct."""
    chance = Random(1)
    orders = pa.table({"i": range(5000), "c": [chance.randrange(200) for _ in range(5000)]})
    customers = pa.table({"c": range(200), "n": [chance.randrange(9) for _ in range(200)]})
    rule, costs = "h(i, n) <- o(i, c), c(c, n).", {}
    for key in (False, True):
        db = Database()
        db.load("o", orders, key=["i"] if key else ())
        db.load("c", customers, key=["c"] if key else ())
        run = db.explain(rule, analyze=True)
        text = str(run)
        costs[key] = min(
            int(found.replace(",", ""))
            for found in re.findall(r"(?:pilot .*: |measured: .*, )([\d,]+) operations", text)
        )
        assert ("all distinct rows are held in memory" in text) != key
    assert costs[True] < 6_000


def test_what_has_lost_its_key_is_made_distinct_again() -> None:
    """Plans that were made for a key are not used for what is loaded without."""
    rule = "h(i, n) <- o(i, c), c(c, n)."
    for database in (Database(), Workspace()):
        database.load("c", {"c": [1, 2], "n": [7, 7]}, key=["c"])
        database.load("o", {"i": [1, 2], "c": [1, 2]}, key=["i"])
        assert sorted(rows_of(database.query(rule))) == [(1, 7), (2, 7)]
        database.load("o", {"i": [1, 1, 2], "c": [1, 2, 2]})
        assert sorted(rows_of(database.query(rule))) == [(1, 7), (2, 7)]
        assert database.count(rule) == 2


KEPT = """
    chain(i, n) <- o(i, c, a, _), c(c, a, n).
    shown(i, a) <- o(i, _, a, b), a + b > 1.
    out(n, a) <- o(i, c, a, _), c(c, a, n).
    gone(i) <- o(i, c, _, _), !c(c, 0, _).
"""


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_oracle_kept_heads_without_support_counts(strategy: str) -> None:
    """Rows of a customer change, orders go from one to another with equal values, all in one transaction."""
    chance = Random(strategy)
    workspace = Workspace()
    orders = {i: (i, chance.randrange(5), chance.randrange(3), chance.randrange(3)) for i in range(20)}
    customers = {(c, n): (c, n, chance.randrange(2)) for c in range(5) for n in range(2)}
    workspace.load("o", [*orders.values()], columns=["id", "c", "a", "b"], key=["id"])
    workspace.load("c", [*customers.values()], columns=["id", "n", "m"], key=["id", "n"])
    workspace.install(KEPT, strategy)
    before: dict[str, set[Any]] = {name: set(workspace[name]) for name in workspace.heads}
    for _ in range(30):
        with workspace.transaction() as tx:
            for _ in range(chance.randrange(1, 5)):
                i, key = chance.randrange(24), (chance.randrange(5), chance.randrange(2))
                if chance.random() < 0.2:
                    tx.erase_keys("o", [(i,)])
                    orders.pop(i, None)
                else:
                    orders[i] = (i, chance.randrange(5), chance.randrange(3), chance.randrange(3))
                    tx.upsert("o", [orders[i]])
                customers[key] = (*key, chance.randrange(2))
                tx.upsert("c", [customers[key]])
        joined = [(o, c) for o in orders.values() for c in customers.values() if o[1:3] == c[:2]]
        now: dict[str, set[Any]] = {
            "chain": {(o[0], c[2]) for o, c in joined},
            "shown": {(o[0], o[2]) for o in orders.values() if o[2] + o[3] > 1},
            "out": {(c[2], o[2]) for o, c in joined},
            "gone": {(o[0],) for o in orders.values() if (o[1], 0) not in customers},
        }
        for name, rows in now.items():
            assert set(workspace[name]) == rows, name
            changes = [(tuple(row[:-1]), row[-1]) for row in rows_of(tx.changes[name])]
            assert {row for row, weight in changes if weight > 0} == rows - before[name], name
            assert {row for row, weight in changes if weight < 0} == before[name] - rows, name
            assert len(changes) == len(rows ^ before[name]), name
        before = now
    workspace.verify()
    workspace.check_invariants()


def test_support_counts_are_kept_where_no_key_says_that_there_is_one() -> None:
    """No memory is held for them; relations that heads read are not loaded anew, so the keys stay."""
    counts, own = "support counts", "every row is a tuple of its own"
    for keyed in (False, True):
        workspace = Workspace()
        for name, (columns, rows) in TABLES.items():
            workspace.load(name, rows, columns=[*columns], key=KEYS[name] if keyed else ())
        workspace.install(KEPT, "delta")
        for head, expected in {"chain": own, "shown": own, "out": counts, "gone": own}.items():
            said = str(workspace.explain_maintenance(head))
            assert (expected if keyed else counts) in said, said
            assert (counts in said) == (expected == counts or not keyed), said
        with pytest.raises(ChangeError, match="can't be replaced"):
            workspace.load("o", ORDERS, columns=[*TABLES["o"][0]])
