"""Messages about a place in a program's text: the line, a caret under the place, the nearest name.

Warnings are about a place in the caller's own code (:func:`warn_caller`).

Every error of the rule language is made by :func:`error_at`, so that its
``str()`` shows the place and its ``span`` holds it.
"""

from __future__ import annotations

import difflib
import sys
import unicodedata
import warnings
from collections.abc import Iterable
from typing import TypeVar

from indices.callers import OWN_FILES
from lftj.errors import RuleError, UnknownRelationError
from lftj.language.syntax import Span

_MAX_LINE = 100  # characters of a line that are shown
_LEAD = 40  # characters shown before the caret in a longer line
_MAX_NAMES = 8  # names listed when none is near

Error = TypeVar("Error", bound=RuleError)


Told = TypeVar("Told", bound=Exception)


def with_rule(error: Told, text: str) -> Told:
    """The error of a rule's evaluation with the rule's text below its message, once."""
    message = str(error)
    return type(error)(message if message.endswith(text) else f"{message}\n  {text}")


def error_at(error: type[Error], text: str, span: Span | None, message: str) -> Error:
    """An error of the given class with the rendered place as its message and ``span`` set, where it is known.

    >>> raise error_at(RuleError, "a(x) <- b(x).", (8, 9), "no such thing")
    Traceback (most recent call last):
        ...
    lftj.errors.RuleError: no such thing
      a(x) <- b(x).
              ^
    """
    found = error(message if span is None else render(text, span, message), span)
    found.reason = message
    return found


def render(text: str, span: Span, message: str) -> str:
    """The message, the line that ``span`` starts in, and carets under it.

    A program of several lines has the line's number behind the message's first
    line.  A span over several lines is marked to the end of its first line, an
    empty one by one caret.

    >>> print(render("a(x) <- b(x).\\nc(x) <- d(x).", (22, 23), "unknown relation 'd'"))
    unknown relation 'd' (line 2)
      c(x) <- d(x).
              ^
    """
    start = min(max(span[0], 0), len(text))
    end = min(max(span[1], start), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    line = text[line_start:line_end].rstrip("\r")
    first = start - line_start
    last = min(end - line_start, len(line))
    if "\n" in text.strip():
        number = text.count("\n", 0, start) + 1
        head, newline, rest = message.partition("\n")
        message = f"{head} (line {number}){newline}{rest}"
    line, first, last = _window(line, first, last)
    # Tabs stay tabs, so that the caret stands right whatever their width.
    padding = "".join("\t" if character == "\t" else " " * _width(character) for character in line[:first])
    carets = "^" * max(1, sum(_width(character) for character in line[first:last]))
    return f"{message}\n  {line}\n  {padding}{carets}"


def quoted_list(words: Iterable[str], conjunction: str = "or") -> str:
    """``'a', 'b' or 'c'``.

    >>> quoted_list(["a", "b", "c"]), quoted_list(["a"])
    ("'a', 'b' or 'c'", "'a'")
    """
    quoted = [f"'{word}'" for word in words]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to put behind "unknown ...": the nearest known name, else the known names.

    >>> suggestion("egde", ["node", "edge"])
    "; did you mean 'edge'?"
    >>> suggestion("x", ["node", "edge"])
    "; there are 'edge' and 'node'"
    """
    names = sorted(set(known))
    by_folded = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{by_folded[near[0]]}'?"
    if not names:
        return "; there are none"
    if len(names) == 1:
        return f"; there is '{names[0]}'"
    if len(names) <= _MAX_NAMES:
        return f"; there are {quoted_list(names, 'and')}"
    shown = ", ".join(f"'{candidate}'" for candidate in names[:_MAX_NAMES])
    return f"; there are {shown} and {len(names) - _MAX_NAMES} more"


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownRelationError:
    """The error of a call that names something which is not there.

    ``kind``: what it should be the name of.

    >>> unknown_name("head", "tir", ["tri", "pale"])
    UnknownRelationError("unknown head 'tir'; did you mean 'tri'?")
    >>> unknown_name("relation", 3, ["edge"])
    UnknownRelationError("unknown relation 3: names are text; there is 'edge'")
    """
    if isinstance(name, str):
        return UnknownRelationError(f"unknown {kind} {name!r}{suggestion(name, known)}")
    return UnknownRelationError(f"unknown {kind} {name!r}: names are text{suggestion('', known)}")


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn about the line outside our packages that the call came from, however deep inside we are."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN_FILES):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _window(line: str, first: int, last: int) -> tuple[str, int, int]:
    """The part of a long line around the place, with ``...`` where it was cut."""
    if len(line) <= _MAX_LINE:
        return line, first, last
    start = max(0, min(first - _LEAD, len(line) - _MAX_LINE))
    end = min(len(line), start + _MAX_LINE)
    before = "..." if start else ""
    after = "..." if end < len(line) else ""
    shift = len(before) - start
    return before + line[start:end] + after, first + shift, min(last, end) + shift


def _width(character: str) -> int:
    """Columns that a terminal gives a character."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
