"""Tables with a key in a workspace: a machine of changes, refusals and reopenings against a dictionary."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.image import read_image, write_image
from support.kept_lives import without_image
from support.keyed_model import Event, Key, Row, TwoRows, after
from support.small_limits import small_limits, wide_relations

RULES = """
n[s] = count() <- orders(state: s).
spent[c] = sum(a) <- orders(id: i, customer: c, amount: a).
pairs(i, j) <- orders(id: i, customer: c), orders(id: j, customer: c), i < j.
idle(c) <- customer(c, _), !orders(customer: c).
named(i, n) <- orders(id: i, customer: c), customer(c, n).
"""
NAMES = ("customer", "id", "amount", "state")
"""The key, id and amount, does not come first."""

ROWS = st.tuples(
    st.integers(0, 3), st.integers(0, 4), st.integers(0, 2), st.sampled_from(["new", "paid", ""])
)
EVENTS = st.lists(
    st.builds(Event, st.sampled_from(["insert", "erase", "upsert", "upsert", "erase_keys"]), ROWS), max_size=8
)
CUSTOMERS = [(number, name) for number, name in enumerate(["Ann", "Bo", "Cy"])]
OPS = {"insert": "I", "erase": "delete", "upsert": "U", "erase_keys": "D"}


def key_of(row: Row) -> Key:
    return row[1], row[2]


def by_key(events: list[Event]) -> list[Event]:
    return [Event(what, key_of(row) if what == "erase_keys" else row) for what, row in events]


def heads(rows: dict[Key, Row]) -> dict[str, set[Any]]:
    orders = [*rows.values()]
    spent: Counter[int] = Counter()
    for customer, _, amount, _ in orders:
        spent[customer] += amount
    return {
        "orders": set(orders),
        "n": set(Counter(state for *_, state in orders).items()),
        "spent": set(spent.items()) | {(row[0], 0) for row in orders if not spent[row[0]]},
        "pairs": {
            (one[1], two[1]) for one in orders for two in orders if one[0] == two[0] and one[1] < two[1]
        },
        "idle": {(number,) for number, _ in CUSTOMERS if all(row[0] != number for row in orders)},
        "named": {(row[1], name) for row in orders for number, name in CUSTOMERS if number == row[0]},
    }


def begin(workspace: Workspace, strategy: str = "auto") -> Workspace:
    types = [pa.int64(), pa.int64(), pa.int64(), pa.string()]
    empty = pa.table([pa.array([], each) for each in types], names=NAMES)
    workspace.load("orders", empty, key=["id", "amount"])
    workspace.load("customer", CUSTOMERS, columns=["c", "name"])
    workspace.install(RULES, strategy)
    return workspace


def assert_holds(workspace: Workspace, rows: dict[Key, Row]) -> None:
    for name, expected in heads(rows).items():
        assert set(workspace[name]) == expected, name


class KeyedMachine(RuleBasedStateMachine):
    """A workspace in a folder, and what its table holds."""

    @initialize(
        strategy=st.sampled_from([name for name in STRATEGIES if name != "stages"]),
        wide=st.booleans(),
        merges=st.sampled_from([(4096, 8), (0, 100), (0, 1)]),
    )
    def make(self, strategy: str, wide: bool, merges: tuple[int, int]) -> None:
        self.patches = ExitStack()
        self.patches.enter_context(small_limits(merges))
        self.patches.enter_context(wide_relations(wide))
        self.place = Path(self.patches.enter_context(tempfile.TemporaryDirectory()))
        self.folder = self.place / "folder"
        self.workspace = begin(Workspace.open(self.folder), strategy)
        self.rows: dict[Key, Row] = {}
        self.told: dict[str, Counter[Any]] = {name: Counter(heads({})[name]) for name in heads({})}

    def _expected(self, events: list[Event]) -> dict[Key, Row] | None:
        try:
            return after(self.rows, by_key(events), key_of)
        except TwoRows:
            return None

    @rule(events=EVENTS, as_table=st.booleans(), keep=st.sampled_from([True, True, True, False]))
    def change(self, events: list[Event], as_table: bool, keep: bool) -> None:
        tx = self.workspace.transaction()
        if as_table and events:
            columns = dict(zip(NAMES, map(list, zip(*(row for _, row in events), strict=True)), strict=True))
            gone = [what == "erase_keys" for what, _ in events]
            columns["state"] = [
                None if by else state for by, state in zip(gone, columns["state"], strict=True)
            ]
            columns["state"] = pa.array(columns["state"], pa.string())
            tx.apply("orders", pa.table({**columns, "op": [OPS[what] for what, _ in events]}))
        else:
            for what, row in by_key(events):
                getattr(tx, what)("orders", [row])
        expected = self._expected(events)
        if not keep:
            tx.roll_back()
        elif expected is None:
            with pytest.raises(
                errors.KeyConflictError, match="relation 'orders': there are two rows of key id="
            ):
                tx.commit()
        else:
            tx.commit()
            self._tell([tx.changes])
            self.rows = expected

    @rule(batch=st.lists(EVENTS, min_size=1, max_size=3))
    def change_together(self, batch: list[list[Event]]) -> None:
        listed = [(*row, OPS[what], number) for number, events in enumerate(batch) for what, row in events]
        if not listed:
            return
        now: dict[Key, Row] | None = self.rows
        before = self.rows
        for events in batch:
            now = self._expected(events)
            if now is None:
                break
            self.rows = now
        names = [*NAMES, "op", "txn"]
        table = pa.table(dict(zip(names, map(list, zip(*listed, strict=True)), strict=True)))
        if now is None:
            self.rows = before
            with pytest.raises(
                errors.KeyConflictError, match=r"transaction [0-2]: relation 'orders': there are two"
            ):
                self.workspace.apply_many({"orders": table})
        else:
            self._tell(self.workspace.apply_many({"orders": table}))

    def _tell(self, each: Any) -> None:
        for changes in each:
            for name in changes:
                for *row, weight in zip(*changes[name].to_pydict().values(), strict=True):
                    self.told[name][tuple(row)] += weight

    @rule(image=st.booleans(), how=st.sampled_from(["close", "kill", "checkpoint", "save"]))
    def reopen(self, image: bool, how: str) -> None:
        if how == "checkpoint":
            self.workspace.checkpoint()
        folder = self.place / "next"
        if how == "save":
            self.workspace.save(folder)
        elif how != "close":
            shutil.copytree(self.folder, folder)  # as a kill leaves it
        self.workspace.close()
        if folder.exists():
            shutil.rmtree(self.folder)
            folder.rename(self.folder)
        if not image:
            without_image(self.folder)
        self.workspace = Workspace.open(self.folder)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "workspace"):
            return
        assert_holds(self.workspace, self.rows)
        for name, expected in heads(self.rows).items():
            if name != "orders":
                assert +self.told[name] == Counter(expected), name

    def teardown(self) -> None:
        if hasattr(self, "workspace"):
            self.workspace.check_invariants()
            self.workspace.verify()
            self.workspace.close()
            self.patches.close()


TestKeyedMachine = KeyedMachine.TestCase
TestKeyedMachine.settings = settings(stateful_step_count=10, max_examples=15)


@settings(max_examples=20)
@given(first=st.lists(ROWS, max_size=6), upserts=st.lists(ROWS, max_size=6))
def test_law_an_upsert_is_an_erasure_and_an_insertion(first: list[Row], upserts: list[Row]) -> None:
    """By key, and of the whole rows that were there: the same rows, changes of all heads, and figures."""
    there = {key_of(row): row for row in first}
    now = there | {key_of(row): row for row in upserts}
    workspaces, told = [begin(Workspace()) for _ in range(3)], []
    for workspace in workspaces:
        with workspace.transaction() as tx:
            tx.insert("orders", [*there.values()])
        told.append(workspace.transaction())
    for row in upserts:
        told[0].upsert("orders", [row])
        told[1].erase_keys("orders", [key_of(row)])
        told[1].insert("orders", [row])
    told[2].erase("orders", [*{*there.values()} - {*now.values()}])
    told[2].insert("orders", [*{*now.values()} - {*there.values()}])
    for workspace, tx in zip(workspaces, told, strict=True):
        tx.commit()
        assert_holds(workspace, now)
        assert [each.stats.inserted.get("orders", 0) for each in (tx, told[0])] == [
            len(now.items() - there.items())
        ] * 2
        for name in ("n", "spent", "pairs", "idle", "named"):
            assert Counter(map(str, tx.changes[name].to_pylist())) == Counter(
                map(str, told[0].changes[name].to_pylist())
            )


@pytest.fixture
def shop() -> Iterator[Workspace]:
    workspace = begin(Workspace())
    with workspace.transaction() as tx:
        tx.insert("orders", [(0, 1, 0, "new"), (1, 2, 0, "paid")])
    yield workspace
    workspace.check_invariants()
    workspace.verify()


ROWS_OF_SHOP = {(1, 0): (0, 1, 0, "new"), (2, 0): (1, 2, 0, "paid")}


def test_readers_and_images_have_the_key(shop: Workspace, tmp_path: Path) -> None:
    held = shop.snapshot()
    with shop.transaction() as tx:
        tx.upsert("orders", [(0, 2, 0, "sent")])
    assert set(held["orders"]) == {*ROWS_OF_SHOP.values()}
    write_image(shop, tmp_path / "image")
    again = read_image(tmp_path / "image")
    with again.transaction() as tx:
        tx.erase_keys("orders", [(2, 0)])
    assert set(again["orders"]) == {(0, 1, 0, "new")}
    again.check_invariants()
    with pytest.raises(errors.KeyConflictError), again.transaction() as tx:
        tx.insert("orders", [(3, 1, 0, "new")])


def test_what_was_changed_before_can_be_asked_for(tmp_path: Path) -> None:
    """Also where the journal alone says it."""
    with begin(Workspace.open(tmp_path, feed_bytes=1 << 20)) as ws:
        versions = [ws.version]
        for state in ("new", "paid", "sent"):
            with ws.transaction() as tx:
                tx.upsert("orders", [(0, 1, 0, state)])
            versions.append(ws.version)
    with Workspace.open(tmp_path) as ws:
        change = ws.changes_since(versions[1], "n")
        assert Counter(map(str, change.table.to_pylist())) == Counter(
            map(str, [{"s": "new", "count": 1, "weight": -1}, {"s": "sent", "count": 1, "weight": 1}])
        )


def test_another_process_reads_the_key(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as ws:
        reader = Workspace.open(tmp_path, read_only=True)
        begin(ws)
        with ws.transaction() as tx:
            tx.upsert("orders", [(0, 1, 0, "new"), (1, 1, 0, "paid")])
        reader.refresh()
        assert set(reader["orders"]) == {(1, 1, 0, "paid")}
        assert reader.count("key orders(id, amount). m(i) <- orders(id: i).") == 1


def test_to_load_anew_gives_another_key(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as ws:
        ws.load("t", {"a": [1, 2], "b": [1, 1]}, key=["a"])
        tx = ws.transaction()
        tx.upsert("t", [(1, 2)])
        ws.load("t", {"a": [1, 1], "b": [1, 2]}, key=["b"])
        with pytest.raises(errors.TransactionError, match="'t' was loaded anew"):
            tx.commit()
        with ws.transaction() as tx:
            tx.upsert("t", [(5, 1)])
    without_image(tmp_path)
    with Workspace.open(tmp_path) as ws, ws.transaction() as tx:
        tx.upsert("t", [(6, 1)])
    assert set(Workspace.load_from(tmp_path)["t"]) == {(6, 1), (1, 2)}


def test_one_transaction_and_many_agree(shop: Workspace) -> None:
    """Random upserts of a larger table, each by itself and all in a batch."""
    chance = Random(3)
    alone, rows = begin(Workspace()), dict(ROWS_OF_SHOP)
    with alone.transaction() as tx:
        tx.insert("orders", [*rows.values()])
    listed: list[tuple[Any, ...]] = []
    for number in range(200):
        with alone.transaction() as tx:
            for _ in range(chance.randrange(1, 4)):
                row = (chance.randrange(4), chance.randrange(60), chance.randrange(2), "new")
                if chance.random() < 0.3:
                    tx.erase_keys("orders", [key_of(row)])
                    rows.pop(key_of(row), None)
                    listed.append((*row, "D", number))
                else:
                    tx.upsert("orders", [row])
                    rows[key_of(row)] = row
                    listed.append((*row, "u", number))
    names = [*NAMES, "op", "txn"]
    shop.apply_many({"orders": pa.table(dict(zip(names, map(list, zip(*listed, strict=True)), strict=True)))})
    for workspace in (alone, shop):
        assert_holds(workspace, rows)
