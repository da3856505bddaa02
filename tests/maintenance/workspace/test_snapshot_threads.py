"""stateful: snapshots that threads take while another one commits.

Every transaction changes two relations together and a clock, so a snapshot says
which committed state it is, and can be compared with it as a whole: relations,
heads, and heads of heads.
"""

from __future__ import annotations

import threading
import time
from random import Random
from typing import Any

import pytest

from lftj.storage.catalog import IndexKey
from lftj.storage.relation_version import RelationVersion
from maintenance import Snapshot, Workspace

pytestmark = pytest.mark.compiled

RULES = """
both(x, y) <- left(x, y), right(x, y).
alone(x, y) <- left(x, y), !right(x, y).
path(x, z) <- left(x, y), right(y, z).
paths[] = count() <- path(_, _).
"""
NAMES = ("left", "right", "clock", "both", "alone", "path", "paths")
COMMITS = 150
KEYS = 12

State = dict[str, frozenset[Any]]


def contents(source: Snapshot | Workspace) -> State:
    return {name: frozenset(zip(*source[name].table.to_pydict().values(), strict=True)) for name in NAMES}


def expected(pairs: set[tuple[int, int]], clock: int) -> State:
    path = {(x, z) for x, y in pairs for y_again, z in pairs if y == y_again}
    return {
        "left": frozenset(pairs),
        "right": frozenset(pairs),
        "clock": frozenset({(clock,)}),
        "both": frozenset(pairs),
        "alone": frozenset(),
        "path": frozenset(path),
        "paths": frozenset({(len(path),)} if path else ()),
    }


class Reader(threading.Thread):
    """Takes snapshots until it is told to stop, and keeps some of them."""

    def __init__(self, workspace: Workspace, seed: int) -> None:
        super().__init__(daemon=True)
        self.workspace = workspace
        self.random = Random(seed)
        self.over = threading.Event()
        self.seen: list[State] = []
        self.kept: list[tuple[Snapshot, State]] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.over.is_set():
                snapshot = self.workspace.snapshot()
                state = contents(snapshot)
                self.seen.append(state)
                (pair,) = snapshot.query("n[] = count() <- left(x, y), right(x, y).").to_pylist() or [{}]
                assert set(pair.values()) == ({len(state["left"])} if state["left"] else set())
                if self.random.random() < 0.2:
                    self.kept.append((snapshot, state))
        except BaseException as error:
            self.error = error

    def wait_for_another(self) -> None:
        """Until it has read a state that it began to read after this call, or has failed."""
        enough = len(self.seen) + 2
        while len(self.seen) < enough and self.is_alive():
            time.sleep(0.001)


def clock_of(state: State) -> int:
    ((clock,),) = state["clock"]
    return int(clock)


def test_readers_see_committed_states_only() -> None:
    random = Random(7)
    pairs = {(random.randrange(KEYS), random.randrange(KEYS)) for _ in range(30)}
    workspace = Workspace(record_gap=0)
    for name in ("left", "right"):
        workspace.load(name, sorted(pairs), columns=["x", "y"])
    workspace.load("clock", [(0,)], columns=["t"])
    workspace.install(RULES)
    states = [expected(pairs, 0)]
    assert contents(workspace) == states[0]
    readers = [Reader(workspace, seed) for seed in (1, 2)]
    for reader in readers:
        reader.start()
    try:
        for clock in range(1, COMMITS + 1):
            if clock % (COMMITS // 3) == 1:  # however the threads take turns, and whatever compiles at first
                for reader in readers:
                    reader.wait_for_another()
            size = random.choice((1, 2, 20))
            changed = {(random.randrange(KEYS), random.randrange(KEYS)) for _ in range(size)}
            with workspace.transaction() as transaction:
                for name in ("left", "right"):
                    transaction.insert(name, sorted(changed - pairs))
                    transaction.erase(name, sorted(changed & pairs))
                transaction.erase("clock", [(clock - 1,)])
                transaction.insert("clock", [(clock,)])
            pairs = pairs ^ changed
            states.append(expected(pairs, clock))
    finally:
        for reader in readers:
            reader.over.set()
        for reader in readers:
            reader.join()
    for reader in readers:
        assert reader.error is None, reader.error
        assert len({clock_of(state) for state in reader.seen}) > 2, "commits went on while it read"
        clocks = [clock_of(state) for state in reader.seen]
        assert clocks == sorted(clocks)
        for state in reader.seen:
            assert state == states[clock_of(state)]
        for snapshot, state in reader.kept:
            assert contents(snapshot) == state
    assert contents(workspace) == states[-1]
    workspace.verify()
    workspace.check_invariants()


@pytest.mark.parametrize("call", ["query", "count", "stream", "explain"])
def test_a_query_takes_the_state_once(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit between its looks at two relations changes nothing: tri(a, b, c) implies e(a, b)."""
    ws = Workspace()
    ws.load("e", [(1, 2), (2, 3), (1, 3)], columns=["a", "b"])
    ws.install("tri(a, b, c) <- e(a, b), e(b, c), e(a, c).")
    view = RelationVersion.view
    commits = [0]

    def view_and_commit(version: RelationVersion, key: IndexKey) -> Any:
        found = view(version, key)
        commits[0] += 1
        if commits[0] == 1:
            with ws.transaction() as tx:
                tx.erase("e", [(1, 2), (2, 3), (1, 3)])
                tx.insert("e", [(4, 5), (5, 6), (4, 6)])
        return found

    rule = "z(a) <- tri(a, b, c), !e(a, b)."
    monkeypatch.setattr(RelationVersion, "view", view_and_commit)
    if call == "explain":
        ws.explain(rule)
    elif call == "count":
        assert ws.count(rule, threads=1) == 0
    elif call == "query":
        assert ws.query(rule, threads=1).num_rows == 0
    else:
        assert sum(batch.num_rows for batch in ws.stream(rule)) == 0
    assert commits[0] > 1
