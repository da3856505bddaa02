"""Queries over versions with runs: nothing is merged for them, and nothing of old versions stays."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import textwrap
import tracemalloc
from collections import Counter
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lftj
from lftj.search.queries.plan import BoundPlan
from lftj.storage.index_version import IndexVersion
from lftj.storage.patch import Patch
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.storage.trie import Trie
from maintenance import Workspace
from support.maintained_scenarios import commit, expected_heads, heads_of
from support.paths import ROOT
from support.rows import rows_of
from support.sets import load_set
from support.strategies import any_row, scenarios
from support.transactions import after, transactions

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
RULES = (
    TRIANGLES,
    "n[a] = count() <- edge(a, b), edge(b, c).",
    "out(b) <- edge(7, b).",
    "far(c) <- edge(7, b), edge(b, c), !edge(7, c).",
    "hub(a) <- edge(a, b), edge(b, _).",
    "loop(a) <- edge(a, a).",
    "big[a] = sum(b) <- edge(a, b), a < b.",
)


def graph(n_edges: int, n_nodes: int, seed: int = 1) -> Workspace:
    random = np.random.default_rng(seed)
    ws = Workspace()
    load_set(
        ws, "edge", {"a": random.integers(0, n_nodes, n_edges), "b": random.integers(0, n_nodes, n_edges)}
    )
    return ws


def fresh(ws: Workspace) -> lftj.Database:
    """A database with the same relations, loaded."""
    database = lftj.Database()
    for name in ws.relations:
        database.load(name, ws[name].table)
    return database


def test_queries_after_commits_merge_nothing() -> None:
    ws = graph(4_000, 300)
    answers = {rule: ws.count(rule) for rule in RULES}  # their indices are there now
    random = Random(3)
    for _ in range(6):
        with ws.transaction() as tx:
            tx.insert("edge", [(random.randrange(320), random.randrange(320)) for _ in range(4)])
            tx.erase("edge", random.sample(list(ws["edge"]), 3))
        with mock.patch.object(RelationVersion, "relation", side_effect=AssertionError("merged")):
            answers = {rule: ws.query(rule) for rule in RULES}
        loaded = fresh(ws)
        for rule, answer in answers.items():
            assert sorted(rows_of(answer)) == sorted(rows_of(loaded.query(rule))), rule


@pytest.mark.compiled
def test_a_commit_changes_what_a_query_takes_by_little() -> None:
    """In operations: a triangle count and a point query after single edges, beside loaded data."""
    ws = graph(200_000, 20_000)

    def operations(database: lftj.Database, rule: str) -> int:
        return sum(body.operations for body in database.explain(rule, analyze=True).bodies)

    point = "far(c) <- edge(7, b), edge(b, c)."
    before = {rule: operations(ws, rule) for rule in (TRIANGLES, point)}
    for step in range(5):
        with ws.transaction() as tx:
            tx.insert("edge", [(7, 30_000 + step), (30_000 + step, 7)])
    for rule, was in before.items():
        assert operations(ws, rule) <= 1.05 * was + 100


def test_the_shape_of_a_database_s_search_is_that_of_a_workspace_s() -> None:
    """Where no run is left the same operations are counted."""
    ws = graph(3_000, 200)
    for rows, tell in (([(900, 901)], "insert"), ([(900, 901)], "erase")):
        with ws.transaction() as tx:
            getattr(tx, tell)("edge", rows)
    assert operations_of(ws) == operations_of(fresh(ws))


def operations_of(database: lftj.Database) -> list[int]:
    return [b.operations for rule in RULES for b in database.explain(rule, analyze=True).bodies]


@settings(max_examples=60)
@given(data=st.data())
def test_random_rules_over_random_versions(data: st.DataObject) -> None:
    scenario = data.draw(scenarios(most_atoms=3, most_rules=2))
    ws = Workspace()
    for relation in scenario.loaded:
        load_set(ws, relation.name, relation.table())
    tuples = scenario.relations
    for _ in range(3):
        staged = data.draw(transactions(scenario))
        commit(ws, scenario, staged)
        tuples = after(tuples, staged)
        expected = expected_heads(scenario, tuples)
        for head in heads_of(scenario):
            if expected is None:
                with contextlib.suppress(lftj.LftjError):  # another head may be the one that fails
                    ws.query(scenario.text, head=head)
            else:
                assert any_row(set(rows_of(ws.query(scenario.text, head=head)))) == any_row(expected[head])


def emptied(n_rows: int) -> tuple[Workspace, int]:
    """A workspace that had ``n_rows`` rows and rules over them, and the bytes that were traced then."""
    keys = np.arange(n_rows)
    table = {"a": keys % 1_000, "b": keys}
    ws = Workspace()
    ws.load("edge", table)
    ws.install("deg[a] = count() <- edge(a, b). hub(a) <- deg[a] = n, n > 10.")
    prepared = ws.prepare("out(b) <- edge($k, b).")
    prepared(k=7)
    ws.count("two(a, c) <- edge(a, b), edge(b, c).")
    gc.collect()
    full = tracemalloc.get_traced_memory()[0]
    with ws.transaction() as tx:
        tx.erase("edge", table)
    assert ws["edge"].count == ws["hub"].count == prepared.count({"k": 7}) == 0
    return ws, full


def test_nothing_of_the_first_version_is_left_when_all_rows_were_erased() -> None:
    n_rows = 200_000
    emptied(n_rows)  # whatever is imported and compiled for it
    tracemalloc.start()
    try:
        ws, full = emptied(n_rows)
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert ws["edge"].count == 0
    assert full > 16 * n_rows
    assert left < 4 * n_rows  # less than half a column


def n_alive() -> Counter[str]:
    """How many objects with arrays of an index there are."""
    kinds = (Trie, Patch, BoundPlan, IndexVersion, RelationVersion, Relation)
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in kinds)


QUESTIONS = (
    "out(b) <- edge($k, b).",
    "two(a, c) <- edge(a, b), edge(b, c), a < $k.",
    "above[a] = count() <- edge(a, b), a > $k.",
    "reached(b) <- edge($k, b). reached(c) <- reached(b), edge(b, c).",
    "ends(b) <- edge(a, b), a < $k, !edge(b, _).",
)


def test_what_queries_between_commits_made_goes_without_the_collector() -> None:
    """Python's collector counts objects: a few circles that hold megabytes each do not call it."""
    generator = np.random.default_rng(3)
    ws = Workspace()
    ws.load("edge", {"a": generator.integers(0, 300, 2_000), "b": generator.integers(0, 300, 2_000)})
    ws.install("deg[a] = count() <- edge(a, b).")
    asked = [ws.prepare(question) for question in QUESTIONS]

    def rounds(n_rounds: int) -> Counter[str]:
        for _ in range(n_rounds):
            for prepared in asked:
                prepared({"k": int(generator.integers(300))})
            seen = ws.snapshot()
            with ws.transaction() as tx:
                tx.insert("edge", generator.integers(0, 300, (20, 2)).tolist())
                tx.erase("edge", generator.integers(0, 300, (20, 2)).tolist())
            assert seen.count(QUESTIONS[2].replace("$k", "7")) > 0
        return n_alive()

    gc.collect()
    gc.disable()
    try:
        few = rounds(10)
        many = rounds(20)
    finally:
        gc.enable()
    assert few["Trie"] > 0
    assert many <= few + Counter(dict.fromkeys(few, 4))  # some are being merged now, others were then


HELD_BETWEEN_COMMITS = """
    import numpy as np

    from maintenance import Workspace


    def resident():
        for line in open("/proc/self/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024


    def batch(number):
        return {"s": generator.integers(0, 1_000, 1_000), "t": np.arange(1_000) + number * 1_000}


    generator = np.random.default_rng(1)
    ws = Workspace()
    first = [batch(number) for number in range(100)]
    ws.load("trade", {name: np.concatenate([part[name] for part in first]) for name in ("s", "t")})
    ws.install("n[s] = count() <- trade(s, t).")
    old = ws.prepare("old(s, t) <- trade(s, t), t >= $since, t < $bound.")
    for number in range(90):
        gone = old({"since": number * 1_000, "bound": (number + 1) * 1_000})
        with ws.transaction() as tx:
            tx.insert("trade", batch(100 + number))
            tx.erase("trade", gone)
        if number == 9:
            begun = resident()
    print(resident() - begun, sum(ws.stats.memory_bytes.values()))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="resident memory is read from /proc")
def test_queries_between_commits_leave_no_memory() -> None:
    """A window of 100,000 rows that slides, asked before each commit: what is resident, what is held."""
    command = [sys.executable, "-c", textwrap.dedent(HELD_BETWEEN_COMMITS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    grown, held = map(int, done.stdout.split())
    assert grown < 4 * held
