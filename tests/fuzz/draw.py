"""Random cases by number: ``draw(seed, number)`` is the same case on every machine."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fuzz import draw_dense
from fuzz.case import ApplyMany, Case, Commit, Do, Staged, Step, Table
from fuzz.draw_data import Drawn, Source, many, palette, relation, row_of
from fuzz.draw_program import program
from fuzz.draw_values import calendar, values
from fuzz.spark_rules import spark
from fuzz.sql.draw import sql
from fuzz.streams.draw import streams
from support.kinds import INTEGER, STRING
from support.reference import Row
from support.rules import (
    Aggregate,
    Arithmetic,
    Atom,
    Call,
    Comparison,
    Expression,
    Head,
    Rule,
    Variable,
)

NEAR_LIMITS = (0, 1, 2, 3, -1, -3, 2**31, 3_037_000_500, 2**62, -(2**62), 2**63 - 1)
STRATEGIES = ("auto", "auto", "trace", "delta", "views", "recompute", "stages")
ROWS = {1: 60, 2: 60, 3: 40, 4: 20, 5: 12, 6: 9}
"""How many rows a relation has at most, by how many atoms a body has."""


def _small(r: random.Random) -> tuple[list[Drawn], Case]:
    if r.random() < 0.2:
        loaded = draw_dense.relations(r)
        return loaded, Case("once", tuple(one.table for one in loaded), draw_dense.program(r, loaded))
    nulls = r.random() < 0.25
    kinds = palette(r, nulls)
    most_atoms = r.choice((1, 2, 2, 3, 3, 4, 5, 6))
    loaded = [relation(r, f"r{i}", kinds, ROWS[most_atoms], nulls) for i in range(r.choice((1, 1, 2, 2, 3)))]
    rules = program(r, [one.source for one in loaded], most_atoms, nulls)
    return loaded, Case("once", tuple(one.table for one in loaded), rules)


def once(r: random.Random) -> Case:
    loaded, case = _small(r)
    by_name = tuple(one.table.name for one in loaded if r.random() < 0.15)
    options = {"batch_rows": r.choice((1, 2, 7, 1000)), "order_seed": r.randrange(1000), "by_name": by_name}
    return Case("once", case.tables, case.program, options=options)


# -- transactions --------------------------------------------------------------------------------


def _pool(r: random.Random, one: Drawn) -> list[Row]:
    """Rows to insert and to erase: those there, mixtures of them, others of the columns' values."""
    rows = list(dict.fromkeys(one.table.rows))
    for _ in range(10):
        rows.append(row_of(r, one.values))
        pair = r.choice(rows), r.choice(rows)
        rows.append(tuple(r.choice(cells) for cells in zip(*pair, strict=True)))
    return rows


_BY_KEY: tuple[int | str, ...] = ("upsert",) * 6 + ("erase_keys",) * 3 + (-1,)


def _staged(
    r: random.Random, loaded: list[Drawn], pools: dict[str, list[Row]], size: int, sound: bool = False
) -> tuple[Staged, ...]:
    """Changes of some relations: repeated, cancelling, of nothing, and replacements of a value among them.

    ``sound``: no key may get a second row, so nothing but upserts comes where there is one.
    """
    staged: list[Staged] = []
    for _ in range(size):
        table = r.choice(loaded).table
        row = r.choice(pools[table.name])
        if table.key and (sound or r.random() < 0.85):
            staged.append((table.name, row, r.choice(_BY_KEY)))
            continue
        weight = r.choice((1, 1, 1, -1, -1) if table.key else (1, 1, 1, -1, -1, 2, -2))
        staged.append((table.name, row, weight))
        if r.random() < 0.2:  # a row of the same key comes for it
            other = (*row[:-1], r.choice(pools[table.name])[-1])
            staged.append((table.name, other, -weight))
    return tuple(staged)


def _step(
    r: random.Random, loaded: list[Drawn], pools: dict[str, list[Row]], heads: list[str], in_folder: bool
) -> Step:
    size = r.choice((1, 1, 1, 2, 3, 6, 15, 40))
    choice = r.random()
    if choice < 0.6:
        way = r.choice(("apply", "apply", "rows", "tables"))
        return Commit(_staged(r, loaded, pools, size), way)
    if choice < 0.72:
        return ApplyMany(
            tuple(_staged(r, loaded, pools, r.choice((0, 1, 2, 4))) for _ in range(r.choice((1, 2, 3, 8))))
        )
    if choice < 0.8:
        return Do("set_strategy", (r.choice(heads), r.choice(STRATEGIES)))
    does: list[tuple[str, tuple[Any, ...]]] = [
        ("snapshot", ()),
        ("snapshot", ()),
        ("verify", ()),
        ("query", ()),
        ("follow", (r.choice(heads),)),
        ("install_again", (r.choice(STRATEGIES),)),
    ]
    if in_folder:
        does += [("checkpoint", ()), ("reopen", ()), ("refresh", ()), ("refresh", ()), ("save", ())]
    return Do(*r.choice(does))


def kept(r: random.Random) -> Case:
    loaded, case = _small(r)
    in_folder = r.random() < 0.12
    pools = {one.table.name: _pool(r, one) for one in loaded}
    steps = tuple(_step(r, loaded, pools, case.heads, in_folder) for _ in range(r.choice((1, 2, 4, 6, 10))))
    options: dict[str, Any] = {
        "strategies": tuple(r.choice(STRATEGIES) for _ in case.heads),
        "others": tuple(r.choice(STRATEGIES) for _ in case.heads),
    }
    if r.random() < 0.5:
        options["merges"] = r.choice(((0, 100), (2, 2), (0, 1)))
    if r.random() < 0.3:
        options["sensitivity_bytes"] = r.choice((0, 400, 4000))
    if r.random() < 0.3:
        options["record_gap"] = 0
    if r.random() < 0.3 and any(one.table.key for one in loaded):
        options["whole_rows"] = True
    if in_folder:
        options["durability"] = r.choice(("commit", "interval", "none"))
    if r.random() < 0.4:
        options["single_changes"] = "machine"
    return Case("kept", case.tables, case.program, steps, options)


def limits(r: random.Random) -> Case:
    """Sums of products near the ends of int64, of rows that join or don't: the same commits stand always."""
    loaded = []
    for name, width in zip(("r0", "r1", "r2"), (3, 2, 2), strict=True):
        keys = tuple(range(r.choice((2, 3, 6))))
        small = (keys, *((0, 1, 2, 3),) * (width - 1))
        rows = tuple(dict.fromkeys(row_of(r, small) for _ in range(r.choice((2, 4, 8)))))
        numbers = tuple(r.sample(NEAR_LIMITS, r.choice((3, 4, 6))))
        values = ((*keys, 7), *(numbers,) * (width - 1))
        loaded.append(Drawn(Table(name, ("int64",) * width, rows), (INTEGER,) * width, values))
    loaded = loaded[: r.choice((2, 3))]
    names = [Variable(name) for name in ("x", "p", "y", "z")][: len(loaded) + 1]
    atoms = [Atom("r0", (Variable("s"), *names[:2]))]
    for one, name in zip(loaded[1:], names[2:], strict=True):
        atoms.append(Atom(one.table.name, (Variable("s"), name)))
    product: Expression = names[0]
    for name in names[1:]:
        call = r.random() < 0.15
        product = Call("div", (product, name)) if call else Arithmetic(r.choice("***+"), product, name)
    body = (*atoms, Comparison("=", Variable("v"), product))
    function = r.choice(("sum", "sum", "sum", "avg", "count", "max"))
    call_ = Aggregate(function, () if function == "count" else (Variable("v"),))
    program_ = (Rule((Head("h0", tuple(r.choice(((), (Variable("s"),)))), call_),), body),)
    pools = {one.table.name: _pool(r, one) for one in loaded}
    pools["r0"] += [(7, *r.choices(NEAR_LIMITS, k=2)) for _ in range(len(pools["r0"]) // 2)]  # joins nothing
    steps = [Commit(_staged(r, loaded, pools, r.choice((1, 1, 2)))) for _ in range(6)]
    if function == "sum":  # neither product has a place, and the two cancel
        key = r.choice(loaded[1].table.rows)[0]
        number, factor = r.choice(NEAR_LIMITS[5:]), r.choice((1, 1, 2))
        opposite = tuple(("r0", (key, sign * number, factor), 1) for sign in (1, -1))
        steps.insert(r.randrange(6), Commit(opposite))
    options = {
        "strategies": (r.choice(("views", "views", "auto")),),
        "others": (r.choice(STRATEGIES),),
        "merges": (0, 1),
        "errors_count": True,
    }
    return Case("kept", tuple(one.table for one in loaded), program_, tuple(steps), options)


# -- the rest ----------------------------------------------------------------------------------------


LACKED_BY_SQLITE = "starts_with|contains|regexp|split_part|position"


def large(r: random.Random) -> Case:
    """Plain rules and simple aggregates over relations so large that buffers grow, once and kept."""
    tables = tuple(many(r, f"r{i}") for i in range(r.choice((1, 1, 2))))
    sources = [Source(t.name, tuple(STRING if n == "string" else INTEGER for n in t.types)) for t in tables]
    if len({source.kinds[0] for source in sources}) > 1:
        tables, sources = tables[:1], sources[:1]
    while True:
        rules = program(r, sources, r.choice((1, 2, 2, 3)), nulls=False, plain=True)
        if not re.search(LACKED_BY_SQLITE, Case("large", tables, rules).rules):
            break
    rule = rules[0]
    if r.random() < 0.4:
        names = list(dict.fromkeys(variable.name for variable in rule.heads[0].variables))
        kinds = {n: k for s in sources for n, k in zip(names, s.kinds, strict=False)}
        function = r.choice(("count", "min", "max"))
        argument = r.choice(rule.heads[0].variables)
        call = Aggregate(function, () if function == "count" else (argument,))
        keys = rule.heads[0].variables[: r.randint(0, min(2, len(kinds)))]
        head = type(rule.heads[0])(rule.heads[0].relation, tuple(dict.fromkeys(keys)), call)
        rules = (Rule((head,), rule.body),)
    options = {
        "strategy": r.choice(STRATEGIES[:-1]),
        "changes": r.choice((1, 10, 1000)),
        "seed": r.randrange(2**32),
    }
    return Case("large", tables, rules, options=options)


def _sound(r: random.Random) -> tuple[list[Drawn], Case]:
    """A program in which nothing can be refused: so transactions may be committed in any order."""
    while True:
        loaded, case = _small(r)
        if not _has_functions(case) and not any(one.table.functional or one.table.bag for one in loaded):
            return loaded, case


def _has_functions(case: Case) -> bool:
    values = [head.value for rule in case.program for head in rule.heads]
    return any(value is not None and not isinstance(value, Aggregate) for value in values)


def threads(r: random.Random) -> Case:
    """Writers of rows of their own, readers of snapshots and followers beside them."""
    loaded, case = _sound(r)
    pools = {one.table.name: _pool(r, one) for one in loaded}
    steps = tuple(
        Commit(_staged(r, loaded, pools, r.choice((1, 1, 2, 5)), sound=True))
        for _ in range(r.choice((10, 30, 60)))
    )
    options: dict[str, Any] = {"strategies": tuple(r.choice(STRATEGIES) for _ in case.heads)}
    options["writers"] = r.choice((1, 2, 3))
    if r.random() < 0.35:
        options["durability"] = r.choice(("commit", "interval", "none"))
    if r.random() < 0.3:
        options["apply_many"] = True
    return Case("threads", case.tables, case.program, steps, options)


def kills(r: random.Random) -> Case:
    """A process that is killed while it commits into a folder; the folder is opened again."""
    loaded, case = _sound(r)
    pools = {one.table.name: _pool(r, one) for one in loaded}
    steps: list[Step] = []
    for _ in range(r.choice((4, 10, 20))):
        steps.append(Commit(_staged(r, loaded, pools, r.choice((1, 2, 5)), sound=True)))
        if r.random() < 0.15:
            steps.append(Do("checkpoint"))
    options = {
        "durability": r.choice(("commit", "interval", "none")),
        "strategies": tuple(r.choice(STRATEGIES) for _ in case.heads),
        "milliseconds": round(r.uniform(0, 3), 2),
        "after": r.randrange(len(steps)),
    }
    return Case("kills", case.tables, case.program, tuple(steps), options)


def damage(r: random.Random) -> Case:
    """A folder that was closed or left, of which a byte, an end or a file is gone when it is opened again."""
    case = kills(r)
    options = {
        "durability": case.options["durability"],
        "closed": r.random() < 0.6,
        "what": r.choice(("flip", "flip", "cut", "end", "end", "delete")),
        "file": r.random(),
        "at": r.random(),
        "bit": r.randrange(8),
    }
    return Case("damage", case.tables, case.program, case.steps, options)


KINDS: tuple[tuple[Callable[[random.Random], Case], float], ...] = (
    (once, 0.24),
    (kept, 0.26),
    (limits, 0.06),
    (calendar, 0.02),
    (large, 0.05),
    (threads, 0.05),
    (kills, 0.03),
    (damage, 0.04),
    (values, 0.04),
    (sql, 0.12),
    (streams, 0.1),
    (spark, 0.0),
)
"""What draws a case, and in which share of all it does; what has none is played where it is asked for."""


WIDE = 0.4
"""The share of cases in which every relation that can be is wide."""


KEYS = 0.5
"""The share of cases with several heads that are evaluated, or kept for some of them, for keys."""


def _for_keys(r: random.Random, case: Case) -> dict[str, Any]:
    """Heads for some keys, by heads too or by relations alone, whatever that costs.

    Only where nothing can be refused: two values of a key that nobody reads are no error then.
    """
    read_as = set(
        re.findall(r"(\w+)\[", " ".join(text.partition("<-")[2] for text in case.rules.split("\n")))
    )
    sums = {h.relation for rule in case.program for h in rule.heads if isinstance(h.value, Aggregate)}
    several = case.kind in ("once", "kept") and len(case.heads) > 1
    if not several or "errors_count" in case.options or _has_functions(case) or not read_as <= sums:
        return {}
    if r.random() > KEYS:
        return {}
    results = r.sample(case.heads, r.randrange(1, len(case.heads)))
    shown = [name for name in case.heads if name in results or (r.random() < 0.7 and name == case.heads[-1])]
    return {"keys": r.random() < 0.5, **({"results": tuple(shown)} if case.kind == "kept" else {})}


def draw(seed: int, number: int, only: str | None = None) -> Case:
    """Case ``number`` of a seed.  ``only``: a kind, where no other is wanted."""
    r = random.Random(f"{seed}/{number}")
    makers, shares = zip(*KINDS, strict=True)
    maker = r.choices(makers, shares)[0]
    if only is not None:
        maker = next(one for one in makers if one.__name__ == only)
    case = maker(r)
    wide = {"wide": True} if r.random() < WIDE else {}
    return replace(case, options={**case.options, **wide, **_for_keys(r, case)})
