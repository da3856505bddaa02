"""Plays a program whose workspace several threads change and read at once, with a short switch interval.

Each writer has rows of its own, so that the end is the same in whatever order they commit.  What readers see
of a head belongs to the relations that they see beside it, and who follows a head has all of it in the end.
"""

from __future__ import annotations

import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fuzz.case import Case, Commit, Staged
from fuzz.difference import Difference, same
from fuzz.expected import OutOfReach, Refused, after, beginning, expected
from fuzz.kept import Mirror, a_folder, change_table, stage, table_of
from fuzz.once import loaded
from lftj.errors import LftjError
from maintenance import Workspace
from support.reference import Row
from support.rows import rows_of

SWITCH = 1e-5
"""Seconds."""

SECONDS = 240
"""Threads that take longer are stuck."""


@contextmanager
def _switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _owner(case: Case, name: str, row: Row) -> int:
    """Equal rows have the same, so also those with a zero of the other sign, and rows of one key."""
    table = table_of(case, name)
    row = table.key_of(row) if table.key else row
    return zlib.crc32(
        repr((name, *(0.0 if value == 0.0 and isinstance(value, float) else value for value in row))).encode()
    )


def _shares(case: Case) -> list[list[tuple[Staged, ...]]]:
    """The steps' changes by writer; a row, or a key, always belongs to the same."""
    writers = case.options.get("writers", 1)
    shares: list[list[tuple[Staged, ...]]] = [[] for _ in range(writers)]
    for step in case.steps:
        assert isinstance(step, Commit)
        for number, share in enumerate(shares):
            mine = tuple(one for one in step.staged if _owner(case, *one[:2]) % writers == number)
            if mine:
                share.append(mine)
    return shares


class _Play:
    def __init__(self, case: Case, workspace: Workspace) -> None:
        self.case, self.workspace = case, workspace
        self.done = threading.Event()
        self.failed: list[BaseException] = []

    def _write(self, share: list[tuple[Staged, ...]]) -> None:
        for staged in share:
            if self.case.options.get("apply_many"):
                names = dict.fromkeys(name for name, _, _ in staged)
                batch = {
                    name: change_table(
                        table_of(self.case, name),
                        [(row, weight) for one, row, weight in staged if one == name],
                    )
                    for name in names
                }
                self.workspace.apply_many(batch)
            else:
                with self.workspace.transaction() as transaction:
                    stage(self.case, transaction, staged, "apply")

    def _follow(self, mirror: Mirror, by_one: bool) -> None:
        while True:
            last = self.done.is_set()
            mirror.catch_up(self.workspace, by_one)
            if last:
                return

    def _read(self) -> None:
        """Heads and relations of one snapshot belong together."""
        while True:
            last = self.done.is_set()
            snapshot = self.workspace.snapshot()
            state = {one.name: beginning(self.case)[one.name] for one in self.case.tables}
            for name in state:
                state[name] = type(state[name])(rows_of(snapshot[name].table))
            try:
                right = expected(self.case.program, state, self.case.heads, set())
            except OutOfReach:
                return
            if isinstance(right, Refused):
                raise Difference(f"snapshot: of relations that would be refused, {right.why}")
            for head, rows_right in right.items():
                same("snapshot among threads", rows_of(snapshot[head].table), rows_right)
            if last:
                return

    def run(self) -> None:
        mirrors = {
            (head, by_one): Mirror(self.workspace, head)
            for head in self.case.heads
            for by_one in (False, True)
        }
        shares = _shares(self.case)
        writers = [self._thread(lambda share=share: self._write(share)) for share in shares]
        others = [
            self._thread(lambda mirror=mirror, by_one=key[1]: self._follow(mirror, by_one))
            for key, mirror in mirrors.items()
        ]
        others.append(self._thread(self._read))
        for one in (*others, *writers):
            one.start()
        self._join(writers)
        self.done.set()
        self._join(others)
        if self.failed:
            raise self.failed[0]
        state = beginning(self.case)
        for share in shares:
            for staged in share:
                state = after(self.case, state, staged)
        right = expected(self.case.program, state, self.case.heads, set())
        assert not isinstance(right, Refused)
        for head, rows in right.items():
            same("head after threads", rows_of(self.workspace[head].table), rows)
        for (head, by_one), mirror in mirrors.items():
            mirror.check(right[head], f"follower among threads{' by one' * by_one}")
        self.workspace.verify()
        self.workspace.check_invariants()

    def _thread(self, does: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                does()
            except BaseException as error:
                self.failed.append(error)

        return threading.Thread(target=run, daemon=True)

    def _join(self, threads: list[threading.Thread]) -> None:
        for one in threads:
            one.join(SECONDS)
            if one.is_alive():
                self.done.set()
                raise Difference("stuck: a thread does not come to its end")


def play_threads(case: Case) -> None:
    """Raises OutOfReach where the end would be refused."""
    state = beginning(case)
    for step in case.steps:
        assert isinstance(step, Commit)
        state = after(case, state, step.staged)
        if isinstance(expected(case.program, state, case.heads, set()), Refused):
            raise OutOfReach("refused")
    with a_folder() as folder, _switching():
        durability = case.options.get("durability")
        workspace = Workspace.open(folder, durability=durability) if durability else Workspace()
        try:
            loaded(case, workspace)
            workspace.install(case.rules)
            for head, strategy in zip(case.heads, case.options.get("strategies", ()), strict=False):
                if strategy != "stages":
                    _try_strategy(workspace, head, strategy)
            _Play(case, workspace).run()
        finally:
            if durability:
                workspace.close()


def _try_strategy(workspace: Workspace, head: str, strategy: str) -> None:
    try:
        workspace.set_strategy(head, strategy)
    except LftjError:  # one of a recursion, for which it is none
        return
