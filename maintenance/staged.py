"""Changes in two steps: what is staged is published by ``keep`` or forgotten by ``drop``.

A `Staged` has parts, which are staged, kept and dropped with it, and perhaps something of its own.

Invariants

1. ``keep`` and ``drop`` may be left half way, by an exception or an interrupt, and done again, any number of
   times: what is done twice is as if it were done once.
2. Parts come first, in their order, then what is its own; where nothing is staged nothing changes.

Cost: a call per part, however little is staged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar


class Staged:
    """What takes changes in two steps."""

    @property
    def parts(self) -> Sequence[Staged]:
        """What is staged, kept and dropped with this."""
        return ()

    def keep(self) -> None:
        """Publish what was staged, if anything was; again, where that was left half way."""
        for part in self.parts:
            part.keep()
        self._keep_own()

    def drop(self) -> None:
        """Forget what was staged, if anything was, however far it came."""
        for part in self.parts:
            part.drop()
        self._drop_own()

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of the structures."""
        for part in self.parts:
            part.check_invariants()
        self._check_own()

    def _keep_own(self) -> None:
        """Publish what is staged beside the parts."""

    def _drop_own(self) -> None:
        """Forget what is staged beside the parts."""

    def _check_own(self) -> None:
        """The invariants of what is there beside the parts."""


class HasInvariants(Protocol):
    """A value that knows its invariants."""

    def check_invariants(self) -> None: ...


Value = TypeVar("Value", bound=HasInvariants)


class StagedValue(Staged, Generic[Value]):
    """An immutable value, and while it is ``staged`` the one that may take its place."""

    def __init__(self, kept: Value) -> None:
        self.kept = kept
        self.staged: Value | None = None

    @property
    def newest(self) -> Value:
        """What will be kept, if the step is."""
        return self.kept if self.staged is None else self.staged

    def keep(self) -> None:
        if self.staged is not None:
            self.kept = self.staged
            self.staged = None

    def drop(self) -> None:
        self.staged = None

    def _check_own(self) -> None:
        self.kept.check_invariants()
        if self.staged is not None:
            self.staged.check_invariants()
