"""Columns by name: the same normal form as by place, names of head columns, and mistakes by their message."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import pyarrow as pa
import pytest

import lftj
from lftj import errors
from lftj.language.body import CheckedProgram
from maintenance import Workspace
from support.catalog import checked, schema, types_of
from support.cell_pipeline import run
from support.rows import rows_of

ORDERS = schema(key=pa.int64(), customer=pa.string(), day=pa.date32(), price=pa.float64())


def normal(text: str) -> CheckedProgram:
    return checked(text, orders=ORDERS)


@pytest.mark.parametrize(
    ("by_name", "by_place"),
    [
        ("h(o) <- orders(day: d, key: o), d < 2026-01-31.", "h(o) <- orders(o, _, d, _), d < 2026-01-31."),
        ('h(o) <- orders(key: o, customer: "a").', 'h(o) <- orders(o, "a", _, _).'),
        ("h(a) <- edge(src: a, dst: a).", "h(a) <- edge(a, a)."),
        ("h(a) <- node(a), !edge(dst: a).", "h(a) <- node(a), !edge(_, a)."),
        ("h(a) <- edge(a, _), (edge(dst: a) ; c(x: a)).", "h(a) <- edge(a, _), (edge(_, a) ; c(a))."),
        ("h(i, p) <- base[item: i] = p.", "h(i, p) <- base[i] = p."),
        ("h(o) <- orders[day: _, key: o] = _.", "h(o) <- orders[o, _, _] = _."),
        ("h[] = count() <- orders(day: d).", "h[] = count() <- orders(_, _, d, _)."),
        (
            "far(from: a, to: c) <- edge(a, b), edge(b, c). h(a) <- far(to: a).",
            "far(from, to) <- edge(from, b), edge(b, to). h(a) <- far(_, a).",
        ),
    ],
)
def test_by_name_is_by_place(by_name: str, by_place: str) -> None:
    one, other = normal(by_name), normal(by_place)
    last = [
        [
            getattr(body, field.name)
            for rule in program.strata[-1]
            for body in rule.bodies
            for field in fields(body)
        ]
        for program in (one, other)
    ]
    assert last[0] == last[1]
    assert types_of(one, "h") == types_of(other, "h")


def test_names_of_head_columns() -> None:
    program = normal("stats(a, n: count(), total: sum(b)) <- edge(a, b).")
    assert [name for name, _ in types_of(program, "stats")] == ["a", "n", "total"]
    program = normal("h[who: a] = n: count() <- edge(a, _).")
    assert [name for name, _ in types_of(program, "h")] == ["who", "n"]
    program = normal("h(b: a, b, a, b) <- edge(a, b).")
    assert [name for name, _ in types_of(program, "h")] == ["b", "b_2", "a", "b_3"]


def test_a_later_rule_names_its_columns_in_any_order() -> None:
    database = lftj.Database()
    database.load("edge", [(1, 2)], columns=["src", "dst"])
    one = "h(x: a, y: b) <- edge(a, b)."
    assert set(rows_of(database.query(f"{one} h(y: a, x: b) <- edge(a, b)."))) == {(1, 2), (2, 1)}
    assert set(rows_of(database.query(f"{one} h(b, y: a) <- edge(a, b)."))) == {(1, 2), (2, 1)}
    several = "h(x: a, n: count()) <- edge(a, _). h(n: count(), x: b) <- edge(_, b)."
    assert set(rows_of(database.query(several))) == {(1, 1), (2, 1)}


def test_recursion_by_name() -> None:
    database = lftj.Database()
    database.load("edge", [(1, 2), (2, 3)], columns=["src", "dst"])
    path = "path(from: a, to: b) <- edge(a, b). path(to: c, from: a) <- path(from: a, to: b), edge(b, c)."
    assert set(rows_of(database.query(path))) == {(1, 2), (2, 3), (1, 3)}


PROGRAM = """
    stats(who: a, n: count(), total: sum(b)) <- edge(src: a, dst: b).
    busy(a, t) <- stats(total: t, who: a, n: n), n > 1.
"""


def test_maintained_by_name() -> None:
    workspace = Workspace()
    workspace.load("edge", [(1, 2), (1, 3), (2, 3)], columns=["src", "dst"])
    workspace.install(PROGRAM)
    with workspace.transaction() as transaction:
        transaction.insert("edge", [(2, 7)])
    assert transaction.changes["stats"].column_names == ["who", "n", "total", "weight"]
    assert set(rows_of(workspace["busy"].table)) == {(1, 5), (2, 10)}
    assert set(rows_of(workspace.query("h(a) <- stats(n: 2, who: a)."))) == {(1,), (2,)}


def test_by_name_in_cells() -> None:
    pytest.importorskip("pyspark")
    edge = pa.table({"src": [1, 1, 2, 2], "dst": [2, 3, 3, 7]})
    assert set(rows_of(run(PROGRAM, {"edge": edge}, 3, Random(0)))) == {(1, 5), (2, 10)}


MISTAKES = r"""
RuleSyntaxError: an atom's terms stand by name or by place: 'b' has no name here
  h(a) <- edge(src: a, b).
                       ^

RuleSyntaxError: column 'src' stands here twice
  h(a) <- edge(src: a, src: b).
                       ^^^

RuleSyntaxError: column 'n' stands here twice
  h(n: a, n: b) <- edge(a, b).
          ^

RuleSyntaxError: 'true' can't name a column: call it 'true_'
  h(a) <- edge(true: a).
               ^^^^

RuleSyntaxError: an atom takes variables and constants: write v here and v = a + 1 beside the atom
  h(a) <- edge(src: a, dst: a + 1).
                            ^^^^^

RuleSyntaxError: a head takes variables only: write v here and v = 1 in the body
  h(n: 1) <- edge(a, _).
       ^

RuleSyntaxError: expected ',' or ')', not ':'
  h(a) <- edge(src: a: b).
                     ^

UnknownColumnError: 'edge' has no column 'scr'; did you mean 'src'?
  h(a) <- edge(scr: a).
               ^^^

UnknownColumnError: 'base' has no column 'price'; there is 'item'
  h(a) <- base[price: a] = _.
               ^^^^^

UnknownColumnError: 'far' has no column 'a'; there are 'from' and 'to'
  far(from: a, to: b) <- edge(a, b). h(a) <- far(a: a).
                                                 ^

UnknownColumnError: 'h' has no column 'z'; there are 'x' and 'y'
  h(x: a, y: b) <- edge(a, b). h(x: a, z: b) <- edge(a, b).
                                       ^

ArityError: 'y' is column 2 of 'h' in its first rule: put it there, or write all columns by name
  h(x: a, y: b) <- edge(a, b). h(y: a, b) <- edge(a, b).
                                 ^

ArityError: 'v' is column 2 of 'h' in its first rule: put it there, or write all columns by name
  h[k: a] = v: b <- edge(a, b). h[v: a] = k: b <- edge(a, b).
                                  ^
"""


@pytest.mark.parametrize("message", MISTAKES.strip("\n").split("\n\n"))
def test_mistakes(message: str) -> None:
    name, shown = message.split(": ", 1)
    with pytest.raises(errors.RuleError) as raised:
        normal(message.splitlines()[1].strip())
    assert (type(raised.value).__name__, str(raised.value)) == (name, shown)


@pytest.mark.parametrize("word", ["NULL", "in", "like", "is", "not", "if", "top", "count", "min", "by"])
def test_words_of_the_language_name_columns_and_relations(word: str) -> None:
    db = lftj.Database()
    db.load("c1", [(1, 2), (3, 4)], columns=[word, "b"])
    db.load(word, [(1,)], columns=[word])
    assert rows_of(db.query(f"h(a) <- c1(b: 2, {word}: a), {word}({word}: a).")) == [(1,)]
    assert rows_of(db.query(f"h(b) <- c1(b: b, {word}: a), !{word}({word}: a).")) == [(4,)]
    text = f"h({word}: a) <- c1({word}: a). n[] = {word}: count() <- h({word}: a), a > 1."
    assert db.query(text, head="n").to_pylist() == [{word: 1}]
    ws = Workspace()
    ws.load("c1", [(1, 2)], columns=[word, "b"])
    ws.install(f"{word}({word}: a) <- c1({word}: a).")
    assert ws[word].table.to_pylist() == [{word: 1}]


@pytest.mark.parametrize(("word", "other"), [("true", "true_"), ("false", "false_"), ("_", "x")])
@pytest.mark.parametrize(
    "rule",
    [
        "h(a) <- c1({}: a).",
        "h({}: a) <- c1(a).",
        "h(b: a, {}: count()) <- c1(a).",
        "h[a] = {}: b <- c(a, b).",
    ],
)
def test_constants_and_the_wildcard_name_no_column(rule: str, word: str, other: str) -> None:
    with pytest.raises(errors.RuleSyntaxError, match=f"'{word}' can't name a column: call it '{other}'"):
        lftj.Database().query(rule.format(word))
