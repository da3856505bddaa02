"""Warming up compiles everything there is, once; what compiles says so; a kernel has one signature."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from indices import announcement
from lftj.database import warming
from maintenance import Workspace
from support.paths import ROOT, TESTS, child_environment
from support.work_after_install import installed

LINE = "compiling the kernels, once per installation (about "

pytestmark = pytest.mark.compiled

OF_TWO_TYPES = {
    "lftj.values.semigroup.fold_groups",
    "lftj.values.semigroup.combine_powers",
    "indices.monoid._add",
}
"""Kernels over a user's numbers: compiled for whole ones and for floats."""


def run(*command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = child_environment(**settings)
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.in_turns
def test_the_shell_warms_up_and_nothing_is_left_to_compile(warmed: Path) -> None:
    """It reaches every kernel, and a wide mix of work behind it has each for one signature."""
    done = run(str(TESTS / "support" / "mixed_work.py"), *OF_TWO_TYPES)
    assert done.stdout == ""
    assert done.stderr == f"note: all kernels are compiled, in {warmed}\n"  # whoever asks is told this alone
    assert warmed.stat().st_mode & 0o777 == 0o755


LATE = (
    "indices.record_joining._join",
    "maintenance.machine.kernel.end",
    "maintenance.strategies.trace.cut_records._ask",
)
"""Kernels of some commits, or of few, that take little time to compile."""


@pytest.mark.in_turns
@pytest.mark.parametrize("how", ["install", "open"])
def test_what_commits_call_is_compiled_when_rules_are_installed(
    how: str, warmed: Path, tmp_path: Path
) -> None:
    """Those that were not compiled yet are then, and in no commit, query or change of strategy behind it."""
    folder = tmp_path / warmed.name
    folder.mkdir(0o700)
    for file in warmed.iterdir():
        if not file.name.startswith(tuple(f"{name}-" for name in LATE)):
            (folder / file.name).symlink_to(file)
    script = str(TESTS / "support" / "work_after_install.py")
    arguments = [] if how == "install" else [str(tmp_path / "rules")]
    for rules in arguments:
        installed(Workspace.open(rules)).close()
    done = run(script, how, *arguments, LFTJ_CACHE_DIR=str(tmp_path))
    told = [line.split() for line in done.stdout.splitlines()]
    assert {name for when, name in told if when == "before"}.issuperset(LATE)
    assert [line for line in told if line[0] != "before"] == [["seconds", "0"]]
    assert done.stderr.count("2 of 3: commits") == done.stderr.count(LINE) == 1


def test_a_part_is_announced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("_spent", "_said", "_ended"):
        monkeypatch.setattr(announcement, name, 0.0)
    monkeypatch.setattr(announcement, "_quiet", False)
    clock = [1e9]
    monkeypatch.setattr(announcement.time, "monotonic", lambda: clock[0])
    for part in ("1 of 3: rules", "2 of 3: commits"):
        with announcement.part_of(part), announcement.part_of("within"):
            for _ in range(100):
                announcement.begins(tmp_path)
                clock[0] += 10
                announcement.ended()
                clock[0] += 1
        told = capsys.readouterr().err.splitlines()
        assert len(told) == 1
        assert told[0].startswith(LINE)
        assert told[0].endswith(f" s, {part})")


@pytest.mark.parametrize(
    ("threshold", "meanwhile"), [(700, warming.BETWEEN_COLLECTIONS), (10**6, 10**6), (0, 0)]
)
def test_garbage_is_collected_as_before_when_all_is_compiled(
    threshold: int, meanwhile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(warming, "steps", lambda: [lambda: seen.append(gc.get_threshold()[0])])
    monkeypatch.setattr(warming, "_steps_above", list)
    monkeypatch.setattr(warming, "_rehearsed", False)
    before = gc.get_threshold()
    try:
        for compiling in (warming.warm_up, warming.rehearse):
            warming._rehearsed = False
            gc.set_threshold(threshold, *before[1:])
            compiling()
            assert gc.get_threshold() == (threshold, *before[1:])
    finally:
        gc.set_threshold(*before)
    assert seen == [meanwhile, meanwhile]


def test_a_compilation_is_announced_once(tmp_path: Path) -> None:
    code = (  # of a small kernel: on a quick machine that takes less than is worth a line
        "from indices import announcement; announcement.NOTICEABLE = 0.0;"
        "import indices.monoid as m, numpy as np; m.SUM.operation(np.int64)"
    )
    told = [run("-c", code, LFTJ_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [process.stderr.count(LINE) for process in told] == [1, 0]
    assert [process.stdout for process in told] == ["", ""]


def test_a_short_compilation_is_not_announced_and_a_longer_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (
        ("_spent", 0.0),
        ("_said", 0.0),
        ("_since", None),
        ("_ended", 0.0),
        ("_quiet", False),
    ):
        monkeypatch.setattr(announcement, name, value)
    clock = [0.0]
    monkeypatch.setattr(announcement.time, "monotonic", lambda: clock[0])
    for _ in range(3):
        announcement.begins(tmp_path)
        clock[0] += 0.1
        announcement.ended()
        clock[0] += 100  # not spent on compiling
    assert capsys.readouterr().err == ""
    with announcement.silence():
        announcement.begins(tmp_path)
        clock[0] += 0.6
        announcement.goes_on()
    assert capsys.readouterr().err == ""
    announcement.goes_on()
    announcement.goes_on()
    assert capsys.readouterr().err.count(LINE) == 1
    clock[0] += 1000  # longer than was said
    announcement.goes_on()
    announcement.goes_on()
    assert capsys.readouterr().err.count(LINE) == 1
    announcement.ended()
    clock[0] += 4.9  # the same call
    announcement.begins(tmp_path)
    clock[0] += 0.6
    announcement.goes_on()
    assert capsys.readouterr().err == ""
    announcement.ended()
    clock[0] += 5.1  # another one
    for _ in range(2):
        announcement.begins(tmp_path)
        clock[0] += 0.6
        announcement.goes_on()
    assert capsys.readouterr().err.count(LINE) == 1


@pytest.mark.in_turns
def test_processes_compile_into_one_folder_at_once(tmp_path: Path) -> None:
    code = "import indices.monoid as m, numpy as np; assert m.SUM.operation(np.int64).ctypes(2, 3) == 5"
    environment = child_environment(LFTJ_CACHE_DIR=str(tmp_path))
    together = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment) for _ in range(3)]
    assert [process.wait() for process in together] == [0, 0, 0]
    (folder,) = tmp_path.iterdir()
    files = sorted(folder.iterdir())
    assert [file.suffix for file in files] == [".kernel"] * 2  # the function, and as an argument
    for file in files:
        file.write_bytes(file.read_bytes()[:100])  # a disk that was full, a machine that went down
    run("-c", code, LFTJ_CACHE_DIR=str(tmp_path))
    assert sorted(folder.iterdir()) == files
    assert all(file.stat().st_size > 100 for file in files)


def test_a_part_is_for_kernels_only() -> None:
    from lftj.storage.seek import lower_bound

    with pytest.raises(TypeError, match=r"lftj\.storage\.seek\.lower_bound is a part"):
        lower_bound([1, 2], 0, 2, 1)
