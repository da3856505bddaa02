"""`Rules`: a head of the rule language as an operator, kept by a workspace.

A program P takes relations, which are sets, to a head; a workspace W is its incremental version, D o P o I.
So P = I o W o D (Proposition 3.2), of which `Circuit.incremental` leaves W.  Cost: a transaction a tick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lftj.errors import CircuitError
from maintenance.heads.strategies import DEFAULT
from maintenance.streams.circuit import Stream
from maintenance.streams.zset import ZSet
from maintenance.workspace.workspace import Workspace

State = tuple[Workspace, int]
"""A workspace at one of its versions."""


@dataclass(frozen=True)
class Rules:
    """A head of a program; ``relations``: the columns of all that it reads, by name.

    Rows of Z-sets are tuples.  Of the relations those that have a positive weight count, once (4.2.1).

    >>> from maintenance.streams.circuit import Circuit
    >>> edge = pa.schema({"a": pa.int64(), "b": pa.int64()})
    >>> degree, circuit = Rules("n[a] = count() <- edge(a, _).", "n", {"edge": edge}), Circuit()
    >>> circuit.output("n", degree(edge=circuit.input("edge")))
    >>> circuit.incremental().start().run(edge=[ZSet.of([(1, 2)]), ZSet.of([(1, 3)])])["n"]
    [{(1, 1): 1}, {(1, 1): -1, (1, 2): 1}]
    """

    program: str
    head: str
    relations: Mapping[str, pa.Schema]
    strategy: str = DEFAULT

    def __call__(self, **streams: Stream) -> Stream:
        """The head over streams of its relations.  Raises CircuitError where they are others."""
        if streams.keys() != self.relations.keys():
            raise CircuitError(
                f"{self.head!r} is a head over {', '.join(self.relations)}: give a stream of each"
            )
        first, *others = (streams[name].distinct().differentiate() for name in self.relations)
        return first.operator(self._step, *others, name=self.head, zero=ZSet()).integrate()

    def _step(self, state: State | None, *changes: ZSet) -> tuple[ZSet, State]:
        """Changes of relations in, the change of the head out.  Raises what `Workspace.install` raises."""
        workspace, version = state or self._begun()
        if workspace.version != version:
            raise CircuitError(f"a tick failed when {self.head!r} had gone on: start the circuit anew")
        if not any(changes):
            return ZSet(), (workspace, version)
        with workspace.transaction() as transaction:
            for (name, schema), change in zip(self.relations.items(), changes, strict=True):
                if change:
                    columns = zip(*((*row, weight) for row, weight in change.items()), strict=True)
                    signed = schema.append(pa.field("weight", pa.int64()))
                    transaction.apply(name, pa.table([*columns], schema=signed))
        return ZSet.of_table(transaction.changes[self.head]), (workspace, workspace.version)

    def _begun(self) -> State:
        workspace = Workspace()
        for name, schema in self.relations.items():
            workspace.load(name, schema.empty_table())
        workspace.install(self.program, self.strategy)
        return workspace, workspace.version
