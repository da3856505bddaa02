"""Plays values that are inserted into a column of another type: taken means equal."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from fuzz.case import Case, Commit, Table
from fuzz.difference import Difference
from fuzz.expected import OutOfReach
from lftj import errors
from maintenance import Workspace


def family(value: Any) -> str:
    """What values have in common that may be equal: a day is no moment, and a local time no instant."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, datetime.datetime):
        return "instant" if value.tzinfo else "local time"
    return type(value).__name__


def equal(left: Any, right: Any) -> bool:
    return family(left) == family(right) and bool(left == right)


def play_values(case: Case) -> None:
    base, other = case.tables
    (step,) = case.steps
    assert isinstance(base, Table) and isinstance(other, Table) and isinstance(step, Commit)
    try:
        first, new = base.arrow(), other.arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        raise OutOfReach("not a value of the type") from None
    workspace = Workspace()
    try:
        workspace.load("r", first)
    except errors.DataError:
        raise OutOfReach("not loaded") from None
    workspace.install(case.rules)
    before = [row[0] for row in workspace["r"]]
    rows: Any = [(value,) for value in new["c0"].to_pylist()] if step.way == "rows" else new
    try:
        with workspace.transaction() as transaction:
            if step.way == "apply":
                rows = new.append_column("weight", pa.array([1] * new.num_rows, pa.int64()))
                transaction.apply("r", rows)
            else:
                transaction.insert("r", rows)
    except errors.LftjError as error:
        if [row[0] for row in workspace["r"]] != before:
            raise Difference(f"values: refused and yet changed, {error}") from error
        return
    held = [row[0] for row in workspace["r"]]
    for value in new["c0"].to_pylist():
        if not any(equal(value, one) for one in held):
            raise Difference(f"values: {value!r} of {other.types[0]} in {base.types[0]} became one of {held}")
    if len(held) > len(before) + new.num_rows:
        raise Difference("values: more rows than there were")
