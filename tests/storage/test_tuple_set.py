"""differential: a set of tuples that grows, in each of its forms, against Python's sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.storage.tuple_set import Form, TupleSet

VALUES = st.one_of(
    st.integers(0, 5),
    st.integers(-40, 400),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1]),
)


@given(
    st.integers(1, 3).flatmap(
        lambda arity: st.lists(st.lists(st.tuples(*[VALUES] * arity), max_size=30), min_size=1, max_size=6)
    ),
    st.sampled_from([0, 1 << 10, 1 << 20]),
)
def test_what_is_new_is_what_was_not_there(batches: list[list[tuple[int, ...]]], bits: int) -> None:
    arity = next((len(row) for batch in batches for row in batch), 1)
    tuples, seen = TupleSet(arity, fewest_bits=bits), dict.fromkeys(())
    for batch in batches:
        columns = np.array(batch, np.int64).reshape(-1, arity).T
        new = dict.fromkeys(row for row in batch if row not in seen)
        assert [tuple(row) for row in tuples.add(columns).T.tolist()] == list(new)
        seen |= new
        tuples.check_invariants()
    assert [tuple(row) for row in tuples.since(0).T.tolist()] == list(seen)
    assert list(zip(*(column.tolist() for column in tuples.sorted_columns()), strict=True)) == sorted(seen)


@pytest.mark.parametrize(("spread", "form"), [(1, Form.DENSE), (10**6, Form.PACKED), (1 << 40, Form.HASHED)])
def test_the_form_follows_the_ranges(spread: int, form: Form) -> None:
    tuples = TupleSet(2)
    values = np.arange(2000) * spread
    for _ in range(2):
        tuples.add([values, values[::-1].copy()])
    assert tuples.n_rows == 2000
    assert tuples.form is form
    tuples.check_invariants()


def test_ranges_that_grow_step_by_step_are_copied_rarely() -> None:
    """Values that a rule computes: each round goes beyond the range of all before."""
    tuples = TupleSet(1)
    widened = []
    for value in range(3000):
        places = tuples._numbers
        tuples.add([np.array([value])])
        widened.append(tuples._numbers is not places)
    assert tuples.form is Form.DENSE and sum(widened) < 40


def test_ranges_that_grow_change_the_form() -> None:
    """Bits, then numbers in words, then row numbers: what was there is known to each."""
    tuples = TupleSet(2, fewest_bits=1 << 10)
    forms = []
    for reach in (1, 20, 1 << 12, 1 << 20, 1 << 30, 1 << 31, 1 << 40):
        corners = [np.array([0, reach, 0, reach]), np.array([0, 0, reach, reach])]
        assert tuples.add(corners).shape[1] == (4 if reach == 1 else 3)
        tuples.check_invariants()
        forms.append(tuples.form)
    assert forms[:2] == [Form.DENSE] * 2 and forms[3] is Form.PACKED and forms[-1] is Form.HASHED
    assert [form for form, _ in itertools.groupby(forms)] == list(Form)


def test_rows_that_were_handed_out_stay() -> None:
    tuples = TupleSet(1)
    first = tuples.add([np.arange(5)])
    for start in range(0, 10**5, 1000):
        tuples.add([np.arange(start, start + 1000)])
    assert first.tolist() == [[0, 1, 2, 3, 4]]
