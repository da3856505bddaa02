"""Query shapes with uniform and skewed data: what the planner's choice is measured on.

A shape is a rule and, per relation, a list of ends: ``"p"`` is a key of the
domain ``p``.  The same rule is planned over three kinds of data:

* ``uniform``: every key is drawn as often as any other;
* ``power``: keys are drawn by a power law, ranks shuffled, columns independent;
* ``rmat``: columns draw by one power law with the same hubs, and are correlated
  (the recursive matrix of Chakrabarti, Zhan, Faloutsos, *R-MAT*, SDM 2004).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from lftj.database.database import Database

Kind = Literal["uniform", "power", "rmat", "blocks"]
KINDS: tuple[Kind, ...] = ("uniform", "power", "rmat", "blocks")

QUADRANTS = (0.57, 0.76, 0.95)
"""Cumulated probabilities of the four quadrants of the recursive matrix."""


BLOCKS = 20
STRAY = 0.1
"""Share of the keys of ``blocks`` that are drawn from anywhere."""


@dataclass(frozen=True)
class Table:
    """``ends[i]``: how many keys column i draws from; ``rows`` draws, of which equal ones are one row.

    ``functional``: the first column is 0, 1, 2, ..., as in a table with a primary key.
    """

    rows: int
    ends: tuple[int, ...]
    functional: bool = False

    def draw(self, generator: np.random.Generator, kind: Kind) -> pa.Table:
        if kind == "rmat":
            columns = _rmat(generator, self)
        elif kind == "blocks":
            columns = _blocks(generator, self)
        else:
            columns = [_keys(generator, self, n, kind) for n in self.ends]
        if self.functional:
            columns[0] = np.arange(self.rows)
        rows = np.unique(np.array(columns), axis=1)
        return pa.table({f"c{i}": column for i, column in enumerate(rows)})


def _keys(generator: np.random.Generator, table: Table, n_keys: int, kind: Kind) -> np.ndarray:
    if kind == "uniform":
        return generator.integers(0, n_keys, table.rows)
    weights = 1.0 / np.arange(1, n_keys + 1)
    return generator.permutation(n_keys)[generator.choice(n_keys, table.rows, p=weights / weights.sum())]


def _rmat(generator: np.random.Generator, table: Table) -> list[np.ndarray]:
    """Columns of one recursive matrix, pairwise correlated; a column of n keys takes the scaled bits."""
    scale = 16
    columns = [np.zeros(table.rows, dtype=np.int64) for _ in table.ends]
    for _ in range(scale):
        previous = generator.random(table.rows) >= QUADRANTS[1]
        for column in columns:
            ones = np.where(previous, 0.05 / 0.24, 0.19 / 0.76)
            bit = generator.random(table.rows) < ones
            column *= 2
            column += bit
            previous = bit
    return [column * n_keys >> scale for column, n_keys in zip(columns, table.ends, strict=True)]


def _blocks(generator: np.random.Generator, table: Table) -> list[np.ndarray]:
    """Most rows stay within one block of every column, so columns are far from independent."""
    block = generator.integers(0, BLOCKS, table.rows)
    columns = []
    for n_keys in table.ends:
        within = (block + generator.random(table.rows)) * (n_keys / BLOCKS)
        anywhere = generator.random(table.rows) * n_keys
        columns.append(np.where(generator.random(table.rows) < STRAY, anywhere, within).astype(np.int64))
    return columns


@dataclass(frozen=True)
class Shape:
    """A rule over tables; ``tables`` that the rule does not name are not there."""

    name: str
    rule: str
    tables: Mapping[str, Table] = field(default_factory=dict)

    def database(self, kind: Kind, seed: int = 0) -> Database:
        """The tables drawn: the same on every machine."""
        database = Database()
        for name, table in self.tables.items():
            generator = np.random.default_rng(zlib.crc32(f"{self.name} {name} {kind} {seed}".encode()))
            database.load(name, table.draw(generator, kind))
        return database


EDGE = {"e": Table(4000, (500, 500))}
SPARSE = {"e": Table(2000, (800, 800))}

SHAPES = (
    Shape("triangle", "h(a, b, c) <- e(a, b), e(b, c), e(a, c).", EDGE),
    Shape(
        "triangle of three relations",
        "h(a, b, c) <- r(a, b), s(b, c), t(a, c).",
        {"r": Table(600, (500, 60)), "s": Table(5000, (60, 2000)), "t": Table(2500, (500, 2000))},
    ),
    Shape("4-cycle", "h(a, b, c, d) <- e(a, b), e(b, c), e(c, d), e(d, a).", SPARSE),
    Shape("4-clique", "h(a, b, c, d) <- e(a, b), e(a, c), e(a, d), e(b, c), e(b, d), e(c, d).", EDGE),
    Shape("diamond", "h(a, b, c, d) <- e(a, b), e(a, c), e(b, c), e(b, d), e(c, d).", SPARSE),
    Shape(
        "tailed triangle",
        "h(a, b, c, d) <- e(a, b), e(b, c), e(c, a), f(c, d).",
        {**EDGE, "f": Table(900, (500, 300))},
    ),
    Shape("path of 3", "h(a, b, c, d) <- e(a, b), e(b, c), e(c, d).", SPARSE),
    Shape(
        "path of 4, narrow ends",
        "h(a, b, c, d, x) <- p(a, b), q(b, c), r(c, d), s(d, x).",
        {
            "p": Table(150, (40, 400)),
            "q": Table(2000, (400, 700)),
            "r": Table(3000, (700, 500)),
            "s": Table(80, (500, 20)),
        },
    ),
    Shape(
        "star join",
        "h(k, c, p, s) <- fact(k, c, p, s), customer(c, 3), part(p, 5), store(s, y), y < 4.",
        {
            "fact": Table(5000, (5000, 400, 300, 50), functional=True),
            "customer": Table(400, (400, 12), functional=True),
            "part": Table(300, (300, 20), functional=True),
            "store": Table(50, (50, 10), functional=True),
        },
    ),
    Shape(
        "star of many-to-many dimensions",
        "h(c, p, s, u, v) <- fact(c, p, s), customer(c, u), part(p, v), open(s).",
        {
            "fact": Table(3000, (400, 300, 60)),
            "customer": Table(700, (400, 30)),
            "part": Table(500, (300, 20)),
            "open": Table(15, (60,)),
        },
    ),
    Shape(
        "snowflake",
        "h(o, c, n, i, p) <- orders(o, c), customer(c, n), nation(n, 2), item(o, i, p), part(p, b), b < 3.",
        {
            "orders": Table(1500, (1500, 300), functional=True),
            "customer": Table(300, (300, 25), functional=True),
            "nation": Table(25, (25, 5), functional=True),
            "item": Table(5000, (1500, 7, 400)),
            "part": Table(400, (400, 15), functional=True),
        },
    ),
    Shape(
        "triangle with a selective atom",
        "h(a, b, c) <- e(a, b), e(b, c), e(a, c), v(b).",
        {**EDGE, "v": Table(12, (500,))},
    ),
    Shape("triangle with a literal", "h(b, c) <- e(b, c), e(c, 7), e(b, 7).", EDGE),
    Shape("triangle with a bound", "h(a, b, c) <- e(a, b), e(b, c), e(a, c), c < 40.", EDGE),
    Shape(
        "ternary and binary",
        "h(a, b, c, d) <- t(a, b, c), e(a, d), u(b, c, d).",
        {"t": Table(3000, (200, 100, 60)), "e": Table(1500, (200, 150)), "u": Table(3000, (100, 60, 150))},
    ),
    Shape(
        "Loomis-Whitney",
        "h(a, b, c, d) <- r(a, b, c), s(a, b, d), t(a, c, d), u(b, c, d).",
        {name: Table(3000, (40, 40, 40)) for name in "rstu"},
    ),
    Shape(
        "self-join with inequality",
        "h(a, b, c) <- e(a, b), e(a, c), b < c, v(c).",
        {**EDGE, "v": Table(60, (500,))},
    ),
    Shape(
        "butterfly with inequalities",
        "h(u, v, p, q) <- l(u, p), l(u, q), l(v, p), l(v, q), u < v, p < q.",
        {"l": Table(1500, (300, 500))},
    ),
    Shape(
        "common likes with difference",
        "h(x, y, t) <- f(x, z), f(y, z), x != y, l(x, t), l(y, t).",
        {"f": Table(1500, (400, 300)), "l": Table(1200, (400, 600))},
    ),
    Shape(
        "open triangle", "h(a, b, c) <- e(a, b), e(b, c), !e(a, c), v(a).", {**EDGE, "v": Table(100, (500,))}
    ),
    Shape(
        "LSQB q9-like",
        "h(a, b, c, t) <- k(a, b), k(b, c), i(c, t), a != c, !k(a, c), t < 20.",
        {"k": Table(1500, (500, 500)), "i": Table(1500, (500, 100))},
    ),
    Shape("existential segment", "h(a, b) <- e(a, b), e(b, c), e(c, d), e(d, a).", EDGE),
    Shape("free existential", "h(c) <- e(a, b), e(b, c), v(a).", {**EDGE, "v": Table(4, (500,))}),
    Shape(
        "existential in the middle",
        "h(a, d) <- p(a, b), q(b, c), r(c, d).",
        {"p": Table(900, (300, 60)), "q": Table(300, (60, 60)), "r": Table(900, (60, 300))},
    ),
    Shape(
        "disconnected existentials",
        "h(a) <- n(a), e(a, b), f(b, u), g(u), e(c, a), f(c, v), w(v).",
        {
            **EDGE,
            "n": Table(400, (500,)),
            "f": Table(1500, (500, 300)),
            "g": Table(40, (300,)),
            "w": Table(150, (300,)),
        },
    ),
    Shape(
        "LSQB q3-like",
        "h(a, b, c, x, y, z, p) <- k(a, b), k(b, c), k(c, a), l(a, x), l(b, y), l(c, z), "
        "o(x, p), o(y, p), o(z, p).",
        {
            "k": Table(3000, (300, 300)),
            "l": Table(300, (300, 80), functional=True),
            "o": Table(80, (80, 12), functional=True),
        },
    ),
    Shape("bowtie", "h(a, b, c, d, x) <- e(a, b), e(b, c), e(c, a), e(a, d), e(d, x), e(x, a).", EDGE),
    Shape(
        "window join",
        "h(k, x, y) <- r(k, x), s(k, y), x < y, y < x + 20.",
        {"r": Table(2000, (60, 2000)), "s": Table(3000, (60, 2000))},
    ),
    Shape(
        "window join without a key",
        "h(x, u, y, v) <- r(u, x), s(v, y), x < y, y < x + 3, v < 10.",
        {"r": Table(1500, (60, 20000)), "s": Table(1500, (60, 20000))},
    ),
    Shape(
        "two parts",
        "h(a, b, c, d) <- e(a, b), v(a), f(c, d), w(d).",
        {
            "e": Table(1500, (500, 300)),
            "v": Table(15, (500,)),
            "f": Table(1200, (400, 300)),
            "w": Table(10, (300,)),
        },
    ),
    Shape("count by group", "n[a] = count() <- e(a, b), e(b, c), e(c, a).", EDGE),
    Shape(
        "sum over a star",
        "n[u] = count() <- fact(c, p, s), customer(c, u), part(p, 3).",
        {
            "fact": Table(4000, (400, 300, 60)),
            "customer": Table(400, (400, 12), functional=True),
            "part": Table(300, (300, 20), functional=True),
        },
    ),
)
