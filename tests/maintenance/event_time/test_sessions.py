"""oracle: sessions, activity without a longer gap, by rules and by SQL, against a loop by hand."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintenance import Workspace
from support.rows import rows_of
from support.turns import drawn_in_turns, share

NOON = datetime.datetime(2026, 3, 2, 12)

RULES = """
    at(who, t) <- click(who, t, _).
    begins(who, t) <- at(who, t), !follows(who, t).
    follows(who, t) <- at(who, t), at(who, u), u < t, latest(u), u >= t - 10m.
    visit(who, u, n: count(), last: max(t)) <- click(who, t, e), begins(who, u), u <= t, latest(u).
"""
SQL = """
    create view visit as
    with moments as (select distinct who, t from click),
    begins as (select one.who, one.t u from moments one asof left join moments last
        on last.who = one.who and last.t < one.t where last.t is null or one.t > last.t + interval 10 minutes)
    select click.who, u, count(*) n, max(click.t) as last
    from click asof join begins on click.who = begins.who and click.t >= begins.u group by click.who, u
"""

Click = tuple[str, int, int]
"""Who, minutes behind noon, a number."""


def at(minutes: int) -> datetime.datetime:
    return NOON + datetime.timedelta(minutes=minutes)


def by_hand(clicks: Iterable[Click]) -> set[tuple[object, ...]]:
    times = defaultdict(list)
    for who, t, _ in clicks:
        times[who].append(t)
    found = set()
    for who, own in times.items():
        own.sort()
        sessions = [[own[0]]]
        for t in own[1:]:
            if t - sessions[-1][-1] <= 10:
                sessions[-1].append(t)
            else:
                sessions.append([t])
        found |= {(who, at(one[0]), len(one), at(one[-1])) for one in sessions}
    return found


def timed(clicks: Iterable[Click]) -> list[tuple[str, datetime.datetime, int]]:
    return [(who, at(t), e) for who, t, e in clicks]


def workspace(clicks: Iterable[Click], way: str) -> Workspace:
    ws = Workspace()
    ws.load("click", timed(clicks), columns=["who", "t", "e"])
    if way == "sql":
        ws.sql(SQL)
    else:
        ws.install(RULES, strategy=way)
    return ws


def visits(ws: Workspace) -> set[tuple[object, ...]]:
    return set(rows_of(ws["visit"].table))


clicks = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=1, max_size=8)


@drawn_in_turns
@settings(max_examples=share(40), deadline=None)
@given(data=st.data(), way=st.sampled_from(["trace", "delta", "views", "auto", "recompute", "sql"]))
def test_oracle_sessions_follow(data: st.DataObject, way: str) -> None:
    some = [(*one, number) for number, one in enumerate(data.draw(clicks))]
    ws = workspace(some, way)
    assert visits(ws) == by_hand(some)
    for step in range(1, data.draw(st.integers(1, 4)) + 1):
        came = [(*one, 100 * step + number) for number, one in enumerate(data.draw(clicks))]
        gone = [one for one in some if data.draw(st.booleans())]
        with ws.transaction() as tx:
            tx.erase("click", timed(gone))
            tx.insert("click", timed(came))
        some = [one for one in some if one not in gone] + came
        assert visits(ws) == by_hand(some)
        ws.check_invariants()
    ws.verify()


@pytest.mark.parametrize("way", ["trace", "delta", "auto", "sql"])
def test_operations_of_an_event_do_not_grow_with_history(way: str) -> None:
    taken = []
    for n in (1_000, 4_000, 16_000):
        ws = workspace([(f"w{k % 10}", 4 * (k // 10) + 40 * (k // 100), k) for k in range(n)], way)
        behind = 4 * (n // 10) + 40 * (n // 100) + 100
        with ws.transaction() as tx:
            tx.insert("click", timed([(f"w{k}", behind + k, n + k) for k in range(10)]))
        with ws.transaction() as late:
            tx = late
            tx.insert("click", timed([("w3", 21, n + 20)]))  # amid the first session
        taken.append(sum(figures.operations for figures in tx.stats.rules.values()))
        assert visits(ws) >= {("w3", at(0), 11, at(36))}
    assert taken[2] <= 1.3 * taken[0]
