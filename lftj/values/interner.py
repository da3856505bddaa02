"""The interner: byte strings numbered in the order of first appearance.

A table of slots with linear probing, over an append-only store of bytes.

Invariants (see :meth:`Interner.check_invariants`)

1. Value c is ``data[starts[c]:starts[c + 1]]``; no two values are equal.
2. ``data`` and ``starts`` only grow at their end: whoever holds them and the
   number of values sees the same values for ever, without a lock.
3. Every value's code stands in exactly one slot; from the slot that its hash
   names up to that one, no slot is free.  At most half the slots are taken.
4. Whoever is interrupted at any point leaves all of this in place: a batch and
   the number of values are written by one kernel call, arrays are filled before
   they take their place.

Cost: O(bytes of the batch) per batch, whatever the number of values; arrays
double when full.  Beside its bytes a value takes 8 bytes of start, 8 of hash
and 16 to 32 of slots.
"""

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part

_FREE = -1


@part
def _hash(data, begin, end):  # type: ignore[no-untyped-def]
    """FNV-1a of 64 bits over ``data[begin:end]``, its halves mixed because slots use the low bits."""
    value = np.uint64(0xCBF29CE484222325)
    for place in range(begin, end):
        value = (value ^ np.uint64(data[place])) * np.uint64(0x100000001B3)
    return value ^ (value >> np.uint64(29))


@kernel
def _look_up(data, offsets, stored, starts, hashes, slots, n_values, add, codes):  # type: ignore[no-untyped-def]
    """Write the code of every value of a batch, -1 for none.

    data: uint8 (bytes,), read-only; offsets: int64 (n + 1,), read-only: value i of the batch is
    ``data[offsets[i]:offsets[i + 1]]``.  stored, starts, hashes, slots: the interner's, with room for
    the whole batch; written only when ``add``.  n_values: int64 (1,), the number of values, likewise.
    codes: int64 (n,), written.
    """
    n_stored = n_values[0]
    mask = np.uint64(len(slots) - 1)
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        wanted = _hash(data, begin, end)
        slot = wanted & mask
        code = slots[slot]
        while code != _FREE:
            start = starts[code]
            if hashes[code] == wanted and starts[code + 1] - start == end - begin:
                same = 0
                while same < end - begin and stored[start + same] == data[begin + same]:
                    same += 1
                if same == end - begin:
                    break
            slot = (slot + np.uint64(1)) & mask
            code = slots[slot]
        if code == _FREE and add:
            code = n_stored
            n_stored += 1
            start = starts[code]
            for place in range(end - begin):
                stored[start + place] = data[begin + place]
            starts[code + 1] = start + end - begin
            hashes[code] = wanted
            slots[slot] = code
        codes[row] = code
    if add:
        n_values[0] = n_stored


@kernel
def _fill_slots(hashes, n_stored, slots):  # type: ignore[no-untyped-def]
    """Put the codes 0 to ``n_stored`` - 1 into ``slots``: int64, free, a power of two of them."""
    mask = np.uint64(len(slots) - 1)
    for code in range(n_stored):
        slot = hashes[code] & mask
        while slots[slot] != _FREE:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = code


class Interner:
    """Not locked: the owner sees to it that one thread at a time calls it.

    >>> interner = Interner()
    >>> letters = np.frombuffer(b"oneoneten", dtype=np.uint8)
    >>> interner.codes(letters, np.array([0, 3, 6, 9])).tolist()
    [0, 0, 1]
    >>> interner.find(b"ten"), interner.find(b"two"), len(interner)
    (1, None, 2)
    """

    def __init__(self) -> None:
        self.data = np.empty(1 << 10, dtype=np.uint8)
        self.starts = np.zeros((1 << 6) + 1, dtype=np.int64)
        self._hashes = np.empty(1 << 6, dtype=np.uint64)
        self._slots = np.full(1 << 7, _FREE, dtype=np.int64)
        self._n_values = np.zeros(1, dtype=np.int64)  # in an array, for the kernel to write

    def __len__(self) -> int:
        return int(self._n_values[0])

    def codes(self, data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Codes of the values ``data[offsets[i]:offsets[i + 1]]``, int64; new values get the next ones.

        ``data`` is uint8, ``offsets`` int64 and one longer than the number of values.
        """
        self._reserve(len(offsets) - 1, int(offsets[-1] - offsets[0]))
        return self._run(data, offsets, True)

    def find(self, value: bytes) -> int | None:
        """The value's code, or None when it has none."""
        offsets = np.array([0, len(value)], dtype=np.int64)
        codes = self._run(np.frombuffer(value, dtype=np.uint8), offsets, False)
        return int(codes[0]) if codes[0] != _FREE else None

    def _run(self, data: np.ndarray, offsets: np.ndarray, add: bool) -> np.ndarray:
        # Read-only whatever came in, so that the kernel is compiled once.
        data, offsets = data.view(), offsets.view()
        data.flags.writeable = offsets.flags.writeable = False
        codes = np.empty(len(offsets) - 1, dtype=np.int64)
        with np.errstate(over="ignore"):  # the hash wraps around, also when kernels run as plain Python
            _look_up(
                data, offsets, self.data, self.starts, self._hashes, self._slots, self._n_values, add, codes
            )
        return codes

    def _reserve(self, n_values: int, n_bytes: int) -> None:
        """Room for that many more values and bytes; arrays that are too small are replaced, never resized."""
        here = len(self)
        used, needed = int(self.starts[here]), here + n_values
        if used + n_bytes > len(self.data):
            grown = np.empty(max(2 * len(self.data), used + n_bytes), dtype=np.uint8)
            grown[:used] = self.data[:used]
            self.data = grown
        if needed > len(self._hashes):
            capacity = max(2 * len(self._hashes), needed)
            starts = np.zeros(capacity + 1, dtype=np.int64)
            starts[: here + 1] = self.starts[: here + 1]
            hashes = np.empty(capacity, dtype=np.uint64)
            hashes[:here] = self._hashes[:here]
            self.starts, self._hashes = starts, hashes
        if 2 * needed > len(self._slots):
            slots = np.full(1 << (2 * needed - 1).bit_length(), _FREE, dtype=np.int64)
            _fill_slots(self._hashes, here, slots)
            self._slots = slots

    @property
    def hashes(self) -> np.ndarray:
        """The hash of every value by its code, uint64: the same in every process."""
        return self._hashes[: len(self)]

    @property
    def nbytes(self) -> int:
        """Memory taken, room for growth included."""
        return self.data.nbytes + self.starts.nbytes + self._hashes.nbytes + self._slots.nbytes

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the module header."""
        values = [self.data[self.starts[code] : self.starts[code + 1]].tobytes() for code in range(len(self))]
        assert len(set(values)) == len(values), "no two values are equal"
        taken = self._slots[self._slots != _FREE]
        assert sorted(taken.tolist()) == list(range(len(self))), "every code stands in one slot"
        assert 2 * len(taken) <= len(self._slots), "half the slots are free"
        assert all(self.find(value) == code for code, value in enumerate(values)), (
            "no free slot before a value's"
        )
