"""Values that a program reads and enters by their codes: dictionaries by address, and what kernels do there.

Invariants

1. While a kernel runs the arrays stand where it looks: whoever runs it holds them, and has looked behind the
   last value that was staged (:meth:`Dictionaries.running`).
2. What is entered has room that is looked for before each value; who enters holds the dictionary's lock.  A
   code that is found there is held by the lease of the program (:mod:`maintenance.machine.interned_values`).

Cost: of a commit a look at each dictionary; of a value that is entered its bytes, twice.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property

import numpy as np

from indices.array_views import view_of
from indices.compiled import part
from indices.keys import KEY_MIN
from indices.records import Record, record_at
from indices.wrapping import wraps_around
from lftj.memory import address, view
from lftj.values.byte_words import view8
from lftj.values.dictionary import DictionaryDomain
from lftj.values.domain import Domain
from lftj.values.interner import N_CODES, N_FIELDS, InternTable, code_of, has_room
from lftj.values.rows import RowDomain, integer_in, is_null_in, stretch_in
from lftj.values.unscaled import (
    NO_NUMBER,
    SCALE,
    VALUE_BYTES,
    VALUE_WORDS,
    number_at,
    write_value,
)
from maintenance.machine.answers import Answered

ENTERED_VALUES, ENTERED_BYTES = 1 << 9, 1 << 15
"""Room that there is for what a commit enters; with more it goes the general way."""

view_u64 = view_of(np.uint64)


class Dictionary(Record):
    """The arrays of an interner's table (:class:`lftj.values.interner.InternTable`)."""

    data: int
    n_data: int
    starts: int
    ends: int
    hashes: int
    n_codes: int  # that the three have room for
    slots: int
    n_slots: int
    numbers: int
    following: int  # Dictionary


class Fetched(Record):
    """A column of a wide relation, and how its values stand in the rows."""

    rows: int  # Dictionary
    column: int
    start: int
    width: int  # 0 of what varies
    is_signed: int
    block_bytes: int
    lengths: int  # of texts: places of the lengths of those that come before, and of this one; how many
    n_lengths: int
    values: int  # Dictionary of texts


class Decimals(Record):
    """A decimal's code and its number, in units of some digit."""

    values: int  # Dictionary
    digits: int  # that the dictionary has behind that
    words: int  # of VALUE_WORDS, and the bytes of a value, which are written
    written: int


dictionary_at = record_at(Dictionary)
fetched_at = record_at(Fetched)
decimals_at = record_at(Decimals)


@part
def table_at(where):
    its = dictionary_at(where)
    return InternTable(
        view8(its.data, its.n_data),
        view(its.starts, its.n_codes),
        view(its.ends, its.n_codes),
        view_u64(its.hashes, its.n_codes),
        view(its.slots, its.n_slots),
        view(its.numbers, N_FIELDS),
    )


@part
def value_at(where, code):
    """The address of a code's value, or 0."""
    its = dictionary_at(where)
    if code < 0 or code >= min(view(its.numbers, N_FIELDS)[N_CODES], its.n_codes):
        return np.int64(0)
    start = view(its.starts, its.n_codes)[code]
    return its.data + start - 1 if start > 0 else np.int64(0)


@part
def entered(where, value, n_bytes):
    """The code of a value at an address, which is entered where it has none; -1 for want of room."""
    table, following = table_at(where), table_at(dictionary_at(where).following)
    if not has_room(table, following, n_bytes):
        return np.int64(-1)
    return code_of(value, n_bytes, table, following, True)


@part
def fetch(its, code):
    """A number of the row of this code; KEY_MIN for NULL, or one that has none."""
    row = value_at(its.rows, code)
    if row == 0 or is_null_in(row, its.column):
        return np.int64(KEY_MIN)
    return integer_in(row, its.start, its.width, its.is_signed != 0)


@part
def is_there(its, code):
    """Whether the row of this code has a value, 1 or 0; KEY_MIN where there is no row."""
    row = value_at(its.rows, code)
    if row == 0:
        return np.int64(KEY_MIN)
    return np.int64(0 if is_null_in(row, its.column) else 1)


@part
def fetch_text(its, code):
    """The code of a text of the row of this code; below 0 for NULL and for want of room."""
    row = value_at(its.rows, code)
    if row == 0 or is_null_in(row, its.column):
        return np.int64(-1)
    start, length = its.start, its.width
    if length == 0:
        start, length = stretch_in(row, its.block_bytes, view(its.lengths, its.n_lengths))
    return entered(its.values, row + start, length)


@part
def decode(its, code):
    """The number of a decimal's code; KEY_MIN for none."""
    value = value_at(its.values, code)
    if value == 0:
        return np.int64(KEY_MIN)
    number = number_at(value, its.digits, view(its.words, VALUE_WORDS))
    return np.int64(KEY_MIN) if number == NO_NUMBER else number


@part
def encode(its, number):
    """The code of a decimal's number; below 0 for want of room."""
    write_value(number, its.digits, view(its.words, VALUE_WORDS), its.written)
    return entered(its.values, its.written, VALUE_BYTES)


class _Known:
    """A dictionary that is read, and its record."""

    def __init__(self, domain: DictionaryDomain) -> None:
        self.domain = domain
        self.enters = False
        self.words, self._next = (np.zeros(Dictionary.LENGTH, np.int64) for _ in range(2))
        Dictionary(self.words).following = address(self._next)
        self._tables: tuple[InternTable, InternTable] | None = None  # whose addresses are there

    def look(self) -> None:
        """Have the record tell of the tables as they are."""
        domain = self.domain
        if isinstance(domain, RowDomain):
            domain.enter_waiting()
        interner = domain.interner
        if self.enters:
            interner.make_room(ENTERED_VALUES, ENTERED_BYTES)
        tables = self._tables
        if tables is None or tables[0] is not interner.table or tables[1] is not interner.following:
            self._tables = tables = interner.table, interner.following
            for words, table in zip((self.words, self._next), tables, strict=True):
                its = Dictionary(words)
                arrays = table.data, table.starts, table.ends, table.hashes, table.slots, table.numbers
                its.data, its.starts, its.ends, its.hashes, its.slots, its.numbers = map(address, arrays)
                its.n_data, its.n_codes, its.n_slots = len(table.data), len(table.starts), len(table.slots)


class Dictionaries:
    """All that a program reads, enters into, or asks for."""

    def __init__(self) -> None:
        self.known: dict[DictionaryDomain, _Known] = {}
        """Where each stands."""
        self.answers: list[Answered] = []
        """To what Python computes."""
        self.without_null: set[Domain] = set()
        """Those that kept no NULL when the code was written that may give it."""
        self._kept: list[np.ndarray] = []

    def fetched(self, rows: RowDomain, column: int, values: DictionaryDomain | None = None) -> int:
        """The address of a Fetched.  ``column``: from 0 on; ``values``: the dictionary of texts."""
        place, width = rows.in_block[column]
        lengths = [own for own, width in rows.in_block[: column + 1] if not width]
        fields = {
            "rows": self._at(rows),
            "column": column,
            "start": place,
            "width": width,
            "is_signed": rows.is_signed(column),
            "block_bytes": rows.block_bytes,
            "lengths": self._keep(lengths),
            "n_lengths": len(lengths),
            "values": 0 if values is None else self._at(values, enters=True),
        }
        return self._keep(Fetched.fields(**fields))

    def decimals(self, domain: DictionaryDomain, scale: int, enters: bool) -> int:
        """The address of a Decimals, of numbers in units of ``10**-scale``."""
        words, written = self._keep([0] * VALUE_WORDS), self._keep([0] * (VALUE_BYTES // 8))
        values = self._at(domain, enters)
        return self._keep(Decimals.fields(values=values, digits=SCALE - scale, words=words, written=written))

    @wraps_around
    def running(self, kernel: Callable[[int], int], where: int) -> int:
        """What a kernel gives, run while all stands where it looks."""
        with ExitStack() as locks:
            for known in self._entered:
                locks.enter_context(known.domain.lock)
            self.look()
            return kernel(where)

    def look(self) -> None:
        """See where all stands."""
        for known in self.known.values():
            known.look()

    @cached_property
    def _entered(self) -> list[_Known]:
        """In an order that all programs have, as they hold several locks."""
        entered = [known for known in self.known.values() if known.enters]
        return sorted(entered, key=lambda known: id(known.domain))

    def _at(self, domain: DictionaryDomain, enters: bool = False) -> int:
        known = self.known.setdefault(domain, _Known(domain))
        known.enters |= enters
        return address(known.words)

    def _keep(self, items: Sequence[int]) -> int:
        self._kept.append(np.array(items, np.int64))
        return address(self._kept[-1])
