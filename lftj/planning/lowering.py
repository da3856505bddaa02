"""From a checked body to a join problem: literals become codes.

What the search itself can do becomes part of the :class:`~lftj.search.problem.JoinProblem`:

* a repeated variable in an atom restricts its index to rows whose columns agree;
* a literal in an atom is a variable of its own, pinned by a condition; literals
  of the same code share it;
* a variable that occurs once and that nobody asks for gives no column at all: a
  present prefix proves it, or multiplicities count it (docs/design/engine.md section 3);
* ``x is null`` is a bound: NULL has the least code;
* comparisons of variables and literals of one domain become conditions:
  ``x < y + 3`` bounds x inside the search, and so do ``u - t <= 10s`` and ``w = t + 10s, u <= w``.
  Where codes are not in value order
  (strings, binary, decimals) a comparison with a literal, and a test of a text, becomes a
  relation of the codes that satisfy it (:class:`~lftj.planning.lowered.Selection`), as a list of literals
  does everywhere, and one of two variables goes through ranks.

What it cannot do stays for the rows that come out: other comparisons,
assignments, and negated atoms over assigned variables.  :class:`~lftj.planning.lowered.Lowered` lists them,
and ``explain`` shows them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import Enum

from indices.keys import KEY_MAX, KEY_MIN
from lftj.language.body import Body
from lftj.language.expressions import comparison_text, text_of, variables_of
from lftj.language.folding import fold
from lftj.language.parameters import constants_of
from lftj.language.syntax import (
    Atom,
    BinaryOperation,
    Call,
    Comparison,
    Constant,
    Expression,
    Negative,
    Term,
    Variable,
    Wildcard,
)
from lftj.planning.lowered import CodedConstant, Lowered, Selection, code_limits
from lftj.search.problem import JoinAtom, JoinCondition, JoinProblem
from lftj.storage.wide_columns import Fetch
from lftj.values.domain import NULL_CODE, Domain
from lftj.values.operators import FLIPPED, NULL_SAFE
from lftj.values.schema import Column, ColumnType, Schema
from lftj.values.texts import TESTS

WILDCARD_NAME = re.compile(r"_\d+")
"""What the checker names wildcards that an aggregate counts."""


class Fetches(Enum):
    """Which variables are read off the rows of wide relations when they were found, of those that are joined
    with nothing."""

    NOTHING = "nothing"
    NUMBERS = "numbers"
    """Decimals that are read by expressions and aggregates alone, which need no codes of them."""
    ALL = "all"
    """So the search is for the rows' codes, and many bodies share an index."""


def compared_names(body: Body) -> set[str]:
    """The variables that stand in comparisons."""
    sides = [side for comparison in body.comparisons for side in (comparison.left, comparison.right)]
    return {variable.name for side in sides for variable in variables_of(side)}


NARROW = 16
"""A relation with so many times fewer rows than another that is joined with it leaves few of the other's."""


def lower(
    body: Body,
    schemas: Mapping[str, Schema],
    wanted: Sequence[str],
    counted: bool,
    grouped: Sequence[str] = (),
    lasting: bool = False,
    every: bool = False,
    fetches: Fetches = Fetches.NOTHING,
    coded: Collection[str] = (),
    rows: Mapping[str, int] | None = None,
) -> Lowered:
    """Lower ``body``; the rows must hold the ``wanted`` variables.

    ``counted``: rows get weights, the number of assignments of all variables behind them;
    else rows are a set.  ``grouped``: variables that are keys of a functional head.
    ``lasting``: the problem has to stay right when dictionaries grow: literals are entered into them, and
    comparisons that depend on their order wait for the rows.  ``every``: rows are assignments, they hold all
    variables of the atoms.  ``fetches``: what is read off the rows of wide relations when they were found;
    ``coded``: variables whose codes are read by others than expressions.  ``rows``: of each relation, where a
    test of a text may be done before the search.
    """
    return _Lowering(body, schemas, wanted, counted, grouped, lasting, every, fetches, coded, rows).run()


class _Lowering:
    def __init__(
        self,
        body: Body,
        schemas: Mapping[str, Schema],
        wanted: Sequence[str],
        counted: bool,
        grouped: Sequence[str],
        lasting: bool,
        every: bool,
        fetches: Fetches,
        coded: Collection[str],
        rows: Mapping[str, int] | None,
    ) -> None:
        self.body = body
        self.schemas = schemas
        self.counted = counted
        self.grouped = grouped
        self.lasting = lasting
        self.coded = coded
        self.rows = rows
        self.fetched = {} if fetches is Fetches.NOTHING else self._fetchable(fetches)
        self.in_atoms = set(body.atom_variables()) - self.fetched.keys()
        self.computed = {one.variable: fold(one.expression) for one in body.assignments if not one.each}
        self.conditions: list[JoinCondition] = []
        self.filters: list[JoinAtom] = []
        self.selections: list[Selection] = []
        self.constants: list[CodedConstant] = []
        self.n_coded = 0
        """How often a parameter stands where its code is all that counts."""
        self.has_codes = True
        """Every constant that was asked for has a code, and none shares its variable by chance."""
        self.functions: set[str] = set()
        self.labels: dict[str, str] = {}
        self.pinned: dict[tuple[str, int], tuple[str, Constant]] = {}
        self.empty: str | None = None
        self.late_comparisons: list[Comparison] = []
        self.late_negations: list[Atom] = []
        self.early_negations: list[Atom] = []
        for negation in body.negations:
            bound = {t.name for t in negation.terms if isinstance(t, Variable)} <= self.in_atoms
            (self.early_negations if bound else self.late_negations).append(negation)
        for comparison in body.comparisons:
            if not self._push(comparison):
                self.late_comparisons.append(comparison)
        needed = [name for name in wanted if name in self.in_atoms or name in self.fetched]
        for comparison in self.late_comparisons:
            needed += self._names(comparison.left) + self._names(comparison.right)
        for assignment in body.assignments:
            needed += self._names(assignment.expression)
        for negation in self.late_negations:
            needed += [
                t.name
                for t in negation.terms
                if isinstance(t, Variable) and (t.name in self.in_atoms or t.name in self.fetched)
            ]
        self.fetched = {name: one for name, one in self.fetched.items() if name in needed}
        rows_of = {one.row for one in self.fetched.values()}
        needed = [*(name for name in needed if name not in self.fetched), *sorted(rows_of)]
        self.asked = tuple(dict.fromkeys(needed))
        found = [name for name in body.atom_variables() if name in self.in_atoms] if every else []
        self.emitted = tuple(dict.fromkeys([*needed, *found]))
        self.atoms = [
            replace(atom, terms=(Variable(_row_of(number, atom)), *atom.terms[1:]))
            if _row_of(number, atom) in rows_of
            else atom
            for number, atom in enumerate(body.atoms)
        ]
        self.nan_free: set[tuple[str, int]] = set()

    def _names(self, expression: Expression) -> list[str]:
        return [v.name for v in variables_of(expression) if v.name in self.in_atoms or v.name in self.fetched]

    def _fetchable(self, which: Fetches) -> dict[str, Fetch]:
        """The variables that stand in one place of one atom, which is of a wide relation."""
        coded = {*compared_names(self.body), *self.coded}
        atoms = (*self.body.atoms, *self.body.negations)
        uses = Counter(term.name for atom in atoms for term in atom.terms if isinstance(term, Variable))
        return {
            term.name: Fetch(atom.relation, schema, column, _row_of(number, atom))
            for number, atom in enumerate(self.body.atoms)
            if (schema := self.schemas[atom.relation]).wide and not atom.functional
            for column, term in enumerate(atom.terms)
            if column and isinstance(term, Variable) and uses[term.name] == 1
            if which is Fetches.ALL
            or (schema.columns[column].type.domain.name == "decimal" and term.name not in coded)
        }

    def run(self) -> Lowered:
        uses = Counter(self.asked)
        for atom in (*self.atoms, *self.early_negations):
            uses.update(term.name for term in atom.terms if isinstance(term, Variable))
        for condition in self.conditions:
            uses.update(condition.variables)
        for filter_ in self.filters:
            uses.update(filter_.variables)
        keys = self._keys()
        atoms = [self._atom(atom, uses, keys) for atom in self.atoms]
        negations = [self._atom(atom, uses, keys) for atom in self.early_negations]
        problem = JoinProblem(
            atoms=(*(atom for atom in atoms if atom is not None), *self.filters),
            negations=tuple(atom for atom in negations if atom is not None),
            conditions=tuple(self.conditions),
            emitted=self.emitted,
            counted=self.counted,
            labels=self.labels,
        )
        return Lowered(
            problem=problem,
            types=self._types(),
            comparisons=tuple(self.late_comparisons),
            assignments=self.body.assignments,
            negations=tuple(self.late_negations),
            empty=self.empty,
            nan_free=frozenset(self.nan_free),
            functions=frozenset(self.functions),
            selections=tuple(self.selections),
            constants=self._constants(),
            fetched=self.fetched,
        )

    def _types(self) -> dict[str, ColumnType]:
        """Those of the body's variables, and of rows' codes."""
        rows = {one.row: one.schema.columns[0].type for one in self.fetched.values()}
        return {**self.body.types, **rows}

    def _constants(self) -> tuple[CodedConstant, ...] | None:
        """What :attr:`Lowered.constants` is, when all is done."""
        parameters = sum(1 for constant in constants_of(self.body) if constant.parameter is not None)
        return tuple(self.constants) if self.has_codes and self.n_coded == parameters else None

    def _keys(self) -> set[str]:
        """Variables that have to equal something, wherever they stand: NaN is no value for them."""
        places: Counter[str] = Counter()
        for atom in (*self.body.atoms, *self.body.negations):
            places.update(term.name for term in atom.terms if isinstance(term, Variable))
        keys = {name for name, count in places.items() if count > 1} | set(self.grouped)
        for condition in self.conditions:
            if condition.right is not None:
                keys.update(condition.variables)
        return keys

    def _atom(self, atom: Atom, uses: Counter[str], keys: set[str]) -> JoinAtom | None:
        """The atom; None for a negated atom that nothing can satisfy.

        ``uses``: how often the search meets a variable; ``keys``: those that can't be NaN.
        """
        schema = self.schemas[atom.relation]
        if atom.functional and not schema.functional:
            self.functions.add(atom.relation)
        if atom.negated and self._lacks_code(atom, schema):
            self.has_codes = False
            return None
        columns: list[int] = []
        variables: list[str] = []
        counted: list[int] = []
        equal: list[tuple[int, int]] = []
        counts_rows = schema.wide and isinstance(atom.terms[0], Variable)
        for column, term in enumerate(atom.terms):
            if isinstance(term, Variable) and term.name not in self.in_atoms and column:
                if term.name in keys:
                    self.nan_free.add((atom.relation, column))
                continue
            if isinstance(term, Variable):
                places = [i for i, t in enumerate(atom.terms) if term == t]
                if places[0] != column:
                    equal.append((places[0], column))
                    continue
                asked = uses[term.name] > len(places)
                if not asked and term.name not in self.emitted:
                    if self.counted and not atom.negated and (column == 0 or not counts_rows):
                        counted.append(column)
                    continue
                name = term.name
            elif isinstance(term, Constant):
                asked = True
                domain = schema.columns[column].type.domain
                limits = code_limits(domain, "=", term.value, self.lasting)
                if limits is None:
                    self.has_codes = False
                    self.empty = f"{text_of(term)} does not occur in {atom.relation}"
                    limits = [("=", 0)]
                name = self._pin(domain, limits[0][1], term)
                if name in variables:
                    equal.append((columns[variables.index(name)], column))
                    continue
            else:
                continue
            columns.append(column)
            variables.append(name)
            is_value = atom.functional and column == len(atom.terms) - 1
            if name in keys or (asked and not is_value):
                self.nan_free.add((atom.relation, column))
        for pair in equal:
            for column in pair:
                self.nan_free.add((atom.relation, column))
        return JoinAtom(
            atom.relation,
            schema,
            tuple(columns),
            tuple(variables),
            tuple(equal),
            tuple(counted),
            label=_label(atom, uses, schema),
        )

    def _lacks_code(self, atom: Atom, schema: Schema) -> bool:
        """Whether a literal of the atom has no code.  Looked at before any is pinned: pins need an atom."""
        return any(
            isinstance(term, Constant)
            and code_limits(column.type.domain, "=", term.value, self.lasting) is None
            for column, term in zip(schema.columns, atom.terms, strict=True)
        )

    def _pin(self, domain: Domain, code: int, constant: Constant) -> str:
        """The variable that stands for a literal; one per domain and code."""
        self.n_coded += constant.parameter is not None
        name, first = self.pinned.get((domain.name, code), (None, constant))
        if name is None:
            text = text_of(constant)
            name = f"{text}#{len(self.pinned)}"
            self.pinned[domain.name, code] = name, constant
            self.labels[name] = text
            self.constants.append(
                CodedConstant(constant, domain, "=", len(self.conditions), ["="], is_term=True)
            )
            self.conditions.append(JoinCondition(name, "=", None, code, label=f"{name} = {text}"))
        elif first.parameter != constant.parameter:
            self.has_codes = False
        return name

    def _push(self, comparison: Comparison) -> bool:
        """Make the comparison part of the search; False when it has to wait for the rows."""
        if comparison.tests_null:
            if not isinstance(comparison.left, Variable) or comparison.left.name not in self.in_atoms:
                return False
            self._push_null_test(comparison)
            return True
        if isinstance(comparison.left, Call) and self._push_test(comparison, comparison.left):
            return True
        left, right = fold(comparison.left), fold(comparison.right)
        operator = NULL_SAFE.get(comparison.operator, comparison.operator)
        if isinstance(left, Constant):
            left, right, operator = right, left, FLIPPED[operator]
        label = comparison_text(comparison)
        if isinstance(right, Constant) and isinstance(left, Variable) and left.name in self.in_atoms:
            return self._push_literal(left.name, operator, right, label)
        pair = difference(left, right, self.body.types, self.computed, self.in_atoms)
        if pair is None:
            return False
        x, y, offset = pair
        type_ = self.body.types[x]
        if comparison.is_null_safe and (left, right) != (Variable(x), Variable(y)):
            return False
        if offset and operator == "!=":
            return False  # a difference would have to be computed
        if x == y and type_.domain.name == "float":
            return False  # NaN, and what it says of itself
        if x == y:
            holds = {"<": offset > 0, "<=": offset >= 0, ">": offset < 0, ">=": offset <= 0}
            holds |= {"=": offset == 0, "!=": offset != 0}
            if not holds[operator]:
                self.empty = f"{label} never holds"
            return True
        by_rank = not type_.domain.ordered and operator not in ("=", "!=")
        if by_rank and self.lasting:
            return False
        ranked = type_.domain if by_rank else None
        self.conditions.append(JoinCondition(x, operator, y, offset, ranked, label))
        return True

    def _push_null_test(self, test: Comparison) -> None:
        """NULL has the least code.  Of a variable that can't be NULL nothing has to be tested."""
        assert isinstance(test.left, Variable)
        name, label = test.left.name, comparison_text(test)
        may_be_null = all(
            self.schemas[atom.relation].columns[column].type.nullable
            for atom in self.body.atoms
            for column, term in enumerate(atom.terms)
            if isinstance(term, Variable) and term.name == name
        )
        if test.operator == "<!=>" and may_be_null:
            self.conditions.append(JoinCondition(name, ">=", None, NULL_CODE + 1, label=label))
        elif test.operator == "<=>" and may_be_null:
            self.conditions.append(JoinCondition(name, "=", None, NULL_CODE, label=label))
        elif test.operator == "<=>":
            self.empty = f"{label} never holds"

    def _push_literal(self, x: str, operator: str, literal: Constant, label: str) -> bool:
        domain = self.body.types[x].domain
        if domain.ordered or operator in ("=", "!="):
            limits = code_limits(domain, operator, literal.value, self.lasting)
            if limits is None:
                self.has_codes = False
                if operator != "!=":
                    self.empty = f"{label} never holds"
                return True
            self.n_coded += literal.parameter is not None
            operators = [operator for operator, _ in limits]
            self.constants.append(
                CodedConstant(literal, domain, operator, len(self.conditions), operators, is_term=False)
            )
            self.conditions += [
                JoinCondition(x, operator, None, code, label=label) for operator, code in limits
            ]
            return True
        if self.lasting:
            return False
        self._select(x, Comparison(operator, Variable(x), literal), label)
        return True

    def _push_test(self, comparison: Comparison, call: Call) -> bool:
        """Of a text with constants, or whether a variable is one of several constants."""
        variable, *others = call.arguments
        if not isinstance(variable, Variable) or variable.name not in self.in_atoms or self.lasting:
            return False
        is_constant = all(isinstance(other, Constant) and other.value is not None for other in others)
        holds, ordered = comparison.right, self.body.types[variable.name].domain.ordered
        if comparison.operator != "=" or not is_constant or not isinstance(holds, Constant):
            return False
        is_list = call.function == "in" and holds.value is True
        if is_list or (call.function in TESTS and not ordered and self._is_narrowed_by(variable)):
            self._select(variable.name, comparison, comparison_text(comparison))
            return True
        return False

    def _is_narrowed_by(self, text: Variable) -> bool:
        """Whether a test of a text, which is done on all texts of a column, spares the search more than that.

        Not where a literal narrows the search, or a relation with far fewer rows.
        """
        if self.rows is None or len(self.body.atoms) == 1:
            return self.rows is not None
        tests = [one for one in self.body.comparisons if one.tests_null or isinstance(one.left, Call)]
        compared = [one for one in self.body.comparisons if one not in tests]
        sides = [side for one in compared for side in (one.left, one.right)]
        terms = [term for atom in self.body.atoms for term in atom.terms]
        if any(isinstance(one, Constant) for one in (*terms, *sides)):
            return False
        holders = [atom for atom in self.body.atoms if text in atom.terms]
        known = {term for atom in holders for term in atom.terms if isinstance(term, Variable)}
        others = [atom for atom in self.body.atoms if atom not in holders and known & set(atom.terms)]
        fewest = min(self.rows[atom.relation] for atom in holders)
        return bool(others) and NARROW * min(self.rows[atom.relation] for atom in others) >= fewest

    def _select(self, x: str, comparison: Comparison, label: str) -> None:
        schema = Schema((Column(x, self.body.types[x]),))
        columns = [
            (atom.relation, column)
            for atom in self.body.atoms
            for column, term in enumerate(atom.terms)
            if isinstance(term, Variable) and term.name == x
        ]
        selection = Selection(f"{label}#{len(self.selections)}", x, schema, comparison, tuple(columns))
        self.selections.append(selection)
        self.filters.append(JoinAtom(selection.name, schema, (0,), (x,), label=label))


def difference(
    left: Expression,
    right: Expression,
    types: Mapping[str, ColumnType],
    computed: Mapping[str, Expression],
    in_atoms: Collection[str],
) -> tuple[str, str, int] | None:
    """The x, y and c of ``left - right = x - y - c``, in codes of one domain: a comparison bounds the search.

    None where there are no such, or c is beyond int64.  ``computed``: what variables are that no atom binds;
    ``in_atoms``: those that one does.
    """
    terms = [*_terms(left, 1, computed), *_terms(right, -1, computed)]
    names = [(term.name, sign) for term, sign in terms if isinstance(term, Variable)]
    names.sort(key=lambda one: -one[1])
    if [sign for _, sign in names] != [1, -1] or not {name for name, _ in names} <= {*in_atoms}:
        return None
    (x, _), (y, _) = names
    domain, offset = types[x].domain, 0
    for term, sign in terms:
        if isinstance(term, Variable):
            continue
        steps = domain.steps(term.value) if isinstance(term, Constant) else None
        if steps is None:
            return None
        offset -= sign * steps
    plain = isinstance(left, Variable) and isinstance(right, Variable)
    if types[y].domain is not domain or not (plain or domain.integral):
        return None
    return (x, y, offset) if KEY_MIN // 2 < offset < KEY_MAX // 2 else None


def _terms(
    expression: Expression, sign: int, computed: Mapping[str, Expression]
) -> Iterator[tuple[Expression, int]]:
    """What an expression adds up, with the signs; for a computed variable what it is computed by."""
    if isinstance(expression, Variable) and expression.name in computed:
        yield from _terms(computed[expression.name], sign, computed)
    elif isinstance(expression, Negative):
        yield from _terms(expression.operand, -sign, computed)
    elif isinstance(expression, BinaryOperation) and expression.operator in "+-":
        yield from _terms(expression.left, sign, computed)
        yield from _terms(expression.right, sign if expression.operator == "+" else -sign, computed)
    elif isinstance(expression, Call) and (moved := _moved(expression)) is not None:
        yield from _terms(expression.arguments[0], sign, computed)
        yield Constant(moved), sign
    else:
        yield expression, sign


def _moved(call: Call) -> timedelta | None:
    """By how much ``add_interval`` moves a moment; None where months are counted, or a value decides."""
    if call.function != "add_interval":
        return None
    numbers = [one.value for one in call.arguments[1:] if isinstance(one, Constant)]
    if len(numbers) < 3 or numbers[0] != 0:
        return None
    try:
        return timedelta(days=numbers[1], microseconds=numbers[2])  # type: ignore[arg-type]
    except OverflowError:
        return None


def _row_of(number: int, atom: Atom) -> str:
    """The variable of the row's code in an atom of a wide relation; ``number``: the atom's in its body."""
    (row, *_) = atom.terms
    return row.name if isinstance(row, Variable) else f"row#{number}"


def _label(atom: Atom, uses: Mapping[str, int], schema: Schema) -> str:
    """The atom as a rule would write it, without its negation sign."""

    def text(term: Term) -> str:
        if isinstance(term, Wildcard):
            return "_"
        if isinstance(term, Variable) and uses[term.name] == 1 and WILDCARD_NAME.fullmatch(term.name):
            return "_"
        return text_of(term)

    terms = [text(term) for term in (atom.terms[1:] if schema.wide else atom.terms)]
    if atom.functional:
        return f"{atom.relation}[{', '.join(terms[:-1])}] = {terms[-1]}"
    return f"{atom.relation}({', '.join(terms)})"
