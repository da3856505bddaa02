"""laws: what a transaction prepares is called with what the commit then does, or there is no commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from maintenance import Workspace


def edges(path: Path | None = None) -> Workspace:
    workspace = Workspace() if path is None else Workspace.open(path)
    workspace.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
    workspace.install("two(a, c) <- edge(a, b), edge(b, c).")
    return workspace


def test_it_is_told_what_the_commit_changes_before_anybody_sees_it(tmp_path: Path) -> None:
    told: list[tuple[list[dict[str, object]], int, list[tuple[int, ...]]]] = []
    with edges(tmp_path) as workspace:

        def prepare(changes: Mapping[str, pa.Table], late: Mapping[str, pa.Table]) -> None:
            told.append((changes["two"].to_pylist(), workspace.version, sorted(workspace["two"])))
            assert not late

        before = workspace.version
        for number in range(3):  # also where single changes go their own way
            with workspace.transaction(prepare=prepare) as transaction:
                transaction.insert("edge", [(3 + number, 4 + number)])
            rows, version, there = told[-1]
            assert rows == transaction.changes["two"].to_pylist() and len(rows) == 1
            assert version == before + number == workspace.version - 1
            assert (2 + number, 4 + number) not in there and (2 + number, 4 + number) in workspace["two"]
        with workspace.transaction(prepare=prepare):
            pass
        assert len(told) == 3, "nothing is committed"


def test_what_it_raises_drops_the_transaction(tmp_path: Path) -> None:
    with edges(tmp_path) as workspace:

        def refuse(changes: Mapping[str, pa.Table], late: Mapping[str, pa.Table]) -> None:
            raise OSError("no space")

        version = workspace.version
        with (
            pytest.raises(OSError, match="no space"),
            workspace.transaction(prepare=refuse) as transaction,
        ):
            transaction.insert("edge", [(3, 4)])
        assert (workspace.version, workspace["two"].count, workspace["edge"].count) == (version, 1, 2)
        workspace.verify()
        with workspace.transaction() as transaction:
            transaction.insert("edge", [(3, 4)])
        assert transaction.changes["two"].to_pylist() == [{"a": 2, "c": 4, "weight": 1}]
    with Workspace.open(tmp_path) as again:
        assert sorted(again["two"]) == [(1, 3), (2, 4)]


def test_it_gets_the_late_rows() -> None:
    workspace = Workspace()
    workspace.load("trade", {"t": [100], "n": [1]}, time="t", lateness=5)
    late_rows: list[Mapping[str, pa.Table]] = []
    with workspace.transaction(prepare=lambda changes, late: late_rows.append(dict(late))) as transaction:
        transaction.insert("trade", [(90, 7), (101, 8)])
    assert [late["trade"].to_pylist() for late in late_rows] == [[{"t": 90, "n": 7, "weight": 1}]]
    assert transaction.stats.late == {"trade": 1}
