"""Expressions and conditions as code of rows: see :mod:`maintenance.machine.row_code`.

Conditions are true, false or NULL, as :mod:`lftj.language.conditionals` has them; branches are computed where
they are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from indices.keys import KEY_MAX
from lftj.language.conditionals import COMPARISONS, NOT, children
from lftj.language.expressions import evaluator, result_type, text_of, variables_of
from lftj.language.syntax import BinaryOperation, Call, Constant, Expression, Negative, Variable
from lftj.planning.lowered import code_limits
from lftj.values.domain import NULL_CODE, Domain
from lftj.values.floating import float_codes
from lftj.values.kinds import kind, plain_type
from lftj.values.literals import NULL
from lftj.values.operators import FLIPPED, NULL_SAFE
from lftj.values.unscaled import SCALE
from maintenance.machine import computing
from maintenance.machine.answers import Answered
from maintenance.machine.floats import BY, MAGNITUDE, MINUS, MOST_EXACT, PLUS, QUOTIENT, TIMES
from maintenance.machine.row_registers import MOST_ZEROS, Held, Registers

_ARITHMETIC = {"+": computing.ADD, "-": computing.SUBTRACT, "*": computing.MULTIPLY, "%": computing.REMAINDER}
_OF_FLOATS = {"+": PLUS, "-": MINUS, "*": TIMES, "/": BY}
_TESTS = {
    "=": computing.EQUAL,
    "!=": computing.UNEQUAL,
    "<": computing.LESS,
    "<=": computing.NOT_ABOVE,
}
_CHOICES = ("if", "coalesce", "nullif")
_MOST_DIGITS = 15  # 10**15 < MOST_EXACT
_MOST_ALTERNATIVES = 16


class Target(NamedTuple):
    """The type that values are to have.  ``domain``: whose codes they are then; not asked for of numbers."""

    arrow: pa.DataType
    domain: Domain | None = None

    @property
    def scale(self) -> int | None:
        """In units of which digit numbers are held; None for others."""
        arrow = plain_type(self.arrow)
        if kind(arrow) == "decimal":
            return arrow.scale if 0 <= arrow.scale <= SCALE else None
        return 0 if pa.types.is_integer(arrow) and arrow != pa.uint64() else None


_CONDITION, _DOUBLE = Target(pa.bool_()), Target(pa.float64())


class Expressions:
    """Those of one body.  What can't be written is None."""

    def __init__(self, code: Registers) -> None:
        self._code = code
        self._one = code.register(1)

    # -- values of a type -------------------------------------------------------------------------

    def typed(self, node: Expression, target: Target) -> Held | None:
        """A folded expression's values as a variable of a type holds them: numbers in the type's units."""
        return self._written(node, lambda: self._typed(node, target), target)

    def _typed(self, node: Expression, target: Target) -> Held | None:
        arrow, domain = target
        if _is_null(node):
            return Held(self._code.register(), target.scale, self._code.register(0))
        if isinstance(node, Call) and node.function == "if":
            return self._chosen(node.arguments, target)
        if isinstance(node, Call) and node.function == "coalesce":
            return self._first_known(node.arguments, target)
        if isinstance(node, Call) and node.function == "nullif":
            first, other = node.arguments
            return self._chosen((Call("=", (first, other)), Constant(NULL), first), target)
        if target.scale is not None:
            number = self.number(node)
            return None if number is None else self._code.at_scale(number, target.scale)
        if arrow == pa.float64():
            return self.double(node)
        if arrow == pa.bool_():
            return self.condition(node)
        if isinstance(node, Variable) and self._code.types[node.name].domain is domain:
            return self._code.coded(node.name)
        if isinstance(node, Constant) and isinstance(node.value, str | date) and node.parameter is None:
            code = None if domain is None else domain.code_of_constant(node.value)
            return None if code is None else Held(self._code.register(code))
        return None

    def _chosen(self, arguments: Sequence[Expression], target: Target) -> Held | None:
        """``if``: each branch where it is taken; NULL where there is none."""
        condition, then, *otherwise = arguments
        found = self.condition(condition)
        if found is None:
            return None
        holds, to = self.holds(found), self._new(target)
        with self._code.where(holds):
            taken = self._moved(then, target, to)
        if not taken or not otherwise:
            return to if taken else None
        with self._code.where(self._code.instruct(computing.NOT, holds)):
            taken = self._moved(otherwise[0], target, to)
        return to if taken else None

    def _first_known(self, arguments: Sequence[Expression], target: Target) -> Held | None:
        """``coalesce``: each argument where all before it are NULL."""
        to = self._new(target)
        for argument in arguments:
            with self._code.where(self._code.instruct(computing.NOT, _known(to))):
                if not self._moved(argument, target, to):
                    return None
        return to

    def _new(self, target: Target) -> Held:
        """What has a value of a type once that is moved there, and is NULL before."""
        known = self._code.instruct(computing.MOVE, self._code.register(0))
        return Held(self._code.register(), target.scale, known)

    def _moved(self, node: Expression, target: Target, to: Held) -> bool:
        """Let another value have what an expression has; whether that can be written."""
        found = self.typed(node, target)
        if found is None:
            return False
        with self._code.where(found.known):
            self._code.instruct(computing.MOVE, found.register, out=to.register)
        known = self._one if found.known is None else found.known
        self._code.instruct(computing.MOVE, known, out=_known(to))
        return True

    # -- numbers ----------------------------------------------------------------------------------

    def number(self, node: Expression) -> Held | None:
        """A folded expression's values as whole numbers in units of a digit."""
        if isinstance(node, Variable):
            return self._code.number_of(node.name)
        if isinstance(node, Constant):
            return self._constant(node)
        target = Target(result_type(node, self._code.arrow))
        if target.scale is None:
            return None
        return self._written(node, lambda: self._number(node, target), target)

    def _number(self, node: Negative | BinaryOperation | Call, target: Target) -> Held | None:
        if isinstance(node, Negative):
            return self._operation(computing.SUBTRACT, Constant(0), node.operand)
        if isinstance(node, BinaryOperation) and node.operator in _ARITHMETIC:
            return self._operation(_ARITHMETIC[node.operator], node.left, node.right)
        if isinstance(node, BinaryOperation):
            return None
        if node.function == "abs":
            (of,) = node.arguments
            return self._operation(computing.ABSOLUTE, of, of)
        if node.function == "div":
            return self._operation(computing.DIVIDE, *node.arguments)
        if node.function == "cast" and target.arrow == pa.int64() and self._is(node.arguments[0], "integer"):
            return self.number(node.arguments[0])
        return self._typed(node, target) if node.function in _CHOICES else None

    def _constant(self, node: Constant) -> Held | None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or node.parameter is not None:
            return None
        _, _, exponent = Decimal(value).as_tuple()
        if not isinstance(exponent, int) or not -MOST_ZEROS <= exponent <= MOST_ZEROS:
            return None
        scale = max(-exponent, 0)
        number = int(Decimal(value).scaleb(scale))
        return Held(self._code.register(number), scale) if abs(number) <= KEY_MAX else None

    def _operation(self, code: int, left: Expression, right: Expression) -> Held | None:
        one, other = self.number(left), self.number(right)
        if one is None or other is None or one.scale is None or other.scale is None:
            return None
        scale = one.scale + other.scale
        if code != computing.MULTIPLY:
            scale = max(one.scale, other.scale)
            one, other = self._code.at_scale(one, scale), self._code.at_scale(other, scale)
            if one is None or other is None:
                return None
        return self._computed(code, one, other, scale)

    def _computed(self, code: int, one: Held, other: Held, scale: int | None = None) -> Held:
        """An instruction on two values, where both are known."""
        known = self._code.known_of(one, other)
        with self._code.where(known):
            found = self._code.instruct(code, one.register, other.register)
        return Held(found, scale, known)

    # -- doubles ----------------------------------------------------------------------------------

    def double(self, node: Expression) -> Held | None:
        """The codes of a folded expression's values as doubles.

        Sides of operations are doubles before these are done, as :mod:`lftj.values.arithmetic` has it.
        """
        if isinstance(node, Constant):
            return self._constant_double(node)
        type_ = result_type(node, self._code.arrow)
        if kind(type_) in ("integer", "decimal"):
            number = self.number(node)
            if number is None or number.scale is None or not 0 <= number.scale <= _MOST_DIGITS:
                return None
            units = Held(self._code.register(10**number.scale))
            return self._computed(computing.FLOATS + QUOTIENT, number, units)
        if isinstance(node, Variable):
            return self._code.coded(node.name) if self._code.types[node.name].domain.name == "float" else None
        if type_ != pa.float64():
            return None
        return self._written(node, lambda: self._double(node), _DOUBLE)

    def _double(self, node: Negative | BinaryOperation | Call) -> Held | None:
        if isinstance(node, Negative):
            return self._of_doubles(MINUS, Constant(0.0), node.operand)
        if isinstance(node, BinaryOperation):
            what = _OF_FLOATS.get(node.operator)
            return None if what is None else self._of_doubles(what, node.left, node.right)
        if node.function == "abs":
            return self._of_doubles(MAGNITUDE, node.arguments[0], node.arguments[0])
        if node.function == "cast" and self._is(node.arguments[0], "integer", "float"):
            return self.double(node.arguments[0])
        return self._typed(node, _DOUBLE) if node.function in _CHOICES else None

    def _constant_double(self, node: Constant) -> Held | None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or node.parameter:
            return None
        if isinstance(value, int) and not -MOST_EXACT <= value <= MOST_EXACT:
            return None
        code = int(float_codes(np.array([float(value)]))[0])
        return Held(self._code.register(code)) if math.isfinite(float(value)) else None

    def _of_doubles(self, what: int, left: Expression, right: Expression) -> Held | None:
        one, other = self.double(left), self.double(right)
        if one is None or other is None:
            return None
        return self._computed(computing.FLOATS + what, one, other)

    # -- conditions -------------------------------------------------------------------------------

    def holds(self, condition: Held) -> int:
        """Whether a condition is true, and not NULL."""
        if condition.known is None:
            return condition.register
        return self._code.instruct(computing.BOTH, condition.register, condition.known)

    def condition(self, node: Expression) -> Held | None:
        """A condition of a folded expression, 1 or 0; where it is NULL it may hold either."""
        if isinstance(node, Variable):
            return self._boolean(node.name) if self._code.arrow[node.name] == pa.bool_() else None
        if isinstance(node, Constant) and isinstance(node.value, bool):
            return Held(self._code.register(int(node.value)))
        if not isinstance(node, Call):
            return None
        return self._written(node, lambda: self._condition(node), _CONDITION)

    def _condition(self, node: Call) -> Held | None:
        if node.function == NOT:
            of = self.condition(node.arguments[0])
            return None if of is None else self._negated(of)
        if node.function in ("and", "or"):
            return self._connected(node.function, [self.condition(one) for one in node.arguments])
        if node.function in COMPARISONS:
            return self._compared(node.function, *node.arguments)
        if node.function == "in" and len(node.arguments) <= _MOST_ALTERNATIVES:
            first, *items = node.arguments
            return self._connected("or", [self._compared("=", first, item) for item in items])
        return None

    def _boolean(self, name: str) -> Held:
        code = self._code.coded(name)
        with self._code.where(code.known):
            found = self._code.instruct(computing.MOVE, code.register)
        return Held(found, known=code.known)

    def _connected(self, connective: str, conditions: Sequence[Held | None]) -> Held | None:
        """By ``and`` or ``or``: what decides is one that is false, or true."""
        if None in conditions or not conditions:
            return None
        first, *others = (one for one in conditions if one is not None)
        for other in others:
            first = self._both(first, other) if connective == "and" else self._either(first, other)
        return first

    def _both(self, one: Held, other: Held) -> Held:
        if one.known is None and other.known is None:
            return Held(self._code.instruct(computing.BOTH, one.register, other.register))
        either = self._either(self._negated(one), self._negated(other))
        return self._negated(either)

    def _either(self, one: Held, other: Held) -> Held:
        holds = self._code.instruct(computing.EITHER, self.holds(one), self.holds(other))
        known = self._code.known_of(one, other)
        if known is None:
            return Held(holds)
        return Held(holds, known=self._code.instruct(computing.EITHER, known, holds))

    def _negated(self, condition: Held) -> Held:
        return condition._replace(register=self._code.instruct(computing.NOT, condition.register))

    def _compared(self, operator: str, left: Expression, right: Expression) -> Held | None:
        if operator in NULL_SAFE:
            return self._tests_null(operator, left) if _is_null(right) else None
        if operator in (">", ">="):
            operator, left, right = FLIPPED[operator], right, left
        one_is_constant = {Constant, Variable} == {type(left), type(right)}
        sides = self._as_numbers(left, right) or self._in_one_order(operator, left, right)
        if sides is None and not one_is_constant:
            sides = self._as_doubles(left, right)
        if sides is not None:
            return self._computed(_TESTS[operator], *sides)
        return self._limited(operator, left, right) if one_is_constant else None

    def _tests_null(self, operator: str, of: Expression) -> Held | None:
        """``x is null`` or ``x is not null``, of a variable."""
        if not isinstance(of, Variable):
            return None
        known = self._code.coded(of.name).known
        is_known = self._one if known is None else known
        return Held(is_known if operator == "<!=>" else self._code.instruct(computing.NOT, is_known))

    def _as_numbers(self, left: Expression, right: Expression) -> tuple[Held, Held] | None:
        one, other = self.number(left), self.number(right)
        if one is None or other is None or one.scale is None or other.scale is None:
            return None
        scale = max(one.scale, other.scale)
        one, other = self._code.at_scale(one, scale), self._code.at_scale(other, scale)
        return None if one is None or other is None else (one, other)

    def _in_one_order(self, operator: str, left: Expression, right: Expression) -> tuple[Held, Held] | None:
        """Two variables that compare as their codes do."""
        if not (isinstance(left, Variable) and isinstance(right, Variable)):
            return None
        one, other = (self._code.types[side.name] for side in (left, right))
        compares = one.domain.ordered or operator in ("=", "!=")
        if one.domain is not other.domain or not compares or one.domain.name == "float":
            return None
        return self._code.coded(left.name), self._code.coded(right.name)

    def _as_doubles(self, left: Expression, right: Expression) -> tuple[Held, Held] | None:
        """Two sides of which one is a float: each a double that equals it, and a number."""
        kinds = {kind(result_type(side, self._code.arrow)) for side in (left, right)}
        if "float" not in kinds or not kinds <= {"float", "integer", "decimal"}:
            return None
        if any(self._is(side, "decimal") and not isinstance(side, Constant) for side in (left, right)):
            return None
        one, other = self.double(left), self.double(right)
        if one is None or other is None:
            return None
        for side, its in ((left, one), (right, other)):
            if not isinstance(side, Constant):
                with self._code.where(its.known):
                    self._code.check(computing.IS_NUMBER, its.register)
        return one, other

    def _limited(self, operator: str, left: Expression, right: Expression) -> Held | None:
        """A variable and a constant: by codes, whose order is that of the values or does not matter."""
        if isinstance(left, Constant):
            operator, left, right = FLIPPED[operator], right, left
        if not (isinstance(left, Variable) and isinstance(right, Constant)) or right.parameter is not None:
            return None
        type_, limits = self._code.types[left.name], None
        if type_.domain.ordered or operator in ("=", "!="):
            limits = code_limits(type_.domain, operator, right.value, lasting=True)
        if limits is None:
            return None
        its, found = self._code.coded(left.name), Held(self._one)
        for sign, code in limits:
            sides = its, Held(self._code.register(code))
            if sign in (">", ">="):
                sign, sides = FLIPPED[sign], sides[::-1]
            found = self._both(found, self._computed(_TESTS[sign], *sides))
        return found

    # -- what Python computes ---------------------------------------------------------------------

    def _written(self, node: Expression, write: Callable[[], Held | None], target: Target) -> Held | None:
        """What is written of an expression; where there is no code for it, what asks for its values."""
        forget = self._code.mark()
        found = write()
        if found is not None or isinstance(node, Variable | Constant):
            return found
        forget()
        return self._asked(node, target)

    def _asked(self, node: Expression, target: Target) -> Held | None:
        names = list(dict.fromkeys(variable.name for variable in variables_of(node)))
        code = _coder(target)
        if code is None or not names or _has_parameter(node):
            return None
        types = {name: self._code.types[name] for name in names}
        values = evaluator(node, self._code.arrow, target.arrow)
        domains = [*(type_.domain for type_ in types.values()), target.domain]
        lasts = all(one is None or one.collector is None for one in domains)
        answered = Answered(text_of(node), types, self._code.arrow, values, code, lasts)
        answer = self._code.ask(answered, names)
        known = self._code.instruct(computing.UNEQUAL, answer, self._code.register(NULL_CODE))
        return Held(answer, target.scale, known)

    # -- types ------------------------------------------------------------------------------------

    def _is(self, node: Expression, *kinds: str) -> bool:
        return kind(result_type(node, self._code.arrow)) in kinds


def _known(held: Held) -> int:
    assert held.known is not None
    return held.known


def _is_null(node: Expression) -> bool:
    """Whether an expression is NULL as it stands, of some type."""
    while isinstance(node, Call) and node.function == "cast":
        node = node.arguments[0]
    return isinstance(node, Constant) and node.value is NULL


def _coder(target: Target) -> Callable[[pa.Array], int] | None:
    """What gives the code, or number, of an array of one value, as Held has it."""
    (arrow, domain), scale = target, target.scale
    if scale is not None:
        return lambda found: int(Decimal(found[0].as_py()).scaleb(scale))
    if arrow == pa.float64():
        return lambda found: int(float_codes(np.array([found[0].as_py()], np.float64))[0])
    if arrow == pa.bool_():
        return lambda found: int(found[0].as_py())
    if domain is None:
        return None
    return lambda found: int(domain.encode(found)[0])


def _has_parameter(node: Expression) -> bool:
    if isinstance(node, Constant):
        return node.parameter is not None
    return any(map(_has_parameter, children(node)))
