"""`motifs`: GraphFrames' way to ask for a pattern in a graph, run as a worst-case optimal join."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lftj.errors import SourceError
from lftj.language.diagnostics import suggestion
from spark_bridge.front_ends.motif import ID, SOURCE, TARGET, rule_of_motif
from spark_bridge.join import join
from spark_bridge.placing.placing import InputNulls
from spark_bridge.placing.schemas import names_of


def motifs(
    pattern: str,
    vertices: DataFrame,
    edges: DataFrame,
    *,
    partitions: int | None = None,
    shares: Mapping[str, int] | None = None,
    nulls: InputNulls = "refuse",
) -> DataFrame:
    """The places where a pattern such as ``(a)-[e]->(b); (b)-[]->(c); !(c)-[]->(a)`` is in a graph; lazy.

    As ``GraphFrame(vertices, edges).find(pattern)`` has them: a column for each name, in the order of the
    pattern, with the row of the vertex or edge as a struct.  ``vertices`` have a column ``id``, ``edges``
    ``src`` and ``dst``; both are sets of rows, so that each place is found once.  The other arguments are
    those of :func:`~spark_bridge.join.join`.

    Raises RuleSyntaxError for what is no motif, UnboundVariableError for a vertex that only steps that are
    not there have, SourceError for DataFrames without these columns, and what ``join`` raises.
    """
    columns = []
    for name, frame, needed in (("vertices", vertices, (ID,)), ("edges", edges, (SOURCE, TARGET))):
        columns.append(names_of(name, frame))
        for column in needed:
            if column not in columns[-1]:
                raise SourceError(f"{name} have no column {column!r}{suggestion(column, columns[-1])}")
    rule = rule_of_motif(pattern, *columns)
    relations = {"vertex": vertices, "edge": edges}
    read = {name: frame for name, frame in relations.items() if f"{name}(" in rule.text}
    joined = join(rule.text, read, partitions=partitions, shares=shares, nulls=nulls)
    return joined.select(
        *[
            F.struct(
                *[
                    F.col(variable).alias(column)
                    for column, variable in zip(each.columns, each.variables, strict=True)
                ]
            ).alias(each.name)
            for each in rule.names
        ]
    )
