"""One aggregate rule as a tree of views (docs/design/strategies.md section 3.3, after F-IVM).

    total[] = sum(v) <- R(a, b), S(a, c), v = b * c.

becomes, where many rows of R and S have one ``a``::

    total#view1[a] = sum(b) <- R(a, b).
    total#view2[a] = sum(c) <- S(a, c).
    total[] = sum(product) <- total#view1[a] = n, total#view2[a] = n2, product = n * n2.

A change of R finds one row of each view, whatever it joins with.

Invariants

1. The rules give the tuples of the one rule, in the same types: a view has a row for a key that has an
   assignment, also where its sum is 0.
2. Views read atoms of the rule and views below; the rule's own head is no view.
3. No partial sum wraps: one that does not fit raises RangeError.  Of whole numbers they have 64 bits, or
   where that is too little 128, as decimals without a scale; the sum of the rule itself stays int64.
   What the rule computes for an assignment is checked by nobody here: it has to fit
   (:mod:`lftj.rewriting.guard`).

A sum of several products is a view for each, and their sum; an average is a sum by a count.
Where an inequality alone joins two sides they become ordered views (:mod:`lftj.rewriting.range_join`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lftj.language.aggregate_types import aggregate_type
from lftj.language.body import Assignment, Body, CheckedHead, CheckedRule
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import (
    Aggregate,
    Atom,
    BinaryOperation,
    Call,
    Constant,
    Expression,
    Variable,
)
from lftj.rewriting.elimination import Edge, Elimination, Graph, Names, choose_elimination, tails
from lftj.rewriting.joins import Join, bound_by, of_atom, of_comparison, of_expression, types_below
from lftj.rewriting.range_join import RangeSplit, Types, range_split
from lftj.rewriting.relation_sizes import edge_of, is_unknown
from lftj.rewriting.shared_views import WIDE, SharedViews, ViewBody, arrow_type, free_name
from lftj.rewriting.summand import NotRewritten, Product, compared, definitions, product_of, products
from lftj.storage.catalog import Catalog
from lftj.values.kinds import kind
from lftj.values.schema import ColumnType

SUMMED = ("count", "sum", "avg")


class ViewTree:
    """The rewriting of one rule for one of its heads."""

    def __init__(self, rule: CheckedRule, head: CheckedHead, catalog: Catalog, shared: SharedViews) -> None:
        """Choose what to eliminate; nothing is made yet.  ``catalog``: the relations that are there.

        Raises NotRewritten.
        """
        self.rule = rule
        self.head = head
        self._shared = shared
        self._catalog = catalog
        if not isinstance(head.value, Aggregate):
            raise NotRewritten("it has no sum")
        self._call = head.value
        if self._call.function not in SUMMED:
            raise NotRewritten(f"{self._call.function} is no sum")
        if len(rule.bodies) != 1:
            raise NotRewritten("its body has alternatives, of which an assignment may have several")
        self._body = rule.bodies[0]
        self._types = types_below(self._body)
        self._join = self._without_assignments()
        self._products = self._summed()
        self._unknown = any(is_unknown(atom, catalog.get(atom.relation)) for atom in self._body.atoms)
        self._splits: dict[Product, RangeSplit] = {}
        self.eliminations = [self._elimination(product) for product in self._products]
        self.cost = sum(one.cost for one in self.eliminations)
        self.plain = max(one.plain for one in self.eliminations)
        # What another head of the rule sums is not computed for a count.
        is_shorter = self._call.function == "count" and bool(self._body.assignments)
        taken_apart = bool(self._splits) or any(one.order for one in self.eliminations)
        gains = taken_apart and self.cost <= self.plain
        if shared.once and not gains:
            raise NotRewritten(f"about {self.plain:,.0f} assignments are listed sooner")
        if not gains and not is_shorter:
            raise NotRewritten(
                f"a change would take about {self.cost:,.0f} operations with partial sums,"
                f" and {self.plain:,.0f} without"
            )

    def _without_assignments(self) -> Join:
        body = self._body
        if not body.atoms:
            raise NotRewritten("its body has no atom")
        if body.generated:
            raise NotRewritten("it generates values")
        inlined = definitions(body)
        for atom in body.negations:
            if of_atom(atom) & inlined.keys():
                raise NotRewritten("a negated atom tests a computed variable")
        if inlined.keys() & set(self.head.variables):
            raise NotRewritten("it groups by a computed variable")
        types = {name: type_.arrow for name, type_ in self._types.items()}
        comparisons = tuple(compared(one, inlined, types) for one in body.comparisons)
        return Join(body.atoms, body.negations, comparisons, ())

    def _summed(self) -> list[Product]:
        """The products that the views add up; of an average also what it divides by, behind the others."""
        call = self._call
        if call.function != "avg":
            return products(call, self._body)
        if kind(self._arrow(Variable(_argument(call)))) != "integer":
            raise NotRewritten("only averages of whole numbers are quotients of two sums, rounded once")
        if self._shared.wide:
            raise NotRewritten(
                "a partial sum does not fit 64 bits, and a quotient of wider ones is rounded twice"
            )
        return [*products(Aggregate("sum", call.arguments), self._body), Product()]

    def _elimination(self, product: Product) -> Elimination:
        join = replace(self._join, factors=product.factors)
        head = frozenset(self.head.variables)
        variables = [of_atom(atom) for atom in join.atoms]
        free = tails(variables, head | join.needed)
        edges = tuple(edge_of(atom, self._catalog.get(atom.relation), free) for atom in join.atoms)
        filters = tuple(filter(None, (*map(of_atom, join.negations), *map(of_comparison, join.comparisons))))
        once = self._shared.once
        ranges = None if once or self._shared.wide else self._by_ranges
        found = choose_elimination(Graph(edges, filters, head, once, ranges))
        return found if once else self._or_split(product, join, found, edges)

    def _by_ranges(
        self, edges: Sequence[Edge], applied: Sequence[Names], keys: Names
    ) -> tuple[float, float] | None:
        """What a view costs as the sum of a range join, and at least without."""
        comparisons = [one for one in self._join.comparisons if of_comparison(one) in applied]
        negations = [of_atom(atom) for atom in self._join.negations if of_atom(atom) in applied]
        split = range_split([edge.variables for edge in edges], comparisons, negations, keys, self._types)
        if split is None:
            return None
        return split.cost(edges), split.least_plain(edges) if self._unknown else 0.0

    def _or_split(
        self, product: Product, join: Join, found: Elimination, edges: Sequence[Edge]
    ) -> Elimination:
        """What is found for a product, or what a range join of all costs, if that is less."""
        split = _split_of(join, frozenset(self.head.variables), self._types)
        if split is None:
            return found
        cost = split.cost(edges)
        plain = max(found.plain, split.least_plain(edges)) if self._unknown else found.plain
        if cost >= (found.cost if found.order else plain):
            return found
        if self._shared.wide:
            if found.order:
                return found
            raise NotRewritten("a partial sum does not fit 64 bits, and sums of ranges have no more")
        self._splits[product] = split
        return Elimination((), cost, plain)

    # -- making the rules ------------------------------------------------------------------

    def root(self) -> CheckedRule:
        """The rule that is left of the one as written; its views are made, or found."""
        taken = set(self._types)
        left = []
        for product, one in zip(self._products, self.eliminations, strict=True):
            join, split = replace(self._join, factors=product.factors), self._splits.get(product)
            left.append(
                self._reduced(join, one, taken) if split is None else self._ranged(join, split, taken)
            )
        if len(left) == 1:
            return self._summing(left[0], self._products[0].negations)
        return self._combining(left, taken)

    def _reduced(self, join: Join, found: Elimination, taken: set[str]) -> Join:
        """The join with views in the place of what is eliminated."""
        head = frozenset(self.head.variables)
        free = tails([of_atom(atom) for atom in join.atoms], head | join.needed)
        values: set[str] = set()
        for names in found.order:
            read = frozenset().union(*(of_atom(atom) for atom in join.atoms if of_atom(atom) & names))
            here, rest = join.split(names | (read & values))  # with the values of the views among them
            keys = frozenset().union(*map(of_atom, here.atoms)) - names - free - values
            split = _split_of(here, keys, self._types) if names in found.by_ranges else None
            atom, value = self._view(here if split is None else self._ranged(here, split, taken), keys, taken)
            values.add(value.name)
            join = replace(rest, atoms=(*rest.atoms, atom), factors=(*rest.factors, value))
        return join

    def _ranged(self, join: Join, split: RangeSplit, taken: set[str]) -> Join:
        """The range join of an ordered view for each side."""
        join = replace(
            join, comparisons=tuple(one for one in join.comparisons if one is not split.comparison)
        )
        read = []
        for places, keys, here in zip(split.places, split.keys, join.within(split.first), strict=True):
            atoms = tuple(join.atoms[place] for place in places)
            read.append(self._view(replace(here, atoms=atoms), keys, taken))
        (left, first), (right, second) = read
        return Join((left, right), (), (split.comparison,), (first, second))

    def _view(self, here: Join, keys: Names, taken: set[str]) -> tuple[Atom, Variable]:
        """The atom that reads the view of a join, and its value, which is a factor from now on."""
        view = ViewBody(here.atoms, here.negations, here.comparisons, here.factors, keys)
        summed = self._summed_type(view.factors)
        name = free_name("s" if view.factors else "n", taken)
        taken.add(name)
        self._types[name] = ColumnType(self._shared.domains.of(summed), summed)
        atom = self._shared.atom(view, self._types, name, shown_name(self.head.relation))
        return atom, Variable(name)

    def _summing(self, left: Join, negations: int) -> CheckedRule:
        """The head as the sum over what is left."""
        view = ViewBody(left.atoms, left.negations, left.comparisons, left.factors, frozenset())
        call, assignments = view.call(self._types, negations, self._shared.wide)
        self._check_type(self._summed_type(view.factors))
        types = {name: self._types[name] for name in bound_by(view.atoms)}
        types |= {one.variable: self._shared.type_of(one.expression, self._types) for one in assignments}
        body = Body(view.atoms, view.negations, view.comparisons, assignments, types)
        head = replace(self.head, value=call)
        return CheckedRule((head,), (body,), self.rule.text, self.rule.span)

    def _combining(self, left: Sequence[Join], taken: set[str]) -> CheckedRule:
        """The head as what several views say of its groups."""
        keys = frozenset(self.head.variables)
        read = [self._view(join, keys, taken) for join in left]
        terms = list(zip(self._products, (value for _, value in read), strict=True))
        divisor = terms.pop()[1] if self._call.function == "avg" else None
        (first, whole), *others = terms
        value: Expression = BinaryOperation("*", Constant(-1), whole) if first.negations else whole
        for product, term in others:
            value = BinaryOperation("-" if product.negations else "+", value, term)
        if divisor is not None:
            value = BinaryOperation("/", value, divisor)
        type_ = self._shared.type_of(value, self._types)
        self._check_type(type_.arrow)
        if type_.arrow == WIDE and self._wanted_type() != WIDE:
            value = Call("cast", (value, Constant("int64")))
            type_ = self._shared.type_of(value, self._types)
        name = free_name("value", taken)
        atoms = tuple(atom for atom, _ in read)
        types = {variable: self._types[variable] for variable in bound_by(atoms)}
        types[name] = type_
        body = Body(atoms, (), (), (Assignment(name, value),), types)
        return CheckedRule((replace(self.head, value=name),), (body,), self.rule.text, self.rule.span)

    # -- types -----------------------------------------------------------------------------

    def _arrow(self, expression: Expression) -> pa.DataType:
        return arrow_type(expression, self._types)

    def _summed_type(self, factors: Sequence[Expression]) -> pa.DataType:
        """Of the sum of a product, or of a number of assignments."""
        if not factors:
            return pa.int64()
        summed = aggregate_type("sum", self._arrow(product_of(factors)))
        assert summed is not None
        return WIDE if self._shared.wide and kind(summed) == "integer" else summed

    def _check_type(self, found: pa.DataType) -> None:
        """Refuse where the value would be of another type than the rule as it was written gives it."""
        wanted = self._wanted_type()
        narrows = self._shared.wide and (found, wanted) == (WIDE, pa.int64())
        if found != wanted and not narrows:
            raise NotRewritten(f"its value would be of type {found}, not {wanted}")

    def _wanted_type(self) -> pa.DataType:
        """Of the value of the rule as it was written."""
        if self._call.function == "count":
            return pa.int64()
        return aggregate_type(self._call.function, self._types[_argument(self._call)].arrow)


def _split_of(join: Join, head: Names, types: Types) -> RangeSplit | None:
    """The join in two sides, for a view or head over these variables."""
    filters = (*map(of_atom, join.negations), *map(of_expression, join.factors))
    return range_split(list(map(of_atom, join.atoms)), join.comparisons, filters, head, types)


def _argument(call: Aggregate) -> str:
    (argument,) = call.arguments
    assert isinstance(argument, Variable)
    return argument.name
