"""The folder of compiled kernels: one for each compiler, never another user's, never without bound."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
import pytest
from numba import config

from indices import cache_folder as chosen
from indices.cache_folder import KEPT, cache_folder, folder_name
from indices.kernel_cache import SUFFIX, files_by_kernel
from lftj.errors import CacheFolderWarning
from support.paths import ROOT


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the caller's, and no folder chosen before."""
    monkeypatch.delenv("LFTJ_CACHE_DIR", raising=False)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(chosen, "cache_folder", cache_folder.__wrapped__)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary directory, where the package's own folder can't be had."""
    own = tmp_path / "no-folder"
    own.touch()
    monkeypatch.setattr(chosen, "_OWN", own / "__pycache__")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


# -- the key ----------------------------------------------------------------------------


def test_software_and_processor_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [folder_name()]
    changes: list[tuple[Any, str, Any]] = [
        (sys, "version", "9.9"),
        (np, "__version__", "9.9"),
        (numba, "__version__", "9.9"),
        (llvmlite, "__version__", "9.9"),
        (llvmlite.binding, "get_host_cpu_name", lambda: "abacus"),
        (config, "CPU_NAME", "generic"),
        (config, "CPU_FEATURES", "+avx"),
        (config, "BOUNDSCHECK", 1 if not config.BOUNDSCHECK else 0),
        (config, "OPT", 1),
    ]
    for where, name, value in changes:
        with monkeypatch.context() as changed:
            changed.setattr(where, name, value)
            names.append(folder_name())
    assert len(set(names)) == len(changes) + 1
    assert folder_name() == names[0]


# -- the place --------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["LFTJ_CACHE_DIR", "NUMBA_CACHE_DIR"])
def test_settings_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "numba"))
    if setting == "LFTJ_CACHE_DIR":
        monkeypatch.setenv("LFTJ_CACHE_DIR", str(tmp_path / "new" / "own"))
    folder = chosen.cache_folder()
    assert folder is not None
    assert folder == tmp_path / ("new/own" if setting == "LFTJ_CACHE_DIR" else "numba") / folder_name()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_settings_of_a_process_are_its_environment(tmp_path: Path) -> None:
    code = "import indices.cache_folder as c, numba; print(c.cache_folder(), numba.config.CACHE_DIR)"
    for setting in ("LFTJ_CACHE_DIR", "NUMBA_CACHE_DIR"):
        environment = {name: value for name, value in os.environ.items() if not name.endswith("CACHE_DIR")}
        environment[setting] = str(tmp_path / setting)
        told = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        folder, *numbas = told.stdout.split()
        assert Path(folder).parent == tmp_path / setting
        assert numbas == ([str(tmp_path / setting)] if setting == "NUMBA_CACHE_DIR" else [])  # left as it was


def test_a_user_without_a_name_has_a_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object) -> None:
        raise KeyError("no passwd entry")

    monkeypatch.setattr("pwd.getpwuid", nobody)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert chosen.cache_folder() == temporary / f"lftj-{os.getuid()}" / folder_name()


def test_a_folder_that_others_write_to_is_refused(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = temporary / "given"
    given.mkdir()
    given.chmod(0o777)
    monkeypatch.setenv("LFTJ_CACHE_DIR", str(given))
    with pytest.warns(
        CacheFolderWarning, match=r"given/.*others can write to .*given.*chmod go-w.*LFTJ_CACHE_DIR"
    ):
        folder = chosen.cache_folder()
    assert folder == temporary / f"lftj-{os.getuid()}" / folder_name()
    given.chmod(0o1777)  # as /tmp: nobody can replace what is another's
    assert chosen.cache_folder() == given / folder_name()
    (given / folder_name()).chmod(0o770)
    with pytest.warns(CacheFolderWarning, match="others can write"):
        assert chosen.cache_folder() == folder


def test_a_folder_of_another_user_is_refused(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = chosen.cache_folder()
    assert first is not None
    real = os.getuid()
    somebody = real + 1

    class Stat:
        def __init__(self, path: Path) -> None:
            self.found = os.stat(path)
            self.st_mode = self.found.st_mode
            self.st_uid = somebody + 1 if path == first else 0

    monkeypatch.setattr(Path, "stat", lambda self, **_: Stat(self))
    with pytest.warns(CacheFolderWarning) as warned:
        assert chosen.cache_folder() is None
    assert f"belongs to user {somebody + 1}, and what is in it would be executed; remove it" in str(
        warned[0].message
    )
    assert "kept nowhere" in str(warned[1].message)


def test_a_process_without_a_folder_compiles_for_itself(tmp_path: Path) -> None:
    """No folder can be made anywhere: everything works, nothing is kept, and it is said."""
    code = """
import tempfile, pathlib, warnings
from indices import cache_folder
cache_folder._OWN = pathlib.Path("/dev/null/own")
tempfile.tempdir = "/dev/null"
from indices.compiled import kernel
from indices.monoid import SUM, _add
assert cache_folder.cache_folder() is None
print(_add(1, 2))
"""
    environment = {**os.environ, "LFTJ_CACHE_DIR": "/dev/null/cache"}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout == "3\n"
    assert "/dev/null/cache" in told.stderr
    assert "compiles them again; set LFTJ_CACHE_DIR" in told.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_shared_folder_is_read_by_other_users() -> None:
    """What root has compiled and shared is used by a user who can't write there, and has no name."""
    code = """
import os, numpy as np
from indices import cache_folder as chosen, monoid
from indices.cache_folder import cache_folder, share
from indices.kernel_cache import SUFFIX, files_by_kernel
from lftj.errors import CacheFolderWarning
folder = cache_folder()
assert not list(folder.iterdir())
monoid.SUM.operation(np.int64)
share(folder)
child = os.fork()  # everything is imported: the other user may not be able to
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.setuid(54321)
assert not os.access(folder, os.W_OK)
cache_folder.cache_clear()
assert cache_folder() == folder
monoid._operation.cache_clear()
begun = []
monoid.callback.__globals__["announcement"].begins = begun.append
assert monoid.SUM.operation(np.int64).ctypes(2, 3) == 5
assert not begun
"""
    with tempfile.TemporaryDirectory() as open_to_all:
        os.chmod(open_to_all, 0o755)
        environment = {**os.environ, "LFTJ_CACHE_DIR": f"{open_to_all}/cache"}
        subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, env=environment, check=True)


def test_folders_do_not_pile_up(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = temporary / "base"
    old = [base / f"kernels-{number:016x}" for number in range(KEPT + 3)]
    for age, path in enumerate(old):
        path.mkdir(parents=True)
        (path / "x.kernel").touch()
        os.utime(path, (1e9 - age, 1e9 - age))
    (base / "of-somebody").mkdir()
    monkeypatch.setenv("LFTJ_CACHE_DIR", str(base))
    folder = chosen.cache_folder()
    assert {path.name for path in base.iterdir()} == {
        *(path.name for path in old[:KEPT]),
        "of-somebody",
        folder_name(),
    }
    before = os.stat(old[KEPT - 1]).st_mtime
    assert chosen.cache_folder() == folder  # it is there: nothing is looked for
    assert os.stat(old[KEPT - 1]).st_mtime == before
    assert folder is not None
    os.utime(folder, (5, 5))
    chosen.cache_folder()
    assert folder.stat().st_mtime > 5  # used again


def test_a_folder_is_looked_through_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[Path] = []
    monkeypatch.setattr(
        os, "listdir", lambda folder, listdir=os.listdir: listed.append(folder) or listdir(folder)
    )
    assert files_by_kernel(tmp_path / "nowhere") == {}
    for number in range(3):
        file = tmp_path / f"lftj.some.kernel-function-{number}-sources{SUFFIX}"
        file.touch()
        os.utime(tmp_path, ns=(number, number))
        for _ in range(2):
            assert file in files_by_kernel(tmp_path)["lftj.some.kernel-function", "sources"]
    assert listed == [tmp_path] * 3
    file.unlink()
    assert len(files_by_kernel(tmp_path)["lftj.some.kernel-function", "sources"]) == 2
