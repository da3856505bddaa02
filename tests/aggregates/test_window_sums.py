"""Exact sums of spans: however rows are cut in pieces, beside Python's fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa

from lftj.aggregates.window_sums import Spans, Sums
from lftj.values.domains import Domains
from lftj.values.schema import ColumnType

FLOATS = (
    (0.5, 3.0, -2.25, 100.0, 0.0),
    (1e16, 1.0, -1e16, 0.1, 0.3),
    (1e308, -1e308, 5e-324, 2.2e-308),
    (5e-324, 1e-310, -5e-324),
    (1e-200, 1e200, -7.5, 1 / 3),
)
WHOLE = (1, -5, 2**62, 2**63 - 1, -(2**62), 2**53 + 1)


def quotient(total: Fraction, n: int) -> float:
    try:
        return total.numerator / (total.denominator * n)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def test_a_sum_goes_on_from_a_state() -> None:
    domains = Domains()
    types = {type_: ColumnType(domains.of(type_), type_) for type_ in (pa.float64(), pa.int64())}
    r = random.Random(1)
    for _ in range(500):
        arrow = r.choice((pa.float64(), pa.float64(), pa.int64()))
        values = r.choices(r.choice(FLOATS) if arrow == pa.float64() else WHOLE, k=r.randint(0, 12))
        codes = types[arrow].domain.encode(pa.array(values, arrow))
        n, cut, average = len(values), r.randint(0, len(values)), r.random() < 0.5
        known, none = np.ones(n, bool), np.zeros(n - cut + 1, np.int64)
        begin = Spans(none[:1], none[:1] + cut, none[:1])
        state = Sums.of(codes[:cut], known[:cut], types[arrow], begin).states(average)
        ends = np.arange(n - cut + 1)
        sums = Sums.of(codes[cut:], known[cut:], types[arrow], Spans(none, ends, none, state))
        whole = Sums.of(codes, known, types[arrow], Spans(none, ends + cut, none))
        assert sums.states(average) == whole.states(average)
        expected = [
            quotient(sum(map(Fraction, values[:end]), Fraction(0)), end if average else 1) if end else None
            for end in range(cut, n + 1)
        ]
        assert sums.doubles(average).to_pylist() == expected
