"""Statements one after the other: what each answers, what is refused and how, cells of notebooks."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.formatters import DisplayFormatter
from pygments.token import Keyword, Name

import lftj
from lftj.session.completion import completions
from lftj.session.session import HELP, Finished, Session, StatementError, is_complete, statements
from lftj.session.statement_lexer import StatementLexer
from maintenance import Workspace

TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


@pytest.fixture
def said() -> list[object]:
    return []


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[object]) -> Session:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("a,b\n1,2\n2,3\n1,3\n", encoding="utf-8")
    Path("tri.rules").write_text(TRI, encoding="utf-8")
    made = Session(Workspace(), lambda batches: pa.Table.from_batches(batches).to_pylist(), said.append)
    assert made.execute(".load edge edges.csv") == "edge: 3 rows"
    return made


def test_rules_are_asked_and_installed(session: Session, said: list[object]) -> None:
    assert session.execute(TRI) == [{"a": 1, "b": 2, "c": 3}]
    assert session.execute(f".count {TRI}") == 1
    assert "3" in str(session.execute(".relations")).splitlines()[1]
    assert "key order" in str(session.execute(f".explain {TRI}"))
    assert "seeks" in str(session.execute(f".analyze {TRI}"))
    assert session.execute(".install tri.rules") == "tri: 1 row"
    assert str(session.execute(".explain")).startswith("strata")
    assert str(session.execute(".explain tri")).startswith("tri: strategy")
    assert session.execute(".watch tri") is None
    assert session.execute(".insert edge (2, 4), (3, 4)") == "2 inserted, 0 erased"
    assert session.execute(".erase edge edges.csv") == "0 inserted, 3 erased"
    assert said == ["+ tri(2, 3, 4)", "- tri(1, 2, 3)", "- tri(2, 3, 4)"]
    assert session.execute(".unwatch tri") is None
    session.execute(".insert edge (2, 3)")
    assert len(said) == 3
    told = str(session.execute(".stats")).splitlines()
    assert told[0].startswith("version 5; 3 commits here, ") and told[1] == "rows    edge 3, tri 1"
    assert session.execute(".stats times.svg") is None
    assert "3 commits, up to version 5" in Path("times.svg").read_text(encoding="utf-8")
    assert session.execute(".uninstall tri") is None
    assert "tri" not in session.database


def test_sql_is_answered_explained_and_kept(session: Session, said: list[object]) -> None:
    pytest.importorskip("duckdb")
    assert session.execute("select a, a from edge where b = 3 order by a;") == [{"a": 1}, {"a": 2}]
    assert session.execute("-- none\nfrom edge where a > b") == []
    assert session.execute(".sql (select 1 x) union all select 1;") == [{"x": 1}, {"x": 1}]
    assert session.execute(".count select a from edge") == 3
    told = str(session.execute(".explain select b from edge where a = 1;"))
    assert told.startswith("select b from edge where a = 1\n\n// line 1: ") and "key order" in told
    assert "measured" in str(session.execute(".analyze select b from edge where a = 1"))
    created = "create view hub as select a, count(*) n\nfrom edge group by a;"
    assert session.execute(created) == "hub: 2 rows"
    assert str(session.execute(".explain hub")).startswith("view hub:\n  select a, count(*) n\n  from edge")
    session.execute(".watch hub")
    session.execute(".insert edge (3, 1)")
    assert said == ["+ hub(3, 1)"]
    assert session.execute("top(a) <- hub(a, n), n > 1.") == [{"a": 1}]
    with pytest.raises(lftj.LftjError, match="is there already"):
        session.execute(created)
    assert session.execute("delete from edge where a = 3; insert into edge values (3, 1);") == [{"Count": 1}]
    assert said == ["+ hub(3, 1)", "- hub(3, 1)", "+ hub(3, 1)"]
    other = "create or replace view hub as select a, count(*) m from edge group by a"
    assert session.execute(other) == "hub: 3 rows"
    assert session.execute("drop view hub; select count(*) n from edge;") == [{"n": 4}]
    assert "hub" not in session.database
    Path("views.sql").write_text(
        "create view one as from edge;\ncreate view two as\nselect c from one;", encoding="utf-8"
    )
    with pytest.raises(lftj.LftjError, match=r"(?s)views.sql: .*\"c\".* \(line 3\)\n  select c from one"):
        session.execute(".install views.sql")
    assert session.execute(".install select a from one") == "view: 4 rows"


def test_rows_are_python_values_and_nothing_else(session: Session) -> None:
    session.database.load("name", [(1, "a) (b")], columns=["id", "name"])
    assert session.execute('.insert name (2, "c) (d"), (3, "e")') == "2 inserted, 0 erased"
    assert session.execute("n(x) <- name(2, x).") == [{"x": "c) (d"}]
    for rows in ("(1, 2", "(1, 2) (3, 4)", "(__import__('os').getcwd(), 1)"):
        with pytest.raises(StatementError, match="are no rows: write them as"):
            session.execute(f".insert edge {rows}")
    assert session.execute(".count e(a, b) <- edge(a, b).") == 3


def test_rows_have_the_literals_of_rules(session: Session, said: list[object]) -> None:
    types = {"id": pa.int64(), "d": pa.date32(), "p": pa.decimal128(8, 2), "f": pa.float64(), "b": pa.bool_()}
    session.database.load("o", pa.schema(types).empty_table(), nulls="keep")
    assert session.execute(".insert o (1, 2026-01-01, 5.25, 5.25, true)") == "1 inserted, 0 erased"
    session.execute(".insert o (2, 2026-01-02, 5, -5, False), (3, null, NULL, None, null)")
    day = datetime.date(2026, 1, 1)
    assert sorted(session.database["o"]) == [
        (1, day, Decimal("5.25"), 5.25, True),
        (2, day + datetime.timedelta(1), Decimal("5.00"), -5.0, False),
        (3, None, None, None, None),
    ]
    session.execute(".install seen(d, p, b) <- o(_, d, p, _, b).")
    session.execute(".watch seen")
    session.execute(".erase o (3, null, null, null, null), (1, 2026-01-01, 5.25, 5.25, true)")
    # So have changes.
    assert sorted(said, key=str) == ["- seen(2026-01-01, 5.25, true)", "- seen(null, null, null)"]
    assert [row[0] for row in session.database["o"]] == [2]
    times = {
        "t": pa.timestamp("us"),
        "z": pa.timestamp("us", "UTC"),
        "l": pa.duration("us"),
        "x": pa.binary(),
    }
    session.database.load("m", pa.schema(times).empty_table())
    session.execute('.insert m (2026-01-01T10:00:00.5, 2026-01-01T10:00:00Z, 90s, x"00ff")')
    ((at, zoned, long, binary),) = session.database["m"]
    assert at == datetime.datetime(2026, 1, 1, 10, 0, 0, 500_000) and long == datetime.timedelta(seconds=90)
    assert zoned == datetime.datetime(2026, 1, 1, 10, tzinfo=datetime.UTC) and binary == b"\x00\xff"
    for rows, why in (
        ("(1, tea)", "'tea' is no value"),
        ("(1, 2026-13-01)", "month"),
        ("(1, 2026-01-01T10:00:00.1234567)", ""),
        ("(1 + 1, 2)", "no value"),
    ):
        with pytest.raises(StatementError, match=f"are no rows: .*{why}"):
            session.execute(f".insert edge {rows}")
    with pytest.raises(lftj.LftjError, match="unknown relation 'egde'; did you mean 'edge'"):
        session.execute(".insert egde (1, 2)")


def test_load_takes_key_nulls_and_bag(session: Session) -> None:
    Path("o.csv").write_text("id,v\n1,5\n2,\n", encoding="utf-8")
    assert session.execute(".load o o.csv nulls=keep key=id") == "o: 2 rows"
    assert session.execute(".insert o (3, null)") == "1 inserted, 0 erased"
    with pytest.raises(lftj.LftjError, match="two rows of key id=1"):
        session.execute(".insert o (1, 6)")
    assert session.execute(".load o2 o.csv v,id nulls=drop bag=yes") == "o2: 1 row"
    session.execute(".insert o2 (5, 1)")
    assert sorted(session.database["o2"]) == [(5, 1), (5, 1)]
    for wrong in ("nulls=kept", "bag=no", "kez=id", "a b", "nulls=keep nulls=drop"):
        with pytest.raises(StatementError, match=r"write \.load NAME PATH .*key=id nulls=keep bag=yes"):
            session.execute(f".load p o.csv {wrong}")


def test_what_other_prompts_call_commands(session: Session) -> None:
    relations = session.execute(".relations")
    assert session.execute(".tables") == session.execute(".schema") == relations
    assert session.execute("help") == session.execute("help;") == session.execute(".help")
    for leave in ("quit", "exit;", ".exit", "  quit\n"):
        assert is_complete(leave)
        with pytest.raises(Finished):
            session.execute(leave)
    session.database.load("help", [(1,)], columns=["a"])
    assert session.execute("quit(a) <- help(a).") == [{"a": 1}]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (".laod edge edges.csv", r"there is no command .laod; did you mean .load\?"),
        (".xyz", "there is no command .xyz; .help lists the commands"),
        (".load edge", "write .load NAME PATH"),
        (".count", "write .count RULES"),
        (".insert edge", "write .insert NAME"),
        (".insert edge a b", "is not one path"),
        (".uninstall", "write .uninstall HEAD"),
        (".watch", "write .watch HEAD"),
        (".unwatch tri", "'tri' is not watched"),
        (".watch tir", "tir"),
        ("tri(a) <- egde(a, _).", r"did you mean 'edge'\?\n.*\n +\^\^\^\^"),
        (".install none.rules", "none.rules"),
        (".sql", "write .sql SELECT"),
        (".count select 1; select 2;", "write .count RULES | SELECT"),
        ("select a from egde;", "egde"),
        ("select c from edge;", r"(?s)\"c\" not found.*\n  select c from edge\n +\^"),
        ("create view v as select c from edge;", r"(?s)\"c\" not found.*\n +\^"),
        ("drop view edge;", "unknown view 'edge'"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(session: Session, statement: str, message: str) -> None:
    with pytest.raises((lftj.LftjError, OSError), match=message):
        session.execute(statement)
    assert list(session.database) == ["edge"] and session.execute(".count e(a) <- edge(a, _).") == 2


def test_a_database_installs_nothing() -> None:
    with pytest.raises(StatementError, match="needs a workspace"):
        Session(lftj.Database(), list).execute(f".install {TRI}")
    with pytest.raises(StatementError, match="needs a workspace"):
        Session(lftj.Database(), list).execute("create view v as select 1")


def test_every_command_is_there_and_helped(session: Session) -> None:
    text = str(session.execute(".help"))
    for command in HELP:
        assert f".{command}" in text and hasattr(session, f"_{command}")
    with pytest.raises(Finished):
        session.execute(".quit")
    assert session.execute("  ") is None


@pytest.mark.parametrize(
    ("text", "word", "offered"),
    [
        (".in", ".in", [".install", ".insert"]),
        (".sc", ".sc", [".schema"]),
        (".watch ed", "ed", ["edge"]),
        (".load ed", "ed", ["edge"]),
        ("p(x) <- ", "", ["edge", "name", "p", "x"]),
        ("p(x) <- edge(", "", ["a", "b", "p", "x"]),
        ("p(x) <- edge(a: x), name(s", "s", ["surname"]),
        ("p(x) <- (edge(x, _) ; na", "na", ["name"]),
        ("n[x] = count_", "count_", []),
        ("n[x] = cou", "cou", ["count"]),
        (".count p(y) <- edge(x, y), y = co", "co", ["coalesce", "concat", "concat_ws", "contains"]),
        ("sel", "sel", ["select"]),
        ("select s", "s", ["surname", "select", "set"]),
        ("SELECT S", "S", ["surname", "SELECT", "SET"]),
        ("select * from ", "", ["edge", "name"]),
        ("select * from edge join n", "n", ["name"]),
        ("from name n join edge e on e.", "", ["a", "b"]),
        ("from name n join edge e on n.", "", ["a", "surname"]),
        ("from name where name.s", "s", ["surname"]),
        ("from edge where s", "s", ["select", "set"]),
        (".count select su", "su", ["surname"]),
        ("create view v as select su", "su", ["surname"]),
        ("insert into n", "n", ["name"]),
    ],
)
def test_completions(session: Session, text: str, word: str, offered: list[str]) -> None:
    """The first that are offered; behind nothing more where the word leaves few."""
    session.database.load("name", [(1, "x")], columns=["a", "surname"])
    last, names = completions(session.database, text)
    assert last == word and names[: len(offered)] == offered and (offered or not names)
    if word and len(offered) < 3:
        assert names == offered


@pytest.mark.parametrize(
    ("text", "keywords", "names"),
    [
        (".install h(a) <- e(a, 5).", [".install"], ["h", "e"]),
        (".count select a from e", [".count", "select", "from"], []),
        ("create view v as from e;", ["create", "view", "as", "from"], []),
        ("h(a) <- e(a), x is not null.", ["is not null"], ["h", "e"]),
    ],
)
def test_statements_have_the_colours_of_their_language(
    text: str, keywords: list[str], names: list[str]
) -> None:
    tokens = list(StatementLexer().get_tokens_unprocessed(text))
    assert "".join(value for _, _, value in tokens) == text
    assert all(text.startswith(value, place) for place, _, value in tokens)
    assert [value.lower() for _, kind, value in tokens if kind in Keyword] == keywords
    assert [value for _, kind, value in tokens if kind in Name.Function] == names


def test_statements_are_cut_where_they_end() -> None:
    text = '\n.load e e.csv\np(a) <- e(a, "x."),\n  e(_, a). // that is "all\n'
    text += f"\n.install {TRI[:15]}\n{TRI[15:]}\nq(a)"
    cut = [" ".join(statement.split()) for statement in statements(text.splitlines())]
    assert cut == [
        ".load e e.csv",
        'p(a) <- e(a, "x."), e(_, a). // that is "all',
        f".install {TRI}",
        "q(a)",
    ]
    assert not is_complete('p(a) <- e(a, "b // c."),') and is_complete('p(a) <- e(a, "b // c").')


class Notebook:
    """What the extension asks of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magic: Any = None
        self.display_formatter = DisplayFormatter()

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        assert (kind, name) == ("cell", "lftj")
        self.magic = function


def test_cells_of_a_notebook(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = Notebook()
    lftj.load_ipython_extension(notebook)
    shown = notebook.magic("", f".load edge edges.csv\n{TRI}\n")
    assert shown.to_pydict() == {"a": [1], "b": [2], "c": [3]}
    assert capsys.readouterr().out == "edge: 3 rows\n"
    assert isinstance(notebook.user_ns["db"], lftj.Database)
    shown = notebook.magic("", "select b, b from edge where a > 5;\nfrom edge\nwhere a = 1\norder by b desc")
    assert shown.to_pydict() == {"a": [1, 1], "b": [3, 2]}
    assert "b: [[]]" in capsys.readouterr().out
    notebook.user_ns["ws"] = session.database
    assert notebook.magic("ws", f".install {TRI}") == "tri: 1 row"
    assert notebook.magic("ws", ".watch tri") is None
    notebook.magic("ws", ".erase edge (1, 2)")
    assert capsys.readouterr().out == "- tri(1, 2, 3)\n"
    assert notebook.magic("ws", ".explain").svg().startswith("<svg ")
    notebook.user_ns["x"] = 7
    for name, what in (("x", "an int"), ("y", "no variable")):
        with pytest.raises(StatementError, match=what.removeprefix("an ")):
            notebook.magic(name, TRI)
