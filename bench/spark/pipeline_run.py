"""`Pipeline`: days of Parquet files go in, five views with one state come out as Delta tables.

    <lake>/first/<relation>.parquet            the relations before the first day
    <lake>/days/0001/<relation>.parquet        what a day changed, with ``weight``
    <lake>/state                               what keeps the views
    <lake>/tables/<view>                       the view, a Delta table

    python -m bench.spark.pipeline_run LAKE

applies the days that are there, and says each behind its commit; it may be killed at any moment and started
again.

Invariant: a day is applied once, as batch of that number of the source ``days``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.spark_engine import Spark
from bench.spark.pipeline_views import VIEWS, View
from bench.tpch.tables import KEYS, Changes
from spark_bridge import MaintainedJoin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 2

READS = {
    relation: list(dict.fromkeys(column for view in VIEWS for column in view.reads.get(relation, ())))
    for relation in sorted({relation for view in VIEWS for relation in view.reads})
}
"""By relation the columns that some view needs."""


class Lake:
    """A folder with all files of a pipeline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def first(self, relation: str) -> Path:
        return self.folder / "first" / f"{relation}.parquet"

    def day(self, number: int) -> Path:
        return self.folder / "days" / f"{number:04}"

    def table(self, view: View) -> Path:
        return self.folder / "tables" / view.name

    def days(self) -> int:
        """The last day that has come."""
        return max((int(path.name) for path in (self.folder / "days").glob("[0-9]*")), default=0)

    def begin(self, loaded: Mapping[str, pa.Table]) -> None:
        """Write the relations of before the first day."""
        (self.folder / "first").mkdir(parents=True)
        for relation, table in loaded.items():
            pq.write_table(table, self.first(relation))

    def drop(self, number: int, changes: Changes) -> None:
        """Write a day; its folder has its name when it has all files."""
        part = self.day(number).with_suffix(".part")
        part.mkdir(parents=True)
        for relation, (erased, inserted) in changes.items():
            signed = [_weighted(erased, -1), _weighted(inserted, 1)]
            pq.write_table(pa.concat_tables(signed), part / f"{relation}.parquet")
        part.rename(self.day(number))


class Pipeline:
    """The views of a lake, made of its first relations or gone on with."""

    def __init__(self, session: SparkSession, lake: Lake) -> None:
        self._session, self.lake = session, lake
        self.kept = MaintainedJoin.from_sql(
            {view.name: view.sql for view in VIEWS},
            {relation: self._read(lake.first(relation), relation) for relation in READS},
            state=lake.folder / "state",
            key={relation: KEYS[relation] for relation in READS},
            where="driver",
            applied={"days": 0},
            delta={view.name: lake.table(view) for view in VIEWS},
        )

    def _read(self, file: Path, relation: str, *further: str) -> DataFrame:
        return self._session.read.parquet(str(file)).select(*READS[relation], *further)

    def catch_up(self) -> Iterator[int]:
        """Apply the days that the views lack, the oldest first; each is committed when it is given."""
        for day in range(1 + (self.kept.applied("days") or 0), self.lake.days() + 1):
            files = sorted(self.lake.day(day).glob("*.parquet"))
            changes = {file.stem: self._read(file, file.stem, "weight") for file in files}
            self.kept.apply(changes, batch_id=day, source="days")
            yield day

    def close(self) -> None:
        self.kept.close()


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column("weight", pa.array([weight] * rows.num_rows, pa.int32()))


def main(lake: str) -> None:
    """Run the command."""
    pipeline = Pipeline(Spark(THREADS).session, Lake(Path(lake)))
    print("opened", flush=True)
    for day in pipeline.catch_up():
        print("day", day, flush=True)
    pipeline.close()


if __name__ == "__main__":
    main(sys.argv[1])
