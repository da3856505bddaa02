"""What an evaluation runs, and what it planned and measured, for ``explain``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lftj.evaluation.fixpoint import Fixpoint
from lftj.evaluation.plans import Planned
from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.planning.lowered import Lowered
from lftj.search.regions.evaluation import Operations
from lftj.search.scan import Scan


@dataclass
class BodyRun:
    """One body that is searched, planned for heads that its rows feed; the counters fill as it runs."""

    rule: CheckedRule
    heads: Sequence[CheckedHead]
    body: Body
    planned: Planned
    counters: np.ndarray  # int64 (depths, 3): opens, nexts, seeks
    rows: int = 0


@dataclass
class ScanRun:
    """One body that is scanned for heads that its rows feed."""

    rule: CheckedRule
    heads: Sequence[CheckedHead]
    lowered: Lowered
    scan: Scan
    rows: int = 0


@dataclass
class Done:
    """What an evaluation planned and measured so far, for ``explain``."""

    bodies: list[BodyRun] = field(default_factory=list)
    scans: list[ScanRun] = field(default_factory=list)
    fixpoints: list[Fixpoint] = field(default_factory=list)
    joined: list[CheckedRule] = field(default_factory=list)  # whose relations stand side by side
    warnings: set[str] = field(default_factory=set)

    @property
    def operations(self) -> Operations:
        """What all searches took, and scans: a row as a step, a look-up as a seek."""
        took = Operations()
        for scanned in self.scans:
            n_rows = scanned.scan.n_rows
            took.add(Operations(nexts=n_rows, seeks=scanned.scan.steps - n_rows))
        for run in self.bodies:
            took.add(Operations(*run.counters.sum(axis=0).tolist()))
        for fixpoint in self.fixpoints:
            for body in fixpoint.bodies:
                took.add(body.operations)
        return took
