"""Expressions of a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lftj.errors import SqlError, UnsupportedSqlError
from lftj.language.diagnostics import error_at
from lftj.sql import nodes
from lftj.sql.errors import unsupported
from lftj.sql.nodes import Call, Case, Cast, Column, Compare, Constant, Expression, In, IsNull, Logic, Not
from lftj.sql.reading.constants import computed, converted, has_parts, read, series, type_name
from lftj.statements.binder import Binder, character_place

Written = Mapping[str, Any]
Parts = tuple[Expression, ...]
"""The children of an expression, which are read."""

COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "!=",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "<=>",
    "COMPARE_DISTINCT_FROM": "<!=>",
}
_FREE = (
    *("random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "setseed", "nextval", "currval"),
    *("now", "today", "current_date", "current_time", "get_current_time", "current_localtime"),
    *("current_timestamp", "get_current_timestamp", "transaction_timestamp", "current_localtimestamp"),
    *("txid_current", "current_query"),
)
"""Functions whose value is not the row's."""


class ExpressionReader:
    """Expressions of one text."""

    def __init__(self, sql: str, binder: Binder) -> None:
        self.sql, self.binder = sql, binder

    def place(self, written: Written) -> nodes.Place | None:
        return character_place(self.sql, written)

    def refusal(self, written: Written, what: str, instead: str = "") -> UnsupportedSqlError:
        return unsupported(self.sql, self.place(written), what, instead)

    def read(self, written: Written) -> Expression:
        """Raises UnsupportedSqlError for a class of expressions that is not known."""
        of, type_ = written["expression_class"], written["type"]
        shown = written.get("return_type") or written.get("value", {}).get("type", {})
        if "collation" in shown.get("type_info", {}):
            raise self.refusal(written, "a collation", "order or compare by lower()")
        self.type(shown, written)
        if type_ in COMPARISONS or type_ == "COMPARE_IN":
            first, *others = map(self._row, written["children"])
            if first and all(others):
                sign, place = COMPARISONS.get(type_, "="), self.place(written)
                return Logic("or", tuple(_compared(sign, first, other, place) for other in others if other))
        if type_ not in _READERS:
            raise self.refusal(written, f"an expression of class {of} {type_}".lower().replace("_", " "))
        parts, place = self.all(written.get("children", ())), self.place(written)
        try:
            return _READERS[type_](self, written, parts, place)
        except SqlError as error:
            raise error if error.span else error_at(type(error), self.sql, place, str(error)) from None

    def all(self, written: Sequence[Written]) -> tuple[Expression, ...]:
        return tuple(map(self.read, written))

    def type(self, type_: Written, written: Written) -> str:
        """The name of an expression's type.  Raises UnsupportedSqlError for one whose values have parts."""
        if has_parts(type_):
            name = type_.get("type_info", {}).get("alias") or type_["id"]
            raise self.refusal(written, f"a value of type {name}", "a column for each part")
        return type_name(type_) if type_ else ""

    def keys(self, written: Sequence[Written]) -> tuple[nodes.SortKey, ...]:
        """An ORDER BY."""
        parts = ((one["expression"], one["type"], one["null_order"]) for one in written)
        return tuple(
            nodes.SortKey(self.read(of), order == "DESCENDING", nulls == "NULLS FIRST")
            for of, order, nulls in parts
        )

    def _row(self, written: Written) -> Parts:
        """The values of a row that is written out, as types of it say; of another value none."""
        parts = written.get("children", ())
        if written["type"] == "OPERATOR_CAST" and (row := self._row(parts[0])):
            types = [type_name(one["second"]) for one in written["return_type"]["type_info"]["child_types"]]
            return tuple(self._converted(of, type_, True, None) for of, type_ in zip(row, types, strict=True))
        return self.all(parts) if written.get("qname", {}).get("path", [""])[-1] == "row" else ()

    # -- expressions over those that are read -----------------------------------------------

    def _column(self, written: Written, _: Parts, place: nodes.Place | None) -> Expression:
        at = written.get("index", 0)
        if "binding" in written:  # of the one table below
            at = written["binding"].get("column_index", 0)
        return Column(at, type_name(written["return_type"]), place=place)

    def _constant(self, written: Written, _: Parts, place: nodes.Place | None) -> Expression:
        called = re.match(r"\w+", self.sql[slice(*place)]) if place else None
        if called and called[0].lower() in _FREE:
            raise self._volatile(written, called[0])
        return read(written["value"], place)

    def _case(self, written: Written, _: Parts, place: nodes.Place | None) -> Expression:
        branches = tuple(
            (self.read(check["when_expr"]), self.read(check["then_expr"])) for check in written["case_checks"]
        )
        type_ = type_name(written["return_type"])
        return Case(branches, self.read(written["else_expr"]), type_, place=place)

    def _is_null(self, written: Written, parts: Parts, place: nodes.Place | None) -> Expression:
        test = IsNull(*parts, place=place)
        return test if written["type"] == "OPERATOR_IS_NULL" else Not(test, place=place)

    def _between(self, written: Written, parts: Parts, place: nodes.Place | None) -> Expression:
        value, low, high = parts
        lower = ">=" if written.get("lower_inclusive", True) else ">"
        upper = "<=" if written.get("upper_inclusive", True) else "<"
        both = Compare(lower, value, low, place=place), Compare(upper, value, high, place=place)
        return Logic("and", both, place=place)

    def _cast(self, written: Written, parts: Parts, place: nodes.Place | None) -> Expression:
        type_ = type_name(written["return_type"])
        fails = not written["function_data"].get("try_cast", False)
        (argument,) = parts
        return self._converted(argument, type_, fails, place)

    def _converted(self, of: Expression, type_: str, fails: bool, place: nodes.Place | None) -> Expression:
        if isinstance(of, Constant):
            return converted(self.binder, of, type_, fails)
        return of if of.type == type_ else Cast(of, type_, fails, place=place)

    def _call(self, written: Written, parts: Parts, place: nodes.Place | None) -> Expression:
        type_ = type_name(written["return_type"])
        name = written["qname"]["path"][-1]
        if name in _FREE:
            raise self._volatile(written, name)
        if name in _OPTIONS and len(parts) > _OPTIONS[name]:
            parts = self._by_options(written, parts)
        if name in nodes.SERIES:
            return replace(series(self.binder, name, parts, type_), place=place)
        constants = [one for one in parts if isinstance(one, Constant)]
        if name not in ("error", "list_value") and len(constants) == len(parts):
            return computed(self.binder, name, constants, type_)
        if name == "error" and constants:  # DuckDB's own goes on with a setting of DuckDB's
            parts = (replace(constants[0], value=str(constants[0].value).partition(" - scalar")[0]),)
        if type_ == "FLOAT":  # rules compute with doubles
            return Cast(Call(name, parts, "DOUBLE", place=place), type_, place=place)
        return Call(name, parts, type_, place=place)

    def _volatile(self, written: Written, name: str) -> UnsupportedSqlError:
        return self.refusal(written, f"the volatile {name}()", "write the value")

    def _by_options(self, written: Written, arguments: Parts) -> Parts:
        """The arguments of a regular expression; ``i`` becomes a part of it, ``g`` stays."""
        text, pattern, *others, options = arguments
        known = options.value if isinstance(options, Constant) and isinstance(pattern, Constant) else "?"
        if not isinstance(pattern, Constant) or set(known) - {*"cig"}:
            raise self.refusal(written, "such options of a regular expression", "write '(?i)' in it")
        if "i" in known and pattern.value is not None:
            pattern = replace(pattern, value=f"(?i){pattern.value}")
        return text, pattern, *others, *([Constant("g", "VARCHAR")] if "g" in known else [])


def _compared(sign: str, left: Parts, right: Parts, place: nodes.Place | None) -> Expression:
    """Rows by their first values that differ, where NULL is one, above all others."""
    pairs = list(zip(left, right, strict=True))
    same = [Compare("<=>", one, other, place=place) for one, other in pairs]
    if sign in ("=", "<=>", "!=", "<!=>"):
        test = Logic("and", tuple(same), place=place)
        return test if sign in ("=", "<=>") else Not(test, place=place)
    found: Expression = Constant("=" in sign, "BOOLEAN")
    for (one, other), alike in zip(reversed(pairs), reversed(same), strict=True):
        low, high = (one, other) if sign[0] == "<" else (other, one)
        less = Logic("or", (IsNull(high), Compare("<", low, high, place=place)))
        found = Logic("or", (Logic("and", (Not(IsNull(low)), less)), Logic("and", (alike, found))))
    return found


_OPTIONS = {"regexp_matches": 2, "regexp_full_match": 2, "regexp_extract": 3, "regexp_replace": 3}
"""Where a regular expression's options stand."""

_READERS: dict[str, Callable[[ExpressionReader, Written, Parts, nodes.Place | None], Expression]] = {
    **dict.fromkeys(("BOUND_REF", "BOUND_COLUMN_REF"), ExpressionReader._column),
    **dict.fromkeys(
        COMPARISONS,
        lambda _, written, parts, place: Compare(COMPARISONS[written["type"]], *parts, place=place),
    ),
    "CONJUNCTION_AND": lambda _, written, parts, place: Logic("and", parts, place=place),
    "CONJUNCTION_OR": lambda _, written, parts, place: Logic("or", parts, place=place),
    **dict.fromkeys(("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"), ExpressionReader._is_null),
    "VALUE_CONSTANT": ExpressionReader._constant,
    "CASE_EXPR": ExpressionReader._case,
    "OPERATOR_NOT": lambda _, written, parts, place: Not(*parts, place=place),
    "COMPARE_IN": lambda _, written, parts, place: In(parts[0], parts[1:], place=place),
    "COMPARE_BETWEEN": ExpressionReader._between,
    "OPERATOR_COALESCE": lambda _, written, parts, place: Call(
        "coalesce", parts, type_name(written["return_type"]), place=place
    ),
    "OPERATOR_CAST": ExpressionReader._cast,
    "BOUND_FUNCTION": ExpressionReader._call,
}
