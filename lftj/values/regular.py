"""Regular expressions of strings: a test, replacement, extraction.

They are RE2's, as DuckDB's are: matching takes linear time, there are no backward references in a pattern,
and ``.`` is no line feed.  In a replacement ``\\1`` to ``\\9`` are what the groups have matched, and ``\\0``
the whole match.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lftj.values.arithmetic import Kernel, Refused

MOST_GROUPS = 8
"""The last group that can be extracted."""


def matching(pattern: str) -> Kernel:
    """What tests whether a pattern matches anywhere in strings.  Raises :class:`Refused`.

    >>> matching("b+")(pa.array(["abb", "a"])).to_pylist()
    [True, False]
    """
    return _tried(partial(pc.match_substring_regex, pattern=pattern))


def replacing(pattern: str, replacement: str, which: str = "") -> Kernel:
    """What replaces the first match, or all where ``which`` is ``"g"``.  Raises :class:`Refused`.

    >>> replacing("(a)(b)", r"\\2\\1")(pa.array(["abab"])).to_pylist()
    ['baab']
    >>> replacing("a", "", "g")(pa.array(["abab"])).to_pylist()
    ['bb']
    """
    if which not in ("", "g"):
        raise Refused(f'the fourth argument is "g" or left out, not "{which}"')
    most = None if which else 1
    return _tried(
        partial(pc.replace_substring_regex, pattern=pattern, replacement=replacement, max_replacements=most)
    )


def extracting(pattern: str, group: int = 0) -> Kernel:
    """What gives the text of the first match, or of a group of it; an empty one where nothing matches.

    Raises :class:`Refused`.

    >>> extracting("b(c?)", 1)(pa.array(["abc", "ab", "a"])).to_pylist()
    ['c', '', '']
    """
    if not 0 <= group <= MOST_GROUPS:
        raise Refused(f"there is no group {group}: they are 0 to {MOST_GROUPS}")
    matches = matching(pattern)
    whole = rf"\A(?s:.*?)({pattern})(?s:.*)\z"  # the leftmost match, as a search finds it
    text = replacing(whole, rf"\{group + 1}")
    return lambda strings: pc.if_else(matches(strings), text(strings), pa.scalar("", strings.type))


def _tried(kernel: Kernel) -> Kernel:
    """A kernel that does not fail for its pattern or its replacement."""
    try:
        kernel(pa.array([""]))
    except pa.ArrowInvalid as error:
        reason = str(error).rstrip(".")
        raise Refused(reason[:1].lower() + reason[1:]) from None
    return kernel
