"""The parser: every construct by its tree; random trees, rendered, parse back; any text gives one error.

Mistakes and their messages stand in ``test_syntax_errors.py``.
"""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import RuleSyntaxError
from lftj.language import parser
from lftj.language.parser import parse
from lftj.language.syntax import (
    Aggregate,
    Atom,
    BinaryOperation,
    Comparison,
    Constant,
    Disjunction,
    Expression,
    Head,
    Literal,
    Negative,
    Program,
    Rule,
    SortKey,
    Term,
    Variable,
    Wildcard,
    Window,
)
from lftj.values.names import AGGREGATES

X, Y = Variable("x"), Variable("y")


def body_of(text: str) -> tuple[Literal, ...]:
    return parse(f"h(x) <- {text}.").rules[0].body


def test_the_program_of_the_manual() -> None:
    program = parse(
        """
        // comment
        tri(a, b, c)  <- edge(a, b), edge(b, c), edge(a, c), a < b.
        reach2(a)     <- edge(a, b), edge(b, _).
        lonely(a)     <- node(a), !edge(a, _).
        price[p] = v  <- item(p), base[p] = b, v = b * 1.2.
        n[a] = count() <- tri(a, b, c).
        total[p] = sum(c) <- meal(p, f), calories[f] = c.              // sum avg min max concat count
        a(x), b(x)    <- c(x), (d(x, _) ; e(x)).
        red(x)        <- item(x), colour(x, "red"), made(x, 2026-01-31).
        stats(count(), p, max(c)) <- meal(p, f), calories[f] = c.
        """
    )
    a, b, c, p, v = (Variable(name) for name in "abcpv")
    assert program.rules[0] == Rule(
        (Head("tri", (a, b, c)),),
        (Atom("edge", (a, b)), Atom("edge", (b, c)), Atom("edge", (a, c)), Comparison("<", a, b)),
    )
    assert program.rules[1].body[1] == Atom("edge", (b, Wildcard()))
    assert program.rules[2].body[1] == Atom("edge", (a, Wildcard()), negated=True)
    assert program.rules[3] == Rule(
        (Head("price", (p,), v),),
        (
            Atom("item", (p,)),
            Atom("base", (p, b), functional=True),
            Comparison("=", v, BinaryOperation("*", b, Constant(Decimal("1.2")))),
        ),
    )
    assert program.rules[4].heads == (Head("n", (a,), Aggregate("count")),)
    assert program.rules[5].heads == (Head("total", (p,), Aggregate("sum", (c,))),)
    assert program.rules[6].heads == (Head("a", (X,)), Head("b", (X,)))
    assert program.rules[6].body[1] == Disjunction(((Atom("d", (X, Wildcard())),), (Atom("e", (X,)),)))
    assert program.rules[7].body[1:] == (
        Atom("colour", (X, Constant("red"))),
        Atom("made", (X, Constant(datetime.date(2026, 1, 31)))),
    )
    assert program.rules[8].heads == (Head("stats", (Aggregate("count"), p, Aggregate("max", (c,)))),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-5", -5),
        ("- 5", -5),
        ("-(5)", -5),
        ("--5", 5),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("1.20", Decimal("1.20")),
        ("-1.2", Decimal("-1.2")),
        ("-1234567890123456789012345678901.5", Decimal("-1234567890123456789012345678901.5")),
        ("1e5", 1e5),
        ("-2.5E-3", -2.5e-3),
        ("true", True),
        ("false", False),
        ('""', ""),
        (r'"a\"b\\c\nd\te"', 'a"b\\c\nd\te'),
        (r'"\u00e9\ud83d\ude00"', "é😀"),
        ('"// no comment. (x) <- "', "// no comment. (x) <- "),
        ("2026-01-31", datetime.date(2026, 1, 31)),
        ("2026-01-31T10:00:00", datetime.datetime(2026, 1, 31, 10)),
        ("2026-01-31T10:00:00.5", datetime.datetime(2026, 1, 31, 10, 0, 0, 500_000)),
        ("2026-01-31T10:00:00Z", datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC)),
        (
            "2026-01-31T10:00:00.000001+02:00",
            datetime.datetime(
                2026, 1, 31, 10, 0, 0, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))
            ),
        ),
        ('x"00fF"', b"\x00\xff"),
        ('x""', b""),
    ],
)
def test_constants(text: str, value: object) -> None:
    atom = body_of(f"b({text})")[0]
    assert repr(atom) == repr(Atom("b", (Constant(value),)))  # type: ignore[arg-type]
    comparison = body_of(f"x = {text}")[0]
    assert repr(comparison) == repr(Comparison("=", X, Constant(value)))  # type: ignore[arg-type]


def test_a_dot_behind_a_number_ends_the_rule() -> None:
    program = parse("a(x) <- b(x), x < 5.c(x) <- d(x), x < 1.5.")
    assert [rule.body[1] for rule in program.rules] == [
        Comparison("<", X, Constant(5)),
        Comparison("<", X, Constant(Decimal("1.5"))),
    ]


@pytest.mark.parametrize("text", ["x <-5", "x < -5", "(x) <-5", "x<-5"])
def test_an_arrow_in_a_body_is_less_than_minus(text: str) -> None:
    assert body_of(text) == (Comparison("<", X, Constant(-5)),)


def test_arithmetic_binds_as_usual() -> None:
    two = Constant(2)
    assert body_of("x = x + y * 2 - -y / 2")[0] == Comparison(
        "=",
        X,
        BinaryOperation(
            "-",
            BinaryOperation("+", X, BinaryOperation("*", Y, two)),
            BinaryOperation("/", Negative(Y), two),
        ),
    )
    assert body_of("x = (x + y) * (2)")[0] == Comparison(
        "=", X, BinaryOperation("*", BinaryOperation("+", X, Y), two)
    )


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=", "!="])
def test_comparisons(operator: str) -> None:
    assert body_of(f"x{operator}y") == (Comparison(operator, X, Y),)


def test_disjunctions_nest_and_hold_anything() -> None:
    assert body_of("((x) < 3 ; !F[x] = 2, (b(x) ; c(x)))")[0] == Disjunction(
        (
            (Comparison("<", X, Constant(3)),),
            (
                Atom("F", (X, Constant(2)), functional=True, negated=True),
                Disjunction(((Atom("b", (X,)),), (Atom("c", (X,)),))),
            ),
        )
    )


def test_functional_predicates_without_keys() -> None:
    rule = parse("n[] = count() <- m[] = _.").rules[0]
    assert rule == Rule((Head("n", (), Aggregate("count")),), (Atom("m", (Wildcard(),), functional=True),))


@pytest.mark.parametrize("name", [*AGGREGATES, "x", "e5", "not", "_a", "T10"])
def test_names_are_free(name: str) -> None:
    term = Variable(name)
    rule = parse(f"{name}[{name}] = {name} <- {name}({name}), {name} < 5.").rules[0]
    assert rule == Rule(
        (Head(name, (term,), term),), (Atom(name, (term,)), Comparison("<", term, Constant(5)))
    )


def test_concat_takes_a_separator_and_an_order() -> None:
    head = parse('n[x] = concat(s, " / ", o, p) <- b(x, s, o, p).').rules[0].heads[0]
    arguments = (Variable("s"), Constant(" / "), Variable("o"), Variable("p"))
    assert head.value == Aggregate("concat", arguments)


def test_an_order_of_concat_is_a_window_s() -> None:
    text = 'n[x] = concat(s, " / ", by: (o desc, p)) <- b(x, s, o, p).'
    ranked, joined = parse(text).rules
    window, _ = ranked.heads[0].windows  # the other numbers the rows
    assert window == Window(
        "dense_rank", (), (Variable("x"),), (SortKey(Variable("o"), True), SortKey(Variable("p")))
    )
    assert joined.heads[0].value == Aggregate(
        "concat", (Variable("s"), Constant(" / "), Variable("by: o desc, p"))
    )


def test_an_empty_program() -> None:
    assert parse(" // nothing\n") == Program(())


def test_spans() -> None:
    text = "a(x) <- b(x, 5), !F[x] = _, (x + 1) * 2 <= y."
    program = parse(text)
    rule = program.rules[0]
    assert program.text == text
    assert rule.span == (0, len(text))
    assert [text[slice(*literal.span)] for literal in rule.body] == [
        "b(x, 5)",
        "!F[x] = _",
        "(x + 1) * 2 <= y",
    ]
    atom, negation, comparison = rule.body
    assert isinstance(atom, Atom)
    assert isinstance(negation, Atom)
    assert isinstance(comparison, Comparison)
    assert text[slice(*atom.terms[1].span)] == "5"
    assert text[slice(*negation.name_span)] == "F"
    assert text[slice(*comparison.left.span)] == "(x + 1) * 2"
    assert text[slice(*rule.heads[0].name_span)] == "a"


# -- random trees ---------------------------------------------------------------

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(
    lambda name: name not in ("_", "true", "false")
)
VARIABLES = st.builds(Variable, NAMES)
MOMENTS = st.datetimes(min_value=datetime.datetime(1000, 1, 1)).map(lambda moment: moment.replace(fold=0))
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda m: datetime.timezone(datetime.timedelta(minutes=m)))
NUMBERS = st.one_of(
    st.integers(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    NUMBERS,
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(max_size=5),
    st.dates(min_value=datetime.date(1000, 1, 1)),
    MOMENTS,
    st.builds(lambda moment, zone: moment.replace(tzinfo=zone), MOMENTS, ZONES),
)
CONSTANTS = st.builds(Constant, VALUES)


def is_number(node: Expression) -> bool:
    return isinstance(node, Constant) and type(node.value) in (int, float, Decimal)


EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(VARIABLES, CONSTANTS),
    lambda inner: st.one_of(
        st.builds(BinaryOperation, st.sampled_from("+-*/"), inner, inner),
        inner.filter(lambda node: not is_number(node)).map(Negative),
    ),
    max_leaves=6,
)
TERMS: st.SearchStrategy[Term] = st.one_of(VARIABLES, CONSTANTS, st.just(Wildcard()))
ATOM_NODES = st.builds(
    Atom, NAMES, st.lists(TERMS, min_size=1, max_size=3).map(tuple), st.booleans(), st.booleans()
)
COMPARISONS = st.builds(
    Comparison, st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), EXPRESSIONS, EXPRESSIONS
)
BODIES: st.SearchStrategy[tuple[Literal, ...]] = st.recursive(
    st.lists(st.one_of(ATOM_NODES, COMPARISONS), min_size=1, max_size=3).map(tuple),
    lambda inner: st.lists(
        st.one_of(
            ATOM_NODES,
            COMPARISONS,
            st.builds(Disjunction, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    max_leaves=5,
)
CALLS = st.one_of(
    st.just(Aggregate("count")),
    st.builds(Aggregate, st.sampled_from(AGGREGATES[1:]), st.tuples(VARIABLES)),
    st.builds(
        lambda s, separator, order: Aggregate("concat", (s, Constant(separator), *order)),
        VARIABLES,
        st.text(st.characters(exclude_categories=["Cs"])),
        st.lists(VARIABLES, max_size=2),
    ),
)
HEAD_NODES = st.one_of(
    st.builds(Head, NAMES, st.lists(st.one_of(VARIABLES, CALLS), min_size=1, max_size=3).map(tuple)),
    st.builds(Head, NAMES, st.lists(VARIABLES, max_size=3).map(tuple), st.one_of(VARIABLES, CALLS)),
)
RULES = st.builds(Rule, st.lists(HEAD_NODES, min_size=1, max_size=2).map(tuple), BODIES)
PROGRAMS = st.builds(Program, st.lists(RULES, max_size=3).map(tuple))


def render_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}" if "." in f"{value:f}" else f"{value:f}.0"
    if isinstance(value, float):
        return f"{value!r}" if "e" in repr(value) else f"{value!r}e0"
    if isinstance(value, str):
        escapes = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t"}
        return '"' + "".join(escapes.get(character, character) for character in value) + '"'
    if isinstance(value, bytes):
        return f'x"{value.hex()}"'
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def render_expression(node: Any) -> str:
    """Parentheses around every operation: the tree needs no precedence to be read back."""
    if isinstance(node, Variable):
        return node.name
    if isinstance(node, Wildcard):
        return "_"
    if isinstance(node, Constant):
        return render_value(node.value)
    if isinstance(node, Negative):
        return f"-({render_expression(node.operand)})"
    return f"({render_expression(node.left)}) {node.operator} ({render_expression(node.right)})"


def render_literal(node: Literal) -> str:
    if isinstance(node, Disjunction):
        return "(" + " ; ".join(render_body(alternative) for alternative in node.alternatives) + ")"
    if isinstance(node, Comparison):
        return f"{render_expression(node.left)} {node.operator} {render_expression(node.right)}"
    terms = [render_expression(term) for term in node.terms]
    sign = "!" if node.negated else ""
    if node.functional:
        return f"{sign}{node.relation}[{', '.join(terms[:-1])}] = {terms[-1]}"
    return f"{sign}{node.relation}({', '.join(terms)})"


def render_body(body: tuple[Literal, ...]) -> str:
    return ", ".join(render_literal(literal) for literal in body)


def render_column(node: Variable | Aggregate) -> str:
    if isinstance(node, Variable):
        return node.name
    return f"{node.function}({', '.join(render_expression(argument) for argument in node.arguments)})"


def render_head(head: Head) -> str:
    terms = ", ".join(render_column(term) for term in head.terms)
    if head.value is None:
        return f"{head.relation}({terms})"
    return f"{head.relation}[{terms}] = {render_column(head.value)}"


def render_program(program: Program) -> str:
    return "".join(
        f"{', '.join(render_head(head) for head in rule.heads)} <- {render_body(rule.body)}.\n"
        for rule in program.rules
    )


@given(PROGRAMS)
def test_a_rendered_tree_parses_back(program: Program) -> None:
    # repr tells 1 from True, 1.0 and Decimal(1), which == does not.
    assert repr(parse(render_program(program))) == repr(program)


def mistake(text: str) -> RuleSyntaxError | None:
    try:
        parse(text)
    except RuleSyntaxError as error:
        return error
    return None


@given(st.text())
def test_any_text_is_a_program_or_one_error(text: str) -> None:
    error = mistake(text)
    assert error is None or is_inside(error.span, text)


@given(st.data())
def test_any_damage_gives_one_error(data: st.DataObject) -> None:
    text = 'n[a] = sum(c) <- e(a, _), !F[a] = "x", (d(c) ; a + 1.5 <= -c, d(2026-01-31)).'
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    text = text[:start] + data.draw(st.text('ab_(),.;<-=!"[]+*/ 15\n\\:')) + text[end:]
    error = mistake(text)
    assert error is None or (is_inside(error.span, text) and "^" in str(error))


def is_inside(span: tuple[int, int] | None, text: str) -> bool:
    return span is not None and 0 <= span[0] <= span[1] <= len(text)


# -- the grammar's tables ------------------------------------------------------


def test_tables_that_are_kept_are_those_of_the_grammar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not whole, or of something else, is made anew; where nothing can be kept, each time."""
    text = "h(a, n: count()) <- e(a, b), (b + 1 < 3 ; !e(b, a))."
    expected = parser._grammar().parse(text)
    monkeypatch.setattr(parser, "__file__", str(tmp_path / "parser.py"))
    assert parser._grammar.__wrapped__().parse(text) == expected
    assert not list(tmp_path.iterdir())
    (tmp_path / "__pycache__").mkdir()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert parser._grammar.__wrapped__().parse(text) == expected
    assert not list((tmp_path / "__pycache__").iterdir())
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert parser._grammar.__wrapped__().parse(text) == expected
    (kept,) = (tmp_path / "__pycache__").iterdir()
    digest, _, tables = kept.read_bytes().partition(b"\n")
    for content in (digest + b"\n" + tables, digest + b"\n" + tables[:1_000], b"other\n" + tables, b""):
        kept.write_bytes(content)
        assert parser._grammar.__wrapped__().parse(text) == expected
        assert kept.read_bytes().startswith(digest) and kept.stat().st_size > len(tables) // 2
