"""Expressions of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lftj.sql.errors import unsupported
from lftj.sql.nodes import (
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Constant,
    Expression,
    In,
    IsNull,
    Logic,
    Not,
    SortKey,
)
from lftj.sql.reading.binder import Binder, character_place
from lftj.sql.reading.constants import computed, converted, read, type_name

Written = Mapping[str, Any]

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
)
"""Functions whose value is not the row's."""


class ExpressionReader:
    """Expressions of one text."""

    def __init__(self, sql: str, binder: Binder) -> None:
        self._sql, self._binder = sql, binder

    def read(self, written: Written) -> Expression:
        """Raises UnsupportedSqlError for a class of expressions that is not known."""
        of, type_ = written["expression_class"], written["type"]
        place = character_place(self._sql, written)
        if "collation" in written.get("return_type", {}).get("type_info", {}):
            raise unsupported(self._sql, place, "a collation", "order or compare by lower()")
        if of == "BOUND_COLUMN_REF":  # of the one table below
            at = written["binding"].get("column_index", 0)
            return Column(at, type_name(written["return_type"]), place)
        if of == "BOUND_REF":
            return Column(written.get("index", 0), type_name(written["return_type"]), place)
        if of == "BOUND_CONSTANT":
            return read(written["value"], place)
        if type_ in COMPARISONS:
            left, right = self._all(written["children"])
            return Compare(COMPARISONS[type_], left, right, place)
        if of == "BOUND_CASE":
            branches = tuple(
                (self.read(check["when_expr"]), self.read(check["then_expr"]))
                for check in written["case_checks"]
            )
            return Case(branches, self.read(written["else_expr"]), type_name(written["return_type"]), place)
        if type_ in _READERS:
            return _READERS[type_](self, written)
        raise unsupported(self._sql, place, f"an expression of class {of} {type_}".lower().replace("_", " "))

    def keys(self, written: Sequence[Written]) -> tuple[SortKey, ...]:
        """An ORDER BY."""
        return tuple(
            SortKey(
                self.read(one["expression"]),
                one["type"] == "DESCENDING",
                one["null_order"] == "NULLS FIRST",
            )
            for one in written
        )

    def all(self, written: Sequence[Written]) -> tuple[Expression, ...]:
        return tuple(self._all(written))

    def _all(self, written: Sequence[Written]) -> list[Expression]:
        return [self.read(one) for one in written]

    def _logic(self, written: Written) -> Expression:
        operator = "and" if written["type"] == "CONJUNCTION_AND" else "or"
        return Logic(operator, self.all(written["children"]), character_place(self._sql, written))

    def _not(self, written: Written) -> Expression:
        return Not(self.read(written["children"][0]), character_place(self._sql, written))

    def _is_null(self, written: Written) -> Expression:
        place = character_place(self._sql, written)
        test = IsNull(self.read(written["children"][0]), place)
        return test if written["type"] == "OPERATOR_IS_NULL" else Not(test, place)

    def _in(self, written: Written) -> Expression:
        place = character_place(self._sql, written)
        argument, *items = self._all(written["children"])
        test = In(argument, tuple(items), place)
        return test if written["type"] == "COMPARE_IN" else Not(test, place)

    def _between(self, written: Written) -> Expression:
        place = character_place(self._sql, written)
        if "children" in written:
            value, low, high = self._all(written["children"])
        else:
            value, low, high = (self.read(written[part]) for part in ("input", "lower", "upper"))
        lower = ">=" if written.get("lower_inclusive", True) else ">"
        upper = "<=" if written.get("upper_inclusive", True) else "<"
        return Logic("and", (Compare(lower, value, low, place), Compare(upper, value, high, place)), place)

    def _coalesce(self, written: Written) -> Expression:
        place, type_ = character_place(self._sql, written), type_name(written["return_type"])
        *first, last = self._all(written["children"])
        return Case(tuple((Not(IsNull(one)), one) for one in first), last, type_, place)

    def _cast(self, written: Written) -> Expression:
        place, type_ = character_place(self._sql, written), type_name(written["return_type"])
        (child,) = written["children"] if "children" in written else [written["child"]]
        fails = not (written.get("function_data") or written).get("try_cast", False)
        argument = self.read(child)
        if isinstance(argument, Constant):
            return converted(self._binder, argument, type_, fails)
        return argument if argument.type == type_ else Cast(argument, type_, fails, place)

    def _call(self, written: Written) -> Expression:
        place, type_ = character_place(self._sql, written), type_name(written["return_type"])
        name = written["qname"]["path"][-1]
        arguments = self.all(written.get("children", ()))
        if name in _FREE:
            raise unsupported(self._sql, place, f"the volatile {name}()", "write the value")
        if name not in ("error", "list_value") and all(isinstance(one, Constant) for one in arguments):
            constants = [one for one in arguments if isinstance(one, Constant)]
            return computed(self._binder, name, constants, type_)
        return Call(name, arguments, type_, place)


_READERS = {
    "CONJUNCTION_AND": ExpressionReader._logic,
    "CONJUNCTION_OR": ExpressionReader._logic,
    "OPERATOR_NOT": ExpressionReader._not,
    "OPERATOR_IS_NULL": ExpressionReader._is_null,
    "OPERATOR_IS_NOT_NULL": ExpressionReader._is_null,
    "COMPARE_IN": ExpressionReader._in,
    "COMPARE_NOT_IN": ExpressionReader._in,
    "COMPARE_BETWEEN": ExpressionReader._between,
    "OPERATOR_COALESCE": ExpressionReader._coalesce,
    "OPERATOR_CAST": ExpressionReader._cast,
    "BOUND_CAST": ExpressionReader._cast,
    "BOUND_FUNCTION": ExpressionReader._call,
}
