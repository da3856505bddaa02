"""How far a window sees: which rows' values a changed row may change, and what these depend on.

    rows whose value may change = the rows that stand up to ``ahead`` before the changed one, to those up to
                                  ``back`` behind it; where windows are ``carried``, all behind it, too
    what their values depend on = the rows up to ``back`` before and up to ``ahead`` behind each, and
                                  the state before these

A distance is counted in rows, in groups of rows that are alike, or in values of the order; the
longest of each counts.

Source: SQL:2003, 7.11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.aggregates.window_frames import order_codes, order_keys
from lftj.aggregates.windows import is_carried, is_total
from lftj.language.syntax import Constant, SortKey, Window
from lftj.storage.support import SupportVersion
from lftj.values.floating import float_codes, floats_of_codes
from lftj.values.names import NUMBERING
from lftj.values.schema import ColumnType


@dataclass(frozen=True)
class Distance:
    """The farthest of some: whoever is within one of them is within it."""

    rows: int = 0
    groups: int = 0
    values: Fraction = Fraction(0)

    def __bool__(self) -> bool:
        return bool(self.rows or self.groups or self.values)

    def __or__(self, other: Distance) -> Distance:
        return Distance(
            max(self.rows, other.rows), max(self.groups, other.groups), max(self.values, other.values)
        )

    def __str__(self) -> str:
        return " and ".join(f"{away} {unit}" for unit, away in vars(self).items() if away) or "0 rows"


@dataclass(frozen=True)
class Reach:
    """See the head of the module.

    >>> from lftj.language.syntax import Frame, Variable
    >>> by = (SortKey(Variable("v")),)
    >>> reach = Reach.of([Window("sum", (Variable("v"),), (), by, Frame("rows", -3, 1))])
    >>> reach.back.rows, reach.ahead.rows, reach.carried
    (3, 1, False)
    """

    back: Distance = Distance()
    ahead: Distance = Distance()
    carried: bool = False
    """Whether some value depends on all rows before: on a state."""
    late: Distance = Distance()
    """How far behind a place rows may stand whose value depends on the state before the place alone."""
    total: bool = False
    """Whether some value depends on the state behind the last row."""
    sized: bool = False
    """Whether that is another one as soon as there are more rows or fewer."""

    @classmethod
    def of(cls, windows: Sequence[Window]) -> Reach | None:
        """That of all; None where a value depends on all rows behind, and no state tells what these are."""
        found = [_of_one(window) for window in windows]
        reaches = [reach for reach in found if reach is not None]
        if len(reaches) < len(found):
            return None
        whole = cls()
        for reach in reaches:
            whole = cls(
                whole.back | reach.back,
                whole.ahead | reach.ahead,
                whole.carried or reach.carried,
                whole.late | reach.late,
                whole.total or reach.total,
                whole.sized or reach.sized,
            )
        return whole


def _of_one(window: Window) -> Reach | None:
    if window.function in ("lag", "lead"):
        away = window.arguments[1] if len(window.arguments) > 1 else Constant(1)
        assert isinstance(away, Constant) and isinstance(away.value, int)
        far = Distance(rows=away.value)
        return Reach(back=far) if window.function == "lag" else Reach(ahead=far)
    if is_total(window):
        sized = window.function in (*NUMBERING, "avg") or not window.arguments
        return Reach(carried=True, total=True, sized=sized)
    frame = window.frame
    if window.function in NUMBERING or frame is None:
        return Reach(carried=True)
    if frame.last is None:
        return None
    ahead = _distance(frame.unit, max(Fraction(frame.last), Fraction(0)))
    if is_carried(window):
        late = _distance(frame.unit, max(-Fraction(frame.last), Fraction(0)))
        return Reach(back=late, ahead=ahead, carried=True, late=late)
    assert frame.first is not None
    return Reach(back=_distance(frame.unit, max(-Fraction(frame.first), Fraction(0))), ahead=ahead)


def _distance(unit: str, away: Fraction) -> Distance:
    if unit == "range":
        return Distance(values=away)
    return Distance(rows=int(away)) if unit == "rows" else Distance(groups=int(away))


@dataclass(frozen=True)
class Places:
    """Places in sorted rows: before, or where ``behind``, behind all rows whose first columns are given.

    ``keys``: int64 (columns, n); ``behind``: bool (n,).
    """

    keys: np.ndarray
    behind: np.ndarray

    @classmethod
    def of(cls, keys: np.ndarray, behind: bool) -> Places:
        return cls(keys, np.full(keys.shape[1], behind))


def places_of(keys: Sequence[tuple[int, ...]], behind: bool) -> Places:
    """The places before some keys of one length, or behind them."""
    return Places.of(np.array(keys, np.int64).reshape(len(keys), -1).T, behind)


class Neighbourhood:
    """What stands around places, in all of some versions of the rows."""

    def __init__(
        self, versions: Sequence[SupportVersion], n_parts: int, order: tuple[SortKey, ColumnType] | None
    ):
        """``n_parts``: columns of the partition; ``order``: of the column after these, where it is alone."""
        self._versions = versions
        self._n_parts = n_parts
        self._order = order

    def away(self, places: Places, distance: Distance, backwards: bool) -> Places:
        """The places before, or where not ``backwards`` behind, all that stands within a distance of some."""
        if not distance:
            return places
        found = [places.keys]
        for version in self._versions:
            for counted in ((distance.rows, False), (distance.groups, True)):
                found.append(
                    version.neighbours(places.keys, places.behind, self._n_parts, counted, backwards)
                )
        if distance.values:
            moved = places.keys.copy()
            moved[self._n_parts] = self._moved(
                moved[self._n_parts], -distance.values if backwards else distance.values
            )
            found.append(moved)
        farthest = found[0]
        for keys in found[1:]:
            farther = is_before(keys, farthest) if backwards else is_before(farthest, keys)
            farthest = np.where(farther, keys, farthest)
        return Places.of(farthest, behind=not backwards)

    def _moved(self, keys: np.ndarray, away: Fraction) -> np.ndarray:
        """The order's keys some values away, rounded away from it; those that are no numbers stay."""
        assert self._order is not None
        order, type_ = self._order
        null = (KEY_MIN if order.nulls_first else KEY_MAX) if type_.nullable else None
        found = []
        for key in keys.tolist():
            if key == null:
                found.append(key)
            elif type_.domain.name == "float":
                found.append(self._moved_float(key, away, order, type_))
            else:
                whole = math.floor(away) if away < 0 else math.ceil(away)
                found.append(min(max(key + whole, KEY_MIN), KEY_MAX))
        return np.array(found, np.int64)

    @staticmethod
    def _moved_float(key: int, away: Fraction, order: SortKey, type_: ColumnType) -> int:
        code = order_codes(np.array([key]), type_, order.descending, order.nulls_first)
        value = float(floats_of_codes(code)[0])
        if not math.isfinite(value):
            return key
        rises = (away > 0) != order.descending
        exact = Fraction(value) + (abs(away) if rises else -abs(away))
        end = math.inf if rises else -math.inf
        try:
            moved = math.nextafter(float(exact), end)
        except OverflowError:
            moved = end
        codes = float_codes(np.array([moved]))
        return int(order_keys(codes, type_, order.descending, order.nulls_first)[0])


def is_before(rows: np.ndarray, others: np.ndarray, or_equal: bool = False) -> np.ndarray:
    """Which rows, int64 (columns, n), come lexicographically before others, or before one other."""
    less, equal = np.zeros(rows.shape[1], bool), np.ones(rows.shape[1], bool)
    for column, other in zip(rows, others, strict=True):
        less |= equal & (column < other)
        equal &= column == other
    return less | equal if or_equal else less
