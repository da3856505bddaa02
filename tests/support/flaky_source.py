"""A source whose server goes away: numbers in a file, as long as another file is not there."""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path

import pyarrow as pa

from lftj.errors import SourceAwayError
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.patience import Patience
from maintenance.sources.source import Batch, Source, make_relation
from maintenance.workspace.workspace import Workspace


def flaky(folder: str, relation: str | None = None, *, name: str = "") -> FlakySource:
    """``folder``: has the file ``numbers``, and perhaps ``away``, which says why."""
    return FlakySource(Path(folder), relation or name)


class FlakySource(Source):
    backlog_unit = "rows"

    def __init__(self, folder: Path, relation: str) -> None:
        super().__init__(relation, "stop")
        self._folder, self._relation = folder, relation
        self._backlog: int | None = None

    def backlog(self) -> int | None:
        return self._backlog

    def _batches(self, workspace: Workspace, cursor: Cursor, patience: Patience) -> Generator[Batch]:
        make_relation(workspace, self._relation, pa.schema({"a": pa.int64()}), (), "refuse")
        try:
            while True:
                if (self._folder / "away").exists():
                    raise SourceAwayError((self._folder / "away").read_text())
                numbers = [int(line) for line in (self._folder / "numbers").read_text().split()]
                begin = cursor.places["log"].position if cursor.places else 0
                if begin < len(numbers):
                    rows = pa.table({"a": numbers[begin:]})
                    yield Batch({self._relation: rows}, {"log": Place(len(numbers), "here")})
                self._backlog = 0
                if patience.is_over:
                    return
                time.sleep(min(0.02, patience.left))
        finally:
            self._backlog = None
