"""The interner: byte strings and their codes, numbers that values which are gone give back.

A table of slots with linear probing over a store of bytes.  A table has no holes to fill and
nothing is taken out of it: what is not needed any more is left behind when the others move to
a *following* table, a few at a time, which then takes the place of the table.

Invariants (see :meth:`Interner.check_invariants`)

1. Value c is ``data[starts[c] - 1:ends[c]]`` where ``starts[c]`` is above 0; no two values are equal.
2. As long as a code's value is there it is the same, in the table and in the following one: whoever
   has a table and a code reads the value without a lock.  A code without a value may get another one.
3. Every value's code stands in exactly one slot; from the slot that its hash names up to that one,
   no slot is free.  At most half the slots are taken.
4. While there is a following table, each value that a batch holds or that was kept is in it too.
5. Whoever is interrupted at any point leaves all of this in place: a batch and
   the number of values are written by one kernel call, arrays are filled before
   they take their place.

Cost: O(bytes of the batch) per batch, whatever the number of values.  A new code is looked
for among ``PROBES`` numbers, so that codes are no more than a few per cent beyond what they
have to be.  Arrays that are full are copied at once into larger ones; whoever moves values to a
following table in time, which has room again, never sees that happen (:attr:`Interner.is_nearly_full`).
Beside its bytes a value takes 24 bytes of start, end and hash, and 16 to 32 of slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from indices.compiled import kernel, part
from indices.wrapping import wraps_around
from lftj.values.byte_words import copy_bytes, hash_bytes, same_bytes

PROBES = 64
"""So many numbers are looked at for one that is free, before the next higher one is taken."""

_LEAST_CODES = 1 << 6
_LEAST_BYTES = 1 << 10
_LARGE = 1 << 16
"""A table with fewer values is copied in an instant."""

# -- the numbers of a table ------------------------------------------------------------------
N_CODES = 0  # all codes are below
N_VALUES = 1
N_BYTES = 2
N_CURSOR = 3  # codes below were looked at for one that is free
N_ADDED = 4  # values added since the interner was made
N_FIELDS = 5


class InternTable(NamedTuple):
    """The arrays of an interner; the first axis of ``starts``, ``ends`` and ``hashes`` is the code."""

    data: np.ndarray  # uint8
    starts: np.ndarray  # int64: 1 more than where the value begins; 0 where the code has none
    ends: np.ndarray  # int64
    hashes: np.ndarray  # uint64
    slots: np.ndarray  # int64, a power of two of them: 1 more than the code, 0 where free
    numbers: np.ndarray  # int64 (N_FIELDS,)


def _new_table(n_codes: int, n_bytes: int) -> InternTable:
    """An empty table with room for so many codes and bytes."""
    n_codes, n_bytes = max(n_codes, _LEAST_CODES), max(n_bytes, _LEAST_BYTES)
    return InternTable(
        np.empty(n_bytes, np.uint8),
        np.zeros(n_codes, np.int64),
        np.empty(n_codes, np.int64),
        np.empty(n_codes, np.uint64),
        np.zeros(1 << (2 * n_codes - 1).bit_length(), np.int64),
        np.zeros(N_FIELDS, np.int64),
    )


_NONE = InternTable(
    np.empty(0, np.uint8),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.uint64),
    np.empty(0, np.int64),
    np.zeros(N_FIELDS, np.int64),
)
"""Stands where there is no following table: it has no slots."""


@part
def _found(table, value, n_bytes, wanted):  # type: ignore[no-untyped-def]
    """The code of the value at an address, whose hash is ``wanted``; -1 if it has none."""
    mask = np.uint64(len(table.slots) - 1)
    slot = wanted & mask
    while table.slots[slot] != 0:
        code = table.slots[slot] - 1
        start = table.starts[code] - 1
        if table.hashes[code] == wanted and table.ends[code] - start == n_bytes:
            if same_bytes(table.data.ctypes.data + start, value, n_bytes):
                return code
        slot = (slot + np.uint64(1)) & mask
    return np.int64(-1)


@part
def _enter(table, code, value, n_bytes, wanted):  # type: ignore[no-untyped-def]
    """Give a code that has none the value at an address, whose hash is ``wanted``."""
    numbers = table.numbers
    start = numbers[N_BYTES]
    copy_bytes(value, table.data.ctypes.data + start, n_bytes)
    numbers[N_BYTES] = start + n_bytes
    table.ends[code] = start + n_bytes
    table.hashes[code] = wanted
    table.starts[code] = start + 1
    mask = np.uint64(len(table.slots) - 1)
    slot = wanted & mask
    while table.slots[slot] != 0:
        slot = (slot + np.uint64(1)) & mask
    table.slots[slot] = code + 1
    numbers[N_VALUES] += 1
    numbers[N_CODES] = max(numbers[N_CODES], code + 1)


@part
def _free_code(table):  # type: ignore[no-untyped-def]
    """A code without a value."""
    numbers = table.numbers
    first = numbers[N_CURSOR]
    for code in range(first, min(first + PROBES, numbers[N_CODES])):
        numbers[N_CURSOR] = code + 1
        if table.starts[code] == 0:
            return code
    return numbers[N_CODES]


@part
def code_of(value, n_bytes, table, following, add):  # type: ignore[no-untyped-def]
    """The code of the value at an address; -1 for none.

    table, following: the interner's; written only when ``add``, and then with room for the value.
    """
    wanted = hash_bytes(value, n_bytes)
    code = _found(table, value, n_bytes, wanted)
    if add:
        if code < 0:
            code = _free_code(table)
            _enter(table, code, value, n_bytes, wanted)
            table.numbers[N_ADDED] += 1
        if len(following.slots) and following.starts[code] == 0:
            _enter(following, code, value, n_bytes, wanted)
    return code


@part
def has_room(table, following, n_bytes):  # type: ignore[no-untyped-def]
    """Whether one more value of so many bytes can be entered."""
    code = table.numbers[N_CODES]
    if code >= len(table.starts) or table.numbers[N_BYTES] + n_bytes > len(table.data):
        return False
    if len(following.slots) == 0:
        return True
    return code < len(following.starts) and following.numbers[N_BYTES] + n_bytes <= len(following.data)


@kernel
def _look_up(data, offsets, table, following, add, codes):  # type: ignore[no-untyped-def]
    """Write the code of every value of a batch, -1 for none.

    data: uint8 (bytes,), read-only; offsets: int64 (n + 1,), read-only: value i of the batch is
    ``data[offsets[i]:offsets[i + 1]]``.  table, following: the interner's, with room for
    the whole batch; written only when ``add``.  codes: int64 (n,), written.
    """
    for row in range(len(offsets) - 1):
        value, n_bytes = data.ctypes.data + offsets[row], offsets[row + 1] - offsets[row]
        codes[row] = code_of(value, n_bytes, table, following, add)


@kernel
def _move(table, following, codes, first, last):  # type: ignore[no-untyped-def]
    """See to it that the values of ``codes[first:last]`` are in the following table; where it ended, for want
    of room.

    codes: int64, read-only; those without a value are passed over.
    """
    for place in range(first, last):
        code = codes[place]
        if code < 0 or code >= table.numbers[N_CODES] or table.starts[code] == 0:
            continue
        if following.starts[code] != 0:
            continue
        begin, end = table.starts[code] - 1, table.ends[code]
        if following.numbers[N_BYTES] + end - begin > len(following.data):
            return place
        _enter(following, code, table.data.ctypes.data + begin, end - begin, table.hashes[code])
    return last


@kernel
def _copy(table, larger):  # type: ignore[no-untyped-def]
    """Enter all values of a table into one that is empty and has room for them."""
    for code in range(table.numbers[N_CODES]):
        if table.starts[code] != 0:
            start = table.starts[code] - 1
            _enter(larger, code, table.data.ctypes.data + start, table.ends[code] - start, table.hashes[code])


@kernel
def _measure(table, codes, offsets):  # type: ignore[no-untyped-def]
    """Write where each code's value begins in all of them one after the other: int64, one more than codes.

    codes: int64, read-only.  A code without a value has an empty one.  Returns whether all codes are some.
    """
    offsets[0] = 0
    for place in range(len(codes)):
        code = codes[place]
        if code < 0 or code >= len(table.starts):
            return False
        length = table.ends[code] - table.starts[code] + 1 if table.starts[code] != 0 else 0
        offsets[place + 1] = offsets[place] + length
    return True


@kernel
def _gather(table, codes, offsets, data):  # type: ignore[no-untyped-def]
    """Write the bytes of each code's value: uint8, as long as :func:`_measure` said."""
    for place in range(len(codes)):
        start = table.starts[codes[place]] - 1
        begin, end = offsets[place], offsets[place + 1]
        if end > begin:
            copy_bytes(table.data.ctypes.data + start, data.ctypes.data + begin, end - begin)


class Interner:
    """Not locked: the owner sees to it that one thread at a time calls it, but for :meth:`taken`.

    >>> interner = Interner()
    >>> letters = np.frombuffer(b"oneoneten", dtype=np.uint8)
    >>> interner.codes(letters, np.array([0, 3, 6, 9])).tolist()
    [0, 0, 1]
    >>> interner.find(b"ten"), interner.find(b"two"), len(interner)
    (1, None, 2)
    >>> interner.begin()
    >>> interner.keep(np.array([1]), 0, 1)
    1
    >>> interner.end()
    >>> interner.find(b"ten"), interner.find(b"one"), len(interner)
    (1, None, 1)
    """

    def __init__(self) -> None:
        self._table = _new_table(0, 0)
        self._following = _NONE
        self._n_ends = 0

    def __len__(self) -> int:
        """Number of values."""
        return int(self._table.numbers[N_VALUES])

    def __getstate__(self) -> dict[str, object]:
        """For an image (:mod:`maintenance.image`): less the following table."""
        return {**self.__dict__, "_following": _NONE}

    def __setstate__(self, state: dict[str, object]) -> None:
        """What stands for no following table is one object."""
        self.__dict__.update(state)
        self._following = _NONE

    @property
    def table(self) -> InternTable:
        """To be read: of the codes that one has (invariant 2)."""
        return self._table

    @property
    def following(self) -> InternTable:
        """Where values that stay are brought to; without slots while nothing moves."""
        return self._following

    @property
    def n_codes(self) -> int:
        """All codes are below; some may have no value."""
        return int(self._table.numbers[N_CODES])

    @property
    def n_added(self) -> int:
        """Values that were new to it since it was made."""
        return int(self._table.numbers[N_ADDED])

    @property
    def changes(self) -> int:
        """Another number whenever a code has got a value or lost it."""
        return self.n_added + self._n_ends

    def codes(self, data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Codes of the values ``data[offsets[i]:offsets[i + 1]]``, int64; new values get some that are free.

        ``data`` is uint8, ``offsets`` int64 and one longer than the number of values.
        """
        self.make_room(len(offsets) - 1, int(offsets[-1] - offsets[0]))
        return self._run(data, offsets, True)

    def make_room(self, n_values: int, n_bytes: int) -> None:
        """Have room for so many values more."""
        self._table = _with_room(self._table, self.n_codes + n_values, n_bytes)
        if self.is_moving:
            self._following = _with_room(self._following, self.n_codes + n_values, n_bytes)

    def reserve(self, n_values: int, n_bytes: int) -> None:
        """Have room for so many values more, and a quarter on top, before they come in pieces."""
        codes, used = self.n_codes + n_values, int(self._table.numbers[N_BYTES]) + n_bytes
        self._table = _enlarged(self._table, codes + codes // 4, used + used // 4)

    def find(self, value: bytes) -> int | None:
        """The value's code, or None when it has none."""
        offsets = np.array([0, len(value)], dtype=np.int64)
        codes = self._run(np.frombuffer(value, dtype=np.uint8), offsets, False)
        return int(codes[0]) if codes[0] >= 0 else None

    @wraps_around  # the hash does
    def _run(self, data: np.ndarray, offsets: np.ndarray, add: bool) -> np.ndarray:
        codes = np.empty(len(offsets) - 1, dtype=np.int64)
        _look_up(read_only(data), read_only(offsets), self._table, self._following, add, codes)
        return codes

    def taken(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values of some codes: their bytes one after the other, uint8, and offsets, int64, one more.

        A code without a value has an empty one.  Raises IndexError for what is no code.  O(bytes).
        """
        table, codes = self._table, read_only(np.ascontiguousarray(codes, np.int64))
        offsets = np.empty(len(codes) + 1, np.int64)
        if not _measure(table, codes, offsets):
            raise IndexError("a code is beyond all that there are")
        data = np.empty(int(offsets[-1]), np.uint8)
        _gather(table, codes, offsets, data)
        return data, offsets

    @property
    def has_value(self) -> np.ndarray:
        """Whether each code has a value; bool (n_codes,)."""
        return self._table.starts[: self.n_codes] != 0

    # -- leaving values behind ------------------------------------------------------------

    @property
    def is_moving(self) -> bool:
        """Whether there is a following table."""
        return len(self._following.slots) > 0

    @property
    def is_nearly_full(self) -> bool:
        """Whether a table with room would have to be begun for it to be ready in time."""
        table = self._table
        codes, n_bytes = int(table.numbers[N_CODES]), int(table.numbers[N_BYTES])
        return codes > _LARGE and (8 * codes > 7 * len(table.starts) or 8 * n_bytes > 7 * len(table.data))

    def begin(self) -> None:
        """Begin a following table; from now on :meth:`keep` or a batch brings a value there."""
        codes, n_bytes = self.n_codes, int(self._table.numbers[N_BYTES])
        self._following = _new_table(codes + codes // 2, n_bytes + n_bytes // 2)

    def keep(self, codes: np.ndarray, first: int, last: int) -> int:
        """See to it that the values of ``codes[first:last]`` stay; returns ``last``.

        ``codes``: int64; what is no code, or one without a value, is passed over.
        """
        codes = read_only(np.ascontiguousarray(codes[first:last], np.int64))
        done = 0
        while done < len(codes):
            done = int(_move(self._table, self._following, codes, done, len(codes)))
            if done < len(codes):
                self._following = _with_room(self._following, 0, len(self._following.data))
        return last

    @property
    def kept(self) -> np.ndarray:
        """Whether each code has a value in the following table; bool (n_codes,)."""
        return self._following.starts[: self.n_codes] != 0

    def end(self) -> None:
        """Values that were not brought to the following table are gone, and their codes free."""
        following = self._following
        following.numbers[N_ADDED] = self.n_added
        following.numbers[N_CURSOR] = 0
        self._n_ends, self._table, self._following = self._n_ends + 1, following, _NONE

    @property
    def hashes(self) -> np.ndarray:
        """The hash of every value by its code, uint64: the same in every process."""
        return self._table.hashes[: self.n_codes]

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return sum(array.nbytes for table in (self._table, self._following) for array in table)

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        values = _check_table(self._table)
        assert all(self.find(value) == code for code, value in values.items()), "no free slot before"
        if self.is_moving:
            following = _check_table(self._following)
            assert following.items() <= values.items(), "a value is the same in both tables"
            assert len(self._following.starts) >= self.n_codes


def _with_room(table: InternTable, codes: int, n_bytes: int) -> InternTable:
    """The table, or a larger one with the same values: for codes below ``codes`` and so many more bytes."""
    used = int(table.numbers[N_BYTES]) + n_bytes
    if codes <= len(table.starts) and used <= len(table.data):
        return table
    return _enlarged(
        table,
        max(2 * len(table.starts), codes + codes // 4) if codes > len(table.starts) else 0,
        max(2 * len(table.data), used + used // 4) if used > len(table.data) else 0,
    )


def _enlarged(table: InternTable, n_codes: int, n_bytes: int) -> InternTable:
    """The same values with room for so many codes and bytes, and for no fewer than before."""
    larger = _new_table(max(len(table.starts), n_codes), max(len(table.data), n_bytes))
    _copy(table, larger)
    larger.numbers[:] = table.numbers
    return larger


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that may not be written to, whatever came in, so that kernels are compiled once."""
    array = array.view()
    array.flags.writeable = False
    return array


def _check_table(table: InternTable) -> dict[int, bytes]:
    """The values by code, given that the invariants of a table hold."""
    codes = np.flatnonzero(table.starts).tolist()
    values = {code: table.data[table.starts[code] - 1 : table.ends[code]].tobytes() for code in codes}
    assert all(code < table.numbers[N_CODES] for code in codes), "all codes are below"
    assert len(values) == table.numbers[N_VALUES]
    assert len(set(values.values())) == len(values), "no two values are equal"
    taken = table.slots[table.slots != 0] - 1
    assert sorted(taken.tolist()) == codes, "every code stands in one slot"
    assert 2 * len(taken) <= len(table.slots), "half the slots are free"
    assert sum(map(len, values.values())) == table.numbers[N_BYTES] <= len(table.data)
    return values
