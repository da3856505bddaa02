"""From lark's parse tree to the syntax tree: what a program says, with what the language refuses refused.

One method per rule of ``grammar.lark``.  This module imports lark, so it is
itself imported on first use (:func:`lftj.language.parser.parse`).
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lftj.errors import ArityError
from lftj.language.conditionals import as_condition, connected, is_condition
from lftj.language.diagnostics import error_at, suggestion
from lftj.language.filtered_aggregates import Filtered
from lftj.language.literal_reader import span_of, token_span
from lftj.language.nearest_rows import NearestRows, is_nearest
from lftj.language.predicates import holds, is_test
from lftj.language.recent import NOW
from lftj.language.syntax import (
    Aggregate,
    Atom,
    BinaryOperation,
    Call,
    ColumnName,
    Comparison,
    Constant,
    DeclaredFinal,
    DeclaredStream,
    Disjunction,
    Expression,
    Head,
    Key,
    Literal,
    Negative,
    Rule,
    SortKey,
    Span,
    Term,
    Variable,
    Wildcard,
    Window,
)
from lftj.language.top_rows import TopRows, is_top
from lftj.language.ways_out import other_aggregate
from lftj.language.window_reader import Listed, NamedTerm, WindowReader, listed
from lftj.language.window_rows import WindowLiteral
from lftj.values.functions import FUNCTIONS
from lftj.values.literals import NULL
from lftj.values.names import (
    AGGREGATES,
    COPIES,
    ORDERED,
    QUANTILES,
    RANKED,
    WINDOWS,
    nearest_usable,
)
from lftj.values.operators import NULL_SAFE

_SPANS = {"late": "lateness", "keep": "keep", "ahead": "ahead"}
"""What is said of a stream, by its word."""

Stated = Rule | Key | DeclaredStream | DeclaredFinal
Choosing = TopRows | WindowLiteral | NearestRows
"""What stands in a body and is about all of it."""

_RESERVED = ("true", "false", "null", "_")


def _is_share(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and 0 < value <= 1


def _unnamed(term: Any) -> Any:
    return term.term if isinstance(term, NamedTerm) else term


class Reader(WindowReader):
    """A bottom-up fold without recursion: one method per grammar rule, ``(meta, children) -> node``."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._orders: dict[str, tuple[tuple[SortKey, ...], Span]] = {}
        """Of aggregates, by what the place in each is called, and where it stands."""

    # -- program and rules --------------------------------------------------

    def start(self, meta: Any, children: list[Stated]) -> list[Stated]:
        return children

    def key(self, meta: Any, children: list[Any]) -> Key:
        relation, *columns = children
        self._refuse_twice(columns)
        return Key(str(relation), tuple(columns), span_of(meta))

    def stream(self, meta: Any, children: list[Any]) -> DeclaredStream:
        relation, time, *spans = children
        said: dict[str, Any] = {}
        for word, value in spans:
            option = _SPANS.get(str(word))
            if option is None or option in said:
                why = "is said already" if option else "is none of late, keep and ahead"
                raise self.error(
                    token_span(word), f"'{word}' {why}: stream {relation}({time.name}) late 5s keep 2h."
                )
            said[option] = value
        return DeclaredStream(str(relation), time, **said, span=span_of(meta))

    def final(self, meta: Any, children: list[Any]) -> DeclaredFinal:
        head, at, (column, after, span) = children
        if at != "at":
            raise self.error(token_span(at), f"expected 'at', not '{at}': final {head} at w + 5m.")
        return DeclaredFinal(str(head), column, after, span_of(meta), span)

    def closes(self, meta: Any, children: list[Any]) -> tuple[ColumnName, Any, Span]:
        column, _, length = children
        return column, None if length is None else self._length(meta, length), span_of(meta)

    def _length(self, meta: Any, length: Any) -> Any:
        read = self.duration if length.type == "DURATION" else self.integer
        return read(meta, [length]).value

    def span(self, meta: Any, children: list[Any]) -> tuple[Any, Any]:
        word, length = children
        return word, self._length(meta, length)

    def key_column(self, meta: Any, children: list[Any]) -> ColumnName:
        return ColumnName(str(children[0]), token_span(children[0]))

    def rule(self, meta: Any, children: list[Any]) -> Rule:
        heads, body = children
        for head in heads:
            self._check_head_variables(head)
        places: list[Any] = [*dict.fromkeys(self._places(heads))]  # gone with the other windows
        return Rule(tuple(heads), (*body, *places), span_of(meta))

    def _places(self, heads: list[Head]) -> Iterator[WindowLiteral]:
        """What gives each assignment its place in the order that an aggregate has behind ``by:``."""
        for head in heads:
            per = tuple(dict.fromkeys(term for term in head.columns if isinstance(term, Variable)))
            for one in (argument for call in head.aggregates for argument in call.arguments):
                if isinstance(one, Variable) and one.name in self._orders:
                    by, span = self._orders[one.name]
                    yield WindowLiteral(one, Window("dense_rank", (), per, by, span=span), span)

    def fact(self, meta: Any, children: list[Any]) -> Rule:
        (heads,) = children
        name = heads[0].relation
        raise self.error(
            (heads[0].span[0], heads[-1].span[1]),
            f"a rule needs a body; to state facts, load data: db.load('{name}', [...], columns=[...])",
        )

    def heads(self, meta: Any, children: list[Head]) -> list[Head]:
        return children

    def body(self, meta: Any, children: list[Literal]) -> list[Literal]:
        return children

    # -- heads --------------------------------------------------------------

    def relation_head(self, meta: Any, children: list[Any]) -> Head:
        name, arguments = children
        self._check_relation_name(name)
        if not arguments:
            raise self.error(span_of(meta), f"head '{name}' needs at least one variable")
        return self._head(meta, name, arguments, None)

    def bag_head(self, meta: Any, children: list[Any]) -> Head:
        name, arguments = children
        weights = [one for one in arguments or [] if isinstance(one, NamedTerm) and one.name.name == COPIES]
        if len(weights) > 1:
            raise self.error(weights[1].name.span, f"'{COPIES}' stands here twice")
        terms = [one for one in arguments or [] if one not in weights]
        head = replace(self.relation_head(meta, [name, terms]), bag=True)
        for aggregate in head.aggregates:
            message = "a bag counts no groups: derive the aggregate in a rule of its own, and read that here"
            raise self.error(aggregate.span, message)
        return replace(head, copies=_unnamed(weights[0])) if weights else head

    def functional_bag(self, meta: Any, children: list[Any]) -> Head:
        name, arguments, value = children
        columns = ", ".join(self.written(_unnamed(term)) for term in (*(arguments or []), value))
        raise self.error(span_of(meta), f"a bag is no function: write bag {name}({columns})")

    def functional_head(self, meta: Any, children: list[Any]) -> Head:
        name, arguments, value = children
        self._check_relation_name(name)
        return self._head(meta, name, arguments or [], value)

    def _head(self, meta: Any, name: Any, terms: list[Any], value: Any) -> Head:
        columns = terms if value is None else [*terms, value]
        names = tuple(column.name if isinstance(column, NamedTerm) else None for column in columns)
        self._refuse_twice([column for column in names if column is not None])
        return Head(
            str(name),
            tuple(map(_unnamed, terms)),
            _unnamed(value),
            span_of(meta),
            token_span(name),
            names if any(names) else (),
        )

    def named(self, meta: Any, children: list[Any]) -> NamedTerm:
        name, term = children
        if name in _RESERVED:
            raise self.error(
                token_span(name), f"'{name}' can't name a column: call it '{nearest_usable(name)}'"
            )
        return NamedTerm(ColumnName(str(name), token_span(name)), term)

    def _refuse_twice(self, names: list[ColumnName]) -> None:
        for place, column in enumerate(names):
            if column in names[:place]:
                raise self.error(column.span, f"column '{column.name}' stands here twice")

    def _check_head_variables(self, head: Head) -> None:
        """Heads are made of any terms first: of a fact the message is that it is one."""
        for term in (*head.columns, *([] if head.copies is None else [head.copies])):
            if isinstance(term, Aggregate):
                if head.value is not None and term is not head.value:  # a key
                    terms = ", ".join(self.written(column) for column in head.columns)
                    raise self.error(
                        term.span,
                        "an aggregate is no key: a head with aggregates among its terms has round brackets, "
                        f"{head.relation}({terms})",
                    )
                continue
            if isinstance(term, Wildcard) or (isinstance(term, Variable) and term.name == "_"):
                raise self.error(term.span, "a head takes variables: '_' has no value to put there")
            if not isinstance(term, Variable) or term.name in _RESERVED:
                raise self.error(
                    term.span,
                    f"a head takes variables only: write v here and v = {self.written(term)} in the body",
                )

    def aggregate(self, meta: Any, children: list[Any]) -> Aggregate:
        name, distinct, arguments, behind, condition = children
        if name not in AGGREGATES:
            from lftj.values.semigroup import registered_names  # with the compiler

            registered = registered_names()
            if name in FUNCTIONS and name not in registered:
                written = self._text[slice(*span_of(meta))]
                raise self.error(
                    span_of(meta), f"a head takes variables only: write v here and v = {written} in the body"
                )
            if name not in registered:
                near = other_aggregate(name, [*AGGREGATES, *registered])
                raise self.error(token_span(name), f"unknown aggregate '{name}'{near}")
        arguments = [self._in_order(name, argument) for argument in arguments or []]
        for place, argument in enumerate(arguments):
            if isinstance(argument, Wildcard):
                raise self.error(argument.span, f"'{name}' takes variables: '_' has no value to aggregate")
            if name in RANKED and place == 1:
                rank = argument.value if isinstance(argument, Constant) else None
                if type(rank) is not int or rank < 1:
                    raise self.error(
                        argument.span, f"the rank of '{name}' is a whole number from 1: {name}(v, 3)"
                    )
            elif name in QUANTILES and place == 1:
                share = argument.value if isinstance(argument, Constant) else None
                if not _is_share(share):
                    raise self.error(
                        argument.span,
                        f"the share of '{name}' is a number above 0 and up to 1: {name}(v, 0.5)",
                    )
            elif name in ("concat", "string_agg") and place == 1 and isinstance(argument, Constant):
                if not isinstance(argument.value, str):
                    raise self.error(argument.span, f"the separator of '{name}' is a string")
            elif name == "list" and place and getattr(argument, "name", None) not in self._orders:
                message = "'list' takes one variable, and an order as by: list(v, by: (k desc, i))"
                raise self.error(argument.span, message)
            elif not isinstance(argument, Variable):
                written = self.written(argument)
                raise self.error(
                    argument.span,
                    f"'{name}' takes variables: write v here and v = {written} in the body",
                )
        call = Aggregate(str(name), tuple(arguments), span_of(meta), distinct is not None)
        if condition is None:
            return call
        if not call.arguments and name != "count":  # if(...) where a variable stands
            raise self.error(call.span, f"'{name}' takes variables: write v here and v = if(...) in the body")
        self.check_operand(condition)
        return Filtered(
            call.function,
            call.arguments,
            call.span,
            call.distinct,
            written=self.written(call),
            condition=_condition(condition),
            spelled=" ".join(self._text[behind.end_pos : meta.end_pos - 1].split()),
        )

    def _in_order(self, name: str, argument: Any) -> Any:
        """The argument; of ``by: (k desc, i)`` a variable for the place in that order."""
        if not isinstance(argument, NamedTerm):
            return argument
        if argument.name.name != "by" or name not in ORDERED:
            raise self.error(argument.name.span, f"'{name}' is an aggregate: its arguments stand by place")
        by = tuple(self._ordering(term, name) for term in listed(argument.term))
        signs = (" desc" * one.descending + " nulls first" * one.nulls_first for one in by)
        written = (f"{one.variable.name}{sign}" for one, sign in zip(by, signs, strict=True))
        place = Variable(f"by: {', '.join(written)}", argument.name.span)
        self._orders[place.name] = by, argument.name.span
        return place

    def defaulted(self, meta: Any, children: list[Any]) -> Aggregate:
        call, _, default = children
        return replace(call, default=default)

    # -- body ---------------------------------------------------------------

    def relation_atom(self, meta: Any, children: list[Any]) -> Atom | Comparison | Choosing:
        name, arguments = children
        self._check_relation_name(name)
        if not arguments:
            raise self.error(span_of(meta), f"atom '{name}' needs at least one term")
        is_named = [isinstance(one, NamedTerm) for one in arguments]
        if is_top(name, is_named):
            return self._top_rows(meta, str(name), arguments)
        if is_nearest(name, is_named) and (len(arguments) > 1 or isinstance(arguments[0], Variable)):
            return self._nearest_rows(meta, name, arguments)
        if is_test(name) and not all(
            isinstance(_unnamed(one), Variable | Constant | Wildcard) for one in arguments
        ):
            call = self.call(meta, [name, arguments])
            assert isinstance(call, Call), "no window is a test"
            return holds(call)
        names, terms = self._names_and_terms(arguments)
        return Atom(str(name), terms, False, False, span_of(meta), token_span(name), names)

    def _top_rows(self, meta: Any, name: str, arguments: list[Any]) -> TopRows | WindowLiteral:
        rank, *named = arguments
        orders = [one.term for one in named if one.name.name == "by"]
        if name == "top" and not (len(orders) == 1 and isinstance(orders[0], Variable)):
            return WindowLiteral(None, self.window(meta, "top", arguments), span_of(meta))
        if not isinstance(rank, Constant) or type(rank.value) is not int or rank.value < 1:
            raise self.error(rank.span, f"'{name}' takes a whole number from 1 first: {name}(3, by: v)")
        variables: dict[str, list[Variable]] = {"by": [], "per": []}
        for one in named:
            if one.name.name not in variables:
                raise self.error(
                    one.name.span, f"'{name}' takes by: and per:, as in {name}(3, by: v, per: a)"
                )
            if not isinstance(one.term, Variable):
                written = self.written(one.term)
                raise self.error(
                    one.term.span, f"'{name}' takes variables: write v here and v = {written} in the body"
                )
            variables[one.name.name].append(one.term)
        if len(variables["by"]) != 1:
            raise self.error(span_of(meta), f"'{name}' goes by one variable: {name}(3, by: v)")
        return TopRows(name, rank, variables["by"][0], tuple(variables["per"]), span_of(meta))

    def _nearest_rows(self, meta: Any, name: Any, arguments: list[Any]) -> NearestRows:
        value, *named = arguments
        for one in (value, *(given.term for given in named)):
            if not isinstance(one, Variable):
                message = f"'{name}' takes variables: {name}(u, per: e)"
                raise self.error(one.span, message)
        for given in named:
            if given.name.name != "per":
                raise self.error(given.name.span, f"'{name}' takes per:, as in {name}(u, per: e)")
        groups = tuple(given.term for given in named) or None
        return NearestRows(str(name), value, groups, span_of(meta), token_span(name))

    def functional_atom(self, meta: Any, children: list[Any]) -> Atom:
        name, arguments, value = children
        self._check_relation_name(name)
        names, keys = self._names_and_terms(arguments or [])
        terms = (*keys, *self._terms([value]))
        return Atom(str(name), terms, True, False, span_of(meta), token_span(name), names)

    def as_of_now(self, meta: Any, children: list[Any]) -> Atom:
        (atom,) = children
        if not isinstance(atom, Atom):
            raise self.error(span_of(meta), "asof now stands behind an atom: rate[s] = p asof now")
        return replace(atom, as_of_now=True, span=span_of(meta))

    def negation(self, meta: Any, children: list[Any]) -> Atom | Comparison:
        (atom,) = children
        if isinstance(atom, NearestRows) and atom.groups is None:
            return self.negation(meta, [atom.as_atom])
        if isinstance(atom, Choosing):
            name = "top" if isinstance(atom, WindowLiteral) else atom.function
            way = "derive the rows in a rule of their own, and negate its head"
            raise self.error(span_of(meta), f"'{name}' can't be negated: {way}")
        if isinstance(atom, Comparison):
            assert isinstance(atom.left, Call)
            return holds(atom.left, negated=True)
        return replace(atom, negated=True, span=span_of(meta))

    def comparison(self, meta: Any, children: list[Any]) -> Comparison | WindowLiteral:
        left, operator, right = children
        return self._comparison(meta, str(operator), left, right)

    def equality(self, meta: Any, children: list[Any]) -> Comparison | WindowLiteral:
        left, right = children
        return self._comparison(meta, "=", left, right)

    def membership(self, meta: Any, children: list[Any]) -> Comparison:
        value, operator, items = children
        return self._infix(meta, "in", operator, (value, *items))

    def element(self, meta: Any, children: list[Any]) -> Comparison:
        value, operator, lists = children
        return self._infix(meta, "list_contains", operator, (lists, value))

    def like(self, meta: Any, children: list[Any]) -> Comparison:
        value, operator, pattern, _, escape = children
        return self._infix(meta, "like", operator, (value, pattern, *([] if escape is None else [escape])))

    def null_test(self, meta: Any, children: list[Any]) -> Comparison:
        tested, operator = children
        if isinstance(tested, Wildcard):
            raise self.error(tested.span, "'_' has no value to test: name the variable")
        sign = "<!=>" if "not" in operator.split() else "<=>"
        return Comparison(sign, tested, Constant(NULL, span_of(meta)), span_of(meta))

    def _infix(self, meta: Any, function: str, operator: Any, arguments: tuple[Any, ...]) -> Comparison:
        for argument in arguments:
            if isinstance(argument, Wildcard):
                raise self.error(argument.span, "'_' has no value to compare: name the variable")
        return holds(Call(function, arguments, span_of(meta)), negated=operator.startswith("not"))

    def _comparison(self, meta: Any, operator: str, left: Any, right: Any) -> Comparison | WindowLiteral:
        for target, window in ((left, right), (right, left)):
            if operator == "=" and isinstance(target, Variable) and isinstance(window, Window):
                return WindowLiteral(target, window, span_of(meta))
        for side in (left, right):
            if isinstance(side, Wildcard):
                raise self.error(side.span, "'_' has no value to compare: name the variable")
            self.check_operand(side)
        if operator in NULL_SAFE and isinstance(left, Constant) and left.value is NULL:
            left, right = right, left
        return Comparison(operator, left, _condition(right), span_of(meta))

    def disjunction(self, meta: Any, children: list[list[Any]]) -> Disjunction:
        children = [
            [one.as_atom if isinstance(one, NearestRows) and one.groups is None else one for one in some]
            for some in children
        ]
        for literal in itertools.chain(*children):
            if isinstance(literal, Choosing):
                name = literal.window.function if isinstance(literal, WindowLiteral) else literal.function
                way = "write it outside of the parentheses, or a rule for each alternative"
                raise self.error(literal.span, f"'{name}' is of a whole body: {way}")
        return Disjunction(tuple(tuple(alternative) for alternative in children), span_of(meta))

    def _names_and_terms(self, arguments: list[Any]) -> tuple[tuple[ColumnName, ...], tuple[Term, ...]]:
        names = [argument.name for argument in arguments if isinstance(argument, NamedTerm)]
        terms = self._terms([_unnamed(argument) for argument in arguments])
        if names and len(names) < len(arguments):
            place = next(place for place, one in enumerate(arguments) if not isinstance(one, NamedTerm))
            raise self.error(
                terms[place].span,
                f"an atom's terms stand by name or by place: '{self.written(terms[place])}' has no name here",
            )
        self._refuse_twice(names)
        return tuple(names), terms

    def _terms(self, expressions: list[Expression | Wildcard]) -> tuple[Term, ...]:
        for expression in expressions:
            if is_condition(expression):
                written = self.written(expression)
                way = f"an atom takes variables and constants: write the condition '{written}' beside it"
                raise self.error(expression.span, way)
            if not isinstance(expression, Variable | Constant | Wildcard):
                written = self.written(expression)
                raise self.error(
                    expression.span,
                    f"an atom takes variables and constants: write v here and v = {written} beside the atom",
                )
        return tuple(expressions)  # type: ignore[arg-type]

    def _check_relation_name(self, name: Any) -> None:
        if name in _RESERVED:
            raise self.error(token_span(name), f"'{name}' can't name a relation")

    # -- expressions --------------------------------------------------------

    def arguments(self, meta: Any, children: list[Any]) -> list[Any]:
        return children

    def call(self, meta: Any, children: list[Any]) -> Call | Window:
        name, arguments = children
        named = any(isinstance(argument, NamedTerm) for argument in arguments or [])
        if name in WINDOWS and name not in FUNCTIONS and (named or name not in AGGREGATES):
            return self.window(meta, str(name), arguments or [])
        if name in AGGREGATES:
            raise self.error(
                token_span(name),
                f"'{name}' is an aggregate: it stands alone in a head, as in n[a] = count();"
                " compute with it in another rule",
            )
        if name == NOW and not arguments:
            return Call(NOW, (), span_of(meta))
        if name not in FUNCTIONS:
            arrow = re.compile(r"\s*(<-)").match(self._text, meta.end_pos)
            if arrow:  # read as a comparison of a call with what is negative
                raise self.error(arrow.span(1), "expected ',' or '.', not '<-'")
            what, known = ("window", WINDOWS) if named else ("function", tuple(FUNCTIONS))
            near = "; write count(distinct x)" if name == "distinct" else suggestion(name, known)
            raise self.error(token_span(name), f"unknown {what} '{name}'{near}")
        for argument in arguments or []:
            if isinstance(argument, NamedTerm):
                raise self.error(argument.name.span, f"'{name}' is a function: its arguments stand by place")
            self.check_operand(argument)
        function = FUNCTIONS[name]
        if not function.least <= len(arguments or []) <= function.most:
            raise error_at(ArityError, self._text, span_of(meta), f"'{name}' takes {function.arity}")
        return Call(str(name), tuple(map(_condition, arguments)), span_of(meta))

    def failing(self, meta: Any, children: list[Call]) -> Comparison:
        return holds(children[0], negated=True)

    def all_of(self, meta: Any, children: list[Any]) -> Expression | Listed:
        if any(isinstance(child, SortKey | Wildcard) for child in children):
            return Listed(tuple(children), span_of(meta))
        return connected("and", [_condition(child) for child in children])

    def any_of(self, meta: Any, children: list[Any]) -> Expression | Listed:
        if len(children) > 1:
            for child in children:
                self.check_operand(child)
        return connected("or", children)

    def variable(self, meta: Any, children: list[Any]) -> Variable:
        name = str(children[0])
        if name.lower() == "null":
            raise self.error(span_of(meta), f"'{name}' is written null")
        return Variable(name, span_of(meta))

    def null_safe(self, meta: Any, children: list[Any]) -> Variable:
        sign, variable = children
        if sign != "<=>":
            raise self.error(token_span(sign), f"an atom takes <=> before a variable, not {sign}")
        return replace(variable, span=span_of(meta), null_safe=True)

    def named_null_safe(self, meta: Any, children: list[Any]) -> NamedTerm:
        name, sign, variable = children
        return self.named(meta, [name, self.null_safe(meta, [sign, variable])])

    def wildcard(self, meta: Any, children: list[Any]) -> Wildcard:
        return Wildcard(span_of(meta))

    def binary_operation(self, meta: Any, children: list[Any]) -> BinaryOperation:
        left, operator, right = children
        for side in (left, right):
            self.check_operand(side)
        return BinaryOperation(str(operator), left, right, span_of(meta))

    def joined(self, meta: Any, children: list[Any]) -> Call:
        left, operator, right = children
        for side in (left, right):
            self.check_operand(side)
        return Call(str(operator), (left, right), span_of(meta))

    def negative(self, meta: Any, children: list[Any]) -> Expression:
        _, operand = children
        self.check_operand(operand)
        if isinstance(operand, Constant) and operand.parameter is not None:
            return Negative(operand, span_of(meta))
        if isinstance(operand, Constant) and isinstance(operand.value, Decimal):
            return Constant(
                operand.value.copy_negate(), span_of(meta)
            )  # unary minus would round to 28 digits
        if isinstance(operand, Constant) and type(operand.value) in (int, float, datetime.timedelta):
            return Constant(-operand.value, span_of(meta))  # type: ignore[operator]
        return Negative(operand, span_of(meta))


def _condition(argument: Expression | Comparison) -> Expression:
    return as_condition(argument) if isinstance(argument, Comparison) else argument
