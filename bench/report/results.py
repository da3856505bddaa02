"""`Results`: everything that one call of ``python -m bench`` found, as JSON and as Markdown.

Results are written after every measurement, so an interrupted run leaves what
it has; such results say that they are partial.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.peers.engine import title
from bench.report import machine
from bench.report.markdown import mebibytes, number, table
from bench.report.measurement import Measurement
from bench.report.sweep import Sweep
from bench.report.verdict import Verdict, judge, ratio
from bench.workload import Workload


@dataclass
class Results:
    """Measurements in the order in which they were made, with what they belong to.

    Attributes:
        machine: What :func:`bench.report.machine.describe` said at the start.
        options: What the caller chose, in words; empty for everything.
        planned: Workload titles and engines that were chosen; what is not measured of them is listed.
        complete: Every chosen measurement was made.
    """

    machine: dict[str, Any]
    options: str = ""
    planned: list[tuple[str, str]] = field(default_factory=list)
    complete: bool = False
    workloads: list[Workload] = field(default_factory=list)
    measurements: dict[str, list[Measurement]] = field(default_factory=dict)
    sweeps: list[Sweep] = field(default_factory=list)

    def add(self, workload: Workload, measurement: Measurement) -> None:
        """Take one more measurement."""
        if workload.name not in self.measurements:
            self.workloads.append(workload)
        self.measurements.setdefault(workload.name, []).append(measurement)

    def verdicts(self) -> Iterator[tuple[Workload, Verdict]]:
        """All targets of the measured workloads, judged."""
        for workload in self.workloads:
            for verdict in judge(workload, self.measurements[workload.name]):
                yield workload, verdict

    def wrong(self) -> list[Measurement]:
        """Measurements that show something broken: a wrong answer or a failure."""
        sweeps = [point.measurement for sweep in self.sweeps for point in sweep.points]
        rows = [row for rows in self.measurements.values() for row in rows]
        return [row for row in rows + sweeps if row.status in ("wrong answer", "failed")]

    def missing(self) -> list[tuple[str, str]]:
        """What was planned and has not been measured: workload title, engine."""
        made = {
            (workload.title, row.engine)
            for workload in self.workloads
            for row in self.measurements[workload.name]
        }
        return [pair for pair in self.planned if pair not in made]

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return {
            "complete": self.complete,
            "options": self.options,
            "missing": self.missing(),
            "machine": self.machine,
            "measurements": [row.as_json() for rows in self.measurements.values() for row in rows],
            "verdicts": [
                {
                    **asdict(verdict),
                    "floor_reached": verdict.floor_reached,
                    "goal_reached": verdict.goal_reached,
                }
                for _, verdict in self.verdicts()
            ],
            "sweeps": [sweep.as_json() for sweep in self.sweeps],
        }

    def as_markdown(self) -> str:
        """The report that people read."""
        parts = ["# Results of the benchmarks\n"]
        if not self.complete:
            missing = [f"{name} ({title(engine)})" for name, engine in self.missing()]
            parts.append(
                "**Partial: the run ended early.** Not measured: " + "; ".join(missing or ["-"]) + "\n"
            )
        if self.options:
            parts.append(f"A selection: {self.options}.\n")
        parts += ["## Machine\n", machine.as_markdown(self.machine) + "\n"]
        if any(workload.targets for workload in self.workloads):
            parts += ["## Targets\n", _targets(list(self.verdicts())) + "\n"]
        if self.workloads:
            parts += ["## Measurements\n", _LEGEND + "\n", self._measurements() + "\n"]
        if any(row.figures for rows in self.measurements.values() for row in rows):
            parts += ["## Figures\n", self._figures() + "\n"]
        notes = [f"- {workload.title}: {workload.note}" for workload in self.workloads if workload.note]
        if notes:
            parts += ["\n".join(notes) + "\n"]
        if self.sweeps:
            parts += ["## Growth\n", *(sweep.as_markdown() + "\n" for sweep in self.sweeps)]
        return "\n".join(parts)

    def _measurements(self) -> str:
        rows = []
        for workload in self.workloads:
            found = self.measurements[workload.name]
            for row in found:
                rows.append(
                    [
                        workload.title,
                        title(row.engine),
                        str(row.threads),
                        number(row.median) if row.median is not None else row.status,
                        " - ".join(number(bound) for bound in row.quartiles) if row.quartiles else "",
                        number(statistics.median(row.processor_seconds)) if row.processor_seconds else "",
                        str(len(row.times) or ""),
                        _times_slower(found, row),
                        number(row.first_seconds),
                        number(row.load_seconds),
                        mebibytes(row.peak_bytes),
                        mebibytes(row.base_bytes),
                        row.detail,
                    ]
                )
        return table(
            [
                "workload",
                "engine",
                "threads",
                "median s",
                "quartiles s",
                "processor s",
                "runs",
                "time / lftj's",
                "first run s",
                "load s",
                "peak MiB",
                "of it at the start",
                "remark",
            ],
            rows,
        )

    def _figures(self) -> str:
        """What processes counted beside times, a line per figure."""
        rows = [
            [workload.title, title(row.engine), name, number(value)]
            for workload in self.workloads
            for row in self.measurements[workload.name]
            for name, value in row.figures.items()
        ]
        return table(["workload", "engine", "figure", "value"], rows)

    def write(self, folder: Path) -> None:
        """Write results.json and results.md; each appears whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        contents = {
            "results.json": json.dumps(self.as_json(), indent=1) + "\n",
            "results.md": self.as_markdown(),
        }
        for name, text in contents.items():
            part = folder / f"{name}.part"
            part.write_text(text, encoding="utf-8")
            part.replace(folder / name)


_LEGEND = (
    "Every count was checked before it was timed. One process per row; its peak memory is that of the whole "
    "process, of which the last column was taken before any data came. The first run builds indexes and "
    "loads compiled code; the median and the quartiles are of the runs after it, and so is the median of the "
    "processor time, all threads together. Where a run is "
    '"from tables to count" or a load, it starts with an empty database each time. "no query": the question '
    "was not put to that engine."
)


def _times_slower(found: list[Measurement], row: Measurement) -> str:
    if row.engine == "lftj":
        return ""
    value, at_least, _ = ratio(found, row.engine)
    return "" if value is None else ("> " if at_least else "") + number(value)


def _targets(verdicts: list[tuple[Workload, Verdict]]) -> str:
    words = {True: "reached", False: "MISSED", None: "unknown"}
    rows = []
    for workload, verdict in verdicts:
        target = verdict.target
        value = verdict.reason if verdict.value is None else number(verdict.value)
        rows.append(
            [
                workload.title,
                verdict.asks,
                number(target.floor),
                number(target.goal),
                ("> " if verdict.at_least else "") + value,
                words[verdict.floor_reached] if target.floor is not None else "",
                words[verdict.goal_reached] if target.goal is not None else "",
            ]
        )
    return table(["workload", "measured", "floor", "goal", "value", "floor", "goal"], rows)
