"""Circuits over streams: the algebra of DBSP (arXiv 2203.16684, whose numbers these are).

Invariants: operators are causal and take 0 to 0; what a run remembers is the values of the tick before, by
each clock.  Cost: that of the functions; nested, memory for all rounds, and comparing each with the next.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, partialmethod
from itertools import product
from typing import Any

from lftj.errors import CircuitError, RoundLimitError
from maintenance.heads.strategies import DEFAULT
from maintenance.workspace.workspace import Workspace

Fn = Callable[..., Any]
_SHOWN = {"delay": "z⁻¹", "integrate": "∫", "differentiate": "D"}


class ZSet(dict[Any, int]):
    """Rows with integer weights (4.1): those of equal rows add up, and a row that is not there has 0."""

    def __init__(self, weights: Mapping[Any, int] | Iterable[tuple[Any, int]] = ()) -> None:
        for row, weight in weights.items() if isinstance(weights, Mapping) else weights:
            self[row] += weight
            if not self[row]:
                del self[row]

    def __missing__(self, row: Any) -> int:
        return 0

    @staticmethod
    def of(rows: Iterable[Any]) -> ZSet:
        """Each row with the weight 1, as often as it comes."""
        return ZSet((row, 1) for row in rows)

    def __add__(self, other: ZSet) -> ZSet:
        return ZSet([*self.items(), *other.items()]) if self and other else self or other

    def __neg__(self) -> ZSet:
        return ZSet((row, -weight) for row, weight in self.items())

    def __sub__(self, other: ZSet) -> ZSet:
        return self + -other

    def distinct(self) -> ZSet:
        """Rows of a positive weight, with the weight 1 (Definition 4.3)."""
        return ZSet.of(row for row, weight in self.items() if weight > 0)

    def H(self, change: ZSet) -> ZSet:
        """How `distinct` changes with a change, in the time of the change (Proposition 4.7)."""
        return ZSet((row, (self[row] + w > 0) - (self[row] > 0)) for row, w in change.items())

    def join(self, other: ZSet, pair: Fn) -> ZSet:
        """What ``pair`` makes of a row of each, None where they do not meet; weights are multiplied (4.2)."""
        pairs = ((pair(x, y), v * w) for (x, v), (y, w) in product(self.items(), other.items()))
        return ZSet((row, weight) for row, weight in pairs if row is not None)


@dataclass(eq=False, repr=False)
class Stream:
    """A node, and the stream of its values; ``level``: of its clock, 0 the circuit's own, 1 that around."""

    circuit: Circuit
    kind: str
    inputs: list[Stream]
    zero: Any
    body: Any = None
    name: str = ""
    level: int = 0
    limit: int = 0

    def __post_init__(self) -> None:
        if any(each.circuit is not self.circuit for each in self.inputs):
            raise CircuitError("streams of two circuits can't meet: pass those of one as inputs of the other")
        self.circuit.nodes.append(self)

    def lift(self, f: Fn, *s: Stream, linear: bool = False, bilinear: bool = False, name: str = "") -> Stream:
        """``f`` at each tick (Definition 2.3), refused unless it takes 0 to 0; claims are taken on trust."""
        inputs, name = [self, *s], name or getattr(f, "__name__", "lift")
        if bilinear and (linear or len(inputs) != 2):
            raise CircuitError(f"{name!r} of {len(inputs)} streams is linear, or bilinear in two, or neither")
        zero = f(*(each.zero for each in inputs))
        if zero + zero != zero:
            raise CircuitError(f"{name!r} gives {zero!r} where all is 0: it has to give 0")
        kind = "linear" if linear else "bilinear" if bilinear else "lift"
        return Stream(self.circuit, kind, inputs, zero, f, name)

    def map(self, fn: Fn) -> Stream:
        """Of Z-sets: the image of each row."""
        return self.lift(lambda z: ZSet((fn(x), w) for x, w in z.items()), linear=True, name="map")

    def filter(self, test: Fn) -> Stream:
        """Of Z-sets: the rows that pass."""
        return self.lift(lambda z: ZSet((x, w) for x, w in z.items() if test(x)), linear=True, name="filter")

    def join(self, other: Stream, pair: Fn) -> Stream:
        return self.lift(lambda a, b: a.join(b, pair), other, bilinear=True, name="⋈")

    def _kept(self, kind: str, level: int = 0) -> Stream:
        if {self.kind, kind} == {"integrate", "differentiate"} and self.level == level:
            return self.inputs[0]  # Theorem 2.22
        same = (n for n in self.circuit.nodes if (n.kind, n.level, n.inputs) == (kind, level, [self]))
        return next(same, None) or Stream(self.circuit, kind, [self], self.zero, level=level)

    __add__ = partialmethod(lift, operator.add, linear=True, name="+")
    __neg__ = partialmethod(lift, operator.neg, linear=True, name="−")
    distinct = partialmethod(lift, ZSet.distinct)
    delay = partialmethod(_kept, "delay")
    integrate = partialmethod(_kept, "integrate")
    differentiate = partialmethod(_kept, "differentiate")
    """The value of the tick before, first 0 (2.5); the sum so far (2.19); the change since (2.17)."""

    def connect(self, stream: Stream) -> None:
        """Close a feedback: it is that stream, a tick later."""
        if self.kind != "delay" or self.inputs:
            raise CircuitError("only a feedback that is open can be connected")
        self.inputs.append(stream)


@dataclass(eq=False, repr=False)
class Circuit:
    """Nodes, each behind its inputs but for delays, and by name the streams that go in and out."""

    nodes: list[Stream] = field(default_factory=list)
    inputs: dict[str, Stream] = field(default_factory=dict)
    outputs: dict[str, Stream] = field(default_factory=dict)
    values: dict[Any, Any] = field(default_factory=dict)
    observe: Fn = lambda node, arguments: None

    def input(self, name: str, zero: Any = ZSet()) -> Stream:  # noqa: B008
        self.inputs[name] = Stream(self, "input", [], zero, name=name)
        return self.inputs[name]

    def output(self, name: str, stream: Stream) -> None:
        self.outputs[name] = stream

    def feedback(self, zero: Any = ZSet(), level: int = 0) -> Stream:  # noqa: B008
        """A delay whose input comes later: `Stream.connect` closes the cycle (Corollary 2.12)."""
        return Stream(self, "delay", [], zero, level=level)

    def fix(self, body: Circuit, *inputs: Stream, limit: int = 1_000) -> Stream:
        """The sum of what ``body`` gives, from these in the first of ``limit`` rounds at most (section 5)."""
        if len(body.inputs) != len(inputs) or len(body.outputs) != 1:
            raise CircuitError(f"fix() is given {len(inputs)} streams: its body needs as many, and an output")
        return Stream(self, "fix", [*inputs], next(iter(body.outputs.values())).zero, body, limit=limit)

    def incremental(self, level: int = 0) -> Circuit:
        """D o Q o I by the clock ``level`` up, pushed through all nodes: step 5 of Algorithm 4.8."""
        made, of = Circuit(), dict[Stream, Stream]()
        for node in sorted(self.nodes, key=lambda node: node.kind != "delay"):
            inputs = [of[each] for each in node.inputs if each in of]
            body = node.body.incremental(level + 1) if node.kind == "fix" else node.body
            like = partial(replace, node, circuit=made, body=body)
            if node.kind in ("delay", "input", "linear", "fix"):  # Theorem 3.3
                of[node] = like(inputs=inputs)
            elif node.kind in _SHOWN:
                of[node] = inputs[0]._kept(node.kind, node.level)
            elif node.kind == "bilinear":  # Theorem 3.4
                left, right = inputs
                of[node] = like(inputs=[left.integrate(level), right])
                of[node] += like(inputs=[left, right.integrate(level).delay(level)])
            elif node.body is ZSet.distinct:  # Proposition 4.7
                of[node] = inputs[0].integrate(level).delay(level).lift(ZSet.H, inputs[0])
            else:  # Definition 3.1
                of[node] = like(inputs=[each.integrate(level) for each in inputs]).differentiate(level)
        for node in (node for node in self.nodes if node.kind == "delay"):  # cycles (Proposition 3.2)
            of[node].inputs = [of[each] for each in node.inputs]
        made.inputs, made.outputs = ({k: of[n] for k, n in d.items()} for d in (self.inputs, self.outputs))
        used = {*made.outputs.values(), *(each for node in made.nodes for each in node.inputs)}
        made.nodes = [node for node in made.nodes if node in used or node.kind == "input"]
        return made

    def mermaid(self, prefix: str = "n") -> str:
        """The picture, as text for Mermaid; ``↑`` stands for a clock one level up."""
        lines, at = ["flowchart LR"], {node: f"{prefix}{number}" for number, node in enumerate(self.nodes)}
        for node, place in at.items():
            if node.kind == "fix":
                inside = node.body.mermaid(f"{place}_").splitlines()[1:]
                lines += [f"  subgraph {place} [fix]", *(f"  {line}" for line in inside), "  end"]
            else:
                lines.append(f'  {place}["{node.name or _SHOWN[node.kind]}{"↑" * node.level}"]')
            lines += [f"  {at[source]} --> {place}" for source in node.inputs]
        lines += [f'  {at[node]} --> {prefix}_{name}(["{name}"])' for name, node in self.outputs.items()]
        return "\n".join(lines)

    def start(self, depth: int = 0) -> Circuit:
        """A copy at its first tick, ``depth`` others around.  Raises CircuitError if a feedback is open."""
        for node in self.nodes:
            if node.kind == "delay" and not node.inputs:
                raise CircuitError("a feedback is open: give it the stream that goes round, by connect()")
            if node.level > depth:
                raise CircuitError(f"{node.kind}(level={node.level}) has {depth} circuits around")
            if node.kind == "fix":
                node.body.start(depth + 1)
        return replace(self, values={})

    def step(self, **given: Any) -> dict[str, Any]:
        """The outputs' values at a tick by those of inputs, or 0.  If anything raises, it did not happen."""
        if unknown := given.keys() - self.inputs.keys():
            raise CircuitError(f"there is no input {min(unknown)!r}: inputs are {[*self.inputs]}")
        self.values = self._tick(self, given, [self.values])
        return {name: self.values[node] for name, node in self.outputs.items()}

    def run(self, **streams: Sequence[Any]) -> dict[str, list[Any]]:
        """As many ticks as the longest stream has; others are 0 behind their ends."""
        ticks = range(max(map(len, streams.values())))
        found = [self.step(**{k: s[t] for k, s in streams.items() if t < len(s)}) for t in ticks]
        return {name: [each[name] for each in found] for name in self.outputs}

    def _tick(self, circuit: Circuit, given: dict[str, Any], befores: list[Any]) -> dict[Any, Any]:
        """By node and by (node, "state"); ``befores``: the same a tick earlier, by the level of the clock."""
        values: dict[Any, Any] = {}
        for node in circuit.nodes:
            before, state = befores[node.level], (node, "state")
            now = [values.get(each) for each in node.inputs]
            was = [before.get(each, each.zero) for each in node.inputs]
            if node.kind == "input":
                values[node] = given.get(node.name, node.zero)
            elif node.kind == "delay":
                values[node] = was[0]
            elif node.kind == "integrate":
                values[node] = before.get(node, node.zero) + now[0]
            elif node.kind == "differentiate":
                values[node] = now[0] - was[0]
            elif node.kind == "operator":
                values[node], values[state] = node.body(before.get(state), *now)
            elif node.kind == "fix":
                pasts = [each.get(state, [{}]) for each in befores]
                values[node], values[state] = self._fixed(node, now, pasts)
            else:
                values[node] = node.body(*now)
                self.observe(node, now)
        return values

    def _fixed(self, node: Stream, now: list[Any], pasts: list[Any]) -> tuple[Any, list[Any]]:
        """The sum of a nested circuit's output, and the values of its rounds; ``pasts``: of earlier runs."""
        (out,) = node.body.outputs.values()
        given, rounds = dict(zip(node.body.inputs, now, strict=True)), [dict[Any, Any]()]
        while len(rounds) < 3 or rounds[-1] != rounds[-2] or len(rounds) < max(map(len, pasts)):
            if len(rounds) > node.limit:
                raise RoundLimitError(f"no fixpoint after {node.limit:,} rounds: give fix() a higher limit=")
            around = [past[min(len(rounds), len(past) - 1)] for past in pasts]
            rounds.append(self._tick(node.body, given, [rounds[-1], *around]))
            given = {}
        if (last := rounds[-1][out]) != out.zero:
            raise CircuitError(f"a nested circuit gives {last!r} for ever: differentiate() its output")
        while rounds[-1] == rounds[-2]:
            rounds.pop()
        return sum((values[out] for values in rounds[1:]), out.zero), rounds


def check(circuit: Circuit, **streams: Sequence[Any]) -> None:
    """Run a circuit.  Raises CircuitError with a counterexample, a short one, of a wrong claim in it."""
    seen: dict[Stream, list[Any]] = {}
    replace(circuit.start(), observe=lambda node, now: seen.setdefault(node, []).append(now)).run(**streams)
    for node in (node for node in seen if node.kind != "lift"):
        some = sorted({repr(now): now for now in seen[node]}.values(), key=lambda now: len(repr(now)))[:8]
        for a, b in product([*some, *([-value for value in now] for now in some)], repeat=2):
            parts = [a, b] if node.kind == "linear" else product(*zip(a, b, strict=True))
            whole = node.body(*map(operator.add, a, b))
            if whole != (total := sum((node.body(*part) for part in parts), node.zero)):
                says = f"f(a + b) = {whole!r}, its parts give {total!r} for a = {tuple(a)} and b = {tuple(b)}"
                raise CircuitError(f"{node.name!r} is said to be {node.kind}, but {says}")


@dataclass(frozen=True)
class Rules:
    """A head of a program, kept by a workspace, over relations with these Arrow schemas: sets of tuples."""

    program: str
    head: str
    relations: Mapping[str, Any]
    strategy: str = DEFAULT

    def __call__(self, **streams: Stream) -> Stream:
        """The head over streams of its relations.  Raises CircuitError where they are others."""
        if streams.keys() != self.relations.keys():
            raise CircuitError(f"{self.head!r} is a head over {', '.join(self.relations)}: give it these")
        changes = [streams[name].distinct().differentiate() for name in self.relations]
        return Stream(changes[0].circuit, "operator", changes, ZSet(), self._step, self.head).integrate()

    def _step(self, state: Any, *changes: ZSet) -> tuple[ZSet, tuple[Workspace, int]]:
        workspace, version = state or (Workspace(), None)
        if version is None:
            for name, schema in self.relations.items():
                workspace.load(name, schema.empty_table())
            workspace.install(self.program, self.strategy)
        elif workspace.version != version:
            raise CircuitError(f"a tick failed when {self.head!r} had gone on: start the circuit anew")
        with workspace.transaction() as transaction:
            for name, change in zip(self.relations, changes, strict=True):
                transaction.insert(name, [row for row, weight in change.items() if weight > 0])
                transaction.erase(name, [row for row, weight in change.items() if weight < 0])
        rows = zip(*(column.to_pylist() for column in transaction.changes[self.head].columns), strict=True)
        return ZSet((tuple(row), weight) for *row, weight in rows), (workspace, workspace.version)
