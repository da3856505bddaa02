"""Multiway joins in PySpark pipelines, once and maintained: ``join`` and ``MaintainedJoin``.

The only package that imports pyspark.  DataFrames in, DataFrames out, by public operations
only: no RDD, no SparkContext, so Classic and Connect run the same.
"""

import lftj

if not hasattr(
    lftj, "__path__"
):  # a module, where a package is meant: none of ours can be imported to say so
    raise ImportError(f"{lftj.__file__} stands in the way of the package 'lftj': rename it", name="lftj")

from lftj.process.siblings import check_siblings

check_siblings("maintenance")

from spark_bridge.data_source.head_source import HeadSource  # noqa: E402
from spark_bridge.explanation import explain  # noqa: E402
from spark_bridge.join import join  # noqa: E402
from spark_bridge.join_sql import join_sql  # noqa: E402
from spark_bridge.maintained_join import MaintainedJoin  # noqa: E402
from spark_bridge.motifs import motifs  # noqa: E402
from spark_bridge.placing.join_stats import JoinStats  # noqa: E402

__all__ = ["HeadSource", "JoinStats", "MaintainedJoin", "explain", "join", "join_sql", "motifs"]
