"""What plays a case step by step: each step is a method, and all is checked behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from fuzz.case import ApplyMany, Case, Commit, Do, Staged
from maintenance import Workspace


class Player(ABC):
    """Workspaces that a case is played on, and maybe one that reads a folder beside them."""

    case: Case
    workspaces: list[Workspace]
    reader: Workspace | None

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def commit(self, staged: tuple[Staged, ...], way: str) -> None: ...

    @abstractmethod
    def apply_many(self, transactions: tuple[tuple[Staged, ...], ...]) -> None: ...

    @abstractmethod
    def check(self, what: str) -> None:
        """Raise Difference where something is not as it should be; ``what``: the step before."""

    @abstractmethod
    def end(self) -> None:
        """What is looked at once, behind all steps."""

    def play(self) -> None:
        try:
            self.begin()
            for step in self.case.steps:
                if isinstance(step, Commit):
                    self.commit(step.staged, step.way)
                elif isinstance(step, ApplyMany):
                    self.apply_many(step.transactions)
                else:
                    getattr(self, step.what)(*step.arguments)
                self.check(step.what if isinstance(step, Do) else type(step).__name__)
            self.end()
        finally:
            for one in (*self.workspaces, self.reader):
                if one is not None and one.folder is not None:
                    one.close()
