"""Which rows of a batch are those for which a commit is refused: found by halves, in commits that are tried.

    [ a b c d e f g h ]   refused
    [ a b c d ]           taken
    a b c d [ e f ]       refused       a b c d [ e ]   taken       a b c d e [ f ]   refused: f is left out
    a b c d e [ g h ]     taken

Invariant: a commit that is tried changes nothing; what is taken is accepted together, without what is left.

Cost: of m rows among n some 2 m log2(n / m) tries, each at most that of the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lftj.errors import (
    DataError,
    EvaluationError,
    LftjError,
    SourceError,
    UnsupportedTypeError,
    UnusableNameError,
)

Unit = tuple[str, int]
"""A relation, and the number of what its rows came with."""

Numbers = Mapping[str, np.ndarray]
"""By relation int64 (rows,): of each row the number of what it came with."""

Attempt = Callable[[Mapping[str, pa.Table]], LftjError | None]
"""Why a commit of these changes is refused, or None."""


def is_of_rows(error: LftjError) -> bool:
    """Whether an error may be due to some rows, so that others go in without them."""
    others = SourceError, UnsupportedTypeError, UnusableNameError
    return isinstance(error, DataError | EvaluationError) and not isinstance(error, others)


def refused_units(
    changes: Mapping[str, pa.Table], numbers: Numbers, attempt: Attempt
) -> Iterator[tuple[Unit, LftjError]]:
    """What is to be left out, in order, and why."""
    units = sorted({(int(number), place) for place, name in enumerate(changes) for number in numbers[name]})
    names = list(changes)
    every = [(names[place], number) for number, place in units]
    taken: list[Unit] = []

    def found(among: Sequence[Unit]) -> Iterator[tuple[Unit, LftjError]]:
        error = attempt(of_units(changes, numbers, [*taken, *among]))
        if error is None:
            taken.extend(among)
        elif not is_of_rows(error):
            raise error
        elif len(among) == 1:
            yield among[0], error
        else:
            half = len(among) // 2
            yield from found(among[:half])
            yield from found(among[half:])

    return found(every)


def of_units(changes: Mapping[str, pa.Table], numbers: Numbers, units: Sequence[Unit]) -> dict[str, pa.Table]:
    """The rows of some units, in their order in the batch."""
    wanted: dict[str, list[int]] = {}
    for name, number in units:
        wanted.setdefault(name, []).append(number)
    chosen = {name: np.isin(numbers[name], its) for name, its in wanted.items()}
    return {name: rows.filter(pa.array(chosen[name])) for name, rows in changes.items() if name in chosen}
