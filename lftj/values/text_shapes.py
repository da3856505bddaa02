"""Texts padded, cut, repeated and rewritten, by DuckDB's names and results.

Each function makes a kernel of its options: :data:`TABLE`.  Characters are code points.

Cost: row by row, where Arrow has no operation of the kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lftj.values import regular, texts
from lftj.values.arithmetic import Kernel, Refused


def _each(change: Callable[[str], str]) -> Kernel:
    return lambda strings: pa.array([change(text) for text in strings.to_pylist()], strings.type)


def padding(at_left: bool, length: int, characters: str) -> Kernel:
    """What brings strings to a length: longer ones are cut, shorter ones padded with the characters in turn.

    Raises :class:`Refused`.

    >>> padding(True, 4, "xy")(pa.array(["a", "abcde"])).to_pylist()
    ['xyxa', 'abcd']
    """

    def padded(text: str) -> str:
        missing = length - len(text)
        if missing <= 0:
            return text[: max(length, 0)]
        if not characters:
            raise Refused("nothing to pad with")
        fill = (characters * (missing // len(characters) + 1))[:missing]
        return fill + text if at_left else text + fill

    return _each(padded)


def first_characters(number: int) -> Kernel:
    """So many from the left; below 0 all but so many at the right.

    >>> [first_characters(number)(pa.array(["abc"])).to_pylist() for number in (2, -1)]
    [['ab'], ['ab']]
    """
    return lambda strings: pc.utf8_slice_codeunits(strings, 0, number)


def last_characters(number: int) -> Kernel:
    """So many from the right; below 0 all but so many at the left.

    >>> [last_characters(number)(pa.array(["abc"])).to_pylist() for number in (2, -1)]
    [['bc'], ['bc']]
    """
    return _each(lambda text: text[max(len(text) - number, 0) :] if number >= 0 else text[-number:])


def repeating(number: int) -> Kernel:
    """So many times; none below 1."""
    return lambda strings: pc.binary_repeat(strings, max(number, 0))


def translating(these: str, others: str) -> Kernel:
    """Each character of ``these`` as that of ``others`` in its place; without one there, it goes.

    >>> translating("abc", "xy")(pa.array(["aabbcc"])).to_pylist()
    ['xxyy']
    """
    table: dict[int, str] = {}
    for place, character in enumerate(these):
        table.setdefault(ord(character), others[place : place + 1])
    return _each(lambda text: text.translate(table))


def characters(codes: pa.Array) -> pa.Array:
    """The characters of code points.  Raises :class:`Refused` where there is none."""
    numbers = codes.to_pylist()
    if any(not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000 for code in numbers):
        raise Refused("no code of a character")
    return pa.array([chr(code) for code in numbers], pa.string())


def splitting(separator: str) -> Kernel:
    """What parts strings at a separator; at each character where it is empty.

    >>> splitting("-")(pa.array(["a-b", "", "-"])).to_pylist()
    [['a', 'b'], [''], ['', '']]
    """

    def parts(text: str) -> list[str]:
        return text.split(separator) if separator else list(text)

    return lambda strings: pa.array([parts(text) for text in strings.to_pylist()], _PARTS)


_PARTS = pa.list_(pa.string())


def like_in_any_case(pattern: str) -> Kernel:
    """``like`` of both in lower case.

    >>> like_in_any_case("A%")(pa.array(["ab", "ba"])).to_pylist()
    [True, False]
    """
    like = texts.like(pc.utf8_lower(pa.scalar(pattern)).as_py())
    return lambda strings: like(pc.utf8_lower(strings))


def matching_whole(pattern: str) -> Kernel:
    """Whether a regular expression matches all of a string.  Raises :class:`Refused`."""
    regular.matching(pattern)
    return regular.matching(rf"\A(?:{pattern})\z")


def _first_code(strings: pa.Array) -> pa.Array:
    return pa.array([ord(text[0]) if text else 0 for text in strings.to_pylist()], pa.int64())


TABLE: dict[str, tuple[Callable[..., Kernel], str, pa.DataType | None]] = {
    "lpad": (partial(padding, True), "is", None),
    "rpad": (partial(padding, False), "is", None),
    "left": (first_characters, "i", None),
    "right": (last_characters, "i", None),
    "repeat": (repeating, "i", None),
    "translate": (translating, "ss", None),
    "reverse": (lambda: pc.utf8_reverse, "", None),
    "string_split": (splitting, "s", _PARTS),
    "ascii": (lambda: _first_code, "", pa.int64()),
    "ilike": (like_in_any_case, "s", pa.bool_()),
    "regexp_full_match": (matching_whole, "s", pa.bool_()),
}
"""What makes the kernel, the kinds of its options (``s``: a string, ``i``: an integer), and the type of the
result; None: a string.  What gives a boolean is a test."""
