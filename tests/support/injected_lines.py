"""Exceptions at any line of our packages, and looks at what is there, injected by ``sys.settrace``."""

from __future__ import annotations

import ast
import dis
import functools
import sys
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import lftj
from lftj.evaluation.plans import _Bound

PACKAGES = tuple(
    str(Path(lftj.__file__).parent.parent / name) + "/" for name in ("indices", "lftj", "maintenance")
)


class Injected(KeyboardInterrupt):
    """An interruption at a chosen place."""


Line = tuple[str, int]

CALLBACKS = {_Bound._forget.__code__}
"""Called by the interpreter when an object goes, which only prints what they raise."""


@functools.cache
def starts(code: CodeType) -> dict[int, int]:
    """The offset of the first instruction of each line of a ``with`` statement's head, by line."""
    found: dict[int, int] = {}
    for offset, line in dis.findlinestarts(code):
        if line in with_heads(code.co_filename):
            found.setdefault(line, offset)
    return found


@functools.cache
def lines_of(code: CodeType) -> set[int]:
    return {code.co_firstlineno, *(line for _, line in dis.findlinestarts(code))}


@functools.cache
def with_heads(filename: str) -> set[int]:
    nodes = (node for node in ast.walk(ast.parse(Path(filename).read_text())) if isinstance(node, ast.With))
    return {line for node in nodes for line in range(node.lineno, node.body[0].lineno)}


class Lines:
    """Counts how often our packages' code comes to each line, and raises at one of these times.

    The end of a ``with`` block is traced as its head, before ``__exit__`` and out of its reach.  No signal is
    taken there (bpo-29988), so nothing is raised there either; nor in callbacks, out of which nothing comes.
    """

    def __init__(self, at: Line | None = None, nth: int = 0, error: type[BaseException] = Injected) -> None:
        self.at, self.nth, self.error = at, nth, error
        self.counts: defaultdict[Line, int] = defaultdict(int)

    def __enter__(self) -> Lines:
        self._before = sys.gettrace()
        sys.settrace(self._traced())
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)

    def _traced(self) -> Any:
        """A call is the line of its ``def``; only code with the wanted line is followed."""
        steps: dict[int, tuple[CodeType, Any]] = {}  # by id: code objects are slow to compare

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            code = frame.f_code
            known = steps.get(id(code))
            if known is None:
                known = steps[id(code)] = code, self._step_of(code) if self._is_followed(code) else None
            step = known[1]
            return step and step(frame, event, argument)

        return trace

    def _is_followed(self, code: CodeType) -> bool:
        if self.at:
            return code.co_filename == self.at[0] and self.at[1] in lines_of(code)
        return code.co_filename.startswith(PACKAGES) and code not in CALLBACKS

    def _step_of(self, code: CodeType) -> Any:
        """What traces one function: it runs at each of the lines."""
        filename, offsets, counts, at = code.co_filename, starts(code), self.counts, self.at

        def step(frame: FrameType, event: str, argument: object) -> Any:
            number, offset = frame.f_lineno, frame.f_lasti
            if event == "call" or (event == "line" and offsets.get(number, offset) == offset):
                line = filename, number
                counts[line] += 1
                if line == at and counts[line] == self.nth:
                    raise self.error(f"{filename}:{number}, time {self.nth}")
            return step

        return step


class AtEachLine:
    """Calls ``act`` before each line of some modules, and behind each function, of the thread that enters it.

    What ``act`` does in that thread is not traced.
    """

    def __init__(self, modules: Collection[ModuleType], act: Callable[[], object]) -> None:
        self._files = {module.__file__ for module in modules}
        self._act = act

    def __enter__(self) -> AtEachLine:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        if event in ("line", "return"):
            self._act()
        return self._trace
