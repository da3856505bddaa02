"""differential: many transactions in one call against each by itself; and what only the call has.

Heads are compared transaction by transaction with a workspace that commits them one after the other, and in
the end with brute force.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from lftj.errors import ChangeError, DataError, EvaluationError, FunctionalConflictError, RangeError
from lftj.search.regions import weighted
from maintenance import Workspace
from maintenance.heads.head import MaintainedHead
from maintenance.heads.strategies import COMPONENT_STRATEGIES, STRATEGIES
from support.maintained_scenarios import commit, expected_heads, heads_of, installed
from support.random_recursion import recursive_scenarios
from support.recursive_machine import recursive_heads
from support.rows import rows_of
from support.sets import load_set
from support.strategies import Scenario, any_row, scenarios
from support.transactions import Staged, after, transactions, zset_table

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]


def batch_of(scenario: Scenario, staged: list[list[Staged]]) -> dict[str, pa.Table]:
    """The transactions as one table per relation that any of them changes."""
    tables = {}
    for relation in scenario.loaded:
        rows = [
            (number, row, weight)
            for number, transaction in enumerate(staged)
            for name, row, weight in transaction
            if name == relation.name
        ]
        if rows:
            table = zset_table(relation, [(row, weight) for _, row, weight in rows])
            tables[relation.name] = table.append_column("txn", pa.array([number for number, _, _ in rows]))
    return tables


def changed_rows(table: pa.Table) -> set[Any]:
    return any_row(set(rows_of(table)))


@settings(suppress_health_check=list(HealthCheck))
@given(st.data(), scenarios(3, 3, nulls=True), st.sampled_from(sorted(STRATEGIES)), st.integers(1, 6))
def test_a_batch_is_its_transactions_one_by_one(
    data: st.DataObject, scenario: Scenario, strategy: str, most: int
) -> None:
    check_batch(data, scenario, strategy, most)


@settings(
    suppress_health_check=list(HealthCheck),
    max_examples=max(1, settings.default.max_examples // 6) if settings.default else 20,
)
@given(
    st.data(),
    recursive_scenarios(),
    st.sampled_from(sorted(COMPONENT_STRATEGIES)),
    st.sampled_from(sorted(STRATEGIES)),
    st.integers(1, 4),
)
def test_a_batch_of_a_recursion_is_its_transactions_one_by_one(
    data: st.DataObject, scenario: Scenario, kept: str, other: str, most: int
) -> None:
    """``kept``: how heads that depend on themselves are; ``other``: the others."""
    recursive = recursive_heads(scenario)
    strategies = {head: kept if head in recursive else other for head in heads_of(scenario)}
    check_batch(data, scenario, strategies, most)


def check_batch(
    data: st.DataObject, scenario: Scenario, strategy: str | Mapping[str, str], most: int
) -> None:
    """Up to ``most`` transactions, drawn: what each changes, and what there is in the end."""
    try:
        single, many = installed(scenario, strategy), installed(scenario, strategy)
    except (RangeError, EvaluationError, FunctionalConflictError):
        return
    staged = [data.draw(transactions(scenario)) for _ in range(most)]
    staged = [transaction for transaction in staged if transaction]  # else no row tells of it
    relations = {loaded.name: set(loaded.rows) for loaded in scenario.loaded}
    before = {name: changed_rows(many[name].table) for name in heads_of(scenario)}
    wanted: list[dict[str, Any]] = []
    for number, transaction in enumerate(staged):
        try:
            done = commit(single, scenario, transaction)
        except (DataError, EvaluationError) as error:
            with pytest.raises(type(error), match=rf"^transaction {number}: "):
                many.apply_many(batch_of(scenario, staged))
            assert {name: changed_rows(many[name].table) for name in heads_of(scenario)} == before
            many.check_invariants()
            staged = staged[:number]
            event("refused")
            break
        wanted.append({name: changed_rows(table) for name, table in done.changes.items()})
        relations = after(relations, transaction)
    if not staged:
        return
    applied = many.apply_many(batch_of(scenario, staged))
    event("one by one" if applied.stats.one_by_one else "at once")
    assert applied.transactions == tuple(range(len(staged)))
    found = [{name: changed_rows(table) for name, table in changes.items()} for changes in applied]
    assert found == wanted
    expected = expected_heads(scenario, relations)
    if expected is not None:
        assert {n: changed_rows(many[n].table) for n in expected} == {
            n: any_row(r) for n, r in expected.items()
        }
    many.check_invariants()


RULES = """
tri(a, b, c) <- e(a, b), e(b, c), e(a, c).
back(a, b)   <- e(a, b), e(b, a), a < b.
two(a, c)    <- e(a, b), e(b, c).
from(a)      <- e(a, _).
any(a)       <- e(a, b), e(b, _).
loop(a)      <- e(a, a).
fan(b)       <- e(2, b).
near(a, c)   <- tri(a, b, c).
near(a, c)   <- e(a, c), back(a, c).
sums(a, s)   <- e(a, b), s = a + b, s > 3.
n[a]         = count() <- e(a, b).
tris[]       = count() <- tri(a, b, c).
p[a]         = sum(c) <- e(a, b), e(b, c).
deep[a]      = sum(s) <- sums(a, s), e(a, a).
twos[a]      = count() <- two(a, _).
"""


def edges_of(random: Random, size: int, nodes: int) -> list[tuple[int, int]]:
    return [(random.randrange(nodes), random.randrange(nodes)) for _ in range(size)]


@pytest.mark.in_turns
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("strategy", ["delta", "auto"])
def test_every_kind_of_rule_that_goes_at_once(strategy: str, seed: int) -> None:
    """Few nodes, so that tuples come and go again, and assignments have several tuples that do."""
    random = Random(seed)
    nodes = random.choice((3, 5, 9))
    rules = [rule for rule in RULES.strip().splitlines() if strategy == "delta" or not rule.startswith("any")]
    single, many = Workspace(), Workspace()
    start = edges_of(random, random.choice((0, 8, 30)), nodes)
    for workspace in (single, many):
        load_set(
            workspace, "e", start or {"a": np.empty(0, np.int64), "b": np.empty(0, np.int64)}, ["a", "b"]
        )
        workspace.install("\n".join(rules), strategy)
    for _ in range(3):
        size = random.choice((1, 7, 40, 120))
        rows = [
            (*edge, random.choice((1, -1)), random.randrange(size))
            for edge in edges_of(random, 3 * size, nodes)
        ]
        batch = {name: [row[place] for row in rows] for place, name in enumerate(("a", "b", "weight", "txn"))}
        applied = many.apply_many({"e": batch})
        if strategy == "delta":
            assert applied.stats.one_by_one == {}
        for number, changes in zip(applied.transactions, applied, strict=True):
            with single.transaction() as tx:
                for a, b, weight, txn in rows:
                    if txn == number:
                        tx.apply("e", {"a": [a], "b": [b], "weight": [weight]})
            assert {n: rows_of(t) for n, t in changes.items()} == {
                n: rows_of(t) for n, t in tx.changes.items()
            }
        many.verify()
        many.check_invariants()


FEW_KEYS = """
some(a)   <- e(a, _), g(a).
keys(a)   <- e(a, _).
none(a)   <- g(a), !e(a, _).
n[a]      = count() <- e(a, _), g(a).
met(a, c) <- e(a, b), e(c, b).
mid(a)    <- e(a, b), f(b, _).
both(a)   <- e(a, b), e(b, _), g(b).
total[a]  = sum(b) <- e(a, b), b is not null, f(a, _).
any(k)    <- k = 1, e(_, _).
"""
Copies = Counter[tuple[Any, ...]]


def heads_of_few_keys(e: Copies, f: Copies) -> dict[str, set[Any]]:
    """By listing all copies; NULL, which is None, joins nothing."""
    g = {1, 2}
    rows = list(e.elements())
    ends = {b for b, _ in f if b is not None}
    starts = Counter(a for a, _ in f.elements())
    counts = Counter(a for a, _ in rows if a in g)
    sums: Counter[Any] = Counter()
    for a, b in rows:
        sums[a] += 0 if a is None or b is None else b * starts[a]
    summed = {a for a, b in rows if None not in (a, b) and a in ends}
    keys = {a for a, _ in rows}
    return {
        "some": {(a,) for a in keys & g},
        "keys": {(a,) for a in keys},
        "none": {(a,) for a in g - keys},
        "n": set(counts.items()),
        "met": {(a, c) for a, b in rows for c, d in rows if b == d and b is not None},
        "mid": {(a,) for a, b in rows if b in ends},
        "both": {(a,) for a, b in rows if b in g and b in keys},
        "total": {(a, sums[a]) for a in summed},
        "any": {(1,)} if rows else set(),
    }


def rows_after(rows: Copies, changes: Copies, bag: bool) -> Copies:
    """Of a bag as many copies come or go as there are; of a set a row is there or is not."""
    least = {row: max(0, rows[row] + changes[row]) for row in {*rows, *changes}}
    return +Counter({row: n if bag else min(n, 1) for row, n in least.items()})


def replacements(
    random: Random, have: Mapping[str, Copies], keys: Sequence[Any], values: Sequence[Any], n_times: int
) -> dict[str, list[tuple[Any, ...]]]:
    """By relation rows with weight and time: most times a row comes, and one of its key goes."""
    changes: dict[str, list[tuple[Any, ...]]] = {name: [] for name in have}
    for time in range(n_times):
        for _ in range(random.choice((1, 2, 4))):
            key, name = random.choice(keys), random.choice("eef")
            came = key, random.choice(values)
            changes[name].append((*came, random.choice((1, 1, 2)), time))
            there = [row for row in have[name] if row[0] == key and row != came]
            if there:
                changes[name].append((*random.choice(there), -random.choice((1, 1, 2)), time))
    for rows in changes.values():
        random.shuffle(rows)
    return {name: rows for name, rows in changes.items() if rows}


def two_columns(rows: Iterable[tuple[Any, ...]], *more: str) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table({n: pa.array(c, pa.int64()) for n, c in zip(("a", "b", *more), columns, strict=True)})


@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize(
    "rule",
    [
        "h(a) <- e(a, _).",
        "h(a) <- e(a, _), g(a).",
        "h(a, c) <- e(a, _), e(c, _).",
    ],
)
def test_a_row_for_another_of_the_last_key(rule: str, bag: bool) -> None:
    """(5, 1) goes and (5, 2) comes, and then 5 goes for good: of the first time there is nothing to tell."""
    workspace = Workspace()
    workspace.load("e", [(1, 5), (5, 1)], ["a", "b"], bag=bag)
    workspace.load("g", [(5,)], ["a"])
    workspace.install(rule, "delta")
    there = {(1,), (5,)} if "g" not in rule else {(5,)}
    if "c" in rule:
        there = {(a, c) for a in (1, 5) for c in (1, 5)}
    assert set(rows_of(workspace["h"].table)) == there
    rows = {"a": [5, 5, 5], "b": [1, 2, 2], "weight": [-1, 1, -1], "txn": [1, 1, 2]}
    applied = workspace.apply_many({"e": rows})
    assert applied.stats.one_by_one == {}
    assert not applied[0]["h"].num_rows
    gone = {row for row in there if 5 in row}
    assert set(rows_of(applied[1]["h"])) == {(*row, -1) for row in gone}
    assert set(rows_of(workspace["h"].table)) == there - gone


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize("kept", ["set", "bag", "nulls"])
def test_rows_of_few_keys_that_replace_one_another(kept: str, strategy: str) -> None:
    """Of one prefix a row comes while another goes, so that at that time the prefix does nothing at all."""
    random = Random(7)
    values = (1, 2, None, 4, 5) if kept == "nulls" else (1, 2, 3, 4, 5)
    for first in (1, 2):
        keys = values[first : first + random.choice((1, 2))]
        drawn = [(random.choice(keys), random.choice(values)) for _ in range(random.choice((1, 6)))]
        have = {name: Counter(drawn if kept == "bag" else set(drawn)) for name in "ef"}
        many = Workspace()
        for name, copies in have.items():
            many.load(name, two_columns(copies.elements()), nulls="keep", bag=kept == "bag")
        many.load("g", [(1,), (2,)], ["a"])
        many.install(FEW_KEYS, strategy)
        before = heads_of_few_keys(**have)
        for n_times in (1, 6, 1):
            changes = replacements(random, have, keys, values, n_times)
            applied = many.apply_many(
                {name: two_columns(rows, "weight", "txn") for name, rows in changes.items()}
            )
            for time, found in zip(applied.transactions, applied, strict=True):
                for name, rows in changes.items():
                    net: Copies = Counter()
                    for a, b, weight, own in rows:
                        net[a, b] += weight if own == time else 0
                    have[name] = rows_after(have[name], net, kept == "bag")
                now = heads_of_few_keys(**have)
                for head, tuples in now.items():
                    came = {(*row, 1) for row in tuples - before[head]}
                    went = {(*row, -1) for row in before[head] - tuples}
                    assert set(rows_of(found[head])) == came | went, (head, time)
                before = now
            many.check_invariants()


def test_a_thousand_transactions_are_a_kernel_call_per_body() -> None:
    random = np.random.default_rng(3)
    edges = random.permutation(np.unique(random.integers(0, 200, (4000, 2)), axis=0))
    workspace = Workspace()
    workspace.load("e", {"a": edges[1000:, 0], "b": edges[1000:, 1]})
    workspace.install(f"tri(a, b, c) <- e(a, b), e(b, c), e(a, c). {COUNT}", "delta")
    rows = {
        "a": edges[:1000, 0],
        "b": edges[:1000, 1],
        "weight": np.ones(1000, np.int64),
        "txn": np.arange(1000),
    }
    with (
        mock.patch.object(weighted, "_search_all", wraps=weighted._search_all) as searched,
        mock.patch.object(MaintainedHead, "step", autospec=True, side_effect=MaintainedHead.step) as stepped,
    ):
        applied = workspace.apply_many({"e": rows})
    assert len(applied) == 1000
    assert searched.call_count == 1, "for tri; what reads one atom has nothing to search"
    # What keeps nothing is known by the changes of the batch.
    assert [call.args[0].name for call in stepped.call_args_list] == ["n"]
    assert applied.stats["tri"].regions == 3000
    workspace.verify()


def test_a_head_that_goes_one_by_one_leaves_the_others_at_once() -> None:
    random = np.random.default_rng(3)
    edges = random.permutation(np.unique(random.integers(0, 200, (4000, 2)), axis=0))
    workspace = Workspace()
    workspace.load("e", {"a": edges[1000:, 0], "b": edges[1000:, 1]})
    workspace.load("f", [(1, 2)], ["a", "b"])
    workspace.install(
        f"tri(a, b, c) <- e(a, b), e(b, c), e(a, c). {COUNT} least[a] = min(b) <- f(a, b).", "delta"
    )
    one = np.ones(1000, np.int64)
    e = {"a": edges[:1000, 0], "b": edges[:1000, 1], "weight": one, "txn": np.arange(1000)}
    f = {"a": [1, 1], "b": [1, 0], "weight": [1, 1], "txn": [5, 7]}
    with mock.patch.object(weighted, "_search_all", wraps=weighted._search_all) as searched:
        applied = workspace.apply_many({"e": e, "f": f})
    assert list(applied.stats.one_by_one) == ["least"]
    assert searched.call_count == 1, "for tri; what reads one atom has nothing to search"
    assert applied.stats["tri"].regions == 3000
    found = [set(rows_of(applied[k]["least"])) for k in (5, 6, 7)]
    assert found == [{(1, 2, -1), (1, 1, 1)}, set(), {(1, 1, -1), (1, 0, 1)}]
    workspace.verify()


COUNT = "n[a] = count() <- tri(a, _, _)."


def test_a_batch_whose_tuples_never_meet_goes_one_by_one() -> None:
    """At once, all that comes and goes again would be joined with what comes later."""
    many = np.arange(700)
    workspace = Workspace()
    workspace.load("e", [(-1, -1)], ["a", "b"])
    workspace.load("f", [(-1, -1)], ["b", "c"])
    workspace.install("path(a, c) <- e(a, b), f(b, c).")
    e = {"a": np.tile(many, 2), "b": np.ones(1400, np.int64), "txn": np.repeat((0, 1), 700)}
    f = {"b": np.ones(700, np.int64), "c": many, "weight": np.ones(700, np.int64), "txn": np.full(700, 2)}
    applied = workspace.apply_many({"e": {**e, "weight": np.repeat((1, -1), 700)}, "f": f})
    assert applied.stats.one_by_one == {"path": "at once it takes more operations than one by one"}
    assert [changes["path"].num_rows for changes in applied] == [0, 0, 0]
    workspace.verify()
    workspace.check_invariants()


MIXED = """
tri(a, b, c) <- e(a, b), e(b, c), e(a, c).
tris[a]      = count() <- tri(a, _, _).
one(a, b)    <- e(a, b), !e(b, a).
ones[]       = count() <- one(_, _).
n[a]         = count() <- e(a, b), e(b, _).
least[a]     = min(b) <- e(a, b).
sum[a]       = sum(b) <- e(a, b).
busy(a)      <- tris[a] = k, least[a] = b, k > b.
far[a]       = max(c) <- tri(a, _, c), c > 2.
"""
MIXED_ONE_BY_ONE = {
    "one": "a negated atom, or one without variables",
    "ones": "it reads 'one'",
    "least": "min, other than counts and sums of whole numbers",
    "sum": "it shares its assignments with 'least'",
    "busy": "it reads a function",
    "far": "max, other than counts and sums of whole numbers",
}


@pytest.mark.parametrize("seed", range(4))
def test_only_heads_that_need_it_go_one_by_one(seed: int) -> None:
    """Also what reads them, or shares assignments with them; changes are those of committing each."""
    random = Random(seed)
    single, many = Workspace(), Workspace()
    for workspace in (single, many):
        load_set(workspace, "e", edges_of(Random(seed), 20, 6), ["a", "b"])
        workspace.install(MIXED, "delta")
    rows = [(*edge, random.choice((1, -1)), random.randrange(12)) for edge in edges_of(random, 40, 6)]
    batch = {name: [row[place] for row in rows] for place, name in enumerate(("a", "b", "weight", "txn"))}
    applied = many.apply_many({"e": batch})
    assert applied.stats.one_by_one == MIXED_ONE_BY_ONE
    for number, changes in zip(applied.transactions, applied, strict=True):
        with single.transaction() as tx:
            for a, b, weight, txn in rows:
                if txn == number:
                    tx.apply("e", {"a": [a], "b": [b], "weight": [weight]})
        assert {n: rows_of(t) for n, t in changes.items()} == {n: rows_of(t) for n, t in tx.changes.items()}
    many.verify()
    many.check_invariants()


def test_explanations_say_why_a_head_goes_one_by_one() -> None:
    workspace = Workspace()
    workspace.load("e", [(1, 2)], ["a", "b"])
    workspace.install("n[a] = count() <- e(a, _). least[a] = min(b) <- e(a, b).")
    line = "batches     one transaction after the other: min, other than counts and sums of whole numbers"
    assert line in workspace.explain_maintenance("least")
    assert "batches" not in workspace.explain_maintenance("n")


def test_subscribers_hear_of_each_transaction_in_order() -> None:
    workspace = Workspace()
    workspace.load("e", [(1, 2)], ["a", "b"])
    workspace.install("from(a) <- e(a, _). n[] = count() <- e(_, _).", "delta")
    heard: list[tuple[str, list[Any]]] = []
    workspace.subscribe("from", lambda table: heard.append(("from", rows_of(table))))
    workspace.subscribe("n", lambda table: heard.append(("n", rows_of(table))))
    rows = {"a": [1, 3, 1], "b": [5, 3, 5], "weight": [1, 1, -1], "txn": ["x", "y", "z"]}
    assert workspace.apply_many({"e": rows}).transactions == ("x", "y", "z")
    counts = [
        ("n", [(k, -1), (k + d, 1)] if d > 0 else [(k + d, 1), (k, -1)]) for k, d in ((1, 1), (2, 1), (3, -1))
    ]
    assert [told for told in heard if told[0] == "n"] == counts
    assert [told for told in heard if told[0] == "from"] == [("from", [(3, 1)])]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_all_or_nothing_and_which_transaction_is_wrong(strategy: str) -> None:
    """Whatever was stepped before the one that is refused is stepped back; and the next batch goes right."""
    workspace = Workspace()
    workspace.load("e", [(1, 2), (2, 3)], ["a", "b"])
    workspace.load("w", pa.table({"b": [2, 3], "v": [7, 0]}))
    rules = (
        "tri(a, c) <- e(a, b), e(b, c). low[a] = min(b) <- e(a, b). q(a, r) <- e(a, b), w(b, v), r = 100 / v."
    )
    with pytest.raises(EvaluationError):
        workspace.install(rules, strategy)
    with workspace.transaction() as tx:
        tx.erase("w", [(3, 0)])
    workspace.install(rules, strategy)
    before = {name: rows_of(workspace[name].table) for name in (*workspace.heads, "e", "w")}
    batch = {
        "e": {"a": [3, 1, 5], "b": [1, 2, 6], "weight": [1, -1, 1], "txn": [1, 2, 4]},
        "w": {"b": [6], "v": [0], "weight": [1], "txn": [3]},
    }
    with pytest.raises(EvaluationError, match=r"^transaction 4: "):
        workspace.apply_many(batch)
    assert {name: rows_of(workspace[name].table) for name in before} == before
    workspace.check_invariants()
    workspace.verify()
    batch["e"] = {"a": [3, 1], "b": [1, 2], "weight": [1, -1], "txn": [1, 2]}
    assert len(workspace.apply_many(batch)) == 3
    workspace.verify()


def test_what_a_batch_must_be() -> None:
    workspace = Workspace()
    workspace.load("e", [(1, 2)], ["a", "b"])
    workspace.load("f", [(1, 2)], ["a", "txn"])
    rows = {"a": [3], "b": [3], "weight": [1]}
    with pytest.raises(ChangeError, match="'e' have transactions, and those of 'f' have none"):
        workspace.apply_many({"e": {**rows, "txn": [1]}, "f": {"a": [1], "txn": [2], "weight": [1]}})
    with pytest.raises(ChangeError, match="of one type"):
        workspace.apply_many(
            {"e": {**rows, "txn": [1]}, "f": {"a": [1], "txn": [2], "weight": [1], "txn_": ["x"]}}
        )
    with pytest.raises(ChangeError, match=r"row 0 .* is NULL"):
        workspace.apply_many({"e": {**rows, "txn": pa.array([None], pa.int64())}})
    with pytest.raises(ChangeError, match="no column 'weight'"):
        workspace.apply_many({"e": {"a": [3], "b": [3], "txn": [1]}})
    assert workspace.apply_many({"e": rows}).transactions == (None,)
    assert workspace.apply_many({}).transactions == ()
    assert workspace["e"].count == 2
