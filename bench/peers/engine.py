"""`Engine`: what the harness asks of lftj and of every peer, in one interface.

An engine is used in one process for one workload: opened, loaded, asked.
Modules of peers are imported when their engine is opened, so that one that is
not installed costs no more than its own rows.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

Ends = tuple[str, str]


class Engine(ABC):
    """A database for the length of one measurement.

    Attributes:
        threads: How many threads it may use, set before anything is loaded.
    """

    module: str
    """Import name of what has to be installed."""
    distribution: str
    """Its name on the package index."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

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

    @classmethod
    def version(cls) -> str | None:
        """The installed version, or None when it is not installed."""
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
}

ASKED_APART = frozenset({"pathway", "spark", "differential"})
"""Peers that are asked for a part of the workloads only: maintained rules, and what is run in Spark."""

_EXTRAS = {"pathway": "lftj[pathway]", "differential": "cargo (https://rustup.rs)"}


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
