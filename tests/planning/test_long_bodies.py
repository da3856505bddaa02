"""Rules of dozens and hundreds of atoms: planning work grows with their square, and rows are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lftj
from lftj.planning.cost_model import CostModel
from lftj.planning.planner import LONG
from lftj.rewriting.elimination import Edge
from maintenance import Workspace
from support.rows import rows_of

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

EDGES = [(number, (number + 1) % 5) for number in range(5)] + [(1, 3)]
NODES = [(number,) for number in range(4)]


def path(n: int, head: str = "h(x0, x{n})") -> str:
    atoms = ", ".join(f"e(x{number}, x{number + 1})" for number in range(n))
    return f"{head.format(n=n)} <- {atoms}."


def star(n: int) -> str:
    """Two atoms for each leaf."""
    atoms = ", ".join(f"e(x0, x{number}), u(x{number})" for number in range(1, n // 2 + 1))
    return f"h(x0) <- {atoms}."


def ends_of_paths(n: int, edges: list[tuple[int, int]] = EDGES) -> set[tuple[int, int]]:
    nodes = {node for edge in edges for node in edge}
    ends = {(node, node) for node in nodes}
    for _ in range(n):
        ends = {(start, b) for start, middle in ends for a, b in edges if a == middle}
    return ends


def loaded(into: Any, edges: list[tuple[int, int]] = EDGES) -> Any:
    into.load("e", edges, columns=["a", "b"])
    into.load("u", NODES, columns=["a"])
    return into


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many beginnings of orders were extended, and how many edges of hypergraphs were looked at."""
    counted = {"extend": 0, "fanout": 0}

    def counting(owner: type, name: str) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        def wrapped(*arguments: Any) -> Any:
            counted[name] += 1
            return method(*arguments)

        monkeypatch.setattr(owner, name, wrapped)

    counting(CostModel, "extend")
    counting(Edge, "fanout")
    return counted


@pytest.mark.parametrize("rule", [path, star])
@pytest.mark.parametrize("times", [1, 2, 4])
def test_a_query_is_planned_by_few_estimates(
    estimates: dict[str, int], rule: Callable[[int], str], times: int
) -> None:
    """Before, a path of 80 atoms took 260,000 extensions, and many more looks at edges."""
    n = 40 * times
    database = loaded(lftj.Database())
    database.query(rule(n))
    assert estimates["extend"] <= 4_000 * times**2
    assert estimates["fanout"] <= 3_000 * times**2


@pytest.mark.parametrize("rule", [path, star])
@pytest.mark.parametrize("times", [1, 2])
def test_the_terms_of_a_delta_rule_are_planned_by_few_estimates(
    estimates: dict[str, int], rule: Callable[[int], str], times: int
) -> None:
    """Before, a path of 40 atoms took four million extensions."""
    cycle = EDGES[:5]  # which has one walk from each node, for all are counted
    loaded(Workspace(), cycle).install(rule(24 * times), strategy="delta")
    assert estimates["extend"] <= 10_000 * times**2


@pytest.mark.parametrize("n", [LONG + 1, 45, 90])
def test_long_paths_have_the_rows_of_a_walk(n: int) -> None:
    database = loaded(lftj.Database())
    assert set(rows_of(database.query(path(n)))) == ends_of_paths(n)
    from_two = {(end,) for start, end in ends_of_paths(n) if start == 2}
    assert set(rows_of(database.query(path(n, "h(x{n})")[:-1] + ", x0 = 2."))) == from_two
    some = [node for node in range(5) if any((node, b) in EDGES and (b,) in NODES for b in range(5))]
    assert sorted(rows_of(database.query(star(n)))) == [(node,) for node in some]


@pytest.mark.parametrize("strategy", ["delta", "trace"])
def test_long_paths_are_kept(strategy: str) -> None:
    n = LONG + 4
    edges = EDGES[:5]
    workspace = Workspace()
    workspace.load("e", edges, columns=["a", "b"])
    workspace.install(path(n), strategy=strategy)
    for gone, come in (((0, 1), (0, 3)), ((4, 0), (4, 2)), ((0, 3), (0, 1))):
        with workspace.transaction() as transaction:
            transaction.erase("e", [gone])
            transaction.insert("e", [come])
        edges = [edge for edge in edges if edge != gone] + [come]
        assert set(rows_of(workspace["h"].table)) == ends_of_paths(n, edges)


def test_explain_says_that_orders_are_greedy() -> None:
    said = f"bodies of more than {LONG} atoms are ordered greedily"
    database, workspace = loaded(lftj.Database()), loaded(Workspace(), EDGES[:5])
    assert said in str(database.explain(path(LONG + 1)))
    assert said not in str(database.explain(path(LONG)))
    workspace.install(path(LONG + 1), strategy="delta")
    assert said in str(workspace.explain_maintenance("h"))
