"""From lark's parse tree to the syntax tree: what a program says, with what the language refuses refused.

One method per rule of ``grammar.lark``.  This module imports lark, so it is
itself imported on first use (:func:`lftj.language.parser.parse`).
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from lark.visitors import Transformer_NonRecursive, v_args

from lftj.errors import RuleSyntaxError
from lftj.language.diagnostics import error_at, quoted_list
from lftj.language.syntax import (
    UNSET,
    Aggregate,
    Atom,
    BinaryOperation,
    ColumnName,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Head,
    Literal,
    Negative,
    Rule,
    Span,
    Term,
    Variable,
    Wildcard,
)
from lftj.values.literals import Value
from lftj.values.names import AGGREGATES

_RESERVED = ("true", "false", "_")
_MAX_DIGITS = 1000
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}


def _span(meta: Any) -> Span:
    return (meta.start_pos, meta.end_pos)


def _token_span(token: Any) -> Span:
    return (token.start_pos, token.end_pos)


@dataclass(frozen=True)
class _Named:
    """``orderkey: o``, until the atom or head around it takes it apart."""

    name: ColumnName
    term: Any


def _unnamed(term: Any) -> Any:
    return term.term if isinstance(term, _Named) else term


@v_args(meta=True)
class Reader(Transformer_NonRecursive):
    """A bottom-up fold without recursion: one method per grammar rule, ``(meta, children) -> node``."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def _error(self, span: Span, message: str) -> RuleSyntaxError:
        return error_at(RuleSyntaxError, self._text, span, message)

    # -- program and rules --------------------------------------------------

    def start(self, meta: Any, children: list[Rule]) -> list[Rule]:
        return children

    def rule(self, meta: Any, children: list[Any]) -> Rule:
        heads, body = children
        for head in heads:
            self._check_head_variables(head)
        return Rule(tuple(heads), tuple(body), _span(meta))

    def fact(self, meta: Any, children: list[Any]) -> Rule:
        (heads,) = children
        name = heads[0].relation
        raise self._error(
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
            raise self._error(_span(meta), f"head '{name}' needs at least one variable")
        return self._head(meta, name, arguments, None)

    def functional_head(self, meta: Any, children: list[Any]) -> Head:
        name, arguments, value = children
        self._check_relation_name(name)
        return self._head(meta, name, arguments or [], value)

    def _head(self, meta: Any, name: Any, terms: list[Any], value: Any) -> Head:
        columns = terms if value is None else [*terms, value]
        names = tuple(column.name if isinstance(column, _Named) else None for column in columns)
        self._refuse_twice([column for column in names if column is not None])
        return Head(
            str(name),
            tuple(map(_unnamed, terms)),
            _unnamed(value),
            _span(meta),
            _token_span(name),
            names if any(names) else (),
        )

    def named(self, meta: Any, children: list[Any]) -> _Named:
        name, term = children
        return _Named(ColumnName(str(name), _token_span(name)), term)

    def _refuse_twice(self, names: list[ColumnName]) -> None:
        for place, column in enumerate(names):
            if column in names[:place]:
                raise self._error(column.span, f"column '{column.name}' stands here twice")

    def _check_head_variables(self, head: Head) -> None:
        """Heads are made of any terms first: of a fact the message is that it is one."""
        for term in head.columns:
            if isinstance(term, Aggregate):
                if head.value is not None and term is not head.value:  # a key
                    terms = ", ".join(self._written(column) for column in head.columns)
                    raise self._error(
                        term.span,
                        "an aggregate is no key: a head with aggregates among its terms has round brackets, "
                        f"{head.relation}({terms})",
                    )
                continue
            if isinstance(term, Wildcard) or (isinstance(term, Variable) and term.name == "_"):
                raise self._error(term.span, "a head takes variables: '_' has no value to put there")
            if not isinstance(term, Variable) or term.name in _RESERVED:
                raise self._error(
                    term.span,
                    f"a head takes variables only: write v here and v = {self._written(term)} in the body",
                )

    def aggregate(self, meta: Any, children: list[Any]) -> Aggregate:
        name, arguments = children
        if name not in AGGREGATES:
            from lftj.values.semigroup import registered_names  # with the compiler

            if str(name) not in (registered := registered_names()):
                known = quoted_list([*AGGREGATES, *registered], "and")
                raise self._error(_token_span(name), f"unknown aggregate '{name}'; there are {known}")
        for place, argument in enumerate(arguments or []):
            if isinstance(argument, Wildcard):
                raise self._error(argument.span, f"'{name}' takes variables: '_' has no value to aggregate")
            if name == "concat" and place == 1 and isinstance(argument, Constant):
                if not isinstance(argument.value, str):
                    raise self._error(argument.span, "the separator of 'concat' is a string")
            elif not isinstance(argument, Variable):
                written = self._written(argument)
                raise self._error(
                    argument.span,
                    f"'{name}' takes variables: write v here and v = {written} in the body",
                )
        return Aggregate(str(name), tuple(arguments or []), _span(meta))

    # -- body ---------------------------------------------------------------

    def relation_atom(self, meta: Any, children: list[Any]) -> Atom:
        name, arguments = children
        self._check_relation_name(name)
        if not arguments:
            raise self._error(_span(meta), f"atom '{name}' needs at least one term")
        names, terms = self._names_and_terms(arguments)
        return Atom(str(name), terms, False, False, _span(meta), _token_span(name), names)

    def functional_atom(self, meta: Any, children: list[Any]) -> Atom:
        name, arguments, value = children
        self._check_relation_name(name)
        names, keys = self._names_and_terms(arguments or [])
        terms = (*keys, *self._terms([value]))
        return Atom(str(name), terms, True, False, _span(meta), _token_span(name), names)

    def negation(self, meta: Any, children: list[Atom]) -> Atom:
        (atom,) = children
        return replace(atom, negated=True, span=_span(meta))

    def comparison(self, meta: Any, children: list[Any]) -> Comparison:
        left, operator, right = children
        return self._comparison(meta, str(operator), left, right)

    def equality(self, meta: Any, children: list[Any]) -> Comparison:
        left, right = children
        return self._comparison(meta, "=", left, right)

    def _comparison(self, meta: Any, operator: str, left: Any, right: Any) -> Comparison:
        for side in (left, right):
            if isinstance(side, Wildcard):
                raise self._error(side.span, "'_' has no value to compare: name the variable")
        return Comparison(operator, left, right, _span(meta))

    def disjunction(self, meta: Any, children: list[list[Literal]]) -> Disjunction:
        return Disjunction(tuple(tuple(alternative) for alternative in children), _span(meta))

    def _names_and_terms(self, arguments: list[Any]) -> tuple[tuple[ColumnName, ...], tuple[Term, ...]]:
        names = [argument.name for argument in arguments if isinstance(argument, _Named)]
        terms = self._terms([_unnamed(argument) for argument in arguments])
        if names and len(names) < len(arguments):
            place = next(place for place, one in enumerate(arguments) if not isinstance(one, _Named))
            raise self._error(
                terms[place].span,
                f"an atom's terms stand by name or by place: '{self._written(terms[place])}'"
                " has no name here",
            )
        self._refuse_twice(names)
        return tuple(names), terms

    def _terms(self, expressions: list[Expression | Wildcard]) -> tuple[Term, ...]:
        for expression in expressions:
            if not isinstance(expression, Variable | Constant | Wildcard):
                written = self._written(expression)
                raise self._error(
                    expression.span,
                    f"an atom takes variables and constants: write v here and v = {written} beside the atom",
                )
        return tuple(expressions)  # type: ignore[arg-type]

    def _check_relation_name(self, name: Any) -> None:
        if name in _RESERVED:
            raise self._error(_token_span(name), f"'{name}' can't name a relation")

    # -- expressions --------------------------------------------------------

    def arguments(self, meta: Any, children: list[Any]) -> list[Any]:
        return children

    def variable(self, meta: Any, children: list[Any]) -> Variable:
        return Variable(str(children[0]), _span(meta))

    def wildcard(self, meta: Any, children: list[Any]) -> Wildcard:
        return Wildcard(_span(meta))

    def binary_operation(self, meta: Any, children: list[Any]) -> BinaryOperation:
        left, operator, right = children
        for side in (left, right):
            self._check_operand(side)
        return BinaryOperation(str(operator), left, right, _span(meta))

    def negative(self, meta: Any, children: list[Any]) -> Expression:
        _, operand = children
        self._check_operand(operand)
        if isinstance(operand, Constant) and operand.parameter is not None:
            return Negative(operand, _span(meta))
        if isinstance(operand, Constant) and isinstance(operand.value, Decimal):
            return Constant(operand.value.copy_negate(), _span(meta))  # unary minus would round to 28 digits
        if isinstance(operand, Constant) and type(operand.value) in (int, float):
            return Constant(-operand.value, _span(meta))  # type: ignore[operator]
        return Negative(operand, _span(meta))

    def _check_operand(self, operand: Expression | Wildcard) -> None:
        if isinstance(operand, Wildcard):
            raise self._error(operand.span, "'_' has no value to compute with: name the variable")

    def _written(self, expression: Expression | Aggregate | Wildcard) -> str:
        return " ".join(self._text[slice(*expression.span)].split())

    # -- literals -----------------------------------------------------------

    def parameter(self, meta: Any, children: list[Any]) -> Constant:
        name = str(children[0])[1:]
        return Constant(UNSET, _span(meta), name)

    def integer(self, meta: Any, children: list[Any]) -> Constant:
        if len(children[0]) > _MAX_DIGITS:  # int() refuses more than 4,300 digits, with an error of its own
            raise self._error(_span(meta), f"a number of more than {_MAX_DIGITS} digits")
        return Constant(int(children[0]), _span(meta))

    def decimal(self, meta: Any, children: list[Any]) -> Constant:
        return Constant(Decimal(str(children[0])), _span(meta))

    def float(self, meta: Any, children: list[Any]) -> Constant:
        value = float(children[0])
        if value == float("inf"):
            raise self._error(_span(meta), "a number beyond the range of 64-bit floats")
        return Constant(value, _span(meta))

    def true(self, meta: Any, children: list[Any]) -> Constant:
        return Constant(True, _span(meta))

    def false(self, meta: Any, children: list[Any]) -> Constant:
        return Constant(False, _span(meta))

    def string(self, meta: Any, children: list[Any]) -> Constant:
        (token,) = children
        start = token.start_pos + 1

        def replace(match: re.Match[str]) -> str:
            code = match.group(1)
            if code[0] == "u" and len(code) == 5:
                return chr(int(code[1:], 16))
            if code not in _SIMPLE_ESCAPES:
                raise self._error(
                    (start + match.start(), start + match.end()),
                    r"unknown escape in a string; there are \" \\ \n \t and \uXXXX",
                )
            return _SIMPLE_ESCAPES[code]

        value = _ESCAPE.sub(replace, str(token[1:-1]))
        try:
            # Escapes may spell a character beyond U+FFFF as a surrogate pair; half of one is no text.
            value = value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._error(_span(meta), r"half of a \u surrogate pair is no character") from None
        return Constant(value, _span(meta))

    def binary(self, meta: Any, children: list[Any]) -> Constant:
        digits = children[0][2:-1]
        if not re.fullmatch(r"([0-9A-Fa-f]{2})*", digits):
            raise self._error(_span(meta), 'a binary constant is pairs of hexadecimal digits: x"00ff"')
        return Constant(bytes.fromhex(digits), _span(meta))

    def date(self, meta: Any, children: list[Any]) -> Constant:
        return self._temporal(meta, children[0], datetime.date, "date")

    def timestamp(self, meta: Any, children: list[Any]) -> Constant:
        fraction = re.search(r"\.([0-9]+)", children[0])
        if fraction and len(fraction.group(1)) > 6:
            raise self._error(_span(meta), "a timestamp constant has at most 6 digits behind the seconds")
        return self._temporal(meta, str(children[0]), datetime.datetime, "timestamp")

    def _temporal(self, meta: Any, text: str, kind: type[datetime.date], name: str) -> Constant:
        try:
            value: Value = kind.fromisoformat(text)
        except ValueError as error:
            raise self._error(_span(meta), f"no such {name}: {error}") from None
        return Constant(value, _span(meta))
