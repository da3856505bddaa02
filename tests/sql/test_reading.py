"""What the reading room reads is in the corpus: each node and each expression is in some text's plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sql import plans
from sql.statements import CORPUS
from sql.tables import Tables

pytest.importorskip("lftj.sql")


def kinds(tree: Any) -> Iterator[str]:
    """The types of a plan's nodes, by their short names, and of its expressions."""
    if isinstance(tree, list):
        for part in tree:
            yield from kinds(part)
    elif isinstance(tree, dict):
        if isinstance(tree.get("type"), str):
            yield tree["type"].removeprefix("LOGICAL_")
        for part in tree.values():
            yield from kinds(part)


def test_all_that_is_read_is_in_the_corpus() -> None:
    from lftj.sql.reading.expressions import _READERS, COMPARISONS
    from lftj.sql.reading.plans import _NODES

    tables = Tables(filled=False)
    reached = {kind for s in CORPUS for kind in kinds(plans.plan(tables.connection, s.text))}
    assert {*_NODES, *_READERS, *COMPARISONS} <= reached
