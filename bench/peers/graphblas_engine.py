"""SuiteSparse GraphBLAS: graphs as Boolean matrices, counts as masked matrix products.

It has no query language and no relations, so a "query" names one of the
functions below.  They are what an expert writes by hand for one question; a
question that has none here is reported as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.peers.engine import Ends, Engine

Matrices = Mapping[str, Any]


class GraphBLAS(Engine):
    module = "graphblas"
    distribution = "python-graphblas"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import graphblas

        graphblas.ss.config["nthreads"] = threads
        self._graphblas = graphblas
        self._matrices: dict[str, Any] = {}

    def load(self, tables: Mapping[str, Path | pa.Table], ends: Mapping[str, Ends]) -> None:
        read = {
            name: pq.read_table(source) if isinstance(source, Path) else source
            for name, source in tables.items()
        }
        size = 1 + max(pc.max(column).as_py() for table in read.values() for column in table.columns)
        for name, table in read.items():
            rows, columns = (column.to_numpy() for column in table.columns)
            matrix = self._graphblas.Matrix.from_coo(rows, columns, True, nrows=size, ncols=size, dtype=bool)
            matrix.wait("materialize")  # else building it would be part of the first count
            self._matrices[name] = matrix

    def count(self, query: str) -> int:
        return _FUNCTIONS[query](self._graphblas, self._matrices)


def triangles(graphblas: Any, matrices: Matrices) -> int:
    """Sum of C<A> = A A over (plus, pair): the masked row-wise product."""
    edge = matrices["edge"]
    return _masked_product(graphblas, edge, edge, edge)


def triangles_of_three_relations(graphblas: Any, matrices: Matrices) -> int:
    """Sum of C<T> = R S over (plus, pair)."""
    return _masked_product(graphblas, matrices["R"], matrices["S"], matrices["T"])


def _masked_product(graphblas: Any, left: Any, right: Any, mask: Any) -> int:
    result = graphblas.Matrix(graphblas.dtypes.INT64, left.nrows, right.ncols)
    result(mask.S) << graphblas.semiring.plus_pair(left @ right)
    return int(result.reduce_scalar().value or 0)


def paths_of_three(graphblas: Any, matrices: Matrices) -> int:
    """In-degree vector, times the matrix, times the out-degree vector."""
    edge = matrices["edge"]
    integer = graphblas.dtypes.INT64
    out_degree = edge.reduce_rowwise(graphblas.monoid.plus[integer]).new(integer)
    in_degree = edge.reduce_columnwise(graphblas.monoid.plus[integer]).new(integer)
    onward = graphblas.semiring.plus_times(edge.dup(integer) @ out_degree).new(integer)
    return int(graphblas.semiring.plus_times(in_degree @ onward).value or 0)


_FUNCTIONS = {
    "triangles": triangles,
    "triangles_of_three_relations": triangles_of_three_relations,
    "paths_of_three": paths_of_three,
}
