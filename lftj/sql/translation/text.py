"""`Writer`: a body and the terms of its head as the text of a rule.

Variables that a test makes equal become one, and constants go into atoms; so what was a join of tables
becomes atoms that share variables, which is what the search is for.

A condition is written in one of two ways.  As a *literal* of a body it holds or not, and what it reads is
known where it holds; there the search can use it.  Within an expression it is true, false or NULL.

Invariants

1. Where an expression may be NULL and is set to a variable, it is wrapped in ``coalesce(..., null)``, which
   reads nothing strictly: no row is lost.
2. Negation is pushed to the leaves: rules have none of conditions.
3. Where NULL may meet NULL by ``<=>``, one atom names the variable and the others ask for it behind ``<=>``;
   where any of the equations is ``=``, it is not NULL, and stands plainly.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lftj.sql import nodes
from lftj.sql.nodes import Call, Case, Cast, Compare, Constant, Expression, In, IsNull, Logic, Not, Variable
from lftj.sql.translation.bodies import Atom, Body, Shape
from lftj.sql.translation.expressions import FALSE, exists_in, is_null, nullable, variables, walked
from lftj.sql.translation.functions import INSTEAD, TESTS, template
from lftj.sql.types import digits, holds, kind, written
from lftj.values import spelling
from lftj.values.names import nearest_usable
from lftj.values.operators import NEGATED

_KEYWORDS = (
    *("in", "like", "not", "is", "null", "true", "false", "escape", "bag", "distinct", "default", "if"),
    *("desc", "nulls", "first", "by", "per", "rows", "range", "groups", "copies", "top"),
)
UNIFIED = ("integer", "text", "date", "boolean", "timestamp")
"""Kinds of values that are in one domain, whatever their widths."""

MOST_ALTERNATIVES = 8
"""Of a body by its disjunctions together; more conditions are tested on the rows."""

MOST_BRANCHES = 80
"""Of a CASE, each of which is a level of the rule's expression."""

EXACT_DIGITS = 15
"""Of a decimal literal that is a float on its way to the type of a cast."""

CONDITIONS = (Compare, Logic, Not, IsNull, In)

_EXACT = (("integer", "decimal"), ("integer", "float"), ("decimal", "float"), ("date", "timestamp"))
"""Casts that round nothing."""

_APART = ({"integer", "date"}, {"integer", "timestamp"})
"""Kinds whose values rules cast, and DuckDB does not."""

Refuse = Callable[..., Exception]


class Writer:
    """One rule on its way to a text; ``shapes``: of the relations that its body reads."""

    def __init__(self, body: Body, shapes: Mapping[str, Shape], refuse: Refuse) -> None:
        self._body, self._shapes, self._refuse = body, shapes, refuse
        self._parent: dict[int, int] = {}
        self._strict: set[int] = set()
        self._constants: dict[int, Constant] = {}
        self._known: list[Variable] = []  # equal to itself: not NULL
        self._names: dict[int, str] = {}
        self._taken: set[str] = set(_KEYWORDS)
        self._computed: dict[Expression, str] = {}
        self._assignments: list[str] = []
        self._asked: list[str] = []
        self._alternatives = 1
        self._defined = {one.variable.number: one for one in body.tests if isinstance(one, nodes.Defined)}
        self._tests = self._unified(one for one in body.tests if not isinstance(one, nodes.Defined))
        self._atoms = [atom for atom in body.atoms if not self._is_implied(atom)]

    # -- variables -------------------------------------------------------------------------

    def _root(self, variable: Variable) -> int:
        number = variable.number
        while number in self._parent:
            number = self._parent[number]
        return number

    def _unified(self, tests: Iterable[Expression]) -> list[Expression]:
        """The tests that are left when equal variables are one."""
        rest = [test for test in tests if not self._equal(test)]
        return [test for test in rest if not self._set(test)]

    def _equal(self, test: Expression) -> bool:
        """Whether a test says that two variables are one."""
        if not isinstance(test, Compare) or test.operator not in ("=", "<=>"):
            return False
        left, right = test.left, test.right
        if not isinstance(left, Variable) or not isinstance(right, Variable):
            return False
        if {left.number, right.number} & self._defined.keys():
            return False
        in_one_domain = kind(left.type) == kind(right.type) and kind(left.type) in UNIFIED
        if left.type != right.type and not in_one_domain:
            return False
        strict = test.operator == "=" or not left.nullable or not right.nullable
        one, other = self._root(left), self._root(right)
        if one != other:
            self._parent[max(one, other)] = min(one, other)
            if {one, other} & self._strict:
                self._strict.add(min(one, other))
        elif strict and one not in self._strict:
            self._known.append(left)
        if strict:
            self._strict.add(self._root(left))
        return True

    def _set(self, test: Expression) -> bool:
        """Whether a test says that a variable is a constant, which then stands in its place."""
        if not isinstance(test, Compare) or test.operator != "=":
            return False
        for one, other in ((test.left, test.right), (test.right, test.left)):
            if isinstance(one, Variable) and isinstance(other, Constant) and kind(one.type) in UNIFIED:
                same = kind(one.type) == kind(other.type) and self._constant(other)
                if same and one.number not in self._defined and self._root(one) not in self._constants:
                    self._constants[self._root(one)] = other
                    return True
        return False

    def _name(self, variable: Variable) -> str:
        """What a variable is called, or the constant that it is."""
        known, root = self._constant_of(variable), self._root(variable)
        if known is not None:
            return self._constant(known)
        if root not in self._names:
            self._names[root] = self._free(variable.name)
        return self._names[root]

    def _constant_of(self, variable: Variable) -> Constant | None:
        return self._constants.get(self._root(variable))

    def _free(self, wanted: str) -> str:
        name = nearest_usable(wanted, self._taken)
        self._taken.add(name)
        return name

    def _variable(self, of: Expression) -> str:
        """A variable that is set to an expression."""
        if isinstance(of, Variable) and self._constant_of(of) is None:
            return self._name(of)
        if of not in self._computed:
            name = self._free(next((one.name for one in variables(of)), "v"))
            self._computed[of] = name
            self._assignments.append(f"{name} = {self._assigned(of)}")
        return self._computed[of]

    # -- heads -------------------------------------------------------------------------------

    def term(self, of: Expression) -> str:
        if not isinstance(of, nodes.Term):
            return self._variable(of)
        arguments = [self._variable(one) for one in of.arguments]
        arguments[1:1] = of.settings
        if of.order:
            arguments.append(f"by: {self._by(of.order)}")
        distinct = "distinct " if of.distinct else ""
        return f"{of.function}({distinct}{', '.join(arguments)})"

    def window(self, target: Variable, of: nodes.WindowCall) -> str:
        arguments = []
        for number, one in enumerate(of.arguments):
            as_is = isinstance(one, Constant) and (number > 0 or of.function in ("top", "ntile"))
            as_is = as_is and kind(one.type) != "float"  # which may be infinite
            arguments.append(self._value(one) if as_is else self._variable(one))
        if of.order:
            arguments.append(f"by: {self._by(of.order)}")
        if of.partition:
            arguments.append(f"per: {_listed([self._variable(one) for one in of.partition])}")
        if of.frame is not None:
            unit, first, last = of.frame
            ends = ("_" if end is None else spelling.literal(end) for end in (first, last))
            arguments.append(f"{unit}: ({', '.join(ends)})")
        return f"{self._name(target)} = {of.function}({', '.join(arguments)})"

    def _by(self, order: Sequence[nodes.SortKey]) -> str:
        keys: dict[str, str] = {}
        for key in order:
            signs = (" desc" if key.descending else " asc") + " nulls first" * key.nulls_first
            keys.setdefault(self._variable(key.expression), signs)
        return _listed([name + signs for name, signs in keys.items()])

    # -- bodies --------------------------------------------------------------------------------

    def _is_implied(self, atom: Atom) -> bool:
        """Whether it asks for distinct rows of a definition of which the body has a row."""
        made_of = self._shapes[atom.relation].made_of
        if made_of is None:
            return False
        number, places = made_of
        if any(self._root(one) in self._strict and one.nullable for _, one in atom.terms):
            return False
        rows = ([columns[place] for place in places] for of, columns in self._body.rows if of == number)
        mine = [self._root(one) for _, one in atom.terms]
        return any(mine == [isinstance(of, Variable) and self._root(of) for of in row] for row in rows)

    def body(self) -> str:
        literals = [text for test in self._tests for text in self._literals(test)]
        literals += [
            f"{self._name(one)} is not null" for one in self._known if self._constant_of(one) is None
        ]
        said = Counter(self._root(variable) for atom in self._atoms for _, variable in atom.terms)
        for number, of in reversed(self._defined.items()):
            if number in self._names:
                literals.append(f"{self._names[number]} = {self._assigned(of.value)}")
        named: set[int] = set()
        atoms = [self._atom(atom, said, named) for atom in self._atoms]
        return ", ".join([*atoms, *literals, *self._assignments]) or "true = true"

    def _atom(self, atom: Atom, said: Mapping[int, int], named: set[int]) -> str:
        terms = []
        for column, variable in atom.terms:
            root = self._root(variable)
            if root in self._constants:
                terms.append(f"{column}: {self._constant(self._constants[root])}")
            elif said[root] > 1 or root in self._names:
                sign = "<=> " if root in named and root not in self._strict else ""
                named.add(root)
                terms.append(f"{column}: {sign}{self._name(variable)}")
        if not terms:
            terms = [f"{atom.terms[0][0]}: _"]
        return f"{atom.relation}({', '.join(terms)})"

    def reads(self) -> Iterator[str]:
        """The relations of the text, once it is written."""
        yield from (atom.relation for atom in self._atoms)
        yield from self._asked

    # -- values ----------------------------------------------------------------------

    def _value(self, of: Expression) -> str:
        """An expression as one operand: in parentheses where it is an operation."""
        if isinstance(of, Variable):
            return self._name(of)
        if isinstance(of, Constant):
            return self._constant(of)
        if isinstance(of, Call):
            return self._call(of)
        if isinstance(of, Cast):
            return self._cast(of)
        if isinstance(of, Case):
            return self._case(of)
        return f"coalesce({self._condition(of)}, null)"

    def _assigned(self, of: Expression) -> str:
        """An expression as what a variable is set to: NULL where it is NULL."""
        if _is_untyped(of) or (isinstance(of, Constant) and kind(of.type) in ("decimal", "float")):
            text = self._value(of)
            if isinstance(of, Constant) and isinstance(of.value, Decimal) and len(text) > EXACT_DIGITS:
                text = f'"{text}"'
            return f'cast({text}, "{self._type(of.type, of.place)}")'
        text = self._value(of)
        wrapped = not nullable(of) or isinstance(of, (Variable, *CONDITIONS))
        return text if wrapped else f"coalesce({text}, null)"

    def _constant(self, of: Constant) -> str:
        if of.value is None:
            return "null"
        text = literal(of.value, of.type)
        if text is None:
            raise self._refuse(of.place, f"a constant of type {of.type}")
        return text

    def _call(self, of: Call) -> str:
        if of.function in TESTS:
            return f"coalesce({self._condition(of)}, null)"
        found = template(of)
        if found is None:
            types = ", ".join(one.type for one in of.arguments) or "nothing"
            what = f"the function {of.function}() of {types}"
            raise self._refuse(of.place, what, INSTEAD.get(of.function, ""))
        shape, arguments = found
        text = self._filled(shape, arguments)
        return text if shape[0] not in "{-" or shape == "{0}" else f"({text})"

    def _filled(self, shape: str, arguments: Sequence[Expression]) -> str:
        """A template with the arguments that it names."""
        shape = shape.replace("{*}", ", ".join(f"{{{number}}}" for number in range(len(arguments))))
        met = any(kind(one.type) == "decimal" and not isinstance(one, Constant) for one in arguments)
        value = self._among_decimals if met else self._alone
        return re.sub(r"\{(\d+)\}", lambda found: value(arguments[int(found[1])]), shape)

    def _among_decimals(self, of: Expression) -> str:
        """An operand: a whole number is one of no digits behind the point, as in SQL."""
        whole = isinstance(of, Constant) and kind(of.type) == "decimal" and not digits(of.type)[1]
        return f"{of.value:f}" if isinstance(of, Constant) and of.value and whole else self._value(of)

    def _alone(self, of: Expression) -> str:
        """An operand beside which no decimal stands: there a literal of one would be a float."""
        is_decimal = isinstance(of, Constant) and kind(of.type) == "decimal"
        return self._assigned(of) if is_decimal else self._value(of)

    def _case(self, of: Case) -> str:
        if len(of.branches) > MOST_BRANCHES:
            raise self._refuse(of.place, "a CASE of so many branches", "join VALUES of them")
        text = "" if is_null(of.otherwise) else f", {self._value(of.otherwise)}"
        if _is_untyped(of.branches[-1][1]) and _is_untyped(of.otherwise):
            text = f', cast({self._value(of.otherwise)}, "{self._type(of.type, of.place)}")'
        for condition, value in reversed(of.branches):
            text = f", if({self._condition(condition)}, {self._value(value)}{text})"
        return text[2:]

    def _type(self, type_: str, place: nodes.Place | None) -> str:
        name = written(type_)
        if name is None:
            raise self._refuse(place, f"a value of type {type_}")
        return name

    def _cast(self, of: Cast) -> str:
        argument, target = of.argument, of.type
        source, to = kind(argument.type), kind(target)
        text = self._value(argument) if to == "float" else self._alone(argument)
        name = self._type(target, of.place)
        if source != to and ("list" in (source, to) or {source, to} in _APART):
            raise self._refuse(of.place, f"a cast of {argument.type} to {target}")
        if not of.fails:
            return f'try_cast({text}, "{name}")'
        if source == to and holds(target, argument.type):
            return text
        return f'{"cast" if (source, to) in _EXACT else "sql_cast"}({text}, "{name}")'

    # -- conditions within expressions --------------------------------------------------

    def _condition(self, of: Expression, holds: bool = True) -> str:
        """A condition, or its negation, that is true, false or NULL."""
        if isinstance(of, Not):
            return self._condition(of.argument, not holds)
        if isinstance(of, Logic):
            sign = ", " if (of.operator == "and") == holds else " ; "
            return f"({sign.join(self._condition(one, holds) for one in of.arguments)})"
        if isinstance(of, Compare):
            operator = of.operator if holds else NEGATED[of.operator]
            return f"{self._value(of.left)} {operator} {self._value(of.right)}"
        if isinstance(of, IsNull):
            known = isinstance(of.argument, Variable) and self._constant_of(of.argument) is not None
            if known:  # of an equation beside it
                return f"true = {'false' if holds else 'true'}"
            return f"{self._assigned(of.argument)} is {'' if holds else 'not '}null"
        if isinstance(of, In):
            items = ", ".join(map(self._value, of.items))
            return f"{self._value(of.argument)} {'' if holds else 'not '}in ({items})"
        if isinstance(of, Call) and of.function in TESTS:
            return self._filled(TESTS[of.function][not holds], of.arguments)
        if isinstance(of, nodes.Exists):
            raise self._refuse(of.place, "a subquery in such a place", "make it a column in a WITH")
        if is_null(of):
            return 'cast(null, "bool") = true'
        if isinstance(of, Constant):
            return "true = true" if bool(of.value) == holds else "true = false"
        return f"{self._value(of)} = {'true' if holds else 'false'}"

    # -- literals of a body --------------------------------------------------------------

    def _literals(self, of: Expression, holds: bool = True) -> list[str]:
        """What makes a condition, or its negation, true."""
        if isinstance(of, Not):
            return self._literals(of.argument, not holds)
        if isinstance(of, Logic):
            if (of.operator == "and") == holds:
                return [text for one in of.arguments for text in self._literals(one, holds)]
            n_alternatives = self._alternatives * len(of.arguments)
            if exists_in(of) or (_is_simple(of) and n_alternatives <= MOST_ALTERNATIVES):
                self._alternatives = n_alternatives
                alternatives = (", ".join(self._literals(one, holds)) for one in of.arguments)
                return [f"({' ; '.join(alternatives)})"]
            return [f"coalesce({self._condition(of, holds)}, false) = true"]
        if isinstance(of, nodes.Exists):
            relation, columns = of.relation, tuple(column for column, _ in of.terms)
            if not holds and of.absent is not None:
                relation, columns = of.absent
            self._asked.append(relation)
            more: list[str] = []
            values = (self._term(one, holds, more) for _, one in of.terms)
            terms = ", ".join(f"{column}: {value}" for column, value in zip(columns, values, strict=True))
            return [f"{'' if holds else '!'}{relation}({terms})", *more]
        if isinstance(of, nodes.Member):
            return [f"{self._name(of.element)} in {self._value(of.list)}"]
        if isinstance(of, Case):
            return [f"coalesce({self._value(of)}, {str(not holds).lower()}) = {str(holds).lower()}"]
        if isinstance(of, IsNull) and any(map(_chooses, walked(of.argument))):
            return [f"coalesce({self._condition(of, holds)}, false) = true"]  # rules refuse what they know
        if isinstance(of, Constant) and of != FALSE and of.value is not None and bool(of.value) == holds:
            return []
        return [self._condition(of, holds)]

    def _term(self, of: Expression, holds: bool, more: list[str]) -> str:
        """A term of an atom, which in one that holds would bind what is computed: it is compared then."""
        found = self._constant_of(of) if isinstance(of, Variable) else of
        if isinstance(found, Constant) and found.value is not None and kind(found.type) != "float":
            return self._constant(found)
        if not holds or isinstance(of, Variable):
            return f"<=> {self._variable(of)}"
        name = self._free("v")
        more.append(f"{name} <=> {self._value(of)}")
        return name


def _chooses(of: Expression) -> bool:
    return isinstance(of, Case) or (isinstance(of, Call) and of.function == "coalesce")


def _is_simple(of: Logic) -> bool:
    """Whether its parts are such as a search can use, or a plain test of a row."""
    parts = [one for part in of.arguments for one in walked(part)]
    return not any(isinstance(one, Cast | IsNull) or _chooses(one) for one in parts) and len(parts) <= 60


def _is_untyped(of: Expression) -> bool:
    """Whether rules know its type by what stands beside it."""
    return is_null(of) or (isinstance(of, Call) and of.function == "error")


def literal(value: Any, type_: str) -> str | None:
    """A value as rules write it; None: they can't.

    >>> literal(0.5, "DOUBLE"), literal(Decimal(3), "DECIMAL(4,0)"), literal('a"b', "VARCHAR")
    ('0.5e0', '3.0', '"a\\\\"b"')
    """
    if kind(type_) == "float":
        if not math.isfinite(value):
            return f'cast("{value}", "float64")'
        text = repr(float(value))
        return text if "e" in text else f"{text}e0"
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text if "." in text else f"{text}.0"
    if not isinstance(value, str | bytes | int | datetime.date):
        return None
    signs = spelling.literal(value)
    return "".join(one if one.isprintable() or one > "\uffff" else f"\\u{ord(one):04x}" for one in signs)


def _listed(names: Sequence[str]) -> str:
    """One by itself, several in parentheses."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"
