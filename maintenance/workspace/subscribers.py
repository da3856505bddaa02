"""Subscribers: callbacks by head, and the commits that they have not been notified of yet.

Invariants

1. Callbacks are notified in the order of the commits, of one commit at a time.
2. A callback is called once for a commit: the place in the list of calls moves on in the step that calls it.
   A notification that an interruption prevented waits: it comes first when the next ones are sent.
3. No lock of the workspace is held while callbacks run: others may commit meanwhile, and so may a callback.
   What it commits is notified when the callbacks of before are through.
4. A notification waits until its commit is as durable as the workspace promises: on disk.
5. A callback that raises keeps no other from hearing; an interruption of one is passed on behind the others.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import pyarrow as pa

Subscriber = Callable[[pa.Table], object]


def late_rows_of(stream: str) -> str:
    """What stands for a stream's late rows among the names of heads."""
    return f"late rows of {stream}"


class Committed(Protocol):
    """A transaction of which subscribers are notified."""

    @property
    def changes(self) -> Mapping[str, pa.Table]: ...

    @property
    def subscriber_errors(self) -> list[tuple[str, Exception]]: ...


class LateRows:
    """The late rows of a commit, by stream, as subscribers are told of them."""

    def __init__(self, rows: Mapping[str, pa.Table], errors: list[tuple[str, Exception]]) -> None:
        self.changes = {late_rows_of(name): table for name, table in rows.items()}
        self.subscriber_errors = errors


class Announcement:
    """The changes of one commit, and who of those that subscribed before it has heard of them."""

    def __init__(self, transaction: Committed, calls: list[tuple[str, Subscriber]], number: int = 0) -> None:
        """``number``: of the commit in the journal; 0 where there is none."""
        self.number = number
        self._transaction = transaction
        self._calls = calls
        self._n_called = 0

    @property
    def is_for_somebody(self) -> bool:
        return bool(self._calls)

    def tell(self, is_subscribed: Callable[[str, Subscriber], bool]) -> list[str]:
        """Call all that were not called yet; returns what to say of those that raised."""
        problems = []
        interruption: BaseException | None = None
        while self._n_called < len(self._calls):
            name, callback = self._calls[self._n_called]
            if not is_subscribed(name, callback):
                self._n_called += 1
                continue
            table = self._transaction.changes[name]
            try:
                # In one line, for an interruption finds both done or nothing.
                self._n_called += 1; callback(table)  # noqa: E702  # fmt: skip
            except Exception as error:
                label = getattr(callback, "__qualname__", repr(callback))
                self._transaction.subscriber_errors.append((label, error))
                problems.append(
                    f"the commit stands, but subscriber {label} of {name!r} raised"
                    f" {type(error).__name__}: {error}"
                )
            except BaseException as error:
                interruption = error
        if interruption is not None:
            raise interruption
        return problems


class Subscribers:
    """The callbacks by head, and the announcements that wait."""

    def __init__(self) -> None:
        self.callbacks: dict[str, tuple[Subscriber, ...]] = {}
        """By head: of those that anybody wants to hear of."""
        self.waiting: deque[Announcement] = deque()
        """What is to be told."""
        self._telling = threading.Lock()
        self._teller: int | None = None

    def add(self, head: str, callback: Subscriber) -> Callable[[], None]:
        """Returns a function that takes the callback out again."""
        self.callbacks[head] = (*self.callbacks.get(head, ()), callback)

        def remove() -> None:
            left = list(self.callbacks.get(head, ()))
            if callback in left:
                left.remove(callback)
                if left:
                    self.callbacks[head] = tuple(left)
                else:
                    self.callbacks.pop(head)

        return remove

    def drop(self, heads: Iterable[str]) -> None:
        """Forget the callbacks of heads that are gone."""
        for head in heads:
            self.callbacks.pop(head, None)

    def has(self, head: str) -> bool:
        """Whether anybody wants to hear of a head."""
        return bool(self.callbacks.get(head))

    def announcement(self, transaction: Committed, changed: Iterable[str], number: int) -> Announcement:
        """What is to be told of a commit, of this number, that changed these relations and heads."""
        calls = [(name, callback) for name in changed for callback in self.callbacks.get(name, ())]
        return Announcement(transaction, calls, number)

    def announce(self, announcement: Announcement) -> None:
        """Let it be told when it is its turn; once, however often it is announced."""
        if announcement.is_for_somebody:
            self.waiting.append(announcement)

    def tell(self, durable: Callable[[], float]) -> list[str]:
        """Tell all that waits; returns what to say of callbacks that raised.

        ``durable``: the number of the last commit that is on disk; those after it go on waiting.

        Where another thread is telling, waits until it is through.  Within a callback it does nothing.
        """
        if not self.waiting:
            return []
        if self._teller == threading.get_ident() and self._telling.locked():
            return []
        problems: list[str] = []
        with self._telling:
            self._teller = threading.get_ident()
            while self.waiting and self.waiting[0].number <= durable():
                problems += self.waiting[0].tell(self._is_subscribed)
                self.waiting.popleft()
            self._teller = None
        return problems

    def _is_subscribed(self, head: str, callback: Subscriber) -> bool:
        return callback in self.callbacks.get(head, ())
