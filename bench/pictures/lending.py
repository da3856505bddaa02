"""The example of the pictures: who can lend whom a book, kept by its exact trace.

Everything that is drawn is read from here, and everything here is read from the
engine: the operations of its trace, its sensitivity records, its statistics.
"""

from __future__ import annotations

from dataclasses import dataclass

from indices.keys import KEY_MAX, KEY_MIN
from maintenance import Workspace
from maintenance.stats import RuleStats
from maintenance.strategies.trace.body_trace import BodyTrace

RULE = "lend(a, b, c) <- friend(a, b), owns(b, c), wants(a, c)."
ORDER = ["a", "b", "c"]
DATA = {
    "friend": [(1, 2), (1, 5), (3, 2)],
    "owns": [(2, 3), (2, 8), (2, 20), (5, 4), (5, 5), (5, 16)],
    "wants": [(1, 2), (1, 5), (1, 8), (1, 12), (1, 13), (1, 14), (1, 16), (1, 22), (3, 8)],
}
COLUMNS = {"friend": ["person", "friend"], "owns": ["person", "book"], "wants": ["person", "book"]}


@dataclass(frozen=True)
class Step:
    """One operation of the trace; ``to`` is None where the iterator ended."""

    binding: str
    atom: str
    operation: str
    start: int | None
    to: int | None


@dataclass(frozen=True)
class Interval:
    """Keys of an atom's iterator that the trace depended on; None: without end."""

    low: int | None
    high: int | None

    def __contains__(self, key: int) -> bool:
        return (self.low is None or self.low <= key) and (self.high is None or key <= self.high)


@dataclass(frozen=True)
class Committed:
    """What one change did."""

    stats: RuleStats
    changes: list[dict[str, int]]


def workspace() -> Workspace:
    """The example, installed, with records that keep the trace exactly."""
    made = Workspace(record_gap=0)
    for name, rows in DATA.items():
        made.load(name, rows, columns=COLUMNS[name])
    made.install(RULE, strategy="trace", order={"lend": ORDER})
    return made


def steps(made: Workspace) -> list[Step]:
    """All operations of the evaluation."""
    table = made.snapshot().trace(RULE.replace("lend", "lent"), order=ORDER)
    return [
        Step(row["binding"], row["atom"], row["operation"], _key(row["from"]), _key(row["to"]))
        for row in table.to_pylist()
    ]


def _key(text: str | None) -> int | None:
    return None if text is None else int(text)


def intervals(made: Workspace, atom: str, a: int, b: int) -> list[Interval]:
    """The records of an atom's iterator over c at the node of a and b."""
    (search,) = made._heads["lend"].searches
    assert isinstance(search, BodyTrace)
    found = []
    for participant, index in zip(search.plan.streams, search.sensitivity, strict=True):
        if participant.label != atom or participant.level != 1:
            continue
        prefix, low, high, context = index.records()
        keys = dict(zip(participant.places[:-1], prefix, strict=True))
        keys |= dict(zip(participant.context_places, context, strict=True))
        found = [
            Interval(None if lo == KEY_MIN else lo, None if hi == KEY_MAX else hi)
            for lo, hi, a_key, b_key in zip(low.tolist(), high.tolist(), keys[0], keys[1], strict=True)
            if (a_key, b_key) == (a, b)
        ]
    return sorted(found, key=lambda one: KEY_MIN if one.low is None else one.low)


def committed(relation: str, row: tuple[int, int]) -> Committed:
    """What inserting one row into the example does."""
    made = workspace()
    with made.transaction() as tx:
        tx.insert(relation, [row])
    made.verify()
    return Committed(tx.stats["lend"], tx.changes["lend"].to_pylist())
