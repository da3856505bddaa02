"""Monoids: the associative operations that a scan tree aggregates with.

A monoid is an operation of two numbers and its identity.  The built-in ones
are SUM, COUNT, MIN and MAX; :func:`monoid` makes one of a user's own compiled
function.  Values are ``int64`` or ``float64``.

Invariants (the caller's promise for a monoid of their own; nothing can check
the first two in full)

1. ``combine(a, combine(b, c)) == combine(combine(a, b), c)``.  The operation
   need not be commutative: whoever folds keeps the order of keys.
2. ``combine(identity, a) == a == combine(a, identity)``.  Checked for the
   identity itself.
3. ``combine`` returns the type it takes, and does not raise.  The type is checked.

Departures from a true monoid: SUM over int64 wraps around at 64 bits, as
numpy's does, so whoever needs an error bounds the values first; SUM over
float64 rounds, so its last digits depend on where the tree's nodes end (exact
sums: :mod:`lftj.aggregates.superaccumulator`).  MIN and MAX of anything and NaN are NaN.

Cost: one indirect call per combination, some 3 ns.  The operation reaches a
kernel as a typed function pointer, so a kernel is compiled once per type of
values and not once per monoid.  The built-in operations are cached on disk; a
user's is compiled once per process.

Source: ILFTJ 3.1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import config
from numba.core.errors import NumbaError
from numba.extending import is_jitted

from indices.compiled import callback, kernel
from indices.errors import MonoidError

_TYPES = {np.dtype(np.int64): numba.int64, np.dtype(np.float64): numba.float64}


@kernel
def _add(left, right):  # type: ignore[no-untyped-def]
    return left + right


@kernel
def _least(left, right):  # type: ignore[no-untyped-def]
    if left < right or left != left:
        return left
    return right


@kernel
def _greatest(left, right):  # type: ignore[no-untyped-def]
    if left > right or left != left:
        return left
    return right


@dataclass(frozen=True, eq=False)
class Monoid:
    """An associative operation with its identity.

    ``combine`` is compiled (``numba.njit``) and takes two numbers of one type.  ``identity`` may be
    infinite: over int64 that stands for the end of the range.  None stands for a semigroup, which has
    no identity: then 0 stands for no records at all (a scan tree combines nothing with its identity),
    and whoever made ``combine`` has seen to the types.  ``counts`` says that every record's value is 1,
    whatever value it is given.

    >>> SUM.combine(2, 3), SUM.identity_of(np.int64)
    (5, np.int64(0))
    >>> MAX.identity_of(np.int64), MAX.identity_of(np.float64)
    (np.int64(-9223372036854775808), np.float64(-inf))
    """

    name: str
    combine: Callable[..., Any]
    identity: float | None
    counts: bool = False

    def identity_of(self, dtype: Any) -> Any:
        """The identity as a numpy scalar of ``dtype``.

        Raises :class:`~indices.errors.MonoidError` when ``dtype`` is neither int64 nor float64 or
        can't hold the identity.
        """
        dtype = _checked_dtype(dtype)
        if self.identity is None:
            return dtype.type(0)
        if dtype == np.float64:
            return np.float64(self.identity)
        limits = np.iinfo(np.int64)
        if isinstance(self.identity, float) and math.isinf(self.identity):
            return np.int64(limits.max if self.identity > 0 else limits.min)
        if self.identity != self.identity or self.identity != int(self.identity):
            raise MonoidError(
                f"monoid {self.name}: int64 can't hold its identity {self.identity}; use float64"
            )
        if not limits.min <= self.identity <= limits.max:
            raise MonoidError(f"monoid {self.name}: its identity {self.identity} is beyond 64 bits")
        return np.int64(self.identity)

    def operation(self, dtype: Any) -> Any:
        """``combine`` over ``dtype``, as kernels take it.

        Raises :class:`~indices.errors.MonoidError` when the function can't be compiled for ``dtype``,
        returns another type, or does not keep its identity.
        """
        dtype = _checked_dtype(dtype)
        identity = self.identity_of(dtype)
        if self.identity is not None:
            _check_operation(self, dtype, identity)
        return _operation(self.combine, dtype)


SUM = Monoid("sum", _add, 0)
"""Addition."""

COUNT = Monoid("count", _add, 0, counts=True)
"""The number of records: each counts 1.  Its results are int64 whatever the records' values are."""

MIN = Monoid("min", _least, math.inf)
"""The least value; NaN if there is one."""

MAX = Monoid("max", _greatest, -math.inf)
"""The greatest value; NaN if there is one."""


def monoid(name: str, function: Callable[..., Any], identity: float) -> Monoid:
    """A monoid of a compiled function of one's own; it need not be commutative.

    ``function`` is made by ``numba.njit``, takes two numbers of one type, returns that type and does
    not raise.  Raises :class:`~indices.errors.MonoidError` for a plain Python function and for an
    identity that is no number.

    >>> last = monoid("last", numba.njit(lambda left, right: right if right >= 0 else left), -1)
    >>> last.combine(3, -1), last.combine(3, 4)
    (3, 4)
    """
    if not callable(function):
        raise MonoidError(f"monoid {name}: its operation is no function but {type(function).__name__}")
    if not is_jitted(function) and not config.DISABLE_JIT:
        raise MonoidError(
            f"monoid {name}: its operation {getattr(function, '__name__', function)} is a plain Python "
            "function, and kernels call compiled ones only; decorate it with numba.njit"
        )
    if isinstance(identity, bool) or not isinstance(identity, int | float | np.integer | np.floating):
        raise MonoidError(f"monoid {name}: its identity {identity!r} is no number")
    return Monoid(name, function, identity.item() if isinstance(identity, np.generic) else identity)


def _checked_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        known = np.dtype(dtype)
    except TypeError:
        raise MonoidError(f"values are int64 or float64, not {dtype!r}") from None
    if known not in _TYPES:
        raise MonoidError(f"values are int64 or float64, not {known}")
    return known


def _check_operation(tested: Monoid, dtype: np.dtype[Any], identity: Any) -> None:
    """Raise if invariant 2 or 3 of the module's header can be seen not to hold."""
    try:
        kept = tested.combine(identity, identity)
    except NumbaError as error:
        reason = str(error).strip().splitlines()[0]
        raise MonoidError(
            f"monoid {tested.name}: its operation can't be compiled over {dtype}: {reason}"
        ) from None
    except MemoryError:  # says nothing of the operation
        raise
    except Exception as error:
        raise MonoidError(
            f"monoid {tested.name}: its operation raises {error!r} for its own identity"
        ) from error
    if is_jitted(tested.combine):
        number = _TYPES[dtype]
        returned = tested.combine.overloads[(number, number)].signature.return_type  # type: ignore[attr-defined]
        if returned != number:
            raise MonoidError(f"monoid {tested.name}: its operation returns {returned} over {dtype}")
    if not np.array_equal(kept, identity, equal_nan=True):
        raise MonoidError(
            f"monoid {tested.name}: {identity} is no identity, combined with itself it is {kept}"
        )


@functools.lru_cache(maxsize=256)
def _operation(combine: Callable[..., Any], dtype: np.dtype[Any]) -> Any:
    """A C function over ``dtype``, or ``combine`` itself where the compiler is off."""
    if not is_jitted(combine):
        return combine
    number = _TYPES[dtype]
    return callback(combine.py_func, number(number, number))  # type: ignore[attr-defined]
