"""What a scan tree refuses as key or value; it is unchanged afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from indices.errors import KeyOrderError, LftjError, MonoidError
from indices.monoid import SUM
from indices.scan_tree import ScanTree

pytestmark = pytest.mark.kernel


def test_types_of_values() -> None:
    for dtype in (np.int32, "text", object):
        with pytest.raises(MonoidError, match="values are int64 or float64"):
            ScanTree(SUM, dtype=dtype)
    with pytest.raises(MonoidError, match="values of type float64 in a scan of int64"):
        ScanTree(SUM).insert(1, 0.5)
    with pytest.raises(MonoidError, match="values of type <U1"):
        ScanTree.from_sorted([1], ["a"], SUM)
    with pytest.raises(MonoidError, match="only counts have none"):
        ScanTree(SUM).insert(1)
    with pytest.raises(MonoidError, match="2 keys need 2 values"):
        ScanTree(SUM).insert_many([1, 2], [1])
    with pytest.raises(MonoidError, match="9223372036854775808 is beyond 64 bits"):
        ScanTree(SUM).insert(1, 2**63)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tree: tree.insert((1, 2, 3), 1), "keys of 3 columns in a tree whose keys have 2"),
        (lambda tree: tree.insert(1, 1), "keys of 1 columns in a tree whose keys have 2"),
        (lambda tree: tree.query((1, 2, 3), (1, 2, 3)), "keys of 3 columns in a tree whose keys have 2"),
        (
            lambda tree: tree.insert((0.5, 1), 1),
            "keys are integers of 64 bits; these make an array of float64",
        ),
        (lambda tree: tree.erase((2**63, 2**63)), "these make an array of uint64"),
        (lambda tree: tree.erase_many([(1, 2), (1,)]), "the same number of columns"),
        (lambda tree: tree.erase_many([[[1]]]), r"not an array of shape \(1, 1, 1\)"),
        (lambda tree: tree.query_many([(1, 2)], []), "1 lower ends for 0 upper ends"),
        (lambda tree: ScanTree(SUM, columns=0), "at least one column, not 0"),
        (lambda tree: ScanTree.from_sorted([1, 3, 3], [1, 1, 1], SUM), r"row 2 is \[3\], after \[3\]"),
        (
            lambda tree: ScanTree.from_sorted([(1, 2), (1, 1)], [1, 1], SUM),
            r"row 1 is \[1, 1\], after \[1, 2\]",
        ),
    ],
)
def test_keys_that_do_not_fit(call: Callable[[ScanTree], Any], message: str) -> None:
    tree = ScanTree.from_sorted([(1, 1), (1, 2)], [1, 2], SUM)
    with pytest.raises(KeyOrderError, match=message) as caught:
        call(tree)
    assert isinstance(caught.value, LftjError)
    assert [column.tolist() for column in tree.records()] == [[[1, 1], [1, 2]], [1, 2]]
