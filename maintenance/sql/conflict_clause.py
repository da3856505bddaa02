"""`conflict_clause`: what an INSERT says of rows whose key is there, apart from the rest of it.

DuckDB's tokens tell it from texts and names with the same words.  What it says is not read here: DuckDB does
it, by its own words, over the rows that it is about (:mod:`maintenance.sql.changing`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lftj.errors import SqlError
from lftj.language.diagnostics import error_at
from lftj.statements.kinds import known_duckdb

_MAY_HAVE_ONE = re.compile(r"\bon\s+conflict\b|\bor\s+(replace|ignore)\b", re.IGNORECASE)


@dataclass(frozen=True)
class ConflictClause:
    """``plain``: the INSERT without the clause, and each other character in its place.

    ``instead``: OR REPLACE or OR IGNORE; else ``behind``: ON CONFLICT and what follows, as they are written.
    ``returning``: RETURNING and its list, or nothing.
    """

    sql: str
    plain: str
    instead: str
    behind: str
    returning: str

    @property
    def replaces(self) -> bool:
        """Whether what is given comes in place of what is there, whatever that is."""
        return self.instead.lower().endswith("replace")

    def of(self, statement: str) -> str:
        """An INSERT of the same rows as it would have the clause."""
        rows = statement.removeprefix("INSERT INTO")
        return f"INSERT {self.instead} INTO{rows} {self.behind} {self.returning}"

    def refused(self, kind: type[SqlError], why: str) -> SqlError:
        """An error about the clause."""
        start = self.sql.rindex(self.behind) if self.behind else self.sql.index(self.instead)
        first_line = (self.instead or self.behind).splitlines()[0]
        return error_at(kind, self.sql, (start, start + len(first_line)), why)

    def told(self, error: Exception) -> SqlError:
        """What DuckDB says of a statement with the clause; a place that it shows is not one of the text."""
        _, _, said = str(error).partition("\n\nLINE ")[0].partition(": ")
        return self.refused(SqlError, said.replace("\n\n", " ").replace("\n", " "))

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Errors about a place of the plain INSERT show the whole one."""
        try:
            yield
        except SqlError as error:
            if error.span is None:
                raise
            raise error_at(type(error), self.sql, error.span, error.reason) from None


def conflict_clause(sql: str) -> ConflictClause | None:
    """Of an INSERT; None: it has none.

    >>> found = conflict_clause("insert into t values (' or replace ') on conflict (a) do nothing;")
    >>> found.behind, found.plain
    ('on conflict (a) do nothing', "insert into t values (' or replace ')                           ;")
    """
    if not _MAY_HAVE_ONE.search(sql):
        return None
    tokens = _tokens(sql)
    words = [word for _, word in tokens]
    ends = [at for at, word in tokens if word in ("returning", ";")] + [len(sql)]
    returning = sql[tokens[words.index("returning")][0] :].rstrip("; \n\t") if "returning" in words else ""
    for place in range(len(words) - 2, 0, -1):
        (at, word), (next_at, next_word) = tokens[place : place + 2]
        if (word, next_word) == ("on", "conflict") and "do" in words[place:]:
            clause = sql[at : next(end for end in ends if end > at)].rstrip()
            return ConflictClause(sql, _without(sql, at, clause), "", clause, returning)
        if words[place - 1] == "insert" and word == "or" and next_word in ("replace", "ignore"):
            clause = sql[at : next_at + len(next_word)]
            return ConflictClause(sql, _without(sql, at, clause), clause, "", returning)
    return None


def _without(sql: str, at: int, clause: str) -> str:
    return sql[:at] + re.sub(r"[^\n]", " ", clause) + sql[at + len(clause) :]


def _tokens(sql: str) -> list[tuple[int, str]]:
    """The places of all tokens, and the words of those that are keywords or signs, in small letters."""
    duckdb, encoded = known_duckdb(), sql.encode()
    found, tokens = [], duckdb.tokenize(sql)
    for (at, type_), end in zip(tokens, [*(at for at, _ in tokens[1:]), len(encoded)], strict=True):
        said = type_ in (duckdb.token_type.keyword, duckdb.token_type.operator)
        word = encoded[at:end].decode().strip().lower() if said else ""
        if type_ != duckdb.token_type.comment:
            found.append((len(encoded[:at].decode()), word))
    return found
