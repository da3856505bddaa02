"""Aggregates that are short for others, and those that skip NULL, as rules with aggregates that are neither.

What is evaluated knows aggregates of every assignment of a body, in which nothing is NULL.  So the rule::

    stats(a, count(), median(v), sum(distinct v), max(w)) <- B.

with a w that may be NULL becomes, after it was checked as it was written, these::

    stats#1[a] = count(), stats#2[a] = quantile(v, 0.5), stats#3[a] = upper_quantile(v, 0.5),
        stats#4(a, v) <- B.
    stats#5[a] = sum(v) <- stats#4(a, v).
    stats#6[a] = max(w) <- B.
    stats#7(a, m)       <- (stats#6[a] = m ; stats#1[a] = _, !stats#6[a] = _, m = NULL).
    stats(a, n, m, s, w) <- stats#1[a] = n, stats#2[a] = x, stats#3[a] = y, m = middle(x, y),
        stats#5[a] = s, stats#7(a, w).

and a global one with ``count() default 0`` gives ``n = 0`` where one row, of a relation that is always
there, has no partner (:mod:`lftj.language.one_row`).

Aggregates of B stand in one rule and share its search; those of equal sets of variables that may be NULL
share another.  Sums and counts that skip NULL stay in the first: a sum adds 0, beside a count of what it
adds, and a count is the sum of 0 and 1.

Invariants

1. Every check and every message of the checker is about the program as written; what comes out has no
   mistake.
2. The auxiliary heads have names that no program can write, and groups may be NULL in them: in bodies over
   auxiliary heads NULL joins NULL.
3. Rules have different places (``span``), and so have the heads of a rule; ``written`` is that of the rule
   as written.  A head that is taken apart keeps the names and the order of its columns.

Cost: linear in the program.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lftj.language.aggregate_types import default_value
from lftj.language.body import Body
from lftj.language.by_name import column_names
from lftj.language.one_row import ONE_ROW
from lftj.language.syntax import (
    Aggregate,
    Atom,
    BinaryOperation,
    Call,
    ColumnName,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Head,
    Literal,
    Negative,
    Program,
    Rule,
    Span,
    Term,
    Variable,
    Wildcard,
)
from lftj.values.kinds import kind
from lftj.values.literals import NULL
from lftj.values.names import DISTINCT_COUNT
from lftj.values.schema import ColumnType

_OTHER_NAMES = {"bool_and": "min", "bool_or": "max", "any_value": "min", "string_agg": "concat"}
_OF_SETS = ("min", "max", "bool_and", "bool_or", "any_value")  # distinct values or all: it is the same
_JOINED = ("variance", "stddev", "stddev_pop", "median", "mode")


class Composition:
    """The rules of one program, taken apart.

    ``first_heads``: of each relation.  By the number of a rule ``bodies``, and ``types``, by relation and
    number and place of the head in its rule, of its columns.
    """

    def __init__(
        self,
        program: Program,
        first_heads: Mapping[str, Head],
        bodies: Mapping[int, Sequence[Body]],
        types: Mapping[str, Mapping[tuple[int, int], Sequence[ColumnType]]],
    ) -> None:
        self._program = program
        self._first_heads = first_heads
        self._bodies = bodies
        self._types = types
        self._heads: Counter[str] = Counter()

    def program(self) -> Program | None:
        """The program that is evaluated; None where it is the one that was written."""
        rules = tuple(
            apart for number, rule in enumerate(self._program.rules) for apart in self._apart(number, rule)
        )
        return None if rules == self._program.rules else replace(self._program, rules=rules)

    def _apart(self, number: int, rule: Rule) -> Iterator[Rule]:
        rule = self._counting_in_place(number, rule)
        spans = ((rule.span[0] + more, rule.span[1]) for more in itertools.count(1))
        first, others = _Draft(rule.body), []
        for place, head in enumerate(rule.heads):
            nullable = {one: self._nullable(number, one) for one in head.aggregates}
            if any(_is_composed(call) or nullable[call] for call in nullable):
                types = dict(zip(head.columns, self._types[head.relation][number, place], strict=True))
                others += self._joined(number, head, nullable, types, first, spans)
            else:
                renamed = _renamed(head)
                first.heads.append(head if renamed == head else self._named(head, renamed))
        if first.heads:
            yield first.rule(rule.span, rule.written)
        for draft in others:
            yield draft.rule(next(spans), rule.written or rule.span)

    def _counting_in_place(self, number: int, rule: Rule) -> Rule:
        """The rule, counts of distinct values found among the assignments where these are listed anyway."""
        calls = [call for head in rule.heads for call in head.aggregates]
        joins = any(len(body.atoms) > 1 for body in self._bodies[number])
        if not any(call.counts_distinct for call in calls) or (
            joins and all(call.distinct and call.function not in _OF_SETS for call in calls)
        ):
            return rule
        return replace(rule, heads=tuple(self._named(head, _counting(head)) for head in rule.heads))

    def _named(self, head: Head, made: Head) -> Head:
        """What is made of a head, with the columns called as it says, where it says that for all rules."""
        if self._first_heads[head.relation] is not head:
            return made
        return replace(made, names=tuple(ColumnName(name, head.span) for name in column_names(head)))

    def _nullable(self, number: int, call: Aggregate) -> tuple[str, ...]:
        """What may be NULL and then leaves out assignments of a call."""
        if call.function == DISTINCT_COUNT:
            return ()
        bodies = self._bodies[number]
        return tuple(sorted(n for n in set(call.skips) if any(body.types[n].nullable for body in bodies)))

    def _joined(
        self,
        number: int,
        head: Head,
        nullable: Mapping[Aggregate, tuple[str, ...]],
        types: Mapping[Variable | Aggregate, ColumnType],
        first: _Draft,
        spans: Iterator[Span],
    ) -> list[_Draft]:
        """The rules of a head behind the ``first``, which gets what it can find of it."""
        keys = tuple(dict.fromkeys(term for term in head.terms if isinstance(term, Variable)))
        kinds = {name: kind(its.arrow) for name, its in self._bodies[number][0].types.items()}
        group = _Group(head, keys, kinds, self._heads, spans)
        taken = {key.name for key in keys}
        values = {
            call: Variable(_free(call.name, taken, place), call.span) for place, call in enumerate(nullable)
        }
        join, behind = _Draft(()), []
        apart: dict[tuple[str, ...], list[Aggregate]] = {}
        for call, names in nullable.items():
            if not names:
                behind += group.find(call, values[call], first, join)
            elif call.function == "sum" and not call.distinct and kind(types[call].arrow) != "duration":
                group.find_sum(call, values[call], first, join)
            elif call.function == "count":
                behind += group.find_count(call, names, values[call], first, join)
            else:
                apart.setdefault(names, []).append(call)
        for calls in apart.values():
            strict, there = _Draft(first.body), _Draft(())
            more = [one for call in calls for one in group.find(call, values[call], strict, there)]
            columns = (*keys, *(values[call] for call in calls))
            rest = _Draft(
                (Disjunction((tuple(there.literals), group.without(there, calls, values, types, first))),)
            )
            rest.heads.append(replace(group.head(None), terms=columns))
            join.literals.append(Atom(rest.heads[0].relation, columns))
            behind += [strict, *more, rest]
        if any(call.default is not None for call in nullable):
            over_nothing = _over_nothing(join, values, types)
            join.literals = [Disjunction((tuple(join.literals), over_nothing))]
        read = tuple(values[term] if isinstance(term, Aggregate) else term for term in head.columns)
        cut = len(head.terms)
        joined = replace(head, terms=read[:cut], value=None if head.value is None else read[-1])
        join.heads.append(self._named(head, joined))
        return [*behind, join]


@dataclass
class _Draft:
    """A rule in the making."""

    body: tuple[Literal, ...]
    heads: list[Head] = field(default_factory=list)
    literals: list[Literal] = field(default_factory=list)  # more of the body
    found: dict[tuple[tuple[Variable, ...], Aggregate], str] = field(default_factory=dict)

    def rule(self, span: Span, written: Span | None) -> Rule:
        body = (*self.body, *dict.fromkeys(self.literals))  # what several heads compute, once
        return Rule(tuple(self.heads), body, span, written)


class _Group:
    """The auxiliary heads of one head, all with its keys."""

    def __init__(
        self,
        head: Head,
        keys: tuple[Variable, ...],
        kinds: Mapping[str, str],
        numbers: Counter[str],
        spans: Iterator[Span],
    ) -> None:
        """``kinds``: of the body's variables; ``numbers``: of auxiliary heads, by relation."""
        self._head = head
        self._kinds = kinds
        self._keys = keys
        self._numbers = numbers
        self._spans = spans

    def head(self, value: Aggregate | None) -> Head:
        """A new one, without other columns."""
        relation = self._head.relation
        self._numbers[relation] += 1
        name = f"{relation}#of{self._numbers[relation]}"
        return Head(name, self._keys, value, next(self._spans), self._head.name_span)

    def find(self, call: Aggregate, value: Variable, source: _Draft, join: _Draft) -> list[_Draft]:
        """Let ``source`` find what a call aggregates and ``join`` bind its value; the rules in between."""
        behind: list[_Draft] = []
        names = tuple(one for one in call.arguments if isinstance(one, Variable))
        columns = tuple(dict.fromkeys((*self._keys, *names)))
        call = replace(call, function=_OTHER_NAMES.get(call.function, call.function))
        if call.distinct and call.function not in _OF_SETS:
            source = self._distinct(columns, source)
            behind.append(source)
            if call.function == "count":
                call = replace(call, arguments=())
                source.literals += [Comparison("<!=>", name, Constant(NULL)) for name in names]
        if call.function == "mode":
            often = self.head(_of(call, "count"))
            source.heads.append(replace(often, terms=columns))
            count = Variable("count#")
            source = _Draft((Atom(often.relation, (*columns, count), functional=True),))
            behind.append(source)
            call = _of(call, "arg_max", *names, count)
        call = replace(call, distinct=False, default=None)
        expression: Expression
        if call.function == "median":
            half = Constant(0.5)
            low, high = (
                self._bind(_of(call, function, *names, half), source, join, f"{value.name} {function}")
                for function in ("quantile", "upper_quantile")
            )
            expression = _middle(low, high, self._kinds[names[0].name])
        elif call.function in _JOINED:
            sampled = not call.function.endswith("_pop")
            of = _of(call, "variance" if sampled else "var_pop", *names)
            expression = variance = self._bind(of, source, join, f"{value.name} variance")
            if call.function.startswith("stddev"):
                expression = Call("sqrt", (variance,))
            if sampled:
                count = self._bind(_of(call, "count"), source, join, f"{value.name} count")
                expression = Call("if", (Call(">", (count, Constant(1))), expression))
        else:
            self._bind(call, source, join, value.name)
            return behind
        join.literals.append(Comparison("=", value, expression))
        return behind

    def find_sum(self, call: Aggregate, value: Variable, source: _Draft, join: _Draft) -> None:
        """As :meth:`find`, of a sum that skips NULL; the ``source`` has NULLs."""
        (summed,) = call.arguments
        assert isinstance(summed, Variable)
        known = Call("if", (Call("<=>", (summed, Constant(NULL))), Constant(0), Constant(1)))
        computed = {
            f"{summed.name} or 0": Call("coalesce", (summed, Constant(0))),
            f"{summed.name} is not null": known,
        }
        source.literals += [Comparison("=", Variable(name), its) for name, its in computed.items()]
        total, count = (
            self._bind(_of(call, "sum", Variable(name)), source, join, f"{value.name} {name}")
            for name in computed
        )
        expression = Call("if", (Call(">", (count, Constant(0))), total))
        join.literals.append(Comparison("=", value, expression))

    def find_count(
        self, call: Aggregate, nullable: Sequence[str], value: Variable, source: _Draft, join: _Draft
    ) -> list[_Draft]:
        """The same of a count that skips what is ``nullable``; the rules in between."""
        behind: list[_Draft] = []
        if call.distinct:
            names = (one for one in call.arguments if isinstance(one, Variable))
            source = self._distinct(tuple(dict.fromkeys((*self._keys, *names))), source)
            behind.append(source)
        known = Variable(f"{' and '.join(nullable)} is not null")
        tests = tuple(Call("<=>", (Variable(name), Constant(NULL))) for name in nullable)
        is_null = tests[0] if len(tests) == 1 else Call("or", tests)
        source.literals.append(Comparison("=", known, Call("if", (is_null, Constant(0), Constant(1)))))
        self._bind(_of(call, "sum", known), source, join, value.name)
        return behind

    def _distinct(self, columns: tuple[Variable, ...], source: _Draft) -> _Draft:
        """A rule over the distinct values of columns, which ``source`` finds."""
        values = self.head(None)
        source.heads.append(replace(values, terms=columns))
        return _Draft((Atom(values.relation, columns),))

    def without(
        self,
        there: _Draft,
        calls: Sequence[Aggregate],
        values: Mapping[Aggregate, Variable],
        types: Mapping[Variable | Aggregate, ColumnType],
        source: _Draft,
    ) -> tuple[Literal, ...]:
        """The groups of ``source`` that are not ``there``, with what aggregates of nothing are."""
        (read, *_) = (literal for literal in there.literals if isinstance(literal, Atom))
        if not any(keys == self._keys for keys, _ in source.found):
            self._bind(_of(calls[0], "count"), source, _Draft(()), "count")
        every = next(name for (keys, _), name in source.found.items() if keys == self._keys)
        nothing: tuple[Term, ...] = (*self._keys, Wildcard())
        nulls: dict[Aggregate, Any] = {call: 0 if call.function == "count" else NULL for call in calls}
        return (
            Atom(every, nothing, functional=True),
            Atom(read.relation, nothing, functional=True, negated=True),
            *(Comparison("=", values[call], Constant(null)) for call, null in nulls.items()),
        )

    def _bind(self, call: Aggregate, source: _Draft, join: _Draft, name: str) -> Variable:
        """Let ``source`` find an aggregate and ``join`` read it as a variable of this name."""
        relation = source.found.get((self._keys, call))
        if relation is None:
            head = self.head(call)
            source.heads.append(head)
            relation = source.found[self._keys, call] = head.relation
        value = Variable(name, call.span)
        join.literals.append(Atom(relation, (*self._keys, value), functional=True, span=call.span))
        return value


def _over_nothing(
    join: _Draft, values: Mapping[Aggregate, Variable], types: Mapping[Variable | Aggregate, ColumnType]
) -> tuple[Literal, ...]:
    """What binds the default values where a join, which has no keys, finds nothing."""
    read = next(literal for literal in join.literals if isinstance(literal, Atom))
    return (
        Atom(ONE_ROW, (Wildcard(),)),
        replace(read, terms=tuple(Wildcard() for _ in read.terms), negated=True),
        *(
            Comparison("=", value, Constant(default_value(call, types[call].arrow)))
            for call, value in values.items()
        ),
    )


def _is_composed(call: Aggregate) -> bool:
    return (
        call.default is not None
        or call.function in _JOINED
        or (call.distinct and call.function not in _OF_SETS)
    )


def _counting(head: Head) -> Head:
    """A head whose counts of distinct values are aggregates of the assignments."""

    def counting(column: Variable | Aggregate) -> Variable | Aggregate:
        if not isinstance(column, Aggregate) or not column.counts_distinct:
            return column
        arguments = tuple(one for one in column.arguments if isinstance(one, Variable))
        written = column.written or f"count(distinct {', '.join(one.name for one in arguments)})"
        return Aggregate(DISTINCT_COUNT, arguments, column.span, default=column.default, written=written)

    value = None if head.value is None else counting(head.value)
    return replace(head, terms=tuple(map(counting, head.terms)), value=value)


def _renamed(head: Head) -> Head:
    """A head whose aggregates are all there by one name or another."""

    def renamed(column: Variable | Aggregate) -> Variable | Aggregate:
        if not isinstance(column, Aggregate) or not (column.distinct or column.function in _OTHER_NAMES):
            return column
        return _of(column, _OTHER_NAMES.get(column.function, column.function), *column.arguments)

    value = None if head.value is None else renamed(head.value)
    return replace(head, terms=tuple(map(renamed, head.terms)), value=value)


def _of(call: Aggregate, function: str, *arguments: Variable | Constant) -> Aggregate:
    """An aggregate in the place of a call, which messages name."""
    return Aggregate(function, arguments, call.span, written=call.written)


def _middle(low: Variable, high: Variable, kind: str) -> Expression:
    """The mean of two numbers, rounded once; nothing leaves its range on the way."""
    two = Constant(2)
    sum_first = BinaryOperation("/", BinaryOperation("+", low, high), two)
    halves_first = BinaryOperation("+", BinaryOperation("/", low, two), BinaryOperation("/", high, two))
    if kind != "float":
        return sum_first if kind == "decimal" else halves_first
    one = Constant(1.0)
    small = Call("and", (Call("<", (Negative(one), low)), Call("<", (low, one))))
    return Call("if", (small, sum_first, halves_first))


def _free(wanted: str, taken: set[str], number: int) -> str:
    """A name that no variable has yet."""
    name = f"{wanted}#{number}" if wanted in taken else wanted
    taken.add(name)
    return name
