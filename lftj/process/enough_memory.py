"""Running out of memory, said in the words of what was asked for.

numpy, pyarrow and numba each have their own MemoryError, which names an array
and not the call.  What leaves a public call is one error with a way out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lftj.errors import OutOfMemoryError


@contextmanager
def enough_memory(message: str) -> Iterator[None]:
    """Turn a MemoryError of the block, or of the function that it decorates, into OutOfMemoryError.

    >>> with enough_memory("the result does not fit into memory"):
    ...     raise MemoryError("unable to allocate 2 TiB")
    Traceback (most recent call last):
    lftj.errors.OutOfMemoryError: the result does not fit into memory (unable to allocate 2 TiB)
    """
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        reason = str(error).strip().partition("\n")[0]
        error.__traceback__ = None  # its frames hold what took the memory
        raise OutOfMemoryError(f"{message} ({reason})" if reason else message) from None
