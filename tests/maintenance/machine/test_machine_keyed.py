"""differential: relations with a key by the commit machine, beside the general way and a dict by key."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lftj import errors
from maintenance import Workspace
from maintenance.machine import machine
from maintenance.machine.structures import Sizes
from support.machine_workspace import of, opened
from support.rows import rows_of
from support.small_limits import wide_relations

RULES = "n[v] = count() <- o(_, v, _). lines[i] = sum(q) <- o(i, _, _), l(i, _, q). one(i) <- o(i, _, _)."
OF_WIDE = "some(i) <- o(i, v, v), l(i, _, _). n[b] = count() <- l(_, b, b)."
"""Nothing is read off the rows."""

KEYS = {"o": (0,), "l": (1, 0)}
NAMES = "abc"

VALUES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "integers": (pa.int64(), (-7, 0, 3, 2**60)),
    "texts": (pa.string(), ("tea", "", "coffee", "7")),
    "decimals": (pa.decimal128(6, 2), (Decimal("1.50"), Decimal("-0.01"), Decimal("9999.99"))),
    "dates and NULL": (pa.int32(), (1, None, 5)),
}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "FEWEST", 1)
    monkeypatch.setattr(machine, "MOST", 1)


@pytest.fixture
def is_wide(request: pytest.FixtureRequest) -> Iterator[bool]:
    if request.param:
        with wide_relations():
            yield True
    else:
        yield False


def set_up(ws: Workspace, kind: str = "integers", rules: str = RULES) -> Workspace:
    type_, _ = VALUES[kind]
    nulls = "keep" if "NULL" in kind else "refuse"
    whole = pa.int64()
    for name, types in (("o", (whole, type_, type_)), ("l", (whole, whole, whole))):
        table = pa.table({c: pa.array([], each) for c, each in zip(NAMES, types, strict=True)})
        required = [NAMES[number] for number in KEYS[name]]
        ws.load(name, table, key=required, nulls=nulls, not_null=required)
    if rules:
        ws.install(rules, "delta")
    return ws


def fast_one(
    kind: str = "integers", sizes: Sizes | None = None, folder: Path | None = None, rules: str = RULES
) -> Workspace:
    ws = Workspace(single_changes="machine") if folder is None else opened(folder)
    its = of(ws)
    its._wait, its.checks, its.sizes = 1, True, sizes or its.sizes
    return set_up(ws, kind, rules)


def outcome(ws: Workspace, changes: list[tuple[str, str, list[tuple[Any, ...]]]]) -> Any:
    """What becomes of a transaction, or what is said of an error; and whether it went by the machine."""
    try:
        with ws.transaction() as tx:
            for how, name, rows in changes:
                getattr(tx, how)(name, rows)
    except errors.LftjError as error:
        return f"{type(error).__name__}: {error}", 0
    figures = tx.stats.inserted, tx.stats.erased, tx.stats.no_changes
    told = {head: sorted(rows_of(table), key=str) for head, table in tx.changes.items()}
    return (told, figures), tx.stats.fast


class Model:
    """Rows by key."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Any, Any]] = {name: {} for name in KEYS}

    def follow(self, changes: list[tuple[str, str, list[tuple[Any, ...]]]]) -> None:
        """Changes that leave each key one row; of plain ones there is none of a row that is there."""
        for how, name, rows in changes:
            for row in rows:
                if how == "erase_keys":
                    self.rows[name].pop(row, None)
                    continue
                key = tuple(row[number] for number in KEYS[name])
                if how == "upsert" or how == "insert":
                    self.rows[name][key] = row
                elif self.rows[name].get(key) == row:
                    del self.rows[name][key]


@pytest.mark.in_turns
@pytest.mark.kernel
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(None, id="large", marks=pytest.mark.compiled),  # takes no lines that small ones don't
        pytest.param(Sizes(rows=60, few=2, many=5, spilled=1), id="small"),
    ],
)
@pytest.mark.parametrize("is_wide", [False, True], ids=["narrow", "wide"], indirect=True)
@pytest.mark.parametrize("kind", VALUES)
def test_keys_have_one_row(kind: str, is_wide: bool, sizes: Sizes | None) -> None:
    draw, n_fast, n_refused = Random(kind + str(is_wide)), 0, 0
    rules = OF_WIDE if is_wide else RULES
    both = [fast_one(kind, sizes, rules=rules), set_up(Workspace(single_changes="general"), kind, rules)]
    of(both[0]).checks = False  # the other one says what is right
    values = VALUES[kind][1]
    for number in range(160):
        changes = []
        for _ in range(draw.choice((1, 1, 2, 4))):
            name, how = draw.choice("ol"), draw.choice(("upsert", "upsert", "insert", "erase", "erase_keys"))
            rows = []
            for _ in range(draw.choice((1, 1, 3))):
                key = draw.randrange(6), draw.randrange(3)
                row = (
                    (key[0], draw.choice(values), draw.choice(values))
                    if name == "o"
                    else (*key, draw.randrange(4))
                )
                rows.append(tuple(row[number] for number in KEYS[name]) if how == "erase_keys" else row)
            changes.append((how, name, rows))
        (one, by_machine), (other, _) = (outcome(ws, changes) for ws in both)
        n_fast += by_machine
        if isinstance(other, str):
            assert other.startswith("KeyConflictError") and one[:60] == other[:60]
            n_refused += 1
        else:
            assert one == other, changes
        if number % 40 == 39:
            both[0].verify()
            both[0].check_invariants()
            for name in KEYS:
                one, other = (sorted(rows_of(ws[name].table), key=str) for ws in both)
                assert one == other and len({tuple(row[i] for i in KEYS[name]) for row in one}) == len(one)
    assert n_refused > 3
    assert n_fast > (30 if is_wide else 90 if sizes is None else 50)
    both[0].verify()


def test_upserts_and_erasures_by_key_are_as_in_a_dict() -> None:
    ws, model, draw = fast_one(), Model(), Random(5)
    fast = 0
    for number in range(300):
        changes: list[Any] = []
        for _ in range(draw.choice((1, 3))):
            rows = [
                (draw.randrange(9), draw.randrange(3), draw.randrange(3)) for _ in range(draw.choice((1, 4)))
            ]
            if draw.random() < 0.3:
                changes.append(("erase_keys", "l", [(b, a) for a, b, _ in rows]))
            else:
                changes.append(("upsert", "l", rows))
        told, by_machine = outcome(ws, changes)
        model.follow(changes)
        fast += by_machine
        assert not isinstance(told, str)
        if number % 30 == 0:
            assert sorted(ws["l"]) == sorted(model.rows["l"].values())
    assert fast > 285


def test_a_second_row_of_a_key_is_refused_in_the_general_way_s_words() -> None:
    for changes in (
        [("insert", "o", [(1, 8, 8)])],
        [("insert", "o", [(2, 8, 8), (2, 9, 9)])],
        [("upsert", "o", [(1, 8, 8)]), ("insert", "l", [(5, 5, 5)]), ("insert", "o", [(1, 9, 9)])],
        [("erase", "o", [(1, 1, 2)]), ("insert", "o", [(1, 3, 3)])],
    ):
        both = [fast_one(), set_up(Workspace(single_changes="general"))]
        for ws in both:
            for i in range(4):
                with ws.transaction() as tx:
                    tx.upsert("o", [(1, i, 1)])
        assert of(both[0]).layout is not None
        (one, fast), (other, _) = (outcome(ws, changes) for ws in both)
        assert one == other and one.startswith("KeyConflictError: relation 'o': there are two rows of key a=")
        assert fast == 0
        assert sorted(both[0]["o"]) == [(1, 3, 1)] and both[0]["l"].count == 0
        assert (
            outcome(both[0], [("upsert", "o", [(1, 7, 7)])])[0]
            == outcome(both[1], [("upsert", "o", [(1, 7, 7)])])[0]
        )
        both[0].verify()


@pytest.mark.parametrize("is_wide", [False, True], ids=["narrow", "wide"], indirect=True)
def test_what_leaves_all_as_it_was_is_counted(is_wide: bool) -> None:
    ws = fast_one(rules=OF_WIDE if is_wide else RULES)
    for i in range(4):
        outcome(ws, [("upsert", "o", [(1, 5, 5)]), ("upsert", "l", [(i, 1, 1)])])
    version = ws.version
    for changes, no_changes in (
        ([("upsert", "o", [(1, 5, 5)])], {"o": 1}),
        ([("erase_keys", "o", [(7,), (8,)])], {"o": 2}),
        ([("upsert", "o", [(1, 6, 6)]), ("upsert", "o", [(1, 5, 5)])], {"o": 2}),
        ([("erase_keys", "o", [(1,)]), ("insert", "o", [(1, 5, 5)])], {"o": 2}),
        ([("insert", "o", [(1, 5, 5)]), ("erase", "o", [(1, 0, 0)])], {"o": 2}),
        ([("upsert", "l", [(9, 1, 1)]), ("erase_keys", "l", [(1, 9)])], {"l": 2}),
    ):
        with ws.transaction() as tx:
            for how, name, rows in changes:
                getattr(tx, how)(name, rows)
        assert tx.stats.fast == 1 and tx.stats.no_changes == no_changes
        assert not sum(tx.stats.inserted.values()) and not any(len(tx.changes[head]) for head in ws.heads)
    assert ws.version == version
    ws.verify()


def test_a_wide_row_of_which_the_key_alone_is_said_goes_the_general_way() -> None:
    with wide_relations():
        ws = fast_one(rules=OF_WIDE)
        for i in range(3):
            assert not isinstance(outcome(ws, [("insert", "o", [(i, i, i)])])[0], str)
        assert outcome(ws, [("upsert", "o", [(9, 9, 9)])])[1] == 1
        assert outcome(ws, [("erase", "o", [(9, 9, 9)])])[1] == 1
        assert outcome(ws, [("upsert", "o", [(1, 8, 8)])])[1] == 0
        assert outcome(ws, [("erase_keys", "o", [(2,)])])[1] == 0
        assert sorted(ws["o"]) == [(0, 0, 0), (1, 8, 8)]
        ws.verify()


def test_a_key_is_asked_for_where_there_is_none() -> None:
    ws = Workspace(single_changes="machine")
    ws.load("e", [(1, 2)], columns=["a", "b"])
    of(ws)._wait = 1
    for i in range(4):
        with ws.transaction() as tx:
            tx.insert("e", [(i, 5)])
    assert tx.stats.fast == 1
    with ws.transaction() as tx:
        tx.insert("e", [(7, 7)])
        for how in ("upsert", "erase_keys"):
            with pytest.raises(errors.ChangeError, match=f"{how} of 'e', which has no key"):
                getattr(tx, how)("e", [(1, 2)])
    assert (7, 7) in ws["e"]


def test_a_transaction_may_be_staged_both_ways() -> None:
    """What is staged as numbers comes before all that follows."""
    ws = fast_one()
    for i in range(4):
        assert not isinstance(outcome(ws, [("upsert", "o", [(1, i, i)])])[0], str)
    for key, how, source, expected in (
        (1, "upsert", {"a": [1], "b": [8], "c": [8]}, [(1, 8, 8)]),
        (2, "erase_keys", {"a": [2]}, []),
        (3, "upsert", [[3, 9, 9]], [(3, 9, 9)]),
        (4, "erase_keys", [["4"]], None),
        (5, "erase_keys", [(5, 5)], None),
        (6, "upsert", [(6, 2**63, 1)], None),
        (7, "upsert", [(7, 1, 1)] * 80, [(7, 1, 1)]),
    ):
        tx = ws.transaction()
        tx.upsert("o", [(key, 0, 0)])
        if expected is None:
            with pytest.raises((errors.LftjError, TypeError, ValueError)):
                getattr(tx, how)("o", source)
            tx.roll_back()
            continue
        getattr(tx, how)("o", source)
        tx.commit()
        assert [row for row in ws["o"] if row[0] == key] == expected
    ws.verify()


@pytest.mark.parametrize("kind", VALUES)
def test_what_the_machine_commits_is_in_the_folder(kind: str, tmp_path: Path) -> None:
    ws, values = fast_one(kind, folder=tmp_path / "ws"), VALUES[kind][1]
    for i in range(12):
        told, fast = outcome(
            ws, [("upsert", "o", [(i % 4, values[i % 3], values[0])]), ("erase_keys", "o", [(i % 3,)])]
        )
        assert not isinstance(told, str)
    assert fast == 1
    rows = sorted(ws["o"])
    ws._published.store.close()  # type: ignore[union-attr]
    with opened(tmp_path / "ws") as again:
        assert sorted(again["o"]) == rows
        again.verify()
