"""What a word that is being typed may become: commands, relations, columns, functions, keywords.

The text is read as far as it goes, by its last signs alone: it is half a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lftj.session.session import ELSEWHERE, HELP, TAKE_RULES, TAKE_SQL, words_of
from lftj.session.sql_statements import is_sql
from lftj.values.functions import FUNCTIONS
from lftj.values.names import AGGREGATES, WINDOWS

if TYPE_CHECKING:
    from lftj.database.database import Database

OF_SQL = (
    *("select", "distinct", "from", "join", "left", "right", "full", "cross", "asof", "on", "using"),
    *("where", "group", "order", "by", "having", "qualify", "limit", "offset", "as", "and", "or", "not"),
    *("in", "exists", "between", "like", "is", "null", "case", "when", "then", "else", "end", "asc", "desc"),
    *("union", "all", "intersect", "except", "with", "recursive", "over", "partition", "filter", "cast"),
    *("create", "replace", "view", "drop", "insert", "into", "values", "update", "set", "delete", "merge"),
)
"""Keywords that are offered in SQL."""

OF_RULES = (
    "asof",
    "bag",
    "bottom",
    "default",
    "distinct",
    "final",
    "key",
    "latest",
    "next",
    "null",
    "stream",
)
"""Words of the rule language beside its functions, aggregates and windows."""

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_LAST_WORD = re.compile(r"\w*\Z")
_TAKING_A_RELATION = re.compile(r"\b(?:from|join|into|update|using|view)\s+\w*\Z", re.IGNORECASE)
_QUALIFIED = re.compile(r"(\w+)\.\w*\Z")
_OPENED = re.compile(r"(\w+)\s*[(\[][^()\[\]]*\Z")
_NESTED = re.compile(r"[(\[][^()\[\]]*[)\]]")


def completions(database: Database, text: str) -> tuple[str, list[str]]:
    """The last word of ``text``, a statement up to the cursor, and what may stand for it, likeliest first.

    >>> import lftj
    >>> db = lftj.Database()
    >>> db.load("orders", [(1, "ann")], columns=["id", "customer"])
    >>> completions(db, ".wat"), completions(db, ".watch o")
    (('.wat', ['.watch']), ('o', ['orders']))
    >>> completions(db, "p(c) <- orders(cu"), completions(db, "select o.i from orders o where o.cu")
    (('cu', ['customer']), ('cu', ['customer']))
    """
    if (command := re.fullmatch(r"\s*(\.\w*)", text)) is not None:
        names = [f".{name}" for name in (*HELP, *ELSEWHERE)]
        return command[1], [name for name in names if name.startswith(command[1])]
    word = _LAST_WORD.search(text)[0]  # type: ignore[index]  # it may be empty, and is always there
    offered: Iterable[str] = database
    name, rest = words_of(text) if text.lstrip().startswith(".") else ("", text)
    if (name in TAKE_SQL or not name) and is_sql(rest):
        offered = _in_sql(database, rest, word)
    elif name in TAKE_RULES or not name:
        offered = _in_rules(database, rest)
    found = dict.fromkeys(offered)
    return word, [one for one in found if one != word and one.lower().startswith(word.lower())]


def _in_sql(database: Database, text: str, word: str) -> Iterator[str]:
    if _TAKING_A_RELATION.search(text):
        yield from database
        return
    named = [name for name in database if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]
    if (qualified := _QUALIFIED.search(text)) is not None:
        alias = rf"\b(\w+)\s+(?:as\s+)?{qualified[1]}\b"
        called = {qualified[1].lower(), *(name.lower() for name in re.findall(alias, text, re.IGNORECASE))}
        for name in named:
            if name.lower() in called:
                yield from database[name].column_names
        return
    for name in named or database:
        yield from database[name].column_names
    yield from (keyword.upper() if word.isupper() else keyword for keyword in OF_SQL)
    yield from database


def _in_rules(database: Database, text: str) -> Iterator[str]:
    outside = text
    while (shorter := _NESTED.sub("", outside)) != outside:
        outside = shorter
    opened = _OPENED.search(outside)
    is_atom = opened is not None and opened[1] in database
    if opened is not None and is_atom:
        yield from database[opened[1]].column_names
    elif "<-" in text:
        yield from database
    if opened is not None or "<-" in text:
        yield from (name for name in _NAME.findall(text) if name not in database)
    if not is_atom:
        yield from sorted({*AGGREGATES, *WINDOWS, *OF_RULES, *filter(str.isidentifier, FUNCTIONS)})
    if opened is None and "<-" not in text:
        yield from (*database, *OF_SQL)
