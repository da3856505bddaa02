"""Recursion from nothing: closures, same generation, components, GALEN and CRDT.

Floors and goals: docs/design/targets.md "Recursion".

Datafrog finds the same rows, by their checksum.
"""

from __future__ import annotations

from bench.workload import Target, Workload

CLOSURE_RULES = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c)."

CLOSURE_SQL = (
    "WITH RECURSIVE path(a, b) AS (SELECT src, dst FROM edge"
    " UNION SELECT path.a, edge.dst FROM path, edge WHERE path.b = edge.src) SELECT {of} FROM path"
)

_GENERATION_RULES = "same(x, y) <- edge(p, x), edge(p, y). same(x, y) <- same(p, q), edge(p, x), edge(q, y)."

_GENERATION_SQL = (
    "WITH RECURSIVE same(x, y) AS (SELECT e.dst, f.dst FROM edge e, edge f WHERE e.src = f.src"
    " UNION SELECT e.dst, f.dst FROM same, edge e, edge f WHERE same.x = e.src AND same.y = f.src)"
    " SELECT count(*) FROM same"
)


def closure(
    graph: str,
    answer: tuple[int, int],
    title: str,
    targets: tuple[Target, ...] = (),
    in_duckdb: bool = True,
) -> Workload:
    """Count the pairs of which one can be reached from the other; ``answer``: that, and the checksum."""
    queries = {"lftj": CLOSURE_RULES, "datafrog": "closure edge"}
    if in_duckdb:
        queries["duckdb"] = CLOSURE_SQL.format(of="count(*)")
    expected, checksum = answer
    return Workload(
        f"closure-{graph.replace('/', '-')}",
        f"transitive closure, {title}",
        {"edge": graph},
        queries,
        expected,
        targets=targets,
        checksum=checksum,
    )


def same_generation(nodes: int, answer: tuple[int, int], targets: tuple[Target, ...] = ()) -> Workload:
    """Count the pairs of nodes of a tree that have equally long ways up to a common one."""
    expected, checksum = answer
    return Workload(
        f"generation-tree-{nodes}",
        f"same generation, tree of {nodes:,} nodes",
        {"edge": f"tree-{nodes}"},
        {"lftj": _GENERATION_RULES, "duckdb": _GENERATION_SQL, "datafrog": "generation edge"},
        expected,
        targets=targets,
        checksum=checksum,
    )


COMPONENT_RULES = """
label[x] = min(l) <- (edge(x, _) ; edge(_, x)), l = x.
label[y] = min(l) <- label[x] = l, (edge(x, y) ; edge(y, x)).
"""

COMPONENT_SQL = (
    "WITH RECURSIVE label(x, l) USING KEY (x) AS (SELECT src, src FROM edge UNION SELECT dst, dst FROM edge"
    " UNION SELECT e.y, min(label.l) FROM label, (SELECT src AS x, dst AS y FROM edge"
    " UNION ALL SELECT dst, src FROM edge) e, recurring.label AS known"
    " WHERE label.x = e.x AND known.x = e.y AND label.l < known.l GROUP BY e.y) SELECT {of} FROM label"
)


def components(graph: str, expected: int, title: str) -> Workload:
    """Count the connected components: the vertices that are the least of theirs."""
    return Workload(
        f"components-{graph}",
        f"connected components by least label, {title}",
        {"edge": graph},
        {
            "lftj": f"{COMPONENT_RULES} root(x) <- label[x] = l, x = l.",
            "duckdb": COMPONENT_SQL.format(of="count(*)") + " WHERE x = l",
        },
        expected,
        note="DuckDB: a recursive query `USING KEY`, which replaces labels.",
    )


_GALEN_RULES = """
p(x, z) <- given_p(x, z).
q(x, r, z) <- given_q(x, r, z).
p(x, z) <- p(x, y), p(y, z).
p(x, z) <- p(y, w), u(w, r, z), q(x, r, y).
p(x, z) <- c(y, w, z), p(x, w), p(x, y).
q(x, r, z) <- p(x, y), q(y, r, z).
q(x, q, z) <- q(x, r, z), s(r, q).
q(x, e, o) <- q(x, y, z), q(z, u, o), r(y, u, e).
"""

CRDT_RULES = """
child(pc, pn, key, c, n) <- insert(c, n, pc, pn), key = 10 * c + n.
latest[pc, pn] = max(key) <- child(pc, pn, key, _, _).
first(pc, pn, c, n) <- latest[pc, pn] = key, child(pc, pn, key, c, n).
before[c, n] = max(key) <- child(pc, pn, own, c, n), child(pc, pn, key, _, _), key < own.
sibling(c, n, d, m) <- insert(c, n, pc, pn), before[c, n] = key, child(pc, pn, key, d, m).
later(c, n, d, m) <- sibling(c, n, d, m).
later(c, n, d, m) <- insert(c, n, pc, pn), !sibling(c, n, _, _), later(pc, pn, d, m).
next(c, n, d, m) <- first(c, n, d, m).
next(c, n, d, m) <- later(c, n, d, m), !insert(_, _, c, n).
value(c, n) <- insert(c, n, _, _), !remove(c, n).
next_by_blanks(c, n, d, m) <- value(c, n), next(c, n, d, m).
next_by_blanks(c, n, d, m) <- next_by_blanks(c, n, v, w), next(v, w, d, m), !value(v, w).
result(c, d, m) <- next_by_blanks(c, n, d, m), value(d, m).
"""


def ontology() -> Workload:
    """Complete the GALEN ontology; of its two relations the larger one is counted."""
    tables = {name: f"recursion/galen-{name}" for name in "crsu"}
    given = {f"given_{name}": f"recursion/galen-{name}" for name in "pq"}
    return Workload(
        "galen",
        "GALEN, completed",
        tables | given,
        {"lftj": _GALEN_RULES, "datafrog": "galen c given_p given_q r s u"},
        16_595_494,
        targets=(Target("seconds", 60, 12),),
        limit=300,
        checksum=6092765986573259533,
    )


def document() -> Workload:
    """The text of a replicated document from its edits: 21,000 rounds with a few tuples each."""
    return Workload(
        "crdt",
        "CRDT, 259,778 edits of a document",
        {name: f"recursion/crdt-{name}" for name in ("insert", "remove")},
        {"lftj": CRDT_RULES, "datafrog": "crdt insert remove"},
        104_851,
        targets=(Target("seconds", 6, 2),),
        checksum=4257366781022078497,
    )
