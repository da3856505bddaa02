"""The console script ``lftj``: rules over files, from the shell.

Invariants

1. Results go to stdout or to the file of ``--out``; everything else (progress,
   warnings, errors) goes to stderr.
2. The exit status is 0, 1 (the run failed: bad data, a wrong rule), 2 (the
   command itself was wrong; nothing was read), or 128 and the number of the
   signal that interrupted it.
3. A failed run says what went wrong in one message without a traceback, and
   leaves no half-written file (:mod:`lftj.files.sink`).

The engine is imported by the commands, not by this module: ``lftj --help``
should not wait for it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

import lftj
from lftj.errors import LftjError, SourceError, UnusableNameError
from lftj.files import sink
from lftj.files.incoming import STDIN, NamedBytes, feed_name, is_feed
from lftj.shell.csv_arguments import Command, CsvArguments, Pairs, csv_arguments, on_the_command_line
from lftj.values.names import check_relation_name

if TYPE_CHECKING:
    from lftj.database.database import Database
    from lftj.storage.relation import Nulls

INTERRUPTED = 128
"""The exit status after a signal is this and the signal's number, as the shell has it."""

TERMINAL_ROWS = 40
"""Rows of a result that are shown on a terminal."""


class Source(click.ParamType):
    """``NAME=PATH``."""

    name = "NAME=PATH"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, path = value.partition("=")
        if not (equals and path):
            self.fail(f"{value!r} is not of the form NAME=PATH", param, ctx)
        try:
            check_relation_name(name)
        except UnusableNameError as error:
            self.fail(str(error), param, ctx)
        return name, path


class Rename(click.ParamType):
    """``RELATION.COLUMN=NAME``."""

    name = "RELATION.COLUMN=NAME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str, str]:
        place, _, name = value.rpartition("=")
        relation, _, column = place.partition(".")
        if not (relation and column and name):
            self.fail(f"{value!r} is not of the form RELATION.COLUMN=NAME", param, ctx)
        return relation, column, name


class Order(click.ParamType):
    """Variables with commas between them."""

    name = "VARIABLES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = [name.strip() for name in value.split(",")]
        if not all(name.isidentifier() for name in names):
            self.fail(f"{value!r} is not a list of variables such as a,b,c", param, ctx)
        return names


def _checked(check: Callable[[str], object]) -> Callable[..., str | None]:
    """Lets through a path to write to that passes, and ``-``."""

    def checked(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value not in (None, "-"):
            try:
                check(value)
            except OSError as error:
                raise click.BadParameter(str(error), ctx, param) from error
        return value

    return checked


place = _checked(sink.check_place)
"""A path of whatever format, or ``-``."""


def write_text(where: str, text: str) -> None:
    """To what :func:`place` has let through."""
    if where == "-":
        click.echo(text, nl=False)
    else:
        Path(where).write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Inputs:
    """What the command line says of the rules to run and the files to load."""

    rules: str | None = None
    text: str | None = None
    sources: Pairs = ()
    renames: Sequence[tuple[str, str, str]] = ()
    nulls: Nulls = "refuse"
    csv: CsvArguments = CsvArguments()

    def program(self, changes: Pairs = ()) -> str:
        """The rules, from wherever it says; what is wrong with the command itself is found here.

        ``changes``: files that are read as well.
        """
        names = [name for name, _ in self.sources]
        for name in names:
            if names.count(name) > 1:
                raise click.UsageError(f"--load gives relation {name!r} twice")
        for relation, _, _ in self.renames:
            if relation not in names:
                raise click.UsageError(f"--rename is about {relation!r}, which no --load gives")
        if [self.rules, *(path for _, path in (*self.sources, *changes))].count(STDIN) > 1:
            raise click.UsageError("stdin (-) can be read once only")
        if (self.rules is None) == (self.text is None):
            raise click.UsageError("give the rules once: a file, - for stdin, or -e TEXT")
        if self.text is not None:
            return self.text
        with sys.stdin.buffer if self.rules == STDIN else open(str(self.rules), "rb") as file:
            content: bytes = file.read()
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise OSError(f"{feed_name(str(self.rules))} is not UTF-8 text (byte {error.start})") from error

    def load_into(self, database: Database) -> None:
        """Load the files, and say how many rows were dropped."""
        csv = self.csv
        csv.check(self.sources)
        for name, path in self.sources:
            renamed = {column: new for relation, column, new in self.renames if relation == name}
            if renamed and name in csv.columns:
                raise click.UsageError(f"--columns and --rename are both about {name!r}: give one of them")
            source = NamedBytes(path) if is_feed(path) else path
            columns = renamed or csv.columns.get(name)
            options = csv.options_of(name, path)
            try:
                bag = name in csv.bags
                database.load(name, source, columns, nulls=self.nulls, progress=True, csv=options, bag=bag)
            except UnusableNameError as error:
                wanted = "".join(f" --rename '{name}.{old}={new}'" for old, new in error.renames.items())
                raise UnusableNameError(f"{str(error).rpartition(': give ')[0]}: add{wanted}") from None
            except SourceError as error:
                raise on_the_command_line(error) from None
            dropped = database.relations[name].dropped_rows
            if dropped:
                say("note", f"{name}: {dropped:,} row{'' if dropped == 1 else 's'} with NULL dropped")


RULES = (
    click.argument("rules", required=False, metavar="[RULES]"),
    click.option("-e", "--rule", "text", metavar="TEXT", help="The rules themselves, in place of a file."),
)
DATA = (
    click.option(
        "--load",
        "sources",
        type=Source(),
        multiple=True,
        help="Load the file PATH, or - for stdin, as relation NAME; may be repeated. Parquet, CSV, Arrow "
        "IPC, JSON lines or a list of edges as text; also a folder of Parquet files, a pattern or a URL.",
    ),
    click.option(
        "--rename",
        "renames",
        type=Rename(),
        multiple=True,
        help="Give a column that --load brings another name; may be repeated.",
    ),
    click.option(
        "--nulls",
        type=click.Choice(["refuse", "drop", "keep"]),
        default="refuse",
        show_default=True,
        help="What to do about rows with NULL.",
    ),
)
ONE_HEAD = (
    click.option("--head", metavar="NAME", help="The relation to compute, if not the last rule's."),
    click.option("--order", type=Order(), help="Use this key order, such as a,b,c; do not choose one."),
)


def picture(text: str) -> Callable[[Command], Command]:
    """``--svg``; ``text``: what it writes."""
    return click.option("--svg", metavar="PATH", callback=place, help=text)


def taking(*parameters: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add parameters to a command, in their order."""

    def with_parameters(command: Command) -> Command:
        for parameter in reversed(parameters):
            command = parameter(command)
        return command

    return with_parameters


def rules_and_data(command: Command) -> Command:
    """The parameters that say which rules to run over which data; a command takes them as ``inputs``."""

    @functools.wraps(command)
    def with_inputs(**given: Any) -> Any:
        said = {each.name: given.pop(each.name) for each in fields(Inputs)}
        return command(inputs=Inputs(**said), **given)

    return taking(*RULES, *DATA, csv_arguments)(with_inputs)


def show_rows(
    database: Database,
    program: str,
    count: bool,
    out: str | None,
    order_by: str | None = None,
    limit: int | None = None,
    **options: Any,
) -> None:
    """Output the rows of a head, or their number."""
    if count:
        click.echo(database.count(program, **options))
        return
    batches = database.stream(program, order_by=order_by, limit=limit, **options)
    if out is None and sys.stdout.isatty():
        click.echo(sink.format_table(batches, TERMINAL_ROWS))
    elif out in (None, "-"):
        sink.write_csv(batches, sys.stdout.buffer)
    else:
        sink.write_file(batches, str(out))


@click.group(
    no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(lftj.__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Worst-case optimal joins over files: rules in, tables out.

    RULES is a file of rules, or - for stdin.

    \b
    lftj query tri.rules --load edge=edges.parquet --out tri.parquet
    lftj query -e 'tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).' --load edge=edges.csv --count
    lftj explain tri.rules --load edge=edges.parquet --analyze
    """


@cli.command()
@rules_and_data
@taking(*ONE_HEAD)
@click.option("--threads", type=click.IntRange(min=1), help="Threads to join with.  [default: all cores]")
@click.option("--order-by", metavar="COLUMNS", help="Sort the rows, such as by 'price desc, item'.")
@click.option("--limit", type=click.IntRange(min=0), help="The first rows in that order only.")
@click.option("--count", is_flag=True, help="Print the number of rows only; none of them is built.")
@click.option(
    "--out",
    callback=_checked(sink.check_target),
    metavar="PATH",
    help=f"Write the rows to PATH, in the format of its suffix ({', '.join(sink.FORMATS)}), or - for CSV on "
    "stdout.  Without it, a terminal gets a table of the first rows and anything else gets CSV.",
)
def query(
    inputs: Inputs, count: bool, out: str | None, order_by: str | None, limit: int | None, **options: Any
) -> None:
    """Run rules over files and output the head of the last one."""
    if count and out is not None:
        raise click.UsageError("--count prints a number: it does not go with --out")
    if count and not (order_by is None and limit is None):
        raise click.UsageError("--count counts all rows: it does not go with --order-by and --limit")
    program = inputs.program()
    database = lftj.Database()
    inputs.load_into(database)
    # CSV that scrolls over a terminal and a bar that stands on it do not go together.
    options["progress"] = not (out == "-" and sys.stdout.isatty())
    show_rows(database, program, count, out, order_by, limit, **options)


@cli.command()
@rules_and_data
@taking(*ONE_HEAD)
@click.option(
    "--analyze", is_flag=True, help="Run the join, and show what was measured beside the estimates."
)
@picture("Also write the plan to PATH as a picture, or - for the picture alone on stdout.")
def explain(inputs: Inputs, svg: str | None, **options: Any) -> None:
    """Show how rules would run: key order, index per atom, and the estimates behind them."""
    program = inputs.program()
    database = lftj.Database()
    inputs.load_into(database)
    explained = database.explain(program, progress=True, **options)
    if svg != "-":
        click.echo(explained)
    if svg is not None:
        write_text(svg, explained.svg())


@cli.command("warm-up")
def warm_up() -> None:
    """Compile everything now, not at the first query: for container images, CI and Spark nodes."""
    folder = lftj.warm_up()
    if folder is not None:
        say("note", f"all kernels are compiled, in {folder}")


def say(kind: str, message: object) -> None:
    """A message to the user, such as ``note: ...``, on stderr."""
    click.echo(f"{kind}: {message}", err=True)


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def _terminate(number: int, frame: object) -> None:
    raise Terminated


@contextlib.contextmanager
def _manners() -> Iterator[None]:
    """Warnings as one line each; SIGTERM cleans up like Ctrl-C."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: IO[str] | None = None,
        line: str | None = None,
    ) -> None:
        say("warning", message)

    with warnings.catch_warnings():
        warnings.showwarning = show
        try:
            before = signal.signal(signal.SIGTERM, _terminate)
        except ValueError:  # not the main thread
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


def run(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line and return its exit status.

    >>> run(["query", "-e", "p(a) <- q(a).", "--count", "--out", "p.csv"])
    2
    """
    try:
        # Not cli.main: it answers an interruption with an empty line of its own.
        line = list(sys.argv[1:] if arguments is None else arguments)
        with _manners(), cli.make_context("lftj", line) as context:
            cli.invoke(context)
            sys.stdout.flush()
        return 0
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code
    except click.UsageError as error:
        say("error", error.format_message())
        if error.ctx is not None:
            click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
        return 2
    except BrokenPipeError:
        # The reader of stdout has had enough; Python's own flush at the end would complain once more.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        say("error", f"{error.filename}: {error.strerror}" if named else error)
    except LftjError as error:
        say("error", error)
    except KeyboardInterrupt as interruption:
        if sys.stderr.isatty():
            click.echo(err=True)  # the terminal shows ^C where the cursor stood
        say("error", "interrupted")
        return INTERRUPTED + (signal.SIGTERM if isinstance(interruption, Terminated) else signal.SIGINT)
    except MemoryError:
        say("error", "out of memory")
    return 1


def main() -> NoReturn:
    """Entry point of the console script, by way of the layer that adds the last command.

    The process ends without the interpreter's own tidying up.  While that is under way, a thread of Arrow's
    that reads ahead in a Python file would abort the process, and its status would be lost.
    """
    status = run()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
