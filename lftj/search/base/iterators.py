"""Iterators of the base machine: the keys below a bound prefix, and seeks among them.

An iterator is one level of one trie under one prefix of variables (LFTJ section 3.1); its row in
the plan says where its keys, its children and its parent are (:mod:`lftj.search.base.layout`).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.search.base.layout import (
    I_BASE,
    I_CHILDREN,
    I_CURSOR,
    I_KEYS,
    I_LENGTH,
    I_PARENT,
    I_PATCH,
    I_RANKS,
    I_SPREAD,
    P_AT,
    P_LIST,
    P_PART,
)
from lftj.storage.patch import PA_CHILD, PA_KEYS, PA_STARTS, PATCH_FIELDS, table_row
from lftj.storage.seek import gallop, ranked


@part
def find(plan, iterator, keys, start, end, key):
    """Like :func:`gallop` on an iterator's keys; one look-up where its level has a rank table."""
    if plan[iterator + I_RANKS]:
        base, spread = plan[iterator + I_BASE], plan[iterator + I_SPREAD]
        return ranked(plan[iterator + I_RANKS], base, spread, start, end, key)
    return gallop(keys, start, end, key)


@part(forceinline=True)
def child_range(plan, state, iterator):
    """Half-open range of the keys of ``iterator`` below its parent's bound key, in the list at P_LIST."""
    parent = plan[iterator + I_PARENT]
    if parent < 0:
        return np.int64(0), plan[iterator + I_LENGTH]
    bound = state[plan[parent + I_CURSOR] + P_AT]
    if bound < 0:  # a negation whose branch is not there
        return np.int64(0), np.int64(0)
    if plan[parent + I_PATCH]:
        return patched_range(plan, state, iterator, parent, bound)
    children = view(plan[parent + I_CHILDREN], bound + 2)
    return children[bound], children[bound + 1]


@part
def patched_range(plan, state, iterator, parent, bound):
    """:func:`child_range` where the index has a patch: the keys may be such as the patch lists."""
    row, bound = table_row(
        view(plan[parent + I_PATCH], PATCH_FIELDS), state[plan[parent + I_CURSOR] + P_PART], bound
    )
    cursor = plan[iterator + I_CURSOR]
    if row >= 0:
        above = view(plan[parent + I_PATCH], PATCH_FIELDS)
        node = view(above[PA_CHILD], row + 1)[row]
        if node >= 0:
            own = view(plan[iterator + I_PATCH], PATCH_FIELDS)
            starts = view(own[PA_STARTS], node + 2)
            state[cursor + P_LIST] = own[PA_KEYS]
            state[cursor + P_PART] = 1
            return starts[node], starts[node + 1]
    state[cursor + P_LIST] = plan[iterator + I_KEYS]
    state[cursor + P_PART] = 0
    children = view(plan[parent + I_CHILDREN], bound + 2)
    return children[bound], children[bound + 1]
