"""Colours for the rule language: a lexer of Pygments, found by its name, as from fences of the site.

It follows ``grammar.lark`` and is more lenient: what is being typed has colours, too.  A word is a name,
unless it stands where the grammar has a keyword for it: ``key`` before a name, ``late`` before a duration.
No text is lost: the tokens put together are the text.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, Punctuation, String, Text

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TIME = r"\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"


class RulesLexer(RegexLexer):
    """The rules of lftj."""

    name = "lftj rules"
    aliases: ClassVar = ["lftj", "datalog"]
    filenames: ClassVar = ["*.rules"]
    tokens: ClassVar = {
        "root": [
            (r"[ \t\r\n\f]+", Text.Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r'x"[^"\n]*"', String.Other),
            (r'"(?:[^"\\\n]|\\.)*"', String.Double),
            (rf"\d{{4}}-\d\d-\d\d(?:T{_TIME})?(?!\d)", Literal.Date),
            (r"\d+(?:\.\d+)?[eE][+-]?\d+", Number.Float),
            (r"\d+(?:d|h|ms|m|us|s)\b", Literal.Date),
            (r"\d+\.\d+", Number.Float),
            (r"\d+", Number.Integer),
            (r"\$" + _NAME, Name.Variable.Global),
            (r"<=>|<!=>|<-", Operator),
            (r"<=|>=|!=|\|\||[-<>=+*/%!]", Operator),
            (rf"(?:bag|key|stream|final)(?=\s+{_NAME})", Keyword.Declaration),
            (r"(?:late|keep|ahead)(?=\s+\d)", Keyword.Declaration),
            (r"asof\s+now\b|not\s+(?:in|like)\b|is\s+(?:not\s+)?null\b|nulls\s+(?:first|last)\b", Keyword),
            (words(("true", "false", "null"), suffix=r"\b(?!\s*[(\[:])"), Keyword.Constant),
            (r"distinct(?=\s+(?!if\b)[A-Za-z_])|if\b(?=\s*[^\s,)(])", Keyword),
            (words(("default", "in", "like", "escape", "asc", "desc"), suffix=r"\b(?!\s*:)"), Keyword),
            (rf"{_NAME}(?=\s*[(\[])", Name.Function),
            (rf"{_NAME}(?=\s*:)", Name.Attribute),
            (r"_\b", Name.Builtin.Pseudo),
            (_NAME, Name.Variable),
            (r"[()\[\]{},;:.]", Punctuation),
        ]
    }
