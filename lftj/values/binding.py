"""What binds a function to its arguments: their types, literals and options, and what comes of it.

Invariant: a bound kernel raises ``pa.ArrowInvalid`` when a row has no result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from lftj.errors import TypeClashError
from lftj.values import texts
from lftj.values.arithmetic import Kernel, Refused
from lftj.values.kinds import kind, plain_type
from lftj.values.literals import Value


class Argument(NamedTuple):
    """The type of an argument; its value where it is a literal, else None.  ``fixed``: no parameter."""

    type: pa.DataType
    value: Value | None = None
    fixed: bool = False


class Bound(NamedTuple):
    """A function of arguments of some types.

    ``places``: of the arguments that the kernel takes; ``types``: what they are cast to.
    """

    places: tuple[int, ...]
    types: tuple[pa.DataType, ...]
    result: pa.DataType
    kernel: Kernel


class Function(NamedTuple):
    """``least``, ``most``: how many arguments it takes.  ``bind`` raises TypeClashError."""

    least: int
    most: int
    bind: Callable[[Sequence[Argument]], Bound]
    is_test: bool = False

    @property
    def arity(self) -> str:
        """How many arguments it takes, in words."""
        if self.most == MANY:
            return f"{self.least} arguments or more"
        if self.least == self.most == 1:
            return "one argument"
        return (
            f"{self.least} arguments" if self.least == self.most else f"{self.least} or {self.most} arguments"
        )


MANY = 1000
"""Arguments that a function takes at most."""


def string_type(type_: pa.DataType) -> pa.DataType:
    """What strings of a type are computed as: large ones stay large."""
    return pa.string() if plain_type(type_) == pa.string() else pa.large_string()


def by_options(
    name: str,
    make: Callable[..., Kernel],
    kinds: str,
    result: pa.DataType | None,
    arguments: Sequence[Argument],
    of: pa.DataType | None = None,
) -> Bound:
    """A function of strings and of options, of which the kernel is made: at once, where they are literals.

    kinds: of the options, ``s`` for a string, ``i`` for an integer; ``result`` None: a string; ``of``: what
    the first argument is cast to, where that is no string.
    """
    for place, (argument, letter) in enumerate(zip(arguments, "s" + kinds, strict=False), 1):
        wanted = {"s": "string", "i": "integer"}[letter]
        if kind(argument.type) != wanted and (place > 1 or of is None):
            shown = plain_type(argument.type)
            raise TypeClashError(f"argument {place} of {name} is of type {wanted}, not {shown}")
    type_ = of or string_type(arguments[0].type)
    options = [argument.value for argument in arguments[1:]]
    if None not in options:
        try:
            return Bound((0,), (type_,), result or type_, make(*options))
        except Refused as error:
            raise TypeClashError(f"{name}: {error}") from None
    types = [pa.int64() if kind(one.type) == "integer" else string_type(one.type) for one in arguments[1:]]
    return Bound(
        tuple(range(len(arguments))),
        (type_, *types),
        result or type_,
        texts.by_options(make, result or type_),
    )
