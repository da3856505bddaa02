"""What a prompt and a notebook show of databases, workspaces, results, figures and errors.

IPython itself shows them, in a shell of this process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell

import lftj
from lftj.display.contents import SHOWN_RELATIONS
from lftj.display.first_rows import SHOWN_COLUMNS, SHOWN_ROWS
from lftj.storage.relation import Relation
from maintenance import Workspace
from support import machine_workspace

EDGES = [(1, 2), (2, 3), (1, 3)]
TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


@pytest.fixture
def ws() -> Workspace:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["a", "b"])
    workspace.install(TRI, "trace")
    return workspace


@pytest.fixture(scope="module")
def ipython() -> Iterator[Any]:
    shell = InteractiveShell()
    lftj.load_ipython_extension(shell)
    yield shell
    shell.atexit_operations()
    InteractiveShell.clear_instance()


# -- databases and workspaces ---------------------------------------------------------------


def test_a_database_shows_its_relations() -> None:
    db = lftj.Database()
    assert repr(db) == "Database: 0 relations"
    db.load("edge", EDGES, columns=["a", "b"])
    assert repr(db).splitlines() == [
        "Database: 1 relation",
        "relation  rows  columns",
        "edge         3  a: int64, b: int64",
    ]
    page = db._repr_html_()
    assert "<table>" in page and "<td" in page and "a: int64, b: int64" in page


def test_a_workspace_shows_how_its_heads_are_kept(ws: Workspace, tmp_path: Path) -> None:
    assert repr(ws).splitlines() == [
        "Workspace, version 2: 1 relation, 1 head",
        "relation  rows  kept by  columns",
        "edge         3           a: int64, b: int64",
        "tri          1  trace    a: int64, b: int64, c: int64",
    ]
    assert "trace" in ws._repr_html_()
    assert repr(ws.snapshot()).startswith("Snapshot of version 2: 2 relations\n")
    ws.save(tmp_path / "kept")
    with Workspace.open(tmp_path / "kept") as kept:
        assert repr(kept).startswith(f"Workspace in {tmp_path / 'kept'}, version ")
    assert "edge" in repr(kept), "closed, it is still shown"


def test_many_relations_and_columns_are_cut() -> None:
    db = lftj.Database()
    for number in range(SHOWN_RELATIONS + 5):
        db.load(f"r{number}", {f"column_{n}": [1] for n in range(20)})
    lines = repr(db).splitlines()
    assert len(lines) == SHOWN_RELATIONS + 3 and lines[-1] == "... 5 more"
    assert max(map(len, lines)) < 110
    assert len(repr(db.relations).splitlines()) == SHOWN_RELATIONS + 6, "which has them all"


def test_names_are_escaped() -> None:
    db = lftj.Database()
    table = pa.table({"<b>": [1]})
    db.add(Relation.from_table("<i>", table, db.domains))
    assert "<i>" not in db._repr_html_() and "&lt;i&gt;" in db._repr_html_()


def test_a_workspace_is_shown_while_another_thread_changes_it(ws: Workspace) -> None:
    shown: list[str] = []
    with ws.paused():
        looking = threading.Thread(target=lambda: shown.append(repr(ws)))
        looking.start()
        looking.join()
    (text,) = shown
    assert text.splitlines()[-1] == "another thread is changing it: this is what there was before"
    assert "tri          1  trace" in text and "another thread" not in repr(ws)


def test_commits_of_the_machine_are_shown() -> None:
    ws = machine_workspace.made("deg[a] = count() <- e(a, _).")
    for number in range(5):
        assert machine_workspace.insert(ws, (number, 1000 + number)).stats.fast
        assert repr(ws).splitlines()[2].split()[:2] == ["e", str(3 + number)]


# -- what a commit took ---------------------------------------------------------------------


def test_figures_of_a_commit_show_what_changed(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.insert("edge", [(3, 4), (2, 4), (1, 2)])
        tx.erase("edge", [(1, 3)])
    lines = repr(tx.stats).splitlines()
    assert lines[0].startswith("a commit, ") and lines[0].endswith(" ms")
    assert lines[1].split() == ["relation", "inserted", "erased", "no", "change"]
    assert lines[2].split() == ["edge", "2", "1", "1"]
    assert lines[3].split() == ["head", "kept", "by", "changes", "operations", "ms"]
    assert lines[4].split()[:3] == ["tri", "trace", "2"]
    assert tx.stats._repr_html_().count("<table>") == 2


# -- results in IPython ---------------------------------------------------------------------


def test_results_show_rows(ipython: Any) -> None:
    db = lftj.Database()
    db.load("edge", EDGES, columns=["a", "b"])
    result = db.query("q(a, b) <- edge(a, b).", order_by="a, b")
    assert type(result) is pa.Table
    shown, _ = ipython.display_formatter.format(result)
    assert shown["text/plain"].splitlines() == [
        "pyarrow.Table(a: int64, b: int64), 3 rows",
        "a  b",
        "1  2",
        "1  3",
        "2  3",
    ]
    assert "<table>" in shown["text/html"]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({}),
        pa.table({"a": pa.array([], pa.int64())}),
        pa.table({"a": [None, {"x": [1, None]}], "b": pa.array([None, None], pa.null())}),
        pa.table({"a": pa.array([2**62], pa.int64()).cast(pa.timestamp("us"))}),
        pa.table([pa.chunked_array([["x"], ["y"]]), pa.array([1, 2])], names=["same", "same"]),
        pa.table({"map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))}),
        pa.table({"struct": pa.array([{"t": 2**62}]).cast(pa.struct({"t": pa.timestamp("us")}))}),
    ],
    ids=lambda table: str(table.schema.types),
)
def test_all_tables_can_be_shown(ipython: Any, table: pa.Table) -> None:
    shown, _ = ipython.display_formatter.format(table)
    assert shown["text/plain"].startswith("pyarrow.Table(") and "<table>" in shown["text/html"]


def test_large_tables_are_cut(ipython: Any) -> None:
    table = pa.table({f"c{n}": range(1000) for n in range(SHOWN_COLUMNS + 3)})
    shown, _ = ipython.display_formatter.format(table)
    lines = shown["text/plain"].splitlines()
    assert len(lines) == SHOWN_ROWS + 4
    assert lines[-2:] == ["... 990 more", "... 3 columns more"]
    assert lines[0].endswith(", ...), 1,000 rows")


def test_a_formatter_of_the_users_stays_and_unloading_takes_ours_away() -> None:
    class Shell:
        display_formatter = DisplayFormatter()
        user_ns: ClassVar[dict[str, Any]] = {}

        def register_magic_function(self, *arguments: object) -> None:
            pass

    shell: Any = Shell()
    shell.display_formatter.formatters["text/html"].for_type(pa.Table, lambda table: "mine")
    lftj.load_ipython_extension(shell)
    table = pa.table({"a": [1]})
    shown, _ = shell.display_formatter.format(table)
    assert shown["text/html"] == "mine" and shown["text/plain"].startswith("pyarrow.Table(a: int64), 1 row\n")
    lftj.unload_ipython_extension(shell)
    shown, _ = shell.display_formatter.format(table)
    assert shown["text/html"] == "mine" and shown["text/plain"] == repr(table)


# -- errors in IPython ----------------------------------------------------------------------


def test_errors_are_short_and_whole(ipython: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cell = ["import lftj", "db = lftj.Database()", "def ask():", "    db.query('p(a) <- q(a).')", "ask()"]
    ipython.run_cell("\n".join(cell))
    shown = capsys.readouterr().out.splitlines()
    assert shown[-3].startswith("lftj.errors.UnknownRelationError: unknown relation 'q'")
    assert shown[-2:] == ["  p(a) <- q(a).", "          ^"]
    assert any("db.query('p(a) <- q(a).')" in line for line in shown), "the user's line"
    assert any(line == "    ask()" for line in shown)
    assert not any("database.py" in line or "interactiveshell.py" in line for line in shown)
    assert len(shown) < 12


def test_what_a_users_function_raised_stays_in_sight() -> None:
    def wrong() -> None:
        raise ZeroDivisionError("of mine")

    try:
        try:
            wrong()
        except ZeroDivisionError as cause:
            raise lftj.errors.FunctionError("function 'f' raised") from cause
    except lftj.LftjError as error:
        shown = error._render_traceback_()
    assert any("of mine" in line for line in shown)
    assert any("raise ZeroDivisionError" in line for line in shown)
    assert shown[-1] == "lftj.errors.FunctionError: function 'f' raised"
