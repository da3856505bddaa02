"""Nested monotone thresholds: sums beyond each key, compared with a share of all, become ranges of keys.

VWAP, as DBToaster writes it, asks of each row for the volume at higher prices::

    total(sum(v)) <- bids(p, v).
    asked(p) <- bids(p, _).
    above(p, sum(v)) <- asked(p), bids(q, v), q > p.
    vwap(sum(x)) <- bids(p, v), total(t), above(p, s), 0.25 * t > s, x = p * v.

Where no weight is negative s falls as p rises: the keys that pass begin at a weighted quantile, which takes
one way down a tree instead of a new sum for each key beyond one that changes::

    above_bar[] = upper_quantile(q, 0.25, v) <- bids(q, v), v >= 0.
    above_max(max(q)) <- bids(q, v).
    vwap_by_bar(sum(x)) <- bids(p, v), above_bar[] = b, p >= b, x = p * v, !above_max(p).

What was written is there as long as rows are irregular: a weight is negative, it or a key is NULL, or the
total is not above 0.  Else it asks for nothing, and costs nothing::

    vwap_irregular(i) <- bids(_, v), v < 0, i = 1.
    asked_in_general(p) <- bids(p, _), vwap_irregular(_).
    vwap(x) <- vwap_by_bar(x), !vwap_irregular(_).
    vwap(x) <- vwap_in_general(x), vwap_irregular(_).

Invariants

1. All heads that were there have the rows that they had.
2. What comes out is the text of a program like any other, in which nothing more is found.
3. The rows of each transaction decide which of the two is read, in that transaction.

Why a quantile: let A(x) be the weight at x or above and T that of all, T > 0 and c > 0.  The upper quantile u
is the greatest key with A(u) >= cT.  Keys below u have at least A(u) above them; u and those above it at most
what lies above u, less than cT.  So "less than cT lies above p" is p >= u, "less than cT lies at p or above"
is p > u.  "At most cT lies above p" says that at least (1 - c)T lies at p or below: the lower quantile of
1 - c.  From below all is mirrored.  A sum over no rows is NULL and passes nowhere: that of the last key.

Cost: O(log n) for a row, where the sum that is left is one of a range (:mod:`lftj.rewriting.range_join`).
The problem: Abeysinghe, He, Rompf: Efficient incrementialization of correlated nested aggregate queries using
relative partial aggregate indexes (SIGMOD 2022).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from lftj.language.body import CheckedProgram
from lftj.language.by_name import by_place
from lftj.language.expressions import variables_of
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import (
    Aggregate,
    Atom,
    Comparison,
    Disjunction,
    Literal,
    Program,
    Rule,
    Span,
    Term,
    Variable,
    Wildcard,
    flat,
)
from lftj.rewriting.range_join import linear
from lftj.rewriting.shared_views import free_name
from lftj.rewriting.summand import substituted
from lftj.values.kinds import kind
from lftj.values.operators import FLIPPED
from lftj.values.schema import Schema

Edit = tuple[Span, str]
"""What comes in the place of a part of a text."""

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class _Sum:
    """``sum(weight)`` of a relation's rows: of all, or for each key that is asked for of those beyond it.

    ``asked``: the relation of those keys.
    """

    relation: str
    weight: int
    key: int | None = None
    operator: str = ""  # of a row's key, with that asked for
    asked: str = ""


@dataclass(frozen=True)
class _Threshold:
    """``atom`` gives the sum beyond ``key``, ``comparison`` says sum ``operator`` share * total."""

    sum: _Sum
    key: str
    operator: str
    share: Decimal
    total: str  # the relation of the sum of all
    comparison: Comparison
    atom: Atom

    @property
    def quantile(self) -> tuple[str, Decimal, str]:
        """The aggregate and share whose value bounds the keys that pass, and how these compare with it."""
        operator = self.operator if self.operator in ("<", "<=") else _NEGATED[self.operator]
        is_above, is_strict = self.sum.operator in (">", ">="), self.sum.operator in (">", "<")
        upper = is_above == (operator == "<")
        share = self.share if operator == "<" else 1 - self.share
        compared = (">" if is_above else "<") + "=" * is_strict
        return (
            "upper_quantile" if upper else "quantile",
            share,
            compared if operator == self.operator else _NEGATED[compared],
        )


@dataclass(frozen=True)
class Forms:
    """What a head's rows are those of: ``by_bar``, or ``in_general`` where ``irregular`` has a row."""

    irregular: str
    by_bar: str
    in_general: str

    @classmethod
    def of(cls, program: CheckedProgram, name: str) -> Forms | None:
        """Those of a head with thresholds; None for another."""
        bodies = [body for rule, _ in program.rules_of(name) for body in rule.bodies]
        if len(bodies) != 2 or [len(body.atoms) for body in bodies] != [1, 2]:
            return None
        names = (*bodies[0].relations, *bodies[1].relations)
        first, flag, second = names[0], names[-1], names[-2]
        found = names == (first, flag, second, flag) and first.startswith(f"{name}_by_bar")
        return cls(flag, first, second) if found and len(bodies[0].negations) == 1 else None

    def shown(self, name: str, is_irregular: bool) -> str:
        """Which is used, in words."""
        if is_irregular:
            return f"{name} is {self.in_general}: {self.irregular} has a row"
        return f"{name} is {self.by_bar}: {self.irregular} has no row"


def with_thresholds(
    tree: Program, program: CheckedProgram, schemas: Mapping[str, Schema], taken: Collection[str]
) -> tuple[str, list[str]] | None:
    """The text of the program with ranges in the place of thresholds, and the heads that sum ranges up.

    Among them those that compare a column with a share of a sum, as PSP does, which stay as they are.
    None where there is no threshold.
    ``tree``: the program as it was read, ``program``: checked.  ``schemas``: of the relations that it reads.
    ``taken``: names that no head may have.
    """
    known = {**schemas, **program.derived}
    first = {head.relation: head for rule in reversed(tree.rules) for head in rule.heads}
    names = {name: [column.name for column in schema.shown.columns] for name, schema in known.items()}
    written: dict[str, list[Rule]] = {}
    for rule in by_place(tree, first, names.get).rules:
        for head in rule.heads:
            written.setdefault(head.relation, []).append(rule)
    finding = _Finding(written, known)
    found, shares = finding.thresholds(), finding.shares()
    if not found:
        return (program.text, shares) if shares else None
    writing = _Writing(program, written, known, taken, found)
    return writing.text(), [*writing.by_bar, *(name for name in shares if name not in found)]


# -- finding them -----------------------------------------------------------------------------------


class _Finding:
    """``written``: the rules of each head, all columns by place."""

    def __init__(self, written: Mapping[str, Sequence[Rule]], schemas: Mapping[str, Schema]) -> None:
        self._written, self._schemas = written, schemas
        self._sums: dict[str, _Sum | None] = {}

    def thresholds(self) -> dict[str, list[_Threshold]]:
        """Those of each head that sums up what passes them."""
        found = {name: list(self._of_rule(rule, body)) for name, rule, body in self._sums_of_rows()}
        return {name: some for name, some in found.items() if some}

    def shares(self) -> list[str]:
        """The heads that sum up rows whose column compares with a share of a sum."""
        return [
            name
            for name, _, body in self._sums_of_rows()
            if any(self._is_share(body, one) for one in body.tests)
        ]

    def _sums_of_rows(self) -> Iterator[tuple[str, Rule, _Literals]]:
        """Heads with aggregates by one rule."""
        for name, (rule, *others) in self._written.items():
            (head, *beside), body = rule.heads, _Literals.of(rule)
            if not others and not beside and head.aggregates and body is not None:
                yield name, rule, body

    def _is_share(self, body: _Literals, comparison: Comparison) -> bool:
        types = self._types(body)
        if len(_names(comparison)) != 2 or not _names(comparison) <= types.keys():
            return False
        if any(linear(side, types) is None for side in (comparison.left, comparison.right)):
            return False
        totals = [
            one
            for one in body.atoms
            if len(one.terms) == 1 and not _names(one).isdisjoint(_names(comparison))
        ]
        found = (self._sum(one.relation) for one in totals)
        return any(one is not None and one.key is None for one in found)

    def _of_rule(self, rule: Rule, body: _Literals) -> Iterator[_Threshold]:
        for atom in body.atoms:
            sum_ = self._sum(atom.relation)
            if sum_ is None or sum_.key is None:
                continue
            key, value = atom.terms
            if not isinstance(key, Variable) or not isinstance(value, Variable):
                continue
            reads = [one for one in rule.body if one is not atom and value.name in _names(one)]
            shown = {variable.name for variable in rule.heads[0].variables}
            is_row = any(
                one.relation == sum_.relation and _is(one.terms[sum_.key], key.name) for one in body.atoms
            )
            if len(reads) != 1 or value.name in shown or not is_row or not self._asks(body, sum_, key):
                continue
            found = self._compared(body, reads[0], value.name, sum_)
            if found is not None:
                yield _Threshold(sum_, key.name, *found, atom)

    def _asks(self, body: _Literals, sum_: _Sum, key: Variable) -> bool:
        """Whether the key is among those for which the sum is there, wherever the body has an assignment."""
        rules = self._written.get(sum_.asked, ())
        asked = _Literals.of(rules[0]) if len(rules) == 1 and len(rules[0].heads) == 1 else None
        if asked is None or asked.others:
            return False
        (head,) = rules[0].heads
        if head.counts or head.value is not None or not isinstance(head.terms[0], Variable):
            return False
        return _contained(asked.atoms, asked.tests, body, {head.terms[0].name: key})

    def _compared(
        self, body: _Literals, comparison: Literal, value: str, sum_: _Sum
    ) -> tuple[str, Decimal, str, Comparison] | None:
        """How the sum compares with which share of the sum of all, and where that is said."""
        types = self._types(body)
        if not isinstance(comparison, Comparison) or not _names(comparison) <= types.keys():
            return None
        left, right = (linear(side, types) for side in (comparison.left, comparison.right))
        if left is None or right is None or left[1] != right[1] or comparison.operator not in _NEGATED:
            return None
        names, zero = left[0].keys() | right[0].keys(), Fraction(0)
        times = {name: left[0].get(name, zero) - right[0].get(name, zero) for name in names}
        of_value = times.pop(value)
        if len(times) != 1 or not of_value:
            return None
        ((other, of_total),) = times.items()
        totals = (one.relation for one in body.atoms if len(one.terms) == 1 and _is(one.terms[0], other))
        total = next(totals, None)
        if total is None or self._sum(total) != _Sum(sum_.relation, sum_.weight):
            return None
        operator = FLIPPED[comparison.operator] if of_value < 0 else comparison.operator
        share = -of_total / of_value
        if not 0 < share <= 1 or (share == 1 and operator in ("<=", ">")):
            return None
        digits = Decimal(share.numerator) / Decimal(share.denominator)
        return (operator, digits, total, comparison) if Fraction(digits) == share else None

    def _types(self, body: _Literals) -> dict[str, pa.DataType]:
        """Those of the variables that stand in atoms."""
        found = {}
        for atom in body.atoms:
            for term, column in zip(atom.terms, self._schemas[atom.relation].shown.columns, strict=True):
                if isinstance(term, Variable):
                    found[term.name] = column.type.arrow
        return found

    # -- sums ---------------------------------------------------------------------------------------

    def _sum(self, name: str) -> _Sum | None:
        """What a head sums up, in its last column, for a key in the first, or for none."""
        if name not in self._sums:
            self._sums[name] = self._found_sum(self._written.get(name, ()))
        return self._sums[name]

    def _found_sum(self, rules: Sequence[Rule]) -> _Sum | None:
        body = _Literals.of(rules[0]) if len(rules) == 1 and len(rules[0].heads) == 1 else None
        if body is None or body.others or rules[0].heads[0].windows:
            return None
        (head,) = rules[0].heads
        *keys, call = head.columns
        if not isinstance(call, Aggregate) or call.function != "sum" or call.distinct:
            return None
        (weight,) = call.arguments
        names = [key.name for key in keys if isinstance(key, Variable)]
        if len(names) < len(keys) or (keys and call.default) or not isinstance(weight, Variable):
            return None
        return self._of_rows(body, names, weight.name)

    def _of_rows(self, body: _Literals, keys: Sequence[str], weight: str) -> _Sum | None:
        row = next(one for one in body.atoms if weight in _terms(one))
        columns, others = _terms(row), [one for one in body.atoms if one is not row]
        named = [name for name in columns if name is not None]
        constants = any(not isinstance(term, Variable | Wildcard) for term in row.terms)
        types = [column.type for column in self._schemas[row.relation].shown.columns]
        at = columns.index(weight)
        if constants or len(set(named)) < len(named) or kind(types[at].arrow) != "integer":
            return None
        if not keys:
            return None if others or body.tests else _Sum(row.relation, at)
        if not len(keys) == len(body.tests) == len(others) == 1:
            return None
        (key,), (test,), (asked,) = keys, body.tests, others
        left, right = test.left, test.right
        if not isinstance(left, Variable) or not isinstance(right, Variable) or test.operator not in _NEGATED:
            return None
        operator = test.operator if right.name == key else FLIPPED[test.operator]
        own = left.name if right.name == key else right.name
        if {left.name, right.name} != {key, own} or own not in named or key in named or own == weight:
            return None
        of_key, (of_asked, *more) = types[columns.index(own)], self._schemas[asked.relation].shown.columns
        if more or _terms(asked) != [key] or of_key.domain is not of_asked.type.domain:
            return None
        if kind(of_key.arrow) == "float":  # NaN is the largest, and equals nothing
            return None
        return _Sum(row.relation, at, columns.index(own), operator, asked.relation)


@dataclass(frozen=True)
class _Literals:
    """A body without alternatives; ``tests``: comparisons but ``=``; ``others``: what else there is."""

    atoms: tuple[Atom, ...]
    tests: tuple[Comparison, ...]
    others: tuple[Literal, ...]

    @classmethod
    def of(cls, rule: Rule) -> _Literals | None:
        if rule.written is not None or any(isinstance(one, Disjunction) for one in rule.body):
            return None
        atoms = tuple(one for one in rule.body if isinstance(one, Atom) and not one.negated)
        tests = tuple(one for one in rule.body if isinstance(one, Comparison) and one.operator != "=")
        chosen = {*map(id, atoms), *map(id, tests)}
        return cls(atoms, tests, tuple(one for one in rule.body if id(one) not in chosen))


def _is(term: Term, name: str) -> bool:
    return isinstance(term, Variable) and term.name == name


def _terms(atom: Atom) -> list[str | None]:
    """The name of each term, None for what is no variable."""
    return [term.name if isinstance(term, Variable) else None for term in atom.terms]


def _names(of: Literal) -> set[str | None]:
    if isinstance(of, Atom):
        return {*_terms(of)}
    assert isinstance(of, Comparison)
    return {variable.name for side in (of.left, of.right) for variable in variables_of(side)}


def _contained(
    atoms: Sequence[Atom], tests: Sequence[Comparison], body: _Literals, known: Mapping[str, Variable]
) -> bool:
    """Whether each assignment of a body is one of these atoms and tests, renamed; ``known``: so far."""
    if not atoms:
        return all(_substituted(test, known) in body.tests for test in tests)
    first, *rest = atoms
    candidates = (_matched(first, atom, known) for atom in body.atoms if atom.relation == first.relation)
    return any(found is not None and _contained(rest, tests, body, found) for found in candidates)


def _substituted(test: Comparison, known: Mapping[str, Variable]) -> Comparison:
    return Comparison(test.operator, substituted(test.left, known), substituted(test.right, known))


def _matched(pattern: Atom, atom: Atom, known: Mapping[str, Variable]) -> dict[str, Variable] | None:
    """The renaming by which an atom of a body is this one, too."""
    found = dict(known)
    for mine, theirs in zip(pattern.terms, atom.terms, strict=True):
        if isinstance(mine, Wildcard):
            continue
        if not isinstance(mine, Variable) or not isinstance(theirs, Variable):
            if mine != theirs:
                return None
        elif theirs.null_safe or found.setdefault(mine.name, theirs).name != theirs.name:
            return None
    return found


# -- the program with ranges ---------------------------------------------------------------------------


class _Writing:
    def __init__(
        self,
        program: CheckedProgram,
        written: Mapping[str, Sequence[Rule]],
        schemas: Mapping[str, Schema],
        taken: Collection[str],
        found: Mapping[str, Sequence[_Threshold]],
    ) -> None:
        self._program, self._written, self._schemas, self._found = program, written, schemas, found
        self._taken = {*taken, *schemas}
        self._lines: dict[str, None] = {}  # rules that are added, each once
        self._bars: dict[tuple[object, ...], str] = {}
        self._flag = self._name(f"{next(iter(found))}_irregular")
        self.by_bar: list[str] = []

    def text(self) -> str:
        edits: list[Edit] = []
        asked = {one.sum.asked for some in self._found.values() for one in some}
        general = self._general(asked)
        for head, some in self._found.items():
            (written,) = self._written[head]
            by_bar = self._name(f"{head}_by_bar")
            self.by_bar.append(by_bar)
            self._add_by_bar(written, by_bar, some)
            place = written.heads[0].span[0], written.span[1]
            edits.append((place, self._either(head, by_bar, general[head])))
        for name in general:
            for written in self._written[name]:
                self._add_copy(written, general, f", {self._flag}(_)" if name in asked else "")
        return "\n".join([_edited(self._program.text, edits), *self._lines])

    def _name(self, wanted: str) -> str:
        found = free_name(wanted, self._taken)
        self._taken.add(found)
        return found

    def _general(self, asked: Collection[str]) -> dict[str, str]:
        """What is there as it was written while rows are irregular, by other names.

        The heads with thresholds, and what they read that reads the keys for which sums are asked.
        """
        below = {shown_name(name) for head in self._found for name in self._program.read_by(head)}
        reading = {
            name for name in below if name in asked or not self._program.read_by(name).isdisjoint(asked)
        }
        names = {*self._found, *reading}
        return {name: self._name(f"{name}_in_general") for name in self._written if name in names}

    def _either(self, head: str, by_bar: str, general: str) -> str:
        """The rules of a head whose rows are those of another."""
        schema = self._schemas[head].shown
        names = [column.name for column in schema.columns]

        def atom(relation: str) -> str:
            if schema.functional:
                return f"{relation}[{', '.join(names[:-1])}] = {names[-1]}"
            return f"{relation}({', '.join(f'{name}: v{at}' for at, name in enumerate(names))})"

        regular = f"{atom(head)} <- {atom(by_bar)}, !{self._flag}(_)."
        return f"{regular}\n{atom(head)} <- {atom(general)}, {self._flag}(_)."

    def _add(self, rule: str) -> None:
        self._lines[rule] = None

    def _add_copy(self, rule: Rule, names: Mapping[str, str], more: str = "") -> None:
        """The same rule of another head, which reads others."""
        edits = [(head.name_span, names[head.relation]) for head in rule.heads]
        edits += [
            (one.name_span, names[one.relation])
            for one in flat(rule.body)
            if isinstance(one, Atom) and one.relation in names
        ]
        text, start = self._program.text, rule.heads[0].span[0]
        end = text.rindex(".", start, rule.span[1])
        self._add(_edited(text[:end], edits)[start:] + f"{more}.")

    def _add_by_bar(self, rule: Rule, name: str, thresholds: Sequence[_Threshold]) -> None:
        """The rule over ranges of keys; a total that only says how large shares are goes."""
        literals = {id(one): self._program.text[slice(*one.span)] for one in rule.body}
        names = {name for one in rule.body for name in _names(one) if name is not None}
        totals = {one.total for one in thresholds}
        more = []
        for one in thresholds:
            variable = free_name("bar", names)
            names.add(variable)
            bar, compared = self._bar(one)
            literals[id(one.atom)] = f"{bar}[] = {variable}"
            literals[id(one.comparison)] = f"{one.key} {compared} {variable}"
            if one.sum.operator in ("<", ">"):
                more.append(f"!{self._end(one)}({one.key})")
            self._add_irregular(one)
        compared_only = [one.comparison for one in thresholds]
        shown_names = {variable.name for variable in rule.heads[0].variables}
        for atom in rule.body:
            if isinstance(atom, Atom) and not atom.negated and atom.relation in totals:
                others = [one for one in rule.body if one is not atom and one not in compared_only]
                if shown_names.union(*map(_names, others)).isdisjoint(_names(atom)):
                    del literals[id(atom)]
        body = [*literals.values(), *more]
        (head,) = rule.heads
        shown = self._program.text[slice(*head.span)]
        self._add(f"{name}{shown.removeprefix(head.relation)} <- {', '.join(body)}.")

    def _rows(self, sum_: _Sum, weight: str | None = None, key: str | None = None) -> str:
        """An atom of the rows that are summed up."""
        columns = self._schemas[sum_.relation].shown.columns
        places = ((sum_.weight, weight), (sum_.key, key))
        terms = [f"{columns[at].name}: {name}" for at, name in places if at is not None and name is not None]
        return f"{sum_.relation}({', '.join(terms)})"

    def _bar(self, of: _Threshold) -> tuple[str, str]:
        function, share, compared = of.quantile
        rows = self._rows(of.sum, "weight", "key")
        key = ("bar", rows, function, share)
        if key not in self._bars:
            name = self._bars[key] = self._name(f"{of.atom.relation}_bar")
            self._add(f"{name}[] = {function}(key, {share}, weight) <- {rows}, weight >= 0.")
        return self._bars[key], compared

    def _end(self, of: _Threshold) -> str:
        """The last key, beyond which there is none."""
        rows, function = self._rows(of.sum, None, "key"), "max" if of.sum.operator == ">" else "min"
        if (rows, function) not in self._bars:
            name = self._bars[rows, function] = self._name(f"{of.atom.relation}_{function}")
            self._add(f"{name}({function}: {function}(key)) <- {rows}.")
        return self._bars[rows, function]

    def _add_irregular(self, of: _Threshold) -> None:
        columns = self._schemas[of.sum.relation].shown.columns
        assert of.sum.key is not None
        bodies = [f"{self._rows(of.sum, 'weight')}, weight < 0"]
        if columns[of.sum.weight].type.nullable:
            bodies.append(f"{self._rows(of.sum, 'weight')}, weight is null")
        if columns[of.sum.key].type.nullable:
            bodies.append(f"{self._rows(of.sum, None, 'key')}, key is null")
        is_function = self._schemas[of.total].functional
        bodies.append(
            f"{of.total}[] = total, total <= 0" if is_function else f"{of.total}(total), total <= 0"
        )
        for body in bodies:
            self._add(f"{self._flag}(found) <- {body}, found = 1.")


def _edited(text: str, edits: Iterable[Edit]) -> str:
    for (start, end), new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
