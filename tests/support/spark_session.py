"""The Spark session of the tests: small and silent, one per process, made by the first that asks for it.

To start Java and its workers costs more than most tests.  So the tests that need it are in one process
(:mod:`support.sharing`), and processes that they start are at its Java, too: clients of Spark Connect and
drivers that are killed.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from py4j.java_gateway import JavaClass, JavaMember, JVMView
from pyspark.sql import SparkSession

from support.paths import TESTS

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.ui.explainMode": "simple",
    "spark.python.daemon.module": "spark_bridge.worker_daemon",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
    "-XX:CompileThresholdScaling=0.1 -XX:+UseSerialGC -Xmn600m -XX:MetaspaceSize=512m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.session.timeZone": "Europe/Berlin",
}
"""The time zone is none that values are in: results must not depend on it.

A session of the tests lives for minutes: what Java's second compiler and its parallel collector would take is
half of the processor time of the whole, and to verify Spark's own classes takes a tenth of its start.  Where
the first compiler begins after a tenth of the calls that it would wait for, Java takes a twelfth less.  Java
with one compiler keeps 48 MB of code, which a run fills: it would throw code away and compile it again.  No
Java code is made of plans, each of which runs once over a few rows; nor are they told in full to listeners.
Simplified tracebacks are asked for through the environment of workers, by some plans and not by others, and
each environment has workers of its own.  Where an expression was written, which Java is told before and after
each call that makes one, only errors of Spark would say.
"""

ISOLATION = ("spark.sql.artifact.isolation.enabled", "spark.sql.artifact.isolation.alwaysApplyClassloader")
"""What ``remote("local")`` turns on for the server that it starts."""

MASTER = "local[2,2]"
"""Two threads; a task that fails, or whose worker is killed, is tried once more."""


class Remembered(JavaClass):
    """A class of Java whose methods are looked for once."""

    def __getattr__(self, name: str) -> object:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            vars(self)[name] = found
        return found


class Remembering(JVMView):
    """Java's classes by their names, each asked for once: Java looks through all of its jars each time."""

    def __getattr__(self, name: str) -> object:
        found = super().__getattr__(name)
        if isinstance(found, JavaClass):
            found.__class__ = Remembered
            vars(self)[name] = found
        return found


@cache
def spark_session() -> SparkSession:
    """A classic session."""
    session = builder().master(MASTER).getOrCreate()
    session.sparkContext._jvm.__class__ = Remembering
    session.sparkContext.setLogLevel("ERROR")
    return session


@cache
def connect_address() -> str:
    """Where clients of Spark Connect reach a server at the classic session's Java."""
    context = spark_session().sparkContext
    package = context._jvm.org.apache.spark.sql.connect.service
    service = getattr(getattr(package, "SparkConnectService$"), "MODULE$")
    service.start(context._jsc.sc())
    return f"sc://127.0.0.1:{service.localPort()}"


def connect_session(address: str) -> SparkSession:
    """A session at a server of Spark Connect; in a process without a classic session."""
    builder = SparkSession.builder.remote(address)
    for key in ISOLATION:
        builder = builder.config(key, "true")
    return builder.getOrCreate()


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
