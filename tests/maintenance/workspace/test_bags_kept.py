"""Bags in a workspace: every strategy counts copies as a Counter does; batches, folders, images, files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.image import read_image, write_image
from maintenance.shell.shell import cli

Row = tuple[int, ...]
Bag = Counter[Row]

RULES = """
total[k] = sum(v) <- sale(k, v), price(k, _).
sold[k] = count() <- sale(key: k).
pairs[] = count() <- sale(k, v), price(k, v).
mean[k] = avg(v) <- sale(k, v).
best[k] = max(v) <- sale(k, v).
second(k, v) <- sale(k, v), top(2, by: v, per: k).
unpriced(k) <- sale(k, v), !price(k, v).
way(k, v) <- sale(k, v).
way(k, w) <- way(k, v), sale(v, w).
"""


def expected(sale: Bag, price: Bag) -> dict[str, set[Row]]:
    """By listing all pairs of copies."""
    sales, prices = list(sale.elements()), list(price.elements())
    totals: Counter[int] = Counter()
    for k, v in sales:
        totals[k] += v * sum(p == k for p, _ in prices)
    sold = Counter(k for k, _ in sales)
    values = {k: [v for other, v in sales if other == k] for k in sold}
    n_pairs = sum(one == other for one in sales for other in prices)
    ways = set(sales)
    while longer := {(k, w) for k, v in ways for u, w in sales if u == v} - ways:
        ways |= longer
    return {
        "total": {(k, t) for k, t in totals.items() if any(p == k for p, _ in prices)},
        "sold": set(sold.items()),
        "pairs": {(n_pairs,)} if n_pairs else set(),
        "mean": {(k, sum(own) / len(own)) for k, own in values.items()},  # type: ignore[misc]
        "best": {(k, max(own)) for k, own in values.items()},
        "second": {(k, v) for k, own in values.items() for v in sorted(own)[-2:]},
        "unpriced": {(k,) for k, v in sales if not price[k, v]},
        "way": ways,
    }


def after(bag: Bag, change: Bag) -> Bag:
    """As many copies come or go as there are."""
    return +Counter({row: max(0, bag[row] + change[row]) for row in bag | change | -change})


def zset(change: Bag) -> pa.Table:
    (keys, values), weights = zip(*change, strict=True), change.values()
    return pa.table({"key": keys, "v": values, "weight": list(weights)})


def drawn(random: Random, n_rows: int) -> list[Row]:
    return [(random.randrange(3), random.randrange(4)) for _ in range(n_rows)]


def begin(workspace: Workspace, strategy: str = "auto") -> tuple[Workspace, dict[str, Bag]]:
    random = Random(7)
    bags = {"sale": Counter(drawn(random, 30)), "price": Counter(drawn(random, 9))}
    assert max(bags["sale"].values()) > 3
    workspace.load("sale", list(bags["sale"].elements()), columns=["key", "v"], bag=True)
    workspace.load("price", list(bags["price"].elements()), columns=["key", "v"], bag=True)
    recursive = strategy if strategy in ("auto", "recompute") else "stages"
    names = expected(Counter(), Counter())
    workspace.install(RULES, {name: recursive if name == "way" else strategy for name in names})
    return workspace, bags


def assert_holds(workspace: Workspace, bags: dict[str, Bag]) -> None:
    for name, rows in expected(bags["sale"], bags["price"]).items():
        assert set(workspace[name]) == rows, name
    for name, bag in bags.items():
        assert Counter(workspace[name]) == bag
        assert len(workspace[name]) == bag.total()


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_every_strategy_counts_copies(strategy: str) -> None:
    workspace, bags = begin(Workspace(), strategy)
    assert_holds(workspace, bags)
    random = Random(strategy)
    for step in range(8):
        before = expected(bags["sale"], bags["price"])
        with workspace.transaction() as tx:
            for name in ("sale", "price") if step % 3 else ("sale",):
                came, gone = drawn(random, 4), drawn(random, 12 if step == 5 else 5)
                tx.insert(name, came)
                tx.erase(name, gone)
                weighted = Counter({row: random.randrange(-3, 4) for row in drawn(random, 3)})
                tx.apply(name, zset(weighted))
                change = weighted.copy()
                change.update(came)
                change.subtract(gone)
                bags[name] = after(bags[name], change)
        assert_holds(workspace, bags)
        for name, rows in expected(bags["sale"], bags["price"]).items():
            told = {tuple(row.values()) for row in tx.changes[name].to_pylist()}
            assert told == {(*r, 1) for r in rows - before[name]} | {(*r, -1) for r in before[name] - rows}
        workspace.check_invariants()
    workspace.verify()


def test_a_batch_is_its_transactions_one_after_the_other() -> None:
    workspace, bags = begin(Workspace())
    alone, _ = begin(Workspace())
    random = Random(11)
    rows = [(*row, random.randrange(-4, 5), txn) for txn in range(6) for row in drawn(random, 4)]
    table = pa.table(
        dict(zip(["key", "v", "weight", "txn"], map(list, zip(*rows, strict=True)), strict=True))
    )
    applied = workspace.apply_many({"sale": table})
    for number, changes in zip(applied.transactions, applied, strict=True):
        net: Bag = Counter()
        for *row, weight, txn in rows:
            net[tuple(row)] += weight if txn == number else 0
        with alone.transaction() as tx:
            tx.apply("sale", table.filter(pa.compute.equal(table["txn"], number)).drop(["txn"]))
        bags["sale"] = after(bags["sale"], net)
        for name in ("total", "sold", "second"):
            assert sorted(map(str, changes[name].to_pylist())) == sorted(
                map(str, tx.changes[name].to_pylist())
            )
    assert_holds(workspace, bags)
    workspace.check_invariants()
    workspace.verify()


def test_figures_of_a_transaction() -> None:
    workspace = Workspace()
    workspace.load("e", [(1,), (1,), (2,)], columns=["a"], bag=True)
    with workspace.transaction() as tx:
        tx.insert("e", [(1,), (3,)])
        tx.erase("e", [(2,), (2,), (9,)])
    assert (tx.stats.inserted["e"], tx.stats.erased["e"], tx.stats.no_changes["e"]) == (2, 1, 2)
    assert Counter(workspace["e"]) == {(1,): 3, (3,): 1}


def test_in_a_folder(tmp_path: Path) -> None:
    """Changes in the journal, data in files and a copy say how often rows are there; a cursor goes back."""
    kept, bags = begin(Workspace.open(tmp_path / "ws"))
    version = kept.stats.version
    change = Counter({(0, 0): 3, (1, 1): -50, (2, 3): -1})
    reader = Workspace.open(tmp_path / "ws", read_only=True)
    with kept.transaction() as tx:
        tx.apply("sale", zset(change))
    told = tx.changes["sold"]
    bags["sale"] = after(bags["sale"], change)
    assert reader.refresh() == version + 1
    assert_holds(reader, bags)
    kept.close()
    for checkpoint in (True, False):
        with Workspace.open(tmp_path / "ws") as workspace:
            assert_holds(workspace, bags)
            assert sorted(workspace.changes_since(version, "sold").table.to_pylist(), key=str) == sorted(
                told.to_pylist(), key=str
            )
            if checkpoint:
                workspace.checkpoint()
                workspace.save(tmp_path / "copy")
    without_image = Workspace.load_from(tmp_path / "copy")
    with without_image.transaction() as tx:
        tx.erase("sale", [(0, 0)])
    assert_holds(without_image, {**bags, "sale": after(bags["sale"], Counter({(0, 0): -1}))})


def test_in_an_image(tmp_path: Path) -> None:
    workspace, bags = begin(Workspace())
    write_image(workspace, tmp_path / "image")
    read = read_image(tmp_path / "image")
    with read.transaction() as tx:
        tx.insert("price", [(0, 0), (0, 0)])
    assert_holds(read, {**bags, "price": after(bags["price"], Counter({(0, 0): 2}))})
    assert_holds(workspace, bags)


def test_change_files_add_and_take_copies(tmp_path: Path) -> None:
    from click.testing import CliRunner

    with Workspace.open(tmp_path / "ws") as workspace:
        begin(workspace)
        bag = Counter(workspace["sale"])
    (tmp_path / "c.csv").write_text("key,v,weight,txn\n0,0,2,1\n0,0,-1,2\n1,1,1,2\n")
    done = CliRunner().invoke(
        cli, ["open", str(tmp_path / "ws"), "apply", "--changes", f"sale={tmp_path}/c.csv"]
    )
    assert done.exit_code == 0, done.output
    with Workspace.open(tmp_path / "ws", read_only=True) as workspace:
        assert Counter(workspace["sale"]) == bag + Counter({(0, 0): 1, (1, 1): 1})


def test_null_and_nan_have_copies() -> None:
    workspace = Workspace()
    workspace.load("r", [(None, 1.5), (None, 1.5), (2, None)], columns=["a", "x"], nulls="keep", bag=True)
    workspace.load("f", [(float("nan"),), (float("nan"),)], columns=["x"], bag=True)
    workspace.install("n[] = count() <- r(a, x). m[] = count() <- f(x).")
    with workspace.transaction() as tx:
        tx.insert("r", [(None, 1.5)])
        tx.erase("r", [(2, None), (2, None)])
        tx.erase("f", [(float("nan"),)])
    assert Counter(workspace["r"]) == {(None, 1.5): 3}
    assert (set(workspace["n"]), set(workspace["m"])) == ({(3,)}, {(1,)})


def test_what_was_staged_for_another_bag_is_refused() -> None:
    workspace = Workspace()
    workspace.load("e", [(1,)], columns=["a"], bag=True)
    tx = workspace.transaction()
    tx.insert("e", [(1,)])
    workspace.load("e", [(1,)], columns=["a"])
    with pytest.raises(errors.LftjError, match="'e' was loaded anew"):
        tx.commit()
