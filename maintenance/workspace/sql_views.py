"""`SqlViews`: views of a workspace by SELECT, and what SQL does to it.

A view is a program of rules like any other, with its name on the head that has its rows; the other heads are
kept for it and can't be read (``results=`` of `install`).  Its SQL stands in the program's text, and nowhere
else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from lftj.database.asking import in_sql
from lftj.database.database import Database
from lftj.database.view_text import program_text, view_in
from lftj.errors import ChangeError, ConflictError
from lftj.language.diagnostics import unknown_name
from lftj.process.enough_memory import enough_memory
from lftj.process.interrupts import interruptible
from lftj.sql.translation.translated import Translated, translated
from lftj.statements.given import given
from lftj.statements.kinds import CHANGES, DEFINITIONS, kind
from lftj.values.names import check_relation_name
from maintenance.heads.strategies import COMPONENT_STRATEGIES, DEFAULT, STRATEGIES
from maintenance.workspace.snapshot import Snapshot
from maintenance.workspace.sql_target import SqlTarget, Staging
from maintenance.workspace.state import State
from maintenance.workspace.transaction import Transaction


class SqlViews(Database):
    """What a workspace does with SQL."""

    @property
    @abstractmethod
    def _state(self) -> State: ...

    @abstractmethod
    def install(
        self,
        program: str,
        strategy: str | Mapping[str, str] = DEFAULT,
        *,
        results: Collection[str],
        replace: bool = False,
        progress: bool | None = None,
    ) -> None: ...

    @abstractmethod
    def uninstall(self, *heads: str) -> None: ...

    @abstractmethod
    def transaction(self) -> Transaction: ...

    @abstractmethod
    def snapshot(self) -> Snapshot: ...

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
        """The answer of a SELECT, as of `lftj.Database.sql`; or what another statement does, done at once.

        INSERT, UPDATE, DELETE, TRUNCATE and MERGE are a transaction each, as of `Transaction.sql`, which says
        what they return; one that another transaction gets ahead of is run again.  CREATE VIEW and DROP VIEW
        are `create_view` and `drop_view`; CREATE TABLE makes a relation that is a bag, with NULLs but where a
        column is NOT NULL.  These return no rows.

        Raises what these raise; then nothing is changed.

        Examples:
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> made = ws.sql("create table item (id bigint not null, price decimal(9, 2))")
            >>> made = ws.sql("create view dear as select id from item where price > 10")
            >>> ws.sql("insert into item values (1, 9.5), (2, 20), (3, null)").to_pylist()
            [{'Count': 3}]
            >>> ws.sql("select * from dear").to_pylist()
            [{'id': 2}]
        """
        with given(text, params, dialect) as statement:
            of = kind(statement)
            if of in DEFINITIONS:
                from maintenance.sql.defining import defined

                defined(statement, self)
                return pa.table({"Count": pa.array([], pa.int64())})
            if of not in CHANGES:
                return self._selected(statement, threads=threads, progress=progress)
            while True:
                try:
                    with self.transaction() as tx:
                        return tx.run(statement, of)
                except ConflictError:
                    continue

    def sql_target(self, staging: Staging) -> SqlTarget:
        """For the statements of a transaction."""
        binder, state = self._translations().binder, self.snapshot()
        return SqlTarget(staging, state, state._now()[1], binder)

    def followed(self, names: Collection[str]) -> set[str]:
        """These relations, and the heads whose rules read one of them, also by way of others."""
        found = set(names)
        state = self._state
        for name, head in state.heads.items():
            if not found.isdisjoint(state.streams_read(head.reads)):
                found.add(name)
        return found

    @property
    def views(self) -> Mapping[str, str]:
        """The SQL of each view, by name."""
        found = (view_in(each.text) for each in self._state.definitions)
        return dict(one for one in found if one is not None)

    @interruptible()
    def create_view(
        self,
        name: str,
        sql: Any,
        *,
        strategy: str = DEFAULT,
        replace: bool = False,
        params: Any = None,
        dialect: str | None = None,
        progress: bool | None = None,
    ) -> None:
        """Keep the rows of a SELECT up to date from now on, under a name that rules and SQL can read.

        ``sql``, ``params``, ``dialect``: a text or a frame, as of `sql`; the view keeps the parameters'
        values.

        ``ws[name]`` has each row as often as SQL has it, and ``tx.changes[name]`` what changes of that.
        ORDER BY decides which rows a LIMIT takes, and nothing else.  ``strategy``: as of `install`, of the
        heads that can be kept by it: ``"stages"`` keeps a recursion, ``"trace"`` what is none.

        Raises SqlError, UnsupportedSqlError for what no rules say, ChangeError where the name is taken (and
        ``replace`` is not given, or rules read the view), and what `install` raises; then nothing is changed.
        """
        check_relation_name(name)
        if not replace and name in self:
            raise ChangeError(f"{name!r} is there already: give replace=True to define the view anew")
        schemas = {other: schema for other, schema in self._now()[1].items() if other != name}
        others = {hidden for hidden in self._state.hidden if not self._is_of(hidden, name)}
        with given(sql, params, dialect) as text:
            found = translated(text, self._translations().binder, schemas, name, kept=True, taken=others)
            with in_sql(found):
                strategies = _suited(strategy, found)
                self.install(
                    program_text(found), strategies, results=[name], replace=replace, progress=progress
                )

    def tables_of(self, sql: str) -> frozenset[str]:
        """The names of the relations and views that a SELECT reads, whether they are there or not.

        Raises SqlError for a text that is no SQL.
        """
        return self._translations().binder.tables(sql)

    def _view_program(self, name: str) -> str | None:
        """The rules that keep a view, as text; None for what is no view."""
        found = (each.text for each in self._state.definitions if (view_in(each.text) or ("",))[0] == name)
        return next(found, None)

    def _is_of(self, head: str, view: str) -> bool:
        """Whether a head is kept for a view."""
        return any(view in each.shown and head in each.strategies for each in self._state.definitions)

    @interruptible()
    def drop_view(self, name: str) -> None:
        """Take a view away, with its subscribers.

        Raises UnknownRelationError, and ChangeError where rules or views that stay read it.
        """
        if name not in self.views:
            raise unknown_name("view", name, self.views)
        self.uninstall(name)


def _suited(strategy: str, of: Translated) -> str | dict[str, str]:
    """The strategy of each head, where recursive ones are kept by others than those that are not."""
    if not of.recursive or not {strategy} & {*STRATEGIES, *COMPONENT_STRATEGIES}:
        return strategy
    chosen = {}
    for head in {rule.head for rule in of.rules}:
        possible = COMPONENT_STRATEGIES if head in of.recursive else STRATEGIES
        chosen[head] = strategy if strategy in possible else DEFAULT
    return chosen
