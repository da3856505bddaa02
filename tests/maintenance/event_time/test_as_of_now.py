"""``rate[s] = p asof now``: what it makes and refuses, who sees it, and that a folder has it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.store.fault_points import FOLDER_POINTS
from support.kept_lives import without_image
from support.paths import child_environment

TRADES = pa.table({c: pa.array([1], pa.int64()) for c in ("s", "q", "t", "e")})
RULE = "out(e, p) <- trade(s, q, t, e), rate(s, p) asof now."
VOLUME = "vol[s, w] = sum(q) <- trade(s, q, t, _), w = tumble(t, 5). final vol at w + 5."


def loaded(workspace: Workspace) -> Workspace:
    workspace.load("trade", TRADES, time="t", lateness=2, keep=20)
    workspace.load("rate", [(1, 100), (2, 200)], columns=["s", "p"])
    return workspace


def trade(workspace: Workspace, *rows: tuple[int, ...], head: str = "out") -> list[tuple[int, ...]]:
    """Insert trades; what is added."""
    with workspace.transaction() as tx:
        tx.insert("trade", list(rows))
    found = tx.changes[head]
    assert set(found["weight"].to_pylist()) <= {1}
    return sorted(zip(*found.drop_columns("weight").to_pydict().values(), strict=True))


def set_rate(workspace: Workspace, s: int, p: int) -> Any:
    with workspace.transaction() as tx:
        tx.erase("rate", [row for row in workspace["rate"] if row[0] == s])
        tx.insert("rate", [(s, p)])
    return tx.changes


def test_a_row_is_joined_when_it_comes_and_nothing_is_taken_back() -> None:
    ws, heard = loaded(Workspace()), []
    ws.install(RULE)
    ws.subscribe("out", lambda table: heard.extend(table.to_pylist()))
    assert ws["out"].count == 0, "it begins with what comes"
    version = ws.version
    assert trade(ws, (1, 5, 2, 10), (2, 5, 2, 11), (3, 5, 2, 12)) == [(10, 100), (11, 200)]
    assert set_rate(ws, 1, 101)["out"].num_rows == 0
    with ws.transaction() as tx:
        tx.insert("rate", [(3, 300)])
        tx.insert("trade", [(3, 5, 2, 13)])
    assert tx.changes["out"].to_pylist() == [{"e": 13, "p": 300, "weight": 1}], "as behind the transaction"
    with ws.transaction() as tx:
        tx.erase("trade", [(1, 5, 2, 10)])
    assert tx.changes["out"].num_rows == 0
    assert trade(ws, (1, 5, 2, 10)) == [(10, 101)], "it comes again"
    assert trade(ws, (1, 5, 2, 10)) == [] and trade(ws, (1, 6, 2, 10)) == []
    assert trade(ws, (2, 1, 90, 14)) == [(14, 200)] and ws["trade"].count == 1
    assert trade(ws, (2, 1, 3, 15)) == [] and ws.late("trade") == (1, 0)
    rows = [(10, 100), (10, 101), (11, 200), (13, 300), (14, 200)]
    assert sorted(ws["out"]) == sorted((row["e"], row["p"]) for row in heard) == rows
    assert sorted(zip(*ws.changes_since(version, "out").table.to_pydict().values(), strict=True)) == [
        (*row, 1) for row in rows
    ]
    assert [len(one.table) for one in ws.follow("out", since=version, timeout=0)] == [2, 1, 1, 1]
    assert ws.changes_since(ws.version, "out").table.num_rows == 0
    assert "only grows\n  by rows of trade that come, with rate as of now" in ws.explain_maintenance("out")
    ws.verify()


def test_rows_that_leave_as_they_come_are_joined() -> None:
    ws = loaded(Workspace())
    ws.install(RULE)
    assert trade(ws, (1, 1, 3, 20), (2, 1, 500, 21)) == [(20, 100), (21, 200)]
    assert [row[-1] for row in ws["trade"]] == [21]
    rows = {"s": [1, 2], "q": [1, 1], "t": [499, 900], "e": [22, 23], "weight": [1, 1], "txn": [1, 1]}
    (change,) = ws.apply_many({"trade": rows})
    assert sorted(change["out"]["e"].to_pylist()) == [22, 23] and [row[-1] for row in ws["trade"]] == [23]


def test_any_relation_comes_and_any_is_read() -> None:
    """A table with a key, a bag, a wide relation, a head and the relation itself; NULL joins nothing."""
    ws = Workspace()
    ws.load("orders", [(1, "tea")], columns=["id", "item"], key=["id"])
    ws.load("sale", [("tea", 1)], columns=["item", "n"], bag=True)
    wide = {name: [f"{name}1"] for name in "abcdefgh"}
    ws.load("wide", wide)
    ws.load("price", pa.table({"item": ["tea", None], "p": [3, 4]}), nulls="keep")
    ws.load("gone", [("jug",)], columns=["item"])
    ws.install("priced(i) <- price(i, p), p > 0. many[i] = count() <- sale(i, _).")
    ws.install("""
        o(i, p) <- orders(_, i), price(i, p) asof now.
        s(i, n, p) <- sale(i, n), price(i, p) asof now.
        w(a, h, p) <- wide(a: a, h: h, b: b), price(b, p) asof now.
        h(i, n) <- priced(i), many[i] = n asof now, !gone(i) asof now.
        again(x, y) <- price(x, p), price(y, q) asof now, q < p.
        none(i, x) <- sale(i, _), !price(i, _) asof now, x = upper(i), contains(i, "u").
    """)
    with ws.transaction() as tx:
        tx.upsert("orders", [(1, "pot"), (2, "tea")])
        tx.insert("sale", [("tea", 1), ("tea", 1), ("jug", 2), ("cup", 1)])
        tx.insert("wide", {**{name: [f"{name}2"] for name in "abcdefgh"}, "b": ["tea"]})
        tx.insert("price", pa.table({"item": ["pot", "jug", None], "p": [5, 6, 9]}))
    new = [("pot", 5), ("jug", 6), (None, 9)]
    assert {name: set(ws[name]) for name in ("o", "s", "w", "h", "again", "none")} == {
        "o": {("pot", 5), ("tea", 3)},
        "s": {("jug", 2, 6), ("tea", 1, 3)},
        "w": {("a2", "h2", 3)},
        "h": set(),
        "again": {(x, y) for x, p in new for y, q in [("tea", 3), (None, 4), *new] if q < p},
        "none": {("cup", "CUP")},
    }
    with ws.transaction() as tx:
        tx.insert("sale", [("pot", 1)])
        tx.insert("price", [("cup", 1)])
    assert sorted(ws["h"]) == [("cup", 1)]
    ws.verify()


def test_rules_read_what_grows() -> None:
    ws = loaded(Workspace())
    ws.install(f"{VOLUME} {RULE}")
    for strategy in ("trace", "delta", "recompute", "auto", "views"):
        ws.install(f"n_{strategy}[s] = sum(v) <- vol_final(s, _, v).", strategy)
        ws.install(f"m_{strategy}(e, s) <- out(e, p), rate(s, p), !vol_final(s, _, _).", strategy)
    ws.install("linked(e, p) <- out(e, p). linked(e, p) <- linked(e, f), out(f, p).")
    for step in range(12):
        trade(ws, (step % 3, 1, 3 * step, 200 + step))
        set_rate(ws, step % 3, 100 + step)
        sums = {(s, sum(v for r, _, v in ws["vol_final"] if r == s)) for s, _, _ in ws["vol_final"]}
        closed = {s for s, _ in sums}
        left = {(e, s) for e, p in ws["out"] for s, r in ws["rate"] if r == p and s not in closed}
        for strategy in ("trace", "delta", "recompute", "auto", "views"):
            assert set(ws[f"n_{strategy}"]) == sums and set(ws[f"m_{strategy}"]) == left
    assert len(sums) == 3 and ws["out"].count > 5
    ws.verify()
    ws.uninstall("n_trace", "m_trace", "linked")
    with pytest.raises(errors.ChangeError, match="the rules of 'm_delta' read 'out': uninstall 'm_delta'"):
        ws.uninstall("out")
    with pytest.raises(errors.RuleError, match="follows a stream by way of others"):
        ws.install("x(w) <- vol_final(_, w, _), trade(_, _, t, _), w = tumble(t, 5). final x at w + 9.")


def test_nan_joins_nothing() -> None:
    ws = Workspace()
    ws.load("trade", {"s": [1], "x": [0.5], "t": [1]}, time="t", keep=20)
    ws.load("rate", [(1, 1.0)], columns=["s", "f"])
    ws.install("high[s, w] = sum(x) <- trade(s, x, t), w = tumble(t, 5). final high at w + 5.")
    ws.install("two(s) <- high_final(s, _, x), rate(_, x).")
    rows = {"s": [1, 1, 1], "x": [float("inf"), float("-inf"), 1.0], "t": [2, 3, 7]}
    said = "changes of 'high_final', column 'sum': NaN"
    with pytest.raises(errors.NanError, match=said), ws.transaction() as tx:
        tx.insert("trade", rows)
    with pytest.raises(errors.NanError, match=said):
        ws.apply_many({"trade": {**rows, "weight": [1, 1, 1], "txn": [1, 1, 2]}})
    ws.uninstall("two")
    ws.install("out(s, x) <- trade(s, x, _), rate(s, _) asof now.")
    with pytest.raises(errors.NanError), ws.transaction() as tx:
        tx.insert("trade", {**rows, "x": [float("nan")] * 3})
    with ws.transaction() as tx:
        tx.insert("trade", rows)
    assert ws["high_final"].count == 1 and ws["out"].count == 3


def test_it_is_nobodys_to_change_and_is_taken_away() -> None:
    ws = loaded(Workspace())
    ws.install("best[s] = max(p) <- rate(s, p).")
    ws.install("out(e, p) <- trade(s, q, t, e), best[s] = p asof now.")
    trade(ws, (1, 1, 2, 7))
    assert "2  out    <- best, trade  only grows, 1 row" in ws.explain_maintenance()
    for asked in (ws.strategy_of, ws.triggers):
        with pytest.raises(errors.UnknownRelationError, match="'out' only grows: no strategy keeps it"):
            asked("out")
    with pytest.raises(errors.ChangeError, match="'out' has rows that were joined as of when they came"):  # noqa: SIM117
        with ws.transaction() as tx:
            tx.insert("out", [(2, 3)])
    for name in ("trade", "out"):
        with pytest.raises(
            errors.ChangeError, match=r"can't be replaced, the rules of 'out'|can't be loaded"
        ):
            ws.load(name, TRADES)
    with pytest.raises(errors.ChangeError, match="uninstall 'out' before it or with it"):
        ws.uninstall("best")
    with pytest.raises(errors.ChangeError, match="uninstall 'out' before it or with it"):
        ws.install("best[s] = min(p) <- rate(s, p).", replace=True)
    version = ws.version
    ws.install("out(e, p) <- trade(s, q, t, e), best[s] = p asof now.")
    program = "best[s] = max(p) <- rate(s, p). out(e, p) <- trade(s, q, t, e), best[s] = p asof now."
    ws.install(program, replace=True)
    assert ws.version == version and ws["out"].count == 1, "it is there, and so are its rows"
    with pytest.raises(errors.ChangeError, match=r"'out' has rows .*, by other rules: uninstall it"):
        ws.install("out(e, s) <- trade(s, q, t, e), best[s] = p asof now.", replace=True)
    with pytest.raises(errors.ChangeError, match="'rate' is there already"):
        ws.install("rate(e, s) <- trade(s, q, t, e), best[s] = p asof now.")
    ws.uninstall("out", "best")
    assert [*ws.relations] == ["trade", "rate"]
    ws.install(RULE)
    assert trade(ws, (2, 1, 2, 8)) == [(8, 200)] and sorted(ws["out"]) == [(8, 200)]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("o(e) <- trade(e: e) asof now.", "and none is here: leave asof now out behind one of them"),
        ("o(e) <- trade(s: s, e: e), rate(s, _).", None),
        ("o(e) <- trade(s: s, e: e), rate(s, p), rate(_, p) asof now.", "'rate' is a second one"),
        ("o(e) <- trade(s: s, e: e), !rate(s, _), rate(s, 5) asof now.", r"!rate\(..\) asof now"),
        ("o(e) <- trade(s: s, e: e), (rate(s, 1) asof now ; rate(s, 2) asof now).", "a rule for each"),
        ("o(e) <- trade(s: s, e: e, t: t), rate(s, _) asof now, t > now() - 5.", r"ask for now\(\)"),
        ("o[s] = count() <- trade(s: s), rate(s, _) asof now.", "a head of variables alone"),
        ("o[s] = p <- trade(s: s), rate(s, p) asof now.", "a head of variables alone"),
        ("bag o(s) <- trade(s: s), rate(s, _) asof now.", "a head of variables alone"),
        ("o(s, r) <- trade(s: s, q: q), rate(s, _) asof now, r = rank(by: q).", "a head of variables alone"),
        ("o(s) <- trade(s: s), o(s) asof now.", "'o' reads what it makes as of now"),
        ("o(s) <- trade(s: s), rate(s, _) asof now. o(s) <- rate(s, _).", "give one of them another name"),
        ("o(s) <- trade(s: s), r(s) asof now. r(s) <- o(s).", "this is made of what only grows, and that"),
        ("o(s) <- trade(s: s), rates(s, _) asof now.", "unknown relation 'rates'; did you mean 'rate'"),
        ("o(s) <- trade(s: s), rate(s) asof now.", "'rate' has 2 columns"),
        ("o(s, x) <- trade(s: s), rate(s, _) asof now.", "'x'"),
        ("o(s) <- trade(s: s), s > 3 asof now.", "expected ',' or '.'"),
        ("o(s) <- trade(s: s), contains(lower(s), s) asof now.", "asof now stands behind an atom"),
    ],
)
def test_what_is_refused(program: str, said: str | None) -> None:
    ws = loaded(Workspace())
    if said is None:
        ws.install(program)
        return
    with pytest.raises(errors.RuleError, match=said):
        ws.install(program)
    assert ws.heads == () and [*ws.relations] == ["trade", "rate"]


def test_a_query_has_none() -> None:
    ws = loaded(Workspace())
    with pytest.raises(errors.RuleError, match="asof now is for rules that are installed in a workspace"):
        ws.query(RULE)


def test_a_folder_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with loaded(Workspace.open(folder)) as ws:
        ws.install(f"{VOLUME} {RULE}")
        ws.install("n[p] = count() <- out(_, p).")
        version = ws.version
        trade(ws, (1, 1, 3, 20))
        set_rate(ws, 1, 7)
        ws.checkpoint()
        trade(ws, (1, 1, 30, 21), (1, 1, 12, 22))
        rows = sorted(ws["out"])
        ws.save(tmp_path / "copy")
    assert rows == [(20, 100), (21, 7), (22, 7)]
    for path in (folder, tmp_path / "copy"):
        for image in (True, False):
            if not image:
                without_image(path)
            with Workspace.open(path) as ws:
                assert sorted(ws["out"]) == rows and sorted(ws["n"]) == [(7, 2), (100, 1)]
                ws.verify()
                if path == folder:
                    assert ws.changes_since(version, "out").table.num_rows == 3
                    assert [len(each.table) for each in ws.follow("out", version, timeout=0)] == [1, 2]
                    assert ws.changes_since(version, "vol_final").table.num_rows == 2
                    assert ws.changes_since(version, "n").table.num_rows == 2
                    with pytest.raises(errors.CursorError, match="'out' was installed, as it is, by version"):
                        ws.changes_since(version - 2, "out")
    assert sorted(Workspace.load_from(folder)["out"]) == rows
    without_image(folder)
    with Workspace.open(folder) as ws, Workspace.open(folder, read_only=True) as reader:
        follower = reader.follow("late", reader.version, timeout=0) if "late" in reader.relations else None
        ws.install("late(e, p) <- trade(s, _, _, e), rate(s, p) asof now, p > 5.")
        assert trade(ws, (2, 1, 31, 23), head="late") == [(23, 200)]
        reader.refresh()
        assert follower is None and sorted(reader["late"]) == [(23, 200)]
        version = reader.version
        trade(ws, (2, 1, 31, 24))
        assert [len(each.table) for each in reader.follow("late", version, timeout=0)] == [1]
        ws.uninstall("n", "out")
    with Workspace.open(folder) as ws:
        assert {*ws.relations} == {"trade", "rate", "vol", "vol_final", "late"}


def test_a_program_may_read_what_grows_by_it(tmp_path: Path) -> None:
    program = f"""
        more(e) <- told(e), e > 0.
        told(e) <- two(e, _), rate(e, _) asof now.
        two(e, v) <- n[p] = v, out(e, p), vol_final(_, _, _).
        n[p] = count() <- out(_, p).
        best[s] = max(p) <- rate(s, p).
        out(e, p) <- trade(s, q, t, e), best[s] = p asof now.
        {VOLUME}
    """
    strategies = {"n": "delta", "two": "recompute"}
    with loaded(Workspace.open(tmp_path)) as ws:
        ws.install(program, strategies)
        version = ws.version
        trade(ws, (1, 1, 3, 1), (2, 1, 9, 2))
        rows = {name: sorted(ws[name]) for name in ("out", "two", "told", "more")}
        assert rows == {
            "out": [(1, 100), (2, 200)],
            "two": [(1, 1), (2, 1)],
            "told": [(1,), (2,)],
            "more": [(1,), (2,)],
        }
        ws.install(program, strategies, replace=True)
        assert ws.version == version + 1
        with pytest.raises(errors.StrategyError, match="strategy= names 'm', but"):
            ws.install(program, {**strategies, "m": "delta"}, replace=True)
        with pytest.raises(errors.ChangeError, match="the rules of 'told' read 'two': uninstall 'told'"):
            ws.install(program.replace("count()", "sum(p)"), strategies, replace=True)
        ws.install(program.replace("e > 0", "e > 1"), strategies, replace=True)
    with pytest.raises(errors.ChangeError, match="results= is for rules that read nothing that only grows"):
        loaded(Workspace()).install(program, results="more")
    for image in (True, False):
        if not image:
            without_image(tmp_path)
        with Workspace.open(tmp_path) as ws:
            assert sorted(ws["more"]) == [(2,)] and {*rows["out"]} <= {*ws["out"]}
            trade(ws, (1, 1, 12 + image, 3 + image))
            assert (3 + image, 100) in ws["out"] and ws.strategy_of("n") == "delta"
            ws.verify()


SCRIPT = """
import os, sys
from maintenance import Workspace
for line in sys.stdin.read().splitlines():
    folder, fault = line.split("|")
    child = os.fork()
    if not child:
        workspace = Workspace.open(folder)
        os.environ["LFTJ_FAULT"] = fault
        workspace.install(%r)
        workspace.checkpoint()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.in_turns
def test_killed_at_any_point_all_of_a_program_is_there_or_nothing(tmp_path: Path) -> None:
    program = f"{VOLUME} {RULE}"
    for number, _ in enumerate(FOLDER_POINTS):
        with loaded(Workspace.open(tmp_path / str(number))) as ws:
            trade(ws, (1, 5, 2, 9), head="out") if "out" in ws.relations else None
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT % program],
        env=child_environment(),
        input="".join(f"{tmp_path / str(number)}|{fault}\n" for number, fault in enumerate(FOLDER_POINTS)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [int(code) for code in done.stdout.split()] == [-signal.SIGKILL] * len(FOLDER_POINTS)
    for number, _ in enumerate(FOLDER_POINTS):
        folder = tmp_path / str(number)
        with Workspace.open(folder) as ws:
            there = {*ws.relations} - {"trade", "rate"}
            assert there in (set(), {"vol", "vol_final", "out"})
            if not there:
                ws.install(program)
            assert trade(ws, (1, 5, 8, 9)) == [(9, 100)]
            ws.checkpoint()
            assert sorted(ws["vol_final"]) == [(1, 0, 1)]
        without_image(folder)
        with Workspace.open(folder) as ws:
            assert sorted(ws["out"]) == [(9, 100)]
            files = {path.name for path in (folder / "data").iterdir()}
            assert len(files) == 4, "of each relation the last"
