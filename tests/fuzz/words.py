"""The names that scripts of cases use."""

from __future__ import annotations

import datetime
import zoneinfo
from collections import Counter
from decimal import Decimal

from fuzz.case import ApplyMany, Case, Commit, Do, Many, Table
from fuzz.play import play
from fuzz.sql.tree import (
    Cte,
    Derived,
    E,
    Item,
    Join,
    Named,
    Select,
    SetOperation,
    Sort,
    Values,
    Window,
    With,
)
from support.kinds import Listed
from support.rules import (
    Aggregate,
    Arithmetic,
    Atom,
    Call,
    Comparison,
    Constant,
    Either,
    Head,
    Minus,
    Nearest,
    Order,
    Rule,
    Variable,
    Wildcard,
    Windowed,
)

inf, nan = float("inf"), float("nan")


def repeat(case: Case) -> None:
    """Play the case; raises what is wrong."""
    said = play(case)
    print("as it should be" if said else "the oracle can't tell what is right")


__all__ = [
    "Aggregate",
    "ApplyMany",
    "Arithmetic",
    "Atom",
    "Call",
    "Case",
    "Commit",
    "Comparison",
    "Constant",
    "Counter",
    "Cte",
    "Decimal",
    "Derived",
    "Do",
    "E",
    "Either",
    "Head",
    "Item",
    "Join",
    "Listed",
    "Many",
    "Minus",
    "Named",
    "Nearest",
    "Order",
    "Rule",
    "Select",
    "SetOperation",
    "Sort",
    "Table",
    "Values",
    "Variable",
    "Wildcard",
    "Window",
    "Windowed",
    "With",
    "datetime",
    "inf",
    "nan",
    "repeat",
    "zoneinfo",
]
