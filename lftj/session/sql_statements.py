"""Texts of SQL as they are typed and as files hold them: told from rules, cut into statements, read as views.

DuckDB's parser reads each statement later, and says what is wrong with it (:mod:`lftj.sql`); here it is only
found where one begins and ends.  Nothing is imported for that, so a prompt can ask with each line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath

from lftj.errors import LftjError, RuleError, SqlError
from lftj.language.diagnostics import error_at

_BLANK = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)"
_PARTS = re.compile(
    r"""\b[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z)
      | \$(\w*)\$.*?(?:\$\1\$|\Z) | --[^\n]* | /\*.*?(?:\*/|\Z) | (?P<end>;)""",
    re.VERBOSE | re.DOTALL,
)
"""Texts, names and comments, in which a semicolon ends nothing, and one that does."""

_SQL = re.compile(
    rf"{_BLANK}*(?:\(\s*)*(?:select|with|from|values|pivot|unpivot|insert|update|delete|truncate|merge"
    r"|(?:create|drop)\s+(?:\w+\s+)*(?:view|table))\b",
    re.IGNORECASE | re.DOTALL,
)
_RULE = re.compile(r"\s*\w+\s*[(\[](?:[^()]|\([^()]*\))*[)\]]\s*(?:=[^<]*)?<-")
"""A head called as a keyword of SQL."""

_NAME = r'(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>\w+))'
_CREATE = re.compile(
    rf"{_BLANK}*create\s+(?P<replace>or\s+replace\s+)?(?:materialized\s+)?view\s+{_NAME}\s*as\b{_BLANK}*",
    re.IGNORECASE | re.DOTALL,
)
_DROP = re.compile(rf"{_BLANK}*drop\s+(?:materialized\s+)?view\s+{_NAME}\s*\Z", re.IGNORECASE | re.DOTALL)


def is_sql(text: str) -> bool:
    """Whether a text begins as SQL does, and not as a rule.

    >>> [is_sql(text) for text in ("-- all\\nselect 1", "(FROM t)", "create or replace view v as from t")]
    [True, True, True]
    >>> [is_sql(text) for text in ("p(a) <- q(a).", "select(a) <- q(a).", "// with\\nwith_(a) <- q(a).")]
    [False, False, False]
    """
    return _SQL.match(text) is not None and _RULE.match(text) is None


def sql_statements(text: str) -> Iterator[tuple[int, int, bool]]:
    """Where each statement that is not empty begins and ends, without its semicolon; whether it has one.

    >>> text = "select ';' -- ;\\n; from t"
    >>> [(text[start:end].strip(), whole) for start, end, whole in sql_statements(text)]
    [("select ';' -- ;", True), ('from t', False)]
    """
    start = 0
    ends = [(part.start(), part.end(), True) for part in _PARTS.finditer(text) if part["end"]]
    for end, behind, whole in [*ends, (len(text), len(text), False)]:
        if re.fullmatch(rf"{_BLANK}*", text[start:end], re.DOTALL) is None:
            yield start, end, whole
        start = behind


def is_whole(text: str) -> bool:
    """Whether a statement of SQL, perhaps behind a command, has its semicolon."""
    return any(whole for _, _, whole in sql_statements(text))


def dropped_view(statement: str) -> str | None:
    """The name in DROP VIEW; None: it is another statement."""
    found = _DROP.match(statement)
    return None if found is None else _name(found)


@dataclass(frozen=True)
class ViewText:
    """A view as a text defines it.

    ``file``: what the text is called in errors; ``start``: where in it the SELECT begins.
    """

    name: str
    sql: str
    file: str
    text: str
    start: int = 0
    replace: bool = False

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Errors of the SELECT, with the file, and with the place in it where they have one."""
        try:
            yield
        except RuleError as error:
            if error.span is None:
                raise type(error)(f"{self.file}: view {self.name!r}: {error}") from None
            *said, _, _ = str(error).split("\n")
            said[0] = re.sub(r" \(line \d+\)$", "", said[0]) if "\n" in self.sql else said[0]
            place = (error.span[0] + self.start, error.span[1] + self.start)
            message = "\n".join([f"{self.file}: {said[0]}", *said[1:]])
            raise error_at(type(error), self.text, place, message) from None
        except LftjError as error:
            raise type(error)(f"{self.file}: view {self.name!r}: {error}") from None


def created_view(statement: str) -> ViewText | None:
    """The view of CREATE VIEW; None: it is another statement."""
    found = _CREATE.match(statement)
    if found is None:
        return None
    sql = statement[found.end() :].rstrip()
    return ViewText(_name(found), sql, "", statement, found.end(), found["replace"] is not None)


def _name(found: re.Match[str]) -> str:
    return str(found["plain"] or found["quoted"].replace('""', '"'))


def views_of(text: str, file: str) -> list[ViewText]:
    """The views of a file: of one SELECT, which is named like the file, or of each CREATE VIEW.

    Raises SqlError for any other statement.

    >>> [(view.name, view.sql) for view in views_of("select a from t;", "models/top.sql")]
    [('top', 'select a from t')]
    >>> [view.name for view in views_of("create view a as from t; create view b as from a;", "-")]
    ['a', 'b']
    """
    found: list[ViewText] = []
    cut = list(sql_statements(text))
    for start, end, _ in cut:
        statement = text[start:end]
        view = created_view(statement)
        if view is not None:
            found.append(ViewText(view.name, view.sql, file, text, start + view.start))
        elif len(cut) == 1:
            blank = re.match(rf"{_BLANK}*", statement, re.DOTALL)
            start += blank.end() if blank else 0
            found.append(ViewText(_stem(file), text[start:end].rstrip(), file, text, start))
        else:
            at = start + len(statement) - len(statement.lstrip())
            raise error_at(
                SqlError,
                text,
                (at, end),
                f"{file}: of several statements each is CREATE VIEW name AS SELECT ...",
            )
    if not found:
        raise SqlError(f"{file}: there is no SELECT")
    return found


def _stem(file: str) -> str:
    """What a file of one SELECT is the view of.

    >>> _stem("models/revenue.sql"), _stem("-")
    ('revenue', 'view')
    """
    return PurePath(file).stem if file.endswith(".sql") else "view"


def by_dependency(views: Iterable[ViewText], reads: Mapping[str, Iterable[str]]) -> list[ViewText]:
    """Views, each behind those of them that it reads; else in the order given.

    ``reads``: names that each view's SQL reads, in any case.  Raises SqlError where views read each other.
    """
    by_name = {view.name.lower(): view for view in views}
    found: list[ViewText] = []
    above: list[str] = []

    def visit(name: str) -> None:
        view = by_name[name]
        if view in found:
            return
        if name in above:
            around = [by_name[one] for one in [*above[above.index(name) :], name]]
            raise SqlError(
                "views read each other: " + " reads ".join(f"{one.name} ({one.file})" for one in around)
            )
        above.append(name)
        for other in sorted({read.lower() for read in reads[view.name]} & by_name.keys() - {name}):
            visit(other)
        above.pop()
        found.append(view)

    for name in by_name:
        visit(name)
    return found
