"""Folders whose bytes were changed at random: opened they are a beginning of what was there, or are refused.

Nothing else is raised, and nothing that was never there is taken for good.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lftj import errors
from maintenance import Workspace
from support.kept_lives import EDGES, insert, with_edges, without_image

Rows = frozenset[tuple[int, ...]]
Edit = tuple[str, float, float, float, bytes]
"""What is done, at which places of the file (0 its begin, 1 its end), and with which bytes."""

edits = st.tuples(
    st.sampled_from(["flip", "cut", "delete", "insert", "repeat", "overwrite"]),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.binary(min_size=1, max_size=40),
)


def edited(data: bytes, edit: Edit) -> bytes:
    kind, first, length, target, new = edit
    place = round(first * len(data))
    end = place + max(1, round(length * (len(data) - place)))
    if kind == "cut":
        return data[:place]
    if kind == "delete":
        return data[:place] + data[end:]
    if kind == "insert":
        return data[:place] + new + data[place:]
    if kind == "repeat":
        to = round(target * len(data))
        return data[:to] + data[place:end] + data[to:]
    if kind == "overwrite":
        return data[:place] + new + data[place + len(new) :]
    flipped = bytes(a ^ b for a, b in zip(data[place : place + len(new)], new, strict=False))
    return data[:place] + flipped + data[place + len(flipped) :]


class Life:
    """A folder, and what it had after each change: edges and heads, and triangles."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left = folder.with_name("left")
        """The same of a process that was killed."""
        self.states: list[tuple[Rows, tuple[str, ...], Rows]] = []
        with with_edges(folder) as workspace:
            self._note(workspace, set(EDGES))
            edges = set(EDGES)
            self.start = workspace.version
            for number in range(3, 12):
                insert(workspace, (number, number + 1), (number - 1, number + 1))
                edges |= {(number, number + 1), (number - 1, number + 1)}
                self._note(workspace, edges)
                if number == 5:
                    workspace.checkpoint()
                if number == 8:
                    workspace.install("back(b, a) <- edge(a, b).")
                    self._note(workspace, edges)
            shutil.copytree(folder, self.left)
        without_image(folder)
        without_image(self.left)

    def _note(self, workspace: Workspace, edges: set[tuple[int, int]]) -> None:
        after = frozenset(edges)
        triangles = {(a, b, c) for a, b in after for other, c in after if b == other and (a, c) in after}
        self.states.append((after, workspace.heads, frozenset(triangles)))

    def file(self, name: str) -> Path:
        return sorted(self.folder.glob(f"{name}-*"))[{"journal": -1, "manifest": 0}[name]]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    return Life(tmp_path_factory.mktemp("fuzzed") / "ws")


def state_of(workspace: Workspace) -> tuple[Rows, tuple[str, ...], Rows]:
    edges = frozenset(workspace["edge"])
    return edges, workspace.heads, frozenset(workspace["tri"])


@settings(max_examples=80)
@given(
    name=st.sampled_from(["journal", "journal", "manifest"]),
    some=st.lists(edits, min_size=1, max_size=3),
    is_closed=st.booleans(),
)
@example(name="journal", some=[("cut", 0.0, 0.0, 0.0, b"!")], is_closed=True)
@example(name="journal", some=[("cut", 0.9, 0.0, 0.0, b"!")], is_closed=False)
@example(name="journal", some=[("repeat", 0.0, 1.0, 1.0, b"!")], is_closed=False)
@example(name="manifest", some=[("repeat", 0.0, 1.0, 1.0, b"!")], is_closed=True)
@example(name="manifest", some=[("cut", 0.0, 0.0, 0.0, b"!")], is_closed=True)
@pytest.mark.filterwarnings("ignore::lftj.errors.DamagedFolderWarning")
def test_a_fuzzed_folder_is_a_beginning_or_is_refused(
    life: Life, name: str, some: list[Edit], is_closed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All of it, where it was closed."""
    folder = tmp_path_factory.mktemp("copy") / "ws"
    shutil.copytree(life.folder if is_closed else life.left, folder)
    path = folder / life.file(name).name
    good = data = path.read_bytes()
    for edit in some:
        data = edited(data, edit)
    path.write_bytes(data)
    try:
        workspace = Workspace.open(folder, read_only=True)
    except errors.DurabilityError as error:
        workspace, refusal = None, str(error)
    if workspace is None:
        assert str(folder) in refusal
        assert data != good
        with pytest.raises(errors.DurabilityError):
            Workspace.open(folder)
    else:
        state = state_of(workspace)
        assert state in (life.states[-1:] if is_closed or name == "manifest" else life.states)
        assert data != good or state == life.states[-1]
        with Workspace.open(folder) as again:
            insert(again, (100, 200))
        assert set(Workspace.open(folder, read_only=True)["edge"]) == state[0] | {(100, 200)}
    shutil.rmtree(folder)


@settings(max_examples=40)
@given(edit=edits)
@example(edit=("cut", 0.5, 0.0, 0.0, b"!"))
def test_a_fuzzed_journal_of_the_past_gives_the_changes_or_is_refused(
    life: Life, edit: Edit, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It is behind the checkpoint: opening does not read it, and whoever asks what changed does."""
    folder = tmp_path_factory.mktemp("copy") / "ws"
    shutil.copytree(life.folder, folder)
    path = min(folder.glob("journal-*"))
    data = edited(path.read_bytes(), edit)
    path.write_bytes(data)
    workspace = Workspace.open(folder, read_only=True)
    assert state_of(workspace) == life.states[-1]
    try:
        change = workspace.changes_since(life.start, "tri")
    except errors.DurabilityError as error:
        change, refusal = None, str(error)
    if change is None:
        assert path.name in refusal
    else:
        came = life.states[-1][2] - life.states[0][2]
        assert {tuple(row.values()) for row in change.table.to_pylist()} == {(*row, 1) for row in came}
    shutil.rmtree(folder)
