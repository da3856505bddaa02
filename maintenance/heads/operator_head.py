"""Heads of operators: a function of Python makes their rows of those of relations and heads.

Invariants

1. The function is pure: what it gives depends on its tables alone.  A *linear* one takes sums of tables to
   sums of what it gives, f(a + b) = f(a) + f(b): so it is its own incremental version (DBSP, Theorem 3.3),
   and sees changes.  That of another is the difference of what it gives (Definition 3.1).  Both are the
   caller's promise; with ``LFTJ_DEBUG=1`` a linear one is called again with the negatives of the weights.
2. A head is a set.  Of a linear function support counts say when a row comes and goes; a negative one is
   refused.

Cost: the function's, on what changed or on all rows, which are decoded for it; then that of encoding what it
gives, and where it is not linear of a merge with what the head was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.database.loading import check_column_names
from lftj.errors import DataError, FunctionError, ImageError, SourceError
from lftj.files.sources import read_table
from lftj.language.body import CheckedHead, CheckedProgram
from lftj.language.checker import check
from lftj.language.parser import parse
from lftj.language.syntax import Program
from lftj.process import debug
from lftj.storage.relation import Nulls, Relation
from lftj.storage.relation_table import RelationTable, Tuples
from lftj.storage.signed_rows import Columns, gathered, net_rows
from lftj.storage.sorting import sort_distinct
from lftj.values.domains import Domains
from lftj.values.schema import Schema
from maintenance.changes.changes import change_table, encode_rows, encode_zset
from maintenance.changes.coded_changes import table_of_change
from maintenance.changes.labels import WEIGHT, weight_label
from maintenance.heads.head import MaintainedHead
from maintenance.heads.intermediate import Intermediates
from maintenance.heads.keeping import Keeping
from maintenance.heads.recursive_source import KeptComponents
from maintenance.stats import RuleStats
from maintenance.strategies.recompute import changed
from maintenance.strategies.strategy import Building, HeadSource, Round, Versions
from maintenance.strategies.strategy import Tuples as SignedTuples

OPERATOR = "operator"
"""What stands in the place of a strategy's name."""


@dataclass(frozen=True)
class Operator:
    """``fn`` takes a table for each of ``reads``, and gives rows of ``name``; where linear, with weights."""

    name: str
    fn: Callable[..., Any]
    reads: tuple[str, ...]
    linear: bool

    def __str__(self) -> str:
        return f"{getattr(self.fn, '__name__', 'function')}({', '.join(self.reads)})"

    def of_contents(self, contents: Mapping[str, Tuples]) -> Any:
        """What the function gives of all rows; weights are 1.  Raises FunctionError."""
        tables = []
        for name in self.reads:
            table, label = RelationTable(contents[name]).table, weight_label(contents[name].schema)
            ones = pa.array(np.ones(table.num_rows, np.int64))
            tables.append(table.append_column(label, ones) if self.linear else table)
        return self.called(tables)

    def called(self, tables: Sequence[pa.Table]) -> Any:
        try:
            return self.fn(*tables)
        except Exception as error:
            self.refuse(f"{type(error).__name__}: {error}", error)

    def refuse(self, why: str, cause: Exception | None = None) -> NoReturn:
        raise FunctionError(f"operator {self.name!r}, {self}: {why}") from cause

    def schema_of(self, given: Any, declared: pa.Schema | None, domains: Domains) -> Schema:
        """That of the head, as declared or else by what the function gave, and then without NULL.

        Raises FunctionError, and DataError for names and types that no head can have.
        """
        nulls: Nulls = "refuse" if declared is None else "keep"
        if declared is None:
            try:
                declared = read_table(given, None).schema
            except (SourceError, TypeError, ValueError) as error:
                self.refuse(f"what it gives does not say its columns, which schema= can do: {error}", error)
            weights = [name for name in declared.names if name.rstrip("_") == WEIGHT]
            if self.linear and weights:
                declared = declared.remove(declared.get_field_index(max(weights, key=len)))
        if not declared.names:
            self.refuse("it gives no columns: give schema=, those of its rows")
        check_column_names(self.name, declared.names)
        return Relation.from_table(self.name, declared.empty_table(), domains, nulls).schema

    def rows(self, given: Any, schema: Schema, domains: Domains) -> SignedTuples:
        """What the function gave, by codes: of a linear one with weights, else each row once, sorted.

        Raises FunctionError.
        """
        try:
            if self.linear:
                signed = encode_zset(self.name, schema, given, domains)
                return list(signed.columns), signed.weights
            columns = sort_distinct(list(encode_rows(self.name, schema, given, domains)))
        except (DataError, TypeError) as error:
            self.refuse(f"what it gives are no rows of the head: {error}", error)
        return columns, np.ones(len(columns[0]), np.int64)

    def head_rows(self, contents: Mapping[str, Tuples], schema: Schema, domains: Domains) -> Relation:
        """The head, all of it, from nothing.  Raises FunctionError."""
        columns, weights = net_rows(*self.rows(self.of_contents(contents), schema, domains))
        visible = [np.ascontiguousarray(column[weights > 0]) for column in columns]
        return Relation.from_codes(self.name, schema, visible)

    def program(self, versions: Versions, schema: Schema, domains: Domains) -> CheckedProgram:
        """A rule that reads what the operator does, for whoever asks what a head reads; it is never run."""
        schemas = {name: versions[name].schema for name in self.reads}
        atoms = []
        for name, its in schemas.items():
            terms = ["_"] * len(its.shown.columns)
            value = f" = {terms.pop()}" if its.functional else ""
            atoms.append(f"{name}[{', '.join(terms)}]{value}" if value else f"{name}({', '.join(terms)})")
        read = check(parse(f"{self.name}[] = count() <- {', '.join(atoms)}."), schemas, domains)
        (rule,) = read.rules_of(self.name)
        head = CheckedHead(self.name, (), None, schema, (0, 0))
        own = replace(rule[0], heads=(head,), text=f"{self.name} = {self}")
        return CheckedProgram(((own,),), {self.name: schema}, "", Program(()))


class OperatorSource(HeadSource):
    """All rows of the head."""

    is_function = False

    def __init__(self, operator: Operator, schema: Schema, domains: Domains, given: Any) -> None:
        """``given``: what the function gives of the contents over which the head is built."""
        self.operator, self._schema, self._domains, self._given = operator, schema, domains, given
        self.is_distinct = self.is_net = not operator.linear
        self.sorted_by = None if operator.linear else tuple(range(len(schema.columns)))

    def build(self, building: Building) -> SignedTuples:
        given, self._given = self._given, None
        return self.operator.rows(given, self._schema, self._domains)

    def step(self, change: Round, stats: RuleStats) -> SignedTuples:
        own, schema, domains = self.operator, self._schema, self._domains
        if not own.linear:
            columns, _ = own.rows(own.of_contents(change.new), schema, domains)
            return changed(list(columns), change.old[own.name].columns())
        tables = [table_of_change(change.old[name].schema, change.changes.get(name)) for name in own.reads]
        columns, weights = own.rows(own.called(tables), schema, domains)
        if debug.enabled:
            negative = [
                table.set_column(table.num_columns - 1, table.column_names[-1], pc.negate(table.columns[-1]))
                for table in tables
            ]
            rest = gathered([(columns, weights), own.rows(own.called(negative), schema, domains)])
            if len(net_rows(*rest)[1]):
                own.refuse("it is not linear: the negative of its tables does not give the negative")
        return columns, weights

    def describe(self) -> list[str]:
        seen = "linear: it sees changes" if self.operator.linear else "it sees all rows, whenever some change"
        return [f"operator    {self.operator}, {seen}"]


class OperatorHead(MaintainedHead):
    """A head that is no rule's."""

    def __init__(
        self, operator: Operator, versions: Versions, declared: pa.Schema | None, domains: Domains
    ) -> None:
        """Calls the function.  Raises FunctionError and DataError."""
        given = operator.of_contents(versions)
        schema = operator.schema_of(given, declared, domains)
        self._source = OperatorSource(operator, schema, domains, given)
        self._domains = domains
        program, keeping = operator.program(versions, schema, domains), Keeping(OPERATOR)
        super().__init__(
            operator.name, program, keeping, versions, Intermediates([], {}), KeptComponents(program, {})
        )
        self.read_columns = frozenset(
            (name, number) for name in operator.reads for number in versions[name].schema.declared
        )

    def _planned(
        self, versions: Versions, intermediates: Intermediates, components: KeptComponents
    ) -> list[HeadSource]:
        return [self._source]

    @property
    def timed_refusal(self) -> str | None:
        return "it is an operator"

    def _visible(self, columns: Columns, signs: np.ndarray) -> SignedTuples:
        rows, weights = net_rows(columns, signs)
        after = self._support.kept.totals(rows, len(weights)) + weights
        if (after < 0).any():
            row = change_table(self.schema, [column[after < 0][:1] for column in rows], after[after < 0][:1])
            self._source.operator.refuse(
                f"it is no linear function, or what it gives no set: {row.to_pylist()[0]}"
            )
        return super()._visible(rows, weights)

    def anew(self, contents: Mapping[str, Tuples]) -> Relation:
        """All of it, from what it reads.  Raises FunctionError."""
        return self._source.operator.head_rows(contents, self.schema, self._domains)

    def __reduce__(self) -> NoReturn:
        raise ImageError(f"{self.name!r} is an operator, and functions are in no image: uninstall it before")
