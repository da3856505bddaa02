"""oracle: negated atoms whose keys may be NULL in the row and in the table, by every strategy.

``!s(<=> k, _)`` holds where no row of s has k, be it NULL: ``NOT EXISTS`` over ``IS NOT DISTINCT FROM``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from maintenance import Workspace
from maintenance.heads.strategies import STRATEGIES

Row = tuple[Any, ...]
Rows = set[Row]

BODIES: dict[str, Callable[[Row, Rows], bool]] = {
    "r(k, v), !s(<=> k, _)": lambda row, s: all(key != row[0] for key, _ in s),
    "r(k, v), !s(<=> k, <=> v)": lambda row, s: row not in s,
    "r(k, v), !s(<=> k, <=> k)": lambda row, s: (row[0], row[0]) not in s,
    "r(k, v), !s(_, <=> k), k is null": lambda row, s: row[0] is None and all(v is not None for _, v in s),
    "r(k, v), !s(<=> k, v)": lambda row, s: row[1] is not None and row not in s,
    # NOT EXISTS over `=`: NULL is like nothing, on either side.
    "r(k, v), !known(<=> k)": lambda row, s: row[0] is None or all(key != row[0] for key, _ in s),
}
HEADS: dict[str, Callable[[Rows], Rows]] = {
    "h(k, v)": lambda rows: rows,
    "h(v)": lambda rows: {(v,) for _, v in rows},
    "h[v] = count()": lambda rows: set(Counter(v for _, v in rows).items()),
    "h(n: count(), t: sum(k))": lambda rows: {
        (len(rows), sum(some) if (some := [k for k, _ in rows if k is not None]) else None)
        for _ in range(bool(rows))
    },
}
VALUES = (None, None, 0, 1, 2)
EVERY = [name for name in STRATEGIES if name != "stages"]


def drawn(random: Random) -> Row:
    return random.choice(VALUES), random.choice(VALUES)


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", EVERY)
@pytest.mark.parametrize("body", BODIES)
def test_oracle_keys_that_are_null_on_both_sides(body: str, strategy: str) -> None:
    random, workspace = Random(len(body)), Workspace(record_gap=0)
    tables = {name: {drawn(random) for _ in range(6)} for name in "rs"}
    for name, rows in tables.items():
        rows.add((0, 0))
        workspace.load(name, sorted(rows, key=repr), columns=["k", "v"], nulls="keep")
    workspace.install("known(k) <- s(k, _), k is not null.", "auto")
    for number, head in enumerate(HEADS):
        workspace.install(f"{head} <- {body}.".replace("h", f"h{number}", 1), strategy)
    for commit in range(40):
        is_asked = commit % len(EVERY) == EVERY.index(strategy)  # tables are the same for all
        with workspace.transaction() as tx:
            for _ in range(random.choice((1, 1, 2, 4))):
                name, row = random.choice("rs"), drawn(random)
                (tx.erase if row in tables[name] else tx.insert)(name, [row])
                tables[name] ^= {row}
        kept = {row for row in tables["r"] if BODIES[body](row, tables["s"])}
        for number, head in enumerate(HEADS):
            assert set(workspace[f"h{number}"]) == HEADS[head](kept), (head, tables)
            if is_asked:
                asked = workspace.query(f"{head} <- {body}.").to_pylist()
                assert {tuple(row.values()) for row in asked} == HEADS[head](kept)
    workspace.verify()


def test_the_trace_is_sensitive_to_null_where_the_row_is() -> None:
    """One search: a NULL of s concerns the rows of r with a NULL, and no others; and the other way round."""
    n_rows = 2_000
    workspace = Workspace(record_gap=0)
    rows = [(number, 0) for number in range(n_rows)]
    workspace.load("r", [*rows, (None, 1)], columns=["k", "v"], nulls="keep")
    workspace.load("s", [(2 * number, 0) for number in range(n_rows // 2)], columns=["k", "v"], nulls="keep")
    workspace.install("h(k, v) <- r(k, v), !s(<=> k, _).", "trace")
    assert "r(k, v)" in str(workspace.explain_maintenance("h"))
    for act, row, changed in (
        ("insert", (None, 5), {(None, 1, -1)}),
        ("insert", (None, 6), set()),
        ("erase", (None, 5), set()),
        ("erase", (None, 6), {(None, 1, 1)}),
        ("insert", (3, 0), {(3, 0, -1)}),
    ):
        with workspace.transaction() as tx:
            getattr(tx, act)("s", [row])
        assert {tuple(one.values()) for one in tx.changes["h"].to_pylist()} == changed
        assert tx.stats["h"].operations < 50
    workspace.verify()
