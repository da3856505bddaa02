"""`Circuit`: streams and what joins them, as a value that is built, rewritten, drawn and run.

A stream's values are of a commutative group, `ZSet` or any other with ``+``, ``-`` and ``==``.  Numbers in
docstrings are of the DBSP paper (arXiv 2203.16684).  Invariant: operators are causal and take 0 to 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lftj.errors import CircuitError
from maintenance.streams.running import Graph, Node, Running
from maintenance.streams.zset import ZSet

Fn = Callable[..., Any]
_SHOWN = {"delay": "z⁻¹", "integrate": "∫", "differentiate": "D"}
_INVERSE = {"integrate": "differentiate", "differentiate": "integrate"}


class Stream(Node):
    """A node of a circuit, and the stream of its values."""

    inputs: list[Any]

    def __init__(self, circuit: Circuit, kind: str, inputs: Sequence[Stream], zero: Any, **more: Any) -> None:
        super().__init__(kind, list(inputs), zero, **more)
        self.circuit = circuit
        if any(each.circuit is not circuit for each in inputs):
            raise CircuitError("streams of two circuits can't meet: pass those of one as inputs of the other")
        circuit.nodes.append(self)

    def lift(
        self,
        fn: Fn,
        *more: Stream,
        linear: bool = False,
        bilinear: bool = False,
        name: str = "",
        zero: Any = None,
    ) -> Stream:
        """``fn`` of the values at each tick (Definition 2.3); ``zero``: of its results, None: this stream's.

        ``linear``: f(a + b) = f(a) + f(b), of all arguments at once; ``bilinear``: in each of two.  That is
        taken on trust (:mod:`maintenance.streams.claims` tests it); that ``fn`` takes 0 to 0 is not.
        """
        inputs, name = (self, *more), name or getattr(fn, "__name__", "lift")
        zero = self.zero if zero is None else zero
        if bilinear and (linear or len(inputs) != 2):
            raise CircuitError(f"{name!r} of {len(inputs)} streams is linear, or bilinear in two, or neither")
        if (found := fn(*(each.zero for each in inputs))) != zero:
            raise CircuitError(f"{name!r} gives {found!r} where all is 0: it has to give {zero!r}")
        claim = "linear" if linear else "bilinear" if bilinear else ""
        return Stream(self.circuit, "lift", inputs, zero, fn=fn, claim=claim, name=name)

    def operator(self, fn: Fn, *more: Stream, name: str, zero: Any) -> Stream:
        """``fn`` takes its state, first None, and a tick's values; it gives the result and the next state.

        States that are equal do the same from then on.
        """
        return Stream(self.circuit, "operator", (self, *more), zero, fn=fn, name=name)

    def __add__(self, other: Stream) -> Stream:
        return self.lift(operator.add, other, linear=True, name="+")

    def __neg__(self) -> Stream:
        return self.lift(operator.neg, linear=True, name="−")

    def map(self, function: Callable[[Any], Any], name: str = "map") -> Stream:
        """Of Z-sets: the image of each row."""
        return self.lift(lambda z: ZSet((function(x), w) for x, w in z.items()), linear=True, name=name)

    def filter(self, test: Callable[[Any], bool], name: str = "filter") -> Stream:
        """Of Z-sets: the rows that pass."""
        return self.lift(lambda z: ZSet((x, w) for x, w in z.items() if test(x)), linear=True, name=name)

    def join(self, other: Stream, pair: Callable[[Any, Any], Any], name: str = "⋈") -> Stream:
        """Of Z-sets: what ``pair`` makes of a row of each, None where they do not meet."""

        def joined(left: ZSet, right: ZSet) -> ZSet:
            pairs = ((pair(x, y), v * w) for x, v in left.items() for y, w in right.items())
            return ZSet((row, weight) for row, weight in pairs if row is not None)

        return self.lift(joined, other, bilinear=True, name=name)

    def distinct(self) -> Stream:
        return self.lift(ZSet.distinct)

    def delay(self, level: int = 0) -> Stream:
        """z^-1: the value of the tick before, first 0 (Definition 2.5)."""
        return self._kept("delay", level)

    def integrate(self, level: int = 0) -> Stream:
        """The sum of all values so far (Definition 2.19)."""
        return self._kept("integrate", level)

    def differentiate(self, level: int = 0) -> Stream:
        """The value less that of the tick before (Definition 2.17)."""
        return self._kept("differentiate", level)

    def _kept(self, kind: str, level: int) -> Stream:
        """The node, if it is not there already, or what it would take back (Theorem 2.22)."""
        if (self.kind, self.level) == (_INVERSE.get(kind), level):
            return self.inputs[0]
        same = (n for n in self.circuit.nodes if (n.kind, n.level, n.inputs) == (kind, level, [self]))
        return next(same, None) or Stream(self.circuit, kind, (self,), self.zero, level=level)

    def connect(self, stream: Stream) -> None:
        """Close a feedback: it is that stream, a tick later."""
        if self.kind != "delay" or self.inputs:
            raise CircuitError("only a feedback that is open can be connected")
        self.inputs.append(stream)


class Circuit(Graph):
    """Streams that go in, streams that come out, and what is between.

    >>> circuit = Circuit()
    >>> edge = circuit.input("edge")
    >>> hop = lambda x, y: (x[0], y[1]) if x[1] == y[0] else None
    >>> circuit.output("two", edge.join(edge, hop).distinct())
    >>> circuit.incremental().start().run(edge=[ZSet.of([(1, 2), (2, 3)]), ZSet({(2, 3): -1})])["two"]
    [{(1, 3): 1}, {(1, 3): -1}]
    """

    def input(self, name: str, zero: Any = ZSet()) -> Stream:  # noqa: B008
        self.inputs[name] = stream = Stream(self, "input", (), zero, name=name)
        return stream

    def output(self, name: str, stream: Stream) -> None:
        self.outputs[name] = stream

    def feedback(self, zero: Any = ZSet(), level: int = 0) -> Stream:  # noqa: B008
        """A delay whose input comes later: :meth:`Stream.connect` closes the cycle (Corollary 2.12)."""
        return Stream(self, "delay", (), zero, level=level)

    def fix(self, body: Circuit, *inputs: Stream, limit: int = 1_000) -> Stream:
        """The sum of what a circuit with a clock of its own gives when these come in its first round (5).

        ``body``: with an output, and inputs in this order.  Its rounds go on until nothing changes any more;
        where ``limit`` are not enough, running raises RoundLimitError.
        """
        if len(body.inputs) != len(inputs) or len(body.outputs) != 1:
            raise CircuitError(
                f"fix() is given {len(inputs)} streams: its body needs as many, and one output"
            )
        (out,) = body.outputs.values()
        return Stream(self, "fix", inputs, out.zero, body=body, limit=limit)

    def start(self) -> Running:
        """The circuit at its first tick.  Raises CircuitError where a feedback is open."""
        return Running(self)

    def incremental(self, level: int = 0) -> Circuit:
        """D o Q o I, pushed through node by node, nested circuits included: step 5 of Algorithm 4.8.

        ``level``: for the clock so many levels up.
        """
        made = Circuit()
        of = {node: made.feedback(node.zero, node.level) for node in self.nodes if node.kind == "delay"}
        for node in self.nodes:
            if node.kind == "input":
                of[node] = made.input(node.name, node.zero)
            elif node.kind != "delay":
                of[node] = made._increment(node, [of[each] for each in node.inputs], level)
        for node in (node for node in self.nodes if node.kind == "delay" and node.inputs):
            of[node].connect(of[node.inputs[0]])  # cycles stay cycles (Proposition 3.2)
        made.outputs = {name: of[node] for name, node in self.outputs.items()}
        wanted = [*made.outputs.values(), *made.inputs.values()]
        for node in wanted:
            wanted += (each for each in node.inputs if each not in wanted)
        made.nodes = [node for node in made.nodes if node in wanted]
        return made

    def _increment(self, node: Stream, inputs: list[Stream], level: int) -> Stream:
        def like(*others: Stream) -> Stream:
            return Stream(self, node.kind, others, node.zero, fn=node.fn, claim=node.claim, name=node.name)

        if isinstance(node.body, Circuit):
            return self.fix(node.body.incremental(level + 1), *inputs, limit=node.limit)
        if node.kind in _INVERSE:
            return inputs[0]._kept(node.kind, node.level)
        if node.claim == "linear":  # Theorem 3.3
            return like(*inputs)
        if node.claim == "bilinear":  # Theorem 3.4
            left, right = inputs
            return like(left.integrate(level), right) + like(left, right.integrate(level).delay(level))
        if node.fn is ZSet.distinct:  # Proposition 4.7
            return inputs[0].integrate(level).delay(level).lift(ZSet.distinct_change, inputs[0], name="H")
        return like(*(each.integrate(level) for each in inputs)).differentiate(level)  # Definition 3.1

    def mermaid(self) -> str:
        """The picture, as text for Mermaid; ``↑`` stands for a clock one level up."""
        return "\n".join(["flowchart LR", *self._drawn("n")])

    def _drawn(self, prefix: str) -> Iterator[str]:
        at = {node: f"{prefix}{number}" for number, node in enumerate(self.nodes)}
        for node, place in at.items():
            if node.body is not None:
                inside = (f"  {line}" for line in node.body._drawn(f"{place}_"))
                yield from (f"  subgraph {place} [fix]", *inside, "  end")
            else:
                yield f'  {place}["{node.name or _SHOWN[node.kind]}{"↑" * node.level}"]'
            yield from (f"  {at[source]} --> {place}" for source in node.inputs)
        for name, node in self.outputs.items():
            yield f'  {at[node]} --> {prefix}_{name}(["{name}"])'
