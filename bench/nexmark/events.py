"""Events of Nexmark as Arrow tables: who joins an online auction, what is auctioned, what is bid.

Of each 50 events one is a person, the next 3 are auctions, the others bids.  Half of the bids are for a hot
auction, most by a hot bidder, and most auctions by a hot seller, who are other ones after each hundred; the
rest are of the latest 100 auctions and 1,000 persons.  Prices are spread evenly by their order of magnitude.

Source: Tucker, Tufte, Papadimos, Maier, "NEXMark - A Benchmark for Queries over Data Streams", 2002; numbers
and ratios are those of the generator of Apache Beam and of github.com/nexmark/nexmark.  Instead of ``extra``,
which no query looks into, a column ``event`` has the number of the event, so no two rows are equal.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

Tables = dict[str, pa.Table]
"""By relation: ``person``, ``auction``, ``bid``."""

ROUND = 50
"""Events, of which the first is a person, and these are auctions:"""
AUCTIONS = 3

_FIRST_ID = 1000
_IN_FLIGHT, _ACTIVE, _HOT = 100, 1000, 100
_START = np.datetime64("2026-03-01T23:59:55", "ms")
_STATES = np.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
_CITIES = np.array(
    [
        "Phoenix",
        "Los Angeles",
        "San Francisco",
        "Boise",
        "Portland",
        "Bend",
        "Redmond",
        "Seattle",
        "Kent",
        "Cheyenne",
    ]
)
_FIRST_NAMES = np.array(
    ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
)
_LAST_NAMES = np.array(
    ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
)
_CHANNELS = np.array(["Google", "Facebook", "Baidu", "Apple"])


def events(n: int, per_second: float = 10_000, disorder: int = 1) -> Tables:
    """The first ``n`` events, in the order in which they come.

    Args:
        n: How many.
        per_second: Of event time, which begins five seconds before a midnight, in milliseconds.
        disorder: Among so many events that follow each other the times are in another order.
    """
    random = np.random.default_rng(1)
    number = np.arange(n)
    moved = number // disorder * disorder + number * 953 % disorder
    time = _START + (moved * 1000 / per_second).astype("timedelta64[ms]")
    place = number % ROUND
    persons, bids = place == 0, place > AUCTIONS
    auctions = ~(persons | bids)
    return {
        "person": _persons(random, number[persons], time[persons]),
        "auction": _auctions(random, number[auctions], time[auctions], per_second),
        "bid": _bids(random, number[bids], time[bids]),
    }


def transactions(tables: Tables, first: int, size: int) -> Iterator[Tables]:
    """The rows of each ``size`` events, from number ``first`` on, of the relations that have some."""
    numbers = {name: table["event"].to_numpy() for name, table in tables.items()}
    n = 1 + max(int(found[-1]) for found in numbers.values() if len(found))
    for start in range(first, n, size):
        part = {}
        for name, found in numbers.items():
            low, high = np.searchsorted(found, [start, start + size])
            if low < high:
                part[name] = tables[name].slice(low, high - low)
        yield part


def _persons(random: np.random.Generator, number: np.ndarray, time: np.ndarray) -> pa.Table:
    n = len(number)
    first, last = random.choice(_FIRST_NAMES, n), random.choice(_LAST_NAMES, n)
    return _table(
        id=_last_person(number) + _FIRST_ID,
        name=np.char.add(np.char.add(first, " "), last),
        city=random.choice(_CITIES, n),
        state=random.choice(_STATES, n),
        date_time=time,
        event=number,
    )


def _auctions(
    random: np.random.Generator, number: np.ndarray, time: np.ndarray, per_second: float
) -> pa.Table:
    n = len(number)
    hot = _last_person(number) // _HOT * _HOT
    horizon = 1000 * _IN_FLIGHT * ROUND / AUCTIONS / per_second  # milliseconds
    lasts = random.integers(1, 1 + max(2 * int(horizon), 1), n)
    return _table(
        id=_last_auction(number) + _FIRST_ID,
        initial=_prices(random, n),
        reserve=_prices(random, n),
        date_time=time,
        expires=time + lasts.astype("timedelta64[ms]"),
        seller=np.where(random.random(n) < 3 / 4, hot, _active_person(random, number)) + _FIRST_ID,
        category=random.integers(10, 15, n),
        event=number,
    )


def _bids(random: np.random.Generator, number: np.ndarray, time: np.ndarray) -> pa.Table:
    n = len(number)
    high = _last_auction(number)
    low = np.maximum(high - _IN_FLIGHT, 0)
    auction = np.where(random.random(n) < 1 / 2, high // _HOT * _HOT, random.integers(low, high + 11))
    hot = _last_person(number) // _HOT * _HOT + 1
    bidder = np.where(random.random(n) < 3 / 4, hot, _active_person(random, number))
    which = random.integers(0, 10_000, n)
    known = random.random(n) < 1 / 2
    text, place = which.astype(str), (which % len(_CHANNELS)).astype(str)
    page = np.where(known, np.char.add("aa/bb/", place), np.char.add("cc/dd/", text))
    named = np.where(known | (which % 10 == 0), "", np.char.add("&channel_id=", text))
    url = np.char.add(np.char.add("https://www.nexmark.com/", page), "/item.htm?query=1")
    return _table(
        auction=auction + _FIRST_ID,
        bidder=bidder + _FIRST_ID,
        price=_prices(random, n),
        channel=np.where(known, _CHANNELS[which % len(_CHANNELS)], np.char.add("channel-", text)),
        url=np.char.add(url, named),
        date_time=time,
        event=number,
    )


def _table(**columns: np.ndarray) -> pa.Table:
    return pa.table(columns)


def _last_person(number: np.ndarray) -> np.ndarray:
    """The latest person when an event comes, from 0 on."""
    return number // ROUND


def _last_auction(number: np.ndarray) -> np.ndarray:
    """The latest auction when an event comes, from 0 on; -1 before the first."""
    return number // ROUND * AUCTIONS + np.minimum(number % ROUND, AUCTIONS) - 1


def _active_person(random: np.random.Generator, number: np.ndarray) -> np.ndarray:
    """One of the latest, or of the next ten."""
    n_persons = _last_person(number) + 1
    n_active = np.minimum(n_persons, _ACTIVE)
    return n_persons - n_active + random.integers(0, n_active + 10)


def _prices(random: np.random.Generator, n: int) -> np.ndarray:
    return np.round(10 ** (6 * random.random(n)) * 100).astype(np.int64)
