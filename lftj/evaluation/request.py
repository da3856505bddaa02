"""What is asked of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lftj.evaluation.plans import Plans
from lftj.language.body import MAX_ROUNDS, CheckedProgram
from lftj.process.progress import Advance
from lftj.storage.catalog import Catalog
from lftj.values.collector import Lease
from lftj.values.literals import Value


@dataclass(frozen=True)
class Request:
    """A program over tables, and how it is to be evaluated."""

    program: CheckedProgram
    tables: Catalog
    target: str  # the head that is asked for
    values: Mapping[str, Value] = field(default_factory=dict)  # of the program's parameters
    order: tuple[str, ...] | None = None  # the key order of the target's bodies
    threads: int = 1
    batch_rows: int = 1 << 16
    max_rounds: int = MAX_ROUNDS
    advance: Advance | None = None
    plans: Plans = field(default_factory=Plans)  # kept by the database for the next evaluation of the program
    grouped: tuple[str, ...] | None = None  # the variables that can't be NaN, if not the keys of heads
    # What to evaluate where a program with views raises RangeError, over the tables that there are by then.
    instead: Callable[[Catalog, CheckedProgram], CheckedProgram] | None = None
    lease: Lease | None = None  # for codes of values that are computed
