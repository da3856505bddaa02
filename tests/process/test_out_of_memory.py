"""What does not fit into memory is said in the project's words, and leaves everything as it was.

Each runs in a process of its own whose memory is limited when all is loaded and compiled.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from lftj import errors
from lftj.process.enough_memory import enough_memory
from support.paths import ROOT, child_environment

pytestmark = pytest.mark.compiled


BEGIN = """
import resource
import lftj
from maintenance import Workspace

MIB = 1 << 20
CUBE = "cube(a, b, c) <- n(a), n(b), n(c)."
FEW = "few(a, b) <- n(a), n(b), a < b."
SETS = "sets(a, c) <- n(a), n(b), n(c), b > a, b > c."

def limit(more):
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, -1))

def refused(call, *parts):
    try:
        call()
    except lftj.errors.OutOfMemoryError as error:
        assert isinstance(error, MemoryError) and isinstance(error, lftj.LftjError)
        assert all(part in str(error) for part in parts), error
        return
    raise AssertionError("it fitted")
"""

CASES = {
    "query": """
db = lftj.Database()
db.load("n", {"x": range(1500)})
for rule in (CUBE, FEW, SETS):
    db.query(rule + " q(a) <- n(a), a < 3.", head="q")
    next(db.stream(rule, order=None))
small = db.query(FEW).num_rows
db.query("cube(a, b, c) <- n(a), n(b), n(c), a < 2, b < 2.")
limit(400 * MIB)
for threads in (1, 2):
    refused(lambda: db.query(CUBE, threads=threads), "does not fit into memory", "stream()", "count()")
assert db.count(CUBE) == 1500**3
assert sum(batch.num_rows for _, batch in zip(range(9), db.stream(CUBE))) > 0
assert db.query(FEW).num_rows == small
""",
    "install": """
ws = Workspace()
ws.load("n", {"x": range(1500)})
warm = Workspace()
warm.load("n", {"x": range(20)})
warm.install(CUBE + FEW)
with warm.transaction() as tx:
    tx.insert("n", [(30,)])
ws.install(FEW)
before = ws._state
limit(400 * MIB)
refused(lambda: ws.install(CUBE), "nothing was installed", "fewer rules")
assert ws._state is before and ws.heads == ("few",)
with ws.transaction() as tx:
    tx.insert("n", [(1500,)])
assert tx.changes["few"].num_rows == 1500
ws.install("one(a) <- n(a), a < 3.")
ws.verify()
""",
    "commit": """
ws = Workspace()
ws.load("n", {"x": range(30)})
ws.install(CUBE)
with ws.transaction() as tx:
    tx.insert("n", [(30,)])
before = ws._state
limit(400 * MIB)
def commit():
    with ws.transaction() as tx:
        tx.insert("n", [(x,) for x in range(1500)])
refused(commit, "nothing was committed", "smaller transactions")
assert ws._state is before and ws["cube"].count == 31**3
with ws.transaction() as tx:
    tx.insert("n", [(31,)])
assert tx.changes["cube"].num_rows == 32**3 - 31**3
ws.verify()
""",
}


@pytest.mark.in_turns
@pytest.mark.parametrize("case", CASES)
def test_a_process_with_little_memory_goes_on(case: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEGIN + CASES[case]],
        env=child_environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_an_error_that_has_the_words_already_keeps_them() -> None:
    with (
        pytest.raises(errors.OutOfMemoryError, match=r"^inner$"),
        enough_memory("outer"),
        enough_memory("inner"),
    ):
        raise MemoryError
