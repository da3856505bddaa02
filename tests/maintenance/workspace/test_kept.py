"""Workspaces in a folder: what is opened again is what was there, whatever happened between."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numba
import pyarrow as pa
import pytest

import maintenance
from lftj import errors
from lftj.values.semigroup import registered_names
from maintenance import Workspace, image
from maintenance.workspace import recovery
from maintenance.workspace.folder import KeptFolder
from support.kept_lives import EDGES, TRIANGLES, insert, life, with_edges, without_image
from support.paths import ROOT, child_environment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ws"


# -- opening again ------------------------------------------------------------------------------------


@pytest.mark.in_turns
@pytest.mark.parametrize("seed", range(4))
def test_lives_with_many_openings(folder: Path, seed: int) -> None:
    """Closed or left open, with the image or without, with checkpoints of every size."""
    chance = random.Random(100 + seed)
    workspace = Workspace.open(folder)
    for step, expected in life(chance, 40):
        step(workspace)
        if chance.random() < 0.3:
            if chance.random() < 0.5:
                workspace.close()
            else:  # as if the process had ended
                assert workspace._published.store is not None and isinstance(workspace._folder, KeptFolder)
                workspace._folder.checkpoints.end()
                workspace._published.store._lock.release()
            if chance.random() < 0.5:
                without_image(folder)
            expected.check(Workspace.open(folder, read_only=True))
            workspace = Workspace.open(folder, checkpoint_bytes=chance.choice((1, 10_000, 1 << 30)))
            expected.check(workspace)
    workspace.close()


def test_an_image_saves_evaluating(folder: Path) -> None:
    with with_edges(folder) as workspace:
        insert(workspace, (3, 4))
    with mock.patch.object(recovery, "rebuild", side_effect=AssertionError), Workspace.open(folder) as again:
        assert (3, 4) in again["edge"]
        insert(again, (2, 4))
        assert sorted(again["tri"]) == [(1, 2, 3), (2, 3, 4)]


def test_an_image_of_other_changes_is_not_used(folder: Path, tmp_path: Path) -> None:
    with_edges(folder).close()
    (path,) = folder.glob("image-*")
    with Workspace.open(tmp_path / "other") as other:
        other.load("edge", [(7, 8)], columns=["x", "y"])
        other.install(TRIANGLES)
    without_image(tmp_path / "other")
    path.rename(tmp_path / "other" / path.name)
    assert sorted(Workspace.open(tmp_path / "other", read_only=True)["edge"]) == [(7, 8)]


@pytest.mark.parametrize(
    "why", ["others may write", "another user", "cut", "empty", "damaged", "other sources", "another machine"]
)
def test_an_image_that_can_not_be_used_is_not_unpickled(folder: Path, why: str) -> None:
    with_edges(folder).close()
    (path,) = folder.glob("image-*")
    whole = path.read_bytes()
    unpickle = mock.Mock(side_effect=AssertionError)
    with contextlib.ExitStack() as stack:
        if why == "others may write":
            path.chmod(0o620)
        elif why == "another user":
            stack.enter_context(mock.patch.object(os, "geteuid", return_value=os.geteuid() + 1))
        elif why == "other sources":
            stack.enter_context(mock.patch.object(image, "_SOURCES", "0" * 64))
        elif why == "another machine":
            other = {"little": "big", "big": "little"}[sys.byteorder]
            stack.enter_context(mock.patch.object(image, "sys", SimpleNamespace(byteorder=other)))
        elif why == "damaged":
            place = whole.index(b"Workspace")  # within the pickle
            path.write_bytes(whole[:place] + b"w" + whole[place + 1 :])
        else:
            path.write_bytes(whole[: 0 if why == "empty" else 5000])
        stack.enter_context(mock.patch.object(image, "pickle", SimpleNamespace(loads=unpickle)))
        rebuilt = stack.enter_context(mock.patch.object(recovery, "rebuild", wraps=recovery.rebuild))
        reader = Workspace.open(folder, read_only=True)
        assert (rebuilt.call_count, unpickle.call_count) == (1, 0)
        assert sorted(reader["tri"]) == [(1, 2, 3)]
    path.write_bytes(whole)
    path.chmod(0o600)
    with mock.patch.object(recovery, "rebuild", side_effect=AssertionError):  # it was the only reason
        assert sorted(Workspace.open(folder, read_only=True)["tri"]) == [(1, 2, 3)]


def test_values_of_all_kinds_come_back_in_their_types(folder: Path) -> None:
    table = pa.table(
        {
            "text": pa.array(["a", "ä\0\n", ""]).dictionary_encode(),
            "bytes": pa.array([b"\xff", b"", b"x"], pa.large_binary()),
            "number": pa.array([1, -5, 2**53], pa.float64()),
            "exact": pa.array([1, 2, 3], pa.decimal128(30, 5)),
            "time": pa.array([1, 2, 2**60], pa.timestamp("ns", "UTC")),
            "day": pa.array([0, 1, -1], pa.date32()),
            "small": pa.array([1, 2, 255], pa.uint8()),
            "truth": pa.array([True, False, True]),
        }
    )
    with Workspace.open(folder) as workspace:
        workspace.load("loaded", table.slice(1))
        workspace.load("changed", table.slice(0, 0))
        with workspace.transaction() as tx:
            tx.insert("changed", table)
        expected = {name: workspace[name].table for name in workspace}
    for _ in range(2):
        without_image(folder)
        with Workspace.open(folder) as again:
            for name, rows in expected.items():
                assert again[name].schema == rows.schema
                assert sorted(map(repr, again[name])) == sorted(map(repr, rows.to_pylist())) or set(
                    again[name]
                ) == {tuple(row.values()) for row in rows.to_pylist()}
            again.checkpoint()


def test_options_of_heads_and_of_the_workspace_are_kept(folder: Path) -> None:
    with Workspace.open(folder, sensitivity_bytes=1 << 20, record_gap=2) as workspace:
        workspace.load("edge", EDGES, columns=["x", "y"])
        workspace.install(
            "hub(a) <- edge(a, b), edge(b, _).",
            "trace",
            order={"hub": ["a", "b"]},
            sensitivity_bytes={"hub": 5000},
            max_rounds=77,
        )
    without_image(folder)
    with Workspace.open(folder) as again:
        keeping = again._state.heads["hub"].keeping
        assert (keeping.strategy, keeping.gap, keeping.max_rounds) == ("trace", 2, 77)
        assert keeping.order == ("a", "b")
        assert {name: budget.limit for name, budget in again._state.budgets.items()} == {
            None: 1 << 20,
            "hub": 5000,
        }
    with Workspace.open(folder, record_gap=5):
        pass
    assert Workspace.open(folder, read_only=True)._record_gap == 5


def test_recursive_heads_and_heads_with_several_aggregates(folder: Path) -> None:
    with Workspace.open(folder) as workspace:
        workspace.load("edge", EDGES, columns=["x", "y"])
        workspace.install("path(x, y) <- edge(x, y). path(x, z) <- path(x, y), edge(y, z).")
        workspace.install("stats(a, count(), max(b)) <- edge(a, b).", strategy={"stats": "delta"})
        workspace.set_strategy("path", "recompute")
        workspace.set_strategy("stats", "trace")
        insert(workspace, (3, 1))
    without_image(folder)
    with Workspace.open(folder) as again:
        assert (again.strategy_of("path"), len(again["path"])) == ("recompute", 9)
        assert sorted(again["stats"]) == [(1, 2, 3), (2, 1, 3), (3, 1, 1)]


def test_a_head_of_a_rule_with_several_is_taken_away(folder: Path) -> None:
    with Workspace.open(folder) as workspace:
        workspace.load("edge", EDGES, columns=["x", "y"])
        workspace.install("first(a), second(b) <- edge(a, b).")
        workspace.uninstall("first")
        workspace.load("other", [("x",)], columns=["a"])
        workspace.install("second(a) <- other(a).", replace=True)
        workspace.load("edge", [("a", "b", "c")], columns=["p", "q", "r"])
    without_image(folder)
    with Workspace.open(folder) as again:
        assert again.heads == ("second",)
        assert (sorted(again["second"]), sorted(again["edge"])) == ([("x",)], [("a", "b", "c")])


def test_the_best_rows_and_their_bar(folder: Path) -> None:
    with Workspace.open(folder) as workspace:
        workspace.load("edge", EDGES, columns=["x", "y"])
        workspace.install("best(a, b) <- edge(a, b), top(2, by: b).")
        workspace.install("best(a, b) <- edge(a, b), top(1, by: b, per: a).", replace=True)
        insert(workspace, (1, 4))
    without_image(folder)
    with Workspace.open(folder) as again:
        assert sorted(again["best_bar"]) == [(1, 4), (2, 3)]
        insert(again, (2, 5))
        assert sorted(again["best"]) == [(1, 4), (2, 5)]
        again.uninstall("best", "best_bar")
    with Workspace.open(folder, read_only=True) as bare:
        assert bare.heads == ()


def test_an_aggregate_that_is_not_registered_here_is_named(folder: Path) -> None:
    code = (
        "import sys, maintenance, numba; from maintenance import Workspace\n"
        "maintenance.aggregate('farthest', numba.njit(lambda a, b: a if a > b else b))\n"
        "ws = Workspace.open(sys.argv[1]); ws.load('edge', [(1, 2)], columns=['x', 'y'])\n"
        "ws.install('far[a] = farthest(b) <- edge(a, b).')\n"
    )
    assert "farthest" not in registered_names()
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True, cwd=ROOT, env=child_environment())
    with pytest.raises(errors.DurabilityError, match=r"can't be installed again: (.|\n)*farthest"):
        Workspace.open(folder)
    maintenance.aggregate("farthest", numba.njit(lambda a, b: a if a > b else b))
    with Workspace.open(folder) as again:
        assert sorted(again["far"]) == [(1, 2)]
