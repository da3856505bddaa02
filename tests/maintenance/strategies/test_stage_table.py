"""stateful: a table of ranks and counters against dictionaries, kept and dropped at will."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintenance.strategies.stages.stage_table import StageTable

Fact = tuple[int, int]
Facts = dict[Fact, tuple[int, int, int]]
"""Rank, solid and total by fact."""


def columns_of(facts: Sequence[Fact]) -> list[np.ndarray]:
    return list(np.array(facts, np.int64).reshape(-1, 2).T.copy())


def facts_of(table: StageTable) -> Facts:
    columns, counters = table.facts()
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(rows, map(tuple, counters.tolist()), strict=True))


INSTANCES = st.lists(
    st.tuples(st.tuples(st.integers(0, 3), st.sampled_from((0, 1, 8, 10**15, -5))), st.integers(0, 4)),
    max_size=12,
)


@given(st.lists(st.tuples(INSTANCES, st.booleans(), st.booleans()), max_size=8), st.data())
def test_ranks_and_counters(
    steps: list[tuple[list[tuple[Fact, int]], bool, bool]], data: st.DataObject
) -> None:
    """Each step gains some instances or loses some of those that are there; then it is kept or dropped."""
    table, known, instances = StageTable(2), {}, []
    for came, loses, keeps in steps:
        model: Facts = dict(known)
        if loses and instances:
            went = data.draw(st.lists(st.sampled_from(range(len(instances))), unique=True, max_size=6))
            gone = [instances[number] for number in went]
            left = [one for number, one in enumerate(instances) if number not in went]
            fallen = table.lose(
                columns_of([fact for fact, _ in gone]), np.array([h for _, h in gone], np.int64)
            )
            expected = set()
            for fact, high in gone:
                rank, solid, total = model[fact]
                solid -= high < rank
                model[fact] = rank, solid, total - 1
                if solid == 0 and high < rank:
                    expected.add(fact)
            assert set(zip(*table.rows_of(fallen).tolist(), strict=True)) == expected
            assert len(fallen) == len(expected)
            table.take_out(fallen, 49)
            slots = table.left(fallen)
            table.enter(table.coming(slots))
            back = set(zip(*table.rows_of(slots).tolist(), strict=True))
            for fact in expected:
                total = model[fact][2]
                assert (total > 0) == (fact in back)
                model[fact] = (50, total, total)
                if not total:
                    del model[fact]
        else:
            left = instances + came
            new = table.gain(columns_of([fact for fact, _ in came]), np.array([h for _, h in came], np.int64))
            table.enter(table.coming(new))
            fresh = {fact for fact, _ in came} - set(model)
            assert set(zip(*table.rows_of(new).tolist(), strict=True)) == fresh
            for fact in fresh:
                highs = [high for other, high in came if other == fact]
                model[fact] = 1 + max(highs), len(highs), len(highs)
            for fact, high in came:
                if fact not in fresh:
                    rank, solid, total = model[fact]
                    model[fact] = rank, solid + (high < rank), total + 1
        columns, signs = table.change()
        changed = dict(
            zip(zip(*(column.tolist() for column in columns), strict=True), signs.tolist(), strict=True)
        )
        assert changed == {
            **dict.fromkeys(model.keys() - known, 1),
            **dict.fromkeys(known.keys() - model, -1),
        }
        assert list(changed) == sorted(changed)
        assert facts_of(table) == model
        for _ in range(2):  # what is done twice is as if it were done once
            table.keep() if keeps else table.drop()
        if keeps:
            known, instances = model, left
        assert facts_of(table) == known
        table.check_invariants()
        table.tidy()
        table.check_invariants()
        probe = columns_of(list(known) or [(77, 77)])
        assert table.ranks(probe).tolist() == [rank for rank, _, _ in known.values()] or not known


def test_slots_of_facts_that_went_are_given_back() -> None:
    table = StageTable(1)
    for start in range(0, 40_000, 1_000):
        facts = [np.arange(start, start + 1_000)]
        table.enter(table.gain(facts, np.zeros(1_000, np.int64)))
        table.keep()
        table.take_out(table.lose(facts, np.zeros(1_000, np.int64)), 1)
        table.keep()
        table.tidy()
        table.check_invariants()
    assert table.n_slots < 3_000


def test_facts_that_were_expected_stand_in_order() -> None:
    """They come in any order, with some that were not expected; both are told in order."""
    generator = np.random.default_rng(3)
    expected = [(a, b) for a in range(-3, 30) for b in range(0, 40, 1 + a % 3)]
    table = StageTable(2, journaled=False)
    table.expect(columns_of(expected))
    came = [expected[place] for place in generator.permutation(len(expected))]
    slots = table.gain(columns_of(came), np.zeros(len(came), np.int64))
    table.enter(slots)
    assert len(slots) == table.n_slots == len(expected)
    assert [tuple(fact) for fact in table.facts_of(slots)[0].T.tolist()] == expected
    table.begin()
    table.check_invariants()
    more = [(7, 1_000), (-9, 2), expected[5]]
    new = table.gain(columns_of(more), np.zeros(3, np.int64))
    table.enter(new)
    both = np.concatenate([new, slots[:4]])
    assert [tuple(fact) for fact in table.facts_of(both)[0].T.tolist()] == sorted(more[:2] + came[:4])
    table.drop()
    table.check_invariants()
    assert list(facts_of(table)) == expected


def test_facts_whose_hashes_agree_in_part_are_told_apart() -> None:
    """So many that some stand where others belong: each is found, and what is not there is not."""
    facts = [(a, 8 * b) for a in range(64) for b in range(64)]
    table = StageTable(2)
    table.enter(table.gain(columns_of(facts), np.arange(len(facts))))
    assert table.ranks(columns_of(facts)).tolist() == list(range(1, len(facts) + 1))
    assert not table.ranks(columns_of([(a, 8 * b + 1) for a in range(64) for b in range(64)])).any()
    table.keep()
    table.check_invariants()


def test_a_fact_that_fell_is_there_until_it_is_taken_out() -> None:
    """Although its last instance, which was not solid, goes before that."""
    table, fact = StageTable(1), [np.array([7])]
    table.enter(table.gain(fact, np.array([1])))
    table.gain(fact, np.array([5]))
    fallen = table.lose(fact, np.array([1]))
    assert fallen.tolist() == [0] and table.lose(fact, np.array([5])).tolist() == []
    assert table.ranks_of(fallen).tolist() == [2]
    table.take_out(fallen, 5)
    assert table.left(fallen).tolist() == [] and table.n_facts == 0
    table.keep()
    table.check_invariants()


def test_an_instance_that_was_not_there_can_not_go() -> None:
    table = StageTable(1)
    with pytest.raises(AssertionError, match="had not been there"):
        table.lose([np.array([1])], np.array([0]))
