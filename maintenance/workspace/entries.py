"""What the journal says of loads, and of rules that are installed or kept otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from lftj.language.body import Wanted
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Program
from lftj.rewriting.shared_views import is_view
from lftj.storage.relation import Relation
from maintenance.durable.entries import Installed, Loaded, StrategySet
from maintenance.event_time.stream_state import StreamState
from maintenance.heads.grown import Grown
from maintenance.workspace.declaring import Declared
from maintenance.workspace.installing import Wishes
from maintenance.workspace.published import Published
from maintenance.workspace.state import State


def loaded_entry(
    published: Published, relation: Relation, stream: StreamState | None, grown: Grown | None = None
) -> Loaded:
    """A relation was loaded; its rows are written to a file.  Raises DurabilityError.

    ``stream``: where it stands, if it is one.  ``grown``: by what it grows, if it only does that.
    """
    assert published.store is not None
    schema = relation.schema
    file = published.store.write_rows(relation.name, schema.as_declared(relation.to_table()))
    return Loaded(
        relation.name,
        file,
        schema.functional,
        relation.dropped_rows,
        relation.duplicate_rows,
        schema.keeps_null,
        schema.bag,
        schema.key,
        None if stream is None else stream.record,
        None if grown is None else grown.record,
    )


def begun_with(
    published: Published, state: State, grown: Sequence[Relation]
) -> tuple[list[str], tuple[Loaded, ...]]:
    """The names of relations that begin to grow, and what a folder has of them.  Raises DurabilityError."""
    names = [relation.name for relation in grown]
    if published.store is None:
        return names, ()
    entries = (loaded_entry(published, one, None, state.strata.grown[one.name]) for one in grown)
    return names, tuple(entries)


def installed_entry(
    program: Program,
    wishes: Wishes,
    replace: bool,
    wanted: Wanted | None,
    declared: Declared,
    grown: Sequence[str] = (),
    loaded: Sequence[Loaded] = (),
) -> Installed:
    """A program was installed, or what is wanted of it and what that needs.

    ``program``: less the rules of relations that grow; ``grown``, ``loaded``: those that begin with it.
    """
    strategy = wishes.strategy if isinstance(wishes.strategy, str) else dict(wishes.strategy)
    order = {head: list(variables) for head, variables in wishes.order.items()}
    limits = dict(wishes.sensitivity_bytes)
    heads = list(dict.fromkeys(head.relation for rule in program.rules for head in rule.heads))
    fields = program.text, heads, strategy, replace, limits, order, wishes.max_rounds
    if wanted is None:
        return Installed(*fields, keys=declared.keys, streams=declared.streams, grown=grown, loaded=loaded)
    kept = [name for name in heads if name in wanted.results or name in wanted.others]
    of_wanted = list(wanted.results), wanted.choices
    declares = declared.keys, declared.streams
    return Installed(fields[0], kept, *fields[2:], *of_wanted, *declares, grown, loaded)


def strategy_entry(before: State, following: State, strategy: str) -> StrategySet:
    """Heads are to be kept by another strategy, as the user named them."""
    anew = (name for name, head in following.heads.items() if head is not before.heads.get(name))
    return StrategySet(dict.fromkeys((shown_name(name) for name in anew if not is_view(name)), strategy))
