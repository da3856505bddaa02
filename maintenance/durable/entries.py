"""Entries: what a journal says, by values that any process understands.

    content    length of the head, head in JSON, then a table for each relation that changed, as Arrow IPC

Codes of values, which are this process's own, are in none; programs are texts, strategies names.

Cost: of a change one pass over its rows, and some 600 bytes beside them for the schema.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from lftj.rewriting.wanted_heads import Results

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class DataFile:
    """A file with the rows of a relation, in the folder of data: Arrow IPC.  ``checksum``: of its bytes."""

    name: str
    rows: int
    nbytes: int
    checksum: int


@dataclass(frozen=True)
class Loaded:
    """A base relation was loaded; the counts are those of :class:`lftj.storage.relation.Relation`.

    ``keeps_null``: whether its columns may hold NULL.  ``bag``: the file has equal rows, and all count.
    ``key``: columns that tell rows apart.  ``stream``: what makes it one, and where that stands.
    ``grown``: where it only grows, by what.
    """

    relation: str
    file: DataFile
    functional: bool = False
    dropped_rows: int = 0
    duplicate_rows: int = 0
    keeps_null: bool = False
    bag: bool = False
    key: tuple[str, ...] = ()
    stream: Mapping[str, Any] | None = None
    grown: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Changed:
    """Transactions were committed: by base relation the rows that came and went, and their weights, +1 or -1,
    in a bag how many copies.

    ``transactions``: how many, whose changes these are together.  ``streams``: of those that moved on, where
    they stand now.  What has left them since is not written, for it follows from that.
    """

    changes: Mapping[str, pa.Table]
    transactions: int = 1
    streams: Mapping[str, Sequence[int | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Installed:
    """A program was installed, as :meth:`maintenance.Workspace.install` was called; ``heads``: all it keeps.

    ``keys``, ``streams``: those that it declares of base relations.  ``grown``: relations that grow from then
    on, by its rules; ``loaded``: the same as a folder has them.

    ``results``: those that are wanted, where not all are; ``choices``: what was chosen for the others
    (:mod:`lftj.rewriting.demand_choices`).
    """

    text: str
    heads: Sequence[str]
    strategy: str | Mapping[str, str]
    replace: bool = False
    sensitivity_bytes: Mapping[str, int] = field(default_factory=dict)
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    max_rounds: int = 0
    results: Sequence[str] = field(default_factory=list)
    choices: Mapping[str, Any] | None = None
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    streams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grown: Sequence[str] = field(default_factory=list)
    loaded: Sequence[Loaded] = ()

    @property
    def wanted(self) -> Results | None:
        """As :meth:`maintenance.Workspace.install` takes them."""
        return Results(tuple(self.results), self.choices) if self.results else None


@dataclass(frozen=True)
class Uninstalled:
    heads: tuple[str, ...]


@dataclass(frozen=True)
class StrategySet:
    """Heads are kept by other strategies: those that depend on each other together."""

    strategies: Mapping[str, str]


Entry = Loaded | Changed | Installed | Uninstalled | StrategySet


def loaded_by(entry: Entry) -> Sequence[Loaded]:
    """The relations that an entry brings, each with a file of its own."""
    if isinstance(entry, Loaded):
        return [entry]
    return entry.loaded if isinstance(entry, Installed) else ()


_KINDS: dict[str, type[Any]] = {
    kind.__name__.lower(): kind for kind in (Loaded, Installed, Uninstalled, StrategySet)
}
_CHANGED = "changed"


def entry_bytes(entry: Entry) -> bytes:
    """An entry as the content of a record.  Raises ArrowException where a value can't be written.

    >>> change = Changed({"edge": pa.table({"a": [1], "weight": [1]})})
    >>> entry_of(entry_bytes(change)) == change
    True
    >>> entry_of(entry_bytes(Uninstalled(("tri",))))
    Uninstalled(heads=('tri',))
    """
    if not isinstance(entry, Changed):
        return _content({"kind": type(entry).__name__.lower(), **asdict(entry)}, [])
    tables = [_ipc(table) for table in entry.changes.values()]
    lengths = [[name, len(table)] for name, table in zip(entry.changes, tables, strict=True)]
    head = {"kind": _CHANGED, "transactions": entry.transactions, "tables": lengths}
    return _content({**head, "streams": entry.streams} if entry.streams else head, tables)


def entry_of(content: bytes | memoryview) -> Entry:
    """The entry of a content.  Raises ValueError, KeyError, TypeError or ArrowException where it is none."""
    view = memoryview(content)
    (length,) = _LENGTH.unpack_from(view)
    at = _LENGTH.size + length
    head = json.loads(bytes(view[_LENGTH.size : at]))
    kind = head.pop("kind")
    if kind != _CHANGED:
        return plain_entry(_KINDS[kind], head)
    changes = {}
    for name, nbytes in head["tables"]:
        with pa.ipc.open_stream(pa.py_buffer(view[at : at + nbytes])) as reader:
            changes[name] = reader.read_all()
        at += nbytes
    return Changed(changes, head["transactions"], head.get("streams", {}))


def places_of(content: bytes) -> dict[str, list[int]]:
    """By relation where in a change's entry the values of each column begin, and last the weights.

    Of columns of fixed width, without NULL.  Raises as :func:`entry_of`.

    >>> content = entry_bytes(Changed({"edge": pa.table({"a": [7], "weight": [1]})}))
    >>> [content[place] for place in places_of(content)["edge"]]
    [7, 1]
    """
    whole = pa.py_buffer(content)
    (length,) = _LENGTH.unpack_from(content)
    at = _LENGTH.size + length
    places = {}
    for name, nbytes in json.loads(content[_LENGTH.size : at])["tables"]:
        with pa.ipc.open_stream(whole.slice(at, nbytes)) as reader:
            columns = reader.read_next_batch().columns
        places[name] = [column.buffers()[1].address - whole.address for column in columns]
        at += nbytes
    return places


def plain_entry(kind: type[Any], fields: dict[str, Any]) -> Any:
    """An entry without tables, of its fields as JSON has them."""
    if kind is Loaded:
        fields = {**fields, "file": DataFile(**fields["file"]), "key": tuple(fields.get("key", ()))}
        if final := fields.pop("final", None):  # of format 8
            fields["grown"] = {"final": final}
    elif kind is Uninstalled:
        fields = {"heads": tuple(fields["heads"])}
    elif kind is Installed:
        loaded = tuple(plain_entry(Loaded, each) for each in fields.get("loaded", ()))
        fields = {**fields, "loaded": loaded}
    return kind(**fields)


def _content(head: dict[str, Any], tables: Sequence[pa.Buffer]) -> bytes:
    text = json.dumps(head).encode()
    return b"".join((_LENGTH.pack(len(text)), text, *tables))


def _ipc(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries())
    return sink.getvalue()
