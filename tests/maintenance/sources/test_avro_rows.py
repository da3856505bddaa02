"""Topics of Avro: rows with their logical types, schemas that grow, and messages that are none."""

from __future__ import annotations

import datetime
import io
import json
import signal
import struct
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lftj.errors import RejectedRowError, SourceError
from maintenance import Workspace
from maintenance.sources.kafka import KafkaSource, kafka
from maintenance.store.fault_points import SOURCE_POINTS
from support.kafka_cluster import Cluster, running
from support.killed_pulls import Killer, Part

ID, TEXT = {"name": "id", "type": "long"}, {"name": "item", "type": "string"}
FIRST = {"type": "record", "name": "item", "fields": [ID, TEXT, {"name": "price", "type": "int"}]}
LATER = {
    "type": "record",
    "name": "item",
    "fields": [
        ID,
        {"name": "price", "type": ["null", "double"]},
        {"name": "item", "type": {"type": "enum", "name": "kind", "symbols": ["pen", "ink"]}},
        {"name": "more", "type": "string"},
    ],
}
KEY = {"type": "record", "name": "key", "fields": [ID]}
ENVELOPE = {
    "type": "record",
    "name": "envelope",
    "fields": [
        {"name": "before", "type": ["null", FIRST]},
        {"name": "after", "type": ["null", "item"]},
        {"name": "op", "type": "string"},
    ],
}
NUMBERED = {1: FIRST, 2: LATER, 3: KEY, 4: ENVELOPE}
SCHEMA = pa.schema({"id": pa.int64(), "item": pa.string(), "price": pa.float64()})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as made:
        yield made


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"a{abs(hash(request.node.name))}"


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    folder = tmp_path / "schemas"
    folder.mkdir()
    for number, schema in NUMBERED.items():
        (folder / f"{number}.avsc").write_text(json.dumps(schema))
    return folder


def avro(number: int, value: Any, schema: Any = None) -> bytes:
    body = io.BytesIO(struct.pack(">bI", 0, number))
    body.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema or NUMBERED[number]), value)
    return body.getvalue()


def source(cluster: Cluster, topic: str, schemas: object, **options: Any) -> KafkaSource:
    about = {"schema": SCHEMA, "key": ["id"], "format": "avro", "schemas": schemas, **options}
    return kafka(cluster.servers, topic, "item", **about)


def pulled(workspace: Workspace, made: KafkaSource) -> int:
    return sum(1 for _ in made.pull(workspace, timeout=0))


def sent(cluster: Cluster, topic: str, *messages: Any, key: bytes | None = None) -> None:
    for message in messages:
        cluster.send(topic, message, key=key)
    cluster.flush()


def test_messages_of_several_schemas_are_rows(cluster: Cluster, topic: str, schemas: Path) -> None:
    workspace, made = Workspace(), source(cluster, topic, schemas)
    row = {"id": 1, "item": "x", "price": 2}
    sent(cluster, topic, avro(1, row), avro(2, {"id": 2, "price": 0.5, "item": "pen", "more": ""}))
    assert pulled(workspace, made) == 1
    assert set(workspace["item"]) == {(1, "x", 2.0), (2, "pen", 0.5)}
    sent(cluster, topic, avro(1, {**row, "price": 9}), avro(1, {"id": 3, "item": "y", "price": 0}))
    sent(cluster, topic, None, key=avro(3, {"id": 2}))
    assert pulled(workspace, made) == 1
    assert set(workspace["item"]) == {(1, "x", 9.0), (3, "y", 0.0)}


def test_envelopes_of_debezium(cluster: Cluster, topic: str, schemas: Path) -> None:
    workspace, made = Workspace(), source(cluster, topic, schemas, format="debezium")
    first, second = ({"id": 1, "item": text, "price": 1} for text in "xy")
    came = avro(4, {"op": "c", "before": None, "after": first})
    sent(cluster, topic, came, avro(4, {"op": "u", "before": None, "after": second}), None)
    assert pulled(workspace, made) == 1 and set(workspace["item"]) == {(1, "y", 1.0)}
    sent(cluster, topic, avro(4, {"op": "d", "before": second, "after": None}))
    assert pulled(workspace, made) == 1 and workspace["item"].count == 0
    sent(cluster, topic, avro(4, {"op": "c", "before": first, "after": None}))
    with pytest.raises(RejectedRowError, match="no row 'after', which op 'c' needs"):
        pulled(workspace, made)


def test_logical_types_are_what_they_mean(cluster: Cluster, topic: str, schemas: Path) -> None:
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    types: dict[str, tuple[Any, Any, pa.DataType, Any]] = {
        "day": ({"type": "int", "logicalType": "date"}, datetime.date(1969, 2, 3), pa.date32(), ...),
        "at": (
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime.datetime(2024, 2, 29, 1, 2, 3, 4, berlin),
            pa.timestamp("us", "UTC"),
            datetime.datetime(2024, 2, 29, 0, 2, 3, 4, datetime.UTC),
        ),
        "milli": (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime.datetime(2024, 1, 1, 0, 0, 0, 5000, datetime.UTC),
            pa.timestamp("ms", "UTC"),
            ...,
        ),
        "local": (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
            pa.timestamp("us"),
            ...,
        ),
        "time": ({"type": "int", "logicalType": "time-millis"}, datetime.time(1, 2, 3), pa.time64("us"), ...),
        "exact": (
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            Decimal("-12.50"),
            pa.decimal128(12, 3),
            Decimal("-12.500"),
        ),
        "id": (
            {"type": "string", "logicalType": "uuid"},
            uuid.UUID(int=7),
            pa.string(),
            str(uuid.UUID(int=7)),
        ),
        "raw": ("bytes", b"\0\xff", pa.binary(), ...),
        "flag": ("boolean", True, pa.bool_(), ...),
        "small": ("long", 127, pa.int8(), ...),
        "none": (["null", "string"], None, pa.string(), ...),
    }
    fields = [{"name": name, "type": type_} for name, (type_, *_) in types.items()]
    schema = {"type": "record", "name": "all", "fields": fields}
    (schemas / "9.avsc").write_text(json.dumps(schema))
    wanted = pa.schema({name: type_ for name, (_, _, type_, _) in types.items()})
    given = {name: value for name, (_, value, _, _) in types.items()}
    sent(cluster, topic, avro(9, given, schema))
    workspace = Workspace()
    made = source(cluster, topic, schemas, schema=wanted, key=["id"], nulls="keep")
    assert pulled(workspace, made) == 1
    (found,) = workspace["item"].to_arrow().to_pylist()
    expected = {name: value if mean is ... else mean for name, (_, value, _, mean) in types.items()}
    assert found == expected
    assert workspace["item"].to_arrow().schema.types == wanted.types


def test_messages_that_are_none_stop_or_are_set_aside(cluster: Cluster, topic: str, schemas: Path) -> None:
    workspace, row = Workspace(), {"id": 1, "item": "x", "price": 2}
    (schemas / "8.avsc").write_text('{"type": "wrong"}')
    (schemas / "7.avsc").write_text('"string"')
    texts = {**FIRST, "fields": [{"name": "id", "type": "string"}, *FIRST["fields"][1:]]}  # type: ignore[misc]
    (schemas / "6.avsc").write_text(json.dumps(texts))
    good = avro(1, row)
    wrong = {
        b'{"id": 1}': "does not begin with a zero",
        b"\0\0": "does not begin with a zero",
        b"\0\0\0\0\x63" + good[5:]: r"its schema 99 is not in",
        good[:-1]: "it is not what schema 1 says",
        good + b"!": "it has 1 bytes more than schema 1 says",
        b"\0\0\0\0\x08" + good[5:]: "its schema 8 can't be read",
        avro(7, "text", "string"): "it is a str, not a record",
        avro(6, {**row, "id": "1"}, texts): "column 'id' is string, not int64",
        avro(2, {"id": 1, "price": None, "item": "pen", "more": ""}): "column 'price' is missing, or NULL",
    }
    sent(cluster, topic, *wrong, good)
    with pytest.raises(RejectedRowError, match=rf"row 0 at 0 .*, and {len(wrong) - 1} more"):
        pulled(workspace, source(cluster, topic, schemas))
    assert workspace["item"].count == 0
    assert pulled(workspace, source(cluster, topic, schemas, on_error="set aside")) == 1
    assert set(workspace["item"]) == {(1, "x", 2.0)}
    aside = workspace["item_aside"].to_arrow().sort_by("position").to_pylist()
    assert len(aside) == len(wrong)
    for each, reason in zip(aside, wrong.values(), strict=True):
        assert reason in each["reason"]


@pytest.mark.parametrize("point", SOURCE_POINTS[:2])
def test_killed_each_message_is_in_once(
    lives: Killer, cluster: Cluster, topic: str, schemas: Path, tmp_path: Path, point: str
) -> None:
    folder = tmp_path / "ws"
    with Workspace.open(folder) as workspace:
        workspace.load("item", SCHEMA.empty_table(), bag=True)
    options = {"format": "avro", "schemas": str(schemas), "batch_rows": 5}
    part = Part("maintenance.sources.kafka", [cluster.servers, topic, "item"], options)
    sent(cluster, topic, *(avro(1, {"id": n, "item": "x", "price": n}) for n in range(40)))
    for time in (2, 3, 2):
        assert lives.life(folder, [part], f"{point}:{time}") == -signal.SIGKILL
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert sorted(workspace["item"]) == [(n, "x", float(n)) for n in range(40)]


class Registry(BaseHTTPRequestHandler):
    asked: list[tuple[str, str | None]]
    fails = False

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        number = int(self.path.rpartition("/")[2])
        self.send_response(500 if Registry.fails else 200 if number in NUMBERED else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"schema": json.dumps(NUMBERED.get(number))}).encode())

    def log_message(self, *arguments: object) -> None:
        pass


def test_schemas_of_a_registry_are_asked_for_once(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Registry.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://me:secret%21@127.0.0.1:{server.server_port}"
        workspace, made = Workspace(), source(cluster, topic, place)
        sent(cluster, topic, *(avro(1, {"id": n, "item": "x", "price": n}) for n in range(3)))
        monkeypatch.setattr(Registry, "fails", True)
        with pytest.raises(SourceError, match="source 'item': schema 1 can't be read from http") as raised:
            pulled(workspace, made)
        assert "secret" not in str(raised.value)
        monkeypatch.setattr(Registry, "fails", False)
        Registry.asked.clear()
        assert pulled(workspace, made) == 1 and workspace["item"].count == 3
        sent(cluster, topic, avro(1, {"id": 7, "item": "x", "price": 1}))
        assert pulled(workspace, made) == 1
        assert Registry.asked == [("/schemas/ids/1", "Basic bWU6c2VjcmV0IQ==")]
        sent(cluster, topic, b"\0\0\0\0\x63")
        with pytest.raises(
            RejectedRowError, match=r"its schema 99 is not in http://127.0.0.1:\d+:"
        ) as rejected:
            pulled(workspace, made)
        assert "secret" not in str(rejected.value)
        server.shutdown()


def test_what_is_said_of_avro_goes_together(cluster: Cluster, topic: str, schemas: Path) -> None:
    for options in {"schemas": None}, {"format": "json"}:
        with pytest.raises(ValueError, match="format='avro' needs schemas="):
            source(cluster, topic, **{"schemas": schemas, **options})
