"""The second stage of a head whose tuples or groups come from several cells.

Packets arrive by the hash of the head's keys, so all of a key is in one partition.  Sets
are united; accumulators of aggregates are added up, never rounded ones
(:mod:`lftj.aggregates.partial`); a functional head is refused when a key has two values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lftj.aggregates.partial import FinalAggregation
from lftj.errors import EvaluationError, RangeError
from lftj.language.diagnostics import with_rule
from lftj.language.syntax import Aggregate
from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from lftj.values.functional import refuse_conflicts
from lftj.values.schema import Column, ColumnType, Schema
from spark_bridge.cells.cell_search import BATCH_ROWS, contributions, in_types
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.head_rule import HeadRule
from spark_bridge.placing.packets import cell_inputs


class Combining:
    """Combines what the cells of a head gave."""

    def __init__(self, text: ProgramText, head: int) -> None:
        self._text = text
        self._head = head

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the head whose keys belong to this partition, each once."""
        for cell in cell_inputs(batches):  # one, or none
            plan = self._text.plans()[self._head]
            tables: dict[int, dict[int, pa.Table]] = {}
            for label, (rule, number, schema) in contributions(plan).items():
                tables.setdefault(rule, {})[number] = cell.table(label, schema)
            yield from self._combined(tables)

    def _combined(self, tables: dict[int, dict[int, pa.Table]]) -> Iterator[pa.RecordBatch]:
        plan = self._text.plans()[self._head]
        found: list[pa.Table] = []
        for number, rule in enumerate(plan.rules):
            if rule.aggregates:
                found.append(_aggregated(rule, tables[number], plan.arrow_schema))
            else:
                found.append(tables[number][0])
        table = pa.concat_tables([in_types(one, plan.arrow_schema) for one in found])
        if len(found) > 1 or not plan.rules[0].aggregates:
            domains = Domains()
            relation = Relation.from_table(plan.name, table, domains, "keep")
            if plan.schema.functional:
                schema = Schema(relation.schema.columns, functional=True)
                text = " ".join(rule.checked.text for rule in plan.rules)
                refuse_conflicts(plan.name, schema, list(relation.codes), text)
            table = relation.to_table()
        yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _aggregated(rule: HeadRule, partials: dict[int, pa.Table], schema: pa.Schema) -> pa.Table:
    """The tuples of one rule: its aggregates have the same groups, in the same order."""
    values: dict[Aggregate, pa.Array] = {}
    keys: list[np.ndarray] = []
    # Dictionaries of its own: those of the plan stay as long as the process does.
    domains = Domains()
    types = {name: _in_domains(type_, domains) for name, type_ in rule.types.items()}
    for number, planned in enumerate(rule.heads):
        columns = (Column(each.name, _in_domains(each.type, domains)) for each in planned.schema.columns)
        head = replace(planned, schema=Schema(tuple(columns), planned.schema.functional))
        assert isinstance(head.value, Aggregate)
        final = FinalAggregation(head, types)
        try:
            final.add(partials[number])
            keys, values[head.value] = final.finish()
        except (RangeError, EvaluationError) as error:
            raise with_rule(error, rule.checked.text) from error.__cause__
    (written,) = rule.syntax.heads
    by_key = dict(zip(rule.keys, keys, strict=True))
    arrays = []
    for column in written.columns:
        if isinstance(column, Aggregate):
            arrays.append(values[column])
        else:
            type_ = types[column.name]
            arrays.append(type_.domain.decode(by_key[column.name], type_.arrow))
    return pa.Table.from_arrays(arrays, names=schema.names)


def _in_domains(type_: ColumnType, domains: Domains) -> ColumnType:
    return replace(type_, domain=domains.of(type_.arrow))
