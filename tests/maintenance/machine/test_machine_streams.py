"""differential: streams by the commit machine, beside a workspace that has none: clocks, late rows, keep."""

from __future__ import annotations

import linecache
import os
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.machine import machine
from maintenance.machine.structures import Sizes
from support.injected_lines import Injected, Lines
from support.machine_workspace import of
from support.rows import rows_of

RULES = """
n[k] = count() <- trade(k, _, _).
best[k] = max(v) <- trade(k, v, _).
both(k, v, p) <- trade(k, v, _), quote(k, p, _).
named(k, a) <- trade(k, _, _), name(k, a).
"""
TEXTS = {"trade": ("k", "v", "t"), "quote": ("k", "p", "s"), "name": ("k", "a")}

INJECTIONS = float(os.environ.get("LFTJ_INJECTIONS", "0"))
"""How many times each line is tried; by default a part of them, drawn by chance."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


def empty(columns: tuple[str, ...], type_: Any) -> pa.Table:
    return pa.table({column: pa.array([], type_ if column in "ts" else pa.int64()) for column in columns})


def load(ws: Workspace, rules: str = RULES, type_: Any = None, **options: Any) -> Workspace:
    settings = {"lateness": 10, "keep": 320, **options}
    ws.load("trade", empty(TEXTS["trade"], type_ or pa.int64()), time="t", **settings)
    ws.load("quote", empty(TEXTS["quote"], type_ or pa.int64()), time="s", lateness=settings["lateness"])
    ws.load("name", pa.table({"k": [0, 1, 2], "a": ["x", "y", "z"]}))
    ws.install(rules, "delta")
    return ws


def both_of(sizes: Sizes | None = None, folder: Path | None = None, **how: Any) -> list[Workspace]:
    """A workspace with the machine, and one without, which says what is right."""
    one = Workspace() if folder is None else Workspace.open(folder, durability="interval")
    both = [load(one, **how), load(Workspace(single_changes="general"), **how)]
    its = of(both[0])
    its._wait, its.checks, its.sizes = 1, False, sizes or its.sizes
    return both


Call = tuple[str, str, Any]
"""A method of a transaction, a relation and rows; or ``advance`` to a time."""


def outcome(ws: Workspace, calls: list[Call]) -> Any:
    """What becomes of a transaction: all that it tells, or an error."""
    try:
        with ws.transaction() as tx:
            for call, name, rows in calls:
                if call == "advance":
                    tx.advance(rows)
                else:
                    getattr(tx, call)(name, rows)
    except errors.LftjError as error:
        return f"{type(error).__name__}: {error}", 0
    stats = tx.stats
    told = {head: Counter(rows_of(table)) for head, table in tx.changes.items()}
    figures = [stats.inserted, stats.erased, stats.no_changes, stats.late, stats.expired]
    heads = {head: its.head_changes for head, its in stats.rules.items()}
    return (told, figures, heads), stats.fast


class Draw:
    """Transactions of events whose times go on."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.time = 1_000

    def calls(self) -> list[Call]:
        draw = self.random
        self.time += draw.choice((0, 1, 1, 2, 5))
        calls: list[Call] = []
        for _ in range(draw.choice((1, 1, 1, 2))):
            behind = draw.choice((0, 0, 1, 4, 9, 9, draw.randrange(40)))
            time = self.time - behind + (60 if draw.random() < 0.01 else 0)
            row = (draw.randrange(4), draw.randrange(5), time)
            chance = draw.random()
            if chance < 0.02:
                calls.append(("erase", "trade", [row]))
            elif chance < 0.03:
                calls.append(("advance", "", self.time - draw.choice((0, 20))))
            elif chance < 0.1:
                how = draw.choice(("insert", "erase"))
                calls.append((how, "name", [(draw.randrange(4), draw.choice("xyzw"))]))
            else:
                name = draw.choice(("trade", "trade", "quote"))
                calls.append(("insert", name, [row, row] if draw.random() < 0.1 else [row]))
        return calls


def contents(ws: Workspace) -> Any:
    found = {name: Counter(rows_of(ws[name].table)) for name in (*TEXTS, *ws.heads)}
    return found, ws.now, ws.late("trade"), ws.late("quote"), ws._state.streams


def in_step(both: list[Workspace], draw: Draw, n: int) -> int:
    """So many random transactions of both; how many of them went by the machine."""
    fast = 0
    for number in range(n):
        calls = draw.calls()
        (one, by_machine), (other, _) = (outcome(ws, calls) for ws in both)
        assert one == other, calls
        fast += by_machine
        if number % 40 == 39:
            assert contents(both[0]) == contents(both[1])
    assert contents(both[0]) == contents(both[1])
    assert both[0]._state.number == both[1]._state.number
    both[0].verify()
    both[0].check_invariants()
    return fast


@pytest.mark.in_turns
@pytest.mark.kernel
@pytest.mark.parametrize(
    "how", [{}, {"ahead": 50}, {"keep": 40}, {"lateness": 0}, {"keep": None}, {"keep": 20_000}, {"bag": True}]
)
@pytest.mark.parametrize("sizes", [None, Sizes(rows=200, few=4, many=20, spilled=2, log=400)])
def test_streams_in_step(how: dict[str, Any], sizes: Sizes | None) -> None:
    both = both_of(sizes, **how)
    fast = in_step(both, Draw(4), 200)
    assert fast > (20 if how.get("keep") == 40 or sizes else 60)
    assert "single changes go by the machine" in str(both[0].explain_maintenance("n"))


@pytest.mark.parametrize(
    ("kind", "code", "unit"), [(pa.timestamp("s"), pa.int64(), "s"), (pa.date32(), pa.int32(), "d")]
)
def test_times_of_other_types(kind: Any, code: Any, unit: str) -> None:
    both = both_of(type_=kind, lateness=f"10{unit}", keep=f"320{unit}")
    fast = 0
    for number in range(90):
        time = pa.scalar(20_000 + number, code).cast(kind).as_py()
        calls: list[Call] = [("insert", name, [(number % 3, 1, time)]) for name in ("trade", "quote")]
        (one, by_machine), (other, _) = (outcome(ws, calls) for ws in both)
        assert one == other
        fast += by_machine
    assert contents(both[0]) == contents(both[1])
    assert fast > 15


def test_batches_of_streams() -> None:
    """What leaves with each transaction, between single changes."""
    both, draw, fast = both_of(), Draw(9), 0
    for _ in range(6):
        in_step(both, draw, 30)
        tables: dict[str, dict[str, list[Any]]] = {}
        for number in range(20):
            for how, name, rows in draw.calls():
                for row in rows if how == "insert" else ():
                    table = tables.setdefault(name, {c: [] for c in (*TEXTS[name], "weight", "txn")})
                    for column, value in zip(table, (*row, 1, number), strict=True):
                        table[column].append(value)
        one, other = (ws.apply_many(tables) for ws in both)
        for changes, expected in zip(one, other, strict=True):
            for head in both[0].heads:
                assert Counter(rows_of(changes[head])) == Counter(rows_of(expected[head]))
        fast += one.stats.fast
        assert (one.stats.late, one.stats.expired) == (other.stats.late, other.stats.expired)
        assert contents(both[0]) == contents(both[1])
    assert fast > 20


@pytest.mark.parametrize("sizes", [None, Sizes(rows=200, few=4, many=20, spilled=2, log=400)])
def test_a_folder_has_where_streams_are(tmp_path: Path, sizes: Sizes | None) -> None:
    both, draw = both_of(sizes, tmp_path / "ws"), Draw(7)
    for with_image in (False, True, False):
        assert in_step(both, draw, 60) > 15
        store = both[0]._published.store
        assert store is not None
        (both[0] if with_image else store).close()
        both[0] = Workspace.open(tmp_path / "ws", durability="interval")
        of(both[0])._wait, of(both[0]).checks = 1, False
        (one, other) = (contents(ws) for ws in both)
        assert one == other


def test_what_the_machine_leaves_of_streams() -> None:
    """Finals, rows of now(), and heads that it does not take; explanations say so."""
    ws = load(Workspace(), RULES + "half(x) <- trade(_, v, _), x in range(0, v).")
    told = str(ws.explain_maintenance("n"))
    assert "single changes go the general way: 'trade', which it reads: 'half', which reads it" in told
    ws = load(Workspace(), "q(p) <- quote(_, p, _). half(x) <- trade(_, v, _), x in range(0, v).")
    assert "'quote', which it reads: 'trade', whose clock it has" in str(ws.explain_maintenance("q"))
    ws = load(Workspace(), "recent[k] = count() <- trade(k, _, t), t > now() - 20.")
    assert "rows of now()" in str(ws.explain_maintenance("recent"))
    for number in range(12):
        with ws.transaction() as tx:
            tx.insert("trade", [(number, 1, 100 + number)])
        assert not tx.stats.fast


class Scene:
    """Transactions that are there or not, waterlines with them."""

    def __init__(self) -> None:
        self.both, self.draw = both_of(Sizes(few=5, many=30, spilled=2, log=400)), Draw(3)
        self.calls: list[Call] | None = None
        self.fast = 0

    def commit(self, lines: AbstractContextManager[object] | None = None) -> None:
        self.calls = [call for call in self.draw.calls() if call[0] == "insert"]
        self.tx = self.both[0].transaction()
        for _, name, rows in self.calls:
            self.tx.insert(name, rows)
        with lines or nullcontext():
            self.tx.commit()
        self.settle()

    def settle(self) -> None:
        """The other one does the last transaction if it stands."""
        if self.calls is None:
            return
        try:
            self.fast += self.tx.stats.fast
        except errors.TransactionError:
            pass
        else:
            outcome(self.both[1], self.calls)
        self.calls = None


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::lftj.errors.HousekeepingWarning")
def test_an_exception_at_every_line() -> None:
    scene, every = Scene(), Lines()
    for _ in range(60):
        scene.commit(every)
    assert scene.fast > 20
    own, draw, share = ("machine/clocks.py", "machine/machine.py"), Random(6), INJECTIONS or 0.5
    for (file, number), count in sorted(every.counts.items()):
        if not file.endswith(own) or linecache.getline(file, number).strip().startswith(("try:", "finally:")):
            continue
        for _ in range(int(share) + (draw.random() < share % 1)):
            try:
                lines = Lines((file, number), draw.randrange(min(count, 4)) + 1, Injected)
                for _ in range(6):
                    scene.commit(lines)
            except Injected:
                pass
            scene.settle()
            for _ in range(3):
                scene.commit()
            assert contents(scene.both[0]) == contents(scene.both[1]), f"after {file}:{number}"
    scene.both[0].verify()
