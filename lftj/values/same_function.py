"""Whether two of a user's functions are one: what makes it harmless to register a function again."""

from __future__ import annotations

import inspect
from typing import Any


def same_function(first: Any, second: Any) -> bool:
    """Whether two functions are one, or one text over the same outer values: a cell that ran twice.

    >>> same_function(lambda x: x + 1, lambda x: x + 1), same_function(lambda x: x + 1, lambda x: x + 2)
    (True, False)
    """
    if first is second:
        return True
    codes, outer = [], []
    for function in (first, second):
        plain = getattr(function, "py_func", function)
        if not inspect.isfunction(plain):
            return False
        where = {
            "co_filename": "",
            "co_firstlineno": 1,
            "co_linetable": b"",
            "co_name": "",
            "co_qualname": "",
        }
        codes.append((plain.__code__.replace(**where), plain.__defaults__, plain.__kwdefaults__))  # type: ignore[arg-type]
        seen = inspect.getclosurevars(plain)
        outer.append({**seen.globals, **seen.nonlocals})
    return (
        codes[0] == codes[1]
        and getattr(first, "targetoptions", None) == getattr(second, "targetoptions", None)
        and outer[0].keys() == outer[1].keys()
        and all(outer[0][name] is outer[1][name] for name in outer[0])
    )
