"""Expressions that the commit machine has no code for: Python computes them, once for each value.

Where a row asks for a value that is not known yet, its commit ends without having done anything; the general
way's evaluator computes it (:mod:`lftj.language.expressions`), and the commit is tried again.

Invariants

1. An answer is what the evaluator gives of these codes.  Where a dictionary has codes in it answers are
   forgotten whenever the program is bound: its lease holds codes no longer (:mod:`lftj.values.collector`).
2. What the evaluator refuses, NaN, and what would be taken for NULL or for no answer has none: the
   transaction goes the general way.

Cost: a look-up for a value that is known; some tens of microseconds and one more try for another one, of
which a transaction may have MOST_ASKED.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from indices.compiled import kernel, part
from indices.keys import KEY_MAX
from indices.records import Record, record_at
from lftj.errors import LftjError
from lftj.language.conditionals import Evaluator
from lftj.memory import address, view
from lftj.values.domain import NAN_CODE, NULL_CODE
from lftj.values.row_values import RowValues
from lftj.values.schema import ColumnType

NOT_KNOWN = KEY_MAX
"""What a look-up finds where there is no answer yet."""

MOST_ASKED = 32
"""Values of one transaction."""

MOST_KNOWN = 1 << 15
"""Answers to one expression; then all are forgotten."""

_FEWEST_SLOTS = 64

_FACTOR = 0x9E3779B97F4A7C15 - (1 << 64)  # as an int64


class Answers(Record):
    """An open-addressed table: of each slot whether it is taken, the arguments' codes, and the answer."""

    table: int
    mask: int  # slots less one, a power of two less one
    arguments: int  # how many
    asked: int  # codes of arguments that had no answer
    is_asked: int


answers_at = record_at(Answers)


@part
def slot_of(its, registers, first):
    """Where the answer for the arguments from a register on stands, or would; its slot's first item."""
    width, mixed = its.arguments + 2, np.int64(0)
    for number in range(its.arguments):
        mixed = (mixed ^ registers[first + number]) * _FACTOR
        mixed ^= (mixed >> 29) & 0x7FFFFFFFF
    table, slot = view(its.table, (its.mask + 1) * width), mixed & its.mask
    while table[slot * width] != 0:
        is_equal = True
        for number in range(its.arguments):
            is_equal = is_equal and table[slot * width + 1 + number] == registers[first + number]
        if is_equal:
            break
        slot = (slot + 1) & its.mask
    return slot * width


@part
def answer(its, registers, first):
    """The answer for the arguments from a register on, or NOT_KNOWN; then they are asked for."""
    at, width = slot_of(its, registers, first), its.arguments + 2
    table = view(its.table, (its.mask + 1) * width)
    if table[at] != 0:
        return table[at + width - 1]
    asked = view(its.asked, its.arguments)
    for number in range(its.arguments):
        asked[number] = registers[first + number]
    its.is_asked = 1
    return np.int64(NOT_KNOWN)


@kernel
def enter(where, value):
    """Let what was asked for have an answer.  where: the address of Answers, which has room for it."""
    its = answers_at(where)
    asked, width = view(its.asked, its.arguments), its.arguments + 2
    at, table = slot_of(its, asked, 0), view(its.table, (its.mask + 1) * width)
    table[at] = 1
    for number in range(its.arguments):
        table[at + 1 + number] = asked[number]
    table[at + width - 1] = value
    its.is_asked = 0


class Answered:
    """The answers to one expression.  ``text``: as a rule would write it."""

    def __init__(
        self,
        text: str,
        types: Mapping[str, ColumnType],
        arrow: Mapping[str, pa.DataType],
        values: Evaluator,
        code: Callable[[pa.Array], int],
        lasts: bool,
    ) -> None:
        """``types``: of its variables, in the order of the arguments.  ``arrow``: those of the arrays that
        ``values`` takes.  ``code``: of an array of one value, which is not NULL.  ``lasts``: whether codes
        keep their values.
        """
        self.text = text
        self._types, self._arrow, self._values, self._code = types, arrow, values, code
        self._words = np.zeros(Answers.LENGTH, np.int64)
        self._asked = np.zeros(len(types), np.int64)
        self._record = Answers(self._words)
        self._record.arguments, self._record.asked = len(types), address(self._asked)
        self._lasts = lasts
        self._begin(_FEWEST_SLOTS)

    @property
    def record(self) -> int:
        """The address of the Answers."""
        return address(self._words)

    @property
    def is_asked(self) -> bool:
        return bool(self._record.is_asked)

    def forget(self) -> None:
        """Let codes that a dictionary may give back be in no answer."""
        self._record.is_asked = 0
        if self._n_known and not self._lasts:
            self._begin(_FEWEST_SLOTS)

    def give(self) -> bool:
        """Answer what is asked for; False where there is no answer."""
        codes = {name: self._asked[n : n + 1] for n, name in enumerate(self._types)}
        rows = RowValues(self._types, codes, self._arrow)
        self._record.is_asked = 0
        try:
            found = self._values(rows.arrays, 1)
            value = NULL_CODE if found.null_count else self._code(found)
        except (LftjError, pa.ArrowException):
            return False
        if value in (NOT_KNOWN, NAN_CODE) or (value == NULL_CODE and not found.null_count):
            return False
        if 2 * self._n_known >= self._record.mask:
            self._begin(min(2 * (self._record.mask + 1), 2 * MOST_KNOWN))
        enter(self.record, value)
        self._n_known += 1
        return True

    def _begin(self, slots: int) -> None:
        """Forget all, and have so many slots."""
        self._table = np.zeros(slots * (len(self._types) + 2), np.int64)
        self._record.table, self._record.mask = address(self._table), slots - 1
        self._n_known = 0
