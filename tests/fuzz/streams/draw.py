"""Random streams, rules over them, and what befalls a workspace that keeps these.

Times are whole numbers of their column's unit (:mod:`fuzz.streams.units`); they go up by steps of one scale,
with rows before and behind, so that some are late, some leave, and windows close, with each case.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from fuzz.case import ApplyMany, Case, Commit, Do, Staged, Step, Table
from fuzz.streams import units
from fuzz.streams.closing import extents_of, is_contradictory, latest_of
from fuzz.streams.draw_sql import view
from support.reference import Row
from support.rules import (
    Aggregate,
    Arithmetic,
    Atom,
    Call,
    Comparison,
    Constant,
    Either,
    Expression,
    Head,
    Literal,
    Order,
    Rule,
    Term,
    Variable,
    Wildcard,
    Windowed,
)

STRATEGIES = ("auto", "auto", "trace", "delta", "views", "recompute", "stages")
SCALES = {
    "int64": (1, 1, 3, 100, 10**9),
    "int32": (1, 7),
    "uint32": (1, 100),
    "date32[day]": (1,),
    "timestamp[s]": (1, 60),
    "timestamp[ms]": (1, 1000, 250),
    "timestamp[us]": (1, 10**6, 3600 * 10**6),
    "timestamp[ns]": (1000, 10**9),
    "timestamp[us, tz=UTC]": (10**6,),
    "timestamp[us, tz=Europe/Berlin]": (10**6, 3600 * 10**6),
}
"""What a step of time is, by the type of the times, in its units."""

BAD = 9
"""A number by which a rule divides by zero."""


@dataclass
class Times:
    """The type and the scale of a case's times."""

    r: random.Random
    type_name: str = ""
    scale: int = 1

    def __post_init__(self) -> None:
        self.type_name = self.r.choice(tuple(SCALES))
        self.scale = self.r.choice(SCALES[self.type_name])
        self.finest = 1000 if units.unit(self.type_name) == "ns" else 1
        """Of lengths of time, which no rule says in less than microseconds."""
        second = units.PER_SECOND.get(units.unit(self.type_name) or "", 0)
        starts = (0, -1000 * self.scale, 1_770_000_000 * second + 20_000)
        self.start = 10**6 if self.type_name == "uint32" else self.r.choice(starts)

    def span(self, most: int = 8, least: int = 0) -> int:
        """A length of time."""
        found = self.scale * self.r.randint(least, most)
        if self.scale > self.finest and self.r.random() < 0.2:
            found += self.r.randrange(0, self.scale, self.finest)
        return found

    def near(self, time: int) -> int:
        found = time + self.scale * self.r.choice((-30, *range(-8, 9)))
        return found + (self.r.randrange(self.scale) if self.r.random() < 0.3 else 0)

    def constant(self, span: int) -> Constant:
        return units.constant(self.type_name, span)


@dataclass
class Source:
    """A relation that rules may read: of each column "t", a time, or "i"."""

    name: str
    kinds: str
    is_stream: bool = False
    looked_back: int = 0
    """How far a rule looks back in it, at most."""


@dataclass
class Body:
    literals: list[Literal] = field(default_factory=list)
    scope: dict[str, str] = field(default_factory=dict)

    def fresh(self, kind: str) -> Variable:
        name = f"{kind}{len(self.scope)}"
        self.scope[name] = kind
        return Variable(name)

    def of(self, kind: str) -> list[str]:
        return [name for name, its in self.scope.items() if its == kind]


class Programs:
    """Draws rules over sources; heads become sources for those behind."""

    def __init__(self, r: random.Random, times: Times, sources: list[Source]) -> None:
        self.r, self.times, self.sources = r, times, sources
        self.loaded = list(sources)
        self.rules: list[Rule] = []
        self.finals: dict[str, tuple[int, int]] = {}

    def draw(self) -> None:
        for number in range(self.r.choice((1, 1, 2, 2, 3, 4))):
            name, choice = f"h{number}", self.r.random()
            if choice < 0.12:
                self._recursion(name)
            elif choice < 0.16:
                self._refusing(name)
            elif choice < 0.5:
                self._closing(name)
            else:
                self._head(name, self._body(self.sources))

    # -- bodies ----------------------------------------------------------------------------------

    def _atom(self, body: Body, source: Source) -> Atom:
        terms: list[Term] = []
        for kind in source.kinds:
            bound, choice = body.of(kind), self.r.random()
            if bound and choice < (0.55 if kind == "i" else 0.12):
                terms.append(Variable(self.r.choice(bound)))
            elif choice < 0.92 or kind == "t":
                terms.append(body.fresh(kind))
            else:
                terms.append(Constant(self.r.randrange(4)) if choice < 0.95 else Wildcard())
        return Atom(source.name, tuple(terms))

    def _negated(self, body: Body, source: Source) -> Atom:
        terms = tuple(
            Variable(self.r.choice(body.of(kind)))
            if body.of(kind) and self.r.random() < (0.8 if kind == "i" else 0.4)
            else Wildcard()
            for kind in source.kinds
        )
        return Atom(source.name, terms, negated=True)

    def _near(self, x: str, y: str) -> list[Literal]:
        """y is within a time of x."""
        low: Expression = Variable(x)
        span = self.times.span(least=0)
        if self.r.random() < 0.3:
            low = Arithmetic("-", low, self.times.constant(self.times.span(4)))
        high = Arithmetic("+", Variable(x), self.times.constant(span))
        found: list[Literal] = [
            Comparison(self.r.choice((">=", ">")), Variable(y), low),
            Comparison(self.r.choice(("<=", "<")), Variable(y), high),
        ]
        if self.r.random() < 0.15:
            found = [Comparison("=", Variable(y), high)]
        if self.r.random() < 0.15 and len(found) == 2:  # the other side first
            flipped = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}
            one = found[1]
            assert isinstance(one, Comparison)
            found[1] = Comparison(flipped[one.operator], one.right, one.left)
        return found

    def _window(self, body: Body, time: str) -> Literal:
        length = self.times.span(6, 1)
        more = (self.times.span(5),) if self.r.random() < 0.25 else ()
        if self.r.random() < 0.65:
            spans = (length, *more)
            call = Call("tumble", (Variable(time), *map(self.times.constant, spans)))
            return Comparison("=", body.fresh("t"), call)
        step = max(length // self.r.choice((1, 2, 3)), 1)
        step = max(step - step % self.times.finest, self.times.finest)
        call = Call("hop", (Variable(time), *map(self.times.constant, (length, step, *more))))
        return Comparison("=", Call("list_contains", (call, body.fresh("t"))), Constant(True))

    def _recent(self, body: Body) -> None:
        """Some of the times of streams are not long before the clock."""
        for literal in list(body.literals):
            source = next(
                (s for s in self.loaded if isinstance(literal, Atom) and s.name == literal.relation), None
            )
            if source is None or not source.is_stream or self.r.random() < 0.5:
                continue
            assert isinstance(literal, Atom)
            if literal.negated:
                continue
            time = literal.terms[source.kinds.index("t")]
            if not isinstance(time, Variable):
                continue
            span = self.times.span(10)
            self._looks_back(body, time, span)
            now: Expression = Call("now", ())
            if span or self.r.random() < 0.5:
                now = Arithmetic("-", now, units.back(self.times.type_name, span))
            operator = self.r.choice((">", ">="))
            if self.r.random() < 0.3:
                body.literals.append(Comparison({">": "<", ">=": "<="}[operator], now, time))
            else:
                body.literals.append(Comparison(operator, time, now))

    def _looks_back(self, body: Body, time: Variable, span: int) -> None:
        """All streams in a body of which it is the time keep rows for as long."""
        for source in (one for one in self.loaded if one.is_stream):
            for literal in body.literals:
                is_its = isinstance(literal, Atom) and literal.relation == source.name
                if is_its and literal.terms[source.kinds.index("t")] == time:
                    source.looked_back = max(source.looked_back, span)

    def _body(self, sources: list[Source], closes: bool = False) -> Body:
        body = Body()
        atoms = [s for s in sources for _ in range(3 if s.is_stream else 1)]
        for _ in range(self.r.choice((1, 1, 2, 2, 3))):
            before = body.of("t")
            body.literals.append(self._atom(body, self.r.choice(atoms)))
            came = [name for name in body.of("t") if name not in before]
            if before and came and self.r.random() < (0.95 if closes else 0.6):
                body.literals += self._near(self.r.choice(before), came[0])
        if self.r.random() < 0.45 and body.of("t"):
            body.literals.append(self._window(body, self.r.choice(body.of("t"))))
        if self.r.random() < 0.3 and body.scope:
            body.literals.append(self._negated(body, self.r.choice(sources)))
        if body.of("i") and self.r.random() < 0.15:
            body.literals.append(
                Comparison(
                    self.r.choice(("<", ">=", "!=")), Variable(self.r.choice(body.of("i"))), Constant(2)
                )
            )
        if closes:
            return body
        if self.r.random() < 0.3:
            self._recent(body)
        if self.r.random() < 0.12:
            self._either(body)
        return body

    def _either(self, body: Body) -> None:
        """One more atom, or another, that binds nothing new."""
        parts = []
        for _ in range(2):
            source = self.r.choice(self.sources)
            terms = self._negated(body, source).terms
            parts.append((Atom(source.name, terms),))
        body.literals.append(Either(tuple(parts)))

    # -- heads -----------------------------------------------------------------------------------

    def _head(self, name: str, body: Body) -> None:
        shown = self.r.sample(list(body.scope), min(len(body.scope), self.r.choice((1, 2, 2, 3, 4))))
        if not shown:
            return self._head(name, self._body(self.sources))
        choice = self.r.random()
        if choice < 0.08 and body.of("t"):
            self._ranked(name, body)
            return None
        if choice < 0.5:
            keys = shown[: self.r.randint(0, 2)]
            self._add(name, Head(name, tuple(map(Variable, keys)), self._aggregate(body)), body, [*keys, "i"])
            return None
        self._add(name, Head(name, tuple(map(Variable, shown)), bag=choice > 0.94), body, shown)
        if self.r.random() < 0.15 and choice <= 0.94:
            self._union(name, shown)
        return None

    def _union(self, name: str, shown: list[str]) -> None:
        """Another rule for a head."""
        for _ in range(20):
            body = self._body([one for one in self.sources if one.name != name])
            pools = [body.of(one[0]) for one in shown]
            if all(pools):
                terms = tuple(Variable(self.r.choice(pool)) for pool in pools)
                self.rules.append(Rule((Head(name, terms),), tuple(body.literals)))
                return

    def _ranked(self, name: str, body: Body) -> None:
        """The time before, or the rank of a row, among those of one number."""
        time = self.r.choice(body.of("t"))
        per = tuple(body.of("i")[:1])
        function = self.r.choice(("lag", "lead", "rank", "first"))
        kind = "i" if function == "rank" else "t"
        arguments = () if function == "rank" else (Variable(time),)
        target = body.fresh(kind)
        body.literals.append(Windowed(target, function, arguments, per, (Order(time),)))
        shown = list(dict.fromkeys([*per, time, target.name]))
        self._add(name, Head(name, tuple(map(Variable, shown))), body, shown, is_source=False)

    def _aggregate(self, body: Body) -> Aggregate:
        numbers = body.of("i")
        function = self.r.choice(("count", "sum", "sum", "min", "max", "avg", "distinct"))
        if function == "count" or not numbers:
            return Aggregate("count")
        argument = (Variable(self.r.choice(numbers)),)
        return (
            Aggregate("count", argument, distinct=True)
            if function == "distinct"
            else Aggregate(function, argument)
        )

    def _add(self, name: str, head: Head, body: Body, shown: list[str], is_source: bool = True) -> None:
        self.rules.append(Rule((head,), tuple(body.literals)))
        floats = isinstance(head.value, Aggregate) and head.value.function == "avg"
        if is_source and not head.bag and not floats:
            self.sources = [*self.sources, Source(name, "".join(one[0] for one in shown))]

    def _recursion(self, name: str) -> None:
        """Who reaches whom by the rows of a stream."""
        streams = [one for one in self.loaded if one.kinds.count("i") >= 2]
        if not streams:
            self._head(name, self._body(self.sources))
            return
        source = self.r.choice(streams)
        x, y, z = map(Variable, "xyz")

        def step(first: Variable, second: Variable) -> Atom:
            names = iter((first, second))
            return Atom(
                source.name,
                tuple(next(names, Wildcard()) if kind == "i" else Wildcard() for kind in source.kinds),
            )

        onward = step(y, z) if self.r.random() < 0.6 else Atom(name, (y, z))
        self.rules.append(Rule((Head(name, (x, y)),), (step(x, y),)))
        self.rules.append(Rule((Head(name, (x, z)),), (Atom(name, (x, y)), onward)))
        self.sources = [*self.sources, Source(name, "ii")]

    def _refusing(self, name: str) -> None:
        """A rule that fails on some rows."""
        body = Body()
        body.literals.append(self._atom(body, self.r.choice([one for one in self.loaded if one.is_stream])))
        if not body.of("i"):
            self._head(name, self._body(self.sources))
            return
        number = Variable(body.of("i")[-1])
        inverse = Arithmetic("/", Constant(12), Arithmetic("-", number, Constant(BAD)))
        target = Variable("f")
        body.literals.append(Comparison("=", target, inverse))
        self._add(name, Head(name, (number, target)), body, [], is_source=False)

    def _closing(self, name: str) -> None:
        """A head whose rows close; where there is no way, one whose rows don't."""
        places = {one.name: one.kinds.index("t") for one in self.loaded if one.is_stream}
        for _ in range(12):
            body = self._body(self.loaded, closes=True)
            begun = body.of("t")
            if not begun or not any(
                isinstance(one, Atom) and one.relation in places for one in body.literals
            ):
                continue
            close = self.r.choice(begun[-2:])
            others = [n for n in self.r.sample(list(body.scope), min(2, len(body.scope))) if n != close]
            value = self._aggregate(body) if self.r.random() < 0.6 else None
            shown = [close, *others]
            self.r.shuffle(shown)
            rule = Rule((Head(name, tuple(map(Variable, shown)), value),), tuple(body.literals))
            (whole,) = units.in_units((rule,), self.times.type_name, None)
            column = shown.index(close)
            latest = latest_of(whole, column, places)
            if latest is None or is_contradictory(whole):
                continue
            after = latest + 1 if self.r.random() < 0.7 else latest + 1 + self.times.span(3)
            after += -after % self.times.finest
            extents = extents_of(whole, column, after, places)
            if not extents:
                continue
            for source in self.loaded:
                source.looked_back = max(source.looked_back, extents.get(source.name, 0))
            self.rules.append(rule)
            self.finals[name] = (column, after)
            return
        self._head(name, self._body(self.sources))


# -- cases -------------------------------------------------------------------------------------------


def _sources(r: random.Random) -> list[Source]:
    found = []
    for number in range(r.choice((1, 2, 2, 2, 3))):
        kinds = ["t", *("i",) * r.choice((1, 1, 2, 2, 3))]
        r.shuffle(kinds)
        found.append(Source(f"s{number}", "".join(kinds), True))
    if r.random() < 0.35:
        found.append(Source("p0", r.choice(("i", "ii", "ti"))))
    return found


class Feed:
    """Rows as time goes on."""

    def __init__(self, r: random.Random, times: Times, sources: list[Source], bad: bool, nulls: bool) -> None:
        self.r, self.times, self.sources, self.bad, self.nulls = r, times, sources, bad, nulls
        self.latest = times.start
        self.rows: dict[str, list[Row]] = {one.name: [] for one in sources}

    def row(self, source: Source) -> Row:
        old = self.rows[source.name][-15:]
        if old and self.r.random() < 0.12:
            return self.r.choice(old)
        row = tuple(self.times.near(self.latest) if kind == "t" else self._number() for kind in source.kinds)
        if self.times.type_name == "uint32":
            row = tuple(
                max(cell, 0) if kind == "t" else cell for cell, kind in zip(row, source.kinds, strict=True)
            )
        self.rows[source.name].append(row)
        return row

    def _number(self) -> int | None:
        if self.nulls and self.r.random() < 0.1:
            return None
        return BAD if self.bad and self.r.random() < 0.05 else self.r.randrange(4)

    def go_on(self) -> None:
        self.latest += self.times.scale * self.r.choice((0, 0, 1, 2, 3, 6, 10, 60))

    def staged(self, most: int = 6) -> tuple[Staged, ...]:
        """A transaction's changes, of some relations."""
        found: list[Staged] = []
        for _ in range(self.r.randrange(most + 1)):
            source = self.r.choice(self.sources)
            weight = 1
            if self.rows[source.name] and self.r.random() < 0.2:
                found.append((source.name, self.r.choice(self.rows[source.name][-15:]), -1))
                continue
            found.append((source.name, self.row(source), weight))
        self.go_on()
        return tuple(found)

    def advanced(self) -> Staged:
        return ("clock", (self.latest + self.times.scale * self.r.choice((-9, -2, 0, 0, 3, 20)),), "advance")


def _step(r: random.Random, feed: Feed, heads: list[str], in_folder: bool) -> Step:
    choice = r.random()
    if choice < 0.55:
        staged = feed.staged()
        if r.random() < 0.15:
            staged = (*staged, feed.advanced())
        return Commit(staged, r.choice(("apply", "apply", "rows", "tables")))
    if choice < 0.68:
        return ApplyMany(tuple(feed.staged(3) for _ in range(r.choice((1, 2, 3, 6, 12)))))
    does: list[tuple[str, tuple[Any, ...]]] = [
        ("roll_back", (feed.staged(),)),
        ("snapshot", ()),
        ("verify", ()),
        ("follow", ()),
        ("set_strategy", (r.choice(heads), r.choice(STRATEGIES))) if heads else ("verify", ()),
    ]
    if in_folder:
        does += [
            ("reopen", (r.random() < 0.5, r.random() < 0.4)),
            ("reopen", (r.random() < 0.5, False)),
            ("left", (r.random() < 0.5,)),
            ("killed", (tuple(feed.staged(4) for _ in range(4)), r.randrange(4), round(r.uniform(0, 3), 2))),
            ("refresh", ()),
            ("save", ()),
            ("compact", ()),
            ("image", ()),
        ]
    return Do(*r.choice(does))


def streams(r: random.Random) -> Case:
    times, sources = Times(r), _sources(r)
    programs = Programs(r, times, sources)
    programs.draw()
    bad = any(
        isinstance(one, Comparison) and one.left == Variable("f")
        for rule in programs.rules
        for one in rule.body
    )
    nulls = not bad and r.random() < 0.15
    feed = Feed(r, times, sources, False, nulls)
    tables, settings = [], {}
    for source in sources:
        type_names = tuple(times.type_name if kind == "t" else "int64" for kind in source.kinds)
        names = tuple("t" if kind == "t" else f"c{n}" for n, kind in enumerate(source.kinds))
        bag = source.is_stream and r.random() < 0.12
        rows = [feed.row(source) for _ in range(r.choice((0, 1, 4, 12)))]
        rows = rows if bag else list(dict.fromkeys(rows))
        own = nulls and "i" in source.kinds
        tables.append(
            Table(
                source.name,
                type_names,
                tuple(rows),
                own,
                bag,
                names=names,
                not_null=("t",) if own and "t" in names else (),
            )
        )
        if source.is_stream:
            late = times.span(r.choice((0, 2, 6)))
            needed = max(late, source.looked_back)
            needed += -needed % times.finest
            keep = r.choice((None, needed, needed, needed + times.span(20), needed + 100 * times.scale))
            ahead = times.span(90, 60) if r.random() < 0.15 else None
            settings[source.name] = {"late": late, "keep": keep, "ahead": ahead, "declared": r.random() < 0.3}
        feed.go_on()
    feed.bad = bad
    in_folder = r.random() < 0.3
    heads = list(dict.fromkeys(rule.heads[0].relation for rule in programs.rules))
    steps = tuple(_step(r, feed, heads, in_folder) for _ in range(r.choice((2, 4, 8, 12))))
    options: dict[str, Any] = {
        "time": times.type_name,
        "streams": settings,
        "finals": programs.finals,
        "strategies": tuple(r.choice(STRATEGIES) for _ in heads),
        "others": tuple(r.choice(STRATEGIES) for _ in heads),
    }
    if r.random() < 0.5:
        options["merges"] = r.choice(((0, 100), (2, 2), (0, 1)))
    if r.random() < 0.2:
        options["sensitivity_bytes"] = r.choice((0, 400, 4000))
    if r.random() < 0.2:
        options["record_gap"] = 0
    if in_folder:
        options["durability"] = r.choice(("commit", "interval", "none"))
        if r.random() < 0.3:
            options["feed_bytes"] = 0
    if not nulls and "tz" not in times.type_name and r.random() < 0.3:
        options["views"] = tuple(
            (view(r, times, [s for s in sources if "t" in s.kinds]), r.choice(STRATEGIES[:-1]))
            for _ in range(r.choice((1, 2)))
        )
    return Case("streams", tuple(tables), tuple(programs.rules), steps, options)
