"""``lftj run`` under way: what is said of it, servers that go away, and a file that is read again."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lftj.errors import PipelineError
from lftj.shell.shell import run
from maintenance import Workspace
from maintenance.shell import pipeline, pipeline_file
from maintenance.shell.pipeline_file import read_pipeline
from maintenance.shell.pipeline_parts import Part, health_of, openmetrics_of
from maintenance.shell.pipeline_watch import watched
from maintenance.shell.shell import cli  # noqa: F401
from maintenance.sinks.parquet import to_parquet
from maintenance.sources.source import Source
from support.flaky_source import FlakySource
from support.openmetrics import openmetrics_samples
from support.postgres_server import running
from support.shell_runs import SECONDS, on_terminal

PIPELINE = """
folder = "kept"
views = "views/*.sql"

[run]
listen = ":PORT"
give_up_after = 60

[sources.edge]
kind = "files"
folder = "in"
on_error = "set aside"
schema = { a = "int64", b = "int64" }

[sources.node]
kind = "flaky"
folder = "${LFTJ_FOLDER}"

[sinks.hops]
kind = "parquet"
head = "hop"
folder = "out"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pipeline, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(pipeline, "_LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(pipeline, "_LOOK_AGAIN", 0.01)
    monkeypatch.setitem(pipeline_file._KINDS["sources"], "flaky", "support.flaky_source:flaky")
    monkeypatch.setenv("LFTJ_FOLDER", str(tmp_path / "flaky"))
    for folder in ("in", "views", "flaky"):
        (tmp_path / folder).mkdir()
    (tmp_path / "in/a.csv").write_text("a,b\n1,2\n2,3\n3,x\n")
    (tmp_path / "flaky/numbers").write_text("7\n")
    (tmp_path / "views/hop.sql").write_text("SELECT x.a, y.b FROM edge x JOIN edge y ON x.b = y.a")
    (tmp_path / "views/far.sql").write_text("SELECT a + 1 AS a FROM node")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = tmp_path / "pipeline.toml"
    made.write_text(PIPELINE.replace("PORT", str(port)))
    return made


class Driver:
    """What is done to a pipeline that runs in this process, from another thread."""

    def __init__(self, file: Path) -> None:
        settings = read_pipeline(str(file)).settings
        assert settings.listen is not None
        self.has_ended = False
        self.url = "http://{}:{}".format(*settings.listen)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except urllib.error.URLError:
            return 0, ""

    def health(self) -> tuple[int, Any]:
        status, text = self.get("/health")
        return status, json.loads(text) if text else None

    def metrics(self) -> dict[tuple[str, str], float]:
        return openmetrics_samples(self.get("/metrics")[1])

    def wait(self, holds: Callable[[], bool]) -> None:
        ends = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < ends and not self.has_ended
            time.sleep(0.01)


def drive(file: Path, steps: Callable[[Driver], None], *options: str) -> int:
    """The status of a run that is told to end when the steps are done; raises what these raise."""
    raised: list[BaseException] = []

    driver = Driver(file)

    def act() -> None:
        try:
            driver.wait(lambda: driver.get("/health")[0] != 0)
            steps(driver)
        except BaseException as error:
            raised.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda number, frame: None)  # where the run has ended already
    thread = threading.Thread(target=act)
    thread.start()
    try:
        status = run(["run", str(file), *options])
    finally:
        driver.has_ended = True
        thread.join()
        signal.signal(signal.SIGTERM, before)
    if raised:
        raise raised[0]
    return status


def lines(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines()]


def test_metrics_and_health_say_how_far_it_is(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def steps(driver: Driver) -> None:
        driver.wait(lambda: ("lftj_sink_version", "hops") in driver.metrics())
        with (file.parent / "in/a.csv").open("a") as rows:
            rows.write("3,4\n")
        driver.wait(lambda: driver.metrics()["lftj_sink_rows_total", "hops"] == 2)
        driver.wait(lambda: driver.metrics().get(("lftj_source_backlog_bytes", "edge")) == 0)
        found = driver.metrics()
        assert found["lftj_source_transactions_total", "edge"] == 2
        assert found["lftj_source_rows_total", "edge"] == 4  # the one that was set aside too
        assert found["lftj_source_aside_rows", "edge"] == found["lftj_source_up", "edge"] == 1
        assert found["lftj_source_position", "edge,a.csv"] == len("a,b\n1,2\n2,3\n3,x\n3,4\n")
        assert found["lftj_source_backlog_rows", "node"] == found["lftj_source_restarts_total", "node"] == 0
        assert found["lftj_source_behind_seconds", "node"] == 0
        assert found["lftj_rows", "hop"] == 2
        assert 0 < found["lftj_sink_version", "hops"] <= found["lftj_version", ""]
        status, health = driver.health()
        assert (status, health["status"]) == (200, "up") and set(health["parts"]) == {"edge", "node", "hops"}
        assert driver.get("/metrics?x")[0] == 200 and driver.get("/")[0] == 404
        with pytest.raises(urllib.error.HTTPError, match="501"):
            urllib.request.urlopen(driver.url + "/health", data=b"x", timeout=20)

    assert drive(file, steps, "--log", "json") == 0
    said = lines(capsys.readouterr().err)
    assert all({"time", "level", "message"} <= line.keys() for line in said)
    ended = {line["part"]: line for line in said[-3:]}
    assert ended["edge"]["message"] == "2 transactions" and ended["hops"]["rows"] == 2
    assert any(line["message"] == "made" and line["part"] == "far" for line in said)


def test_what_is_away_is_tried_again_and_that_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    away, numbers = file.parent / "flaky/away", file.parent / "flaky/numbers"
    away.write_text(f"nobody listens at {away.parent}")

    def steps(driver: Driver) -> None:
        driver.wait(lambda: driver.health()[0] == 503)  # before it was ever there
        node = driver.health()[1]["parts"]["node"]
        assert not node["up"] and node["error"] == "nobody listens at ${LFTJ_FOLDER}"
        away.unlink()
        driver.wait(lambda: driver.metrics().get(("lftj_sink_version", "hops")) is not None)
        assert driver.health()[0] == 200
        away.write_text("it broke")
        driver.wait(lambda: driver.health()[0] == 503)
        driver.wait(lambda: driver.metrics()["lftj_source_restarts_total", "node"] > 3)
        found = driver.metrics()
        assert found["lftj_source_up", "node"] == 0 and found["lftj_source_up", "edge"] == 1
        assert found["lftj_source_away_seconds", "node"] > 0 < found["lftj_source_behind_seconds", "node"]
        with numbers.open("a") as more:
            more.write("8\n")
        away.unlink()
        driver.wait(lambda: driver.metrics()["lftj_rows", "far"] == 2)
        driver.wait(lambda: driver.health()[0] == 200)

    assert drive(file, steps) == 0
    said = capsys.readouterr().err
    assert "warning: node: it is away, and tried again in " in said and "it broke" in said
    assert str(away.parent) not in said and "nobody listens at ${LFTJ_FOLDER}" in said


@pytest.mark.parametrize("log", ["text", "json"])
def test_it_ends_when_that_takes_longer_than_the_file_says(
    file: Path, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = file.parent / "flaky"
    (secret / "away").write_text(f"gone from {secret}")
    file.write_text(file.read_text().replace("give_up_after = 60", "give_up_after = 0.05"))
    assert run(["run", str(file), "--log", log]) == 1
    said = capsys.readouterr().err
    last = said.splitlines()[-1]
    if log == "json":
        assert lines(said)[-1]["level"] == "error"
    else:
        assert last.startswith("error: node was away for 0 s, and give_up_after is 0.05")
    assert "gone from ${LFTJ_FOLDER}" in last and str(secret) not in said
    (secret / "away").write_text("gone")
    assert run(["run", str(file), "--once"]) == 1  # which waits for nothing
    assert capsys.readouterr().err.splitlines()[-1] == "error: gone"


def test_changed_views_are_taken_in_and_what_can_not_be_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, far, hop = file.read_text(), file.parent / "views/far.sql", file.parent / "views/hop.sql"
    before = hop.read_text()

    def again(driver: Driver, said: str) -> None:
        heard.clear()
        os.kill(os.getpid(), signal.SIGHUP)
        driver.wait(lambda: any(said in line for line in heard))

    def steps(driver: Driver) -> None:
        driver.wait(lambda: ("lftj_sink_version", "hops") in driver.metrics())
        far.write_text("SELECT a + 2 AS a FROM node UNION ALL SELECT a FROM node")
        (file.parent / "views/farther.sql").write_text("SELECT a * 2 AS a FROM far")
        again(driver, "was read again")
        assert driver.metrics()["lftj_rows", "far"] == driver.metrics()["lftj_rows", "farther"] == 2
        for change, why in (
            (("on_error", "nulls = 'keep'\non_error"), "sources.edge changed"),
            (("= 60", "= 61"), "run changed"),
            (("[sinks", "[sink"), "nothing is called 'sink' here"),
        ):
            file.write_text(text.replace(*change))
            again(driver, why)
        file.write_text(text)
        hop.write_text(before + " WHERE x.a > 1")
        again(driver, "the sink 'hops' can't take back")
        hop.write_text("SELECT nothing FROM")
        again(driver, "hop.sql")
        hop.write_text(before)
        far.write_text("SELECT a / 'x' AS a FROM node")
        again(driver, "far.sql")
        with (file.parent / "in/a.csv").open("a") as rows:
            rows.write("3,4\n")
        driver.wait(lambda: driver.metrics()["lftj_sink_rows_total", "hops"] == 2)
        assert driver.metrics()["lftj_rows", "far"] == 2

    heard: list[str] = []
    say = pipeline.Log.say

    def listened(log: pipeline.Log, message: str, *more: Any, **figures: Any) -> None:
        heard.append(message)
        say(log, message, *more, **figures)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline.Log, "say", listened)
        assert drive(file, steps) == 0
    said = capsys.readouterr().err
    assert said.count("the file is not taken in, and the run goes on as it was") == 6
    assert "far: made anew" in said and "farther: made" in said
    with Workspace.open(file.parent / "kept") as workspace:
        assert Counter(workspace["far"].to_arrow().column(0).to_pylist()) == Counter([9, 7])
        workspace.verify()


SERVER = """
folder = "kept"
views = "views/n.sql"

[run]
listen = ":PORT"

[sources.shop]
kind = "postgres"
dsn = "${LFTJ_DSN}"
publication = "shop"

[sinks.table]
kind = "postgres"
dsn = "${LFTJ_DSN}"
head = "n"
"""


def test_a_server_that_comes_back_and_a_table_that_is_written_anew(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'lftj[postgres]'")
    view = file.parent / "views/n.sql"
    view.write_text("SELECT b, count(*) AS n FROM item GROUP BY b")
    port = re.findall(r":(\d+)", file.read_text())[0]
    file.write_text(SERVER.replace("PORT", port))
    with running("wal_level=logical") as server:
        monkeypatch.setenv("LFTJ_DSN", server.dsn)

        def execute(*statements: str) -> list[tuple[Any, ...]]:
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                for statement in statements:
                    done = connection.execute(statement)
                return list(done.fetchall()) if done.description else []

        execute(
            "CREATE TABLE item (a int PRIMARY KEY, b int NOT NULL)", "INSERT INTO item VALUES (1, 1), (2, 1)"
        )
        execute("CREATE PUBLICATION shop FOR TABLE item")

        def table() -> set[tuple[Any, ...]]:
            try:
                return set(execute("SELECT b, n FROM n"))
            except psycopg.Error:
                return set()

        def steps(driver: Driver) -> None:
            driver.wait(lambda: table() == {(1, 2)})
            driver.wait(lambda: driver.metrics().get(("lftj_source_backlog_bytes", "shop")) == 0)
            assert driver.health()[0] == 200
            server.kill()
            driver.wait(lambda: driver.health()[0] == 503)
            parts = driver.health()[1]["parts"]
            assert "the server says" in parts["shop"]["error"] and server.dsn not in str(parts)
            server.start()
            execute("INSERT INTO item VALUES (3, 2)")
            driver.wait(lambda: table() == {(1, 2), (2, 1)} and driver.health()[0] == 200)
            restarts = driver.metrics()["lftj_source_restarts_total", "shop"]
            assert restarts >= 1
            view.write_text("SELECT b, count(*) + 10 AS n FROM item GROUP BY b")
            os.kill(os.getpid(), signal.SIGHUP)
            driver.wait(lambda: table() == {(1, 12), (2, 11)})
            execute("INSERT INTO item VALUES (4, 2)")
            driver.wait(lambda: table() == {(1, 12), (2, 12)})
            assert driver.metrics()["lftj_source_restarts_total", "shop"] == restarts
            view.write_text("SELECT b, count(*) AS n, 1 AS m FROM item GROUP BY b")
            os.kill(os.getpid(), signal.SIGHUP)
            execute("DELETE FROM item WHERE a = 4")
            driver.wait(lambda: table() == {(1, 12), (2, 11)})

        assert drive(file, steps) == 0
    said = capsys.readouterr().err
    assert "table: it is away" in said or "shop: it is away" in said
    assert "'n' would have other columns" in said


def test_a_table_moves_on_a_terminal(file: Path) -> None:
    file.write_text("\n\n".join(part for part in file.read_text().split("\n\n") if "flaky" not in part))
    (file.parent / "views/far.sql").unlink()
    shown = on_terminal("run", str(file), "--once")
    assert "behind" in shown and "restarts" in shown and "hop: made" in shown
    assert shown.index("behind") < shown.index("hop: made")
    assert "\x1b[2K" in shown  # what was drawn is wiped out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("listen = ", "listen = 'nowhere' #"), "HOST:PORT"),
        (("listen = ", "listen = '127.0.0.1:99999' #"), "HOST:PORT"),
        (("listen = ", "log = 'xml' #"), "it can be 'text' or 'json'"),
        (("= 60", "= -1"), "seconds, 0 or more"),
        (("= 60", "= 'soon'"), "seconds, 0 or more"),
        (("give_up", "give"), "nothing is called 'give_after' here"),
        (("[run]", "run = 1\n[other]"), r"run is a section|nothing is called 'other'"),
    ],
)
def test_settings_that_are_wrong_are_said_with_their_line(
    file: Path, change: tuple[str, str], why: str
) -> None:
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(PipelineError, match=rf"pipeline.toml:\d+: .*({why})"):
        read_pipeline(str(file))


def test_connections_are_few_and_an_address_that_is_taken_is_refused() -> None:
    def refused() -> tuple[bool, dict[str, object]]:
        return False, {"status": "away"}

    with watched(("127.0.0.1", 0), lambda: "# EOF\n", refused) as url:
        assert url is not None
        port = int(url.rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
        with (
            pytest.raises(PipelineError, match=r"can't be listened on.*listen in \[run\]"),
            watched(("127.0.0.1", port), lambda: "", refused),
        ):
            pass
        for each in silent:
            each.close()
        answers: list[int] = []
        for _ in range(1000):
            try:
                urllib.request.urlopen(f"{url}/health", timeout=20)
            except urllib.error.HTTPError as error:
                answers.append(error.code)
                break
            except OSError:  # the silent ones are there yet
                time.sleep(0.01)
        assert answers == [503]


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as made:
        made.load("edge", {"a": [1], "b": [2]})
        made.install("two(a, c) <- edge(a, b), edge(b, c).")
        yield made


def test_a_sink_is_behind_from_the_version_that_it_lacks(workspace: Workspace, tmp_path: Path) -> None:
    part = Part(to_parquet(tmp_path, "two"))
    part.look(workspace.version)
    assert part.behind_seconds is not None and part.behind_seconds > 0
    taking = part.take_steps(workspace, 1.0)
    next(taking)
    with workspace.transaction() as tx:
        tx.insert("edge", [(2, 3)])
    next(taking)
    part.look(workspace.version - 1)
    assert part.behind_seconds == 0
    part.look(workspace.version + 1)
    assert part.behind_seconds > 0 and part.steps == 2  # type: ignore[operator]
    assert next(taking, "the end") == "the end"


class Silent(FlakySource):
    """One that does not tell how much waits."""

    backlog = Source.backlog


def test_of_a_source_that_does_not_tell_it_is_not_said_how_far_it_is_behind(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numbers").write_text("1")
    part = Part(Silent(tmp_path, "node"))
    assert len(list(part.take_steps(workspace, 0))) == 1
    part.went("gone")
    part.look(workspace.version)
    assert part.behind_seconds is None and health_of([part])[1]["parts"] == {
        "node": {"up": False, "away_seconds": 0.0, "error": "gone"}
    }
    found = openmetrics_samples(openmetrics_of([part], workspace))
    assert found["lftj_source_rows_total", "node"] == 1
    assert ("lftj_source_behind_seconds", "node") not in found
    monkeypatch.setattr("maintenance.shell.pipeline_parts._LONG", 0.0)
    part.look(workspace.version)
    assert part.error is None and part.lag == "unknown"
