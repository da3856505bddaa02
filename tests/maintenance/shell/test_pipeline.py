"""``lftj run``: a file that is wrong is told of with its line, one that is right follows, through kills."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from deltalake import DeltaTable, write_deltalake

from lftj.errors import PipelineError
from lftj.shell.shell import run
from maintenance import Workspace
from maintenance.serving.service import FlightService
from maintenance.shell.pipeline_file import read_pipeline
from maintenance.shell.shell import cli  # noqa: F401
from support.paths import child_environment

PIPELINE = """
folder = "kept"
views = "views/*.sql"
rules = ["far.rules"]

[sources.edge]
kind = "files"
folder = "in"
schema = { a = "int64", b = "int64" }

[sinks.hops]
kind = "parquet"
head = "hop"
folder = "out"
"""
VIEW = "SELECT x.a, y.b FROM edge x JOIN edge y ON x.b = y.a"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "views").mkdir()
    (tmp_path / "in/a.csv").write_text("a,b\n1,2\n2,3\n")
    (tmp_path / "views/hop.sql").write_text(VIEW)
    (tmp_path / "far.rules").write_text("far(a, b) <- edge(a, b).  far(a, c) <- far(a, b), edge(b, c).")
    made = tmp_path / "pipeline.toml"
    made.write_text(PIPELINE)
    return made


WRONG: dict[str, tuple[Callable[[str], str], int, str]] = {
    "toml": (lambda text: text.replace('"kept"', '"kept'), 2, "line 2"),
    "no folder": (lambda text: text.replace('folder = "kept"', ""), 1, "there is no folder"),
    "top": (lambda text: text.replace("views =", "view ="), 3, "nothing is called 'view' here.*'views'"),
    "kind": (
        lambda text: text.replace('"files"', '"file"'),
        7,
        "sources.edge.kind: its kind is 'file'.*files",
    ),
    "option": (lambda text: text.replace("schema", "shema"), 9, "nothing is called 'shema' here.*'schema'"),
    "missing": (lambda text: text.replace('head = "hop"', ""), 11, "sinks.hops: head is missing"),
    "type": (lambda text: text.replace('"in"', "7"), 8, "sources.edge.folder: it is to be a text"),
    "column": (
        lambda text: text.replace('b = "int64"', 'b = "int"'),
        9,
        "type 'int' of column 'b' is not known",
    ),
    "variable": (lambda text: text.replace('"out"', '"${LFTJ_NONE}"'), 14, "no variable LFTJ_NONE"),
    "files": (lambda text: text.replace("views/*", "view/*"), 3, r"there is no file view/\*.sql"),
    "section": (lambda text: text.replace("[sources.edge]", "[sources]"), 6, "sources are sections"),
    "no source": (
        lambda text: re.sub(r"\[sources.*?\n\n", "", text, flags=re.DOTALL),
        1,
        "there are no sources",
    ),
    "value": (
        lambda text: text.replace("[sinks", 'on_error = "skip"\n[sinks'),
        6,
        "on_error is 'skip'; it can be",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_what_is_wrong_is_said_with_its_line(
    file: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, line, match = WRONG[name]
    text = change(PIPELINE)
    assert text != PIPELINE
    file.write_text(text)
    with pytest.raises(PipelineError, match=match) as raised:
        read_pipeline(str(file))
    if name != "toml":
        assert str(raised.value).startswith(f"{file}:{line}:")
    assert run(["run", str(file), "--check"]) == 1
    assert not (file.parent / "kept").exists()
    assert "Traceback" not in capsys.readouterr().err


EVERY_KIND = """
folder = "kept"

[sources.a]
kind = "delta"
table = "s3://bucket/a"
key = ["id"]
storage_options = { AWS_REGION = "eu" }

[sources.b]
kind = "flight"
location = "grpc+tls://other:8815"
head = "b"
token = "${LFTJ_SECRET}"
tls_roots = "roots.pem"

[sources.c]
kind = "kafka"
servers = "broker:9092"
topic = "c"
format = "avro"
schemas = "https://me:${LFTJ_SECRET}@registry:8081"
schema = { id = "int64" }

[sinks.d]
kind = "delta"
table = "out/d"
head = "a"

[sinks.e]
kind = "flight"
location = "grpc://127.0.0.1:8815"
head = "a"
relation = "e"
token = "${LFTJ_SECRET}"

[sinks.f]
kind = "webhook"
url = "https://shop/${LFTJ_SECRET}"
head = "a"
headers = { Authorization = "Bearer ${LFTJ_SECRET}" }
tries = 3
"""


def test_a_file_may_have_sources_and_sinks_of_every_kind(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LFTJ_SECRET", "open-sesame")
    file.write_text(EVERY_KIND)
    shown = list(map(repr, read_pipeline(str(file)).parts))
    assert shown == [
        "<Delta table 's3://bucket/a' into 'a'>",
        "<'b' of grpc+tls://other:8815 into 'b'>",
        "<kafka topic 'c' into 'c'>",
        f"<'a' to the Delta table '{file.parent / 'out/d'}'>",
        "<'a' to 'e' of grpc://127.0.0.1:8815>",
        "<'a' to https://shop>",
    ]


def test_rows_go_from_a_delta_table_to_a_table_and_to_another_workspace(file: Path) -> None:
    folder, rows = file.parent, {(1, 2), (2, 3), (3, 1)}
    edges = pa.table({"a": [1, 2], "b": [2, 3]})
    write_deltalake(folder / "edge", edges, configuration={"delta.enableChangeDataFeed": "true"})
    with Workspace() as other, FlightService(other) as service:
        other.load("far", pa.schema({"a": pa.int64(), "b": pa.int64()}).empty_table())
        file.write_text(
            'folder = "kept"\nrules = "far.rules"\n[sources.edge]\nkind = "delta"\ntable = "edge"\n'
            '[sinks.table]\nkind = "delta"\nhead = "far"\ntable = "far"\n'
            f'[sinks.other]\nkind = "flight"\nhead = "far"\nlocation = "{service.address}"\n'
        )
        assert run(["run", str(file), "--once"]) == 0
        write_deltalake(folder / "edge", pa.table({"a": [3], "b": [1]}), mode="append")
        assert run(["run", str(file), "--once"]) == 0
        assert set(other["far"]) == {(a, b) for a, _ in rows for b, _ in rows}
    kept = DeltaTable(folder / "far").to_pyarrow_table().to_pylist()
    assert sorted((row["a"], row["b"]) for row in kept) == sorted(other["far"])


def test_variables_of_the_environment_are_shown_nowhere(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = '[sinks.table]\nkind = "postgres"\nhead = "hop"\ndsn = "host=/none password=${LFTJ_SECRET}"\n'
    file.write_text(PIPELINE + more)
    monkeypatch.setenv("LFTJ_SECRET", "open sesame")
    for option in ("--check", "--dry-run", "--once"):
        run(["run", str(file), option])
    shown = capsys.readouterr()
    assert "table" in shown.out and "host=/none" not in shown.out
    assert "sesame" not in shown.out + shown.err


def test_a_run_takes_what_there_is_and_goes_on_later(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(file), "--dry-run"]) == 0
    assert "would be made" in capsys.readouterr().out and not (file.parent / "kept").exists()
    assert run(["run", str(file), "--once"]) == 0
    said = capsys.readouterr().err
    assert "hop: made" in said and "edge: 1 transaction" in said and "hops: 1 change" in said
    assert run(["run", str(file), "--dry-run"]) == 0
    assert "from a.csv 12" in capsys.readouterr().out
    with (file.parent / "in/a.csv").open("a") as rows:
        rows.write("3,4\n")
    (file.parent / "views/hop.sql").write_text(VIEW + " WHERE x.a > 0")
    assert (
        run(["run", str(file), "--once"]) == 1
    )  # a view that is made anew is other rows for a folder of files
    assert "not kept any more" in capsys.readouterr().err
    (file.parent / "views/hop.sql").write_text(VIEW)
    with Workspace.open(file.parent / "kept") as workspace:
        assert set(workspace["far"]) == {(1, 2), (2, 3), (3, 4), (1, 3), (2, 4), (1, 4)}


def out(folder: Path) -> set[tuple[int, int]]:
    """The rows of a folder of changes."""
    rows: set[tuple[int, int]] = set()
    for path in sorted(folder.glob("hop-*.parquet")):
        for row in parquet.read_table(path).to_pylist():
            (rows.add if row["op"] == "I" else rows.discard)((row["a"], row["b"]))
    return rows


@pytest.mark.in_turns
def test_a_pipeline_goes_on_through_kills_until_it_is_told_to_end(file: Path) -> None:
    chosen, edges = random.Random(1), {(1, 2), (2, 3)}
    (file.parent / "views/hop.sql").write_text(VIEW.replace("SELECT", "SELECT DISTINCT"))
    command = [sys.executable, "-c", "from maintenance.shell.shell import main; main()", "run", str(file)]

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=child_environment(), stderr=subprocess.PIPE, text=True)

    def written(n: int) -> None:
        with (file.parent / "in/a.csv").open("a") as rows:
            for _ in range(n):
                edge = chosen.randrange(20), chosen.randrange(20)
                edges.add(edge)
                rows.write(f"{edge[0]},{edge[1]}\n")

    def hops() -> set[tuple[int, int]]:
        return {(a, d) for a, b in edges for c, d in edges if b == c}

    def wait(holds: Callable[[], bool]) -> None:
        ends = time.monotonic() + 120
        while not holds():
            assert time.monotonic() < ends
            time.sleep(0.05)

    process = started()
    wait(lambda: (file.parent / "out").exists() and out(file.parent / "out") == hops())
    for _ in range(1):
        written(3)
        time.sleep(chosen.uniform(0, 0.7))
        process.send_signal(signal.SIGKILL)
        process.wait()
        written(2)
        process = started()
        wait(lambda: out(file.parent / "out") == hops())
    written(3)
    wait(lambda: out(file.parent / "out") == hops())
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "edge: " in said and "transaction" in said
    with Workspace.open(file.parent / "kept") as workspace:
        assert set(workspace["edge"]) == edges and set(workspace["hop"]) == hops()
        workspace.verify()
    assert os.listdir(file.parent / "out")
