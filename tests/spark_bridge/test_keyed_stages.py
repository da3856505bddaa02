"""oracle: relations with a key in the stages of a maintained program, against a dictionary, without Spark.

Batches upsert, erase by key, and change whole rows, of which some are refused; tasks are run twice, worker
processes end, and what is written is read again (support/stage_pipeline.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from unittest import mock

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from lftj import errors
from spark_bridge.cells.signed_tables import events
from spark_bridge.placing.placing import InputNulls
from spark_bridge.stages import worker as stage_worker
from support.cell_pipeline import random_grids
from support.keyed_model import Event, Key, Row, TwoRows, after
from support.rows import rows_of
from support.small_limits import wide_relations
from support.stage_pipeline import StagePipeline
from support.strategies import any_row

RULE = """
    busy[c] = count() <- orders(customer: c), customers(c).
    pair(i, j, c) <- orders(customer: c, id: i), orders(customer: c, id: j), i < j.
    out(i, j, n) <- pair(i, j, c), busy[c] = n.
"""
SCHEMA = pa.schema(
    [("customer", pa.string()), ("id", pa.int64()), ("part", pa.string()), ("note", pa.float64())]
)
CUSTOMERS = [(name,) for name in ("Ann", "Bo", "Cy")]
KEYS = {"orders": ("part", "id")}


def key_of(row: Row) -> Key:
    return row[2], row[1]


def out(orders: set[Row]) -> set[Row]:
    """By brute force; NULL joins nothing."""
    busy = {c: sum(row[0] == c for row in orders) for (c,) in CUSTOMERS}
    return {
        (one[1], two[1], busy[one[0]])
        for one in orders
        for two in orders
        if one[0] == two[0] and one[0] is not None and one[1] < two[1] and busy.get(one[0])
    }


def table_of(schema: pa.Schema, rows: list[Row]) -> pa.Table:
    columns = [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def batch_of(said: list[Event]) -> pa.Table:
    """As Spark's DataFrames give it to the tasks."""
    rows: list[Row] = []
    for what, row in said:
        if what == "erase_keys":
            rows.append((None, row[1], row[0], None, True, 0))
        else:
            rows.append((*row, what == "upsert", -1 if what == "erase" else 1))
    return table_of(events(SCHEMA), rows)


def random_events(random: Random, rows: dict[Key, Row]) -> list[Event]:
    """At most one upsert or erasure of each key, and whole rows of others."""
    row = lambda: (  # noqa: E731
        random.choice(("Ann", "Bo", "Cy", None)),
        random.randrange(6),
        random.choice(("", "é")),
        random.choice((0.5, None)),
    )
    said, resets = [], set()
    for one in [row() for _ in range(random.choice((1, 2, 5, 12)))]:
        if key_of(one) in resets:
            continue
        what = random.choice(("upsert", "upsert", "erase_keys", "insert", "erase", "replace"))
        if what in ("upsert", "erase_keys"):
            said = [each for each in said if each.what == "erase_keys" or key_of(each.row) != key_of(one)]
            resets.add(key_of(one))
            event = Event(what, key_of(one) if what == "erase_keys" else one)
            said += [event] * random.choice((1, 1, 2))
        elif what == "replace" and key_of(one) in rows:
            said += [Event("erase", rows[key_of(one)]), Event("insert", one)]
        elif what != "replace":
            said.append(Event(what, one))
    return said


class Followed:
    def __init__(self, path: Path, partitions: int, seed: int, nulls: InputNulls = "keep") -> None:
        self.rows: dict[Key, Row] = {("é", 1): ("Ann", 1, "é", None), ("", 2): ("Ann", 2, "", 0.5)}
        tables = {
            "orders": table_of(SCHEMA, [*self.rows.values()]),
            "customers": pa.table({"name": [name for (name,) in CUSTOMERS]}),
        }
        self.pipeline = StagePipeline(
            RULE, tables, path, partitions, random_grids, Random(seed), nulls=nulls, keys=KEYS
        )

    def apply(self, said: list[Event]) -> bool:
        """Apply a batch; whether it was taken."""
        before, manifest = out({*self.rows.values()}), self.pipeline.manifest
        try:
            rows = after(self.rows, said, key_of)
        except TwoRows:
            with pytest.raises(errors.KeyConflictError, match="'orders': there are two rows of key part="):
                self.pipeline.apply({"orders": batch_of(said)})
            assert self.pipeline.manifest is manifest
            return False
        found = rows_of(self.pipeline.apply({"orders": batch_of(said)}))
        now = out({*rows.values()})
        assert {row[:-1] for row in found if row[-1] == 1} == now - before
        assert {row[:-1] for row in found if row[-1] == -1} == before - now
        assert len(found) == len(now ^ before)
        self.rows = rows
        return True

    def check(self) -> None:
        assert any_row(set(rows_of(self.pipeline.table()))) == out({*self.rows.values()})
        assert sorted(map(str, rows_of(self.pipeline.relation("orders")))) == sorted(
            map(str, self.rows.values())
        )
        assert self.pipeline.rows["orders"] == len(self.rows)


@pytest.fixture(params=[0, 1, 32])
def most_logged(request: pytest.FixtureRequest) -> Iterator[int]:
    with mock.patch.object(stage_worker, "MOST_LOGGED", request.param):
        yield request.param


@pytest.mark.in_turns
def test_oracle_batches_by_key(tmp_path: Path, most_logged: int) -> None:
    taken = []
    for seed in {0: (0, 1), 1: (0,), 32: (1,)}[most_logged]:
        random = Random(f"{most_logged} {seed}")
        with wide_relations(seed == 1):
            followed = Followed(tmp_path / str(seed), random.choice((1, 2, 4)), seed)
            followed.check()
            for _ in range(10):
                taken.append(followed.apply(random_events(random, followed.rows)))
                followed.check()
                if random.randrange(4) == 0:
                    followed.pipeline.lose_engines()
            followed.pipeline.check_files()
    assert {*taken} == {True, False}


def batch(*rows: Row, schema: pa.Schema = SCHEMA) -> dict[str, pa.Table]:
    return {"orders": table_of(events(schema), [*rows])}


REFUSED: tuple[tuple[dict[str, pa.Table], type[Exception], str], ...] = (
    (
        batch(("Bo", 1, "é", None, False, 1)),
        errors.KeyConflictError,
        r'two rows of key part="é", id=1, \("Ann", 1, "é", NULL\) and \("Bo", 1, "é", NULL\)',
    ),
    (
        batch(("Bo", 7, "é", None, True, 1), ("Cy", 7, "é", None, True, 1)),
        errors.ChangeError,
        r"several of key part=\"é\", id=7 are in a batch, whose rows have no order: leave the last one",
    ),
    (
        batch(("Bo", 7, "é", None, True, 1), (None, 7, "é", None, True, 0)),
        errors.ChangeError,
        "several of key",
    ),
    (
        batch(("Bo", 7, "é", None, True, 1), ("Bo", 7, "é", None, False, 1)),
        errors.ChangeError,
        "several of key",
    ),
    (
        batch(("Bo", None, "é", None, True, 1)),
        errors.NullError,
        "column 'id': NULL, and the column is one of",
    ),
    (batch((None, 1, None, None, True, 0)), errors.NullError, "column 'part': NULL"),
    (batch(("Bo", 1, "é", None, False, None)), errors.NullError, "every change has a weight"),
    (batch(("Bo", 1, "é", None, None, None)), errors.ChangeError, "an op is NULL or none of I, c, insert"),
)


@pytest.mark.in_turns
@pytest.mark.parametrize(("changes", "kind", "message"), REFUSED, ids=[each[2] for each in REFUSED])
def test_what_is_refused(
    changes: dict[str, pa.Table], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    followed = Followed(tmp_path, 3, 0)
    manifest = followed.pipeline.manifest
    with pytest.raises(kind, match=message):
        followed.pipeline.apply(changes)
    assert followed.pipeline.manifest is manifest
    assert followed.apply([Event("upsert", ("Bo", 1, "é", None))])
    followed.check()


def test_a_second_row_of_a_key_is_refused_from_the_start(tmp_path: Path) -> None:
    with (
        mock.patch.dict(KEYS, orders=("customer",)),
        pytest.raises(errors.KeyConflictError, match='customer="Ann"'),
    ):
        Followed(tmp_path, 2, 0)


def test_of_a_relation_without_null_a_key_is_erased_by_itself(tmp_path: Path) -> None:
    """What else the row has is not asked for; other rows without a value are left out, or refused."""
    full = pa.table({"a": [1, 2], "b": [5, 6]})

    def pipeline(name: str, nulls: InputNulls) -> StagePipeline:
        return StagePipeline(
            "h(a, b) <- r(a, b).",
            {"r": full},
            tmp_path / name,
            2,
            random_grids,
            Random(1),
            nulls=nulls,
            keys={"r": ("a",)},
        )

    def changes(*rows: Row) -> dict[str, pa.Table]:
        return {"r": table_of(events(full.schema), [*rows])}

    refusing, dropping = pipeline("refuse", "refuse"), pipeline("drop", "drop")
    for each in (refusing, dropping):
        each.apply(changes((1, None, True, 0)))
        assert rows_of(each.table()) == [(2, 6)]
    with pytest.raises(errors.NullError):
        refusing.apply(changes((2, None, True, 1)))
    dropping.apply(changes((2, None, True, 1), (None, 3, True, 1), (None, None, True, 0), (2, 7, True, 1)))
    assert rows_of(dropping.table()) == [(2, 7)]
