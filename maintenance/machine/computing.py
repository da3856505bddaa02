"""What a body computes and compares on its rows, as code that JOINs and RANGEs run.

A row is a file of registers: codes of the variables that were searched, then constants, what is read off
rows and dictionaries, and what is computed.  An instruction reads one or two of them, and writes one or lets
the row go.  Decimals are numbers in units of their last digit; one that is read by its code is entered.
Doubles are their codes (:mod:`maintenance.machine.floats`), and whole numbers beside them become doubles.

Invariant: a result is that of :class:`~lftj.evaluation.finishing.Finishing`, or there is none: what may not
fit 64 bits, or a narrower type, is NULL or no finite double, is left to the general way, which finds it or
tells of it.

Cost: of a row an instruction for each operation.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from indices.records import Record, record_at
from lftj.evaluation.finishing import work_on_rows
from lftj.language.expressions import comparison_text, result_type, text_of
from lftj.language.folding import fold
from lftj.language.syntax import BinaryOperation, Call, Comparison, Constant, Expression, Negative, Variable
from lftj.planning.lowered import Lowered, code_limits
from lftj.values.dictionary import DecimalDomain, DictionaryDomain
from lftj.values.domain import NAN_CODE, NULL_CODE, viewless
from lftj.values.floating import float_codes
from lftj.values.kinds import kind, plain_type
from lftj.values.literals import NULL
from lftj.values.operators import FLIPPED
from lftj.values.schema import ColumnType
from lftj.values.unscaled import SCALE
from maintenance.machine.dictionaries import (
    Dictionaries,
    decimals_at,
    decode,
    encode,
    fetch,
    fetch_text,
    fetched_at,
)
from maintenance.machine.floats import (
    BY,
    INFINITY,
    MAGNITUDE,
    MINUS,
    MOST_EXACT,
    PLUS,
    QUOTIENT,
    TIMES,
    computed,
)

(ADD, SUBTRACT, MULTIPLY, ABSOLUTE, LIES_IN, FETCH, TEXT, DECODE, ENCODE, AS_FLOAT, IS_NUMBER) = range(11)
EQUAL, UNEQUAL, LESS, NOT_ABOVE = range(11, 15)
FLOATS = 15
"""Codes of instructions; EQUAL to NOT_ABOVE let rows go for which that does not hold, those from FLOATS on
compute so many further what :mod:`maintenance.machine.floats` says."""

PASSES, GOES, FAILS = range(3)
"""What becomes of a row: FAILS where something may not fit."""

LARGEST = 9.2e18
"""Below 2**63 by more than what is rounded where numbers are taken for floats."""

_ARITHMETIC = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY}
_OF_FLOATS = {"+": PLUS, "-": MINUS, "*": TIMES, "/": BY}
_TESTS = {"=": EQUAL, "!=": UNEQUAL, "<": LESS, "<=": NOT_ABOVE}
_MOST_ZEROS = 18  # 10**18 < 2**63
_MOST_DIGITS = 15  # 10**15 < MOST_EXACT


class Instruction(Record):
    code: int
    left: int  # registers
    right: int  # of LIES_IN: where the interval's ends stand
    out: int
    of: int  # address of what is read: Fetched, or Decimals


instruction_at = record_at(Instruction)

INSTRUCTION, BYTES = Instruction.LENGTH, Instruction.BYTES


@part
def run(code, n_instructions, registers):
    """Compute a row's registers; PASSES, GOES or FAILS.  code: address of the Instructions."""
    for number in range(n_instructions):
        its = instruction_at(code + number * BYTES)
        left, right = registers[its.left], registers[its.right]
        if its.code == ADD:
            if abs(float(left) + float(right)) > LARGEST:
                return FAILS
            registers[its.out] = left + right
        elif its.code == SUBTRACT:
            if abs(float(left) - float(right)) > LARGEST:
                return FAILS
            registers[its.out] = left - right
        elif its.code == MULTIPLY:
            if abs(float(left) * float(right)) > LARGEST:
                return FAILS
            registers[its.out] = left * right
        elif its.code == ABSOLUTE:
            if abs(float(left)) > LARGEST:
                return FAILS
            registers[its.out] = abs(left)
        elif its.code == LIES_IN:
            if left < right or left > registers[its.right + 1]:
                return FAILS
        elif its.code == FETCH:
            registers[its.out] = fetch(fetched_at(its.of), left)
            if registers[its.out] == KEY_MIN:
                return FAILS
        elif its.code == DECODE:
            registers[its.out] = decode(decimals_at(its.of), left)
            if registers[its.out] == KEY_MIN:
                return FAILS
        elif its.code == TEXT:
            registers[its.out] = fetch_text(fetched_at(its.of), left)
            if registers[its.out] < 0:
                return FAILS
        elif its.code == ENCODE:
            registers[its.out] = encode(decimals_at(its.of), left)
            if registers[its.out] < 0:
                return FAILS
        elif its.code == AS_FLOAT:
            if left & KEY_MAX > INFINITY:  # NaN, which may be refused
                return FAILS
            registers[its.out] = left ^ ((left >> 63) & KEY_MAX)
        elif its.code == IS_NUMBER:
            if left == NAN_CODE:
                return FAILS
        elif its.code >= FLOATS:
            registers[its.out] = computed(its.code - FLOATS, left, right)
            if registers[its.out] == KEY_MIN:
                return FAILS
        elif not (
            (its.code == EQUAL and left == right)
            or (its.code == UNEQUAL and left != right)
            or (its.code == LESS and left < right)
            or (its.code == NOT_ABOVE and left <= right)
        ):
            return GOES
    return PASSES


class NotWhole(Exception):
    """Something is not computed in whole numbers; the message says what."""


class Number(NamedTuple):
    """A register with numbers in units of ``10**-scale``."""

    register: int
    scale: int


Wanted = tuple[str, int | None]
"""A variable, and in units of which digit its number is read; None for its code."""


class RowCode:
    """The code of one body.  Raises NotWhole.

    ``names``: the variables of its rows, whose registers come first.
    """

    def __init__(self, lowered: Lowered, names: Sequence[str], dictionaries: Dictionaries) -> None:
        self._types = lowered.types
        self._arrow = {name: viewless(type_.arrow) for name, type_ in lowered.types.items()}
        self._fetched = lowered.fetched
        self._dictionaries = dictionaries
        self._codes: dict[str, int] = {}
        self._numbers: dict[str, Number] = {}
        self.initial: list[int] = []
        """What registers have at first: constants, else 0."""
        self.code: list[int] = []
        for name in names:
            self._codes[name] = self._register()
        if lowered.negations:
            raise NotWhole("something is looked up for the rows")
        for one in work_on_rows(lowered):
            if isinstance(one, Comparison):
                self._compare(one)
            elif one.each:
                raise NotWhole(f"{one.variable} {one.sign} {text_of(one.expression)} is no whole number")
            else:
                self._assign(one.variable, one.expression)

    @property
    def n_instructions(self) -> int:
        return len(self.code) // INSTRUCTION

    def register_of(self, wanted: Wanted) -> int:
        """Where a variable's code or number stands.  Raises NotWhole."""
        name, scale = wanted
        if scale is None:
            return self._code_of(name)
        number = self._number_of(name)
        found = None if number is None else self._at_scale(number, scale)
        if found is None:
            raise NotWhole(f"{name} is no whole number")
        return found

    def _register(self, value: int = 0) -> int:
        self.initial.append(value)
        return len(self.initial) - 1

    def _instruct(self, code: int, left: int, right: int = 0, out: int = 0, of: int = 0) -> int:
        self.code += Instruction.fields(code=code, left=left, right=right, out=out, of=of)
        return out

    # -- variables --------------------------------------------------------------------------------

    def _code_of(self, name: str) -> int:
        if name not in self._codes:
            self._codes[name] = self._coded(name, self._types[name])
        return self._codes[name]

    def _coded(self, name: str, type_: ColumnType) -> int:
        """The code of a variable that was fetched or computed."""
        domain = type_.domain
        if isinstance(domain, DecimalDomain):
            number = self._number_of(name)
            if number is None or not 0 <= number.scale <= SCALE:
                raise NotWhole(f"{name} is no whole number")
            of = self._dictionaries.decimals(domain, number.scale, enters=True)
            return self._instruct(ENCODE, number.register, out=self._register(), of=of)
        its = self._fetched.get(name)
        if its is None:
            return self._numbers[name].register
        rows, row, column = its.schema.rows, self._codes[its.row], its.column - 1
        if isinstance(domain, DictionaryDomain):
            of = self._dictionaries.fetched(rows, column, domain)
            return self._instruct(TEXT, row, out=self._register(), of=of)
        is_double = type_.arrow == pa.float64()
        if not (is_double or rows.has_numbers(column)):
            raise NotWhole(f"{name} is read off rows, of type {type_.arrow}")
        found = self._instruct(FETCH, row, out=self._register(), of=self._dictionaries.fetched(rows, column))
        return self._instruct(AS_FLOAT, found, out=self._register()) if is_double else found

    def _number_of(self, name: str) -> Number | None:
        """The number of a variable; None where it has none."""
        if name not in self._numbers:
            type_ = self._types[name]
            if not isinstance(type_.domain, DecimalDomain):
                return Number(self._code_of(name), 0) if _is_whole(type_) else None
            scale = plain_type(type_.arrow).scale
            if not 0 <= scale <= SCALE:
                return None
            its = self._fetched.get(name)
            if its is None:
                of = self._dictionaries.decimals(type_.domain, scale, enters=False)
                found = self._instruct(DECODE, self._codes[name], out=self._register(), of=of)
            else:
                of = self._dictionaries.fetched(its.schema.rows, its.column - 1)
                found = self._instruct(FETCH, self._codes[its.row], out=self._register(), of=of)
            self._numbers[name] = Number(found, scale)
        return self._numbers[name]

    # -- expressions ------------------------------------------------------------------------------

    def _assign(self, name: str, expression: Expression) -> None:
        type_ = self._types[name]
        folded = fold(expression)
        if _is_null(folded):
            self._codes[name] = self._register(NULL_CODE)
            return
        if type_.arrow == pa.float64():
            register = self._double(folded)
            if register is None:
                raise NotWhole(f"{name} = {text_of(expression)} is not computed on the rows")
            self._codes[name] = register
            return
        is_decimal = isinstance(type_.domain, DecimalDomain)
        found = self._number(folded) if is_decimal or _is_whole(type_) else None
        if found is None or not (is_decimal or found.scale == 0):
            raise NotWhole(f"{name} = {text_of(expression)} is not computed in whole numbers")
        scale = plain_type(type_.arrow).scale if is_decimal else 0
        register = self._at_scale(found, scale)
        if register is None:
            raise NotWhole(f"{name} = {text_of(expression)} is rounded")
        if (ends := _ends_of(type_)) is not None:
            least = self._register(ends[0])
            self._register(ends[1])
            self._instruct(LIES_IN, register, least)
        self._numbers[name] = Number(register, scale)

    def _compare(self, comparison: Comparison) -> None:
        operator, left, right = comparison.operator, fold(comparison.left), fold(comparison.right)
        if operator in (">", ">="):
            operator, left, right = FLIPPED[operator], right, left
        if operator not in _TESTS or comparison.tests_null:
            raise NotWhole(f"{comparison_text(comparison)} does not compare whole numbers")
        sides = [self._number(left), self._number(right)]
        one, other = sides
        if one is not None and other is not None:
            scale = max(one.scale, other.scale)
            registers = [self._at_scale(one, scale), self._at_scale(other, scale)]
        elif self._have_one_order(left, right):
            registers = [self._code_of(side.name) for side in (left, right) if isinstance(side, Variable)]
        elif {Constant, Variable} != {type(left), type(right)} and self._are_floats(left, right):
            registers = [self._compared_double(left), self._compared_double(right)]
        else:
            self._compare_with_constant(comparison, operator, left, right)
            return
        first, second = registers
        if first is None or second is None:
            raise NotWhole(f"{comparison_text(comparison)} compares large numbers")
        self._instruct(_TESTS[operator], first, second)

    def _compare_with_constant(
        self, comparison: Comparison, operator: str, left: Expression, right: Expression
    ) -> None:
        """By codes, whose order is that of the values or does not matter."""
        if isinstance(left, Constant):
            operator, left, right = FLIPPED[operator], right, left
        limits = None
        if isinstance(left, Variable) and isinstance(right, Constant) and right.parameter is None:
            type_ = self._types[left.name]
            has_codes = type_.domain.ordered or operator in ("=", "!=")
            if has_codes and not (type_.nullable and left.name in self._codes):
                limits = code_limits(type_.domain, operator, right.value, lasting=True)
        if limits is None:
            raise NotWhole(f"{comparison_text(comparison)} does not compare whole numbers")
        assert isinstance(left, Variable)
        register = self._code_of(left.name)
        for sign, code in limits:
            its, limit = register, self._register(code)
            if sign in (">", ">="):
                sign, its, limit = FLIPPED[sign], limit, its
            self._instruct(_TESTS[sign], its, limit)

    def _have_one_order(self, left: Expression, right: Expression) -> bool:
        """Whether two variables compare as their codes do."""
        if not (isinstance(left, Variable) and isinstance(right, Variable)):
            return False
        one, other = self._types[left.name], self._types[right.name]
        has_nothing_apart = not (one.nullable or other.nullable) and one.domain.name != "float"
        return one.domain is other.domain and one.domain.ordered and has_nothing_apart

    def _are_floats(self, left: Expression, right: Expression) -> bool:
        """Whether two sides are compared as such."""
        kinds = {kind(result_type(side, self._arrow)) for side in (left, right)}
        return "float" in kinds and kinds <= {"float", "integer", "decimal"}

    def _compared_double(self, node: Expression) -> int | None:
        """A side of a comparison of floats as a double that equals it; None for others."""
        is_constant = isinstance(node, Constant)
        if kind(result_type(node, self._arrow)) == "decimal" and not is_constant:
            return None
        register = self._double(node)
        if isinstance(node, Variable) and register is not None:
            self._instruct(IS_NUMBER, register)
        return register

    def _double(self, node: Expression) -> int | None:
        """A register with the codes of a folded expression's values as doubles; None for others.

        Sides of operations are doubles before these are done, as :mod:`lftj.values.arithmetic` has it.
        """
        if isinstance(node, Constant):
            return self._constant_double(node)
        if kind(result_type(node, self._arrow)) in ("integer", "decimal"):
            number = self._number(node)
            if number is None or not 0 <= number.scale <= _MOST_DIGITS:
                return None
            units = self._register(10**number.scale)
            return self._instruct(FLOATS + QUOTIENT, number.register, units, self._register())
        if isinstance(node, Variable):
            type_ = self._types[node.name]
            is_known = type_.domain.name == "float" and not type_.nullable
            return self._code_of(node.name) if is_known else None
        if isinstance(node, Negative):
            return self._operation_on_doubles(MINUS, Constant(0.0), node.operand)
        if isinstance(node, Call) and node.function == "abs":
            (of,) = node.arguments
            return self._operation_on_doubles(MAGNITUDE, of, of)
        if isinstance(node, Call) and node.function == "cast" and self._is_widened(node):
            return self._double(node.arguments[0])
        if isinstance(node, BinaryOperation) and node.operator in _OF_FLOATS:
            return self._operation_on_doubles(_OF_FLOATS[node.operator], node.left, node.right)
        return None

    def _is_widened(self, node: Call) -> bool:
        """Whether a cast gives the double that a whole number or a float is."""
        of = kind(result_type(node.arguments[0], self._arrow))
        return result_type(node, self._arrow) == pa.float64() and of in ("integer", "float")

    def _constant_double(self, node: Constant) -> int | None:
        value = node.value
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | Decimal)
            or node.parameter is not None
        ):
            return None
        if isinstance(value, int) and not -MOST_EXACT <= value <= MOST_EXACT:
            return None
        code = int(float_codes(np.array([float(value)]))[0])
        return self._register(code) if math.isfinite(float(value)) else None

    def _operation_on_doubles(self, what: int, left: Expression, right: Expression) -> int | None:
        one, other = self._double(left), self._double(right)
        if one is None or other is None:
            return None
        return self._instruct(FLOATS + what, one, other, self._register())

    def _number(self, node: Expression) -> Number | None:
        """A folded expression's values; None where they are no whole numbers in units of a digit."""
        if isinstance(node, Variable):
            return self._number_of(node.name)
        if isinstance(node, Constant):
            return self._constant(node)
        if kind(result_type(node, self._arrow)) not in ("integer", "decimal"):
            return None
        if isinstance(node, Negative):
            return self._operation(SUBTRACT, Constant(0), node.operand)
        if isinstance(node, Call) and node.function == "abs":
            (of,) = node.arguments
            return self._operation(ABSOLUTE, of, of)
        if isinstance(node, BinaryOperation) and node.operator in _ARITHMETIC:
            return self._operation(_ARITHMETIC[node.operator], node.left, node.right)
        return None

    def _constant(self, node: Constant) -> Number | None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or node.parameter is not None:
            return None
        _, _, exponent = Decimal(value).as_tuple()
        if not isinstance(exponent, int) or not -_MOST_ZEROS <= exponent <= _MOST_ZEROS:
            return None
        scale = max(-exponent, 0)
        number = int(Decimal(value).scaleb(scale))
        return Number(self._register(number), scale) if abs(number) <= KEY_MAX else None

    def _operation(self, code: int, left: Expression, right: Expression) -> Number | None:
        one, other = self._number(left), self._number(right)
        if one is None or other is None:
            return None
        if code == MULTIPLY:
            product = self._instruct(code, one.register, other.register, self._register())
            return Number(product, one.scale + other.scale)
        scale = max(one.scale, other.scale)
        first, second = self._at_scale(one, scale), self._at_scale(other, scale)
        if first is None or second is None:
            return None
        return Number(self._instruct(code, first, second, self._register()), scale)

    def _at_scale(self, number: Number, scale: int) -> int | None:
        """A register with the same in units of as many digits, or more; None for others, and too many."""
        missing = scale - number.scale
        if missing == 0:
            return number.register
        if not 0 < missing <= _MOST_ZEROS:
            return None
        return self._instruct(MULTIPLY, number.register, self._register(10**missing), self._register())


def _is_null(node: Expression) -> bool:
    """Whether an expression is NULL as it stands, of some type."""
    while isinstance(node, Call) and node.function == "cast":
        node = node.arguments[0]
    return isinstance(node, Constant) and node.value is NULL


def _is_whole(type_: ColumnType) -> bool:
    """Whether codes are the values, which are integers of 64 bits at most and known."""
    return pa.types.is_integer(type_.arrow) and type_.arrow != pa.uint64() and not type_.nullable


def _ends_of(type_: ColumnType) -> tuple[int, int] | None:
    """The least and the most number of a type, where 64 bits have others too."""
    arrow = plain_type(type_.arrow)
    if kind(arrow) == "decimal":
        most = 10**arrow.precision - 1
        return (-most, most) if most <= KEY_MAX else None
    if arrow == pa.int64():
        return None
    info = np.iinfo(arrow.to_pandas_dtype())
    return int(info.min), int(info.max)


def refusal_of_rows(lowered: Lowered, wanted: Sequence[Wanted]) -> str | None:
    """Why what a body does on its rows can't be done in whole numbers, if so."""
    try:
        code = RowCode(lowered, lowered.problem.emitted, Dictionaries())
        for one in wanted:
            code.register_of(one)
    except NotWhole as error:
        return str(error)
    return None
