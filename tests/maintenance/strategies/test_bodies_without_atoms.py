"""Bodies without positive atoms, once and kept: by every strategy, in batches, folders and images.

Each head's rows are worked out in Python over the loaded sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lftj
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.image import read_image, write_image

Rows = set[tuple[Any, ...]]
Expected = Callable[[Rows, Rows], list[tuple[Any, ...]]]


def firsts(rows: Rows) -> set[int]:
    return {row[0] for row in rows}


HEADS: dict[str, Expected] = {
    "one(v) <- v = 1.": lambda r, e: [(1,)],
    'bag two(v, w) <- v = 1, w = "a". bag two(v, w) <- v = 1, w = "a".': lambda r, e: [(1, "a"), (1, "a")],
    "bag more(v) <- v = 1. bag more(v) <- e(v, _).": lambda r, e: [(1,), *((a,) for a, _ in e)],
    "bag thrice(v, copies: w) <- v = 1, w = 3.": lambda r, e: [(1,)] * 3,
    'gap(v) <- v = cast(null, "int64").': lambda r, e: [(None,)],
    "some(v) <- (v = 1 ; v = 2 ; e(v, _), v > 1).": lambda r, e: [
        (v,) for v in {1, 2} | {v for v in firsts(e) if v > 1}
    ],
    "none(v) <- v = 1, v > 2.": lambda r, e: [],
    "n[] = count() <- v = 1.": lambda r, e: [(1,)],
    "nothing[] = count() default 0 <- v = 1, v > 2.": lambda r, e: [(0,)],
    "stats(s: sum(v), count(), list(v)) <- (v = 1 ; v = 2).": lambda r, e: [(3, 2, [1, 2])],
    "m[] = max(v) <- (v = 1 ; e(v, _)).": lambda r, e: [(max(firsts(e) | {1}),)],
    "lacks(v) <- !r(2, _), v = 1.": lambda r, e: [(1,)] * (2 not in firsts(r)),
    "lacking(v) <- e(_, _), !r(2, _), v = 1.": lambda r, e: [(1,)] * (2 not in firsts(r) and bool(e)),
    "neither(v) <- !r(2, _), !e(3, 3), v = 1.": lambda r, e: (
        [(1,)] * (2 not in firsts(r) and (3, 3) not in e)
    ),
    "nor(v) <- !r(2, _), !r(3, _), r(_, _), v = 1.": lambda r, e: (
        [(1,)] * (bool(r) and not {2, 3} & firsts(r))
    ),
    "computed(v) <- !r(v, _), v = 2.": lambda r, e: [(2,)] * (2 not in firsts(r)),
    "unless[] = count() <- !r(2, _).": lambda r, e: [(1,)] * (2 not in firsts(r)),
    "ranked(v, n) <- (v = 7 ; v = 5), n = row_number(by: v).": lambda r, e: [(5, 1), (7, 2)],
    "key(v) <- v = 2. found(w) <- key(v), e(v, w).": lambda r, e: [(b,) for a, b in e if a == 2],
    "up(a) <- a = 1. up(b) <- up(a), e(a, b).": lambda r, e: reached(e),
}


def reached(edges: Rows) -> list[tuple[int]]:
    found = {1}
    while more := {b for a, b in edges if a in found} - found:
        found |= more
    return [(a,) for a in found]


def name_of(rule: str) -> str:
    return rule.split(". ")[-1].removeprefix("bag ").partition("(")[0].partition("[")[0]


def shown(rows: Any) -> Counter[str]:
    return Counter(map(str, rows))


def begin(workspace: Workspace, strategy: str = "auto") -> tuple[Rows, Rows]:
    r, e = {(2, 1), (1, 1)}, {(1, 2), (2, 3)}
    workspace.load("r", sorted(r), columns=["a", "b"])
    workspace.load("e", sorted(e), columns=["a", "b"])
    for rule in HEADS:
        recursive = strategy if strategy in ("auto", "recompute") else "stages"
        workspace.install(rule, strategy=recursive if rule.startswith("up") else strategy)
    return r, e


def assert_holds(workspace: Workspace, r: Rows, e: Rows) -> None:
    for rule, expected in HEADS.items():
        assert shown(workspace[name_of(rule)]) == shown(expected(r, e)), rule
    assert not any("#" in name for name in workspace.relations)


@pytest.mark.parametrize("rule", HEADS)
def test_once(rule: str) -> None:
    r, e = {(2, 1)}, {(1, 2), (2, 3)}
    db = lftj.Database()
    db.load("r", sorted(r), columns=["a", "b"])
    db.load("e", sorted(e), columns=["a", "b"])
    expected = HEADS[rule](r, e)
    table = db.query(rule)
    assert shown(tuple(row.values()) for row in table.to_pylist()) == shown(expected)
    assert db.count(rule) == len(expected) == sum(batch.num_rows for batch in db.stream(rule))
    assert db.explain(rule, analyze=True)
    assert set(db.relations) == {"r", "e"}


def test_parameters() -> None:
    prepared = lftj.Database().prepare("h(v) <- v = $first. h(v) <- v = $second, v > $first.")
    assert sorted(prepared({"first": 3, "second": 4})["v"].to_pylist()) == [3, 4]
    assert prepared({"first": 3, "second": 2})["v"].to_pylist() == [3]


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_kept(strategy: str) -> None:
    workspace = Workspace()
    r, e = begin(workspace, strategy)
    assert_holds(workspace, r, e)
    assert workspace.explain_maintenance()
    random = Random(strategy)
    for _ in range(12):
        with workspace.transaction() as tx:
            for name, rows in (("r", r), ("e", e)):
                for _ in range(random.randrange(3)):
                    row = random.randrange(1, 4), random.randrange(1, 4)
                    if random.random() < 0.6:
                        tx.erase(name, [row])
                        rows.discard(row)
                    else:
                        tx.insert(name, [row])
                        rows.add(row)
        assert_holds(workspace, r, e)
        workspace.check_invariants()
    workspace.verify()


def test_in_a_folder_and_an_image(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "ws") as kept:
        r, e = begin(kept)
    with Workspace.open(tmp_path / "ws") as kept:
        assert_holds(kept, r, e)
        with kept.transaction() as tx:
            tx.erase("r", [(2, 1)])
        kept.checkpoint()
    with Workspace.open(tmp_path / "ws") as kept:
        assert_holds(kept, r - {(2, 1)}, e)
    workspace = Workspace()
    begin(workspace)
    write_image(workspace, tmp_path / "image")
    read = read_image(tmp_path / "image")
    with read.transaction() as tx:
        tx.erase("r", [(2, 1)])
    assert_holds(read, r - {(2, 1)}, e)
