"""What heads without a cycle mean the same in Spark's own operators, whatever the data; cells have the rest.

Left to cells is what could differ by Spark's settings, types or order of rows: sums of floats, keys of floats
and lists, quotients, and whatever rules compute.  Nothing is run or built, so that it costs a query nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql.types import ByteType, DataType, DecimalType, IntegerType, LongType, ShortType

from lftj.language.body import Body
from lftj.language.syntax import Aggregate, Atom, Comparison, Constant, Term, Variable
from spark_bridge.acyclic.own_head import OwnHead
from spark_bridge.front_ends.row_conditions import condition, quoted

_SUMMED_DIGITS = 28  # of a decimal: ten more are left for ten thousand million rows
_LOW = (1 << 32) - 1

Types = Mapping[str, list[tuple[pa.DataType, DataType]]]
"""By relation, of each column our type and Spark's."""


class OnlyCells(Exception):
    """What a head has that is left to cells."""


def refuse_other_meaning(head: OwnHead, types: Types) -> None:
    """Raise OnlyCells for a head that Spark's operators may give otherwise."""
    bodies = [body for rule in head.rows.rules for body in rule.checked.bodies]
    bound = [_bound(body, types) for body in bodies]
    if head.aggregates and len(bodies) > 1:
        raise OnlyCells("several bodies are aggregated")
    if not head.aggregates and head.plan.schema.functional:
        raise OnlyCells("a key has one value")
    if head.aggregates and any(pa.types.is_floating(arrow) for arrow, _ in bound[0].values()):
        raise OnlyCells("floats are aggregated over")
    for call in head.aggregates:
        _refuse_aggregate(call, bound[0])


def _bound(body: Body, types: Types) -> dict[str, tuple[pa.DataType, DataType]]:
    """The variables of a body with their types at the first place."""
    if body.assignments:
        raise OnlyCells("values are computed")
    found: dict[str, tuple[pa.DataType, DataType]] = {}
    came: Counter[str] = Counter()
    for atom in (*body.atoms, *body.negations):
        for term, (arrow, type_) in zip(atom.terms, types[atom.relation], strict=True):
            if isinstance(term, Constant):
                is_constant("", type_, term)
            elif isinstance(term, Variable):
                came[term.name] += 1
                if pa.types.is_nested(arrow):
                    raise OnlyCells(f"{term.name!r} is a list")
                first, _ = found.setdefault(term.name, (arrow, type_))
                both_integers = pa.types.is_integer(first) and pa.types.is_integer(arrow)
                if first != arrow and not both_integers:
                    raise OnlyCells(f"{term.name!r} is {first} and {arrow}")
                if came[term.name] > 1 and pa.types.is_floating(arrow):
                    raise OnlyCells(f"{term.name!r}, by which is joined, is a float")
    of = {name: ("", type_) for name, (_, type_) in found.items()}
    if any(condition(test, of) is None for test in body.comparisons):
        raise OnlyCells("Spark may compare otherwise")
    return found


def _refuse_aggregate(call: Aggregate, bound: Mapping[str, tuple[pa.DataType, DataType]]) -> None:
    if call.function not in AGGREGATES or call.distinct or call.default is not None:
        raise OnlyCells(f"{call.name} is not Spark's")
    if not all(isinstance(one, Variable) and one.name in bound for one in call.arguments):
        raise OnlyCells("what is aggregated is computed")
    _, aggregate = AGGREGATES[call.function]
    aggregate(*(("", bound[one.name][1]) for one in call.arguments if isinstance(one, Variable)))


def is_constant(column: str, type_: DataType, constant: Constant) -> str:
    """Whether a column is that.  Raises OnlyCells."""
    said = condition(Comparison("=", Variable("column"), constant), {"column": (column, type_)})
    if said is None:
        raise OnlyCells(f"{constant.value!r} is no whole number, text or date")
    return said


def variables(atom: Atom) -> list[str]:
    """Those of an atom, as often as they stand there."""
    terms: list[Term] = list(atom.terms)
    return [term.name for term in terms if isinstance(term, Variable)]


# -- aggregates --------------------------------------------------------------------

_Argument = tuple[str, DataType]


def _count(*of: _Argument) -> str:
    return f"count({of[0][0] if of else 1})"


def _sum(of: _Argument) -> str:
    column, type_ = of
    if isinstance(type_, ByteType | ShortType | IntegerType):
        return f"sum({column})"
    if isinstance(type_, DecimalType) and type_.precision <= _SUMMED_DIGITS:
        return f"sum(CAST({column} AS DECIMAL(38, {type_.scale})))"
    if not isinstance(type_, LongType):
        raise OnlyCells(f"{type_.simpleString()} is added")
    # In two halves, each of which has room for thousands of millions of rows.
    low = f"sum({column} & {_LOW})"
    high = f"(sum(shiftright({column}, 32)) + shiftright({low}, 32))"
    total = f"shiftleft({high}, 32) | ({low} & {_LOW})"
    refused = f"CAST(raise_error({quoted('RangeError: a sum is outside the range of int64')}) AS BIGINT)"
    fits = f"{high} IS NULL OR {high} BETWEEN {-(1 << 31)} AND {(1 << 31) - 1}"
    return f"CASE WHEN {fits} THEN {total} ELSE {refused} END"


def _min(of: _Argument) -> str:
    return f"min({of[0]})"


def _max(of: _Argument) -> str:
    return f"max({of[0]})"


AGGREGATES: Mapping[str, tuple[bool, Callable[..., str]]] = {
    "count": (True, _count),
    "sum": (True, _sum),
    "min": (False, _min),
    "max": (False, _max),
}
"""Whether it matters how often an assignment is there, and what Spark's SQL has for the function."""


def counts(head: OwnHead) -> bool:
    """Whether it matters to a head how often an assignment is there."""
    return any(AGGREGATES[call.function][0] for call in head.aggregates)
