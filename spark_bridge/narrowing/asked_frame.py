"""The DataFrame of a join, behind which conditions, columns and limits reach the join by themselves.

    join(rule, edges).where("a > 3").select("a", "b").distinct()        as where="a > 3", columns=["a", "b"]

Spark tells Python code nothing of what becomes of the rows that it gives.  So what ``join`` returns is of a
subclass of the session's DataFrame class, in which ``where``, ``select``, ``drop``, ``limit``, ``distinct``
note what is asked.  With other arguments these are Spark's, and so are all other methods; what they give is
no such DataFrame.  A plan is made when it is first used, for all that has been asked till then.  Over Connect
what is asked behind is asked of the rows (:func:`asked_behind`).

Invariants:

1. The rows are those of Spark's methods, as often.  ``columns=`` gives each row once, so a projection reaches
   the join where the rows are made distinct behind it; behind a limit only fewer rows do.
2. The columns are those of Spark's methods, too: ``found.a`` can be selected of ``found.where("a > 3")``.
   Behind a projection that has reached the join there is no other column to order by.
3. Rows that are stored, as by ``cache``, are not joined again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import AtomicType, StructType

from spark_bridge.front_ends.rule_names import usable
from spark_bridge.narrowing.narrowed_rules import Asked, Condition, means_the_same, with_columns_of

Step = Callable[[DataFrame], DataFrame]
Fewer = Callable[[Asked, DataFrame], DataFrame | None]


@dataclass(frozen=True)
class WholeJoin:
    """A join's rows as it was called: ``frame``; ``schema``: of the head.

    ``fewer``: the rows for what is asked, of each task so many as are; None where the join would have no less
    to do.
    """

    frame: DataFrame
    schema: StructType
    fewer: Fewer

    @functools.cached_property
    def nothing(self) -> DataFrame:
        """No rows, of the head's columns."""
        columns = (f"CAST(NULL AS {each.dataType.simpleString()}) AS `{each.name}`" for each in self.schema)
        return self.frame.sparkSession.range(0).selectExpr(*columns)


@dataclass(frozen=True)
class AskedRows:
    """Rows of a join that something is asked of.

    ``asked``: where the columns are those whose rows come each once; ``shown``: those that are there.
    ``plain``: the rows by Spark's methods.  ``before``: of which ``step``, a method of Spark's, makes these.
    """

    whole: WholeJoin
    asked: Asked
    shown: tuple[str, ...]
    plain: DataFrame
    before: AskedRows | None = None
    step: Step = field(default=lambda frame: frame)

    @property
    def once(self) -> tuple[str, ...]:
        """The columns whose rows come each once."""
        return tuple(self.whole.schema.names) if self.asked.columns is None else self.asked.columns

    @functools.cached_property
    def frame(self) -> DataFrame:
        """The rows, from the join for what is asked where that is less to do."""
        if self.before is None:
            return self.plain
        if self.before.is_stored:
            return self.step(self.before.frame)
        rows = self.whole.fewer(replace(self.asked, columns=self.once), self.whole.frame)
        if rows is None:
            return self.plain
        rows = _selected(with_columns_of(self.whole.frame, rows), self.shown)
        return rows if self.asked.most is None else rows.limit(self.asked.most)

    @property
    def is_stored(self) -> bool:
        """Whether these rows, or some that they are made of, are stored."""
        made = vars(self).get("frame")
        if made is not None and (made.storageLevel.useMemory or made.storageLevel.useDisk):
            return True
        return self.before is not None and self.before.is_stored

    def where(self, condition: Condition) -> Asked | None:
        """What is asked with a condition; None, here and below, where the join can't be asked that."""
        if self.asked.most is not None:
            return None
        nothing = _selected(self.whole.nothing, self.once)
        if isinstance(condition, Column):
            nothing = with_columns_of(self.whole.frame, nothing)
        if not means_the_same(nothing, condition):
            return None
        return replace(self.asked, where=(*self.asked.where, condition))

    def limit(self, most: object) -> Asked | None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            return None
        known = self.asked.most
        return replace(self.asked, most=most if known is None else min(known, most))

    def distinct(self) -> Asked | None:
        if set(self.shown) == set(self.once):
            is_plain = all(isinstance(field.dataType, AtomicType) for field in self.whole.schema)
            return self.asked if is_plain else None
        return None if self.asked.most is not None else replace(self.asked, columns=self.shown)

    def selected(self, names: Sequence[object]) -> tuple[str, ...] | None:
        """The columns that are shown then, some of those that are."""
        shown = tuple(name for name in names if isinstance(name, str) and name in self.shown)
        return shown if 0 < len(set(shown)) == len(names) else None

    def then(
        self, step: Step, ask: Callable[[], Asked | None], shown: tuple[str, ...] | None = None
    ) -> DataFrame:
        """What a method of Spark's makes of the rows; what is wrong with it Spark says, and first."""
        plain = step(self.plain)
        asked = ask()
        if asked is None:
            return step(self.frame)
        return _asking(AskedRows(self.whole, asked, shown or self.shown, plain, self, step))


def asked_behind(frame: DataFrame, asked: Asked, schema: StructType, fewer: Fewer) -> DataFrame:
    """The rows that a join was ``asked`` for, and of which more may be asked; ``schema``: of the head.

    They are as they were where Spark takes names of the head for others, and over Connect, which knows
    columns by the numbers of plans and looks for none in a union.
    """
    names = schema.names
    is_told_apart = all(map(usable, names)) and len({name.lower() for name in names}) == len(names)
    if not is_told_apart or not isinstance(frame.sparkSession, SparkSession):
        return frame
    shown = names if asked.columns is None else asked.columns
    return _asking(AskedRows(WholeJoin(frame, schema, fewer), asked, tuple(shown), frame))


def _asking(rows: AskedRows) -> DataFrame:
    base: type = type(rows.plain)
    subclass = _subclass(base)
    frame: DataFrame = object.__new__(subclass)
    vars(frame).update(vars(rows.plain), _asked_rows=rows)
    return frame


@functools.cache
def _subclass(base: type) -> type[DataFrame]:
    """That of the session's DataFrame class; what Spark's methods read of it is made when they do."""
    read = property(lambda self: self._asked_rows.frame._jdf)
    made: type[DataFrame] = type("DataFrame", (_Asking, base), {"_jdf": read, "__module__": base.__module__})
    return made


def _selected(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    return frame if frame.columns == list(names) else frame.select(*names)


if TYPE_CHECKING:
    _Base = DataFrame
else:
    _Base = object


class _Asking(_Base):
    """What the subclasses have of their own; their objects know their rows."""

    _asked_rows: AskedRows

    @property
    def schema(self) -> StructType:
        return self._asked_rows.plain.schema

    def filter(self, condition: Any) -> DataFrame:
        rows = self._asked_rows
        return rows.then(lambda frame: frame.where(condition), lambda: rows.where(condition))

    where = filter

    def select(self, *cols: Any) -> DataFrame:
        rows = self._asked_rows
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        shown = rows.selected(names)
        return rows.then(lambda frame: frame.select(*cols), lambda: rows.asked if shown else None, shown)

    def drop(self, *cols: Any) -> DataFrame:
        rows = self._asked_rows
        by_name = all(isinstance(name, str) for name in cols)
        shown = rows.selected([name for name in rows.shown if name not in cols]) if by_name else None
        return rows.then(lambda frame: frame.drop(*cols), lambda: rows.asked if shown else None, shown)

    def limit(self, num: Any) -> DataFrame:
        rows = self._asked_rows
        return rows.then(lambda frame: frame.limit(num), lambda: rows.limit(num))

    def distinct(self) -> DataFrame:
        rows = self._asked_rows
        return rows.then(lambda frame: frame.distinct(), rows.distinct)

    def dropDuplicates(self, subset: Any = None) -> DataFrame:
        rows = self._asked_rows
        by_all = rows.distinct if subset is None else lambda: None
        return rows.then(lambda frame: frame.dropDuplicates(subset), by_all)

    drop_duplicates = dropDuplicates
