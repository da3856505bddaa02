"""stateful: the interner against a dict, while some values move to a following table and others do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.values.interner import Interner

BYTES = st.binary(max_size=6)
BATCHES = st.lists(BYTES, max_size=40)


def codes_of(interner: Interner, batch: list[bytes]) -> list[int]:
    offsets = np.cumsum([0, *map(len, batch)])
    codes: list[int] = interner.codes(np.frombuffer(b"".join(batch), dtype=np.uint8), offsets).tolist()
    return codes


def value_of(interner: Interner, code: int) -> bytes:
    data, offsets = interner.taken(np.array([code]))
    assert offsets.tolist() == [0, len(data)]
    return data.tobytes()


@pytest.mark.kernel
@given(st.lists(BATCHES, max_size=5))
def test_codes_are_in_the_order_of_first_appearance(batches: list[list[bytes]]) -> None:
    interner = Interner()
    expected: dict[bytes, int] = {}
    for batch in batches:
        assert codes_of(interner, batch) == [expected.setdefault(value, len(expected)) for value in batch]
        interner.check_invariants()
    assert len(interner) == len(expected)


STEPS = st.one_of(
    st.tuples(st.just("batch"), BATCHES),
    st.tuples(st.just("keep"), st.lists(st.integers(-2, 60), max_size=20)),
    st.tuples(st.just("begin"), st.none()),
    st.tuples(st.just("end"), st.none()),
)


@pytest.mark.kernel
@given(st.lists(STEPS, max_size=20))
def test_what_is_kept_or_comes_stays(steps: list[tuple[str, list[int] | list[bytes] | None]]) -> None:
    interner = Interner()
    there: dict[bytes, int] = {}
    stays: set[bytes] = set()
    for what, argument in steps:
        if what == "batch":
            batch: list[bytes] = argument  # type: ignore[assignment]
            codes = codes_of(interner, batch)
            for value, code in zip(batch, codes, strict=True):
                assert there.setdefault(value, code) == code, "a value keeps its code"
            assert len(set(there.values())) == len(there), "a code has one value"
            stays.update(batch)
        elif what == "begin":
            interner.begin()
            stays.clear()
        elif what == "keep" and interner.is_moving:
            wanted: list[int] = argument  # type: ignore[assignment]
            assert interner.keep(np.array(wanted, np.int64), 0, len(wanted)) == len(wanted)
            stays.update(value for value, code in there.items() if code in wanted)
        elif what == "end" and interner.is_moving:
            interner.end()
            there = {value: code for value, code in there.items() if value in stays}
        interner.check_invariants()
        assert len(interner) == len(there)
        assert {value: value_of(interner, code) for value, code in there.items()} == {v: v for v in there}
        assert {value: interner.find(value) for value in there} == there
        assert np.flatnonzero(interner.has_value).tolist() == sorted(there.values())


def test_a_window_of_values_takes_as_much_memory_however_long_it_moves() -> None:
    interner, n_bytes, n_codes = Interner(), [], []
    for turn in range(40):
        codes = np.array(codes_of(interner, [b"%08d" % (turn * 500 + i) for i in range(1000)]))
        interner.begin()
        interner.keep(codes, 500, 1000)
        interner.end()
        n_bytes.append(interner.nbytes)
        n_codes.append(interner.n_codes)
    assert len(interner) == 500
    assert max(n_bytes[10:]) == max(n_bytes[:10])
    assert max(n_codes) <= 1100, "free codes are found again"


def test_a_code_beyond_all_is_refused() -> None:
    interner = Interner()
    with pytest.raises(IndexError, match="beyond"):
        interner.taken(np.array([1 << 40]))


def test_without_room_values_are_copied_to_larger_arrays_amid_a_move() -> None:
    interner = Interner()
    first = codes_of(interner, [b"a" * 300, b"b" * 300, b"c" * 300])
    interner.begin()
    more = codes_of(interner, [b"%d" % i * 50 for i in range(500)])
    interner.keep(np.array(first), 0, 2)
    interner.check_invariants()
    interner.end()
    interner.check_invariants()
    assert len(interner) == 502
    assert value_of(interner, first[1]) == b"b" * 300
    assert value_of(interner, more[-1]) == b"499" * 50
