"""`refuse_difference`: the rows of a head as they are kept, beside those that they are to be.

Cost: one job, which evaluates both, and a shuffle of their rows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lftj.errors import VerificationError


def refuse_difference(name: str, kept: DataFrame, anew: DataFrame) -> None:
    """Compare by the columns' places.  Raises VerificationError, with numbers of rows, and one of them."""
    columns = [f"c{place}" for place in range(len(kept.columns))]
    signed = [
        frame.toDF(*columns).withColumn("times", F.lit(times)) for frame, times in ((kept, 1), (anew, -1))
    ]
    times = signed[0].unionAll(signed[1]).groupBy(*columns).agg(F.sum("times").alias("times"))
    shown = [F.col(label).alias(name) for label, name in zip(columns, kept.columns, strict=True)]
    rows = F.struct("times", F.to_json(F.struct(*shown)).alias("row"))
    counts = F.count_if(F.col("times") > 0), F.count_if(F.col("times") < 0), F.max(rows)
    ((many, few, example),) = times.where("times <> 0").agg(*counts).collect()
    if many or few:
        raise VerificationError(
            f"head {name!r} differs from its recomputation: {many:,} tuples too many and {few:,} missing;"
            f" {'too many' if many else 'missing'}, for example: {example.row}"
        )
