"""Names of what is loaded: those that no rule can use are refused with the nearest one that can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

import lftj
from lftj import errors
from lftj.language.parser import parse
from lftj.values.names import is_usable, nearest_usable
from maintenance import Workspace

BAD = {
    "3": "_3",
    "my edge": "my_edge",
    "true": "true_",
    "false": "false_",
    "_": "x",
    "": "x",
    "Straße": "Strasse",
}
MAKERS: list[Callable[[], Any]] = [lftj.Database, Workspace]
ORDERS = pa.table({"Order ID": [1, 2], "Order-ID": [3, 4], "price": [5, 6], "3": [7, 8]})
RENAMES = {"Order ID": "Order_ID", "Order-ID": "Order_ID_2", "3": "_3"}


def is_name_in_rules(name: str) -> bool:
    try:
        program = parse(f"head(x) <- {name}(x, {name}).")
    except errors.RuleSyntaxError:
        return False
    (atom,) = program.rules[0].body
    return atom.relation == name and atom.terms[1].name == name  # type: ignore[union-attr]


@given(
    st.text(st.sampled_from("aZ_09 -é#.\n"), max_size=4)
    | st.sampled_from(("true", "false", "trues", "count"))
)
def test_usable_names_are_those_that_rules_take(name: str) -> None:
    assert is_usable(name) == is_name_in_rules(name)
    near = nearest_usable(name)
    assert is_usable(near)
    assert (near == name) == is_usable(name)
    assert nearest_usable(name, [near]) not in ("", near)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", BAD)
def test_relations(make: Callable[[], Any], name: str) -> None:
    db = make()
    db.load("edge", {"a": [1]})
    with pytest.raises(errors.UnusableNameError, match=f"relation in a rule: call it '{BAD[name]}'$"):
        db.load(name, {"a": [1]})
    assert list(db.relations) == ["edge"]
    with pytest.raises(errors.UnusableNameError, match=r"^3 cannot be the name of a relation in a rule$"):
        db.load(3, {"a": [1]})


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", BAD)
def test_columns(make: Callable[[], Any], name: str) -> None:
    db = make()
    with pytest.raises(errors.UnusableNameError, match=f"column '{name}' cannot be a variable") as caught:
        db.load("edge", {"a": [1], name: [2]})
    assert str(caught.value).endswith(f"give other names, as in columns={{'{name}': '{BAD[name]}'}}")
    assert caught.value.renames == {name: BAD[name]}
    assert not db.relations
    with pytest.raises(errors.UnusableNameError):
        db.load("edge", [(1, 2)], columns=["a", name])
    db.load("edge", {"a": [1], name: [2]}, columns=caught.value.renames)
    assert db["edge"].column_names == ["a", BAD[name]] if make is Workspace else True


@pytest.mark.parametrize(
    "source",
    [
        ORDERS,
        ORDERS.to_pandas(),
        pl.DataFrame(ORDERS.to_pydict()),
        ORDERS.to_pydict(),
        "orders.parquet",
        "orders.csv",
        "orders.arrow",
    ],
    ids=lambda source: source if isinstance(source, str) else type(source).__name__,
)
def test_renames_of_every_source(source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mapping that the error shows is one that does."""
    monkeypatch.chdir(tmp_path)
    parquet.write_table(ORDERS, "orders.parquet")
    csv.write_csv(ORDERS, "orders.csv")
    with pa.ipc.new_file("orders.arrow", ORDERS.schema) as writer:
        writer.write_table(ORDERS)
    db = lftj.Database()
    message = r"column 'Order ID' cannot .*, nor can 'Order-ID', '3':"
    with pytest.raises(errors.UnusableNameError, match=message) as caught:
        db.load("orders", source)
    assert caught.value.renames == RENAMES
    db.load("orders", source, columns=RENAMES)
    assert db["orders"].column_names == [
        "Order_ID",
        "Order_ID_2",
        "price",
        "_3",
    ]
    assert db.query("o(a, b, c, d) <- orders(a, b, c, d), a < 2.").to_pylist() == [
        {"a": 1, "b": 3, "c": 5, "d": 7}
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"pirce": "p"}, "renames 'pirce', and there is no such column; did you mean 'price'?"),
        ({"price": "a", "3": "a"}, "makes two columns 'a'"),
        ({"Order ID": "price"}, "makes two columns 'price'"),
        ({3: "three"}, "renames 3, and there is no such column"),
    ],
)
def test_renames_that_are_none(columns: Any, message: str) -> None:
    db = lftj.Database()
    with pytest.raises(errors.SourceError, match=message.replace("?", r"\?")):
        db.load("orders", ORDERS, columns=columns)
    with pytest.raises(errors.SourceError, match="no column names"):
        db.load("orders", [(1, 2)], columns={"a": "b"})


def test_columns_that_a_list_leaves_out_may_have_any_name() -> None:
    db = lftj.Database()
    db.load("orders", ORDERS, columns=["price"])
    assert db.query("o(p) <- orders(p).").num_rows == 2


def test_a_frame_without_names_is_refused_with_a_way_out() -> None:
    db = lftj.Database()
    with pytest.raises(errors.UnusableNameError, match=r"columns=\{'0': '_0', '1': '_1'\}"):
        db.load("edge", pd.DataFrame([[1, 2], [2, 3]]))
    db.load("edge", pd.DataFrame([[1, 2], [2, 3]]), columns={"0": "_0", "1": "_1"})
