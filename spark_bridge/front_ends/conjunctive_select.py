"""One conjunctive SELECT of SQL as a rule; the text is read by sqlglot.

    SELECT DISTINCT a.src, b.dst                two(src, dst) <-
    FROM edge a JOIN edge b ON a.dst = b.src        edge(src, a_dst), edge(a_dst, dst),
    WHERE a.src < b.dst                             src < dst.

Equal columns are one variable; other conditions are comparisons.  What a rule cannot say is refused with
its place and a way out, never left away.

Where relations keep NULLs, an expression that is selected or aggregated is NULL where what it reads is
(``coalesce(a + b, null)``), and ``count(a)`` counts where a is not NULL.

Relations are sets of rows, so a SELECT without DISTINCT is taken only where it says all columns of its
tables: then it has each row once, as SQL has over tables without duplicates.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lftj.errors import RuleSyntaxError
from lftj.values.spelling import literal
from spark_bridge.front_ends.rule_names import atom_text, unused_name, usable
from spark_bridge.front_ends.select_tables import FromClause, FromColumn, refused

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_FUNCTIONS: dict[type[exp.Expr], str] = {exp.Abs: "abs", exp.Least: "least", exp.Greatest: "greatest"}
_AGGREGATES: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
_CLAUSES = {
    "distinct",
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "kind",
    "hint",
    "operation_modifiers",
}


@dataclass(frozen=True)
class SelectRule:
    """A SELECT as rules.

    ``text``: a program whose last head is the answer.  ``columns``: what the SELECT calls its columns.
    ``counts``: of a SELECT of aggregates without GROUP BY, which has a row over no rows too, where the
    counts are, which are 0 then; None of any other.
    """

    text: str
    columns: tuple[str, ...]
    counts: tuple[bool, ...] | None


def rule_of_select(
    sql: str, relations: Mapping[str, Sequence[str]], *, keeps_null: bool = False
) -> SelectRule:
    """The rule of a SELECT over relations, of which the columns are given.

    ``keeps_null``: whether they may hold NULL.

    Names of tables and columns are found as Spark does it, in any case.
    Raises RuleSyntaxError for what is no SELECT that a rule can say, UnknownRelationError and
    UnknownColumnError.

    >>> two = "SELECT DISTINCT a.src, b.dst FROM edge a JOIN edge b ON a.dst = b.src WHERE a.src < b.dst"
    >>> rule_of_select(two, {"edge": ["src", "dst"]}).text
    'selected(src, dst) <- edge(src, a_dst), edge(a_dst, dst), src < dst.'
    """
    try:
        select = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError as error:
        raise RuleSyntaxError(f"not SQL: {str(error).splitlines()[0]}") from None
    if not isinstance(select, exp.Select):
        raise refused(select, "it takes one SELECT")
    return _Select(select, relations, keeps_null).rule()


class _Select:
    """What is known of a SELECT while its rule is made."""

    def __init__(self, select: exp.Select, relations: Mapping[str, Sequence[str]], keeps_null: bool) -> None:
        self._select = select
        self._keeps_null = keeps_null
        for clause, part in select.args.items():
            if part and clause not in _CLAUSES:
                shown = part if isinstance(part, exp.Expr) else select
                raise refused(shown, "do that with the DataFrame of the result, or of a table")
        self._tables = FromClause(relations)
        self._conditions: list[exp.Expr] = []
        self._variables: dict[FromColumn, str] = {}
        self._taken: set[str] = set()
        self._relations = relations
        self._assignments: list[str] = []
        self._without_null: list[FromColumn] = []  # read for nothing else: so a NULL is found, or left out
        self._read_tables()
        self._read_conditions()

    def rule(self) -> SelectRule:
        items = list(self._items())
        keys = self._keys(items)
        if keys is not None or any(isinstance(item.unnest(), exp.AggFunc) for _, item in items):
            return self._aggregate(items, keys or [])
        terms = [self._term(name, item) for name, item in items]
        conditions = [self._condition(condition) for condition in self._conditions]
        if not self._select.args.get("distinct"):
            shown = set(terms)
            for number, table in enumerate(self._tables):
                for name in table.columns:
                    if self._variables.get(self._tables.root(FromColumn(number, name))) not in shown:
                        raise refused(
                            self._select,
                            f"a head has each row once, and without '{table.alias}.{name}' SQL may have"
                            " one more often: write SELECT DISTINCT",
                        )
        body = [*self._atoms(), *self._assignments, *conditions]
        names = [name for name, _ in items]
        return SelectRule(f"{self._head(names, terms)} <- {', '.join(body)}.", tuple(names), None)

    # -- tables and their columns -------------------------------------------------

    def _read_tables(self) -> None:
        from_ = self._select.args.get("from_")
        if from_ is None:
            raise refused(self._select, "it has no FROM")
        self._tables.add(from_.this)
        for join in self._select.args.get("joins") or ():
            if join.args.get("method") or join.args.get("side") or join.kind not in ("", "INNER", "CROSS"):
                raise refused(join, "it joins by JOIN ... ON, JOIN ... USING and the comma")
            self._tables.add(join.this)
            if join.args.get("on"):
                self._conditions += _conjuncts(join.args["on"])
            for name in join.args.get("using") or ():
                self._tables.use(name)

    def _variable(self, column: FromColumn) -> str:
        root = self._tables.root(column)
        if root not in self._variables:
            name = root.name
            if unused_name(name, ()) in self._taken:
                name = f"{self._tables[root.table].alias}_{name}"
            self._variables[root] = self._fresh(name)
        return self._variables[root]

    def _fresh(self, wanted: str) -> str:
        name = unused_name(wanted, self._taken)
        self._taken.add(name)
        return name

    # -- conditions and expressions -----------------------------------------------

    def _read_conditions(self) -> None:
        """Those of WHERE, too; equal columns become one variable, and what is left stays."""
        where = self._select.args.get("where")
        if where is not None:
            self._conditions += _conjuncts(where.this)
        others: list[exp.Expr] = []
        for condition in self._conditions:
            condition = condition.unnest()
            if (
                isinstance(condition, exp.EQ | exp.NullSafeEQ)
                and isinstance(condition.this, exp.Column)
                and isinstance(condition.expression, exp.Column)
            ):
                left = self._tables.column(condition.this)
                right = self._tables.column(condition.expression)
                if self._tables.root(left) == self._tables.root(right):
                    others.append(condition)  # it says that they are not NULL
                else:
                    self._tables.join(left, right, null_safe=isinstance(condition, exp.NullSafeEQ))
            elif self._keeps_null or not _says_not_null(condition):
                others.append(condition)
            else:
                self._without_null.append(self._tables.column(condition.this.this))
        self._conditions = others

    def _condition(self, condition: exp.Expr) -> str:
        if type(condition) in _COMPARISONS:
            left, right = self._expression(condition.this), self._expression(condition.expression)
            return f"{left} {_COMPARISONS[type(condition)]} {right}"
        if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
            value, low, high = (self._expression(condition.args[part]) for part in ("this", "low", "high"))
            return f"{low} <= {value}, {value} <= {high}"
        negated = isinstance(condition, exp.Not) or bool(condition.args.get("negate"))
        test = condition.this.unnest() if isinstance(condition, exp.Not) else condition
        word = "not " if negated else ""
        if self._keeps_null and isinstance(test, exp.Is) and isinstance(test.expression, exp.Null):
            return f"{self._expression(test.this)} is {word}null"
        if isinstance(test, exp.In) and test.expressions:
            values = ", ".join(map(self._expression, test.expressions))
            return f"{self._expression(test.this)} {word}in ({values})"
        if isinstance(test, exp.Like) and "\\" not in test.expression.name:
            return f"{self._expression(test.this)} {word}like {self._expression(test.expression)}"
        way_out = (
            "with nulls='keep'" if isinstance(test, exp.Is) else "filter a DataFrame by it, before or after"
        )
        raise refused(condition, way_out)

    def _expression(self, value: exp.Expr) -> str:
        if isinstance(value, exp.Column):
            return self._variable(self._tables.column(value))
        if isinstance(value, exp.Paren):
            return f"({self._expression(value.this)})"
        if isinstance(value, exp.Neg):
            return f"-{self._expression(value.this)}"
        if type(value) in _ARITHMETIC:
            left, right = self._expression(value.this), self._expression(value.expression)
            return f"{left} {_ARITHMETIC[type(value)]} {right}"
        if type(value) in _FUNCTIONS:
            arguments = [value.this, *value.expressions]
            return f"{_FUNCTIONS[type(value)]}({', '.join(map(self._expression, arguments))})"
        if isinstance(value, exp.Boolean):
            return "true" if value.this else "false"
        if isinstance(value, exp.Literal):
            return literal(value.this) if value.is_string else _number(value.this)
        if isinstance(value, exp.Cast) and value.to.this == exp.DataType.Type.DATE and value.this.is_string:
            return str(value.this.this)
        raise refused(value, "add a column of it to a DataFrame, before or after")

    # -- what is selected -----------------------------------------------------------

    def _items(self) -> Iterator[tuple[str, exp.Expr]]:
        """Names and expressions; a star is all columns, those of USING once."""
        for item in self._select.expressions:
            value = item.unalias()
            if isinstance(value, exp.Star) or (
                isinstance(value, exp.Column) and isinstance(value.this, exp.Star)
            ):
                if value.args.get("except_") or value.args.get("replace"):
                    raise refused(value, "name the columns")
                for column in self._tables.all(value.table if isinstance(value, exp.Column) else ""):
                    alias = exp.to_identifier(self._tables[column.table].alias, quoted=True)
                    name = exp.to_identifier(column.name, quoted=True)
                    yield column.name, exp.Column(this=name, table=alias)
            else:
                yield item.alias_or_name or value.sql(dialect="spark", normalize_functions="lower"), value

    def _term(self, name: str, item: exp.Expr) -> str:
        """The variable of a column; of an expression one that is assigned."""
        item = item.unnest()
        if isinstance(item, exp.Column):
            return self._variable(self._tables.column(item))
        value = self._expression(item)
        variable = self._fresh(name)
        self._assignments.append(f"{variable} = {f'coalesce({value}, null)' if self._keeps_null else value}")
        return variable

    def _keys(self, items: Sequence[tuple[str, exp.Expr]]) -> list[FromColumn] | None:
        """What is grouped by: columns, by name, place or alias; None without GROUP BY."""
        group = self._select.args.get("group")
        if group is None:
            return None
        keys = []
        for key in group.expressions:
            item = key.unnest()
            if isinstance(item, exp.Literal) and not item.is_string and 0 < int(item.this) <= len(items):
                item = items[int(item.this) - 1][1].unnest()
            elif isinstance(item, exp.Column) and not item.table:
                aliased = [value.unnest() for name, value in items if name.lower() == item.name.lower()]
                item = aliased[0] if len(aliased) == 1 else item
            if not isinstance(item, exp.Column):
                raise refused(key, "group by columns; add a column of it to a DataFrame before")
            keys.append(self._tables.column(item))
        if not keys or any(part for clause, part in group.args.items() if clause != "expressions"):
            raise refused(group, "group by columns")
        return keys

    def _aggregate(self, items: Sequence[tuple[str, exp.Expr]], keys: list[FromColumn]) -> SelectRule:
        if self._select.args.get("distinct"):
            raise refused(self._select, "take distinct() of the result's DataFrame")
        groups = dict.fromkeys(map(self._variable, keys))
        names = tuple(name for name, _ in items)
        items = [(name, item.unnest()) for name, item in items]
        terms = []
        for name, item in items:
            if isinstance(item, exp.AggFunc):
                terms.append(self._call(name, item))
            elif isinstance(item, exp.Column) and self._variable(self._tables.column(item)) in groups:
                terms.append(self._variable(self._tables.column(item)))
            else:
                raise refused(
                    item, "with aggregates go columns of GROUP BY; compute with the result's DataFrame"
                )
        conditions = [self._condition(condition) for condition in self._conditions]
        body = ", ".join([*self._atoms(), *self._assignments, *conditions])
        hidden = [group for group in groups if group not in terms]
        head = self._head([*names, *hidden], [*terms, *hidden])
        counts = None if keys else tuple(isinstance(item, exp.Count) for _, item in items)
        return SelectRule(f"{head} <- {body}.", names, counts)

    def _call(self, name: str, item: exp.AggFunc) -> str:
        if isinstance(item, exp.Count) and isinstance(item.this, exp.Column | exp.Star | exp.Literal):
            if isinstance(item.this, exp.Column):
                if self._keeps_null:
                    return f"count(if {self._expression(item.this)} is not null)"
                self._without_null.append(self._tables.column(item.this))
            return "count()"
        if isinstance(item, exp.Count) and isinstance(item.this, exp.Distinct):
            if len(item.this.expressions) > 1:
                raise refused(item, "it counts one column")
            return f"count(distinct {self._term(f'{name}_of', item.this.expressions[0])})"
        if type(item) in _AGGREGATES and not isinstance(item.this, exp.Distinct):
            return f"{_AGGREGATES[type(item)]}({self._term(f'{name}_of', item.this)})"
        raise refused(item, "rules have count(*), sum, avg, min and max, and count(DISTINCT ...)")

    def _atoms(self) -> list[str]:
        atoms = []
        for column in self._without_null:
            self._variable(column)
        for number, table in enumerate(self._tables):
            roots = {name: self._tables.root(FromColumn(number, name)) for name in table.columns}
            for root in roots.values():
                if self._tables.joined(root):
                    self._variable(root)
            terms = {name: self._variables[root] for name, root in roots.items() if root in self._variables}
            for name, variable in terms.items():
                if self._tables.null_safe(FromColumn(number, name)):
                    terms[name] = f"<=> {variable}"
            atoms.append(atom_text(table.relation, table.columns, terms))
        return atoms

    def _head(self, names: Sequence[str], terms: Sequence[str]) -> str:
        """The head; its columns are called like the SELECT's where a rule can write that."""
        taken: set[str] = set()
        shown = []
        for name, term in zip(names, terms, strict=True):
            column = unused_name(name if usable(name) else "column", taken)
            taken.add(column)
            shown.append(term if column == term else f"{column}: {term}")
        return f"{unused_name('selected', self._relations)}({', '.join(shown)})"


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return list(itertools.chain.from_iterable(map(_conjuncts, (condition.this, condition.expression))))
    return [condition]


def _says_not_null(condition: exp.Expr) -> bool:
    return (
        isinstance(condition, exp.Not)
        and isinstance(condition.this, exp.Is)
        and isinstance(condition.this.expression, exp.Null)
        and isinstance(condition.this.this, exp.Column)
    )


def _number(text: str) -> str:
    """As rules write it: with digits on both sides of the point."""
    return f"{'0' if text.startswith('.') else ''}{text}{'0' if text.endswith('.') else ''}"
