"""The views and rules of a pipeline's file: as it begins, and as it is read again while the pipeline runs.

Invariants of the latter

1. All that changed is taken in, or nothing.
2. Sources, sinks, the folder and the settings are what they were: a change of them is refused, by name.
3. A sink whose head is defined anew begins anew, with the head's columns as they were; a file is refused
   where such a sink can't take back what it has written.
"""

from __future__ import annotations

from collections.abc import Sequence

from lftj.errors import PipelineError
from lftj.language.finals import heads_of
from maintenance.shell.pipeline_file import Pipeline
from maintenance.shell.view_files import keep_views, views_anew
from maintenance.sinks.sink import Sink
from maintenance.workspace.workspace import Workspace


def define(pipeline: Pipeline, workspace: Workspace, strategy: str) -> dict[str, str]:
    """Bring the views and rules in; what became of each view."""
    for text in pipeline.rules.values():
        workspace.install(text, strategy, replace=True)
    return keep_views(workspace, pipeline.views, strategy) if pipeline.views else {}


class Taking:
    """What is to be taken in of a file that was read again.

    Attributes:
        sinks: The new file's, whose heads are defined anew: those that run are to be stopped before.
    """

    def __init__(self, before: Pipeline, following: Pipeline, workspace: Workspace, strategy: str) -> None:
        """Raises PipelineError, and SqlError, for what can't be taken in."""
        self._before, self._following = before, following
        self._workspace, self._strategy = workspace, strategy
        old, new = before.fixed(), following.fixed()
        if changed := sorted(place for place in {*old, *new} if old.get(place) != new.get(place)):
            raise PipelineError(
                f"{following.path}: {', '.join(changed)} changed, which is not taken in amid a run:"
                " end it, and begin another"
            )
        anew = {view.name for view in views_anew(workspace, following.views, strategy).anew}
        said = set(before.rules.values())
        for text in following.rules.values():
            anew.update(() if text in said else heads_of(text))
        self.sinks: Sequence[Sink] = [sink for sink in following.sinks if sink.head in anew]
        for sink in self.sinks:
            if not sink.begins_anew:
                raise PipelineError(
                    f"{following.path}: {sink.head!r} changed, and the sink {sink.name!r} can't take back"
                    " what it has written of it: give the new one another name, and another sink"
                )

    def take_in(self) -> dict[str, str]:
        """Define what changed; what became of each view.  Raises what that does; all is as it was then."""
        columns = {sink.head: self._workspace[sink.head].schema for sink in self.sinks}
        try:
            done = define(self._following, self._workspace, self._strategy)
            for head, schema in columns.items():
                if self._workspace[head].schema != schema:
                    raise PipelineError(
                        f"{self._following.path}: {head!r} would have other columns, and the sink's"
                        " table has those that it had: give it another name, with another sink"
                    )
        except BaseException:
            define(self._before, self._workspace, self._strategy)
            raise
        given = {view.name for view in self._following.views}
        gone = [view.name for view in self._before.views if view.name not in given]
        return {**done, **dict.fromkeys(gone, "is not in the file any more, and is kept as it was")}
