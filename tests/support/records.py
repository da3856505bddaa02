"""The records of a traced body, looked through one by one, and rounds from one state to another."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from unittest import mock

from lftj.search.machine.plan import Participant
from lftj.storage.catalog import IndexKey
from lftj.storage.relation_version import RelationVersion, levels_of
from maintenance.changes.change import Change
from maintenance.strategies.strategy import Round
from maintenance.strategies.trace import body_trace, built
from maintenance.strategies.trace.body_trace import BodyTrace
from support.bodies import (
    Branches,
    Case,
    Contents,
    Row,
    atoms_of,
    change_between,
    columns_of,
    rows_of,
    stepped,
)


def round_of(case: Case, old: Mapping[str, RelationVersion], before: Contents, after: Contents) -> Round:
    """The round from one state to another one."""
    changes = {}
    for name, version in old.items():
        change = change_between(before[name], after[name])
        if change:
            signs = columns_of([(sign,) for sign in change.values()], 1)[0]
            changes[name] = Change(columns_of(list(change), len(version.schema.columns)), signs)
    return Round(old, stepped(old, before, after), changes)


@contextlib.contextmanager
def renewed_all_the_time(operations: int | None) -> Iterator[None]:
    """Bodies are worn as soon as they are built, and renewed in pieces of so many operations; None: not."""
    with contextlib.ExitStack() as stack:
        if operations is not None:
            stack.enter_context(mock.patch.object(built, "GROWN_LEAST", -(1 << 40)))
            stack.enter_context(mock.patch.object(body_trace, "RENEWED_LEAST", operations))
        yield


def is_left(trace: BodyTrace, binding: Row) -> bool:
    """Whether a body that is being renewed has a binding still before it."""
    left = trace._built.left
    for bound, high, *keys in [] if left is None else left.tolist():
        last = bound - 1
        is_below = len(binding) > last and binding[:last] == tuple(keys[:last])
        if is_below and keys[last] <= binding[last] <= high:
            return True
    return False


class Records:
    """All records of a body, to be looked through one by one; those that are not old alone, if asked for."""

    def __init__(self, trace: BodyTrace, only_new: bool = False) -> None:
        self.of_places: dict[tuple[tuple[int, ...], bool, tuple[object, ...]], Participant] = {}
        self.intervals: dict[int, dict[Row, list[tuple[int, int]]]] = {}
        for stream, index in enumerate(trace.sensitivity):
            if only_new:
                index = copy.deepcopy(index)
                index.drop_old()
            prefix, lo, hi, context = index.records()
            where = trace.plan.streams[stream]
            places = (*where.places[:-1], *where.context_places)
            found = self.intervals.setdefault(stream, {})
            rows = rows_of([*prefix, *context]) or [()] * len(lo)
            for row, low, high in zip(rows, lo.tolist(), hi.tolist(), strict=True):
                binding = tuple(key for _, key in sorted(zip(places, row, strict=True)))
                found.setdefault(binding, []).append((low, high))

    def holds(self, stream: int | None, binding: Row, key: int) -> bool:
        """Whether a record of the stream has this binding and key; without a stream none is needed."""
        if stream is None:
            return True
        return any(low <= key <= high for low, high in self.intervals[stream].get(binding, ()))


def needed_streams(case: Case, trace: BodyTrace, levels: Sequence[Branches]) -> list[int | None]:
    """The stream of each participant by brute force; None where its variables are the first of the order."""
    own = [p for p in trace.plan.participants if p.tested or not p.negated]
    names = [atom.relation for atom in atoms_of(case.problem)]
    atoms_levels: list[tuple[str, IndexKey]] = []
    for atom, name in zip(atoms_of(case.problem), names, strict=True):
        negated = any(atom is other for other in case.problem.negations)
        by_depth = sorted(range(len(atom.variables)), key=lambda i: case.order.index(atom.variables[i]))
        columns = tuple(atom.columns[i] for i in by_depth)
        its_index = name, (levels_of(columns, atom.equal, atom.identity), atom.equal)
        atoms_levels += [its_index] * (1 if negated else len(columns))
    streams = []
    for branches, (name, key) in zip(levels, atoms_levels, strict=True):
        if branches.places == tuple(range(len(branches.places))):
            streams.append(None)
            continue
        (stream,) = {
            p.stream
            for p in own
            if p.places == branches.places
            and p.negated == branches.negated
            and trace.plan.indexes[p.index].relation == name
            and trace.plan.indexes[p.index].key == key
        }
        assert stream is not None
        streams.append(stream)
    return streams
