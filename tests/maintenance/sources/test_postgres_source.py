"""Tables of a PostgreSQL as relations, against what the server itself selects."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lftj.errors import RejectedRowError, SourceError
from maintenance import Workspace
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.postgres import PostgresSource, postgres
from support.followed_edges import kept
from support.killed_pulls import KILLS, POINTS, SERVER_KILLS, Killer, Part, kill_at_random
from support.postgres_server import Server, running

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'lftj[postgres]'")

MODULE = "maintenance.sources.postgres"
TABLES = {"item": "id", "line": "a, b", "note": None}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running("wal_level=logical", "max_replication_slots=60", "max_wal_senders=60") as made:
        yield made


class Upstream:
    """A database of its own with tables, and what is done to them."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self.dsn = server.dsn.replace("dbname=postgres", f"dbname={name}")
        self.connect()
        self.run(
            "CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, price numeric(10, 2), t timestamptz);"
            "CREATE TABLE line (a bigint, b varchar(9), n smallint NOT NULL, PRIMARY KEY (b, a));"
            "CREATE TABLE note (x int, y text); ALTER TABLE note REPLICA IDENTITY FULL;"
            "INSERT INTO item VALUES (1, 'one', 1.5, '2024-05-06 07:08:09.25+02'), (2, '', NULL, NULL);"
            "INSERT INTO note VALUES (1, 'x'), (1, 'x'), (NULL, NULL);"
            "CREATE PUBLICATION p FOR TABLE item, line, note"
        )

    def connect(self) -> None:
        self.connection = psycopg.connect(self.dsn, autocommit=True)

    def run(self, query: str, *values: Any) -> Any:
        return self.connection.execute(query, values or None)

    def rows(self, table: str) -> Counter[tuple[Any, ...]]:
        return Counter(self.run(f"SELECT * FROM {table}").fetchall())

    def change(self, chosen: random.Random, n: int) -> None:
        """Transactions of a few statements, some of which are rolled back."""
        for _ in range(n):
            with contextlib.suppress(psycopg.Rollback), self.connection.transaction() as transaction:
                for _ in range(chosen.randrange(1, 6)):
                    self._statement(chosen)
                if chosen.random() < 0.1:
                    raise psycopg.Rollback(transaction)

    def _statement(self, chosen: random.Random) -> None:
        a, b, c = (chosen.randrange(20) for _ in range(3))
        self.run(*chosen.choice(self._statements(a, b, c)))

    @staticmethod
    def _statements(a: int, b: int, c: int) -> list[tuple[Any, ...]]:
        return [
            (
                "INSERT INTO item VALUES (%s, %s, %s, now())"
                " ON CONFLICT (id) DO UPDATE SET price = item.price + 1",
                *(a, f"n{b}", c),
            ),
            (
                "UPDATE item SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM item WHERE id = %s)",
                *(a, b, a),
            ),
            ("UPDATE item SET price = NULL, name = %s WHERE id < %s", f"'{c}\n", a),
            ("DELETE FROM item WHERE id = %s", a),
            ("INSERT INTO line VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", a, f"b{b % 4}", c),
            ("UPDATE line SET n = n + 1 WHERE a = %s", a),
            ("DELETE FROM line WHERE b = %s", f"b{c % 4}"),
            ("INSERT INTO note SELECT %s, %s FROM generate_series(1, %s)", a % 3, f"y{b % 3}", c % 4),
            ("UPDATE note SET y = NULL WHERE x = %s", a % 3),
            ("DELETE FROM note WHERE ctid = (SELECT min(ctid) FROM note)",),
        ]


@pytest.fixture
def upstream(server: Server, request: pytest.FixtureRequest) -> Iterator[Upstream]:
    number = server.__dict__.setdefault("databases", iter(range(1000)))
    made = Upstream(server, f"d{next(number)}")
    yield made
    with contextlib.suppress(psycopg.Error):
        made.connection.close()


def source(upstream: Upstream, **options: Any) -> PostgresSource:
    return postgres(upstream.dsn, "p", slot=f"slot_{upstream.name}", **options)


def pulled(workspace: Workspace, made: PostgresSource) -> int:
    return sum(1 for _ in made.pull(workspace, timeout=0))


def is_equal(workspace: Workspace, upstream: Upstream) -> None:
    for table in TABLES:
        assert kept(workspace, table) == upstream.rows(table), table


def test_tables_follow_what_is_done_to_them(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, workspace, made = random.Random(3), Workspace(), source(upstream)
    assert pulled(workspace, made) == 1  # the rows that are there, of all tables, in one commit
    is_equal(workspace, upstream)
    assert workspace.base_version("item").schema.key == ("id",)
    workspace.install("worth[] = sum(p) <- item(price: p), p is not null.")
    workspace.install("names[n] = count() <- item(name: n).")
    for _ in range(12):
        upstream.change(chosen, 8)
        assert pulled(workspace, made) >= 1
        is_equal(workspace, upstream)
    assert pulled(workspace, made) == 0
    workspace.verify()
    again = Workspace()
    monkeypatch.setattr("maintenance.sources.postgres_rows._PIECE_BYTES", 20)  # the snapshot is many pieces
    assert pulled(again, postgres(upstream.dsn, "p", slot=f"again_{upstream.name}")) == 1
    is_equal(again, upstream)


def test_a_transaction_is_never_split_and_some_that_wait_are_one_commit(upstream: Upstream) -> None:
    workspace, made = Workspace(), source(upstream, batch_rows=10)
    pulled(workspace, made)
    for n in range(4):
        upstream.run("INSERT INTO line SELECT i, %s, 0 FROM generate_series(1, 7) i", f"s{n}")
    upstream.run("INSERT INTO line SELECT i, 'much', 0 FROM generate_series(1, 5000) i")
    sizes = [tx.stats.inserted["line"] for tx in made.pull(workspace, timeout=0)]
    assert sum(sizes) == 5028 and sizes[-1] >= 5000
    assert all(size % 7 == 0 for size in sizes[:-1]) and (sizes[-1] - 5000) % 7 == 0
    is_equal(workspace, upstream)


@pytest.mark.in_turns
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_point_nothing_is_lost_or_doubled(
    lives: Killer, upstream: Upstream, tmp_path: Path, point: str
) -> None:
    """The first lives are about the beginning: a mark, the slot with its snapshot, the rows."""
    chosen, folder = random.Random(point), tmp_path / "ws"
    part = Part(MODULE, [upstream.dsn, "p"], {"slot": f"slot_{upstream.name}", "batch_rows": 20})
    for time in (1, 2, 2, 3, 2, 1):
        code = lives.life(folder, [part], f"{point}:{time}")
        assert code in (0, -signal.SIGKILL)
        upstream.change(chosen, 15)
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        is_equal(workspace, upstream)
        assert pulled(workspace, source(upstream)) == 0


def test_killed_at_random_while_the_server_goes_on(lives: Killer, upstream: Upstream, tmp_path: Path) -> None:
    folder, stop = tmp_path / "ws", threading.Event()
    part = Part(MODULE, [upstream.dsn, "p"], {"slot": f"slot_{upstream.name}"})
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        workspace.install("many[n] = count() <- line(b: n).")

    def write() -> None:
        chosen = random.Random(5)
        while not stop.is_set():
            upstream.change(chosen, 3)
            stop.wait(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        codes = list(kill_at_random(lives, folder, [part], 3, 0.25))
    finally:
        stop.set()
        writer.join()
    assert len(codes) == KILLS and -signal.SIGKILL in codes
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        is_equal(workspace, upstream)
        workspace.verify()


def test_a_server_that_is_killed_and_comes_back(server: Server, upstream: Upstream, tmp_path: Path) -> None:
    chosen, made = random.Random(8), source(upstream)
    with Workspace.open(tmp_path / "ws") as workspace:
        pulled(workspace, made)
        for _ in range(SERVER_KILLS):
            upstream.change(chosen, 10)
            timer = threading.Timer(chosen.uniform(0, 0.15), server.kill)
            timer.start()
            with pytest.raises(SourceError, match="pull again, it goes on behind the cursor"):
                for _ in made.pull(workspace):
                    pass
            timer.join()
            with pytest.raises(SourceError, match="pull again"):
                pulled(workspace, made)
            server.start()
            upstream.connect()
            upstream.change(chosen, 10)
            pulled(workspace, made)
            is_equal(workspace, upstream)


def test_all_types_come_as_the_server_has_them(upstream: Upstream) -> None:
    upstream.run(
        "CREATE TYPE mood AS ENUM ('sad', 'glad');"
        "CREATE TABLE kind (id uuid PRIMARY KEY, b bool, i2 smallint, i4 int, i8 bigint, f4 real, f8 float8,"
        " n numeric(38, 10), t text, v varchar(9), c char(4), d date, ts timestamp, tz timestamptz, y bytea,"
        " m mood, u uuid, whole numeric, j jsonb, twice bigint GENERATED ALWAYS AS (i8 / 2) STORED);"
        "CREATE PUBLICATION k FOR TABLE kind"
    )
    types = {"kind.whole": pa.decimal128(20, 3)}
    made = postgres(upstream.dsn, "k", slot=f"k_{upstream.name}", types=types)
    insert = f"INSERT INTO kind VALUES (gen_random_uuid(), {', '.join(['%s'] * 17)})"
    row = [True, -(2**15), -(2**31), -(2**63) + 1, 0.1, 1e300, "-1234567890123456789012345678.0123456789"]
    row += ['é "\\,\n', "", "ab", "0001-01-01", "9999-12-31 23:59:59.999999", "2024-03-31 02:30:00.5+05:30"]
    row += [b"\0\xff\n", "glad", "6f1b2c3d-0000-0000-0000-0123456789ab", "-17.125"]
    rows = [row, [False, *[None] * 16]]
    upstream.run(insert, *rows[0])
    workspace = Workspace()
    for each in (None, *rows):
        if each is not None:
            upstream.run(insert, *each)
        pulled(workspace, made)
        columns = [name for name in workspace["kind"].column_names if name != "j"]
        as_text = {"id": "id::text", "u": "u::text", "f4": "f4::float8"}
        shown = ", ".join(as_text.get(name, name) for name in columns)
        wanted = upstream.run(f"SELECT {shown} FROM kind").fetchall()
        found = [tuple(one[name] for name in columns) for one in workspace["kind"].to_arrow().to_pylist()]
        assert Counter(found) == Counter(wanted)
    assert "twice" not in columns


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_values_set_apart_that_an_update_does_not_touch(upstream: Upstream, identity: str) -> None:
    upstream.run(
        "CREATE TABLE doc (id int, part text, body text, more text, n int, PRIMARY KEY (id, part));"
        "ALTER TABLE doc ALTER body SET STORAGE EXTERNAL, ALTER more SET STORAGE EXTERNAL;"
        f"ALTER TABLE doc REPLICA IDENTITY {identity};"
        "CREATE PUBLICATION k FOR TABLE doc;"
        "INSERT INTO doc SELECT i, 'a', repeat(i::text, 9000), NULL, 0 FROM generate_series(1, 4) i"
    )
    workspace, made = Workspace(), postgres(upstream.dsn, "k", slot=f"k_{upstream.name}")
    pulled(workspace, made)
    upstream.run("UPDATE doc SET n = 1")
    upstream.run("INSERT INTO doc VALUES (9, 'b', repeat('x', 9000), repeat('y', 9000), 0)")
    upstream.run("UPDATE doc SET n = n + 1, more = repeat('z', 5000) WHERE id IN (2, 9)")
    upstream.run("UPDATE doc SET n = n + 1 WHERE id IN (2, 9)")
    upstream.run("UPDATE doc SET id = id + 100 WHERE id IN (3, 9)")
    upstream.run("UPDATE doc SET body = NULL WHERE id = 4")
    upstream.run("UPDATE doc SET n = 7 WHERE id = 4")
    assert pulled(workspace, made) >= 1
    assert kept(workspace, "doc") == upstream.rows("doc")
    upstream.run("UPDATE doc SET n = n + 1, part = 'c'")
    pulled(workspace, made)
    assert kept(workspace, "doc") == upstream.rows("doc")


def test_what_a_publication_leaves_out_is_not_there(upstream: Upstream) -> None:
    upstream.run(
        "CREATE TABLE parted (id int, day date, n int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);"
        "CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');"
        "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');"
        "INSERT INTO parted SELECT i, '2024-01-15'::date + i, i FROM generate_series(1, 30) i;"
        "CREATE TABLE above (id int PRIMARY KEY, n int, hidden text); CREATE TABLE below () INHERITS (above);"
        "INSERT INTO above SELECT i, i, 'x' FROM generate_series(1, 9) i;"
        "INSERT INTO below VALUES (100, 9, 'y');"
        "CREATE PUBLICATION k FOR TABLE parted, ONLY above (id, n) WHERE (id > 4)"
        " WITH (publish_via_partition_root = true)"
    )
    workspace, made = Workspace(), postgres(upstream.dsn, "k", slot=f"k_{upstream.name}")
    for statement in (
        "SELECT 1",
        "UPDATE above SET id = id + 1000 WHERE id % 3 = 0",
        "UPDATE above SET id = id - 1000, n = 0 WHERE id > 1000",
        "UPDATE parted SET day = day + 14 WHERE id < 10",
        "DELETE FROM parted WHERE id % 2 = 0",
    ):
        upstream.run(statement)
        pulled(workspace, made)
        assert kept(workspace, "parted") == upstream.rows("parted")
        wanted = upstream.run("SELECT id, n FROM ONLY above WHERE id > 4").fetchall()
        assert kept(workspace, "above") == Counter(wanted)
    assert set(workspace) == {"parted", "above"}


def test_values_that_can_not_be_taken_stop_or_are_set_aside(upstream: Upstream) -> None:
    workspace, made = Workspace(), source(upstream)
    pulled(workspace, made)
    upstream.run("INSERT INTO item VALUES (5, 'a', 1, NULL), (6, 'b', 'NaN', NULL), (7, 'c', 1, 'infinity')")
    with pytest.raises(RejectedRowError, match=r"1 more .*item, column 'price': 'NaN' is not dec") as raised:
        pulled(workspace, made)
    assert raised.value.part == f"slot_{upstream.name}" and raised.value.position > 0
    assert 5 not in {row[0] for row in workspace["item"]}
    patient = source(upstream, on_error="set aside")
    assert pulled(workspace, patient) >= 1
    assert {row[0] for row in workspace["item"]} == {1, 2, 5}
    aside = workspace["p_aside"].to_arrow().to_pylist()
    assert sorted(row["text"].split(", ")[0] for row in aside) == ["6", "7"]
    assert min(row["position"] for row in aside) == raised.value.position
    upstream.run("DELETE FROM item WHERE id = 6")
    upstream.run("UPDATE item SET t = NULL WHERE id = 7")
    assert pulled(workspace, patient) >= 1
    is_equal(workspace, upstream)


def test_what_a_rule_refuses_is_left_out_of_its_transaction(upstream: Upstream) -> None:
    workspace, made = Workspace(), source(upstream)
    pulled(workspace, made)
    workspace.install("by(i, d) <- item(i, _, _, _), d = 10 / (i - 6).")
    upstream.run("INSERT INTO item VALUES (5, 'a', 1, NULL), (6, 'b', 1, NULL); UPDATE item SET name = 'z'")
    with pytest.raises(RejectedRowError, match=r"(?s)table public.item, .*zero.*'6, b") as raised:
        pulled(workspace, made)
    assert 5 not in {row[0] for row in workspace["item"]}
    patient = source(upstream, on_error="set aside")
    assert pulled(workspace, patient) >= 1
    assert {row[0] for row in workspace["item"]} == {1, 2, 5}
    aside = workspace["p_aside"].to_arrow().sort_by("position").to_pylist()
    assert [row["text"].split(", ")[:2] for row in aside] == [["6", "b"], ["6", "z"]]
    assert aside[0]["position"] == raised.value.position
    upstream.run("DELETE FROM item WHERE id = 6")
    assert pulled(workspace, patient) >= 1
    is_equal(workspace, upstream)


REFUSED = {
    "TRUNCATE note": "table public.note was truncated",
    "ALTER TABLE item ADD extra int; INSERT INTO item VALUES (50, 'n')": "item .*has a new column 'extra'",
    "ALTER TABLE item DROP price; INSERT INTO item VALUES (50, 'n')": "item .*its column 'price' is gone",
    "ALTER TABLE line ALTER n TYPE int; INSERT INTO line VALUES (5, 'n', 1)": "'n' is of another type",
    "ALTER TABLE item DROP CONSTRAINT item_pkey, ADD PRIMARY KEY (name);"
    " UPDATE item SET price = 9": "item was altered: its key",
    "CREATE TABLE fresh (i int PRIMARY KEY); ALTER PUBLICATION p ADD TABLE fresh;"
    " INSERT INTO fresh VALUES (1)": "public.fresh is new in the publication",
}


@pytest.mark.parametrize("statement", list(REFUSED))
def test_what_no_change_says_stops_behind_what_came_before(upstream: Upstream, statement: str) -> None:
    workspace, made = Workspace(), source(upstream)
    pulled(workspace, made)
    upstream.run("INSERT INTO line VALUES (1, 'before', 1)")
    wanted = upstream.rows("line")
    loop = made.pull(workspace)
    assert next(loop).stats.inserted["line"] == 1
    upstream.run(statement)
    with pytest.raises(SourceError, match=f"{REFUSED[statement]}.*restart"):
        next(loop)
    with pytest.raises(SourceError, match="restart"):
        pulled(workspace, made)
    assert kept(workspace, "line") == wanted


def test_a_restart_takes_what_is_different(upstream: Upstream) -> None:
    workspace, made = Workspace(), source(upstream)
    pulled(workspace, made)
    workspace.install("names(n) <- item(name: n).")
    upstream.run("TRUNCATE note; INSERT INTO item VALUES (9, 'nine'); DELETE FROM item WHERE id = 1")
    with pytest.raises(SourceError, match="truncated"):
        pulled(workspace, made)
    made.restart(workspace)
    (tx,) = made.pull(workspace, timeout=0)
    found = {row["n"]: row["weight"] for row in tx.changes["names"].to_pylist()}
    assert found == {"nine": 1, "one": -1}
    is_equal(workspace, upstream)
    upstream.change(random.Random(1), 5)
    pulled(workspace, made)
    is_equal(workspace, upstream)


def test_what_can_not_be_followed_is_refused_by_name(upstream: Upstream) -> None:
    def refused(match: str, publication: str, **options: Any) -> None:
        made = postgres(upstream.dsn, publication, slot=f"r_{upstream.name}", **options)
        with pytest.raises(SourceError, match=match):
            pulled(Workspace(), made)

    upstream.run(
        "CREATE TABLE bare (x int); CREATE PUBLICATION bare FOR TABLE bare;"
        "CREATE TABLE nothing (x int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING;"
        "CREATE PUBLICATION nothing FOR TABLE nothing;"
        "CREATE TABLE exact (x int PRIMARY KEY, n numeric); CREATE PUBLICATION exact FOR TABLE exact;"
        "CREATE TABLE place (x int PRIMARY KEY, p point); CREATE PUBLICATION place FOR TABLE place;"
        "CREATE PUBLICATION part FOR TABLE item WITH (publish = 'insert'); CREATE PUBLICATION empty;"
        "CREATE SCHEMA other; CREATE TABLE other.item (x int PRIMARY KEY);"
        "CREATE PUBLICATION two FOR TABLE item, other.item"
    )
    refused("table public.bare has no key .*REPLICA IDENTITY FULL", "bare")
    refused("table public.nothing has no key", "nothing")
    refused(r"public.exact, column 'n' is of type numeric.*types=\{'exact.n'", "exact")
    refused("column 'p' is of type point", "place")
    refused("does not publish all of insert, update and delete", "part")
    refused("has no tables", "empty")
    refused("there is no publication 'none'", "none")
    refused("two tables would be relation 'item'", "two")
    with pytest.raises(SourceError, match="source 'p': ") as raised:
        pulled(Workspace(), postgres(f"{upstream.dsn} password=secret port=1", "p"))
    assert "secret" not in str(raised.value) + repr(source(upstream))


def test_a_cursor_that_is_not_of_the_slot_is_refused_by_name(upstream: Upstream, server: Server) -> None:
    workspace, made = Workspace(), source(upstream)
    pulled(workspace, made)
    with pytest.raises(SourceError, match="is not this workspace's"):
        pulled(Workspace(), made)
    with pytest.raises(SourceError, match=r"cursor is of server .*slot slot_.*read that one"):
        pulled(workspace, postgres(upstream.dsn, "p", slot="another"))
    upstream.run("INSERT INTO note VALUES (7, 'lost')")
    upstream.run("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", made.slot)
    with pytest.raises(SourceError, match=r"slot .* is at .*was given to another.*restart\(\) begins anew"):
        pulled(workspace, made)
    made.restart(workspace)
    pulled(workspace, made)
    is_equal(workspace, upstream)
    upstream.run("SELECT pg_drop_replication_slot(%s)", made.slot)
    with pytest.raises(SourceError, match="is gone, and changes with it"):
        pulled(workspace, made)
    made.restart(workspace)
    pulled(workspace, made)
    cursor = Cursor(workspace, "p")
    (part, place), *_ = cursor.places.items()
    with workspace.transaction() as tx:
        cursor.stage(tx, {part: Place(place.position + 2**40, place.mark)})
    with pytest.raises(SourceError, match="put back from a copy"):
        pulled(workspace, made)


def test_relations_that_are_there_have_to_fit(upstream: Upstream) -> None:
    workspace, made = Workspace(), source(upstream)
    workspace.load("item", {"id": [1], "name": ["x"]})
    with pytest.raises(SourceError, match=r"relation 'item' has .*load it anew"):
        pulled(workspace, made)
    types = {"id": pa.int32(), "name": pa.string(), "price": pa.decimal128(10, 2)}
    schema = pa.schema({**types, "t": pa.timestamp("us", "UTC")})
    workspace.load("item", schema.empty_table(), nulls="keep")
    with pytest.raises(SourceError, match=r"to be loaded anew, empty, with key=\['id'\]"):
        pulled(workspace, made)
    row = pa.Table.from_pylist([{"id": 8, "name": "own"}], schema)
    workspace.load("item", row, nulls="keep", key=["id"])
    with pytest.raises(SourceError, match="has rows already, and no cursor says"):
        pulled(workspace, made)
    made.restart(workspace)
    pulled(workspace, made)
    is_equal(workspace, upstream)


def test_names_may_have_anything_in_them(upstream: Upstream) -> None:
    table = '"od\'d"."my ""table"""'
    upstream.run(
        f"""CREATE SCHEMA "od'd"; CREATE TABLE {table} ("Id x" int PRIMARY KEY, "select" text);
        INSERT INTO {table} VALUES (1, 'a'); CREATE PUBLICATION "p'""; q" FOR TABLE {table}"""
    )
    slot, relations = f"q_{upstream.name}", {'od\'d.my "table"': "mine"}
    made = postgres(upstream.dsn, "p'\"; q", slot=slot, relations=relations, name="q")
    workspace = Workspace()
    pulled(workspace, made)
    upstream.run(f"""UPDATE {table} SET "Id x" = 2, "select" = 'b'""")
    pulled(workspace, made)
    assert workspace["mine"].to_arrow().to_pylist() == [{"Id_x": 2, "select": "b"}]
    with pytest.raises(SourceError, match="the server says"):
        pulled(Workspace(), postgres(upstream.dsn, "p", slot="no'\" such"))


def test_what_is_not_for_us_moves_the_slot_on(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintenance.sources.postgres_slot.IDLE_BYTES", 1000)
    monkeypatch.setattr("maintenance.sources.postgres.IDLE_BYTES", 1000)
    workspace, made = Workspace(), source(upstream)
    pulled(workspace, made)
    before = Cursor(workspace, "p").places
    upstream.run("CREATE TABLE elsewhere AS SELECT i FROM generate_series(1, 1000) i")
    assert pulled(workspace, made) == 0
    after = Cursor(workspace, "p").places
    assert [b.position > a.position for a, b in zip(before.values(), after.values(), strict=True)] == [True]
    pulled(workspace, made)
