"""What to call instead of a method that is looked for and not there.

Each name is an attribute of the class that raises when it is asked for.  A ``__getattr__`` would slow down
every attribute that is there: a commit by a tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

OF_TRANSACTIONS = {
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
OF_WORKSPACES = {
    name: f"with ws.transaction() as tx: tx.{name}(...)"
    for name in ("insert", "erase", "upsert", "erase_keys", "apply", "advance")
} | {
    "update": "with ws.transaction() as tx: tx.upsert(...), or ws.sql('UPDATE ...')",
    "delete": "with ws.transaction() as tx: tx.erase(...), or ws.sql('DELETE ...')",
    "begin": "transaction()",
    "execute": "sql(text), or query(rules)",
}


_Class = TypeVar("_Class", bound=type)


class NotThere:
    """An attribute that is not there: asking for it says what to call."""

    def __init__(self, kind: str, name: str, instead: str) -> None:
        self._name, self._message = name, f"a {kind} has no {name!r}: {instead}"

    def __get__(self, instance: object, owner: type) -> None:
        raise AttributeError(self._message, name=self._name, obj=instance)


def called_otherwise(instead: Mapping[str, str]) -> Callable[[_Class], _Class]:
    """A class whose instances say so of some names, which ``dir`` does not list.

    >>> @called_otherwise({"rollback": "roll_back()"})
    ... class Transaction: ...
    >>> Transaction().rollback
    Traceback (most recent call last):
    AttributeError: a Transaction has no 'rollback': roll_back()
    >>> hasattr(Transaction(), "rollback"), "rollback" in dir(Transaction())
    (False, False)
    """

    def listed(self: object) -> Iterable[str]:
        return [name for name in object.__dir__(self) if name not in instead]

    def decorate(decorated: _Class) -> _Class:
        for name, text in instead.items():
            assert name not in dir(decorated)
            setattr(decorated, name, NotThere(decorated.__name__, name, text))
        setattr(decorated, "__dir__", listed)  # noqa: B010
        return decorated

    return decorate
