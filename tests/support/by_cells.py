"""Joins whose heads are all searched by cells, those without a cycle too."""

from __future__ import annotations

from functools import partial

import spark_bridge

join = partial(spark_bridge.join, when="always")
join_sql = partial(spark_bridge.join_sql, when="always")
motifs = partial(spark_bridge.motifs, when="always")
explain = partial(spark_bridge.explain, when="always")
