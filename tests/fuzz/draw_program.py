"""Random programs: rules that are right by construction, with what breaks engines drawn often.

Repeated variables, atoms that share nothing with the rest, existential parts, negations and comparisons
anywhere, products, constants that are not there, disjunctions, functions, aggregates of all kinds, unions,
heads over heads, bags, recursion with and without ``min`` and ``max``.  What is evaluated ends: recursion
computes nothing but best values, of which there are few.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field, replace
from decimal import Decimal

from fuzz.draw_data import Source
from fuzz.draw_nearest import nearest
from support.calls import ESCAPED, REGULAR, conditional, own_literals, text_calls
from support.kinds import (
    BINARY,
    BOOLEAN,
    COARSE,
    COARSE_DURATION,
    DATE,
    DECIMAL,
    DURATION,
    EXTREME,
    FINE_DURATION,
    FLOAT,
    INTEGER,
    MOMENT,
    SIGNED,
    STRING,
    WIDE,
    ZONED,
    Kind,
    list_of,
)
from support.rules import (
    NULL_SAFE,
    OPERATORS,
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
    Program,
    Rule,
    Term,
    Variable,
    Wildcard,
    Windowed,
)

WHOLE = (INTEGER, SIGNED)
PATTERNS = ("", "a", "%a%", "_", "%", "a_", "_%")


@dataclass
class Body:
    """A body while it is drawn.  ``scope``: the variables that are bound, with their kinds."""

    literals: list[Literal] = field(default_factory=list)
    scope: dict[str, Kind] = field(default_factory=dict)
    names: int = 0
    wide: bool = False
    """Whether a relation has the least integer, which has the code of NULL."""

    def fresh(self, kind: Kind) -> Variable:
        self.names += 1
        name = f"v{self.names}"
        self.scope[name] = kind
        return Variable(name)

    def of_kind(self, kind: Kind) -> list[str]:
        return [name for name, its in self.scope.items() if its is kind]


# -- literals ---------------------------------------------------------------------------------


def _constant(r: random.Random, kind: Kind) -> Term:
    return Constant(r.choice(kind.literals)) if kind.literals else Wildcard()


def atom(r: random.Random, body: Body, source: Source, apart: bool = False) -> Atom:
    """A positive one.  ``apart``: none of its variables is one that is bound already."""
    terms: list[Term] = []
    own: list[tuple[str, Kind]] = []
    before = dict(body.scope)
    for kind in source.kinds:
        repeated = [name for name, its in own if its is kind]
        bound = [name for name, its in before.items() if its is kind]
        choice = r.random()
        if repeated and choice < 0.18:
            terms.append(Variable(r.choice(repeated)))
        elif bound and not apart and choice < 0.72:
            terms.append(Variable(r.choice(bound), null_safe=r.random() < 0.12))
        elif choice < 0.9:
            fresh = body.fresh(kind)
            own.append((fresh.name, kind))
            terms.append(fresh)
        else:
            terms.append(_constant(r, kind) if choice < 0.94 else Wildcard())
    functional = source.functional and r.random() < 0.5
    return Atom(source.name, tuple(terms), functional=functional)


def negated(r: random.Random, body: Body, source: Source) -> Atom:
    terms: list[Term] = []
    for kind in source.kinds:
        bound = body.of_kind(kind)
        choice = r.random()
        if bound and choice < 0.7:
            terms.append(Variable(r.choice(bound), null_safe=r.random() < 0.3))
        else:
            terms.append(_constant(r, kind) if choice < 0.8 else Wildcard())
    return Atom(source.name, tuple(terms), negated=True, functional=source.functional and r.random() < 0.3)


def _affine(r: random.Random, kind: Kind, names: list[str]) -> Expression:
    x, y = (Variable(r.choice(names)) for _ in range(2))
    number = Constant(r.choice(kind.literals[:4] if kind in WHOLE else (Decimal("0.5"), Decimal("1.5"))))
    forms: list[Expression] = [Arithmetic(r.choice("+-"), x, number), Arithmetic(r.choice("+-"), x, y)]
    if kind is not DECIMAL:
        forms.append(Arithmetic("+", Arithmetic("*", x, number), y))
    return r.choice(forms)


SPANS = {
    **dict.fromkeys((MOMENT, ZONED), (FINE_DURATION, (1_000_000, 250_000, -86_400_000_000, 1))),
    COARSE: (COARSE_DURATION, (1_000_000, 3_600_000_000, -86_400_000_000)),
    DURATION: (DURATION, (3_600_000_000, -1000, 90_000_000_000)),
}
"""Of times, the kind of the durations between two of them, and of some the microseconds."""


def _span(r: random.Random, kind: Kind) -> Constant:
    return Constant(datetime.timedelta(microseconds=r.choice(SPANS[kind][1])))


def _timed(r: random.Random, kind: Kind, names: list[str]) -> tuple[Expression, Kind]:
    """A time moved, the beginning of a window or the duration between two, and its kind."""
    x, y = (Variable(r.choice(names)) for _ in range(2))
    if kind is DATE:
        days, whole = Constant(r.choice((1, 7, 30))), Constant(datetime.timedelta(days=r.choice((1, 7))))
        return r.choice(
            (
                (Arithmetic(r.choice("+-"), x, days), DATE),
                (Arithmetic(r.choice("+-"), x, whole), COARSE),
                (Arithmetic("-", x, y), SIGNED),
                (Call("tumble", (x, days)), DATE),
                (Call("tumble", (x, whole, days)), DATE),
            )
        )
    forms: list[tuple[Expression, Kind]] = [
        (Arithmetic(r.choice("+-"), x, _span(r, kind)), kind),
        (Arithmetic("-", x, y), SPANS[kind][0]),
    ]
    if kind is not DURATION:
        length = Constant(abs(_span(r, kind).value))
        forms += [(Call("tumble", (x, length, *r.choice(((), (_span(r, kind),))))), kind)] * 2
    return r.choice(forms)


def _between(r: random.Random, kind: Kind, names: list[str]) -> Comparison:
    """Of two times, how far apart they are: ``u <= t + 10s``, ``u - t > 5s``."""
    x, y = (Variable(r.choice(names)) for _ in range(2))
    span = Constant(r.choice((1, -30))) if kind is DATE else _span(r, kind)
    operator = r.choice(OPERATORS)
    if r.random() < 0.5:
        return Comparison(operator, Arithmetic("-", x, y), span)
    return Comparison(operator, x, Arithmetic(r.choice("+-"), y, span))


def _called(r: random.Random, kind: Kind, names: list[str]) -> tuple[Expression, Kind]:
    """A function of variables of a kind, and the kind of its value."""
    x, y = (Variable(r.choice(names)) for _ in range(2))
    if r.random() < 0.25:
        last = r.choice((None, *own_literals(kind)))
        return conditional(x, y, r.choice, last), kind
    if kind in WHOLE:
        return r.choice(
            (
                (Call("abs", (x,)), kind),
                (Call("greatest", (x, y)), kind),
                (Arithmetic("%", x, Constant(r.choice((2, 3, -2)))), SIGNED),
                (Call("div", (x, Constant(2))), kind),
                (Call("cast", (x, Constant("string"))), STRING),
                (Call("cast", (x, Constant("float64"))), FLOAT),
            )
        )
    if kind is STRING:
        return r.choice(
            (
                (Call("lower", (x,)), STRING),
                (Call("length", (x,)), INTEGER),
                (Call("substring", (x, Constant(r.choice((1, 2, -1))))), STRING),
                (Call("least", (x, y)), STRING),
                (Call("position", (x, r.choice((y, Constant("a"))))), INTEGER),
                (r.choice(text_calls(x, y, r.choice)), STRING),
                (r.choice(text_calls(x, y, r.choice)), STRING),
            )
        )
    if kind in (DATE, MOMENT):
        part = r.choice(("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear"))
        unit = Constant(r.choice(("year", "quarter", "month", "week", "day")))
        return r.choice(((Call(part, (x,)), INTEGER), (Call("date_trunc", (unit, x)), kind)))
    return Call("least", (x, y)), kind


def _of_lists(r: random.Random, body: Body, kind: Kind) -> tuple[Expression, Kind]:
    """A function of variables of a kind of lists, and the kind of its value."""
    x, y = (Variable(r.choice(body.of_kind(kind))) for _ in range(2))
    forms: list[tuple[Expression, Kind]] = [
        (Call("len", (x,)), INTEGER),
        (conditional(x, y, r.choice, None), kind),
    ]
    element = kind.element
    assert element is not None
    if not body.wide:
        place = Constant(r.choice((1, 2, -1, 0)))
        forms.append((Call("list_extract", (x, place)), element))
    of = body.of_kind(element)
    if of:
        forms.append((Call("list_contains", (x, Variable(r.choice(of)))), BOOLEAN))
    return r.choice(forms)


def _generated(r: random.Random, body: Body, name: str, kind: Kind) -> Comparison:
    """``v in l`` for a fresh v: of a list, of a hopping window, or of the parts of a text."""
    x = Variable(name)
    lists: Expression = x
    if kind in SPANS:
        length, step = (Constant(abs(_span(r, kind).value)) for _ in range(2))
        most = max(length.value, datetime.timedelta(seconds=1))
        lists = Call("hop", (x, length, Constant(max(step.value, most / 4))))
    elif kind in WHOLE:
        lists = Call("hop", (x, Constant(r.choice((1, 2, 3))), Constant(r.choice((1, 2)))))
    made = kind.element or (SIGNED if kind in WHOLE else kind)
    return Comparison("=", Call("list_contains", (lists, body.fresh(made))), Constant(True))


def assignment(r: random.Random, body: Body) -> Comparison:
    """``v = expression`` or ``v in expression`` for a fresh v."""
    name, kind = r.choice(list(body.scope.items()))
    generates = kind.element is not None or kind in WHOLE or (kind in SPANS and kind is not DURATION)
    if generates and not body.wide and r.random() < (0.25 if kind in WHOLE else 0.4):
        return _generated(r, body, name, kind)
    source: Expression = Variable(name)
    if kind in (INTEGER, SIGNED, FLOAT, DECIMAL) and r.random() < 0.5:
        source = _affine(r, kind, body.of_kind(kind))
    elif kind in (DATE, *SPANS) and r.random() < 0.5:
        source, kind = _timed(r, kind, body.of_kind(kind))
    elif kind in (*WHOLE, STRING, DATE, MOMENT, FLOAT, DECIMAL) and r.random() < 0.8:
        source, kind = _called(r, kind, body.of_kind(kind))
    elif kind.element is not None and r.random() < 0.8:
        source, kind = _of_lists(r, body, kind)
    if r.random() < 0.1:
        tested = comparison(r, body)
        if not (isinstance(tested.left, Call) or isinstance(tested.right, Constant)):
            return Comparison("=", body.fresh(BOOLEAN), Call(tested.operator, (tested.left, tested.right)))
    sides = [body.fresh(kind), source]
    r.shuffle(sides)
    return Comparison("=", *sides)


def comparison(r: random.Random, body: Body) -> Comparison:
    name, kind = r.choice(list(body.scope.items()))
    names = body.of_kind(kind)
    choice = r.random()
    right: Expression = Variable(r.choice(names))
    if choice < 0.15 and kind.literals and kind is not EXTREME:
        call = Call("in", (Variable(name), *(Constant(v) for v in r.choices(kind.literals, k=2)), right))
        return Comparison("=", call, Constant(r.random() < 0.5))
    if choice < 0.3 and kind is STRING:
        asked = Variable(name)
        call = r.choice(
            (
                Call(r.choice(("like", "starts_with", "contains")), (asked, Constant(r.choice(PATTERNS)))),
                Call("like", (asked, Constant(r.choice(ESCAPED)), Constant("!"))),
                Call("regexp_matches", (asked, Constant(r.choice(REGULAR)))),
            )
        )
        return Comparison("=", call, Constant(r.random() < 0.5))
    if kind in SPANS and 0.3 <= choice < 0.6:
        return _between(r, kind, names)
    if kind.affine and choice < 0.55:
        right = _affine(r, kind, names)
    elif kind.literals and choice < 0.8:
        right = Constant(r.choice(kind.literals))
    sides = [Variable(name), right]
    r.shuffle(sides)
    return Comparison(r.choice(OPERATORS), *sides)


def joined_by_computed(r: random.Random, body: Body, source: Source) -> list[Literal]:
    """An atom that only what is computed of rows joins to the others: ``s(y), abs(x) = y % 3``."""
    known = dict(body.scope)
    found: list[Literal] = [atom(r, body, source, apart=True)]
    own = {name: kind for name, kind in body.scope.items() if name not in known}
    for _ in range(12 if known and own else 0):
        sides = []
        for scope in (known, own):
            kind = r.choice(list(scope.values()))
            names = [name for name, its in scope.items() if its is kind]
            computes = kind in (*WHOLE, STRING, DATE, MOMENT, DECIMAL) and r.random() < 0.7
            sides.append(_called(r, kind, names) if computes else (Variable(r.choice(names)), kind))
        (left, kind), (_, other) = sides
        alike = kind is other or (kind in WHOLE and other in WHOLE)
        if alike and kind is not EXTREME and not isinstance(left, Variable):
            r.shuffle(sides)
            return [*found, Comparison(r.choice(("=", "=", "=", "<=>")), sides[0][0], sides[1][0])]
    return found


def outer(r: random.Random, body: Body, source: Source) -> Either:
    """A left join: ``(s(x, v) ; !s(x, _), v = null)``, of which v enters the scope."""
    joined = [name for name in body.scope if body.scope[name] in source.kinds]
    place = r.randrange(len(source.kinds))
    value = body.fresh(source.kinds[place])
    keys: list[Term] = [Wildcard() for _ in source.kinds]
    if joined:
        name = r.choice(joined)
        keys[source.kinds.index(body.scope[name])] = Variable(name, null_safe=r.random() < 0.5)
    there = tuple(value if number == place else key for number, key in enumerate(keys))
    nowhere = tuple(Wildcard() if number == place else key for number, key in enumerate(keys))
    missing = (Atom(source.name, nowhere, negated=True), Comparison("=", value, Constant(None)))
    return Either(((Atom(source.name, there),), missing))


def unmatched(r: random.Random, body: Body, source: Source, other: Source) -> list[Literal]:
    """A row without its like, where NULL is like NULL: ``r(x, y), !s(<=> x, _)``; x and y enter the scope."""
    known = set(body.scope)
    row = atom(r, body, source, apart=True)
    own = {name: kind for name, kind in body.scope.items() if name not in known}
    terms: list[Term] = []
    for kind in other.kinds:
        fitting = [name for name, its in own.items() if its is kind]
        drawn = fitting and r.random() < 0.8
        terms.append(Variable(r.choice(fitting), null_safe=r.random() < 0.9) if drawn else Wildcard())
    return [row, Atom(other.name, tuple(terms), negated=True)]


def null_test(r: random.Random, body: Body) -> Comparison:
    in_atoms = [
        term.name
        for literal in body.literals
        if isinstance(literal, Atom) and not literal.negated
        for term in literal.terms
        if isinstance(term, Variable)
    ]
    name = r.choice(in_atoms)
    return Comparison(r.choice(NULL_SAFE), Variable(name), Constant(None))


def either(r: random.Random, body: Body, catalog: list[Source]) -> Either:
    """Alternatives that bind nothing for the rest, or one variable that all of them bind; or tests alone."""
    if body.scope and r.random() < 0.3:
        return Either(
            tuple(
                tuple(comparison(r, body) for _ in range(r.choice((1, 1, 2))))
                for _ in range(r.choice((2, 2, 3)))
            )
        )
    shared = body.fresh(r.choice(r.choice(catalog).kinds)) if r.random() < 0.5 else None
    kind = body.scope.get(shared.name) if shared else None
    alternatives = []
    for _ in range(r.choice((2, 2, 3))):
        local = Body([], {name: its for name, its in body.scope.items() if not shared or name != shared.name})
        local.names = body.names
        literals: list[Literal] = []
        if shared and kind is not None:
            source = r.choice([one for one in catalog if kind in one.kinds])
            place = r.choice([n for n, its in enumerate(source.kinds) if its is kind])
            drawn = atom(r, local, source)
            terms = tuple(shared if n == place else term for n, term in enumerate(drawn.terms))
            bound = {term.name for term in terms if isinstance(term, Variable)}
            local.scope = {n: k for n, k in local.scope.items() if n in body.scope or n in bound}
            literals.append(Atom(source.name, terms))
        elif r.random() < 0.6:
            literals.append(atom(r, local, r.choice(catalog)))
        if not literals or r.random() < 0.3:
            one = negated(r, local, r.choice(catalog)) if r.random() < 0.4 else None
            literals.append(
                one or (comparison(r, local) if local.scope else atom(r, local, r.choice(catalog)))
            )
        body.names = local.names
        alternatives.append(tuple(literals))
    return Either(tuple(alternatives))


# -- bodies and heads ---------------------------------------------------------------------------


NUMBERED = ("rank", "dense_rank", "row_number", "percent_rank", "cume_dist")


def window(r: random.Random, body: Body) -> list[Literal]:
    """A window over what the body binds so far, whose value enters the scope, and perhaps a test of it."""
    scope = {name: kind for name, kind in body.scope.items() if kind is not EXTREME}
    names = list(scope)
    if not names:
        return []
    per = tuple(r.sample(names, r.choice((0, 1, 1)) if len(names) > 1 else 0))
    every = [name for name in body.scope if name not in per]
    r.shuffle(every)
    total = r.random() < 0.6 and len(names) == len(body.scope)  # an order that leaves no two rows alike
    by = every if total else r.sample(names, r.randint(1, min(2, len(names))))
    orders = tuple(Order(name, r.random() < 0.4, r.random() < 0.3) for name in by)
    argument = r.choice(names)
    kind = scope[argument]
    functions = ["rank", "dense_rank", "count", "min", "max", *["sum", "avg"] * kind.number]
    whole = bool(per) and r.random() < 0.15  # a value of each partition: without an order
    if whole:
        functions, orders, total = functions[2:], (), False
    else:
        functions += ["percent_rank", "cume_dist"]
        picked = ["lag", "lead", "first", "last", "nth"] * (not body.wide)
        functions += ["row_number", "ntile", "top", "top", *picked] * total
    function = r.choice(functions)
    frame: tuple[str, int | None, int | None] | None = None
    framed = ("count", *(() if body.wide else ("sum", "avg", "min", "max", "first", "last")))
    if function in framed and not whole and r.random() < 0.5:
        ends = sorted(r.choices(range(-2, 3), k=2))
        first, last = (None if r.random() < 0.2 else end for end in ends)
        ranged = len(orders) == 1 and scope[orders[0].name] in WHOLE
        frame = (r.choice(["groups", *["rows"] * total, *["range"] * ranged]), first, last)
    arguments: tuple[Variable | Constant, ...] = ()
    if function in ("top", "ntile"):
        arguments = (Constant(r.choice((1, 2, 3, 10))),)
    elif function == "nth":
        arguments = (Variable(argument), Constant(r.choice((1, 2, 3))))
    elif function in ("lag", "lead"):
        arguments = (Variable(argument), *((Constant(r.choice((0, 1, 2))),) if r.random() < 0.5 else ()))
    elif function not in NUMBERED and (function != "count" or r.random() < 0.5):
        arguments = (Variable(argument),)
    numbers = function in ("rank", "dense_rank", "row_number", "top", "ntile", "count")
    given = (
        INTEGER
        if numbers
        else FLOAT
        if function in ("avg", "percent_rank", "cume_dist")
        else SIGNED
        if function == "sum" and kind in WHOLE
        else kind
    )
    target = body.fresh(given)
    found: list[Literal] = [Windowed(target, function, arguments, per, orders, frame)]
    if numbers and r.random() < 0.4:
        found.append(Comparison(r.choice(("<=", "<=", ">")), target, Constant(r.choice((1, 2, 3)))))
    return found


def draw_body(r: random.Random, catalog: list[Source], most_atoms: int, plain: bool, nulls: bool) -> Body:
    """``plain``: atoms, negated atoms and comparisons only."""
    body = Body(wide=any(WIDE in source.kinds for source in catalog))
    for _ in range(r.randint(1, most_atoms)):
        body.literals.append(atom(r, body, r.choice(catalog), apart=r.random() < 0.12))
    while not body.scope:
        body.literals.append(atom(r, body, r.choice(catalog)))
    is_simple = True  # so that a computed value that is left out can't fail
    if not plain and r.random() < 0.15:
        body.literals.append(either(r, body, catalog))
        is_simple = False
    if not plain and r.random() < 0.25:
        body.literals.append(assignment(r, body))
        is_simple = False
    if not plain and not body.wide and r.random() < 0.1:
        body.literals += joined_by_computed(r, body, r.choice(catalog))
        is_simple = False
    for _ in range(r.choice((0, 0, 0, 1, 1, 2))):
        body.literals.append(negated(r, body, r.choice(catalog)))
    late: dict[str, Kind] = {}  # what only heads read, so that it may be NULL
    known = set(body.scope)
    if nulls and not plain and r.random() < 0.15:
        body.literals.append(outer(r, body, r.choice(catalog)))
    if nulls and r.random() < 0.25:
        body.literals += unmatched(r, body, r.choice(catalog), r.choice(catalog))
    late |= {name: body.scope.pop(name) for name in set(body.scope) - known}
    for _ in range(r.choice((0, 0, 0, 1, 1, 2))):
        body.literals.append(comparison(r, body))
    if nulls and r.random() < 0.3:
        body.literals.append(null_test(r, body))
    body.scope |= late
    if not plain and r.random() < 0.12:
        body.literals += window(r, body)
    elif not plain and is_simple and r.random() < 0.25:
        body.literals += nearest(r, body.literals, body.scope)
    r.shuffle(body.literals)
    return body


def _some(r: random.Random, names: list[str], least: int) -> list[str]:
    chosen = r.sample(names, r.randint(min(least, len(names)), min(4, len(names))))
    return chosen + chosen[:1] if chosen and r.random() < 0.06 else chosen


def aggregate(r: random.Random, body: Body, keys: bool = True, alone: bool = False) -> tuple[Aggregate, Kind]:
    """``keys``: whether the head has groups; without, there may be a default over nothing.

    ``alone``: no other aggregate or window of its rule has an order.
    """
    scope = body.scope
    name, kind = r.choice(list(scope.items()))
    functions = ["count", "count", "min", "max", "kth_largest", "kth_smallest", "quantile", "upper_quantile"]
    functions += ["any_value", "arg_min", "arg_max"] + ["mode"] * (kind is not EXTREME)
    functions += ["sum", "sum", "avg"] * kind.number + ["concat", "string_agg"] * (kind is STRING)
    functions += ["median", "variance", "var_pop", "stddev", "stddev_pop"] * kind.number
    functions += ["bool_and", "bool_or"] * 2 * (kind is BOOLEAN)
    functions += ["list", "list"] * (
        kind is not EXTREME and (kind.element is None or kind.element.element is None)
    )
    function = r.choice(functions)
    arguments: tuple[Variable | Constant, ...] = () if function == "count" else (Variable(name),)
    if function.startswith("kth"):
        arguments += (Constant(r.randint(1, 3)),)
    if function.endswith("quantile"):
        arguments += (Constant(r.choice((0.1, 0.5, 0.75, 1))),)
    if function.startswith("arg"):
        arguments += (Variable(r.choice([one for one in scope if scope[one] is not EXTREME] or [name])),)
    distinct = r.random() < 0.2 and function not in ("mode", "arg_min", "arg_max")
    if distinct and function == "count":
        arguments = (Variable(name),)
    condition = _condition(r, scope) if r.random() < 0.25 and not body.wide else None
    average = kind if kind is EXTREME else FLOAT  # it may be NaN likewise
    numbers = dict.fromkeys(("avg", "median", "variance", "var_pop", "stddev", "stddev_pop"), average)
    found = {"count": INTEGER, "list": list_of(kind), **numbers}.get(function, kind)
    by: tuple[Order, ...] = ()
    if function == "list" and not distinct and alone and r.random() < 0.5:
        by = tuple(
            Order(one, r.random() < 0.5, r.random() < 0.3)
            for one in r.sample(list(scope), min(2, len(scope)))
            if scope[one] is not EXTREME
        )
    default = None
    literals = own_literals(found)
    if found is COARSE:  # whose literals are finer than its values
        literals = []
    if found is FLOAT:  # some of whose types have 32 bits
        literals = [one for one in literals if float(one) * 2**20 % 1 == 0]
    if found is INTEGER:  # among whose types are unsigned ones
        literals = [one for one in literals if one >= 0]
    if not keys and literals and kind is not BINARY and not body.wide and r.random() < 0.3:
        value = r.choice(literals)
        default = Constant(float(value) if found is FLOAT else value)
    return Aggregate(function, arguments, distinct, condition, default, by), found


def _condition(r: random.Random, scope: dict[str, Kind]) -> Call:
    """What stands first in ``if``."""
    kind = r.choice(list(scope.values()))
    x, y = (Variable(r.choice([name for name, its in scope.items() if its is kind])) for _ in range(2))
    while True:
        drawn = conditional(x, y, r.choice, None)
        if drawn.function == "if":
            found = drawn.arguments[0]
            assert isinstance(found, Call)
            return found


def heads(r: random.Random, name: str, body: Body, plain: bool) -> list[tuple[Head, Source]]:
    scope, choice = body.scope, 0.0 if plain else r.random()
    names = list(scope)
    if choice < 0.55:
        chosen = _some(r, names, 1)
        return [(Head(name, tuple(map(Variable, chosen))), Source(name, tuple(scope[n] for n in chosen)))]
    if choice < 0.78:
        keys = list(dict.fromkeys(_some(r, names, 0)))
        windows = any(isinstance(literal, Windowed) for literal in body.literals)
        call, kind = aggregate(r, body, bool(keys), alone=not windows)
        source = Source(name, (*(scope[key] for key in keys), kind), functional=True)
        return [(Head(name, tuple(map(Variable, keys)), call), source)]
    if choice < 0.9:
        columns: list[tuple[Variable | Aggregate, Kind]] = [
            (Variable(key), scope[key]) for key in dict.fromkeys(_some(r, names, 0))
        ]
        columns += [aggregate(r, body, bool(columns)) for _ in range(r.choice((1, 2, 3)))]
        r.shuffle(columns)
        return [(Head(name, tuple(c for c, _ in columns)), Source(name, tuple(k for _, k in columns)))]
    if choice < 0.95:
        value = r.choice(names)
        keys = [key for key in names if key != value]
        source = Source(name, tuple(scope[key] for key in (*keys, value)), functional=True)
        return [(Head(name, tuple(map(Variable, keys)), Variable(value)), source)]
    return [*heads(r, name, body, plain=True), *heads(r, f"{name}_b", body, plain=True)]


# -- programs -------------------------------------------------------------------------------------


def recursion(r: random.Random, name: str, catalog: list[Source], nulls: bool) -> tuple[list[Rule], Source]:
    """Rules of one relation that reads itself: a beginning, and one or two steps, linear or not."""
    body = draw_body(r, catalog, 2, plain=True, nulls=nulls)
    chosen = r.sample(list(body.scope), min(len(body.scope), r.choice((1, 2, 2, 2, 3))))
    source = Source(name, tuple(body.scope[one] for one in chosen))
    rules = [Rule((Head(name, tuple(map(Variable, chosen))),), tuple(body.literals))]
    for _ in range(r.choice((1, 1, 2))):
        step = Body()
        step.literals.append(atom(r, step, source))
        for _ in range(r.randint(0, 2)):
            reads = source if r.random() < 0.25 else r.choice(catalog)
            step.literals.append(atom(r, step, reads, apart=r.random() < 0.2))
        for kind in source.kinds:  # until every column of the head has a variable
            if not step.of_kind(kind):
                one = r.choice([other for other in (*catalog, source) if kind in other.kinds])
                place = one.kinds.index(kind)
                drawn = atom(r, step, one)
                fresh = step.fresh(kind)
                terms = tuple(fresh if n == place else term for n, term in enumerate(drawn.terms))
                step.literals.append(Atom(one.name, terms))
                bound = {
                    t.name
                    for a in step.literals
                    if isinstance(a, Atom)
                    for t in a.terms
                    if isinstance(t, Variable)
                }
                step.scope = {n: k for n, k in step.scope.items() if n in bound}
        if r.random() < 0.3:
            step.literals.append(comparison(r, step))
        if r.random() < 0.25:
            step.literals.append(negated(r, step, r.choice(catalog)))
        r.shuffle(step.literals)
        columns = tuple(Variable(r.choice(step.of_kind(kind))) for kind in source.kinds)
        rules.append(Rule((Head(name, columns),), tuple(step.literals)))
    return rules, source


def shortest(r: random.Random, name: str, catalog: list[Source]) -> tuple[list[Rule], Source] | None:
    """``d[x] = min(n)`` along a relation of two columns of one kind; a step takes 1, and for max nothing."""
    edges = [one for one in catalog if len(one.kinds) > 1 and one.kinds[0] is one.kinds[1]]
    if not edges:
        return None
    edge = r.choice(edges)
    x, y, n, m = map(Variable, "xynm")
    more = tuple(Wildcard() for _ in edge.kinds[2:])
    start = (Atom(edge.name, (x, Wildcard(), *more)), Comparison("=", n, Constant(r.randint(0, 3))))
    step: list[Literal] = [
        Atom(name, (x, n), functional=True),
        Atom(edge.name, (x, y, *more)),
        Comparison("=", m, Arithmetic("+", n, Constant(1)) if (least := r.random() < 0.7) else n),
    ]
    if r.random() < 0.4:
        other = Body(scope={"x": edge.kinds[0], "y": edge.kinds[0]})
        step.append(atom(r, other, r.choice(catalog), apart=r.random() < 0.5))
    if r.random() < 0.3:
        step.append(negated(r, Body(scope={"x": edge.kinds[0], "y": edge.kinds[0]}), r.choice(catalog)))
    r.shuffle(step)
    function = "min" if least else "max"
    rules = [
        Rule((Head(name, (x,), Aggregate(function, (n,))),), start),
        Rule((Head(name, (y,), Aggregate(function, (m,))),), tuple(step)),
    ]
    return rules, Source(name, (edge.kinds[0], INTEGER), functional=True)


def bag(r: random.Random, head: Head, body: Body) -> Head:
    """The head, or a bag of its columns, where it is plain."""
    plain = head.value is None and all(isinstance(term, Variable) for term in head.terms)
    if not plain or r.random() > 0.15:
        return head
    return replace(head, bag=True, copies=weight(r, body) if r.random() < 0.4 else None)


def weight(r: random.Random, body: Body) -> Variable:
    """How many copies an assignment gives: few, or none."""
    late = {literal.target.name for literal in body.literals if isinstance(literal, Windowed)}
    whole = [name for name, kind in body.scope.items() if kind in WHOLE and name not in late]
    few: Expression = Constant(r.choice((2, 3, 0)))
    if whole and r.random() < 0.8:
        few = Arithmetic("%", Variable(r.choice(whole)), Constant(r.choice((3, 4))))
    target = body.fresh(SIGNED)
    body.literals.append(Comparison("=", target, few))
    return target


def readable(source: Source, head: Head | None) -> bool:
    """Whether later rules read it: sums of extreme floats may be NaN, which does not join."""
    aggregated = head is not None and any(isinstance(column, Aggregate) for column in head.columns)
    return bool(source.kinds) and not (aggregated and EXTREME in source.kinds)


def program(
    r: random.Random, catalog: list[Source], most_atoms: int, nulls: bool, plain: bool = False
) -> Program:
    """One to four rules, each over the relations and the heads before it."""
    catalog, rules = list(catalog), []
    for number in range(1 if plain else r.choice((1, 1, 1, 2, 2, 3, 4))):
        name = f"h{number}"
        choice = 1.0 if plain else r.random()
        found = None
        if choice < 0.08:
            found = shortest(r, name, catalog)
        elif choice < 0.2:
            found = recursion(r, name, catalog, nulls)
        if found is not None:
            rules += found[0]
            catalog.insert(0, found[1])
            continue
        body = draw_body(r, catalog, most_atoms if number == 0 else min(most_atoms, 2), plain, nulls)
        drawn = heads(r, name, body, plain)
        if not plain:
            drawn = [(bag(r, head, body), source) for head, source in drawn]
        rules.append(Rule(tuple(head for head, _ in drawn), tuple(body.literals)))
        if not plain and len(drawn) == 1 and r.random() < 0.15:
            rules += union(r, *drawn[0], catalog)
        catalog = [source for head, source in drawn if readable(source, head)] + catalog
    return tuple(rules)


def union(r: random.Random, head: Head, source: Source, catalog: list[Source]) -> list[Rule]:
    """A second rule of a plain head."""
    if source.functional or any(isinstance(column, Aggregate) for column in head.columns):
        return []
    fitting = [one for one in catalog if set(source.kinds) <= set(one.kinds)]
    if not fitting:
        return []
    body = Body()
    body.literals.append(atom(r, body, r.choice(fitting)))
    if not all(body.of_kind(kind) for kind in source.kinds):
        return []
    columns = tuple(Variable(r.choice(body.of_kind(kind))) for kind in source.kinds)
    second = replace(head, terms=columns, copies=weight(r, body) if head.bag and r.random() < 0.3 else None)
    return [Rule((second,), tuple(body.literals))]
