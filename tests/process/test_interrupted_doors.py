"""Ctrl-C amid a call of compiled code comes out of every public operation as KeyboardInterrupt.

Compiled code calls numba's own Python, which looks at no signal's exception: what the handler raised there
becomes a SystemError further out.  Here the signal comes at each place where that may be.
"""

from __future__ import annotations

import io
import itertools
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from lftj import Database
from lftj.errors import EqualRowsWarning
from maintenance import Workspace
from maintenance.image import read_image, write_image

pytestmark = pytest.mark.compiled

NUMBA = ("numba/core/serialize.py", "numba/core/typing/typeof.py")
HEADS = ("e", "tri", "n", "loop", "names")


@pytest.fixture(autouse=True)
def _python_takes_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Amid:
    """SIGINT at the ``nth`` time that compiled code calls Python; 0: counts these times only."""

    def __init__(self, nth: int = 0) -> None:
        self.seen, self._nth = 0, nth
        self.at: list[str] = []

    def __enter__(self) -> Amid:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(NUMBA):
            self.seen += 1
            if self.seen == self._nth:
                caller: FrameType | None = frame
                while caller is not None and len(self.at) < 8:
                    self.at.append(f"{caller.f_code.co_filename}:{caller.f_lineno}")
                    caller = caller.f_back
                signal.raise_signal(signal.SIGINT)


class Scene:
    """Things that are read and changed, each time otherwise, so that nothing is known already."""

    def __init__(self) -> None:
        edges = sorted({(i % 13, (i * i + 7) % 13) for i in range(90)})
        labels = [(i, f"node {i}") for i in range(13)]
        self.db = Database()
        self.ws = Workspace()
        for into in (self.db, self.ws):
            into.load("e", edges, columns=["a", "b"])
            into.load("label", labels, columns=["id", "text"])
        self.ws.install(
            "tri(a, b, c) <- e(a, b), e(b, c), e(a, c). n[a] = count() <- e(a, _). bag loop(a) <- e(a, _)."
        )
        self.ws.install("names[a] = concat(t) <- e(a, b), label(b, t).")
        self.ws.subscribe("n", lambda table: None)
        self._numbers = itertools.count(100)
        self.since = self.ws.version
        self.commit()

    @property
    def number(self) -> int:
        return next(self._numbers)

    def commit(self) -> None:
        k = self.number
        self.last = self.ws.transaction()
        self.last.insert("e", [(a, b) for a in range(k, k + 5) for b in range(a, k + 5)])
        self.last.erase("e", [(a, b) for a in range(k - 9, k - 4) for b in range(k)])
        self.last.commit()

    def apply_many(self) -> None:
        k = self.number
        self.ws.apply_many({"e": {"a": [k, k], "b": [1, k], "weight": [1, 1], "txn": [0, 1]}})

    def image(self) -> None:
        sink = io.BytesIO()
        write_image(self.ws, sink)
        read_image(io.BytesIO(sink.getvalue()))


DOORS: dict[str, Callable[[Scene], object]] = {
    "commit": Scene.commit,
    "changes": lambda scene: dict(scene.last.changes),
    "repr of changes": lambda scene: repr(scene.last.changes),
    "apply_many": Scene.apply_many,
    "changes_since": lambda scene: [scene.ws.changes_since(scene.since, name) for name in HEADS[1:]],
    "follow": lambda scene: list(scene.ws.follow("tri", scene.since, timeout=0)),
    "table": lambda scene: [scene.ws[name].table for name in HEADS],
    "rows one by one": lambda scene: [list(scene.ws[name]) for name in HEADS],
    "repr": lambda scene: [repr(scene.ws[name]) for name in HEADS],
    "html": lambda scene: [scene.ws[name]._repr_html_() for name in HEADS],
    "length": lambda scene: [len(scene.ws[name]) for name in HEADS],
    "is in": lambda scene: ((1, 2) in scene.ws["e"], (1, 2, 3) in scene.ws["tri"]),
    "snapshot": lambda scene: scene.ws.snapshot()["tri"].table,
    "query": lambda scene: scene.ws.query(f"q(a, t) <- tri(a, _, c), label(c, t), a > {scene.number - 200}."),
    "count": lambda scene: scene.ws.count(f"q(a, c) <- e(a, b), e(b, c), a < {scene.number}."),
    "stream": lambda scene: list(scene.ws.stream(f"q(a, c) <- e(a, b), e(b, c), a < {scene.number}.")),
    "aggregates": lambda scene: scene.ws.query(f"q(a, sum(b), min(b)) <- e(a, b), a < {scene.number}."),
    "a database": lambda scene: list(scene.db.query(f"q(a, c) <- e(a, b), e(b, c), a < {scene.number}.")),
    "load": lambda scene: scene.ws.load("f", [(1, scene.number), (3, 4)], columns=["a", "b"]),
    "install": lambda scene: scene.ws.install(
        f"late(a, b) <- tri(a, b, _), a < {scene.number}. k[a] = max(b) <- e(a, b).", replace=True
    ),
    "explain": lambda scene: scene.ws.explain("q(a, c) <- e(a, b), e(b, c)."),
    "explain_maintenance": lambda scene: scene.ws.explain_maintenance(),
    "sql": lambda scene: scene.ws.sql(f"SELECT a, count(*) FROM e WHERE b < {scene.number} GROUP BY a"),
    "create_view": lambda scene: scene.ws.create_view(
        "v", f"SELECT a, max(b) AS b FROM e WHERE b < {scene.number} GROUP BY a", replace=True
    ),
    "verify": lambda scene: scene.ws.verify(),
    "check_invariants": lambda scene: scene.ws.check_invariants(),
    "stats": lambda scene: repr(scene.ws.stats),
    "image": Scene.image,
}


def places(scene: Scene, run: Callable[[Scene], object]) -> int:
    """How often compiled code calls Python in an operation behind a commit."""
    scene.commit()
    with Amid() as amid:
        run(scene)
    return amid.seen


@pytest.mark.in_turns
@pytest.mark.parametrize("door", DOORS)
def test_an_interrupt_amid_compiled_code(door: str) -> None:
    scene, run = Scene(), DOORS[door]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EqualRowsWarning)
        run(scene)
        seen = places(scene, run)
        for nth in range(1, seen + 1):
            scene.commit()
            with Amid(nth) as at:
                try:
                    run(scene)
                    if at.at:  # where it would be lost it comes a moment later
                        time.sleep(60)
                        pytest.fail(f"lost in {at.at}")
                except KeyboardInterrupt:
                    pass
                except Exception as error:
                    error.add_note(f"interrupted in {at.at}")
                    raise
    scene.commit()
    scene.ws.verify()


def test_most_doors_come_to_such_places() -> None:
    """Else the test above sees nothing."""
    scene = Scene()
    seen = {}
    for door, run in DOORS.items():
        run(scene)
        seen[door] = places(scene, run)
    assert seen["changes"] and sum(map(bool, seen.values())) > len(DOORS) / 2, seen
