"""Writes the code that JOINs, RANGEs and GATHERs run on each row (:mod:`maintenance.machine.computing`).

Whole numbers are themselves, decimals numbers in units of their last digit, doubles and all others their
codes; whole numbers beside doubles become doubles.  Where an expression may be NULL a second register says
whether its value is known, and what reads it is passed over where it is not.

Invariants

1. A row's values are those of :class:`~lftj.evaluation.finishing.Finishing`, or the row FAILS.
2. What is written within a passage that may be passed over is read within it, but for what that MOVEs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from indices.keys import KEY_MAX
from lftj.evaluation.finishing import work_on_rows
from lftj.language.conditionals import as_condition
from lftj.language.expressions import comparison_text, text_of
from lftj.language.folding import fold
from lftj.language.syntax import Comparison, Expression
from lftj.planning.lowered import Lowered
from lftj.values.kinds import kind, plain_type
from lftj.values.schema import ColumnType
from maintenance.heads.rule_body import RuleBody
from maintenance.machine import computing
from maintenance.machine.dictionaries import Dictionaries
from maintenance.machine.records import Rows
from maintenance.machine.row_expressions import Expressions, Target
from maintenance.machine.row_registers import NotComputed, Registers

Wanted = tuple[str, int | None]
"""A variable, and in units of which digit its number is read; None for its code."""


class RowCode:
    """The code of one body, and its registers.  Raises NotComputed.

    ``names``: the variables of its rows, whose registers come first.
    """

    def __init__(self, lowered: Lowered, names: Sequence[str], dictionaries: Dictionaries) -> None:
        if lowered.negations:
            raise NotComputed("something is looked up for the rows")
        self.registers = Registers(lowered, names, dictionaries)
        self._expressions = Expressions(self.registers)
        for one in work_on_rows(lowered):
            if isinstance(one, Comparison):
                self._require(one)
            elif one.each:
                raise NotComputed(f"{one.variable} {one.sign} {text_of(one.expression)} gives several rows")
            else:
                self._assign(one.variable, one.expression)

    def register_of(self, wanted: Wanted) -> int:
        """Where a variable's code or number stands."""
        name, scale = wanted
        if scale is None:
            return self.registers.code_of(name)
        number = self.registers.number_of(name)
        found = None if number is None else self.registers.at_scale(number, scale)
        if found is None or found.known is not None:
            raise NotComputed(f"{name} is no whole number")
        return found.register

    def _require(self, comparison: Comparison) -> None:
        found = self._expressions.condition(fold(as_condition(comparison)))
        if found is None:
            raise NotComputed(f"{comparison_text(comparison)} is not compared on the rows")
        self.registers.check(computing.REQUIRE, self._expressions.holds(found))

    def _assign(self, name: str, expression: Expression) -> None:
        type_, registers = self.registers.types[name], self.registers
        found = self._expressions.typed(fold(expression), Target(type_.arrow, type_.domain))
        if found is None:
            raise NotComputed(f"{name} = {text_of(expression)} is not computed on the rows")
        if (ends := _ends_of(type_)) is not None and found.scale is not None:
            with registers.where(found.known):
                least = registers.register(ends[0])
                registers.register(ends[1])
                registers.check(computing.LIES_IN, found.register, least)
        if found.known is not None and not type_.nullable:
            registers.check(computing.REQUIRE, found.known)
            found = found._replace(known=None)
        registers.assign(name, found)


def _ends_of(type_: ColumnType) -> tuple[int, int] | None:
    """The least and the most number of a type, where 64 bits have others too."""
    arrow = plain_type(type_.arrow)
    if kind(arrow) == "decimal":
        most = 10**arrow.precision - 1
        return (-most, most) if most <= KEY_MAX else None
    if arrow == pa.int64() or not pa.types.is_integer(arrow):
        return None
    info = np.iinfo(arrow.to_pandas_dtype())
    return int(info.min), int(info.max)


def refusal_of_rows(
    lowered: Lowered, wanted: Sequence[Wanted], names: Sequence[str] | None = None
) -> str | None:
    """Why what a body does on its rows can't be done, if so.  ``names``: theirs, if not the search's."""
    try:
        code = RowCode(lowered, lowered.problem.emitted if names is None else names, Dictionaries())
        for one in wanted:
            code.register_of(one)
    except NotComputed as error:
        return str(error)
    return None


def texts_of_answers(lowered: Lowered) -> list[str]:
    """What Python computes of a body's rows, as the rule writes it."""
    dictionaries = Dictionaries()
    RowCode(lowered, lowered.problem.emitted, dictionaries)
    return [one.text for one in dictionaries.answers]


class RowsWriter:
    """Writes what is made of rows that are found (:class:`~maintenance.machine.records.Rows`).

    ``kept``: gives the address of items, which stay there.
    """

    def __init__(self, kept: Callable[[Sequence[int]], int], dictionaries: Dictionaries) -> None:
        self._kept, self._dictionaries = kept, dictionaries

    def of_body(self, body: RuleBody, wanted: Sequence[Wanted], places: Sequence[int] | None = None) -> int:
        """Of a body's.  ``places``: of the search's columns in what is found, if not as they are."""
        stands = body._places[0] if places is None else [places[column] for column in body._places[0]]
        return self.of(body.lowered, body._emitted, stands, wanted)

    def of(
        self, lowered: Lowered, names: Sequence[str], stands: Sequence[int], wanted: Sequence[Wanted]
    ) -> int:
        """Of rows of these variables, each of which stands in one of the columns that are found."""
        if lowered.finishes_in_search and all(scale is None for _, scale in wanted):
            return self.as_found([stands[names.index(name)] for name, _ in wanted])
        code = RowCode(lowered, names, self._dictionaries)
        registers = [code.register_of(one) for one in wanted]
        return self._kept(
            Rows.fields(
                places=self._kept(stands),
                n_places=len(stands),
                registers=self._kept(code.registers.initial),
                n_registers=len(code.registers.initial),
                code=self._kept(code.registers.code),
                n_instructions=code.registers.n_instructions,
                wanted=self._kept(registers),
                columns=len(wanted),
            )
        )

    def as_found(self, columns: Sequence[int]) -> int:
        """These columns of what is found."""
        places = self._kept(columns)
        return self._kept(Rows.fields(places=places, n_places=len(columns), columns=len(columns)))
