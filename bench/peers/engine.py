"""`Engine`: what the harness asks of lftj and of every peer, in one interface.

An engine is used in one process for one workload: opened, loaded, asked.
Modules of peers are imported when their engine is opened, so that one that is
not installed costs no more than its own rows.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from bench.peers.cargo_program import CargoProgram

Ends = tuple[str, str]


class Engine(ABC):
    """A database for the length of one measurement.

    Attributes:
        threads: How many threads it may use, set before anything is loaded.
        ending: What ends with it.
        program: What cargo has to build, where it is such a program.
    """

    module: str
    """Import name of what has to be installed."""
    distribution: str
    """Its name on the package index."""
    program: ClassVar[CargoProgram | None] = None

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.ending = ExitStack()

    @abstractmethod
    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        """Take tables in, by relation name, from Parquet files or Arrow tables."""

    @abstractmethod
    def count(self, query: str) -> int:
        """The number of results."""

    def rows(self, query: str) -> int:
        """Produce all results as record batches and return how many rows they had."""
        raise NotImplementedError(f"{type(self).__name__} lists no results")

    def index(self, relation: str) -> int:
        """Build the first index of a relation and return its number of rows."""
        raise NotImplementedError(f"{type(self).__name__} builds no index")

    def checksum(self, query: str) -> int | None:
        """The sum of the hashes of all results (:mod:`bench.digest`), after ``count``; None: unknown."""
        return None

    def close(self) -> None:
        """End what it started."""
        self.ending.close()

    def processor_seconds(self) -> float:
        """Processor time so far of all that the engine runs in, this process and those that it started."""
        return time.process_time()

    def peak_bytes(self) -> int | None:
        """Peak memory of the process that holds the tables; None: of this one."""
        return None

    @classmethod
    def version(cls) -> str | None:
        """The installed version, or None when it is not installed or built."""
        if cls.program is not None:
            return cls.program.version()
        if importlib.util.find_spec(cls.module) is None:
            return None
        try:
            return importlib.metadata.version(cls.distribution)
        except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
            return str(getattr(importlib.import_module(cls.module), "__version__", "unknown"))


_ENGINES = {
    "lftj": ("bench.peers.lftj_engine", "Lftj"),
    "duckdb": ("bench.peers.duckdb_engine", "DuckDB"),
    "ladybug": ("bench.peers.ladybug_engine", "Ladybug"),
    "graphblas": ("bench.peers.graphblas_engine", "GraphBLAS"),
    "pathway": ("bench.peers.pathway_engine", "Pathway"),
    "spark": ("bench.peers.spark_engine", "Spark"),
    "differential": ("bench.peers.differential_engine", "Differential"),
    "datafrog": ("bench.peers.datafrog_engine", "Datafrog"),
}

NAMES = tuple(_ENGINES)
"""All engines, lftj first."""

TITLES = {
    "lftj": "lftj",
    "duckdb": "DuckDB",
    "ladybug": "Ladybug",
    "graphblas": "GraphBLAS",
    "pathway": "Pathway",
    "spark": "Spark",
    "differential": "differential dataflow",
    "datafrog": "datafrog",
}

ASKED_APART = frozenset({"pathway", "spark", "differential", "datafrog"})
"""Peers that are asked for a part of the workloads only: maintained rules, recursion, what runs in Spark."""

_CARGO = "cargo (https://rustup.rs)"
_EXTRAS = {"pathway": "lftj[pathway]", "differential": _CARGO, "datafrog": _CARGO}


def extra(name: str) -> str:
    """What to install for an engine.

    >>> extra("duckdb"), extra("pathway")
    ('lftj[bench]', 'lftj[pathway]')
    """
    return _EXTRAS.get(name, "lftj[bench]")


def engine_class(name: str) -> type[Engine]:
    """The class of the engine called ``name``; its peer need not be installed.

    >>> engine_class("duckdb").distribution
    'duckdb'
    """
    module, class_name = _ENGINES[name]
    found: type[Engine] = getattr(importlib.import_module(module), class_name)
    return found


def prepare(names: Iterable[str], say: Callable[[str], None]) -> None:
    """Build the engines that are built on demand; ``say`` gets why one is not up to date."""
    for name in names:
        program = engine_class(name).program
        try:
            if program is not None:
                program.build()
        except RuntimeError as error:
            say(f"{TITLES[name]} is not built anew: {error}")


def version(name: str) -> str | None:
    """The installed version of an engine, or None when it is not installed."""
    return engine_class(name).version()


def title(key: str) -> str:
    """How results call an engine or ``engine:variant``.

    >>> title("duckdb:left join")
    'DuckDB (left join)'
    """
    name, _, variant = key.partition(":")
    return TITLES[name] + (f" ({variant})" if variant else "")
