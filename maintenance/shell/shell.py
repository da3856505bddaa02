"""``lftj maintain``: rules kept up to date under change files, from the shell.

The command, and those of :mod:`maintenance.shell.open_folder`, join those of
:mod:`lftj.shell.shell`, whose manners they have: results on stdout or in files, everything else
on stderr, one message for what goes wrong.
This module is the console script's, as the imports go one way.

Invariants

1. Files of results appear when the run has ended well, or was interrupted
   between two transactions; after an error there is none.
2. An interruption lets the transaction that is being committed finish; a second
   one does not wait, and leaves no file.

The engine is imported by the command, not by this module.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lftj.errors import UnknownRelationError
from lftj.files import sink
from lftj.shell.csv_arguments import Pairs
from lftj.shell.shell import Inputs, Source, cli, main, picture, place, rules_and_data, say, write_text
from maintenance.shell.open_folder import STRATEGY, open_folder
from maintenance.shell.prompt import shell

if TYPE_CHECKING:
    from maintenance.workspace.workspace import Workspace

__all__ = ["cli", "main", "open_folder", "shell"]

STDOUT = "-"


class Target(Source):
    """``NAME=PATH`` of a file to write, or ``NAME=-``."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, path = super().convert(value, param, ctx)
        if path != STDOUT:
            try:
                sink.check_target(path)
            except OSError as error:
                self.fail(str(error), param, ctx)
        return name, path


@cli.command()
@rules_and_data
@click.option(
    "--changes",
    type=Source(),
    multiple=True,
    required=True,
    help="Change relation NAME by the file PATH, which has its columns, 'weight' (+1 or -1) and optionally "
    "'txn', or by what comes on stdin (-); may be repeated.",
)
@STRATEGY
@click.option(
    "--out-changes",
    type=Target(),
    multiple=True,
    help="Write the changes of head NAME to PATH, in the format of its suffix, or as CSV to stdout (-) with "
    "each commit; may be repeated.",
)
@click.option(
    "--out",
    type=Target(),
    multiple=True,
    help="Write head NAME, as it is in the end, to PATH or -; may be repeated.",
)
@click.option(
    "--stats",
    metavar="PATH",
    callback=place,
    help="Write what each transaction took to PATH or -, as JSON lines.",
)
@picture("Write memory and times of the commits to PATH or -, as a picture.")
@click.option("--verify", is_flag=True, help="Recompute every head in the end, and fail if one differs.")
def maintain(
    inputs: Inputs,
    changes: Pairs,
    strategy: str,
    out_changes: Pairs,
    out: Pairs,
    stats: str | None,
    svg: str | None,
    verify: bool,
) -> None:
    """Install rules over files, apply changes to the files' relations, and output how the heads change.

    \b
    lftj maintain tri.rules --load edge=edges.parquet --changes edge=changes.csv --out-changes tri=-
    """
    _check_command(inputs.sources, changes, out_changes, out, [stats, svg])
    program = inputs.program(changes)
    heads = _heads_of(program, [name for name, _ in (*out_changes, *out)])

    from maintenance.shell.applying import Applying, interruptions, opened_files
    from maintenance.shell.change_files import check_together
    from maintenance.shell.change_output import change_output, stats_output
    from maintenance.workspace.workspace import Workspace

    workspace = Workspace()
    inputs.load_into(workspace)
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(opened_files(workspace, changes, inputs.nulls, inputs.csv))
        transaction_type = check_together(files)
        workspace.install(program, strategy, progress=True)
        schemas = _change_schemas(workspace)
        to_terminal = STDOUT in [stats, *(path for _, path in out_changes)] and sys.stdout.isatty()
        with interruptions() as interruption:
            outputs = [
                (name, stack.enter_context(change_output(path, schemas[name], transaction_type)))
                for name, path in out_changes
            ]
            lines = None if stats is None else stack.enter_context(stats_output(stats))
            applying = Applying(workspace, files, interruption, outputs, lines)
            applying.run("maintaining", not to_terminal)
        for file in files:
            if file.dropped_rows:
                plural = "" if file.dropped_rows == 1 else "s"
                say("note", f"{file.path}: {file.dropped_rows:,} row{plural} with NULL dropped")
        if verify and applying.finished:
            workspace.verify()
        for name, path in out:
            _write_head(workspace, name, path)
        if svg is not None:
            write_text(svg, workspace.stats.svg())
    applying.end({name: workspace[name].count for name in heads}, "whose changes are written")


def _check_command(
    sources: Pairs, changes: Pairs, out_changes: Pairs, out: Pairs, others: Sequence[str | None]
) -> None:
    loaded = {name for name, _ in sources}
    for name, _ in changes:
        if name not in loaded:
            raise click.UsageError(f"--changes is about {name!r}, which no --load gives")
    for option, pairs in (("--out-changes", out_changes), ("--out", out)):
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise click.UsageError(f"{option} gives {name!r} twice")
    written = [*(path for _, path in (*out_changes, *out)), *filter(None, others)]
    for path in written:
        if written.count(path) > 1:
            where = "stdout" if path == STDOUT else repr(path)
            raise click.UsageError(f"two results can't both go to {where}")


def _heads_of(program: str, wanted: Sequence[str]) -> list[str]:
    """The heads of a program, as long as all that are wanted are among them."""
    from lftj.language.parser import parse

    heads = list(dict.fromkeys(head.relation for rule in parse(program).rules for head in rule.heads))
    for name in wanted:
        if name not in heads:
            raise UnknownRelationError(f"no rule has the head {name!r}; heads are {', '.join(heads)}")
    return heads


def _change_schemas(workspace: Workspace) -> dict[str, Any]:
    """The schema of each head's change tables: an empty transaction has them all."""
    with workspace.transaction() as nothing:
        pass
    return {name: table.schema for name, table in nothing.changes.items()}


def _write_head(workspace: Workspace, name: str, path: str) -> None:
    import pyarrow as pa

    table = workspace[name].table
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    if path == STDOUT:
        sink.write_csv(batches, sys.stdout.buffer)
    else:
        sink.write_file(batches, path)
