"""SELECTs over a database: answered once, and as the program of a view.

A text that was answered is not translated again while the relations that it reads have the same schemas and
none has the name of a head of its rules: what it says does not depend on the data.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa

from lftj.database.sql_answers import answer
from lftj.errors import EvaluationError, LftjError, RangeError, RuleError, SqlError
from lftj.evaluation.products import expected
from lftj.language.diagnostics import error_at, render
from lftj.sql.translation.translated import Translated, translated
from lftj.statements.binder import Binder
from lftj.values.names import nearest_usable
from lftj.values.schema import Schema

Failed = TypeVar("Failed", bound=LftjError)

HEAD = "answer"
REMEMBERED = 64
"""Translations of a database."""


class Translations:
    """What a database knows of SQL: the binder of its texts, and those that it translated last.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self.binder = Binder()
        self._known: OrderedDict[str, Translated] = OrderedDict()

    def of(self, sql: str, schemas: Mapping[str, Schema]) -> Translated:
        """The translation of a SELECT.  Raises SqlError."""
        found = self._known.pop(sql, None)
        if found is None or not found.holds_for(schemas):
            found = translated(sql, self.binder, schemas, nearest_usable(HEAD, schemas))
        self._known[sql] = found
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found


def asked(
    sql: str,
    translations: Translations,
    schemas: Mapping[str, Schema],
    query: Callable[..., pa.Table],
    **options: Any,
) -> pa.Table:
    """The answer of a SELECT; ``query``: of its rules.  Raises SqlError, and what ``query`` does."""
    found = translations.of(sql, schemas)
    with in_sql(found):
        rows = query(found.text, head=found.head, **options)
    return answer(rows, found)


@contextmanager
def in_sql(of: Translated) -> Iterator[None]:
    """What a rule is refused for, with the place in the SQL that it comes from; products are no warnings."""
    token = expected.set(True)
    try:
        yield
    except SqlError:
        raise
    except RuleError as error:
        if error.span is None:
            raise
        place = of.places[min(of.text.count("\n", 0, error.span[0]), len(of.places) - 1)]
        raise error_at(SqlError, of.sql, place, str(error)) from error
    except (EvaluationError, RangeError) as error:
        raise _placed(error, of) from error.__cause__
    finally:
        expected.reset(token)


def _placed(error: Failed, of: Translated) -> Failed:
    """With the place in the SQL where the message shows the rule that comes from there."""
    message, _, rule = str(error).rpartition("\n  ")
    places = dict(zip(of.text.splitlines(), of.places, strict=True))
    place = places.get(rule)
    return error if place is None else type(error)(render(of.sql, place, message))
