"""Plays a case of any kind."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping

from fuzz.calendar_days import play_calendar
from fuzz.case import Case
from fuzz.damage import play_damage
from fuzz.expected import OutOfReach
from fuzz.kept import play_kept
from fuzz.kills import play_kills
from fuzz.large import play_large
from fuzz.once import play_once
from fuzz.spark_rules import play_spark
from fuzz.sql.play import play_sql
from fuzz.streams.play import play_streams
from fuzz.threads import play_threads
from fuzz.values import play_values
from support.bound_readers import whatever_it_costs
from support.small_limits import machine_soon, wide_relations

PLAYS: Mapping[str, Callable[[Case], None]] = {
    "once": play_once,
    "kept": play_kept,
    "large": play_large,
    "threads": play_threads,
    "kills": play_kills,
    "damage": play_damage,
    "values": play_values,
    "calendar": play_calendar,
    "sql": play_sql,
    "streams": play_streams,
    "spark": play_spark,
}


def play(case: Case) -> bool:
    """Raise what is wrong.  Whether the case said anything: not where the oracle can't tell what is right."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_heads = case.options.get("keys")
        keys = contextlib.nullcontext() if by_heads is None else whatever_it_costs(by_heads)
        with (
            contextlib.suppress(OutOfReach),
            wide_relations(case.options.get("wide", False)),
            keys,
            machine_soon(),
        ):
            PLAYS[case.kind](case)
            return True
    return False
