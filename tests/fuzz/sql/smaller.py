"""Statements made smaller, part by part; what is no statement any more is refused and so finds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from fuzz.sql.tree import QUERIES, WRITTEN, Derived, E, Item, Join, Select, Sort, With

_SMALLEST = {"int": 1, "varchar": "a", "double": 1.0, "boolean": True}


def smaller(statement: Any) -> Iterator[Any]:
    """Statements with one part less, or a simpler one, from coarse to fine."""
    yield from _at_the_top(statement)
    yield from _narrower(statement)
    yield from _parts(statement)


def _at_the_top(statement: Any) -> Iterator[Any]:
    """A query inside, in the place of the whole."""
    for one in _children(statement):
        if isinstance(one, QUERIES):
            yield one
        yield from _at_the_top(one)


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        yield from node
    elif isinstance(node, WRITTEN):
        for one in fields(node):
            yield getattr(node, one.name)


def _narrower(statement: Any) -> Iterator[Any]:
    """Without the nth column, in all SELECTs of a set operation."""
    width = len(next((one.items for one in _selects(statement)), ()))
    for n in range(width if width > 1 else 0):
        yield _without_item(statement, n)


def _selects(query: Any) -> Iterator[Select]:
    if isinstance(query, Select):
        yield query
    elif isinstance(query, With):
        yield from _selects(query.body)
    elif isinstance(query, QUERIES):
        yield from _selects(getattr(query, "left", None))
        yield from _selects(getattr(query, "right", None))


def _without_item(query: Any, n: int) -> Any:
    if isinstance(query, Select):
        order = tuple(_moved(one, n) for one in query.order if str(one.by.args[:1]) != str((str(n + 1),)))
        return replace(query, items=(*query.items[:n], *query.items[n + 1 :]), order=order)
    if isinstance(query, With):
        return replace(query, body=_without_item(query.body, n))
    if hasattr(query, "left"):
        return replace(query, left=_without_item(query.left, n), right=_without_item(query.right, n))
    return query


def _moved(one: Sort, n: int) -> Sort:
    place = one.by.args[0] if one.by.form == "column" else ""
    if isinstance(place, str) and place.isdigit() and int(place) > n + 1:
        return replace(one, by=replace(one.by, args=(str(int(place) - 1),)))
    return one


def _parts(node: Any) -> Iterator[Any]:
    """The node with one of its parts left out, replaced or made smaller."""
    if isinstance(node, tuple):
        for n, one in enumerate(node):
            if not isinstance(one, (str, int)):
                yield (*node[:n], *node[n + 1 :])
        for n, one in enumerate(node):
            for less in _parts(one):
                yield (*node[:n], less, *node[n + 1 :])
        return
    if isinstance(node, E):
        yield from _expressions(node)
    elif isinstance(node, Join):
        yield node.left
        yield node.right
        if node.kind not in ("inner", "cross", ",") and node.on is not None:
            yield replace(node, kind="inner")
    elif isinstance(node, Derived) and node.lateral:
        yield replace(node, lateral=False)
    elif isinstance(node, QUERIES):
        yield from (one for one in _children(node) if isinstance(one, QUERIES))
    if not isinstance(node, WRITTEN):
        return
    for one in fields(node) if not isinstance(node, E) else ():
        value = getattr(node, one.name)
        if isinstance(node, Item) and one.name == "name":
            continue
        if value != one.default and (value is None or one.default in (None, False, "", ())):
            yield _with(node, one.name, one.default)
        if isinstance(value, (*WRITTEN, tuple)):
            for less in filter(None, _parts(value)):
                yield _with(node, one.name, less)
    if isinstance(node, E):
        for n, part in enumerate(node.args):
            if isinstance(part, WRITTEN):
                for less in _parts(part):
                    yield replace(node, args=(*node.args[:n], less, *node.args[n + 1 :]))


def _with(node: Any, name: str, value: Any) -> Any:
    return replace(node, **{name: value})


def _expressions(node: E) -> Iterator[E]:
    """Of the same type: an argument, however deep, or the simplest constant."""
    for one in _inside(node):
        if one.type == node.type:
            yield one
    if node.form not in ("literal", "column", "star") and node.type in _SMALLEST:
        yield E("literal", (_SMALLEST[node.type],), node.type)
    if "distinct" in node.form and "count" in node.form:
        yield replace(node, form=node.form.replace("distinct ", ""))


def _inside(node: Any) -> Iterator[E]:
    for one in _children(node):
        if isinstance(one, E):
            yield one
        if isinstance(one, tuple) or (isinstance(one, WRITTEN) and not isinstance(one, QUERIES)):
            yield from _inside(one)
