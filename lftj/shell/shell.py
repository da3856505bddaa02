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
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

import lftj
from lftj.errors import LftjError
from lftj.files import sink
from lftj.session.sql_statements import is_sql
from lftj.shell.inputs import Inputs, say
from lftj.shell.options import DATA, ONE_HEAD, OUT, ROWS, RULES, SQL, SQL_DATA, THREADS, picture, taking

if TYPE_CHECKING:
    import pyarrow as pa

    from lftj.database.database import Database

INTERRUPTED = 128
"""The exit status after a signal is this and the signal's number, as the shell has it."""

TERMINAL_ROWS = 40
"""Rows of a result that are shown on a terminal."""


def write_text(where: str, text: str) -> None:
    """To a file that an option has let through, or to stdout for ``-``."""
    if where == "-":
        click.echo(text, nl=False)
    else:
        Path(where).write_text(text, encoding="utf-8")


def show_rows(
    opened: Callable[[], Database],
    inputs: Inputs,
    count: bool,
    out: str | None,
    order_by: str | None,
    limit: int | None,
    **options: Any,
) -> None:
    """Output the rows of the head that is asked for, or their number.

    ``opened``: gives the database; nothing is read where the command is wrong.
    """
    if count and out is not None:
        raise click.UsageError("--count prints a number: it does not go with --out")
    if count and not (order_by is None and limit is None):
        raise click.UsageError("--count counts all rows: it does not go with --order-by and --limit")
    program = inputs.program()
    database = opened()
    inputs.load_into(database)
    options["progress"] = shows_bar(out)
    if count:
        click.echo(database.count(program, **options))
        return
    write_rows(database.stream(program, order_by=order_by, limit=limit, **options), out)


def show_answer(
    opened: Callable[[], Database], inputs: Inputs, sql: str, threads: int | None, out: str | None
) -> None:
    """Output the answer of a SELECT, of which ``sql`` is the text or the file."""
    inputs = inputs.as_sql(sql)
    text = inputs.program()
    database = opened()
    inputs.load_into(database)
    write_rows(sink.batches_of(database.sql(text, threads=threads, progress=shows_bar(out))), out)


def shows_bar(out: str | None) -> bool:
    """CSV that scrolls over a terminal and a bar that stands on it do not go together."""
    return not (out == "-" and sys.stdout.isatty())


def write_rows(batches: Iterable[pa.RecordBatch], out: str | None) -> None:
    """To where ``--out`` says, or else as a terminal or a pipe has it."""
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
    lftj sql 'select a, count(*) from edge group by a' --load edge=edges.csv
    """


@cli.command()
@taking(*RULES, *DATA, *ROWS, inputs=Inputs)
def query(**options: Any) -> None:
    """Run rules over files and output the head of the last one."""
    show_rows(lftj.Database, **options)


@cli.command()
@taking(SQL, *SQL_DATA, THREADS, OUT, inputs=Inputs)
def sql(**options: Any) -> None:
    """Answer a SELECT over files.  SQL is the text, a file of it that ends in .sql, or - for stdin.

    \b
    lftj sql 'select item, sum(price) from line group by item' --load line=lines.parquet
    """
    show_answer(lftj.Database, **options)


@cli.command()
@taking(*RULES, *DATA, *ONE_HEAD, inputs=Inputs)
@click.option(
    "--analyze", is_flag=True, help="Run the join, and show what was measured beside the estimates."
)
@picture("Also write the plan to PATH as a picture, or - for the picture alone on stdout.")
def explain(inputs: Inputs, svg: str | None, **options: Any) -> None:
    """Show how rules would run, or a SELECT: key order, index per atom, and the estimates behind them."""
    program = inputs.program()
    database = lftj.Database()
    if is_sql(program):
        if options["head"] or options["order"]:
            raise click.UsageError("--head and --order are about rules, and this is SQL")
        inputs.as_sql().load_into(database)
        explained = database.explain_sql(program, analyze=options["analyze"], progress=True)
    else:
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
    line = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # Not cli.main: it answers an interruption with an empty line of its own.
        with _manners(), cli.make_context("lftj", line) as context:
            cli.invoke(context)
            sys.stdout.flush()
        return 0
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code
    except click.UsageError as error:
        say("error", error.format_message())
        if error.ctx is not None:
            hint = f"Try '{error.ctx.command_path} --help'." if line else f"\n{error.ctx.get_help()}"
            click.echo(hint, err=True)
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
