"""Programs, from one state to the next: rules are installed, and what grows by them begins.

Invariant: rules that read what only grows are installed behind it
(:func:`maintenance.workspace.growing.by_level`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from lftj.errors import ChangeError
from lftj.language.as_of_now import JoinedNow
from lftj.language.body import Wanted
from lftj.language.syntax import Program
from lftj.process.progress import Advance
from lftj.storage.relation import Relation
from lftj.values.domains import Domains
from maintenance.workspace.declaring import with_recents, without_unread
from maintenance.workspace.growing import by_level, refuse_grown_from, with_new_grown
from maintenance.workspace.installing import Wishes, is_installed, with_rules, without_heads, written_heads
from maintenance.workspace.state import State
from maintenance.workspace.view_choices import begun


@dataclass
class Installation:
    """A program that is installed, and how; ``grown``: the relations that begin with it."""

    state: State
    tree: Program
    wishes: Wishes
    wanted: Wanted | None = None
    grown: list[Relation] = field(default_factory=list)


@dataclass(frozen=True)
class Installing:
    """How programs are installed.

    ``before``: the state as it is; ``replaces``: whether heads of a program's names go.
    """

    before: State
    replaces: bool
    domains: Domains
    threads: int
    bar: Callable[[str], AbstractContextManager[Advance | None]]

    def installed(
        self, state: State, tree: Program, joined: Sequence[JoinedNow], wishes: Wishes
    ) -> Installation:
        """The state, which has what a program declares, with its rules; itself where they are there.

        ``joined``: what rules make that are taken out of it.  Raises as `Workspace.install`.
        """
        parts = by_level(state, tree, joined)
        if len(parts) == 1:
            return self._part(Installation(state, tree, wishes), *parts[0], wishes)
        if wishes.results is not None:
            raise ChangeError(
                "results= is for rules that read nothing that only grows: install those that do behind the"
                " others"
            )
        whole = Installation(state, tree, wishes)
        for part, some in parts:
            elsewhere = written_heads(tree) - written_heads(part)
            found = self._part(whole, part, some, wishes.without(elsewhere))
            whole = Installation(found.state, tree, wishes, None, [*whole.grown, *found.grown])
        return whole

    def _part(
        self, whole: Installation, tree: Program, joined: Sequence[JoinedNow], wishes: Wishes
    ) -> Installation:
        state, tree = with_recents(whole.state, tree)
        following, wanted = state, None
        if tree.rules or not joined:
            grows = bool(joined or tree.finals)
            wishes, tree, gone, checked = wishes.rewritten(tree, state, self.replaces, self.domains, grows)
            wanted = checked.wanted
            if not (gone and state is self.before and is_installed(state, checked, wishes)):
                following = with_rules(
                    without_heads(state, gone), checked, wishes, self.domains, self.threads, self.bar
                )
                following = begun(following, written_heads(tree) & following.heads.keys(), self.domains)
                following = without_unread(following)
                refuse_grown_from(state, gone)
        following, grown = with_new_grown(following, tree, joined, self.domains)
        return Installation(following, tree, wishes, wanted, grown)
