"""What a notebook shows: texts as lines, tables as HTML, and a bar while a long call runs.

The kernel is simulated: ``get_ipython`` among the builtins, as IPython puts it there and rich looks for it,
and ``IPython.display``, which keeps what it is given.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

import pytest

import lftj
from lftj.process import progress
from lftj.values.shown_text import ShownText
from maintenance import Workspace
from support.terminal import terminal_of

TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
EDGES = [(1, 2), (2, 3), (1, 3)]


class ZMQInteractiveShell:
    """By this name a Jupyter kernel's shell is known."""


class TerminalInteractiveShell:
    """By this name IPython in a terminal is known."""


class Shown:
    """A display handle: what was shown, as plain text, one update after the other."""

    def __init__(self, first: Any) -> None:
        self.texts = [text_of(first)]

    def update(self, what: Any, raw: bool = False) -> None:
        self.texts.append(what["text/plain"] if raw else text_of(what))


def text_of(what: Any) -> str:
    bundle = what._repr_mimebundle_(include=[], exclude=[])
    assert "<pre" in bundle["text/html"]
    return str(bundle["text/plain"])


@pytest.fixture
def displays(monkeypatch: pytest.MonkeyPatch) -> list[Shown]:
    """What is displayed; from now on a kernel runs."""
    handles: list[Shown] = []

    def display(what: Any, *, display_id: bool) -> Shown:
        assert display_id
        handles.append(Shown(what))
        return handles[-1]

    ipython, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr(progress, "REDRAWN_SECONDS", 0.0)
    return handles


@pytest.fixture
def ws() -> Workspace:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["a", "b"])
    workspace.install(TRI)
    return workspace


# -- a bar ---------------------------------------------------------------------------------


def test_a_notebook_shows_a_bar_and_takes_it_away(
    displays: list[Shown], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.bar("joining [x]") as advance:
        advance(0.25)
        advance(0.5)
    (bar,) = displays
    assert all("joining [x]" in text for text in bar.texts[:-1])
    assert [percent in bar.texts[1] for percent in ("25%", "50%")] == [True, False]
    assert "50%" in bar.texts[2]
    assert bar.texts[-1] == "", "the bar goes when the call is over"
    assert capsys.readouterr() == ("", ""), "nothing is written beside it"


@pytest.mark.filterwarnings("error")
def test_progress_shows_in_a_notebook(displays: list[Shown]) -> None:
    ws = Workspace()
    ws.load("edge", EDGES, columns=["a", "b"], progress=True)
    ws.install(TRI, progress=True)
    assert ws.query("h(a) <- edge(a, _).", progress=True).num_rows == 2
    labels = [bar.texts[0].split()[0] for bar in displays]
    assert "installing" in labels and "joining" in labels and "loading" in labels
    assert all(bar.texts[-1] == "" for bar in displays)


def test_a_bar_goes_also_when_the_call_fails(displays: list[Shown]) -> None:
    with pytest.raises(KeyboardInterrupt), progress.bar("outer"), progress.bar("inner"):
        raise KeyboardInterrupt
    with progress.bar("later"):
        pass
    assert [bar.texts[0].split()[0] for bar in displays] == ["outer", "later"], "one bar at a time"
    assert [bar.texts[-1] for bar in displays] == ["", ""]


def test_a_bar_is_drawn_some_times_a_second(displays: list[Shown], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "REDRAWN_SECONDS", 3600.0)
    with progress.bar("joining") as advance:
        for step in range(1000):
            advance(step / 1000)
    assert len(displays[0].texts) == 2


@pytest.mark.parametrize("wanted", [None, False])
def test_unasked_nothing_shows(wanted: bool | None, displays: list[Shown]) -> None:
    with progress.bar("joining", wanted) as advance:
        advance(0.5)
    assert displays == []


def test_ipython_in_a_terminal_is_a_terminal(
    displays: list[Shown], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(builtins, "get_ipython", TerminalInteractiveShell)
    with progress.bar("off a terminal") as advance:
        advance(0.5)
    assert displays == [] and capsys.readouterr() == ("", "")

    terminal = terminal_of(monkeypatch)
    with progress.bar("on a terminal") as advance:
        advance(0.5)
        assert terminal.is_drawn.wait(60)
    assert displays == [] and "50%" in terminal.getvalue()


# -- texts ------------------------------------------------------------------------------------


def test_explanations_show_as_lines(ws: Workspace) -> None:
    explained = ws.explain("h(a) <- edge(a, b), b < 3.")
    assert repr(explained) == str(explained) and "\n  key order " in repr(explained)
    assert explained._repr_html_().startswith("<pre") and "&lt;-" in explained._repr_html_()
    for kept in (ws.explain_maintenance(), ws.explain_maintenance("tri")):
        assert isinstance(kept, ShownText)
        assert repr(kept) == str(kept) and len(repr(kept).splitlines()) > 2
        assert kept._repr_html_().startswith("<pre") and "&lt;-" in kept._repr_html_()
    strata = ws.explain_maintenance()
    assert strata.startswith("strata\n")
    assert strata._repr_svg_().startswith("<svg ") and strata.svg() in strata._repr_html_()


def test_a_shown_text_is_a_string() -> None:
    text = ShownText("a\n<b>")
    assert text == "a\n<b>" and hash(text) == hash("a\n<b>") and text.split() == ["a", "<b>"]
    assert repr(text) == "a\n<b>" and f"{text}" == "a\n<b>" and type(str(text)) is str
    assert "&lt;b&gt;" in text._repr_html_() and "<b>" not in text._repr_html_()


def test_results_have_html(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.insert("edge", [(2, 4), (1, 4)])
    db = lftj.Database()
    db.load("edge", EDGES, columns=["a", "b"])
    for shown in (ws["tri"], ws["edge"], db["edge"], ws.snapshot()["tri"], tx.changes):
        assert "<table>" in shown._repr_html_()
