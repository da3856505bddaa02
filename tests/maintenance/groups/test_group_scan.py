"""stateful: ordered intermediates against a Counter of Python values, folded by ``functools.reduce``.

The reference sorts and folds the multiset of a group anew and imports nothing of
trees, labels or support counts.  A batch may be dropped, and a user's function
may raise in it; then everything is as before.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lftj.errors import AggregateError
from maintenance.groups.order_labels import SPACING
from maintenance.groups.scan import GroupScan, scan_for
from support.aggregate_heads import CASES, GROUP, POISON, made, row_order, same, value_of

pytestmark = pytest.mark.kernel


class GroupScanMachine(RuleBasedStateMachine):
    @initialize(case=st.sampled_from(sorted(CASES)), spacing=st.sampled_from([1, 3, SPACING]))
    def begin(self, case: str, spacing: int) -> None:
        self.function, self.kinds = CASES[case]
        self.made = made(self.function, [arrow for arrow, _ in self.kinds])
        self.scan = scan_for(self.made.head, self.made.types, 2)
        if isinstance(self.scan, GroupScan):
            self.scan = GroupScan(self.made.head, self.made.types, 2, spacing)
        self.kept: Counter[tuple[Any, ...]] = Counter()
        self.rows = self.kept
        self.twins: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def stage_rows(self, changes: list[tuple[tuple[Any, ...], int]]) -> None:
        columns = self.made.encoded([row for row, _ in changes])
        self.scan.stage(columns, np.array([weight for _, weight in changes], np.int64))

    def drawn(self, data: st.DataObject) -> list[tuple[tuple[Any, ...], int]]:
        """Signed rows that leave no negative multiplicity, in any order."""
        arguments = [values for _, values in row_order(self.function, self.kinds)]
        row = st.tuples(GROUP, *arguments).map(lambda parts: (*parts[0], *parts[1:]))
        size = data.draw(st.sampled_from([1, 3, 3, 3, 3, 3, 3, 100]))
        changes = [
            (item, data.draw(st.integers(1, 3)))
            for item in data.draw(st.lists(row, min_size=size // 2, max_size=size))
        ]
        present = sorted(self.rows, key=repr)
        if present:
            for key in data.draw(st.lists(st.sampled_from(present), unique=True, max_size=4)):
                changes.append((self.twins[key], -data.draw(st.integers(1, self.rows[key]))))
        data.draw(st.randoms(use_true_random=False)).shuffle(changes)
        return changes

    def poisoned(self, rows: Counter[tuple[Any, ...]]) -> bool:
        """Whether the careful function meets what it raises for."""
        sizes: Counter[tuple[Any, ...]] = Counter()
        for row, count in rows.items():
            sizes[row[:2]] += count
        return self.function == "careful" and any(row[-1] == POISON and sizes[row[:2]] > 1 for row in rows)

    @rule(data=st.data())
    def stage(self, data: st.DataObject) -> None:
        changes = self.drawn(data)
        following = Counter(self.rows)
        for row, weight in changes:
            key = tuple(map(same, row))
            self.twins[key] = row
            following[key] += weight
        following = Counter({key: count for key, count in following.items() if count})
        if self.poisoned(following):
            with pytest.raises(
                AggregateError, match=r"h\[\d, \"[xy]\"\] = careful\(a0\): careful\("
            ) as caught:
                self.stage_rows(changes)
                self.scan.values(self.keys(sorted({row[:2] for row in following})))
            assert "raised ValueError: that number again" in str(caught.value)
            self.drop()
            return
        self.stage_rows(changes)
        self.rows = following

    @rule()
    def keep(self) -> None:
        self.scan.keep()
        self.kept = self.rows

    @rule()
    def drop(self) -> None:
        self.scan.drop()
        self.rows = self.kept

    def keys(self, groups: list[tuple[Any, ...]]) -> list[np.ndarray]:
        return self.made.encoded(groups, ["g0", "g1"][: len(groups[0])] if groups else ["g0", "g1"])

    def by_prefix(self, length: int) -> dict[tuple[Any, ...], Any]:
        groups: dict[tuple[Any, ...], list[tuple[tuple[Any, ...], int]]] = {}
        for key, count in self.rows.items():
            groups.setdefault(key[:length], []).append((self.twins[key][2:], count))
        return {group: value_of(self.function, rows) for group, rows in groups.items()}

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        length = data.draw(st.integers(0, 2)) if self.function in ("min", "max") else 2
        wanted = self.by_prefix(length)
        asked = data.draw(st.lists(st.sampled_from(sorted(wanted)), max_size=6)) if wanted else []
        if length == 0:
            asked = [()]
        codes = self.scan.values(self.made.encoded(asked, ["g0", "g1"][:length]))
        if length == 0 and not wanted:
            assert codes.tolist() == [0]
            return
        assert list(map(same, self.made.decoded(codes))) == [same(wanted[group]) for group in asked]

    @precondition(lambda self: self.rows)
    @rule()
    def a_group_without_rows(self) -> None:
        assert self.scan.values(self.keys([(9, "none"), (9, "x")])).tolist() == [0, 0]

    @invariant()
    def invariants_hold(self) -> None:
        self.scan.check_invariants()
        assert self.scan.nbytes >= 0
        if isinstance(self.scan, GroupScan) and self.rows is self.kept:  # else it might build a tree
            assert self.scan.n_records == len(self.rows)


TestGroupScanMachine = GroupScanMachine.TestCase
TestGroupScanMachine.settings = settings(stateful_step_count=20)
