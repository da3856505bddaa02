"""Images as files: what is written is read, and a path never holds less than a whole image."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.image import read_image, write_image
from support.file_steps import at_step
from support.paths import ROOT, child_environment
from support.two_paths import workspace_of


def check(workspace: Workspace, n_rows: int) -> None:
    assert workspace["edge"].count == n_rows
    with workspace.transaction() as tx:
        tx.insert("edge", [(n_rows, 0), (n_rows + 1, n_rows)])
    assert tx.changes["two"].num_rows > 0
    workspace.verify()


class Dribbling(io.RawIOBase):
    """A file, unbuffered, that takes a few bytes of each write, as the system may."""

    def __init__(self) -> None:
        self.content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        taken = bytes(data)[:1000]
        self.content += taken
        return len(taken)


# -- paths and file objects ---------------------------------------------------------------------


@pytest.mark.parametrize("form", [str, Path, os.fspath], ids=["text", "Path", "fspath"])
def test_a_path(tmp_path: Path, form: Callable[[Any], Any]) -> None:
    path = form(tmp_path / "ws.image")
    write_image(workspace_of(50), path)
    check(read_image(path), 50)
    write_image(workspace_of(60), path)
    check(read_image(path), 60)
    assert os.listdir(tmp_path) == ["ws.image"]


def test_a_file_object_from_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "ws.image"
    with path.open("wb") as file:
        file.write(b"preface")
        write_image(workspace_of(50), file)
        assert not file.closed
    with path.open("rb") as file:
        assert file.read(7) == b"preface"
        check(read_image(file), 50)
    memory = io.BytesIO()
    write_image(workspace_of(40), memory)
    check(read_image(memory.getvalue()), 40)
    memory.seek(0)
    check(read_image(memory), 40)


def test_files_that_take_a_part_of_a_write_and_pipes() -> None:
    file = Dribbling()
    write_image(workspace_of(50), file)
    check(read_image(bytes(file.content)), 50)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        assert cat.stdin is not None and cat.stdout is not None
        write_image(workspace_of(10), cat.stdin)  # less than a pipe holds
        cat.stdin.close()
        check(read_image(cat.stdout), 10)


def test_text_files_and_places_that_are_none(tmp_path: Path) -> None:
    workspace = workspace_of(10)
    with (tmp_path / "text").open("w+") as text:
        with pytest.raises(TypeError, match="in binary mode"):
            write_image(workspace, text)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="in binary mode"):
            read_image(text)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="there is no folder"):
        write_image(workspace, tmp_path / "no" / "ws.image")
    with pytest.raises(OSError, match="not a regular file"):
        write_image(workspace, tmp_path)
    check(workspace, 10)


@pytest.mark.parametrize("content", [None, b"", b"hello", "folder", "cut"])
def test_paths_that_hold_no_image_are_named(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "ws.image"
    if content == "folder":
        path.mkdir()
    elif content == "cut":
        write_image(workspace_of(50), path)
        os.truncate(path, path.stat().st_size // 2)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(errors.ImageError, match=r"^.*ws\.image: ") as caught:
        read_image(path)
    assert "Errno" not in str(caught.value)


def test_the_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "ws.image"
    workspace = workspace_of(10)
    before = os.umask(0o027)
    try:
        write_image(workspace, path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    write_image(workspace, path)
    assert path.stat().st_mode & 0o777 == 0o600


# -- failures at every step ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_an_error_at_any_step_leaves_the_image_before(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "ws.image"
    write_image(workspace_of(30), path)
    workspace = workspace_of(50)

    def fail() -> None:
        raise error

    with at_step(-1, fail) as taken:
        write_image(workspace, tmp_path / "other")
    (tmp_path / "other").unlink()
    n_steps = taken()
    assert n_steps > 20
    for number in range(n_steps):
        with at_step(number, fail), pytest.raises(type(error)):
            write_image(workspace, path)
        assert os.listdir(tmp_path) == ["ws.image"]
        last = number == n_steps - 1  # the folder, after the renaming
        assert read_image(path)["edge"].count == (50 if last else 30)
    write_image(workspace, path)
    check(read_image(path), 50)
    check(workspace, 50)


KILLED = """
import os, signal, sys
from pathlib import Path
from support.file_steps import at_step
from support.two_paths import workspace_of
from maintenance.image import read_image, write_image

folder = Path(sys.argv[1])
path = folder / "ws.image"
before, after = workspace_of(30), workspace_of(50)
with at_step(-1, lambda: None) as taken:
    write_image(after, path)
for number in range(taken() + 1):
    write_image(before, path)
    child = os.fork()
    if not child:
        with at_step(number, lambda: os.kill(os.getpid(), signal.SIGKILL)):
            write_image(after, path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    rows = read_image(path)["edge"].count
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    print(number, taken(), killed, rows)
"""


def test_a_process_killed_at_any_step_leaves_an_image(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(
        command, env=child_environment(), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    for number, n_steps, killed, rows in lines:
        assert killed == str(int(number) < int(n_steps))
        assert rows == ("50" if int(number) >= int(n_steps) - 1 else "30")
    assert len(lines) > 20


@pytest.mark.in_turns
@pytest.mark.compiled
def test_a_process_killed_at_random_moments_leaves_an_image(tmp_path: Path) -> None:
    child = """
import sys
from support.two_paths import workspace_of
from maintenance.image import write_image
workspace = workspace_of(2_000)
for number in range(1_000):
    with workspace.transaction() as tx:
        tx.insert("edge", [(number, 2_001)])
    write_image(workspace, sys.argv[1])
    print(number, flush=True)
"""
    chance = random.Random(7)
    path = tmp_path / "ws.image"
    for _ in range(2):
        command = [sys.executable, "-c", child, str(path)]
        with subprocess.Popen(
            command, env=child_environment(), cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "0\n"
            last = 0
            for _ in range(chance.randrange(5)):
                last = int(process.stdout.readline())
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(chance.random() * 0.02)
            process.send_signal(signal.SIGKILL)
        assert read_image(path)["edge"].count in range(2_001 + last, 2_003 + last + 50)
