"""oracle: heads with counts of distinct values among several aggregates, against sets and lists of Python.

By every strategy, under what comes and goes, transactions that fail, batches, folders, images and SQL.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lftj import errors
from lftj.language.parser import parse
from maintenance import Workspace

Row = tuple[int, int, int | None, str]

RULES = """
out(n: count(), a, most: max(c), bs: count(distinct b), big: count(distinct b if c > 3), count(distinct s),
    pairs: count(distinct b, c), total: sum(c), mean: avg(b), lows: count(if c < 3))
  <- r(a, b, c, s).
upper(a, count(distinct u), min(u)) <- r(a, b, _, s), u = s || "-of-the-" || cast(b, "string").
all(count(distinct b), count(), max(s)) <- r(_, b, _, s).
alone[a] = count(distinct c) <- r(a, _, c, _).
"""
SQL = """
SELECT count(*) AS n, a, max(c), count(DISTINCT b), count(DISTINCT b) FILTER (WHERE c > 3), count(DISTINCT s),
  count(DISTINCT c), avg(b), count(*) FILTER (WHERE c < 3) FROM r GROUP BY a
"""
STRATEGIES = ("auto", "delta", "trace", "recompute", "views")


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def groups(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


def out_of(a: int, own: list[Row]) -> tuple[Any, ...]:
    values = known(c for _, _, c, _ in own)
    return (
        len(own),
        a,
        max(values, default=None),
        len({b for _, b, _, _ in own}),
        len({b for _, b, c, _ in own if c is not None and c > 3}),
        len({s for _, _, _, s in own}),
        len({(b, c) for _, b, c, _ in own if c is not None}),
        sum(values) if values else None,
        mean([b for _, b, _, _ in own]),
        sum(c is not None and c < 3 for _, _, c, _ in own),
    )


def upper_of(a: int, own: list[Row]) -> tuple[Any, ...]:
    texts = [f"{s}-of-the-{b}" for _, b, _, s in own]
    return a, len({*texts}), min(texts)


def all_of(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(len({b for _, b, _, _ in rows}), len(rows), max(s for _, _, _, s in rows))] if rows else []


def expected(rows: Iterable[Row]) -> dict[str, list[tuple[Any, ...]]]:
    rows = list(rows)
    own = groups(rows)
    return {
        "out": sorted(out_of(a, each) for a, each in own.items()),
        "upper": sorted(upper_of(a, each) for a, each in own.items()),
        "all": all_of(rows),
        "alone": sorted((a, len({*known(c for _, _, c, _ in each)})) for a, each in own.items()),
    }


def found(ws: Workspace, names: Iterable[str] = ("out", "upper", "all", "alone")) -> dict[str, list[Any]]:
    return {
        name: sorted(tuple(row.values()) for row in ws[name].to_arrow().to_pylist())  # type: ignore[type-var]
        for name in names
    }


class Play:
    """A workspace, and what is in it."""

    def __init__(self, ws: Workspace, seed: int, nulls: bool = True) -> None:
        self.random, self.nulls, self.ws = random.Random(seed), nulls, ws
        self.rows = {self.row() for _ in range(12)}
        ws.load(
            "r", sorted(self.rows, key=str), columns=["a", "b", "c", "s"], nulls="keep" if nulls else "refuse"
        )

    def row(self) -> Row:
        c = self.random.randrange(8)
        return (
            self.random.randrange(3),
            self.random.randrange(4),
            None if self.nulls and c > 6 else c,
            self.random.choice("xyz"),
        )

    def change(self, most: int = 6) -> tuple[list[Row], list[Row]]:
        """What goes and what comes."""
        drawn = {self.row() for _ in range(self.random.randint(1, most))}
        return sorted(drawn & self.rows, key=str), sorted(drawn - self.rows, key=str)

    def step(self) -> Any:
        gone, came = self.change()
        if self.random.random() < 0.1:
            gone, came = sorted(self.rows, key=str), []
        with self.ws.transaction() as tx:
            tx.erase("r", gone)
            tx.insert("r", came)
        self.rows = self.rows - {*gone} | {*came}
        return tx


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("nulls", [True, False])
def test_heads_follow_what_comes_and_goes(strategy: str, nulls: bool) -> None:
    play = Play(Workspace(), 5, nulls)
    play.ws.install(RULES, strategy=strategy)
    assert found(play.ws) == expected(play.rows)
    for _ in range(25):
        before = found(play.ws)
        tx = play.step()
        after = found(play.ws)
        assert after == expected(play.rows)
        for name, was in before.items():
            changes = tx.changes[name].to_pylist() if name in tx.changes else []
            signed = {1: [], -1: []}  # type: ignore[var-annotated]
            for row in changes:
                signed[row["weight"]].append(tuple(row.values())[:-1])
            assert sorted(signed[-1]) == sorted({*was} - {*after[name]})
            assert sorted(signed[1]) == sorted({*after[name]} - {*was})
    play.ws.verify()
    play.ws.check_invariants()


def test_what_fails_leaves_all_as_it_was() -> None:
    play = Play(Workspace(), 7, nulls=False)
    play.ws.load("big", [(0, 1)], columns=["a", "v"])
    play.ws.install(f"{RULES}\nwide(a, count(distinct v), sum(v), max(v)) <- big(a, v).")
    for number in range(12):
        gone, came = play.change()
        before = found(play.ws)
        with pytest.raises(errors.RangeError, match="wide"), play.ws.transaction() as tx:
            tx.erase("r", gone)
            tx.insert("r", came)
            tx.insert("big", [(number, 2**63 - 1), (number, 2**63 - 2)])
        assert found(play.ws) == before == expected(play.rows)
        play.ws.check_invariants()
        play.step()
        assert found(play.ws) == expected(play.rows)
    play.ws.verify()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_are_changed_on_the_way(strategy: str) -> None:
    play = Play(Workspace(), 11)
    play.ws.install(RULES)
    for each in (strategy, "auto", strategy, "delta"):
        play.ws.set_strategy("out", each)
        for _ in range(4):
            play.step()
            assert found(play.ws) == expected(play.rows)
        play.ws.verify()
        play.ws.check_invariants()
    play.ws.uninstall("out", "upper")
    play.step()
    assert found(play.ws, ["all", "alone"]).items() <= expected(play.rows).items()
    play.ws.install(RULES, replace=True)
    assert found(play.ws) == expected(play.rows)


def test_folders_and_images(tmp_path: Path) -> None:
    ways: list[Callable[[Workspace], Workspace]] = [
        lambda ws: _saved(ws, tmp_path / f"image of {ws.version}"),
        lambda ws: _reopened(ws, tmp_path / "folder"),
    ]
    play = Play(Workspace.open(tmp_path / "folder"), 13)
    play.ws.install(RULES)
    for number in range(6):
        for _ in range(4):
            play.step()
        if number % 2:
            play.ws = ways[1](play.ws)
        else:
            read = ways[0](play.ws)
            assert found(read) == expected(play.rows)
            read.check_invariants()
            row = (0, 3, 2, "new")
            with read.transaction() as tx:
                tx.insert("r", [row])
            assert found(read) == expected({*play.rows, row})
            read.verify()
        assert found(play.ws) == expected(play.rows)
    play.ws.verify()
    play.ws.check_invariants()
    play.ws.close()


def _saved(ws: Workspace, path: Path) -> Workspace:
    ws.save(path)
    return Workspace.load_from(path)


def _reopened(ws: Workspace, path: Path) -> Workspace:
    ws.close()
    return Workspace.open(path)


@pytest.mark.parametrize("strategy", ["auto", "delta", "trace", "recompute"])
def test_a_batch_is_its_transactions(strategy: str) -> None:
    rules = "out(a, count(), count(distinct b), count(distinct b if c > 3), sum(c)) <- r(a, b, c, _)."
    batch, single = Play(Workspace(), 17, nulls=False), Play(Workspace(), 17, nulls=False)
    for play in (batch, single):
        play.ws.install(rules, strategy=strategy)
    for _ in range(4):
        one_by_one, rows = [], []
        for number in range(6):
            gone, came = single.change(3)
            with single.ws.transaction() as tx:
                tx.erase("r", gone)
                tx.insert("r", came)
            single.rows = single.rows - {*gone} | {*came}
            one_by_one.append(tx.changes["out"].to_pylist() if "out" in tx.changes else [])
            rows += [(*row, -1, number) for row in gone] + [(*row, 1, number) for row in came]
        names = ["a", "b", "c", "s", "weight", "txn"]
        applied = batch.ws.apply_many({"r": dict(zip(names, zip(*rows, strict=True), strict=True))})
        at_once = {
            number: each["out"].to_pylist()
            for number, each in zip(applied.transactions, applied, strict=True)
        }
        for number, changes in enumerate(one_by_one):
            assert sorted(map(str, at_once.get(number, []))) == sorted(map(str, changes))
        if strategy == "delta":
            assert not applied.stats.one_by_one
        batch.ws.verify()
        batch.ws.check_invariants()


def test_a_view_of_sql() -> None:
    play = Play(Workspace(), 19)
    play.ws.create_view("out", SQL)
    for _ in range(20):
        play.step()
        wanted = [
            (*out_of(a, own)[:6], len({*known(c for _, _, c, _ in own)}), *out_of(a, own)[8:])
            for a, own in groups(play.rows).items()
        ]
        assert found(play.ws, ["out"])["out"] == sorted(wanted)
    play.ws.verify()


def test_a_head_of_several_rules() -> None:
    """Each rule has its own aggregates side by side, and what two rules give alike is there once."""
    play = Play(Workspace(), 29, nulls=False)
    play.ws.install("""
out(a, count(distinct b), max(c)) <- r(a, b, c, _), c < 5.
out(a, count(distinct s), max(b)) <- r(a, b, _, s), b > 1.
out(a, n, seven)                  <- r(a, n, _, _), n = 1, seven = 7.
""")
    for _ in range(20):
        play.step()
        wanted = {(a, b, 7) for a, b, _, _ in play.rows if b == 1}
        for a, own in groups(play.rows).items():
            low = [(b, c) for _, b, c, _ in own if c is not None and c < 5]
            high = [(s, b) for _, b, _, s in own if b > 1]
            wanted |= {
                (a, len({x for x, _ in some}), max(y for _, y in some)) for some in (low, high) if some
            }
        assert found(play.ws, ["out"])["out"] == sorted(wanted)
    play.ws.verify()
    play.ws.check_invariants()


def test_several_alternatives_count_a_row_once() -> None:
    play = Play(Workspace(), 23, nulls=False)
    play.ws.install("out(a, count(), count(distinct b), max(b)) <- r(a, b, c, _), (c < 5 ; b > 1).")
    for _ in range(15):
        play.step()
        own = groups(row for row in play.rows if row[2] is not None and (row[2] < 5 or row[1] > 1))
        wanted = [
            (
                a,
                len({(b, c, s) for _, b, c, s in each}),
                len({b for _, b, _, _ in each}),
                max(r[1] for r in each),
            )
            for a, each in own.items()
        ]
        got = [(a, distinct, most) for a, _, distinct, most in found(play.ws, ["out"])["out"]]
        assert got == sorted((a, distinct, most) for a, _, distinct, most in wanted)
    play.ws.verify()


def test_distinct_values_of_a_join_are_a_set_where_nothing_else_is_counted() -> None:
    """Then how often a value is found is no matter, and not every assignment is listed."""
    ws = Workspace()
    edges = [(a, b) for a in range(6) for b in range(6) if (a * b) % 3]
    ws.load("e", edges, columns=["a", "b"])
    ws.install(
        "far[a] = count(distinct c) <- e(a, b), e(b, c)."
        "both(a, count(distinct c), count()) <- e(a, b), e(b, c)."
    )
    paths = [(a, c) for a, b in edges for d, c in edges if b == d]
    wanted = {a: {c for other, c in paths if other == a} for a, _ in paths}
    assert found(ws, ["far"])["far"] == sorted((a, len(cs)) for a, cs in wanted.items())
    assert found(ws, ["both"])["both"] == sorted(
        (a, len(cs), sum(other == a for other, _ in paths)) for a, cs in wanted.items()
    )
    assert "both#1, both#2 side by side" in ws.explain_maintenance("both")
    assert "side by side" not in ws.explain_maintenance("far")
    ws.verify()


def test_explanations_say_where_the_columns_are() -> None:
    ws = Workspace()
    ws.load("r", [(0, 1, 2, "x")], columns=["a", "b", "c", "s"])
    ws.install(
        "out(a, count(), count(distinct b)) <- r(a, b, _, _).\nplain(a, count(), sum(b)) <- r(a, b, _, _)."
    )
    assert "out#1, out#2 side by side: they have the same groups" in ws.explain_maintenance("out")
    told = ws.explain_maintenance("out#2")
    assert "aggregate count distinct, a column of out, which finds all side by side" in told
    assert "plain#1, plain#2 side by side: they have the same groups" in ws.explain_maintenance("plain")
    assert "a column of out" in ws.explain_maintenance()
    assert "out(a, count, count#2) anew from out#1[a] = count, out#2[a] = count#2" in ws.triggers("out")
    (rule,) = parse("out(a, count(distinct b)) <- r(a, b).").rules
    assert rule.heads[0].aggregates[0].counts_distinct


def test_computed_strings_keep_their_codes() -> None:
    """What stands in no relation, and is counted, is not taken for another string later."""
    ws = Workspace()
    ws.load("r", [(0, 0)], columns=["a", "b"])
    ws.install('out(a, count(distinct u), count()) <- r(a, b), u = "text " || cast(b, "string").')
    there = {(0, 0)}
    for number in range(1, 40):
        came = {(number % 3, number * 200 + k) for k in range(200)}
        gone = {row for row in there if random.Random(str(row)).random() < 0.5}
        with ws.transaction() as tx:
            tx.insert("r", sorted(came))
            tx.erase("r", sorted(gone))
        there = there - gone | came
        own = Counter(a for a, _ in there)
        assert found(ws, ["out"])["out"] == sorted((a, n, n) for a, n in own.items())
    ws.verify()
    ws.check_invariants()
