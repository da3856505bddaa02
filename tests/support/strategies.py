"""Hypothesis strategies: random relations of all column types, random rules, random programs.

A ``Scenario`` is loaded relations and a program over them; ``repr`` is a
script's worth of text, so that a failure can be repeated by hand.  Rules are
right by construction (every variable bound, no recursion, domains agree):
wrong rules are the subject of other tests.

How a body comes about: positive atoms first, each term an earlier variable of
the column's kind, a fresh one, a constant or a wildcard; then literals over
the variables bound so far; then the literals are shuffled, for the order of
writing must not matter.  Earlier variables are preferred, so that bodies are
mostly connected, but unconnected existentials and products do occur.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from support.calls import CALLED, draw_call, draw_test, has_test
from support.kinds import BOOLEAN, DECIMAL, EXTREME, FLOAT, INTEGER, KINDS, SIGNED, STRING, WIDE, Kind
from support.reference import Relations, Row
from support.rules import (
    NULL_SAFE,
    OPERATORS,
    Aggregate,
    Arithmetic,
    Atom,
    Comparison,
    Constant,
    Either,
    Expression,
    Head,
    Literal,
    Minus,
    Program,
    Rule,
    Term,
    Variable,
    Wildcard,
    render,
    variables_of,
)

NAMES = tuple("abcdefghijklmnopqrstuvwxyz")
Scope = dict[str, Kind]
Nulls = typing.Literal["refuse", "keep"]


@dataclass(frozen=True)
class Loaded:
    """A loaded relation: ``functional`` data has one last value for the values before it.

    ``nullable``: it is loaded with its NULLs, which are None.
    """

    name: str
    kinds: tuple[Kind, ...]
    types: tuple[pa.DataType, ...]
    rows: tuple[Row, ...]  # duplicates may be among them
    functional: bool
    nullable: bool = False

    @property
    def nulls(self) -> Nulls:
        """The argument ``nulls=`` of ``load``."""
        return "keep" if self.nullable else "refuse"

    def values(self) -> list[tuple[Any, ...]]:
        """What each column may hold."""
        null = (None,) if self.nullable else ()
        return [(*kind.values(arrow), *null) for kind, arrow in zip(self.kinds, self.types, strict=True)]

    def table(self) -> pa.Table:
        """The rows as an Arrow table; columns are named c0, c1, ..."""
        columns = [pa.array([row[i] for row in self.rows], type=arrow) for i, arrow in enumerate(self.types)]
        return pa.table({f"c{i}": column for i, column in enumerate(columns)})


@dataclass(frozen=True)
class Signature:
    """What a rule needs to know of a relation that it reads."""

    name: str
    kinds: tuple[Kind, ...]
    functional: bool


@dataclass(frozen=True)
class Scenario:
    """``by_name``: the loaded relations whose atoms name their columns."""

    loaded: tuple[Loaded, ...]
    program: Program
    by_name: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        columns = {r.name: [f"c{i}" for i in range(len(r.kinds))] for r in self.loaded}
        return render(self.program, {name: columns[name] for name in self.by_name})

    @property
    def relations(self) -> Relations:
        return {relation.name: set(relation.rows) for relation in self.loaded}

    @property
    def wanted(self) -> str:
        """The first head of the last rule."""
        return self.program[-1].heads[0].relation

    def __repr__(self) -> str:
        lines = [
            f"{r.name}: {[str(t) for t in r.types]} {sorted(set(r.rows), key=repr)}" for r in self.loaded
        ]
        return "\n".join(["", *lines, self.text])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # hypothesis prints a dataclass field by field otherwise


# -- data ---------------------------------------------------------------------


@st.composite
def loaded_relations(
    draw: DrawFn, name: str, kinds: tuple[Kind, ...], max_rows: int, nullable: bool = False
) -> Loaded:
    """Rows over the kinds' pools; a skewed column has its first value in about half of the rows."""
    types = tuple(draw(st.sampled_from(kind.types)) for kind in kinds)
    cells = []
    for kind, arrow in zip(kinds, types, strict=True):
        values = kind.values(arrow)
        values = values[: draw(st.integers(2, max(2, len(values))))]
        if draw(st.booleans()):
            values = (values[0],) * len(values) + values
        if nullable:
            values = (*values, *(None,) * (1 + len(values) // 3))
        cells.append(st.sampled_from(values))
    n_rows = draw(st.sampled_from((1, 0, 3, *(max_rows // 2,) * 3, *(max_rows,) * 6)))
    rows = draw(st.lists(st.tuples(*cells), min_size=n_rows, max_size=n_rows))
    functional = len(kinds) > 1 and draw(st.integers(0, 3)) == 3
    if functional:
        rows = list({row[:-1]: row for row in rows}.values())
    return Loaded(name, kinds, types, tuple(rows), functional, nullable)


# -- bodies -------------------------------------------------------------------


def of_kind(scope: Scope, kind: Kind) -> list[str]:
    return [name for name, its in scope.items() if its is kind]


def draw_constant(draw: DrawFn, kind: Kind) -> Constant:
    return Constant(draw(st.sampled_from(kind.literals)))


def draw_term(draw: DrawFn, kind: Kind, scope: Scope, fresh: list[str] | None, atom: list[Term]) -> Term:
    """A term for a column of this kind, after the terms ``atom`` of its atom.

    ``fresh`` None: only variables in scope, constants, wildcards.
    """
    choice = draw(st.integers(0, 19))
    known = [name for name in of_kind(scope, kind) if Variable(name) not in atom or choice == 5]
    if known and (choice < 10 or (fresh is None and choice < 16)):
        return Variable(draw(st.sampled_from(known)))
    if choice >= 18 and kind.literals:
        known_literals = [repr(value) for value in kind.literals]  # True is no literal of integers
        earlier = [t for t in atom if isinstance(t, Constant) and repr(t.value) in known_literals]
        return earlier[0] if earlier and choice == 18 else draw_constant(draw, kind)
    if choice >= 16 or not fresh:
        return Wildcard()
    name = fresh.pop(0)
    scope[name] = kind
    return Variable(name)


def draw_atom(draw: DrawFn, catalog: list[Signature], scope: Scope, fresh: list[str] | None) -> Atom:
    relation = draw(st.sampled_from(catalog))
    terms: list[Term] = []
    for kind in relation.kinds:
        terms.append(draw_term(draw, kind, scope, fresh, terms))
    functional = relation.functional and draw(st.booleans())
    return Atom(relation.name, tuple(terms), negated=fresh is None, functional=functional)


def draw_affine(draw: DrawFn, kind: Kind, names: list[str]) -> Expression:
    """``x``, ``x + 3``, ``2 * x - y``, ``-x`` ... over variables of a kind with arithmetic."""
    x, y = (Variable(draw(st.sampled_from(names))) for _ in range(2))
    number = Constant(draw(st.sampled_from(kind.literals[:4] if kind is INTEGER else kind.literals[:2])))
    forms: tuple[Expression, ...] = (
        Arithmetic("+", x, number),
        x,
        Arithmetic("-", x, number),
        Arithmetic("-", x, y),
        Arithmetic("+", x, y),
        Minus(x),
    )
    if kind is not DECIMAL:
        product = Arithmetic("*", x, number)
        forms += (product, Arithmetic("+", product, y), Arithmetic("-", y, Arithmetic("*", number, x)))
    return draw(st.sampled_from(forms))


def draw_comparison(draw: DrawFn, scope: Scope) -> Comparison:
    name = draw(st.sampled_from(list(scope)))
    kind = scope[name]
    left: Expression = Variable(name)
    right: Expression = Variable(draw(st.sampled_from(of_kind(scope, kind))))
    choice = draw(st.integers(0, 4))
    if choice == 4 and has_test(kind):
        return draw_test(draw, kind, of_kind(scope, kind))
    if kind.affine and choice >= 2:
        right = draw_affine(draw, kind, of_kind(scope, kind))
        if choice == 3:
            left = draw_affine(draw, kind, of_kind(scope, kind))
    elif kind.literals and choice >= 1:
        right = draw_constant(draw, kind)
    if draw(st.booleans()):
        left, right = right, left
    return Comparison(draw(st.sampled_from(OPERATORS)), left, right)


def draw_null_test(draw: DrawFn, body: tuple[Literal, ...]) -> Comparison:
    """``x is null`` or ``x is not null`` of a variable of an atom."""
    atoms = [literal for literal in body if isinstance(literal, Atom) and not literal.negated]
    name = draw(st.sampled_from([name for atom in atoms for name in variables_of(atom)]))
    return Comparison(draw(st.sampled_from(NULL_SAFE)), Variable(name), Constant(None))


def draw_null_safe(draw: DrawFn, body: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """The body with ``<=>`` before the variables of some of its atoms, positive ones and negated ones."""
    return tuple(
        replace(literal, terms=tuple(map(null_safe, literal.terms)))
        if isinstance(literal, Atom) and draw(st.integers(0, 2)) == 2
        else literal
        for literal in body
    )


def null_safe(term: Term) -> Term:
    return replace(term, null_safe=True) if isinstance(term, Variable) else term


def draw_assignment(draw: DrawFn, scope: Scope, fresh: list[str]) -> Comparison:
    """``v = expression`` for a fresh v, which enters the scope."""
    known = draw(st.sampled_from(list(scope)))
    kind = scope[known]
    choice = draw(st.integers(0, 3))
    source: Expression = Variable(known)
    if kind in CALLED and draw(st.booleans()):
        source, kind = draw_call(draw, kind, of_kind(scope, kind))
    elif kind in (INTEGER, SIGNED, FLOAT, DECIMAL) and choice >= 1:
        source = draw_affine(draw, kind, of_kind(scope, kind))
        if kind in (INTEGER, SIGNED) and choice == 3:
            kind = FLOAT
            operator, factor = draw(st.sampled_from((("/", 2), ("*", Decimal("1.2")), ("/", 1.5))))
            source = Arithmetic(operator, source, Constant(factor))
    elif kind in (STRING, BOOLEAN) and choice == 3:
        source = draw_constant(draw, kind)
    name = fresh.pop(0)
    scope[name] = kind
    if draw(st.booleans()):
        return Comparison("=", Variable(name), source)
    return Comparison("=", source, Variable(name))


def draw_either(draw: DrawFn, catalog: list[Signature], scope: Scope, fresh: list[str]) -> Either:
    """Two or three alternatives; perhaps all of them bind one fresh variable, which enters the scope."""
    shared: str | None = None
    kind = draw(st.sampled_from(catalog)).kinds[0]
    if draw(st.booleans()):
        shared = fresh.pop(0)
    alternatives = []
    for _ in range(draw(st.integers(2, 3))):
        local = dict(scope)
        literals: list[Literal] = []
        choice = draw(st.integers(0, 3))
        if choice <= 1 or shared:
            literals.append(draw_atom(draw, catalog, local, fresh))
        if choice == 2 or (choice == 1 and local):
            literals.append(draw_comparison(draw, local))
        if choice == 3:
            literals.append(draw_atom(draw, catalog, local, None))
        if shared and shared not in local:
            literals.append(draw_binder(draw, catalog, kind, shared, local, fresh))
        alternatives.append(tuple(draw(st.permutations(literals))))
    if shared:
        scope[shared] = kind
    return Either(tuple(alternatives))


def draw_binder(
    draw: DrawFn, catalog: list[Signature], kind: Kind, name: str, scope: Scope, fresh: list[str]
) -> Atom:
    """A positive atom with variable ``name`` in one of its columns of the kind."""
    relation = draw(st.sampled_from([r for r in catalog if kind in r.kinds]))
    place = draw(st.sampled_from([i for i, its in enumerate(relation.kinds) if its is kind]))
    scope[name] = kind
    terms: list[Term] = []
    for column, its in enumerate(relation.kinds):
        terms.append(Variable(name) if column == place else draw_term(draw, its, scope, fresh, terms))
    return Atom(relation.name, tuple(terms))


def draw_twins(draw: DrawFn, catalog: list[Signature], fresh: list[str]) -> Atom | None:
    """``r(x, _, x)``: a variable of its own twice or more, and wildcards; None where no kind stands twice."""
    fitting = [one for one in catalog if len(set(one.kinds)) < len(one.kinds)]
    if not fitting:
        return None
    relation = draw(st.sampled_from(fitting))
    pairs = [
        (first, second)
        for second, kind in enumerate(relation.kinds)
        for first in range(second)
        if relation.kinds[first] is kind
    ]
    pair = draw(st.sampled_from(pairs))
    variable = Variable(fresh.pop(0))
    terms: list[Term] = [variable if column in pair else Wildcard() for column in range(len(relation.kinds))]
    for column, kind in enumerate(relation.kinds):
        if kind is relation.kinds[pair[0]] and draw(st.booleans()):
            terms[column] = variable
    return Atom(relation.name, tuple(terms), functional=relation.functional and draw(st.booleans()))


def draw_apart(
    draw: DrawFn, catalog: list[Signature], complete: list[Signature], fresh: list[str], most_atoms: int = 2
) -> list[Literal]:
    """Literals that share no variable with others: an atom, or a few with a comparison or a negated atom.

    One atom is mostly nothing but a variable twice.  ``complete``: what a negated atom may read.
    """
    twins = draw_twins(draw, catalog, fresh) if draw(st.integers(0, 2)) else None
    if twins is not None:
        return [twins]
    scope: Scope = {}
    n_atoms = draw(st.integers(1, most_atoms))
    literals: list[Literal] = [draw_atom(draw, catalog, scope, fresh) for _ in range(n_atoms)]
    choice = draw(st.integers(0, 3))
    if choice == 2:
        literals.append(draw_atom(draw, complete, scope, None))
    elif choice == 3 and scope:
        literals.append(draw_comparison(draw, scope))
    return literals


def draw_body(
    draw: DrawFn, catalog: list[Signature], most_atoms: int, plain: bool
) -> tuple[tuple[Literal, ...], Scope]:
    """A body and the variables it binds.  ``plain``: positive and negated atoms and comparisons only."""
    fresh = list(NAMES)
    scope: Scope = {}
    first = draw(st.sampled_from(catalog)).kinds[0]
    body: list[Literal] = [draw_binder(draw, catalog, first, fresh.pop(0), scope, fresh)]
    n_atoms = draw(st.integers(min(2, most_atoms), most_atoms))
    apart = (
        draw_apart(draw, catalog, catalog, fresh, 1) if n_atoms > 1 and draw(st.integers(0, 3)) == 3 else []
    )
    body += [draw_atom(draw, catalog, scope, fresh) for _ in range(n_atoms - (2 if apart else 1))]
    body += apart
    if not plain and draw(st.integers(0, 3)) == 3:
        body.append(draw_either(draw, catalog, scope, fresh))
    if not plain and draw(st.integers(0, 2)) == 2:
        body.append(draw_assignment(draw, scope, fresh))
    body += [draw_atom(draw, catalog, scope, None) for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2))))]
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        body.append(draw_comparison(draw, scope))
    return tuple(draw(st.permutations(body))), scope


# -- heads and programs -------------------------------------------------------


def draw_variables(draw: DrawFn, scope: Scope, least: int) -> list[str]:
    """Some of the scope's variables in any order, all of them in one case out of three, seldom one twice."""
    names = list(draw(st.permutations(list(scope))))
    if draw(st.integers(0, 2)):
        names = names[: draw(st.integers(least, max(least, min(4, len(names)))))]
    if names and draw(st.integers(0, 9)) == 9:
        names.append(names[0])
    return names


def draw_plain_head(draw: DrawFn, relation: str, scope: Scope) -> tuple[Head, Signature]:
    names = draw_variables(draw, scope, least=1)
    kinds = tuple(scope[name] for name in names)
    return Head(relation, tuple(Variable(n) for n in names)), Signature(relation, kinds, False)


def draw_functional_head(draw: DrawFn, relation: str, scope: Scope) -> tuple[Head, Signature]:
    """``h[keys] = v``: mostly by all other variables, where a conflict is less likely."""
    value = draw(st.sampled_from(list(scope)))
    keys = [name for name in scope if name != value]
    if draw(st.integers(0, 3)) == 3:
        keys = keys[:1]
    kinds = tuple(scope[name] for name in (*keys, value))
    return Head(relation, tuple(Variable(n) for n in keys), Variable(value)), Signature(relation, kinds, True)


def draw_aggregate(draw: DrawFn, scope: Scope) -> tuple[Aggregate, Kind]:
    """An aggregate, and of which kind its values are."""
    argument = draw(st.sampled_from(list(scope)))
    kind = scope[argument]
    functions = ["min", "max", "count", "kth_largest", "kth_smallest", "quantile", "upper_quantile"]
    if kind.number:
        functions += ["sum", "avg"]
    if kind is STRING:
        functions.append("concat")
    function = draw(st.sampled_from(functions))
    arguments: tuple[Variable | Constant, ...] = () if function == "count" else (Variable(argument),)
    if function in ("kth_largest", "kth_smallest"):
        arguments += (Constant(draw(st.integers(1, 3))),)
    if function in ("quantile", "upper_quantile"):
        arguments += (Constant(draw(st.sampled_from((0.1, 0.5, 0.75, 1)))),)
    if function == "concat" and draw(st.booleans()):
        arguments += (Constant(draw(st.sampled_from(("", ", ", "-")))),)
        arguments += tuple(Variable(n) for n in draw_variables(draw, scope, least=0)[:2])
    return Aggregate(function, arguments), {"count": INTEGER, "avg": FLOAT}.get(function, kind)


def draw_aggregate_head(draw: DrawFn, relation: str, scope: Scope) -> tuple[Head, Signature]:
    keys = list(dict.fromkeys(draw_variables(draw, scope, least=0)))
    call, kind = draw_aggregate(draw, scope)
    kinds = (*(scope[name] for name in keys), kind)
    return Head(relation, tuple(Variable(n) for n in keys), call), Signature(relation, kinds, True)


def draw_several_aggregates(draw: DrawFn, relation: str, scope: Scope) -> tuple[Head, Signature]:
    """``h(a, count(), b, max(c))``: group variables and aggregates in any order."""
    columns: list[tuple[Variable | Aggregate, Kind]] = [
        (Variable(name), scope[name]) for name in draw_variables(draw, scope, least=0)
    ]
    columns += [draw_aggregate(draw, scope) for _ in range(draw(st.sampled_from((2, 3, 1))))]
    terms, kinds = zip(*draw(st.permutations(columns)), strict=True)
    return Head(relation, terms), Signature(relation, kinds, False)


def draw_heads(draw: DrawFn, relation: str, scope: Scope, plain: bool) -> list[tuple[Head, Signature]]:
    choice = 0 if plain else draw(st.integers(0, 9))
    if choice <= 4:
        return [draw_plain_head(draw, relation, scope)]
    if choice <= 6:
        return [draw_aggregate_head(draw, relation, scope)]
    if choice == 7:
        return [draw_several_aggregates(draw, relation, scope)]
    if choice == 8:
        return [draw_functional_head(draw, relation, scope)]
    first = draw(st.sampled_from((draw_plain_head, draw_several_aggregates)))
    return [first(draw, relation, scope), draw_plain_head(draw, relation + "_b", scope)]


@st.composite
def scenarios(
    draw: DrawFn, most_atoms: int = 5, most_rules: int = 1, plain: bool = False, nulls: bool = False
) -> Scenario:
    """Up to three relations and ``most_rules`` chained rules.  ``plain``: one conjunction, one plain head.

    ``nulls``: relations may hold NULL, in one case out of two.
    """
    nulls = nulls and draw(st.booleans())
    kinds_drawn = [kind for kind in KINDS if not (nulls and kind is WIDE)]  # has the value that NULL bars
    palette = draw(st.lists(st.sampled_from((INTEGER, INTEGER, *kinds_drawn)), min_size=1, max_size=2))
    # Few rows where the nested loops of the reference are deep.
    max_rows = {1: 60, 2: 40, 3: 25, 4: 14, 5: 10}[most_atoms]
    loaded = []
    for i in range(draw(st.integers(1, 3))):
        arity = draw(st.sampled_from((2, 1, 2, 3, 2, 3, 4)))
        kinds = tuple(draw(st.sampled_from(palette)) for _ in range(arity))
        nullable = nulls and draw(st.integers(0, 3)) > 0
        loaded.append(draw(loaded_relations(f"r{i}", kinds, max_rows, nullable)))
    catalog = [Signature(relation.name, relation.kinds, relation.functional) for relation in loaded]
    program: list[Rule] = []
    for i in range(draw(st.integers(1, most_rules))):
        body, scope = draw_body(draw, catalog, most_atoms if i == 0 else min(most_atoms, 2), plain)
        if nulls and draw(st.integers(0, 2)) == 2:
            body = draw_null_safe(draw, body)
        if nulls and draw(st.integers(0, 2)) == 2:
            body = (*body, draw_null_test(draw, body))
        heads = draw_heads(draw, f"h{i}", scope, plain)
        program.append(Rule(tuple(head for head, _ in heads), body))
        if i and not plain and len(heads) == 1 and draw(st.integers(0, 3)) == 3:
            again = draw_union(draw, program[-1].heads[0], heads[0][1], catalog)
            program += [again] if again else []
        # Sums of extreme floats may be NaN, which a later rule must refuse: they end the chain.
        signatures = [s for _, s in heads if s.kinds]
        catalog = [s for s in signatures if EXTREME not in s.kinds[-1 if s.functional else 0 :]] + catalog
    by_name = tuple(r.name for r in loaded if draw(st.integers(0, 3)) == 3)
    return Scenario(tuple(loaded), tuple(program), by_name)


def draw_union(draw: DrawFn, head: Head, signature: Signature, catalog: list[Signature]) -> Rule | None:
    """A second rule for a plain head, reading one relation; None where no relation's columns would fit."""
    fitting = [s for s in catalog if set(signature.kinds) <= set(s.kinds)]
    if head.value is not None or not fitting:
        return None
    source = draw(st.sampled_from(fitting))
    names = [Variable(name) for name, _ in zip(NAMES, source.kinds, strict=False)]
    places = [source.kinds.index(kind) for kind in signature.kinds]
    terms = tuple(v if i in places else Wildcard() for i, v in enumerate(names))
    return Rule((Head(head.relation, tuple(names[i] for i in places)),), (Atom(source.name, terms),))


def any_row(rows: set[Row]) -> Any:
    """Rows in a form that compares and hashes: NaN equals NaN."""
    return {tuple("NaN" if value != value else value for value in row) for row in rows}
