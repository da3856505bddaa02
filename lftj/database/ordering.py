"""`order_by=` and `limit=`: the first rows of a result in an order that depends on nothing but the rows.

Invariants

1. Rows that agree in what is asked for are in the order of the head's other columns, from left to right.  So
   the same data give the same rows, whatever the plan, the threads and the order of the search.
2. Order is that of the values, as comparisons have it; NaN comes after all numbers, and NULL is last,
   whether the order is ascending or descending.

Cost: a sort of all rows; with ``limit`` no more than twice as many rows and a batch are held.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from lftj.errors import OrderError, UnknownColumnError
from lftj.language.diagnostics import suggestion
from lftj.values.domain import NULL_CODE, Domain
from lftj.values.schema import Schema

Columns = list[np.ndarray]
"""Code columns, of one length."""

OrderBy = str | Sequence[str]
"""``"price desc, item"`` or ``["price desc", "item"]``."""

_KEY = re.compile(r"\s*(\w+)(?:\s+(asc|desc))?\s*", re.IGNORECASE)
_SPARE_ROWS = 1 << 16


class Ordering:
    """Which rows of a head are wanted, in which order.

    >>> import pyarrow as pa
    >>> from lftj.values.domains import Domains
    >>> from lftj.values.schema import Column, ColumnType
    >>> integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    >>> schema = Schema((Column("a", integer), Column("b", integer)))
    >>> batches = [[np.array([1, 2]), np.array([5, 7])], [np.array([3]), np.array([7])]]
    >>> (found,) = Ordering(schema, "b desc", 2).applied(batches)
    >>> [column.tolist() for column in found]
    [[2, 3], [7, 7]]
    """

    def __init__(self, schema: Schema, order_by: OrderBy | None, limit: int | None) -> None:
        """Raises UnknownColumnError, OrderError for what is no list of columns, and ValueError."""
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise ValueError(f"limit must be a number of rows, 0 or more, not {limit!r}")
        names = [column.name for column in schema.columns]
        self._types = [column.type for column in schema.columns]
        self._limit = limit
        wanted = [_key(written, names) for written in _written(order_by)]
        for place, (column, _) in enumerate(wanted):
            if column in [earlier for earlier, _ in wanted[:place]]:
                raise OrderError(f"order_by= names the column {names[column]!r} twice")
        rest = [(column, False) for column in range(len(names)) if column not in dict(wanted)]
        self._keys = [*wanted, *rest]

    def applied(self, batches: Iterable[Columns]) -> Iterator[Columns]:
        """The wanted rows of all batches, in one batch if there are any."""
        held: list[Columns] = []
        n_held = 0
        for columns in batches:
            held.append(columns)
            n_held += len(columns[0])
            if self._limit is not None and n_held > 2 * self._limit + _SPARE_ROWS:
                held = [self._first(held)]
                n_held = len(held[0][0])
        if held:
            yield self._first(held)

    def _first(self, held: Sequence[Columns]) -> Columns:
        columns = [np.concatenate(parts) for parts in zip(*held, strict=True)]
        keys = [part for key in reversed(self._keys) for part in self._sorted_by(columns, *key)]
        rows = np.lexsort(keys)[: self._limit]
        return [column[rows] for column in columns]

    def _sorted_by(self, columns: Columns, column: int, descending: bool) -> list[np.ndarray]:
        """Numbers that say the order of a column's values, the last of them first."""
        type_, codes = self._types[column], columns[column]
        if not type_.nullable:
            places = _places(type_.domain, codes)
            return [~places if descending else places]
        missing = codes == NULL_CODE
        places = np.zeros(len(codes), np.int64)
        places[~missing] = _places(type_.domain, codes[~missing])
        return [~places if descending else places, missing]


def _places(domain: Domain, codes: np.ndarray) -> np.ndarray:
    return codes if domain.ordered else domain.places(codes)[0]


def _written(order_by: OrderBy | None) -> Sequence[str]:
    if order_by is None:
        return ()
    return order_by.split(",") if isinstance(order_by, str) else order_by


def _key(written: object, names: Sequence[str]) -> tuple[int, bool]:
    """A column's number, and whether it is descending."""
    key = _KEY.fullmatch(written) if isinstance(written, str) else None
    if key is None:
        raise OrderError(f'order_by= takes columns, such as "a" or "a desc", not {written!r}')
    name, direction = key.groups()
    if name not in names:
        raise UnknownColumnError(f"order_by= names no column {name!r} of the result{suggestion(name, names)}")
    return names.index(name), (direction or "").lower() == "desc"


def wanted_rows(
    schema: Schema, order_by: OrderBy | None, limit: int | None
) -> Callable[[Iterable[Columns]], Iterator[Columns]]:
    """What takes the wanted rows of a head's batches; all of them as they come where nothing is asked.

    Raises as :class:`Ordering` does.
    """
    return iter if order_by is None and limit is None else Ordering(schema, order_by, limit).applied
