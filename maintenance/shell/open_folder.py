"""``lftj open FOLDER ...``: a workspace that is kept in a folder, from the shell.

Invariants

1. What only looks opens the folder for reading, so that it runs beside a process that has it open.
2. What changes something has kept it, whole, when the command ends well; and of changes of files all
   transactions that it says it committed.

The engine is imported by the commands, not by this module.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lftj.files import sink
from lftj.process.progress import bar
from lftj.shell.csv_arguments import CsvArguments, csv_arguments
from lftj.shell.shell import (
    INTERRUPTED,
    TERMINAL_ROWS,
    Nulls,
    Source,
    cli,
    load_sources,
    place,
    read_rules,
    rules_and_data,
    say,
    write_text,
)
from maintenance.heads.strategies import DEFAULT, STRATEGIES
from maintenance.shell.applying import apply_changes, interruptions

if TYPE_CHECKING:
    from maintenance.workspace.workspace import Workspace

Pairs = tuple[tuple[str, str], ...]


@cli.group("open")
@click.argument("folder")
@click.pass_context
def open_folder(context: click.Context, folder: str) -> None:
    """Work with the workspace that is kept in FOLDER.

    \b
    lftj open graph install tri.rules --load edge=edges.parquet
    lftj open graph apply --changes edge=changes.csv
    lftj open graph query -e 'hub(a) <- tri(a, _, _).'
    """
    context.obj = folder


def _opened(folder: str, read_only: bool = False) -> Workspace:
    from maintenance.workspace.workspace import Workspace

    return Workspace.open(folder, read_only=read_only, progress=True)


@open_folder.command()
@click.argument("rules", required=False)
@click.option("-e", "--rule", "text", metavar="TEXT", help="The rules themselves, in place of a file.")
@click.option("--head", metavar="NAME", help="The relation to output, if not the last rule's.")
@click.option("--count", is_flag=True, help="Print the number of rows only.")
@click.option(
    "--out", metavar="PATH", help="Write the rows to PATH, in the format of its suffix, or - for CSV."
)
@click.pass_obj
def query(
    folder: str, rules: str | None, text: str | None, head: str | None, count: bool, out: str | None
) -> None:
    """Run rules over the relations and heads as they are now, and output the head of the last one."""
    if count and out is not None:
        raise click.UsageError("--count prints a number: it does not go with --out")
    program = read_rules(rules, text, (), ())
    workspace = _opened(folder, read_only=True)
    if count:
        click.echo(workspace.count(program, head=head))
        return
    batches = workspace.stream(program, head=head)
    if out is None and sys.stdout.isatty():
        click.echo(sink.format_table(batches, TERMINAL_ROWS))
    elif out in (None, "-"):
        sink.write_csv(batches, sys.stdout.buffer)
    else:
        sink.write_file(batches, str(out))


@open_folder.command()
@rules_and_data
@csv_arguments
@click.option(
    "--strategy",
    type=click.Choice(list(STRATEGIES)),
    default=DEFAULT,
    show_default=True,
    help="How to keep the heads up to date.",
)
@click.option("--replace", is_flag=True, help="Define heads anew that are there.")
@click.pass_obj
def install(
    folder: str,
    rules: str | None,
    text: str | None,
    sources: Pairs,
    renames: tuple[tuple[str, str, str], ...],
    nulls: Nulls,
    csv: CsvArguments,
    strategy: str,
    replace: bool,
) -> None:
    """Load files as relations, and install rules over them.  FOLDER is made where there is none."""
    program = read_rules(rules, text, sources, renames)
    with _opened(folder) as workspace:
        load_sources(workspace, sources, nulls, renames, csv)
        workspace.install(program, strategy, replace=replace, progress=True)


@open_folder.command()
@csv_arguments
@click.option(
    "--changes",
    type=Source(),
    multiple=True,
    required=True,
    help="Change relation NAME by the file PATH, as for 'lftj maintain'; may be repeated.",
)
@click.option("--nulls", type=click.Choice(["refuse", "drop"]), default="refuse", show_default=True)
@click.option(
    "--svg",
    metavar="PATH",
    callback=place,
    help="Write memory and times of the commits to PATH or -, as a picture.",
)
@click.pass_obj
def apply(folder: str, csv: CsvArguments, changes: Pairs, nulls: Nulls, svg: str | None) -> None:
    """Commit the transactions of change files."""
    from maintenance.shell.change_files import ChangeFile, check_together
    from maintenance.shell.summary import Summary

    if csv.columns or csv.bags:
        raise click.UsageError("--columns and --bag say how a relation is loaded, and apply loads none")
    summary = Summary()
    with contextlib.ExitStack() as stack:
        workspace = stack.enter_context(_opened(folder))
        files = [
            stack.enter_context(
                ChangeFile(
                    name, path, workspace.base_version(name).schema.shown, nulls, csv.options_of_changes(path)
                )
            )
            for name, path in changes
        ]
        check_together(files)
        interruption = stack.enter_context(interruptions())
        for file in files:
            file.stop_when(lambda: interruption.signal is not None)
        with bar("applying") as advance:
            finished = apply_changes(workspace, files, [], False, None, summary, advance, interruption)
        rows = {name: workspace[name].count for name in workspace.heads}
        if svg is not None:
            write_text(svg, workspace.stats.svg())
    click.echo(summary.render(rows), err=True)
    if not finished:
        say("error", f"interrupted after {summary.transactions:,} transactions, which are kept")
        assert interruption.signal is not None
        raise click.exceptions.Exit(INTERRUPTED + interruption.signal)


@open_folder.command()
@click.pass_obj
def verify(folder: str) -> None:
    """Compute every head anew and compare; fails at the first difference."""
    workspace = _opened(folder, read_only=True)
    workspace.verify()
    n_heads = len(workspace.heads)
    click.echo(f"{n_heads} head{'' if n_heads == 1 else 's'} verified")


@open_folder.command()
@click.pass_obj
def check(folder: str) -> None:
    """Say of each file whether it is whole, and which version can be read; fails where something is damaged.

    Nothing is changed.
    """
    from maintenance.workspace.folder_check import check_folder

    checked = check_folder(folder)
    width = max(len(each.name) for each in checked)
    for each in checked:
        click.echo(f"{'whole  ' if each.is_whole else 'damaged'}  {each.name:{width}}  {each.text}")
    if not all(each.is_whole for each in checked):
        raise click.exceptions.Exit(1)


@open_folder.command()
@click.option("--openmetrics", is_flag=True, help="Print the figures as OpenMetrics text, for Prometheus.")
@click.option(
    "--svg",
    metavar="PATH",
    callback=place,
    help="Also write memory by kind to PATH as a picture, or - for the picture alone on stdout.",
)
@click.pass_obj
def stats(folder: str, openmetrics: bool, svg: str | None) -> None:
    """Show relations and heads with their rows, and what the folder holds."""
    from maintenance.durable.reading import read_existing

    if openmetrics and svg == "-":
        raise click.UsageError("--openmetrics and --svg - both go to stdout: choose one")
    found = read_existing(folder)
    workspace = _opened(folder, read_only=True)
    if svg is not None:
        write_text(svg, workspace.stats.svg())
        if svg == "-":
            return
    if openmetrics:
        figures = replace(
            workspace.stats,
            journal_bytes=found.journal_bytes,
            data_bytes=found.manifest.nbytes,
            checkpoint_version=found.manifest.number,
        )
        click.echo(figures.openmetrics(), nl=False)
        return
    click.echo(repr(workspace.relations))
    for name in workspace.heads:
        click.echo(f"head {name}: kept by {workspace.strategy_of(name)}")
    click.echo(
        f"change {found.number:,}; checkpoint at change {found.manifest.number:,} with"
        f" {found.manifest.nbytes:,} bytes of data; journal {found.journal_bytes:,} bytes"
    )


@open_folder.command()
@click.pass_obj
def compact(folder: str) -> None:
    """Write what changed to files of data, and delete what is not needed; commits wait meanwhile."""
    from maintenance.durable.reading import read_existing

    with _opened(folder) as workspace:
        workspace.compact()
    found = read_existing(folder)
    click.echo(f"{found.manifest.nbytes:,} bytes of data; journal {found.journal_bytes:,} bytes")


@open_folder.command()
@click.pass_obj
def checkpoint(folder: str) -> None:
    """Write what changed to files of data, and begin a new journal."""
    with _opened(folder) as workspace:
        workspace.checkpoint()
