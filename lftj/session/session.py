"""`Session`: statements typed one after the other over one database, for the prompt and for notebooks.

A statement is one or several rules, whose last head is shown, or SQL (a SELECT, CREATE VIEW, INSERT), or a
command: ``.load edge edges.csv``.  Rules end with a dot and SQL with a semicolon, so they may go over several
lines.

Invariants

1. A statement that fails raises an LftjError or OSError and leaves the database as it was.
2. A session knows no terminal: what statements answer is returned, what watched heads do is said by ``say``.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from lftj.errors import LftjError
from lftj.files.sink import batches_of
from lftj.session.sql_statements import (
    ViewText,
    created_view,
    dropped_view,
    is_sql,
    is_whole,
    sql_statements,
    views_of,
)
from lftj.session.typed_rows import fitting, typed_rows
from lftj.values.names import check_relation_name
from lftj.values.shown_text import counted
from lftj.values.spelling import literal

if TYPE_CHECKING:
    import pyarrow as pa

    from lftj.database.database import Database

Answer = Callable[[Iterator["pa.RecordBatch"]], object]
"""What a query's rows become: a text to print, a table to show."""

HELP = {
    "load": (
        "NAME PATH [COLUMNS] [key=id nulls=keep bag=yes]",
        "load a file, folder, pattern or URL as relation NAME; columns as a,b,c",
    ),
    "relations": ("", "what is loaded and installed, with columns and rows; so do .tables and .schema"),
    "sql": ("SELECT", "answer it, whatever it begins with; without .sql for select, with, from, values"),
    "explain": (
        "[RULES | SELECT | HEAD]",
        "how they would run; how an installed head is kept; alone: the strata",
    ),
    "analyze": ("RULES | SELECT", "run them, and show what was measured beside the estimates"),
    "count": ("RULES | SELECT", "the number of rows only"),
    "install": ("RULES | PATH", "keep the heads of rules, or views of SQL, up to date from now on"),
    "uninstall": ("HEAD...", "take heads away"),
    "insert": ("NAME (1, 2), ... | PATH", "insert rows, in one transaction"),
    "erase": ("NAME (1, 2), ... | PATH", "erase rows, in one transaction"),
    "watch": ("HEAD", "show each change of an installed head from now on"),
    "unwatch": ("HEAD", "no more"),
    "stats": ("[PATH]", "memory and commits so far; to PATH as a picture, SVG"),
    "help": ("", "this; help without the dot, too"),
    "quit": ("", "leave; so do quit, exit and Ctrl-D"),
}
"""Each command's arguments and what it does."""

_OF_LOAD = {"key", "nulls", "bag"}

ELSEWHERE = {"tables": "relations", "schema": "relations", "exit": "quit"}
"""What other prompts call some."""

_PLAIN = re.compile(r"\s*(help|exit|quit)\s*[;.]?\s*")
"""Commands that are meant without a dot before them."""

TAKE_RULES = ("explain", "analyze", "count", "install")
TAKE_SQL = ("sql", *TAKE_RULES)
COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//.*')


class StatementError(LftjError):
    """A command that is wrong: an unknown one, or arguments that it can't take."""


class Finished(Exception):
    """``.quit``."""


@runtime_checkable
class Keeps(Protocol):
    """What installs rules: a workspace."""

    def install(self, program: str, *, progress: bool | None = None) -> None: ...
    def create_view(
        self, name: str, sql: str, *, replace: bool = False, progress: bool | None = None
    ) -> None: ...
    def drop_view(self, name: str) -> None: ...
    def uninstall(self, *heads: str) -> None: ...
    def subscribe(self, head: str, callback: Callable[[Any], None]) -> Callable[[], None]: ...
    def transaction(self) -> Any: ...
    def explain_maintenance(self, head: str | None = None) -> str: ...


def is_complete(text: str) -> bool:
    """Whether a statement is whole: rules end with a dot, SQL with a semicolon, commands with their line.

    >>> is_complete("tri(a, b, c) <- edge(a, b),"), is_complete("edge(b, c), edge(a, c).  // three")
    (False, True)
    >>> is_complete(".load edge edges.csv"), is_complete(".explain p(a) <- edge(a, b),")
    (True, False)
    >>> is_complete("quit"), is_complete("help;"), is_complete("helper(a)")
    (True, True, False)
    >>> is_complete("select a from t"), is_complete("select ';' from t;"), is_complete(".count select a")
    (False, True, False)
    """
    if _PLAIN.fullmatch(text):
        return True
    command, rest = words_of(text) if text.lstrip().startswith(".") else ("", text)
    if (command in TAKE_SQL or not command) and is_sql(rest):
        return is_whole(rest)
    if command and not ("<-" in rest and command in TAKE_RULES):
        return True
    return COMMENT.sub(lambda match: match[1] or "", text).rstrip().endswith(".")


def statements(lines: Iterable[str]) -> Iterator[str]:
    """The statements of several lines, such as those of a notebook's cell, each as soon as it is whole."""
    gathered = ""
    for line in lines:
        gathered += f"{line.rstrip()}\n" if gathered or line.strip() else ""
        if gathered and is_complete(gathered):
            yield gathered
            gathered = ""
    if gathered:
        yield gathered


def words_of(statement: str) -> tuple[str, str]:
    """A command and what stands behind it."""
    command, *rest = statement.strip().removeprefix(".").split(maxsplit=1) or [""]
    return command, rest[0].strip() if rest else ""


class Session:
    """Statements over ``database``, which may be a workspace.

    >>> import lftj
    >>> db = lftj.Database()
    >>> db.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
    >>> session = Session(db, lambda batches: [batch.to_pylist() for batch in batches])
    >>> session.execute("two(a, c) <- edge(a, b), edge(b, c).")
    [[{'a': 1, 'c': 3}]]
    >>> session.execute(".count two(a, c) <- edge(a, b), edge(b, c).")
    1
    """

    def __init__(self, database: Database, answer: Answer, say: Callable[[object], None] = print) -> None:
        self.database = database
        self.answer = answer
        self.say = say
        self._watched: dict[str, Callable[[], None]] = {}

    def execute(self, statement: str) -> object:
        """Carry out one statement; returns what is to be shown, None where there is nothing.

        Raises LftjError, OSError, and Finished.
        """
        if not statement.strip():
            return None
        if (plain := _PLAIN.fullmatch(statement)) is not None:
            statement = f".{plain[1]}"
        if is_sql(statement):
            return self._carry_out_sql(statement)
        if not statement.lstrip().startswith("."):
            return self.answer(self.database.stream(statement, threads=None, progress=None))
        command, rest = words_of(statement)
        command = ELSEWHERE.get(command, command)
        if command not in HELP:
            near = difflib.get_close_matches(command, HELP, n=1)
            hint = f"did you mean .{near[0]}?" if near else ".help lists the commands"
            raise StatementError(f"there is no command .{command}; {hint}")
        return getattr(self, f"_{command}")(rest)

    def _carry_out_sql(self, text: str) -> object:
        """What the last of some statements answers."""
        shown: object = None
        for start, end, _ in sql_statements(text):
            statement = text[start:end]
            if (view := created_view(statement)) is not None:
                shown = self._create(view)
            elif (name := dropped_view(statement)) is not None:
                self._keeper("sql").drop_view(name)
                self._watched.pop(name, None)
                shown = None
            else:
                shown = self._sql(statement)
        return shown

    def _create(self, view: ViewText) -> object:
        self._keeper("install").create_view(view.name, view.sql, replace=view.replace, progress=True)
        return self._sizes([view.name])

    # -- commands: each takes what stands behind it -------------------------------------------

    def _load(self, rest: str) -> object:
        words = shlex.split(rest)
        pairs = [word.partition("=") for word in words[2:] if "=" in word]
        columns = [word for word in words[2:] if "=" not in word]
        said = {option: value for option, _, value in pairs}
        if len(words) < 2 or len(columns) > 1 or len(said) < len(pairs) or not said.keys() <= _OF_LOAD:
            raise self._misused("load")
        if said.get("nulls", "keep") not in ("keep", "drop") or said.get("bag", "yes") != "yes":
            raise self._misused("load")
        name, path = words[:2]
        check_relation_name(name)
        self.database.load(
            name,
            path,
            columns[0].split(",") if columns else None,
            nulls=said.get("nulls", "refuse"),  # type: ignore[arg-type]
            bag="bag" in said,
            key=said["key"].split(",") if "key" in said else (),
            progress=True,
        )
        return self._sizes([name])

    def _relations(self, rest: str) -> object:
        return repr(self.database.relations)

    def _sql(self, rest: str) -> object:
        return self.answer(iter(batches_of(self.database.sql(self._select("sql", rest)))))

    def _explain(self, rest: str) -> object:
        if is_sql(rest):
            return self.database.explain_sql(self._select("explain", rest))
        if "<-" in rest:
            return self.database.explain(rest)
        return self._keeper("explain").explain_maintenance(rest or None)

    def _analyze(self, rest: str) -> object:
        if is_sql(rest):
            return self.database.explain_sql(self._select("analyze", rest), analyze=True)
        return self.database.explain(self._rules("analyze", rest), analyze=True)

    def _count(self, rest: str) -> object:
        if is_sql(rest):
            return self.database.sql(self._select("count", rest)).num_rows
        return self.database.count(self._rules("count", rest))

    def _install(self, rest: str) -> object:
        keeper = self._keeper("install")
        before = set(self.database)
        file = "view"
        if "<-" not in rest and not is_sql(rest):
            file = self._one("install", rest)
            rest = Path(file).read_text(encoding="utf-8-sig")
        if is_sql(rest):
            for view in views_of(rest, file):
                with view.placed():
                    self._create(view)
        else:
            keeper.install(rest, progress=True)
        return self._sizes([name for name in self.database if name not in before])

    def _uninstall(self, rest: str) -> object:
        heads = rest.split()
        if not heads:
            raise self._misused("uninstall")
        self._keeper("uninstall").uninstall(*heads)
        for head in heads:
            self._watched.pop(head, None)
        return None

    def _insert(self, rest: str) -> object:
        return self._change("insert", rest)

    def _erase(self, rest: str) -> object:
        return self._change("erase", rest)

    def _change(self, command: str, rest: str) -> object:
        keeper = self._keeper(command)
        name, _, rows = rest.partition(" ")
        if not rows.strip():
            raise self._misused(command)
        with keeper.transaction() as transaction:
            getattr(transaction, command)(name, _rows(rows.strip(), self.database[name].schema))
        done = transaction.stats
        return f"{done.inserted.get(name, 0):,} inserted, {done.erased.get(name, 0):,} erased"

    def _watch(self, rest: str) -> object:
        head = self._one("watch", rest)
        if head not in self._watched:
            self._watched[head] = self._keeper("watch").subscribe(head, lambda table: self._tell(head, table))
        return None

    def _tell(self, head: str, changes: pa.Table) -> None:
        for row in changes.to_pylist():
            weight = row.pop("weight")
            sign = {1: "+", -1: "-"}.get(weight, f"{weight:+}")
            values = ("null" if value is None else literal(value) for value in row.values())
            self.say(f"{sign} {head}({', '.join(values)})")

    def _unwatch(self, rest: str) -> object:
        stop = self._watched.pop(self._one("unwatch", rest), None)
        if stop is None:
            raise StatementError(f"{rest!r} is not watched")
        stop()
        return None

    def _stats(self, rest: str) -> object:
        keeper: Any = self._keeper("stats")
        stats = keeper.stats
        if rest:
            Path(self._one("stats", rest)).write_text(stats.svg(), encoding="utf-8")
            return None
        return stats

    def _help(self, rest: str) -> object:
        width = max(len(name) + len(arguments) for name, (arguments, _) in HELP.items()) + 2
        lines = [
            "a rule, ended by a dot, shows its head: tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).",
            "SQL, ended by a semicolon: select ...;  create view v as select ...;  insert into t values (1);",
        ]
        lines += [f"{f'.{name} {arguments}':<{width}}  {what}" for name, (arguments, what) in HELP.items()]
        return "\n".join(lines)

    def _quit(self, rest: str) -> object:
        raise Finished

    def _sizes(self, names: Iterable[str]) -> str:
        sizes = {name: len(self.database[name]) for name in names}
        return "\n".join(f"{name}: {counted(size, 'row')}" for name, size in sizes.items())

    # -- arguments ----------------------------------------------------------------------------

    def _keeper(self, command: str) -> Keeps:
        if not isinstance(self.database, Keeps):
            raise StatementError(
                f".{command} needs a workspace, and this is a database: maintenance.Workspace()"
            )
        return self.database

    def _rules(self, command: str, rest: str) -> str:
        if "<-" not in rest:
            raise self._misused(command)
        return rest

    def _select(self, command: str, rest: str) -> str:
        cut = list(sql_statements(rest))
        if len(cut) != 1:
            raise self._misused(command)
        start, end, _ = cut[0]
        return rest[start:end]

    def _one(self, command: str, rest: str) -> str:
        words = shlex.split(rest)
        if len(words) != 1:
            raise self._misused(command)
        return words[0]

    def _misused(self, command: str) -> StatementError:
        return StatementError(f"write .{command} {HELP[command][0]}")


def _rows(text: str, schema: pa.Schema) -> object:
    """Typed rows for a relation, or the path of a file."""
    if not text.startswith("("):
        (path, *more) = shlex.split(text)
        if more:
            raise StatementError(f"{text!r} is not one path; rows are written as (1, 2), (2, 3)")
        return path
    try:
        return fitting(typed_rows(text), schema)
    except ValueError as error:
        raise StatementError(
            f'{text!r} are no rows: write them as (1, 2026-01-31), (2, null); texts as "tea" ({error})'
        ) from None
