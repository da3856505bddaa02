"""Tables with a key: what events do, against a dictionary; keys of every type; what an upsert costs."""

from __future__ import annotations

import datetime
import tracemalloc
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indices.housekeeping import housekeeping
from lftj import Database, errors
from lftj.storage.keyed import Events, keyed_change, keys_of, rows_of_keys
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.values.domains import Domains
from maintenance import Workspace
from support.keyed_model import Event, Row, TwoRows, after
from support.kinds import KINDS, LISTS, Kind
from support.small_limits import small_limits, wide_relations

ROWS = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1))
KEYS = [("k",), ("k", "b"), ("b", "k"), ("a", "k", "b")]
EVENTS = st.lists(
    st.tuples(st.sampled_from(["insert", "erase", "upsert", "upsert", "erase_keys"]), ROWS), max_size=12
)


def version_of(rows: list[Row], key: tuple[str, ...]) -> RelationVersion:
    types = pa.schema([pa.field(name, pa.int64(), nullable=name not in key) for name in "akb"])
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    table = pa.table([pa.array(list(column), pa.int64()) for column in columns], schema=types)
    return RelationVersion(Relation.from_table("t", table, Domains(), key=key))


@given(
    st.sampled_from(KEYS),
    st.lists(st.lists(EVENTS, min_size=1, max_size=3), max_size=6),
    st.sampled_from([(4096, 8), (0, 100), (0, 1)]),
)
def test_oracle_events_do_what_a_dictionary_does(
    key: tuple[str, ...], batches: list[list[list[tuple[str, Row]]]], merges: tuple[int, int]
) -> None:
    """Batches of transactions, each one's change netted and told apart by its time."""
    places = ["akb".index(name) for name in key]

    def key_of(row: Row) -> Row:
        return tuple(row[place] for place in places)

    with small_limits(merges):
        version, rows = version_of([], key), {}
        for batch in batches:
            events = [(time, Event(*each)) for time, one in enumerate(batch) for each in one]
            staged = Events(
                np.array([key_of(row) for _, (_, row) in events], np.int64).reshape(-1, len(key)).T.copy(),
                np.array([row for _, (_, row) in events], np.int64).reshape(-1, 3).T.copy(),
                np.array([{"erase": -1, "erase_keys": 0}.get(what, 1) for _, (what, _) in events], np.int64),
                np.array([what in ("upsert", "erase_keys") for _, (what, _) in events], bool),
            )
            times = np.array([time for time, _ in events], np.int64)
            expected, now = {}, rows
            try:
                for time, one in enumerate(batch):
                    before = now
                    one = [Event(w, key_of(row) if w == "erase_keys" else row) for w, row in one]
                    now = after(now, one, key_of)
                    gone, came = (
                        set(before.values()) - {*now.values()},
                        set(now.values()) - {*before.values()},
                    )
                    expected |= {(*row, time): -1 for row in gone} | {(*row, time): 1 for row in came}
            except TwoRows:
                with pytest.raises(errors.KeyConflictError) as caught:
                    keyed_change(version, staged, times)
                assert caught.value.time >= time  # of the first key that is wrong
                continue
            change = keyed_change(version, staged, times)
            told = zip(*change.rows.tolist(), change.times.tolist(), change.signs.tolist(), strict=True)
            listed = [(row, sign) for *row, sign in told]
            assert {tuple(row): sign for row, sign in listed} == expected
            assert [row for row, _ in listed] == sorted(row for row, _ in listed)
            once = keyed_change(version, staged) if len(batch) == 1 else None
            if once is not None:
                version = version.advance(once.rows, once.signs)
            else:
                for time in range(len(batch)):
                    at = change.times == time
                    version = version.advance(change.rows[:, at].copy(), change.signs[at])
            rows = now
            version.check_invariants()
            assert set(zip(*(column.tolist() for column in version.columns()), strict=True)) == {
                *rows.values()
            }
            if rows:
                wanted = np.array([*rows, (7,) * len(key)], np.int64).T.copy()
                there, found = rows_of_keys(version, wanted)
                assert there.tolist() == [True] * len(rows) + [False]
                assert [*zip(*found[:, :-1].tolist(), strict=True)] == [*rows.values()]


def values_of(kind: Kind, arrow: pa.DataType) -> list[Any]:
    """Some that differ, also as the engine sees them."""
    return [value for value in kind.values(arrow) if str(value) != "-0.0"][:4]


OF_ALL_KINDS = [
    (kind, arrow)
    for kind in (*KINDS, *LISTS)
    for arrow in dict.fromkeys(kind.types)
    if values_of(kind, arrow)
]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("kind", "arrow"), OF_ALL_KINDS, ids=lambda each: str(each))
def test_a_key_may_be_of_any_type(kind: Kind, arrow: pa.DataType, wide: bool) -> None:
    values = values_of(kind, arrow)

    def table(numbers: list[int], note: str) -> pa.Table:
        keys = pa.array([values[number] for number in numbers], arrow)
        return pa.table({"note": pa.array([note] * len(numbers), pa.string()), "key": keys})

    everything = list(range(len(values)))
    with wide_relations(wide):
        workspace = Workspace()
        workspace.load("t", table(everything[:-1], "old"), key=["key"])
        assert workspace["t"].tuples.schema.wide == wide
        with workspace.transaction() as tx:
            tx.upsert("t", table([0, everything[-1]], "new"))
            tx.erase_keys(
                "t", table([1], "").select(["key"]) if len(values) > 2 else table([], "").select(["key"])
            )
        gone = {1} if len(values) > 2 else set()
        expected = dict.fromkeys(everything[:-1], "old") | {0: "new", everything[-1]: "new"}
        notes = [expected[number] for number in everything if number not in gone]
        found = workspace["t"].table
        places = [
            found["key"].to_pylist().index(pa.scalar(values[n], arrow).as_py())
            for n in everything
            if n not in gone
        ]
        assert [found["note"][place].as_py() for place in places] == notes
        assert found.num_rows == len(notes)
        two_rows = "relation 't': there are two rows of key key="
        with pytest.raises(errors.KeyConflictError, match=two_rows), workspace.transaction() as tx:
            tx.insert("t", table([0], "other"))
        with pytest.raises(errors.KeyConflictError, match=two_rows):
            Workspace().load("t", pa.concat_tables([table([0], "a"), table([0], "b")]), key=["key"])
        with workspace.transaction() as tx:
            tx.apply("t", table([0, everything[-1]], "fed").append_column("op", pa.array(["U", "D"])))
        assert sorted(workspace["t"].table["note"].to_pylist()) == ["fed", *["old"] * (len(notes) - 2)]
        workspace.check_invariants()


@pytest.mark.compiled
@pytest.mark.parametrize("wide", [False, True])
def test_an_upsert_of_few_rows_reads_few(wide: bool) -> None:
    """No index is built, what merging moves follows the change, and no array is as long as the relation."""
    n, k = 200_000, 20
    columns = {"v": list(range(n)), "id": list(range(n))} | (
        {f"c{i}": ["x"] * n for i in range(4)} if wide else {}
    )
    workspace = Workspace()
    workspace.load("t", columns, key=["id"])
    assert workspace["t"].tuples.schema.wide == wide
    rest = ["y"] * (4 if wide else 0)
    with workspace.transaction() as tx:  # what is made once
        tx.upsert("t", [(0, 0, *rest)])
    before = housekeeping.rows, housekeeping.built
    tracemalloc.start()
    for step in range(20):
        with workspace.transaction() as tx:
            tx.upsert("t", [(-step - 1, number * 9_000 + step, *rest) for number in range(k)])
        with workspace.transaction() as tx:
            tx.erase_keys("t", [(number * 9_000 + step,) for number in range(k)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert housekeeping.built == before[1]
    assert housekeeping.rows - before[0] < 40 * k * 40
    assert peak < 8 * n
    assert len(workspace["t"]) == n - 20 * k


def test_what_a_load_refuses() -> None:
    db = Database()
    rows = {"id": [1, 1, None], "v": [1, 2, 3]}
    with pytest.raises(
        errors.SourceError, match=r"key= names 'ids', and there is no such column; did you mean"
    ):
        db.load("t", rows, key=["ids"])
    with pytest.raises(errors.SourceError, match="key= names 'id' twice"):
        db.load("t", rows, key=["id", "id"])
    with pytest.raises(errors.SourceError, match="bag=True keeps equal rows, key= leaves none"):
        db.load("t", rows, key=["id"], bag=True)
    for nulls in ("refuse", "keep"):
        with pytest.raises(errors.NullError, match=r"'t', column 'id': NULL in row 2 .* a key has no NULL"):
            db.load("t", rows, key=["id"], nulls=nulls)  # type: ignore[arg-type]
    with pytest.raises(errors.KeyConflictError) as caught:
        db.load("t", rows, key=["id"], nulls="drop")
    assert str(caught.value) == (
        "relation 't': there are two rows of key id=1, (1, 1) and (1, 2): leave all but one out, or give"
        " another key"
    )
    with pytest.raises(ValueError, match=r"key is 'id'; it can be a list of columns, as \['id'\]"):
        db.load("t", rows, key="id")
    assert "t" not in db
    with pytest.warns(errors.EqualRowsWarning):
        db.load("t", {"id": [1, 1], "v": [1, 1]}, key=["id"])


def test_what_a_transaction_refuses() -> None:
    ws = Workspace()
    ws.load("t", {"id": [1, 2], "v": ["a", "b"]}, key=["id"], nulls="keep")
    ws.load("plain", {"id": [1]})
    with ws.transaction() as tx:
        for call in (tx.upsert, tx.erase_keys):
            with pytest.raises(errors.ChangeError, match="of 'plain', which has no key: load it with key="):
                call("plain", [(1,)])
        with pytest.raises(
            errors.ChangeError, match=r"'t', column 'id': NULL in row 0 .* the column is one of the key"
        ):
            tx.upsert("t", [(None, "x")])
        with pytest.raises(
            errors.ChangeError, match=r"'t', column 'id': NULL in row 1 .* the column is one of the key"
        ):
            tx.erase_keys("t", {"id": [1, None]})
        with pytest.raises(errors.ChangeError, match="no column 'v'"):
            tx.erase_keys("t", {"id": [1], "v": ["a"]})
        with pytest.raises(errors.ChangeError, match="int64"):
            tx.erase_keys("t", [("x",)])
        tx.upsert("t", [(2, None)])
        tx.erase_keys("t", [])
    assert sorted(ws["t"]) == [(1, "a"), (2, None)]
    before = ws["t"].table
    with pytest.raises(errors.KeyConflictError) as caught, ws.transaction() as tx:
        tx.insert("plain", [(7,)])
        tx.erase_keys("t", [(1,)])
        tx.insert("t", [(2, "c"), (3, "d")])
    assert str(caught.value) == (
        "relation 't': there are two rows of key id=2, (2, NULL) and (2, \"c\"): upsert() replaces the row of"
        " a key, erase_keys() takes it away"
    )
    assert ws["t"].table == before and sorted(ws["plain"]) == [(1,)]


def test_figures_of_a_transaction() -> None:
    ws = Workspace()
    ws.load("t", {"id": [1, 2, 3], "v": [1, 2, 3]}, key=["id"])
    with ws.transaction() as tx:
        tx.upsert("t", [(1, 10), (2, 2), (4, 4)])  # replaces, no change, comes
        tx.erase_keys("t", [(3,), (9,)])  # goes, is not there
    assert (tx.stats.inserted["t"], tx.stats.erased["t"], tx.stats.no_changes["t"]) == (2, 2, 2)


def test_operations_of_other_systems() -> None:
    """I, U, D; Debezium's, of which rows that go have their key alone; Delta's in any order."""
    day = datetime.date(2026, 1, 31)
    ws = Workspace()
    ws.load(
        "t",
        {"id": [1, 2, 3], "v": [Decimal("1.50"), Decimal("2.50"), None], "d": [day] * 3},
        key=["id"],
        nulls="keep",
    )
    columns = {"id": [1, 2, 4], "v": [Decimal("9.00"), None, Decimal("4.00")], "d": [day, None, day]}
    rows = {1: Decimal("9.00"), 3: None, 4: Decimal("4.00")}
    for words in (["U", "D", "I"], ["u", "d", "c"], ["r", "d", "r"]):
        again = Workspace()
        again.load("t", ws["t"], key=["id"], nulls="keep")
        with again.transaction() as tx:
            tx.apply("t", pa.table({"op": words, **columns}))
        assert {row[0]: row[1] for row in again["t"]} == rows, words
    with ws.transaction() as tx:
        tx.apply(
            "t",
            {
                "op": ["update_postimage", "insert", "update_preimage", "delete"],
                "id": [1, 9, 1, 3],
                "v": [Decimal("7.00"), None, Decimal("1.50"), None],
                "d": [day] * 4,
            },
        )
    assert {row[0]: row[1] for row in ws["t"]} == {1: Decimal("7.00"), 2: Decimal("2.50"), 9: None}
    with (
        pytest.raises(errors.ChangeError, match=r"the op of row 1 .* is 'x'; there are 'I', 'c', "),
        ws.transaction() as tx,
    ):
        tx.apply("t", {"op": ["I", "x"], "id": [5, 6], "v": [None, None], "d": [day, day]})
    with pytest.raises(errors.ChangeError, match=r"the op of row 0 .* is NULL"), ws.transaction() as tx:
        tx.apply("t", pa.table({"op": pa.nulls(1, pa.string()), "id": [5], "v": [Decimal(1)], "d": [day]}))
    with pytest.raises(errors.ChangeError, match="'d': NULL in row 1"), ws.transaction() as tx:
        ws.load("u", {"id": [1], "d": [day]}, key=["id"])
        tx.apply("u", {"op": ["D", "I"], "id": [1, 2], "d": pa.array([None, None], pa.date32())})


def test_operations_of_a_relation_without_a_key() -> None:
    ws = Workspace()
    ws.load("t", {"op": [1, 2, 3]})  # which has such a column itself
    with ws.transaction() as tx:
        tx.apply("t", {"op": [1, 2, 3, 4, 5], "op_": ["D", "update_preimage", "delete", "c", "r"]})
    assert sorted(ws["t"]) == [(4,), (5,)]
    with (
        pytest.raises(
            errors.ChangeError, match=r"op_ of row 0 .* is 'U', which replaces .* 't' has none: load it"
        ),
        ws.transaction() as tx,
    ):
        tx.apply("t", {"op": [1], "op_": ["U"]})


def test_the_key_of_events() -> None:
    version = version_of([(1, 2, 3)], ("b", "k"))
    assert keys_of("t", version.schema, np.array([[1], [2], [3]])).tolist() == [[3], [2]]
