"""oracle: recursive programs against the brute-force least fixpoint, known answers, and bad input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from random import Random
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lftj
from lftj import errors
from lftj.database import database
from lftj.evaluation import growing_relation, recursive_body
from lftj.process.progress import Advance
from maintenance import Workspace
from maintenance.workspace import installing
from support.functions import DivisionByZero, Overflow
from support.random_recursion import recursive_scenarios
from support.recursive_programs import TEXTBOOK, inputs_of, random_row
from support.reference import FunctionalConflict, evaluate
from support.rows import rows_of
from support.rules import render
from support.sets import load_set
from support.strategies import Scenario, any_row

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

CLOSURE = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c)."


def closure_of(edges: list[tuple[int, int]]) -> lftj.Database:
    db = lftj.Database()
    load_set(db, "edge", edges, columns=["a", "b"])
    return db


@pytest.mark.parametrize("name", TEXTBOOK)
def test_the_textbook(name: str) -> None:
    program = TEXTBOOK[name]
    random = Random(name)
    for _ in range(4):
        values = random.choice((3, 5))
        rows = {
            relation: {random_row(random, relation, values) for _ in range(random.randrange(1, 10))}
            for relation in inputs_of(program)
        }
        db = lftj.Database()
        for relation, tuples in rows.items():
            columns = [f"c{number}" for number in range(len(next(iter(tuples))))]
            db.load(relation, sorted(tuples), columns=columns)
        for head in dict.fromkeys(one.relation for rule in program for one in rule.heads):
            expected = evaluate(program, rows, head)
            found = rows_of(db.query(render(program), head=head))
            assert set(found) == expected and len(found) == len(expected)
            assert db.count(render(program), head=head) == len(expected)


def follow_reference(scenario: Scenario) -> None:
    db = lftj.Database()
    for relation in scenario.loaded:
        load_set(db, relation.name, relation.table())
    try:
        expected = {
            head.relation: evaluate(scenario.program, scenario.relations, head.relation)
            for rule in scenario.program
            for head in rule.heads
        }
    except (FunctionalConflict, Overflow, DivisionByZero):
        assume(False)
    for name, rows in expected.items():
        found = rows_of(db.query(scenario.text, head=name))
        assert any_row(set(found)) == any_row(rows) and len(found) == len(rows)
        assert db.count(scenario.text, head=name) == len(rows)


@given(recursive_scenarios())
def test_random_programs(scenario: Scenario) -> None:
    follow_reference(scenario)


@given(recursive_scenarios())
def test_random_programs_in_small_pieces(scenario: Scenario) -> None:
    with (
        mock.patch.object(recursive_body, "PIECE_ROWS", 3),
        mock.patch.object(recursive_body, "LEAST_PIECE", 1),
        mock.patch.object(growing_relation, "STATISTICS_ROWS", 4),
    ):
        follow_reference(scenario)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60))
def test_all_ways_to_write_a_closure_agree(edges: list[tuple[int, int]]) -> None:
    db = closure_of(edges)
    left = rows_of(db.query(CLOSURE))
    for recursive in (
        "path(a, c) <- edge(a, b), path(b, c).",
        "path(a, c) <- path(a, b), path(b, c).",
        "path(a, c) <- back(c, a). back(c, a) <- path(a, b), edge(b, c).",
    ):
        text = f"path(a, b) <- edge(a, b). {recursive}"
        assert sorted(rows_of(db.query(text, head="path"))) == sorted(left)
    assert sorted(
        rows_of(db.query("path(a, c) <- (edge(a, c) ; path(a, b), edge(b, c)).", head="path"))
    ) == sorted(left)


def test_a_long_path_takes_a_round_per_step() -> None:
    n = 300
    db = closure_of([(i, i + 1) for i in range(n)])
    assert db.count(CLOSURE) == n * (n + 1) // 2
    (recursion,) = db.explain(CLOSURE, analyze=True).recursion
    assert f"{n} rounds with new tuples: {n * (n + 1) // 2:,} tuples" in recursion


def test_progress_tells_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float | None, str]] = []

    @contextmanager
    def bar(label: str, wanted: bool | None) -> Iterator[Advance]:
        yield lambda fraction, note="": told.append((label, fraction, note))

    for module in (database, installing):
        monkeypatch.setattr(module, "bar", bar)
        monkeypatch.setattr(module, "is_seen", bool)
    edges = [(1, 2), (2, 3), (3, 4)]
    db = closure_of(edges)
    db.query(CLOSURE, progress=True)
    ws = Workspace()
    ws.load("edge", edges, columns=["a", "b"])
    ws.install(CLOSURE, progress=True)
    for label in ("joining", "installing path"):
        notes = [note for one, fraction, note in told if one == label and fraction is None]
        assert [re.sub(r"\d+\.\d", "0.0", note) for note in notes] == [
            "path: round 1, 3 new tuples in 0.0 s, 3 in all",
            "path: round 2, 2 new tuples in 0.0 s, 5 in all",
            "path: round 3, 1 new tuple in 0.0 s, 6 in all",
        ]


def test_each_assignment_is_found_once() -> None:
    """Of the closure without a linear rule: every pair of paths that meet is found in one round."""
    rng = np.random.default_rng(1)
    edges = [tuple(edge) for edge in rng.integers(0, 25, (40, 2)).tolist()]
    db = closure_of(edges)
    text = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), path(b, c)."
    joined = db.count(f"{text} n(a, b, c) <- path(a, b), path(b, c).", head="n")
    (recursion,) = db.explain(text, analyze=True).recursion
    assert f"from {joined + len(set(edges)):,} rows" in recursion


def test_a_round_takes_no_memory_for_what_it_finds_again() -> None:
    """Any two nodes of a complete graph have a path over each node; they leave in pieces."""
    n = 100
    db = closure_of([(a, b) for a in range(n) for b in range(n)])
    add = growing_relation.GrowingTuples.add
    with mock.patch.object(growing_relation.GrowingTuples, "add", autospec=True, side_effect=add) as added:
        assert db.count("path(a, b) <- edge(a, b). path(a, c) <- path(a, b), path(b, c).") == n**2
    pieces = [len(call.args[1][0]) for call in added.call_args_list]
    assert sum(pieces) == n**2 + n**3
    assert max(pieces) <= 2 * recursive_body.PIECE_ROWS


def test_text_and_dates_go_round_too() -> None:
    db = lftj.Database()
    db.load("part", {"whole": ["car", "wheel", "wheel"], "part": ["wheel", "tyre", "rim"]})
    found = db.query('has(a, b) <- part(a, b). has(a, c) <- has(a, b), part(b, c), c != "rim".')
    assert ("car", "tyre") in set(rows_of(found)) and ("car", "rim") not in set(rows_of(found))


def test_an_atom_that_only_has_to_be_there() -> None:
    db = closure_of([(1, 2), (2, 3)])
    text = "t(x) <- edge(x, _), x = 2. t(y) <- edge(y, _), t(_). t(z) <- t(z), t(w), t(_)."
    assert sorted(rows_of(db.query(text, head="t"))) == [(1,), (2,)]


def test_parameters_and_prepared_programs() -> None:
    db = closure_of([(1, 2), (2, 3), (4, 5)])
    reach = db.prepare("r(x) <- edge($start, x). r(y) <- r(x), edge(x, y).")
    assert sorted(rows_of(reach(start=1))) == [(2,), (3,)]
    assert rows_of(reach(start=4)) == [(5,)]
    db.load("edge", [(1, 7)], columns=["a", "b"])
    assert rows_of(reach(start=1)) == [(7,)]


def test_aggregates_and_negation_read_what_is_complete() -> None:
    db = closure_of([(1, 2), (2, 3), (3, 1), (3, 4)])
    assert sorted(rows_of(db.query(f"{CLOSURE} n[a] = count() <- path(a, _)."))) == [(1, 4), (2, 4), (3, 4)]
    assert rows_of(db.query(f"{CLOSURE} leaf(b) <- edge(_, b), !path(b, _).")) == [(4,)]


def test_a_recursion_without_end_is_stopped() -> None:
    db = closure_of([(1, 2), (2, 1)])
    text = "d(x, n) <- edge(x, _), n = 0. d(y, m) <- d(x, n), edge(x, y), m = n + 1."
    with pytest.raises(errors.RoundLimitError) as caught:
        db.query(text, max_rounds=7)
    message = str(caught.value)
    assert "the recursion of d still gave new tuples after 7 rounds, at last d(" in message
    assert ", 7)" in message and "d(y, m) <- d(x, n), edge(x, y), m = n + 1." in message
    assert db.count(CLOSURE, max_rounds=2) == 4
    with pytest.raises(errors.RoundLimitError):
        db.count(CLOSURE, max_rounds=1)
    with pytest.raises(ValueError, match="max_rounds must be at least 1"):
        db.count(CLOSURE, max_rounds=0)


def test_a_functional_head_takes_one_value_per_key() -> None:
    db = lftj.Database()
    db.load("edge", [(1, 2, 5), (1, 3, 1), (3, 2, 1)], columns=["a", "b", "w"])
    text = "d[x] = n <- edge(x, _, _), x = 1, n = 0. d[y] = m <- d[x] = n, edge(x, y, w), m = n + w."
    with pytest.raises(errors.FunctionalConflictError, match=r"d\[2\] has two values, 2 and 5"):
        db.query(text)
    db.load("edge", [(1, 2, 5), (2, 3, 1)], columns=["a", "b", "w"])
    assert sorted(rows_of(db.query(text))) == [(1, 0), (2, 5), (3, 6)]


def test_types_are_those_that_fit_all_rules() -> None:
    db = lftj.Database()
    db.load("small", {"x": np.array([1], np.int8)})
    db.load("next", {"x": np.array([1, 2], np.int8), "y": np.array([2, 300], np.int32)})
    found = db.query("r(x) <- small(x). r(y) <- r(x), next(x, y).")
    assert [str(field.type) for field in found.schema] == ["int32"]
    assert sorted(rows_of(found)) == [(1,), (2,), (300,)]


def test_a_rule_that_is_wrong_is_named_where_it_is_wrong() -> None:
    db = closure_of([(1, 2)])
    with pytest.raises(errors.UnboundVariableError, match="'z'"):
        db.query("t(x) <- edge(x, _). t(z) <- t(x), edge(x, y).")
    with pytest.raises(errors.UnboundVariableError, match="'z'"):
        db.query("t(z) <- edge(x, _). t(y) <- t(x), edge(x, y).")
    with pytest.raises(errors.TypeClashError):
        db.query('t(x) <- edge(x, _). t(y) <- t(x), y = "a".')


def test_decimals_widen_as_far_as_they_can() -> None:
    db = lftj.Database()
    db.load("price", {"x": [Decimal("1.5")]})
    with pytest.raises(errors.RangeError, match=r"price\(z\), y = x \* z"):
        db.query("t(x) <- price(x). t(y) <- t(x), price(z), y = x * z.")


def test_orders_and_traces_are_of_one_search() -> None:
    db = closure_of([(1, 2)])
    with pytest.raises(errors.OrderError, match="path depends on itself"):
        db.query(CLOSURE, order=["a", "b"])
    with pytest.raises(errors.RuleError, match="path depends on itself"):
        db.trace(CLOSURE)
