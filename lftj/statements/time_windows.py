"""TUMBLE and HOP, functions of a table that give its rows once for each window that their time falls into.

``tumble(data, timecol, size, "offset")`` and ``hop(data, timecol, slide, size, "offset")`` are macros of
DuckDB: the columns of ``data``, ``window_start`` and ``window_end``, which is not within.  Windows lie as
those of ``time_bucket``; a row without a time is in none.

Invariants

1. Places in a macro's own text lie behind the end of any statement.
2. :func:`as_call` changes no place of a text.

Source: SQL:2016, 10.4 (polymorphic table functions); Apache Flink, "Windowing table-valued functions";
RisingWave, "Time windows".
"""

from __future__ import annotations

import re

_FAR = 1_000_000
"""Characters before a macro's text."""

_START = 'time_bucket({length}, timecol{back}, "offset")'
_MACRO = """CREATE MACRO {name}(data, timecol, {lengths}size, "offset" := INTERVAL 0 SECONDS) AS TABLE
SELECT *, window_start + size AS window_end
FROM (SELECT *, {start} AS window_start FROM query_table(data))
WHERE window_start IS NOT NULL"""

_STARTS = "unnest(range({} + slide, {} + slide, slide))".format(
    _START.format(length="slide", back=" - size"), _START.format(length="slide", back="")
)
MACROS = (
    " " * _FAR + _MACRO.format(name="tumble", lengths="", start=_START.format(length="size", back="")),
    " " * _FAR + _MACRO.format(name="hop", lengths="slide, ", start=_STARTS),
    "CREATE MACRO date_bin(stride, source, origin) AS time_bucket(stride, source, origin)",
)
"""What makes them, and PostgreSQL's name of ``time_bucket``, once for a DuckDB."""

NAMES = ("tumble", "hop")
_WORD = re.compile(r'"(?:[^"]|"")*"|\w+|=>|.', re.DOTALL)


def as_call(sql: str) -> str:
    """A text that says ``TABLE(TUMBLE(TABLE bid, DESCRIPTOR(t), ...))`` as the call of a macro.

    >>> as_call("FROM TABLE(HOP(TABLE bid, DESCRIPTOR(t), INTERVAL 1 SECOND, INTERVAL 2 SECOND)) b")
    'FROM       HOP(      bid,            t , INTERVAL 1 SECOND, INTERVAL 2 SECOND)  b'
    """
    if "descriptor" not in sql.casefold():
        return sql
    words = _words(sql)
    said = [word.casefold() for _, word in words]
    gone: list[int] = []
    for place, word in enumerate(said):
        before, behind = said[max(place - 4, 0) : place], said[place + 1 : place + 3]
        around = word == "descriptor" or (word == "table" and behind[-1:] != [] and behind[-1] in NAMES)
        if around and behind[:1] == ["("]:
            gone += [place, place + 1, _closing(said, place + 1)]
        elif word == "table" and (before[-1:] == ["("] or before[-2:] == ["data", "=>"]):
            call = before[:-1] if before[-1] == "(" else before[:-3]
            if call[-1:] and call[-1] in NAMES:
                gone.append(place)
    characters = list(sql)
    for start, word in (words[place] for place in gone if place < len(words)):
        characters[start : start + len(word)] = " " * len(word)
    return "".join(characters)


def _words(sql: str) -> list[tuple[int, str]]:
    """Where each word of a text begins, in characters; literals and comments are none."""
    import duckdb

    encoded, skipped = sql.encode(), (duckdb.token_type.comment, duckdb.token_type.string_const)
    found, at, character = [], 0, 0
    for start, type_ in duckdb.tokenize(sql):
        character += len(encoded[at:start].decode())
        at = start
        word = _WORD.match(sql, character)
        if type_ not in skipped and word is not None:
            found.append((character, word.group()))
    return found


def _closing(said: list[str], opening: int) -> int:
    """The parenthesis that closes one; behind the end where none does."""
    depth = 0
    for place in range(opening, len(said)):
        depth += (said[place] == "(") - (said[place] == ")")
        if depth == 0:
            return place
    return len(said)
