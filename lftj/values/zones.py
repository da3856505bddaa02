"""Instants and local times, in any year.

pyarrow knows the changes of a zone's clocks up to 2037 only, and counts years in 16 bits.  What is later is
asked of :mod:`zoneinfo`, which goes on by the zone's last rule.

The Gregorian calendar repeats every 400 years, of :data:`CYCLE_DAYS` days or whole weeks.  So moments are
taken here as (cycles, seconds): cycles of 400 years since 1970, and seconds since the cycle began.

Cost: whole-array operations; behind 2037 one call of ``zoneinfo`` per distinct second.
"""

from __future__ import annotations

import datetime
import re
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Refused

CYCLE_DAYS = 146_097
CYCLE_SECONDS = CYCLE_DAYS * 86_400
DAY_SECONDS = 86_400

_RULES_SINCE = 2_114_380_800  # 2037-01-01
_FIXED = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})")
_EPOCH = datetime.datetime(1970, 1, 1)


def offsets(cycles: np.ndarray, seconds: np.ndarray, zone: str) -> np.ndarray:
    """How far local time is ahead at these instants, int64 seconds.

    ``seconds`` may lie a year outside of the cycle.  Raises :class:`~lftj.values.arithmetic.Refused` where
    the zone's rules are not to be had.

    >>> july = np.array([1_000_000_000, 40_000_000_000]) * 0 + 15_638_400
    >>> offsets(np.array([0, 20]), july, "Europe/Berlin").tolist()  # in 1970 there was no summer time
    [3600, 7200]
    """
    fixed = _FIXED.fullmatch(zone)
    if fixed or zone == "UTC":
        sign, hours, minutes = fixed.groups() if fixed else ("+", "0", "0")
        return np.full(len(seconds), int(f"{sign}1") * (int(hours) * 3600 + int(minutes) * 60))
    # No clock was changed before the cycle of 1570 ended: all earlier instants have the offset of its begin.
    known = np.where(cycles < -1, -CYCLE_SECONDS, np.minimum(cycles, 0) * CYCLE_SECONDS + seconds)
    later = (cycles > 0) | (known >= _RULES_SINCE)
    known[later] = 0
    instants = pa.array(known).cast(pa.timestamp("s", zone))
    found: np.ndarray = pc.local_timestamp(instants).cast(pa.int64()).to_numpy() - known
    if later.any():
        found[later] = _by_rules(seconds[later], zone)
    return found


def _by_rules(seconds: np.ndarray, zone: str) -> np.ndarray:
    """Offsets by the rule that holds for good."""
    try:
        rules = ZoneInfo(zone)
    except (OSError, ValueError, LookupError):  # there is none of this name, or none can be read
        raise Refused(f"no rules of the time zone {zone!r} for times behind 2037") from None
    distinct, places = np.unique(seconds, return_inverse=True)
    in_next_cycle = (distinct + CYCLE_SECONDS).tolist()
    found = []
    for second in in_next_cycle:
        instant = (_EPOCH + datetime.timedelta(seconds=second)).replace(tzinfo=rules)
        ahead = rules.fromutc(instant).utcoffset()
        assert ahead is not None
        found.append(ahead.days * DAY_SECONDS + ahead.seconds)
    return np.array(found, np.int64)[places]


def instants_of(cycles: np.ndarray, local: np.ndarray, zone: str) -> np.ndarray:
    """The seconds of these local times within their cycles.

    Raises :class:`~lftj.values.arithmetic.Refused` for a local time that comes twice, or not at all.

    >>> instants_of(np.array([0]), np.array([15_638_400]), "Europe/Berlin").tolist()
    [15634800]
    """
    before = local - offsets(cycles, local - DAY_SECONDS, zone)
    after = local - offsets(cycles, local + DAY_SECONDS, zone)
    is_before = before + offsets(cycles, before, zone) == local
    is_after = after + offsets(cycles, after, zone) == local
    wrong = np.where(is_before == is_after, before != after, False)
    if wrong.any():
        times = "twice" if is_before[wrong][0] else "not at all"
        raise Refused(f"a local time that comes {times} in the time zone {zone!r}")
    return np.where(is_before, before, after)
