"""``lftj open FOLDER ...``: a workspace that is kept in a folder, from the shell.

Invariants

1. What only looks opens the folder for reading, so that it runs beside a process that has it open.
2. What changes something has kept it, whole, when the command ends well; and of changes of files all
   transactions that it says it committed.

The engine is imported by the commands, not by this module.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lftj.session.sql_statements import views_of
from lftj.shell.inputs import Inputs, Pairs, text_of
from lftj.shell.options import CSV, DATA, OUT, ROWS, RULES, SQL, SQL_DATA, THREADS, picture, taking
from lftj.shell.shell import cli, show_answer, show_rows, write_text
from lftj.values.shown_text import counted
from maintenance.shell.options import CHANGES, NULLS_OF_CHANGES, RESULTS, STRATEGY, WANTED, Results

if TYPE_CHECKING:
    from maintenance.workspace.workspace import Workspace


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
@taking(*RULES, *ROWS, inputs=Inputs)
@click.pass_obj
def query(folder: str, /, **options: Any) -> None:
    """Run rules over the relations and heads as they are now, and output the head of the last one."""
    show_rows(partial(_opened, folder, read_only=True), **options)


@open_folder.command()
@taking(SQL, THREADS, OUT, inputs=Inputs)
@click.pass_obj
def sql(folder: str, /, **options: Any) -> None:
    """Answer a SELECT over relations, heads and views as they are now: a text, a file.sql, or - for stdin."""
    show_answer(partial(_opened, folder, read_only=True), **options)


@open_folder.command()
@taking(*RULES, *DATA, STRATEGY, WANTED, inputs=Inputs)
@click.option("--replace", is_flag=True, help="Define heads anew that are there.")
@click.pass_obj
def install(folder: str, inputs: Inputs, strategy: str, result: tuple[str, ...], replace: bool) -> None:
    """Load files as relations, and install rules over them.  FOLDER is made where there is none."""
    program = inputs.program()
    with _opened(folder) as workspace:
        inputs.load_into(workspace)
        workspace.install(program, strategy, results=result or None, replace=replace, progress=True)


@open_folder.command()
@click.argument("heads", nargs=-1, required=True, metavar="HEAD...")
@click.pass_obj
def uninstall(folder: str, heads: tuple[str, ...]) -> None:
    """Take heads away, with their rules, all or none; relations stay."""
    from maintenance.durable.reading import read_existing

    read_existing(folder)  # and makes none
    with _opened(folder) as workspace:
        workspace.uninstall(*heads)


@open_folder.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.sql...")
@taking(*SQL_DATA, STRATEGY, inputs=Inputs)
@click.pass_obj
def run(folder: str, files: tuple[str, ...], inputs: Inputs, strategy: str) -> None:
    """Keep the views that files of SQL define.  FOLDER is made where there is none.

    A file of one SELECT is the view that is named like it; others have CREATE VIEW name AS SELECT ...  Files
    may read each other's views.  What is as it was is left alone, and an error leaves all views as they were.

    \b
    lftj open shop run models/*.sql --load orders=orders.parquet
    """
    from maintenance.shell.view_files import keep_views

    views = [view for file in files for view in views_of(text_of(file), file)]
    with _opened(folder) as workspace:
        inputs.as_sql().load_into(workspace)
        done = keep_views(workspace, views, strategy)
        width = max(map(len, done))
        for name, what in done.items():
            click.echo(f"{name:{width}}  {what}, {counted(workspace[name].count, 'row')}")


@open_folder.command()
@taking(*CSV, CHANGES, NULLS_OF_CHANGES, *RESULTS, inputs=Inputs, results=Results)
@click.pass_obj
def apply(folder: str, inputs: Inputs, changes: Pairs, results: Results) -> None:
    """Commit the transactions of change files."""
    from maintenance.shell.applying import apply_files

    if inputs.columns or inputs.bags:
        raise click.UsageError("--columns and --bag say how a relation is loaded, and apply loads none")
    with _opened(folder) as workspace:
        heads = (*workspace.heads, *workspace.grown)
        results.check_heads(heads)
        applied = apply_files(workspace, inputs, changes, results, "applying")
    applied.end(heads, "which are kept")


@open_folder.command()
@click.pass_obj
def verify(folder: str) -> None:
    """Compute every head anew and compare; fails at the first difference."""
    workspace = _opened(folder, read_only=True)
    workspace.verify()
    click.echo(f"{counted(len(workspace.heads), 'head')} verified")


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
@picture("Also write memory by kind to PATH as a picture, or - for the picture alone on stdout.")
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
    for name in workspace.grown:
        click.echo(f"head {name}: only grows")
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
