"""Views by SQL over streams, beside DuckDB with the rows that the streams have to hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from fuzz.case import Case, Table
from fuzz.difference import same
from fuzz.streams import units
from lftj import errors
from maintenance import Workspace
from support.reference import Row


class Views:
    """Of a case; one that is not taken, or that DuckDB has not, is left out."""

    def __init__(self, case: Case, tables: Sequence[Table]) -> None:
        self.tables = tables
        self.given: tuple[tuple[str, str], ...] = case.options.get("views", ())
        self.texts: dict[str, str] = {}
        if self.given:
            self.connection = duckdb.connect(config={"threads": 1})
            for number, (text, _) in enumerate(self.given):
                if self._answer(text, {table.name: table.rows for table in tables}) is not None:
                    self.texts[f"v{number}"] = text

    def create(self, workspace: Workspace) -> None:
        for name, text in list(self.texts.items()):
            strategy = self.given[int(name[1:])][1]
            try:
                workspace.create_view(name, text, strategy=strategy)
            except errors.StrategyError:
                workspace.create_view(name, text)
            except errors.UnsupportedSqlError:
                del self.texts[name]

    def check(self, workspace: Workspace, contents: Mapping[str, Sequence[Row]]) -> None:
        for name, text in self.texts.items():
            answer, table = self._answer(text, contents), workspace[name].to_arrow()
            assert answer is not None
            cast = [c.cast(table.column(n).type) for n, c in enumerate(answer.columns)]
            right = units.rows_in_units(pa.table(cast, names=table.column_names))
            same("view", units.rows_in_units(table), Counter(right).elements())

    def _answer(self, text: str, contents: Mapping[str, Sequence[Row]]) -> pa.Table | None:
        for table in self.tables:
            held: Any = table.arrow(tuple(contents[table.name]))
            self.connection.register("held", held)
            self.connection.execute(f"create or replace table {table.name} as select * from held")
            self.connection.unregister("held")
        try:
            return self.connection.sql(text).to_arrow_table()
        except duckdb.Error:
            return None
