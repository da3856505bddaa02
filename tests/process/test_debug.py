"""With LFTJ_DEBUG wrong rows and weights, which the engine else takes on trust, fail where they come in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from lftj.process import debug
from lftj.storage.index_version import IndexVersion
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.trie import Trie
from lftj.values.schema import Column, Schema
from support.bodies import INTEGER, columns_of, relation

pytestmark = pytest.mark.kernel

Rows = list[tuple[int, int]]
HELD: Rows = [(1, 5), (2, 6), (2, 7)]
PAIRS = Schema((Column("a", INTEGER), Column("b", INTEGER)))

WRONG_ROWS: dict[str, Rows] = {
    "unsorted by the first column": [(3, 1), (0, 1)],
    "unsorted by the last column": [(3, 2), (3, 1)],
    "sorted by column and not by row": [(3, 2), (4, 9), (4, 3)],
    "twice the same": [(3, 1), (3, 1)],
}
TAKES_ROWS: dict[str, Callable[[Rows], object]] = {
    "Relation.from_codes": lambda rows: Relation.from_codes("r", PAIRS, columns_of(rows, 2)),
    "Trie.from_sorted": lambda rows: Trie.from_sorted(columns_of(rows, 2)),
    "RelationVersion.of_sorted": lambda rows: RelationVersion.of_sorted(
        "r", PAIRS, (1, 0), columns_of(rows, 2)
    ),
    "RelationVersion.advance": lambda rows: RelationVersion(relation("r", 2, HELD)).advance(
        columns_of(rows, 2), np.ones(len(rows), np.int64)
    ),
    "IndexVersion.advance": lambda rows: IndexVersion(Trie.from_sorted(columns_of(HELD, 2))).advance(
        columns_of(rows, 2), np.ones(len(rows), np.int64)
    ),
}


def test_the_tests_run_with_the_checks() -> None:
    assert debug.enabled


@pytest.mark.parametrize("rows", WRONG_ROWS.values(), ids=WRONG_ROWS)
@pytest.mark.parametrize("take", TAKES_ROWS.values(), ids=TAKES_ROWS)
def test_rows_that_are_not_sorted_and_distinct(take: Callable[[Rows], object], rows: Rows) -> None:
    with pytest.raises(AssertionError, match="rows are to be sorted and distinct"):
        take(rows)
    take(sorted(set(rows)))


@pytest.mark.parametrize(
    ("rows", "weights", "message"),
    [
        ([(1, 5)], [1], "row 0 has weight 1 and changes by 1"),
        ([(1, 6)], [-1], "row 0 has weight 0 and changes by -1"),
        ([(0, 0), (3, 3)], [1, 2], "row 1 has weight 0 and changes by 2"),
        ([(0, 0), (1, 5)], [0, -1], "row 0 has weight 0 and changes by 0"),
        ([(0, 0), (2, 7)], [1, -112], "row 1 has weight 1 and changes by -112"),
    ],
)
def test_weights_that_leave_another_weight_than_0_or_1(rows: Rows, weights: list[int], message: str) -> None:
    change = columns_of(rows, 2), np.array(weights)
    for version in (
        RelationVersion(relation("r", 2, HELD)),
        RelationVersion.of_sorted("r", PAIRS, (1, 0), columns_of(sorted((b, a) for a, b in HELD), 2)),
        IndexVersion(Trie.from_sorted(columns_of(HELD, 2))),
        IndexVersion(Trie.from_sorted(columns_of([], 2))).advance(columns_of(HELD, 2), np.ones(3, np.int64)),
    ):
        with pytest.raises(AssertionError, match=f"{message}$"):
            version.advance(*change)


def test_columns_that_are_none() -> None:
    with pytest.raises(AssertionError, match=r"'r': the columns have \[1, 2\] rows"):
        Relation.from_codes("r", PAIRS, [np.array([1, 2]), np.array([1])])
    with pytest.raises(AssertionError, match="'r': a column is of type int32, not int64"):
        Relation.from_codes("r", PAIRS, [np.array([1, 2]), np.array([1, 2], np.int32)])


@pytest.mark.parametrize(("value", "enabled"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_it_is_switched_by_the_environment(value: str | None, enabled: bool) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "LFTJ_DEBUG"}
    if value is not None:
        environment["LFTJ_DEBUG"] = value
    command = [sys.executable, "-c", "from lftj.process import debug; print(debug.enabled)"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{enabled}\n"


def test_switched_off_it_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debug, "enabled", False)
    monkeypatch.setattr(debug, "check_rows", None)
    monkeypatch.setattr(debug, "check_weights", None)
    version = RelationVersion(relation("r", 2, HELD)).advance(columns_of([(0, 0)], 2), np.array([1]))
    assert version.n_rows == 4
