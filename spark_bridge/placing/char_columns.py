"""Columns of type ``char(n)``: Spark holds values padded with spaces, and pads again where it compares them.

Here values are compared as they are held.  Two columns of one length, or one and a string that is no
``char``, compare as in Spark then.  Columns of two lengths do not, nor a column and a literal of another
length: these are refused.

Spark shows the type of a table's column as ``string`` with a note of what it is, or as what it is where
``spark.sql.preserveCharVarcharTypeInfo`` is on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import CharType, StructField

from lftj.errors import TypeClashError
from lftj.language.conditionals import COMPARISONS
from lftj.language.expressions import calls_of
from lftj.language.syntax import (
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Rule,
    Variable,
    flat,
)

_NOTE = "__CHAR_VARCHAR_TYPE_STRING"

Lengths = Mapping[str, Sequence[set[int]]]
"""By relation, of each column its length, or those that a head's rules give; none of what is no ``char``."""


def char_length(field: StructField) -> int | None:
    """The n of a column of type ``char(n)``; None of others."""
    if isinstance(field.dataType, CharType):
        return int(field.dataType.length)
    noted = re.fullmatch(r"char\((\d+)\)", str((field.metadata or {}).get(_NOTE, "")))
    return int(noted[1]) if noted else None


def padded(column: Column, field: StructField) -> Column:
    """Values for a column as Spark writes them to it: those of ``char(n)`` with n characters at least."""
    n = char_length(field)
    return column if n is None else F.when(F.length(column) < n, F.rpad(column, n, " ")).otherwise(column)


def refuse_padded(rules: Sequence[tuple[str, Rule]], lengths: Lengths) -> Lengths:
    """The lengths of the heads, too.  Raises TypeClashError where rules compare what Spark would pad first.

    ``rules``: each with the text that it stands in.  Heads that depend on themselves are gone through until
    nothing is added.
    """
    known = {name: list(of) for name, of in lengths.items()}
    if not any(n for of in lengths.values() for n in of):
        return known
    before: object = None
    while before != known:
        before = {name: [set(of) for of in columns] for name, columns in known.items()}
        for text, rule in rules:
            found = _Compared(text)
            found.body(rule.body, known)
            for head in rule.heads:
                columns = known.setdefault(head.relation, [set() for _ in head.columns])
                for of, term in zip(columns, head.columns, strict=False):
                    if isinstance(term, Variable):
                        of |= found.lengths[term.name]
    return known


class _Compared:
    """The lengths of a rule's variables, and what they are compared with."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.lengths: defaultdict[str, set[int]] = defaultdict(set)

    def body(self, body: Sequence[Literal], known: Mapping[str, Sequence[set[int]]]) -> None:
        literals = list(flat(body))
        for literal in literals:
            if isinstance(literal, Atom):
                for term, of in zip(literal.terms, known.get(literal.relation, ()), strict=False):
                    if isinstance(term, Variable):
                        self._meet(term.name, self.lengths[term.name] | of)
                        self.lengths[term.name] |= of
                    elif isinstance(term, Constant):
                        self._meet(f"column of {literal.relation}", of, term)
        for literal in literals:
            if isinstance(literal, Comparison):
                self._compare(literal.left, literal.right)
                for call in (*calls_of(literal.left), *calls_of(literal.right)):
                    if call.function in ("in", *COMPARISONS):
                        for value in call.arguments[1:]:
                            self._compare(call.arguments[0], value)

    def _compare(self, left: Expression, right: Expression) -> None:
        for side, other in ((left, right), (right, left)):
            if isinstance(side, Variable):
                if isinstance(other, Variable):
                    self._meet(side.name, self.lengths[side.name] | self.lengths[other.name])
                elif isinstance(other, Constant):
                    self._meet(side.name, self.lengths[side.name], other)

    def _meet(self, what: str, lengths: set[int], literal: Constant | None = None) -> None:
        shown = [f"char({n})" for n in sorted(lengths)]
        text = literal.value if literal is not None else None
        if isinstance(text, str) and lengths and lengths != {len(text)}:
            shown.append(f"a literal of {len(text)} characters")
        if len(shown) > 1:
            raise TypeClashError(
                f"'{what}' compares {' and '.join(shown)}, which Spark would pad with spaces to one length:"
                f" cast the columns to string, or rtrim() them\n  {self._text.strip()}"
            )
