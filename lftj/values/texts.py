"""Functions of strings, and the tests of one string by another.

Characters are code points.  Upper and lower case are those of single characters: ``upper("ß")`` is one
character too.  Places count from 1, as in SQL; a place before the first counts from the end.

Cost: whole-array operations where patterns and places are literals; else row by row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel, Refused


def length(strings: pa.Array) -> pa.Array:
    """Numbers of characters."""
    return pc.utf8_length(strings).cast(pa.int64())


def substring_kernel(start: int | None, wanted: int | None) -> Kernel:
    """What cuts ``wanted`` characters from place ``start`` of each string, where both are literals.

    ``wanted`` None: all to the end.

    >>> substring_kernel(2, 3)(pa.array(["hello", "a"])).to_pylist()
    ['ell', '']
    >>> substring_kernel(-3, 2)(pa.array(["hello", "a"])).to_pylist()
    ['ll', '']
    """
    assert start is not None
    first, last = _slice(start, wanted)
    if first < 0 and last is not None and last >= 0:
        last = None
    return lambda strings: pc.utf8_slice_codeunits(strings, start=first, stop=last)


def substrings(strings: pa.Array, starts: pa.Array, wanted: pa.Array | None = None) -> pa.Array:
    """The same with places of their own for each row.

    >>> substrings(pa.array(["hello", "hello"]), pa.array([1, -7]), pa.array([2, 3])).to_pylist()
    ['he', 'h']
    """
    numbers: Any = [None] * len(strings) if wanted is None else wanted.to_pylist()
    rows = zip(strings.to_pylist(), starts.to_pylist(), numbers, strict=True)
    return pa.array([text[slice(*_slice(start, number))] for text, start, number in rows], strings.type)


def _slice(start: int, wanted: int | None) -> tuple[int, int | None]:
    """First and last place of a Python slice."""
    if wanted is not None and wanted < 0:
        raise Refused("a negative length")
    if start < 0:
        end = None if wanted is None or start + wanted >= 0 else start + wanted
        return start, end
    end = None if wanted is None else max(start - 1 + wanted, 0)
    return max(start - 1, 0), end


def like_pattern(pattern: str) -> str:
    """The regular expression that SQL's ``like`` means: ``%`` for any text, ``_`` for one character.

    >>> like_pattern("a%_.")
    'a.*.\\\\.'
    """
    return "".join({"%": ".*", "_": "."}.get(character, re.escape(character)) for character in pattern)


@lru_cache(maxsize=1024)
def _like(pattern: str) -> re.Pattern[str]:
    return re.compile(like_pattern(pattern), re.DOTALL)


_TESTS: dict[str, tuple[Callable[..., pa.Array], Callable[[str, str], bool]]] = {
    "starts_with": (pc.starts_with, lambda text, pattern: text.startswith(pattern)),
    "ends_with": (pc.ends_with, lambda text, pattern: text.endswith(pattern)),
    "contains": (pc.match_substring, lambda text, pattern: pattern in text),
    "like": (
        lambda strings, pattern: pc.match_substring_regex(strings, rf"\A(?s:{like_pattern(pattern)})\z"),
        lambda text, pattern: _like(pattern).fullmatch(text) is not None,
    ),
}
TESTS = tuple(_TESTS)


def text_test(name: str, pattern: str | None) -> Kernel:
    """What tests strings by a literal ``pattern``, or, where it is None, by one for each row.

    >>> text_test("like", "a%")(pa.array(["ab", "ba"])).to_pylist()
    [True, False]
    >>> text_test("contains", None)(pa.array(["ab", "ba"]), pa.array(["b", "c"])).to_pylist()
    [True, False]
    """
    by_array, by_row = _TESTS[name]
    if pattern is not None:
        return partial(by_array, pattern=pattern)

    def tested(strings: pa.Array, patterns: pa.Array) -> pa.Array:
        rows = zip(strings.to_pylist(), patterns.to_pylist(), strict=True)
        return pa.array([by_row(text, own) for text, own in rows], pa.bool_())

    return tested
