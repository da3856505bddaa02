"""Checking heads against their recomputation from the base relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from lftj.body import CheckedProgram
from lftj.errors import VerificationError
from lftj.evaluation import Evaluation
from lftj.relation import Relation
from lftj.relation_version import RelationVersion


def heads_in_order(program: CheckedProgram) -> list[str]:
    """The heads of a program, each after those that its rules read."""
    rules = [rule for stratum in program.strata for rule in stratum]
    names = [head.relation for rule in rules for head in rule.heads]
    return list(dict.fromkeys(reversed(names)))[::-1]  # by the last of a head's rules


def verify_heads(programs: Iterable[CheckedProgram], versions: Mapping[str, RelationVersion]) -> None:
    """Compute every head from the base relations alone and compare.

    Raises VerificationError at the first difference, naming the head and a tuple.
    """
    ordered = [(program, name) for program in programs for name in heads_in_order(program)]
    derived = {name for _, name in ordered}
    relations = {name: version.relation() for name, version in versions.items() if name not in derived}
    for program, name in ordered:
        relations[name] = Evaluation(program, dict(relations)).relation(name)
        _compare(name, versions[name], relations[name])


def _compare(name: str, maintained: RelationVersion, recomputed: Relation) -> None:
    held, expected = maintained.relation().codes, recomputed.codes
    if all(np.array_equal(a, b) for a, b in zip(held, expected, strict=True)):
        return
    ours = set(zip(*(column.tolist() for column in held), strict=True))
    theirs = set(zip(*(column.tolist() for column in expected), strict=True))
    surplus, missing = ours - theirs, theirs - ours
    row = min(surplus or missing)
    values = [
        column.type.domain.decode(np.array([code]), column.type.arrow)[0].as_py()
        for column, code in zip(recomputed.schema.columns, row, strict=True)
    ]
    raise VerificationError(
        f"head {name!r} differs from its recomputation: {len(surplus):,} tuples too many and"
        f" {len(missing):,} missing; {'too many' if surplus else 'missing'}, for example:"
        f" ({', '.join(map(repr, values))})"
    )
