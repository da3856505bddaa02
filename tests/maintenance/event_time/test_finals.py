"""``final vol at w + 5m.``: what it declares and refuses, who sees what closed, and that a folder has it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from support.kept_lives import without_image
from support.paths import TESTS

NUMBERS = pa.table(
    {"s": pa.array([], pa.int64()), "q": pa.array([], pa.int64()), "t": pa.array([], pa.int64())}
)
TIMES = NUMBERS.set_column(2, "t", pa.array([], pa.timestamp("us")))
RULE = "vol[s, w] = sum(q) <- trade(s, q, t), w = tumble(t, 5)."


def begun(workspace: Workspace, **options: Any) -> Workspace:
    workspace.load("trade", NUMBERS, time="t", **{"lateness": 2, "keep": 20, **options})
    workspace.install(f"{RULE} final vol at w + 5.")
    return workspace


def trade(workspace: Workspace, *rows: tuple[int, int, int]) -> list[tuple[int, ...]]:
    """Insert rows; what closes."""
    with workspace.transaction() as tx:
        tx.insert("trade", list(rows))
    found = tx.changes["vol_final"]
    assert set(found["weight"].to_pylist()) <= {1}
    return sorted(zip(*found.drop_columns("weight").to_pydict().values(), strict=True))


def test_what_closes_is_told_once() -> None:
    ws, heard = begun(Workspace()), []
    ws.subscribe("vol_final", lambda table: heard.extend(table.to_pylist()))
    version = ws.version
    assert trade(ws, (1, 2, 1), (1, 3, 4)) == []
    assert trade(ws, (1, 5, 6), (2, 1, 3)) == []
    assert trade(ws, (1, 1, 8)) == [(1, 0, 5), (2, 0, 1)]
    assert trade(ws, (1, 7, 1)) == [] and ws.late("trade") == (1, 0)
    assert trade(ws, (3, 1, 60)) == [(1, 5, 6)], "though it leaves soon"
    assert sorted(ws["vol_final"]) == [(1, 0, 5), (1, 5, 6), (2, 0, 1)]
    assert heard == [{"s": s, "w": w, "sum": q, "weight": 1} for s, w, q in [(1, 0, 5), (2, 0, 1), (1, 5, 6)]]
    change = ws.changes_since(version, "vol_final")
    assert change.table.num_rows == 3
    assert ws.changes_since(ws.version, "vol_final").table.schema == change.table.schema
    assert [len(each.table) for each in ws.follow("vol_final", since=version, timeout=0)] == [2, 1]
    assert ws.query("all(s) <- vol_final(s, 5, _).").to_pylist() == [{"s": 1}]


def test_it_is_there_again_also_across_kills(tmp_path: Path) -> None:
    folder, copies = tmp_path / "folder", []
    with begun(Workspace.open(folder)) as ws:
        for number, rows in enumerate([[(1, 2, 1)], [(1, 5, 6)], [(1, 1, 8)], [(3, 1, 60)], [(3, 1, 63)]]):
            trade(ws, *rows)
            if number == 2:
                ws.checkpoint()
            copies.append((tmp_path / f"killed-{number}", sorted(ws["vol_final"])))
            shutil.copytree(folder, copies[-1][0])
            (copies[-1][0] / "lock").unlink(missing_ok=True)
        ws.save(tmp_path / "copy")
    copies += [(folder, copies[-1][1]), (tmp_path / "copy", copies[-1][1])]
    for path, rows in copies:
        without_image(path)
        for _ in range(2):
            with Workspace.open(path) as ws:
                assert sorted(ws["vol_final"]) == rows
                assert ws.strategy_of("vol")
                ws.verify()
    with Workspace.open(folder) as ws, Workspace.open(folder, read_only=True) as reader:
        assert trade(ws, (3, 1, 70)) == [(3, 60, 2)]
        reader.refresh()
        assert sorted(reader["vol_final"]) == sorted(ws["vol_final"]) == [(1, 0, 2), (1, 5, 6), (3, 60, 2)]


def test_what_closed_before_the_folder_was_opened_is_told_again(tmp_path: Path) -> None:
    with begun(Workspace.open(tmp_path)) as ws:
        version = ws.version
        for number, rows in enumerate([[(1, 2, 1)], [(2, 3, 8), (1, 5, 6)], [(3, 1, 60)], [(1, 9, 61)]]):
            trade(ws, *rows)
            if number == 1:
                ws.checkpoint()
        right = ws.changes_since(version, "vol_final").table
        each = [(one.version, one.table) for one in ws.follow("vol_final", since=version, timeout=0)]
        assert right.num_rows == 3 and len(each) == 2
    for image in (True, False):
        if not image:
            without_image(tmp_path)
        with Workspace.open(tmp_path) as ws:
            assert ws.changes_since(version, "vol_final").table.sort_by("s") == right.sort_by("s")
            again = ws.follow("vol_final", since=version, timeout=0)
            assert [(one.version, one.table) for one in again] == each
            assert ws.changes_since(each[-1][0], "vol_final").table == right.slice(0, 0)
            with pytest.raises(errors.CursorError, match="the journal has no rows that left the stream"):
                ws.changes_since(version, "vol")
    with Workspace.open(tmp_path, feed_bytes=0) as ws:
        ws.checkpoint()
    with Workspace.open(tmp_path, feed_bytes=0) as ws, pytest.raises(errors.CursorError):
        ws.changes_since(version, "vol_final")


def test_a_folder_of_before_what_grows_had_one_form_goes_on(tmp_path: Path) -> None:
    """Of format 8, where what closed was loaded by a change of its own behind the program."""
    folder = tmp_path / "folder"
    shutil.copytree(TESTS / "maintenance" / "durable" / "finals_of_format_8", folder)
    for number in range(2):
        with Workspace.open(folder) as ws:
            assert sorted(ws["vol_final"]) == [(1, 0, 2), *[(1, 10, 2)] * number]
            ws.verify()
            if not number:
                assert trade(ws, (1, 1, 18)) == [(1, 10, 2)]


def test_it_is_taken_away(tmp_path: Path) -> None:
    with begun(Workspace.open(tmp_path)) as ws:
        trade(ws, (1, 2, 1), (1, 2, 60))
        for heads in (["vol"], ["vol", "trade"]):
            with pytest.raises(
                errors.LftjError, match=r"uninstall 'vol_final' before it or|no head is called"
            ):
                ws.uninstall(*heads)
        with pytest.raises(errors.ChangeError, match="uninstall 'vol_final' before it or with it"):
            ws.install("vol[s, w] = count() <- trade(s, _, t), w = tumble(t, 5).", replace=True)
        ws.uninstall("vol_final")
        assert [*ws.relations] == ["trade", "vol"]
        trade_rows = sorted(ws["trade"])
        ws.uninstall("vol")
        ws.install(f"{RULE} final vol at w + 5.")
        assert trade(ws, (1, 2, 99)) == [(1, 60, 2)]
    without_image(tmp_path)
    with Workspace.open(tmp_path) as ws:
        assert sorted(ws["vol_final"]) == [(1, 60, 2)] and trade_rows
        ws.uninstall("vol_final", "vol")
    without_image(tmp_path)
    with Workspace.open(tmp_path) as ws:
        assert [*ws.relations] == ["trade"]


def test_it_is_verified_as_far_as_the_stream_goes_back() -> None:
    ws = begun(Workspace())
    trade(ws, (1, 2, 1), (1, 5, 6))
    trade(ws, (1, 1, 9), (1, 1, 16))
    ws.verify()
    state = ws._published.state
    for row, is_wrong in (((1, 5, 7), True), ((9, 0, 1), True), ((1, 10, 1), True), ((9, -40, 1), False)):
        version = state.versions["vol_final"].advance([np.array([value]) for value in row], np.ones(1, int))
        ws._published.state = replace(state, versions={**state.versions, "vol_final": version})
        if not is_wrong:
            ws.verify()
            continue
        with pytest.raises(errors.VerificationError, match="'vol_final' has 1 tuples that did not close so"):
            ws.verify()


def test_it_is_nobodys_to_change() -> None:
    ws = begun(Workspace())
    with pytest.raises(errors.ChangeError, match="'vol_final' has the rows of 'vol' that have closed"):  # noqa: SIM117
        with ws.transaction() as tx:
            tx.insert("vol_final", [(1, 2, 3)])
    with pytest.raises(errors.ChangeError, match="'vol_final' has the rows of 'vol' that have closed"):
        ws.apply_many({"vol_final": {"s": [1], "w": [1], "sum": [1], "weight": [1]}})
    with pytest.raises(errors.ChangeError, match="can't be loaded"):
        ws.load("vol_final", NUMBERS)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (f"{RULE} final vol at w + 4.", r"up to w \+ 4, and w \+ 4 is not later: close at w \+ 5 or later"),
        (f"{RULE} final vol at w + 21.", r"keeps rows for 20, .* at w \+ 21 needs them for 21 \+ 0 = 21"),
        (f"{RULE} final vol at x + 5.", "'vol' has no column 'x'"),
        (f"{RULE} final vol on w + 5.", "expected 'at', not 'on'"),
        (f"{RULE} final vol at w + 5s.", "has integers, so give a whole number"),
        (f"{RULE} final vols at w + 5.", "'vols' has none here; did you mean 'vol'"),
        ("final trade at t + 5.", "program has no rule|'trade' has none here"),
        ("n[s] = count() <- trade(s, _, _). final n at s + 5.", "nothing bounds the time of 'trade'"),
        ("r(s, t) <- trade(s, _, t), t > 5. final r at s.", "nothing bounds the time of 'trade'"),
        ("r(s, t) <- trade(s, _, t). final r at t.", r"up to t \+ 0, and t is not later: close at t \+ 1"),
        ("r(t) <- trade(_, _, t), trade(_, _, u), u > t. final r at t + 5.", "'trade' from above by 't'"),
        ("r(t) <- trade(_, _, t), trade(_, _, u), u < t. final r at t + 5.", "'trade' from below by 't'"),
        (
            "r(t) <- trade(_, _, t), trade(_, _, u), u < t, t - 17 <= u. final r at t + 5.",
            r"keeps rows for 20, .* needs them for 5 \+ 17 = 22",
        ),
        (
            "r(t) <- trade(_, _, t), trade(_, _, u), trade(_, _, v), u >= t, u <= t + 3, v >= u, v <= u + 3."
            " final r at t + 6.",
            r"up to t \+ 6, and t \+ 6 is not later: close at t \+ 7",
        ),
        ("r(s, t) <- (trade(s, _, t) ; trade(_, s, t)). final r at t + 1.", "has alternatives"),
        ("r(s, w) <- plain(s, _, w). final r at w.", "'r' reads no stream"),
        ("r(s, t) <- trade(s, _, t), t > now() - 5. final r at t + 1.", "by way of others, or by now"),
        ("h(s, t) <- trade(s, _, t). r(s, t) <- h(s, t). final r at t + 1.", "by way of others"),
        ("r(s, t) <- trade(s, _, t). r_final(s) <- plain(s, _, _). final r at t + 1.", "'r_final' already"),
        ("bag r(s, t) <- trade(s, _, t). final r at t + 1.", "'r' is a bag"),
        ("r(s, t) <- plain(s, _, t), !trade(s, _, t). final r at t.", "close at t \\+ 1 or later"),
        (
            "r(s, t) <- plain(s, _, t), !trade(s, _, _). final r at t + 5.",
            "nothing bounds the time of 'trade'",
        ),
    ],
)
def test_what_is_refused(program: str, said: str) -> None:
    ws = Workspace()
    ws.load("trade", NUMBERS, time="t", lateness=2, keep=20)
    ws.load("plain", NUMBERS)
    with pytest.raises(errors.RuleError, match=said):
        ws.install(program)
    assert ws.heads == () and [*ws.relations] == ["trade", "plain"]


def test_what_is_taken() -> None:
    for rule, close in (
        ("r(s, w) <- trade(s, _, t), w in hop(t, 6, 2).", "w + 6"),
        ("r(t, u) <- trade(_, _, t), trade(_, _, u), u >= t, u <= t + 3.", "t + 4"),
        ("r(t, u) <- trade(_, _, t), trade(_, _, u), t - 3 < u, u < t.", "t + 1"),
        ("r(s, t) <- trade(s, _, t), plain(s, _, _).", "t + 1"),
        ("r(s, t) <- plain(s, _, t), !trade(s, _, t).", "t + 1"),
        ("r[s, w] = max(q) <- trade(t: t, s: s, q: q), w = tumble(t, 5, 1).", "w + 5"),
    ):
        ws = Workspace()
        ws.load("trade", NUMBERS, time="t", lateness=2, keep=20)
        ws.load("plain", NUMBERS)
        ws.install(f"{rule} final r at {close}.")
        assert "r_final" in ws.relations
    ws = Workspace()
    ws.load("trade", TIMES, time="t", lateness="1m", keep="10m")
    ws.install("vol[s, w] = sum(q) <- trade(s, q, t), w = tumble(t, 5m). final vol at w + 5m.")
    with pytest.raises(errors.RuleError, match=r"w \+ 4m is not later: close at w \+ 5m or later"):
        ws.install("n[s, w] = count() <- trade(s, _, t), w = tumble(t, 5m). final n at w + 4m.")
    with pytest.raises(errors.RuleError, match="final is for rules that are installed in a workspace"):
        ws.query("n[s, w] = count() <- trade(s, _, t), w = tumble(t, 5m). final n at w + 5m.")
