"""Iterators of the base machine: the keys below a bound prefix, and seeks among them.

An iterator is one level of one trie under one prefix of variables (LFTJ section 3.1); its row in
the plan says where its keys, its children and its parent are (:mod:`lftj.search.base.layout`).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view, view32
from lftj.search.base.layout import (
    I_BASE,
    I_CHILDREN,
    I_CURSOR,
    I_LENGTH,
    I_PARENT,
    I_RANKS,
    I_SPREAD,
    P_BOUND,
)
from lftj.storage.seek import gallop


@part(_nrt=False)
def find(plan, iterator, keys, start, end, key):
    """Like :func:`gallop` on an iterator's keys; one look-up where its level has a rank table."""
    if plan[iterator + I_RANKS]:
        base = plan[iterator + I_BASE]
        if key <= base:
            return start
        spread = plan[iterator + I_SPREAD]
        offset = np.uint64(key) - np.uint64(base)  # key - base may exceed int64
        if offset > np.uint64(spread):
            return end
        return max(start, min(end, np.int64(view32(plan[iterator + I_RANKS], spread + 1)[offset])))
    return gallop(keys, start, end, key)


@part(_nrt=False, forceinline=True)
def child_range(plan, state, iterator):
    """Half-open range of the keys of ``iterator`` below its parent's bound key."""
    parent = plan[iterator + I_PARENT]
    if parent < 0:
        return np.int64(0), plan[iterator + I_LENGTH]
    bound = state[plan[parent + I_CURSOR] + P_BOUND]
    if bound < 0:  # a negation whose branch is not there
        return np.int64(0), np.int64(0)
    children = view(plan[parent + I_CHILDREN], plan[parent + I_LENGTH] + 1)
    return children[bound], children[bound + 1]
