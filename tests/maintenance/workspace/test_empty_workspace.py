"""A workspace in which there is nothing yet answers as one that has something does."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lftj import LftjError
from maintenance import Workspace
from maintenance.image import read_image, write_image


def image_again(ws: Workspace) -> tuple[str, ...]:
    sink = io.BytesIO()
    write_image(ws, sink)
    return read_image(io.BytesIO(sink.getvalue())).heads


ANSWERS: dict[str, tuple[Callable[[Workspace], Any], Any]] = {
    "heads": (lambda ws: ws.heads, ()),
    "views": (lambda ws: dict(ws.views), {}),
    "explain_maintenance": (lambda ws: str(ws.explain_maintenance()), "strata\n  no rules"),
    "its picture": (lambda ws: ws.explain_maintenance().svg().count("<text"), 0),
    "verify": (Workspace.verify, None),
    "check_invariants": (Workspace.check_invariants, None),
    "a transaction": (lambda ws: dict(changed(ws)), {}),
    "apply_many": (lambda ws: len(ws.apply_many({})), 0),
    "an image": (image_again, ()),
    "compact": (Workspace.compact, None),
    "uninstall": (lambda ws: ws.uninstall(), None),
    "sensitivity_bytes": (lambda ws: ws.sensitivity_bytes, 0),
    "sql": (lambda ws: ws.sql("SELECT 1 AS a").to_pylist(), [{"a": 1}]),
    "now": (lambda ws: ws.now, None),
}


def changed(ws: Workspace) -> Any:
    with ws.transaction() as tx:
        pass
    return tx.changes


def empty() -> Workspace:
    return Workspace()


def without_rules() -> Workspace:
    ws = Workspace()
    ws.load("e", pa.table({"a": pa.array([], pa.int64()), "t": pa.array([], pa.string())}))
    return ws


def uninstalled() -> Workspace:
    ws = without_rules()
    ws.install("h(a) <- e(a, _).")
    ws.uninstall("h")
    return ws


@pytest.mark.parametrize("made", [empty, without_rules, uninstalled])
@pytest.mark.parametrize("asked", ANSWERS)
def test_nothing_is_there(made: Callable[[], Workspace], asked: str) -> None:
    answer, expected = ANSWERS[asked]
    assert answer(made()) == expected


def test_a_folder_with_nothing(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "kept") as ws:
        assert str(ws.explain_maintenance()) == "strata\n  no rules"
    with Workspace.open(tmp_path / "kept") as ws:
        assert ws.heads == ()
        ws.verify()


@pytest.mark.parametrize(
    "asked",
    [
        lambda ws: ws.install(""),
        lambda ws: ws.query(""),
        lambda ws: ws.sql(""),
        lambda ws: ws["h"],
        lambda ws: ws.strategy_of("h"),
        lambda ws: ws.late("s"),
        lambda ws: ws.checkpoint(),
        lambda ws: ws.changes_since(0, "h"),
        lambda ws: ws.transaction().insert("e", [(1,)]),
    ],
)
def test_what_needs_something_says_so(asked: Callable[[Workspace], Any]) -> None:
    with pytest.raises(LftjError):
        asked(empty())
