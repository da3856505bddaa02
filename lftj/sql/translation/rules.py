"""Rules: bodies as the text of a program, and which part of the SQL each rule comes from.

Variables that a test makes equal become one, and constants go into atoms; so what was a join of tables
becomes atoms that share variables, which is what the search is for.  The text is the program: it can be
read, is what a folder keeps, and is parsed as any other (1 to 2 ms for a query of TPC-H); the place of each
rule in the SQL is kept beside it.

Invariants

1. Rules whose head nothing reads are left out.
2. Where NULL may meet NULL by ``<=>``, one atom names the variable and the others ask for it behind ``<=>``;
   where any of the equations is ``=``, it is not NULL, and stands plainly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lftj.sql.nodes import (
    Compare,
    Constant,
    Expression,
    Place,
    SortKey,
    Term,
    Variable,
    WindowCall,
    place_around,
)
from lftj.sql.translation.bodies import Atom, Body, Shape, determined
from lftj.sql.translation.expressions import variables
from lftj.sql.translation.text import Refuse, Writer
from lftj.sql.types import kind
from lftj.values.names import nearest_usable

_KEYWORDS = (
    *("in", "like", "not", "is", "null", "true", "false", "escape", "bag", "distinct", "default", "if"),
    *("desc", "nulls", "first", "by", "per", "rows", "range", "groups", "copies", "top"),
)
_UNIFIED = ("integer", "text", "date", "boolean", "timestamp")
"""Kinds of values that are in one domain, whatever their widths."""


Window = tuple[Variable, WindowCall]
"""A window of a rule, and the variable that takes its value."""


@dataclass(frozen=True)
class Rule:
    """``terms``: the head's columns with what they hold; ``defaults``: what, where there is no assignment.

    ``body`` is without ``windows``, which read it.  ``once``: no two of its assignments give equal terms.
    """

    head: str
    terms: tuple[tuple[str, str], ...]
    defaults: Mapping[str, str]
    body: str
    windows: tuple[str, ...]
    bag: bool
    once: bool
    reads: frozenset[str]
    place: Place | None

    @property
    def text(self) -> str:
        shown = []
        for column, term in self.terms:
            default = f" default {self.defaults[column]}" if column in self.defaults else ""
            shown.append(f"{column}: {term}{default}")
        body = ", ".join(filter(None, [self.body, *self.windows]))
        return f"{'bag ' if self.bag else ''}{self.head}({', '.join(shown)}) <- {body}."


@dataclass
class Rules:
    """The rules of one statement; ``taken``: names that heads can't have; ``result``: that of its answer."""

    result: str
    taken: set[str]
    refuse: Refuse
    shapes: dict[str, Shape] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)

    def name(self, wanted: str) -> str:
        """A name that is free, like the one wanted."""
        name = nearest_usable(f"{self.result}_{wanted}", self.taken)
        self.taken.add(name)
        return name

    def add(
        self,
        head: str,
        terms: Sequence[tuple[str, Expression]],
        body: Body,
        *,
        bag: bool = False,
        windows: Sequence[Window] = (),
        place: Place | None = None,
    ) -> None:
        """A rule for a head: columns, and what they hold."""
        writing = _Writing(body, self)
        shown = tuple((column, writing.term(term)) for column, term in terms)
        defaults = {
            column: term.default
            for column, term in terms
            if isinstance(term, Term) and term.default is not None
        }
        more = tuple(writing.window(*window) for window in windows)
        once = determined(body, (term for _, term in terms), self.shapes)
        text = writing.body()
        reads = frozenset(writing.reads())
        place = place or place_around(one.place for one in (*body.tests, *body.columns, *body.atoms))
        self.rules.append(Rule(head, shown, defaults, text, more, bag, once, reads, place))

    def needed(self, head: str) -> list[Rule]:
        """The rules that a head needs, each head's behind those of what it reads."""
        wanted, waiting = {head}, [head]
        while waiting:
            name = waiting.pop()
            more = {one for rule in self.rules if rule.head == name for one in rule.reads} - wanted
            wanted |= more
            waiting += more
        return [rule for rule in self.rules if rule.head in wanted]


class _Writing:
    """One rule on its way to a text."""

    def __init__(self, body: Body, rules: Rules) -> None:
        self._body, self._rules = body, rules
        self._parent: dict[int, int] = {}
        self._strict: set[int] = set()
        self._constant: dict[int, Constant] = {}
        self._known: list[Variable] = []  # equal to itself: not NULL
        self._names: dict[int, str] = {}
        self._taken: set[str] = set(_KEYWORDS)
        self._computed: dict[Expression, str] = {}
        self._assignments: list[str] = []
        self._writer = Writer(self.name, self.computed, self._known_value, self._free, rules.refuse)
        self._tests = self._unified(body.tests)
        self._atoms = [atom for atom in body.atoms if not self._is_implied(atom)]

    # -- variables -------------------------------------------------------------------------

    def _root(self, variable: Variable) -> int:
        number = variable.number
        while number in self._parent:
            number = self._parent[number]
        return number

    def _unified(self, tests: Iterable[Expression]) -> list[Expression]:
        """The tests that are left when equal variables are one."""
        rest = []
        for test in tests:
            if isinstance(test, Compare) and test.operator in ("=", "<=>") and self._equal(test):
                continue
            rest.append(test)
        return [test for test in rest if not self._set(test)]

    def _equal(self, test: Compare) -> bool:
        left, right = test.left, test.right
        if not isinstance(left, Variable) or not isinstance(right, Variable):
            return False
        if kind(left.type) != kind(right.type) or (
            kind(left.type) not in _UNIFIED and left.type != right.type
        ):
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
            if isinstance(one, Variable) and isinstance(other, Constant) and kind(one.type) in _UNIFIED:
                same = kind(one.type) == kind(other.type) and self._writer.constant(other)
                if same and self._root(one) not in self._constant:
                    self._constant[self._root(one)] = other
                    return True
        return False

    def name(self, variable: Variable) -> str:
        """What a variable is called; the constant that it is."""
        known, root = self._known_value(variable), self._root(variable)
        if known is not None:
            return self._writer.constant(known)
        if root not in self._names:
            self._names[root] = self._free(variable.name)
        return self._names[root]

    def _known_value(self, variable: Variable) -> Constant | None:
        return self._constant.get(self._root(variable))

    def _free(self, wanted: str) -> str:
        name = nearest_usable(wanted, self._taken)
        self._taken.add(name)
        return name

    def computed(self, of: Expression) -> str:
        """A variable that is set to an expression."""
        if isinstance(of, Variable) and self._known_value(of) is None:
            return self.name(of)
        if of not in self._computed:
            name = self._free(_wanted(of))
            self._computed[of] = name
            self._assignments.append(f"{name} = {self._writer.assigned(of)}")
        return self._computed[of]

    # -- heads -------------------------------------------------------------------------------

    def term(self, of: Expression) -> str:
        if not isinstance(of, Term):
            return self.computed(of)
        arguments = [self.computed(one) for one in of.arguments]
        arguments[1:1] = of.settings
        if of.order:
            arguments.append(f"by: {self._by(of.order)}")
        distinct = "distinct " if of.distinct else ""
        return f"{of.function}({distinct}{', '.join(arguments)})"

    def window(self, target: Variable, of: WindowCall) -> str:
        arguments = []
        for number, one in enumerate(of.arguments):
            as_is = isinstance(one, Constant) and (number > 0 or of.function in ("top", "ntile"))
            as_is = as_is and kind(one.type) != "float"  # which may be infinite
            arguments.append(self._writer.value(one) if as_is else self.computed(one))
        if of.order:
            arguments.append(f"by: {self._by(of.order)}")
        if of.partition:
            arguments.append(f"per: {_listed([self.computed(one) for one in of.partition])}")
        if of.frame is not None:
            unit, first, last = of.frame
            ends = ("_" if end is None else str(end) for end in (first, last))
            arguments.append(f"{unit}: ({', '.join(ends)})")
        return f"{self.name(target)} = {of.function}({', '.join(arguments)})"

    def _by(self, order: Sequence[SortKey]) -> str:
        keys: dict[str, str] = {}
        for key in order:
            signs = (" desc" if key.descending else " asc") + " nulls first" * key.nulls_first
            keys.setdefault(self.computed(key.expression), signs)
        return _listed([name + signs for name, signs in keys.items()])

    # -- bodies --------------------------------------------------------------------------------

    def _is_implied(self, atom: Atom) -> bool:
        """Whether it asks for distinct rows of a definition of which the body has a row."""
        made_of = self._rules.shapes[atom.relation].made_of
        if made_of is None:
            return False
        number, places = made_of
        mine = [(self._root(variable), variable) for _, variable in atom.terms]
        if any(root in self._strict and variable.nullable for root, variable in mine):
            return False
        for of, columns in self._body.rows:
            if of == number and all(
                isinstance(columns[place], Variable) and self._root(columns[place]) == root  # type: ignore[arg-type]
                for place, (root, _) in zip(places, mine, strict=True)
            ):
                return True
        return False

    def body(self) -> str:
        literals = [text for test in self._tests for text in self._writer.literals(test)]
        literals += [f"{self.name(one)} is not null" for one in self._known if self._known_value(one) is None]
        said: dict[int, int] = {}
        for atom in self._atoms:
            for _, variable in atom.terms:
                root = self._root(variable)
                said[root] = said.get(root, 0) + 1
        named: set[int] = set()
        atoms = [self._atom(atom, said, named) for atom in self._atoms]
        return ", ".join([*atoms, *literals, *self._assignments])

    def _atom(self, atom: Atom, said: Mapping[int, int], named: set[int]) -> str:
        terms = []
        for column, variable in atom.terms:
            root = self._root(variable)
            if root in self._constant:
                terms.append(f"{column}: {self._writer.constant(self._constant[root])}")
            elif said[root] > 1 or root in self._names:
                sign = "<=> " if root in named and root not in self._strict else ""
                named.add(root)
                terms.append(f"{column}: {sign}{self.name(variable)}")
        if not terms:
            terms = [f"{atom.terms[0][0]}: _"]
        return f"{atom.relation}({', '.join(terms)})"

    def reads(self) -> Iterator[str]:
        """The relations of the text, once it is written."""
        yield from (atom.relation for atom in self._atoms)
        yield from self._writer.reads


def _listed(names: Sequence[str]) -> str:
    """One by itself, several in parentheses."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _wanted(of: Expression) -> str:
    found = next(variables(of), None)
    return "v" if found is None else found.name
