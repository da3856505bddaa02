"""`WholeFiles`: the files of a journal, one behind the other, as far as their changes are whole.

    journal-...38: 38 39 40 41      journal-...42: 42 43 (tail)      ->  38 to 43, and where the tail begins

Invariants

1. The changes follow each other without a gap, each knows those before it by its chain.
2. What is not taken, and holds or held changes, is named in ``aside``: nothing of it is to be deleted.
3. Where a file says that there had been more, ``problem`` says how.  What is behind the last whole change
   otherwise is what a crash may leave: a file begins when all before it is on disk, so a tail, or a file that
   ends within its header, is at the end.

Cost: one pass over the files.
"""

from __future__ import annotations

from pathlib import Path

from lftj.errors import DamagedFolderError
from maintenance.durable import journal
from maintenance.durable.records import ReadFile, read_beginning


class WholeFiles:
    """``number`` and ``chain``: of the first change, and of the one before it; None for any.

    Attributes:
        files: With their paths, as far as they are whole.
        unbegun: Names of files that were begun, and not gone on with.
        aside: Names of files that hold what is not whole, and the byte from which on.
        problem: Why there had been more, and what is damaged; empty where nothing says so.
    """

    def __init__(self, folder: Path, number: int | None = None, chain: int | None = None) -> None:
        self._folder = folder
        self._expected = (number, chain)
        self.files: list[tuple[Path, ReadFile]] = []
        self.unbegun: list[str] = []
        self.aside: list[tuple[str, int]] = []
        self.problem = ""

    def take(self, firsts: list[int]) -> WholeFiles:
        """Take the files with these first changes, all that there are.  Raises OSError, DurabilityError."""
        number = self._expected[0]
        if number is not None and firsts[:1] != [number]:
            path = self._folder / journal.FILES.name(number)
            self.problem = f"{path}: the journal with change {number} is not there"
        for first in firsts:
            self._take(self._folder / journal.FILES.name(first), first, first == firsts[-1])
        if self.files and self.files[-1][1].is_torn:
            path, last = self.files[-1]
            self.aside.insert(0, (path.name, last.end))
        return self

    def _take(self, path: Path, first: int, is_last: bool) -> None:
        if self.problem:
            self.aside.append((path.name, 0))
            return
        problem = ""
        try:
            read = read_beginning(path.read_bytes(), path)
        except DamagedFolderError as error:
            read, problem = None, str(error)
        if read is None:
            if not problem and not (is_last and self.files):
                problem = f"{path}: damaged: it ends within its header"
        elif self.files and not read.records and not read.is_torn and self.files[-1][1].next > first:
            self.unbegun.append(path.name)
            return
        else:
            problem = self._gap(path, first, read)
        if read is None or problem:
            self.problem = problem
            self.aside.append((path.name, 0))
            return
        self.files.append((path, read))
        self._expected = (read.next, read.chain)
        self.problem = read.damage

    def _gap(self, path: Path, first: int, read: ReadFile) -> str:
        """Why a file can't be what follows; empty where it is."""
        if read.header.first != first:
            return f"{path}: its first change is {read.header.first}: give it back its name"
        if self.files and self.files[-1][1].next < first:
            before, last = self.files[-1]
            return (
                f"{before}: damaged at byte {last.end}, where change {last.next} begins: {path.name} follows,"
                " so it had been written whole"
            )
        if self._expected not in ((None, None), (first, read.header.chain)):
            before_name = self.files[-1][0].name if self.files else f"version {first - 1}"
            return f"{path}: does not follow {before_name}"
        return ""
