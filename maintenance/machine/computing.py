"""The code that JOINs and RANGEs run on each row: what a body computes and compares there.

A row is a file of registers: codes of the variables that were searched, then constants, what is read off
rows and dictionaries, and what is computed (:mod:`maintenance.machine.row_code` writes the code).  An
instruction reads one or two registers and writes one, passes over the instructions behind it, or lets the row
go.

Invariant: what may not fit 64 bits, or a narrower type, or is no finite double, FAILS: it is left to the
general way, which finds it or tells of it.

Cost: of a row an instruction for each operation.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from indices.records import Record, record_at
from lftj.values.domain import NAN_CODE
from maintenance.machine.answers import NOT_KNOWN, answer, answers_at
from maintenance.machine.dictionaries import (
    decimals_at,
    decode,
    encode,
    fetch,
    fetch_text,
    fetched_at,
    is_there,
)
from maintenance.machine.floats import INFINITY, computed, flipped

(ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, ABSOLUTE, LIES_IN) = range(7)
"""Codes of instructions on whole numbers."""

(FETCH, IS_THERE, TEXT, DECODE, ENCODE, AS_FLOAT, IS_NUMBER) = range(7, 14)
"""What is read off rows and dictionaries, and entered; IS_THERE: whether FETCH and TEXT find a value."""

(EQUAL, UNEQUAL, LESS, NOT_ABOVE, BOTH, EITHER, NOT) = range(14, 21)
"""Conditions, which are 1 or 0."""

(MOVE, PASS_OVER, REQUIRE, ASK) = range(21, 25)
"""MOVE copies a register; where one is 0 PASS_OVER goes on behind so many instructions, and REQUIRE lets the
row go; ASK looks an answer up (:mod:`maintenance.machine.answers`)."""

FLOATS = 25
"""From here on what :mod:`maintenance.machine.floats` computes."""

PASSES, GOES, FAILS, ASKS = range(4)
"""What becomes of a row; one that ASKS is computed again when it has its answer."""

LARGEST = 9.2e18
"""Below 2**63 by more than what is rounded where numbers are taken for floats."""


class Instruction(Record):
    code: int
    left: int  # registers; of ASK the first argument
    right: int  # of LIES_IN: where the interval's ends stand
    out: int
    of: int  # address of what is read: Fetched, Decimals, or Answers; of PASS_OVER how many instructions


instruction_at = record_at(Instruction)

INSTRUCTION, BYTES = Instruction.LENGTH, Instruction.BYTES


@part
def run(code, n_instructions, registers):
    """Compute a row's registers; what becomes of it.  code: address of the Instructions."""
    number = 0
    while number < n_instructions:
        its = instruction_at(code + number * BYTES)
        left, right = registers[its.left], registers[its.right]
        number += 1
        if its.code <= LIES_IN:
            if not is_within(its.code, left, right):
                return FAILS
            if its.code == LIES_IN:
                if left < right or left > registers[its.right + 1]:
                    return FAILS
            else:
                registers[its.out] = of_whole(its.code, left, right)
        elif its.code <= IS_NUMBER:
            if its.code == IS_NUMBER:
                if left == NAN_CODE:
                    return FAILS
            else:
                found = looked_up(its.code, its.of, left)
                if found == KEY_MIN:
                    return FAILS
                registers[its.out] = found
        elif its.code <= NOT:
            registers[its.out] = holds(its.code, left, right)
        elif its.code == MOVE:
            registers[its.out] = left
        elif its.code == PASS_OVER:
            if left == 0:
                number += its.of
        elif its.code == REQUIRE:
            if left == 0:
                return GOES
        elif its.code == ASK:
            registers[its.out] = answer(answers_at(its.of), registers, its.left)
            if registers[its.out] == NOT_KNOWN:
                return ASKS
        else:
            registers[its.out] = computed(its.code - FLOATS, left, right)
            if registers[its.out] == KEY_MIN:
                return FAILS
    return PASSES


@part
def is_within(code, left, right):
    """Whether 64 bits surely hold what is computed of two whole numbers."""
    if code == ADD:
        return abs(float(left) + float(right)) <= LARGEST
    if code == SUBTRACT:
        return abs(float(left) - float(right)) <= LARGEST
    if code == MULTIPLY:
        return abs(float(left) * float(right)) <= LARGEST
    if code in (DIVIDE, REMAINDER):
        return right != 0 and abs(float(left)) <= LARGEST and abs(float(right)) <= LARGEST
    return code == LIES_IN or abs(float(left)) <= LARGEST


@part
def of_whole(code, left, right):
    if code == ADD:
        return left + right
    if code == SUBTRACT:
        return left - right
    if code == MULTIPLY:
        return left * right
    if code == ABSOLUTE:
        return abs(left)
    if code == DIVIDE:  # truncated
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    rest = abs(left) % abs(right)  # with the sign of the dividend
    return rest if left >= 0 else -rest


@part
def looked_up(code, where, left):
    """What is read or entered; KEY_MIN for want of a value, or of room."""
    if code == FETCH:
        return fetch(fetched_at(where), left)
    if code == DECODE:
        return decode(decimals_at(where), left)
    if code == AS_FLOAT:
        if left & KEY_MAX > INFINITY:  # NaN, which may be refused
            return KEY_MIN
        return flipped(left)
    if code == IS_THERE:
        return is_there(fetched_at(where), left)
    found = fetch_text(fetched_at(where), left) if code == TEXT else encode(decimals_at(where), left)
    return found if found >= 0 else KEY_MIN


@part
def holds(code, left, right):
    if code == EQUAL:
        return int(left == right)
    if code == UNEQUAL:
        return int(left != right)
    if code == LESS:
        return int(left < right)
    if code == NOT_ABOVE:
        return int(left <= right)
    if code == BOTH:
        return left & right
    if code == EITHER:
        return left | right
    return 1 - left
