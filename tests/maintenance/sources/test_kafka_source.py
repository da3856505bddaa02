"""Topics as changes, against all that was sent to them."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lftj.errors import RejectedRowError, SourceError
from maintenance import Workspace
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.kafka import KafkaSource, kafka
from maintenance.sources.kafka_errors import AWAY, is_away
from support.kafka_cluster import Cluster, running
from support.killed_pulls import KILLS, POINTS, Killer, Part, kill_at_random

MODULE = "maintenance.sources.kafka"
SCHEMA = pa.schema({"id": pa.int64(), "item": pa.string(), "price": pa.float64()})
ITEM = {"schema": SCHEMA, "key": ["id"]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as made:
        yield made


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"t{abs(hash(request.node.name))}"


def pulled(workspace: Workspace, made: KafkaSource) -> int:
    return sum(1 for _ in made.pull(workspace, timeout=0))


def source(cluster: Cluster, topic: str, **options: Any) -> KafkaSource:
    return kafka(cluster.servers, topic, "item", **{**ITEM, **options})


def test_messages_replace_rows_by_key_and_take_them_away(cluster: Cluster, topic: str) -> None:
    chosen, workspace, made, model = random.Random(1), Workspace(), source(cluster, topic), {}
    for number in range(5):
        for _ in range(40):
            id_ = chosen.randrange(30)
            how = chosen.random()
            if how < 0.2:
                cluster.send(topic, None, id_ % 3, {"id": id_})
                model.pop(id_, None)
            elif how < 0.3:
                cluster.send(topic, {"op": "D", "id": id_}, id_ % 3)
                model.pop(id_, None)
            else:
                model[id_] = (f"i{number}", chosen.randrange(9) / 2)
                row = {"id": id_, "item": model[id_][0], "price": model[id_][1], "other": [1]}
                cluster.send(topic, row, id_ % 3)
        cluster.flush()
        assert pulled(workspace, made) >= 1
        assert set(workspace["item"]) == {(id_, *rest) for id_, rest in model.items()}
    assert pulled(workspace, made) == 0


@pytest.mark.parametrize("has_key", [True, False])
def test_envelopes_of_debezium(cluster: Cluster, topic: str, has_key: bool) -> None:
    chosen, rows = random.Random(2), dict[int, dict[str, Any]]()
    workspace = Workspace()
    workspace.load("item", SCHEMA.empty_table(), key=["id"] if has_key else [], bag=not has_key)
    made = source(cluster, topic, format="debezium")
    for number in range(120):
        id_ = chosen.randrange(20)
        before, row = rows.get(id_), {"id": id_, "item": f"i{number}", "price": number / 4}
        if before is not None and chosen.random() < 0.4:
            envelope = {"op": "d", "before": rows.pop(id_), "after": None}
        else:
            envelope = {"op": "u" if before else chosen.choice("cr"), "before": before, "after": row}
            rows[id_] = row
        envelope = {**envelope, "ts_ms": number, "source": {"table": "item"}}
        cluster.send(topic, {"schema": {}, "payload": envelope} if number % 40 < 20 else envelope)
        if envelope["op"] == "d":
            cluster.send(topic, None, key={"id": id_})  # connectors send it for compaction
        if number % 40 == 39:
            cluster.flush()
            assert pulled(workspace, made) >= 1
            wanted = Counter(tuple(each.values()) for each in rows.values())
            assert (
                Counter(tuple(each.values()) for each in workspace["item"].to_arrow().to_pylist()) == wanted
            )
    if not has_key:
        cluster.send(topic, {"op": "u", "before": None, "after": row})
        cluster.flush()
        with pytest.raises(RejectedRowError, match="no row 'before', which op 'u' needs"):
            pulled(workspace, made)


@pytest.mark.in_turns
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_point_each_message_is_in_once(
    lives: Killer, cluster: Cluster, topic: str, tmp_path: Path, point: str
) -> None:
    folder, n = tmp_path / "ws", 90
    with Workspace.open(folder) as workspace:
        workspace.load("item", {"n": [0]}, bag=True)
    part = Part(MODULE, [cluster.servers, topic, "item"], {"batch_rows": 10})
    for number in range(n):
        cluster.send(topic, {"n": number + 1}, number % 2)
    cluster.flush()
    for time in (2, 3, 2):
        assert lives.life(folder, [part], f"{point}:{time}") == -signal.SIGKILL
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert sorted(workspace["item"]) == [(number,) for number in range(n + 1)]


def test_killed_at_random_while_messages_and_partitions_come(
    lives: Killer, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    folder, sent, chosen = tmp_path / "ws", 0, random.Random(4)
    with Workspace.open(folder) as workspace:
        workspace.load("item", {"n": [0]}, bag=True)
        workspace.install("count[] = count() <- item(n).")
    part = Part(MODULE, [cluster.servers, topic, "item"], {"batch_rows": 50})
    codes = []
    cluster.send(topic, {"n": 0})
    cluster.flush()
    for code in kill_at_random(lives, folder, [part], 3, 0.3):
        codes.append(code)
        for _ in range(chosen.randrange(300)):
            sent += 1
            cluster.send(topic, {"n": sent}, chosen.randrange(min(4, 1 + len(codes) // 2)))
        cluster.flush()
    assert len(codes) == KILLS and -signal.SIGKILL in codes
    assert lives.life(folder, [part]) == 0
    with Workspace.open(folder) as workspace:
        assert sorted(workspace["item"]) == [(0,), *((number,) for number in range(sent + 1))]
        workspace.verify()


def test_messages_that_can_not_be_taken_stop_or_are_set_aside(cluster: Cluster, topic: str) -> None:
    workspace, made = Workspace(), source(cluster, topic)
    wrong = [b"\xff{", {"id": 1}, {"id": "1", "item": "x", "price": 1}, [1], {"item": "x", "price": 1}, None]
    wrong += [b'{"id": 9, "item": "x", "price": 1}\n{"id": 8, "item": "x", "price": 1}', {"op": "?", "id": 1}]
    good = {"id": 2, "item": "y", "price": 1}
    for value in [good, *wrong, good]:
        cluster.send(topic, value, key=None)
    cluster.flush()
    with pytest.raises(
        RejectedRowError, match=rf"row 0 at 1 of '{topic}/0' can't be taken, and 7 more"
    ) as raised:
        pulled(workspace, made)
    assert (raised.value.part, raised.value.position) == (f"{topic}/0", 1)
    assert workspace["item"].count == 0
    assert pulled(workspace, source(cluster, topic, on_error="set aside")) == 1
    assert set(workspace["item"]) == {(2, "y", 1.0)}
    aside = workspace["item_aside"].to_arrow().sort_by("position").to_pylist()
    assert [row["position"] for row in aside] == list(range(1, 9))
    reasons = ["invalid start byte", "'item' is missing", "'id' is a text", "an array", "'id' is missing"]
    for row, reason in zip(aside, reasons, strict=False):
        assert reason in row["reason"]
    assert aside[0]["text"] == "\\xff{" and json.loads(aside[1]["text"]) == {"id": 1}
    assert pulled(workspace, made) == 0


def test_how_much_waits_is_known_while_it_is_read(cluster: Cluster, topic: str) -> None:
    workspace, made = Workspace(), source(cluster, topic, batch_rows=4)
    assert made.backlog() is None
    for number in range(10):
        cluster.send(topic, {"id": number, "item": "x", "price": 1})
    cluster.flush()
    seen = []
    for _ in made.pull(workspace, timeout=0):
        seen.append((made.backlog(), made.places[f"{topic}/0"].position))
    assert seen[0][0] == 10 and seen[-1][1] == 10
    assert [backlog for backlog, _ in seen] == [10, *(10 - position for _, position in seen[:-1])]
    assert made.backlog() is None


def test_which_errors_say_that_brokers_are_away() -> None:
    error = pytest.importorskip("confluent_kafka").KafkaError
    assert all(is_away(error(getattr(error, name))) for name in AWAY)
    for name in ("TOPIC_AUTHORIZATION_FAILED", "_AUTHENTICATION", "UNKNOWN_TOPIC_OR_PART", "_INVALID_ARG"):
        assert not is_away(error(getattr(error, name)))


def test_a_message_that_a_rule_refuses_is_named_or_set_aside(cluster: Cluster, topic: str) -> None:
    workspace, made = Workspace(), source(cluster, topic)
    for number in range(20):
        cluster.send(topic, {"id": number, "item": "x" * (number % 7), "price": 1})
    cluster.flush()
    workspace.load("item", SCHEMA.empty_table(), key=["id"])
    workspace.install("by(i, d) <- item(i, _, p), d = 10 / (i - 11).")
    with pytest.raises(RejectedRowError, match=rf"row 0 at 11 of '{topic}/0' can't be taken: .*zero"):
        pulled(workspace, made)
    assert workspace["item"].count == 0
    assert pulled(workspace, source(cluster, topic, on_error="set aside")) == 1
    assert {row[0] for row in workspace["item"]} == {*range(20)} - {11}
    (aside,) = workspace["item_aside"].to_arrow().to_pylist()
    assert aside["position"] == 11 and json.loads(aside["text"])["id"] == 11
    workspace.verify()


def test_a_partition_that_comes_later_is_read_from_its_beginning(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mock has all of a topic's partitions at once: the cursor is made to know one only."""
    workspace, made, row = Workspace(), source(cluster, topic), {"item": "x", "price": 1}
    cluster.send(topic, {"id": 0, **row})
    cluster.flush()
    assert pulled(workspace, made) == 1
    known = Cursor(workspace, "item")
    with workspace.transaction() as tx:
        known.stage(tx, dict.fromkeys(part for part in known.places if part != f"{topic}/0"))
    cluster.send(topic, {"id": 1, **row}, 3)
    cluster.flush()
    assert pulled(workspace, made) == 1
    places = Cursor(workspace, "item").places
    assert [places[f"{topic}/{number}"].position for number in range(4)] == [1, 0, 0, 1]
    monkeypatch.setattr("maintenance.sources.kafka._PARTITIONS", 0.0)
    looking = made.pull(workspace, timeout=30)
    cluster.send(topic, {"id": 2, **row}, 2)
    cluster.flush()
    next(looking)
    assert {row[0] for row in workspace["item"]} == {0, 1, 2}


def test_a_cursor_of_another_topic_is_refused_by_name(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, made = Workspace(), source(cluster, topic)
    for _ in range(3):
        cluster.send(topic, {"id": 1, "item": "x", "price": 1})
    cluster.flush()
    pulled(workspace, made)
    with running() as other:
        other.send(topic, {"id": 1, "item": "x", "price": 1})
        other.flush()
        with pytest.raises(SourceError, match=r"cursor is of cluster .*, and this is cluster"):
            pulled(workspace, source(other, topic))
    cursor = Cursor(workspace, "item")
    place = cursor.places[f"{topic}/0"]
    for part, position, match in (
        (f"{topic}/0", 50, rf"at 50 of {topic}/0, which has messages 0 to 2: the topic was made anew"),
        (f"{topic}/9", 1, rf"partition {topic}/9 is gone"),
    ):
        with workspace.transaction() as tx:
            cursor.stage(tx, {part: Place(position, place.mark)})
        cursor.moved({part: Place(position, place.mark)})
        with pytest.raises(SourceError, match=match):
            pulled(workspace, made)
        with workspace.transaction() as tx:
            cursor.stage(tx, {part: place if part in (f"{topic}/0",) else None})
        cursor.moved({part: place if part in (f"{topic}/0",) else None})
    assert pulled(workspace, made) == 0
    monkeypatch.setattr("maintenance.sources.kafka._ANSWER", 0.5)
    with pytest.raises(SourceError, match=r"source 'item': .*pull again"):
        pulled(Workspace(), kafka("127.0.0.1:1", topic, "item", config={"log_level": 0}, **ITEM))
    with pytest.raises(SourceError, match=r"source 'item': .*no.such"):
        pulled(Workspace(), source(cluster, topic, config={"no.such": 1}))
    with pytest.raises(ValueError, match="format is 'protobuf'"):
        source(cluster, topic, format="protobuf")
    assert "sasl" not in repr(source(cluster, topic, config={"sasl.password": "sasl"}))


def test_a_loop_waits_for_what_comes(cluster: Cluster, topic: str) -> None:
    workspace, made, seen = Workspace(), source(cluster, topic), []
    cluster.send(topic, {"id": 0, "item": "x", "price": 1})
    cluster.flush()
    for tx in made.pull(workspace, timeout=30):
        seen.append(tx.stats.inserted["item"])
        if len(seen) == 3:
            break
        cluster.send(topic, {"id": len(seen), "item": "x", "price": 1})
        cluster.flush()
    assert seen == [1, 1, 1]
