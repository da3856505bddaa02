"""Wide relations in folders, images and batches: what is not coded comes back as it was."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from support.wide_tables import NAMES, RULES, agrees_with_sql, distinct, wide_table

EDGE = pa.table({"x": [1, 2, 3, 9], "y": [0, 0, 0, 0]})


def filled(workspace: Workspace, table: pa.Table, strategy: str = "auto") -> Workspace:
    workspace.load("w", table)
    workspace.load("edge", EDGE)
    workspace.install(RULES, strategy=strategy)
    return workspace


def check(workspace: Workspace, table: pa.Table) -> None:
    agrees_with_sql(lambda head: workspace[head].to_arrow(), table, EDGE)
    expected = sorted(repr(tuple(row.values())) for row in table.to_pylist())
    assert sorted(map(repr, workspace["w"])) == expected
    workspace.verify()


def changed(workspace: Workspace, table: pa.Table, seed: int) -> pa.Table:
    """What the table is after a commit that erases rows and inserts some."""
    generator = random.Random(seed)
    gone = generator.sample(range(table.num_rows), 15)
    left = [row for row in range(table.num_rows) if row not in set(gone)]
    came = wide_table(generator, 20)
    with workspace.transaction() as transaction:
        transaction.erase("w", table.take(gone))
        transaction.insert("w", came)
    return distinct(pa.concat_tables([table.take(left), came]))


def test_a_folder_is_opened_again(tmp_path: Path) -> None:
    """With changes behind the last checkpoint, and without."""
    table = distinct(wide_table(random.Random(1), 200))
    with Workspace.open(tmp_path / "folder") as workspace:
        table = changed(filled(workspace, table), table, 2)
    for seed in (3, 4):
        with Workspace.open(tmp_path / "folder") as workspace:
            check(workspace, table)
            table = changed(workspace, table, seed)
            if seed == 3:
                workspace.checkpoint()
                table = changed(workspace, table, 5)
            check(workspace, table)
            workspace.compact()
            check(workspace, table)


@pytest.mark.parametrize("n_commits", [0, 2])
def test_an_image_goes_on(n_commits: int, tmp_path: Path) -> None:
    """Of rows that wait as they came, and of rows with codes."""
    table = distinct(wide_table(random.Random(1), 200))
    workspace = filled(Workspace(), table)
    for seed in range(n_commits):
        table = changed(workspace, table, seed)
    workspace.save(tmp_path / "image")
    read = Workspace.load_from(tmp_path / "image")
    check(read, table)
    check(read, changed(read, table, 7))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches_are_what_their_transactions_are(strategy: str) -> None:
    """Rows that come, go and come again within a batch; NULL where no rule reads."""
    generator = random.Random(strategy)
    table = distinct(wide_table(generator, 100))
    one, many = filled(Workspace(), table, strategy), filled(Workspace(), table, strategy)
    rows = distinct(pa.concat_tables([table.slice(0, 12), wide_table(generator, 12)]))
    picked = [(generator.randrange(rows.num_rows), generator.choice((1, -1))) for _ in range(60)]
    batch = rows.take([row for row, _ in picked])
    batch = batch.append_column("weight", pa.array([weight for _, weight in picked]))
    batch = batch.append_column("txn", pa.array([number // 5 for number in range(60)]))
    applied = many.apply_many({"w": batch})
    told: list[Any] = []
    for number in range(12):
        with one.transaction() as transaction:
            transaction.apply("w", batch.slice(5 * number, 5).drop_columns("txn"))
        told.append(transaction.changes)
    assert len(applied) == 12
    for changes, expected in zip(applied, told, strict=True):
        for head in RULES_HEADS:
            assert as_bag(changes[head]) == as_bag(expected[head]), head
    assert sorted(map(repr, many["w"])) == sorted(map(repr, one["w"]))
    many.verify()
    assert set(NAMES) == set(many["w"].column_names)


RULES_HEADS = ("n", "s", "m", "t", "j", "o")


def as_bag(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("way", ["insert", "apply"])
def test_a_rule_that_came_after_a_null_was_staged(way: str) -> None:
    """The commit says so, and nothing of the transaction is done; what nobody reads may be NULL still."""
    texts = {name: pa.array([None], pa.string()) for name in ("s", "t", "u", "v")}

    def row(number: int, text: str | None) -> pa.Table:
        return pa.table({"a": [number], **texts, "t": pa.array([text], pa.string())})

    workspace = Workspace()
    workspace.load("w", row(1, "x"))
    workspace.load("o", [(1,)], columns=["a"])
    workspace.install("k(a) <- o(a).")
    transaction = workspace.transaction()
    transaction.insert("o", [(2,)])
    if way == "insert":
        transaction.insert("w", row(2, None))
    else:
        transaction.apply("w", row(2, None).append_column("weight", pa.array([1])))
    workspace.install("h(t) <- w(t: t).")
    with pytest.raises(
        errors.ChangeError, match="'w', column 't': NULL, and a rule that was installed after"
    ):
        transaction.commit()
    assert (set(workspace["h"]), set(workspace["k"]), len(workspace["w"])) == ({("x",)}, {(1,)}, 1)
    workspace.verify()
    with workspace.transaction() as tx:
        tx.insert("w", row(2, "y"))
        tx.erase("w", row(7, "z"))
    assert set(workspace["h"]) == {("x",), ("y",)}
