"""Rows whose variables have codes and values: the ones are made of the others when somebody asks.

A search gives codes.  Expressions read values, as Arrow arrays or as whole numbers
(:mod:`lftj.values.unscaled`), and what they compute is a value; a head, a group's key or a join needs codes.

Invariants

1. Of each variable there are codes, or numbers, or both, or it is fetched by one that has codes; whatever
   there is has one length.
2. Numbers without codes are decimals that a dictionary can hold: asking for codes does not fail.

Cost: a column is decoded once, and encoded once, and only if it is read so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa

from lftj.values.dictionary import DecimalDomain
from lftj.values.domain import NULL_CODE
from lftj.values.kinds import kind, plain_type
from lftj.values.schema import ColumnType
from lftj.values.unscaled import Numbers, numbers_of


class FetchedColumns(Protocol):
    """The columns of some rows of a relation."""

    def codes(self, number: int) -> np.ndarray: ...

    def numbers(self, number: int) -> Numbers | None: ...

    def values(self, number: int, wanted: pa.DataType) -> pa.Array: ...


class Fetched(Protocol):
    """A variable that is a column of rows whose codes another variable has."""

    @property
    def row(self) -> str: ...

    @property
    def column(self) -> int: ...

    def columns(self, rows: np.ndarray) -> FetchedColumns: ...


class RowValues(Mapping[str, np.ndarray]):
    """A mapping from variables to their codes, int64; :attr:`arrays` is one to their values.

    >>> from decimal import Decimal
    >>> from lftj.values.domains import Domains
    >>> price = ColumnType(Domains().of(pa.decimal128(4, 2)), pa.decimal128(4, 2))
    >>> codes = price.domain.encode(pa.array([Decimal("1.50"), Decimal("2.25")]))
    >>> rows = RowValues({"p": price}, {"p": codes})
    >>> rows.keep(np.array([1]))
    >>> rows.numbers("p").values.tolist(), rows.arrays["p"].to_pylist()
    ([225], [Decimal('2.25')])
    """

    def __init__(
        self,
        types: Mapping[str, ColumnType],
        codes: Mapping[str, np.ndarray],
        value_types: Mapping[str, pa.DataType] | None = None,
        fetched: Mapping[str, Fetched] | None = None,
    ) -> None:
        """``value_types``: those of the arrays, where they are others than the variables'.

        ``fetched``: variables that are there beside those with codes.
        """
        self.types = types
        self._value_types = value_types
        self._codes = dict(codes)
        self._numbers: dict[str, Numbers] = {}
        self._arrays: dict[str, pa.Array] = {}
        self._fetched = fetched or {}
        self._columns: dict[str, FetchedColumns] = {}  # by the variable of the rows
        self._names = dict.fromkeys((*codes, *self._fetched))

    @property
    def arrays(self) -> Arrays:
        return Arrays(self)

    def __getitem__(self, name: str) -> np.ndarray:
        found = self._codes.get(name)
        if found is None and name not in self._numbers and name in self._fetched:
            fetched = self._fetched[name]
            found = self._codes[name] = self._columns_of(fetched).codes(fetched.column)
        if found is None:
            domain = self.types[name].domain
            assert isinstance(domain, DecimalDomain)
            found = self._codes[name] = domain.encode_unscaled(self._numbers[name])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def numbers(self, name: str) -> Numbers | None:
        """A decimal's or an integer's values as whole numbers; None where they need more, or one is NULL."""
        found = self._numbers.get(name)
        if found is None:
            type_ = self.types[name]
            if name in self._fetched and name not in self._codes and kind(type_.arrow) == "decimal":
                fetched = self._fetched[name]
                found = self._columns_of(fetched).numbers(fetched.column)
            else:
                found = numbers_of_codes(type_, self[name])
            if found is not None:
                self._numbers[name] = found
        return found

    def array(self, name: str) -> pa.Array:
        """A variable's values."""
        found = self._arrays.get(name)
        if found is None:
            type_ = self.types[name]
            arrow = type_.arrow if self._value_types is None else self._value_types[name]
            if name in self._fetched and name not in self._codes:
                fetched = self._fetched[name]
                found = self._columns_of(fetched).values(fetched.column, arrow)
            elif name in self._codes:
                found = type_.domain.decode(self._codes[name], arrow)
            else:
                found = self._numbers[name].array(arrow)
            self._arrays[name] = found
        return found

    def keep(self, places: np.ndarray) -> None:
        """Leave these rows, by their places."""
        self._codes = {name: codes[places] for name, codes in self._codes.items()}
        self._numbers = {
            name: numbers._replace(values=numbers.values[places]) for name, numbers in self._numbers.items()
        }
        self._arrays = {}
        self._columns = {}

    def assign(self, name: str, values: pa.Array | Numbers | np.ndarray) -> None:
        """Give a variable values of its type, or their codes.  Raises RangeError for one that has no code."""
        type_ = self.types[name]
        self._names[name] = None
        if isinstance(values, Numbers):
            self._numbers[name] = values
            return
        if isinstance(values, np.ndarray):
            self._codes[name] = values
            return
        self._arrays[name] = values
        self._codes[name] = type_.encode(values)

    def _columns_of(self, fetched: Fetched) -> FetchedColumns:
        found = self._columns.get(fetched.row)
        if found is None:
            found = self._columns[fetched.row] = fetched.columns(self[fetched.row])
        return found


class Arrays(Mapping[str, pa.Array]):
    """The values of rows, which are decoded when they are asked for."""

    def __init__(self, rows: RowValues) -> None:
        self._rows = rows

    def __getitem__(self, name: str) -> pa.Array:
        return self._rows.array(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def numbers_of_codes(type_: ColumnType, codes: np.ndarray) -> Numbers | None:
    """As :meth:`RowValues.numbers`, of codes of a decimal or integer type.

    >>> from lftj.values.domains import Domains
    >>> numbers_of_codes(ColumnType(Domains().of(pa.int8()), pa.int8()), np.array([3, 1])).most
    3
    """
    if isinstance(type_.domain, DecimalDomain):
        return type_.domain.unscaled(codes, plain_type(type_.arrow).scale)
    numbers = numbers_of(codes, 0)
    return None if numbers.least == NULL_CODE else numbers
