"""Random bodies of rules over int64 keys whose relations change, and what they hold by brute force.

For the tests of the region search and of the coverage of records.  The brute
force uses plain sets of tuples: every variable runs over every key that occurs.
Names of the engine are used to state a problem, none to solve it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lftj.search.problem import JoinAtom, JoinCondition, JoinProblem
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema

Row = tuple[int, ...]
Contents = dict[str, frozenset[Row]]

TOP, BOTTOM = 2**63 - 1, -(2**63)
INTEGER = ColumnType(Domains().of(pa.int64()), pa.int64())
VARIABLES = "abcd"
OPERATORS = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "=": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


@dataclass(frozen=True)
class Case:
    """A problem, a key order for it, and the contents of its relations, one state after the other."""

    problem: JoinProblem
    order: tuple[str, ...]
    states: tuple[Contents, ...]

    @property
    def keys(self) -> list[int]:
        """Keys of all states, their neighbours, and both ends of int64."""
        held = {key for state in self.states for rows in state.values() for row in rows for key in row}
        held |= {condition.offset for condition in self.problem.conditions}
        near = {key + step for key in held for step in (-1, 0, 1)} | {TOP, BOTTOM}
        return sorted(key for key in near if BOTTOM <= key <= TOP)


# -- data of the engine ------------------------------------------------------------


def columns_of(rows: Sequence[Row], arity: int) -> list[np.ndarray]:
    table = np.array(rows, dtype=np.int64).reshape(len(rows), arity)
    return [np.ascontiguousarray(table[:, i]) for i in range(arity)]


def relation(name: str, arity: int, rows: Sequence[Row] | frozenset[Row] = ()) -> Relation:
    schema = Schema(tuple(Column(f"c{i}", INTEGER) for i in range(arity)))
    return Relation.from_codes(name, schema, columns_of(sorted(rows), arity))


def atom_of(
    name: str,
    arity: int,
    columns: Sequence[int],
    variables: Sequence[str],
    equal: tuple[tuple[int, int], ...] = (),
    label: str = "",
) -> JoinAtom:
    """An atom over a relation as :func:`relation` makes it."""
    schema = relation(name, arity).schema
    return JoinAtom(name, schema, tuple(columns), tuple(variables), equal, label=label)


def rows_of(columns: Sequence[np.ndarray]) -> list[Row]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def change_between(before: frozenset[Row] | set[Row], after: frozenset[Row] | set[Row]) -> dict[Row, int]:
    """Changed tuples, sorted, with +1 or -1."""
    return {row: 1 if row in after else -1 for row in sorted(before ^ after)}


def advanced(version: RelationVersion, change: Mapping[Row, int]) -> RelationVersion:
    columns = columns_of(list(change), len(version.schema.columns))
    return version.advance(columns, np.array(list(change.values()), dtype=np.int64))


def first_versions(case: Case) -> dict[str, RelationVersion]:
    arities = {atom.relation: len(atom.schema.columns) for atom in atoms_of(case.problem)}
    return {
        name: RelationVersion(relation(name, arity, case.states[0][name])) for name, arity in arities.items()
    }


def stepped(
    versions: Mapping[str, RelationVersion], state: Contents, following: Contents
) -> dict[str, RelationVersion]:
    """The versions one state later."""
    return {
        name: advanced(version, change_between(state[name], following[name]))
        for name, version in versions.items()
    }


# -- brute force -------------------------------------------------------------------


def atoms_of(problem: JoinProblem) -> tuple[JoinAtom, ...]:
    return (*problem.atoms, *problem.negations)


def atom_rows(atom: JoinAtom, state: Contents) -> set[Row]:
    """The values of the atom's variables in the rows that fit it."""
    kept = [row for row in state[atom.relation] if all(row[i] == row[j] for i, j in atom.equal)]
    return {tuple(row[column] for column in atom.columns) for row in kept}


def conditions_hold(problem: JoinProblem, binding: Mapping[str, int]) -> bool:
    """Of the conditions whose variables are bound."""
    for condition in problem.conditions:
        if set(condition.variables) <= binding.keys():
            right = condition.offset + (0 if condition.right is None else binding[condition.right])
            if not OPERATORS[condition.operator](binding[condition.left], right):
                return False
    return True


def brute_rows(problem: JoinProblem, order: Sequence[str], state: Contents) -> list[Row]:
    """All satisfying bindings, in the order's lexicographic order."""
    positive = [(atom.variables, atom_rows(atom, state)) for atom in problem.atoms]
    negative = [(atom.variables, atom_rows(atom, state)) for atom in problem.negations]
    found = []

    def extend(binding: dict[str, int], left: list[tuple[tuple[str, ...], set[Row]]]) -> None:
        if left:
            names, rows = left[0]
            for row in rows:
                values = dict(zip(names, row, strict=True))
                if all(binding.get(name, value) == value for name, value in values.items()):
                    extend(binding | values, left[1:])
            return
        for condition in problem.conditions:  # a variable of no positive atom equals a constant
            if condition.operator == "=" and condition.right is None:
                binding = {condition.left: condition.offset} | binding
        if conditions_hold(problem, binding) and not any(
            tuple(binding[name] for name in names) in rows for names, rows in negative
        ):
            found.append(tuple(binding[name] for name in order))

    extend({}, positive)
    return sorted(set(found))


# -- random cases ------------------------------------------------------------------


@st.composite
def atoms(draw: st.DrawFn, pool: Sequence[tuple[str, int]], names: Sequence[str], least: int = 1) -> JoinAtom:
    """An atom over some of the variables, some of its columns perhaps left out or equal to another."""
    name, arity = draw(st.sampled_from(pool))
    most = min(arity, len(names))
    width = draw(st.sampled_from((most, most, draw(st.integers(min(least, most), most)))))
    columns = draw(st.permutations(range(arity)))[:width]
    variables = draw(st.permutations(names))[:width]
    equal: tuple[tuple[int, int], ...] = ()
    spare = [column for column in range(arity) if column not in columns]
    if spare and draw(st.integers(0, 2)) == 0:
        first, second = sorted((draw(st.sampled_from(columns)), spare[0]))
        if len(spare) > 1 and draw(st.booleans()):
            first, second = spare  # a variable that occurs nowhere else
        columns = [first if column == second else column for column in columns]
        equal = ((first, second),)
    label = f"{name}({', '.join(variables)})"
    return atom_of(name, arity, columns, variables, equal, label)


@st.composite
def conditions(draw: st.DrawFn, bound: Sequence[str], constants: Sequence[int]) -> JoinCondition:
    left = draw(st.sampled_from(bound))
    operator = draw(st.sampled_from(sorted(OPERATORS)))
    others = [name for name in bound if name != left]
    if not others or draw(st.booleans()):
        return JoinCondition(left, operator, None, draw(st.sampled_from(constants)))
    offset = 0 if operator == "!=" else draw(st.integers(-2, 2))
    return JoinCondition(left, operator, draw(st.sampled_from(others)), offset)


@st.composite
def problems(draw: st.DrawFn, pool: Sequence[tuple[str, int]], constants: Sequence[int]) -> JoinProblem:
    positive = [
        draw(atoms(pool, VARIABLES[: draw(st.sampled_from((3, 2, 4)))]))
        for _ in range(draw(st.sampled_from((2, 1, 3, 3))))
    ]
    bound = sorted({name for atom in positive for name in atom.variables})
    limits: list[JoinCondition] = []
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        limits.append(draw(conditions(bound, constants)))
    names = list(bound)
    if draw(st.integers(0, 3)) == 0:  # a constant in a negated atom alone
        names.append("k")
        limits.append(JoinCondition("k", "=", None, draw(st.sampled_from(constants))))
    negations = draw(st.lists(atoms(pool, names, least=2), max_size=draw(st.sampled_from((0, 1, 2)))))
    if not any("k" in atom.variables for atom in negations):
        limits = [limit for limit in limits if limit.left != "k"]
        names = bound
    return JoinProblem(tuple(positive), tuple(negations), tuple(limits), emitted=tuple(names))


@st.composite
def cases(draw: st.DrawFn, most_rows: int = 14, most_steps: int = 4) -> Case:
    """Few keys, so that joins hit; sometimes keys far apart, or at the ends of int64.

    The tuples come from a random number generator of a drawn seed: drawn one by one they would mostly be
    too few to join.
    """
    small = list(range(draw(st.sampled_from((5, 3, 8, 12)))))
    ends = [*small[:3], TOP, BOTTOM, TOP - 1]
    keys = draw(st.sampled_from((small, small, [3 * key for key in small], ends)))
    pool = [(f"r{number}", draw(st.sampled_from((2, 1, 2, 3)))) for number in range(draw(st.integers(1, 3)))]
    constants = sorted({*keys[:3], keys[0] + 1})
    problem = draw(problems(pool, constants))
    order = tuple(draw(st.permutations(problem.variables)))
    arities = {atom.relation: len(atom.schema.columns) for atom in atoms_of(problem)}
    sizes = {name: draw(st.integers(0, most_rows)) for name in arities}
    few = draw(st.sampled_from((1, 3, most_rows)))
    n_steps = draw(st.integers(0, most_steps))
    random = Random(draw(st.integers(0, 2**32 - 1)))

    def tuples(name: str, most: int) -> set[Row]:
        return {tuple(random.choices(keys, k=arities[name])) for _ in range(most)}

    states = [{name: frozenset(tuples(name, size)) for name, size in sizes.items()}]
    for _ in range(n_steps):
        following = {}
        for name, held in states[-1].items():
            erased = set(random.sample(sorted(held), min(len(held), random.randint(0, few))))
            following[name] = held - erased | tuples(name, random.randint(0, few))
        states.append(following)
    return Case(problem, order, tuple(states))


# -- nodes of the search -------------------------------------------------------------


@dataclass(frozen=True)
class Branches:
    """One level of one atom: ``places`` are the depths of its variables, ``paths`` the bindings it holds."""

    places: tuple[int, ...]
    paths: set[Row]
    negated: bool

    @property
    def depth(self) -> int:
        return self.places[-1]

    def holds(self, binding: Row) -> bool:
        return tuple(binding[place] for place in self.places) in self.paths


def participants(case: Case, state: Contents) -> list[Branches]:
    """Every level of the positive atoms, and the last one of the negated atoms."""
    found = []
    for atom in atoms_of(case.problem):
        negated = any(atom is other for other in case.problem.negations)
        by_depth = sorted(range(len(atom.variables)), key=lambda i: case.order.index(atom.variables[i]))
        places = tuple(case.order.index(atom.variables[i]) for i in by_depth)
        rows = {tuple(row[i] for i in by_depth) for row in atom_rows(atom, state)}
        for level in range(len(places) - 1 if negated else 0, len(places)):
            found.append(Branches(places[: level + 1], {row[: level + 1] for row in rows}, negated))
    return found


def nodes(case: Case, state: Contents, keys: Sequence[int]) -> Iterator[tuple[Row, list[int]]]:
    """Every node that a search reaches: its binding, and the keys that the conditions allow at it."""
    levels = participants(case, state)

    def below(binding: Row) -> Iterator[tuple[Row, list[int]]]:
        depth = len(binding)
        if depth == len(case.order):
            return
        names = case.order[: depth + 1]
        allowed = [
            key
            for key in keys
            if conditions_hold(case.problem, dict(zip(names, (*binding, key), strict=True)))
        ]
        yield binding, allowed
        here = [level for level in levels if level.depth == depth]
        for key in allowed:
            if all(level.holds((*binding, key)) != level.negated for level in here):
                yield from below((*binding, key))

    return itertools.chain(below(()))
