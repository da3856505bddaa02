"""A translated SELECT over DataFrames: head by head, each as the cheapest plan that gives its rows.

    one atom, columns and comparisons       Spark's select and filter
    one atom, any other expression          the rule over its rows, in ``mapInArrow``: no shuffle
    several atoms, aggregates               a join by cells (:mod:`spark_bridge.join`); without a cycle, where
                                            asked for, Spark's own (:mod:`spark_bridge.acyclic`)
    a recursion (WITH RECURSIVE)            by cells or rounds (:mod:`spark_bridge.recursion`)
    windows                                 the rows by ``PARTITION BY``, by Spark's shuffle; then the rule
    a row of aggregates over nothing        a left join with one row

Rules of a bag, UNION ALL among them, are united by Spark; distinct rows of one atom are ``distinct()``.

Invariants

1. A frame has the rows of a relation or head as often as SQL has them.  Cells keep sets: what counts rows
   reads a bag with a number for each row, which is never cut by (it is another one at a second try).
2. A rule of a bag that joins shows the numbers, and all that its atoms bind: each assignment is a row then.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from lftj.errors import RuleError, SqlError
from lftj.language.diagnostics import error_at
from lftj.language.parser import parse
from lftj.language.strata import atoms_of
from lftj.language.syntax import Atom, Call, Comparison, Rule, Variable, Wildcard
from lftj.sql.errors import unsupported
from lftj.sql.translation.rules import Rule as SelectRule
from lftj.sql.translation.translated import Translated
from lftj.values.names import nearest_usable, usable_names
from spark_bridge.acyclic.equal_meaning import OnlyCells
from spark_bridge.acyclic.own_head import own_heads
from spark_bridge.acyclic.own_operators import Source, own_frame, refuse_only_cells
from spark_bridge.cells.row_rules import RowRules
from spark_bridge.front_ends.row_conditions import condition, quoted
from spark_bridge.join import When, head_frame, head_frames
from spark_bridge.placing.char_columns import char_length, refuse_padded
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.known_sizes import small_grids, unsampled_grids
from spark_bridge.placing.placing import InputNulls, null_refused
from spark_bridge.placing.read_columns import by_place, read_program
from spark_bridge.placing.schemas import arrow_schema, column_type, spark_schema
from spark_bridge.placing.worker_process import in_worker

_EXTREMA = ("min", "max")
_ROW = "row_of_table"


@dataclass(frozen=True)
class Rows:
    """Those of a relation or head; ``bag``: there may be equal ones."""

    frame: DataFrame
    bag: bool


def select_frame(
    of: Translated,
    relations: Mapping[str, DataFrame],
    partitions: int,
    nulls: InputNulls,
    when: When,
    max_rounds: int,
) -> DataFrame:
    """The rows of the SELECT's head.  Raises what ``join`` does."""
    return _Stages(of, relations, partitions, nulls, when, max_rounds).head(of.head)


class _Stages:
    def __init__(
        self,
        of: Translated,
        relations: Mapping[str, DataFrame],
        partitions: int,
        nulls: InputNulls,
        when: When,
        max_rounds: int,
    ) -> None:
        self._partitions = partitions
        self._max_rounds = max_rounds
        self._recursive = of.recursive
        self._when = when
        self._session: SparkSession = next(iter(relations.values())).sparkSession
        self._rules: dict[str, list[SelectRule]] = {}
        for rule in of.rules:
            self._rules.setdefault(rule.head, []).append(rule)
        self._one = nearest_usable("one", {*relations, *self._rules})
        self._known: dict[str, Rows] = {}
        self._lengths: dict[str, list[set[int]]] = {}
        self._sql = of.sql
        for name in relations:
            atoms = [atom for atom in _atoms(of) if atom.relation == name]
            if atoms:
                self._known[name] = Rows(self._relation(name, relations[name], atoms, nulls), True)

    def _relation(self, name: str, frame: DataFrame, atoms: Sequence[Atom], nulls: InputNulls) -> DataFrame:
        """The columns that the SELECT reads, under the names that rules have for them."""
        read: dict[str, bool] = {}
        for atom in atoms:
            for named, term in zip(atom.names, atom.terms, strict=True):
                read[named.name] = read.get(named.name, False) or not isinstance(term, Wildcard)
        of, rows = by_place(frame)
        columns: list[str] = []
        kept: list[str] = []
        self._lengths[name] = []
        for field, written in zip(frame.schema, usable_names(frame.columns), strict=True):
            if written not in read:
                continue
            column = of[field.name] if read[written] else "true"
            if read[written]:
                column_type(name, written, field.dataType)
            may_be_null = read[written] and field.nullable
            if may_be_null and nulls == "refuse":
                said = quoted(f"NullError: {null_refused(name, field.name, nulls)}")
                column = f"CASE WHEN {column} IS NOT NULL THEN {column} ELSE raise_error({said}) END"
            elif may_be_null and nulls == "drop":
                kept.append(f"{column} IS NOT NULL")
            columns.append(f"{column} AS `{written}`")
            length = char_length(field) if read[written] else None
            self._lengths[name].append({length} if length else set())
        return (rows.where(" AND ".join(kept)) if kept else rows).selectExpr(*columns)

    # -- heads ---------------------------------------------------------------------------------

    def head(self, name: str) -> DataFrame:
        return self._rows_of(name).frame

    def _rows_of(self, name: str) -> Rows:
        if name in self._known:
            return self._known[name]
        if name == self._one:
            self._known[name] = Rows(self._session.range(1).toDF("n"), False)
        elif name in self._recursive:
            self._known[name] = Rows(self._recursion(name), False)
        else:
            rules = self._rules[name]
            parts = [self._part(rule) for rule in rules]
            frame = functools.reduce(DataFrame.unionAll, (part.frame for part in parts))
            bag = rules[0].bag
            if not bag and (len(parts) > 1 or parts[0].bag):
                frame = frame.distinct()
            self._known[name] = Rows(frame, bag)
        return self._known[name]

    def _part(self, rule: SelectRule) -> Rows:
        """What one rule gives; of a head that is no bag maybe more than once."""
        try:
            if len(parse(rule.text).rules) > 1:
                return self._beside(rule)
            return self._by_body(rule, rule.terms, rule.bag, rule.once)
        except SqlError:
            raise
        except RuleError as error:
            if error.span is None:
                raise
            raise error_at(SqlError, self._sql, rule.place, str(error)) from error

    def _by_body(self, rule: SelectRule, terms: Sequence[tuple[str, str]], bag: bool, once: bool) -> Rows:
        body = self._with_atom(rule, terms)
        text, parsed = _parsed(rule.head, terms, body)
        atoms = list(atoms_of(parsed.body))
        for atom in atoms:
            self._rows_of(atom.relation)
        aggregates = bool(parsed.heads[0].aggregates)
        if self._when == "cyclic" and (aggregates or len(atoms) > 1):
            own = self._by_own(rule.head, text, parsed)
            if own is not None:
                return Rows(self._or_default(own, rule.defaults), not aggregates)
        if aggregates:
            found = self._joined(rule.head, terms, body, counts=_counts(parsed), bag=False)
            return Rows(self._or_default(found, rule.defaults), False)
        if len(atoms) > 1:
            return Rows(self._joined(rule.head, terms, body, counts=bag, bag=bag), bag)
        (atom,) = atoms
        frame = self._known[atom.relation].frame
        schema = arrow_schema(atom.relation, frame.schema)
        self._check(ProgramText(text, rule.head, ((atom.relation, schema),)), rule.head)
        shown = _by_spark(parsed, atom, frame)
        if shown is None:
            shown = self._by_row(f"{'bag ' if bag else ''}{text}", rule.head, atom.relation, frame)
        return Rows(shown, bag or not once)

    def _with_atom(self, rule: SelectRule, terms: Sequence[tuple[str, str]]) -> str:
        """The body of a rule; one that reads nothing reads one row."""
        _, parsed = _parsed(rule.head, terms, rule.body)
        reads = any(isinstance(one, Atom) and not one.negated for one in parsed.body)
        return rule.body if reads else ", ".join(filter(None, [f"{self._one}(n: _)", rule.body]))

    def _recursion(self, name: str) -> DataFrame:
        """The rows of a head that depends on itself: its rules, and those of heads that it depends on so."""
        behind = {head: self._behind(head) for head in self._recursive}
        component = [head for head in self._rules if head in behind[name] and name in behind.get(head, ())]
        texts: list[str] = []
        frames: dict[str, DataFrame] = {}
        for rule in (rule for head in component for rule in self._rules[head]):
            if rule.windows or rule.defaults or rule.bag:
                raise unsupported(
                    self._sql,
                    rule.place,
                    "a step of a recursion with groups, windows or equal rows in Spark",
                    "take lftj.Database on collected rows",
                )
            text, parsed = _parsed(rule.head, rule.terms, self._with_atom(rule, rule.terms))
            texts.append(text)
            for atom in (atom for atom in atoms_of(parsed.body) if atom.relation not in component):
                frames[atom.relation] = self._rows_of(atom.relation).frame
        program, read, _ = read_program("\n".join(texts), name, frames, "keep")
        self._check(program, name)
        program = replace(program, max_rounds=self._max_rounds)
        return head_frames(program, read, self._partitions, None, "keep")[name]

    def _behind(self, name: str) -> set[str]:
        """The heads that a head reads, and those that these read."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            more = {one for rule in self._rules.get(waiting.pop(), ()) for one in rule.reads} - found
            found |= more
            waiting += more
        return found

    def _by_row(
        self, text: str, head: str, relation: str, frame: DataFrame, *, whole: bool = False
    ) -> DataFrame:
        rules = RowRules(text, head, relation, arrow_schema(relation, frame.schema), whole)
        return frame.mapInArrow(in_worker(rules.rows, f"{head}: row by row"), spark_schema(rules.result()))

    def _by_own(self, head: str, text: str, parsed: Rule) -> DataFrame | None:
        """A head without a cycle, its rows as often as there are assignments; None: it is one for cells."""
        frames = {atom.relation: self._known[atom.relation].frame for atom in atoms_of(parsed.body)}
        program = ProgramText(
            text, head, tuple((name, arrow_schema(name, of.schema)) for name, of in frames.items())
        )
        self._check(program, head)
        own = own_heads(program).get(head)
        if own is None or not own.has_no_cycle:
            return None
        try:
            given = {name: frame.schema for name, frame in frames.items()}
            refuse_only_cells(own, dict(program.relations), given)
        except OnlyCells:
            return None
        sources = {
            name: Source(frames[name], schema, given[name], schema.names)
            for name, schema in program.relations
        }
        return own_frame(own, sources, "keep", bag=True)

    def _joined(
        self, head: str, terms: Sequence[tuple[str, str]], body: str, *, counts: bool, bag: bool
    ) -> DataFrame:
        """By cells; ``counts``: how often a row is there matters."""
        text, parsed = _parsed(head, terms, body)
        taken = set(re.findall(r"\w+", text))
        frames = {atom.relation: self._known[atom.relation].frame for atom in atoms_of(parsed.body)}
        numbers: list[str] = []
        if counts:
            edits: list[tuple[int, int, str]] = []
            for atom in (one for one in parsed.body if isinstance(one, Atom) and not one.negated):
                rows, start = self._known[atom.relation], atom.span[1] - 1
                if rows.bag:
                    row = nearest_usable(_ROW, rows.frame.columns)
                    frames[atom.relation] = rows.frame.select("*", F.monotonically_increasing_id().alias(row))
                    numbers.append(nearest_usable(_ROW, taken))
                    edits.append((start, start, f", {row}: {numbers[-1]}"))
                    taken.add(numbers[-1])
                elif bag:
                    edits += self._all_named(atom, rows.frame.columns, taken)
            body = _edited(text, edits)[len(text) - len(body) - 1 : -1]
            _, parsed = _parsed(head, terms, body)
        shown = list(terms)
        if bag:
            columns = {column for column, _ in terms}
            for variable in _bound(parsed):
                shown.append((nearest_usable(variable, columns), variable))
                columns.add(shown[-1][0])
        program, read, _ = read_program(_text(head, shown, body), head, frames, "keep")
        self._check(program, head)
        program = replace(program, uncut=frozenset(numbers))
        found = self._by_cells(program, read)[head]
        of, placed = by_place(found)
        return placed.select(*(of[column] for column, _ in terms)).toDF(*(column for column, _ in terms))

    def _by_cells(self, program: ProgramText, relations: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """A head, and those that its aggregates are made of; a sample is taken of the caller's relations."""
        frames = dict(relations)
        for number, plan in enumerate(program.plans()):
            grids: HeadGrids | None
            if all(name in relations and name not in self._rules for name in plan.reads):
                grids = small_grids(relations, plan, self._partitions)
            else:
                grids = unsampled_grids(frames, plan, self._partitions)
            frames[plan.name] = head_frame(program, number, plan, frames, self._partitions, grids, "keep")
        return frames

    @staticmethod
    def _all_named(atom: Atom, columns: Iterable[str], taken: set[str]) -> Iterable[tuple[int, int, str]]:
        """What gives a variable to each column that an atom has none for."""
        named = {column.name: term for column, term in zip(atom.names, atom.terms, strict=True)}
        for column in columns:
            term = named.get(column)
            if term is None or isinstance(term, Wildcard):
                variable = nearest_usable(column, taken)
                taken.add(variable)
                if term is None:
                    yield atom.span[1] - 1, atom.span[1] - 1, f", {column}: {variable}"
                else:
                    yield *term.span, variable

    def _beside(self, rule: SelectRule) -> Rows:
        """What reads rows beside each other: windows and aggregates in an order, of all rows of a group."""
        plain = replace(rule, defaults={})
        first, *_, last = parse(plain.text).rules
        read = list(dict.fromkeys(variable.name for variable in first.heads[0].variables))
        if rule.windows:
            per = [variable.name for variable in first.heads[0].windows[0].per]
        else:
            per = [term.name for term in last.heads[0].terms if isinstance(term, Variable)]
        body = rule if read else replace(rule, body=f"{rule.body}, row = 1")
        read = read or ["row"]
        rows = self._by_body(body, [(name, name) for name in read], True, False).frame
        lengths = dict(zip(read, self._lengths.pop(rule.head, ()), strict=False))
        self._lengths[rule.head] = [lengths.get(term, set()) for _, term in rule.terms]
        of, placed = by_place(rows)
        types = {field.name: field.dataType for field in rows.schema}
        keys = (
            F.col(of[name]) + F.lit(0.0) if isinstance(types[name], FloatType | DoubleType) else of[name]
            for name in per
        )
        rows = placed.repartition(self._partitions if per else 1, *keys).toDF(*read)
        source = nearest_usable("rows", {rule.head})
        text = replace(plain, body=f"{source}({', '.join(f'{name}: {name}' for name in read)})").text
        found = self._by_row(text, rule.head, source, rows, whole=True)
        return Rows(self._or_default(found, rule.defaults), rule.bag)

    def _or_default(self, found: DataFrame, defaults: Mapping[str, str]) -> DataFrame:
        """Aggregates of everything have a row over no rows, too."""
        if not defaults:
            return found
        of, placed = by_place(found)
        row = self._session.range(1).join(placed, on=F.lit(True), how="left")
        return row.selectExpr(
            *(
                of[name] if defaults[name] == "null" else f"coalesce({of[name]}, {int(defaults[name])})"
                for name in found.columns
            )
        ).toDF(*found.columns)

    def _check(self, text: ProgramText, head: str) -> None:
        """Refuse what Spark would pad, and note what a head has of it."""
        known = refuse_padded(text.rules, {name: self._lengths.get(name, []) for name, _ in text.relations})
        before = self._lengths.get(head) or [set() for _ in known.get(head, ())]
        self._lengths[head] = [a | b for a, b in zip(before, known.get(head, before), strict=False)]


def _atoms(of: Translated) -> list[Atom]:
    return [atom for rule in parse(of.text).rules for atom in atoms_of(rule.body) if atom.names]


def _text(head: str, terms: Sequence[tuple[str, str]], body: str) -> str:
    return f"{head}({', '.join(f'{column}: {term}' for column, term in terms)}) <- {body}."


def _parsed(head: str, terms: Sequence[tuple[str, str]], body: str) -> tuple[str, Rule]:
    text = _text(head, terms, body)
    return text, parse(text).rules[-1]


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _counts(rule: Rule) -> bool:
    return any(one.function not in _EXTREMA for one in rule.heads[0].aggregates)


def _bound(rule: Rule) -> list[str]:
    """What the atoms that are always read bind, and lists generate."""
    read = [one for atom in rule.body if isinstance(atom, Atom) and not atom.negated for one in atom.terms]
    calls = (one.left for one in rule.body if isinstance(one, Comparison) and isinstance(one.left, Call))
    generated = [call.arguments[1] for call in calls if call.function == "list_contains"]
    return list(dict.fromkeys(term.name for term in (*read, *generated) if isinstance(term, Variable)))


def _by_spark(rule: Rule, atom: Atom, frame: DataFrame) -> DataFrame | None:
    """A rule of one atom as Spark's own select and filter; None where it says more."""
    columns, placed = by_place(frame)
    types = {field.name: field.dataType for field in frame.schema}
    of: dict[str, str] = {}
    for named, term in zip(atom.names, atom.terms, strict=True):
        if isinstance(term, Variable) and term.name not in of:
            of[term.name] = named.name
        elif not isinstance(term, Wildcard):
            return None
    known = {name: (columns[column], types[column]) for name, column in of.items()}
    tests = [condition(literal, known) for literal in rule.body if literal is not atom]
    shown = [term.name for term in rule.heads[0].terms if isinstance(term, Variable) and term.name in of]
    by_spark = [test for test in tests if test is not None]
    if len(by_spark) < len(tests) or len(shown) < len(rule.heads[0].terms):
        return None
    names = [named.name for named in rule.heads[0].names if named is not None]
    filtered = functools.reduce(DataFrame.filter, by_spark, placed)
    return filtered.select(*(columns[of[name]] for name in shown)).toDF(*names)
