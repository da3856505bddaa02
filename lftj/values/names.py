"""Names that rules can use for relations and variables.

A rule writes names as ``[A-Za-z_][A-Za-z0-9_]*``; ``_``, ``true``, ``false`` and
``null`` mean something else.  A relation of another name could be loaded and never be
asked for; a column is loaded under a name that a variable can have.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

from lftj.errors import UnusableNameError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = ("_", "true", "false", "null")
"""What the rule language reads as something else than a name."""

RANKED = ("kth_largest", "kth_smallest")
"""Aggregates that take a rank behind the value."""

QUANTILES = ("quantile", "upper_quantile")
"""Aggregates that take a share behind the value, and then perhaps a weight."""

REACHED = ("arg_min", "arg_max")
"""Aggregates of one value where another is least or greatest."""

ORDERED = ("concat", "string_agg", "list")
"""Aggregates that put values one after the other, in an order."""

VARIANCES = ("variance", "var_pop")
"""Aggregates that are found from the exact sums of numbers and of their squares."""

COMPOSED = ("stddev", "stddev_pop", "bool_and", "bool_or", "any_value", "string_agg", "median", "mode")
"""Aggregates that are short for others (:mod:`lftj.language.composed_aggregates`)."""

AGGREGATES = (
    *("count", "sum", "avg", "min", "max"),
    *(*RANKED, *QUANTILES, "concat", "list", *REACHED, *VARIANCES, *COMPOSED),
)
"""The aggregates of the rule language itself."""

DISTINCT_COUNT = "count distinct"
"""What ``count(distinct v)`` is called where assignments are counted, and no rows of a set of values."""


FRAMED = ("count", "sum", "avg", "min", "max", "first", "last", "nth")
"""Windows that read the rows of a frame."""

SHARES = ("percent_rank", "cume_dist")
"""Windows that say which share of a partition comes before a row, or up to it."""

NUMBERING = ("row_number", "rank", "dense_rank", "top", "ntile", *SHARES)
"""Windows that number rows; ``top`` by row, up to a number, ``ntile`` in so many parts."""

FRAMES = ("rows", "range", "groups")
"""What a frame counts."""

COPIES = "copies"
"""What names the weight of a bag's head, which is none of its columns."""

WINDOWS = (*NUMBERING, "lag", "lead", *FRAMED)
"""What gives each row a value among the rows of its partition."""


def is_usable(name: object) -> bool:
    """Whether a rule can name a relation or a variable so.

    >>> [is_usable(name) for name in ("edge", "_2", "my edge", "3", "true", "_")]
    [True, True, False, False, False, False]
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and name not in _TAKEN


def nearest_usable(name: str, others: Collection[str] = ()) -> str:
    """The usable name that is most like ``name`` and none of ``others``.

    >>> [nearest_usable(name) for name in ("my edge", "3", "true", "Größe", "count(*)", "é", "日本", "")]
    ['my_edge', '_3', 'true_', 'Grosse', 'count', 'e', 'x', 'x']
    >>> nearest_usable("a b", ["a_b", "a_b_2"])
    'a_b_3'
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("ẞ", "SS"))
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    near = re.sub(r"[^A-Za-z0-9_]+", "_", plain)
    if near != plain:
        near = near.strip("_")
    if near in ("", "_"):
        near = "x"
    if near in _TAKEN:
        near += "_"
    if near[0].isdigit():
        near = f"_{near}"
    found, number = near, 1
    while found in others:
        number += 1
        found = f"{near}_{number}"
    return found


def usable_names(names: Iterable[str], taken: Collection[str] = ()) -> list[str]:
    """For each the nearest usable name that is none before it, and none taken.

    >>> usable_names(["a b", "a_b", "n"], ["n"])
    ['a_b', 'a_b_2', 'n_2']
    """
    found: list[str] = []
    for name in names:
        found.append(nearest_usable(name, [*taken, *found]))
    return found


def check_relation_name(name: str) -> None:
    """Raise UnusableNameError unless rules can use the name for a relation."""
    if not is_usable(name):
        hint = f": call it {nearest_usable(name)!r}" if isinstance(name, str) else ""
        raise UnusableNameError(f"{name!r} cannot be the name of a relation in a rule{hint}")
