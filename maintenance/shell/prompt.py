"""``lftj shell``: a prompt over a workspace, with history and completion; or the statements on stdin.

Invariants

1. On a terminal an error leaves the session as it was; from a pipe too, and the exit status is 1 in the end.
2. What is shown goes to stdout, errors go to stderr.
3. Ctrl-C drops what is being typed, or interrupts what runs; Ctrl-D leaves.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lftj.errors import LftjError
from lftj.files import sink
from lftj.session.session import Finished, Session, is_complete, statements
from lftj.session.sql_statements import is_sql
from lftj.shell.inputs import Inputs, say
from lftj.shell.options import CSV, SOURCES, taking
from lftj.shell.shell import TERMINAL_ROWS, cli

if TYPE_CHECKING:
    import pyarrow as pa

PROMPT, MORE = "lftj> ", "  ... "
WIDTH = 100
"""Of tables that go to a pipe or a file."""

LINES = 10_000
"""So many lines of history are kept."""


@cli.command("shell")
@click.argument("folder", required=False)
@taking(SOURCES, *CSV, inputs=Inputs)
def shell(folder: str | None, inputs: Inputs) -> None:
    """A prompt for rules and commands; .help lists them.

    With FOLDER it is over the workspace that is kept there.
    """
    from maintenance.workspace.workspace import Workspace

    opened = Workspace.open(folder, progress=True) if folder else Workspace()
    with opened as workspace:
        inputs.load_into(workspace)
        session = Session(workspace, _text, click.echo)
        whole = _talk(session) if sys.stdin.isatty() else _follow(session)
    if not whole:
        raise click.exceptions.Exit(1)


def _text(batches: Iterator[pa.RecordBatch]) -> str:
    return sink.format_table(batches, TERMINAL_ROWS, None if sys.stdout.isatty() else WIDTH)


def _follow(session: Session) -> bool:
    """The statements on stdin, to the end; whether none failed."""
    whole = True
    for statement in statements(sys.stdin):
        try:
            whole &= _carried_out(session, statement)
        except Finished:
            break
    return whole


def _talk(session: Session) -> bool:
    """Prompt until the user leaves."""
    click.echo("rules end with a dot; .help lists the commands, .quit leaves")
    with _line_editing(session):
        gathered, is_told = "", False
        while True:
            try:
                gathered += input(MORE if gathered else PROMPT) + "\n"
                if gathered.strip() and (is_complete(gathered) or gathered.endswith("\n\n")):
                    _carried_out(session, gathered)
                    gathered = ""
                elif not gathered.strip():
                    gathered = ""
                elif not is_told:  # once: whoever knows it reads it no more
                    end = "SQL ends with a semicolon" if is_sql(gathered) else "a rule ends with a dot"
                    click.echo(f"{end}; it goes on")
                    is_told = True
            except KeyboardInterrupt:
                click.echo(err=True)
                gathered = ""
            except (EOFError, Finished):
                return True


def _carried_out(session: Session, statement: str) -> bool:
    """Show what a statement answers, or its error; whether it went well."""
    try:
        shown = session.execute(statement)
    except (LftjError, OSError) as error:
        say("error", error)
        return False
    if shown is not None:
        click.echo(str(shown))
    return True


@contextlib.contextmanager
def _line_editing(session: Session) -> Iterator[None]:
    """History over sessions, and completion by Tab, where Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    history = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "lftj" / "history"

    def complete(word: str, number: int) -> str | None:
        found = session.completions(word, readline.get_line_buffer()[: readline.get_endidx()])
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(re.sub(r"[.\w]", "", " \t\n()[]{},;:=<>!+-*/|&\"'"))
    readline.parse_and_bind("tab: complete")
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    try:
        yield
    finally:
        readline.set_history_length(LINES)
        with contextlib.suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)
