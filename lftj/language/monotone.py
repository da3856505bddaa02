"""Whether a component with ``min`` or ``max`` inside has a least fixpoint: values may only get better by
better ones.

A head ``dist[x] = min(d)`` that depends on itself begins without values, and from round to round they get
better: those of a ``min`` *fall*, those of a ``max`` *rise*.  When what a rule reads gets better, every tuple
that it gave must still be given, or a better one in its place.  That is looked for in each body:

    variable     the value of a min falls, of a max rises; all others are fixed
    expression   x + y as both; x - y as x, and as y turned round; -x turned round; x * c and x / c as x,
                 where c is fixed and can't be negative, and turned round where it is a negative constant
    comparison   x < y, x <= y: x falls or is fixed, and y rises or is fixed.  = and != need what is fixed
    atom         a value that moves stands in one atom only: where it joins, better values may join nothing
    head         keys are fixed; the value of a min falls, of a max rises, or is fixed; of other heads all are
                 fixed

Invariant: where nothing is refused, the rules together are monotone in the order in which absent is worst,
and better values are better.  So there is a least fixpoint, and rounds that keep the best value per key reach
it if anything does.

Cost: linear in the bodies of recursive components.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal

import pyarrow as pa

from lftj.errors import RuleError, StratificationError
from lftj.language.body import Body
from lftj.language.diagnostics import error_at
from lftj.language.expressions import text_of, variables_of
from lftj.language.strata import atoms_of, cycle_through
from lftj.language.syntax import (
    Aggregate,
    Atom,
    BinaryOperation,
    Call,
    Comparison,
    Constant,
    Expression,
    Head,
    Negative,
    Program,
    Span,
    Variable,
    Wildcard,
)
from lftj.values.operators import FLIPPED

FALLS, RISES = "falls", "rises"
MOVES = {"min": FALLS, "max": RISES}
"""How values of a head get better."""

_TURNED = {FALLS: RISES, RISES: FALLS, None: None}


class _NotMonotoneError(Exception):
    """What may make a value worse, where, and what to do instead."""

    def __init__(self, span: Span, what: str, way_out: str) -> None:
        super().__init__(what)
        self.span, self.what, self.way_out = span, what, way_out


def check_monotone(
    program: Program, components: Iterable[Collection[str]], bodies: Mapping[int, tuple[Body, ...]]
) -> None:
    """Refuse what is not monotone.  ``bodies``: the checked ones of each rule, by its number.

    Raises :class:`~lftj.errors.StratificationError`, with the cycle, at the first operation that may make a
    value worse, and :class:`~lftj.errors.RuleError` where the rules of a head say different things.
    """
    extrema = {head.relation: head.extremum for rule in program.rules for head in rule.heads if head.extremum}
    for component in components:
        inside = {name: extrema[name] for name in component if name in extrema}
        if inside:
            _Component(program, component, inside, bodies).check()


class _Component:
    def __init__(
        self,
        program: Program,
        component: Collection[str],
        extrema: Mapping[str, str],
        bodies: Mapping[int, tuple[Body, ...]],
    ) -> None:
        """``extrema``: the function of each head that has one."""
        self._program = program
        self._component = component
        self._extrema = extrema
        self._bodies = bodies

    def check(self) -> None:
        for number, rule in enumerate(self._program.rules):
            for head in rule.heads:
                if head.relation in self._component:
                    self._check_function(head)
                    for body in self._bodies[number]:
                        self._check_body(head, body)

    def _check_function(self, head: Head) -> None:
        function = self._extrema.get(head.relation)
        if function == head.extremum:
            return
        here = f"{head.extremum}(...)" if head.extremum else "a value of its own"
        raise error_at(
            RuleError,
            self._program.text,
            (head.value or head).span,
            f"'{head.relation}' depends on itself and is {function}(...) in another rule, here {here}:"
            f" all its rules have to say {function}(...)",
        )

    def _check_body(self, head: Head, body: Body) -> None:
        try:
            moves = _Moves(body, self._extrema)
            moves.check_head(head)
        except _NotMonotoneError as error:
            reads = {
                name: [
                    atom.relation
                    for rule in self._program.rules
                    if any(one.relation == name for one in rule.heads)
                    for atom in atoms_of(rule.body)
                ]
                for name in self._component
            }
            read = next(atom.relation for atom in body.atoms if atom.relation in self._component)
            cycle = cycle_through(reads, self._component, head.relation, read)
            function = self._extrema.get(head.relation) or next(iter(self._extrema.values()))
            message = (
                f"'{head.relation}' depends on its own {function}: {cycle}, and {error.what}; {error.way_out}"
            )
            raise error_at(StratificationError, self._program.text, error.span, message) from None


class _Moves:
    """How the variables of one body move; made only where all that the body does with them is monotone."""

    def __init__(self, body: Body, extrema: Mapping[str, str]) -> None:
        self._body = body
        self._moves: dict[str, str] = {}
        for atom in body.atoms:
            if atom.relation in extrema:
                self._read(atom, MOVES[extrema[atom.relation]])
        for atom in body.atoms:
            self._check_atom(atom, extrema)
        for assignment in body.assignments:
            move = self._move(assignment.expression)
            if move is not None and assignment.each:
                way = "generate them in a rule that is not part of the cycle"
                raise self._unknown(assignment.expression, "its elements come and go", way)
            if move is not None:
                self._moves[assignment.variable] = move
        for negation in body.negations:
            self._check_atom(negation, extrema)
        for comparison in body.comparisons:
            self._check_comparison(comparison)

    def _read(self, atom: Atom, move: str) -> None:
        """Enter the value of an atom."""
        value = atom.terms[-1]
        if isinstance(value, Wildcard):
            return
        if isinstance(value, Constant):
            raise _NotMonotoneError(
                value.span,
                f"'{atom.relation}' may have the value {text_of(value)} in one round and no more in the next",
                "bind the value to a variable, and compare that",
            )
        places = [
            term
            for other in self._body.atoms
            for term in other.terms
            if isinstance(term, Variable) and term.name == value.name
        ]
        if len(places) > 1:
            raise self._joined(value, move, places[-1].span)
        self._moves[value.name] = move

    def _check_atom(self, atom: Atom, extrema: Mapping[str, str]) -> None:
        """Keys, and all terms of other atoms and of negated ones, are fixed."""
        is_read = atom.relation in extrema and not atom.negated
        for term in atom.terms[:-1] if is_read else atom.terms:
            if isinstance(term, Variable) and term.name in self._moves:
                raise self._joined(term, self._moves[term.name], term.span)

    @staticmethod
    def _joined(variable: Variable, move: str, span: Span) -> _NotMonotoneError:
        return _NotMonotoneError(
            span,
            f"'{variable.name}', which {move} from round to round, joins here",
            "use its value in a rule that is not part of the cycle",
        )

    # -- expressions ------------------------------------------------------------------

    def _move(self, node: Expression) -> str | None:
        """How an expression moves when what it reads gets better; None where it does not."""
        if all(variable.name not in self._moves for variable in variables_of(node)):
            return None
        if isinstance(node, Variable):
            return self._moves[node.name]
        if isinstance(node, Negative):
            return _TURNED[self._move(node.operand)]
        if isinstance(node, BinaryOperation):
            left, right = self._move(node.left), self._move(node.right)
            if node.operator in ("+", "-"):
                right = right if node.operator == "+" else _TURNED[right]
                if left is None or right is None or left == right:
                    return left or right
                raise self._unknown(node, "its sides move in different ways", "compute with one of them")
            if node.operator == "*" and (left is None or right is None):
                return self._scaled(node, left or right, node.left if left is None else node.right)
            if node.operator == "/" and right is None:
                return self._scaled(node, left, node.right)
        if isinstance(node, Call) and node.function in ("least", "greatest"):
            ways = {way for way in map(self._move, node.arguments) if way is not None}
            if len(ways) == 1:
                return ways.pop()
            raise self._unknown(node, "its arguments move in different ways", "compute with one of them")
        why = "both sides of it are read" if isinstance(node, BinaryOperation) else "it is no sum"
        raise self._unknown(
            node,
            "a remainder goes up and down"
            if isinstance(node, BinaryOperation) and node.operator == "%"
            else why,
            "there are + and -, * with what is fixed, / by it, least and greatest",
        )

    def _scaled(self, node: BinaryOperation, move: str | None, factor: Expression) -> str | None:
        if self._is_not_negative(factor):
            return move
        if isinstance(factor, Constant) and factor.parameter is None:
            return _TURNED[move]
        raise self._unknown(
            node,
            f"{text_of(factor)} may be negative",
            f"{node.operator} takes a constant or unsigned integers here",
        )

    def _is_not_negative(self, node: Expression) -> bool:
        if isinstance(node, Constant):
            value = node.value
            return node.parameter is None and isinstance(value, int | float | Decimal) and value >= 0
        if isinstance(node, Variable):
            return pa.types.is_unsigned_integer(self._body.types[node.name].arrow)
        if isinstance(node, BinaryOperation) and node.operator != "-":
            return self._is_not_negative(node.left) and self._is_not_negative(node.right)
        return False

    def _unknown(self, node: Expression, why: str, way_out: str) -> _NotMonotoneError:
        name = next(variable.name for variable in variables_of(node) if variable.name in self._moves)
        move = self._moves[name]
        what = f"'{text_of(node)}' need not go one way when '{name}' {move}, for {why}"
        return _NotMonotoneError(node.span, what, way_out)

    # -- comparisons and heads ----------------------------------------------------------

    def _check_comparison(self, comparison: Comparison) -> None:
        left, right = self._move(comparison.left), self._move(comparison.right)
        if left is None and right is None:
            return
        operator = comparison.operator
        if operator in (">", ">="):
            left, right, operator = right, left, FLIPPED[operator]
        if operator in ("<", "<=") and left != RISES and right != FALLS:
            return
        moving = next(
            variable.name
            for side in (comparison.left, comparison.right)
            for variable in variables_of(side)
            if variable.name in self._moves
        )
        move = self._moves[moving]
        fitting = "< or <=" if move == FALLS else "> or >="
        raise _NotMonotoneError(
            comparison.span,
            f"this may hold in one round and no more in the next, when '{moving}' {move}",
            f"compare by {moving} {fitting} here, or in a rule that is not part of the cycle",
        )

    def check_head(self, head: Head) -> None:
        """The head's terms over this body."""
        for key in head.terms:
            if isinstance(key, Variable) and key.name in self._moves:
                raise _NotMonotoneError(
                    key.span,
                    f"'{key.name}', which {self._moves[key.name]} from round to round, is a key here",
                    "make such tuples in a rule that is not part of the cycle",
                )
        value = head.value.arguments[0] if isinstance(head.value, Aggregate) else head.value
        move = self._moves.get(value.name) if isinstance(value, Variable) else None
        if not isinstance(value, Variable) or move is None:
            return
        if head.extremum is not None and move == MOVES[head.extremum]:
            return
        other = "max" if move == RISES else "min"
        raise _NotMonotoneError(
            value.span,
            f"'{value.name}' {move} from round to round",
            f"take {other}({value.name})",
        )
