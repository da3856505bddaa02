"""How files are to be read, as the command line says it: ``--columns``, ``--bag``, ``--csv-type`` ..."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click

from lftj.errors import SourceError
from lftj.files.csv_options import CsvOptions

Command = Callable[..., Any]
Pairs = Sequence[tuple[str, str]]
"""What ``NAME=...`` says, which may be repeated."""


@dataclass(frozen=True)
class CsvArguments:
    """What the command line says about files, of text above all.

    Attributes:
        options: For all CSV files and lists of edges, None where nothing is said.
        types: Types by column, by relation.
        columns: Names of columns by relation.
        bags: Relations whose equal rows are kept.
    """

    options: CsvOptions | None = None
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    bags: Sequence[str] = ()

    def check(self, sources: Pairs) -> None:
        """Raise UsageError for what is said about no ``NAME=PATH`` that is loaded."""
        names = [name for name, _ in sources]
        said = ("--columns", self.columns), ("--bag", self.bags), ("--csv-type", self.types)
        for option, given in said:
            for name in given:
                if name not in names:
                    raise click.UsageError(f"{option} is about {name!r}, which no --load gives")
        if self.options is not None and not any(may_be_csv(path) for _, path in sources):
            raise click.UsageError("--csv-... says how CSV files are written, and no --load gives one")

    def options_of(self, relation: str, path: str) -> CsvOptions | None:
        """How this file is written; None for one that is of another kind, or about which nothing is said."""
        types = self.types.get(relation)
        if not may_be_csv(path) or (self.options is None and not types):
            return None
        return replace(self.options or CsvOptions(), types=types or {})

    def options_of_changes(self, path: str) -> CsvOptions | None:
        """How a file of changes is written, whose types are those of the relation."""
        return self.options if may_be_csv(path) else None


def may_be_csv(path: str) -> bool:
    """Whether the name is not that of another kind of file.

    >>> [may_be_csv(path) for path in ("a.csv.gz", "a.txt", "-", "a.parquet", "a.jsonl")]
    [True, True, True, False, False]
    """
    from lftj.files.whole_files import CSV, EDGES, kind_of_name

    return kind_of_name(path) in (None, CSV, EDGES) and not os.path.isdir(path)


class _Assignment(click.ParamType):
    """``NAME=VALUE``, of which VALUE is what an option of a relation or column says."""

    def __init__(self, form: str) -> None:
        self.name = form

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, said = value.partition("=")
        if not (name and equals and said) or ("." in self.name and "." not in name):
            self.fail(f"{value!r} is not of the form {self.name}", param, ctx)
        return name, said


def csv_arguments(command: Command) -> Command:
    """Add the options to a command, which takes them together as ``csv``."""

    @functools.wraps(command)
    def with_options(columns: Pairs, bag: Sequence[str], csv_type: Pairs, **given: Any) -> Any:
        said = {name: given.pop(f"csv_{name}") for name in _FIELDS}
        named = {name: [column.strip() for column in listed.split(",")] for name, listed in columns}
        types: dict[str, dict[str, str]] = {}
        for place, name in csv_type:
            relation, _, column = place.partition(".")
            types.setdefault(relation, {})[column] = name
        try:
            options = _options_of(said)
            for of_relation in types.values():
                CsvOptions(types=of_relation)
        except ValueError as error:
            raise click.UsageError(f"--csv-...: {error}") from None
        return command(csv=CsvArguments(options, types, named, bag), **given)

    for option in reversed(_OPTIONS):
        with_options = option(with_options)
    return with_options


def _options_of(said: Mapping[str, Any]) -> CsvOptions | None:
    """None where nothing is said.  Raises ValueError."""
    options = {name: value for name, value in said.items() if value not in (None, ())}
    if options.get("delimiter") in ("\\t", "tab"):
        options["delimiter"] = "\t"
    if options.get("quote") == "":
        options["quote"] = None
    return CsvOptions(**options) if options else None


_FIELDS = ("delimiter", "quote", "header", "nulls", "encoding")
"""Of `CsvOptions`, each with an option of that name."""

_OPTIONS = (
    click.option(
        "--columns",
        type=_Assignment("NAME=COLUMNS"),
        multiple=True,
        help="The columns of relation NAME, such as edge=src,dst: names for a text file without names, a "
        "choice of those of other files; may be repeated.",
    ),
    click.option(
        "--bag",
        metavar="NAME",
        multiple=True,
        help="Keep equal rows of relation NAME, so that counts and sums take each; may be repeated.",
    ),
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
        type=_Assignment("NAME.COLUMN=TYPE"),
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


def on_the_command_line(error: SourceError) -> SourceError:
    """The error with the way out that the command line has, where it names that of Python."""
    if "lftj.CsvOptions(" in str(error):
        return SourceError(f"{error} (on the command line: --csv-type and its like, see --help)")
    if "columns=[" in str(error):
        return SourceError(f"{error} (on the command line: --columns NAME=...)")
    return error
