"""The gap around a key that a participant lacks: what it may cover in place of others.

Specification: docs/design/engine.md section 5.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.machine.cursor import holds, open_cursor, seek
from lftj.search.records import RANGE, range_at
from lftj.storage.seek import lower_bound
from lftj.storage.version_memory import RUN, first_run, index_at, run_at, run_column


@part
def gap_around(cursor, key):
    """The widest closed interval of keys around ``key`` none of which is present: its ends.

    The cursor has looked for the key, and lacks it; where it stands afterwards says nothing.
    """
    position = cursor.position
    high = cursor.key - 1 if seek(cursor, key, np.int64(0)) else KEY_MAX
    before = key
    while True:
        open_cursor(cursor)
        first = cursor.position
        keys = view(cursor.keys, position)
        while position > first and keys[position - 1] >= before:
            position -= 1
        found = position > first
        greatest = keys[position - 1] if found else np.int64(KEY_MIN)
        if not cursor.active:
            break
        run = first_run(cursor.index)
        for number in range(index_at(cursor.index).runs):
            ahead = range_at(cursor.ranges + number * RANGE)
            start, stop = ahead.start, ahead.stop
            if start < stop:
                column = view(run_column(run_at(run + number * RUN), cursor.level_number), stop)
                place = lower_bound(column, start, stop, before)
                if place > start:
                    found = True
                    greatest = max(greatest, column[place - 1])
        if not found or holds(cursor, greatest):
            break
        before = greatest
    return greatest + 1 if found else np.int64(KEY_MIN), high
