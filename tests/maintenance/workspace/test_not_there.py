"""What is looked for at workspaces and transactions and is called otherwise; a file as a folder."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from lftj.errors import ChangeError, DurabilityError
from maintenance import Workspace


@pytest.fixture
def ws() -> Workspace:
    workspace = Workspace()
    workspace.load("e", {"a": [1], "b": [2]})
    workspace.load("k", {"id": [1], "v": ["x"]}, key=["id"])
    return workspace


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("update", r"upsert\(relation, rows\).* erase\(\).* insert\(\)"),
        ("delete", r"erase\(relation, rows\)"),
        ("rollback", r"roll_back\(\)"),
        ("execute", r"sql\(text\)"),
    ],
)
def test_methods_of_transactions(ws: Workspace, name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=f"a Transaction has no '{name}': .*{message}"):
        getattr(ws.transaction(), name)


@pytest.mark.parametrize("name", ["insert", "erase", "upsert", "apply"])
def test_changes_are_made_in_transactions(ws: Workspace, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no '{name}': with ws.transaction\(\) as tx: tx.{name}\("):
        getattr(ws, name)
    assert not hasattr(ws, name)


def test_what_nobody_means_is_missing_as_ever(ws: Workspace) -> None:
    for one in (ws, ws.transaction()):
        with pytest.raises(AttributeError, match="object has no attribute 'xyz'"):
            one.xyz  # noqa: B018
        assert not hasattr(one, "_repr_svg_")
    assert copy.copy(ws.transaction()) is not None


def test_rows_of_another_width_name_the_way_out(ws: Workspace) -> None:
    with ws.transaction() as tx:
        with pytest.raises(
            ChangeError, match=r"row 0 .* 1 value, \(1,\); a row is \(id, v\); erase_keys\('k'"
        ):
            tx.erase("k", [(1,)])
        with pytest.raises(ChangeError, match=r"row 0 .* 1 value, \(1,\); a row is \(a, b\)$"):
            tx.erase("e", [(1,)])
        tx.erase_keys("k", [(1,)])
    assert ws["k"].count == 0 and ws["e"].count == 1


@pytest.mark.parametrize("rows", [{"a": [1], "b": [2]}, [(1, 2)]])
def test_changes_without_a_weight(ws: Workspace, rows: object) -> None:
    with pytest.raises(ChangeError, match=r"weight.*; insert\(\) and erase\(\) take rows without one"):
        ws.transaction().apply("e", rows)
    with pytest.raises(ChangeError, match=r"weight.*; insert\(\) and erase\(\) take rows without one"):
        ws.apply_many({"e": rows})


def test_an_integer_that_is_too_large_is_named(ws: Workspace) -> None:
    with pytest.raises(ChangeError, match=r"64 bits with a sign; row 1 .* has 1180\d+: .*decimal.Decimal"):
        ws.transaction().insert("e", [(1, 2), (3, 2**70)])


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("a,b\n1,2\n")
    for opened in (Workspace.open, Workspace.load_from):
        with pytest.raises(
            DurabilityError, match=r"edges.csv: can't be opened: this is a file, .* kept in a folder"
        ):
            opened(file)
    with pytest.raises(DurabilityError, match="can't be opened: this is a file"):
        Workspace.open(file, read_only=True)
    assert file.read_text() == "a,b\n1,2\n"
