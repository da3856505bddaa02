"""``lftj run``: a pipeline that goes on until it is told to end.

    SIGTERM, Ctrl-C     it ends
    SIGHUP              it reads its file again, and takes changed views and rules in

Invariants

1. Rows come in by one thread for each source, and go out by one for each sink.  One whose server is away
   tries again, later and later; any other error of one ends all.
2. What ends it lets commits and changes that are under way finish: what is done is on disk, and goes on when
   the pipeline is run again.
3. Of a file that is read again all that changed is taken in, or nothing
   (:mod:`maintenance.shell.pipeline_views`).
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from lftj.errors import LftjError, PipelineError, SinkAwayError, SourceAwayError
from lftj.values.shown_text import counted
from maintenance.shell.applying import Interruption, interruptions
from maintenance.shell.pipeline_file import Pipeline, read_pipeline
from maintenance.shell.pipeline_log import Log
from maintenance.shell.pipeline_parts import Part, health_of, openmetrics_of
from maintenance.shell.pipeline_table import shown
from maintenance.shell.pipeline_views import Taking, define
from maintenance.shell.pipeline_watch import watched
from maintenance.sinks.sink import Sink
from maintenance.sources.cursor import Cursor
from maintenance.sources.source import Source
from maintenance.workspace.workspace import Workspace

_LOOK_AGAIN = 0.1
"""Seconds after which it is looked how far the parts are, and whether the pipeline is to end."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0
"""Seconds until what was away is tried again; each pause is twice the one before."""


def run_pipeline(pipeline: Pipeline, strategy: str, once: bool, log: Log) -> None:
    """Take what there is, define the views, and go on; ``once``: end when all is taken and written.

    Raises what sources, views and sinks do, and PipelineError where one was away for too long.
    """
    with (
        Workspace.open(pipeline.folder, progress=True) as workspace,
        interruptions() as interruption,
        _hangups() as hangup,
        log.warnings(),
    ):
        running = _Running(pipeline, workspace, strategy, once, interruption, hangup, log)
        listen = None if once else pipeline.settings.listen
        with watched(listen, running.openmetrics, running.health) as address:
            if address is not None:
                log.say(f"{address}/metrics and {address}/health are there")
            running.run()
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
        shown_places = ", ".join(f"{part} {place.position}" for part, place in places)
        begin = f"from {shown_places}" if shown_places else "from the beginning"
        click.echo(f"{source.name}: {source!r}, {begin}")
    for name, what in define(pipeline, workspace, strategy).items():
        click.echo(f"{name}: {what}")
    for sink in pipeline.sinks:
        click.echo(f"{sink.name}: {sink!r}, {counted(workspace[sink.head].count, 'row')}")


class _Running:
    """A pipeline under way."""

    def __init__(
        self,
        pipeline: Pipeline,
        workspace: Workspace,
        strategy: str,
        once: bool,
        interruption: Interruption,
        hangup: threading.Event,
        log: Log,
    ) -> None:
        self._pipeline, self._workspace, self._strategy, self._once = pipeline, workspace, strategy, once
        self._interruption, self._hangup, self._log = interruption, hangup, log
        self._parts = {part.name: Part(part) for part in pipeline.parts}
        self._threads: dict[str, threading.Thread] = {}
        self._failed: list[BaseException] = []

    def run(self) -> None:
        """Take what there is, define the views, and go on until there is a signal, or one fails."""
        self._together(self._pipeline.sources, 0)
        if self._interruption.signal is None:
            for name, what in define(self._pipeline, self._workspace, self._strategy).items():
                self._log.say(what, name)
            if self._once:
                self._together(self._pipeline.sinks, 0)
            else:
                self._together(self._pipeline.parts, None)

    def say(self) -> None:
        """How often each has moved."""
        for part in self._parts.values():
            done = counted(part.steps, part.step_name)
            self._log.say(done, part.name, steps=part.steps, rows=part.rows, restarts=part.restarts)

    # -- for those who watch ---------------------------------------------------------------------

    def openmetrics(self) -> str:
        return openmetrics_of(list(self._parts.values()), self._workspace)

    def health(self) -> tuple[bool, dict[str, object]]:
        return health_of(list(self._parts.values()))

    def _look(self) -> None:
        for part in self._parts.values():
            part.look(self._workspace.version)

    # -- the parts -------------------------------------------------------------------------------

    def _together(self, made: Sequence[Source | Sink], timeout: float | None) -> None:
        """Parts at once, until they end, there is a signal, or one fails; raises what that has raised."""
        for each in made:
            self._start(each.name, timeout)
        with shown(self._log, lambda: list(self._parts.values())) as show:
            while self._interruption.signal is None and not self._failed:
                running = [thread for thread in self._threads.values() if thread.is_alive()]
                if not running:
                    break
                running[0].join(_LOOK_AGAIN)
                self._look()
                show()
                if timeout is None and self._hangup.is_set():
                    self._hangup.clear()
                    self._read_again()
            else:
                self._stop([each.name for each in made])
        if self._failed:
            raise self._failed[0]

    def _start(self, name: str, timeout: float | None) -> None:
        thread = threading.Thread(target=self._run, args=[self._parts[name], timeout], name=name)
        self._threads[name] = thread
        thread.start()

    def _stop(self, names: Sequence[str]) -> None:
        """Let parts end behind what is under way."""
        for name in names:
            self._parts[name].stop()
        for name in names:
            self._threads[name].join()

    def _run(self, part: Part, timeout: float | None) -> None:
        try:
            pause = _FIRST_PAUSE
            while not part.is_stopped:
                began = time.monotonic()
                try:
                    for _ in part.take_steps(self._workspace, timeout):
                        if self._interruption.signal is not None:
                            return
                    return
                except (SourceAwayError, SinkAwayError) as error:
                    if self._once:
                        raise
                    was_there = part.error is None and time.monotonic() - began > pause
                    pause = _FIRST_PAUSE if was_there else min(2 * pause, _LONGEST_PAUSE)
                    self._wait(part, error, pause * random.uniform(0.5, 1))
        except BaseException as error:
            self._failed.append(error)

    def _wait(self, part: Part, error: LftjError, pause: float) -> None:
        """Until a part that is away is to be tried again.  Raises PipelineError after the file's limit."""
        part.went(self._pipeline.hidden(str(error)))
        limit = self._pipeline.settings.give_up_after
        if part.away_seconds >= limit:
            raise PipelineError(
                f"{part.name} was away for {part.away_seconds:.0f} s, and give_up_after is {limit:g}: {error}"
            )
        self._log.say(
            f"it is away, and tried again in {pause:.1f} s: {error}",
            part.name,
            "warning",
            away_seconds=round(part.away_seconds, 1),
            restarts=part.restarts,
        )
        part.wait(min(pause, limit - part.away_seconds))
        part.restarts += 1

    # -- the file, again -------------------------------------------------------------------------

    def _read_again(self) -> None:
        """Take in what changed in the file, or say why not and go on."""
        try:
            following = read_pipeline(self._pipeline.path)
            taking = Taking(self._pipeline, following, self._workspace, self._strategy)
        except (LftjError, OSError) as error:
            self._refused(error)
            return
        sinks = [sink.name for sink in taking.sinks]
        self._stop(sinks)
        try:
            for name, what in taking.take_in().items():
                self._log.say(what, name)
            self._pipeline = following
            self._log.say(f"{following.path} was read again")
        except LftjError as error:
            self._refused(error)
        for sink in taking.sinks:
            self._parts[sink.name] = self._parts[sink.name].anew(sink)
            self._start(sink.name, None)

    def _refused(self, error: Exception) -> None:
        self._log.say(f"the file is not taken in, and the run goes on as it was: {error}", level="warning")


@contextmanager
def _hangups() -> Iterator[threading.Event]:
    """What is set when SIGHUP came during the block."""
    came = threading.Event()
    try:
        before = signal.signal(signal.SIGHUP, lambda number, frame: came.set())
    except ValueError:  # not the main thread, which is the one that gets signals
        yield came
        return
    try:
        yield came
    finally:
        signal.signal(signal.SIGHUP, before)
