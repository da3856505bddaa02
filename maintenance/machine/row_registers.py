"""The registers of a body's rows, the instructions that are written for them, and where its variables stand.

See :mod:`maintenance.machine.row_code`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa

from lftj.planning.lowered import Lowered
from lftj.values.dictionary import DecimalDomain, DictionaryDomain
from lftj.values.domain import NULL_CODE, Domain, viewless
from lftj.values.kinds import plain_type
from lftj.values.schema import ColumnType
from lftj.values.unscaled import SCALE
from maintenance.machine import computing
from maintenance.machine.answers import Answered
from maintenance.machine.computing import INSTRUCTION, Instruction
from maintenance.machine.dictionaries import Dictionaries

MOST_ZEROS = 18  # 10**18 < 2**63


class NotComputed(Exception):
    """Something is not computed on the rows; the message says what."""


class Held(NamedTuple):
    """What a register holds.  ``scale``: of a number, which is in units of ``10**-scale``; None: a code.

    ``known``: the register that is 1 where there is a value and 0 where it is NULL; None: there always is.
    """

    register: int
    scale: int | None = None
    known: int | None = None


class Registers:
    """Of one body.  Raises NotComputed.

    ``names``: the variables of its rows, whose registers come first.
    """

    def __init__(self, lowered: Lowered, names: Sequence[str], dictionaries: Dictionaries) -> None:
        self.types = lowered.types
        self.arrow = {name: viewless(type_.arrow) for name, type_ in lowered.types.items()}
        self._fetched = lowered.fetched
        self._dictionaries = dictionaries
        self._codes: dict[str, int] = {}
        self._held: dict[str, Held] = {}
        self.initial: list[int] = []
        """What registers have at first: constants, else 0."""
        self.code: list[int] = []
        for name in names:
            self._codes[name] = self.register()

    @property
    def n_instructions(self) -> int:
        return len(self.code) // INSTRUCTION

    # -- instructions -----------------------------------------------------------------------------

    def register(self, value: int = 0) -> int:
        self.initial.append(value)
        return len(self.initial) - 1

    def instruct(self, code: int, left: int, right: int = 0, out: int | None = None, of: int = 0) -> int:
        """The register that it writes, a new one if none is said."""
        to = self.register() if out is None else out
        self.code += Instruction.fields(code=code, left=left, right=right, out=to, of=of)
        return to

    def check(self, code: int, left: int, right: int = 0) -> None:
        """An instruction that writes nothing."""
        self.instruct(code, left, right, out=left)

    @contextmanager
    def where(self, condition: int | None) -> Iterator[None]:
        """A passage for rows in which a register is 1; None: for all."""
        if condition is None:
            yield
            return
        begin, held, codes = len(self.code), dict(self._held), dict(self._codes)
        self.instruct(computing.PASS_OVER, condition, out=condition)
        yield
        passed = (len(self.code) - begin) // INSTRUCTION - 1
        self.code[begin : begin + INSTRUCTION] = Instruction.fields(
            code=computing.PASS_OVER, left=condition, out=condition, of=passed
        )
        self._held, self._codes = held, codes

    def ask(self, answered: Answered, names: Sequence[str]) -> int:
        """The register with the answer for some variables."""
        codes = [self.code_of(name) for name in names]
        first = len(self.initial)
        for code in codes:
            self.instruct(computing.MOVE, code, out=self.register())
        self._dictionaries.answers.append(answered)
        return self.instruct(computing.ASK, first, of=answered.record)

    def mark(self) -> Callable[[], None]:
        """What forgets all that is written from now on."""
        length, held, codes = len(self.code), dict(self._held), dict(self._codes)
        n_answers = len(self._dictionaries.answers)

        def forget() -> None:
            del self.code[length:]
            del self._dictionaries.answers[n_answers:]
            self._held, self._codes = held, codes

        return forget

    def known_of(self, *held: Held) -> int | None:
        """Whether all are known."""
        known = [one.known for one in held if one.known is not None]
        if not known:
            return None
        first, *others = known
        for other in others:
            first = self.instruct(computing.BOTH, first, other)
        return first

    def at_scale(self, number: Held, scale: int) -> Held | None:
        """The same in units of as many digits, or more; None for others, and too many."""
        assert number.scale is not None
        missing = scale - number.scale
        if missing == 0:
            return number
        if not 0 < missing <= MOST_ZEROS:
            return None
        with self.where(number.known):
            scaled = self.instruct(computing.MULTIPLY, number.register, self.register(10**missing))
        return Held(scaled, scale, number.known)

    # -- variables --------------------------------------------------------------------------------

    def assign(self, name: str, held: Held) -> None:
        """Let a variable be what was computed."""
        self._held[name] = held

    def coded(self, name: str) -> Held:
        """A variable's code."""
        register, type_ = self.code_of(name), self.types[name]
        if not type_.nullable:
            return Held(register)
        return Held(register, known=self.instruct(computing.UNEQUAL, register, self.register(NULL_CODE)))

    def code_of(self, name: str) -> int:
        """Where a variable's code stands, that of NULL included."""
        if name not in self._codes:
            held = self._held.get(name)
            known = self._is_there(name) if held is None else held.known
            null = None if known is None else self._null(known, self.types[name].domain)
            with self.where(known):
                code = self._read_off(name) if held is None else self._entered(name, held)
                if null is not None:
                    self.instruct(computing.MOVE, code, out=null)
            self._codes[name] = code if null is None else null
        return self._codes[name]

    def _null(self, known: int, domain: Domain) -> int:
        """A register with the code of NULL.  Where the domain keeps none so far what is not known FAILS:
        the general way lets it."""
        if not domain.keeps_null:
            self._dictionaries.without_null.add(domain)
            one = self.register(1)
            self.register(1)
            self.check(computing.LIES_IN, known, one)
        return self.instruct(computing.MOVE, self.register(NULL_CODE))

    def _is_there(self, name: str) -> int | None:
        """Whether a value that is read off a row is no NULL; None where none is."""
        its = self._fetched.get(name)
        if its is None or not self.types[name].nullable:
            return None
        of = self._dictionaries.fetched(its.schema.rows, its.column - 1)
        return self.instruct(computing.IS_THERE, self._codes[its.row], of=of)

    def _entered(self, name: str, held: Held) -> int:
        """The code of a value that was computed."""
        domain = self.types[name].domain
        if not isinstance(domain, DecimalDomain):
            return held.register
        return self._entered_decimal(name, domain, held)

    def _entered_decimal(self, name: str, domain: DecimalDomain, held: Held | None) -> int:
        if held is None or held.scale is None or not 0 <= held.scale <= SCALE:
            raise NotComputed(f"{name} is no whole number")
        of = self._dictionaries.decimals(domain, held.scale, enters=True)
        return self.instruct(computing.ENCODE, held.register, of=of)

    def _read_off(self, name: str) -> int:
        """The code of a value of a wide row."""
        type_, its = self.types[name], self._fetched[name]
        domain = type_.domain
        if isinstance(domain, DecimalDomain):
            return self._entered_decimal(name, domain, self.number_of(name))
        rows, row, column = its.schema.rows, self._codes[its.row], its.column - 1
        if isinstance(domain, DictionaryDomain):
            of = self._dictionaries.fetched(rows, column, domain)
            return self.instruct(computing.TEXT, row, of=of)
        is_double = type_.arrow == pa.float64()
        if not (is_double or rows.has_numbers(column)):
            raise NotComputed(f"{name} is read off rows, of type {type_.arrow}")
        found = self.instruct(computing.FETCH, row, of=self._dictionaries.fetched(rows, column))
        return self.instruct(computing.AS_FLOAT, found) if is_double else found

    def number_of(self, name: str) -> Held | None:
        """The number of a variable; None where it has none."""
        if name in self._held:
            held = self._held[name]
            return held if held.scale is not None else None
        type_ = self.types[name]
        if _is_whole(type_):
            self._held[name] = self.coded(name)._replace(scale=0)
        elif isinstance(type_.domain, DecimalDomain) and 0 <= plain_type(type_.arrow).scale <= SCALE:
            self._held[name] = self._decimal(name, type_.domain, plain_type(type_.arrow).scale)
        else:
            return None
        return self._held[name]

    def _decimal(self, name: str, domain: DecimalDomain, scale: int) -> Held:
        its = self._fetched.get(name)
        if its is not None:
            of = self._dictionaries.fetched(its.schema.rows, its.column - 1)
            known = self._is_there(name)
            with self.where(known):
                number = self.instruct(computing.FETCH, self._codes[its.row], of=of)
            return Held(number, scale, known)
        code, of = self.coded(name), self._dictionaries.decimals(domain, scale, enters=False)
        with self.where(code.known):
            number = self.instruct(computing.DECODE, code.register, of=of)
        return Held(number, scale, code.known)


def _is_whole(type_: ColumnType) -> bool:
    """Whether codes are the values, which are integers of 64 bits at most."""
    return pa.types.is_integer(type_.arrow) and type_.arrow != pa.uint64()
