"""differential: batches whose heads go one by one by the commit machine, beside single commits."""

from __future__ import annotations

import linecache
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.changes.head_changes import Changes
from maintenance.machine import machine
from maintenance.machine.structures import Sizes
from maintenance.workspace.published import Published
from support.injected_lines import Injected, Lines
from support.machine_workspace import of
from support.rows import rows_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.filterwarnings("ignore::lftj.errors.EqualRowsWarning"),
]

COLUMNS = {"r": "ab", "s": "ab", "t": "abc"}
RULES = (
    "x[a] = min(b) <- r(a, b).",
    "x[a] = max(c) <- r(a, b), s(b, c). n[a] = count() <- r(a, _).",
    "x[] = quantile(a, 0.5, c) <- t(a, b, c). y[a] = sum(b) <- t(a, b, _).",
    "x(a, b) <- r(a, b), !s(b, a). y[] = count() <- x(_, _).",
    "n[a] = count() <- r(a, _). x[a, b] = d <- n[a] = c, s(a, b), d = b * c. m[] = min(d) <- n[_] = d.",
    "two(a, c) <- r(a, b), s(b, c). x[a] = min(c) <- two(a, c).",
    "n[b] = sum(p) <- r(b, p). x[b] = sum(d) <- n[b] = p, s(b, q), p - q > 1, d = p - q.",
    "x[a] = sum(d) <- t(a, v, p), t(a, w, q), p > q, d = v * p - w * q. y[a] = min(v) <- t(a, v, _).",
    "x(max(c), a, count(), min(b)) <- r(a, b), s(b, c).",
    "bag two(a, c) <- r(a, b), s(b, c). x[a] = max(c) <- two(a, c).",
)
"""Of which some heads can't be worked out at once, beside others and above others."""

SIZES = (None, Sizes(rows=200, few=3, many=9, spilled=2, log=300))

INJECTIONS = float(os.environ.get("LFTJ_INJECTIONS", "0"))
"""How many times each line is tried; by default a part of them, drawn by chance."""

Change = tuple[str, tuple[Any, ...], int]
"""A relation, a row and a weight."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


def both_of(
    rules: str, strategy: str = "delta", sizes: Sizes | None = None, folder: Path | None = None, **how: Any
) -> list[Workspace]:
    """A workspace with the machine, and one without, to say what is right; ``how``: relations are loaded."""
    fast = Workspace(single_changes="machine") if folder is None else Workspace.open(folder)
    both = [fast, Workspace(single_changes="general")]
    for ws in both:
        for name, columns in COLUMNS.items():
            ws.load(name, pa.table({c: pa.array([], pa.int64()) for c in columns}), **how)
        ws.install(rules, strategy)
    its = of(both[0])
    its.checks, its.sizes = False, sizes or its.sizes
    return both


def drawn(draw: Random, n: int, domain: int, most: int = 3) -> list[list[Change]]:
    """So many transactions, each of rows that are all different."""
    found = []
    for _ in range(n):
        rows: dict[tuple[str, tuple[Any, ...]], int] = {}
        for _ in range(draw.randrange(1, most + 1)):
            name = draw.choice(list(COLUMNS))
            row = tuple(draw.randrange(domain) for _ in COLUMNS[name])
            rows[name, row] = draw.choice((1, 1, -1))
        found.append([(*key, weight) for key, weight in rows.items()])
    return found


def batch_of(transactions: list[list[Change]]) -> dict[str, dict[str, list[Any]]]:
    tables: dict[str, dict[str, list[Any]]] = {}
    for number, changes in enumerate(transactions):
        for name, row, weight in changes:
            table = tables.setdefault(name, {c: [] for c in (*COLUMNS[name], "weight", "txn")})
            for column, value in zip(table, (*row, weight, number), strict=True):
                table[column].append(value)
    return tables


def commit(ws: Workspace, changes: list[Change]) -> Any:
    with ws.transaction() as tx:
        for name, row, weight in changes:
            (tx.insert if weight > 0 else tx.erase)(name, [row])
    return tx


def shown(changes: Changes) -> dict[str, list[Any]]:
    return {head: rows_of(changes[head]) for head in changes}


def contents(ws: Workspace) -> dict[str, Counter[Any]]:
    return {name: Counter(rows_of(ws[name].table)) for name in (*COLUMNS, *ws.heads)}


def check_batch(both: list[Workspace], transactions: list[list[Change]]) -> int:
    """The batch does what its transactions do; how many steps heads one by one took another way."""
    applied = both[0].apply_many(batch_of(transactions))
    slow = applied.stats.one_by_one.keys()
    n_stepped = 0
    for changes, transaction in zip(applied, transactions, strict=True):
        tx = commit(both[1], transaction)
        assert shown(changes) == shown(tx.changes)
        n_stepped += not slow.isdisjoint(tx.stats.rules)
    assert contents(both[0]) == contents(both[1])
    both[0].verify()
    both[0].check_invariants()
    assert applied.stats.fast <= n_stepped and slow
    return n_stepped - applied.stats.fast


@pytest.mark.in_turns
@pytest.mark.kernel
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("strategy", ["delta", "views", "auto"])
@pytest.mark.parametrize("rules", RULES)
def test_a_batch_is_its_transactions(rules: str, strategy: str, sizes: Sizes | None) -> None:
    both, draw = both_of(rules, strategy, sizes), Random(4)
    left = [check_batch(both, drawn(draw, n, 6)) for n in (20, 30)]
    assert left == [0, 0] or sizes or strategy == "auto"
    single = commit(both[0], [("r", (1, 9), 1)])
    assert shown(single.changes) == shown(commit(both[1], [("r", (1, 9), 1)]).changes)


@pytest.mark.parametrize("how", [{"bag": True}, {"nulls": "keep"}])
def test_a_batch_of_bags_or_with_null(how: dict[str, Any]) -> None:
    both, draw = both_of(RULES[1], **how), Random(6)
    null = None if "nulls" in how else 7
    for _ in range(2):
        transactions = [
            [(name, tuple(null if one == 1 else one for one in row), weight) for name, row, weight in its]
            for its in drawn(draw, 30, 4)
        ]
        assert check_batch(both, transactions) == 0


@pytest.mark.parametrize("sizes", SIZES)
def test_what_it_took_is_told_by_head(sizes: Sizes | None) -> None:
    """As of a batch the general way, whose heads count the same rows."""
    rules = "x[a] = min(b) <- r(a, b), s(b, _). n[a] = count() <- s(a, _)."
    both, draw = both_of(rules, sizes=sizes), Random(1)
    batch = batch_of(drawn(draw, 40, 5))
    one, other = (ws.apply_many(batch).stats for ws in both)
    assert one.fast > 10 and not other.fast
    assert one.one_by_one == other.one_by_one and list(one.one_by_one) == ["x"]
    assert (one.inserted, one.erased, one.no_changes) == (other.inserted, other.erased, other.no_changes)
    for head in ("x", "n"):
        assert one[head].head_changes == other[head].head_changes
        assert one[head].operations > 0 and one[head].surgeries == other[head].surgeries
    assert one["x"].regions == other["x"].regions
    assert "by the kernel of single changes" in str(one)


def test_what_the_machine_does_not_take_goes_the_general_way_amid_it() -> None:
    """A transaction of too many rows; those behind it go by the machine again."""
    both, draw = both_of(RULES[1], sizes=Sizes(rows=50)), Random(2)
    large = [("r", (a, b), 1) for a in range(9) for b in range(9)]
    assert 0 < check_batch(both, [*drawn(draw, 10, 6), large, *drawn(draw, 20, 6)]) < 8


def test_a_program_of_some_heads_ends_with_them() -> None:
    """Batches come behind other rules, strategies and loads as well."""
    both, draw = both_of(RULES[1]), Random(9)
    assert check_batch(both, drawn(draw, 10, 5)) == 0
    for ws in both:
        ws.install("y[b] = max(a) <- s(a, b). z[] = count() <- y[_] = _.", "delta")
    assert check_batch(both, drawn(draw, 10, 5)) == 0
    for ws in both:
        ws.set_strategy("y", "trace")
    check_batch(both, drawn(draw, 10, 5))
    for ws in both:
        ws.set_strategy("y", "delta")
        ws.load("beside", [(1, 2)], columns=["a", "b"])
    assert check_batch(both, drawn(draw, 10, 5)) == 0


def test_batches_of_other_relations_have_programs_of_other_heads() -> None:
    beside = "n[] = count() <- r(_, _). m[] = count() <- s(_, _)."
    both, draw = both_of(f"x[a] = min(b) <- r(a, b). y[a] = min(b) <- s(a, b). {beside}"), Random(8)
    for name in "rsrsr":
        transactions = [[one for one in its if one[0] == name] for its in drawn(draw, 20, 5)]
        assert check_batch(both, [its for its in transactions if its]) == 0


@pytest.mark.parametrize("sizes", SIZES)
def test_what_can_not_be_published_leaves_all_as_before(sizes: Sizes | None) -> None:
    both, draw = both_of(RULES[1], sizes=sizes), Random(3)
    for _ in range(4):
        check_batch(both, drawn(draw, 20, 5))
        before = contents(both[0])
        with mock.patch.object(Published, "replace", side_effect=MemoryError), pytest.raises(MemoryError):
            both[0].apply_many(batch_of([*drawn(draw, 20, 5), [("r", (5, 0), 1), ("s", (0, 9), 1)]]))
        assert contents(both[0]) == before


@pytest.mark.parametrize("sizes", SIZES)
def test_one_that_is_wrong_is_named_and_all_is_as_before(sizes: Sizes | None) -> None:
    rules = "x[a] = min(b) <- r(a, b). y[b] = sum(c) <- s(b, c), r(_, b)."
    both, draw = both_of(rules, sizes=sizes), Random(3)
    check_batch(both, drawn(draw, 20, 5))
    before = contents(both[0])
    wrong = [("s", (1, 2**62), 1), ("s", (1, 2**62 + 1), 1), ("r", (0, 1), 1)]
    batch = batch_of([*drawn(draw, 15, 5), wrong, *drawn(draw, 5, 5)])
    with pytest.raises(errors.RangeError, match=r"^transaction 15: "):
        both[0].apply_many(batch)
    assert contents(both[0]) == before
    both[0].verify()
    both[0].check_invariants()
    assert check_batch(both, drawn(draw, 20, 5)) == 0


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_a_batch_is_one_change_of_a_folder(tmp_path: Path, durability: str) -> None:
    both, draw = both_of(RULES[2], folder=tmp_path / "ws"), Random(7)
    version = both[0].version
    told: list[pa.Table] = []
    both[0].subscribe("x", told.append)
    assert check_batch(both, transactions := drawn(draw, 25, 5)) == 0
    assert both[0].version == version + 1
    both[0].close()
    with Workspace.open(tmp_path / "ws", durability=durability) as both[0]:  # type: ignore[call-overload]
        assert contents(both[0]) == contents(both[1])
        check_batch(both, drawn(draw, 25, 5))
    assert 0 < len(told) <= len(transactions)


class Scene:
    """Batches, each there or not, and what subscribers hear."""

    def __init__(self, sizes: Sizes | None) -> None:
        self.draw = Random(5)
        self.ws = both_of(RULES[1] + " y[b] = sum(d) <- r(b, p), s(b, q), p > q, d = p - q.", sizes=sizes)[0]
        of(self.ws).checks = False
        self.heard: Counter[Any] = Counter()
        self.told: list[pa.Table] = []
        self.ws.subscribe("x", self.told.append)
        self.fast = 0

    def apply(self) -> None:
        before = contents(self.ws)
        transactions = drawn(self.draw, 6, 5)
        after = Counter(before["r"]), Counter(before["s"])
        for changes in transactions:
            for name, row, weight in changes:
                if name in "rs":
                    after["rs".index(name)][row] = int(weight > 0)
        try:
            self.fast += self.ws.apply_many(batch_of(transactions)).stats.fast
        finally:
            there = tuple(Counter(rows_of(self.ws[name].table)) for name in "rs")
            assert there in ((before["r"], before["s"]), (+after[0], +after[1]))

    def check(self) -> None:
        self.ws.verify()
        while self.told:
            for *row, weight in rows_of(self.told.pop(0)):
                self.heard[tuple(row)] += weight
        assert +self.heard == Counter(rows_of(self.ws["x"].table))


@pytest.mark.in_turns
@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::lftj.errors.HousekeepingWarning")
@pytest.mark.parametrize("sizes", SIZES)
def test_an_exception_at_every_line(sizes: Sizes | None) -> None:
    scene, every = Scene(sizes), Lines()
    for _ in range(8):
        with every:
            scene.apply()
    assert scene.fast > 20
    own = ("machine/stepper.py", "machine/machine.py", "machine/structures.py", "workspace/batch.py")
    draw, share = Random(6), INJECTIONS or 0.3
    for (file, number), count in sorted(every.counts.items()):
        if not file.endswith(own) or linecache.getline(file, number).strip().startswith(("try:", "finally:")):
            continue
        for _ in range(int(share) + (draw.random() < share % 1)):
            lines = Lines((file, number), draw.randrange(min(count, 9)) + 1, Injected)
            try:
                for _ in range(4):
                    with lines:
                        scene.apply()
            except Injected:
                pass
            try:
                if draw.random() < 0.5:
                    scene.check()
                scene.apply()
                scene.check()
            except BaseException as error:
                error.add_note(f"after an exception at {file}:{number}")
                raise
    scene.ws.check_invariants()
