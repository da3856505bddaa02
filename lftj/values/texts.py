"""Functions of strings, and the tests of one string by another.

Characters are code points.  Upper and lower case are those of single characters: ``upper("ß")`` is one
character too.  Places count from 1, as in SQL; a place before the first counts from the end.

Cost: whole-array operations where patterns and places are literals; else row by row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel, Refused


def length(strings: pa.Array) -> pa.Array:
    """Numbers of characters."""
    return pc.utf8_length(strings).cast(pa.int64())


def joined_known(separators: pa.Array, first: pa.Array, *others: pa.Array) -> pa.Array:
    """The strings of each row that are not NULL behind each other, separated; NULL where the separator is.

    >>> joined_known(pa.array(["-"] * 2), pa.array(["a", None]), pa.array(["b", None])).to_pylist()
    ['a-b', '']
    """
    nothing = reduce(pc.and_, (strings.is_null() for strings in (first, *others)))
    first = pc.if_else(nothing, "", first)  # Arrow leaves out rows of nothing but NULL
    return pc.binary_join_element_wise(first, *others, separators, null_handling="skip")


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
    """First and last place of a Python slice; a length below 0 counts to the left."""
    if wanted is not None and wanted < 0:
        return (start + wanted, start) if start < 0 else (max(start - 1 + wanted, 0), max(start - 1, 0))
    if start < 0:
        end = None if wanted is None or start + wanted >= 0 else start + wanted
        return start, end
    end = None if wanted is None else max(start - 1 + wanted, 0)
    return max(start - 1, 0), end


def like_pattern(pattern: str, escape: str | None = None) -> str:
    """The regular expression that SQL's ``like`` means: ``%`` for any text, ``_`` for one character.

    Behind the character ``escape`` one stands for itself.  Raises :class:`Refused`.

    >>> like_pattern("a%_."), like_pattern("5!%", "!")
    ('a.*.\\\\.', '5%')
    """
    written, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if not character:
                raise Refused(f'the pattern "{pattern}" ends with its escape')
            written.append(re.escape(character))
        else:
            written.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return "".join(written)


def like(pattern: str, escape: str | None = None) -> Kernel:
    """What tests strings by ``like``.  Raises :class:`Refused`.

    >>> like("a%")(pa.array(["ab", "ba"])).to_pylist()
    [True, False]
    """
    if escape is not None and len(escape) != 1:
        raise Refused(f'an escape is one character, not "{escape}"')
    regular = rf"\A(?s:{like_pattern(pattern, escape)})\z"
    return lambda strings: pc.match_substring_regex(strings, regular)


def position(part: str) -> Kernel:
    """What gives the place at which strings have a part first; 0 where they lack it.

    >>> position("b")(pa.array(["abb", "é😀b", "a"])).to_pylist()
    [2, 3, 0]
    """

    def placed(strings: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(strings)).as_py():
            return pc.add(pc.find_substring(strings, part).cast(pa.int64()), 1)
        return pa.array([text.find(part) + 1 for text in strings.to_pylist()], pa.int64())

    return placed


def replacing(part: str, other: str) -> Kernel:
    """What writes another text for each occurrence of a part, which is not empty.

    >>> replacing("aa", "b")(pa.array(["aaaa", "c"])).to_pylist()
    ['bb', 'c']
    """
    if not part:
        return lambda strings: strings
    return lambda strings: pc.replace_substring(strings, pattern=part, replacement=other)


def trimming(side: str, characters: str = " ") -> Kernel:
    """What takes characters away from both ends of strings, or from one: ``trim``, ``ltrim``, ``rtrim``.

    >>> trimming("ltrim", "xy")(pa.array(["xyaxy"])).to_pylist()
    ['axy']
    """
    return partial(TRIMS[side], characters=characters)


TRIMS: dict[str, Kernel] = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}


def part_between(separator: str, number: int) -> Kernel:
    """What gives a part of strings that are parted by a separator, by number from 1, or from -1 at the end.

    Empty where there is no such part.  An empty separator parts all characters.  Raises :class:`Refused`.

    >>> part_between("-", 2)(pa.array(["a-b-c", "a"])).to_pylist()
    ['b', '']
    """
    if number == 0:
        raise Refused("parts are numbered from 1, or from -1 at the end")

    def parted(strings: pa.Array) -> pa.Array:
        return pa.array([_part(text, separator, number) for text in strings.to_pylist()], strings.type)

    return parted


def _part(text: str, separator: str, number: int) -> str:
    parts = text.split(separator) if separator else list(text)
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def by_options(make: Callable[..., Kernel], result: pa.DataType) -> Kernel:
    """A kernel of strings and options from one that is made for options: rows with equal ones go together.

    >>> part = by_options(part_between, pa.string())
    >>> part(pa.array(["a-b", "c-d"]), pa.array(["-", "-"]), pa.array([1, 2])).to_pylist()
    ['a', 'd']
    """

    def kernel(strings: pa.Array, *options: pa.Array) -> pa.Array:
        rows: dict[tuple[Any, ...], list[int]] = {}
        for row, chosen in enumerate(zip(*(column.to_pylist() for column in options), strict=True)):
            rows.setdefault(chosen, []).append(row)
        places = [pa.array(its, pa.int64()) for its in rows.values()]
        made = [make(*chosen)(strings.take(its)) for chosen, its in zip(rows, places, strict=True)]
        if not made:
            return pa.array([], result)
        return pa.concat_arrays(made).take(pc.sort_indices(pa.concat_arrays(places)))

    return kernel


@lru_cache(maxsize=1024)
def _like(pattern: str) -> re.Pattern[str]:
    return re.compile(like_pattern(pattern), re.DOTALL)


_TESTS: dict[str, tuple[Callable[..., pa.Array], Callable[[str, str], bool]]] = {
    "starts_with": (pc.starts_with, lambda text, pattern: text.startswith(pattern)),
    "ends_with": (pc.ends_with, lambda text, pattern: text.endswith(pattern)),
    "contains": (pc.match_substring, lambda text, pattern: pattern in text),
    "like": (
        lambda strings, pattern: like(pattern)(strings),
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
