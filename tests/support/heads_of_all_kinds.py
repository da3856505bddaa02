"""A workspace with heads of all kinds, random transactions on it, and what they gave."""

from __future__ import annotations

import dataclasses
import datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from lftj import errors
from maintenance import Workspace

RULES = """
tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).
hub(a) <- edge(a, b), edge(b, c), edge(a, c).
degree[a] = count() <- edge(a, _).
stats(a, sum(p), avg(p), min(s), count()) <- edge(a, b), item(b, s, p, d, f).
floats[a] = sum(f) <- edge(a, b), item(b, s, p, d, f).
first[a] = min(d) <- edge(a, b), item(b, s, p, d, f).
dearest[a, b] = max(p) <- edge(a, b), item(b, s, p, d, f).
dearest_of[a] = max(p) <- edge(a, b), item(b, s, p, d, f).
names[a] = concat(s) <- edge(a, b), item(b, s, p, d, f).
price[b] = p <- item(b, s, p, d, f).
next_is_free(a, v) <- edge(a, b), v = b + 1, !edge(a, v).
late(a, s) <- edge(a, b), item(b, s, p, d, f), f * 2.0 > 3.0, d >= 2026-01-02.
any(a) <- edge(a, _), item(_, "s3", _, _, _).
either(a, b) <- edge(a, b), (edge(b, a) ; item(b, _, _, _, _)).
"""
ORDERS = {"hub": ["a", "b", "c"]}


def counted(stats: Any) -> Any:
    """A transaction's statistics less the time it took."""
    rules = {name: {**dataclasses.asdict(of_rule), "seconds": 0} for name, of_rule in stats.rules.items()}
    return {**dataclasses.asdict(stats), "seconds": 0, "rules": rules}


def state_of(workspace: Workspace) -> Any:
    heads = {name: workspace[name].table for name in (*workspace.heads, *workspace.relations)}
    records = {name: head.n_records for name, head in workspace._heads.items()}
    return heads, records, workspace.sensitivity_bytes, workspace.explain_maintenance()


def item(number: int, random: Random) -> tuple[Any, ...]:
    price = Decimal(random.randrange(-500, 500)).scaleb(-2)
    day = datetime.date(2026, 1, 1) + datetime.timedelta(random.randrange(4))
    return number, f"s{random.randrange(9)}", price, day, random.choice([0.1, 1.5, 1e300, -1e300, 2.5])


def items(rows: list[tuple[Any, ...]]) -> pa.Table:
    types = {"b": pa.int32(), "s": pa.string(), "p": pa.decimal128(9, 2), "d": pa.date32(), "f": pa.float64()}
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return pa.table({n: pa.array(c, t) for (n, t), c in zip(types.items(), columns, strict=True)})


def workspace_of_all_kinds(rules: str = RULES, seed: int = 1) -> Workspace:
    random = Random(seed)
    workspace = Workspace()
    edges = {(random.randrange(12), random.randrange(12)) for _ in range(50)}
    workspace.load("edge", sorted(edges), columns=["a", "b"])
    workspace.load("item", items([item(number, random) for number in range(10)]))
    workspace.install(rules, "trace", order=ORDERS if "hub" in rules else None)
    return workspace


def steps(workspace: Workspace, n_steps: int, seed: int) -> list[Any]:
    """Transactions that depend on the seed and what is there; what each gave, or raised."""
    random = Random(seed)
    given = []
    for _ in range(n_steps):
        there = workspace["item"].table.to_pylist()
        gone = {row["b"]: row for row in random.sample(there, min(2, len(there)))}
        try:
            with workspace.transaction() as transaction:
                for _ in range(random.randrange(6)):
                    change = random.choice((transaction.insert, transaction.erase))
                    change("edge", [(random.randrange(14), random.randrange(14))])
                if gone:
                    transaction.erase("item", items([tuple(row.values()) for row in gone.values()]))
                transaction.insert("item", items([item(number, random) for number in gone]))
            given.append(transaction)
        except errors.LftjError as error:
            given.append(error)
    return given


def told(workspace: Workspace) -> str:
    """Twenty transactions in words."""
    lines = []
    for transaction in steps(workspace, 20, seed=9):
        if isinstance(transaction, Exception):
            lines.append(repr(transaction))
            continue
        changes = {name: transaction.changes[name].to_pylist() for name in transaction.changes}
        lines.append(repr((counted(transaction.stats), changes)))
    heads = {name: workspace[name].table.to_pylist() for name in workspace.heads}
    return "\n".join([*lines, repr(heads), repr(state_of(workspace)[1:])])
