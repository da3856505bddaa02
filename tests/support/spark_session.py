"""The Spark sessions of the tests: small and silent, one per process, made by the first that asks for it."""

from __future__ import annotations

import os
import sys
from functools import cache

from pyspark.sql import SparkSession

from support.paths import TESTS

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "spark_bridge.worker_daemon",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.session.timeZone": "Europe/Berlin",
}
"""The time zone is none that values are in: results must not depend on it.

A session of a test lives for a minute: what Java's second compiler and its parallel collector would take is
half of the processor time of the whole, and to verify Spark's own classes takes a tenth of its start.
Simplified tracebacks are asked for through the environment of workers, by some plans and not by others, and
each environment has workers of its own.
"""


@cache
def spark_session() -> SparkSession:
    """A classic session with two threads."""
    session = builder().master("local[2]").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@cache
def connect_session() -> SparkSession:
    """A session of Spark Connect, with a server of its own; in a process without a classic session."""
    return builder().remote("local[2]").getOrCreate()


def set_environment() -> None:
    """For Java that this process starts: workers run this interpreter and find the tests' own modules."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


def builder() -> SparkSession.Builder:
    """For a session with the settings."""
    set_environment()
    builder = SparkSession.builder.appName("lftj tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    return builder
