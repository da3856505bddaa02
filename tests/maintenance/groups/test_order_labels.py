"""stateful: order labels against sorted lists of values, with much room for new ones and with hardly any."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from indices.housekeeping import housekeeping
from indices.sorted_chunks import CHUNK
from lftj.values.domains import Domains
from maintenance.groups.order_labels import SPACING, OrderLabels

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "string": (pa.string(), st.text("abé\N{GRINNING FACE}ﬀ", max_size=4)),
    "binary": (pa.binary(), st.binary(max_size=2)),
    "decimal": (pa.decimal128(6, 2), st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2))),
}


def in_order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


class OrderLabelsMachine(RuleBasedStateMachine):
    @initialize(kind=st.sampled_from(sorted(KINDS)), spacing=st.sampled_from([1, 2, 5, SPACING]))
    def begin(self, kind: str, spacing: int) -> None:
        self.arrow, self.values = KINDS[kind]
        self.domain = Domains().of(self.arrow)
        self.labels = OrderLabels(self.domain, spacing)
        self.given: dict[Any, int] = {}
        self.generation = 0

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        values = data.draw(st.lists(self.values, max_size=12))
        codes = self.domain.encode(pa.array(values, self.arrow))
        labels = self.labels.labels(codes)
        if self.labels.generation != self.generation:
            assert self.labels.generation == self.generation + 1
            self.generation = self.labels.generation
            known = list(self.given)
            again = self.labels.labels(self.domain.encode(pa.array(known, self.arrow)))
            self.given = dict(zip(known, again.tolist(), strict=True))
        for value, label in zip(values, labels.tolist(), strict=True):
            assert self.given.setdefault(value, label) == label
        assert self.labels.codes(labels).tolist() == codes.tolist()

    @rule(data=st.data())
    def a_value_that_is_not_asked_for(self, data: st.DataObject) -> None:
        self.domain.encode(pa.array([data.draw(self.values)], self.arrow))

    @invariant()
    def labels_are_in_the_order_of_values(self) -> None:
        self.labels.check_invariants()
        assert len(self.labels) == len(self.given)
        by_label = sorted(self.given, key=self.given.__getitem__)
        assert by_label == sorted(self.given, key=in_order)


TestOrderLabelsMachine = OrderLabelsMachine.TestCase
TestOrderLabelsMachine.settings = settings(stateful_step_count=20)


def test_one_gap_takes_a_value_for_each_bit_of_the_spacing() -> None:
    """Each in the gap that the one before has left, now behind it and now before it."""
    string = Domains().of(pa.string())
    labels = OrderLabels(string, spacing=1 << 20)
    labels.labels(string.encode(pa.array(["a", "c"])))
    low, high = 0, 1 << 24
    for number in range(21):
        assert labels.generation == 0
        middle = (low + high) // 2
        labels.labels(string.encode(pa.array([f"b{middle:08}"])))
        labels.check_invariants()
        low, high = (middle, high) if number % 2 else (low, middle)
    assert labels.generation == 1


@pytest.mark.in_turns
@pytest.mark.parametrize("downwards", [False, True])
def test_one_gap_takes_many_values_that_come_in_order(downwards: bool) -> None:
    """And what each of them moves is a stated number, however many there are."""
    string = Domains().of(pa.string())
    labels = OrderLabels(string)
    labels.labels(string.encode(pa.array(["a", "c"])))
    most = 0
    for number in range(1300):  # chunks are cut on the way
        before = housekeeping.rows
        labels.labels(string.encode(pa.array([f"b{9999 - number if downwards else number:04}"])))
        most = max(most, housekeeping.rows - before)
    assert labels.generation == 0 and most <= 2 * 2 * CHUNK
    labels.check_invariants()


def test_many_values_that_come_at_the_ends_need_no_renumbering() -> None:
    string = Domains().of(pa.string())
    labels = OrderLabels(string)
    for number in range(1, 200):
        labels.labels(string.encode(pa.array([f"m{number:03}", f"m-{999 - number}"])))
    assert labels.generation == 0
    labels.check_invariants()


def test_labels_that_would_leave_64_bits_are_numbered_again() -> None:
    string = Domains().of(pa.string())
    labels = OrderLabels(string, spacing=1 << 60)
    for number in range(20):
        labels.labels(string.encode(pa.array([f"{number:02}"])))
        labels.check_invariants()
    assert labels.generation > 0


def test_no_values() -> None:
    labels = OrderLabels(Domains().of(pa.string()))
    assert labels.labels(np.empty(0, np.int64)).tolist() == []
    assert len(labels) == labels.nbytes == 0


def test_an_ordered_domain_has_no_labels() -> None:
    with pytest.raises(ValueError, match="the codes of domain integer are in order"):
        OrderLabels(Domains().of(pa.int64()))
