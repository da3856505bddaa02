"""``lftj serve FOLDER``: a kept workspace as an Arrow Flight service, until a signal ends it.

Invariant: the workspace is closed when the command ends, by SIGTERM or Ctrl-C too; what was acknowledged is
kept by then, and after a kill as far as ``--durability`` says.

The engine is imported by the command, not by this module.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from lftj.shell.shell import cli
from lftj.values.shown_text import counted

_LOOK_EVERY = 0.2
"""Seconds after which the command sees that a signal came."""

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@cli.command()
@click.argument("folder")
@click.option(
    "--listen", default="127.0.0.1:8815", show_default=True, metavar="HOST:PORT", help="Port 0: any free one."
)
@click.option("--tokens", type=_FILE, help="A file with a line 'read TOKEN' or 'write TOKEN' for each.")
@click.option("--tls-cert", type=_FILE, help="The certificate, PEM.")
@click.option("--tls-key", type=_FILE, help="Its key, PEM.")
@click.option("--read-only", is_flag=True, help="Nobody may write.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0),
    default=60.0,
    show_default=True,
    help="An answer takes so long at most.",
)
@click.option(
    "--durability",
    type=click.Choice(["commit", "interval"]),
    default="commit",
    show_default=True,
    help="Acknowledge what is on disk, or what will be there a moment later.",
)
def serve(
    folder: str,
    listen: str,
    tokens: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    read_only: bool,
    seconds: float,
    durability: str,
) -> None:
    """Serve the workspace in FOLDER by Arrow Flight: rows, answers and changes out, transactions in.

    Others than this machine are served with --tokens and TLS alone.

    \b
    lftj serve graph
    lftj serve graph --listen 0.0.0.0:8815 --tokens tokens --tls-cert cert.pem --tls-key key.pem
    """
    from maintenance.durable.reading import read_existing
    from maintenance.serving.access import Tokens
    from maintenance.serving.service import FlightService, Limits
    from maintenance.shell.applying import interruptions
    from maintenance.workspace.workspace import Workspace

    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    known = None if tokens is None else Tokens.read(tokens)
    tls = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)
    read_existing(folder)  # and makes none
    with (
        Workspace.open(folder, durability=durability, progress=True) as workspace,  # type: ignore[arg-type]
        FlightService(
            workspace,
            f"grpc://{listen}",
            tokens=known,
            tls=tls,
            read_only=read_only,
            limits=Limits(seconds=seconds),
        ) as service,
        interruptions() as interruption,
    ):
        heads = counted(len(workspace.heads), "head")
        click.echo(f"serving {folder} with {heads} at {service.address}; Ctrl-C ends it", err=True)
        while interruption.signal is None:  # one that comes to a thread of gRPC's ends no wait
            time.sleep(_LOOK_EVERY)
        click.echo("ending", err=True)
