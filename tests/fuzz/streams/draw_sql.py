"""Views by SQL over streams, in what DuckDB has too."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from fuzz.streams import units

if TYPE_CHECKING:
    from fuzz.streams.draw import Source, Times


def _span(type_name: str, length: int) -> str:
    if units.unit(type_name) is None:
        return str(length)
    return f"interval '{units.spelled(type_name, length).removesuffix('us')} microseconds'"


def view(r: random.Random, times: Times, sources: list[Source]) -> str:
    """A SELECT whose rows are compared as a bag."""
    one, other = r.choice(sources), r.choice(sources)
    timed = units.unit(times.type_name) is not None
    number = f"c{one.kinds.index('i')}" if "i" in one.kinds else "t"
    length = max(times.span(6, 1), 1)
    forms = [
        f"select {number}, count(*) n, max(t) m from {one.name} group by {number}",
        f"select a.{number} x, b.t y from {one.name} a join {other.name} b"
        f" on b.t >= a.t and b.t <= a.t + {_span(times.type_name, length)}",
        f"select t, {number} from {one.name} a"
        f" where not exists (select 1 from {other.name} b where b.t = a.t)",
        f"select a.t, b.t u from {one.name} a left join {other.name} b on a.t = b.t",
        f"select t from {one.name} union all select t from {other.name}",
        f"select distinct t from {one.name} where {number} >= {'t' if number == 't' else '1'}",
        f"select count(*) n from {one.name}",
    ]
    if timed:
        bucket = f"time_bucket({_span(times.type_name, length)}, t)"
        forms += [f"select {bucket} w, count(*) n from {one.name} group by 1"] * 3
    if number != "t":
        forms += [
            f"select {number}, t, lag(t) over (partition by {number} order by t) b from"
            f" (select distinct {number}, t from {one.name})",
            f"select {number}, sum({number}) s from {one.name} group by {number} having count(*) > 1",
        ]
    return r.choice(forms)
