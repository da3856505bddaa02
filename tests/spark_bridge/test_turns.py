"""Turns on states: one at a time on each, and no state waits for another."""

from __future__ import annotations

import threading
from pathlib import Path

from spark_bridge.stages.turns import turn_on


def is_free(path: str) -> bool:
    """Whether another thread gets its turn on the state at once."""
    found: list[bool] = []

    def ask() -> None:
        turn = turn_on(path)
        found.append(turn.acquire(blocking=False))
        if found[0]:
            turn.release()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


def test_states_do_not_wait_for_each_other_and_batches_of_one_do(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    with turn_on(one):
        assert not is_free(one)
        assert not is_free(f"{tmp_path}/./one/")
        assert is_free(other) and is_free("s3://bucket/one")
    assert is_free(one)


def test_who_has_the_turn_may_take_it_again() -> None:
    with turn_on("s3://bucket/state"), turn_on("s3://bucket/state"):
        assert not is_free("s3://bucket/state")
