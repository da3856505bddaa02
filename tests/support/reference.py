"""The brute-force reference: evaluates rule structures over Python sets of tuples.

It imports nothing of the engine and shares no idea with it: positive atoms are
nested loops over the tuples that agree with what is bound, found by hashing, in the
order of writing; assignments, comparisons and negations are tested on complete
bindings; disjunction is expanded.

What it computes (the rule language's semantics, in full)

1. A body's *assignments* are its satisfying bindings of all its variables.  A
   wildcard in a positive atom counts as a variable of its own; a wildcard in a
   negated atom means "no tuple at all".
2. With disjunction, assignments are restricted to the variables that every
   alternative binds, and equal ones count once.
3. A plain head is the projection of the assignments; an aggregate runs over
   the assignments of its group, so equal values of different assignments all
   count.  The groups are those of the head's variables, wherever they stand;
   one without assignments has no tuple, the global group included.
4. Several rules with one head are their union; a functional relation with two
   values for one key is a ``FunctionalConflict``.  The rules of a bag add up the assignments; its rows have
   the number of the copy behind them, which what reads them has to name.
5. NULL is None.  A literal that reads one is not true, neither a join, a comparison, an equation nor a
   negated atom, but for ``x is null``; functions leave out assignments in which they would aggregate one, and
   several aggregates of a head skip it each for itself.
6. Heads that depend on themselves are the least fixpoint: all their rules are
   evaluated over what they gave the last time, at first nothing, until nothing changes.  Of those among them
   that are ``min`` or ``max``, all rules together give one value per key.

Cost: the product of the relations' sizes in the worst case.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from support.functions import EXACT, FUNCTIONS, DivisionByZero, Overflow, in_range, moved, remainder
from support.kinds import Listed
from support.nearest import nearest_of
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
    Minus,
    Nearest,
    Order,
    Program,
    Rule,
    Variable,
    Wildcard,
    Windowed,
    literals,
    variables_of,
)

Row = tuple[Any, ...]
Relations = Mapping[str, set[Row]]
Binding = dict[str, Any]


class FunctionalConflict(Exception):
    """A functional relation has two values for one key."""


class TooManySteps(Exception):
    """More tuples were tried than :func:`at_most` allows."""


class _Steps:
    """How many tuples may still be tried; None: as many as there are."""

    left: int | None = None

    @classmethod
    def take(cls, steps: int) -> None:
        if cls.left is not None:
            cls.left -= steps
            if cls.left < 0:
                raise TooManySteps


@contextlib.contextmanager
def at_most(steps: int) -> Iterator[None]:
    """Raise TooManySteps where an evaluation would try more tuples."""
    _Steps.left = steps
    try:
        yield
    finally:
        _Steps.left = None


# -- values -------------------------------------------------------------------


def meet(left: Any, right: Any) -> tuple[Any, Any]:
    """The two values as they meet in a comparison: a float turns a Decimal into a float."""
    if isinstance(left, float) and isinstance(right, Decimal):
        return left, float(right)
    if isinstance(left, Decimal) and isinstance(right, float):
        return float(left), right
    return left, right


READ_NULL = ("if", "coalesce", "nullif", "greatest", "least", *NULL_SAFE)
KNOW_NULL = (*READ_NULL, "is null", "and", "or", "not")


def holds(operator: str, left: Any, right: Any) -> bool:
    left, right = meet(left, right)
    if operator == "=":
        return bool(left == right)
    if operator == "!=":
        return bool(left != right)
    if operator in ("<", "<="):
        return bool(left < right or (operator == "<=" and left == right))
    return bool(left > right or (operator == ">=" and left == right))


def same(left: Any, right: Any) -> bool:
    """NULL is NULL, and no value."""
    return left is right if left is None or right is None else holds("=", left, right)


def children(node: Expression) -> tuple[Expression, ...]:
    if isinstance(node, Arithmetic):
        return node.left, node.right
    if isinstance(node, Minus):
        return (node.operand,)
    return node.arguments if isinstance(node, Call) else ()


def strict(node: Expression) -> set[str]:
    """The variables whose NULL leaves a binding out."""
    if isinstance(node, Variable):
        return {node.name}
    if isinstance(node, Call) and node.function in READ_NULL:
        return set()
    return set().union(*map(strict, children(node)))


def with_null(node: Call, binding: Binding) -> Any:
    """What takes NULL for a value: SQL's CASE, COALESCE, IS NULL, AND, OR, NOT."""
    if node.function == "coalesce":
        return next((v for one in node.arguments if (v := calculate(one, binding)) is not None), None)
    if node.function == "if":
        condition, then, *otherwise = node.arguments
        if calculate(condition, binding):
            return calculate(then, binding)
        return calculate(otherwise[0], binding) if otherwise else None
    if node.function == "is null":
        return calculate(node.arguments[0], binding) is None
    found = [calculate(argument, binding) for argument in node.arguments]
    if node.function in NULL_SAFE:
        return same(*found) == (node.function == "<=>")
    if node.function == "nullif":
        return None if None not in found and holds("=", *found) else found[0]
    if node.function in ("greatest", "least"):
        there = [value for value in found if value is not None]
        return FUNCTIONS[node.function](*there) if there else None
    if node.function == "not":
        return None if found[0] is None else not found[0]
    decides = node.function == "or"
    if decides in found:
        return decides
    return None if None in found else not decides


def calculate(node: Expression, binding: Binding) -> Any:
    if isinstance(node, Variable):
        return binding[node.name]
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Call) and node.function in KNOW_NULL:
        return with_null(node, binding)
    if any(calculate(child, binding) is None for child in children(node)):
        return None
    if isinstance(node, Minus):
        return in_range(-calculate(node.operand, binding))
    if isinstance(node, Call) and node.function in OPERATORS:
        left, right = (calculate(argument, binding) for argument in node.arguments)
        return holds(node.function, left, right)
    if isinstance(node, Call):
        return FUNCTIONS[node.function](*(calculate(argument, binding) for argument in node.arguments))
    left, right = calculate(node.left, binding), calculate(node.right, binding)
    if (time := moved(left, right, node.operator)) is not None:
        return time
    if isinstance(left, int) and isinstance(node.right, Constant) and isinstance(right, Decimal):
        right = float(right)  # `b * 1.2` with an integer b is a float
    if isinstance(right, int) and isinstance(node.left, Constant) and isinstance(left, Decimal):
        left = float(left)
    left, right = meet(left, right)
    if node.operator == "/":
        if right == 0:
            raise DivisionByZero
        return left / right
    if node.operator == "%":
        return remainder(left, right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        left, right = Decimal(left), Decimal(right)
        return {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}[node.operator](left, right)
    if node.operator == "+":
        return in_range(left + right)
    return in_range(left - right if node.operator == "-" else left * right)


# -- bodies -------------------------------------------------------------------


def name_wildcards(body: tuple[Literal, ...], counter: Iterator[int]) -> tuple[Literal, ...]:
    """Every wildcard of a positive atom becomes a variable of its own."""
    named: list[Literal] = []
    for literal in body:
        if isinstance(literal, Either):
            named.append(Either(tuple(name_wildcards(a, counter) for a in literal.alternatives)))
        elif isinstance(literal, Atom) and not literal.negated:
            terms = tuple(
                Variable(f"?{next(counter)}") if isinstance(t, Wildcard) else t for t in literal.terms
            )
            named.append(Atom(literal.relation, terms, functional=literal.functional))
        else:
            named.append(literal)
    return tuple(named)


def conjunctions(body: tuple[Literal, ...]) -> list[list[Atom | Comparison]]:
    """The body with its disjunctions multiplied out."""
    choices: list[list[list[Atom | Comparison]]] = []
    for literal in body:
        if isinstance(literal, Either):
            choices.append([c for alternative in literal.alternatives for c in conjunctions(alternative)])
        else:
            choices.append([[literal]])
    return [
        [literal for part in combination for literal in part] for combination in itertools.product(*choices)
    ]


def match(atom: Atom, row: Row, binding: Binding) -> Binding | None:
    """The binding extended by the tuple, or None where the tuple does not fit."""
    extended = dict(binding)
    for term, value in zip(atom.terms, row, strict=True):
        if isinstance(term, Constant):
            if not holds("=", value, term.value):
                return None
        elif isinstance(term, Variable):
            if term.name in extended and extended[term.name] != value:
                return None
            extended.setdefault(term.name, value)
    return extended


class Candidates:
    """The tuples that may fit an atom once variables are bound: those with equal values in their places."""

    def __init__(self, atom: Atom, relations: Relations, bound: set[str]) -> None:
        self.atom = atom
        places = {n: term.name for n, term in enumerate(atom.terms) if isinstance(term, Variable)}
        self.names = [name for name in places.values() if name in bound]
        self.rows: dict[Row, list[Row]] = {}
        for row in relations[atom.relation]:
            key = tuple(row[place] for place, name in places.items() if name in bound)
            self.rows.setdefault(key, []).append(row)

    def matches(self, binding: Binding) -> Iterator[Binding]:
        for row in self.rows.get(tuple(binding[name] for name in self.names), ()):
            _Steps.take(1)
            extended = match(self.atom, row, binding)
            if extended is not None:
                yield extended


def nested_loops(atoms: list[Candidates], binding: Binding) -> Iterator[Binding]:
    if not atoms:
        yield binding
        return
    for extended in atoms[0].matches(binding):
        yield from nested_loops(atoms[1:], extended)


def assign(comparisons: list[Comparison], binding: Binding) -> tuple[list[Comparison], Binding] | None:
    """Carries out ``v = expression`` where v is unbound, until none is left; the rest are tests.

    None where an expression would read NULL.

    Constants come last, so that they give no variable its type that has another source.
    """
    rest = list(comparisons)
    binding = dict(binding)
    while True:
        possible = [
            (not list(variables_of(source)), place, target.name, source)
            for place, comparison in enumerate(rest)
            for target, source in ((comparison.left, comparison.right), (comparison.right, comparison.left))
            if comparison.operator == "="
            and isinstance(target, Variable)
            and target.name not in binding
            and all(name in binding for name in variables_of(source))
        ]
        if not possible:
            return rest, binding
        _, place, name, source = min(possible, key=lambda one: one[:2])
        value = None if reads_null(source, binding) else calculate(source, binding)
        if value is None and not gives_null(source):
            return None
        binding[name] = value
        del rest[place]


def generator(test: Comparison) -> tuple[str, Expression] | None:
    """Of ``x in l`` the variable that stands for each element, and the list."""
    of = test.left
    if isinstance(of, Call) and of.function == "list_contains" and test.right == Constant(True):
        lists, element = of.arguments
        if isinstance(element, Variable):
            return element.name, lists
    return None


def assign_each(
    comparisons: list[Comparison], binding: Binding
) -> Iterator[tuple[list[Comparison], Binding]]:
    """What :func:`assign` does, once for each element of the lists whose elements nothing else binds."""
    assigned = assign(comparisons, binding)
    if assigned is None:
        return
    rest, binding = assigned
    for place, test in enumerate(rest):
        found = generator(test)
        if found and found[0] not in binding and all(name in binding for name in variables_of(found[1])):
            name, lists = found
            values = () if reads_null(lists, binding) else calculate(lists, binding) or ()
            for value in dict.fromkeys(value for value in values if value is not None):
                yield from assign_each(rest[:place] + rest[place + 1 :], {**binding, name: value})
            return
    yield rest, binding


def gives_null(source: Expression) -> bool:
    """Whether NULL is a value of this, and not what leaves a binding out."""
    while isinstance(source, Call) and source.function == "cast":
        source = source.arguments[0]
    gives = (*READ_NULL, "list_extract")
    return isinstance(source, Constant) or (isinstance(source, Call) and source.function in gives)


def reads_null(node: Atom | Comparison | Expression, binding: Binding) -> bool:
    if isinstance(node, Comparison):
        return reads_null(node.left, binding) or reads_null(node.right, binding)
    if isinstance(node, Atom):
        names = {t.name for t in node.terms if isinstance(t, Variable) and not t.null_safe}
    else:
        names = strict(node)
    return any(binding[name] is None for name in names)


def passes(test: Comparison, binding: Binding) -> bool:
    if test.tests_null:
        return (calculate(test.left, binding) is None) == (test.operator == "<=>")
    if test.operator in NULL_SAFE:
        sides = calculate(test.left, binding), calculate(test.right, binding)
        return same(*sides) == (test.operator == "<=>")
    if reads_null(test, binding):
        return False
    left, right = calculate(test.left, binding), calculate(test.right, binding)
    return None not in (left, right) and holds(test.operator, left, right)


def solve(conjunction: list[Atom | Comparison], relations: Relations) -> list[Binding]:
    """All satisfying bindings of a conjunction."""
    positive = [c for c in conjunction if isinstance(c, Atom) and not c.negated]
    negative = [c for c in conjunction if isinstance(c, Atom) and c.negated]
    comparisons = [c for c in conjunction if isinstance(c, Comparison)]
    solutions = []
    bound: set[str] = set()
    atoms = []
    for atom in positive:
        atoms.append(Candidates(atom, relations, bound))
        bound |= set(variables_of(atom))
    bound = bound_variables(conjunction)
    refusing = [Candidates(atom, relations, bound) for atom in negative]
    stands = Counter(
        t.name for atom in positive for t in atom.terms if isinstance(t, Variable) and not t.null_safe
    )
    joined = [name for name, times in stands.items() if times > 1]
    for binding in nested_loops(atoms, {}):
        if any(binding[name] is None for name in joined):
            continue
        for tests, assigned in assign_each(comparisons, binding):
            if not all(passes(test, assigned) for test in tests):
                continue
            if any(reads_null(atom, assigned) for atom in negative):
                continue
            if any(any(True for _ in atom.matches(assigned)) for atom in refusing):
                continue
            solutions.append(assigned)
    return solutions


def bound_variables(conjunction: list[Atom | Comparison]) -> set[str]:
    """The variables a conjunction binds: those of positive atoms, then by assignments."""
    names = {v for c in conjunction if isinstance(c, Atom) and not c.negated for v in variables_of(c)}
    equalities = [c for c in conjunction if isinstance(c, Comparison) and c.operator == "="]
    for _ in equalities:
        for equality in equalities:
            generated = generator(equality)
            if generated and names.issuperset(variables_of(generated[1])):
                names.add(generated[0])
            for target, source in ((equality.left, equality.right), (equality.right, equality.left)):
                if isinstance(target, Variable) and names.issuperset(variables_of(source)):
                    names.add(target.name)
    return names


def assignments(body: tuple[Literal, ...], relations: Relations) -> list[Binding]:
    """The body's distinct assignments, over the variables that every alternative binds."""
    for literal in literals(body):
        if isinstance(literal, Atom) and literal.functional:
            check_functional(relations[literal.relation])
    expanded = conjunctions(name_wildcards(body, itertools.count()))
    names = sorted(set.intersection(*(bound_variables(c) for c in expanded)))
    rows = {tuple(solution[name] for name in names) for c in expanded for solution in solve(c, relations)}
    return [dict(zip(names, row, strict=True)) for row in rows]


# -- aggregates ---------------------------------------------------------------


def exact_sum(values: list[Any]) -> Any:
    """The sum as if computed without rounding, then rounded once to the values' own kind."""
    if isinstance(values[0], float):
        special = [v for v in values if math.isnan(v) or math.isinf(v)]
        if special:
            return sum(special)  # a NaN, or infinities of both signs, give NaN
        return to_float(sum((Fraction(v) for v in values), Fraction(0)))
    if isinstance(values[0], Decimal):
        total = Decimal(0)
        for value in values:
            total = EXACT.add(total, value)
        return total
    return in_range(sum(values))


def average(values: list[Any]) -> float:
    if isinstance(values[0], float) and not all(math.isfinite(v) for v in values):
        return float(exact_sum(values))
    return to_float(sum((Fraction(v) for v in values), Fraction(0)) / len(values))


def to_float(value: Fraction) -> float:
    try:
        return float(value)  # correctly rounded
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def concat(arguments: tuple[Variable | Constant, ...], rows: list[Binding]) -> str:
    value, *rest = arguments
    assert isinstance(value, Variable)
    separator = ","
    if rest and isinstance(rest[0], Constant):
        separator = rest.pop(0).value  # type: ignore[union-attr]
    order = [v.name for v in rest if isinstance(v, Variable)] + [value.name]
    ordered = sorted(rows, key=lambda row: tuple(row[name] for name in order))
    return str(separator.join(row[value.name] for row in ordered))


def quantile(values: list[Any], weights: list[int], share: Fraction, from_above: bool) -> Any:
    """The first value from one end with which the share of all weight is reached."""
    rows = sorted(zip(values, weights, strict=True), reverse=from_above)
    reached = itertools.accumulate(weight for _, weight in rows)
    return next(v for (v, _), sum_ in zip(rows, reached, strict=True) if sum_ >= share * sum(weights))


def variance(values: list[Any], less: int) -> float | None:
    """The exact one, rounded once; ``less``: 1 of a sample, which takes two numbers."""
    if any(isinstance(value, float) and abs(value) > 2.0**511 and math.isfinite(value) for value in values):
        raise Overflow
    if len(values) <= less:
        return None
    if not all(math.isfinite(value) for value in values):
        return math.nan if len(values) > 1 else 0.0
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    return to_float(sum(((value - mean) ** 2 for value in exact), Fraction(0)) / (len(exact) - less))


def root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def median(values: list[Any]) -> float:
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if not (math.isfinite(low) and math.isfinite(high)):
        return float(low + high)
    return to_float((Fraction(low) + Fraction(high)) / 2)


def mode(values: list[Any]) -> Any:
    """The most frequent one; of several the least."""
    often = Counter(values)
    return min(value for value, count in often.items() if count == max(often.values()))


def reached(node: Aggregate, rows: list[Binding]) -> Any:
    """``arg_min(x, v)`` and ``arg_max(x, v)``: of several x the least."""
    x, v = (argument.name for argument in node.arguments if isinstance(argument, Variable))
    best = (min if node.function == "arg_min" else max)(row[v] for row in rows)
    return min(row[x] for row in rows if row[v] == best)


def skipped(node: Aggregate) -> list[str]:
    """The variables whose NULL leaves an assignment out; lists have NULLs."""
    if node.function == "list":
        return []
    return [argument.name for argument in node.arguments if isinstance(argument, Variable)]


def passing(node: Aggregate, rows: list[Binding]) -> list[Binding]:
    names = skipped(node)
    if node.condition is not None:
        rows = [row for row in rows if calculate(node.condition, row)]
    return [row for row in rows if all(row[name] is not None for name in names)]


def aggregated(node: Aggregate, rows: list[Binding]) -> Any:
    """The aggregate of those of a group's assignments that pass, without NULL; of none it is NULL, or 0."""
    rows = passing(node, rows)
    if node.distinct:
        names = [argument.name for argument in node.arguments if isinstance(argument, Variable)]
        rows = list({tuple(row[name] for name in names): row for row in rows}.values())
    return aggregate(node, rows) if rows or node.function == "count" else None


def aggregate(node: Aggregate, rows: list[Binding]) -> Any:
    """The aggregate of one group's assignments; ``rows`` is not empty, but for ``count``."""
    if node.function == "count":
        return len(rows)
    if node.function in ("concat", "string_agg"):
        return concat(node.arguments, rows)
    if node.function in ("arg_min", "arg_max"):
        return reached(node, rows)
    argument = node.arguments[0]
    assert isinstance(argument, Variable)
    if node.function == "list":
        rows = ordered(rows, (*node.by, Order(argument.name)))
    values = [row[argument.name] for row in rows]
    if node.function == "list":
        return Listed(values)
    if node.function in ("kth_largest", "kth_smallest"):
        rank = node.arguments[1]
        assert isinstance(rank, Constant)
        return sorted(values, reverse=node.function == "kth_largest")[: rank.value][-1]
    if node.function in ("quantile", "upper_quantile"):
        share, *weight = node.arguments[1:]
        assert isinstance(share, Constant)
        weights = [row[one.name] for one in weight if isinstance(one, Variable) for row in rows]
        return quantile(
            values, weights or [1] * len(rows), Fraction(str(share.value)), node.function == "upper_quantile"
        )
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "sum": exact_sum,
        "avg": average,
        "min": min,
        "max": max,
        "any_value": min,
        "bool_and": min,
        "bool_or": max,
        "median": median,
        "mode": mode,
        "variance": lambda values: variance(values, 1),
        "var_pop": lambda values: variance(values, 0),
        "stddev": lambda values: root(variance(values, 1)),
        "stddev_pop": lambda values: root(variance(values, 0)),
    }
    return functions[node.function](values)


# -- programs -----------------------------------------------------------------


def check_functional(rows: set[Row]) -> None:
    if len({row[:-1] for row in rows}) != len(rows):
        raise FunctionalConflict


# -- windows ------------------------------------------------------------------


def ordered(rows: list[Binding], by: tuple[Order, ...]) -> list[Binding]:
    """Sorted from the last variable to the first: Python's sort is stable."""
    for one in reversed(by):
        nulls = [row for row in rows if row[one.name] is None]
        known = [row for row in rows if row[one.name] is not None]
        known.sort(key=lambda row: row[one.name], reverse=one.descending)
        rows = nulls + known if one.nulls_first else known + nulls
    return rows


def frame_of(window: Windowed, rows: list[Binding], at: int) -> list[Binding]:
    """The rows of a partition that one of them reads."""

    def key(row: Binding) -> Row:
        return tuple(row[one.name] for one in window.by)

    groups = [list(group) for _, group in itertools.groupby(range(len(rows)), lambda place: key(rows[place]))]
    own = next(number for number, group in enumerate(groups) if at in group)
    unit, first, last = window.frame or ("groups", None, 0 if window.by else None)
    if unit == "rows":
        return [
            row
            for place, row in enumerate(rows)
            if (first is None or place - at >= first) and (last is None or place - at <= last)
        ]
    if unit == "groups" or not (first or last) or rows[at][window.by[0].name] is None:
        if unit == "range":
            first, last = first and 0, last and 0
        return [
            rows[place]
            for number, group in enumerate(groups)
            if (first is None or number - own >= first) and (last is None or number - own <= last)
            for place in group
        ]
    (order,) = window.by
    here = rows[at][order.name]
    found = []
    for place, row in enumerate(rows):
        value = row[order.name]
        if value is None:  # beyond all distances, on one side
            inside = (first is None) if place < at else (last is None)
        else:
            away = (here - value) if order.descending else (value - here)
            inside = (first is None or away >= first) and (last is None or away <= last)
        if inside:
            found.append(row)
    return found


def window_value(window: Windowed, rows: list[Binding], at: int) -> Any:
    """Of row ``at`` of a partition in its order."""
    keys = [tuple(row[one.name] for one in window.by) for row in rows]
    if window.function in ("row_number", "top"):
        return at + 1
    if window.function == "rank":
        return keys.index(keys[at]) + 1
    if window.function == "dense_rank":
        return len(set(keys[: at + 1]))
    if window.function == "percent_rank":
        return keys.index(keys[at]) / max(len(rows) - 1, 1)
    if window.function == "cume_dist":
        return (len(rows) - keys[::-1].index(keys[at])) / len(rows)
    numbers = [argument.value for argument in window.arguments if isinstance(argument, Constant)]
    if window.function == "ntile":
        each, more = divmod(len(rows), numbers[0])
        ends = list(itertools.accumulate(each + (part < more) for part in range(numbers[0])))
        return 1 + next(part for part, end in enumerate(ends) if at < end)
    names = [argument.name for argument in window.arguments if isinstance(argument, Variable)]
    if window.function in ("lag", "lead"):
        away = numbers[0] if numbers else 1
        place = at + (away if window.function == "lead" else -away)
        return rows[place][names[0]] if 0 <= place < len(rows) else None
    framed = frame_of(window, rows, at)
    if not names:
        return len(framed)
    values = [row[names[0]] for row in framed]
    if window.function in ("first", "last"):
        return None if not values else values[0 if window.function == "first" else -1]
    if window.function == "nth":
        return values[numbers[0] - 1] if len(values) >= numbers[0] else None
    known = [value for value in values if value is not None]
    if window.function == "count":
        return len(known)
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "sum": exact_sum,
        "avg": average,
        "min": min,
        "max": max,
    }
    return functions[window.function](known) if known else None


def with_window(window: Windowed, found: list[Binding]) -> list[Binding]:
    """The assignments with the window's value, less those that ``top`` leaves out."""
    partitions: dict[Row, list[Binding]] = {}
    for binding in found:
        partitions.setdefault(tuple(binding[name] for name in window.per), []).append(binding)
    given = []
    for rows in partitions.values():
        rows = ordered(rows, window.by)
        for at, row in enumerate(rows):
            _Steps.take(len(rows))  # each is looked at for each
            value = window_value(window, rows, at)
            if window.function == "top":
                (most,) = window.arguments
                assert isinstance(most, Constant)
                if value > most.value:
                    continue
            given.append({**row, window.target.name: value})
    return given


def body_rows(body: tuple[Literal, ...], relations: Relations) -> list[Binding]:
    """The assignments of a body with one window at most; what reads its value are comparisons."""
    windows = [literal for literal in body if isinstance(literal, Windowed)]
    for literal in body:
        if isinstance(literal, Nearest):
            rest = tuple(one for one in body if one is not literal)
            return nearest_of(literal, rest, assignments(rest, relations))
    if not windows:
        return assignments(body, relations)
    (window,) = windows
    late = [
        literal
        for literal in body
        if isinstance(literal, Comparison)
        and window.target.name in (*variables_of(literal.left), *variables_of(literal.right))
    ]
    early = tuple(literal for literal in body if literal is not window and literal not in late)
    found = with_window(window, assignments(early, relations))
    return [binding for binding in found if all(passes(test, binding) for test in late)]


def rule_rows(rule: Rule, head: Head, relations: Relations) -> list[Binding]:
    """The assignments of a rule's body in which no function among its heads would read NULL.

    A head that filters is alone in this, and leaves the other heads all of them.
    """
    values = [one.value for one in rule.heads if isinstance(one.value, Aggregate)]
    if isinstance(head.value, Aggregate) and head.value.condition is not None:
        values = []
    read = {
        name
        for call in values
        if call.condition is None and not (call.distinct and call.function == "count")
        for name in skipped(call)
    }
    found = body_rows(rule.body, relations)
    return [binding for binding in found if all(binding[name] is not None for name in read)]


def head_rows(head: Head, found: list[Binding]) -> set[Row]:
    """Without aggregate, the assignments that agree in all variables of the head are a group.

    A function of what it filters has no tuple of a group in which nothing passes; a count has.
    """
    value = head.value
    if isinstance(value, Aggregate) and value.condition is not None and value.function != "count":
        found = passing(value, found)
    names = [column.name for column in head.columns if isinstance(column, Variable)]
    groups: dict[Row, list[Binding]] = {}
    for binding in found:
        groups.setdefault(tuple(binding[name] for name in names), []).append(binding)
    made = {
        tuple(
            aggregated(column, rows) if isinstance(column, Aggregate) else rows[0][column.name]
            for column in head.columns
        )
        for rows in groups.values()
    }
    calls = [column for column in head.columns if isinstance(column, Aggregate)]
    if not made and any(call.default is not None for call in calls):
        return {tuple(call.default.value if call.default else None for call in calls)}
    return made


def copies(head: Head, found: list[Binding]) -> Counter[Row]:
    """How often each row of a bag is there, by one of its rules."""
    counts: Counter[Row] = Counter()
    for row in found:
        weight = 1 if head.copies is None else row[head.copies.name]
        columns = (column for column in head.columns if isinstance(column, Variable))
        counts[tuple(row[column.name] for column in columns)] += max(weight or 0, 0)
    return counts


def best_rows(rows: set[Row], function: str) -> set[Row]:
    """Of the rows of each key the one with the least or the largest value."""
    values: dict[Row, list[Any]] = {}
    for row in rows:
        values.setdefault(row[:-1], []).append(row[-1])
    return {(*key, (min if function == "min" else max)(every)) for key, every in values.items()}


def evaluate(program: Program, relations: Relations, wanted: str) -> set[Row]:
    """The tuples of relation ``wanted``; only the rules that it depends on are run."""
    return evaluate_each(program, relations, [wanted])[wanted]


def evaluate_each(program: Program, relations: Relations, wanted: list[str]) -> dict[str, set[Row]]:
    """The tuples of several relations, each of which is derived once."""
    known: dict[str, set[Row]] = dict(relations)
    rules_of: dict[str, list[tuple[Rule, Head]]] = {}
    for rule in program:
        for head in rule.heads:
            rules_of.setdefault(head.relation, []).append((rule, head))

    reads = {
        name: {
            literal.relation
            for rule, _ in rules
            for literal in literals(rule.body)
            if isinstance(literal, Atom)
        }
        for name, rules in rules_of.items()
    }

    def reached(name: str) -> set[str]:
        found: set[str] = set()
        todo = [name]
        while todo:
            for read in reads.get(todo.pop(), set()) - found:
                found.add(read)
                todo.append(read)
        return found

    def rows_of(name: str, state: Relations, recursive: bool) -> set[Row]:
        if rules_of[name][0][1].bag:
            counts: Counter[Row] = Counter()
            for rule, head in rules_of[name]:
                counts.update(copies(head, rule_rows(rule, head, state)))
            return {(*row, copy) for row, n in counts.items() for copy in range(n)}
        found = [head_rows(head, rule_rows(rule, head, state)) for rule, head in rules_of[name]]
        rows = set().union(*found)
        value = rules_of[name][0][1].value
        return best_rows(rows, value.function) if recursive and isinstance(value, Aggregate) else rows

    def derive(name: str) -> None:
        if name in known:
            return
        together = {other for other in reached(name) if name in reached(other)}
        for read in sorted(set().union(*(reads[other] for other in together or {name})) - together):
            derive(read)
        found: dict[str, set[Row]] = {other: set() for other in together or {name}}
        while True:
            following = {other: rows_of(other, {**known, **found}, bool(together)) for other in found}
            done = not together or following == found
            found = following
            if done:
                break
        for other, rows in found.items():
            if any(head.value is not None for _, head in rules_of[other]):
                check_functional(rows)
        known.update(found)

    for name in wanted:
        derive(name)
    return {name: known[name] for name in wanted}
