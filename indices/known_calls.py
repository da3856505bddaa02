"""What operators and functions of numba's give, remembered while kernels are compiled.

To find out what ``a + b`` is, numba asks each of a dozen implementations, and does so for every operation of
a function each time that it passes over them.  A third of what compiling took went there.

Invariant: only a call that has a type is remembered, by its function and the types of all arguments, which
say everything.  Calls of kernels and parts, and of methods, are not.

Departs from numba's documented interface: ``pipeline_class=`` is part of it, the typing context that a
pipeline is given is not.

Cost: an entry for each operator and each combination of types, for as long as the process lives.
"""

from __future__ import annotations

import functools
from typing import Any

from numba.core import types
from numba.core.compiler import Compiler
from numba.core.typing import Context


class KnownCalls(Context):
    """Numba's typing context itself, all of whose attributes it shares, with a memory."""

    __slots__ = ("_answers", "_context")

    def __init__(self, context: Context) -> None:
        object.__setattr__(self, "__dict__", context.__dict__)
        self._context = context
        self._answers: dict[Any, Any] = {}

    def resolve_function_type(self, function: Any, arguments: Any, named: Any) -> Any:
        if not _is_known_by_types(function, arguments, named):
            return self._context.resolve_function_type(function, arguments, named)
        call = function, tuple(arguments)
        if call not in self._answers:
            found = self._context.resolve_function_type(function, arguments, named)
            if found is None:
                return None
            self._answers[call] = found
        return self._answers[call]


def _is_known_by_types(function: Any, arguments: Any, named: Any) -> bool:
    if named or isinstance(function, str) or not all(isinstance(one, types.Type) for one in arguments):
        return False
    return type(function) is types.Function if isinstance(function, types.Type) else True


known_calls = functools.cache(KnownCalls)
"""The one of a context."""


class KernelCompiler(Compiler):
    """Numba's pipeline with a memory."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, names: Any
    ) -> None:
        super().__init__(known_calls(typing), target, library, args, returned, flags, names)
