"""What may stand on the command line: each argument and option once; commands say which they take.

Invariant: an option is the same in all commands that take it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from lftj.errors import LftjError
from lftj.files import sink
from lftj.values.names import check_relation_name

Command = Callable[..., Any]
Parameter = Callable[[Command], Command]


class Text(click.ParamType):
    """What ``read`` makes of a text; the OSError, ValueError or LftjError that it raises is shown."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(value)
        except (OSError, ValueError, LftjError) as error:
            self.fail(str(error), param, ctx)


def _assignment(form: str, check: Callable[..., object] = lambda *parts: None) -> Text:
    """``NAME=VALUE``, or ``NAME.COLUMN=VALUE``, as its parts, which ``check`` lets through."""

    def read(text: str) -> tuple[str, ...]:
        place, _, value = text.rpartition("=") if "." in form else text.partition("=")
        relation, _, column = place.partition(".")
        parts = (relation, column, value) if "." in form else (place, value)
        if not all(parts):
            raise ValueError(f"{text!r} is not of the form {form}")
        check(*parts)
        return parts

    return Text(form, read)


def _file_to_write(check: Callable[[str], object]) -> Text:
    """A path that ``check`` lets through, or ``-`` for stdout."""

    def read(path: str) -> str:
        if path != "-":
            check(path)
        return path

    return Text("PATH", read)


def _whole(least: int, example: str) -> Text:
    """A whole number, ``least`` or more."""

    def read(text: str) -> int:
        number = int(text) if text.lstrip("-").isdecimal() else least - 1
        if number < least:
            raise ValueError(f"{text!r} is no whole number from {least} on, such as {example}")
        return number

    return Text("N", read)


def _variables(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(name.isidentifier() for name in names):
        raise ValueError(f"{text!r} is not a list of variables such as a,b,c")
    return names


def _check_target(relation: str, path: str) -> None:
    check_relation_name(relation)
    if path != "-":
        sink.check_target(path)


SOURCE = _assignment("NAME=PATH", lambda relation, path: check_relation_name(relation))
"""A relation and the file that it is read from."""

TARGET = _assignment("NAME=PATH", _check_target)
"""A relation and the file, or ``-``, that it is written to."""

ANY_FILE = _file_to_write(sink.check_place)
"""One of whatever format."""

RULES = (
    click.argument("rules", required=False, metavar="[RULES]"),
    click.option("-e", "--rule", "text", metavar="TEXT", help="The rules themselves, in place of a file."),
)
SQL = click.argument("sql", metavar="SQL")
SOURCES = click.option(
    "--load",
    "sources",
    type=SOURCE,
    multiple=True,
    help="Load the file PATH, or - for stdin, as relation NAME; may be repeated. Parquet, CSV, Arrow "
    "IPC, JSON lines or a list of edges as text; also a folder of Parquet files, a pattern or a URL.",
)
COLUMNS = click.option(
    "--columns",
    type=_assignment("NAME=COLUMNS"),
    multiple=True,
    help="The columns of relation NAME, such as edge=src,dst: names for a text file without names, a "
    "choice of those of other files; may be repeated.",
)
KEY = click.option(
    "--key",
    "keys",
    type=_assignment("NAME=COLUMNS"),
    multiple=True,
    help="Columns of relation NAME in which no two rows agree, such as orders=id; may be repeated.",
)
BAG = click.option(
    "--bag",
    "bags",
    metavar="NAME",
    multiple=True,
    help="Keep equal rows of relation NAME, so that counts and sums take each; may be repeated.  SQL keeps"
    " them always.",
)
CSV_FORMAT = (
    click.option(
        "--csv-delimiter", metavar="CHAR", help="Between the fields of CSV files, such as ; or tab."
    ),
    click.option("--csv-quote", metavar="CHAR", help="Around fields of CSV files; '' for nothing."),
    click.option(
        "--csv-header/--no-csv-header",
        default=None,
        help="Whether the first line of CSV files holds column names.  [default: unless it is numbers]",
    ),
    click.option(
        "--csv-type",
        "csv_types",
        type=_assignment("NAME.COLUMN=TYPE"),
        multiple=True,
        help="The type of a column of a CSV file, such as edge.id=string; may be repeated.",
    ),
    click.option(
        "--csv-null",
        "csv_nulls",
        multiple=True,
        metavar="TEXT",
        help="What is NULL in CSV files; may be repeated.",
    ),
    click.option("--csv-encoding", metavar="NAME", help="Of CSV files, such as latin-1.  [default: utf-8]"),
)
CSV = (COLUMNS, BAG, *CSV_FORMAT)
SQL_DATA = (
    SOURCES,
    click.option(
        "--rename",
        "renames",
        type=_assignment("RELATION.COLUMN=NAME"),
        multiple=True,
        help="Give a column that --load brings another name; may be repeated.",
    ),
    click.option(
        "--nulls",
        type=click.Choice(["refuse", "drop", "keep"]),
        help="What to do about rows with NULL.  [default: refuse; of SQL keep]",
    ),
    COLUMNS,
    KEY,
    *CSV_FORMAT,
)
"""What is loaded for SQL, with all equal rows."""

DATA = (*SQL_DATA, BAG)
ONE_HEAD = (
    click.option("--head", metavar="NAME", help="The relation to compute, if not the last rule's."),
    click.option(
        "--order",
        type=Text("VARIABLES", _variables),
        help="Use this key order, such as a,b,c; do not choose one.",
    ),
)
THREADS = click.option("--threads", type=_whole(1, "4"), help="Threads to join with.  [default: all cores]")
OUT = click.option(
    "--out",
    type=_file_to_write(sink.check_target),
    help=f"Write the rows to PATH, in the format of its suffix ({', '.join(sink.FORMATS)}), or - for CSV "
    "on stdout.  Without it, a terminal gets a table of the first rows and anything else gets CSV.",
)
ROWS = (
    *ONE_HEAD,
    THREADS,
    click.option("--order-by", metavar="COLUMNS", help="Sort the rows, such as by 'price desc, item'."),
    click.option("--limit", type=_whole(0, "10"), help="The first rows in that order only."),
    click.option("--count", is_flag=True, help="Print the number of rows only; none of them is built."),
    OUT,
)
"""What :func:`lftj.shell.shell.show_rows` takes."""


def picture(text: str) -> Parameter:
    """``--svg``; ``text``: what it writes."""
    return click.option("--svg", type=ANY_FILE, help=text)


def taking(*parameters: Parameter, **together: type[Any]) -> Parameter:
    """Add parameters to a command, in their order.

    ``together``: dataclasses, each made of the parameters that have its fields' names, by what the command
    takes it as.
    """

    def with_parameters(command: Command) -> Command:
        @functools.wraps(command)
        def gathering(**given: Any) -> Any:
            for argument, kind in together.items():
                names = [each.name for each in fields(kind) if each.name in given]
                given[argument] = kind(**{name: given.pop(name) for name in names})
            return command(**given)

        taken: Command = gathering
        for add in reversed(parameters):
            taken = add(taken)
        return taken

    return with_parameters
