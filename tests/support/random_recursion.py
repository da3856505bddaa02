"""Hypothesis strategies: random recursive programs over random relations.

They are the suite's random bodies (:mod:`support.strategies`) with one or two relations that depend on
themselves or on each other, and perhaps a rule above them.  A recursive rule may be linear or not, have two
heads, compute a value, read something that has nothing to do with the rest, or have an alternative that is
not recursive.  The relations are sets of tuples, or
have the least or the largest value per key (``t[x] = min(v)``).

All of them end: what is computed is bounded on both sides or gets worse, and is computed from few values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from support.calls import draw_call
from support.kinds import DATE, FLOAT, INTEGER, KINDS, SIGNED, STRING, Kind
from support.rules import (
    Aggregate,
    Arithmetic,
    Atom,
    Call,
    Comparison,
    Constant,
    Either,
    Expression,
    Head,
    Literal,
    Rule,
    Term,
    Variable,
    Wildcard,
    aggregate,
    compare,
)
from support.strategies import (
    NAMES,
    Loaded,
    Scenario,
    Scope,
    Signature,
    draw_apart,
    draw_atom,
    draw_binder,
    draw_body,
    draw_comparison,
    draw_heads,
    draw_plain_head,
    draw_term,
    loaded_relations,
    of_kind,
)

COMPUTED = (INTEGER, SIGNED, STRING, DATE)
"""Kinds whose functions give few values of few."""

VALUES = (INTEGER, SIGNED, STRING, DATE, FLOAT)
"""Kinds of best values."""


@dataclass(frozen=True)
class Targets:
    """The recursive relations: sets, and those of one value per key, which comes last, the ``function``'s."""

    sets: list[Signature]
    best: list[Signature]
    function: str


def targets_of(recursive: list[Signature], function: str) -> Targets:
    best = [one for one in recursive if one.functional]
    return Targets([one for one in recursive if not one.functional], best, function)


@dataclass
class RecursiveBody:
    """A body while it is drawn.  ``moving``: variables whose values get better, which bind nothing else."""

    literals: list[Literal] = field(default_factory=list)
    scope: Scope = field(default_factory=dict)
    moving: Scope = field(default_factory=dict)
    fresh: list[str] = field(default_factory=lambda: list(NAMES))


# -- bodies -------------------------------------------------------------------


def draw_lookup(draw: DrawFn, best: list[Signature], body: RecursiveBody) -> Atom:
    """``t[keys] = n``, whose n is nowhere else, or a wildcard."""
    relation = draw(st.sampled_from(best))
    terms: list[Term] = []
    for kind in relation.kinds[:-1]:
        terms.append(draw_term(draw, kind, body.scope, body.fresh, terms))
    if draw(st.sampled_from((True, True, True, False))):
        name = body.fresh.pop(0)
        body.moving[name] = relation.kinds[-1]
        terms.append(Variable(name))
    else:
        terms.append(Wildcard())
    return Atom(relation.name, tuple(terms), functional=draw(st.booleans()))


def draw_recursive_atom(
    draw: DrawFn, targets: Targets, catalog: list[Signature], body: RecursiveBody
) -> Literal:
    """One of a recursive relation; in one case out of five there is another way, which is not recursive."""
    if targets.best and (not targets.sets or draw(st.booleans())):
        return draw_lookup(draw, targets.best, body)
    target = draw(st.sampled_from(targets.sets))
    kind, name = target.kinds[0], body.fresh.pop(0)
    others = [one for one in catalog if kind in one.kinds]
    if not others or draw(st.integers(0, 4)) < 4:
        return draw_binder(draw, [target], kind, name, body.scope, body.fresh)
    ways = [[target], others]
    scopes = [dict(body.scope) for _ in ways]
    atoms = [
        draw_binder(draw, way, kind, name, scope, body.fresh) for way, scope in zip(ways, scopes, strict=True)
    ]
    body.scope[name] = kind
    return Either(tuple((one,) for one in atoms))


def draw_computed(draw: DrawFn, body: RecursiveBody) -> list[Comparison]:
    """``v = f(x), -4 < v, v < 7`` for a v that enters the scope; nothing where no variable fits."""
    known = [name for name, kind in body.scope.items() if kind in COMPUTED]
    if not known:
        return []
    name = draw(st.sampled_from(known))
    kind = body.scope[name]
    source, made = draw_call(draw, kind, of_kind(body.scope, kind))
    if kind in (INTEGER, SIGNED) and (made is not kind or draw(st.booleans())):
        source = Arithmetic(draw(st.sampled_from("+-")), Variable(name), Constant(1))
        made = kind
    if made is not kind:
        return []
    new = body.fresh.pop(0)
    body.scope[new] = kind
    bounds = [compare(new, ">", -4), compare(new, "<", 7)] if kind in (INTEGER, SIGNED) else []
    return [Comparison("=", Variable(new), source), *bounds]


def draw_recursive_body(
    draw: DrawFn, target: Signature, targets: Targets, catalog: list[Signature]
) -> RecursiveBody:
    """A body for a target; best values have several rules only where they depend on themselves."""
    body = RecursiveBody()
    first = targets_of([target], targets.function) if target.functional else targets
    body.literals.append(draw_recursive_atom(draw, first, catalog, body))
    every = [*catalog, *targets.sets]
    for _ in range(draw(st.sampled_from((1, 2, 0)))):
        if targets.best and draw(st.integers(0, 2)) == 2:
            body.literals.append(draw_lookup(draw, targets.best, body))
        else:
            body.literals.append(draw_atom(draw, every, body.scope, body.fresh))
    if body.scope and draw(st.integers(0, 3)) == 3:
        body.literals += draw_computed(draw, body)
    if draw(st.integers(0, 2)) == 2:
        body.literals.append(draw_atom(draw, catalog, body.scope, None))
    if draw(st.booleans()):
        body.literals += draw_apart(draw, every, catalog, body.fresh)
    if body.scope and draw(st.integers(0, 2)) == 2:
        body.literals.append(draw_comparison(draw, body.scope))
    for name, kind in body.moving.items():
        if kind in (INTEGER, SIGNED) and draw(st.integers(0, 3)) == 3:
            least = targets.function == "min"
            body.literals.append(compare(name, "<=" if least else ">=", draw(st.integers(0, 5))))
    return body


# -- rules --------------------------------------------------------------------


def draw_set_head(draw: DrawFn, target: Signature, scope: Scope) -> Head | None:
    if not all(of_kind(scope, kind) for kind in target.kinds):
        return None
    names = [draw(st.sampled_from(of_kind(scope, kind))) for kind in target.kinds]
    return Head(target.name, tuple(map(Variable, names)))


def draw_best_head(draw: DrawFn, target: Signature, function: str, body: RecursiveBody) -> Head | None:
    """``t[keys] = min(m)``; m is what moves, no better than that, or fixed."""
    *kinds, kind = target.kinds
    keys = draw_set_head(draw, Signature(target.name, tuple(kinds), False), body.scope)
    moving, fixed = of_kind(body.moving, kind), of_kind(body.scope, kind)
    if keys is None or not (moving or fixed):
        return None
    if not moving or (fixed and draw(st.integers(0, 4)) == 4):
        return Head(target.name, keys.terms, aggregate(function, draw(st.sampled_from(fixed))))
    name = draw(st.sampled_from(moving))
    choice = draw(st.integers(0, 3))
    source: Expression | None = None
    if kind in (INTEGER, SIGNED) and choice == 0:
        # Loaded integers are not negative, but computed and signed ones may be.
        step = Constant(draw(st.integers(0, 3)))
        source = Arithmetic("+" if function == "min" else "-", Variable(name), step)
    elif kind is not STRING and fixed and choice == 1:
        other = Variable(draw(st.sampled_from(fixed)))
        source = Call(draw(st.sampled_from(("least", "greatest"))), (Variable(name), other))
    if source is not None:
        name = body.fresh.pop(0)
        body.literals.append(Comparison("=", Variable(name), source))
    return Head(target.name, keys.terms, aggregate(function, name))


def recursive_rule(
    draw: DrawFn, target: Signature, targets: Targets, catalog: list[Signature]
) -> Rule | None:
    """A rule that reads at least one of the recursive relations; None where it binds too little."""
    body = draw_recursive_body(draw, target, targets, catalog)
    if target.functional:
        heads = [draw_best_head(draw, target, targets.function, body)]
    else:
        heads = [draw_set_head(draw, target, body.scope)]
        heads += [draw_set_head(draw, one, body.scope) for one in targets.sets if one is not target]
        heads = heads[: draw(st.sampled_from((1, 1, 2)))]
    if heads[0] is None:
        return None
    return Rule(tuple(filter(None, heads)), tuple(draw(st.permutations(body.literals))))


def beginning(draw: DrawFn, name: str, catalog: list[Signature], function: str) -> tuple[Rule, Signature]:
    """A rule that is not recursive, and the relation of its head: in one case out of three of best values."""
    body, scope = draw_body(draw, catalog, 2, plain=True)
    values = [variable for variable, kind in scope.items() if kind in VALUES]
    if values and draw(st.integers(0, 2)) == 2:
        value = draw(st.sampled_from(values))
        keys = [variable for variable in scope if variable != value][: draw(st.integers(0, 2))]
        kinds = tuple(scope[variable] for variable in (*keys, value))
        head = Head(name, tuple(map(Variable, keys)), Aggregate(function, (Variable(value),)))
        return Rule((head,), body), Signature(name, kinds, True)
    made, signature = draw_plain_head(draw, name, scope)
    return Rule((Head(name, made.terms[:3]),), body), Signature(name, signature.kinds[:3], False)


def without_equals(relation: Loaded) -> Loaded:
    """Without the rows in which two columns agree, so that ``r(x, x)`` holds of none before rows come."""
    return replace(relation, rows=tuple(row for row in relation.rows if len(set(row)) == len(row)))


@st.composite
def recursive_scenarios(draw: DrawFn) -> Scenario:
    """One or two recursive relations over up to three loaded ones, and perhaps a rule above them."""
    palette: list[Kind] = draw(st.lists(st.sampled_from((INTEGER, INTEGER, *KINDS)), min_size=1, max_size=2))
    loaded: list[Loaded] = []
    for number in range(draw(st.integers(1, 3))):
        kinds = tuple(draw(st.sampled_from(palette)) for _ in range(draw(st.sampled_from((2, 2, 1, 3)))))
        relation = draw(loaded_relations(f"r{number}", kinds, 10))
        loaded.append(without_equals(relation) if draw(st.booleans()) else relation)
    catalog = [Signature(one.name, one.kinds, one.functional) for one in loaded]
    function = draw(st.sampled_from(("min", "max")))
    made = [beginning(draw, f"t{number}", catalog, function) for number in range(draw(st.integers(1, 2)))]
    program = [rule for rule, _ in made]
    recursive = [signature for _, signature in made]
    targets = Targets(
        [one for one in recursive if not one.functional],
        [one for one in recursive if one.functional],
        function,
    )
    for target in recursive:
        for _ in range(draw(st.sampled_from((1, 2)))):
            found = recursive_rule(draw, target, targets, catalog)
            program += [found] if found else []
    if draw(st.booleans()):
        body, scope = draw_body(draw, [*catalog, *recursive], 2, plain=False)
        program.append(Rule(tuple(one for one, _ in draw_heads(draw, "h", scope, plain=False)), body))
    return Scenario(tuple(loaded), tuple(program))
