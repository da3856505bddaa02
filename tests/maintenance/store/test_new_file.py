"""laws: a file that is written once is whole and on disk, or gone; names with numbers are told apart."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from maintenance.store.disk import Disk
from maintenance.store.new_file import NewFile, replacing
from maintenance.store.numbered import Numbered
from support.disks import FailingDisk, ModelDisk


def write(disk: Disk, path: Path, content: bytes) -> None:
    """Put content into the place of a file, in two writes."""
    with replacing(disk, path.with_name("part"), path) as file:
        file.write(content[:3])
        file.write(memoryview(content)[3:])


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_failure_at_any_step_leaves_the_file_before_and_no_other(tmp_path: Path, error: int) -> None:
    path = tmp_path / "file"
    disk = FailingDisk(error)
    write(disk, path, b"before")
    steps = disk.steps[:]
    assert steps == ["delete", "create", "write", "write", "sync", "rename", "sync folder"]
    for place, kind in enumerate(steps):
        failing = FailingDisk(error, lambda number, _, place=place: number == place)
        path.write_bytes(b"before")
        with pytest.raises(OSError) as raised:
            write(failing, path, b"after")
        assert raised.value.errno == error
        assert [each.name for each in tmp_path.iterdir()] == ["file"]
        assert path.read_bytes() == (b"after" if kind == "sync folder" else b"before")


def test_an_error_in_the_block_leaves_no_new_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), NewFile(Disk(), tmp_path / "new") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert file.closed
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        NewFile(Disk(), tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == b"old"


def test_whatever_a_crash_leaves_is_one_of_the_two_and_behind_the_call_the_new_one(tmp_path: Path) -> None:
    chance = random.Random(4)
    path = tmp_path / "file"
    left: list[bytes | None] = []
    disk = ModelDisk(lambda label: left.extend(disk.left(chance).get(path) for _ in range(20)))
    write(disk, path, b"before")
    assert set(left) == {None, b"before"}
    left.clear()
    write(disk, path, b"after")
    assert set(left) == {b"before", b"after"}
    assert {disk.left(chance)[path] for _ in range(20)} == {b"after"}


def test_names_with_numbers() -> None:
    names = Numbered("m-", 3, ".json", r"\.[0-9a-f]+\.tmp")
    assert [names.name(number) for number in (0, 7, 999)] == ["m-000.json", "m-007.json", "m-999.json"]
    others = [
        "m-07.json",
        "m-0007.json",
        "m-007",
        "am-007.json",
        "m-007.jsonx",
        "m-007.json.tmp",
        "m-007xjson",
    ]
    for name in others:
        assert names.number(name) is None
        assert names.number_of_part(name) is None
    assert (names.number("m-007.json.af.tmp"), names.number_of_part("m-007.json.af.tmp")) == (None, 7)
    assert (names.number("m-007.json"), names.number_of_part("m-007.json")) == (7, None)
    assert Numbered("j-", 2).number_of_part("j-01") is None
    for number in (-1, 1000):
        with pytest.raises(ValueError, match=r"from 0 to below 10\*\*3"):
            names.name(number)
