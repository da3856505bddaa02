"""`join_sql`: a SELECT over DataFrames, its joins run as worst-case optimal joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from lftj.database.sql_answers import arrow_type
from lftj.sql.translation.translated import Translated
from spark_bridge.front_ends.select_rules import select_rules
from spark_bridge.join import When, check_when, checked_rounds, chosen_partitions
from spark_bridge.placing.placing import InputNulls, check_nulls
from spark_bridge.placing.read_columns import by_place
from spark_bridge.placing.schemas import spark_type, type_text
from spark_bridge.select_stages import select_frame


def join_sql(
    sql: str,
    relations: Mapping[str, DataFrame],
    *,
    partitions: int | None = None,
    nulls: InputNulls = "keep",
    when: When = "cyclic",
    max_rounds: int | None = None,
) -> DataFrame:
    """The rows of a SELECT over the relations, as often as SQL has them; lazy.

    ``sql``: as DuckDB reads it; types and names of the columns are DuckDB's, too.  Rows count as often as a
    DataFrame has them.  ``nulls``: as SQL has NULL, unless ``"drop"`` leaves out rows with a NULL in a column
    that the SELECT reads, or ``"refuse"`` raises at the first one.  ``partitions`` and ``when`` as for
    :func:`~spark_bridge.join.join`; no row has to be made distinct first here.  With LIMIT, or where ORDER BY
    leaves it open, rows are in the order of all columns: the answer depends on the data alone.

    A recursion is found as :func:`~spark_bridge.join.join` finds one: by cells where a column stays, else by
    rounds, which run when this is called; ``max_rounds`` as there.

    Raises SqlError, UnsupportedSqlError for what rules don't have, with the place, and what ``join`` raises;
    ImportError without DuckDB, which comes with ``lftj[sql]``.
    """
    check_nulls(nulls)
    check_when(when)
    of = select_rules(sql, relations)
    n_partitions = chosen_partitions(next(iter(relations.values())).sparkSession, partitions)
    found = select_frame(of, relations, n_partitions, nulls, when, checked_rounds(max_rounds))
    types = [(field.name, field.dataType) for field in found.schema]
    wanted = list(_types(of, dict(types)))
    if not of.order and of.limit is None and not of.offset and wanted == types:
        return found.toDF(*of.names)
    column, rows = by_place(found)
    if of.order or of.limit is not None or of.offset:
        rows = rows.orderBy(*_keys(of, column))
    if of.offset:
        rows = rows.offset(of.offset)
    if of.limit is not None:
        rows = rows.limit(of.limit)
    shown = (f"CAST({column[name]} AS {type_text(type_)})" for name, type_ in wanted)
    return rows.selectExpr(*shown).toDF(*of.names)


def _keys(of: Translated, columns: Mapping[str, str]) -> Iterator[Column]:
    asked = [name for name, _, _ in of.order]
    for name, descending, nulls_first in (
        *of.order,
        *((name, False, False) for name in columns if name not in asked),
    ):
        column = F.col(columns[name])
        if descending:
            yield column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
        else:
            yield column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def _types(of: Translated, found: Mapping[str, DataType]) -> Iterator[tuple[str, DataType]]:
    """The columns with the types that SQL says, where Spark has these; else those that are found."""
    for name, type_ in zip(of.columns, of.types, strict=True):
        wanted = arrow_type(type_)
        yield name, (None if wanted is None else spark_type(wanted)) or found[name]
