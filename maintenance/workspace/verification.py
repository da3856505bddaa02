"""Checking heads against their recomputation from the base relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lftj.errors import VerificationError
from lftj.evaluation.evaluation import Evaluation
from lftj.evaluation.request import Request
from lftj.language.body import CheckedProgram, Wanted
from lftj.language.several_aggregates import shown_name
from lftj.process.progress import bar
from lftj.rewriting.shared_views import is_view
from lftj.storage.relation import Relation
from lftj.storage.relation_version import RelationVersion
from lftj.values.schema import Schema
from maintenance.event_time.stream_state import NEVER, clock
from maintenance.heads.operator_head import OperatorHead
from maintenance.heads.stratum import heads_by_stratum
from maintenance.workspace.state import State

if TYPE_CHECKING:
    from maintenance.heads.head import MaintainedHead


def verify_heads(heads: Mapping[str, MaintainedHead], versions: Mapping[str, RelationVersion]) -> None:
    """Compute every head, each behind those that it reads, or with them, from the base relations alone.

    Heads that a user wrote by their rules as written, without views; those that are wanted without keys, too
    (:mod:`lftj.rewriting.wanted_heads`).  Compares it with what is kept.  Raises VerificationError at the
    first difference, naming head and tuple.
    """
    relations = {name: version.relation() for name, version in versions.items() if name not in heads}
    wanted: dict[int, dict[str, Relation]] = {}
    with bar("verifying", None) as advance:
        for number, (name, head) in enumerate(heads.items()):
            advance(number / len(heads), shown_name(name))
            if isinstance(head, OperatorHead):
                relations[name] = head.anew(relations)
                _compare(name, versions[name], relations[name])
                continue
            program = head.program if is_view(name) else head.program.as_written
            if program.wanted is not None and name in program.wanted.results:
                if id(program.wanted) not in wanted:
                    wanted[id(program.wanted)] = _as_written(program.wanted, relations, head)
                relations[name] = wanted[id(program.wanted)][name]
            elif name not in relations:
                request = _request(program, relations, name, head)
                relations |= Evaluation(request).whole()
            if not head.is_beside:
                _compare(name, versions[name], relations[name])


def verify_closed(state: State) -> None:
    """Raise VerificationError for a row that has closed, and that the clock has not passed; or that its head
    has otherwise, where that reads streams alone, and they have all rows still that it is made of.
    """
    now = clock(state.streams)
    for name, final in state.finals.items():
        rows = np.array(state.versions[name].columns())
        closes = rows[final.number] + final.after
        wrong = closes > (NEVER if now is None else now)
        head = state.heads[final.head]
        if head.reads <= final.extents.keys():
            left = [(state.streams[stream].left, extent) for stream, extent in final.extents.items()]
            known = max([NEVER, *(bound + extent for bound, extent in left if bound is not None)])
            wrong |= (closes >= known) & (state.versions[final.head].weights(rows) == 0)
        if wrong.any():
            row = _shown(state.versions[name].schema, rows[:, wrong][:, 0].tolist())
            raise VerificationError(
                f"{name!r} has {int(wrong.sum()):,} tuples that did not close so, for example: {row}"
            )


def _request(
    program: CheckedProgram, relations: Mapping[str, Relation], name: str, head: MaintainedHead
) -> Request:
    """To evaluate ``name`` as ``head`` is kept, by the plans of the last time."""
    return Request(program, relations, name, max_rounds=head.keeping.max_rounds, plans=head.plans)


def _as_written(
    wanted: Wanted, relations: Mapping[str, Relation], head: MaintainedHead
) -> dict[str, Relation]:
    """The wanted heads of a program, all that they read evaluated whole."""
    program = wanted.whole
    needed = {*wanted.results}.union(*map(program.read_by, wanted.results))
    found = {name: relation for name, relation in relations.items() if name not in needed}
    for name in (name for names in heads_by_stratum(program) for name in names):
        if name in needed and name not in found:
            found |= Evaluation(_request(program, found, name, head)).whole()
    return found


def _compare(name: str, maintained: RelationVersion, recomputed: Relation) -> None:
    held, expected = maintained.relation().codes, recomputed.codes
    if all(np.array_equal(a, b) for a, b in zip(held, expected, strict=True)):
        return
    ours = set(zip(*(column.tolist() for column in held), strict=True))
    theirs = set(zip(*(column.tolist() for column in expected), strict=True))
    surplus, missing = ours - theirs, theirs - ours
    row = min(surplus or missing)
    raise VerificationError(
        f"head {name!r} differs from its recomputation: {len(surplus):,} tuples too many and"
        f" {len(missing):,} missing; {'too many' if surplus else 'missing'}, for example:"
        f" {_shown(recomputed.schema, row)}"
    )


def _shown(schema: Schema, row: Sequence[int]) -> str:
    values = [
        column.type.domain.decode(np.array([code]), column.type.arrow)[0].as_py()
        for column, code in zip(schema.columns, row, strict=True)
    ]
    return f"({', '.join(map(repr, values))})"
