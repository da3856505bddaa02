"""Heads kept elsewhere: what a sink holds is the head, through kills of any part."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lftj.errors import SinkError, UnknownRelationError
from maintenance import Workspace
from maintenance.sinks.kafka import to_kafka
from maintenance.sinks.parquet import to_parquet
from maintenance.sinks.postgres import to_postgres
from maintenance.sources.files import files
from maintenance.sources.kafka import kafka
from maintenance.store.fault_points import FOLDER_POINTS, MESSAGE_POINTS, SINK_POINTS
from maintenance.workspace.follower import Follower
from support.followed_edges import change, pushed
from support.kafka_cluster import Cluster
from support.kafka_cluster import running as running_kafka
from support.killed_pulls import KILLS, SERVER_KILLS, Killer, Part, kill_at_random
from support.postgres_server import Server, running

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'lftj[postgres]'")

RULES = "n[a] = count() <- edge(a, _).  pair(a, c) <- edge(a, b), edge(b, c)."


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as made:
        yield made


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_kafka() as made:
        yield made


@pytest.fixture
def table(request: pytest.FixtureRequest) -> str:
    return f"t{abs(hash(request.node.name))}"


def edges(workspace: Workspace) -> None:
    workspace.load("edge", {"a": [1, 2], "b": [2, 3]})
    workspace.install(RULES)


def rows_of(server: Server, table: str) -> Counter[tuple[Any, ...]]:
    with psycopg.connect(server.dsn) as connection:
        return Counter(connection.execute(f"SELECT * FROM {table}").fetchall())


def head(workspace: Workspace, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in workspace[name].to_arrow().to_pylist())


@pytest.mark.parametrize("name", ["n", "pair"])
def test_a_table_of_postgres_is_the_head(server: Server, table: str, name: str) -> None:
    chosen, workspace = random.Random(name), Workspace()
    edges(workspace)
    sink = to_postgres(server.dsn, name, table)
    assert pushed(workspace, sink) == 1
    for _ in range(15):
        for _ in range(chosen.randrange(1, 4)):
            change(workspace, chosen, nodes=9)
        assert pushed(workspace, sink) <= 1  # what waits is one transaction there
        assert rows_of(server, table) == head(workspace, name)
    with psycopg.connect(server.dsn) as connection:
        found = connection.execute("SELECT version FROM lftj_sinks WHERE sink = %s", [f"public.{table}"])
        assert found.fetchone()[0] <= workspace.version
        assert f"public.{table}" in repr(sink) and server.dsn not in repr(sink)


def test_rows_of_all_types_and_as_often_as_they_are_there(server: Server, table: str) -> None:
    values: dict[str, list[Any]] = {
        "i": [1, None, 1, 2],
        "s": ["", None, "", 'q", \\ \n'],
        "f": [0.1, None, 0.1, float("inf")],
        "y": [b"\0\xff", None, b"\0\xff", b""],
        "b": [True, None, True, False],
    }
    types = {"i": pa.int16(), "s": pa.string(), "f": pa.float64(), "y": pa.binary(), "b": pa.bool_()}
    rows = pa.table(values, pa.schema(types))
    texts = {
        "d": pa.decimal128(9, 2),
        "day": pa.date32(),
        "t": pa.timestamp("us"),
        "z": pa.timestamp("ms", "UTC"),
    }
    given = {"d": "-1.25", "day": "2024-02-29", "t": "1024-02-29 01:02:03.5", "z": "2024-02-29 01:02:03.25Z"}
    for name, type_ in texts.items():
        rows = rows.append_column(name, pa.array([given[name], None, given[name], None]).cast(type_))
    workspace = Workspace()
    workspace.load("r", rows, bag=True, nulls="keep")
    pytest.importorskip("duckdb")
    workspace.create_view("v", "SELECT i, s, f, y, b, d, day, t, z FROM r")
    sink = to_postgres(server.dsn, "v", table)
    for step in range(4):
        if step == 1:
            with workspace.transaction() as tx:
                tx.erase("r", rows.slice(1, 2))
        elif step == 2:
            with workspace.transaction() as tx:
                tx.insert("r", pa.concat_tables([rows, rows]))
        elif step == 3:
            with workspace.transaction() as tx:
                tx.erase("r", pa.concat_tables([rows, rows]))
        pushed(workspace, sink)
        assert rows_of(server, table) == head(workspace, "v")
        assert head(workspace, "v").total() == [4, 2, 10, 2][step]


PARTS = [("postgres", point) for point in (*SINK_POINTS, *FOLDER_POINTS[:2])]
PARTS += [(name, point) for name in ("delta", "kafka", "parquet") for point in SINK_POINTS]


def part_of(name: str, server: Server, cluster: Cluster, table: str, folder: Path) -> Part:
    arguments = {"postgres": [server.dsn, "pair", table], "kafka": [cluster.servers, "pair", table]}
    return Part(f"maintenance.sinks.{name}", arguments.get(name, [str(folder / "out"), "pair"]))


def held(name: str, server: Server, cluster: Cluster, table: str, folder: Path) -> Counter[tuple[Any, ...]]:
    """What a reader of the sink has."""
    if name == "postgres":
        return rows_of(server, table)
    if name == "delta":
        found = DeltaTable(folder / "out").to_pyarrow_table().to_pylist()
        return Counter(tuple(row.values()) for row in found)
    if name == "parquet":
        workspace = Workspace()
        workspace.load("pair", {"a": [0], "c": [0]}, bag=True)
        with workspace.transaction() as tx:
            tx.erase("pair", [(0, 0)])
        pushed_files = files(folder / "out", "pair")
        for _ in pushed_files.pull(workspace, timeout=0):
            pass
        return Counter(workspace["pair"])
    there: Counter[tuple[Any, ...]] = Counter()
    once = {}
    for key, value in cluster.messages(table):
        assert once.setdefault(key, value) == value  # the same row under the same key
    for value in once.values():
        there[value["a"], value["c"]] += 1 if value["op"] == "I" else -1
    assert min(there.values(), default=0) >= 0
    return +there


@pytest.mark.in_turns
@pytest.mark.parametrize(("name", "point"), PARTS)
def test_killed_at_each_point_the_sink_is_the_head(
    lives: Killer, server: Server, cluster: Cluster, table: str, tmp_path: Path, name: str, point: str
) -> None:
    chosen, folder = random.Random(point), tmp_path / "ws"
    part = part_of(name, server, cluster, table, tmp_path)
    with Workspace.open(folder) as workspace:
        edges(workspace)
    for _ in range(4):
        assert lives.life(folder, [part], point) in (0, -signal.SIGKILL)
        with Workspace.open(folder) as workspace:
            change(workspace, chosen, nodes=9)
            change(workspace, chosen, nodes=9)
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert held(name, server, cluster, table, tmp_path) == head(workspace, "pair")


def test_a_topic_has_each_row_under_one_key_though_it_is_begun_again(
    lives: Killer, server: Server, cluster: Cluster, table: str, tmp_path: Path
) -> None:
    """Killed behind its first messages; rows come and go before it goes on."""
    chosen, folder = random.Random(8), tmp_path / "ws"
    part = part_of("kafka", server, cluster, table, tmp_path)
    with Workspace.open(folder) as workspace:
        edges(workspace)
    for time in (1, 1, 2):
        assert lives.life(folder, [part], f"{MESSAGE_POINTS[0]}:{time}") == -signal.SIGKILL
        with Workspace.open(folder) as workspace, workspace.transaction() as tx:
            tx.insert("edge", [(3, 4), (4, chosen.randrange(9))])
            tx.erase("edge", [(1, 2)])
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert held("kafka", server, cluster, table, tmp_path) == head(workspace, "pair")


@pytest.mark.in_turns
@pytest.mark.parametrize("name", ["postgres", "kafka", "parquet", "delta"])
def test_killed_at_random_from_a_source_to_a_sink(
    lives: Killer, server: Server, cluster: Cluster, table: str, tmp_path: Path, name: str
) -> None:
    """A pipeline whose process is killed: files in, a head out."""
    chosen, folder, into = random.Random(9), tmp_path / "ws", tmp_path / "edge"
    into.mkdir()
    (into / "a.csv").write_text("a,b,op\n")
    with Workspace.open(folder) as workspace:
        edges(workspace)
    parts = [
        Part("maintenance.sources.files", [str(into)]),
        part_of(name, server, cluster, table, tmp_path),
    ]
    codes = []
    for code in kill_at_random(lives, folder, parts, 5, 0.25):
        codes.append(code)
        with (into / "a.csv").open("a") as file:
            for _ in range(5):
                file.write(f"{chosen.randrange(9)},{chosen.randrange(9)},{chosen.choice('ID')}\n")
    assert len(codes) == KILLS and -signal.SIGKILL in codes
    assert lives.life(folder, parts) == 0
    with Workspace.open(folder) as workspace:
        assert held(name, server, cluster, table, tmp_path) == head(workspace, "pair")
        workspace.verify()


def test_a_server_that_is_killed_and_comes_back(server: Server, table: str) -> None:
    chosen, workspace = random.Random(2), Workspace()
    edges(workspace)
    sink = to_postgres(server.dsn, "pair", table)
    numbers = iter(range(100, 10**9))
    for _ in range(SERVER_KILLS):
        with workspace.transaction() as tx:
            tx.insert("edge", [(next(numbers), 1)])
        timer = threading.Timer(chosen.uniform(0, 0.15), server.kill)
        timer.start()
        with pytest.raises(SinkError, match="push again, it goes on behind what is written"):
            for _ in sink.push(workspace, timeout=30):
                with workspace.transaction() as tx:
                    tx.insert("edge", [(next(numbers), chosen.choice([1, 2]))])
        timer.join()
        with pytest.raises(SinkError, match="the server says"):
            pushed(workspace, sink)
        server.start()
        pushed(workspace, sink)
        assert rows_of(server, table) == head(workspace, "pair")


def test_a_workspace_reads_what_another_wrote(cluster: Cluster, table: str, tmp_path: Path) -> None:
    chosen, workspace = random.Random(3), Workspace()
    edges(workspace)
    out, topic = to_parquet(tmp_path / "n", "n"), to_kafka(cluster.servers, "n", table)
    copy = Workspace()
    schema = pa.schema({"a": pa.int64(), "count": pa.int64()})
    back = [files(tmp_path / "n"), kafka(cluster.servers, table, "m", schema=schema, key=["a"])]
    for _ in range(6):
        change(workspace, chosen, nodes=9)
        change(workspace, chosen, nodes=9)
        pushed(workspace, out)
        pushed(workspace, topic)
        for source in back:
            for _ in source.pull(copy, timeout=0):
                pass
        assert set(copy["n"]) == set(copy["m"]) == set(workspace["n"])


def test_a_target_of_another_workspace_is_refused(
    server: Server, cluster: Cluster, table: str, tmp_path: Path
) -> None:
    first, second = Workspace(), Workspace()
    for workspace in (first, second):
        edges(workspace)
    sinks = [to_postgres(server.dsn, "pair", table), to_parquet(tmp_path, "pair")]
    for sink in sinks:
        assert pushed(first, sink) == 1
        with pytest.raises(SinkError, match=r"of another workspace|another workspace wrote"):
            pushed(second, sink)
    topic = to_kafka(cluster.servers, "pair", table)
    pushed(first, topic)
    with pytest.raises(SinkError, match=r"was written to .*, and this is .*take another name="):
        pushed(first, to_kafka(cluster.servers, "pair", f"{table}x"))
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE own (a int)")
        connection.execute("INSERT INTO own VALUES (1)")
        with pytest.raises(SinkError, match=r"table public.own has rows, and no workspace has written them"):
            pushed(first, to_postgres(server.dsn, "n", "own"))
        connection.execute(f"DELETE FROM {table} WHERE a = 1")
        with first.transaction() as tx:
            tx.erase("edge", [(1, 2)])
        with pytest.raises(SinkError, match="was changed by another"):
            pushed(first, sinks[0])
        connection.execute(
            "UPDATE lftj_sinks SET version = version + 1000 WHERE sink = %s", [f"public.{table}"]
        )
        with pytest.raises(SinkError, match=r"it holds version .*put back from a copy.*drop the table"):
            pushed(first, sinks[0])
        connection.execute(f"DROP TABLE {table}")
        connection.execute("DELETE FROM lftj_sinks WHERE sink = %s", [f"public.{table}"])
    assert pushed(first, sinks[0]) == 1
    assert rows_of(server, table) == head(first, "pair")


def test_what_can_not_be_written_is_refused_by_name(server: Server, table: str) -> None:
    workspace = Workspace()
    edges(workspace)
    with pytest.raises(UnknownRelationError, match="'no'"):
        pushed(workspace, to_postgres(server.dsn, "no", table))
    with pytest.raises(SinkError, match="key= names 'x'"):
        pushed(workspace, to_postgres(server.dsn, "n", table, key=["x"]))
    workspace.install("all[a] = list(b) <- edge(a, b).")
    with pytest.raises(SinkError, match=r"column .* of 'all' is of type list"):
        pushed(workspace, to_postgres(server.dsn, "all", table))
    with pytest.raises(SinkError, match="the server says") as raised:
        pushed(workspace, to_postgres(f"{server.dsn} password=secret dbname=none", "n"))
    assert "secret" not in str(raised.value)
    name = 'my "table"; x'
    assert pushed(workspace, to_postgres(server.dsn, "n", name)) == 1
    assert rows_of(server, '"my ""table""; x"') == head(workspace, "n")


def test_changes_that_are_not_kept_any_more_make_a_table_anew(
    server: Server, table: str, tmp_path: Path
) -> None:
    workspace = Workspace()
    edges(workspace)
    table_sink, files_sink = to_postgres(server.dsn, "pair", table), to_parquet(tmp_path, "pair")
    pushed(workspace, table_sink)
    pushed(workspace, files_sink)
    workspace.install("pair(a, c) <- edge(a, b), edge(b, c), a < c.", replace=True)
    assert pushed(workspace, table_sink) == 1
    assert rows_of(server, table) == head(workspace, "pair")
    with pytest.raises(
        SinkError, match=r"the changes behind version \d+ are not kept any more: empty the folder"
    ):
        pushed(workspace, files_sink)


@pytest.mark.parametrize("name", ["delta", "kafka", "parquet", "postgres"])
def test_what_happened_before_a_sink_begins_is_computed_once(
    server: Server, cluster: Cluster, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """From the journal, where each look installs the head over the relations as they were."""
    folder, chosen, looks = tmp_path / "ws", random.Random(6), []
    sink = part_of(name, server, cluster, table, tmp_path).made()
    with Workspace.open(folder) as workspace:
        edges(workspace)
        assert pushed(workspace, sink) == 1
        for _ in range(3):
            change(workspace, chosen, nodes=9)
    past = Follower._past

    def counted(self: Follower, head: str, version: int) -> Any:
        looks.append(version)
        return past(self, head, version)

    monkeypatch.setattr(Follower, "_past", counted)
    with Workspace.open(folder) as workspace:
        assert pushed(workspace, sink) >= 1
        assert len(looks) == 1
        assert held(name, server, cluster, table, tmp_path) == head(workspace, "pair")


def test_a_sink_that_is_stopped_while_it_begins_ends(tmp_path: Path) -> None:
    workspace = Workspace()
    edges(workspace)
    sink = to_parquet(tmp_path, "pair")
    pushing = sink.push(workspace)
    next(pushing)
    sink.stop()
    assert list(pushing) == []
