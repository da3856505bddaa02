"""The runner of sqllogictest's files: every shape of a record, right answers and wrong ones.

The files of other engines are not here: ``python -m sql.logic`` runs those of a folder, and so does the last
test where ``LFTJ_SLT`` names one.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NoReturn

import pytest

from sql.logic.engines import ENGINES
from sql.logic.play import play

OWN = Path(__file__).with_name("own.test").read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "kept"])
def test_every_shape_of_a_record(engine: str) -> None:
    outcomes = list(play(OWN, ENGINES[engine]))
    assert [o for o in outcomes if o.what != "passed" and "union select" not in o.text] == []
    # The other word gives 2, where the file says 1.
    assert Counter(o.what for o in outcomes) == {"passed": 10, "as DuckDB": 1}


def test_a_wrong_answer_is_seen() -> None:
    found = list(play(OWN, lambda given, text: ENGINES["duckdb"](given, text).slice(1)))
    assert Counter(o.what for o in found) == {"wrong": 11}


@pytest.mark.parametrize("seconds", [1])
def test_a_query_that_takes_long_is_stopped(seconds: int) -> None:
    def forever(given: object, text: str) -> NoReturn:
        while True:
            pass

    one = "query I\nselect 1\n----\n1\n"
    assert [o.what for o in play(one, forever, seconds)] == ["too long"]


def test_files_of_a_folder() -> None:
    """Of each file its first queries; ``python -m sql.logic`` has all of them and says what it finds."""
    folder = os.environ.get("LFTJ_SLT")
    if folder is None:
        pytest.skip("no files of other engines: LFTJ_SLT names no folder")
    faults = [
        f"{path}:{outcome.line}: {outcome.what}: {outcome.said}"
        for path in sorted(Path(folder).rglob("*.test"))
        for outcome in play(path.read_text(encoding="utf-8"), ENGINES["once"], most=20)
        if outcome.what in ("wrong", "raised", "crashed")
    ]
    assert faults == []
