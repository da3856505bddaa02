"""What a user's function says: whether two are one, in a process and from one to the next.

In a process functions are one that have the same code over the same objects.  For other processes there is a
digest of the code, of the functions that it calls, and of plain values that it reads from outside.  Other
objects that it uses, and modules, are known by their names alone: a change in them is not noticed.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


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


def digest_of(function: Any, *declared: object) -> str:
    """A hash of what a function says, and of what is declared of it; the same in every process.

    >>> digest_of(lambda x: x + 1) == digest_of(lambda x: x + 1)
    True
    >>> digest_of(lambda x: x + 1) == digest_of(lambda x: x + 2)
    False
    """
    text = "\n".join([*map(str, declared), *_said(function, set())])
    return hashlib.sha256(text.encode()).hexdigest()


def _said(function: Any, seen: set[int]) -> Iterator[str]:
    plain = getattr(function, "py_func", function)
    if not inspect.isfunction(plain):
        yield f"{type(plain).__module__}.{type(plain).__qualname__} {getattr(plain, '__qualname__', '')}"
        return
    if id(plain) in seen:
        return
    seen.add(id(plain))
    yield from _said_by_code(plain.__code__)
    outside = plain.__globals__
    outer = {name: outside[name] for name in _names(plain.__code__) if name in outside}
    cells = [cell.cell_contents for cell in plain.__closure__ or ()]
    outer |= zip(plain.__code__.co_freevars, cells, strict=True)
    outer |= {f"default {place}": value for place, value in enumerate(plain.__defaults__ or ())}
    outer |= plain.__kwdefaults__ or {}
    for name in sorted(outer):
        value = outer[name]
        yield name
        if inspect.isfunction(getattr(value, "py_func", value)):
            yield from _said(value, seen)
        elif isinstance(value, _PLAIN):
            yield repr(value)


def _said_by_code(code: CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _said_by_code(constant)
        elif isinstance(constant, frozenset):
            yield " ".join(sorted(map(repr, constant)))
        else:
            yield repr(constant)


def _names(code: CodeType) -> set[str]:
    """Names that the code, or code within it, looks up outside of itself."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names}.union(*map(_names, inner))
