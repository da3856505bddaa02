"""Atoms that share no variable with the rest of a body: a body has assignments only where they have one.

Each is put into a plain rule, a closure and shortest paths, once and kept through transactions after which it
holds or not; what is expected is said in Python beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from maintenance import Workspace
from maintenance.heads.strategies import COMPONENT_STRATEGIES, STRATEGIES
from support.rows import rows_of
from support.strategies import Nulls

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

Row = tuple[int | None, ...]
Rows = set[Row]
Holds = Callable[[Rows, Rows], bool]


def same(value: object, other: object) -> bool:
    """NULL equals nothing."""
    return value is not None and value == other


APART: dict[str, Holds] = {
    "v(_, _)": lambda v, w: bool(v),
    "v(x, x)": lambda v, w: any(same(a, b) for a, b in v),
    "v[x] = x": lambda v, w: any(same(a, b) for a, b in v),
    "v(7, 7)": lambda v, w: (7, 7) in v,
    "v(b: 5)": lambda v, w: any(b == 5 for _, b in v),
    "w(x, x, x)": lambda v, w: any(same(a, b) and same(b, c) for a, b, c in w),
    "w(x, x, _)": lambda v, w: any(same(a, b) for a, b, _ in w),
    "w(_, x, x)": lambda v, w: any(same(b, c) for _, b, c in w),
    "w(x, x, 7)": lambda v, w: any(same(a, b) and c == 7 for a, b, c in w),
    "v(x, x), v(x, x)": lambda v, w: any(same(a, b) for a, b in v),
    "v(x, x), w(y, y, _)": lambda v, w: any(same(a, b) for a, b in v) and any(same(a, b) for a, b, _ in w),
    "v(x, x), w(x, _, _)": lambda v, w: any(same(a, b) and same(a, d) for a, b in v for d, _, _ in w),
    "v(x, y), v(y, x)": lambda v, w: any(same(a, d) and same(b, c) for a, b in v for c, d in v),
    "v(x, y), x = y": lambda v, w: any(same(a, b) for a, b in v),
    "v(x, x), x > 6": lambda v, w: any(same(a, b) and a > 6 for a, b in v),  # type: ignore[operator]
    "v(x, y), y < x": lambda v, w: any(None not in (a, b) and b < a for a, b in v),  # type: ignore[operator]
    "v(x, _), x > 6 - x": lambda v, w: any(a is not None and a > 6 - a for a, _ in v),
    "v(x, _), x is null": lambda v, w: any(a is None for a, _ in v),
    "v(x, x), x is not null": lambda v, w: any(same(a, b) for a, b in v),
    "!v(_, _)": lambda v, w: not v,
    "!v(5, 5)": lambda v, w: (5, 5) not in v,
    "!v(5, _)": lambda v, w: all(a != 5 for a, _ in v),
    "w(x, _, _), !v(x, x)": lambda v, w: any(a is not None and (a, a) not in v for a, _, _ in w),
    "v(x, x), !w(x, x, _)": lambda v, w: any(
        same(a, b) and all((c, d) != (a, a) for c, d, _ in w) for a, b in v
    ),
    "(v(x, x) ; w(_, x, x))": lambda v, w: any(same(a, b) for a, b in v) or any(same(b, c) for _, b, c in w),
}
"""By what is written, whether it holds of v(a, b) and w(a, b, c)."""

State = tuple[Nulls, Rows, Rows]

STATES: list[State] = [
    ("refuse", {(6, 5)}, {(6, 5, 6)}),
    ("refuse", {(6, 6)}, {(6, 6, 6)}),
    ("refuse", {(5, 5), (6, 7)}, set()),
    ("refuse", {(5, 6), (6, 5)}, {(5, 6, 6), (7, 7, 7)}),
    ("refuse", set(), {(6, 6, 5)}),
    ("keep", {(None, None)}, {(None, None, 3)}),
    ("keep", {(None, 5), (3, 3)}, {(None, 3, None), (3, 4, 4)}),
    ("keep", set(), set()),
]
"""Whether NULL may be in columns, v and w."""

EDGES = [(1, 2), (2, 3), (3, 4)]


def program(number: int, literal: str) -> str:
    return (
        f"q{number}(a, c) <- e(a, b), e(b, c), {literal}.\n"
        f"p{number}(a, b) <- e(a, b).\n"
        f"p{number}(a, c) <- p{number}(a, b), e(b, c), {literal}.\n"
        f"d{number}[a] = min(n) <- e(a, _), a = 1, n = 0.\n"
        f"d{number}[b] = min(m) <- d{number}[a] = n, e(a, b), {literal}, m = n + 1.\n"
    )


PROGRAM = "".join(program(number, literal) for number, literal in enumerate(APART))


def expected(v: Rows, w: Rows) -> dict[str, Rows]:
    heads: dict[str, Rows] = {}
    for number, holds in enumerate(APART.values()):
        does = holds(v, w)
        heads[f"q{number}"] = {(1, 3), (2, 4)} if does else set()
        heads[f"p{number}"] = {*EDGES, *(((1, 3), (2, 4), (1, 4)) if does else ())}
        heads[f"d{number}"] = {(1, 0), *(((2, 1), (3, 2), (4, 3)) if does else ())}
    return heads


def workspace_of(v: Rows, w: Rows, nulls: Nulls) -> Workspace:
    workspace = Workspace()
    workspace.load("e", EDGES, columns=["a", "b"])
    for name, columns in (("v", ["a", "b"]), ("w", ["a", "b", "c"])):
        workspace.load(name, [(0,) * len(columns)], columns=columns, nulls=nulls)
    changed(workspace, {"v": {(0, 0)}, "w": {(0, 0, 0)}}, {"v": v, "w": w})
    return workspace


def changed(workspace: Workspace, before: dict[str, Rows], after: dict[str, Rows]) -> None:
    with workspace.transaction() as transaction:
        for name, rows in after.items():
            transaction.erase(name, list(before[name] - rows))
            transaction.insert(name, list(rows - before[name]))


@pytest.mark.in_turns
@pytest.mark.parametrize(("nulls", "v", "w"), STATES)
def test_once(nulls: Nulls, v: Rows, w: Rows) -> None:
    workspace = workspace_of(v, w, nulls)
    for name, rows in expected(v, w).items():
        number = int(name[1:])
        literal = list(APART)[number]
        found = rows_of(workspace.query(program(number, literal), head=name))
        assert sorted(found) == sorted(rows), literal


@pytest.mark.in_turns
@pytest.mark.parametrize("nulls", ["refuse", "keep"])
@pytest.mark.parametrize("strategy", dict.fromkeys((*STRATEGIES, *COMPONENT_STRATEGIES)))
def test_kept(strategy: str, nulls: Nulls) -> None:
    """Each state by a transaction of its own, the first one again at the end."""
    states = [(v, w) for other, v, w in STATES if nulls == other]
    v, w = states[0]
    workspace = workspace_of(v, w, nulls)
    of = {"p": COMPONENT_STRATEGIES, "d": COMPONENT_STRATEGIES, "q": STRATEGIES}
    kept = [name for name in expected(v, w) if strategy in of[name[0]]]
    rules = [line for line in PROGRAM.splitlines() if re.split(r"[(\[]", line)[0] in kept]
    workspace.install("\n".join(rules), strategy)
    for next_v, next_w in [*states, states[0]]:
        changed(workspace, {"v": v, "w": w}, {"v": next_v, "w": next_w})
        v, w = next_v, next_w
        heads = expected(v, w)
        for name in kept:
            literal = list(APART)[int(name[1:])]
            assert sorted(rows_of(workspace[name].table)) == sorted(heads[name]), (literal, v, w)
    workspace.verify()
