"""No commit loads a kernel: where all are compiled, those of a rule are there when it is installed, those of
the commit machine behind the small transactions for which it is made."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.compiled

SCRIPT = """
import json, random
from unittest import mock
from indices import merging
from indices.kernel_cache import KernelCache
from lftj.storage import index_version
from maintenance import Workspace
from maintenance.machine.machine import FEWEST

loaded = []
load = KernelCache.load_overload

def noting(cache, signature, target):
    loaded.append(cache._name)
    return load(cache, signature, target)

RULES = '''
tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).
degree[a] = count() <- edge(a, _).
best[a] = max(b) <- edge(a, b).
total[a] = sum(c) <- edge(a, b), edge(b, c).
'''
EXISTENCE = "answered(a) <- edge(a, b), edge(b, a). ends(a, b) <- edge(a, b), !edge(b, _)."
PATHS = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c)."
# A kernel is loaded once: the rules that have least of their own come first.
KEPT = {"existence": EXISTENCE, "auto": RULES, "trace": RULES, "stages": PATHS}

def changed(kept, way="general"):
    random.seed(1)
    ws = Workspace(single_changes=way)
    ws.load("edge", [(a, a + 1) for a in range(60)] + [(a, a + 2) for a in range(60)], columns=["a", "b"])
    ws.install(KEPT[kept], "auto" if kept == "existence" else kept)
    del loaded[:]
    there = []
    for number in range(250 if kept != "stages" else 40):
        if way == "machine" and number == FEWEST + 1:
            del loaded[:]
        with ws.transaction() as tx:
            if number % 3 < 2:
                there.append((random.randrange(70), 100 + number))
                tx.insert("edge", there[-1:])
            else:
                tx.erase("edge", [there.pop(random.randrange(len(there)))])
    return sorted(set(loaded))

with (
    mock.patch.object(KernelCache, "load_overload", noting),
    mock.patch.object(merging, "AT_ONCE", 8),
    mock.patch.object(merging, "PIECE_ROWS", 4),
    mock.patch.object(index_version, "BASE_LEAST", 32),
    mock.patch.object(index_version, "MERGED_LEAST", 16),
):
    found = {kept: changed(kept) for kept in KEPT}
    found["machine"] = changed("auto", "machine")
print(json.dumps(found))
"""


@pytest.mark.in_turns
def test_commits_load_nothing() -> None:
    """A first process compiles what nobody has compiled yet."""
    nothing: dict[str, list[str]] = {each: [] for each in ("existence", "auto", "trace", "stages", "machine")}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        if found == nothing:
            break
    assert found == nothing
