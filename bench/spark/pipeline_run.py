"""`Pipeline`: days of Parquet files go in, five views come out as Delta tables.

    <lake>/first/<relation>.parquet            the relations before the first day
    <lake>/days/0001/<relation>.parquet        what a day changed, with ``weight``
    <lake>/state/<view>                        what keeps a view
    <lake>/tables/<view>                       the view, a Delta table

    python -m bench.spark.pipeline_run LAKE

applies the days that are there, and says a line of day and view behind each commit; it may be killed at any
moment and started again.

Invariant: a day is applied to a view once, as batch of that number of the source ``days``.
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
        self.kept = {view: self._opened(view) for view in VIEWS}

    def _opened(self, view: View) -> MaintainedJoin:
        return MaintainedJoin.from_sql(
            view.sql,
            {relation: self._read(self.lake.first(relation), view, relation) for relation in view.reads},
            state=self.lake.folder / "state" / view.name,
            key={relation: KEYS[relation] for relation in view.reads},
            where="driver",
            applied={"days": 0},
            delta=self.lake.table(view),
        )

    def _read(self, file: Path, view: View, relation: str, *further: str) -> DataFrame:
        return self._session.read.parquet(str(file)).select(*view.reads[relation], *further)

    def catch_up(self) -> Iterator[tuple[int, View]]:
        """Apply the days that a view lacks, the oldest first; each is committed when it is given."""
        for day in range(1, self.lake.days() + 1):
            for view, kept in self.kept.items():
                if day > (kept.applied("days") or 0):
                    self._apply(view, kept, day)
                    yield day, view

    def _apply(self, view: View, kept: MaintainedJoin, day: int) -> None:
        files = sorted(self.lake.day(day).glob("*.parquet"))
        changes = {
            file.stem: self._read(file, view, file.stem, "weight")
            for file in files
            if file.stem in view.reads
        }
        kept.apply(changes, batch_id=day, source="days")

    def close(self) -> None:
        for kept in self.kept.values():
            kept.close()


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column("weight", pa.array([weight] * rows.num_rows, pa.int32()))


def main(lake: str) -> None:
    """Run the command."""
    pipeline = Pipeline(Spark(THREADS).session, Lake(Path(lake)))
    print("opened", flush=True)
    for day, view in pipeline.catch_up():
        print(day, view.name, flush=True)
    pipeline.close()


if __name__ == "__main__":
    main(sys.argv[1])
