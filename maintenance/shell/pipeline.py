"""``lftj run``: a pipeline that goes on until it is told to end.

Invariants

1. Rows come in by one thread for each source, and go out by one for each sink; an error of one ends all.
2. What ends it lets commits and changes that are under way finish: what is done is on disk, and goes on when
   the pipeline is run again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import click

from lftj.values.shown_text import counted
from maintenance.shell.applying import Interruption, interruptions
from maintenance.shell.pipeline_file import Pipeline
from maintenance.shell.view_files import keep_views
from maintenance.sinks.sink import Sink
from maintenance.sources.cursor import Cursor
from maintenance.sources.source import Source
from maintenance.workspace.workspace import Workspace

_LOOK_AGAIN = 0.1
"""Seconds after which it is looked whether the pipeline is to end."""


def run_pipeline(pipeline: Pipeline, strategy: str, once: bool) -> None:
    """Take what there is, define the views, and go on; ``once``: end when all is taken and written.

    Raises what sources, views and sinks do.
    """
    with Workspace.open(pipeline.folder, progress=True) as workspace, interruptions() as interruption:
        running = _Running(pipeline, workspace, interruption)
        running.catch_up(pipeline.sources)
        if interruption.signal is None:
            for name, what in _define(pipeline, workspace, strategy).items():
                click.echo(f"{name}: {what}", err=True)
            if once:
                running.catch_up(pipeline.sinks)
            else:
                running.go_on()
        running.say()


def plan_pipeline(pipeline: Pipeline, strategy: str) -> None:
    """Say what a run would begin with; nothing is changed, and no server is asked."""
    from maintenance.durable.reading import read_existing

    if not pipeline.folder.exists():
        click.echo(f"{pipeline.folder}: would be made; views are looked at when their relations are there")
        return
    read_existing(pipeline.folder)
    workspace = Workspace.load_from(pipeline.folder)
    for source in pipeline.sources:
        places = Cursor(workspace, source.name).places.items()
        shown = ", ".join(f"{part} {place.position}" for part, place in places)
        click.echo(f"{source.name}: {source!r}, {f'from {shown}' if shown else 'from the beginning'}")
    for name, what in _define(pipeline, workspace, strategy).items():
        click.echo(f"{name}: {what}")
    for sink in pipeline.sinks:
        click.echo(f"{sink.name}: {sink!r}, {counted(workspace[sink.head].count, 'row')}")


def _define(pipeline: Pipeline, workspace: Workspace, strategy: str) -> dict[str, str]:
    """Bring the views and rules in; what became of each view."""
    for text in pipeline.rules.values():
        workspace.install(text, strategy, replace=True)
    return keep_views(workspace, pipeline.views, strategy) if pipeline.views else {}


class _Running:
    """A pipeline under way."""

    def __init__(self, pipeline: Pipeline, workspace: Workspace, interruption: Interruption) -> None:
        self._pipeline, self._workspace, self._interruption = pipeline, workspace, interruption
        self._steps: Counter[str] = Counter()
        self._failed: list[BaseException] = []

    def catch_up(self, parts: Sequence[Source | Sink]) -> None:
        """One after the other, all that there is."""
        for part in parts:
            self._loop(part, 0)

    def go_on(self) -> None:
        """All at once, until there is a signal, or one fails."""
        parts = self._pipeline.parts
        threads = [threading.Thread(target=self._run, args=[part], name=part.name) for part in parts]
        for thread in threads:
            thread.start()
        while self._interruption.signal is None and not self._failed:
            time.sleep(_LOOK_AGAIN)
        for part in parts:
            part.stop()
        for thread in threads:
            thread.join()
        if self._failed:
            raise self._failed[0]

    def say(self) -> None:
        """How often each has moved."""
        for part in self._pipeline.parts:
            what = "transaction" if isinstance(part, Source) else "change"
            click.echo(f"{part.name}: {counted(self._steps[part.name], what)}", err=True)

    def _run(self, part: Source | Sink) -> None:
        try:
            self._loop(part, None)
        except BaseException as error:
            self._failed.append(error)

    def _loop(self, part: Source | Sink, timeout: float | None) -> None:
        steps: Callable[..., Iterable[object]] = part.pull if isinstance(part, Source) else part.push
        for _ in steps(self._workspace, timeout=timeout):
            self._steps[part.name] += 1
            if self._interruption.signal is not None:
                return
