"""Whether a body has a cycle, by the ears of its hypergraph.

Variables are vertices, atoms edges.  An atom is an *ear* if another one has all of its variables that are not
its own; taking ears away one after the other leaves a single atom exactly where the hypergraph is acyclic
(Graham; Yu and Ozsoyoglu, 1979).  There joins of two relations at a time can be as good as any (Yannakakis,
1981); where atoms form a cycle, each order of them may go through more rows than there are in the end.

Cost: the square of the number of atoms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lftj.language.body import Body
from lftj.language.syntax import Variable


def is_acyclic(atoms: Iterable[Iterable[str]]) -> bool:
    """Whether atoms, given by their variables, have no cycle.

    >>> is_acyclic([("a", "b"), ("b", "c")]), is_acyclic([("a", "b"), ("b", "c"), ("a", "c")])
    (True, False)
    >>> is_acyclic([("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c")])
    True
    """
    left = [set(variables) for variables in atoms]
    found = True
    while found and len(left) > 1:
        found = False
        came = Counter(variable for variables in left for variable in variables)
        for number, ear in enumerate(left):
            shared = {variable for variable in ear if came[variable] > 1}
            if any(shared <= other for place, other in enumerate(left) if place != number):
                del left[number]
                found = True
                break
    return len(left) < 2


def body_is_acyclic(body: Body) -> bool:
    """Whether the atoms of a body have no cycle.

    Negated ones count: of ``e(a, b), e(b, c), !e(a, c)`` two at a time find all paths before the third leaves
    some out, where cells go by all three.  Comparisons only take away.
    """
    atoms = (*body.atoms, *body.negations)
    return is_acyclic([term.name for term in atom.terms if isinstance(term, Variable)] for atom in atoms)
