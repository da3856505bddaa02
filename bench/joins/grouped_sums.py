"""Sums by group over a table of sales and those that its keys lead to: what column stores are made for."""

from __future__ import annotations

from bench.workload import Target, Workload

SALES = 1_000_000

_BODIES = {
    "sale": ("sale(_, p, s, c, v)", "sale"),
    "product": ("product(p, k)", "product USING (product)"),
    "store": ("store(s, r, t)", "store USING (store)"),
    "customer": ("customer(c, g)", "customer USING (customer)"),
    "city": ("city(t, y)", "city USING (city)"),
}
_NAMES = {"k": "kind", "r": "region", "g": "segment", "y": "country", "c": "customer"}


def _sums(name: str, title: str, keys: str, tables: tuple[str, ...], groups: int) -> Workload:
    """The amounts by ``keys``, one letter each, where the tables are joined."""
    columns = ", ".join(_NAMES[key] for key in keys)
    bodies = ("sale", *tables)
    known = [term for body in bodies for term in _terms(_BODIES[body][0])]
    atoms = ", ".join(
        _atom(_BODIES[body][0], {term for term in known if known.count(term) > 1 or term in keys})
        for body in bodies
    )
    sql = " JOIN ".join(_BODIES[body][1] for body in bodies)
    return Workload(
        f"sums-{name}",
        f"sum of {SALES:,} sales {title}",
        {body: f"sales-{SALES}/{body}" for body in bodies},
        {
            "lftj": f"h[{', '.join(keys)}] = sum(v) <- {atoms}.",
            "duckdb": f"SELECT {columns}, sum(amount) FROM {sql} GROUP BY {columns}",
        },
        groups,
        task="list",
        targets=(Target("ratio", 0.5, 1, "duckdb"),),
    )


def _terms(atom: str) -> list[str]:
    return atom.rstrip(")").partition("(")[2].split(", ")


def _atom(text: str, used: set[str]) -> str:
    """An atom with a wildcard for each variable that nothing else knows."""
    shown = (term if term in used or term == "v" else "_" for term in _terms(text))
    return f"{text.partition('(')[0]}({', '.join(shown)})"


def grouped_sums() -> list[Workload]:
    """docs/design/targets.md "Ordinary queries": no slower than twice DuckDB's time."""
    return [
        _sums("groups", "by 10,000 customers", "c", (), 10_000),
        _sums("star-1", "by kind of product, a star of two", "k", ("product",), 20),
        _sums("star-2", "by kind and region, a star of three", "kr", ("product", "store"), 200),
        _sums(
            "star-3", "by three attributes, a star of four", "krg", ("product", "store", "customer"), 1_000
        ),
        _sums("snowflake", "by kind and country, a snowflake", "ky", ("product", "store", "city"), 160),
    ]
