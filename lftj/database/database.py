"""`Database`: relations by name, and rules evaluated over them.

The database holds immutable relations; loading replaces one as a whole, so a
query that runs keeps what it started with, and a failed load changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lftj.database.ordering import OrderBy, wanted_rows
from lftj.database.prepared import PreparedProgram, PreparedPrograms, PreparedRule, parsed
from lftj.errors import OrderError, RuleError, UnknownRelationError
from lftj.files.csv_options import CsvOptions
from lftj.language.body import MAX_ROUNDS, CheckedProgram
from lftj.language.diagnostics import unknown_name
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.process.enough_memory import enough_memory
from lftj.process.interrupts import each, interruptible
from lftj.process.progress import bar, is_seen
from lftj.storage.relation import Relation
from lftj.storage.relation_table import RelationTable
from lftj.values.domains import Domains
from lftj.values.schema import Schema

if TYPE_CHECKING:
    from lftj.database.asking import Translations
    from lftj.display.contents import Entry
    from lftj.display.grid import Grid
    from lftj.evaluation.evaluation import Evaluation
    from lftj.evaluation.explain import Explanation
    from lftj.evaluation.request import Request
    from lftj.language.syntax import Program

BATCH_ROWS = 1 << 16
QUERY_BATCH_ROWS = 1 << 18

NEEDED = (
    "what has to be held for the result does not fit into memory: explain() says what that is;"
    " fewer variables in the head, or another order=, may take less"
)


class Relations(dict[str, RelationTable]):
    """The loaded relations by name; shows as a table of names, columns, types and row counts."""

    def __missing__(self, name: object) -> RelationTable:
        raise unknown_name("relation", name, self)

    def __repr__(self) -> str:
        from lftj.display.contents import relations_table

        return relations_table(self.entries())

    def entries(self) -> list[Entry]:
        """What is shown of each."""
        from lftj.display.contents import Entry

        return [
            Entry(name, table.count, table.schema, dropped_rows=table.dropped_rows)
            for name, table in dict(self).items()
        ]


class Database:
    """Relations in memory, and multiway joins over them.

    ``db["edge"]`` is a relation as it is now (`RelationTable`),
    ``"edge" in db`` says whether there is one, and iteration gives their names.

    Examples:
        >>> db = Database()
        >>> db.load("edge", [(1, 2), (2, 3), (1, 3)], columns=["src", "dst"])
        >>> db.query("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).").to_pylist()
        [{'a': 1, 'b': 2, 'c': 3}]
        >>> db.relations
        relation  rows  columns
        edge         3  src: int64, dst: int64
    """

    def __init__(self) -> None:
        self._relations = Relations()
        self.domains = Domains()
        self._prepared = PreparedPrograms()
        self._translated: Translations | None = None

    def _contents(self) -> Grid:
        """What a prompt and a notebook show."""
        from lftj.display.contents import contents

        return contents("Database", self._relations.entries())

    def __repr__(self) -> str:
        return self._contents().text()

    def _repr_html_(self) -> str:
        return self._contents().html()

    @property
    def relations(self) -> Mapping[str, RelationTable]:
        """The relations by name; shows as a table of names, columns, types and row counts."""
        return self._relations

    def __getitem__(self, name: str) -> RelationTable:
        """A relation (in a workspace also a head) as it is now.  O(1).  Raises UnknownRelationError."""
        return self.relations[name]

    def __contains__(self, name: object) -> bool:
        """Whether a relation has this name."""
        return isinstance(name, str) and name in self.relations

    def __iter__(self) -> Iterator[str]:
        """The names of the relations."""
        return iter(self.relations)

    def __len__(self) -> int:
        """Number of relations."""
        return len(self.relations)

    def __bool__(self) -> bool:
        """True, also where nothing is loaded: ``database or Database()`` must not lose one."""
        return True

    @interruptible()
    @enough_memory("the relation does not fit into memory: load the columns that rules need, columns=[...]")
    def load(
        self,
        name: str,
        source: Any,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        *,
        nulls: Literal["refuse", "drop", "keep"] = "refuse",
        progress: bool | None = None,
        csv: CsvOptions | None = None,
        row_number: str | None = None,
        bag: bool = False,
        not_null: Sequence[str] = (),
        key: Sequence[str] = (),
    ) -> None:
        """Load a relation, replacing one of the same name.

        ``source``: a path, glob or URL (Parquet, CSV, Arrow IPC, JSON lines, lists of edges as text), a list
        of these, a folder of Parquet files, a file object; a pyarrow Table, batch reader or Dataset, any
        object with ``__arrow_c_stream__`` (polars, pandas, DuckDB), a polars LazyFrame, numpy arrays by
        column name, an iterable of dicts, of record batches, or of tuples with ``columns=``; a graph of
        networkx, or the cursor or result of a query (`lftj.files.named_rows` has the columns).
        Rows are a set: equal ones are kept once, and an EqualRowsWarning says how many were left out.
        A NULL is refused, of a relation with many columns by the rules that read the column alone;
        ``nulls="drop"`` leaves out rows with a NULL in any column; ``relations`` says how many.
        ``nulls="keep"`` keeps them: a NULL joins nothing and compares to nothing, rules ask ``x is null``.
        ``not_null``: columns that are declared NOT NULL, beside those whose Arrow field is
        (``nullable=False``): NULL is refused there, also in later transactions.
        ``csv``: how a CSV file is written, where that can't be read off the file.  ``row_number="n"`` adds a
        last column ``n``, in which each row of the source has its number, from 0: no two rows are equal then.
        ``bag``: equal rows are kept as often as they are there, and counts and sums take each.
        ``key``: columns, NOT NULL, in which no two rows agree: a second row of a key is refused, also in
        transactions, where ``upsert`` replaces the row of a key and ``erase_keys`` takes it away.

        ``columns``: a list names columns that have no names, and of a source with names says which to take;
        a mapping gives columns other names, ``{"Order ID": "order_id"}``, and takes all.

        Raises DataError (SourceError, UnusableNameError, NullError, UnsupportedTypeError, RangeError,
        KeyConflictError) and then changes nothing; a workspace raises ChangeError for a relation that an
        installed rule reads, and for a head.
        """
        from lftj.database.loading import load_relation

        self._refuse_load(name)
        self.add(
            load_relation(
                name, source, columns, self.domains, nulls, progress, csv, row_number, bag, not_null, key
            )
        )

    def _refuse_load(self, name: str) -> None:
        """Raise where a relation of this name may not be loaded."""

    def add(self, relation: Relation) -> None:
        """Take a relation that was made with the database's ``domains``, replacing one of the same name.

        Its name and its columns' may be such as no rule's text can hold, only a syntax tree.
        """
        self._relations[relation.name] = RelationTable(relation)

    @interruptible()
    @enough_memory(
        "the result does not fit into memory: take it in batches with stream(), or its size with count()"
    )
    def query(
        self,
        rule: str | PreparedProgram,
        *,
        head: str | None = None,
        threads: int | None = None,
        order: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        max_rounds: int = MAX_ROUNDS,
        order_by: OrderBy | None = None,
        limit: int | None = None,
        progress: bool | None = None,
    ) -> pa.Table:
        """The rows of a head, each once, of a bag each copy; in no particular order but by ``order_by``.

        ``rule``: a program; ``head``: which head's rows, by default the last rule's only head.
        ``threads``: of the search, by default all processors.  ``order``: the key order of that rule's body.
        ``params``: values of the rule's parameters, ``$name``, by name.  ``max_rounds``: a recursion that
        still gives new tuples after so many rounds raises RoundLimitError.

        ``order_by``: columns of the result, ``"price desc, item"`` or a list of such; rows that agree in them
        are in the order of the other columns, so the order depends on the rows alone.  ``limit``: how many
        rows, the first in that order.

        Raises RuleError, DataError or EvaluationError; OutOfMemoryError, where `stream` and
        `count` may still do.
        """
        from lftj.database.record_batches import pieces, record_batch

        request = self.request(rule, head, threads, order, params, max_rounds, QUERY_BATCH_ROWS)
        schema = request.program.derived[request.target].shown
        ordering = wanted_rows(schema, order_by, limit)
        with _evaluating(request, progress) as evaluation:
            batches = [
                record_batch(schema, piece)
                for columns in ordering(evaluation.batches())
                for piece in pieces(columns, QUERY_BATCH_ROWS)
            ]
        return pa.Table.from_batches(batches, schema.arrow)

    def stream(
        self,
        rule: str | Program | PreparedProgram,
        *,
        batch_rows: int = BATCH_ROWS,
        head: str | None = None,
        threads: int | None = 1,
        order: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        max_rounds: int = MAX_ROUNDS,
        order_by: OrderBy | None = None,
        limit: int | None = None,
        progress: bool | None = False,
    ) -> Iterator[pa.RecordBatch]:
        """Like `query`, as record batches of at most ``batch_rows`` rows.

        Memory is bounded when the search itself gives distinct rows; ``explain`` says when it does not and
        all distinct rows have to be held; ``order_by`` holds all rows, ``limit`` so many.
        With ``threads`` above 1 the order of batches varies, unless one of them is given.
        An empty result is one empty batch.  A bar comes if it is asked for: whoever takes rows shows them.
        """
        if batch_rows < 1:
            raise ValueError(f"batch_rows must be at least 1, not {batch_rows}")
        from lftj.database.record_batches import rebatched

        request = self.request(rule, head, threads, order, params, max_rounds, batch_rows)
        schema = request.program.derived[request.target].shown
        ordering = wanted_rows(schema, order_by, limit)

        def run() -> Generator[pa.RecordBatch, None, None]:
            # an error's traceback holds the batches, but not the threads that search for them
            with (
                enough_memory(NEEDED),
                _evaluating(request, progress) as evaluation,
                closing(evaluation.batches()) as batches,
            ):
                yield from rebatched(schema, ordering(batches), batch_rows)

        return each(run())

    @interruptible()
    @enough_memory(NEEDED)
    def count(
        self,
        rule: str | PreparedProgram,
        *,
        head: str | None = None,
        threads: int | None = None,
        order: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        max_rounds: int = MAX_ROUNDS,
        progress: bool | None = None,
    ) -> int:
        """Number of rows that `query` would give; rows are not built where the search can count."""
        request = self.request(rule, head, threads, order, params, max_rounds, QUERY_BATCH_ROWS)
        with _evaluating(request, progress, "counting") as evaluation:
            return evaluation.count()

    @interruptible()
    @enough_memory("the answer does not fit into memory: select fewer columns or rows")
    def sql(
        self,
        text: Any,
        params: Any = None,
        *,
        dialect: str | None = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> pa.Table:
        """The answer of a SELECT over the relations: rows as often and in the order that SQL says.

        ``text``: DuckDB's SQL, or a frame that can say its SQL and reads relations by their names: an ibis
        expression, a DuckDB relation, a narwhals frame over one of these.  ``params``: a list of values for
        ``?`` and ``$1``, or a mapping for ``$name``; they have the types that DuckDB gives them.
        ``dialect``: what else the text is written in, ``"spark"``, ``"postgres"``, ``"snowflake"``,
        ``"bigquery"`` or whatever sqlglot translates.

        Raises SqlError, ParameterError, UnsupportedSqlError for what no rules say, and what `query` raises.

        Examples:
            >>> db = Database()
            >>> db.load("edge", [(1, 2), (2, 3)], columns=["src", "dst"])
            >>> db.sql("select src + ? as far from edge where dst > $2", [10, 2]).to_pylist()
            [{'far': 12}]
        """
        from lftj.statements.given import given

        with given(text, params, dialect) as sql:
            return self._selected(sql, threads=threads, progress=progress)

    def _selected(self, sql: str, **options: Any) -> pa.Table:
        """The answer of a SELECT in DuckDB's SQL."""
        from lftj.database.asking import asked

        return asked(sql, self._translations(), self._now()[1], self.query, **options)

    @interruptible()
    def explain_sql(
        self,
        text: Any,
        params: Any = None,
        *,
        dialect: str | None = None,
        analyze: bool = False,
        threads: int | None = 1,
        progress: bool | None = None,
    ) -> Explanation:
        """How `sql` would answer a SELECT: the rules that it becomes, each behind its place in the text.

        Then the plans of these, as `explain` shows them.  Raises what `sql` raises.
        """
        from lftj.database.asking import in_sql
        from lftj.database.view_text import rules_text
        from lftj.statements.given import given

        with given(text, params, dialect) as sql:
            found = self._translations().of(sql, self._now()[1])
            with in_sql(found):
                plans = self.explain(
                    found.text, head=found.head, analyze=analyze, threads=threads, progress=progress
                )
        return replace(plans, sql=f"{sql.strip()}\n\n{rules_text(found)}")

    def _translations(self) -> Translations:
        """What is known of SQL over the relations."""
        from lftj.database.asking import Translations

        if self._translated is None:
            self._translated = Translations()
        return self._translated

    @interruptible()
    def explain(
        self,
        rule: str | PreparedProgram,
        *,
        analyze: bool = False,
        head: str | None = None,
        threads: int | None = 1,
        order: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        max_rounds: int = MAX_ROUNDS,
        progress: bool | None = None,
    ) -> Explanation:
        """How `query` would evaluate a rule: key order and why, index per atom, estimates per depth.

        ``analyze``: also evaluate it and show the measured opens, nexts and seeks beside the estimates.
        """
        from lftj.evaluation.explain import explain

        request = self.request(rule, head, threads, order, params, max_rounds)
        with _evaluating(request, progress) as evaluation:
            return explain(evaluation, analyze)

    @interruptible()
    def trace(
        self,
        rule: str,
        *,
        head: str | None = None,
        order: Sequence[str] | None = None,
        limit: int = 1_000_000,
    ) -> pa.Table:
        """Every iterator operation of the plain leapfrog evaluation of one rule with one body.

        One row per operation: depth, node binding, atom, level, operation, from, to; it is
        the *trace*, and `lftj.evaluation.trace` says what is logged.

        Raises LimitError when there are more than ``limit`` operations; a million take about 250 MB.
        Raises RuleError for a head with several rules, a disjunction or aggregates among its terms.

        Examples:
            >>> db = Database()
            >>> db.load("a", {"x": [1, 3, 4]})
            >>> db.load("b", {"x": [3, 9]})
            >>> trace = db.trace("h(x) <- a(x), b(x).").select(["atom", "operation", "from", "to"])
            >>> for row in trace.to_pylist():
            ...     print(*row.values())
            a(x) open None 1
            b(x) open None 3
            a(x) seek 3 3
            b(x) next 3 9
            a(x) seek 9 None
        """
        from lftj.evaluation.evaluation import Evaluation
        from lftj.evaluation.trace import trace

        request = self.request(rule, head, order=order, rewritten=False)
        name, program = request.target, request.program
        if any(is_auxiliary(other) and shown_name(other) == name for other in program.derived):
            raise RuleError(f"{name} has aggregates among its terms; a trace is of one, as in n[a] = count()")
        if program.component_of(name):
            raise RuleError(f"{name} depends on itself; a trace is of one evaluation of one body")
        return trace(Evaluation(request), limit)

    def prepare(
        self,
        rule: str | Program,
        *,
        head: str | None = None,
        threads: int | None = 1,
        order: Sequence[str] | None = None,
        max_rounds: int = MAX_ROUNDS,
    ) -> PreparedRule:
        """A program to be run many times, with other parameters and over data that change meanwhile.

        Options as for `query`.  Raises RuleSyntaxError, and where there are no parameters RuleError:
        types of parameters are known when they have values.
        """
        program = PreparedProgram(parsed(rule))
        if not program.parameters:
            self._check(program.tree, self._now()[1])
        options = {"head": head, "threads": threads, "order": order, "max_rounds": max_rounds}
        return PreparedRule(self, program, options)

    def check(self, rule: str | Program) -> CheckedProgram:
        """Check a program, a text or its syntax tree, against the loaded relations.  Raises RuleError."""
        return self._check(rule, self._now()[1])

    def _check(self, rule: str | Program, schemas: Mapping[str, Schema]) -> CheckedProgram:
        from lftj.language.checker import check

        return check(parsed(rule), schemas, self.domains, self._installed())

    def _installed(self) -> Mapping[str, str]:
        """The heads of installed rules; of those that can't be read, what to say."""
        return {}

    def _now(self) -> tuple[Mapping[str, RelationTable], Mapping[str, Schema]]:
        """All relations at one moment, and their schemas: whatever other threads do meanwhile."""
        relations = dict(self._relations)
        return relations, {name: table.tuples.schema for name, table in relations.items()}

    def request(
        self,
        rule: str | Program | PreparedProgram,
        head: str | None = None,
        threads: int | None = 1,
        order: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        max_rounds: int = MAX_ROUNDS,
        batch_rows: int = BATCH_ROWS,
        rewritten: bool = True,
    ) -> Request:
        """What is asked of an evaluation.  Raises RuleError, OrderError and ValueError."""
        from lftj.evaluation.request import Request
        from lftj.language.parameters import plain_values

        prepared = rule if isinstance(rule, PreparedProgram) else self._prepared.of(rule)
        values = plain_values(prepared.parameters, params)
        relations, schemas = self._now()

        def check(tree: Program) -> CheckedProgram:
            from lftj.rewriting.computed_keys import with_computed_keys

            checked = self._check(tree, schemas)
            if order is not None:  # of the rules as they are written
                return checked
            return with_computed_keys(checked, schemas, self.domains)

        kept = prepared.checked(values, schemas, check, ordered=order is not None)
        tables = {name: relations[name].tuples for name in kept.reads}
        target = chosen_head(kept.program, head)
        if threads is None:
            threads = (
                len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            )
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        if order is not None and isinstance(order, str):
            raise OrderError(f"order= takes a list of variables, not the string {order!r}")
        if max_rounds < 1:
            raise ValueError(f"max_rounds must be at least 1, not {max_rounds}")
        program = kept.program
        if rewritten and order is None:
            from lftj.evaluation.trial import Trial

            trial = None if values else Trial(kept.plans, tables)
            program = kept.one_off.over(target, tables, self.domains, trial, max_rounds != MAX_ROUNDS)
        return Request(
            program,
            tables,
            target,
            values=values,
            order=tuple(order) if order is not None else None,
            threads=threads,
            batch_rows=batch_rows,
            max_rounds=max_rounds,
            plans=kept.plans,
            instead=partial(kept.one_off.instead, target, self.domains),
            lease=self.domains.collector.lease(),
        )


def chosen_head(program: CheckedProgram, head: str | None) -> str:
    """The head that is asked for, by default the last rule's only one.  Raises RuleError."""
    if head is not None:
        heads = [name for name in program.derived if not is_auxiliary(name)]
        if head not in heads:
            raise UnknownRelationError(f"no rule has the head {head!r}; heads are {', '.join(heads)}")
        return head
    if len(program.last_heads) > 1:
        raise RuleError(
            f"the last rule has several heads, {', '.join(program.last_heads)}: say which with head="
        )
    return program.last_heads[0]


def _evaluating(
    request: Request, progress: bool | None, label: str = "joining"
) -> AbstractContextManager[Evaluation]:
    """The request's evaluation, with a progress bar, if someone sees it, for the length of the block."""
    from lftj.evaluation.evaluation import Evaluation

    if not is_seen(progress):
        return nullcontext(Evaluation(request))  # which cuts no shares to say how many are done
    return _with_bar(request, label, progress)


@contextmanager
def _with_bar(request: Request, label: str, progress: bool | None) -> Iterator[Evaluation]:
    from lftj.evaluation.evaluation import Evaluation

    with bar(label, progress) as advance:
        yield Evaluation(replace(request, advance=advance))
