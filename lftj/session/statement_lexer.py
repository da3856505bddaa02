"""Colours for statements as they are typed at a prompt: a command, and behind it rules or SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers.sql import SqlLexer
from pygments.token import Keyword

from lftj.language.pygments_lexer import RulesLexer
from lftj.session.sql_statements import is_sql


class StatementLexer(Lexer):
    """The statements of :class:`~lftj.session.session.Session`.

    >>> tokens = StatementLexer().get_tokens_unprocessed(".count select 1")
    >>> [value for _, kind, value in tokens if kind in Keyword]
    ['.count', 'select']
    """

    name = "lftj statements"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """The place, kind and text of each token; together they are the text."""
        command = re.match(r"\s*\.\w*", text)
        start = command.end() if command is not None else 0
        if command is not None:
            yield 0, Keyword, command[0]
        rest = text[start:]
        lexer = SqlLexer() if is_sql(rest) else RulesLexer()
        for place, kind, value in lexer.get_tokens_unprocessed(rest):
            yield start + place, kind, value
