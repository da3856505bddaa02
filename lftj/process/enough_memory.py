"""Running out of memory, said in the words of what was asked for.

numpy, pyarrow and numba each have their own MemoryError, which names an array
and not the call.  What leaves a public call is one error with a way out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from lftj.errors import OutOfMemoryError

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class enough_memory:
    """Turn a MemoryError of the block, or of the function that it decorates, into OutOfMemoryError.

    >>> with enough_memory("the result does not fit into memory"):
    ...     raise MemoryError("unable to allocate 2 TiB")
    Traceback (most recent call last):
    lftj.errors.OutOfMemoryError: the result does not fit into memory (unable to allocate 2 TiB)
    """

    def __init__(self, message: str) -> None:
        self._message = message

    def __call__(self, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def within(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
            with self:
                return function(*arguments, **options)

        return within

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, MemoryError) or isinstance(error, OutOfMemoryError):
            return
        reason = str(error).strip().partition("\n")[0]
        error.__traceback__ = None  # its frames hold what took the memory
        raise OutOfMemoryError(f"{self._message} ({reason})" if reason else self._message) from None
