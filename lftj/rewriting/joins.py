"""What is left of a body while its variables are eliminated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lftj.language.body import Body
from lftj.language.expressions import variables_of
from lftj.language.syntax import Atom, Comparison, Expression, Variable
from lftj.rewriting.elimination import Names
from lftj.values.schema import ColumnType


@dataclass(frozen=True)
class Join:
    """What is left of a body at some point: atoms, those of views among them, and what is not yet applied."""

    atoms: tuple[Atom, ...]
    negations: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]
    factors: tuple[Expression, ...]

    def split(self, names: Names) -> tuple[Join, Join]:
        """What has one of the variables, and the rest."""
        parts = []
        for wanted in (True, False):
            parts.append(
                Join(
                    tuple(one for one in self.atoms if bool(of_atom(one) & names) is wanted),
                    tuple(one for one in self.negations if bool(of_atom(one) & names) is wanted),
                    tuple(one for one in self.comparisons if bool(of_comparison(one) & names) is wanted),
                    tuple(one for one in self.factors if bool(of_expression(one) & names) is wanted),
                )
            )
        return parts[0], parts[1]

    def within(self, names: Names) -> tuple[Join, Join]:
        """The filters and factors that have only these variables, and the others; without atoms."""
        parts = []
        for wanted in (True, False):
            parts.append(
                Join(
                    (),
                    tuple(one for one in self.negations if (of_atom(one) <= names) is wanted),
                    tuple(one for one in self.comparisons if (of_comparison(one) <= names) is wanted),
                    tuple(one for one in self.factors if (of_expression(one) <= names) is wanted),
                )
            )
        return parts[0], parts[1]

    @property
    def needed(self) -> Names:
        """Variables that something other than an atom reads."""
        return frozenset().union(
            *map(of_atom, self.negations),
            *map(of_comparison, self.comparisons),
            *map(of_expression, self.factors),
        )


def bound_by(atoms: Iterable[Atom]) -> list[str]:
    """The variables of positive atoms, in the order of writing."""
    terms = (term for atom in atoms for term in atom.terms)
    return list(dict.fromkeys(term.name for term in terms if isinstance(term, Variable)))


def of_atom(atom: Atom) -> Names:
    """Its variables."""
    return frozenset(term.name for term in atom.terms if isinstance(term, Variable))


def of_expression(expression: Expression) -> Names:
    """Its variables."""
    return frozenset(variable.name for variable in variables_of(expression))


def of_comparison(comparison: Comparison) -> Names:
    """Its variables."""
    return of_expression(comparison.left) | of_expression(comparison.right)


def types_below(body: Body) -> dict[str, ColumnType]:
    """The types of a body's variables as a view may have them, below a test that they are not NULL."""
    types = dict(body.types)
    for test in body.comparisons:
        if test.tests_null:
            types |= {name: replace(types[name], nullable=True) for name in of_expression(test.left)}
    return types
