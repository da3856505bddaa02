"""Semigroups: a user's associative function as an aggregate of the rule language.

``register("gcd", function)`` makes ``g[k] = gcd(v) <- ...`` a rule: the values
of a group are folded in ascending order of the order variables and then of the
value, each as often as it occurs.  Values are ``int64`` or ``float64``.

Invariants

1. A name means one function as long as the process lives.
2. ``combine(a, combine(b, c)) == combine(combine(a, b), c)``, and both raise or
   neither does: the caller's promise.  So it does not matter how a maintained
   aggregate groups what it folds.
3. A function that raises gives an :class:`~lftj.errors.AggregateError`, never a
   value.  A C function can't raise: it would swallow the exception.  So the
   function is called by a guard that catches, notes the two operands in
   ``report`` (three int64: failed or not, then left and right, floats by their
   bits; its address is a constant of the guard) and goes on with the left one.
   Kernels run within :meth:`Operation.watched`, which looks at the report
   afterwards and calls the function once more, from Python, for its message.
4. One thread at a time is within ``watched`` of an operation.

No identity is adjoined: all 2**64 values of ``int64`` may occur, so a value that
stands for "nothing" could be taken for one that was computed.  Instead nothing
here, and no scan tree, combines with the identity (:mod:`indices.monoid`).

Cost: a fold is one indirect call per value, and O(log n) of them for a value
that occurs n times.  Each function is compiled once per type and process, some
tenths of a second.

Source: ILFTJ 2.3.3.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba import config
from numba.extending import is_jitted

from indices.compiled import kernel, part
from indices.monoid import Monoid
from lftj.errors import AggregateError
from lftj.memory import address, view
from lftj.values.function_text import digest_of, same_function
from lftj.values.names import AGGREGATES

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TYPES = {np.dtype(np.int64): numba.int64, np.dtype(np.float64): numba.float64}

_registered: dict[str, Semigroup] = {}
_registering = threading.Lock()


def register(name: str, function: Callable[..., Any]) -> None:
    """Make an associative function an aggregate that rules can use by ``name``.

    ``function`` is made by ``numba.njit`` and takes two numbers, both ``int64`` or both ``float64``, and
    returns the same type; it may raise.  It is compiled when a rule first needs it.  Registering the same
    function again changes nothing.

    Raises `AggregateError` when the name is taken or is no name, or when the
    function is none that kernels can call.

    Examples:
        >>> import lftj, math, numba
        >>> register("example_product", numba.njit(lambda left, right: left * right))
        >>> db = lftj.Database()
        >>> db.load("line", [("a", 3), ("a", 5), ("b", 4)], columns=["order", "items"])
        >>> sorted(db.query("ways[o] = example_product(n) <- line(o, n).").to_pydict()["example_product"])
        [4, 15]
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in ("true", "false", "_"):
        raise AggregateError(f"{name!r} can't name an aggregate: letters, digits and '_', no digit first")
    if name in AGGREGATES:
        raise AggregateError(f"'{name}' is an aggregate of the language: give the function another name")
    if not callable(function):
        raise AggregateError(f"aggregate '{name}' needs a function, not {type(function).__name__}")
    if not is_jitted(function) and not config.DISABLE_JIT:
        raise AggregateError(
            f"aggregate '{name}': {getattr(function, '__name__', function)} is a plain Python function, "
            "and kernels call compiled ones only; decorate it with numba.njit"
        )
    with _registering:
        known = _registered.get(name)
        if known is not None and not same_function(known.function, function):
            raise AggregateError(
                f"there is an aggregate '{name}' of another function already: choose another name"
            )
        if known is None:
            _registered[name] = Semigroup(name, function)


def registered_names() -> list[str]:
    """The names registered so far, in order."""
    return sorted(_registered)


def semigroup(name: str) -> Semigroup:
    """What was registered by that name.  Raises :class:`~lftj.errors.AggregateError`."""
    try:
        return _registered[name]
    except KeyError:
        raise AggregateError(f"no aggregate '{name}' is registered") from None


class Semigroup:
    """A name and its function.

    >>> import numba
    >>> least = Semigroup("least", numba.njit(lambda left, right: min(left, right)))
    >>> operation = least.operation(np.float64)
    >>> operation.fold(np.array([2.5, 1.5, 7.0]), np.array([1, 1, 3]), np.array([0, 2, 3]), str).tolist()
    [1.5, 7.0]
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        self._operations: dict[np.dtype[Any], Operation] = {}
        self._compiling = threading.Lock()

    @property
    def digest(self) -> str:
        """What tells its function from another one of that name, in other processes too."""
        return digest_of(self.function)

    def operation(self, dtype: Any) -> Operation:
        """The function over int64 or float64, compiled.

        Raises :class:`~lftj.errors.AggregateError` when it can't be compiled for that type or returns
        another one.
        """
        dtype = np.dtype(dtype)
        with self._compiling:
            if dtype not in self._operations:
                self._operations[dtype] = Operation(self, dtype)
            return self._operations[dtype]


class Operation:
    """A semigroup over one type of numbers, guarded (invariant 3 of the module's header).

    ``monoid`` is for scan trees, ``combine`` for kernels; both only within :meth:`watched`.
    """

    def __init__(self, semigroup: Semigroup, dtype: np.dtype[Any]) -> None:
        """``dtype``: int64 or float64."""
        self.semigroup = semigroup
        self.dtype = dtype
        self.report = np.zeros(3, np.int64)
        self._one_at_a_time = threading.Lock()
        self._check_type()
        guard = _guarded(semigroup.function, dtype.type, address(self.report))
        self.monoid = Monoid(semigroup.name, guard if config.DISABLE_JIT else numba.njit(guard), None)
        self.combine = self.monoid.operation(dtype)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Kernels that combine run in here.

        Raises :class:`~lftj.errors.AggregateError` at the end when the function raised: what the kernel
        has written is worth nothing then.
        """
        with self._one_at_a_time:
            self.report[0] = 0
            yield
            failed, *operands = self.report.tolist()
        if failed:
            left, right = np.array(operands, np.int64).view(self.dtype).tolist()
            raise AggregateError(f"{self.semigroup.name}({left}, {right}) raised {self._raised(left, right)}")

    def fold(
        self, values: np.ndarray, times: np.ndarray, offsets: np.ndarray, name: Callable[[int], str]
    ) -> np.ndarray:
        """One value per group: rows ``[offsets[g], offsets[g + 1])``, at least one, each ``times`` times.

        ``values``: of the operation's type; ``times``: int64, all > 0; ``name``: what to call a group in
        an error.  Raises :class:`~lftj.errors.AggregateError`, naming the group.  O(n log times).
        """
        out = np.empty(len(offsets) - 1, self.dtype)
        values = values.view()
        values.flags.writeable = False  # some are, some are not: the kernel has one signature
        failed = -1
        try:
            with self.watched():
                failed = fold_groups(values, times, offsets, self.combine, self.report, out)
        except AggregateError as error:
            raise AggregateError(f"{name(int(failed))}: {error}") from error.__cause__
        return out

    def powers(self, values: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Each value combined with itself, ``times`` > 0 times; within :meth:`watched`."""
        out = np.empty(len(values), self.dtype)
        values = values.view()
        values.flags.writeable = False
        combine_powers(values, times, self.combine, out)
        return out

    def _raised(self, left: Any, right: Any) -> str:
        """The exception that the function raises for these operands."""
        try:
            self.semigroup.function(self.dtype.type(left), self.dtype.type(right))
        except Exception as error:
            return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return "an exception"

    def _check_type(self) -> None:
        """Raise if the function does not take two numbers of the type and return one."""
        function = self.semigroup.function
        if not is_jitted(function):
            return
        number = _TYPES[self.dtype]
        probe = numba.njit(lambda left, right: function(left, right))
        try:
            probe.compile((number, number))
        except Exception as error:  # the compiler has more ways to fail than its own errors
            raise AggregateError(
                f"aggregate '{self.semigroup.name}' can't be compiled over {self.dtype}: {_reason(error)}"
            ) from None
        returned = probe.nopython_signatures[0].return_type
        if numba.types.unliteral(returned) != number:
            raise AggregateError(
                f"aggregate '{self.semigroup.name}' returns {returned} for two values of {self.dtype}: "
                "it has to return the type that it takes"
            )


def _reason(error: Exception) -> str:
    r"""The line of a compiler's message that says what is wrong; where colorama is, the message has colours.

    >>> _reason(TypeError("Failed in nopython mode\n\x1b[1m\x1b[1mUnknown attribute 'upper'\n\x1b[0m"))
    "Unknown attribute 'upper'"
    """
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines()]
    told = [line for line in lines if line and not line.startswith("Failed in ")]
    return told[0] if told else type(error).__name__


def _guarded(function: Callable[..., Any], number: Any, where: int) -> Callable[..., Any]:
    """``function`` over np.int64 or np.float64, ``number``, with its exceptions reported at ``where``."""

    def guard(left, right):
        result = left
        try:
            result = function(left, right)
        except Exception:
            report = view(where, 3)
            if report[0] == 0:
                report[0] = 1
                report[1] = number(left).view(np.int64)
                report[2] = number(right).view(np.int64)
        return result

    return guard


@part
def power(value, times, combine):
    """``value`` combined with itself, ``times`` > 0 times; no higher power is computed on the way."""
    bit = np.int64(1)
    while bit <= times >> 1:
        bit <<= 1
    result = value
    while bit > 1:
        bit >>= 1
        result = combine(result, result)
        if times & bit:
            result = combine(result, value)
    return result


@kernel
def combine_powers(values, times, combine, out):
    """``out[row]`` = ``values[row]``, ``times[row]`` > 0 times; (rows,) each, ``out`` written."""
    for row in range(len(values)):
        out[row] = power(values[row], times[row], combine)


@kernel
def fold_groups(values, times, offsets, combine, report, out):
    """Fold the rows ``[offsets[g], offsets[g + 1])`` of each group, none empty, into ``out[g]``.

    Returns the first group for which ``report[0]`` was set, where it stops, or -1.
    """
    for group in range(len(offsets) - 1):
        result = power(values[offsets[group]], times[offsets[group]], combine)
        for row in range(offsets[group] + 1, offsets[group + 1]):
            result = combine(result, power(values[row], times[row], combine))
        if report[0] != 0:
            return group
        out[group] = result
    return -1
