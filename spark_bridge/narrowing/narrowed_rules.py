"""A program whose last head gives fewer rows and columns, by conditions and names of columns.

    h(a, b, c) <- e(a, b), e(b, c), e(a, c).      where a > 3, columns a and b

    h_asked(a: a, b: b) <- e_1(a, b), e(b, c), e_1(a, c).        e_1: e where src > 3

A condition, as ``DataFrame.where`` takes it, goes to each atom whose variables have all the columns that it
reads.  Whether it does is asked of Spark's analyzer, as the condition of a join, where nothing may stand that
is another one each time; nothing is run.

Invariant: the head has the rows that the condition leaves of the head as written.  Where an atom that is
always read has it in every rule, no other row comes, else it is asked again behind (``behind``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StringType, StructField, StructType

from lftj.language.parser import parse
from lftj.language.syntax import Aggregate, Atom, Head, Rule, Variable, flat
from spark_bridge.front_ends.rule_names import unused_name, usable
from spark_bridge.placing.schemas import plain

Condition = Column | str
Edit = tuple[int, int, str]


@dataclass(frozen=True)
class Asked:
    """``where``: conditions of rows.  ``columns``: those that are shown, of None all; ``most``: rows."""

    where: tuple[Condition, ...] = ()
    columns: tuple[str, ...] | None = None
    most: int | None = None


@dataclass(frozen=True)
class Narrowed:
    """A program to be joined in place of another one.

    ``behind``: conditions that its rows are still to meet; ``head``: the one to ask for; ``pushed``: what is
    said of relations that are read in part.
    """

    rule: str
    head: str
    relations: Mapping[str, DataFrame]
    behind: tuple[Condition, ...]
    pushed: tuple[str, ...]


def narrowed(
    rule: str,
    name: str,
    schema: StructType,
    relations: Mapping[str, DataFrame],
    where: Sequence[Condition],
    columns: Sequence[str],
    like: DataFrame | None = None,
) -> Narrowed:
    """The program for some columns of a head, and the rows that meet all conditions.

    ``schema``: of the head as it is written; ``columns``: those to be shown, at least; ``like``: a DataFrame
    of the head, whose columns conditions may have.  A head that has one value for each key stays as it is, as
    what it refuses depends on all of its rows.
    """
    tree = parse(rule)
    rules = [(each, head) for each in tree.rules for head in each.heads if head.relation == name]
    names = schema.names
    plain_heads = all(head.value is None or isinstance(head.value, Aggregate) for _, head in rules)
    if not plain_heads or not all(map(usable, names)) or any(head.windows or head.bag for _, head in rules):
        return Narrowed(rule, name, relations, tuple(where), ())
    taken = {*relations, *(head.relation for each in tree.rules for head in each.heads)}
    reading = _Reading(rule, relations, schema, taken, like)
    fresh = unused_name(f"{name}_asked", taken)
    taken.add(fresh)
    bodies = [reading.body(each, head, where) for each, head in rules]
    behind = tuple(one for place, one in enumerate(where) if not all(place in met for _, met in bodies))
    shown = set(names) if behind else set(columns)
    text = "\n".join(
        f"{_head(rule, head, fresh, names, shown)} <- {body}."
        for (_, head), (body, _) in zip(rules, bodies, strict=True)
    )
    return Narrowed(f"{rule}\n{text}", fresh, reading.relations, behind, tuple(reading.said))


def _head(text: str, head: Head, name: str, names: Sequence[str], shown: set[str]) -> str:
    """A head under another name, with the columns that are shown and the keys of groups."""
    if head.value is not None:
        return name + text[head.name_span[1] : head.span[1]]
    terms = [
        f"{column}: {text[term.span[0] : term.span[1]]}"
        for column, term in zip(names, head.columns, strict=True)
        if column in shown or (head.aggregates and isinstance(term, Variable))
    ]
    if not any(column in shown for column in names) or not terms:
        terms = [f"{names[0]}: {text[head.columns[0].span[0] : head.columns[0].span[1]]}"]
    return f"{name}({', '.join(terms)})"


class _Reading:
    """Which relations are read in part: ``relations`` with those, and what is said of them."""

    def __init__(
        self,
        text: str,
        relations: Mapping[str, DataFrame],
        schema: StructType,
        taken: set[str],
        like: DataFrame | None,
    ) -> None:
        self._text, self._schema, self._taken, self._like = text, schema, taken, like
        self._given = relations
        self.relations: dict[str, DataFrame] = dict(relations)
        self.said: list[str] = []
        self._copies: dict[tuple[str, tuple[tuple[int, tuple[tuple[int, str], ...]], ...]], str] = {}

    def body(self, rule: Rule, head: Head, where: Sequence[Condition]) -> tuple[str, set[int]]:
        """A rule's body over relations that are read in part, and the places of the conditions it meets."""
        of: dict[str, list[str]] = {}
        for column, term in zip(self._schema.names, head.columns, strict=True):
            if isinstance(term, Variable):
                of.setdefault(term.name, []).append(column)
        start = max(one.span[1] for one in rule.heads)
        written = [one for one in rule.body if one.span[0] >= start]  # others stand for what a head computes
        met: set[int] = set()
        edits: list[Edit] = []
        for atom in (one for one in flat(written) if isinstance(one, Atom) and not one.negated):
            found = self._copy(atom, of, where)
            if found is not None:
                copy, places = found
                edits.append((*atom.name_span, copy))
                met |= places if any(atom is one for one in written) else set()
        first, last = min(one.span[0] for one in written), max(one.span[1] for one in written)
        text = self._text[:last]
        for begin, end, new in sorted(edits, reverse=True):
            text = text[:begin] + new + text[end:]
        return text[first:], met

    def _copy(
        self, atom: Atom, of: Mapping[str, list[str]], where: Sequence[Condition]
    ) -> tuple[str, set[int]] | None:
        """The part of a relation that an atom reads, by name, and the conditions that make it."""
        if atom.relation not in self._given:
            return None
        frame = self._given[atom.relation]
        placed = dict(self._placed(atom, frame, of))
        if not placed:
            return None
        shown = self._shown(frame, placed)
        others = set(self._schema.names) - set(placed.values())
        met = [
            (place, one)
            for place, one in enumerate(where)
            if not _mentions(one, others) and means_the_same(shown, one)
        ]
        if not met:
            return None
        key = (atom.relation, tuple((place, tuple(sorted(placed.items()))) for place, _ in met))
        if key not in self._copies:
            name = unused_name(f"{atom.relation}_{len(self._copies) + 1}", self._taken)
            self._taken.add(name)
            self._copies[key] = name
            for _, condition in met:
                shown = shown.where(condition)
            self.relations[name] = shown.select(*(f"`{_place(n)}`" for n in range(len(frame.columns)))).toDF(
                *frame.columns
            )
            conditions = " and ".join(str(one) for _, one in met)
            self.said.append(f"{name}: {atom.relation} where {conditions}")
        return self._copies[key], {place for place, _ in met}

    def _placed(self, atom: Atom, frame: DataFrame, of: Mapping[str, list[str]]) -> Iterator[tuple[int, str]]:
        """Columns of a relation, by place, that hold a column of the head."""
        seen: set[str] = set()
        at = [frame.columns.index(one.name) if one.name in frame.columns else None for one in atom.names]
        places = at or list(range(len(frame.columns)))
        for place, term in zip(places, atom.terms, strict=False):
            if place is None or not isinstance(term, Variable) or term.name in seen:
                continue
            seen.add(term.name)
            names = of.get(term.name, [])
            if names and not isinstance(frame.schema[place].dataType, FloatType | DoubleType):
                yield place, names[0]

    def _shown(self, frame: DataFrame, placed: Mapping[int, str]) -> DataFrame:
        """A relation's columns by place, and beside them those of the head, in its types."""
        places = [_place(place) for place in range(len(frame.columns))]
        renamed = frame.toDF(*places)
        fields: list[StructField] = list(self._schema)
        types = {field.name: field.dataType for field in fields}
        added = []
        for place, name in placed.items():
            given = plain(frame.schema[place].dataType)
            wanted = given if isinstance(given, StringType) else types[name]
            added.append(F.col(_place(place)).cast(wanted).alias(name))
        shown = renamed.select("*", *added)
        return shown if self._like is None else with_columns_of(self._like, shown)


def _place(place: int) -> str:
    return f"place {place} of relation"


def _mentions(condition: Condition, names: set[str]) -> bool:
    """Whether one of these may stand in a condition: Spark logs what its analyzer refuses."""
    words = {word.lower() for word in re.findall(r"\w+", str(condition))}
    return any(name.lower() in words for name in names)


def with_columns_of(like: DataFrame, frame: DataFrame) -> DataFrame:
    """The rows of a DataFrame, of which columns are those of another one where it has their names.

    So expressions of that one's columns are about these.  A union has the columns of its first part; of that
    there are no rows here, and Spark's optimizer leaves it away.
    """
    names = [f"`{name}`" for name in frame.columns]
    there = [f"`{name}`" for name in like.columns if f"`{name}`" in names]
    others = [name for name in names if name not in there]
    first = like.where("false").select(*there)
    if others:
        first = first.crossJoin(frame.where("false").select(*others))
    return first.select(*names).unionAll(frame)


def means_the_same(frame: DataFrame, condition: Condition) -> bool:
    """Whether a condition can be asked of a DataFrame's rows, and has one answer for each."""
    nothing = frame.sparkSession.range(0).toDF("nothing beside it")
    on = F.expr(condition) if isinstance(condition, str) else condition
    try:
        return len(frame.join(nothing, on, "left_semi").schema) > 0
    except PySparkException:
        return False
