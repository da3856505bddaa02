"""`motifs`: GraphFrames' way to ask for a pattern in a graph, run as a worst-case optimal join."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lftj.errors import SourceError
from lftj.language.diagnostics import suggestion
from maintenance.changes.labels import label_beside
from spark_bridge.front_ends.motif import ID, SOURCE, TARGET, MotifName, rule_of_motif
from spark_bridge.join import When, join
from spark_bridge.placing.placing import InputNulls
from spark_bridge.placing.schemas import names_of

_READ = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w.`])(\w+)\.(`[^`]+`|\w+)""")
"""A text, or a column of a name."""


def motifs(
    pattern: str,
    vertices: DataFrame,
    edges: DataFrame,
    *,
    where: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    times: bool = False,
    partitions: int | None = None,
    shares: Mapping[str, int] | None = None,
    nulls: InputNulls = "refuse",
    when: When = "cyclic",
) -> DataFrame:
    """The places where a pattern such as ``(a)-[e]->(b); (b)-[]->(c); !(c)-[]->(a)`` is in a graph; lazy.

    As ``GraphFrame(vertices, edges).find(pattern)`` has them: a column for each name, in the order of the
    pattern, with the row of the vertex or edge as a struct.  ``vertices`` have a column ``id``, ``edges``
    ``src`` and ``dst``; both are sets of rows, so that each place is found once.  Beside ``->`` there are
    ``<-``, ``-[e]-`` either way, ``<-[]->`` each way, and paths ``-[*2]->``, ``-[*1..3]->``, whose edges and
    vertices between have no names: a place is found once, however many paths there are.

    ``where``: conditions in SQL of the names' columns, ``a.age > 30`` or ``a.age > b.age``; what is about
    one vertex or edge leaves out its rows before anything is sent.  ``columns``: what of the names is shown,
    ``a`` or ``a.name``; the structs have these fields alone.  Places are told apart by the vertices and edges
    that have names, by these columns and by those in conditions.  ``times``: a place comes as often as the
    edges give it, as GraphFrames has it: edges are counted first, by all that is read of them, and whatever
    vertices and edges a place has, each choice is one.  The other arguments are those of
    :func:`~spark_bridge.join.join`.

    Raises RuleSyntaxError for what is no motif and for steps that can't be counted, UnboundVariableError for
    a vertex that only steps that are not there have, SourceError for DataFrames without these columns and for
    names and columns that are not there, and what ``join`` raises.
    """
    known: list[list[str]] = []
    for name, frame, needed in (("vertices", vertices, (ID,)), ("edges", edges, (SOURCE, TARGET))):
        known.append(names_of(name, frame))
        for column in needed:
            if column not in known[-1]:
                raise SourceError(f"{name} have no column {column!r}{suggestion(column, known[-1])}")
    label = label_beside("times", known[1]) if times else ""
    rule = rule_of_motif(pattern, known[0], known[1], times=label)
    conditions = [where] if isinstance(where, str) else list(where)
    names = {each.name: each for each in rule.names}
    shown = {name: list(each.columns) for name, each in names.items()}
    if columns is not None:
        shown = _shown(columns, names)
        wanted = {name: set(of) for name, of in shown.items()}
        for read in _READ.finditer(" ; ".join(conditions)):
            if read[1] in names:
                wanted.setdefault(read[1], set()).add(read[2].strip("`"))
        rule = rule_of_motif(pattern, known[0], known[1], wanted, label)
        names = {each.name: each for each in rule.names}
    relations = {"vertex": vertices, "edge": edges}
    if times:
        relations |= {
            "edge": _counted(edges, known[1], label),
            "pair": _counted(edges, (SOURCE, TARGET), label),
        }
    read_frames = {name: frame for name, frame in relations.items() if f"{name}(" in rule.text}
    joined = join(
        rule.text,
        read_frames,
        partitions=partitions,
        shares=shares,
        nulls=nulls,
        when=when,
        where=[_of_variables(condition, names) for condition in conditions],
    )
    if times:
        often = F.lit(1).cast("bigint")
        for variable in rule.times:
            often = often * F.col(variable)
        joined = joined.withColumn("motif#", F.explode(F.array_repeat(F.lit(0), often.cast("int"))))
    return joined.select(
        *[
            F.struct(*[F.col(each.variable(column)).alias(column) for column in shown[name]]).alias(name)
            for name, each in names.items()
            if name in shown
        ]
    )


def _counted(edges: DataFrame, columns: Sequence[str], label: str) -> DataFrame:
    """Edges by some columns, each with how often it is there behind."""
    return edges.groupBy(*(f"`{column}`" for column in columns)).agg(F.count(F.lit(1)).alias(label))


def _shown(columns: Sequence[str], names: Mapping[str, MotifName]) -> dict[str, list[str]]:
    """By name the columns that are asked for, in the order of its row.  Raises SourceError."""
    asked: dict[str, set[str]] = {}
    if isinstance(columns, str) or not columns:
        raise SourceError(f"columns is {columns!r}; it lists names of the motif and their columns: a, b.name")
    for text in columns:
        name, _, column = text.partition(".")
        asked.setdefault(name, set()).update(
            [_column(names, name, column)] if column else _of(names, name).columns
        )
    return {name: [one for one in names[name].columns if one in of] for name, of in asked.items()}


def _of(names: Mapping[str, MotifName], name: str) -> MotifName:
    if name not in names:
        raise SourceError(f"the motif has no name {name!r}{suggestion(name, list(names))}")
    return names[name]


def _column(names: Mapping[str, MotifName], name: str, column: str) -> str:
    of = _of(names, name).columns
    if column not in of:
        raise SourceError(f"{name!r} has no column {column!r}{suggestion(column, list(of))}")
    return column


def _of_variables(condition: str, names: Mapping[str, MotifName]) -> str:
    """A condition of names' columns as one of the rule's variables."""

    def variable(read: re.Match[str]) -> str:
        if read[1] is None:
            return read[0]
        return names[read[1]].variable(_column(names, _of(names, read[1]).name, read[2].strip("`")))

    return _READ.sub(variable, condition)
