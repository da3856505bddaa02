"""``lftj shell``: a prompt over a workspace, or the statements on stdin.

Invariants

1. On a terminal an error leaves the session as it was; from a pipe too, and the exit status is 1 in the end.
2. What is shown goes to stdout, errors go to stderr.
3. Ctrl-C drops what is being typed, or interrupts what runs; Ctrl-D leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lftj.errors import LftjError
from lftj.files import sink
from lftj.session.session import Finished, Session, statements
from lftj.shell.inputs import Inputs, say
from lftj.shell.options import CSV, SOURCES, taking
from lftj.shell.shell import TERMINAL_ROWS, cli
from maintenance.shell.typed_statements import reader

if TYPE_CHECKING:
    import pyarrow as pa

WIDTH = 100
"""Of tables that go to a pipe or a file."""


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
    read = reader(session)
    while True:
        try:
            for statement in statements(read().splitlines()):  # several, where they were pasted
                _carried_out(session, statement)
        except KeyboardInterrupt:
            click.echo(err=True)
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
