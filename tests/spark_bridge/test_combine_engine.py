"""properties: what combines the cells of a partition holds the values of its tuples, and of nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lftj.values import collector
from spark_bridge.cells.combine_engine import ADDRESS, CombineEngine
from spark_bridge.cells.search_engine import SearchEngine
from spark_bridge.cells.signed_tables import signed
from spark_bridge.placing.packets import CellAddress, CellInput, packed
from support.cell_pipeline import program_text
from support.rows import rows_of

Row = tuple[Any, ...]

EDGE = pa.schema([("s", pa.string()), ("t", pa.string())])
WIDTH = 20


def groups(edges: list[Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for s, t in sorted(edges):
        found.setdefault(s, []).append(t)
    return found


PROGRAMS: dict[str, Callable[[list[Row]], list[Row]]] = {
    "h[s] = count() <- e(s, t).": lambda edges: [(s, len(ts)) for s, ts in groups(edges).items()],
    "h[s] = concat(t) <- e(s, t).": lambda edges: [(s, ",".join(ts)) for s, ts in groups(edges).items()],
    "h[s] = max(t) <- e(s, t).": lambda edges: [(s, max(ts)) for s, ts in groups(edges).items()],
    "h(s) <- e(s, _). h(t) <- e(_, t).": lambda edges: [
        (one,) for one in {x for edge in edges for x in edge}
    ],
    "h(s, count(), min(t)) <- e(s, t).": lambda edges: [
        (s, len(ts), min(ts)) for s, ts in groups(edges).items()
    ],
}


class Partition:
    """A head of a single cell, and what combines it."""

    def __init__(self, text: str) -> None:
        self.text = program_text(text, {"e": EDGE.empty_table()})
        self.n_rules = len(self.text.plans()[0].rules)
        self.search = SearchEngine(self.text, [0], {"e": EDGE})
        self.combine = CombineEngine(self.text, 0)

    def step(self, changes: list[tuple[str, str, int]]) -> None:
        columns = [list(column) for column in zip(*changes, strict=True)]
        (table,) = packed(pa.Table.from_arrays([pa.array(column) for column in columns], schema=signed(EDGE)))
        cells = [
            CellInput(CellAddress(rule, rule, ()), {placement.label: [pa.py_buffer(table)]})
            for rule in range(self.n_rules)
            for placement in self.text.plans()[0].rules[rule].placements({})
        ]
        given = CellInput(ADDRESS)
        for label, _, rows in self.search.step(cells)[0]:
            given.packets.setdefault(label, []).extend(map(pa.py_buffer, packed(rows)))
        self.combine.step([given])

    def n_values(self) -> int:
        (share, *_) = self.combine._shares
        return next(type_.domain.n_values for type_ in share._types if type_.domain.collector is not None)


@pytest.mark.in_turns
@pytest.mark.parametrize("text", PROGRAMS)
def test_keys_that_never_come_back_leave_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of keys that no one has seen before."""
    for name, number in {"LEAST_ADDED": 8, "LEAST": 16, "PACE": 4}.items():
        monkeypatch.setattr(collector, name, number)
    partition = Partition(text)
    window: deque[Row] = deque()
    sizes = []
    for number in range(240):
        window.append((f"key {number // 3}", f"key {number}"))
        changes = [(*window[-1], 1)]
        if len(window) > WIDTH:
            changes.append((*window.popleft(), -1))
        partition.step(changes)
        sizes.append(partition.n_values())
        if number % 40 == 0:
            assert sorted(rows_of(partition.combine.head())) == sorted(PROGRAMS[text](list(window)))
    assert sorted(rows_of(partition.combine.head())) == sorted(PROGRAMS[text](list(window)))
    # Which values a walk still meets depends on the order of sets: 82 is the most that was seen.
    assert max(sizes) < 5 * WIDTH
