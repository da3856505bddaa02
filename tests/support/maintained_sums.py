"""A maintained count, sum or avg beside the multiset that it is of, for tests.

The reference keeps the assignments themselves and adds up exact fractions; every
step is compared with it, and so is what a step that is dropped leaves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lftj.errors import RangeError
from lftj.language.body import CheckedHead
from lftj.language.syntax import Aggregate, Variable
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema
from maintenance.groups.grouped import GroupedAggregate, accumulator_for
from maintenance.groups.sums import GroupSums
from maintenance.groups.whole_sums import WholeSums

Change = tuple[int, Any, int]
"""Key, value, weight."""


def nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def exact(values: Sequence[Any], average: bool) -> Any:
    """The sum or average of values; specials as IEEE 754 adds them."""
    special = [value for value in values if isinstance(value, float) and not math.isfinite(value)]
    if special:
        return math.fsum(special) if len({*map(repr, special)}) == 1 else math.nan
    total = sum(map(Fraction, values), Fraction(0))
    if average:
        return nearest(total / len(values)) + 0.0  # a quotient that underflows is 0.0, never -0.0
    return nearest(total) if isinstance(values[0], float) else total


class Maintained:
    """One aggregate head with one key variable (or none), its assignments beside it."""

    def __init__(self, function: str, value: pa.DataType, result: pa.DataType, keys: int = 1) -> None:
        self.function, self.value, self.result, self.n_keys = function, value, result, keys
        domains = Domains()
        integer = ColumnType(domains.of(pa.int64()), pa.int64())
        names = ("k",)[:keys]
        self.types = {"k": integer, "v": ColumnType(domains.of(value), value)}
        self.declared = ColumnType(domains.of(result), result)
        schema = Schema((*(Column(name, integer) for name in names), Column("total", self.declared)), True)
        arguments = () if function == "count" else (Variable("v"),)
        self.head = CheckedHead("total", names, Aggregate(function, arguments), schema, (0, 0))
        self.restart()

    def restart(self) -> None:
        self.multiset: Counter[tuple[int, int]] = Counter()  # key, value code
        self.groups = GroupedAggregate(self.head, self.types, accumulator_for(self.head, self.types))

    @property
    def sums(self) -> GroupSums:
        assert isinstance(self.groups._accumulator, GroupSums)
        return self.groups._accumulator

    @property
    def n_limbs(self) -> int:
        """Limbs in use; of whole numbers the sums that are not 0."""
        if isinstance(self.groups._accumulator, WholeSums):
            return int(self.groups._accumulator._sums.any(axis=1).sum())
        return 0 if self.function == "count" else self.sums.n_limbs

    def codes(self, changes: Sequence[Change]) -> np.ndarray:
        return self.types["v"].domain.encode(pa.array([value for _, value, _ in changes], self.value))

    def stage(self, keys: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> dict[int, Any]:
        """The change of the head: key to (old value, new value), None for one that is not there."""
        columns = [keys][: self.n_keys] + [codes] * (self.function != "count")
        rows, signs = self.groups.stage(columns, weights)
        order = np.lexsort(rows[::-1])
        assert order.tolist() == list(range(len(signs)))
        change: dict[int, Any] = {}
        values = self.declared.domain.decode(rows[-1], self.result).to_pylist()
        for key, value, sign in zip(
            rows[0].tolist() if self.n_keys else [0] * len(signs), values, signs.tolist(), strict=True
        ):
            old, new = change.get(key, (None, None))
            assert (old if sign < 0 else new) is None
            change[key] = (value, new) if sign < 0 else (old, value)
        return change

    def expected(self, multiset: Counter[tuple[int, int]]) -> dict[int, Any]:
        """Value by key, from the multiset alone.  OverflowError when one does not fit."""
        found: dict[int, Any] = {}
        decoded = (
            self.types["v"]
            .domain.decode(np.array([code for _, code in multiset], np.int64), self.value)
            .to_pylist()
        )
        members: dict[int, list[Any]] = {}
        for ((key, _), weight), value in zip(multiset.items(), decoded, strict=True):
            members.setdefault(key, []).extend([value] * weight)
        for key, values in members.items():
            if self.function == "count":
                found[key] = len(values)
                continue
            value = exact(values, self.function == "avg")
            if pa.types.is_integer(self.result) and not -(2**63) <= value < 2**63:
                raise OverflowError
            if pa.types.is_decimal(self.result) and abs(value) >= 10 ** (
                self.result.precision - self.result.scale
            ):
                raise OverflowError
            found[key] = value
        return found

    def contents(self) -> dict[int, Any]:
        """All that is kept of each group: count, value code, limbs and specials."""
        table, counts = self.groups._table, self.groups._counts
        keys = table.rows()[0].tolist() if self.n_keys else [0] * table.n_rows
        found = {}
        for slot, key in enumerate(keys):
            if slot < len(counts) and counts[slot]:
                kept: list[Any] = [int(counts[slot]), int(self.groups._values[slot])]
                if isinstance(self.groups._accumulator, WholeSums):
                    kept.append(self.groups._accumulator._sums[slot].tolist())
                elif self.function != "count":
                    for pool in self.sums._pools:
                        starts, lows, lengths, limbs = pool._numbers
                        number = limbs[starts[slot] : starts[slot] + lengths[slot]].tolist()
                        kept += [int(lows[slot]), number]
                    kept.append(self.sums._specials_of(np.array([slot])).tolist())
                found[key] = kept
        return found

    def step(self, changes: Sequence[Change], keep: bool = True) -> None:
        """Stage, compare with the reference, keep or drop; a step that overflows is dropped."""
        before, kept_before = self.expected(self.multiset), self.contents()
        sizes = self.groups._table.n_rows, self.groups.n_groups
        keys = np.array([key for key, _, _ in changes], np.int64)
        weights = np.array([weight for _, _, weight in changes], np.int64)
        codes = self.codes(changes)
        multiset = self.multiset.copy()
        for key, code, weight in zip(keys.tolist(), codes.tolist(), weights.tolist(), strict=True):
            multiset[key, code] += weight
        multiset = +multiset
        try:
            after = self.expected(multiset)
        except OverflowError:
            with pytest.raises(
                RangeError, match=r"^total\[-?\d*\] = (sum|avg)\(v\) is .*, which does not fit"
            ):
                self.stage(keys, codes, weights)
            keep = False
        else:
            wanted = {
                key: (before.get(key), after.get(key))
                for key in {*before, *after}
                if repr(before.get(key)) != repr(after.get(key))
            }
            assert comparable(self.stage(keys, codes, weights)) == comparable(wanted)
        self.groups.check_invariants()
        assert self.contents() == kept_before, "staging publishes nothing"
        if keep:
            self.groups.keep()
            self.multiset = multiset
            assert set(self.contents()) == set(after)
        else:
            self.groups.drop()
            assert self.contents() == kept_before
            assert (self.groups._table.n_rows, self.groups.n_groups) == sizes
        self.groups.check_invariants()

    def check_path_independence(self) -> None:
        """What is kept is what one step of the whole multiset leaves."""
        fresh = Maintained(self.function, self.value, self.result, self.n_keys)
        fresh.types, fresh.head, fresh.declared = self.types, self.head, self.declared
        fresh.restart()
        rows = np.array(sorted(self.multiset), np.int64).reshape(-1, 2)
        weights = np.array([self.multiset[key, code] for key, code in rows.tolist()], np.int64)
        fresh.stage(rows[:, 0].copy(), rows[:, 1].copy(), weights)
        fresh.groups.keep()
        assert self.contents() == fresh.contents()
        assert self.n_limbs == fresh.n_limbs


def comparable(change: dict[int, Any]) -> dict[int, Any]:
    """Floats by their bits, so that NaN equals NaN and -0.0 is not 0.0; whole numbers as fractions."""
    return {
        key: [
            value if value is None else value.hex() if isinstance(value, float) else Fraction(value)
            for value in values
        ]
        for key, values in change.items()
    }
