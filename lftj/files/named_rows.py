"""Rows with names that are no table: lists of dicts and of record batches, graphs, what a query has given.

Told by what objects offer, so nothing of networkx, SQLAlchemy or a driver is imported:

- a list of dicts; what one of them lacks is NULL;
- a list of record batches, or tables, of one schema;
- a graph of networkx: the columns ``source`` and ``target``, of a multigraph ``key``, and the edges'
  attributes, what an edge lacks being NULL.  An undirected graph has each edge in both directions, as
  adjacency has; its ``edges`` once.  ``nodes``: the column ``node`` and the nodes' attributes;
- what SQLAlchemy's ``execute`` gives, and a DB-API or ADBC cursor behind its ``execute``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lftj.errors import SourceError

Columns = Mapping[str, Sequence[Any]]


def named_rows(source: Any) -> pa.Table | Columns | None:
    """The columns of such a source; None: it is none.  Raises SourceError, also for a connection."""
    if isinstance(source, list | tuple):
        return _of_list(source) if source else None
    if isinstance(source, type):
        return None
    if _is_networkx(source):
        return _of_graph(source)
    if callable(getattr(source, "fetchall", None)):
        return _of_query(source)
    _refuse_connection(source)
    return None


def _of_list(rows: Sequence[Any]) -> pa.Table | Columns | None:
    if isinstance(rows[0], Mapping):
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise SourceError(
                    f"row {number} (counting from 0) is a {type(row).__name__}, and row 0 a dict"
                )
        return _columns([], rows)
    if isinstance(rows[0], pa.RecordBatch | pa.Table):
        for number, batch in enumerate(rows):
            if not isinstance(batch, pa.RecordBatch | pa.Table) or batch.schema != rows[0].schema:
                raise SourceError(
                    f"record batch {number} (counting from 0) of a list is of another schema than batch 0:"
                    " cast it before, batch.cast(schema)"
                )
        return pa.concat_tables(
            batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]) for batch in rows
        )
    return None


def _columns(first: Sequence[tuple[str, Sequence[Any]]], attributes: Sequence[Mapping[Any, Any]]) -> Columns:
    """Columns, and behind them a column for each attribute that a row has."""
    columns = dict(first)
    for name in dict.fromkeys(name for row in attributes for name in row):
        if name in columns:
            raise SourceError(
                f"an attribute is called {name!r}, as the column before it: give it another name"
            )
        columns[name] = [row.get(name) for row in attributes]
    return columns


def _is_networkx(source: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "networkx" for base in type(source).__mro__)


def _of_graph(source: Any) -> Columns | None:
    if hasattr(source, "is_directed"):
        edges = _edges(source.edges)
        if not source.is_directed():
            edges += [(b, a, *rest) for a, b, *rest in edges if a != b]
    elif callable(source) and hasattr(source, "items") and isinstance(source, Mapping):
        pairs = list(source.items())
        if pairs and isinstance(pairs[0][0], tuple) and not hasattr(source, "_nodes"):
            edges = _edges(source)
        else:
            return _columns([("node", [node for node, _ in pairs])], [attributes for _, attributes in pairs])
    else:
        return None  # edges with data, which are tuples
    ends = [("source", [edge[0] for edge in edges]), ("target", [edge[1] for edge in edges])]
    keys = [("key", [edge[2] for edge in edges])] if edges and len(edges[0]) == 4 else []
    return _columns([*ends, *keys], [edge[-1] for edge in edges])


def _edges(view: Any) -> list[tuple[Any, ...]]:
    """Ends, of a multigraph the key, and attributes."""
    is_multi = "Multi" in type(view).__name__
    return list(view(keys=True, data=True) if is_multi else view(data=True))


def _of_query(source: Any) -> pa.Table | Columns:
    """The rows that a cursor, or SQLAlchemy's result, has yet to give."""
    kind = type(source).__name__
    if callable(getattr(source, "cursor", None)) and callable(getattr(source, "sql", None)):  # DuckDB's
        raise SourceError(f"a {kind} is no rows: load what it answers, connection.sql('SELECT ...')")
    try:
        if callable(getattr(source, "keys", None)):
            names: list[str] = list(source.keys())
        elif getattr(source, "description", None) is None:
            raise SourceError(f"the {kind} has no rows: cursor.execute('SELECT ...') comes first")
        elif callable(getattr(source, "fetch_arrow_table", None)):
            return source.fetch_arrow_table()
        else:
            names = [column[0] for column in source.description]
        rows = source.fetchall()
    except SourceError:
        raise
    except Exception as error:  # whatever the library behind the object raises
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SourceError(f"can't read the {kind}: {reason}") from None
    if len(set(names)) < len(names):
        raise SourceError(f"two columns of the {kind} have one name: give names, SELECT a AS ...")
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(names)
    return dict(zip(names, columns, strict=True))


def _refuse_connection(source: Any) -> None:
    """Raise SourceError for what asks queries, with what is to be loaded in its place."""
    kind = type(source).__name__
    if hasattr(source, "exec_driver_sql") or (hasattr(source, "connect") and hasattr(source, "dialect")):
        raise SourceError(
            f"a {kind} is no rows: load what a query gives, connection.execute(sqlalchemy.text('SELECT ...'))"
        )
    if callable(getattr(source, "cursor", None)) and callable(getattr(source, "commit", None)):
        raise SourceError(
            f"a {kind} is no rows: load a cursor behind its query, cursor = connection.cursor();"
            " cursor.execute('SELECT ...')"
        )
