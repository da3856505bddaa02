"""What commits took over time: spans against a list of all commits, and the picture against the spans."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.pictures.drawing import BLUE, GREEN, ORANGE
from maintenance import Workspace
from maintenance.workspace import history as history_module
from maintenance.workspace.history import History, Span
from maintenance.workspace.history_picture import COLOURS, HEIGHT, LEAST, WIDTH, history_picture
from support.drawings import SVG, outside, overlapping, texts
from support.kept_lives import EDGES, TRIANGLES, insert, with_edges

SECONDS = st.floats(1e-6, 10)
COMMIT = st.tuples(SECONDS, st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 1))


@given(st.lists(st.one_of(st.none(), st.integers(1, 70)), min_size=1, max_size=40), st.sampled_from([2, 8]))
def test_commits_that_are_counted_together_are_as_many(counts: list[int | None], most: int) -> None:
    """Among others that come one by one (None)."""
    with mock.patch.multiple(history_module, SPANS=most, LOOK_EVERY=5, WAITING=3):
        history, added, operations = History(), 0, 0
        for count in counts:
            if count is None:
                history.add(Span(1, 1.0, 1.0), lambda: {"relations": 1})
            else:
                history.add_many(count, count * 1.0, 3 * count - 1, lambda: {"relations": 1})
                operations += 3 * count - 1
            added += count or 1
        spans = history.spans({})
    assert sum(span.commits for span in spans) == history.total.commits == added
    assert sum(span.operations for span in spans) == history.total.operations == operations
    assert len({span.commits for span in spans[:-1]}) <= 1 and len(spans) <= most


@given(st.lists(COMMIT, min_size=1, max_size=60), st.sampled_from([2, 4, 8]), st.sampled_from([1, 5]))
def test_spans_are_the_commits_in_pieces(
    commits: list[tuple[float, int, int, float]], most: int, every: int
) -> None:
    looks = 0
    sums = [0.0]
    with mock.patch.multiple(history_module, SPANS=most, LOOK_EVERY=every):
        history = History()
        for number, (seconds, operations, rows, wait) in enumerate(commits, 1):

            def memory(number: int = number) -> dict[str, int]:
                nonlocal looks
                looks += 1
                return {"relations": number}

            history.add(Span(1, seconds, seconds, 0.0, operations, rows, float(number)), memory)
            history.waited(wait)
            sums.append(history.total.seconds)
    spans = history.spans({"relations": len(commits)})
    assert len(spans) <= most
    assert len({span.commits for span in spans[:-1]} | {max(s.commits for s in spans)}) == 1
    assert looks <= most * (2 + max(0.0, math.log2(len(commits) / most)))
    assert looks <= 1 + len(commits) / every
    first = 0
    for span in spans:
        piece = commits[first : first + span.commits]
        first += span.commits
        assert math.isclose(span.seconds, math.fsum(one[0] for one in piece))
        assert span.longest == max(one[0] for one in piece)
        assert (span.operations, span.housekeeping_rows) == tuple(
            sum(one[i] for one in piece) for i in (1, 2)
        )
        assert math.isclose(span.disk_seconds, math.fsum(one[3] for one in piece), abs_tol=1e-12)
        assert span.ended == first
        assert 0 <= first - span.memory_bytes["relations"] < every
    assert first == len(commits) == history.total.commits
    assert sums == sorted(sums)


def test_a_workspace_keeps_its_history() -> None:
    workspace = Workspace()
    workspace.load("edge", EDGES, columns=["x", "y"])
    workspace.install(TRIANGLES)
    assert workspace.stats.history == ()
    operations = 0
    for number in range(4, 9):
        with workspace.transaction() as tx:
            tx.insert("edge", [(number - 1, number), (number - 2, number)])
        operations += tx.stats["tri"].operations
        with workspace.transaction() as nothing:
            nothing.insert("edge", [(number - 1, number)])
    workspace.apply_many({"edge": {"x": [1, 2], "y": [7, 8], "weight": [1, 1], "txn": [1, 2]}})
    stats = workspace.stats
    assert [span.commits for span in stats.history] == [1] * 6 and stats.commits == 6
    assert sum(span.operations for span in stats.history[:-1]) == operations
    assert stats.history[-1].operations > 0
    assert stats.history[-1].memory_bytes == stats.memory_bytes
    assert stats.history[0].memory_bytes["relations"] < stats.memory_bytes["relations"]
    assert all(span.disk_seconds == 0 for span in stats.history)
    assert stats.as_dict()["history"][0]["commits"] == 1
    assert stats._repr_svg_() == stats.svg()


def test_a_folder_adds_what_the_disk_took(tmp_path: Path) -> None:
    with with_edges(tmp_path / "ws") as workspace:
        insert(workspace, (3, 4))
        stats = workspace.stats
        (span,) = stats.history
        assert span.disk_seconds > 0 and span.memory_bytes == stats.memory_bytes
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.stats.history == () and workspace.stats.commits == 0


MEMORY = st.fixed_dictionaries({kind: st.integers(0, 10**10) for kind in COLOURS})
HISTORIES = st.lists(
    st.builds(
        lambda n, longest, mean, disk, memory: Span(
            n, n * mean * longest, longest, disk, memory_bytes=memory
        ),
        st.integers(1, 100),
        st.floats(1e-7, 100),
        st.floats(0.01, 1),
        st.floats(0, 10),
        MEMORY,
    ),
    max_size=6,
)


@given(HISTORIES, MEMORY)
def test_the_picture_shows_every_span_and_leaves_texts_apart(
    spans: list[Span], memory: dict[str, int]
) -> None:
    document = history_picture(spans, memory, 12)
    assert not overlapping(document) and not outside(document)
    root = ET.fromstring(document)
    shown = [span.memory_bytes for span in spans] or [memory]
    areas = {area.attrib["fill"]: _points(area.attrib["points"]) for area in root.iter(f"{SVG}polygon")}
    assert set(areas) == {COLOURS[kind] for kind in COLOURS if any(at[kind] for at in shown)}
    if not spans:
        return
    lines = {
        path.attrib["stroke"]: _points(path.attrib["d"].replace("M", "").replace("L", ""))
        for path in root.iter(f"{SVG}path")
        if path.attrib["stroke-width"] == "1.8"
    }
    n_commits = sum(span.commits for span in spans)
    ends = [WIDTH * sum(span.commits for span in spans[:n]) / n_commits for n in range(len(spans) + 1)]
    figures = {
        ORANGE: [span.longest for span in spans],
        BLUE: [span.seconds / span.commits for span in spans],
        GREEN: [span.disk_seconds / span.commits for span in spans],
    }
    if not any(figures[GREEN]):
        del figures[GREEN]
    assert set(lines) == set(figures)
    (low, low_y), *_, (high, high_y) = sorted(
        (math.log10(max(LEAST, value)), y)
        for colour, values in figures.items()
        for value, (_, y) in zip(values, lines[colour][1:], strict=True)
    )
    for colour, values in figures.items():
        assert [x for x, _ in lines[colour]] == pytest.approx(ends, abs=0.06)
        for value, (_, y) in zip(values, lines[colour][1:], strict=True):
            part = (math.log10(max(LEAST, value)) - low) / (high - low) if high > low else 0.0
            assert y == pytest.approx(low_y + part * (high_y - low_y), abs=0.3)
    for points in areas.values():
        n = len(points) // 2
        assert [x for x, _ in points[:n]] == pytest.approx(ends, abs=0.06)
        assert all(0 <= y <= HEIGHT for _, y in points)


def _points(text: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in text.split())]


def test_the_heights_of_memory_are_its_bytes() -> None:
    spans = [
        Span(1, 1e-3, 1e-3, memory_bytes={"relations": 1000, "searches": 500, "support": 0}),
        Span(3, 3e-3, 2e-3, memory_bytes={"relations": 3000, "searches": 1000, "support": 0}),
    ]
    document = history_picture(spans, spans[-1].memory_bytes, 5)
    relations, searches = (
        _points(area.attrib["points"]) for area in ET.fromstring(document).iter(f"{SVG}polygon")
    )
    unit = HEIGHT / 4000
    thickness = [
        (bottom[1] - top[1]) / unit for top, bottom in zip(relations[:3], relations[:2:-1], strict=True)
    ]
    assert thickness == pytest.approx([1000, 1000, 3000], abs=3)
    assert [(HEIGHT - y) / unit for _, y in searches[:3]] == pytest.approx([1500, 1500, 4000], abs=3)
    said = [text for text, *_ in texts(document)]
    assert {
        "relations 3 kB",
        "searches 1 kB",
        "longest 2 ms",
        "mean 1 ms",
        "4 commits, up to version 5",
    } <= set(said)
