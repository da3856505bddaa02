"""Circuits with fewer `distinct`: step 2 of DBSP's Algorithm 4.8 (arXiv 2203.16684, whose numbers these are).

Behind a `distinct` only the rows of a Z-set without negative weights matter, not the weights; and so before
operators that are *positive*, linear or bilinear, for each row of what they give comes from rows of theirs:

    distinct(Q(distinct(i))) = distinct(Q(i))        Proposition 4.6, for i without negative weights

Proposition 4.5 moves a `distinct` behind such an operator where one of 4.6 takes it away; here that is one
step, for chains of any length: below a `distinct` and operators that are positive no other is left.

Invariants: outputs are what they were, of inputs without negative weights; there are no more `distinct`.

Cost: linear in the circuit.  A positive operator that is read behind a `distinct` and elsewhere is there
twice where its inputs have fewer `distinct` there than here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from maintenance.streams import Circuit, Stream, ZSet

POSITIVE = ("map", "filter", "+", "⋈")
"""The library's operators that give no negative weight where they are given none (Definition 4.4)."""


def consolidated(circuit: Circuit, positive: Collection[str] = POSITIVE) -> Circuit:
    """The same of relations, sets or bags, with fewer `distinct`.  Call it before `Circuit.incremental`.

    ``positive``: the names of linear and bilinear operators that give no negative weight where they are given
    none; claims are taken on trust.  Nested circuits stay as they are: they see changes.

    >>> circuit = Circuit()
    >>> edge = circuit.input("edge").distinct()
    >>> circuit.output("from", edge.map(lambda e: e[0]).distinct())
    >>> [node.name for node in consolidated(circuit).nodes]
    ['edge', 'map', 'distinct']
    """
    bags, made = _bags(circuit, positive), Circuit()
    exact: dict[Stream, Stream] = {}
    bare: dict[Stream, Stream] = {}  # the same rows, weights above 0; what is exact, of other nodes
    for node in sorted(circuit.nodes, key=lambda node: node.kind != "delay"):
        inputs = [exact[each] for each in node.inputs if each in exact]
        below = [bare[each] for each in node.inputs if each in bare]
        joins_rows = node.body is ZSet.distinct and node.inputs[0] in bags
        exact[node] = bare[node] = replace(node, circuit=made, inputs=below if joins_rows else inputs)
        if joins_rows:
            bare[node] = below[0]
        elif _is_positive(node, positive) and below != inputs:
            bare[node] = replace(node, circuit=made, inputs=below)
    for node in (node for node in circuit.nodes if node.kind == "delay"):
        exact[node].inputs = [exact[each] for each in node.inputs]
    made.inputs = {name: exact[node] for name, node in circuit.inputs.items()}
    made.outputs = {name: exact[node] for name, node in circuit.outputs.items()}
    made.nodes = _read(made)
    return made


def _bags(circuit: Circuit, positive: Collection[str]) -> set[Stream]:
    """The streams of Z-sets without negative weights: at each tick, if they were at those before."""
    bags = set(circuit.nodes)

    def is_one(node: Stream) -> bool:
        if node.body is ZSet.distinct:
            return True
        stays = node.kind in ("input", "delay", "integrate") or _is_positive(node, positive)
        return stays and bags.issuperset(node.inputs)

    while others := {node for node in bags if not is_one(node)}:
        bags -= others
    return bags


def _is_positive(node: Stream, positive: Collection[str]) -> bool:
    return node.kind in ("linear", "bilinear") and node.name in positive


def _read(circuit: Circuit) -> list[Stream]:
    """The nodes that outputs are made of, and the inputs."""
    read, todo = set(circuit.inputs.values()), [*circuit.outputs.values()]
    while todo:
        if (node := todo.pop()) not in read:
            read.add(node)
            todo += node.inputs
    return [node for node in circuit.nodes if node in read]
