"""Ctrl-C comes out of calls as what the handler raises, whatever compiled code makes of it."""

from __future__ import annotations

import gc
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lftj.process.interrupts import deaf, each, interruptible


@pytest.fixture(autouse=True)
def _python_takes_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def garbled(error: type[Exception]) -> None:
    """What a compiled function makes of an interruption."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise error("returned a result with an exception set") from None


@pytest.mark.parametrize("error", [SystemError, TypeError])
def test_what_an_interruption_became(error: type[Exception]) -> None:
    with pytest.raises(KeyboardInterrupt) as caught, interruptible():
        garbled(error)
    assert isinstance(caught.value.__cause__, error)
    with pytest.raises(KeyboardInterrupt):
        interruptible()(garbled)(error)


def test_other_errors_come_as_they_are() -> None:
    with pytest.raises(ValueError, match="mine"), interruptible():
        raise ValueError("mine")
    with pytest.raises(KeyboardInterrupt) as caught, interruptible():
        signal.raise_signal(signal.SIGINT)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("how", [garbled, lambda _: signal.raise_signal(signal.SIGINT)])
def test_what_the_frames_of_an_interruption_held_goes_with_it(how: Callable[[type[Exception]], None]) -> None:
    class Held:
        pass

    held: list[weakref.ref[Held]] = []

    def work() -> None:
        large = Held()
        held.append(weakref.ref(large))
        how(SystemError)

    gc.disable()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible()(work)()
        assert held[0]() is None
    finally:
        gc.enable()


def test_a_handler_that_only_takes_note() -> None:
    noted = []
    before = signal.signal(signal.SIGINT, lambda *call: noted.append(call))
    try:
        with pytest.raises(ValueError, match="mine"), interruptible():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("mine")
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(noted) == 1


def test_where_it_would_be_lost_it_comes_a_moment_later(tmp_path: Path) -> None:
    """As in a callback of a weak reference, whose exceptions the interpreter only prints."""
    deaf = tmp_path / "weakref.py"
    deaf.write_text(
        "def interrupted(signal):\n    signal.raise_signal(signal.SIGINT)\n    return 'through'\n"
    )
    names: dict[str, Any] = {}
    exec(compile(deaf.read_text(), str(deaf), "exec"), names)
    came = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        came.append(names["interrupted"](signal))
        time.sleep(60)
    assert came == ["through"]


def test_in_a_callback_of_our_own_it_is_not_lost_either() -> None:
    class Thing:
        pass

    came = []

    @deaf
    def forget(_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        came.append("through")

    thing = Thing()
    reference = weakref.ref(thing, forget)
    with pytest.raises(KeyboardInterrupt), interruptible():
        del thing
        time.sleep(60)
    assert came == ["through"] and reference() is None


def test_in_other_threads_nothing_happens() -> None:
    handlers = []

    def look() -> None:
        with interruptible():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_generators_are_interruptible_within_their_steps_only() -> None:
    closed = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
            garbled(SystemError)
        finally:
            closed.append(True)

    steps = each(numbers())  # type: ignore[arg-type]
    assert next(steps) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert closed == [True]
