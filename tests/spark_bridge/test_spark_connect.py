"""differential: `join` and `MaintainedJoin` through Spark Connect against `Database`, in its own process.

The cases are in ``connect_cases.py``; the server is at the Java of the other tests, as
``remote("local")`` has it at that of a classic session.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.paths import TESTS, child_environment

pytest.importorskip("pyspark")
pytest.importorskip("grpc", reason="Spark Connect needs grpc: pip install pyspark[connect]")

from pyspark.sql import SparkSession

from support.connect_cases import CASES, START
from support.spark_session import connect_address

SCRIPT = TESTS / "support" / "connect_cases.py"
SECONDS = 1800
"""For a script that hangs: on a loaded machine that compiles all kernels it takes minutes."""


@pytest.fixture(scope="module")
def output(spark: SparkSession, request: pytest.FixtureRequest) -> dict[str, str]:
    """By case asked for what the script said of it; by "" what Spark and Python said if it broke off."""
    # Variables of the classic session would reach the other one.
    inherited = {
        name: value for name, value in child_environment().items() if not name.startswith("PYSPARK_")
    }
    here = (item for item in request.session.items if item.path == request.path)
    cases = [item.callspec.params["case"] for item in here if isinstance(item, pytest.Function)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), connect_address(), *cases],
        env=inherited,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=TESTS,
    )
    said = {"": done.stderr[-8_000:]}
    for part in done.stdout.split(START)[1:]:
        name, _, text = part.partition("\n")
        said[name] = text.strip()
    return said


@pytest.mark.in_turns
@pytest.mark.parametrize("case", [case.__name__ for case in CASES])
def test_differential_connect(output: dict[str, str], case: str) -> None:
    if case not in output:
        pytest.fail(f"the script did not come to {case}:\n{output['']}", pytrace=False)
    if output[case] != "ok":
        pytest.fail(output[case], pytrace=False)
