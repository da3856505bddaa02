"""The terms of a delta rule: the change of each atom, joined with the others.

Design: docs/design/strategies.md section 1.

    d(A1 ... An) = SUM_i  new(A1) ... new(A_i-1) * dA_i * old(A_i+1) ... old(An)

Here they are planned.  Maintenance steps rules by them, and a recursion's rounds are nothing else: each is
the change by the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lftj.planning.term_order import TermChoice
from lftj.search.machine.plan import RegionPlan, compile_regions
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.storage.catalog import IndexUse, Side
from lftj.storage.relation_version import levels_of


@dataclass(frozen=True, eq=False)
class TermPlan:
    """How a term is searched.

    ``atom``: the one that changed; ``sign``: -1 where it is negated.  ``change``, ``level``: an index and its
    level whose branches are the change.  ``search``: that of the other atoms, None where there is nothing
    to join or test.  ``carries``: nothing but the rows reads the last variable of the branches.
    """

    atom: JoinAtom
    sign: int
    choice: TermChoice
    change: IndexUse
    level: int
    search: RegionPlan | None
    carries: bool

    @property
    def variables(self) -> tuple[str, ...]:
        """Those of the rows, in key order: all that are not only counted."""
        return self.choice.order[: self.search.listed if self.search else None]

    @property
    def uses(self) -> tuple[IndexUse, ...]:
        """The indices of the others."""
        return self.search.indexes if self.search else ()


def left_over(problem: JoinProblem) -> list[tuple[JoinAtom, JoinProblem]]:
    """For each term of a problem the atom that changed, and what is left: earlier atoms are new, later old.

    The atoms stand in the problem's order, the negated ones last.
    """
    every = (*problem.atoms, *problem.negations)
    terms = []
    for place, atom in enumerate(every):
        sided = [
            replace(other, side=Side.NEW if at < place else Side.OLD)
            for at, other in enumerate(every)
            if at != place
        ]
        cut = len(problem.atoms) - (place < len(problem.atoms))
        rest = replace(problem, atoms=tuple(sided[:cut]), negations=tuple(sided[cut:]))
        terms.append((atom, rest))
    return terms


def plan_term(atom: JoinAtom, negated: bool, rest: JoinProblem, choice: TermChoice) -> TermPlan:
    """A term in the key order that was chosen for it."""
    columns, _ = atom.levels(choice.order)
    levels = (*columns, *atom.counted)
    use = IndexUse(atom.relation, (levels_of(levels, atom.equal, atom.identity), atom.equal), Side.CHANGE)
    joins = bool(rest.atoms or rest.negations or rest.conditions)
    search = compile_regions(rest, choice.order, gap=0, listed=choice.listed(rest)) if joins else None
    last = choice.order[choice.bound - 1] if choice.bound else None
    carries = last not in _read(rest)
    return TermPlan(atom, -1 if negated else 1, choice, use, len(levels) - 1, search, carries)


def _read(problem: JoinProblem) -> set[str]:
    """The variables that atoms or conditions of a problem read."""
    read = {name for atom in (*problem.atoms, *problem.negations) for name in atom.variables}
    for condition in problem.conditions:
        read |= set(condition.variables)
    return read
