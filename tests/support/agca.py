"""AGCA, the calculus of DBToaster, as its papers have it: the reference for sums that follow changes.

    q ::= R(x..) | {term} | (a op b) | q * q | q + q | -q | Sum_[g..](q) | x := q

An expression maps bindings of its variables to numbers.  Products pass bindings from left to right, a sum
adds up what agrees in its groups.  :func:`delta` is what an inserted or erased tuple changes, and an
expression again; :func:`simplified` multiplies out, puts what is assigned in the place of its variables, and
takes apart what shares no variable; :func:`transition_program` keeps an expression by keeping its deltas, of
all orders, each once however its variables are called.  Names that begin with ``@`` are an event's values.

Source: DBToaster draft, "Incremental Processing" and "Compiling Transition Programs"; the notes on the
viewlet transform, part 2.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Term = str | int
"""A variable, or a number."""

Binding = dict[str, int]
Row = tuple[tuple[str, int], ...]
Rows = dict[Row, int]
Data = Mapping[str, Counter[tuple[int, ...]]]

OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Atom:
    relation: str
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Value:
    term: Term


@dataclass(frozen=True)
class Compare:
    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Times:
    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Plus:
    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Sum:
    groups: tuple[str, ...]
    part: Expr


@dataclass(frozen=True)
class Lift:
    variable: str
    part: Expr


Expr = Atom | Value | Compare | Times | Plus | Sum | Lift

ONE, ZERO = Times(()), Plus(())


def minus(part: Expr) -> Expr:
    return Times((Value(-1), part))


# -- meaning --------------------------------------------------------------------------------


def evaluated(expr: Expr, data: Data, bound: Mapping[str, int]) -> Rows:
    """Bindings of the variables that are not ``bound`` yet, and their numbers, none of which is 0."""
    return {row: number for row, number in _evaluated(expr, data, bound).items() if number}


def _evaluated(expr: Expr, data: Data, bound: Mapping[str, int]) -> Rows:
    found: Counter[Row] = Counter()
    match expr:
        case Atom(relation, terms):
            for values, count in data[relation].items():
                here: Binding = {}
                for term, value in zip(terms, values, strict=True):
                    known = term if isinstance(term, int) else bound.get(term, here.get(term))
                    if known is None:
                        assert isinstance(term, str)
                        here[term] = value
                    elif known != value:
                        break
                else:
                    found[_row(here)] += count
        case Value(term):
            found[()] = bound[term] if isinstance(term, str) else term
        case Compare(sign, left, right):
            found[()] = int(OPERATORS[sign](scalar(left, data, bound), scalar(right, data, bound)))
        case Times(parts):
            rows: Rows = {(): 1}
            for part in parts:
                after: Counter[Row] = Counter()
                for row, number in rows.items():
                    for more, times in evaluated(part, data, {**bound, **dict(row)}).items():
                        after[_row(dict(row) | dict(more))] += number * times
                rows = dict(after)
            found.update(rows)
        case Plus(parts):
            for part in parts:
                found.update(evaluated(part, data, bound))
        case Sum(groups, part):
            for row, number in evaluated(part, data, bound).items():
                found[tuple(pair for pair in row if pair[0] in groups)] += number
        case Lift(variable, part):
            value = scalar(part, data, bound)
            if variable in bound:
                found[()] = int(bound[variable] == value)
            else:
                found[((variable, value),)] = 1
    return dict(found)


def scalar(expr: Expr, data: Data, bound: Mapping[str, int]) -> int:
    return evaluated(expr, data, bound).get((), 0)


def _row(binding: Mapping[str, int]) -> Row:
    return tuple(sorted(binding.items()))


# -- deltas ---------------------------------------------------------------------------------


def delta(expr: Expr, relation: str, terms: Sequence[Term], sign: int = 1) -> Expr:
    """What changes when a tuple comes, or goes where ``sign`` is -1."""
    match expr:
        case Atom(name, own) if name == relation:
            matches = (
                Lift(term, Value(given)) if isinstance(term, str) else Compare("=", Value(term), Value(given))
                for term, given in zip(own, terms, strict=True)
            )
            return Times((Value(sign), *matches))
        case Atom() | Value():
            return ZERO
        case Compare(operator_, left, right):
            new = Compare(
                operator_, _after(left, relation, terms, sign), _after(right, relation, terms, sign)
            )
            return ZERO if new == expr else Plus((new, minus(expr)))
        case Times(parts):
            changed = []
            for place in range(len(parts)):
                before = tuple(_after(part, relation, terms, sign) for part in parts[:place])
                here = delta(parts[place], relation, terms, sign)
                changed.append(Times((*before, here, *parts[place + 1 :])))
            return Plus(tuple(changed))
        case Plus(parts):
            return Plus(tuple(delta(part, relation, terms, sign) for part in parts))
        case Sum(groups, part):
            return Sum(groups, delta(part, relation, terms, sign))
        case Lift(variable, part):
            new_part = _after(part, relation, terms, sign)
            return ZERO if new_part == part else Plus((Lift(variable, new_part), minus(expr)))


def _after(expr: Expr, relation: str, terms: Sequence[Term], sign: int) -> Expr:
    change = simplified(delta(expr, relation, terms, sign))
    return expr if change == ZERO else Plus((expr, change))


def relations_of(expr: Expr) -> set[str]:
    match expr:
        case Atom(relation, _):
            return {relation}
        case Times(parts) | Plus(parts):
            return set[str]().union(*map(relations_of, parts))
        case Compare(_, left, right):
            return relations_of(left) | relations_of(right)
        case Sum(_, part) | Lift(_, part):
            return relations_of(part)
    return set()


def degree(expr: Expr) -> int:
    """How many relations are multiplied at most; what is compared or assigned counts too."""
    match expr:
        case Atom():
            return 1
        case Times(parts):
            return sum(map(degree, parts))
        case Plus(parts):
            return max(map(degree, parts), default=0)
        case Compare(_, left, right):
            return max(degree(left), degree(right))
        case Sum(_, part) | Lift(_, part):
            return degree(part)
    return 0


# -- simpler expressions --------------------------------------------------------------------


def variables_of(expr: Expr) -> frozenset[str]:
    """Those that are free: not summed away."""
    match expr:
        case Atom(_, terms):
            return frozenset(term for term in terms if isinstance(term, str))
        case Value(term):
            return frozenset([term] if isinstance(term, str) else [])
        case Times(parts) | Plus(parts):
            return frozenset[str]().union(*map(variables_of, parts))
        case Compare(_, left, right):
            return variables_of(left) | variables_of(right)
        case Sum(groups, part):
            return frozenset(groups) & variables_of(part) | _read_outside(part) | _parameters(part)
        case Lift(variable, part):
            return frozenset([variable]) | variables_of(part)


def _parameters(expr: Expr) -> frozenset[str]:
    """What stands for an event's values is known everywhere."""
    return frozenset(name for name in all_variables(expr) if name.startswith("@"))


def _read_outside(expr: Expr) -> frozenset[str]:
    """Variables that an expression reads and does not bind."""
    binds: set[str] = set()
    reads: set[str] = set()
    for part in expr.parts if isinstance(expr, Times) else [expr]:
        match part:
            case Atom(_, terms):
                binds |= {term for term in terms if isinstance(term, str)}
            case Lift(variable, inner):
                reads |= _read_outside(inner) - binds
                binds.add(variable)
            case Plus(parts):
                reads |= frozenset[str]().union(*map(_read_outside, parts)) - binds
            case Sum(groups, inner):
                reads |= _read_outside(inner) - binds
                binds |= set(groups)
            case _:
                reads |= variables_of(part) - binds
    return frozenset(reads)


def simplified(expr: Expr) -> Expr:
    """The sum of products with the same meaning, for all bindings of the variables that it reads."""
    parts = tuple(product[0] if len(product) == 1 else Times(product) for product in _products(expr))
    return parts[0] if len(parts) == 1 else Plus(parts)


def _products(expr: Expr) -> Iterator[tuple[Expr, ...]]:
    """Its products, none of which has a sum among its parts."""
    match expr:
        case Plus(parts):
            for part in parts:
                yield from _products(part)
        case Times(parts):
            for chosen in itertools.product(*(list(_products(part)) for part in parts)):
                flat = tuple(itertools.chain.from_iterable(chosen))
                factor = 1
                for part in flat:
                    if isinstance(part, Value) and isinstance(part.term, int):
                        factor *= part.term
                rest = tuple(p for p in flat if not (isinstance(p, Value) and isinstance(p.term, int)))
                if factor:
                    yield (Value(factor), *rest) if factor != 1 else rest
        case Sum(groups, part):
            for product in _products(part):
                yield from (
                    _products(_summed(groups, product))
                    if _takes_apart(groups, product)
                    else [(Sum(groups, Times(product)),)]
                )
        case Compare(sign, left, right):
            yield (Compare(sign, simplified(left), simplified(right)),)
        case Lift(variable, part):
            yield (Lift(variable, simplified(part)),)
        case Value(0):
            return
        case _:
            yield (expr,)


def _takes_apart(groups: Sequence[str], product: tuple[Expr, ...]) -> bool:
    return _summed(groups, product) != Sum(tuple(groups), Times(product))


def _summed(groups: Sequence[str], product: tuple[Expr, ...]) -> Expr:
    """The sum of a product: what is assigned put in its place, and a sum for each connected component."""
    parts = list(product)
    for place, part in enumerate(parts):
        if isinstance(part, Lift) and isinstance(part.part, Value) and part.variable not in groups:
            rest = parts[:place] + parts[place + 1 :]
            return Sum(tuple(groups), Times(tuple(renamed(p, {part.variable: part.part.term}) for p in rest)))
    plain = [isinstance(part, Atom | Value) or _assigns([part]) for part in parts]
    tested = frozenset[str]().union(
        *(all_variables(part) for part, is_plain in zip(parts, plain, strict=True) if not is_plain)
    )
    outside = (set(groups) - tested) | _read_outside(Times(product)) | _parameters(Times(product))
    components: list[tuple[frozenset[str], list[int]]] = []  # what ties them together, and their places
    for place, part in enumerate(parts):
        names, places = all_variables(part) - outside, [place]
        for one in [one for one in components if one[0] & names]:
            components.remove(one)
            names, places = names | one[0], places + one[1]
        components.append((names, sorted(places)))
    if not components:
        return ONE
    if len(components) == 1 and not components[0][0] <= set(groups):
        return Sum(tuple(groups), Times(product))
    made: list[tuple[bool, list[int], Expr]] = []
    for names, places in components:
        some = [parts[place] for place in places]
        own = tuple(g for g in groups if g in frozenset[str]().union(*map(all_variables, some)))
        whole = Times(tuple(some))
        reads = not any(isinstance(part, Atom) for part in some) and not _assigns(some)
        made.append((reads, places, whole if names <= set(groups) else Sum(own, whole)))
    return Times(tuple(expr for _, _, expr in sorted(made, key=lambda one: one[:2])))


def _assigns(parts: Sequence[Expr]) -> bool:
    return all(isinstance(part, Lift) and isinstance(part.part, Value) for part in parts)


def renamed(expr: Expr, names: Mapping[str, Term]) -> Expr:
    """The expression with terms in the place of variables; what becomes of an assigned one is compared."""

    def of(term: Term) -> Term:
        return names.get(term, term) if isinstance(term, str) else term

    match expr:
        case Atom(relation, terms):
            return Atom(relation, tuple(map(of, terms)))
        case Value(term):
            return Value(of(term))
        case Compare(sign, left, right):
            return Compare(sign, renamed(left, names), renamed(right, names))
        case Times(parts):
            return Times(tuple(renamed(part, names) for part in parts))
        case Plus(parts):
            return Plus(tuple(renamed(part, names) for part in parts))
        case Sum(groups, part):
            left_over = tuple(g for g in map(of, groups) if isinstance(g, str))
            return Sum(left_over, renamed(part, names))
        case Lift(variable, part):
            term = of(variable)
            inner = renamed(part, names)
            return Lift(term, inner) if isinstance(term, str) else Compare("=", Value(term), inner)


# -- transition programs --------------------------------------------------------------------


@dataclass
class Program:
    """``maps``: keys and definitions by name.

    ``statements``: by relation, of an inserted tuple ``@0``, ``@1``, ...: a map, and what is added to it.
    Maps stand there as relations that have a tuple as often as its value says.
    """

    schema: Mapping[str, int]
    maps: dict[str, tuple[tuple[str, ...], Expr]] = field(default_factory=dict)
    statements: dict[str, list[tuple[str, Expr]]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def map_for(self, keys: tuple[str, ...], expr: Expr) -> str:
        """The map of an expression: one that is there, if one is it but for the names of variables."""
        for name, (known_keys, known) in self.maps.items():
            if len(known_keys) == len(keys) and _is_renamed((known_keys, known), (keys, expr)):
                return name
        name = f"m{len(self.maps)}"
        self.maps[name] = keys, expr
        self._compile(name, keys, expr)
        return name

    def _compile(self, name: str, keys: tuple[str, ...], expr: Expr) -> None:
        for relation in sorted(relations_of(expr)):
            parameters = tuple(f"@{place}" for place in range(self.schema[relation]))
            change = simplified(delta(Sum(keys, expr), relation, parameters))
            parts = change.parts if isinstance(change, Plus) else (change,)
            for part in parts:
                self.statements.setdefault(relation, []).append((name, self._over_maps(part)))

    def _over_maps(self, part: Expr) -> Expr:
        """The product with maps in the place of what is summed."""
        factors = part.parts if isinstance(part, Times) else (part,)
        return Times(tuple(self._looked_up(one) if relations_of(one) else one for one in factors))

    def _looked_up(self, one: Expr) -> Expr:
        inner = one.part if isinstance(one, Sum) else one
        keys = tuple(sorted(variables_of(one)))
        plain = {key: f"k{next(self._numbers)}" for key in keys if key.startswith("@")}
        named = tuple(plain.get(key, key) for key in keys)
        return Atom(self.map_for(named, renamed(inner, plain)), keys)


def transition_program(keys: tuple[str, ...], expr: Expr, schema: Mapping[str, int]) -> Program:
    """The maps and statements that keep ``Sum_[keys](expr)`` under insertions; ``schema``: arities."""
    program = Program(schema)
    program.map_for(keys, expr)
    return program


def _is_renamed(first: tuple[tuple[str, ...], Expr], second: tuple[tuple[str, ...], Expr]) -> bool:
    """Whether the two are one but for the names of variables and the order of factors; keys keep theirs."""
    names = [sorted(all_variables(expr) - set(keys)) for keys, expr in (first, second)]
    if len(names[0]) != len(names[1]):
        return False
    wanted = _in_any_order(second[1])
    keys = dict(zip(first[0], second[0], strict=True))
    return any(
        _in_any_order(renamed(first[1], {**keys, **dict(zip(names[0], other, strict=True))})) == wanted
        for other in itertools.permutations(names[1])
    )


def _in_any_order(expr: Expr) -> object:
    return Counter(expr.parts) if isinstance(expr, Times) else expr


def all_variables(expr: Expr) -> frozenset[str]:
    """Those that are summed away too."""
    match expr:
        case Times(parts) | Plus(parts):
            return frozenset[str]().union(*map(all_variables, parts))
        case Sum(groups, part):
            return frozenset(groups) | all_variables(part)
        case Compare(_, left, right):
            return all_variables(left) | all_variables(right)
        case Lift(variable, part):
            return frozenset([variable]) | all_variables(part)
    return variables_of(expr)
