"""Records: named int64 fields at an address, for kernels and for Python.

    class Cursor(Record):
        "Where a participant stands."

        position: int
        end: int

    cursor_at = record_at(Cursor)               # in kernels: cursor_at(address).position += 1
    Cursor.view(words, 7).position              # in Python: the record that begins at words[7]

A record's fields follow each other in the order in which its class lists them.  Records refer to each other
by address, so a kernel takes one address where it would take an array and an offset of everything.

Invariant: whoever passes an address keeps the memory alive for as long as the kernel may run
(:mod:`indices.array_views`).
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Self

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from indices.array_views import view_of

WORD = 8
"""Bytes of a field."""


class Record:
    """A view of a record: each field that a subclass lists reads and writes one item of an int64 array."""

    FIELDS: ClassVar[tuple[str, ...]]
    PLACES: ClassVar[dict[str, int]]  # of the fields, in items
    LENGTH: ClassVar[int]  # in items
    BYTES: ClassVar[int]

    def __init_subclass__(cls) -> None:
        names = tuple(cls.__annotations__)
        cls.FIELDS, cls.LENGTH, cls.BYTES = names, len(names), WORD * len(names)
        cls.PLACES = {name: place for place, name in enumerate(names)}
        for name, place in cls.PLACES.items():
            setattr(cls, name, _item(place))

    def __init__(self, words: np.ndarray) -> None:
        """``words``: int64, of which the first items are the fields."""
        self._words = words

    @classmethod
    def view(cls, words: np.ndarray, start: int = 0) -> Self:
        """The record that begins at an item of an int64 array, which it keeps alive."""
        return cls(words[start : start + cls.LENGTH])

    @classmethod
    def place(cls, field: str) -> int:
        """Where a field stands, in items."""
        return cls.PLACES[field]

    @classmethod
    def fields(cls, **values: int) -> list[int]:
        """A record's items; what is not given is 0."""
        unknown = values.keys() - set(cls.FIELDS)
        assert not unknown, f"{cls.__name__} has no field {sorted(unknown)}"
        return [int(values.get(name, 0)) for name in cls.FIELDS]

    def __repr__(self) -> str:
        fields = " ".join(f"{name}={self._words[place]}" for place, name in enumerate(self.FIELDS))
        return f"{type(self).__name__}({fields})"


def _item(place: int) -> property:
    def read(record: Record) -> Any:
        return record._words[place]

    def write(record: Record, value: int) -> None:
        record._words[place] = value

    return property(read, write)


def record_at(kind: type[Record]) -> Any:
    """``f(where)``, for kernels: the record at an address."""
    return _plain(kind) if numba.config.DISABLE_JIT else _pointer(kind)


def _plain(kind: type[Record]) -> Any:
    """The same for code that is not compiled."""
    view = view_of(np.int64)

    @functools.lru_cache(maxsize=1 << 12)
    def at(where: int) -> Record:
        return kind(view(where, kind.LENGTH))

    return at


def _pointer(kind: type[Record]) -> Any:
    """Takes the address for that of a record, as numba knows it by its fields."""
    record = numba.from_dtype(np.dtype([(name, np.int64) for name in kind.FIELDS], align=True))

    @intrinsic
    def at(typing_context: Any, where: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(record))

        return record(numba.types.int64), generate

    return at
