"""What the general way makes of a transaction that the machine does, to compare both (``LFTJ_DEBUG``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lftj.storage.wide_columns import WideColumns
from maintenance.changes.change import Change
from maintenance.machine.program import MachineProgram
from maintenance.strategies.strategy import Versions

Changed = Mapping[str, Change]


def expected_changes(
    program: MachineProgram, versions: Versions, general: Callable[[Versions], Changed | None]
) -> Changed | None:
    """What ``general`` gives over the versions with all that the program did since; None where it refuses.

    ``versions``: those that the program was bound to.  Heads know then of what was done, and accounts of
    bodies stay as they were.
    """
    versions = program.folded(versions).new
    program.settle()
    kept = [(body, {**vars(body), "ledger": replace(body.ledger)}) for body in program.bodies]
    try:
        return general(versions)
    finally:
        for body, its in kept:
            vars(body).update(its)


def compare(found: Changed, expected: Changed | None) -> None:
    """Raise AssertionError where the changes of a transaction are not those of the general way."""
    assert expected is not None, "the general way refuses what the machine has done"
    assert found.keys() == expected.keys(), f"{found.keys()} changed, not {expected.keys()}"
    for name, change in found.items():
        both = change, expected[name]
        is_wide = any(isinstance(each.columns, WideColumns) for each in both)
        one, other = (_items(each, is_wide) for each in both)
        assert one == other, f"{name}: {one}, the general way gives {other}"


def _items(change: Change, is_wide: bool) -> list[list[int]]:
    """Columns and weights; of a wide relation the codes of its rows, which say all that they hold."""
    columns = [change.columns[0]] if is_wide else change.columns
    return [list(map(int, each)) for each in (*columns, change.weights)]
