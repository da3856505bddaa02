"""Columns of lists in workspaces: loaded, joined, changed, kept in folders and images, and given back."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lftj
from lftj import errors
from lftj.values import collector
from maintenance import Workspace
from maintenance.image import read_image, write_image

PROGRAM = """
same(a, b) <- r(a, l), r(b, l), a < b.
less(a, b) <- r(a, l), r(b, m), l < m.
count[l] = count() <- r(_, l).
most[] = max(l) <- r(_, l).
list[n] = list(a) <- r(a, l), n = len(l).
nested[n] = list(l, by: a desc) <- r(a, l), n = len(l).
alone(a, l) <- r(a, l), !s(l).
first(a, x) <- r(a, l), x = list_extract(l, 1).
has(a) <- r(a, l), list_contains(l, 1).
lost(a) <- r(a, l), l is null.
bag all(l) <- r(_, l).
near(a, b) <- r(a, l), s(l), r(b, l).
"""

LISTS: list[list[int | None] | None] = [None, [], [None], [1], [1, 2], [1, None], [2], [2, 1, 1], [-1]]


def expected(r: set[tuple[int, int]], s: set[int]) -> dict[str, list[Any]]:
    """By brute force; ``r``, ``s``: of numbers of lists."""
    order = [1, 8, 3, 4, 5, 6, 7, 2]  # of the lists that are none of NULL
    known = [(a, n) for a, n in r if n]
    in_turn = sorted((-a, order.index(n), n) for a, n in known)
    lengths = {len(LISTS[n] or []) for _, n in known}
    result: dict[str, list[Any]] = {
        "same": [(a, b) for a, n in known for b, m in known if n == m and a < b],
        "less": [(a, b) for a, n in known for b, m in known if order.index(n) < order.index(m)],
        "count": [(LISTS[n], sum(m == n for _, m in r)) for n in {n for _, n in r}],
        "most": [(LISTS[max((n for _, n in known), key=order.index)],)] if known else [],
        "list": [(k, sorted(a for a, n in known if len(LISTS[n] or []) == k)) for k in lengths],
        "nested": [(k, [LISTS[n] for _, _, n in in_turn if len(LISTS[n] or []) == k]) for k in lengths],
        "alone": [(a, LISTS[n]) for a, n in known if n not in s],
        "first": [(a, (LISTS[n] or [None])[0]) for a, n in known],
        "has": [(a,) for a, n in known if 1 in (LISTS[n] or [])],
        "lost": [(a,) for a, n in r if not n],
        "all": [(LISTS[n],) for _, n in r],
        "near": [(a, b) for a, n in known for b, m in known if n == m and n in s],
    }
    sets = {name: {repr(row): row for row in rows}.values() for name, rows in result.items() if name != "all"}
    return {name: sorted(rows, key=repr) for name, rows in (sets | {"all": result["all"]}).items()}


def found(workspace: Workspace) -> dict[str, list[Any]]:
    return {name: sorted(workspace[name], key=repr) for name in workspace.heads if name != "nested_window"}


def r_table(rows: set[tuple[int, int]]) -> pa.Table:
    keys, lists = [a for a, _ in rows], [LISTS[n] for _, n in rows]
    return pa.table({"a": pa.array(keys, pa.int64()), "l": pa.array(lists, pa.list_(pa.int32()))})


def workspace_of(
    strategy: str, r: set[tuple[int, int]], s: set[int], folder: Path | None = None
) -> Workspace:
    workspace = Workspace() if folder is None else Workspace.open(folder)
    workspace.load("r", r_table(r), nulls="keep")
    workspace.load("s", pa.table({"l": pa.array([LISTS[n] for n in s], pa.large_list(pa.int64()))}))
    workspace.install(PROGRAM, strategy)
    return workspace


def change(workspace: Workspace, r: set[tuple[int, int]], s: set[int], choice: random.Random) -> None:
    new = {(choice.randint(0, 9), choice.randrange(len(LISTS))) for _ in range(3)} - r
    gone = set(choice.sample(sorted(r), min(len(r), 3)))
    moved = choice.randrange(1, len(LISTS))
    before = found(workspace)
    with workspace.transaction() as transaction:
        transaction.erase("r", r_table(gone))
        transaction.insert("r", [(a, LISTS[n]) for a, n in new])
        (transaction.erase if moved in s else transaction.insert)("s", [(LISTS[moved],)])
    r -= gone
    r |= new
    s ^= {moved}
    now = found(workspace)
    for name in before:
        rows = transaction.changes[name].to_pylist() if name in transaction.changes else []
        for row in rows:
            *values, weight = row.values()
            (before[name].append if weight > 0 else before[name].remove)(tuple(values))
        if name != "all":
            assert sorted(before[name], key=repr) == now[name]


@pytest.mark.parametrize("strategy", ["trace", "delta", "views", "recompute", "auto"])
def test_lists_are_values_of_relations_and_heads(strategy: str) -> None:
    choice = random.Random(strategy)
    r, s = {(a, choice.randrange(len(LISTS))) for a in range(8)}, {1, 4}
    workspace = workspace_of(strategy, r, s)
    assert found(workspace) == expected(r, s)
    for _ in range(8):
        change(workspace, r, s, choice)
        assert found(workspace) == expected(r, s)
    workspace.verify()
    assert (7, LISTS[4]) in workspace["r"] or (7, 4) not in r
    assert (7, [9, 9]) not in workspace["r"]


def test_folders_and_images_know_lists(tmp_path: Path) -> None:
    choice = random.Random(3)
    r, s = {(a, choice.randrange(len(LISTS))) for a in range(8)}, {1, 4}
    with workspace_of("trace", r, s, tmp_path / "folder") as workspace:
        change(workspace, r, s, choice)
    for step in range(4):
        with Workspace.open(tmp_path / "folder") as workspace:
            assert found(workspace) == expected(r, s)
            change(workspace, r, s, choice)
            if step % 2:
                workspace.checkpoint()
    workspace = workspace_of("auto", r, s)
    write_image(workspace, tmp_path / "image")
    workspace = read_image(tmp_path / "image")
    change(workspace, r, s, choice)
    assert found(workspace) == expected(r, s)
    workspace.verify()


def test_lists_that_nobody_holds_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in {"LEAST_ADDED": 8, "LEAST": 16, "PACE": 4}.items():
        monkeypatch.setattr(collector, name, number)
    workspace = Workspace()
    workspace.load("r", {"a": pa.array([0] * 5), "v": list(range(5))})
    workspace.install(
        "h[a] = list(v), other[l] = list(a) <- r(a, v), l = if(v < 0, v, a). k(l, m) <- h[a] = l, h[_] = m."
    )
    domain: Any = workspace.domains.of(pa.list_(pa.int64()))
    for step in range(300):
        with workspace.transaction() as transaction:
            transaction.insert("r", [(step % 3, 100 + step)])
            if step > 5:
                transaction.erase("r", [((step - 6) % 3, 94 + step)])
    workspace.verify()
    assert domain.n_added > 300 and domain.n_values < 100


def test_recursion_carries_lists() -> None:
    choice = random.Random(8)
    for strategy in ("stages", "recompute", "auto"):
        steps = {(choice.randrange(1, 9), choice.randrange(1, 9)) for _ in range(9)}
        workspace = Workspace()
        arrow = pa.list_(pa.int8())

        def table(pairs: set[tuple[int, int]], arrow: pa.DataType = arrow) -> pa.Table:
            sides = zip(*pairs, strict=True) if pairs else ([], [])
            columns = [pa.array([LISTS[n] for n in side], arrow) for side in sides]
            return pa.table(columns, names=["l", "m"])

        workspace.load("step", table(steps))
        workspace.install("path(l, m) <- step(l, m). path(l, n) <- path(l, m), step(m, n).", strategy)
        for _ in range(8):
            new = {(choice.randrange(1, 9), choice.randrange(1, 9))}
            gone = set(choice.sample(sorted(steps), min(len(steps), 2))) - new
            with workspace.transaction() as transaction:
                transaction.insert("step", table(new))
                transaction.erase("step", table(gone))
            steps = (steps | new) - gone
            paths = set(steps)
            while True:
                more = paths | {(a, d) for a, b in paths for c, d in steps if b == c}
                if more == paths:
                    break
                paths = more
            assert sorted(workspace["path"], key=repr) == sorted(
                ((LISTS[a], LISTS[b]) for a, b in paths), key=repr
            )


def test_wide_relations_and_bags_have_lists(tmp_path: Path) -> None:
    names = [f"c{place}" for place in range(6)]
    rows = [(*range(n, n + 6), LISTS[n % len(LISTS)], ["a", None] if n % 2 else None) for n in range(30)]
    columns = [pa.array([row[place] for row in rows]) for place in range(6)]
    columns += [pa.array([row[6] for row in rows], pa.list_(pa.int16()))]
    columns += [pa.array([row[7] for row in rows], pa.list_(pa.string()))]
    table = pa.table(columns, names=[*names, "l", "t"])
    pq.write_table(table, tmp_path / "w.parquet")
    workspace = Workspace()
    workspace.load("w", str(tmp_path / "w.parquet"), nulls="keep")
    workspace.load("b", table.select(["c0", "l"]), bag=True, nulls="keep")
    workspace.install("n[l] = count() <- w(l: l). t(l, m) <- w(l: l, t: m). m[l] = count() <- b(_, l).")
    for _ in range(2):
        now = [row for row in rows if row in workspace["w"]]
        lists = [row[6] for row in now]
        assert sorted(workspace["w"], key=repr) == sorted(now, key=repr)
        assert sorted(workspace["n"], key=repr) == sorted(
            {repr(one): (one, lists.count(one)) for one in lists}.values(), key=repr
        )
        assert {repr(row) for row in workspace["t"]} == {repr(row[6:]) for row in now}
        with workspace.transaction() as transaction:
            transaction.erase("w", table.slice(3, 7))
            transaction.insert("b", table.select(["c0", "l"]).slice(0, 5))
    assert len(workspace["w"]) == 23 and len(workspace["b"]) == 40
    assert sum(count for _, count in workspace["m"]) == 40
    workspace.verify()


def test_changes_are_of_the_relation_s_type() -> None:
    workspace = Workspace()
    workspace.load("r", pa.table({"l": pa.array([[1]], pa.list_(pa.int8()))}))
    workspace.load("f", pa.table({"l": pa.array([[1.5]], pa.list_(pa.float32()))}))
    with workspace.transaction() as transaction:
        transaction.insert("r", [([2, 3],), ([None],)])
        transaction.insert("f", pa.table({"l": [[1, 2], []]}))
    assert sorted(workspace["r"], key=repr) == [([1],), ([2, 3],), ([None],)]
    assert sorted(workspace["f"], key=repr) == [([1.0, 2.0],), ([1.5],), ([],)]
    for name, rows, message in (
        ("r", pa.table({"l": [[1], [300]]}), r"\[300\]"),
        ("r", pa.table({"l": [["a"]]}), "list<item: string>"),
        ("f", pa.table({"l": [[0.1]]}), r"\[0\.1\]"),
        ("r", pa.table({"l": [1]}), "int64"),
    ):
        with pytest.raises(errors.DataError, match=message), workspace.transaction() as transaction:
            transaction.insert(name, rows)
    assert len(workspace["r"]) == 3


def test_lists_in_files(tmp_path: Path) -> None:
    from lftj.files.sink import write_file

    db = lftj.Database()
    db.load("r", r_table({(a, a) for a in range(9)}), nulls="keep")
    result = db.query("h(a, l) <- r(a, l).")
    for suffix in (".parquet", ".arrow"):
        write_file(result.to_batches(), str(tmp_path / f"h{suffix}"))
        db.load("again", str(tmp_path / f"h{suffix}"), nulls="keep")
        assert sorted(db["again"]) == sorted(db["r"])
    with pytest.raises(errors.UnsupportedTypeError, match=r"column 'l' .* CSV has no lists: write Parquet"):
        write_file(result.to_batches(), str(tmp_path / "h.csv"))
    assert not (tmp_path / "h.csv").exists()
    assert "[1, NULL]" in repr(db["r"]) or "[1, None]" in repr(db["r"])
