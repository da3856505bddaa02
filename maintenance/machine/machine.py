"""The commit machine of one workspace: who is in, and when it runs (docs/design/commit.md).

Invariants

1. What is published is the versions that the program was bound to, and its layers.  They are *folded* into
   versions by whoever asks for the state: nobody sees another one than the last commit's.
2. One assignment ends what the layers say: that of a state which is not the one that the program is bound to.
3. What the machine does not do it leaves as it was, and says so; the general way follows.

Cost: a program is made when some transactions in a row could have gone by it, and bound anew behind whatever
else changed the state.  Where that comes often, more and more transactions go the general way before.  Behind
a reader it goes on with the next one.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol

import numpy as np

from indices.compiled import all_are_compiled, load_kernels
from indices.wrapping import wraps_around
from lftj.memory import address
from lftj.process import debug
from lftj.process.interrupts import interruptible
from lftj.rewriting.guard import Spans
from lftj.values.collector import Collector, Lease
from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.heads.head import MaintainedHead
from maintenance.heads.stratum import Strata
from maintenance.machine.accounting import Taken
from maintenance.machine.clocks import Clocks, Streams
from maintenance.machine.eligible import computed_in_python, refusals
from maintenance.machine.entry_form import EntryForm
from maintenance.machine.kernel import commit, end
from maintenance.machine.piece import Piece
from maintenance.machine.program import (
    ATTEMPT,
    COMMITS,
    IS_JOURNALED,
    LOG_END,
    N_STAGED,
    STAGED,
    STAGED_AT,
    TAKEN,
    Layout,
    MachineProgram,
)
from maintenance.machine.records import DONE, FULL, LEFT, PREPARED, ROOM, TO_FOLD
from maintenance.machine.reference import compare, expected_changes
from maintenance.machine.structures import SIZES, Sizes
from maintenance.strategies.strategy import Round, Versions

FEWEST = 4
"""Transactions go the general way before a program is made."""

ENOUGH = 64
"""Commits are worth binding for; where others change the state behind fewer, the machine stays out for twice
as many transactions as before."""

MOST = 1 << 10
"""So many at most, and where its kernels have to be compiled first."""

LOOK_EVERY = 64
"""Commits: then it may be time for a checkpoint."""


class State(Protocol):
    """All that a workspace is at one moment: :class:`~maintenance.workspace.state.State`."""

    @property
    def versions(self) -> Versions: ...

    @property
    def number(self) -> int: ...

    @property
    def strata(self) -> Strata: ...

    @property
    def shown(self) -> Mapping[str, Schema]: ...

    @property
    def spans(self) -> Spans: ...

    @property
    def streams(self) -> Streams: ...

    @property
    def takes_single_changes(self) -> bool: ...


class Committed(Protocol):
    """A transaction: where it finds what it did."""

    piece: Piece | None

    @property
    def lease(self) -> Lease | None:
        """Of the codes that are staged."""


class Feed(Protocol):
    """:class:`~maintenance.workspace.commit_feed.CommitFeed`."""

    @property
    def is_kept(self) -> bool: ...


class Host(Protocol):
    """Whose machine it is: :class:`~maintenance.workspace.published.Published`."""

    @property
    def lock(self) -> AbstractContextManager[object]: ...

    @property
    def as_bound(self) -> State:
        """The state that is published, without what the machine did since."""

    @property
    def takes_single_changes(self) -> bool:
        """Whether nothing is in the way."""

    @property
    def waits_for_the_disk(self) -> bool:
        """Whether each commit does."""

    @property
    def has_journal(self) -> bool:
        """Whether a commit is published when a journal has it."""

    @property
    def collector(self) -> Collector:
        """Of values that nobody needs any more."""

    @property
    def is_listened_to(self) -> bool:
        """Whether somebody hears of each commit."""

    @property
    def feed(self) -> Feed:
        """Of changes, for those who follow heads."""

    def begin_single(self, transaction: Any, piece: Piece, number: int, is_heard: bool) -> None:
        """What leads to a version of this number may be published now; whether somebody hears of it."""

    def append_single(self, entry: EntryForm) -> None:
        """Let the journal have what was begun.  Raises DurabilityError; then it has not."""

    def look_at_journal(self) -> None:
        """It may be time for a checkpoint."""

    def settle_single(self) -> None:
        """Have what was begun told where it is published; any number of times."""

    def tell_single(self) -> None:
        """Tell subscribers what waits for them; not under the lock."""

    def fold(
        self,
        versions: Versions,
        spans: Spans,
        streams: Streams,
        commits: int,
        seconds: float,
        operations: int,
        kept: bool,
    ) -> None:
        """Publish these versions, so many commits behind the state that took so much, spans of guarded
        columns, and streams; whether their changes were kept."""

    def account(self, taken: Taken, change: Round, heads: Iterable[MaintainedHead]) -> None:
        """Let choices know what the commits took that were folded, and heads tidy up."""

    def reference(
        self, transaction: Any, versions: Versions, streams: Streams
    ) -> Mapping[str, Change] | None:
        """What the general way makes of a transaction over these versions; nothing is changed by it."""


class Machine:
    """One workspace's."""

    def __init__(self, sizes: Sizes = SIZES) -> None:
        self.sizes = sizes
        self.layout: Layout | None = None
        """By which rows may be staged as numbers; None where there is no program."""
        self._program: MachineProgram | None = None
        self._of_some: tuple[Strata, Strata, MachineProgram] | None = None
        """All heads, those that batches led one by one, and the program for these."""
        self._bound: State | None = None
        self._wait, self._waited = FEWEST, 0
        self._done = 0  # commits since the program was bound for the last time, other than by folding
        self._folded = -1  # the version that was folded last
        self._seconds = 0.0  # of those not folded
        self._clocks: Clocks | None = None
        """Of the streams, where there are some."""
        self._kept = False  # whether the changes of all commits since are kept
        self.checks = debug.enabled
        """Whether each transaction is done the general way, too, and compared."""

    def __reduce__(self) -> tuple[type[Machine], tuple[Sizes]]:
        """In an image there is none of its programs."""
        return Machine, (self.sizes,)

    def is_ahead(self, state: object) -> bool:
        """Whether something was committed that a state, the one that is published, does not have."""
        program = self._program
        return program is not None and self._bound is state and program.header[COMMITS] > 0

    def describe(self, head: str, state: State, host: Host) -> str:
        """For ``explain``: whether what changes a head goes by the machine, and why not."""
        found = refusals(state.versions, state.strata.heads)
        why, heads, seen = found.get(head), state.strata.heads, [head]
        for name in seen:  # which grows
            seen += [read for read in sorted(heads[name].reads) if read not in seen] if name in heads else []
            if why is None and name in found:
                why = f"{name!r}, which it reads: {found[name]}"
        if not state.takes_single_changes:
            why = "there are rows of now(), finals, joins as of now, heads that wait for views, or view_bytes"
        if host.waits_for_the_disk:
            why = "each commit waits for the disk"
        if why is not None:
            return f"single changes go the general way: {why}"
        asked = computed_in_python(heads[head]) if head in heads else []
        by_python = f"; once for each value Python computes {', '.join(asked)}" if asked else ""
        return f"single changes go by the machine{by_python}"

    @property
    def memory_bytes(self) -> int:
        """Of layers and buffers."""
        programs = [self._program, None if self._of_some is None else self._of_some[2]]
        return sum(program.memory_bytes for program in programs if program is not None)

    # -- who is in --------------------------------------------------------------------------------

    def noticed(self, host: Host, n_rows: int) -> None:
        """A transaction of so many rows went the general way; under the lock."""
        if self.layout is not None and self._program is not None and self._program.phases_stay:
            return
        self._waited = self._waited + 1 if n_rows <= STAGED // 16 else 0
        if self._waited >= self._wait and host.takes_single_changes:
            if FEWEST == self._wait < MOST and not all_are_compiled(_is_own):
                self._wait = MOST  # compiling them takes as long as thousands of commits
                return
            self._waited = 0
            self.make(host)

    @interruptible()
    def make(self, host: Host) -> None:
        """Be at work from the next transaction on; under the lock.  Compiles what is not compiled yet."""
        state = host.as_bound
        if not state.takes_single_changes or self._is_of(state):
            return
        self._make(state)
        if self.layout is not None:
            self._done = 0
            self._bind(host)

    def _is_of(self, state: State) -> bool:
        """Whether the program is one of a state's heads and relations."""
        return self._program is not None and self._program.is_of(state.versions, state.strata)

    def _make(self, state: State) -> None:
        """Have a program for a state, which is not bound; or none, where nothing goes by it."""
        self._bound, self._program = None, self._made(state, state.strata)
        layout = self._program.layout
        self.layout = layout if layout.staged else None

    def _made(self, state: State, strata: Strata) -> MachineProgram:
        program = MachineProgram(state.versions, strata, state.shown, self.sizes)
        load_kernels(_is_own)
        end(program.address)  # which ends nothing, but is compiled with the others
        return program

    @interruptible()
    def program_for(
        self, state: State, strata: Strata, changing: Collection[str], count: int
    ) -> MachineProgram | None:
        """A program for these heads alone and so many transactions of what they read; None where it does not
        take all of that, or making it is not worth that.

        For whoever changes the state, under the lock, with nothing ahead of it: to be bound and folded there.
        """
        if not state.takes_single_changes or count < FEWEST:
            return None
        program = self._known(state, strata)
        if program is None:
            if count < MOST and not all_are_compiled(_is_own):
                return None
            if strata is state.strata:
                self._make(state)
                program = self._program
            else:
                program = self._made(state, strata)
                self._of_some = state.strata, strata, program
        self.leave()
        assert program is not None
        return program if program.layout.staged.keys() >= set(changing) else None

    def _known(self, state: State, strata: Strata) -> MachineProgram | None:
        """The program for a state's heads, or some of them, if it was made."""
        if strata is state.strata:
            return self._program if self._is_of(state) else None
        if self._of_some is None:
            return None
        of, some, program = self._of_some
        if of is not state.strata or some.heads.keys() != strata.heads.keys():
            return None
        return program if program.is_of(state.versions, some) else None

    @interruptible()
    def _bind(self, host: Host) -> bool:
        """Let the program go on from the state; whether it can."""
        state, program = host.as_bound, self._program
        self._bound = None
        if program is None or not state.takes_single_changes:
            return False
        if not self._is_of(state):
            self.layout, self._program = None, None
            return False
        if not program.bind(state.versions, state.spans):
            return False
        program.layout.lease.take(host.collector)
        program.header[STAGED_AT] = address(np.asarray(program.stage))  # a batch has its own
        program.header[IS_JOURNALED] = host.has_journal
        self._clocks = Clocks(program.layout, state.streams) if state.streams else None
        self._kept = host.feed.is_kept
        self._bound = state
        return True

    def leave(self) -> None:
        """The state is another one, which the program is not bound to: let go of the one before."""
        self._bound = None
        if self._program is not None:
            self._program.release()

    def _is_bound_anew(self, host: Host) -> bool:
        """Whether the program is bound now; where others changed the state, after some transactions."""
        if self._bound is host.as_bound:  # and changes are kept from now on
            self.fold(host)
            return self._bind(host)
        if self._folded == host.as_bound.number:  # for a reader
            return self._bind(host)
        if self._waited == 0:
            self._wait = 1 if self._done >= ENOUGH else min(MOST, 2 * self._wait)
        self._waited += 1
        if self._waited < self._wait:
            return False
        self._waited = self._done = 0
        return self._bind(host)

    # -- commits ----------------------------------------------------------------------------------

    def commit(self, host: Host, transaction: Committed, rows: Sequence[int], layout: Layout) -> bool:
        """Commit what is staged as numbers; False: nothing was done, it has to go the general way.

        ``rows``: by row the relation's number, 1 or -1, and the values.
        """
        is_told = False
        try:
            try:
                return self._commit(host, transaction, rows, layout)
            finally:
                if transaction.piece is not None and transaction.piece.is_begun:
                    host.tell_single()
                is_told = True
        finally:
            if not is_told:  # again, for an interruption came amid the first time
                host.tell_single()

    def _commit(self, host: Host, transaction: Committed, rows: Sequence[int], layout: Layout) -> bool:
        n_items = len(rows)
        with host.lock:
            if layout is not self.layout or n_items > STAGED or not host.takes_single_changes:
                return False
            is_as_before = self._bound is host.as_bound and self._kept is host.feed.is_kept
            if not (is_as_before or self._is_bound_anew(host)):
                return False
            started = time.perf_counter()
            program = self._program
            assert program is not None
            _items(n_items).pack_into(program.stage, 0, *rows)
            program.header[N_STAGED] = n_items
            status = self._run(host, transaction, program, rows)
            if status in (FULL, ROOM):
                if program.header[LOG_END] * 2 > self.sizes.log:
                    program.new_log()
                    status = self._run(host, transaction, program, rows)
                if status in (FULL, ROOM):
                    self.fold(host)
                    status = self._run(host, transaction, program, rows) if self._bind(host) else LEFT
                    while status == FULL and program.wants_room and self._bind(host):
                        status = self._run(host, transaction, program, rows)
            if status not in (DONE, TO_FOLD):
                transaction.piece = None
                return False
            self._done += 1
            seconds = time.perf_counter() - started
            self._seconds += seconds
            assert transaction.piece is not None
            transaction.piece.seconds = seconds
            if status == TO_FOLD:
                self.fold(host)
                self._bind(host)
            if program.header[COMMITS] % LOOK_EVERY == 0:  # also where it was bound anew just now
                host.look_at_journal()
            return True

    @wraps_around
    def _run(self, host: Host, transaction: Committed, program: MachineProgram, rows: Sequence[int]) -> int:
        """A status; published or not is said by the log, where the transaction looks."""
        clocks = self._clocks
        if clocks is not None and not clocks.passes(rows):
            return LEFT
        expected = self._expected(host, transaction, program) if self.checks else None
        header = program.header
        attempt = header[ATTEMPT] = header[ATTEMPT] + 1
        piece = transaction.piece = Piece(program.log, header[LOG_END], attempt, program.layout)
        if clocks is not None:
            clocks.begin(piece)
        lease = program.layout.lease
        if lease.is_needed:
            lease.keep(transaction.lease)
        is_heard = host.is_listened_to
        is_begun = piece.is_begun = is_heard or bool(header[IS_JOURNALED])
        if is_begun:
            host.begin_single(transaction, piece, host.as_bound.number + header[COMMITS] + 1, is_heard)
        status = program.run(commit)
        if status == PREPARED:
            moved = {} if clocks is None else clocks.moved
            host.append_single(program.entry(moved))
            status = end(program.address)
        if piece.lease is not None:
            host.collector.hold(piece)
            piece.lease = None
        if is_begun:
            host.settle_single()
            piece.is_begun = is_heard
        if self.checks and status in (DONE, TO_FOLD):
            compare(piece.changed(), expected)
        return status

    def end(self) -> None:
        """Publish what is prepared, which the journal has; any number of times."""
        if self._program is not None:
            end(self._program.address)

    @interruptible()
    def _expected(
        self, host: Host, transaction: Committed, program: MachineProgram
    ) -> Mapping[str, Change] | None:
        versions, streams = host.as_bound.versions, self._streams_of(host.as_bound)
        return expected_changes(program, versions, lambda after: host.reference(transaction, after, streams))

    def _streams_of(self, state: State) -> Streams:
        """The streams of the state that the program is bound to, with all that was committed."""
        return state.streams if self._clocks is None else self._clocks.states()

    @interruptible()
    def fold(self, host: Host) -> None:
        """Let the state have all that was committed."""
        with host.lock:
            host.settle_single()
            program = self._program
            if program is None or not self.is_ahead(host.as_bound):
                return
            change, commits = program.folded(host.as_bound.versions), program.header[COMMITS]
            program.settle()
            seconds, self._seconds, taken = self._seconds, 0.0, program.header[TAKEN]
            spans = program.spans(host.as_bound.spans)
            host.fold(change.new, spans, self._streams_of(host.as_bound), commits, seconds, taken, self._kept)
            self._folded = host.as_bound.number
            self.leave()
            host.account(program.taken(), change, program.heads.values())


@cache
def _items(n: int) -> struct.Struct:
    """So many int64."""
    return struct.Struct(f"{n}q")


def _is_own(module: str) -> bool:
    """Whether a module's kernels are the machine's."""
    return module.startswith("maintenance.machine.")
