"""Multiway joins in PySpark pipelines, once and maintained: ``join`` and ``MaintainedJoin``.

The only package that imports pyspark.  DataFrames in, DataFrames out, by public operations
only: no RDD, no SparkContext, so Classic and Connect run the same.
"""

from spark_bridge.explanation import explain
from spark_bridge.join import join
from spark_bridge.maintained_join import MaintainedJoin

__all__ = ["MaintainedJoin", "explain", "join"]
