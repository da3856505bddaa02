"""`join_sql`: one conjunctive SELECT, run as a worst-case optimal join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_bridge.join import join
from spark_bridge.placing.placing import InputNulls, check_nulls
from spark_bridge.placing.schemas import column_names

if TYPE_CHECKING:
    from spark_bridge.front_ends.conjunctive_select import SelectRule


def join_sql(
    sql: str,
    relations: Mapping[str, DataFrame],
    *,
    partitions: int | None = None,
    shares: Mapping[str, int] | None = None,
    nulls: InputNulls = "refuse",
) -> DataFrame:
    """The rows of ``SELECT ... FROM ... WHERE ... GROUP BY ...`` over the relations, as a DataFrame; lazy.

    Tables are joined by equal columns and compared by conditions joined by AND; what is selected are columns,
    arithmetic, ``count``, ``sum``, ``avg``, ``min``, ``max``.  Tables are sets of rows, as for
    :func:`~spark_bridge.join.join`, whose arguments the others are: a row that a DataFrame has twice counts
    once.  Types of results are the engine's, not Spark's.

    Raises RuleSyntaxError for any other SQL, UnknownRelationError and UnknownColumnError, and what ``join``
    raises; ImportError without sqlglot, which comes with ``lftj[sql]``.
    """
    check_nulls(nulls)
    rule = _rule(sql, column_names(relations), nulls == "keep")
    joined = join(rule.text, relations, partitions=partitions, shares=shares, nulls=nulls)
    joined = joined.select(*[F.col(f"`{name}`") for name in joined.columns[: len(rule.columns)]])
    return _with_one_row(joined, rule).toDF(*rule.columns)


def _rule(sql: str, columns: Mapping[str, Sequence[str]], keeps_null: bool) -> SelectRule:
    try:
        from spark_bridge.front_ends.conjunctive_select import rule_of_select
    except ModuleNotFoundError as error:
        if error.name != "sqlglot":
            raise
        raise ImportError("join_sql needs sqlglot: pip install 'lftj[sql]'", name="sqlglot") from error
    return rule_of_select(sql, columns, keeps_null=keeps_null)


def _with_one_row(found: DataFrame, rule: SelectRule) -> DataFrame:
    """Aggregates without groups have a row over no rows, too: 0 for counts, else NULL."""
    if rule.counts is None:
        return found
    row = found.sparkSession.range(1).join(found, on=F.lit(True), how="left")
    return row.select(
        *[
            F.coalesce(F.col(f"`{name}`"), F.lit(0)).alias(name) if counts else F.col(f"`{name}`")
            for name, counts in zip(found.columns, rule.counts, strict=True)
        ]
    )
