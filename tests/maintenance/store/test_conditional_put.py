"""laws: on S3 a name is given once; what a URI says, the store that gives names is told."""

from __future__ import annotations

import sys
import threading

import obstore
import pytest
from obstore.store import MemoryStore

pytest.importorskip("pyspark")

from lftj.errors import StateError
from maintenance.store import conditional_put as module
from maintenance.store.conditional_put import ConditionalPut, conditional_put
from maintenance.store.path import StatePath
from spark_bridge.state.store import StateStore


def test_of_puts_at_once_one_succeeds() -> None:
    store = MemoryStore()
    together = threading.Barrier(8)
    given: list[int] = []

    def put(number: int) -> None:
        together.wait()
        if ConditionalPut(store)("m", b"%d" % number):
            given.append(number)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [b"%d" % number for number in given] == [bytes(obstore.get(store, "m").bytes())]


def test_an_answer_that_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store put it, and the try that is made again finds it there."""
    put = obstore.put

    def twice(*arguments: object, **named: object) -> object:
        put(*arguments, **named)  # type: ignore[arg-type]
        return put(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(obstore, "put", twice)
    assert ConditionalPut(MemoryStore())("m", b"ours")


@pytest.mark.parametrize(
    ("uri", "bucket", "config"),
    [
        ("s3://bucket/state", "bucket", {}),
        ("S3://bucket/state?region=eu-west-1", "bucket", {"region": "eu-west-1"}),
        (
            "s3://key:se%2Fcret@bucket/state?endpoint_override=localhost:9000&scheme=http",
            "bucket",
            {
                "access_key_id": "key",
                "secret_access_key": "se/cret",
                "endpoint": "http://localhost:9000",
                "client_options": {"allow_http": True},
            },
        ),
        (
            "s3://bucket/state?endpoint_override=https%3A%2F%2Fstore.example",
            "bucket",
            {"endpoint": "https://store.example", "client_options": {"allow_http": False}},
        ),
    ],
)
def test_what_a_uri_says(
    monkeypatch: pytest.MonkeyPatch, uri: str, bucket: str, config: dict[str, object]
) -> None:
    told: list[object] = []
    monkeypatch.setattr("obstore.store.S3Store", lambda bucket, **config: told.append((bucket, config)))
    conditional_put(uri, uri)
    assert told == [(bucket, config)]


def test_without_the_package_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    store = StateStore("s3://key:secret@bucket/state")
    for call in (store.create, lambda: store.begin(2)):
        with pytest.raises(
            StateError, match=r"state path 's3://\.\.\.@bucket/state': on S3 two .* 'lftj\[s3\]'"
        ):
            call()


def test_other_paths_need_no_package(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "conditional_put", None)
    for path in (str(tmp_path), tmp_path.as_uri(), "hdfs://host/state", "gs://bucket/state"):
        StatePath(path).prepare_names()


def test_a_store_that_can_not_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise obstore.exceptions.GenericError("no route to host\n\nDebug source: ...")

    monkeypatch.setattr(obstore, "put", fails)
    with pytest.raises(OSError, match=r"^no route to host$"):
        ConditionalPut(MemoryStore())("m", b"ours")
