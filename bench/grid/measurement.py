"""`measure`: one strategy or peer on all settings of a view, in a process of its own.

Invariants

1. Each setting begins with tables that are loaded anew.
2. A setting takes about ``seconds`` of processor time, whatever one commit costs: the first third of them
   at most is warm-up, and of commits that are longer one is timed.  The first two commits, which may
   have code to compile for insertions and for erasures, are warm-up and are not counted.
3. A digest is taken after every commit, out of the time; :func:`bench.grid.cell.compare` holds them
   against those of the others.
4. The process ends with its caller, and is ended when it takes too long.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection

import pyarrow as pa

from bench.datasets import DataMissing
from bench.grid.cell import Cell
from bench.grid.changes import Stream
from bench.grid.keepers import Counted, Keeper, keeper
from bench.grid.view import Setting, View
from bench.grid.views import named
from bench.peers import engine as peers
from bench.peers.differential_engine import Batches, Commit, Differential, Ended, Loaded
from bench.report.memory import peak_bytes

LOAD_LIMIT_SECONDS = 300.0
"""For loading and bringing the view up, with the compiling of kernels, beside a setting's own seconds."""

GRACE_SECONDS = 5.0
"""For a process to end by itself."""

UNCOUNTED = 2
"""Commits that come first and are not counted in a setting's seconds."""


def measure(
    view: View, engine: str, seconds: float, progress: Callable[[str], None] = lambda stage: None
) -> Iterator[Cell]:
    """A cell for each setting of the view, as soon as it is known; the results are not compared yet.

    Args:
        view: A view of :mod:`bench.grid.views`.
        engine: Of its ``kept_by``.
        seconds: Of processor time that one setting may take.
        progress: Called with what is going on.

    Raises:
        KeyboardInterrupt: The process that measured is gone.
    """
    left = list(view.settings)
    name = engine.partition(":")[0]
    if peers.version(name) is None:
        yield from (_without(view, engine, s, "not installed", f"install {peers.extra(name)}") for s in left)
        return
    if not view.has(name):
        yield from (_without(view, engine, setting, "no view", "") for setting in left)
        return
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_keep, args=(view.name, engine, seconds, sender), daemon=True)
    process.start()
    sender.close()
    try:
        while left:
            progress(left[0].title)
            if not receiver.poll(LOAD_LIMIT_SECONDS + 3 * seconds):
                yield from (_without(view, engine, setting, "time limit", "") for setting in left)
                return
            found: Cell | str = receiver.recv()
            if isinstance(found, str):
                status = "no data" if found.startswith("no data") else "failed"
                yield from (_without(view, engine, setting, status, found) for setting in left)
                return
            left.pop(0)
            yield found
    except EOFError:
        process.join()
        detail = f"the process ended with {process.exitcode}"
        yield from (_without(view, engine, setting, "failed", detail) for setting in left)
    finally:
        process.terminate()  # it ends what it started, unless it is deep in a kernel
        process.join(GRACE_SECONDS)
        process.kill()
        process.join()
        receiver.close()


def _without(view: View, engine: str, setting: Setting, status: str, detail: str) -> Cell:
    """A cell without figures."""
    cell = _cell(view, engine, setting)
    cell.status, cell.detail = status, detail  # type: ignore[assignment]
    return cell


def _cell(view: View, engine: str, setting: Setting) -> Cell:
    return Cell(view.name, engine, setting.title, setting.kind, setting.size)


def _keep(view_name: str, engine: str, seconds: float, channel: Connection) -> None:
    """What the process does: send each cell, or say what went wrong.  Ctrl-C is for the caller alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    view = named(view_name)
    of = _of_differential if engine == "differential" else _of_keeper
    try:
        for cell in of(view, engine, seconds):
            channel.send(cell)
    except DataMissing as missing:
        channel.send(f"no data: {missing}")
    except Exception as error:
        channel.send(f"{type(error).__name__}: {error}")


def _of_keeper(view: View, engine: str, seconds: float) -> Iterator[Cell]:
    for setting in view.settings:
        yield keep(view, engine, setting, view.stream(setting), seconds)


def keep(view: View, engine: str, setting: Setting, stream: Stream, seconds: float) -> Cell:
    """One setting by lftj, DuckDB or Pathway, in this process."""
    side = keeper(view, engine)
    with side.ending:
        return _kept(side, _cell(view, engine, setting), setting, stream, seconds)


def _kept(side: Keeper, cell: Cell, setting: Setting, stream: Stream, seconds: float) -> Cell:
    """The cell, filled in."""
    gc.collect()
    busy = time.process_time()
    side.load(stream)
    cell.load_processor = time.process_time() - busy
    cell.digests[0] = side.digest()
    gc.collect()  # or one of the first commits looks through all that loading made
    counted: list[Counted] = []
    together = setting.in_flight if side.gathers else 1
    for number, done in enumerate(range(0, len(stream.transactions), together)):
        transactions = stream.transactions[done : done + together]
        if number <= UNCOUNTED:
            began = time.process_time()
        spent = time.process_time() - began
        warm = number >= UNCOUNTED and (done >= setting.warm_up or spent > seconds / 3)
        if cell.processor and spent > seconds:
            break
        prepared = side.prepare(transactions)
        started, busy = time.perf_counter(), time.process_time()
        side.commit(prepared)
        taken = time.process_time() - busy, time.perf_counter() - started
        cell.digests[done + len(transactions)] = side.digest()
        if warm:
            cell.processor.append(taken[0])
            cell.seconds.append(taken[1])
            cell.changes.append(sum(len(rows) for part in transactions for rows in part.values()))
            counted.append(side.counted())
    cell.operations = _total(found.operations for found in counted)
    cell.head_changes = _total(found.head_changes for found in counted)
    cell.instances = _total(found.instances for found in counted)
    cell.peak_bytes = peak_bytes()
    cell.status = "ok"
    return cell


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _of_differential(view: View, engine: str, seconds: float) -> Iterator[Cell]:
    """The same for the peer, a process of its own for each setting."""
    for setting in view.settings:
        stream = view.stream(setting)
        ((relation, edges),) = stream.tables.items()
        transactions = [transaction[relation] for transaction in stream.transactions]
        peer = Differential(threads=1)
        peer.load({relation: pa.table({"src": edges[:, 0], "dst": edges[:, 1]})}, {})
        batches = Batches(transactions, setting.in_flight, seconds)
        cell = _cell(view, engine, setting)
        commits: list[tuple[Commit, int]] = []
        done = 0
        for event in peer.keep(view.differential, batches):
            if isinstance(event, Loaded):
                cell.load_processor = event.processor
                cell.digests[0] = event.weight, event.checksum
            elif isinstance(event, Ended):
                cell.peak_bytes = event.peak_bytes
            else:
                part = transactions[done : done + setting.in_flight]
                done += len(part)
                cell.digests[done] = event.weight, event.checksum
                commits.append((event, sum(map(len, part))))
        warm_up = min(-(-setting.warm_up // setting.in_flight), len(commits) - 1)
        for commit, n_changes in commits[warm_up:]:
            cell.processor.append(commit.processor)
            cell.seconds.append(commit.seconds)
            cell.changes.append(n_changes)
        cell.head_changes = sum(commit.head_changes for commit, _ in commits[warm_up:])
        cell.status = "ok"
        yield cell
