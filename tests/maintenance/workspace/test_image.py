"""differential: a workspace read back from its image, beside the one that was written.

Whatever follows, both give the same changes, heads, records, operations and refusals.
A machine goes on from images of itself under the oracle of the maintenance machine.
Damaged images are refused, wherever the damage is.
"""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from indices.sources import sources_of_packages
from lftj import errors
from lftj.storage import index_version
from lftj.values.semigroup import Semigroup, register, semigroup
from maintenance import Workspace, image
from maintenance.image import read_image, write_image
from support.aggregate_heads import FUNCTIONS
from support.heads_of_all_kinds import (
    RULES,
    counted,
    state_of,
    steps,
    told,
    workspace_of_all_kinds,
)
from support.maintained_scenarios import commit, expected_heads, installed
from support.maintenance_machine import MERGES, MaintenanceMachine
from support.paths import ROOT, child_environment
from support.records import renewed_all_the_time
from support.strategies import scenarios
from support.transactions import transactions

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]

OWN_RULES = """
g[a] = gcd(b) <- edge(a, b).
l[a] = last(f, s) <- edge(a, b), item(b, s, p, d, f).
c[a] = careful(b) <- edge(a, b).
"""
OWN = ("gcd", "last", "careful")


@pytest.fixture(scope="module")
def compiled_once() -> dict[str, Semigroup]:
    return {name: Semigroup(name, FUNCTIONS[name]) for name in OWN}


@pytest.fixture
def own_aggregates(compiled_once: dict[str, Semigroup], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of ``OWN`` are registered."""
    monkeypatch.setattr("lftj.values.semigroup._registered", dict(compiled_once))


# -- what is compared -------------------------------------------------------------------


def image_of(workspace: Workspace) -> bytes:
    sink = io.BytesIO()
    write_image(workspace, sink)
    return sink.getvalue()


def read_back(workspace: Workspace) -> Workspace:
    return read_image(image_of(workspace))


def check_same_state(first: Workspace, second: Workspace) -> None:
    (heads, *others), (heads_again, *others_again) = state_of(first), state_of(second)
    assert others == others_again
    assert heads.keys() == heads_again.keys()
    for name, table in heads.items():
        assert_same(table, heads_again[name])
        if name in first.heads:
            assert first.explain_maintenance(name) == second.explain_maintenance(name)


def assert_same(first: pa.Table, second: pa.Table) -> None:
    assert first.schema.equals(second.schema)
    assert repr(first.to_pylist()) == repr(second.to_pylist())  # NaN equals NaN


def check_same_step(first: Any, second: Any) -> None:
    """Two transactions, or what was raised in their place."""
    assert type(first) is type(second)
    if isinstance(first, Exception):
        assert str(first) == str(second)
        return
    assert counted(first.stats) == counted(second.stats)
    assert first.changes.keys() == second.changes.keys()
    for name in first.changes:
        assert_same(first.changes[name], second.changes[name])


# -- random programs ----------------------------------------------------------------------


@settings(suppress_health_check=list(HealthCheck))
@given(
    data=st.data(),
    merges=MERGES,
    budget=st.sampled_from((None, None, 0, 400)),
    renewed=st.sampled_from((None, 10)),
)
def test_random_workspaces_go_on_as_if_nothing_had_been(
    data: st.DataObject, merges: tuple[int, int], budget: int | None, renewed: int | None
) -> None:
    scenario = data.draw(scenarios(most_atoms=3, most_rules=4))
    before = data.draw(st.lists(transactions(scenario), max_size=3))
    following = data.draw(st.lists(transactions(scenario), min_size=1, max_size=4))
    assume(expected_heads(scenario, scenario.relations) is not None)

    def tried(workspace: Workspace, staged: Any) -> Any:
        try:
            return commit(workspace, scenario, staged)
        except errors.LftjError as error:
            return error

    with (
        mock.patch.object(index_version, "BASE_LEAST", merges[0]),
        mock.patch.object(index_version, "BASE_FRACTION", merges[1]),
        renewed_all_the_time(renewed),
    ):
        strategy = data.draw(st.sampled_from(("trace", "trace", "delta", "recompute")))
        written = installed(scenario, strategy, 8, budget)
        for staged in before:
            tried(written, staged)
        again = read_back(written)
        check_same_state(written, again)
        again.check_invariants()
        for staged in following:
            steps = tried(written, staged), tried(again, staged)
            check_same_step(*steps)
            event(type(steps[0]).__name__)
            again.check_invariants()
        check_same_state(written, again)
        again.verify()


class ImageMachine(MaintenanceMachine):
    """The maintenance machine, whose workspaces are now and then written and read back."""

    @rule(which=st.integers(0, 1))
    def go_on_from_an_image(self, which: int) -> None:
        again = read_back(self.workspaces[which])
        check_same_state(self.workspaces[which], again)
        self.workspaces[which] = again
        if which == 0:
            for name in self.heads:
                again.subscribe(name, self._adder(name))


def test_a_machine_goes_on_from_images_of_itself() -> None:
    base = settings.default.max_examples if settings.default else 100
    run_state_machine_as_test(
        ImageMachine,
        settings=settings(
            max_examples=base // 2, stateful_step_count=12, suppress_health_check=list(HealthCheck)
        ),
    )


# -- one workspace with heads of all kinds ---------------------------------------------------


def check_goes_on(written: Workspace, again: Workspace, n_steps: int = 8, seed: int = 5) -> None:
    check_same_state(written, again)
    for pair in zip(steps(written, n_steps, seed), steps(again, n_steps, seed), strict=True):
        check_same_step(*pair)
    check_same_state(written, again)
    again.check_invariants()
    again.verify()


@pytest.mark.parametrize("n_before", [0, 1, 40])
def test_heads_of_all_kinds(n_before: int) -> None:
    written = workspace_of_all_kinds()
    steps(written, n_before, seed=3)
    assert {name for name in written.heads if not written[name].count} <= {"any"}
    again = read_back(written)
    check_goes_on(written, again)
    check_goes_on(written, read_back(again), seed=6)  # an image of what was read


def test_many_runs_and_a_snapshot_held() -> None:
    with mock.patch.object(index_version, "BASE_LEAST", 1 << 20):
        written = workspace_of_all_kinds()
        snapshot = written.snapshot()
        held = snapshot["tri"].table
        steps(written, 30, seed=4)
        runs = [len(v.primary.runs) for v in written._state.versions.values()]
        assert max(runs) >= 3
        again = read_back(written)
        assert runs == [len(v.primary.runs) for v in again._state.versions.values()]
        check_goes_on(written, again)
        assert_same(snapshot["tri"].table, held)


def test_rules_installed_later_and_queries() -> None:
    written = workspace_of_all_kinds()
    written.query("q(a, c) <- tri(a, b, c), degree[a] = n, n > 2.")
    steps(written, 3, seed=4)
    again = read_back(written)
    for workspace in (written, again):
        workspace.install("top[a] = max(c) <- tri(a, b, c).")
        workspace.load("more", [("s1", 2)], columns=["s", "n"])
    queries = "q(a, n) <- names[a] = s, degree[a] = n. r(a, n) <- q(a, n), !more(_, n)."
    assert_same(written.query(queries, threads=1), again.query(queries, threads=1))
    check_goes_on(written, again)


def test_subscribers_stay_behind() -> None:
    written = workspace_of_all_kinds()
    told: list[pa.Table] = []
    images: list[bytes] = []
    written.subscribe("degree", told.append)
    written.subscribe("degree", lambda changes: images.append(image_of(written)))
    with written.transaction() as transaction:
        transaction.insert("edge", [(100, 101)])
    again = read_image(images[0])
    n_told = len(told)
    steps(again, 3, seed=2)
    assert len(told) == n_told
    assert again["edge"].table.num_rows


@pytest.mark.usefixtures("own_aggregates")
def test_nothing_compiled_is_in_an_image() -> None:
    with mock.patch.object(np, "empty", np.zeros):  # room for growth has what stood in memory before
        written = workspace_of_all_kinds(RULES + OWN_RULES)
        steps(written, 3, seed=4)
    _, rows = image._parsed(image_of(written))
    assert b"numba" not in bytes(rows[0])
    assert b"dispatcher" not in bytes(rows[0])


class _Watched(image._Pickler):
    """Notes every array on its way into an image."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), [])
        self.seen: list[np.ndarray] = []

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            self.seen.append(value)
        return super().reducer_override(value)


@pytest.mark.usefixtures("own_aggregates")
def test_no_address_is_in_an_image() -> None:
    """No number in any array that is written is where an array of the engine stands."""
    # Room for growth that nobody wrote to holds whatever stood in memory before, addresses too.
    with mock.patch.object(np, "empty", np.zeros), mock.patch.object(index_version, "BASE_LEAST", 1 << 20):
        written = workspace_of_all_kinds(RULES + OWN_RULES)
        steps(written, 20, seed=4)
    watched = _Watched()
    watched.dump(written)
    addresses = [array.ctypes.data for array in watched.seen if array.size]
    assert len(addresses) > 100
    primary = written._state.versions["edge"].primary
    assert primary.runs and np.isin(primary.memory, addresses).any()  # so they would be noticed
    for array in watched.seen:
        assert array.dtype.kind != "O"
        if array.dtype.itemsize == 8:
            assert not np.isin(np.ascontiguousarray(array).view(np.int64), addresses).any()


def test_plain_pickles_are_refused() -> None:
    """They would hold addresses."""
    with pytest.raises(TypeError, match="lock"):
        pickle.dumps(workspace_of_all_kinds())


# -- aggregates of a user's -----------------------------------------------------------------


@pytest.mark.usefixtures("own_aggregates")
def test_aggregates_of_ones_own() -> None:
    written = workspace_of_all_kinds(OWN_RULES)
    steps(written, 3, seed=4)
    check_goes_on(written, read_back(written), n_steps=20)
    assert any(isinstance(step, errors.AggregateError) for step in steps(written, 20, seed=5))


@pytest.mark.usefixtures("own_aggregates")
def test_aggregates_have_to_be_registered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    written = image_of(workspace_of_all_kinds("g[a] = gcd(b) <- edge(a, b)."))
    monkeypatch.setattr("lftj.values.semigroup._registered", {})
    with pytest.raises(errors.ImageError, match=r"'gcd', which is not registered here"):
        read_image(written)
    register("gcd", FUNCTIONS["gcd"])
    read_image(written).verify()
    monkeypatch.setattr(semigroup("gcd"), "function", FUNCTIONS["last"])
    with pytest.raises(errors.ImageError, match="'gcd' is not what it was when the image was written"):
        read_image(written)


# -- another process ------------------------------------------------------------------------

CHILD = """
import sys
from collections import Counter
from pathlib import Path
import pyarrow as pa
from maintenance import image
from support.heads_of_all_kinds import told
image._SOURCES = sys.argv[2]  # that nobody edits them meanwhile is no part of this
workspace = image.read_image(pa.memory_map(sys.argv[1]).read_buffer())
print(told(workspace))
workspace.check_invariants()
workspace.verify()
"""


@pytest.mark.compiled
def test_another_process_goes_on(tmp_path: Path) -> None:
    written = workspace_of_all_kinds()
    steps(written, 10, seed=3)
    (tmp_path / "image").write_bytes(image_of(written))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "image"), image._SOURCES],
        env=child_environment(PYTHONHASHSEED="77"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == told(written) + "\n"


# -- while others work ------------------------------------------------------------------------


@pytest.mark.compiled
def test_images_while_another_thread_commits() -> None:
    """Each is of one committed state, and its dictionary is whole."""
    workspace = workspace_of_all_kinds()
    over = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        number = 0
        try:
            while not over.is_set():
                number += 1
                words = [f"word {number} {i}" for i in range(number % 300)]
                workspace.domains.of(pa.string()).encode(pa.array(words, pa.string()))
                with workspace.transaction() as transaction:
                    transaction.insert("edge", [(number % 50, number % 13)])
                    transaction.erase("edge", [(number % 31, number % 13)])
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        images = [image_of(workspace) for _ in range(25)]
    finally:
        over.set()
        thread.join()
    assert not failed
    for written in images:
        again = read_image(written)
        again.check_invariants()
        again.verify()
        again.domains.of(pa.string())._interner.check_invariants()  # type: ignore[attr-defined]


# -- what is refused ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_image() -> bytes:
    workspace = Workspace()
    workspace.load("edge", [(i % 7, i % 5, f"{i % 11}") for i in range(200)], columns=["a", "b", "s"])
    workspace.install("both(a, c) <- edge(a, b, s), edge(b, c, s). n[s] = count() <- edge(_, _, s).")
    return image_of(workspace)


def test_truncated_images(small_image: bytes) -> None:
    ends = [*range(300), *range(300, len(small_image), len(small_image) // 200), len(small_image) - 1]
    for end in ends:
        with pytest.raises(errors.ImageError):
            read_image(small_image[:end])
    with pytest.raises(errors.ImageError):
        read_image(small_image + b"more")


def test_flipped_bytes_of_the_header(small_image: bytes) -> None:
    start = small_image.index(b'{"format"')
    for place in range(start, small_image.index(b"}", start) + 1):
        flipped = bytearray(small_image)
        flipped[place] ^= 1 << place % 7
        with pytest.raises(errors.ImageError):
            read_image(bytes(flipped))


@settings(suppress_health_check=list(HealthCheck), max_examples=400)
@given(data=st.data())
def test_flipped_bytes_anywhere(small_image: bytes, data: st.DataObject) -> None:
    """Between the rows there is filling that means nothing; elsewhere a flip is noticed."""
    place = data.draw(st.integers(0, len(small_image) - 1))
    flipped = bytearray(small_image)
    flipped[place] ^= data.draw(st.integers(1, 255))
    try:
        workspace = read_image(bytes(flipped))
    except errors.ImageError:
        event("refused")
    else:
        event("of no meaning")
        check_same_state(workspace, read_image(small_image))


@pytest.mark.parametrize("name", sorted(image._software(())))
def test_other_software(small_image: bytes, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {**image._software(()), name: "another"}
    monkeypatch.setattr(image, "_software", lambda packages: other)
    with pytest.raises(errors.ImageError, match=f"of other software: its {name} is"):
        read_image(small_image)


@pytest.mark.parametrize("kind", ["nothing", "text", "arrow", "arrow column", "pickle"])
def test_what_is_no_image(kind: str) -> None:
    def file_of(table: pa.Table) -> bytes:
        sink = io.BytesIO()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    pickled = b"no pickle"
    header = {**image._software(()), "rows": 1, "checksum": image._checksum([memoryview(pickled)])}
    rows = pa.array([json.dumps(header).encode(), pickled], pa.large_binary())
    batches = [pa.record_batch([rows.slice(i, 1)], names=["row"]) for i in range(2)]
    source = {
        "nothing": b"",
        "text": b"hello " * 100,
        "arrow": file_of(pa.table({"a": [1]})),
        "arrow column": file_of(pa.table({"row": pa.array([b"{}", None], pa.large_binary())})),
        "pickle": file_of(pa.Table.from_batches(batches)),
    }[kind]
    with pytest.raises(errors.ImageError):
        read_image(source)


def test_engines_made_of_workspaces(small_image: bytes) -> None:
    """Several in one image, with what is about them; of other packages it is refused."""
    first, second = read_image(small_image), read_image(small_image)
    sink = io.BytesIO()
    write_image({"cells": [first, second], "name": "two"}, sink, ["spark_bridge"])
    again = read_image(sink.getvalue(), ["spark_bridge"])
    assert again["name"] == "two"
    for was, now in zip([first, second], again["cells"], strict=True):
        check_same_state(was, now)
    with pytest.raises(errors.ImageError, match="its sources is"):
        read_image(sink.getvalue())


def test_arrays_come_back_as_they_were(small_image: bytes) -> None:
    """Each at an address that kernels can read, and those that are shared read-only."""
    version = read_image(small_image)._state.versions["edge"]
    for array in (*version.primary.base.keys, *version.primary.base.children):
        assert array.flags.aligned and not array.flags.writeable
    source = np.frombuffer(small_image, np.uint8)
    assert not any(np.shares_memory(array, source) for array in version.primary.base.keys)


def test_an_image_knows_sources_in_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "of_an_image"
    (package / "rooms").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "rooms/one.py").write_text("A = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = sources_of_packages.__wrapped__("of_an_image")
    (package / "rooms/one.py").write_text("A = 2\n", encoding="utf-8")
    assert sources_of_packages.__wrapped__("of_an_image") != before


SQL_RULES = (
    'size(a, t) <- r(a, b), t = if((b > 3 ; b is null), "big", "small").',
    "joined(a, c) <- r(a, b), r(<=> b, c), !r(<=> c, _).",
    "nth(a, w) <- r(a, b), w = lag(b, by: (a, b)).",
    "best(a, b) <- r(a, b), top(2, by: (b desc, a)).",
    "stats(a, n: count(if b > 2), m: median(b), v: stddev(b)) <- r(a, b).",
    "n[] = count() default 0 <- r(a, b), a > 99.",
    "bag all(a) <- r(a, _).",
)


def test_an_image_of_what_sql_has() -> None:
    ws = Workspace()
    ws.load("r", [(1, 5), (1, 2), (2, None), (3, 7)], columns=["a", "b"], nulls="keep")
    ws.install(" ".join(SQL_RULES))
    again = read_back(ws)
    for one in (ws, again):
        with one.transaction() as tx:
            tx.insert("r", [(4, 5), (5, None)])
            tx.erase("r", [(1, 2)])
        one.verify()
    for head in ("size", "joined", "nth", "best", "stats", "n", "all"):
        assert Counter(map(repr, again[head])) == Counter(map(repr, ws[head])), head
