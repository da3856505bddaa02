"""`memory_by_kind`: the bytes that a state takes, by what they are for.

Counted are arrays, with the room that they have for growth; what a state that waits, a snapshot or a table of
a user's holds beyond the present versions is not.

Cost: a look at every structure, none at its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from maintenance.staged import Staged, StagedValue
from maintenance.workspace.state import State

_KINDS = {"maintenance.groups": "groups", "maintenance.strategies.stages": "recursion"}
"""What the structures of a room are for."""


def memory_by_kind(state: State) -> dict[str, int]:
    """Bytes of what the versions and the heads of a state take."""
    memory = dict.fromkeys(("relations", "searches", "support", "groups", "recursion"), 0)
    memory["relations"] = sum(version.nbytes for version in state.versions.values())
    memory["searches"] = sum(head.index_bytes for head in state.heads.values())
    for part in parts_of(state.heads.values()):
        if isinstance(part, StagedValue):
            memory["support"] += getattr(part.kept, "nbytes", 0)
        elif (kind := _KINDS.get(type(part).__module__.rpartition(".")[0])) is not None:
            memory[kind] += getattr(part, "nbytes", 0)
    return memory


def parts_of(whole: Iterable[Staged]) -> Iterator[Staged]:
    """Everything that is staged within some structures, each once."""
    seen: set[int] = set()
    todo = list(whole)
    while todo:
        part = todo.pop()
        if id(part) not in seen:
            seen.add(id(part))
            todo += part.parts
            yield part
