"""Circuits as data, and how they run: tick by tick, nested ones to their fixpoint at each.

What is remembered is a value by node and level.  A nested circuit begins each run with nothing of its own
clock (level 0).  Of the clock around, its nodes remember a row of values each, one a round, which the node
that nests the circuit remembers one level lower.  Beyond its end a row is constant.

Invariants: a step changes nothing, it gives what is remembered next, so one that raises did not happen; a run
ends when nothing goes in and what is remembered stays, for then all rounds that follow are the same.
Cost: that of the functions; nested, memory for all rounds of a run, and comparing what two of them remember.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lftj.errors import CircuitError, RoundLimitError


@dataclass(eq=False)
class Node:
    """``zero``: of its values.  ``fn``: what is lifted, or steps an operator.  ``level``: of its clock, 0 the
    circuit's own, 1 that around.  ``body``, ``limit``: what is nested, and its rounds at most.
    """

    kind: str
    inputs: list[Node]
    zero: Any
    fn: Callable[..., Any] = field(default=lambda: None)
    level: int = 0
    claim: str = ""
    name: str = ""
    body: Graph | None = None
    limit: int = 0


@dataclass(eq=False)
class Graph:
    """All nodes, each behind its inputs but for delays, and by name those that go in and out."""

    nodes: list[Any] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)


Values = dict[Node, Any]
Memory = dict[tuple[Node, int], Any]
Observer = Callable[[Node, list[Any]], None]
"""Is told of each lifted function that is called, and with which arguments."""


def step(graph: Graph, given: Values, memory: Memory, observe: Observer) -> tuple[Values, Memory]:
    """The values of all nodes at a tick, and what is remembered next; inputs that are not given are 0."""
    values = {n: memory.get((n, n.level), n.zero) for n in graph.nodes if n.kind == "delay"}
    after: Memory = {}
    for node in (node for node in graph.nodes if node.kind != "delay"):
        key, arguments = (node, node.level), [values[each] for each in node.inputs]
        if node.kind == "input":
            values[node] = given.get(node, node.zero)
        elif node.kind == "integrate":
            values[node] = after[key] = memory.get(key, node.zero) + arguments[0]
        elif node.kind == "differentiate":
            values[node], after[key] = arguments[0] - memory.get(key, node.zero), arguments[0]
        elif node.kind == "operator":
            values[node], after[key] = node.fn(memory.get(key), *arguments)
        elif node.kind == "fix":
            values[node], rows = _fixed(node, arguments, memory, observe)
            after.update(rows)
        else:
            observe(node, arguments)
            values[node] = node.fn(*arguments)
    return values, after | {(n, n.level): values[n.inputs[0]] for n in graph.nodes if n.kind == "delay"}


def _fixed(node: Node, arguments: list[Any], memory: Memory, observe: Observer) -> tuple[Any, Memory]:
    """The sum of what a nested circuit gives, its inputs in its first round; what is remembered."""
    assert node.body is not None
    (out,) = node.body.outputs.values()
    past = {key: row for (of, _), rows in memory.items() if of is node for key, row in rows.items()}
    given, own, total = dict(zip(node.body.inputs.values(), arguments, strict=True)), Memory(), node.zero
    found: dict[tuple[Node, int], list[Any]] = {}
    for tick in range(node.limit):
        there = {key: row[min(tick, len(row) - 1)] for key, row in past.items()}
        values, after = step(node.body, given, own | there, observe)
        before, own = own, {key: value for key, value in after.items() if key[1] == 0}
        for key in after.keys() - own.keys():
            found.setdefault(key, []).append(after[key])
        if tick and own == before and all(len(row) <= tick + 1 for row in past.values()):
            break
        total, given = total + values[out], {}
    else:
        last = f"the last of which gave {values[out]!r}: give fix() a higher limit=, or let its rounds end"
        raise RoundLimitError(f"a nested circuit has no fixpoint after {node.limit:,} rounds, {last}")
    if values[out] != out.zero:
        raise CircuitError(f"a nested circuit gives {values[out]!r} for ever: differentiate() its output")
    kept: Memory = {}
    for key, row in found.items():
        while len(row) > 1 and row[-1] == row[-2]:
            row.pop()
        kept.setdefault((node, key[1] - 1), {})[key] = row
    return total, kept


class Running:
    """A circuit on its way, with nothing remembered at first.  Others may run the same circuit."""

    def __init__(self, graph: Graph, observe: Observer = lambda node, arguments: None) -> None:
        _refuse_open(graph, 0)
        self._graph, self._observe, self._memory = graph, observe, Memory()

    def step(self, **given: Any) -> dict[str, Any]:
        """One tick: the outputs' values by those of inputs, 0 where none is given.

        Raises CircuitError, RoundLimitError, and what a lifted function raises; then the tick did not happen.
        """
        inputs, outputs = self._graph.inputs, self._graph.outputs
        if unknown := given.keys() - inputs.keys():
            raise CircuitError(f"there is no input {min(unknown)!r}: inputs are {', '.join(inputs)}")
        by_node = {inputs[name]: value for name, value in given.items()}
        values, self._memory = step(self._graph, by_node, self._memory, self._observe)
        return {name: values[node] for name, node in outputs.items()}

    def run(self, **streams: Sequence[Any]) -> dict[str, list[Any]]:
        """As many ticks as the longest stream has; others are 0 behind their ends."""
        ticks = range(max(map(len, streams.values())))
        found = [self.step(**{k: s[t] for k, s in streams.items() if t < len(s)}) for t in ticks]
        return {name: [each[name] for each in found] for name in self._graph.outputs}


def _refuse_open(graph: Graph, depth: int) -> None:
    for node in graph.nodes:
        if node.kind == "delay" and not node.inputs:
            raise CircuitError("a feedback is open: give it the stream that goes round, by connect()")
        if node.level > depth:
            raise CircuitError(f"{node.kind}(level={node.level}) has {depth} circuits around")
        if node.body is not None:
            _refuse_open(node.body, depth + 1)
