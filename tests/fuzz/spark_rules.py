"""Random rules in Spark beside SQL that says the same: once, asked for less behind it, kept in both places.

A case is the number that its relations, rule and changes are drawn by (:mod:`support.spark_programs`).  Each
takes Spark seconds, so these are played where they are asked for alone, ``make fuzz ONLY=spark``.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from fuzz.case import Case


def spark(r: random.Random) -> Case:
    return Case("spark", (), (), options={"number": r.randrange(2**32)})


def play_spark(case: Case) -> None:
    """Raise AssertionError with the program where Spark SQL has other rows."""
    from support import spark_programs
    from support.spark_session import spark_session

    session, r = spark_session(), random.Random(case.options["number"])
    drawn = spark_programs.draw_program(r)
    spark_programs.refuse_differences(session, drawn)
    for when in ("cyclic", "always"):
        spark_programs.refuse_other_chains(session, drawn, r, when=when)
    with tempfile.TemporaryDirectory() as folder:
        for where in ("driver", "executors"):
            options = {"where": where, **({"partitions": 2} if where == "executors" else {})}
            spark_programs.refuse_other_batches(session, drawn, r, Path(folder, where), **options)
