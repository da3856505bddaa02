"""Settings that all tests share: hypothesis profiles, the data folder, tests that need compiled kernels.

Profiles (``pytest --hypothesis-profile=NAME`` or ``HYPOTHESIS_PROFILE=NAME``):
``default`` runs the same examples every time, few enough for every push;
``soak`` runs many new ones and is for a long sitting; ``unshrunk`` stops at the
first failure as it is, for who wants to know only that there is one.  Kernels that
run as plain Python take few examples, for compiled ones do the same tests with many; the
faults of ``make mutants`` are looked for with more.

Tests marked ``compiled`` are too large for kernels that run as plain Python:
they are skipped under ``NUMBA_DISABLE_JIT=1``.  The folder of real data is
``../shared/data`` beside the repository, or where ``LFTJ_DATA`` says; tests
that need it skip with a message when it is absent.

The engine checks here what it takes on trust elsewhere (:mod:`lftj.process.debug`),
unless the environment has another ``LFTJ_DEBUG``.
"""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, Phase, settings

pytest.register_assert_rewrite("support")

from support.paths import ROOT  # noqa: E402
from support.sharing import Sharing, from_elsewhere, needs_java, place  # noqa: E402
from support.turns import N_TURNS, TURN, later  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.killed_pulls import Killer


os.environ.setdefault("LFTJ_DEBUG", "1")  # before anything imports the engine

# `make cluster-test` asks for them: they take minutes, and packages of their own.
collect_ignore = [] if os.environ.get("LFTJ_CLUSTER") == "1" else ["cluster/test_cluster.py"]

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
_INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

# Objects made, not yet gone, until garbage is collected: by Python's 700 that is 7 % of the processor time.
_BETWEEN_COLLECTIONS = 10_000

# Explaining a failure line by line takes minutes over compiled code.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)

settings.register_profile(
    "default",
    max_examples=8 if _INTERPRETED else 30,
    deadline=None,
    derandomize=True,
    print_blob=True,
    phases=_PHASES,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.register_profile(
    "soak",
    max_examples=5000,
    deadline=None,
    print_blob=True,
    phases=_PHASES,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.register_profile(
    "unshrunk",
    settings.get_profile("default"),
    max_examples=30,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "compiled: needs compiled kernels, skipped under NUMBA_DISABLE_JIT=1")
    if "PYTEST_XDIST_WORKER" in os.environ:
        worker, n_workers = os.environ["PYTEST_XDIST_WORKER"], int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args = from_elsewhere(config.args, int(worker.removeprefix("gw")), n_workers)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """To look through a module for examples that has none takes as long as to collect its tests."""
    found = yield
    if any(isinstance(one, DoctestModule) for one in found) and b">>>" not in file_path.read_bytes():
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: no collection of garbage has to look through it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
        gc.enable()


def pytest_report_header() -> str | None:
    if TURN is None:
        return None
    return f"turn {TURN} of {N_TURNS}: of tests that are marked in_turns a third of the cases; TURN=all: all"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _INTERPRETED:
        skip = pytest.mark.skip(reason="too large for kernels run as plain Python (NUMBA_DISABLE_JIT)")
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(skip)
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and not needs_java(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid} needs Java: its file belongs into support/sharing.py")
    if TURN is not None:
        waiting = later([item.nodeid for item in items if item.get_closest_marker("in_turns")], TURN)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in waiting])
        items[:] = [item for item in items if item.nodeid not in waiting]
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: place(item.nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Sharing | None:
    return Sharing(config, log) if config.getoption("dist") == "loadfile" else None  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, described by the README in it."""
    beside = ROOT.parent / "shared" / "data"
    folder = Path(os.environ.get("LFTJ_DATA", beside))
    if not folder.is_dir():
        pytest.skip(
            "no real data: neither ../shared/data beside the repository nor the folder named by LFTJ_DATA"
        )
    return folder


@pytest.fixture(scope="session", autouse=True)
def nothing_announced() -> Iterator[None]:
    """Tests look at what is said on stderr, whether or not kernels are compiled meanwhile."""
    from indices import announcement

    with announcement.silence():
        yield


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """What is on a disk after a power failure is told by :mod:`support.disks`, not by waiting for this one.

    Processes that tests start, and kill, do wait.
    """
    from maintenance.store import disk

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "_sync_content", lambda descriptor: None)
        patch.setattr(disk, "_sync_names", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The folder of compiled kernels with everything in it: no process that a test starts has to compile.

    Where several processes share the tests, one of them fills it.
    """
    if _INTERPRETED:
        return None
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with open(shared / "warmed", "a+", encoding="utf-8") as told:
        fcntl.flock(told, fcntl.LOCK_EX)
        told.seek(0)
        folder = told.read()
        if not folder:
            code = "import lftj; print(lftj.warm_up(), end='')"
            command = [sys.executable, "-c", code]
            folder = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
            told.write(folder)
    return Path(folder)


@pytest.fixture(scope="session")
def forked_lftj(warmed: Path | None) -> Iterator[list[str]]:
    """The command of a process that is one of ``lftj``, but for what :mod:`support.forked_shell` says."""
    from support.forked_shell import Server

    server = Server()
    yield server.command
    server.close()


@pytest.fixture(scope="session")
def lives() -> Iterator[Killer]:
    """What runs pulls and pushes in processes that are killed."""
    from support.killed_pulls import killer

    with killer() as made:
        yield made


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The process's Spark session; tests that need it skip where pyspark is not installed.

    Their files stand in :mod:`support.sharing`, so that one process has them all.
    """
    pytest.importorskip("pyspark")
    from support.spark_session import spark_session

    return spark_session()


@pytest.fixture(autouse=True)
def no_registered_aggregates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has the language's own aggregates and those that it registers itself."""
    monkeypatch.setattr("lftj.values.semigroup._registered", {})


@pytest.fixture
def orders_chosen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The planners' modules, one entry for each time that one searches for key orders."""
    from lftj.planning import planner, term_order

    found: list[str] = []
    for module in (planner, term_order):
        choose = module._chosen

        def counting(*arguments, choose=choose, name=module.__name__):  # type: ignore[no-untyped-def]
            found.append(name)
            return choose(*arguments)

        monkeypatch.setattr(module, "_chosen", counting)
    return found
