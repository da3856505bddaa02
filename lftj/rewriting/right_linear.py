"""Right-linear recursion for some keys: over the ends of the ways that begin with them.

    reach(x, z) <- e(x, y), reach(y, z).        reach#keys2(s, s) <- reach#keys1(s).
    reach(x, z) <- e(x, z).              and    reach#keys2(s, y) <- reach#keys2(s, x), e(x, y).
    q(z) <- reach(1, z).                        reach(s, z) <- reach#keys2(s, x), e(x, z).

Its keys would go round, and be all that is reached, each with all that it reaches.

Source: Naughton, Ramakrishnan, Sagiv, Ullman: Efficient evaluation of right-, left-, and multi-linear rules
(SIGMOD 1989).

Cost: of a key the edges that it reaches.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from lftj.language.body import Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.syntax import Atom, Variable
from lftj.rewriting.joins import bound_by, of_comparison
from lftj.rewriting.key_relations import KeyRelations, KeyRule
from lftj.rewriting.shared_views import free_name


@dataclass(frozen=True)
class RightLinear:
    """A head whose recursive rules pass some columns on, and look for keys in the others."""

    program: CheckedProgram
    name: str
    columns: tuple[int, ...]
    """Those of the keys."""

    @classmethod
    def of(cls, program: CheckedProgram, name: str, bound: frozenset[int]) -> RightLinear | None:
        """None where it is not right-linear, or its keys are not bound."""
        passed = frozenset(range(len(program.derived[name].columns)))
        again: list[tuple[CheckedHead, Body, Atom]] = []
        for rule, head in program.rules_of(name):
            if head.value is not None:
                return None
            for body in rule.bodies:
                own = [atom for atom in body.atoms if atom.relation == name]
                if len(own) > 1 or (own and body.assignments):
                    return None
                if own:
                    again.append((head, body, own[0]))
                    passed &= _passed_on(head, body, own[0])
        keys = frozenset(range(len(program.derived[name].columns))) - passed
        for head, body, atom in again:
            known = {
                *bound_by(one for one in body.atoms if one is not atom),
                *(head.variables[at] for at in keys),
            }
            if not {atom.terms[at] for at in keys} <= set(map(Variable, known)):
                return None
        return cls(program, name, tuple(sorted(keys))) if passed and keys and keys <= bound else None

    def rules(self, keys: str, relations: KeyRelations) -> tuple[str, list[CheckedRule]]:
        """The relation of the ends, which is made, by beginning; and the rules of the head over it."""
        ways = relations.new_name(self.name)
        columns = [self.program.derived[self.name].columns[at] for at in self.columns]
        names = tuple(column.name for column in columns)
        types = {column.name: column.type for column in columns}
        begin = Body((Atom(keys, tuple(map(Variable, names))),), (), (), (), types)
        made, exits = [KeyRule((*names, *names), begin)], []
        for rule, head in self.program.rules_of(self.name):
            for body in rule.bodies:
                here = [head.variables[at] for at in self.columns]
                seeds = _fresh([f"from_{name}" for name in names], body.types)
                end = Atom(ways, tuple(map(Variable, (*seeds, *here))))
                types = {**body.types, **{seed: body.types[of] for seed, of in zip(seeds, here, strict=True)}}
                again = next((atom for atom in body.atoms if atom.relation == self.name), None)
                left = (*(atom for atom in body.atoms if atom is not again), end)
                if again is None:
                    seed_of = dict(zip(self.columns, seeds, strict=True))
                    shown = tuple(seed_of.get(at, name) for at, name in enumerate(head.variables))
                    over = replace(body, atoms=left, types=types)
                    exits.append(replace(rule, heads=(replace(head, variables=shown),), bodies=(over,)))
                else:
                    following = [t.name for at in self.columns if isinstance(t := again.terms[at], Variable)]
                    types = {name: types[name] for name in bound_by(left)}
                    made.append(KeyRule((*seeds, *following), replace(body, atoms=left, types=types)))
        relations.define(ways, self.name, (*self.columns, *self.columns), made)
        return ways, exits


def _passed_on(head: CheckedHead, body: Body, atom: Atom) -> frozenset[int]:
    """The columns that a recursive rule has from its atom, and uses for nothing else."""
    read = [*itertools.chain.from_iterable(one.terms for one in (*body.atoms, *body.negations))]
    compared = frozenset[str]().union(*map(of_comparison, body.comparisons))
    return frozenset(
        at
        for at, name in enumerate(head.variables)
        if atom.terms[at] == Variable(name)
        and head.variables.count(name) == read.count(Variable(name)) == 1
        and name not in compared
    )


def _fresh(wanted: Sequence[str], taken: Collection[str]) -> list[str]:
    found: list[str] = []
    for name in wanted:
        found.append(free_name(name, {*taken, *found}))
    return found
