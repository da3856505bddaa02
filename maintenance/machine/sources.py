"""What the machine has of the rules of a head: bodies, and what is read of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from lftj.errors import EvaluationError, RangeError
from lftj.planning.lowered import Lowered
from lftj.storage.support import SupportVersion
from lftj.values.domain import NULL_CODE
from maintenance.groups.shared_scans import Sharer
from maintenance.heads.counted_source import BagSource
from maintenance.heads.intermediate import Intermediate
from maintenance.heads.rule_body import RuleBody
from maintenance.heads.rule_source import AggregateSource, ProjectedSource, SetSource, SideBySideSource
from maintenance.machine.row_code import Wanted
from maintenance.staged import StagedValue
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.delta.delta_body import DeltaBody
from maintenance.strategies.strategy import BodySearch, HeadSource

Aggregates = AggregateSource | SideBySideSource
Source = SetSource | BagSource | ProjectedSource | Aggregates


@dataclass(frozen=True)
class Alternatives:
    """Rows of several bodies, each of which counts once: of the variables that all of them bind.

    ``support``: how many bodies give a row; ``lowered``: what is known of the variables.
    """

    names: Sequence[str]
    support: StagedValue[SupportVersion]
    lowered: Lowered

    @property
    def wanted(self) -> Sequence[Wanted]:
        """What is read of the rows of each body."""
        return [(name, None) for name in self.names]


def is_taken(source: HeadSource) -> TypeGuard[Source]:
    """Whether it is a rule of a kind that the machine knows."""
    return type(source) in (SetSource, BagSource, ProjectedSource, AggregateSource, SideBySideSource)


def bodies_of(source: Source) -> Sequence[RuleBody]:
    """Those whose rows it is made of."""
    its = _intermediate_of(source)
    return source.bodies if its is None else its.bodies


def alternatives_of(source: Source) -> Alternatives | None:
    """What its bodies have in common, where several give the rows that it counts once."""
    its = _intermediate_of(source)
    if its is None or its._support is None:
        return None
    types = {
        name: replace(type_, nullable=any(body.lowered.types[name].nullable for body in its.bodies))
        for name in its.names
        for type_ in [its.bodies[0].lowered.types[name]]
    }
    lowered = replace(
        its.bodies[0].lowered, types=types, comparisons=(), assignments=(), negations=(), fetched={}
    )
    return Alternatives(its.names, its._support, lowered)


def _intermediate_of(source: Source) -> Intermediate | None:
    if isinstance(source, SetSource):
        return None
    return source._assignments if isinstance(source, BagSource) else source._intermediate


def wanted_of(source: Source) -> Sequence[Wanted]:
    """What is read of the rows: a head's values, or those of its groups and behind them arguments."""
    if isinstance(source, Aggregates):
        sharers = sharers_of(source)
        groups: list[Wanted] = [(name, None) for name in sharers[0].groups]
        return [*groups, *dict.fromkeys(one for sharer in sharers for one in arguments_of(sharer))]
    if isinstance(source, BagSource):
        names: Sequence[str] = source._head.variables
    else:
        names = source._names if isinstance(source, SetSource) else source._sharer.names
    return [(name, None) for name in names]


def sharers_of(source: Aggregates) -> Sequence[Sharer]:
    """The aggregates whose values a head has."""
    return source._groups.sharers if isinstance(source, SideBySideSource) else (source._sharer,)


def arguments_of(sharer: Sharer) -> Sequence[Wanted]:
    """The arguments of an aggregate: of one that adds up decimals their numbers."""
    return [(name, sharer.scale) for name in sharer.arguments]


def terms_of(search: BodySearch) -> DeltaBody | None:
    """What keeps a body by its delta rule, where that can be used."""
    if isinstance(search, AutoBody):
        return search.delta
    return search if type(search) is DeltaBody else None


def constant_row(body: RuleBody) -> Mapping[str, int] | None:
    """The codes of the one row of a body without variables, by name, if it is one whose codes stay."""
    if type(body) is not RuleBody or body.all_searches or body.lowered.empty or not body._unbound:
        return None
    try:
        rows, signs = body._finished([], np.ones(1, np.int64))
    except (EvaluationError, RangeError):  # which is told of when there is a row
        return None
    if len(signs) != 1:
        return None
    found = {name: int(codes[0]) for name, codes in rows.items()}
    stay = [
        code == NULL_CODE or body.lowered.types[name].domain.collector is None for name, code in found.items()
    ]
    return found if all(stay) else None
