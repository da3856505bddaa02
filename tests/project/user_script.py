"""A script as a user would write it, with types: checked by all that ``mypy --strict`` asks for, and run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

import lftj
from lftj.database.prepared import PreparedRule
from lftj.evaluation.explain import Explanation
from lftj.storage.relation_table import RelationTable
from maintenance import Snapshot, Transaction, Workspace
from maintenance.stats import RuleStats

TRIANGLE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
EDGES: Sequence[tuple[int, int]] = [(1, 2), (2, 3), (1, 3), (3, 4)]


def query(edges: Sequence[tuple[int, int]]) -> int:
    """Every way to ask."""
    db = lftj.Database()
    db.load("edge", edges, columns=["a", "b"])
    assert_type(db["edge"], RelationTable)
    assert_type(db.count(TRIANGLE), int)
    assert_type(db.explain(TRIANGLE, analyze=True), Explanation)
    assert_type(db.explain(TRIANGLE).svg(), str)
    rows: list[dict[str, int]] = db.query(TRIANGLE, order_by="a", limit=10).to_pylist()
    prepared = db.prepare("next(b) <- edge($from, b).")
    assert_type(prepared, PreparedRule)
    for batch in db.stream(TRIANGLE, batch_rows=100):
        assert batch.num_rows == len(rows)
    try:
        db.query("tri(a) <- egde(a, _).")
    except lftj.errors.UnknownRelationError as error:
        assert_type(str(error), str)
    return len(rows)


def maintain(edges: Sequence[tuple[int, int]]) -> int:
    """Install, follow, look back."""
    ws = Workspace()
    ws.load("edge", edges, columns=["a", "b"])
    ws.install(TRIANGLE, strategy={"tri": "delta"})
    seen: list[int] = []
    stop = ws.subscribe("tri", lambda changes: seen.append(changes.num_rows))
    before = ws.snapshot()
    assert_type(before, Snapshot)
    with ws.transaction() as tx:
        assert_type(tx, Transaction)
        tx.insert("edge", [(2, 4)])
        tx.erase("edge", [(1, 3)])
    stop()
    assert_type(tx.stats["tri"], RuleStats)
    assert_type(tx.stats["tri"].operations, int)
    assert_type(ws.explain_maintenance().svg(), str)
    assert seen == [2] and before["tri"].count == 1
    ws.verify()
    return ws["tri"].count


if __name__ == "__main__":
    assert query(EDGES) == 1
    assert maintain(EDGES) == 1
