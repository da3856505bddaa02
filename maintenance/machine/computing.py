"""What a body computes and compares on its rows, as code of whole numbers that JOINs and RANGEs run.

A row is a file of registers: codes of the body's variables, then constants and what is computed.  An
instruction reads two of them, and writes one or lets the row go.

Invariant: a result is that of :class:`~lftj.evaluation.finishing.Finishing`, or there is none: what may not
fit 64 bits, or a narrower type, is left to the general way, which finds it or tells of it.

Cost: of a row an instruction for each operation.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from indices.compiled import part
from indices.keys import KEY_MAX
from indices.records import Record, record_at
from lftj.evaluation.finishing import work_on_rows
from lftj.language.expressions import comparison_text, text_of
from lftj.language.folding import fold
from lftj.language.syntax import BinaryOperation, Call, Comparison, Constant, Expression, Negative, Variable
from lftj.planning.lowered import Lowered
from lftj.values.domain import NULL_CODE
from lftj.values.literals import NULL
from lftj.values.schema import ColumnType

ADD, SUBTRACT, MULTIPLY, ABSOLUTE, LIES_IN, EQUAL, UNEQUAL, LESS, NOT_ABOVE = range(9)
"""Codes of instructions; those from EQUAL on let rows go for which that does not hold."""

PASSES, GOES, FAILS = range(3)
"""What becomes of a row: FAILS where something may not fit."""

LARGEST = 9.2e18
"""Below 2**63 by more than what is rounded where numbers are taken for floats."""

_ARITHMETIC = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY}
_TESTS = {"=": EQUAL, "!=": UNEQUAL, "<": LESS, "<=": NOT_ABOVE}
_TURNED = {">": "<", ">=": "<="}


class Instruction(Record):
    code: int
    left: int  # registers
    right: int  # of LIES_IN: where the interval's ends stand
    out: int


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


class RowCode:
    """The code of one body.  Raises NotWhole.

    ``names``: the variables of its rows, whose registers come first.
    """

    def __init__(self, lowered: Lowered, names: Sequence[str]) -> None:
        self._types = lowered.types
        self._registers: dict[str, int] = {}
        self.initial: list[int] = []
        """What registers have at first: constants, else 0."""
        self.code: list[int] = []
        for name in names:
            self._registers[name] = self._register()
        if lowered.negations or lowered.fetched:
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

    def places(self, names: Sequence[str]) -> list[int]:
        """The registers of variables."""
        return [self._registers[name] for name in names]

    def _register(self, value: int = 0) -> int:
        self.initial.append(value)
        return len(self.initial) - 1

    def _instruct(self, code: int, left: int, right: int, out: int = 0) -> None:
        self.code += Instruction.fields(code=code, left=left, right=right, out=out)

    def _assign(self, name: str, expression: Expression) -> None:
        type_ = self._types[name]
        folded = fold(expression)
        if _is_null(folded):
            self._registers[name] = self._register(NULL_CODE)
            return
        found = self._whole(folded) if _is_whole(type_) else None
        if found is None:
            raise NotWhole(f"{name} = {text_of(expression)} is not computed in whole numbers")
        if type_.arrow != pa.int64():
            info = np.iinfo(type_.arrow.to_pandas_dtype())
            least = self._register(int(info.min))
            self._register(int(info.max))
            self._instruct(LIES_IN, found, least)
        self._registers[name] = found

    def _compare(self, comparison: Comparison) -> None:
        operator, left, right = comparison.operator, fold(comparison.left), fold(comparison.right)
        if operator in _TURNED:
            operator, left, right = _TURNED[operator], right, left
        sides = [self._whole(left), self._whole(right)]
        if None in sides and self._have_one_order(left, right):
            sides = [self._registers[side.name] for side in (left, right) if isinstance(side, Variable)]
        one, other = sides
        if one is None or other is None or operator not in _TESTS or comparison.tests_null:
            raise NotWhole(f"{comparison_text(comparison)} does not compare whole numbers")
        self._instruct(_TESTS[operator], one, other)

    def _have_one_order(self, left: Expression, right: Expression) -> bool:
        """Whether two variables compare as their codes do."""
        if not (isinstance(left, Variable) and isinstance(right, Variable)):
            return False
        one, other = self._types[left.name], self._types[right.name]
        has_nothing_apart = not (one.nullable or other.nullable) and one.domain.name != "float"
        return one.domain is other.domain and one.domain.ordered and has_nothing_apart

    def _whole(self, node: Expression) -> int | None:
        """The register of a folded expression's values; None where they are no whole numbers."""
        if isinstance(node, Variable):
            return self._registers[node.name] if _is_whole(self._types[node.name]) else None
        if isinstance(node, Constant):
            value = node.value
            if not isinstance(value, int) or isinstance(value, bool) or abs(value) > KEY_MAX:
                return None
            return self._register(value)
        if isinstance(node, Negative):
            return self._operation(SUBTRACT, Constant(0), node.operand)
        if isinstance(node, Call) and node.function == "abs":
            (of,) = node.arguments
            return self._operation(ABSOLUTE, of, of)
        if isinstance(node, BinaryOperation) and node.operator in _ARITHMETIC:
            return self._operation(_ARITHMETIC[node.operator], node.left, node.right)
        return None

    def _operation(self, code: int, left: Expression, right: Expression) -> int | None:
        one, other = self._whole(left), self._whole(right)
        if one is None or other is None:
            return None
        out = self._register()
        self._instruct(code, one, other, out)
        return out


def _is_null(node: Expression) -> bool:
    """Whether an expression is NULL as it stands, of some type."""
    while isinstance(node, Call) and node.function == "cast":
        node = node.arguments[0]
    return isinstance(node, Constant) and node.value is NULL


def _is_whole(type_: ColumnType) -> bool:
    """Whether codes are the values, which are integers of 64 bits at most and known."""
    return pa.types.is_integer(type_.arrow) and type_.arrow != pa.uint64() and not type_.nullable


def refusal_of_rows(lowered: Lowered) -> str | None:
    """Why what a body does on its rows can't be done in whole numbers, if so."""
    try:
        RowCode(lowered, lowered.problem.emitted)
    except NotWhole as error:
        return str(error)
    return None
