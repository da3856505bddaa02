"""`Operators`: functions of Python between the relations and heads of a workspace, as heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lftj.errors import ChangeError, DurabilityError
from lftj.process.enough_memory import enough_memory
from lftj.process.interrupts import interruptible
from lftj.values.domains import Domains
from lftj.values.names import check_relation_name
from maintenance.durable.entries import Installed
from maintenance.heads.operator_head import OPERATOR, Operator, OperatorHead
from maintenance.heads.stratum import Stratum
from maintenance.strategies.strategy import Building
from maintenance.workspace.published import Published
from maintenance.workspace.snapshot import VersionedRelations
from maintenance.workspace.state import State
from maintenance.workspace.stream_relations import StreamRelations


class Operators(StreamRelations):
    """What a workspace does with functions that make whole heads."""

    _published: Published

    @interruptible()
    @enough_memory("what the operator gives does not fit into memory, and it was not installed")
    def operator(
        self,
        name: str,
        fn: Callable[..., Any],
        reads: Sequence[str],
        *,
        linear: bool = False,
        schema: pa.Schema | None = None,
    ) -> None:
        """Install a function of Python as a head: its rows are what ``fn`` gives of the rows that it reads.

        ``fn`` takes a table for each of ``reads``, relations or heads, and gives rows in any form that `load`
        takes.  It has to be pure, and is called now and within commits.  It sees all rows whenever some
        change, and what it gave before is subtracted; or it is ``linear``, f(a + b) = f(a) + f(b): then its
        tables, and what it gives, have a last column ``weight``, and it sees what came (+1) and went (-1)
        alone.  ``schema``: the columns of its rows, without ``weight``, where what it gives now does not say
        their types, or their fields say that some may be NULL.

        The head is a set, which rules, SQL, subscribers and other operators read; `uninstall` takes it away.
        Folders and images keep no functions.

        Raises ChangeError where the name is taken, UnknownRelationError, DataError, FunctionError for what
        ``fn`` raises or gives, as commits do then, and DurabilityError in a folder.

        Examples:
            >>> import pyarrow.compute as pc
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("page", [("/a?x=1",), ("/b",)], columns=["url"])
            >>> def path(page):
            ...     return page.set_column(0, "path", pc.list_element(pc.split_pattern(page["url"], "?"), 0))
            >>> ws.operator("path", path, ["page"], linear=True)
            >>> with ws.transaction() as tx:
            ...     tx.insert("page", [("/a?x=2",), ("/c?",)])
            >>> tx.changes["path"].to_pylist(), sorted(ws["path"])
            ([{'path': '/c', 'weight': 1}], [('/a',), ('/b',), ('/c',)])
        """
        if isinstance(reads, str) or not reads:
            raise ChangeError(f"operator {name!r}: reads= is {reads!r}: give a list of relations and heads")
        check_relation_name(name)
        operator, published = Operator(name, fn, tuple(reads), linear), self._published
        with published.lock:
            state = published.changeable()
            if published.store is not None:
                raise DurabilityError(
                    f"operator {name!r}: folders keep no functions, workspaces in memory do"
                )
            if name in state.versions:
                raise ChangeError(f"{name!r} is there already: uninstall it, or take another name")
            following = _with_operator(state, operator, schema, self.domains)
            published.change_heads(following, Installed("", [name], OPERATOR))
        self.domains.collector.settle_new()


def _with_operator(state: State, operator: Operator, declared: pa.Schema | None, domains: Domains) -> State:
    """The state in which an operator is installed, its head computed."""
    readable = VersionedRelations(state.versions, state.hidden)
    for name in operator.reads:
        version = state.version(readable[name].name)
        for number in version.schema.declared:
            version.refuse_null(number)
    head = OperatorHead(operator, state.versions, declared, domains)
    versions = {**state.versions, operator.name: head.build(Building(state.versions))}
    head.keep()
    return replace(state, versions=versions, strata=state.strata.below([Stratum([head])]), commit=None)
