"""What a workspace says that it holds and has done, and how that is written as OpenMetrics."""

from __future__ import annotations

import errno
import gc
import logging
from pathlib import Path
from unittest import mock

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.durable import store as store_module
from maintenance.workspace import image_cache
from maintenance.workspace.folder import KeptFolder
from maintenance.workspace.metrics import WorkspaceStats
from support.disks import FailingDisk
from support.kept_lives import EDGES, TRIANGLES, insert, with_edges
from support.openmetrics import openmetrics_samples


def test_memory_grows_where_it_is_used() -> None:
    workspace = Workspace()
    before = workspace.stats
    workspace.load("edge", [(f"node {a}", f"node {b}") for a, b in EDGES], columns=["x", "y"])
    workspace.install(TRIANGLES, "trace")
    workspace.install(
        "two(a, c) <- edge(a, b), edge(b, c). n[a] = count() <- edge(a, _)."
        " path(x, y) <- edge(x, y). path(x, z) <- path(x, y), edge(y, z).",
        {"path": "stages"},
    )
    workspace.follow("tri")
    for number in range(5):
        with workspace.transaction() as tx:
            tx.insert("edge", [(f"node {number}", f"new {number}"), (f"new {number}", "node 2")])
    with workspace.transaction() as tx:  # ranks are there when something is lost
        tx.erase("edge", [("node 1", "node 2")])
    after = workspace.stats
    assert all(size == 0 for kind, size in before.memory_bytes.items() if kind != "dictionaries")
    assert [kind for kind, size in after.memory_bytes.items() if size <= before.memory_bytes[kind]] == []
    assert after.rows == {name: table.count for name, table in workspace.relations.items()}
    assert (before.commits, after.commits, before.version, after.version) == (0, 6, 0, 9)
    assert after.commit_seconds > 0
    assert after.journal_bytes is None


def test_snapshots_that_hold_an_old_state_are_known_while_they_live() -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["x", "y"])
    snapshot, other = workspace.snapshot(), workspace.snapshot()
    assert (workspace.stats.old_snapshots, workspace.stats.old_snapshot_seconds) == (0, 0)
    insert(workspace, (3, 4))
    newest = workspace.snapshot()
    assert workspace.stats.old_snapshots == 2
    assert workspace.stats.old_snapshot_seconds > 0
    assert (snapshot.version, newest.version) == (1, 2)
    del snapshot, other
    gc.collect()
    assert (workspace.stats.old_snapshots, workspace.stats.old_snapshot_seconds) == (0, 0)


def test_a_folder_says_what_it_holds(tmp_path: Path) -> None:
    with with_edges(tmp_path / "ws", durability="none") as workspace:
        insert(workspace, (3, 4))
        stats = workspace.stats
        assert (stats.checkpoint_version, stats.data_bytes, stats.changes_not_on_disk) == (0, 0, 3)
        assert stats.journal_bytes is not None and stats.journal_bytes > 600
        workspace.checkpoint()
        stats = workspace.stats
        assert (stats.checkpoint_version, stats.journal_bytes, stats.changes_not_on_disk) == (3, 0, 0)
        assert stats.data_bytes == sum(path.stat().st_size for path in (tmp_path / "ws" / "data").iterdir())
        samples = openmetrics_samples(stats.openmetrics())
        assert samples["lftj_rows", "edge"] == 4
        assert samples["lftj_checkpoint_version", ""] == 3
        assert samples["lftj_commits_total", ""] == 1


def test_openmetrics_has_every_figure_and_odd_names() -> None:
    odd = 'a"b\\c\nd'
    stats = WorkspaceStats(1, {odd: 3}, {"relations": 5}, 1, 2.5, 3, 4.5, 5, 6, 7, 8, 9)
    samples = openmetrics_samples(stats.openmetrics())
    assert samples["lftj_rows", r"a\"b\\c\nd"] == 3
    assert sorted(samples.values()) == sorted([1, 3, 5, 1, 2.5, 3, 4.5, 5, 6, 7, 8, 9])
    figures = stats.as_dict()
    assert figures.pop("history") == ()  # is no figure of one moment
    assert len(figures) == len({name.removesuffix("_total") for name, _ in samples})


def test_what_a_folder_does_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="maintenance")
    with with_edges(tmp_path / "ws") as workspace:
        workspace.checkpoint()
        with (
            mock.patch.object(store_module, "write_manifest", side_effect=OSError(errno.ENOSPC, "full")),
            pytest.raises(Exception, match="no checkpoint was made"),
        ):
            workspace.checkpoint()
    told = [(record.levelname, record.name, record.getMessage()) for record in caplog.records]
    assert [level for level, _, _ in told] == ["INFO"] * len(told)
    messages = "\n".join(message for _, _, message in told)
    for expected in ("opened at version 0", "checkpoint at change 2", "closed at version 2"):
        assert expected in messages
    assert all(name.startswith("maintenance.") for _, name, _ in told)


def test_what_goes_wrong_in_a_folder_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = FailingDisk(errno.EIO)
    with mock.patch.object(Workspace, "_disk", disk):
        workspace = with_edges(tmp_path / "ws")
    full = OSError(errno.ENOSPC, "full")
    with mock.patch.object(image_cache, "write_image", side_effect=full):
        workspace.checkpoint()
    with mock.patch.object(store_module, "write_manifest", side_effect=full):
        assert isinstance(workspace._folder, KeptFolder)
        workspace._folder.checkpoints._make_quietly()  # as one that comes by itself
    disk.fails = lambda number, kind: kind == "sync"
    with pytest.raises(errors.ClosedError):
        insert(workspace, (4, 5))
    workspace.close()
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in told] == ["WARNING", "ERROR", "ERROR"]
    for (_, message), expected in zip(
        told,
        ("no image was written, opening will take longer", "no checkpoint was made", "takes no changes"),
        strict=True,
    ):
        assert expected in message and str(tmp_path) in message
