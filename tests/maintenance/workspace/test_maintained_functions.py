"""Functions under maintenance: every strategy gives what recomputing gives; an error changes nothing."""

from __future__ import annotations

import datetime

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support.rows import rows_of

PROGRAM = """
    order(n, y, m) <- sale(s, d, n, p), n in (1, 2, 3), y = year(d), m = date_trunc("month", d), p % 2 = 1.
    sold[w] = sum(p) <- sale(s, d, n, p), w = lower(s), starts_with(w, "t"), !contains(s, "x").
    label(t) <- sale(s, _, n, p), t = substring(upper(s), 1, 2), greatest(n, p) > 3, s not like "%z".
    odd(s) <- sale(s, d, n, _), !sale(_, d, n, 7), q = div(n, 2), sale(s, _, q, _).
"""
MAY, JUNE = datetime.date(2026, 5, 31), datetime.date(2026, 6, 1)
ROWS = [("Tea", MAY, 1, 3), ("tea", MAY, 2, 5), ("tax", JUNE, 4, 7), ("Zz", JUNE, 9, 9), ("tea", JUNE, 3, 4)]


def workspace(strategy: str) -> Workspace:
    made = Workspace()
    made.load("sale", ROWS, columns=["s", "d", "n", "p"])
    made.install(PROGRAM, strategy)
    return made


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_follows(strategy: str) -> None:
    made = workspace(strategy)
    assert set(rows_of(made["order"].table)) == {(1, 2026, MAY.replace(day=1)), (2, 2026, MAY.replace(day=1))}
    assert set(rows_of(made["sold"].table)) == {("tea", 12)}
    assert set(rows_of(made["label"].table)) == {("TE",), ("TA",)}
    with made.transaction() as transaction:
        transaction.insert("sale", [("TOY", JUNE, 3, 11), ("tea", JUNE, 6, 7)])
        transaction.erase("sale", [ROWS[0], ROWS[2]])
    assert set(rows_of(transaction.changes["order"])) == {
        (1, 2026, MAY.replace(day=1), -1),
        (3, 2026, JUNE, 1),
    }
    assert set(rows_of(transaction.changes["sold"])) == {("tea", 12, -1), ("tea", 16, 1), ("toy", 11, 1)}
    assert set(rows_of(transaction.changes["label"])) == {("TA", -1), ("TO", 1)}
    made.verify()
    made.check_invariants()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_refused_row_changes_nothing(strategy: str) -> None:
    made = Workspace()
    made.load("text", [("1",), ("22",)], columns=["t"])
    made.install('number(v) <- text(t), v = cast(t, "int64").', strategy)
    with (
        pytest.raises(errors.RangeError, match='does not fit type int64 where t = "x"'),
        made.transaction() as tx,
    ):
        tx.insert("text", [("3",), ("x",)])
    assert set(rows_of(made["number"].table)) == {(1,), (22,)}
    assert made["text"].count == 2
    made.verify()


def test_heads_share_a_body_of_calls_up_to_the_names_of_its_variables() -> None:
    made = Workspace()
    made.load("sale", ROWS, columns=["s", "d", "n", "p"])
    made.install(
        """
        least[w] = min(p) <- sale(s, _, _, p), w = lower(s), p in (3, 5, 7).
        most[v] = max(q) <- sale(t, _, _, q), v = lower(t), q in (3, 5, 7).
        other[v] = max(q) <- sale(t, _, _, q), v = upper(t), q in (3, 5, 7).
        """,
        "trace",
    )
    with made.transaction() as transaction:
        transaction.insert("sale", [("TEA", JUNE, 3, 7)])
    assert set(rows_of(transaction.changes["most"])) == {("tea", 5, -1), ("tea", 7, 1)}
    assert set(rows_of(transaction.changes["other"])) == {("TEA", 5, -1), ("TEA", 7, 1)}
    # The second head steps nothing: it shares what the first has found.
    assert [transaction.stats.rules[name].surgeries for name in ("least", "most", "other")] == [1, 0, 1]
