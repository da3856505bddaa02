"""Folders of files that grow, as changes: against a plain reading of all that was written."""

from __future__ import annotations

import json
import random
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from lftj.errors import (
    ChangeError,
    ConflictError,
    KeyConflictError,
    RejectedRowError,
    SourceError,
    UnusableNameError,
)
from maintenance import Workspace
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.files import FilesSource, files
from support.killed_pulls import KILLS, POINTS, Killer, Part, kill_at_random

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "price": pa.float64()})
MODULE = "maintenance.sources.files"

Model = dict[int, tuple[str, float]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "items"
    made.mkdir()
    return made


def source(folder: Path, **options: object) -> FilesSource:
    return files(folder, schema=SCHEMA, key=["id"], **options)  # type: ignore[arg-type]


def pulled(workspace: Workspace, made: FilesSource) -> int:
    return sum(1 for _ in made.pull(workspace, timeout=0))


def write(folder: Path, chosen: random.Random, model: Model, number: int) -> None:
    """Some changes at the end of a file, or in a new one, and what they make of the model."""
    rows = []
    for _ in range(chosen.randrange(1, 30)):
        id_, op = chosen.randrange(40), chosen.choice("UUUD")
        name, price = f'n "{chosen.randrange(9)}", x', chosen.randrange(100) / 4
        rows.append({"id": id_, "name": name, "price": price, "op": op})
        if op == "D":
            model.pop(id_, None)
        else:
            model[id_] = (name, price)
    kind = chosen.choice(["csv", "jsonl", "parquet"])
    if kind == "parquet":
        path = folder / f"{number:04}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows), folder / ".new")
        (folder / ".new").rename(path)
    elif kind == "jsonl":
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{number:04}.jsonl").write_text(lines)
    else:
        quoted = ('"' + row["name"].replace('"', '""') + '"' for row in rows)  # type: ignore[attr-defined]
        lines = "".join(f"{r['id']},{q},{r['price']},{r['op']}\n" for r, q in zip(rows, quoted, strict=True))
        (folder / f"{number:04}.csv").write_text("id,name,price,op\n" + lines)


def rows(model: Model) -> set[tuple[int, str, float]]:
    return {(id_, *rest) for id_, rest in model.items()}


def test_files_of_all_kinds_are_taken_once_and_in_order(folder: Path) -> None:
    chosen, model, workspace = random.Random(1), Model(), Workspace()
    made = source(folder)
    for number in range(12):
        write(folder, chosen, model, number)
        assert pulled(workspace, made) == 1
        assert set(workspace["items"]) == rows(model)
    assert pulled(workspace, made) == 0
    again = Workspace()
    assert pulled(again, source(folder)) == 12
    assert set(again["items"]) == rows(model)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_point_nothing_is_lost_or_doubled(
    lives: Killer, folder: Path, tmp_path: Path, point: str
) -> None:
    chosen, model = random.Random(point), Model()
    options = {"schema": SCHEMA, "key": ["id"]}
    with Workspace.open(tmp_path / "ws") as workspace:
        workspace.load("items", SCHEMA.empty_table(), key=["id"])
        workspace.install("dear(n) <- items(_, n, p), p > 12.0.")
    del options["schema"]
    part = Part(MODULE, [str(folder)], options)
    for number in range(6):
        write(folder, chosen, model, number)
    assert lives.life(tmp_path / "ws", [part], f"{point}:2") == -signal.SIGKILL
    assert lives.life(tmp_path / "ws", [part], f"{point}:3") == -signal.SIGKILL
    assert lives.life(tmp_path / "ws", [part]) == 0
    with Workspace.open(tmp_path / "ws") as workspace:
        assert set(workspace["items"]) == rows(model)
        assert pulled(workspace, files(folder)) == 0
        workspace.verify()


def test_killed_at_random_while_files_grow(lives: Killer, folder: Path, tmp_path: Path) -> None:
    """Rows without a key, each another: one that came twice, or not, would be seen in their number."""
    with Workspace.open(tmp_path / "ws") as workspace:
        workspace.load("items", {"n": [0], "m": [0]})
        workspace.install("count[] = count() <- items(n, m).")
    part, written = Part(MODULE, [str(folder)]), 0
    path = folder / "rows.csv"
    path.write_text("n,m\n")
    ended = []
    for code in kill_at_random(lives, tmp_path / "ws", [part], 7, 0.12):
        ended.append(code)
        with path.open("a") as file:
            for _ in range(500):
                written += 1
                file.write(f"{written},{written % 7}\n")
    assert len(ended) == KILLS and -signal.SIGKILL in ended
    assert lives.life(tmp_path / "ws", [part]) == 0
    with Workspace.open(tmp_path / "ws") as workspace:
        assert set(workspace["items"]) == {(n, n % 7) for n in range(written + 1)}
        workspace.verify()


def test_a_line_counts_when_its_end_is_there(folder: Path) -> None:
    workspace, made = Workspace(), source(folder)
    path = folder / "a.csv"
    path.write_text("id,name,price\n1,one,1\n2,tw")
    assert pulled(workspace, made) == 1 and set(workspace["items"]) == {(1, "one", 1.0)}
    path.write_text('id,name,price\n1,one,1\n2,two,2\n3,"th\n')
    assert pulled(workspace, made) == 1 and workspace["items"].count == 2
    path.write_text('id,name,price\n1,one,1\n2,two,2\n3,"th\nree",3\n')
    assert pulled(workspace, made) == 1
    assert set(workspace["items"]) == {(1, "one", 1.0), (2, "two", 2.0), (3, "th\nree", 3.0)}


def test_a_row_that_can_not_be_taken_stops_before_its_batch(folder: Path) -> None:
    workspace, made = Workspace(), source(folder)
    (folder / "a.jsonl").write_text('{"id": 1, "name": "x", "price": 2}\n{"id": 2, "name": 3, "price": 2}\n')
    with pytest.raises(
        RejectedRowError, match=r"row 1 at 0 of 'a.jsonl' .*'name' is a number.*set aside"
    ) as raised:
        pulled(workspace, made)
    error = raised.value
    assert (error.part, error.position, error.row) == ("a.jsonl", 0, 1)
    assert workspace["items"].count == 0
    (folder / "a.jsonl").write_text('{"id": 1, "name": "x", "price": 2}\n')
    assert pulled(workspace, made) == 1  # nothing of it was taken, so it may be mended


WRONG = {
    "a.csv": (
        "id,name,price,op\nx,a,1,\n1,b,y,\n,c,1,\n2,d\n3,e,1,Z\n4,f,1,U\n4,,,D\n5,g,1,\n",
        [
            "'x' is not int64",
            "'y' is not double",
            "column 'id' is missing",
            "2 values, not 4",
            "its op is 'Z'",
        ],
    ),
    "b.jsonl": (
        '{"id": 7, "price": 1}\n[]\n{"id": 1e99, "name": "", "price": 1}\n'
        '{"id": 6, "name": "h", "price": 1}\nx\n',
        [
            "column 'name' is missing",
            "an array, not an object",
            "'id' is a number, not int64",
            "Expecting value",
        ],
    ),
}


def test_rows_that_can_not_be_taken_are_set_aside_with_their_place(folder: Path) -> None:
    workspace, made = Workspace(), source(folder, on_error="set aside")
    for name, (text, _) in WRONG.items():
        (folder / name).write_text(text)
    parquet.write_table(
        pa.table({"id": [None, 8], "name": ["i", "j"], "price": [1, 2**60 + 1]}), folder / "c.parquet"
    )
    assert pulled(workspace, made) == 3
    assert {row[0] for row in workspace["items"]} == {5, 6}
    aside = (
        workspace["items_aside"].to_arrow().sort_by([("part", "ascending"), ("row", "ascending")]).to_pylist()
    )
    reasons = [reason for _, reasons in WRONG.values() for reason in reasons]
    reasons += ["column 'id' is missing", "is not double"]
    assert [each["part"][0] for each in aside] == list("aaaaabbbbcc")
    for each, reason in zip(aside, reasons, strict=True):
        assert reason in each["reason"]
    assert [each["text"] for each in aside[:4]] == ["x,a,1,", "1,b,y,", ",c,1,", "2,d"]
    with workspace.transaction() as tx:  # it is a relation: what is done with is erased
        tx.erase("items_aside", workspace["items_aside"].to_arrow())
    assert pulled(workspace, made) == 0


def test_what_is_not_what_was_read_is_refused_by_name(folder: Path) -> None:
    workspace, made = Workspace(), source(folder)
    path = folder / "a.csv"
    path.write_text("id,name,price\n1,one,1\n")
    pulled(workspace, made)
    path.write_text("id,name,price\n2,two,1\n3,three,1\n")
    with pytest.raises(SourceError, match=r"a.csv was written anew since 22 bytes"):
        pulled(workspace, made)
    path.write_text("id,name\n")
    with pytest.raises(SourceError, match="written anew"):
        pulled(workspace, made)
    path.unlink()
    assert pulled(workspace, made) == 0  # what was read may go
    (folder / "b.csv").write_text("id,name\n1,one\n")
    with pytest.raises(SourceError, match=r"b.csv: there is no column 'price'; there are 'id' and 'name'"):
        pulled(workspace, made)
    (folder / "b.csv").write_text("id,name,price,weight\n1,one,1,-1\n")
    with pytest.raises(SourceError, match=r"b.csv: a column 'weight' would say .*: say 'op', I or D"):
        pulled(workspace, made)
    (folder / "b.csv").unlink()
    parquet.write_table(pa.table({"id": ["1"], "name": ["x"], "price": [1.0]}), folder / "b.parquet")
    with pytest.raises(SourceError, match=r"column 'id' is of type string, and was int64"):
        pulled(workspace, made)
    (folder / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match=r"b.parquet: "):
        pulled(workspace, made)
    (folder / "b.parquet").rename(folder / "b.xlsx")
    with pytest.raises(SourceError, match=r"b.xlsx is none of .parquet, .*pattern="):
        pulled(workspace, made)
    assert pulled(workspace, source(folder, pattern="*.csv")) == 0
    with pytest.raises(SourceError, match="is no folder"):
        pulled(workspace, source(folder / "no"))


def test_what_a_commit_refuses_moves_no_cursor(folder: Path) -> None:
    workspace, made = Workspace(), files(folder)
    workspace.load("items", {"id": [1], "n": [1]}, key=["id"])
    workspace.install("by(i, d) <- items(i, n), d = 10 / n.")
    (folder / "a.csv").write_text("id,n,op\n2,5,I\n")
    assert pulled(workspace, made) == 1
    (folder / "a.csv").write_text("id,n,op\n2,5,I\n3,4,U\n2,6,I\n")
    with pytest.raises(RejectedRowError, match="two rows of key id=2") as raised:
        pulled(workspace, made)
    assert "row 1 at 14 of 'a.csv'" in str(raised.value) and "'2,6,I'" in str(raised.value)
    assert 'on_error="set aside"' in str(raised.value)
    assert (raised.value.part, raised.value.position, raised.value.row) == ("a.csv", 14, 1)
    assert isinstance(raised.value.__cause__, KeyConflictError)
    assert set(workspace["items"]) == {(1, 1), (2, 5)}
    assert Cursor(workspace, "items").places["a.csv"].position == 14


def test_what_rules_refuse_is_set_aside_and_the_rest_goes_in(folder: Path) -> None:
    chosen = random.Random(5)
    workspace = Workspace()
    workspace.load("items", {"id": [1], "n": [1]}, key=["id"])
    workspace.install("by(i, d) <- items(i, n), d = 10 / n.")
    bad = set(chosen.sample(range(2, 300), 9))
    (folder / "a.jsonl").write_text(
        "".join(f'{{"id": {n}, "n": {int(n not in bad)}}}\n' for n in range(2, 300))
    )
    (folder / "b.csv").write_text("id,n,op\n1,0,U\n1,7,U\nx,1,U\n500,1,U\n")
    made = files(folder, on_error="set aside")
    assert [tx.stats.inserted["items_aside"] for tx in made.pull(workspace, timeout=0)] == [9, 1]
    assert set(workspace["items"]) == {(n, 1) for n in range(2, 300) if n not in bad} | {(1, 7), (500, 1)}
    aside = workspace["items_aside"].to_arrow().to_pylist()
    assert {(row["part"], row["row"]) for row in aside} == {
        *(("a.jsonl", n - 2) for n in bad),
        ("b.csv", 2),  # of row 0 nothing is left behind row 1
    }
    for row in aside:
        if row["part"] == "a.jsonl":
            assert json.loads(row["text"])["id"] == row["row"] + 2 and "by zero" in row["reason"]
    workspace.verify()


def test_an_error_that_no_row_is_at_fault_for_is_told_as_it_is(folder: Path) -> None:
    workspace, made = Workspace(), source(folder, on_error="set aside")
    (folder / "a.jsonl").write_text('{"id": 1, "name": "x", "price": 2}\n')
    pulled(workspace, made)
    (folder / "b.jsonl").write_text('{"id": 2, "name": "x", "price": 2}\n')
    pulling = made.pull(workspace, timeout=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cursor, "stage", lambda *places: (_ for _ in ()).throw(ConflictError("moved")))
        with pytest.raises(ConflictError, match="moved") as raised:
            next(pulling)
    assert raised.value.__notes__ == ["source 'items', in what leads to b.jsonl 35; nothing was changed"]
    assert workspace["items_aside"].count == 0


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_batches_have_as_many_lines_as_are_said(folder: Path, most: int) -> None:
    workspace = Workspace()
    names = [f'"n\n{n}"' if n % 3 == 0 else f"n{n}" for n in range(10)]
    (folder / "a.csv").write_text(
        "id,name,price\n" + "".join(f"{n},{name},1\n" for n, name in enumerate(names))
    )
    (folder / "b.jsonl").write_text(
        "".join(f'{{"id": {n}, "name": "x", "price": 1}}\n' for n in range(10, 17))
    )
    rows = [tx.stats.inserted["items"] for tx in source(folder, batch_rows=most).pull(workspace, timeout=0)]
    expected = {1: [1] * 17, 3: [3, 3, 3, 1, 3, 3, 1], 1000: [10, 7]}
    assert rows == expected[most]
    assert {row[1] for row in workspace["items"]} == {name.strip('"') for name in names} | {"x"}


def test_two_who_read_one_source_do_not_take_it_twice(folder: Path) -> None:
    workspace, made = Workspace(), source(folder)
    (folder / "a.jsonl").write_text('{"id": 1, "name": "x", "price": 2}\n')
    pulled(workspace, made)
    (folder / "a.jsonl").write_text(
        '{"id": 1, "name": "x", "price": 2}\n{"id": 1, "name": "y", "price": 2}\n'
    )
    other = Cursor(workspace, "items")
    pulled(workspace, made)
    with pytest.raises(ConflictError, match="moved by another"), workspace.transaction() as tx:
        other.stage(tx, {"a.jsonl": Place(0, "")})


def test_a_loop_waits_for_what_comes(folder: Path) -> None:
    workspace, made = Workspace(), source(folder)
    path, seen = folder / "a.csv", []
    path.write_text("id,name,price\n1,x,1\n")
    for tx in made.pull(workspace, timeout=30):
        seen.append(tx.stats.inserted["items"])
        if len(seen) == 3:
            break
        with path.open("a") as file:
            file.write(f"{len(seen) + 1},x,1\n" * len(seen))
    assert seen == [1, 1, 1]
    assert workspace["items"].count == 3


def test_a_loop_is_ended_from_another_thread(folder: Path) -> None:
    workspace, made = Workspace(), source(folder)
    (folder / "a.jsonl").write_text('{"id": 1, "name": "x", "price": 2}\n')
    loop = made.pull(workspace)
    next(loop)
    threading.Timer(0.1, made.stop).start()
    assert list(loop) == []
    (folder / "b.jsonl").write_text('{"id": 2, "name": "x", "price": 2}\n')
    assert pulled(workspace, made) <= 1


def test_bad_settings_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="on_error is 'skip'"):
        source(folder, on_error="skip")
    with pytest.raises(UnusableNameError, match="'my items'"):
        pulled(Workspace(), source(folder, name="my items"))
    workspace = Workspace()
    workspace.load("r", {"id": [1]})
    workspace.install("items(i) <- r(i).")
    (folder / "a.jsonl").write_text('{"i": 1}\n')
    with pytest.raises(ChangeError, match="derived"):
        pulled(workspace, source(folder))
