"""Ctrl-C comes out of a call as what it is.

A signal's handler runs between any two steps of Python.  Where that is amid a call of
compiled code, what the handler raised can reach the caller as another exception: numba
tells of a SystemError or a TypeError.  Within an :class:`interruptible` block or function
the handler's own exception comes out again, with the other one as its cause.  And where
an exception would be lost, or end the process, the handler is called a moment later.

Cost: about a microsecond.  Handlers are set by the functions that :mod:`signal` is made of:
its own look each handler up in an enumeration, which takes ten times as long.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import functools
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
_END = object()
_MOMENT = 0.001
_SIGINT = int(signal.SIGINT)
_DEAF = (
    os.path.join("numba", "core", "serialize.py"),
    os.path.join("numba", "core", "typing", "typeof.py"),
    "weakref.py",
)
"""Files of functions that compiled code or the interpreter calls without looking at what they raise."""

_deaf: set[CodeType] = set()


def deaf(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Marks a function of our own that the interpreter calls so, as it does a weak reference's callback."""
    _deaf.add(function.__code__)
    return function


class interruptible:
    """A block, or as a decorator a function, out of which Ctrl-C comes as what its handler raises.

    Signals reach the main thread only, so in others it does nothing; nor does it where SIGINT has no
    handler of Python.

    >>> with interruptible():
    ...     sum([1, 2])
    3
    """

    def __init__(self) -> None:
        self._raised: BaseException | None = None
        self._handler: Any = None

    def __call__(self, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def within(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
            with interruptible():
                return function(*arguments, **options)

        return within

    def __enter__(self) -> interruptible:
        handler = _signal.getsignal(_SIGINT)
        if callable(handler):
            self._handler = handler
            try:
                _signal.signal(_SIGINT, self._interrupt)
            except ValueError:  # not the main thread
                self._handler = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handler is not None:
            _signal.signal(_SIGINT, self._handler)
        # Kept, it makes a circle with its traceback, and what the frames held stays until that is collected.
        raised, self._raised = self._raised, None
        try:
            if raised is not None and isinstance(error, Exception) and error is not raised:
                raise raised from error
        finally:
            del raised, error, trace

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if frame is not None and (frame.f_code in _deaf or frame.f_code.co_filename.endswith(_DEAF)):
            _thread.start_new_thread(_again, (number,))
            return
        try:
            self._handler(number, frame)
        except BaseException as error:
            self._raised = error
            raise


def _again(number: int) -> None:
    """Send a signal to the main thread once more, from a thread of its own."""
    time.sleep(_MOMENT)
    signal.pthread_kill(threading.main_thread().ident, number)  # type: ignore[arg-type]


def each(items: Generator[Item, None, None]) -> Iterator[Item]:
    """The items of a generator, each of its steps :class:`interruptible`."""
    try:
        while True:
            with interruptible():
                item: Any = next(items, _END)
            if item is _END:
                return
            yield item
    finally:
        items.close()
