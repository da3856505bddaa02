"""``lftj maintain``: rules kept up to date under change files, from the shell.

The command, and those of :mod:`maintenance.shell.open_folder`, :mod:`maintenance.shell.prompt` and
:mod:`maintenance.shell.serving`, join those of :mod:`lftj.shell.shell`, whose manners they have: results on
stdout or in files, everything else on stderr, one message for what goes wrong.
This module is the console script's, as the imports go one way.

The engine is imported by the command, not by this module.
"""

from __future__ import annotations

import click

from lftj.errors import LftjError, PipelineError
from lftj.session.sql_statements import is_sql, views_of
from lftj.shell.inputs import Inputs, Pairs
from lftj.shell.options import DATA, RULES, taking
from lftj.shell.shell import cli, main
from maintenance.shell.open_folder import open_folder
from maintenance.shell.options import CHANGES, RESULTS, STRATEGY, WANTED, Results
from maintenance.shell.prompt import shell
from maintenance.shell.serving import serve

__all__ = ["cli", "main", "open_folder", "serve", "shell"]


@cli.command()
@taking(*RULES, *DATA, CHANGES, STRATEGY, WANTED, *RESULTS, inputs=Inputs, results=Results)
def maintain(
    inputs: Inputs, changes: Pairs, strategy: str, result: tuple[str, ...], results: Results
) -> None:
    """Install rules over files, apply changes to the files' relations, and output how the heads change.

    RULES may be SQL: a SELECT, which is named like its file, or CREATE VIEW name AS SELECT, several of them.

    \b
    lftj maintain tri.rules --load edge=edges.parquet --changes edge=changes.csv --out-changes tri=-
    lftj maintain top.sql --load line=lines.parquet --changes line=changes.csv --out-changes top=-
    """
    inputs.refuse_unloaded("--changes", [name for name, _ in changes])
    from lftj.language.finals import heads_of

    program = inputs.program(changes)
    views = views_of(program, inputs.rules or "-e") if is_sql(program) else []
    if views and result:
        raise click.UsageError("--result is about heads of rules, and this is SQL")
    inputs = inputs.as_sql() if views else inputs
    heads = [view.name for view in views] or heads_of(program)
    heads = [name for name in heads if name in (result or (name,))]
    results.check_heads(heads)

    from maintenance.shell.applying import apply_files
    from maintenance.shell.view_files import keep_views
    from maintenance.workspace.workspace import Workspace

    workspace = Workspace()
    inputs.load_into(workspace)

    def install() -> None:
        if views:
            keep_views(workspace, views, strategy)
            return
        workspace.install(program, strategy, results=result or None, progress=True)

    applied = apply_files(workspace, inputs, changes, results, "maintaining", install)
    applied.end(heads, "whose changes are written")


@cli.command("run")
@click.argument("file", metavar="PIPELINE.toml")
@taking(STRATEGY)
@click.option("--check", is_flag=True, help="See whether the file is right, and open nothing.")
@click.option("--dry-run", is_flag=True, help="Say what a run would begin with, and change nothing.")
@click.option("--once", is_flag=True, help="End when all that there is was taken and written.")
@click.option("--log", type=click.Choice(["text", "json"]), help="Lines of text or of JSON on stderr.")
def run_file(file: str, strategy: str, check: bool, dry_run: bool, once: bool, log: str | None) -> None:
    """Follow sources, keep views, and write heads to sinks, as a file says (docs/sources.md).

    It goes on until SIGTERM or Ctrl-C, which let what is under way finish; run again it goes on from there.
    SIGHUP lets it read the file again, and take in views and rules that have changed.

    \b
    lftj run shop.toml --check
    lftj run shop.toml
    """
    from maintenance.shell.pipeline_file import read_pipeline

    pipeline = read_pipeline(file)
    if check:
        click.echo("\n".join(f"{part.name}: {part!r}" for part in pipeline.parts))
        return

    from maintenance.shell.pipeline import plan_pipeline, run_pipeline
    from maintenance.shell.pipeline_log import Log

    if dry_run:
        plan_pipeline(pipeline, strategy)
        return
    lines = Log((log or pipeline.settings.log) == "json", pipeline.hidden)
    try:
        run_pipeline(pipeline, strategy, once, lines)
    except (LftjError, OSError) as error:
        if lines.as_json:
            lines.say(str(error), level="error")
            raise click.exceptions.Exit(1) from None
        if (text := pipeline.hidden(str(error))) != str(error):
            raise PipelineError(text) from None
        raise
