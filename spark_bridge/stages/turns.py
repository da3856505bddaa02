"""Who makes the next version of a state: within a process one at a time, on each state by itself.

Between processes the manifest decides (:mod:`spark_bridge.state.store`); that the threads of one take
turns saves them batches that could not be committed.

Invariant: while a turn is held or waited for, all who ask for that of the path get the same lock.
"""

from __future__ import annotations

import os
import threading
from weakref import WeakValueDictionary

_turns: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()
_asking = threading.Lock()


def turn_on(path: str) -> threading.RLock:
    """The lock of the state at a path, a URI or an absolute one; who has it may take it again.

    >>> turn_on("/a/b") is turn_on("/a/c"), turn_on("s3://a") is turn_on("s3://a")
    (False, True)
    """
    name = os.path.realpath(path) if os.path.isabs(path) else path
    with _asking:
        turn = _turns.get(name)
        if turn is None:
            turn = _turns[name] = threading.RLock()
        return turn
