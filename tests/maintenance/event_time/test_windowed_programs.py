"""oracle: random programs over a stream in Python: windows, what is recent, neighbours, interval joins.

A head is always the query of the rows that the stream holds, and of its clock: both are taken as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from maintenance import Workspace

Row = tuple[Any, ...]
N_PROGRAMS = 60
STRATEGIES = ("auto", "delta", "trace", "views", "recompute")
KEEP, LATE, MOST = 60, 8, 9
AGGREGATES: dict[str, Callable[[list[Row]], Any]] = {
    "count()": len,
    "sum(v)": lambda rows: sum(v for _, v, _, _ in rows),
    "max(v)": lambda rows: max(v for _, v, _, _ in rows),
    "count(distinct k)": lambda rows: len({k for k, *_ in rows}),
    "count(if v > 4)": lambda rows: sum(v > 4 for _, v, _, _ in rows),
    "count(distinct k if v > 4)": lambda rows: len({k for k, v, _, _ in rows if v > 4}),
}
"""Of rows (k, v, t, e)."""


class Program:
    """A rule of one head ``h``, and the same in Python."""

    def __init__(self, random: Random) -> None:
        self.recent = random.choice([None, None, random.randint(1, KEEP)])
        self.least = random.choice([None, random.randrange(MOST)])
        self.length, self.step = random.randint(1, 20), random.randint(1, 12)
        self.offset = random.choice([0, random.randrange(20)])
        self.kind = random.choice(["tumble", "hop", "hop", "lag", "lead", "pairs", "followed"])
        self.by_key = random.random() < 0.5
        self.calls = random.sample(list(AGGREGATES), random.randint(1, 3))

    def _body(self) -> str:
        tests = [] if self.recent is None else [f"t > now() - {self.recent}"]
        tests += [] if self.least is None else [f"v > {self.least}"]
        return ", ".join(["s(k, v, t, e)", *tests])

    @property
    def text(self) -> str:
        body = self._body()
        if self.kind in ("lag", "lead"):
            return f"h(e, d) <- {body}, w = {self.kind}(v, by: (t, e), per: k), d = v - w."
        if self.kind == "pairs":
            return f"h(e, f) <- {body}, s(k, _, u, f), u > t, u <= t + {self.length}."
        if self.kind == "followed":
            near = f"s(k, _, u, _), u > t, u <= t + {self.length}"
            return f"h(e) <- {body}, !followed(k, e). followed(k, e) <- {body}, {near}."
        window = f"w = tumble(t, {self.length}, {self.offset})"
        if self.kind == "hop":
            window = f"w in hop(t, {self.length}, {self.step}, {self.offset})"
        return f"h({'k, ' * self.by_key}w, {', '.join(self.calls)}) <- {body}, {window}."

    def _windows(self, t: int) -> Iterator[int]:
        step = self.length if self.kind == "tumble" else self.step
        last = t - (t - self.offset) % step
        while last > t - self.length:
            yield last
            last -= step

    def answer(self, rows: list[Row], now: int) -> list[Row]:
        some = [row for row in rows if self.recent is None or row[2] > now - self.recent]
        some = [row for row in some if self.least is None or row[1] > self.least]
        if self.kind in ("lag", "lead"):
            return sorted(self._neighbours(some))
        near = [
            (e, f)
            for k, _, t, e in some
            for other, _, u, f in rows
            if other == k and t < u <= t + self.length
        ]
        if self.kind == "pairs":
            return sorted(near)
        if self.kind == "followed":
            return sorted({(row[3],) for row in some} - {(e,) for e, _ in near})
        groups: dict[Row, list[Row]] = {}
        for row in some:
            for w in self._windows(row[2]):
                groups.setdefault((*row[: self.by_key], w), []).append(row)
        return sorted((*key, *(AGGREGATES[call](own) for call in self.calls)) for key, own in groups.items())

    def _neighbours(self, some: list[Row]) -> Iterator[Row]:
        ordered = sorted(some, key=lambda row: (row[0], row[2], row[3]))
        for one, other in itertools.pairwise(ordered):
            if one[0] == other[0]:
                row, of = (other, one) if self.kind == "lag" else (one, other)
                yield row[3], row[1] - of[1]


@pytest.mark.parametrize("seed", range(N_PROGRAMS))
def test_a_head_is_the_query_of_what_the_stream_holds(seed: int) -> None:
    random = Random(seed)
    program = Program(random)
    numbers = iter(range(10_000))
    moment = 100

    def come(n: int) -> list[Row]:
        return [
            (random.randrange(4), random.randrange(MOST), moment - random.randrange(LATE + 3), next(numbers))
            for _ in range(n)
        ]

    ws = Workspace()
    ws.load("s", come(30), columns=["k", "v", "t", "e"], time="t", lateness=LATE, keep=KEEP)
    ws.install(program.text, strategy=STRATEGIES[seed % len(STRATEGIES)])
    for _ in range(8):
        moment += random.choice([1, 5, 5, 20, 90])
        here = [row for row in ws["s"] if row[2] >= ws.now]
        with ws.transaction() as tx:
            tx.erase("s", random.sample(here, min(2, len(here))))
            tx.insert("s", come(random.randrange(12)))
        assert sorted(ws["h"]) == program.answer(list(ws["s"]), ws.now), program.text
    ws.verify()


def test_the_programs_are_of_every_kind() -> None:
    programs = [Program(Random(seed)) for seed in range(N_PROGRAMS)]
    kinds = {program.kind for program in programs}
    assert kinds == {"tumble", "hop", "lag", "lead", "pairs", "followed"}
    assert sum(program.recent is not None for program in programs) > 10
