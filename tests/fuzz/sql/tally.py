"""What was played of SQL, by name; a process counts for itself and hands its counts on."""

from __future__ import annotations

from collections import Counter

TOLD = (
    "statements",
    "once",
    "kept views",
    "commits",
    "refused",
    "equal errors",
    "errors of what nobody needs",
    "errors of the least integer",
    "oracle skips",
    "oracles differ",
)
"""What is said of every run, if it be nothing."""

MOST_TOLD = 40
"""Of what is counted by construct."""

_counts: Counter[str] = Counter()
_disputes: list[str] = []


def count(name: str, what: str = "") -> None:
    """One more of it; ``what``: of which kind, counted by itself, too."""
    _counts[name] += 1
    if what:
        _counts[f"{name}: {what}"] += 1


def dispute(text: str) -> None:
    """The oracles differ: who looks at it decides."""
    count("oracles differ")
    _disputes.append(text)


def taken() -> tuple[dict[str, int], list[str]]:
    """The counts and disputes since the last time."""
    taken = dict(_counts), list(_disputes)
    _counts.clear()
    _disputes.clear()
    return taken


def put(taken: tuple[dict[str, int], list[str]]) -> None:
    """Count what was taken once more."""
    _counts.update(taken[0])
    _disputes.extend(taken[1])


def told(counts: Counter[str]) -> str:
    """Lines to be read: the totals, then each kind that was refused or skipped."""
    lines = [", ".join(f"{counts[name]} {name}" for name in TOLD)]
    kinds = [(name, n) for name, n in counts.most_common() if name.partition(":")[2]]
    lines += [f"  {n} {name}" for name, n in kinds[:MOST_TOLD]]
    return "\n".join(lines)
