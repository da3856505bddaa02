"""`StreamBuffer`: the changes that a transaction has staged for a stream, each row for itself.

Which of them are late is told when the transaction commits, by the waterline of then; so they do not add up
before.

Cost: memory follows what is staged.
"""

from __future__ import annotations

import numpy as np

from lftj.errors import StreamError
from lftj.storage.signed_rows import Columns
from lftj.storage.wide_columns import WideColumns
from lftj.values.schema import Schema
from lftj.values.streams import Stream, earlier
from maintenance.changes.signed import Signed
from maintenance.changes.write_buffer import FEW_BATCHES, WriteBuffer
from maintenance.event_time.stream_state import NEVER, StreamState


class StreamBuffer(WriteBuffer):
    """Staged changes of a stream; else as :class:`WriteBuffer`."""

    def __init__(self, schema: Schema, read: frozenset[int] = frozenset()) -> None:
        super().__init__(schema, read)
        self._many: list[tuple[np.ndarray, np.ndarray]] = []
        """Each is many batches in one."""

    def stage(self, columns: Columns, weights: np.ndarray) -> None:
        self.staged_rows += len(weights)
        self._batches.append((np.array(columns), np.array(weights)))
        if len(self._batches) > FEW_BATCHES:
            self._many.append(super()._waiting())
            self._batches = []

    def _waiting(self) -> tuple[np.ndarray, np.ndarray]:
        if self._many:
            self._batches = [*self._many, *self._batches]
            self._many, self._batches = [], [super()._waiting()]
        return super()._waiting()

    def judged(
        self, name: str, state: StreamState, raised: int | None
    ) -> tuple[WriteBuffer, Signed, int | None]:
        """What is taken, what is late, and the latest time of all; nothing of the buffer changes.

        ``raised``: a time that the transaction says the clock is at.  Raises StreamError.
        """
        rows, weights = self._waiting()
        times = times_of(name, self.schema, rows)
        before, raised = (NEVER if time is None else time for time in (state.waterline, raised))
        is_taken = on_time(name, self.schema, state.stream, times, np.int64(before), raised)
        taken = WriteBuffer(self.schema, self.read)
        taken.stage(rows[:, is_taken], weights[is_taken])
        late = Signed(rows[:, ~is_taken], weights[~is_taken])
        return taken, late, int(times.max()) if len(times) else None


def times_of(name: str, schema: Schema, rows: Columns) -> np.ndarray:
    """The times of a stream's rows; ``rows``: of a wide relation their codes."""
    columns = WideColumns(name, schema, rows[0]) if schema.wide else rows
    return np.asarray(columns[schema.time_number])


def on_time(
    name: str,
    schema: Schema,
    stream: Stream,
    times: np.ndarray,
    before: np.ndarray | np.int64,
    raised: int,
    numbers: np.ndarray | None = None,
) -> np.ndarray:
    """Which rows are not late: bool (n,).

    ``before``: the waterline of before the transaction, or before that of each row; ``raised``: where the
    transaction says that the clock is.  Raises StreamError for a row that is too far ahead; its ``time`` is
    that of ``numbers``.
    """
    if stream.ahead is not None:
        latest = np.broadcast_to(np.maximum(before, raised), times.shape)
        allowed = stream.lateness + stream.ahead
        wrong = (latest > NEVER) & (earlier(times, allowed) > latest)
        if wrong.any():
            row, type_ = int(np.argmax(wrong)), schema.columns[schema.time_number].type
            error = StreamError(
                f"changes of stream {name!r}: a row with {stream.time}={type_.spelled(int(times[row]))} is"
                f" further than ahead= allows beyond {type_.spelled(int(latest[row]) + stream.lateness)}, the"
                " latest time before: correct it, or call advance() in the transaction where it has come"
            )
            error.time = 0 if numbers is None else int(numbers[row])
            raise error
    return times >= before
