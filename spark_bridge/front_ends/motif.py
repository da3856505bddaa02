"""GraphFrames' motifs as rules.

    (a)-[e]->(b); (b)-[]->(c); !(c)-[]->(a)

    motif(a, b, e_day, c) <- vertex(a), vertex(b), edge(a, b, e_day),
        vertex(c), edge(src: b, dst: c), !edge(src: c, dst: a).

A named vertex brings its row of the vertices, a named edge its own; what has no name is only there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from lftj.errors import RuleSyntaxError, UnboundVariableError
from spark_bridge.front_ends.rule_names import atom_text, unused_name

_STEP = re.compile(r"(!?)\s*\(\s*(\w*)\s*\)\s*-\s*\[\s*(\w*)\s*\]\s*->\s*\(\s*(\w*)\s*\)")
_VERTEX = re.compile(r"\(\s*(\w+)\s*\)")

ID, SOURCE, TARGET = "id", "src", "dst"
"""What GraphFrames calls the columns that say which vertex it is, and where an edge goes."""


@dataclass(frozen=True)
class MotifName:
    """A name of a motif: the columns of its row, and the variables that have them."""

    name: str
    columns: tuple[str, ...]
    variables: tuple[str, ...]


@dataclass(frozen=True)
class MotifRule:
    """A motif as a rule over ``vertex`` and ``edge``, and its names, in order."""

    text: str
    names: tuple[MotifName, ...]


def rule_of_motif(pattern: str, vertex_columns: Sequence[str], edge_columns: Sequence[str]) -> MotifRule:
    """The rule of a motif; columns as the DataFrames have them.

    Raises RuleSyntaxError for what is no motif and for names that stand for a vertex and an edge or for two
    edges, UnboundVariableError for a vertex that is in negated steps alone, or nothing to be found.

    >>> rule_of_motif("(a)-[]->(b); !(b)-[]->(a)", ["id"], ["src", "dst"]).text
    'motif(a, b) <- vertex(a), vertex(b), edge(a, b), !edge(b, a).'
    """
    return _Motif(pattern, vertex_columns, edge_columns).rule()


class _Motif:
    """What is known of a motif while it is read."""

    def __init__(self, pattern: str, vertex_columns: Sequence[str], edge_columns: Sequence[str]) -> None:
        self._pattern = pattern
        self._vertex_columns, self._edge_columns = tuple(vertex_columns), tuple(edge_columns)
        self._taken: set[str] = set()
        self._names: dict[str, MotifName] = {}
        self._edges: set[str] = set()
        self._atoms: list[str] = []

    def rule(self) -> MotifRule:
        negated = []
        for step in re.split(r"\s*;\s*", self._pattern.strip().rstrip(";").strip()):
            vertex, edge = _VERTEX.fullmatch(step), _STEP.fullmatch(step)
            if edge is not None and edge[1]:
                negated.append((step, *edge.group(2, 3, 4)))
            elif edge is not None:
                self._edge(*edge.group(2, 3, 4))
            elif vertex is not None:
                self._vertex(vertex[1])
            else:
                raise RuleSyntaxError(
                    f"{step!r} in the motif {self._pattern!r}: a step is (a)-[e]->(b), with or without names,"
                    " or !(a)-[]->(b), or (a)"
                )
        for step, source, name, target in negated:
            self._without(step, source, name, target)
        if not self._names:
            raise UnboundVariableError(f"the motif {self._pattern!r} names nothing that is to be found")
        names = tuple(self._names.values())
        variables = dict.fromkeys(variable for name in names for variable in name.variables)
        return MotifRule(f"motif({', '.join(variables)}) <- {', '.join(self._atoms)}.", names)

    def _vertex(self, name: str) -> str:
        """The variable of a vertex that has a name."""
        if name in self._edges:
            self._stands_for_two(name)
        if name not in self._names:
            own = {ID: self._fresh(name)}
            self._find(name, "vertex", self._vertex_columns, own)
        return self._names[name].variables[self._vertex_columns.index(ID)]

    def _edge(self, source: str, name: str, target: str) -> None:
        own = {SOURCE: self._vertex(source)} if source else {}
        if name:
            if name in self._names:
                self._stands_for_two(name)
            self._edges.add(name)
            place = len(self._names)
            if target:
                own[TARGET] = self._vertex(target)
            self._find(name, "edge", self._edge_columns, own)
            items = list(self._names.items())
            items.insert(place, items.pop())
            self._names = dict(items)
        else:
            if target:
                own[TARGET] = self._vertex(target)
            self._atoms.append(atom_text("edge", self._edge_columns, own))

    def _without(self, step: str, source: str, name: str, target: str) -> None:
        if name:
            raise RuleSyntaxError(
                f"{step!r} in a motif: an edge that is not there has no name, leave {name!r} out"
            )
        ends = {end: vertex for end, vertex in ((SOURCE, source), (TARGET, target)) if vertex}
        for vertex in ends.values():
            if vertex not in self._names or vertex in self._edges:
                raise UnboundVariableError(
                    f"{step!r} in a motif: no other step says which vertex {vertex!r} is"
                )
        terms = {end: self._vertex(vertex) for end, vertex in ends.items()}
        self._atoms.append(f"!{atom_text('edge', self._edge_columns, terms)}")

    def _find(self, name: str, relation: str, columns: Sequence[str], own: Mapping[str, str]) -> None:
        variables = {column: own.get(column) or self._fresh(f"{name}_{column}") for column in columns}
        self._atoms.append(atom_text(relation, columns, variables))
        self._names[name] = MotifName(name, tuple(columns), tuple(variables.values()))

    def _fresh(self, wanted: str) -> str:
        name = unused_name(wanted, self._taken)
        self._taken.add(name)
        return name

    def _stands_for_two(self, name: str) -> NoReturn:
        raise RuleSyntaxError(
            f"{name!r} stands twice in the motif {self._pattern!r}: an edge has a name of its own"
        )
