"""What streams, heads over them and what has closed have to be: the whole history, filtered and evaluated.

Nothing of the engine is imported.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fuzz.case import Case, Staged, Table
from fuzz.difference import Difference
from fuzz.expected import Heads, OutOfReach, Refused, after, beginning, expected
from fuzz.streams import units
from fuzz.streams.closing import extents_of
from support.reference import Row
from support.rules import Atom, Program, literals
from support.stream_model import Batch, Model, ModelStream


@dataclass
class Said:
    """What a transaction says: late rows, and how many leave."""

    late: dict[str, Batch] = field(default_factory=dict)
    expired: Counter[str] = field(default_factory=Counter)

    def add(self, other: Said) -> None:
        for name, rows in other.late.items():
            self.late.setdefault(name, []).extend(rows)
        self.expired.update(other.expired)


class Truth:
    """``contents``: of each relation; ``heads``: of each head, and of what has closed of it.

    Rows of streams stand in the model behind their times.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.type_name: str = case.options["time"]
        self.streams: dict[str, dict[str, Any]] = case.options["streams"]
        self.finals: dict[str, tuple[int, int]] = case.options["finals"]
        self.places = {
            table.name: table.columns.index("t")
            for table in case.tables
            if isinstance(table, Table) and table.name in self.streams
        }
        self.bags = {table.name for table in case.tables if isinstance(table, Table) and table.bag}
        self.plain = {name: rows for name, rows in beginning(case).items() if name not in self.streams}
        self.model = Model()
        extents = self._extents()
        in_order = sorted(case.tables, key=lambda one: self.streams.get(one.name, {}).get("declared", False))
        for table in in_order:
            if isinstance(table, Table) and table.name in self.streams:
                settings = self.streams[table.name]
                keep = 2**62 if settings["keep"] is None else settings["keep"]
                stream = ModelStream(settings["late"], keep, table.bag, extents.get(table.name))
                self.model.load(table.name, stream, [self._timed(table.name, row) for row in table.rows])
        self.closed: dict[str, set[Row]] = {f"{head}_final": set() for head in self.finals}
        self.heads: Heads = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Truth:
        import copy

        other = object.__new__(Truth)
        other.__dict__.update(self.__dict__)
        for name in ("plain", "model", "closed"):
            setattr(other, name, copy.deepcopy(getattr(self, name), memo))
        return other

    def _timed(self, name: str, row: Row) -> Row:
        return (row[self.places[name]], *row)

    def _extents(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for rule in units.in_units(self.case.program, self.type_name, None):
            head = rule.heads[0].relation
            if head in self.finals:
                extents = extents_of(rule, *self.finals[head], self.places)
                if not extents:
                    raise OutOfReach("a head that does not close")
                for name, extent in extents.items():
                    found[name] = max(found.get(name, 0), extent)
        return found

    def is_recursive(self, head: str) -> bool:
        rules = [rule for rule in self.case.program if rule.heads[0].relation == head]
        return any(isinstance(o, Atom) and o.relation == head for rule in rules for o in literals(rule.body))

    # -- what is there ---------------------------------------------------------------------------

    @property
    def now(self) -> int | None:
        return self.model.now

    @property
    def late(self) -> dict[str, tuple[int, int]]:
        return {name: (each.inserted_late, each.erased_late) for name, each in self.model.streams.items()}

    @property
    def contents(self) -> dict[str, list[Row]]:
        held = {
            name: [row[1:] for row in stream.contents.elements()]
            for name, stream in self.model.streams.items()
        }
        return {**held, **{name: list(rows.elements()) for name, rows in self.plain.items()}}

    def check_bounds(self) -> None:
        """Of a stream no more is held than a window and a part of one, but for what closes."""
        for name, stream in self.model.streams.items():
            low = None if self.now is None or stream.bound is None else self.now - stream.keep - stream.bucket
            if low is not None and stream.extent is None and any(row[0] < low for row in stream.contents):
                raise Difference(f"held: more of {name} than a window")

    def _evaluate(
        self, program: Program, relations: dict[str, list[Row]], wanted: list[str]
    ) -> Heads | Refused:
        state = {name: Counter(rows) for name, rows in relations.items()}
        whole = units.in_units(program, self.type_name, self.now)
        return expected(whole, state, wanted, self.bags, errors_count=True)

    def install(self) -> None:
        heads = self._evaluate(self.case.program, self.contents, self.case.heads)
        if isinstance(heads, Refused):
            raise OutOfReach(heads.why)
        self.heads = {**heads, **self.closed}

    # -- what happens ----------------------------------------------------------------------------

    def goes_back(self, moment: int) -> bool:
        return self.now is not None and moment < self.now

    def commit(self, staged: tuple[Staged, ...]) -> Said | Refused:
        """A transaction; where it is refused, what is left of this means nothing."""
        before = self.now
        moments = [row[0] for name, row, _ in staged if name == "clock" and not self.goes_back(row[0])]
        advance = max(moments, default=None)
        batches: dict[str, Batch] = {}
        for name, row, weight in staged:
            if name in self.streams:
                assert isinstance(weight, int)
                batches.setdefault(name, []).append((self._timed(name, row), weight))
        for name, batch in batches.items():
            if (time := self._too_far(name, batch, advance)) is not None:
                return Refused(f"a row of {name} at {time} is too far ahead", by_key=True)
        late, expired = self.model.commit(batches, advance)
        others = tuple(one for one in staged if one[0] not in self.streams and one[0] != "clock")
        self.plain = after(self.case, self.plain, others)
        heads = self._evaluate(self.case.program, self.contents, self.case.heads)
        if isinstance(heads, Refused):
            return heads
        if (refused := self._close(before)) is not None:
            return refused
        self.heads = {**heads, **{name: set(rows) for name, rows in self.closed.items()}}
        rows = {name: [(row[1:], weight) for row, weight in batch] for name, batch in late.items()}
        return Said(rows, Counter(expired))

    def _too_far(self, name: str, batch: Batch, advance: int | None) -> int | None:
        ahead, line = self.streams[name]["ahead"], self.model.streams[name].waterline
        known = [time for time in (line, advance) if time is not None]
        if ahead is None or not known:
            return None
        most = max(known) + self.streams[name]["late"] + ahead
        return next((row[0] for row, _ in batch if row[0] > most), None)

    def _close(self, before: int | None) -> Refused | None:
        """Take what closes: rows of a head over the whole history."""
        if not self.finals or self.now is None:
            return None
        history = {
            name: [row[1:] for row in stream.history.elements()]
            for name, stream in self.model.streams.items()
        }
        history.update({name: list(rows.elements()) for name, rows in self.plain.items()})
        program = tuple(rule for rule in self.case.program if rule.heads[0].relation in self.finals)
        heads = self._evaluate(program, history, list(self.finals))
        if isinstance(heads, Refused):
            return heads
        for head, (place, after_) in self.finals.items():
            for row in heads[head]:
                if row[place] + after_ <= self.now and (before is None or before < row[place] + after_):
                    self.closed[f"{head}_final"].add(row)
        return None
