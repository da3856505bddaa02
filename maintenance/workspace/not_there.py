"""What to call instead of a method that is looked for and not there."""

from __future__ import annotations

_OF_TRANSACTIONS = {
    "update": "upsert(relation, rows) puts rows in place of those of their keys; without a key erase() the"
    " old row and insert() the new one; sql('UPDATE ...')",
    "delete": "erase(relation, rows), or erase_keys(relation, keys)",
    "remove": "erase(relation, rows), or erase_keys(relation, keys)",
    "add": "insert(relation, rows)",
    "replace": "upsert(relation, rows)",
    "rollback": "roll_back()",
    "execute": "sql(text)",
    "query": "the transaction reads nothing but by sql(); ask the workspace",
}
_OF_WORKSPACES = {
    name: f"with ws.transaction() as tx: tx.{name}(...)"
    for name in ("insert", "erase", "upsert", "erase_keys", "apply", "advance")
} | {
    "update": "with ws.transaction() as tx: tx.upsert(...), or ws.sql('UPDATE ...')",
    "delete": "with ws.transaction() as tx: tx.erase(...), or ws.sql('DELETE ...')",
    "commit": "with ws.transaction() as tx: ..., which commits at its end",
    "begin": "transaction()",
    "execute": "sql(text), or query(rules)",
}


def of_transaction(name: str) -> AttributeError:
    """
    >>> of_transaction("rollback")
    AttributeError("a Transaction has no 'rollback': roll_back()")
    """
    return _missing("Transaction", name, _OF_TRANSACTIONS)


def of_workspace(name: str) -> AttributeError:
    return _missing("Workspace", name, _OF_WORKSPACES)


def _missing(kind: str, name: str, instead: dict[str, str]) -> AttributeError:
    if name not in instead:
        return AttributeError(f"{kind!r} object has no attribute {name!r}", name=name)
    return AttributeError(f"a {kind} has no {name!r}: {instead[name]}", name=name)
