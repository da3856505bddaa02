"""``erase(..., missing="error")``: an oracle of Python's counters, the message, and other transactions."""

from __future__ import annotations

import threading
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lftj.errors import ChangeError, ConflictError, TransactionError
from maintenance import Workspace

KINDS: dict[str, dict[str, Any]] = {
    "set": {},
    "bag": {"bag": True},
    "wide": {},
    "key": {"key": ["a", "b"]},
    "stream": {"time": "a", "lateness": 9},
}
WIDTH = {"wide": 40}
Pair = tuple[int, int]


def row_of(kind: str, pair: Pair) -> tuple[Any, ...]:
    """A row that stands for two numbers, of as many columns as the kind has."""
    return (*pair, *("x" for _ in range(WIDTH.get(kind, 2) - 2)))


def workspace_of(kind: str, pairs: list[Pair]) -> Workspace:
    ws = Workspace()
    names = ["a", "b", *(f"c{number}" for number in range(WIDTH.get(kind, 2) - 2))]
    ws.load("r", [row_of(kind, pair) for pair in pairs], columns=names, **KINDS[kind])
    ws.install("h(a) <- r(a, _" + ", _" * (len(names) - 2) + ").")
    return ws


PAIRS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4)


@pytest.mark.parametrize("kind", KINDS)
@given(start=PAIRS, steps=st.lists(st.tuples(st.booleans(), PAIRS), min_size=1, max_size=4))
def test_rows_are_there_as_a_counter_has_them(
    kind: str, start: list[Pair], steps: list[tuple[bool, list[Pair]]]
) -> None:
    """Each row is inserted only where it is not there: what a second insert does is not asked here."""
    bag = kind == "bag"
    start = start if bag else list(dict.fromkeys(start))
    held = Counter(start)
    ws = workspace_of(kind, start)
    assert ws.base_version("r").schema.wide == (kind == "wide")
    with ws.transaction() as tx:
        for erases, pairs in steps:
            if not erases:
                pairs = pairs if bag else [pair for pair in dict.fromkeys(pairs) if not held[pair]]
                tx.insert("r", [row_of(kind, pair) for pair in pairs])
                held.update(pairs)
                continue
            wanted, first = Counter[Pair](), None
            for number, pair in enumerate(pairs):
                if held[pair] <= (wanted[pair] if bag else 0):
                    first = number
                    break
                wanted[pair] += 1
            if first is None:
                tx.erase("r", [row_of(kind, pair) for pair in pairs], missing="error")
                held -= Counter(pairs) if bag else Counter(set(pairs))
                continue
            with pytest.raises(ChangeError, match=rf"^erase from 'r': row {first} \(counting from 0\), "):
                tx.erase("r", [row_of(kind, pair) for pair in pairs], missing="error")
    assert sorted(row[:2] for row in ws["r"]) == sorted(held.elements())
    ws.verify()


def test_the_message_names_row_relation_and_way_out() -> None:
    ws = Workspace()
    ws.load("item", {"id": [1, 2], "name": ["tea", "mug"], "price": [Decimal("1.50"), None]}, nulls="keep")
    ws.load("k", {"id": [1], "v": ["x"]}, key=["id"])
    with ws.transaction() as tx:
        with pytest.raises(ChangeError) as raised:
            tx.erase("item", [(2, "mug", None), (1, "tea", None)], missing="error")
        assert str(raised.value) == (
            "erase from 'item': row 1 (counting from 0), (1, \"tea\", NULL), is not there;"
            ' missing="ignore" passes over such rows'
        )
        with pytest.raises(
            ChangeError, match=r"\(1, \"y\"\), is not there; .*; erase_keys\('k', \.\.\.\) takes"
        ):
            tx.erase("k", [(1, "y")], missing="error")
        tx.erase("k", [(1, "y")])
    assert ws["item"].count == 2 and ws["k"].count == 1


def test_a_failed_erasure_rolls_the_block_back_or_stages_nothing() -> None:
    ws = workspace_of("set", [(1, 2), (2, 3)])
    with pytest.raises(ChangeError, match="is not there"), ws.transaction() as tx:
        tx.insert("r", [(9, 9)])
        tx.erase("r", [(1, 2), (7, 7)], missing="error")
    assert sorted(ws["r"]) == [(1, 2), (2, 3)]
    with ws.transaction() as tx:
        tx.insert("r", [(9, 9)])
        with pytest.raises(ChangeError, match="row 1 "):
            tx.erase("r", [(1, 2), (7, 7)], missing="error")
        with pytest.raises(ValueError, match="missing is 'raise'; it can be 'ignore' or 'error'"):
            tx.erase("r", [(1, 2)], missing="raise")
    assert sorted(ws["r"]) == [(1, 2), (2, 3), (9, 9)] and tx.stats.no_changes["r"] == 0


def in_another_thread(ws: Workspace, rows: list[tuple[int, int]]) -> None:
    def erase() -> None:
        with ws.transaction() as other:
            other.erase("r", rows)

    thread = threading.Thread(target=erase)
    thread.start()
    thread.join()


@pytest.mark.parametrize("kind", ["set", "bag"])
def test_what_another_transaction_erased_meanwhile_is_a_conflict(kind: str) -> None:
    ws = workspace_of(kind, [(1, 2), (2, 3), (4, 5)])
    with (
        pytest.raises(ConflictError, match=r"row 1 .*, \(2, 3\), was erased by another"),
        ws.transaction() as tx,
    ):
        tx.erase("r", [(1, 2), (2, 3)], missing="error")
        in_another_thread(ws, [(2, 3)])
    with ws.transaction() as tx:
        tx.insert("r", [(7, 7)])
        tx.erase("r", [(1, 2), (7, 7)], missing="error")
        in_another_thread(ws, [(4, 5)])  # which is another row
    assert list(ws["r"]) == []


def test_a_relation_that_is_loaded_anew_refuses_what_was_staged() -> None:
    ws = workspace_of("set", [(1, 2)])
    with pytest.raises(TransactionError, match="loaded anew"), ws.transaction() as tx:
        tx.erase("r", [(1, 2)], missing="error")
        ws.uninstall("h")
        ws.load("r", [(1, "x")], columns=["a", "b"])


def test_columns_of_the_key_alone_name_erase_keys() -> None:
    ws = Workspace()
    ws.load("k", {"id": [1, 2], "v": ["x", "y"]}, key=["id"])
    with ws.transaction() as tx:
        for keys in ({"id": [1]}, [{"id": 1}], [(1,)]):
            with pytest.raises(
                ChangeError, match=r"a row is \(id, v\); erase_keys\('k', \.\.\.\) takes keys alone"
            ):
                tx.erase("k", keys)
            tx.erase_keys("k", keys)
    assert list(ws["k"]) == [(2, "y")]
