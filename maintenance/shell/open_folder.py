"""``lftj open FOLDER ...``: a workspace that is kept in a folder, from the shell.

Invariants

1. What only looks opens the folder for reading, so that it runs beside a process that has it open.
2. What changes something has kept it, whole, when the command ends well; and of changes of files all
   transactions that it says it committed.

The engine is imported by the commands, not by this module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lftj.shell.csv_arguments import CsvArguments, Pairs, csv_arguments
from lftj.shell.shell import (
    RULES,
    Inputs,
    Source,
    cli,
    picture,
    rules_and_data,
    show_rows,
    taking,
    write_text,
)
from maintenance.heads.strategies import DEFAULT, STRATEGIES

if TYPE_CHECKING:
    from lftj.storage.relation import Nulls
    from maintenance.workspace.workspace import Workspace

STRATEGY = click.option(
    "--strategy",
    type=click.Choice(list(STRATEGIES)),
    default=DEFAULT,
    show_default=True,
    help="How to keep the heads up to date.",
)


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
@taking(*RULES)
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
    program = Inputs(rules, text).program()
    show_rows(_opened(folder, read_only=True), program, count, out, head=head)


@open_folder.command()
@rules_and_data
@STRATEGY
@click.option("--replace", is_flag=True, help="Define heads anew that are there.")
@click.pass_obj
def install(folder: str, inputs: Inputs, strategy: str, replace: bool) -> None:
    """Load files as relations, and install rules over them.  FOLDER is made where there is none."""
    program = inputs.program()
    with _opened(folder) as workspace:
        inputs.load_into(workspace)
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
@picture("Write memory and times of the commits to PATH or -, as a picture.")
@click.pass_obj
def apply(folder: str, csv: CsvArguments, changes: Pairs, nulls: Nulls, svg: str | None) -> None:
    """Commit the transactions of change files."""
    from maintenance.shell.applying import Applying, interruptions, opened_files

    if csv.columns or csv.bags:
        raise click.UsageError("--columns and --bag say how a relation is loaded, and apply loads none")
    with _opened(folder) as workspace, opened_files(workspace, changes, nulls, csv) as files:
        with interruptions() as interruption:
            applying = Applying(workspace, files, interruption)
            applying.run("applying")
        rows = {name: workspace[name].count for name in workspace.heads}
        if svg is not None:
            write_text(svg, workspace.stats.svg())
    applying.end(rows, "which are kept")


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
