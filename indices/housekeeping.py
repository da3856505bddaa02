"""How many rows were moved so far for the sake of order alone: merges, copies, tidying up.

Such work is spread over many changes.  What one change does of it is counted here, where it is done, so that
tests and figures of a commit can say how much that was without measuring time.

Invariant: a thread counts its own work, and the count only grows.
"""

from __future__ import annotations

import threading


class Housekeeping(threading.local):
    """The count of the thread that asks.

    >>> before = housekeeping.rows
    >>> housekeeping.rows += 12
    >>> housekeeping.rows - before
    12
    """

    rows = 0
    """Rows, records or keys that were read to be written anew."""

    built = 0
    """Indices that were built of all tuples of a relation; their rows count as moved."""

    given_back = 0
    """Indices that were given up, since nobody asked for them."""


housekeeping = Housekeeping()
