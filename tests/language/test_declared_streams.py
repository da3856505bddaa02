"""``stream trade(t) late 5s keep 2h.``: what it declares, what it refuses, and that a folder keeps it."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lftj import Database, errors
from lftj.language.parser import parse
from maintenance import Workspace
from support.kept_lives import without_image

RULE = "n[s] = count() <- trade(s, _)."
EMPTY = pa.table({"s": pa.array([], pa.int64()), "t": pa.array([], pa.timestamp("us"))})
NOON = datetime.datetime(2026, 1, 1, 12)


def at(seconds: int) -> datetime.datetime:
    return NOON + datetime.timedelta(seconds=seconds)


def test_what_is_read() -> None:
    program = parse(
        "stream trade(t) late 5s keep 2h ahead 1d.\n"
        "stream(x) <- stream(x, late), keep(x). stream beat(n) keep 7."
    )
    first, second = program.streams
    assert (first.relation, first.time.name, first.ahead) == ("trade", "t", datetime.timedelta(days=1))
    assert (first.lateness, first.keep) == (datetime.timedelta(seconds=5), datetime.timedelta(hours=2))
    assert (second.relation, second.lateness, second.keep, second.ahead) == ("beat", None, 7, None)
    assert [rule.heads[0].relation for rule in program.rules] == ["stream"]
    for wrong, said in (
        ("stream trade(t) late 5s late 6s.", "'late' is said already"),
        ("stream trade(t) kept 5s.", "'kept' is none of late, keep and ahead: stream trade"),
        ("stream trade(t, u) late 5s.", "expected '\\)'"),
        ("stream trade late 5s.", "expected '\\('"),
        ("stream trade(t) late.", "expected"),
        ("stream trade(t) late 5s <- trade(t).", "expected"),
    ):
        with pytest.raises(errors.RuleSyntaxError, match=said):
            parse(wrong)


@pytest.mark.parametrize(
    ("declared", "said", "place"),
    [
        ("stream trade(x) keep 2h.", "'trade' has no column 'x'", "x"),
        ("stream trades(t).", "a stream is of a relation that is loaded, and 'trades' is none; did", None),
        ("stream n(s).", "a stream is of a relation that is loaded, and 'n' is none", None),
        ("stream trade(t) late 5.", "lateness=5: column 't' is of type timestamp.*give a duration", None),
        ("stream trade(s) late 5s.", "lateness=5s: column 's' has integers, so give a whole number", None),
        ("stream trade(t) late 2h keep 5s.", "keep=5s is shorter than lateness=2h", None),
    ],
)
def test_what_is_refused(declared: str, said: str, place: str | None) -> None:
    ws = Workspace()
    ws.load("trade", EMPTY)
    with pytest.raises(errors.RuleError, match=said) as caught:
        ws.install(f"{declared} {RULE}")
    assert caught.value.span is not None
    assert f"{declared} "[slice(*caught.value.span)] == (place or declared)
    assert ws.heads == () and ws.now is None
    with pytest.raises(errors.UnknownRelationError, match="'trade' is no stream: load it with time="):
        ws.late("trade")


def test_of_a_query_it_is_what_is_so() -> None:
    db, ws = Database(), Workspace()
    db.load("trade", EMPTY)
    with pytest.raises(errors.RuleError, match="'trade' was loaded as no stream: load it with time='t'"):
        db.count(f"stream trade(t) keep 2h. {RULE}")
    ws.load("trade", EMPTY, time="t", lateness="5s", keep="2h")
    assert ws.count(f"stream trade(t) late 5s keep 120m. {RULE}") == 0
    with pytest.raises(errors.RuleError, match="'trade' is a stream with other settings"):
        ws.count(f"stream trade(t) late 5s. {RULE}")
    with pytest.raises(errors.RuleError, match="'trade' is a stream with other settings"):
        ws.install(f"stream trade(t) late 5s. {RULE}")
    ws.load("keyed", EMPTY, key=["s"])
    with pytest.raises(errors.RuleError, match="'keyed' has a key, by which rows are replaced"):
        ws.install("stream keyed(t).")
    ws.install(f"stream trade(t) late 5s keep 2h. {RULE}")
    with pytest.raises(errors.RuleError, match="was loaded without this key"):
        ws.install("key trade(s).")


def test_a_declaration_does_not_take_a_null() -> None:
    ws = Workspace()
    ws.load("trade", pa.table({"s": [1, 2], "t": pa.array([NOON, None], pa.timestamp("us"))}), nulls="keep")
    with pytest.raises(errors.NullError, match=r"column 't' may be NULL.*not_null=\['t'\]"):
        ws.install("stream trade(t).")
    wide = {f"c{number}": ["x"] for number in range(8)}
    ws.load("wide", pa.table({**wide, "t": pa.array([None], pa.timestamp("us"))}))
    with pytest.raises(errors.NullError, match="'wide', column 't'"):
        ws.install("stream wide(t).")
    ws.load("wide", pa.table({**wide, "t": pa.array([NOON], pa.timestamp("us"))}))
    ws.install("stream wide(t).")
    with (
        pytest.raises(errors.ChangeError, match=r"'wide', column 't'.*time of a stream: give a value"),
        ws.transaction() as tx,
    ):
        tx.insert("wide", pa.table({**wide, "t": pa.array([None], pa.timestamp("us"))}))


def test_a_folder_has_what_was_declared(tmp_path: Path) -> None:
    folder, copy = tmp_path / "folder", tmp_path / "copy"
    seen: list[Any] = []
    with Workspace.open(folder) as ws:
        ws.load("trade", [(1, at(0)), (2, at(1000))], columns=["s", "t"])
        ws.install(f"stream trade(t) late 10s keep 100s. {RULE}")
        assert (ws.now, ws["trade"].count) == (at(990), 2)
        with ws.transaction() as tx:
            tx.insert("trade", [(3, at(1020)), (4, at(980))])
        shutil.copytree(folder, copy)
        seen.append((ws.now, ws.late("trade"), sorted(ws["trade"]), sorted(ws["n"])))
        ws.checkpoint()
        with ws.transaction() as tx:
            tx.insert("trade", [(5, at(1009))])
        seen.append((ws.now, ws.late("trade"), sorted(ws["trade"]), sorted(ws["n"])))
    (copy / "lock").unlink(missing_ok=True)
    assert seen[0] == (at(1010), (1, 0), [(2, at(1000)), (3, at(1020))], [(2, 1), (3, 1)])
    for image in (True, False):
        for number, path in enumerate((copy, folder)):
            if not image:
                without_image(path)
            with Workspace.open(path) as ws:
                assert seen[number] == (ws.now, ws.late("trade"), sorted(ws["trade"]), sorted(ws["n"]))
                ws.install("stream trade(t) late 10s keep 100s.")
                ws.verify()


def test_a_reader_of_a_folder_sees_what_left(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as ws:
        ws.load("trade", EMPTY)
        ws.install(RULE)
        with Workspace.open(tmp_path, read_only=True) as reader:
            ws.install("stream trade(t) keep 10s.")
            for seconds in (1, 5, 12, 40):
                with ws.transaction() as tx:
                    tx.insert("trade", [(seconds, at(seconds)), (0, at(2))])
            reader.refresh()
            assert sorted(reader["trade"]) == sorted(ws["trade"]) == [(40, at(40))]
            assert sorted(reader["n"]) == [(40, 1)]
            assert (reader.now, reader.late("trade")) == (ws.now, ws.late("trade")) == (at(40), (2, 0))
            ws.load("beat", EMPTY, time="t", keep="1s")
            with ws.transaction() as tx:
                tx.advance(at(60))
            reader.refresh()
            assert reader.now == at(60) and reader["trade"].count == 0


@pytest.mark.parametrize(
    ("body", "said", "place"),
    [
        ("trade(s, t), t < now() - 10m", "compared with the time of a stream only", "t < now() - 10m"),
        ("trade(s, t), t > now() - 10", "now\\(\\) - 10: .* give a duration", "t > now() - 10"),
        (
            "trade(s, t), t > now() - 3h",
            "'trade' keeps rows for 2h, and this looks back 3h",
            "t > now() - 3h",
        ),
        ("trade(s, t), t > now() - s", "no duration in the rule", "t > now() - s"),
        ("trade(s, t), t > now() - $d", "no duration in the rule", "t > now() - $d"),
        ("trade(s, t), t + 5m > now()", "compared with the time of a stream only", "t + 5m > now()"),
        ("trade(s, t), u = now()", "compared with the time of a stream only", "u = now()"),
        ("plain(s, t), t > now()", "'t' is the time of no stream in the body", "t > now()"),
        ("!trade(s, t), plain(s, t), t > now()", "'t' is the time of no stream in the body", "t > now()"),
        ("trade(s, t), t > now(1)", "unknown function 'now'", "now"),
    ],
)
def test_what_is_not_asked_of_now(body: str, said: str, place: str) -> None:
    ws = Workspace()
    ws.load("trade", EMPTY, time="t", lateness="5s", keep="2h")
    ws.load("plain", EMPTY)
    text = f"n(s) <- {body}."
    with pytest.raises(errors.RuleError, match=said) as caught:
        ws.install(text)
    assert caught.value.span is not None and text[slice(*caught.value.span)] == place
    assert [*ws.relations] == ["trade", "plain"]


def test_relations_of_recent_rows_are_nobodys() -> None:
    """They are there as long as a rule reads them, and nothing of them is shown but by what explains."""
    ws = Workspace()
    ws.load("trade", [(1, at(0)), (2, at(50)), (3, at(60))], columns=["s", "t"], time="t", keep="2h")
    ws.install("new(s) <- trade(s, t), t > now() - 10s.")
    ws.install("two(s) <- (trade(t: t, s: s), now() - 10s < t ; trade(s, t), t >= now() - 59s).")
    assert (sorted(ws["new"]), sorted(ws["two"])) == ([(3,)], [(2,), (3,)])
    assert [*ws.relations] == ["trade", "new", "two"] == [*ws.stats.rows]
    assert "change of trade from now() - 9999999(s, t): s" in str(ws.explain_maintenance("new"))
    assert len(ws._state.recents) == 2
    with ws.transaction() as tx:
        with pytest.raises(errors.UnknownRelationError):
            tx.insert("trade from now() - 1", [(1, at(0))])
        with pytest.raises(errors.ChangeError, match="is derived by a rule"):
            tx.insert("trade from now() - 9999999", [(1, at(0))])
        tx.advance(at(65))
    assert tx.changes["two"].to_pylist() == [] and sorted(ws["new"]) == [(3,)]
    with pytest.raises(errors.ChangeError, match="'trade' can't be replaced, the rules of 'new' read it"):
        ws.load("trade", EMPTY)
    with ws.transaction() as tx:
        tx.insert("trade", [(4, at(70))])
        assert {"trade", "new", "two"} <= tx.changing
        with pytest.raises(errors.TransactionError, match="has changed already"):
            tx.sql("SELECT * FROM new")
    ws.uninstall("two")
    assert [*ws._state.recents] == ["trade from now() - 9999999"]
    ws.install("new(s) <- trade(s, t), t > now() - 20s.", replace=True)
    assert [*ws._state.recents] == ["trade from now() - 19999999"]
    ws.uninstall("new")
    assert not ws._state.recents and [*ws._state.versions] == ["trade"]
    with pytest.raises(errors.RuleError, match=r"now\(\) is for rules that are installed in a workspace"):
        ws.query("n(s) <- trade(s, t), t > now() - 10s.")
