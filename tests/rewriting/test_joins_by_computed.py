"""Joins by what is computed, in rules: the rows of brute force, once and kept, and never a product."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lftj import Database
from lftj.errors import EvaluationError, RangeError
from lftj.evaluation.evaluation import Evaluation
from maintenance import Workspace
from support.rows import rows_of

pytestmark = pytest.mark.compiled

STRATEGIES = ("trace", "delta", "recompute", "views", "auto")

Row = tuple[Any, ...]
Data = dict[str, Counter[Row]]
Values = dict[str, Any]

COLUMNS = {"a": "xy", "b": "kl", "c": "zw"}
NULLABLE = "xk"
"""The columns that hold NULL, too."""

KEYS: dict[str, Callable[..., bool]] = {
    "x % 3 = k": lambda x, k, **_: None not in (x, k) and x % 3 == k,
    "k = coalesce(x, 2)": lambda x, k, **_: k is not None and (2 if x is None else x) == k,
    "m = x % 3, m = k": lambda x, k, **_: None not in (x, k) and x % 3 == k,
    "x + y = k * 2": lambda x, y, k, **_: None not in (x, k) and x + y == k * 2,
    "div(12, y) = l": lambda y, l, **_: 12 // y == l,  # noqa: E741
    "x % 2 = k % 2, y % 3 = l": lambda x, y, k, l, **_: (  # noqa: E741
        None not in (x, k) and x % 2 == k % 2 and y % 3 == l
    ),
    'cast(y, "string") = substring(cast(l, "string"), 1)': lambda y, l, **_: y == l,  # noqa: E741
}
THIRD: dict[str, Callable[..., bool]] = {
    "l * y = z": lambda y, l, z, **_: l * y == z,  # noqa: E741
    "w = k": lambda w, k, **_: w == k,
    "l % 2 = w": lambda l, w, **_: l % 2 == w,  # noqa: E741
}
FILTERS: dict[str, Callable[..., bool]] = {
    "y > 2": lambda y, **_: y > 2,
    "y + l < 6": lambda y, l, **_: y + l < 6,  # noqa: E741
    "div(6, y) != 2": lambda y, **_: 6 // y != 2,
    "!d(y)": lambda y, **_: y not in (3, 4),
}


def _sum(found: list[Values]) -> Iterator[Row]:
    sums: dict[int, int] = defaultdict(int)
    for one in found:
        sums[one["y"]] += one["l"]
    return iter(sums.items())


HEADS: dict[str, Callable[[list[Values]], Iterator[Row]]] = {
    "out(x, l)": lambda found: iter({(one["x"], one["l"]) for one in found}),
    "bag out(y, k)": lambda found: ((one["y"], one["k"]) for one in found),
    "out[y] = count()": lambda found: iter(Counter(one["y"] for one in found).items()),
    "out[y] = sum(l)": _sum,
    "out[y] = max(l)": lambda found: iter(
        {y: max(one["l"] for one in found if one["y"] == y) for y in {one["y"] for one in found}}.items()
    ),
}


def drawn(random: Random, columns: str) -> Row:
    """``y`` is never 0: what fails is the subject of other tests."""
    return tuple(
        None if name in NULLABLE and random.random() < 0.15 else random.randrange(name == "y", 7)
        for name in columns
    )


def table(rows: Counter[Row], columns: str) -> pa.Table:
    listed = list(rows.elements())
    return pa.table(
        {name: pa.array([row[at] for row in listed], pa.int64()) for at, name in enumerate(columns)}
    )


def order(row: Row) -> list[tuple[bool, Any]]:
    return [(one is None, one or 0) for one in row]


class Case:
    """A rule over random relations, of which ``c`` is a bag."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.columns = dict(itertools.islice(COLUMNS.items(), 2 + (seed % 3 == 0)))
        keys = [random.choice(list(KEYS))]
        keys += [random.choice(list(THIRD))] if "c" in self.columns else []
        filters = random.sample(list(FILTERS), random.randrange(3))
        self.conditions = [*keys, *filters]
        self.holds = [{**KEYS, **THIRD, **FILTERS}[one] for one in self.conditions]
        self.head = random.choice(list(HEADS))
        atoms = [f"{name}({', '.join(columns)})" for name, columns in self.columns.items()]
        literals = [*atoms, *self.conditions]
        random.shuffle(literals)
        self.rule = f"{self.head} <- {', '.join(literals)}."
        self.data: Data = {
            name: Counter(drawn(random, columns) for _ in range(8)) for name, columns in self.columns.items()
        }

    def workspace(self) -> Workspace:
        ws = Workspace()
        ws.load("d", [(3,), (4,)], columns=["v"])
        for name, columns in self.columns.items():
            ws.load(name, table(self.data[name], columns), nulls="keep", bag=True)
        return ws

    def expected(self) -> list[Row]:
        found = []
        for rows in itertools.product(*(of.elements() for of in self.data.values())):
            values = {
                column: value
                for columns, row in zip(self.columns.values(), rows, strict=True)
                for column, value in zip(columns, row, strict=True)
            }
            if all(holds(**values) for holds in self.holds):
                found.append(values)
        return sorted(HEADS[self.head](found), key=order)

    def change(self, ws: Workspace) -> None:
        with ws.transaction() as tx:
            for name, columns in self.columns.items():
                gone = self.random.sample(sorted(self.data[name].elements(), key=order), 2)
                come = [drawn(self.random, columns) for _ in range(2)]
                tx.erase(name, gone)
                tx.insert(name, come)
                self.data[name].subtract(gone)
                self.data[name] = +self.data[name]
                self.data[name].update(come)


@pytest.mark.parametrize("seed", range(60))
def test_oracle_random_bodies_once(seed: int) -> None:
    case = Case(seed)
    ws = case.workspace()
    assert sorted(rows_of(ws.query(case.rule)), key=order) == case.expected(), case.rule
    assert "#computed" in str(ws.explain(case.rule)), case.rule


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(100, 112))
def test_oracle_random_bodies_kept(seed: int, strategy: str) -> None:
    case = Case(seed)
    ws = case.workspace()
    ws.install(case.rule, strategy=strategy)
    for _ in range(4):
        assert sorted(rows_of(ws["out"].to_arrow()), key=order) == case.expected(), case.rule
        case.change(ws)
    ws.verify()
    ws.uninstall("out")
    assert not ws.heads


def test_heads_of_one_rule_go_one_by_one() -> None:
    ws = Workspace()
    ws.load("a", [(n, n) for n in range(12)], columns=["x", "y"])
    ws.load("b", [(k, k + 5) for k in range(3)], columns=["k", "l"])
    rule = "first(y, l), second(x, k) <- a(x, y), b(k, l), x % 3 = k."
    ws.install(rule)
    ws.install(rule, replace=True)
    ws.install("first(y, l) <- a(x, y), b(k, l), x % 2 = k.", replace=True)
    with ws.transaction() as tx:
        tx.insert("a", [(20, 7)])
    assert (7, 5) in set(ws["first"]) and (20, 2) in set(ws["second"])
    ws.verify()
    ws.uninstall("second")
    assert "first#computed1" not in str(ws.explain_maintenance())
    ws.install("third(x) <- a(x, _).")
    ws.uninstall("first")
    assert "computed" not in str(ws.explain_maintenance())


# -- operations ----------------------------------------------------------------------------------

N = 400
JOIN = "out(n, v) <- bid(n, p), side(k, v), n % 100 = k."
SUM = "total[v] = sum(p) <- bid(n, p), side(k, v), n * 7 = k + 1."


@pytest.fixture
def ws() -> Workspace:
    workspace = Workspace()
    workspace.load("bid", pa.table({"n": range(N), "p": [3 * n for n in range(N)]}))
    workspace.load("side", pa.table({"k": range(N), "v": [f"v{n}" for n in range(N)]}))
    return workspace


def operations(db: Database, text: str) -> int:
    evaluation = Evaluation(db.request(text))
    for _ in evaluation.batches():
        pass
    return evaluation.done.operations.total


@pytest.mark.filterwarnings("error::lftj.errors.CartesianProductWarning")
@pytest.mark.parametrize("rule", [JOIN, SUM])
def test_a_rule_joins_by_what_is_computed(ws: Workspace, rule: str) -> None:
    assert operations(ws, rule) < 20 * N


@pytest.mark.parametrize("strategy", ["trace", "delta", "views", "auto"])
@pytest.mark.parametrize("rule", [JOIN, SUM])
def test_a_change_meets_what_it_joins_with(ws: Workspace, rule: str, strategy: str) -> None:
    ws.install(rule, strategy=strategy)
    with ws.transaction() as tx:
        tx.insert("bid", [(1_234, 5), (1_299, 6)])
        tx.insert("side", [(777, "v777")])
    assert sum(one.operations for one in tx.stats.rules.values()) < N / 2


def test_explain_names_the_head_by_which_it_joins(ws: Workspace) -> None:
    assert "out#computed1(n, key) <- bid(n, _), key = n % 100." in str(ws.explain(JOIN))
    ws.install(JOIN)
    shown = str(ws.explain_maintenance("out"))
    assert "out#computed1(n, key) <- bid(n, _), key = n % 100." in shown
    assert "product" not in shown and "a filter" not in shown
    assert ws.heads == ("out",)


@pytest.mark.parametrize(
    "condition",
    [
        "n = k + 3",  # bounds the search
        "n + 3 = k",
        "k - n = 3",
        'cast(n, "float64") = k',  # which NaN would not join
        "n + k = 100",  # a sum of both
        "n = k, p % 7 = k % 7",  # they join already
        "n % 7 < k",
    ],
)
def test_what_needs_no_head_has_none(ws: Workspace, condition: str) -> None:
    assert "#computed" not in str(ws.explain(f"out(n, v) <- bid(n, p), side(k, v), {condition}."))


def test_a_key_order_is_that_of_the_rule_as_written(ws: Workspace) -> None:
    rule = "out(n, v) <- bid(n, p), side(k, v), n % 100 = k % 100, n < 9."
    plan = str(ws.explain(rule, order=["n", "k", "v"]))
    assert "#computed" not in plan and "key order   n, k, v" in plan
    ws.install(rule, order={"out": ["n", "k", "v"]})
    assert "#computed" not in str(ws.explain_maintenance("out"))
    assert sorted(ws["out"]) == sorted((n, f"v{k}") for n in range(9) for k in range(N) if k % 100 == n)


# -- what fails ------------------------------------------------------------------------------------

FAILING = {
    "out(x, l) <- a(x), b(k, l), div(12, x) = k.": (0, EvaluationError),
    "out[l] = count() <- a(x), b(k, l), m = x * 4611686018427387904, m = k.": (2, RangeError),
    "out(x, l) <- a(x), b(k, l), x != l, 12 % x = k % 5.": (0, EvaluationError),
}


@pytest.mark.parametrize("rule", FAILING)
def test_it_fails_for_assignments_alone_and_in_the_words_of_the_rule(rule: str) -> None:
    x, error = FAILING[rule]
    db = Database()
    db.load("a", [(x,), (1,)], columns=["x"])
    db.load("b", pa.table({"k": pa.array([], pa.int64()), "l": pa.array([], pa.int64())}))
    assert not rows_of(db.query(rule)), "b has no row: there is no assignment"
    db = Database()
    db.load("a", [(x,), (1,)], columns=["x"])
    db.load("b", [(12, 3), (4, 5)], columns=["k", "l"])
    with pytest.raises(error) as found:
        db.query(rule)
    with pytest.raises(error) as written:
        db.query(rule, order=["x", "k", "l"])
    assert str(found.value) == str(written.value)
    assert f"where x = {x}" in str(found.value)
    db = Database()
    db.load("a", [(1,)], columns=["x"])
    db.load("b", [(12, 3), (4, 5)], columns=["k", "l"])
    plan = str(db.explain(rule))
    assert "#computed2" in plan and "product" not in plan
    assert sorted(rows_of(db.query(rule))) == sorted(rows_of(db.query(rule, order=["x", "k", "l"])))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rule", FAILING)
def test_a_commit_fails_for_assignments_alone(rule: str, strategy: str) -> None:
    x, error = FAILING[rule]
    ws = Workspace()
    ws.load("a", [(1,)], columns=["x"])
    ws.load("b", pa.table({"k": pa.array([], pa.int64()), "l": pa.array([], pa.int64())}))
    ws.install(rule, strategy=strategy)
    with ws.transaction() as tx:
        tx.insert("a", [(x,)])
    with pytest.raises(error, match=f"where x = {x}"), ws.transaction() as tx:
        tx.insert("b", [(12, 3)])
    with ws.transaction() as tx:
        tx.erase("a", [(x,)])
        tx.insert("b", [(12, 3)])
    with pytest.raises(error, match=f"where x = {x}"), ws.transaction() as tx:
        tx.insert("a", [(x,)])
    with ws.transaction() as tx:
        tx.insert("b", [(0, 4)])
    assert sorted(ws["out"]) == sorted(rows_of(ws.query(rule.replace("out", "again"))))
    ws.verify()


def test_a_parameter_may_fail_or_not() -> None:
    db = Database()
    db.load("a", [(3,), (5,)], columns=["x"])
    db.load("b", [(1, 2), (2, 3)], columns=["k", "l"])
    rule = db.prepare("out(x, l) <- a(x), b(k, l), x % $n = k.")
    assert sorted(rows_of(rule(n=3))) == [(5, 3)] and sorted(rows_of(rule(n=2))) == [(3, 2), (5, 2)]
    with pytest.raises(EvaluationError, match="division by zero"):
        rule(n=0)


def test_what_reads_a_float_is_a_filter() -> None:
    db = Database()
    db.load("a", [(1.5,), (2.5,)], columns=["x"])
    db.load("b", [(1, 1), (2, 2)], columns=["k", "l"])
    rule = 'out(x, l) <- a(x), b(k, l), cast(floor(x), "int64") = k.'
    assert "#computed" not in str(db.explain(rule)) and "(a filter" in str(db.explain(rule))
    assert sorted(rows_of(db.query(rule))) == [(1.5, 1), (2.5, 2)]


# -- recursion ---------------------------------------------------------------------------------

RECURSIONS = {
    "x = m % 10": (True, lambda x, m: x == m % 10),
    "(3 * x + 1) % 10 = m": (False, lambda x, m: (3 * x + 1) % 10 == m),
}


def reached(start: int, nodes: set[tuple[int, int]], leads: Callable[[int, int], bool]) -> list[Row]:
    found, todo = {start}, [start]
    while todo:
        x = todo.pop()
        more = {y for m, y in nodes if leads(x, m)} - found
        found |= more
        todo += more
    return sorted((x,) for x in found)


@pytest.mark.parametrize("strategy", ["stages", "recompute", "auto"])
@pytest.mark.parametrize("condition", RECURSIONS)
def test_oracle_a_recursion_joins_by_what_is_computed_outside_of_it(condition: str, strategy: str) -> None:
    random, (joins, leads) = Random(7), RECURSIONS[condition]
    rules = f"reach(x) <- start(x). reach(y) <- reach(x), node(m, y), {condition}."
    nodes = {(random.randrange(30), random.randrange(12)) for _ in range(9)}
    ws = Workspace()
    ws.load("start", [(1,)], columns=["x"])
    ws.load("node", sorted(nodes), columns=["m", "y"])
    assert ("#computed" in str(ws.explain(rules))) is joins
    assert sorted(rows_of(ws.query(rules))) == reached(1, nodes, leads)
    ws.install(rules, strategy=strategy)
    for _ in range(6):
        gone = random.sample(sorted(nodes), 2)
        come = {(random.randrange(30), random.randrange(12)) for _ in range(2)} - nodes
        nodes = (nodes - {*gone}) | come
        with ws.transaction() as tx:
            tx.erase("node", gone)
            tx.insert("node", sorted(come))
        assert sorted(ws["reach"]) == reached(1, nodes, leads)
    ws.verify()
