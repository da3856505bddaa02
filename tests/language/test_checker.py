"""The checker: normal forms, assignments, types and names of heads.

Mistakes and their messages stand in ``test_checker_errors.py``.
"""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lftj
from lftj.errors import TypeClashError
from lftj.language.body import Body
from lftj.language.expressions import text_of
from lftj.language.normal_form import conjunctions, name_wildcards, order_assignments
from lftj.language.parser import parse
from lftj.language.syntax import Atom, Comparison, Constant, Disjunction, Literal, Variable, Wildcard
from support.catalog import CATALOG, DOMAINS, checked, schema, types_of


def bodies_of(text: str) -> tuple[Body, ...]:
    return checked(text).strata[-1][0].bodies


def relations(body: Body) -> list[str]:
    return [atom.relation for atom in body.atoms] + [f"!{atom.relation}" for atom in body.negations]


# -- normal form ----------------------------------------------------------------


def test_a_body_without_disjunction_is_one_conjunction() -> None:
    (body,) = bodies_of("a(x) <- c(x), !d(x, _), x < 5, e(x), v = x + 1, v != 3.")
    assert relations(body) == ["c", "e", "!d"]
    assert [comparison.operator for comparison in body.comparisons] == ["<", "!="]
    assert [assignment.variable for assignment in body.assignments] == ["v"]
    assert list(body.types) == ["x", "v"]
    assert body.atom_variables() == ["x"]


def test_disjunctions_multiply_out() -> None:
    bodies = bodies_of("a(x) <- (c(x) ; e(x), (node(y) ; d(x, y))), (x < 5 ; !d(x, x)).")
    assert [relations(body) for body in bodies] == [
        ["c"],
        ["c", "!d"],
        ["e", "node"],
        ["e", "node", "!d"],
        ["e", "d"],
        ["e", "d", "!d"],
    ]


def names(literal: Literal) -> set[str]:
    """Relations of all atoms in a literal."""
    if isinstance(literal, Disjunction):
        return {name for part in literal.alternatives for inner in part for name in names(inner)}
    return {literal.relation} if isinstance(literal, Atom) else set()


ATOMS = st.integers(0, 9).map(lambda number: Atom(f"r{number}", (Variable("x"),)))
LITERALS: st.SearchStrategy[Literal] = st.recursive(
    ATOMS,
    lambda inner: st.lists(st.lists(inner, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3).map(
        lambda parts: Disjunction(tuple(parts))
    ),
    max_leaves=8,
)


def holds(literals: tuple[Literal, ...], true: set[str]) -> bool:
    """Truth of a body when the atoms over some relations are true."""
    return all(
        any(holds(part, true) for part in literal.alternatives)
        if isinstance(literal, Disjunction)
        else isinstance(literal, Atom) and literal.relation in true
        for literal in literals
    )


@given(st.lists(LITERALS, min_size=1, max_size=4).map(tuple), st.sets(st.integers(0, 9)))
def test_the_normal_form_says_the_same(body: tuple[Literal, ...], numbers: set[int]) -> None:
    true = {f"r{number}" for number in numbers}
    parts = conjunctions(body, "")
    assert any(all(atom.relation in true for atom in part.atoms) for part in parts) == holds(body, true)


def test_wildcards_of_aggregates_get_names() -> None:
    first, second = bodies_of("n[x] = count() <- d(x, _), (d(_, _1), !d(x, _) ; e(_)).")
    assert [[term.name for term in atom.terms if isinstance(term, Variable)] for atom in first.atoms] == [
        ["x", "_2"],
        ["_3", "_1"],
    ]
    assert isinstance(first.negations[0].terms[1], Wildcard)
    assert list(second.types) == ["x", "_2", "_4"]


def test_wildcards_of_sets_stay() -> None:
    (body,) = bodies_of("a(x) <- d(x, _).")
    assert body.atoms[0].terms == (Variable("x"), Wildcard())


def test_named_wildcards_keep_their_place() -> None:
    text = "n[x] = count() <- d(x, _)."
    (atom,) = name_wildcards(parse(text).rules[0].body)
    assert isinstance(atom, Atom)
    assert text[slice(*atom.terms[1].span)] == "_"


# -- assignments ------------------------------------------------------------------


def test_assignments_come_in_an_order_that_works() -> None:
    (body,) = bodies_of("a(u) <- c(x), u = v * w, w = v + x, 5 = v, v < u, x = w.")
    assert [assignment.variable for assignment in body.assignments] == ["v", "w", "u"]
    assert [comparison.operator for comparison in body.comparisons] == ["<", "="]


def test_either_side_may_be_the_unbound_one() -> None:
    (body,) = bodies_of("a(y, z) <- c(x), x = y, z = x.")
    assert [(a.variable, a.expression) for a in body.assignments] == [
        ("y", Variable("x")),
        ("z", Variable("x")),
    ]


def test_an_equality_of_bound_variables_is_a_comparison() -> None:
    (body,) = bodies_of("a(x) <- d(x, y), x = y, y = 5.")
    assert not body.assignments
    assert body.comparisons == (
        Comparison("=", Variable("x"), Variable("y")),
        Comparison("=", Variable("y"), Constant(5)),
    )


def test_of_two_equalities_the_first_assigns() -> None:
    equalities = [
        Comparison("=", Variable("v"), Variable("a")),
        Comparison("=", Variable("v"), Variable("b")),
    ]
    assignments, tests = order_assignments(equalities, {"a", "b"})
    assert [assignment.expression for assignment in assignments] == [Variable("a")]
    assert tests == equalities[1:]


@pytest.mark.parametrize(
    ("body", "assigned"),
    [
        ("v = 1, v = x", {"v": "x"}),
        ("x = v, 1 = v", {"v": "x"}),
        ("v = 1, v = w, w = x + 1", {"w": "x + 1", "v": "w"}),
        ("v = 1, v = w, w = u, u = x, v = 2", {"u": "x", "w": "u", "v": "w"}),
        ("v = 1, v = x, w = 2, w = x / 2", {"v": "x", "w": "x / 2"}),
        # Nothing else assigns v: the constant comes in its turn, so that tests on v come before what follows.
        ("v = 1, w = x / v", {"v": "1", "w": "x / v"}),
        ("v = 2, v != x, u = v, w = 1 / (x - 2)", {"v": "2", "u": "v", "w": "1 / (x - 2)"}),
        ("v = 1, v = w, w = u + x, u = 3", {"u": "3", "w": "u + x", "v": "w"}),
        ("v = 1, v = w, w = v + 1", {"v": "1", "w": "v"}),
        ("v = 1, v = v + x", {"v": "1"}),
        ("v = 2, v = 1", {"v": "2"}),
    ],
)
def test_a_variable_assigns_rather_than_a_constant(body: str, assigned: dict[str, str]) -> None:
    """Whatever the order of writing, so that it does not decide the type."""
    (checked_body,) = bodies_of(f"a(v) <- c(x), {body}.")
    found = [(a.variable, text_of(a.expression)) for a in checked_body.assignments]
    assert found == list(assigned.items())


def test_the_order_of_writing_does_not_decide_the_type() -> None:
    db = lftj.Database()
    db.load("c", pa.table({"x": pa.array([1, 2], pa.int16())}))
    for equalities in itertools.permutations(("v = 1", "v = x", "w = v", "w = 1.0")):
        table = db.query(f"a(v, w) <- c(x), {', '.join(equalities)}.")
        assert [str(column.type) for column in table.columns] == ["int16", "int16"]
        assert table.to_pylist() == [{"v": 1, "w": 1}]


def test_an_alternative_may_assign_what_another_reads() -> None:
    first, second = bodies_of("a(x, y) <- c(x), (d(x, y) ; y = x + 1).")
    assert not first.assignments
    assert [assignment.variable for assignment in second.assignments] == ["y"]


def test_negated_atoms_may_test_computed_variables() -> None:
    (body,) = bodies_of("a(x) <- c(x), v = x + 1, !d(x, v).")
    assert str(body.types["v"].arrow) == "int64"
    assert relations(body) == ["c", "!d"]


# -- types ------------------------------------------------------------------------


def test_a_variable_has_the_type_of_its_first_column() -> None:
    program = checked("a(x, y) <- node(x), d(x, y).")
    assert types_of(program, "a") == [("x", "int32"), ("y", "int64")]
    assert program.derived["a"].columns[0].type.domain is DOMAINS.of(pa.int64())


@pytest.mark.parametrize(
    ("text", "value_type"),
    [
        ("f[i] = v <- base[i] = b, v = b * 1.2.", "decimal128(11, 3)"),
        ("f[x] = v <- c(x), v = x * 1.2.", "double"),
        ("f[x] = v <- node(x), v = x + 1.", "int64"),
        ("f[x] = v <- node(x), v = x.", "int32"),
        ("f[x] = v <- node(x), v = x / 2.", "double"),
        ("f[x] = v <- c(x), v = 1.2.", "decimal128(2, 1)"),
        ("f[x] = v <- c(x), v = 1.2. f[x] = v <- w(x, v).", "double"),
        ('f[x] = v <- c(x), v = "a".', "string"),
        ("f[i] = v <- made(i, d), v = d + 7.", "date32[day]"),
        ("f[i] = count() <- item(i).", "int64"),
        ("f[x] = sum(x) <- node(x).", "int64"),
        ("f[x] = sum(w) <- w(x, w).", "double"),
        ("f[i] = sum(b) <- base[i] = b.", "decimal128(38, 2)"),
        ("f[x] = avg(x) <- node(x).", "double"),
        ("f[i] = avg(b) <- base[i] = b.", "double"),
        ("f[i] = min(d) <- made(i, d).", "date32[day]"),
        ("f[i] = max(c) <- colour(i, c).", "dictionary<values=string, indices=int8, ordered=0>"),
        ('f[i] = concat(c, ", ", i) <- colour(i, c).', "string"),
        ("f[i] = concat(c) <- colour(i, c).", "string"),
    ],
)
def test_types_of_values(text: str, value_type: str) -> None:
    program = checked(text)
    assert types_of(program, "f")[-1][1] == value_type
    assert program.derived["f"].functional


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        (pa.int8(), pa.int32(), "int32"),
        (pa.uint8(), pa.int8(), "int16"),
        (pa.uint32(), pa.uint64(), "uint64"),
        (pa.uint64(), pa.int64(), "int64"),
        (pa.uint16(), pa.int64(), "int64"),
        (pa.float32(), pa.float64(), "double"),
        (pa.float16(), pa.float32(), "float"),
        (pa.string(), pa.large_string(), "large_string"),
        (pa.string(), pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.binary(4), pa.binary(), "binary"),
        (pa.binary_view(), pa.large_binary(), "large_binary"),
        (pa.decimal128(5, 2), pa.decimal128(9, 0), "decimal128(11, 2)"),
        (pa.decimal128(38, 0), pa.decimal128(38, 10), "decimal256(48, 10)"),
        (pa.decimal128(5, -2), pa.decimal128(5, 2), "decimal128(9, 2)"),
        (pa.date32(), pa.date64(), "date32[day]"),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin"), "timestamp[us, tz=UTC]"),
    ],
)
def test_heads_of_several_rules_take_the_wider_type(
    first: pa.DataType, second: pa.DataType, common: str
) -> None:
    more = {"p": schema(v=first), "q": schema(v=second)}
    assert types_of(checked("u(v) <- p(v). u(v) <- q(v).", **more), "u") == [("v", common)]
    assert types_of(checked("u(v) <- (p(v) ; q(v)).", **more), "u") == [("v", common)]


def test_a_union_of_decimals_may_be_too_wide() -> None:
    more = {"p": schema(v=pa.decimal256(76, 0)), "q": schema(v=pa.decimal128(9, 9))}
    with pytest.raises(TypeClashError, match="a number of 85 digits"):
        checked("u(v) <- p(v). u(v) <- q(v).", **more)


def test_a_reader_sees_the_union_of_all_rules() -> None:
    program = checked("r(v) <- u(v). u(v) <- node(v). u(v) <- u2(v). u2(v) <- c(v).")
    assert types_of(program, "r") == [("v", "int64")]
    assert [[rule.heads[0].relation for rule in stratum] for stratum in program.strata] == [
        ["u", "u2"],
        ["u"],
        ["r"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "w(_, f), d(_, i), f < i",
        "w(_, f), base[_] = p, p <= f",
        "d(_, i), base[_] = p, p != i",
        "d(_, i), i < 2.5",
        "w(_, f), f = 5",
        "base[_] = p, p = 1e-2",
        "t(_, t), t >= 2026-01-31T10:00:00+02:00",
        "made(_, t), t < 2026-01-31T10:00:00",
        'item(s), s < "m"',
        "item(s), colour(_, s2), s < s2",
        "1 < 2",
    ],
)
def test_what_may_be_compared(text: str) -> None:
    (body,) = bodies_of(f"a(x) <- c(x), {text}.")
    assert len(body.comparisons) == 1


def test_constants_that_no_data_holds_are_no_mistake() -> None:
    bodies_of('a(x) <- d(x, 2.5), colour("never seen", _), d(99999999999999999999, _).')


# -- heads ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("a(x, y)", ["x", "y"]),
        ("a(x, x, x)", ["x", "x_2", "x_3"]),
        ("a(x_2, x, x)", ["x_2", "x", "x_3"]),
        ("a[x] = x", ["x", "x_2"]),
        ("a[] = x", ["x"]),
        ("a[] = count()", ["count"]),
        ("a[count] = count()", ["count", "count_2"]),
        ("a[x] = sum(y)", ["x", "sum"]),
    ],
)
def test_names_of_columns(head: str, names: list[str]) -> None:
    program = checked(f"{head} <- d(x, y), x_2 = 5, count = 6.")
    assert [name for name, _ in types_of(program, "a")] == names


def test_the_first_rule_names_the_columns() -> None:
    program = checked("r(z) <- a(z). a(x) <- r0(x). a(y) <- c(y). r0(v) <- c(v).")
    assert types_of(program, "a") == [("x", "int64")]


def test_several_heads_share_a_body() -> None:
    program = checked("a(x), b[x] = y, n[] = count() <- d(x, y).")
    (rule,) = program.strata[0]
    assert [(head.relation, head.variables) for head in rule.heads] == [
        ("a", ("x",)),
        ("b", ("x",)),
        ("n", ()),
    ]
    assert rule.heads[1].value == "y"
    assert [program.derived[name].functional for name in "abn"] == [False, True, True]
    assert program.result == ("a", "b", "n")


def test_functional_heads_may_be_read_by_position_and_any_relation_functionally() -> None:
    program = checked("f[x] = y <- d(x, y). g(x, y) <- f(x, y), f[x] = y, edge[x] = y, !f[x] = 3, f[_] = _.")
    assert types_of(program, "g") == [("x", "int64"), ("y", "int64")]


def test_texts_and_spans_of_rules() -> None:
    text = "a(x) <- c(x).  // one\nb(x) <- a(x)."
    program = checked(text)
    rules = [rule for stratum in program.strata for rule in stratum]
    assert [rule.text for rule in rules] == ["a(x) <- c(x).", "b(x) <- a(x)."]
    assert text[slice(*rules[1].heads[0].span)] == "b(x)"
    assert program.text == text
    assert program.result == ("b",)


def test_the_catalog_is_left_alone() -> None:
    before = dict(CATALOG)
    checked("a(x) <- c(x).")
    assert before == CATALOG
