"""``key orders(id).``: what it declares, what it refuses, and that a folder keeps it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lftj import Database, errors
from lftj.language.parser import parse
from maintenance import Workspace
from support.kept_lives import without_image

RULE = "n[s] = count() <- orders(_, s)."
ROWS = {"id": [1, 2, 3], "state": ["new", "new", "paid"]}


def test_what_is_read() -> None:
    program = parse("key orders(id, state).\nkey(x) <- key(x, y), orders(id: x). key pair(a).")
    assert [(key.relation, key.names) for key in program.keys] == [
        ("orders", ("id", "state")),
        ("pair", ("a",)),
    ]
    assert [rule.heads[0].relation for rule in program.rules] == ["key"]
    with pytest.raises(errors.RuleSyntaxError, match="column 'a' stands here twice"):
        parse("key pair(a, a).")
    for wrong in ("key pair.", "key pair().", "key pair(a) <- b(a).", "key pair(1)."):
        with pytest.raises(errors.RuleSyntaxError):
            parse(wrong)


def test_of_a_database_it_is_what_was_loaded() -> None:
    db = Database()
    db.load("orders", ROWS, key=["id"])
    assert db.count(f"key orders(id). {RULE}") == 2
    for wrong, said, place in (
        ("key orders(state).", "the key of 'orders' is id", "key orders(state)."),
        ("key orders(ids).", "'orders' has no column 'ids'; did you mean 'id'", "ids"),
        (
            "key order(id).",
            "a key is of a relation that is loaded, and 'order' is none; did you",
            "key order(id).",
        ),
        ("key n(s).", "a key is of a relation that is loaded, and 'n' is none", "key n(s)."),
    ):
        with pytest.raises(errors.RuleError, match=said) as caught:
            db.count(f"{wrong} {RULE}")
        assert caught.value.span is not None
        assert f"{wrong} "[slice(*caught.value.span)] == place
    db.load("orders", ROWS)
    with pytest.raises(
        errors.RuleError, match=r"'orders' was loaded without this key: load it with key=\['id'\]"
    ):
        db.count(f"key orders(id). {RULE}")


def test_of_a_workspace_it_gives_the_key() -> None:
    ws = Workspace()
    ws.load("orders", ROWS)
    ws.load("bag", {"a": [1]}, bag=True)
    ws.load("hole", {"a": [1]}, nulls="keep")
    ws.install("before(i) <- orders(i, _).")
    with ws.transaction() as tx:
        tx.insert("orders", [(4, "paid")])
    for wrong, error in (
        ("key orders(state).", errors.KeyConflictError),
        ("key bag(a).", errors.RuleError),
        ("key before(i).", errors.UnknownRelationError),
        ("key hole(a).", errors.NullError),
        (f"key orders(id). {RULE} m(x) <- nothing(x).", errors.UnknownRelationError),
    ):
        with pytest.raises(error):
            ws.install(wrong)
        with pytest.raises(errors.ChangeError, match="has no key"), ws.transaction() as tx:
            tx.upsert("orders", [(1, "x")])
    assert ws.heads == ("before",)
    ws.install(f"key orders(id). {RULE}")
    ws.install("key orders(id).")
    with ws.transaction() as tx:
        tx.upsert("orders", [(1, "paid")])
    assert sorted(ws["n"]) == [("new", 1), ("paid", 3)]
    assert sorted(ws["before"]) == [(1,), (2,), (3,), (4,)]
    with pytest.raises(errors.RuleError, match="the key of 'orders' is id"):
        ws.install("key orders(id, state).")
    ws.uninstall("n")
    with ws.transaction() as tx:
        tx.erase_keys("orders", [(1,)])
    ws.check_invariants()
    ws.verify()


@pytest.mark.parametrize("program", [f"key orders(id). {RULE}", "key orders(id)."])
@pytest.mark.parametrize("image", [True, False])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_folder_keeps_it(tmp_path: Path, program: str, image: bool, checkpoint: bool) -> None:
    """Also where the relation had two rows of a key before, and where the rules went that came with it."""
    left, folder = tmp_path / "left", tmp_path / "folder"
    with Workspace.open(folder) as ws:
        ws.load("orders", {"id": [1, 2, 2], "state": ["new", "new", "paid"]})
        reader = Workspace.open(folder, read_only=True)
        with ws.transaction() as tx:
            tx.erase("orders", [(2, "new")])
        ws.install(program)
        if "n" in ws:
            ws.uninstall("n")
        if checkpoint:
            ws.checkpoint()
        with ws.transaction() as tx:
            tx.upsert("orders", [(2, "sent"), (3, "new")])
        shutil.copytree(folder, left)
        reader.refresh()
        assert sorted(reader["orders"]) == [(1, "new"), (2, "sent"), (3, "new")]
    for place in (folder, left):
        if not image:
            without_image(place)
        with Workspace.open(place) as ws:
            with pytest.raises(errors.KeyConflictError), ws.transaction() as tx:
                tx.insert("orders", [(3, "paid")])
            ws.install(RULE)
            assert sorted(ws["n"]) == [("new", 2), ("sent", 1)]
            ws.check_invariants()
