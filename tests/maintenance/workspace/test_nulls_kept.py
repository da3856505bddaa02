"""Relations that keep NULLs in a workspace: transactions, every strategy, folders, copies and change files.

Random programs with NULLs are followed by ``test_maintenance_oracle.py``, ``test_maintenance_machine.py`` and
``test_apply_many.py``.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES
from maintenance.image import read_image, write_image
from maintenance.shell.shell import cli

Rows = set[tuple[Any, ...]]
LEAST = -(2**63)

RULES = """
name(i, n) <- person(i, n, _).
nameless(i) <- person(i, n, _), n is null.
boss(i, m) <- person(i, _, b), person(b, m, _).
path(i, b) <- person(i, _, b).
path(i, c) <- path(i, b), person(b, _, c).
heads[b] = count() <- person(_, _, b).
"""
PEOPLE = [(1, "Ann", None), (2, None, 1), (3, "Cy", 1), (None, None, 2), (5, "Di", None)]


def expected(people: Rows) -> dict[str, Rows]:
    """By hand: NULL joins nothing, and is a value of heads and groups."""
    paths = {(i, b) for i, _, b in people}
    while True:
        longer = {(i, c) for i, b in paths for j, _, c in people if b is not None and b == j}
        if longer <= paths:
            break
        paths |= longer
    return {
        "name": {(i, n) for i, n, _ in people},
        "nameless": {(i,) for i, n, _ in people if n is None},
        "boss": {(i, m) for i, _, b in people for j, m, _ in people if b is not None and b == j},
        "path": paths,
        "heads": {(b, sum(c == b for _, _, c in people)) for _, _, b in people},
    }


def contents(workspace: Workspace) -> dict[str, Rows]:
    return {name: set(workspace[name]) for name in expected(set())}


def begin(workspace: Workspace, strategy: str = "auto") -> Workspace:
    columns = ["id", "name", "boss"]
    workspace.load("person", PEOPLE, columns=columns, nulls="keep")
    recursive = strategy if strategy in ("auto", "recompute") else "stages"
    kept = {name: recursive if name == "path" else strategy for name in expected(set())}
    workspace.install(RULES, kept)
    return workspace


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_every_strategy_follows(strategy: str) -> None:
    workspace, people = begin(Workspace(), strategy), set(PEOPLE)
    assert contents(workspace) == expected(people)
    steps: list[tuple[Rows, Rows]] = [
        ({(7, None, None), (None, "Ed", None)}, set()),
        (set(), {(None, None, 2), (1, "Ann", None)}),
        ({(1, None, 5), (None, None, None)}, {(2, None, 1)}),
        (set(), {(None, None, None), (8, None, None)}),
    ]
    for came, gone in steps:
        with workspace.transaction() as tx:
            tx.insert("person", list(came))
            tx.erase("person", list(gone))
        before, people = people, (people | came) - gone
        assert contents(workspace) == expected(people)
        for name, rows in expected(people).items():
            told = {tuple(row.values()) for row in tx.changes[name].to_pylist()}
            old = expected(before)[name]
            assert told == {(*row, 1) for row in rows - old} | {(*row, -1) for row in old - rows}
        workspace.check_invariants()
    workspace.verify()


def test_relations_without_them_refuse_null_in_a_transaction() -> None:
    workspace = Workspace()
    workspace.load("r", [(1, 2)], columns=["a", "b"])
    message = r"'r', column 'b': NULL in row 1 .* without nulls=\"keep\""
    with pytest.raises(errors.ChangeError, match=message), workspace.transaction() as tx:
        tx.insert("r", [(1, 2), (3, None)])


def test_the_least_number_is_refused_in_a_transaction() -> None:
    workspace = Workspace()
    workspace.load("r", [(1, None), (1, 2)], columns=["a", "b"], nulls="keep")
    workspace.load("part", [(1, 0)], columns=["a", "v"])
    for name, row in (("r", (1, LEAST)), ("part", (1, LEAST)), ("part", (LEAST, 1))):
        with pytest.raises(errors.RangeError, match="has the code of NULL"), workspace.transaction() as tx:
            tx.insert(name, [row])
    assert set(workspace["part"]) == {(1, 0)}


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
@pytest.mark.parametrize(
    "rule",
    ["h[a] = sum(v) <- part(a, v).", "h[a] = sum(v) <- part(a, v), other(a).", "h[] = sum(v) <- part(_, v)."],
)
def test_a_sum_that_is_the_least_number_is_refused(strategy: str, rule: str) -> None:
    parts = [(1, LEAST + 1), (1, -1)]
    workspace = Workspace()
    workspace.load("r", [(1, None), (1, 2)], columns=["a", "b"], nulls="keep")
    workspace.load("other", [(1,)], columns=["a"])
    workspace.load("part", parts, columns=["a", "v"])
    with pytest.raises(errors.RangeError, match="has the code of NULL"):
        workspace.query(rule)
    with pytest.raises(errors.RangeError, match="has the code of NULL"):
        workspace.install(rule, strategy)
    with workspace.transaction() as tx:
        tx.erase("part", parts[1:])
    workspace.install(rule, strategy)
    before = set(workspace["h"])
    with pytest.raises(errors.RangeError, match="has the code of NULL"), workspace.transaction() as tx:
        tx.insert("part", parts[1:])
    assert set(workspace["h"]) == before
    assert {row[-1] for row in before} == {LEAST + 1}
    workspace.verify()


def test_folders_copies_and_images_keep_them(tmp_path: Path) -> None:
    people = set(PEOPLE) | {(9, None, None)}
    with Workspace.open(tmp_path / "kept") as workspace:
        begin(workspace)
        with workspace.transaction() as tx:
            tx.insert("person", [(9, None, None)])
        workspace.save(tmp_path / "copied")
        write_image(workspace, tmp_path / "image")
    for place in ("kept", "copied"):
        with Workspace.open(tmp_path / place) as again:
            assert contents(again) == expected(people)
            with again.transaction() as tx:
                tx.insert("person", [(None, "Flo", None)])
            assert contents(again) == expected(people | {(None, "Flo", None)})
    assert contents(read_image(tmp_path / "image")) == expected(people)


def test_change_files_have_them_where_the_relation_does(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("a,b\n1,\n2,5\n")
    (tmp_path / "c.csv").write_text("a,b,weight\n,,1\n1,,-1\n")
    rule = "h(a, b) <- r(a, b)."
    arguments = ["maintain", "-e", rule, "--load", f"r={tmp_path}/r.csv", "--changes", f"r={tmp_path}/c.csv"]
    cli([*arguments, "--nulls", "keep", "--out-changes", f"h={tmp_path}/out.csv"], standalone_mode=False)
    assert sorted((tmp_path / "out.csv").read_text().split()) == sorted(["a,b,weight", ",,1", "1,,-1"])


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "stages"])
def test_an_inequality_of_null_holds_for_none(strategy: str) -> None:
    random, workspace = Random(1), Workspace()
    some: list[tuple[int, int | None]] = [(b, p) for b in range(3) for p in (None, *range(8))]
    sides: dict[str, Rows] = {name: set(random.sample(some, 9)) for name in ("bid", "ask")}
    for name, rows in sides.items():
        workspace.load(name, sorted(rows, key=str), columns=["broker", "price"], nulls="keep")
    workspace.install("h[b] = sum(p) <- bid(b, p), ask(b, q), p - q < 3.", strategy)
    assert strategy != "views" or "range sums" in str(workspace.explain_maintenance("h"))
    for _ in range(20):
        name, row = random.choice(list(sides)), random.choice(some)
        with workspace.transaction() as tx:
            (tx.erase if row in sides[name] else tx.insert)(name, [row])
        sides[name] ^= {row}
        sums: dict[int, int] = {}
        for b, p in sides["bid"]:
            for other, q in sides["ask"]:
                if b == other and p is not None and q is not None and p - q < 3:
                    sums[b] = sums.get(b, 0) + p
        assert dict(workspace["h"]) == sums
