"""What authors claim of the functions that they lift, tested on what a run brings to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from lftj.errors import CircuitError
from maintenance.streams.circuit import Circuit
from maintenance.streams.running import Node, Running

SAMPLES = 8
"""Of the arguments of a function; their negatives are tried, too."""


def check(circuit: Circuit, **streams: Sequence[Any]) -> None:
    """Run a circuit, and test each claim of linearity and bilinearity in it and in those that it nests.

    Raises CircuitError with a counterexample, one of the shortest.  Cost: some 1,500 calls of a function.
    """
    seen: dict[Node, list[list[Any]]] = {}

    def observe(node: Node, arguments: list[Any]) -> None:
        if node.claim and arguments not in seen.setdefault(node, []):
            seen[node].append(arguments)

    Running(circuit, observe).run(**streams)
    for node, found in seen.items():
        some = sorted(found, key=lambda arguments: len(repr(arguments)))[:SAMPLES]
        samples = [*some, *([-value for value in arguments] for arguments in some)]
        for one, other in product(samples, samples):
            if node.claim == "linear":
                cases = [([a + b for a, b in zip(one, other, strict=True)], one, other)]
            else:
                (a, c), (b, d) = one, other
                cases = [([a + b, c], [a, c], [b, c]), ([a, c + d], [a, c], [a, d])]
            for whole, first, second in cases:
                gives, parts = node.fn(*whole), node.fn(*first) + node.fn(*second)
                if gives != parts:
                    raise CircuitError(
                        f"{node.name!r} is said to be {node.claim}, but f(a + b) = {gives!r}, f(a) + f(b) ="
                        f" {parts!r} for a = {tuple(first)} and b = {tuple(second)}"
                    )
