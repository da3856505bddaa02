"""oracle: problems over filtered rows, against brute force; whole queries, against DuckDB."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lftj.database.database import Database
from lftj.planning import reducing
from lftj.planning.planner import choose_order
from lftj.planning.reducing import reduced
from lftj.search.problem import JoinAtom, JoinCondition, JoinProblem
from lftj.search.queries.plan import compile_plan
from lftj.search.queries.search import batches
from lftj.search.row_filter import RowFilter, own_tests
from lftj.storage.catalog import Catalog
from lftj.storage.key_set import KeySet
from lftj.values.operators import FLIPPED
from support import peer
from support.bodies import BOTTOM, OPERATORS, TOP, Case, Row, atom_of, brute_rows, cases, relation
from support.rows import rows_of as table_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]


# -- problems ------------------------------------------------------------------------------


def with_all_columns(problem: JoinProblem) -> JoinProblem:
    """The problem with a variable of its own for each column that is counted."""

    def widened(number: int, atom: JoinAtom) -> JoinAtom:
        names = tuple(f"{number}.{column}" for column in atom.counted)
        return replace(
            atom, columns=(*atom.columns, *atom.counted), variables=(*atom.variables, *names), counted=()
        )

    return replace(problem, atoms=tuple(widened(*pair) for pair in enumerate(problem.atoms)))


def expected_rows(problem: JoinProblem, state: dict[str, frozenset[Row]]) -> Counter[Row]:
    """How many assignments of all variables, and of all counted columns, are behind each emitted row."""
    full = with_all_columns(problem)
    places = [full.variables.index(name) for name in problem.emitted]
    found = Counter(tuple(row[p] for p in places) for row in brute_rows(full, full.variables, state))
    return found if problem.counted else Counter(dict.fromkeys(found, 1))


def found_rows(problem: JoinProblem, tables: Catalog) -> Counter[Row]:
    """The same by what the problem is reduced to."""
    over = reduced(problem, tables)
    found: Counter[Row] = Counter()
    if over.scan is not None:
        event("scanned")
        for columns, n_rows in over.scan.batches(5):
            read = [columns[name].tolist() for name in problem.emitted]
            found.update(zip(*read, strict=True) if read else [()] * n_rows)
        return found if problem.counted else Counter(dict.fromkeys(found, 1))
    event(f"{len(over.parts)} parts, {len(problem.atoms) - len(over.problem.atoms)} atoms less")
    order = choose_order(over.problem, over.tables).order
    plan = compile_plan(over.problem, order, write=True).bind(over.tables)
    for read, weights in batches(plan, plan.new_counters(), 64):
        n_rows = len(read[0]) if read else len(weights if weights is not None else [0])
        counts = [1] * n_rows if weights is None else weights.tolist()
        rows = list(zip(*(column.tolist() for column in read), strict=True)) if read else [()] * n_rows
        for row, count in zip(rows, counts, strict=True):
            found[row] += count
    return found if problem.counted else Counter(dict.fromkeys(found, 1))


@given(cases(most_rows=20, most_steps=0), st.data())
def test_assignments_stay_the_same(case: Case, data: st.DataObject) -> None:
    (state,) = case.states
    problem = case.problem
    emitted = data.draw(st.lists(st.sampled_from(problem.emitted), unique=True))
    counted = data.draw(st.booleans())

    def counting(atom: JoinAtom) -> JoinAtom:
        left = set(range(atom.arity)) - set(atom.columns) - {second for _, second in atom.equal}
        return replace(atom, counted=tuple(sorted(left)))

    atoms = tuple(counting(atom) for atom in problem.atoms) if counted else problem.atoms
    problem = replace(problem, atoms=atoms, emitted=tuple(emitted), counted=counted)
    if not (counted or emitted):
        return
    tables = {
        atom.relation: relation(atom.relation, atom.arity, state[atom.relation])
        for atom in (*problem.atoms, *problem.negations)
    }
    share = data.draw(st.sampled_from((0.75, 1.0)))
    with mock.patch.multiple(reducing, LEAST_ROWS=0, PART=share, WORTH=1.0 if share == 1.0 else 0.5):
        assert found_rows(problem, tables) == expected_rows(problem, state)


KEYS = (BOTTOM, BOTTOM + 1, -3, 0, 2, TOP - 1, TOP)


@given(
    st.sampled_from(sorted(OPERATORS)),
    st.sampled_from((None, "b")),
    st.sampled_from((BOTTOM, -4, 0, 2, TOP)),
)
def test_conditions_are_those_of_whole_numbers(operator: str, right: str | None, offset: int) -> None:
    """A sum beyond int64 is not wrapped."""
    if right is not None and operator == "!=":
        offset = 0
    rows = [(a, b) for a in KEYS for b in KEYS]
    atom = atom_of("r", 2, (0, 1), "ab")
    problem = JoinProblem(
        (atom,), conditions=(JoinCondition("a", operator, right, offset),), emitted=("a", "b")
    )
    table = relation("r", 2, frozenset(rows))
    kept = RowFilter.of(table, own_tests(problem, atom)).rows()
    found = set(
        zip(
            *(column.tolist() if kept is None else column[kept].tolist() for column in table.codes),
            strict=True,
        )
    )
    holds = OPERATORS[operator]
    assert found == {(a, b) for a, b in rows if holds(a, (0 if right is None else b) + offset)}


@given(
    st.lists(st.sampled_from((*KEYS, *range(5), 1 << 40))), st.lists(st.sampled_from((*KEYS, *range(-2, 7))))
)
def test_key_sets_hold_their_codes(codes: list[int], sought: list[int]) -> None:
    keys = KeySet.of(np.array(codes, np.int64))
    assert keys.codes.tolist() == sorted(set(codes)) and keys.n_keys == len(set(codes))
    assert keys.holds(np.array(sought, np.int64)).tolist() == [code in codes for code in sought]


# -- queries -------------------------------------------------------------------------------

FACTS = [
    (i, i % 7 if i % 5 else None, ["tea", "milk", "rice", None][i % 4], i % 9 / 4 if i % 8 else None, i % 3)
    for i in range(300)
]
KINDS = [(k, ["hot", "cold", "dry"][k % 3], k % 4 == 0) for k in range(6)]

QUERIES = {
    "h(a) <- fact(a, _, _, _, _), a < 20, a != 3.": "select distinct a from fact where a < 20 and a <> 3",
    'h(k, n: count()) <- fact(a, k, s, _, _), s = "tea", a > 40.': (
        "select k, count(*) from fact where s = 'tea' and a > 40 group by k"
    ),
    'h(c, n: sum(a)) <- fact(a, _, s, _, c), s like "%i%".': (
        "select c, sum(a) from fact where s like '%i%' group by c"
    ),
    'h(c, n: sum(a)) <- fact(a, _, s, _, c), !contains(s, "i").': (
        "select c, sum(a) from fact where not contains(s, 'i') group by c"
    ),
    'h(n: count()) <- fact(_, k, s, x, _), s in ("rice", "tea", "wine"), k in (1, 2, 9), x <= 1.5.': (
        "select count(*) from fact where s in ('rice', 'tea') and k in (1, 2, 9) and x <= 1.5"
    ),
    "h(a, k) <- fact(a, k, _, _, k).": "select a, k from fact where k = c",
    "h(a) <- fact(a, k, _, _, _), k is null.": "select a from fact where k is null",
    "h(s) <- fact(_, k, s, _, c), k > c + 1.": "select distinct s from fact where k > c + 1",
    "h(t, n: count()) <- fact(a, k, _, _, _), a >= 170, kind(k, t, _).": (
        "select t, count(*) from fact join kind using (k) where a >= 170 group by t"
    ),
    "h(t, n: sum(a)) <- fact(a, k, _, _, _), kind(k, t, true).": (
        "select t, sum(a) from fact join kind using (k) where cooled group by t"
    ),
    'h(n: count()) <- fact(_, k, _, _, _), kind(k, "hot", _).': (
        "select count(*) from fact join kind using (k) where t = 'hot'"
    ),
    "h(a, b) <- fact(a, k, s, _, _), fact(b, k, s, _, _), a < b, b < 60.": (
        "select f.a, g.a from fact f join fact g on f.k = g.k and f.s = g.s where f.a < g.a and g.a < 60"
    ),
    'warm(k) <- kind(k, "hot", _). h(a) <- fact(a, k, _, _, _), warm(k).': (
        "select a from fact join kind using (k) where t = 'hot'"
    ),
    "h(a) <- fact(a, k, _, _, _), a < 50, !kind(k, _, _).": (
        "select a from fact where a < 50 and k is not null and not exists"
        " (select 1 from kind where kind.k = fact.k)"
    ),
    'h(k, n: sum(v)) <- fact(a, k, s, _, _), (s = "tea", v = a ; s != "tea", v = 0).': (
        "select k, sum(case when s = 'tea' then a else 0 end) from fact where s is not null group by k"
    ),
    'h(k, n: sum(a), m: count()) <- fact(a, k, s, x, _), (s = "tea" ; x > 1.0).': (
        "select k, sum(a), count(*) from fact where s = 'tea' or x > 1.0 group by k"
    ),
    "h(k, n: count()) <- fact(_, k, _, x, c), (x > 1.0, v = c ; x < 2.0, v = c ; v = 7).": (
        "select k, sum(case when x > 1.0 or x < 2.0 then 2 else 1 end) from fact group by k"
    ),
}


def loaded(bag: bool = False) -> tuple[Database, duckdb.DuckDBPyConnection]:
    names = ["a", "k", "s", "x", "c"]
    fact = pa.table(
        {name: list(column) for name, column in zip(names, zip(*FACTS, strict=True), strict=True)}
    )
    kind = pa.table(dict(zip(["k", "t", "cooled"], map(list, zip(*KINDS, strict=True)), strict=True)))
    if bag:
        fact = pa.concat_tables([fact, fact.slice(0, 100)])
    db, con = Database(), peer.connection()
    db.load("fact", fact, nulls="keep", bag=bag)
    db.load("kind", kind)
    con.register("fact", fact)
    con.register("kind", kind)
    return db, con


@pytest.mark.parametrize("rule", QUERIES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bag", [False, True])
def test_queries_over_filtered_rows(
    rule: str, threads: int, bag: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reducing, "LEAST_ROWS", 8)
    db, con = loaded(bag)
    expected = con.execute(QUERIES[rule]).fetchall()
    if "count()" not in rule and "sum(" not in rule:
        expected = list(set(expected))
    text = str(db.explain(rule))
    assert "no index" in text or "rows are joined, where" in text, text
    for _ in range(reducing.READS + 2):
        found = table_rows(db.query(rule, threads=threads))
        assert Counter(found) == Counter(map(tuple, expected))
    assert db.count(rule, threads=threads) == len(expected)


PLACED: dict[pa.DataType, list[Any]] = {
    pa.string(): ["b", "a", "c"],
    pa.binary(): [b"b", b"a", b"c"],
    pa.list_(pa.int64()): [[2], [1], [3]],
}
"""By a type whose codes are not in the order of their values: some."""


@pytest.mark.parametrize("type_", PLACED, ids=str)
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_null_has_no_place_in_an_order(
    type_: pa.DataType, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a column that may have it, whose variable is none by what another atom says."""
    monkeypatch.setattr(reducing, "LEAST_ROWS", 1)
    values = [*PLACED[type_], None]
    pairs = [(n, x, y) for n, (x, y) in enumerate(itertools.product(values, values))]
    columns = [list(column) for column in zip(*pairs, strict=True)]
    db = Database()
    schema = pa.schema([("n", pa.int64()), ("x", type_), ("y", type_)])
    db.load("pair", pa.table(columns, schema=schema), nulls="keep")
    db.load("one", pa.table({"y": pa.array(PLACED[type_], type_)}))
    compare = OPERATORS[operator]
    expected = {n for n, x, y in pairs if x is not None and y is not None and compare(x, y)}
    for head, term in itertools.product(("h(n)", "h[n] = count()"), ("y", "<=> y")):
        for test in (f"x {operator} y", f"y {FLIPPED[operator]} x"):
            rule = f"{head} <- pair(n, x, y), one({term}), {test}."
            assert {n for n, *_ in table_rows(db.query(rule))} == expected
    rule = f"h(n) <- pair(n, x, y), one(x), one(y), x {operator} y."
    assert {n for n, *_ in table_rows(db.query(rule))} == expected


def test_parameters_are_filtered_by_until_an_index_is_bought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducing, "LEAST_ROWS", 8)
    db, _ = loaded()
    rule = "h(a, t) <- fact(a, k, _, _, _), a < $most, kind(k, t, _)."
    prepared = db.prepare(rule)
    kinds = {k: t for k, t, _ in KINDS}
    seen = []
    for most in range(10, 2 * reducing.READS + 10):
        params = {"most": most}
        expected = {(a, kinds[k]) for a, k, *_ in FACTS if k in kinds and a < most}
        assert set(table_rows(prepared.query(params))) == expected
        seen.append("rows are joined" in str(db.explain(rule, params=params)))
    assert seen[0] and not seen[-1] and seen == sorted(seen, reverse=True)


def test_one_level_stands_for_the_columns_that_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducing, "LEAST_ROWS", 8)
    db, _ = loaded()
    rule = "h(t, n: count()) <- fact(_, _, _, _, c), link(c, t)."
    db.load("link", [(c, t) for c in range(3) for t in ("hot", "cold", "dry")], columns=["c", "t"])
    assert set(table_rows(db.query(rule))) == {(t, len(FACTS)) for t in ("hot", "cold", "dry")}
    (levels,) = {columns for columns, _ in db["fact"].relation.index_keys}
    assert sorted(levels) == [4, 5], "a column, and the number of a row"


def test_explain_says_what_is_scanned_and_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducing, "LEAST_ROWS", 8)
    db, _ = loaded()
    scan = str(db.explain('h(n: count()) <- fact(_, k, s, _, _), s like "%i%", k > 2.'))
    assert '300 rows, no index, those where k > 2, k is not null, s is not null, s like "%i%"' in scan
    joined = str(db.explain("h(a, t) <- fact(a, k, _, _, _), kind(k, t, true), a < 30."))
    assert " of 300 rows are joined, where a < 30" in joined and "k in kind" in joined
