"""`Inputs`: what the command line says of the rules to run and the files to load, and how they are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from lftj.errors import SourceError, UnusableNameError
from lftj.files.csv_options import CsvOptions
from lftj.files.incoming import STDIN, NamedBytes, feed_name, is_feed
from lftj.values.shown_text import counted

if TYPE_CHECKING:
    from lftj.database.database import Database
    from lftj.storage.relation import Nulls

Pairs = Sequence[tuple[str, str]]
"""What ``NAME=...`` says, which may be repeated."""

_CSV_FIELDS = ("delimiter", "quote", "header", "nulls", "encoding")
"""Of `CsvOptions`, in the order of the options."""


@dataclass
class Inputs:
    """The options of :mod:`lftj.shell.options` that are about rules and files.  Raises UsageError.

    Attributes:
        names: Of columns, by relation.
        key: Columns that tell rows apart, by relation.
        types: Of columns of CSV files, by relation.
        csv: How CSV files and lists of edges are written otherwise; None where nothing is said.
        nulls: None where nothing is said: refuse them.
    """

    rules: str | None = None
    text: str | None = None
    sources: Pairs = ()
    renames: Sequence[tuple[str, str, str]] = ()
    nulls: Nulls | None = None
    columns: Pairs = ()
    keys: Pairs = ()
    bags: Sequence[str] = ()
    csv_delimiter: str | None = None
    csv_quote: str | None = None
    csv_header: bool | None = None
    csv_types: Sequence[tuple[str, str, str]] = ()
    csv_nulls: Sequence[str] = ()
    csv_encoding: str | None = None

    def __post_init__(self) -> None:
        self.names = _lists(self.columns)
        self.key = _lists(self.keys)
        self.types: dict[str, dict[str, str]] = {}
        for relation, column, kind in self.csv_types:
            self.types.setdefault(relation, {})[column] = kind
        try:
            self.csv = self._csv_options()
            for types in self.types.values():
                CsvOptions(types=types)
        except ValueError as error:
            raise click.UsageError(f"--csv-...: {error}") from None

    def _csv_options(self) -> CsvOptions | None:
        delimiter = "\t" if self.csv_delimiter in ("\\t", "tab") else self.csv_delimiter
        said = (delimiter, self.csv_quote, self.csv_header, self.csv_nulls, self.csv_encoding)
        options: dict[str, Any] = dict(zip(_CSV_FIELDS, said, strict=True))
        options = {name: value for name, value in options.items() if value not in (None, ())}
        if self.csv_quote == "":
            options["quote"] = None
        return CsvOptions(**options) if options else None

    def program(self, changes: Pairs = ()) -> str:
        """The rules, from wherever it says; what is wrong with the command itself is found here.

        ``changes``: files that are read as well.
        """
        names = [name for name, _ in self.sources]
        for name in names:
            if names.count(name) > 1:
                raise click.UsageError(f"--load gives relation {name!r} twice")
        self.refuse_unloaded("--rename", [relation for relation, _, _ in self.renames])
        if [self.rules, *(path for _, path in (*self.sources, *changes))].count(STDIN) > 1:
            raise click.UsageError("stdin (-) can be read once only")
        if (self.rules is None) == (self.text is None):
            raise click.UsageError("give the rules once: a file, - for stdin, or -e TEXT")
        if self.rules is not None and not os.path.exists(self.rules) and "<-" in self.rules:
            raise click.UsageError(
                "RULES is a file; rules themselves stand behind -e, as in -e 'h(a) <- ...'"
            )
        return text_of(str(self.rules)) if self.text is None else self.text

    def as_sql(self, sql: str | None = None) -> Inputs:
        """The same for SQL, in which equal rows count, and NULLs are kept where nothing else is said.

        ``sql``: the text, or where it is to be read from, in place of rules.
        """
        found = replace(
            self, bags=[name for name, _ in self.sources if name not in self.key], nulls=self.nulls or "keep"
        )
        if sql is None:
            return found
        is_file = sql == STDIN or sql.endswith(".sql")
        return replace(found, rules=sql) if is_file else replace(found, text=sql)

    def load_into(self, database: Database) -> None:
        """Load the files, and say how many rows were dropped."""
        for option, about in (
            ("--columns", self.names),
            ("--key", self.key),
            ("--bag", self.bags),
            ("--csv-type", self.types),
        ):
            self.refuse_unloaded(option, about)
        if self.csv is not None and not any(may_be_csv(path) for _, path in self.sources):
            raise click.UsageError("--csv-... says how CSV files are written, and no --load gives one")
        for name, path in self.sources:
            renamed = {column: new for relation, column, new in self.renames if relation == name}
            if renamed and name in self.names:
                raise click.UsageError(f"--columns and --rename are both about {name!r}: give one of them")
            source = NamedBytes(path) if is_feed(path) else path
            columns = renamed or self.names.get(name)
            try:
                database.load(
                    name,
                    source,
                    columns,
                    nulls=self.nulls or "refuse",
                    progress=True,
                    csv=self._csv_of(name, path),
                    bag=name in self.bags,
                    key=self.key.get(name, ()),
                )
            except UnusableNameError as error:
                wanted = "".join(f" --rename '{name}.{old}={new}'" for old, new in error.renames.items())
                raise UnusableNameError(f"{str(error).rpartition(': give ')[0]}: add{wanted}") from None
            except SourceError as error:
                raise _on_the_command_line(error) from None
            say_dropped(name, database.relations[name].dropped_rows)

    def csv_of_changes(self, path: str) -> CsvOptions | None:
        """How a file of changes is written, whose types are those of the relation."""
        return self.csv if may_be_csv(path) else None

    def _csv_of(self, relation: str, path: str) -> CsvOptions | None:
        """How this file is written; None for one that is of another kind, or about which nothing is said."""
        types = self.types.get(relation)
        if not may_be_csv(path) or (self.csv is None and not types):
            return None
        return replace(self.csv or CsvOptions(), types=types or {})

    def refuse_unloaded(self, option: str, names: Iterable[str]) -> None:
        """Raise UsageError where an option is about a relation that is not loaded."""
        loaded = [name for name, _ in self.sources]
        for name in names:
            if name not in loaded:
                raise click.UsageError(f"{option} is about {name!r}, which no --load gives")


def _lists(said: Pairs) -> dict[str, list[str]]:
    """The columns that are listed, by relation."""
    return {name: [each.strip() for each in listed.split(",")] for name, listed in said}


def text_of(path: str) -> str:
    """What stands in a file, or comes on stdin.  Raises OSError, also where it is no text."""
    with sys.stdin.buffer if path == STDIN else open(path, "rb") as file:
        content: bytes = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OSError(f"{feed_name(path)} is not UTF-8 text (byte {error.start})") from error


def may_be_csv(path: str) -> bool:
    """Whether the name is not that of another kind of file.

    >>> [may_be_csv(path) for path in ("a.csv.gz", "a.txt", "-", "a.parquet", "a.jsonl")]
    [True, True, True, False, False]
    """
    from lftj.files.whole_files import CSV, EDGES, kind_of_name

    return kind_of_name(path) in (None, CSV, EDGES) and not os.path.isdir(path)


def _on_the_command_line(error: SourceError) -> SourceError:
    """The error with the way out that the command line has, where it names that of Python."""
    if "lftj.CsvOptions(" in str(error):
        return SourceError(f"{error} (on the command line: --csv-type and its like, see --help)")
    if "columns=[" in str(error):
        return SourceError(f"{error} (on the command line: --columns NAME=...)")
    return error


def say(kind: str, message: object) -> None:
    """A message to the user, such as ``note: ...``, on stderr."""
    click.echo(f"{kind}: {message}", err=True)


def say_dropped(name: str, n_rows: int) -> None:
    """Of a relation or file; nothing of none."""
    if n_rows:
        say("note", f"{name}: {counted(n_rows, 'row')} with NULL dropped")
