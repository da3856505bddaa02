"""differential: the first tuples of an index version are those of all its tuples, however it came to be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lftj.storage.first_tuples import first_tuples
from lftj.storage.index_version import IndexVersion
from lftj.storage.trie import Trie
from maintenance import Workspace
from support.peak_memory import least_peak

Row = tuple[int, int, int]

KEYS = st.integers(-2, 4)
ROWS = st.sets(st.tuples(KEYS, KEYS, KEYS), max_size=40)


def columns_of(rows: list[Row]) -> list[np.ndarray]:
    return list(np.array(rows, np.int64).reshape(len(rows), 3).T.copy())


@given(base=ROWS, steps=st.lists(ROWS, max_size=4))
def test_first_tuples(base: set[Row], steps: list[set[Row]]) -> None:
    """Each step erases its rows that are there and inserts the others."""
    version, held = IndexVersion(Trie.from_sorted(columns_of(sorted(base)))), set(base)
    for step in steps:
        rows = sorted(step)
        signs = np.array([-1 if row in held else 1 for row in rows], np.int64)
        version, held = version.advance(columns_of(rows), signs), held ^ step
    expected = sorted(held)
    for n in (0, 1, 2, 3, 7, 20, len(expected), len(expected) + 1, 1000):
        found = first_tuples(version, n)
        assert list(zip(*(column.tolist() for column in found), strict=True)) == expected[:n]


def test_the_start_of_a_large_version_was_erased() -> None:
    n = 30_000
    rows = [np.arange(n) // 50, np.arange(n) % 50, np.zeros(n, np.int64)]
    gone = 3_000
    version = IndexVersion(Trie.from_sorted(rows))
    version = version.advance([column[:gone] for column in rows], np.full(gone, -1))
    assert len(version.runs) == 1
    found = first_tuples(version, 4)
    assert [column.tolist() for column in found] == [[60] * 4, [0, 1, 2, 3], [0] * 4]


def test_a_large_relation_shows_at_once() -> None:
    """laws: what a repr takes does not follow the number of rows: not a byte for each of them."""
    n = 2_000_000
    ws = Workspace()
    ws.load("r", {"a": np.arange(n) // 10, "b": np.arange(n) % 10})
    with ws.transaction() as tx:
        tx.insert("r", [(-1, 7)])
        tx.erase("r", [(0, 0), (0, 1)])
    repr(ws["r"])
    assert least_peak(lambda: repr(ws["r"])) < n // 8
    lines = repr(ws["r"]).splitlines()
    assert lines[:4] == [f"r(a: int64, b: int64), {n - 1:,} rows", " a  b", "-1  7", " 0  2"]
    assert lines[-1] == f"... {n - 11:,} more"
