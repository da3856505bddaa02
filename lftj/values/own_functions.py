"""Functions of a user's own: from columns to a column, called by name in rules.

``register("domain", function, ["string"], "string")`` makes ``d = domain(a)`` part of rules.  The function
takes Arrow arrays of the declared types, one per argument and all of one length, and gives an array of the
declared result, row by row.

Invariants

1. A name means one function as long as the process lives: plans, installed rules and images keep the name.
2. The function is called with arrays without NULLs that have rows; what it gives is of the declared type and
   length and has no NULLs, or a :class:`~lftj.errors.FunctionError` is raised.
3. A row's value depends on the row alone: the caller's promise, for a row is computed again when it is taken
   back.  With ``LFTJ_DEBUG=1`` each call is made a second time, with the rows in reverse order.

Cost: the user's, and a look at the result's type and NULLs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import FunctionError, TypeClashError
from lftj.process import debug
from lftj.values.arithmetic import Refused, cast
from lftj.values.binding import MANY, Argument, Bound, Function
from lftj.values.casts import cast_kernel, named_type
from lftj.values.function_text import digest_of, same_function
from lftj.values.functions import FUNCTIONS
from lftj.values.kinds import kind, literal_type, plain_type
from lftj.values.names import AGGREGATES, is_usable

_OF_LANGUAGE = frozenset({*FUNCTIONS, *AGGREGATES, "in", "not", "like"})
_TAKES = {"float": ("float", "integer", "decimal"), "decimal": ("decimal", "integer")}
"""Kinds of values that become the declared kind by themselves, beside that kind itself."""

_registered: dict[str, OwnFunction] = {}
_registering = threading.Lock()


class FunctionRefused(Refused):
    """A user's function has no result for a row."""

    raised = FunctionError


def register(
    name: str,
    function: Callable[..., pa.Array],
    arguments: Sequence[str | pa.DataType],
    result: str | pa.DataType | None = None,
) -> None:
    """Make a function over Arrow arrays one that rules can call by ``name``.

    Args:
        name: What rules call it; no function or aggregate of the language.
        function: Takes one ``pyarrow.Array`` per argument, without NULLs, and gives one of equal length,
            without NULLs.  It is pure: the value of a row depends on the row's arguments alone.
        arguments: Their types: Arrow's, or as ``cast`` writes them, ``"int64"`` or ``"string"``.  Integers
            are taken as floats and decimals where those are declared, decimals as floats.
        result: The type of what it gives; None: of what it gives for arrays without rows.  A function
            that gives ``bool`` may stand in a body by itself, as ``contains`` does.

    Registering the same function again changes nothing; a name can't be given to another one, as rules that
    are installed would change their meaning.

    Raises `FunctionError`.

    Examples:
        >>> import lftj, pyarrow.compute as pc
        >>> def domain(mail):
        ...     return pc.replace_substring_regex(mail, ".*@", "")
        >>> register("example_domain", domain, ["string"], "string")
        >>> db = lftj.Database()
        >>> db.load("user", [(1, "ann@a.org"), (2, "bob@b.com")], columns=["id", "mail"])
        >>> db.query("of(i, d) <- user(i, m), d = example_domain(m), i > 1.").to_pylist()
        [{'i': 2, 'd': 'b.com'}]
    """
    if not is_usable(name):
        raise FunctionError(f"{name!r} can't name a function: letters, digits and '_', no digit first")
    if name in _OF_LANGUAGE:
        raise FunctionError(f"'{name}' is of the language: give the function another name")
    if not callable(function):
        raise FunctionError(f"function '{name}' needs a function, not {type(function).__name__}")
    if isinstance(arguments, str | pa.DataType):
        raise FunctionError(
            f"function '{name}': the types of its arguments are a list, as in [{arguments!r}]"
        )
    taken = tuple(_declared(name, f"argument {place}", type_) for place, type_ in enumerate(arguments, 1))
    if not 1 <= len(taken) <= MANY:
        raise FunctionError(f"function '{name}' takes {len(taken)} arguments: there are 1 to {MANY}")
    given = _inferred(name, function, taken) if result is None else result
    made = OwnFunction(name, function, taken, _declared(name, "its result", given))
    with _registering:
        known = _registered.get(name)
        if known is None:
            is_test = pa.types.is_boolean(made.result)
            FUNCTIONS[name] = Function(len(taken), len(taken), made.bind, is_test)
            _registered[name] = made
        elif known[2:] != made[2:] or not same_function(known.function, function):
            raise FunctionError(
                f"there is another function '{name}' already: choose another name, or start Python again"
            )


def is_own(name: str) -> bool:
    """Whether a user registered a function of that name.

    >>> is_own("lower")
    False
    """
    return name in _registered


def digest(name: str) -> str | None:
    """What tells a user's function from another one, in other processes too; None of the language's own."""
    known = _registered.get(name)
    return None if known is None else digest_of(known.function, known.arguments, known.result)


def _declared(name: str, what: str, given: object) -> pa.DataType:
    if isinstance(given, str):
        try:
            return named_type(given)
        except TypeClashError as error:
            raise FunctionError(f"function '{name}', {what}: {error}") from None
    if not isinstance(given, pa.DataType):
        raise FunctionError(f"function '{name}', {what}: {given!r} is no type")
    is_view = pa.types.is_string_view(given) or pa.types.is_binary_view(given)
    if kind(given) in ("list", "other") or given != plain_type(given) or is_view:
        raise FunctionError(f"function '{name}', {what}: columns of {given} are not passed to functions")
    return given


def _inferred(name: str, function: Callable[..., pa.Array], arguments: Sequence[pa.DataType]) -> pa.DataType:
    try:
        given = function(*(pa.array([], type_) for type_ in arguments))
    except Exception as error:  # whatever the user's function raises
        raise FunctionError(
            f"function '{name}' raised {_shown(error)} for arrays without rows:"
            " declare the type of its result"
        ) from error
    if not isinstance(given, pa.Array | pa.ChunkedArray):
        raise FunctionError(f"function '{name}' gives {type(given).__name__}, not a pyarrow.Array")
    return given.type


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class OwnFunction(NamedTuple):
    """A name, its function, and what it takes and gives.

    >>> halve = OwnFunction("halve", lambda x: pc.divide(x, 2.0), (pa.float64(),), pa.float64())
    >>> halve.bind([Argument(pa.int32())]).kernel(pa.array([3, 4], pa.int32())).to_pylist()
    [1.5, 2.0]
    """

    name: str
    function: Callable[..., pa.Array]
    arguments: tuple[pa.DataType, ...]
    result: pa.DataType

    def bind(self, arguments: Sequence[Argument]) -> Bound:
        """For arguments of these types.  Raises :class:`~lftj.errors.TypeClashError`."""
        types, casts = [], []
        for place, (argument, declared) in enumerate(zip(arguments, self.arguments, strict=True), 1):
            own = plain_type(argument.type) if argument.value is None else literal_type(argument.value)
            takes = _TAKES.get(kind(declared), (kind(declared),))
            zones = [getattr(type_, "tz", None) is None for type_ in (own, declared)]
            if kind(own) not in takes or zones[0] != zones[1]:
                raise TypeClashError(f"argument {place} of {self.name} is of type {own}, not {declared}")
            types.append(own)
            is_rounded = kind(declared) in ("float", "decimal")
            casts.append(cast_kernel(own, declared) if is_rounded else partial(cast, wanted=declared))
        return Bound(tuple(range(len(types))), tuple(types), self.result, partial(self._apply, casts))

    def _apply(self, casts: Sequence[Callable[[pa.Array], pa.Array]], *arrays: pa.Array) -> pa.Array:
        """The kernel: FunctionRefused where a row is to blame, FunctionError where the function is."""
        taken = []
        for place, (convert, array) in enumerate(zip(casts, arrays, strict=True)):
            try:
                taken.append(convert(array))
            except pa.ArrowInvalid:
                raise FunctionRefused(f"argument {place + 1} does not fit {self.arguments[place]}") from None
        if len(taken[0]) == 0:
            return pa.array([], self.result)
        found = self._called(taken)
        if debug.enabled:
            self._compare(found, self._called([array[::-1] for array in taken])[::-1])
        return found

    def _called(self, arrays: Sequence[pa.Array]) -> pa.Array:
        try:
            found: Any = self.function(*arrays)
        except MemoryError:
            raise
        except Exception as error:  # whatever the user's function raises
            raise FunctionRefused(f"'{self.name}' raised {_shown(error)}") from error
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if not isinstance(found, pa.Array):
            raise FunctionError(f"function '{self.name}' gave {type(found).__name__}, not a pyarrow.Array")
        if len(found) != len(arrays[0]):
            raise FunctionError(
                f"function '{self.name}' gave {len(found)} values for arrays of length {len(arrays[0])}:"
                " it gives one per row"
            )
        if found.type != self.result:
            raise FunctionError(
                f"function '{self.name}' gave type {found.type} and declares {self.result}:"
                " cast what it gives"
            )
        if found.null_count:
            raise FunctionRefused(f"'{self.name}' gave NULL")
        return found

    def _compare(self, found: pa.Array, again: pa.Array) -> None:
        """Raise FunctionError where a second call gave something else."""
        same = pc.equal(found, again)
        if pa.types.is_floating(found.type):
            same = pc.or_(same, pc.and_(pc.is_nan(found), pc.is_nan(again)))
        row = pc.index(same, pa.scalar(False)).as_py()
        if row >= 0:
            raise FunctionError(
                f"function '{self.name}' gave {found[row]} for a row, and {again[row]} when it was called"
                " again with the rows in reverse order: its values may depend on a row's arguments alone"
            )
