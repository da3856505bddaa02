"""``lftj open FOLDER``: what its commands print and keep, and their exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

import maintenance.shell.shell  # noqa: F401  (adds the command)
from maintenance import Workspace
from support.openmetrics import openmetrics_samples
from support.shell_runs import Lftj, fails, in_this_process

RULE = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


@pytest.fixture
def lftj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lftj:
    """Run one command line in this process, in a folder with edges and changes, and with them installed."""
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("a,b\n1,2\n2,3\n1,3\n")
    Path("changes.csv").write_text("txn,a,b,weight\n1,3,4,1\n2,2,4,1\n3,1,2,-1\n")
    run = in_this_process(capsys)
    assert run("open", "graph", "install", "-e", RULE, "--load", "edge=edges.csv").status == 0
    return run


def test_changes_are_kept_from_one_command_to_the_next(lftj: Lftj) -> None:
    done = lftj("open", "graph", "apply", "--changes", "edge=changes.csv", "--svg", "times.svg")
    assert (done.status, done.out) == (0, "")
    assert "1 commit, up to version 3" in Path("times.svg").read_text(encoding="utf-8")  # all gathered in one
    assert done.err.splitlines()[-1].split()[:3] == ["tri", "auto", "1"]
    done = lftj("open", "graph", "query", "-e", "found(a, b, c) <- tri(a, b, c).")
    assert done.out.splitlines() == ["a,b,c", "2,3,4"]
    assert lftj("open", "graph", "query", "-e", "from(a) <- edge(a, _).", "--count").out == "3\n"
    assert lftj("open", "graph", "verify").out == "1 head verified\n"


def test_stats_tell_what_there_is(lftj: Lftj) -> None:
    lines = lftj("open", "graph", "stats").out.splitlines()
    assert lines[1].split()[:2] == ["edge", "3"]
    assert lines[3] == "head tri: kept by auto"
    assert lines[4].startswith("change 2; checkpoint at change 0 with 0 bytes of data; journal ")
    assert lftj("open", "graph", "checkpoint").status == 0
    line = lftj("open", "graph", "stats").out.splitlines()[-1]
    assert line.startswith("change 2; checkpoint at change 2 with ")


def test_stats_as_a_picture(lftj: Lftj) -> None:
    told = lftj("open", "graph", "stats").out
    assert lftj("open", "graph", "stats", "--svg", "memory.svg").out == told
    drawn = Path("memory.svg").read_text(encoding="utf-8")
    assert "0 commits, up to version 2" in drawn and ">relations " in drawn
    picture = lftj("open", "graph", "stats", "--svg", "-").out
    assert picture.startswith("<svg") and picture.endswith("</svg>\n")
    fails(lftj("open", "graph", "stats", "--openmetrics", "--svg", "-"), 2, "both go to stdout")
    fails(lftj("open", "graph", "stats", "--svg", "none/memory.svg"), 2, "none")


def test_stats_as_openmetrics(lftj: Lftj) -> None:
    """Of a folder that another process has open, too: what it has committed, and what the folder holds."""
    with Workspace.open("graph") as workspace:
        with workspace.transaction() as tx:
            tx.insert("edge", [(3, 4), (2, 4)])
        done = lftj("open", "graph", "stats", "--openmetrics")
        journal = [path.stat().st_size for path in Path("graph").glob("journal-*")]
        workspace.checkpoint()
        behind = lftj("open", "graph", "stats", "--openmetrics")
    samples = openmetrics_samples(done.out)
    assert (samples["lftj_version", ""], samples["lftj_rows", "edge"], samples["lftj_rows", "tri"]) == (
        3,
        5,
        2,
    )
    assert (samples["lftj_checkpoint_version", ""], samples["lftj_data_bytes", ""]) == (0, 0)
    assert samples["lftj_journal_bytes", ""] == sum(journal)
    assert ("lftj_changes_not_on_disk", "") not in samples  # only the process that writes knows it
    samples = openmetrics_samples(behind.out)
    data = sum(path.stat().st_size for path in Path("graph", "data").iterdir())
    assert (samples["lftj_checkpoint_version", ""], samples["lftj_data_bytes", ""]) == (3, data)


def test_what_is_whole_is_said_of_each_file(lftj: Lftj) -> None:
    """Nothing is changed; also beside a process that has the folder open."""
    assert lftj("open", "graph", "checkpoint").status == 0
    assert lftj("open", "graph", "apply", "--changes", "edge=changes.csv").status == 0
    with Workspace.open("graph"):
        assert lftj("open", "graph", "check").status == 0
    before = {path: path.read_bytes() for path in Path("graph").rglob("*") if path.is_file()}
    done = lftj("open", "graph", "check")
    assert done.status == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert {line[0] for line in lines} == {"whole"}
    names = {"manifest", "version", *(str(path.relative_to("graph")) for path in before)}
    names = {name for name in names if name != "lock" and not name.startswith("manifest-")}
    assert {line[1] for line in lines} == names
    assert done.out.splitlines()[-1].endswith("3 can be read, 3 is known to have been there at least")
    for pattern in ("journal-*03", "data/edge-*", "image-*", "manifest-*"):
        path = max(Path("graph").glob(pattern))
        data = bytearray(before[path])
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        done = lftj("open", "graph", "check")
        bad = [line.split()[1] for line in done.out.splitlines() if line.startswith("damaged")]
        assert done.status == 1
        name = "manifest" if pattern == "manifest-*" else str(path.relative_to("graph"))
        assert set(bad) >= {name}
        if pattern == "journal-*03":
            assert "version" in bad
            assert "2 can be read, 3 is known to have been there at least; " in done.out
            fails(lftj("open", "graph", "verify"), 1, "damaged='set aside'")
        path.write_bytes(before[path])
    assert {path: path.read_bytes() for path in before} == before
    fails(lftj("open", "none", "check"), 1, "can't be opened: No such file or directory")


def test_a_folder_is_made_small(lftj: Lftj) -> None:
    assert lftj("open", "graph", "apply", "--changes", "edge=changes.csv").status == 0
    asked = ("open", "graph", "query", "-e", "p(a, b) <- edge(a, b).", "--order-by", "a")
    before = lftj(*asked).out
    done = lftj("open", "graph", "compact")
    assert done.status == 0
    assert done.out.endswith("bytes of data; journal 32 bytes\n")
    assert lftj(*asked).out == before
    assert lftj("open", "graph", "verify").out == "1 head verified\n"


def test_a_result_goes_to_a_file(lftj: Lftj) -> None:
    assert lftj("open", "graph", "query", "-e", "p(a) <- edge(a, _).", "--out", "p.csv").status == 0
    assert sorted(Path("p.csv").read_text().split()) == ["1", "2", "a"]
    again = lftj("open", "graph", "query", "-e", "p(a) <- edge(a, _).", "--count", "--out", "p.csv")
    fails(again, 2, "--count prints a number")


def test_what_changes_did_is_written_as_maintain_writes_it(lftj: Lftj) -> None:
    loaded = ("maintain", "-e", RULE, "--load", "edge=edges.csv")
    kept = ("open", "graph", "apply")
    told = {}
    for command in (loaded, kept):
        said = ("--changes", "edge=changes.csv", "--out-changes", "tri=-", "--out", "tri=tri.csv")
        done = lftj(*command, *said, "--stats", "stats.jsonl", "--verify")
        n_lines = len(Path("stats.jsonl").read_text().splitlines())
        told[command] = (done.status, done.out, Path("tri.csv").read_text(), n_lines)
    assert told[loaded] == told[kept]
    assert told[kept][0] == 0
    assert told[kept][1].splitlines()[0] == "txn,a,b,c,weight"
    fails(lftj(*kept, "--changes", "edge=changes.csv", "--out", "tre=-"), 1, "no rule has the head 'tre'")
    wrong = lftj(*kept, "--changes", "edge=changes.csv", "--out", "tri=-", "--stats", "-")
    fails(wrong, 2, "two results can't both go to stdout")


def test_files_of_a_pattern_are_one_transaction(lftj: Lftj) -> None:
    Path("new").mkdir()
    Path("new/b.csv").write_text("a,b,weight\n2,4,1\n1,2,-1\n")
    Path("new/a.csv").write_text("a,b,weight\n3,4,1\n")
    Path("new/c.txt").write_text("this is none\n")
    apply = ("open", "graph", "apply", "--changes")
    done = lftj(*apply, "edge=new/*.csv", "--out-changes", "tri=tri.csv", "--stats", "stats.jsonl")
    assert done.status == 0
    assert sorted(Path("tri.csv").read_text().split()) == ["1,2,3,-1", "2,3,4,1", "a,b,c,weight"]
    (line,) = Path("stats.jsonl").read_text().splitlines()
    assert '"changes": 3' in line
    fails(lftj(*apply, "edge=old/*.parquet"), 1, "old/*.parquet: no file has such a name")
    done = lftj(*apply, "edge=new/*.csv", "--changes", "edge=new/[a].csv", "--stats", "stats.jsonl")
    assert len(Path("stats.jsonl").read_text().splitlines()) == 2
    Path("new/d.csv").write_text("a,b,weight\n5,x,1\n")
    fails(lftj(*apply, "edge=new/[bd].csv"), 1, "new/d.csv")


def test_files_of_a_pattern_are_merged_by_txn(lftj: Lftj) -> None:
    Path("b1.csv").write_text("txn,a,b,weight\n1,7,8,1\n3,8,9,1\n")
    Path("b2.csv").write_text("txn,a,b,weight\n2,9,7,1\n3,7,9,1\n")
    done = lftj("open", "graph", "apply", "--changes", "edge=b?.csv", "--out-changes", "tri=-")
    assert (done.status, done.out) == (0, "txn,a,b,c,weight\n3,7,8,9,1\n")
    assert "3 transactions, 4 changes in" in done.err


def test_a_path_with_the_signs_of_a_pattern_is_a_file(lftj: Lftj) -> None:
    Path("day[1].csv").write_text("a,b,weight\n3,4,1\n")
    assert lftj("open", "graph", "apply", "--changes", "edge=day[1].csv").status == 0
    assert lftj("open", "graph", "query", "-e", "p(a) <- edge(a, 4).").out == "a\n3\n"


def test_a_query_of_a_folder_has_the_options_of_one_over_files(lftj: Lftj) -> None:
    asked = ("open", "graph", "query", "-e", "p(a, b) <- edge(a, b).")
    assert lftj(*asked, "--order-by", "a desc, b", "--limit", "2").out == "a,b\n2,3\n1,2\n"
    fails(lftj(*asked, "--out", "p.unknown"), 2, "p.unknown")


def test_rows_with_null_that_are_left_out_are_told_of(lftj: Lftj) -> None:
    Path("nulls.csv").write_text("a,b,weight\n7,,1\n")
    done = lftj("open", "graph", "apply", "--changes", "edge=nulls.csv", "--nulls", "drop")
    assert done.status == 0
    assert "note: nulls.csv: 1 row with NULL dropped" in done.err


def test_heads_are_replaced_when_that_is_asked_for(lftj: Lftj) -> None:
    rule = "tri(a) <- edge(a, _)."
    assert lftj("open", "graph", "install", "-e", rule).status == 1
    assert lftj("open", "graph", "install", "-e", rule, "--replace", "--strategy", "delta").status == 0
    assert lftj("open", "graph", "stats").out.splitlines()[3] == "head tri: kept by delta"


def test_heads_are_kept_for_those_that_are_wanted(lftj: Lftj) -> None:
    rules = "back(b, a) <- edge(a, b). far(a) <- back(a, b), back(b, _). no(a) <- edge(a, _)."
    assert lftj("open", "graph", "install", "-e", rules, "--result", "far").status == 0
    heads = [line for line in lftj("open", "graph", "stats").out.splitlines() if line.startswith("head ")]
    assert heads == ["head tri: kept by auto", "head far: kept by auto"]
    fails(lftj("open", "graph", "query", "-e", "q(a) <- back(a, _)."), 1, "'back' is kept for 'far' alone")


def test_what_is_wrong_is_said_in_one_line(lftj: Lftj) -> None:
    fails(lftj("open", "none", "stats"), 1, "can't be opened: No such file or directory")
    fails(lftj("open", "graph", "apply", "--changes", "edgy=changes.csv"), 1, "edgy")
    fails(lftj("open", "graph", "query"), 2, "give the rules once")
    with Workspace.open("graph"):
        fails(lftj("open", "graph", "checkpoint"), 1, "is open already by process")
        assert lftj("open", "graph", "verify").status == 0


def test_heads_are_taken_away(lftj: Lftj) -> None:
    before = lftj("open", "graph", "stats").out
    head = RULE.partition("(")[0]
    assert f"head {head}: " in before
    fails(lftj("open", "graph", "uninstall", head, "nothing"), 1, "nothing")
    assert lftj("open", "graph", "stats").out == before, "all or none"
    assert lftj("open", "graph", "uninstall", head) == (0, "", "")
    after = lftj("open", "graph", "stats").out
    assert f"head {head}" not in after and "edge" in after
    fails(lftj("open", "elsewhere", "uninstall", head), 1, "elsewhere: can't be opened")
    assert not Path("elsewhere").exists()
    fails(lftj("open", "graph", "uninstall"), 2, "HEAD")
