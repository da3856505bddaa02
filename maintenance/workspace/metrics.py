"""What a workspace holds and has done, for those who watch it: ``ws.stats``, and as OpenMetrics text.

Memory is that of arrays, with the room that they have for growth; what a state that waits, a snapshot or a
table of a user's holds beyond the present versions is not in it: ``snapshots`` says that there are some.

Cost: a look at every structure, none at its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lftj.language.several_aggregates import is_auxiliary
from lftj.values.domains import Domains
from maintenance.staged import Staged, StagedValue
from maintenance.workspace.published import Published
from maintenance.workspace.state import State


@dataclass(frozen=True)
class WorkspaceStats:
    """One moment's.

    Attributes:
        version: The number of the last change.
        rows: Of each relation and head.
        memory_bytes: By kind: ``relations`` and heads with all their indices, ``dictionaries`` of values,
            ``searches``: records, witnesses and what else they keep, ``support`` counts, ``groups`` of
            aggregates, ``recursion``: ranks and counters, and changes kept for those who ``follow``.
        old_snapshots: How many snapshots hold a state that is not the present one.
        old_snapshot_seconds: The age of the oldest of them.
        commits, commit_seconds, housekeeping_rows: What commits took here, those that changed something.
        journal_bytes, data_bytes, checkpoint_version: In a folder: of the journal behind the last checkpoint,
            of the files of data, and the version that they have; None in memory.
        changes_not_on_disk: In a folder: how many changes a crash of the machine would take now.
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

    def as_dict(self) -> dict[str, Any]:
        """All figures by their names."""
        return asdict(self)

    def openmetrics(self) -> str:
        """The figures as OpenMetrics text, which Prometheus and others read.

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
        lines = []
        for name, (kind, label, text) in _METRICS.items():
            value = getattr(self, name)
            if value is None:
                continue
            metric = f"lftj_{name}"
            lines.append(f"# TYPE {metric} {kind}")
            unit = name.rpartition("_")[2]
            if unit in ("bytes", "seconds"):
                lines.append(f"# UNIT {metric} {unit}")
            lines.append(f"# HELP {metric} {text}")
            sample = f"{metric}_total" if kind == "counter" else metric
            if label:
                lines += [f'{sample}{{{label}="{_escaped(each)}"}} {n}' for each, n in value.items()]
            else:
                lines.append(f"{sample} {value}")
        return "\n".join([*lines, "# EOF", ""])


_METRICS = {
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
"""Each figure's type, the label of a figure that has several, and what it is."""


def _escaped(value: str) -> str:
    """A label's value."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def stats_of(published: Published, domains: Domains) -> WorkspaceStats:
    """The figures of a workspace."""
    state, store, watched = published.shown, published.store, published.watched
    ages = watched.snapshots.older_than(state.number)
    return WorkspaceStats(
        version=state.number,
        rows={name: version.n_rows for name, version in state.versions.items() if not is_auxiliary(name)},
        memory_bytes={**_memory(state), "dictionaries": domains.nbytes, "follow": published.feed.nbytes},
        old_snapshots=len(ages),
        old_snapshot_seconds=max(ages, default=0.0),
        **asdict(watched.done),
        **({} if store is None else store.figures),
    )


def _memory(state: State) -> dict[str, int]:
    """Bytes by kind of what the versions and the heads of a state take."""
    memory = dict.fromkeys(("relations", "searches", "support", "groups", "recursion"), 0)
    memory["relations"] = sum(version.nbytes for version in state.versions.values())
    memory["searches"] = sum(head.index_bytes for head in state.heads.values())
    for part in parts_of(state.heads.values()):
        if isinstance(part, StagedValue):
            memory["support"] += getattr(part.kept, "nbytes", 0)
        else:
            kind = {"maintenance.groups": "groups", "maintenance.strategies.stages": "recursion"}.get(
                type(part).__module__.rpartition(".")[0]
            )
            if kind is not None:
                memory[kind] += getattr(part, "nbytes", 0)
    return memory


def parts_of(whole: Iterable[Staged]) -> Iterator[Staged]:
    """Everything that is staged within some structures, each once."""
    seen: set[int] = set()
    todo = list(whole)
    while todo:
        part = todo.pop()
        if id(part) not in seen:
            seen.add(id(part))
            todo += part.parts
            yield part
