"""oracle: the changes of the set of rows behind a feed, against sets of a list that the feed is of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maintenance.changes.set_changes import NetFeed, counts_of, net_change

ROWS = st.tuples(st.integers(0, 2), st.integers(0, 1))
VERSIONS = st.lists(st.lists(st.tuples(ROWS, st.booleans()), max_size=6), max_size=5)


@given(st.lists(ROWS, max_size=6), VERSIONS)
def test_changes_lead_from_set_to_set(start: list[tuple[int, int]], versions: list) -> None:
    bag = list(start)
    sets = [set(bag)]
    feed: list[tuple[int, int, int, int]] = []
    for number, steps in enumerate(versions):
        for row, inserts in steps:
            if inserts:
                bag.append(row)
            elif row in bag:
                bag.remove(row)
            else:
                continue
            feed.append((*row, number, 1 if inserts else -1))
        sets.append(set(bag))
    columns = np.array(feed, np.int64).reshape(-1, 4).T
    net = NetFeed(columns[:2], columns[2], columns[3])
    counts = counts_of(net.deleted, [np.array(bag, np.int64).reshape(-1, 2).T])
    assert counts.tolist() == [bag.count(tuple(row)) for row in net.deleted.T.tolist()]
    changes = net.changes(counts)
    there = set(start)
    for number in range(len(versions)):
        at = changes.versions == number
        there = _after(there, changes.rows[:, at], changes.signs[at])
        assert there == sets[number + 1]
    assert _after(set(start), *net_change(changes)) == set(bag)
    erased = changes.rows[:, changes.signs < 0].T.tolist()
    assert all(tuple(row) in set().union(*sets) for row in erased)


def _after(there: set, rows: np.ndarray, signs: np.ndarray) -> set:
    listed = [(tuple(row), sign) for row, sign in zip(rows.T.tolist(), signs.tolist(), strict=True)]
    assert len({row for row, _ in listed}) == len(listed)
    gone = {row for row, sign in listed if sign < 0}
    assert gone <= there
    return (there - gone) | {row for row, sign in listed if sign > 0}


def test_without_counts_a_row_is_there_once() -> None:
    columns, versions, weights = [np.array([3, 3, 4])], np.array([0, 1, 1]), np.array([-1, 1, -1])
    changes = NetFeed(columns, versions, weights).changes(None)
    assert changes.signs.tolist() == [-1, 1, -1]
    rows, signs = net_change(changes)
    assert (rows.tolist(), signs.tolist()) == ([[4]], [-1])


def test_many_batches_are_counted_in_pieces(monkeypatch) -> None:
    monkeypatch.setattr("maintenance.changes.set_changes._PIECE_ROWS", 2)
    batches = [[np.array([5, 6])], [np.array([6])], [np.array([6, 7])]]
    assert counts_of(np.array([[6, 8]]), batches).tolist() == [3, 0]
