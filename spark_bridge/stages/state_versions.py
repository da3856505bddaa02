"""The versions of a maintained join's state: the one that counts, and how the next one comes about.

    relations -> receipts ---- built ----> version 1, or one under other grids
    a batch   -> receipts -- followed ---> the next version       each: manifest, then the Delta table

Invariants

1. ``manifest`` is a version that was in place when it was read or written, and ``chain`` has its grids.
2. A version that is built anew has the batches of the one before: the head's rows are the same.
3. A Delta table is brought up after the state, and never before it.

Cost: a version's manifest, which names all partitions, is read and written whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from lftj.errors import StateError
from maintenance.store.fault_points import reached
from spark_bridge.cells.key_engine import Keys
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.placing import InputNulls
from spark_bridge.placing.plan_fit import PlanFit, plan_fit
from spark_bridge.stages.clock_stage import BatchClock
from spark_bridge.stages.stages import StageChain
from spark_bridge.stages.worker import Receipt
from spark_bridge.state.delta_head import DeltaHead
from spark_bridge.state.frames import head_rows
from spark_bridge.state.manifest import Batch, PartitionState, StateManifest
from spark_bridge.state.store import StateStore

KEPT_BATCHES = 10
"""Newest versions whose files stay: for readers of them, and for batches that are asked for again."""

_log = logging.getLogger(__name__)


class StateVersions:
    """The versions at a path, as one driver sees them; it can be pickled.

    ``unread``: by relation the columns that no rule reads, with Spark's types: they tell rows apart.
    ``keys``: of the relations that have one, its columns.
    ``deltas``: of results that are Delta tables, too, these.
    ``chain`` and ``manifest`` are those of a version after :meth:`opened` or :meth:`built`.
    """

    def __init__(
        self,
        text: ProgramText,
        nulls: InputNulls,
        store: StateStore,
        deltas: Mapping[str, DeltaHead],
        unread: Mapping[str, Mapping[str, str]],
        keys: Keys,
    ) -> None:
        self.store = store
        self._unread = unread
        self._keys = keys
        self._text = text
        self._nulls: InputNulls = nulls
        self._deltas = deltas
        self.chain = self.chain_of(())
        self.manifest = StateManifest(0, {}, {}, {}, {}, ())

    def chain_of(self, grids: Sequence[HeadGrids | None]) -> StageChain:
        """The program's stages under some grids."""
        return StageChain(self._text, tuple(grids), self._nulls, self._keys)

    # -- the version that counts ----------------------------------------------------

    def opened(self, partitions: int | None) -> bool:
        """Go on from the newest version; False if there is none.

        Raises StateError for a state of something else, or of another number of partitions than asked for.
        """
        newest = self.store.newest()
        if newest is None:
            return False
        newest.refuse_other(
            self._identity(newest.identity["partitions"] if partitions is None else partitions)
        )
        self._take(newest)
        self.tidy(self.store.sweep)
        return True

    def begin(self, partitions: int, was: StateManifest) -> None:
        """Begin a state; ``was``: what its relations contain already, a version of another place or of none.

        Raises StateError for a path that can't be written.
        """
        self.store.create()
        self.manifest = replace(was, identity=self._identity(partitions))

    def read_again(self) -> None:
        """Take note of versions that others have made since, a stream on this state for example."""
        newest = self.store.newest()
        if newest is None:
            raise StateError(f"{self.store!r}: the state is gone; make it anew at another path")
        self._take(newest)

    def _take(self, manifest: StateManifest) -> None:
        """Go on from a version, under the grids that it has."""
        self.manifest = manifest
        if manifest.placement["heads"] != _grids_said(self.chain):
            heads = manifest.placement["heads"]
            self.chain = self.chain_of([HeadGrids.from_json(text) if text else None for text in heads])

    def _identity(self, partitions: int) -> dict[str, Any]:
        said = identity_of(self._text, self._nulls, self._unread, self._keys)
        return {**said, "partitions": partitions}

    def head_states(self, head: str) -> list[PartitionState]:
        """The partitions that the rows of a result are in."""
        prefix = f"{self.chain.giving[head].number}-"
        return [s for name, s in sorted(self.manifest.partitions.items()) if name.startswith(prefix)]

    def recorded(self, source: str, batch_id: int, head: str) -> list[str]:
        """The files with the changes that a batch made in a result; none when it is too old."""
        other = other_result(self._text, head)
        return [
            file
            for batch in self.manifest.batches
            if (batch.source, batch.batch_id) == (source, batch_id)
            for file in batch.changes_of(other)
        ]

    def late(self, source: str, batch_id: int, stream: str) -> list[str]:
        """The files with a stream's rows that came too late with a batch; none when it is too old."""
        batches = [one for one in self.manifest.batches if (one.source, one.batch_id) == (source, batch_id)]
        return [file for batch in batches for file in batch.late.get(stream, ())]

    def clock(
        self, was: StateManifest, advanced: int | None = None, is_told: bool = False
    ) -> BatchClock | None:
        """From where the streams go on; None without streams."""
        if not self._text.streams:
            return None
        return BatchClock.of(self._text, was.streams, advanced=advanced, is_told=is_told)

    # -- the next one ---------------------------------------------------------------
    # ``was`` is the version that it was begun from: ``manifest`` may be a later one by now, of others.

    def built(self, was: StateManifest, chain: StageChain, receipts: Sequence[Receipt]) -> None:
        """Commit a version of relations that went through a chain as a whole, and nothing that was before."""
        rows = _grown({name: 0 for name, _ in self._text.sources}, receipts)
        states = _states(receipts)
        placement: dict[str, Any] = {
            "heads": _grids_said(chain),
            "planned": rows,
            "rows": rows,
        }
        if len(chain.giving) > 1:
            placement["results"] = {name: stage.number for name, stage in chain.giving.items()}
        placement["skew"] = _fit(chain, placement, states).skew
        identity = self._identity(chain.partitions)
        following = replace(was, identity=identity, placement=placement, partitions=states)
        following = replace(following, streams=_moving(was, receipts))
        self._commit(replace(following, version=was.version + 1))
        self.chain = chain

    def followed(self, was: StateManifest, receipts: Sequence[Receipt], source: str, batch_id: int) -> None:
        """Commit what a batch's partitions say, which were at the version that was then."""
        (_, files), *others = ((name, self._changes(receipts, name)) for name in self.chain.giving)
        streams = sorted({name for receipt in receipts for name in receipt.late})
        late = {
            name: tuple(sorted(receipt.late[name] for receipt in receipts if name in receipt.late))
            for name in streams
        }
        batch = Batch(was.version + 1, source, batch_id, files, late, dict(others))
        following = replace(
            was,
            version=was.version + 1,
            placement={**was.placement, "rows": _grown(was.placement["rows"], receipts)},
            applied={**was.applied, source: batch_id},
            partitions={**was.partitions, **_states(receipts)},
            batches=(*was.batches, batch)[-KEPT_BATCHES:],
            streams=_moving(was, receipts),
        )
        self._commit(following)

    def _changes(self, receipts: Sequence[Receipt], head: str) -> tuple[str, ...]:
        """The files that receipts name with changes of a result."""
        prefix = f"{self.chain.giving[head].number}-"
        files = (it.head_changes for it in receipts if it.partition.startswith(prefix) and it.head_changes)
        return tuple(sorted(files))

    def _commit(self, following: StateManifest) -> None:
        self.store.commit(following)
        self.manifest = following

    def end(self, token: str) -> None:
        """What a commit leaves over goes; ``token``: of the try that made it."""
        reached("batch: committed, not cleaned")
        self.tidy(lambda: self.store.end(token))
        # At the first version, too: of tries before it there may be files without a marker.
        if self.manifest.version % KEPT_BATCHES == 1:
            self.tidy(lambda: self.store.clean(KEPT_BATCHES))
        else:
            self.tidy(self.store.sweep)

    def keep_newest(self) -> None:
        """Files of versions before the newest go.  Raises StateError."""
        self.store.clean(1)

    def tidy(self, tidying: Callable[[], object]) -> None:
        """What is no part of the state goes.  Where that fails the state is what it is, and goes on."""
        try:
            tidying()
        except StateError as error:
            _log.warning("%r: the state is whole, but was not tidied up: %s", self.store, error)

    def to_delta(self) -> None:
        """Bring Delta tables, if there are to be some, to where the state is.  Raises StateError."""
        for head, delta in self._deltas.items():
            rows = partial(self._rows, self.head_states(head))
            delta.follow(self.manifest.seen_by(other_result(self._text, head)), rows)

    def _rows(self, states: Sequence[PartitionState], schema: pa.Schema) -> Iterable[pa.RecordBatch]:
        return head_rows(self.store, schema, states)

    # -- how the plan fits ----------------------------------------------------------

    def fit(self) -> PlanFit:
        """How the grids fit what there is."""
        return _fit(self.chain, self.manifest.placement, self.manifest.partitions)

    def left_plan(self, factor: float) -> bool:
        """Whether rows or skew have left the plan by a factor."""
        return self.fit().left_by(PlanFit(skew=self.manifest.placement["skew"])) >= factor


def other_result(text: ProgramText, head: str) -> str | None:
    """A result, as the changes of batches are told apart: None for the first one."""
    return None if head == text.targets[0] else head


def identity_of(
    text: ProgramText,
    nulls: InputNulls,
    unread: Mapping[str, Mapping[str, str]],
    keys: Keys,
) -> dict[str, Any]:
    """What a state is made for, in JSON: another program, or one over other relations, is refused by it."""

    def type_of(field: pa.Field) -> str:
        """Where NULLs are kept, with what is declared NOT NULL."""
        declared = "" if nulls != "keep" or field.nullable else " not null"
        return f"{field.type}{declared}"

    schemas = {name: [[field.name, type_of(field)] for field in schema] for name, schema in text.relations}
    head, *others = text.targets
    return {
        "rule": text.text,
        "head": head,
        **({"others": others} if others else {}),
        "nulls": nulls,
        "relations": schemas,
        **({"unread": unread} if unread else {}),
        **({"key": keys} if keys else {}),
        **({"streams": {name: vars(each) for name, each in text.streams}} if text.streams else {}),
    }


def _states(receipts: Sequence[Receipt]) -> dict[str, PartitionState]:
    return {receipt.partition: receipt.state for receipt in receipts if receipt.state}


def _moving(was: StateManifest, receipts: Sequence[Receipt]) -> dict[str, list[int | None]]:
    """Where streams are after a batch."""
    return {**was.streams, **{name: each for receipt in receipts for name, each in receipt.moving.items()}}


def _grown(rows: Mapping[str, int], receipts: Sequence[Receipt]) -> dict[str, int]:
    """Rows by relation after a batch."""
    return {name: n + sum(receipt.grown.get(name, 0) for receipt in receipts) for name, n in rows.items()}


def _fit(chain: StageChain, placement: Mapping[str, Any], states: Mapping[str, PartitionState]) -> PlanFit:
    """Partitions' rows are those at their snapshots."""
    rows = [
        [
            states[name].rows if (name := f"{stage.number}-{pid}") in states else 0
            for pid in range(chain.partitions)
        ]
        for stage in chain.stages
        if stage.searches
    ]
    own = [(plan, grids) for plan, grids in zip(chain.plans, chain.grids, strict=True) if grids is not None]
    return plan_fit(own, placement["planned"], placement["rows"], rows)


def _grids_said(chain: StageChain) -> list[str | None]:
    """Grids of heads, as a manifest has them."""
    return [None if grids is None else grids.to_json() for grids in chain.grids]
