"""GraphFrames' motifs as rules.

    (a)-[e]->(b); (b)-[]->(c); !(c)-[]->(a)

    motif(a, b, e_day, c) <- vertex(a), vertex(b), edge(a, b, e_day),
        vertex(c), edge(src: b, dst: c), !edge(src: c, dst: a).

A named vertex brings its row of the vertices, a named edge its own; what has no name is only there.

    (a)<-[]-(b)      edge(b, a)
    (a)<-[]->(b)     edge(a, b), edge(b, a)
    (a)-[]-(b)       (edge(a, b) ; edge(b, a))
    (a)-[*1..2]->(b) (edge(a, b) ; edge(a, by), edge(by, b))

Where places are counted (``times``) an edge has, behind its columns, how often it is there, and so has a
*pair*, the ends of the edges between two vertices.  All that a place is made of is then in the head, and its
rows stand for as many places as the product of these:

    (a)-[]->(b); (b)-[e]->()    motif(a, b, e_dst, times, times_2)
        <- vertex(a), vertex(b), pair(a, b, times), edge(b, e_dst, times_2).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from lftj.errors import RuleSyntaxError, UnboundVariableError
from spark_bridge.front_ends.rule_names import atom_text, unused_name

_STEP = re.compile(
    r"(?P<negated>!?)\s*\(\s*(?P<source>\w*)\s*\)\s*(?P<backward><?)-\s*"
    r"\[\s*(?P<name>\w*)\s*(?:\*\s*(?P<least>\d+)(?:\s*\.\.\s*(?P<most>\d+))?)?\s*\]"
    r"\s*-(?P<forward>>?)\s*\(\s*(?P<target>\w*)\s*\)"
)
_VERTEX = re.compile(r"\(\s*(\w+)\s*\)")

MOST_EDGES = 16
"""Of a path: a rule has each length as an alternative."""

ID, SOURCE, TARGET = "id", "src", "dst"
"""What GraphFrames calls the columns that say which vertex it is, and where an edge goes."""


@dataclass(frozen=True)
class MotifName:
    """A name of a motif: the columns of its row, and the variables that have them."""

    name: str
    columns: tuple[str, ...]
    variables: tuple[str, ...]

    def variable(self, column: str) -> str:
        """What has a column, one of ``columns``."""
        return self.variables[self.columns.index(column)]


@dataclass(frozen=True)
class MotifRule:
    """A motif as a rule over ``vertex`` and ``edge``, and its names, in order.

    ``times``: where places are counted, the variables whose product says how many a row stands for.
    """

    text: str
    names: tuple[MotifName, ...]
    times: tuple[str, ...] = ()


def rule_of_motif(
    pattern: str,
    vertex_columns: Sequence[str],
    edge_columns: Sequence[str],
    wanted: Mapping[str, Collection[str]] | None = None,
    times: str = "",
) -> MotifRule:
    """The rule of a motif; columns as the DataFrames have them.

    ``wanted``: by name the columns that are to be found beside those that say which vertex or edge it is; all
    of all names, if None.  ``times``: of edges and pairs the last column, if places are counted.

    Raises RuleSyntaxError for what is no motif and for names that stand for a vertex and an edge or for two
    edges, UnboundVariableError for a vertex that is in negated steps alone, or nothing to be found.

    >>> rule_of_motif("(a)-[]->(b); !(b)-[]->(a)", ["id"], ["src", "dst"]).text
    'motif(a, b) <- vertex(a), vertex(b), edge(a, b), !edge(b, a).'
    >>> rule_of_motif("(a)-[]->()", ["id"], ["src", "dst"], times="times").text
    'motif(a, by, times) <- vertex(a), pair(a, by, times).'
    """
    return _Motif(pattern, vertex_columns, edge_columns, wanted, times).rule()


@dataclass(frozen=True)
class _Step:
    """``directions``: ``>``, ``<``, ``<>`` for an edge each way, or none for one either way.

    ``least``, ``most``: edges of a path, if it is one.
    """

    text: str
    negated: bool
    source: str
    name: str
    target: str
    directions: str
    least: int | None
    most: int | None

    @classmethod
    def of(cls, text: str) -> _Step | None:
        """Raises RuleSyntaxError for a path of no edge, or of too many."""
        found = _STEP.fullmatch(text)
        if found is None:
            return None
        least = None if found["least"] is None else int(found["least"])
        most = least if found["most"] is None else int(found["most"])
        if least is not None and most is not None and not 1 <= least <= most <= MOST_EDGES:
            raise RuleSyntaxError(
                f"{text!r} in a motif: a path has 1 to {MOST_EDGES} edges, written *2 or *1..3"
            )
        directions = found["backward"] + found["forward"]
        source, name, target = found["source"], found["name"], found["target"]
        return cls(text, bool(found["negated"]), source, name, target, directions, least, most)


def _ends(source: str, target: str) -> dict[str, str]:
    """The columns of an edge whose vertices have variables."""
    return {end: vertex for end, vertex in ((SOURCE, source), (TARGET, target)) if vertex}


class _Motif:
    """What is known of a motif while it is read."""

    def __init__(
        self,
        pattern: str,
        vertex_columns: Sequence[str],
        edge_columns: Sequence[str],
        wanted: Mapping[str, Collection[str]] | None,
        times: str,
    ) -> None:
        self._pattern, self._wanted, self._times = pattern, wanted, times
        self._vertex_columns, self._edge_columns = tuple(vertex_columns), tuple(edge_columns)
        self._beside: list[str] = []  # variables of no name that the head has, where places are counted
        self._counts: list[str] = []
        self._taken: set[str] = set()
        self._names: dict[str, MotifName] = {}
        self._edges: set[str] = set()
        self._atoms: list[str] = []

    def rule(self) -> MotifRule:
        negated = []
        for text in re.split(r"\s*;\s*", self._pattern.strip().rstrip(";").strip()):
            vertex, step = _VERTEX.fullmatch(text), _Step.of(text)
            if step is not None and step.negated:
                negated.append(step)
            elif step is not None and step.name:
                self._named(step)
            elif step is not None:
                self._unnamed(step)
            elif vertex is not None:
                self._vertex(vertex[1])
            else:
                raise RuleSyntaxError(
                    f"{text!r} in the motif {self._pattern!r}: a step is (a)-[e]->(b), with or without names,"
                    " <-[e]-, -[e]-, <-[]->, -[*2]-> or -[*1..3]->, or !(a)-[]->(b), or (a)"
                )
        for step in negated:
            self._without(step)
        if not self._names:
            raise UnboundVariableError(f"the motif {self._pattern!r} names nothing that is to be found")
        names = tuple(self._names.values())
        variables = dict.fromkeys(variable for name in names for variable in name.variables)
        head = ", ".join([*variables, *self._beside, *self._counts])
        return MotifRule(f"motif({head}) <- {', '.join(self._atoms)}.", names, tuple(self._counts))

    def _vertex(self, name: str) -> str:
        """The variable of a vertex that has a name."""
        if name in self._edges:
            self._stands_for_two(name)
        if name not in self._names:
            own = {ID: self._fresh(name)}
            self._find(name, "vertex", self._vertex_columns, own)
        return self._names[name].variable(ID)

    def _named(self, step: _Step) -> None:
        """An edge with a name, and so with a row."""
        if step.least is not None or step.directions == "<>":
            raise RuleSyntaxError(
                f"{step.text!r} in a motif: several edges have no name together, leave {step.name!r} out, or"
                " write each as a step of its own"
            )
        if step.name in self._names:
            self._stands_for_two(step.name)
        self._refuse_uncounted(step)
        self._edges.add(step.name)
        ends = [self._vertex(step.source) if step.source else ""]
        place = len(self._names)
        ends.append(self._vertex(step.target) if step.target else "")
        if step.directions in (">", "<"):
            self._find(
                step.name, "edge", self._edge_columns, _ends(*ends[:: 1 if step.directions == ">" else -1])
            )
        else:
            self._either_way(step.name, *ends)
        items = list(self._names.items())
        items.insert(place, items.pop())
        self._names = dict(items)

    def _either_way(self, name: str, one: str, other: str) -> None:
        """An edge between two vertices, whichever it goes out from."""
        columns = self._found(name, self._edge_columns, (SOURCE, TARGET))
        variables = {column: self._fresh(f"{name}_{column}") for column in columns}
        ways = []
        for a, b in ((one, other), (other, one)):
            own = {**variables, **_ends(a, b)}
            given = [f"{variables[end]} = {vertex}" for end, vertex in _ends(a, b).items()]
            ways.append(", ".join([atom_text("edge", self._edge_columns, own), *given]))
        self._atoms.append(f"({' ; '.join(ways)})" if one or other else ways[0])
        self._names[name] = MotifName(name, columns, tuple(variables.values()))

    def _unnamed(self, step: _Step) -> None:
        """Edges without names: one, or a path of them."""
        source = self._vertex(step.source) if step.source else ""
        target = self._vertex(step.target) if step.target else ""
        if self._times:
            self._counted(step, source, target)
            return
        lengths = range(step.least or 1, (step.most or step.least or 1) + 1)
        forward = [self._path(source, target, length) for length in lengths]
        backward = [self._path(target, source, length) for length in lengths]
        for ways in {">": [forward], "<": [backward], "<>": [forward, backward]}.get(
            step.directions, [[*forward, *backward]]
        ):
            self._atoms.append(ways[0] if len(ways) == 1 else f"({' ; '.join(dict.fromkeys(ways))})")

    def _counted(self, step: _Step, source: str, target: str) -> None:
        """The same, with how often each edge is there; all vertices on the way are in the head."""
        self._refuse_uncounted(step)
        between = (step.least or 1) - 1 + (not source) + (not target)
        for direction in step.directions:
            passed = [self._fresh("by") for _ in range(between)]
            self._beside += passed
            way = [*filter(None, [source]), *passed, *filter(None, [target])]
            for one, other in itertools.pairwise(way if direction == ">" else way[::-1]):
                self._atoms.append(f"pair({one}, {other}, {self._count()})")

    def _refuse_uncounted(self, step: _Step) -> None:
        """Raise RuleSyntaxError for a step with alternatives, of which a row would not say which it is."""
        if self._times and (not step.directions or step.most != step.least):
            raise RuleSyntaxError(
                f"{step.text!r} in a motif: places are counted along -> and <- and paths of one length, as"
                " *2: leave times= out, or unite the motifs of each way"
            )

    def _count(self) -> str:
        """The variable of how often an edge is there."""
        self._counts.append(self._fresh(self._times))
        return self._counts[-1]

    def _path(self, source: str, target: str, length: int) -> str:
        """The edges of a path, over vertices that have no name."""
        between = [self._fresh("by") for _ in range(length - 1)]
        vertices = [source, *between, target]
        return ", ".join(
            atom_text("edge", self._edge_columns, _ends(one, other))
            for one, other in itertools.pairwise(vertices)
        )

    def _without(self, step: _Step) -> None:
        if step.name or step.least is not None:
            raise RuleSyntaxError(
                f"{step.text!r} in a motif: what is not there is one edge, which has no name, !(a)-[]->(b)"
            )
        for vertex in filter(None, (step.source, step.target)):
            if vertex not in self._names or vertex in self._edges:
                raise UnboundVariableError(
                    f"{step.text!r} in a motif: no other step says which vertex {vertex!r} is"
                )
        ends = [self._vertex(vertex) if vertex else "" for vertex in (step.source, step.target)]
        if step.directions == "<>":
            raise RuleSyntaxError(
                f"{step.text!r} in a motif: say which edge is not there, by !(a)-[]->(b), or that none is, by"
                " !(a)-[]-(b)"
            )
        ways = {">": [ends], "<": [ends[::-1]]}.get(step.directions, [ends, ends[::-1]])
        columns = [*self._edge_columns, *filter(None, [self._times])]
        self._atoms += dict.fromkeys(f"!{atom_text('edge', columns, _ends(*way))}" for way in ways)

    def _find(self, name: str, relation: str, columns: Sequence[str], own: Mapping[str, str]) -> None:
        found = self._found(name, columns, (ID,) if relation == "vertex" else (SOURCE, TARGET))
        variables = {column: own.get(column) or self._fresh(f"{name}_{column}") for column in found}
        self._names[name] = MotifName(name, found, tuple(variables.values()))
        if self._times and relation == "edge":
            columns, variables = [*columns, self._times], {**variables, self._times: self._count()}
        self._atoms.append(atom_text(relation, columns, variables))

    def _found(self, name: str, columns: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
        """The columns of a name that the rule has; ``kept``: those that say which one it is."""
        if self._wanted is None:
            return tuple(columns)
        return tuple(column for column in columns if column in kept or column in self._wanted.get(name, ()))

    def _fresh(self, wanted: str) -> str:
        name = unused_name(wanted, self._taken)
        self._taken.add(name)
        return name

    def _stands_for_two(self, name: str) -> NoReturn:
        raise RuleSyntaxError(
            f"{name!r} stands twice in the motif {self._pattern!r}: an edge has a name of its own"
        )
