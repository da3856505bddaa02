"""stateful: a head over signed rows of cells against the aggregate of all rows, and against a workspace.

The reference keeps each rule's multiset of rows and evaluates it anew by
:func:`lftj.aggregates.whole.aggregate`; a batch is spread over cells, rows move between
cells, and a step may be dropped or refused: then everything is as before.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lftj.aggregates.whole import argument_names
from lftj.errors import FunctionalConflictError, LftjError, RangeError
from lftj.language.body import Body, CheckedHead, CheckedRule
from lftj.language.syntax import Aggregate
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema
from lftj.values.semigroup import register
from maintenance import Workspace
from maintenance.heads.combined_head import CombinedHead, Part
from support.aggregate_heads import Made, aggregate, last
from support.cell_aggregates import ALL, head_of, row_strategy

pytestmark = pytest.mark.kernel

REFUSING = ["careful", "sum int64", "sum decimal128(38, 38)", "sum decimal256(76, 38)"]
"""Cases with multisets that have no value."""

Row = tuple[int, ...]
Signed = tuple[int, Row, int]
"""Rule, codes, weight."""


def rule_of(head: CheckedHead, types: dict[str, ColumnType], text: str) -> tuple[CheckedRule, CheckedHead]:
    return CheckedRule((head,), (Body((), (), (), (), types),), text, (0, 0)), head


def parts_of(rows: list[tuple[int, Signed]], arities: list[int]) -> list[Part]:
    """One part per cell and rule; ``rows``: with their cells."""
    found: dict[tuple[int, int], list[tuple[Row, int]]] = {}
    for cell, (number, codes, weight) in rows:
        found.setdefault((cell, number), []).append((codes, weight))
    parts: list[Part] = []
    for (_, number), its in found.items():
        columns = [np.array([codes[i] for codes, _ in its], np.int64) for i in range(arities[number])]
        parts.append((number, columns, np.array([weight for _, weight in its], np.int64)))
    return parts


def rows_of(columns: Any, n_rows: int) -> list[Row]:
    rows = [tuple(int(column[i]) for column in columns) for i in range(n_rows)]
    assert rows == sorted(rows)
    return rows


def signed(found: tuple[Any, np.ndarray]) -> list[tuple[Row, int]]:
    columns, signs = found
    rows = rows_of(columns, len(signs))
    assert len(set(rows)) == len(rows)
    return list(zip(rows, signs.tolist(), strict=True))


class CombinedHeadMachine(RuleBasedStateMachine):
    """Rules of one head: those with the aggregate of a case, and those that give keys and value."""

    @initialize(
        case=st.one_of(st.sampled_from(sorted(ALL)), st.sampled_from(REFUSING)),
        kinds=st.sampled_from([["a"], ["a"], ["a"], ["s"], ["s"], ["a", "a"], ["a", "s"], ["s", "s", "s"]]),
        functional=st.booleans(),
        with_groups=st.sampled_from([True, True, False]),
        alike=st.sampled_from([True, True, False]),
    )
    def begin(self, case: str, kinds: list[str], functional: bool, with_groups: bool, alike: bool) -> None:
        self.alike = alike and kinds == ["a", "a"]  # two rules that always agree
        self.case = ALL[case]
        self.with_groups = with_groups
        self.made: Made = head_of(self.case) if with_groups else head_of(self.case, ())
        head, types = self.made.head, self.made.types
        self.declared = head.schema.columns[-1].type
        self.functional = functional or "a" in kinds
        schema = Schema(head.schema.columns, self.functional)
        plain = CheckedHead("h", head.variables, "value#", schema, (0, 0))
        as_value = {**types, "value#": self.declared}
        self.kinds = kinds
        self.rules = [
            rule_of(head, types, f"rule {n}") if kind == "a" else rule_of(plain, as_value, f"rule {n}")
            for n, kind in enumerate(kinds)
        ]
        self.arities = [len(self.made.columns if kind == "a" else schema.columns) for kind in kinds]
        self.head = CombinedHead("h", schema, self.rules, "the rules")
        self.multisets: list[Counter[Row]] = [Counter() for _ in kinds]
        self.visible: set[Row] = set()

    def aggregated(self, multiset: Counter[Row]) -> list[Row]:
        """Keys and value codes of an aggregate rule.  Raises as the engine does."""
        rows = sorted(multiset)
        columns = {n: np.array([row[i] for row in rows], np.int64) for i, n in enumerate(self.made.columns)}
        weights = np.array([multiset[row] for row in rows], np.int64)
        keys, values = aggregate(self.made.head, columns, weights, self.made.types)
        columns_found = [*keys, self.declared.domain.encode(values)]
        return rows_of(columns_found, len(values))

    def expected(self, multisets: list[Counter[Row]]) -> set[Row]:
        found: set[Row] = set()
        for kind, multiset in zip(self.kinds, multisets, strict=True):
            found |= set(self.aggregated(multiset) if kind == "a" else multiset)
        if self.functional and len({row[:-1] for row in found}) < len(found):
            raise FunctionalConflictError("h")
        return found

    def drawn_row(self, data: st.DataObject, kind: str) -> Row:
        row = data.draw(row_strategy(self.case, self.with_groups))
        codes = tuple(int(column[0]) for column in self.made.encoded([row]))
        if kind == "a":
            return codes
        (tuple_,) = self.aggregated(Counter({codes: 1}))
        if self.visible and data.draw(st.booleans()):  # the key of one, the value of another
            other = data.draw(st.sampled_from(sorted(self.visible)))
            return data.draw(st.sampled_from([other, (*other[:-1], tuple_[-1]), (*tuple_[:-1], other[-1])]))
        return tuple_

    def drawn_change(self, data: st.DataObject) -> list[Signed]:
        change: list[Signed] = []
        for number, kind in enumerate(self.kinds[:1] if self.alike else self.kinds):
            for _ in range(data.draw(st.sampled_from([0, 1, 2, 3, 3, 6]))):
                change.append((number, self.drawn_row(data, kind), data.draw(st.integers(1, 3))))
            present = sorted(self.multisets[number])
            if present:
                for row in data.draw(st.lists(st.sampled_from(present), unique=True, max_size=4)):
                    erased = data.draw(st.integers(1, self.multisets[number][row]))
                    change.append((number, row, -erased))
                moved = data.draw(st.sampled_from(present))
                change += [(number, moved, -1), (number, moved, 1)]  # to another cell
        if self.alike:
            change += [(1, row, weight) for _, row, weight in change]
        return data.draw(st.permutations(change))

    def state(self) -> tuple[Any, ...]:
        columns = self.head.rows()
        return rows_of(columns, len(columns[0])), self.head.nbytes >= 0

    @rule(data=st.data(), keep=st.sampled_from([True, True, True, False]), n_cells=st.integers(1, 4))
    def step(self, data: st.DataObject, keep: bool, n_cells: int) -> None:
        change = self.drawn_change(data)
        parts = parts_of([(data.draw(st.integers(0, n_cells - 1)), row) for row in change], self.arities)
        multisets = [multiset.copy() for multiset in self.multisets]
        for number, row, weight in change:
            multisets[number][row] += weight
        multisets = [+multiset for multiset in multisets]
        before = self.state()
        try:
            wanted = self.expected(multisets)
        except LftjError as error:
            event(type(error).__name__)
            with pytest.raises(type(error), match=r"^h\b[\s\S]*\n  (rule \d|the rules)$"):
                self.head.stage(parts)
            self.head.keep()  # of nothing
        else:
            difference = [(row, -1) for row in self.visible - wanted] + [
                (r, 1) for r in wanted - self.visible
            ]
            assert signed(self.head.stage(parts)) == sorted(difference)
            assert self.state() == before, "staging publishes nothing"
            self.head.check_invariants()
            if keep:
                self.head.keep()
                self.multisets, self.visible = multisets, wanted
            else:
                self.head.drop()

    @rule()
    def tidy(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("maintenance.groups.grouped._LEAST_TIDIED", 1)
            self.head.tidy()

    @rule()
    def nothing_comes(self) -> None:
        assert signed(self.head.stage([])) == []
        self.head.keep()

    @invariant()
    def rows_are_those_of_all_cells(self) -> None:
        self.head.check_invariants()
        assert self.state()[0] == sorted(self.visible)


TestCombinedHeadMachine = CombinedHeadMachine.TestCase
TestCombinedHeadMachine.settings = settings(stateful_step_count=10)


# -- against a workspace --------------------------------------------------------

PROGRAM = """
    seen(a) <- r(a, _, _).
    either(a, s) <- r(a, _, s).
    either(a, s) <- t(a, s).
    n[a] = count() <- r(a, _, _).
    all[] = sum(b) <- r(_, b, _).
    mean[a] = avg(b) <- r(a, b, _).
    most[s] = max(b) <- r(_, b, s).
    first[a] = min(s) <- r(a, _, s).
    text[a] = concat(s, "-", b) <- r(a, b, s).
    latest[a] = machine_last(b, s) <- r(a, b, s).
    called[a] = s <- t(a, s).
"""
TABLES = {"r": pa.schema([("a", pa.int64()), ("b", pa.float64()), ("s", pa.string())])}
TABLES["t"] = pa.schema([("a", pa.int64()), ("s", pa.string())])
VALUES = {
    "a": st.integers(0, 2),
    "b": st.sampled_from([0.1, 0.2, -0.3, 1e308, -1e308, 5e-324]),
    "s": st.sampled_from(["x", "y", "é", ""]),
}


@pytest.mark.compiled
@given(data=st.data())
@settings(max_examples=40)
def test_differential_workspace(data: st.DataObject) -> None:
    register("machine_last", last)
    ws = Workspace()
    for name, schema in TABLES.items():
        ws.load(name, schema.empty_table())
    ws.install(PROGRAM)
    installed = ws._heads
    heads = {n: CombinedHead(n, h.schema, h.rules, h.text) for n, h in installed.items()}
    contents: dict[str, set[tuple[Any, ...]]] = {name: set() for name in TABLES}
    for _ in range(data.draw(st.integers(1, 5))):
        changes: dict[str, list[tuple[tuple[Any, ...], int]]] = {}
        for name, schema in TABLES.items():
            row = st.tuples(*(VALUES[column] for column in schema.names))
            drawn = data.draw(st.lists(row, max_size=2 if name == "t" else 6, unique=True))
            changes[name] = [(row, -1 if row in contents[name] else 1) for row in drawn]
        found, told, told_there = {}, "", ""
        try:
            for name, head in heads.items():
                found[name] = head.stage(list(cell_parts(data, installed[name], changes)))
        except FunctionalConflictError as error:
            told = str(error)
        try:
            with ws.transaction() as tx:
                for name, schema in TABLES.items():
                    rows = [dict(zip(schema.names, row, strict=True)) for row, _ in changes[name]]
                    weights = pa.array([weight for _, weight in changes[name]], pa.int64())
                    tx.apply(name, pa.Table.from_pylist(rows, schema).append_column("weight", weights))
        except FunctionalConflictError as error:
            told_there = str(error)
        assert told == told_there
        if told:
            for head in heads.values():
                head.drop()
            continue
        for name, head in heads.items():
            assert decoded(head, *found[name]) == [
                tuple(row.values()) for row in tx.changes[name].to_pylist()
            ]
            head.keep()
            head.check_invariants()
            columns = head.rows()
            ones = np.ones(len(columns[0]), np.int64)
            assert {row[:-1] for row in decoded(head, columns, ones)} == {
                tuple(row.values()) for row in ws[name].to_pylist()
            }
        for name, its in changes.items():
            contents[name] ^= {row for row, _ in its}


def cell_parts(data: st.DataObject, installed: Any, changes: dict[str, Any]) -> Any:
    """What three cells give of a head whose rules read one atom each; all variables are wanted by name."""
    for number, (checked, head) in enumerate(installed.rules):
        (body,) = checked.bodies
        (atom,) = body.atoms
        names = list(head.variables) + ([head.value] if isinstance(head.value, str) else [])
        if isinstance(head.value, Aggregate):
            names += argument_names(head.value)
        cells: list[list[Any]] = [[], [], []]
        for change in changes[atom.relation]:
            cells[data.draw(st.integers(0, 2))].append(change)
        for cell in cells:
            columns = []
            for name in names:
                place = [getattr(term, "name", None) for term in atom.terms].index(name)
                values = pa.array([row[place] for row, _ in cell], body.types[name].arrow)
                columns.append(body.types[name].domain.encode(values))
            yield number, columns, np.array([weight for _, weight in cell], np.int64)


def decoded(head: CombinedHead, columns: Any, signs: np.ndarray) -> list[tuple[Any, ...]]:
    types = [column.type for column in head.schema.columns]
    values = [
        type_.domain.decode(np.asarray(codes), type_.arrow).to_pylist()
        for type_, codes in zip(types, columns, strict=True)
    ]
    return list(zip(*values, signs.tolist(), strict=True))


# -- examples by name ---------------------------------------------------------


def functional(n_rules: int = 1) -> CombinedHead:
    integer = ColumnType(Domains().of(pa.int64()), pa.int64())
    schema = Schema((Column("k", integer), Column("v", integer)), functional=True)
    head = CheckedHead("f", ("k",), "v", schema, (0, 0))
    types = {"k": integer, "v": integer}
    return CombinedHead("f", schema, [rule_of(head, types, "f[k] = v <- r(k, v).")] * n_rules, "f's rules")


def part(rows: list[tuple[int, int]], weight: int = 1, number: int = 0) -> Part:
    columns = [np.array([row[i] for row in rows], np.int64) for i in range(2)]
    return number, columns, np.full(len(rows), weight, np.int64)


def test_two_values_from_two_cells_conflict() -> None:
    head = functional()
    with pytest.raises(FunctionalConflictError) as caught:
        head.stage([part([(1, 7), (2, 5)]), part([(1, 6)]), part([(0, 1)])])
    assert str(caught.value) == (
        "f[1] has two values, 6 and 7; a functional head takes one per key\n  f's rules"
    )
    assert head.rows()[0].tolist() == []
    assert signed(head.stage([part([(1, 7)]), part([(1, 7)])])) == [((1, 7), 1)]
    head.keep()
    with pytest.raises(FunctionalConflictError, match=r"^f\[1\] has two values, 7 and 8"):
        head.stage([part([(1, 8)])])
    with pytest.raises(FunctionalConflictError):
        head.stage([part([(1, 7)], -1), part([(1, 8)])])  # another cell still has the 7
    assert signed(head.stage([part([(1, 8)]), part([(1, 7)], -1), part([(1, 7)], -1)])) == [
        ((1, 7), -1),
        ((1, 8), 1),
    ]
    head.keep()
    head.check_invariants()


def test_values_of_two_rules_conflict() -> None:
    head = functional(2)
    head.stage([part([(1, 7)]), part([(1, 7)], number=1)])
    head.keep()
    with pytest.raises(FunctionalConflictError, match=r"^f\[1\] has two values, 7 and 9"):
        head.stage([part([(1, 7)], -1), part([(1, 9)])])


def test_an_overflow_names_group_and_rule_and_stages_nothing() -> None:
    it = head_of(ALL["sum int64"], ())
    head = CombinedHead("h", it.head.schema, [rule_of(it.head, it.types, "h = sum(a0) <- r(a0).")], "text")

    def rows(*values: int) -> Part:
        return 0, [np.array(values, np.int64)], np.ones(len(values), np.int64)

    assert signed(head.stage([rows(2**63 - 1), rows(1, -1)])) == [((2**63 - 1,), 1)]
    head.keep()
    with pytest.raises(
        RangeError, match=r"^h\[\] = sum\(a0\) is 9223372036854775808, [^\n]*\n  h = sum\(a0\)"
    ):
        head.stage([rows(1)])
    assert signed(head.stage([rows(-1)])) == [((2**63 - 2,), 1), ((2**63 - 1,), -1)]
    with pytest.raises(AssertionError, match="kept or dropped"):
        head.stage([])
    head.drop()
    assert head.rows()[0].tolist() == [2**63 - 1]
    head.check_invariants()


def test_what_was_not_there_cannot_go() -> None:
    head = functional()
    with pytest.raises(AssertionError, match="had not been there"):
        head.stage([part([(1, 7)], -1)])
    assert signed(head.stage([part([(1, 7)])])) == [((1, 7), 1)]
