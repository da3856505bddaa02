"""The gap around a key that a participant lacks: what it may cover in place of others.

Specification: docs/design/engine.md section 5.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import view
from lftj.search.layout import (
    CURSOR_RUN_FIELDS,
    I_CURSOR,
    I_INDEX,
    I_LEVEL,
    P_ACTIVE,
    P_KEY,
    P_LIST,
    P_POSITION,
    P_RUNS,
)
from lftj.search.regions.cursor import DESCRIPTION, holds, land, open_cursor
from lftj.storage.seek import lower_bound
from lftj.storage.version_memory import (
    X_HEADER,
    X_LEVEL_FIELDS,
    X_LEVELS,
    X_RUN_FIELDS,
    X_RUNS,
    XR_LENGTH,
    XR_ROWS,
)


@part
def gap_around(plan, state, indexes, participant, key):
    """The widest closed interval of keys around ``key`` none of which is present: its ends.

    The participant's cursor has looked for the key, and lacks it; where it stands afterwards says nothing.
    """
    cursor = plan[participant + I_CURSOR]
    position = state[cursor + P_POSITION]
    high = state[cursor + P_KEY] - 1 if land(plan, state, indexes, participant, key, np.int64(0)) else KEY_MAX
    before = key
    while True:
        open_cursor(plan, state, indexes, participant)
        first = state[cursor + P_POSITION]
        keys = view(state[cursor + P_LIST], position)
        while position > first and keys[position - 1] >= before:
            position -= 1
        found = position > first
        greatest = keys[position - 1] if found else np.int64(KEY_MIN)
        if not state[cursor + P_ACTIVE]:
            break
        index = view(indexes[plan[participant + I_INDEX]], DESCRIPTION)
        level = plan[participant + I_LEVEL]
        run, slot = X_HEADER + index[X_LEVELS] * X_LEVEL_FIELDS, cursor + P_RUNS
        for _ in range(index[X_RUNS]):
            start, stop = state[slot], state[slot + 1]
            if start < stop:
                length = index[run + XR_LENGTH]
                column = view(index[run + XR_ROWS] + 8 * level * length, length)
                place = lower_bound(column, start, stop, before)
                if place > start:
                    found = True
                    greatest = max(greatest, column[place - 1])
            run += X_RUN_FIELDS
            slot += CURSOR_RUN_FIELDS
        if not found or holds(plan, state, indexes, participant, greatest):
            break
        before = greatest
    return greatest + 1 if found else np.int64(KEY_MIN), high
