"""What a workspace holds and has done, for those who watch it: ``ws.stats``, OpenMetrics text, a picture.

Memory is that of arrays, with the room that they have for growth; what a state that waits, a snapshot or a
table of a user's holds beyond the present versions is not in it: ``old_snapshots`` says that there are some.

Cost: a look at every structure, none at its content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lftj.language.recent import is_recent
from lftj.language.several_aggregates import is_auxiliary
from lftj.values.shown_text import counted
from maintenance.workspace.history import Span
from maintenance.workspace.history_picture import bytes_text, history_picture, seconds_text
from maintenance.workspace.published import Published

Samples = Mapping[tuple[str, ...], float]
"""Numbers by the values of labels."""


@dataclass(frozen=True)
class WorkspaceStats:
    """One moment's.

    Attributes:
        version: The number of the last change.
        rows: Of each relation and head.
        memory_bytes: By kind: ``relations`` and heads with all their indices, ``dictionaries`` of values,
            ``searches``: records, witnesses and what else they keep, ``support`` counts, ``groups`` of
            aggregates, ``recursion``: ranks and counters, and changes kept for those who ``follow``;
            ``single changes``: of the machine that commits these, where there is one.
        old_snapshots: How many snapshots hold a state that is not the present one.
        old_snapshot_seconds: The age of the oldest of them.
        commits, commit_seconds, housekeeping_rows: What commits took here, those that changed something.
        journal_bytes, data_bytes, checkpoint_version: In a folder: of the journal behind the last checkpoint,
            of the files of data, and the version that they have; None in memory.
        changes_not_on_disk: In a folder: how many changes a crash of the machine would take now.
        history: What commits took here, from the first to the last, as at most 128 spans of equal numbers of
            commits, each with ``commits``, ``seconds``, ``longest``, ``disk_seconds``, ``operations``,
            ``housekeeping_rows``, ``ended`` (seconds since 1970) and ``memory_bytes`` behind it.
    """

    version: int
    rows: Mapping[str, int]
    memory_bytes: Mapping[str, int]
    old_snapshots: int = 0
    old_snapshot_seconds: float = 0.0
    commits: int = 0
    commit_seconds: float = 0.0
    housekeeping_rows: int = 0
    journal_bytes: int | None = None
    data_bytes: int | None = None
    checkpoint_version: int | None = None
    changes_not_on_disk: int | None = None
    history: tuple[Span, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """All figures by their names."""
        history = [{**span._asdict(), "memory_bytes": dict(span.memory_bytes)} for span in self.history]
        return {**asdict(self), "history": tuple(history)}

    def __str__(self) -> str:
        """The figures in words.

        Examples:
            >>> print(WorkspaceStats(7, {"edge": 3}, {"relations": 240}, commits=2, commit_seconds=0.001))
            version 7; 2 commits here, 0.5 ms in the mean
            rows    edge 3
            memory  relations 240 B
        """
        commits = f"{counted(self.commits, 'commit')} here"
        if self.commits:
            commits += f", {seconds_text(self.commit_seconds / self.commits)} in the mean"
        rows = [f"{name} {n_rows:,}" for name, n_rows in self.rows.items()]
        memory = [f"{kind} {bytes_text(size)}" for kind, size in self.memory_bytes.items() if size]
        return "\n".join(
            [
                f"version {self.version:,}; {commits}",
                f"rows    {', '.join(rows) or 'none'}",
                f"memory  {', '.join(memory) or 'none'}",
            ]
        )

    def svg(self) -> str:
        """Memory by kind, and what commits took, from the first to the last: an SVG document."""
        return history_picture(self.history, self.memory_bytes, self.version)

    def _repr_svg_(self) -> str:
        return self.svg()

    def openmetrics(self) -> str:
        """The figures as OpenMetrics text, which Prometheus and others read.

        Examples:
            >>> print(WorkspaceStats(7, {"edge": 3}, {"relations": 240}, commits=2).openmetrics())
            # TYPE lftj_version gauge
            # HELP lftj_version The number of the last change.
            lftj_version 7
            # TYPE lftj_rows gauge
            # HELP lftj_rows Rows of each relation and head.
            lftj_rows{relation="edge"} 3
            # TYPE lftj_memory_bytes gauge
            # UNIT lftj_memory_bytes bytes
            # HELP lftj_memory_bytes Memory by kind.
            lftj_memory_bytes{kind="relations"} 240
            # TYPE lftj_old_snapshots gauge
            # HELP lftj_old_snapshots Snapshots that hold a state that is not the present one.
            lftj_old_snapshots 0
            # TYPE lftj_old_snapshot_seconds gauge
            # UNIT lftj_old_snapshot_seconds seconds
            # HELP lftj_old_snapshot_seconds The age of the oldest of them.
            lftj_old_snapshot_seconds 0.0
            # TYPE lftj_commits counter
            # HELP lftj_commits Commits that changed something.
            lftj_commits_total 2
            # TYPE lftj_commit_seconds counter
            # UNIT lftj_commit_seconds seconds
            # HELP lftj_commit_seconds What they took, without waiting for the disk.
            lftj_commit_seconds_total 0.0
            # TYPE lftj_housekeeping_rows counter
            # HELP lftj_housekeeping_rows Rows that they read to be written anew.
            lftj_housekeeping_rows_total 0
            # EOF
            <BLANKLINE>
        """
        return "\n".join([*self.openmetrics_lines(), "# EOF", ""])

    def openmetrics_lines(self) -> list[str]:
        """Those of `openmetrics`, without the last, so that others can follow."""
        return figure_lines(_METRICS, {name: getattr(self, name) for name in _METRICS})


Metrics = Mapping[str, tuple[str, str, str]]
"""By a figure's name its type, the label of one that has several, and what it is."""


def figure_lines(metrics: Metrics, figures: Mapping[str, Any]) -> list[str]:
    """Figures in OpenMetrics, in the order of ``metrics``; without those that are None."""
    lines: list[str] = []
    for name, (kind, label, text) in metrics.items():
        value = figures.get(name)
        if value is not None:
            samples: Samples = {(each,): n for each, n in value.items()} if label else {(): value}
            lines += metric_lines(f"lftj_{name}", kind, text, (label,) if label else (), samples)
    return lines


def metric_lines(
    metric: str,
    kind: str,
    text: str,
    labels: Sequence[str],
    samples: Samples,
) -> list[str]:
    """One metric in OpenMetrics: its type, its unit if its name ends so, what it is, and its samples.

    ``samples``: by the values of the labels.
    """
    lines = [f"# TYPE {metric} {kind}"]
    unit = metric.rpartition("_")[2]
    if unit in ("bytes", "seconds"):
        lines.append(f"# UNIT {metric} {unit}")
    lines.append(f"# HELP {metric} {text}")
    sample = f"{metric}_total" if kind == "counter" else metric
    for values, number in samples.items():
        pairs = [f'{label}="{_escaped(each)}"' for label, each in zip(labels, values, strict=True)]
        lines.append(f"{sample}{{{','.join(pairs)}}} {number}" if pairs else f"{sample} {number}")
    return lines


_METRICS: Metrics = {
    "version": ("gauge", "", "The number of the last change."),
    "rows": ("gauge", "relation", "Rows of each relation and head."),
    "memory_bytes": ("gauge", "kind", "Memory by kind."),
    "old_snapshots": ("gauge", "", "Snapshots that hold a state that is not the present one."),
    "old_snapshot_seconds": ("gauge", "", "The age of the oldest of them."),
    "commits": ("counter", "", "Commits that changed something."),
    "commit_seconds": ("counter", "", "What they took, without waiting for the disk."),
    "housekeeping_rows": ("counter", "", "Rows that they read to be written anew."),
    "journal_bytes": ("gauge", "", "The journal behind the last checkpoint."),
    "data_bytes": ("gauge", "", "The files of data of the last checkpoint."),
    "checkpoint_version": ("gauge", "", "The version that the last checkpoint has."),
    "changes_not_on_disk": ("gauge", "", "Changes that a crash of the machine would take now."),
}


def _escaped(value: str) -> str:
    """A label's value."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def stats_of(published: Published) -> WorkspaceStats:
    """The figures of a workspace."""
    state, store, watched = published.shown, published.store, published.watched
    ages = watched.snapshots.older_than(state.number)
    total, memory_bytes = watched.history.total, published.memory_bytes(state)
    return WorkspaceStats(
        version=state.number,
        rows={
            name: version.n_rows
            for name, version in state.versions.items()
            if not (is_auxiliary(name) or is_recent(name))
        },
        memory_bytes=memory_bytes,
        old_snapshots=len(ages),
        old_snapshot_seconds=max(ages, default=0.0),
        commits=total.commits,
        commit_seconds=total.seconds,
        housekeeping_rows=total.housekeeping_rows,
        **({} if store is None else store.figures),
        history=watched.history.spans(memory_bytes),
    )
