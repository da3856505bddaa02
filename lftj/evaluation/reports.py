"""What `explain` finds out: the figures of a plan, apart from how they are shown."""

from __future__ import annotations

from dataclasses import dataclass

EXISTS = "exists: stops at the first success"


@dataclass(frozen=True)
class DepthReport:
    """One depth of a plan: estimates, and measured operations when analyzed."""

    variable: str
    participants: tuple[str, ...]
    notes: tuple[str, ...]
    estimated_matches: float
    estimated_operations: float
    opens: int | None
    nexts: int | None
    seeks: int | None


@dataclass(frozen=True)
class BodyReport:
    """One body of one rule for one head."""

    head: str
    rule: str
    order: tuple[str, ...]
    reason: str
    piloted: tuple[tuple[tuple[str, ...], float], ...]
    indexes: tuple[str, ...]
    depths: tuple[DepthReport, ...]
    notes: tuple[str, ...]
    rows: int | None
    shared: str = ""  # the head whose search gives the rows; then this has neither depths nor indexes
    scanned: str = ""  # the atom whose rows are scanned; then there are no depths
    lookups: tuple[str, ...] = ()  # and the other atoms, each with the variable by which it is looked up

    @property
    def operations(self) -> int:
        """Measured opens, nexts and seeks together; 0 when not analyzed."""
        return sum((d.opens or 0) + (d.nexts or 0) + (d.seeks or 0) for d in self.depths)
