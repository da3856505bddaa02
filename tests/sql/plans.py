"""What DuckDB's binder gives: the kinds of nodes, expressions and functions in its plans, as it names them.

python -m sql.plans             of the corpus, each with how many texts have it and the first of them
python -m sql.plans "select 1"  of one text
python -m sql.plans --json ...  the plan itself
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import duckdb

from sql.statements import CORPUS
from sql.tables import Tables

Trait = tuple[str, str]
"""What a thing is (node, join, table, expression, operator, comparison, function, aggregate, window,
frame), and DuckDB's word for it."""

_SERIALIZE = (
    "select json_serialize_plan(?::varchar, skip_null := true, skip_default := true, skip_empty := true, "
    "optimize := false)"
)


def plan(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any]:
    """The bound plan.  Raises ValueError with the binder's words."""
    row = connection.execute(_SERIALIZE, [text]).fetchone()
    assert row is not None
    read: dict[str, Any] = json.loads(row[0])
    if read["error"]:
        raise ValueError(read["error_message"])
    return read


def traits(tree: Any) -> Iterator[Trait]:
    """Of a plan or a part of it, with repetitions."""
    if isinstance(tree, list):
        for part in tree:
            yield from traits(part)
    elif isinstance(tree, dict):
        yield from _own(tree)
        for part in tree.values():
            yield from traits(part)


def _own(tree: dict[str, Any]) -> Iterator[Trait]:
    kind = tree.get("type")
    if isinstance(kind, str) and kind.startswith("LOGICAL_"):
        yield "node", kind
        if "JOIN" in kind:
            yield "join", tree.get("join_type", "INNER")
        if kind == "LOGICAL_GET":
            yield "table", _name(tree)
    if "comparison" in tree:
        yield "comparison", tree["comparison"]
    expression = tree.get("expression_class")
    if expression is not None:
        yield "expression", expression
        if expression == "BOUND_FUNCTION":
            yield ("comparison", str(kind)) if str(kind).startswith("COMPARE") else ("function", _name(tree))
        elif expression == "BOUND_AGGREGATE":
            yield "aggregate", _name(tree) + (" distinct" if tree.get("aggregate_type") == "DISTINCT" else "")
        elif expression == "BOUND_WINDOW":
            yield "window", _name(tree) if kind == "WINDOW_AGGREGATE" else str(kind)
            yield "frame", f"{tree['start']} .. {tree['end']}"
            yield from (("frame", word) for word in ("distinct", "filters", "ignore_nulls") if tree.get(word))
            if tree.get("exclude_clause", "NO_OTHER") != "NO_OTHER":
                yield "frame", f"exclude {tree['exclude_clause']}"
        elif expression == "BOUND_OPERATOR":
            yield "operator", str(kind)


def _name(tree: dict[str, Any]) -> str:
    return str(tree.get("qname", {}).get("path", ["?"])[-1])


def main(arguments: list[str]) -> None:
    tables = Tables(filled=False)
    if arguments[:1] == ["--json"]:
        print(json.dumps(plan(tables.connection, arguments[1]), indent=1))
        return
    texts = [(text, text) for text in arguments] or [(s.name, s.text) for s in CORPUS]
    found: dict[Trait, list[str]] = {}
    for name, text in texts:
        for trait in dict.fromkeys(traits(plan(tables.connection, text))):
            found.setdefault(trait, []).append(name)
    for (what, word), names in sorted(found.items()):
        print(f"{what:<10}  {word:<34}  {len(names):>3}  {names[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
