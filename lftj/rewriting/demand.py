"""Demand: a head that is read with bound keys only is evaluated for those keys (magic sets).

    other(o, s) <- line(o, s), line(o, t), t != s.
    q(n) <- supplier(s, n), n < 9, line(o, s), !other(o, s).

becomes::

    other#keys1(o, s) <- supplier(s, n), line(o, s), n < 9.
    other(o, s) <- line(o, s), line(o, t), other#keys1(o, s), t != s.
    q(n) <- supplier(s, n), n < 9, line(o, s), !other(o, s).

Sources: Bancilhon, Maier, Sagiv, Ullman: Magic sets and other strange ways to implement logic programs (PODS
1986); Beeri, Ramakrishnan: On the power of magic (J. Logic Programming 10, 1991).  A recursion has keys that
go round with it, but where they stay the same, or it is right-linear (:mod:`lftj.rewriting.right_linear`).

Invariants

1. A head has one set of bound columns, those that all of its readers bind, and one relation of keys, that of
   all of them together.  It holds the rows, groups or partitions of these keys as the program as written has
   them, whole; so all that reads it has what it has as written.
2. Targets, and a head that is read with nothing bound, are evaluated whole.  Columns that are bound are
   given by atoms in every body; they are keys of functions and groups, partitions of windows, and no floats.
3. Keys come from tables and from heads that do not depend on the restricted one; they compute nothing, and
   can't fail.  So they are finite, nothing depends on itself that did not before but they in a recursion, and
   never through a negation or an aggregate: keys of a component with ``min`` or ``max`` read none of it.

Choice: by the listings of the bodies, with and without keys, as :mod:`lftj.rewriting.elimination` estimates
them; a recursion by the share of its keys that is asked for.  Cost: a few estimates for each read of a head.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lftj.language.body import Assignment, Body, CheckedHead, CheckedProgram, CheckedRule
from lftj.language.one_row import ONE_ROW
from lftj.language.several_aggregates import is_auxiliary, shown_name
from lftj.language.strata import components
from lftj.language.syntax import Atom, Constant, Variable, Wildcard
from lftj.rewriting.bound_reads import (
    Read,
    connected,
    eligible_columns,
    listed_by,
    names_of,
    parts_of,
    reached_from,
    static_columns,
)
from lftj.rewriting.demand_choices import DemandChoices
from lftj.rewriting.elimination import VIEW_ROW
from lftj.rewriting.head_sizes import Size, Sizes, safe_filters
from lftj.rewriting.joins import bound_by, of_atom
from lftj.rewriting.key_relations import KeyRelations, KeyRule, holds_keys, type_of_keys
from lftj.rewriting.right_linear import RightLinear
from lftj.rewriting.shared_views import free_name
from lftj.rewriting.stratified import stratified, together
from lftj.storage.catalog import Catalog
from lftj.values.domains import Domains
from lftj.values.kinds import literal_type
from lftj.values.schema import ColumnType

LEAST_SPARED = 1e5
"""Operations that keys are expected to spare, at least."""

MOST_ASKED = 0.25
"""The share that is to be left at most: of the operations, and of the keys of a recursion."""

NARROWS = 0.8
"""An atom that leaves more of the keys than this has no part in finding them."""


def with_demand(
    program: CheckedProgram,
    targets: Collection[str],
    catalog: Catalog,
    domains: Domains,
    recursive: bool = True,
    choices: DemandChoices | None = None,
    before: DemandChoices | None = None,
) -> CheckedProgram:
    """The program whose heads are evaluated for the keys that targets need; itself where none is read so.

    ``catalog``: the relations that are there.  ``recursive``: whether heads that depend on themselves, too.
    ``choices``: get what is chosen; ``before``: those that were made already, in place of estimates.
    Its ``demand`` says of each head with readers that bind keys what it is evaluated for, or why it is whole.
    """
    made = DemandChoices() if choices is None else choices
    rewriting = _Rewriting(program, targets, catalog, domains, made, before)
    for component in rewriting.readers_first():
        if not set(targets) & set(component) and (recursive or not program.component_of(component[0])):
            rewriting.restrict(component)
    return rewriting.program()


@dataclass(frozen=True)
class _Asking:
    """Columns of a head that a reader binds, and the atoms by which it does."""

    columns: frozenset[int]
    atoms: tuple[Atom, ...]


@dataclass(frozen=True)
class _Keys:
    """The relation of a head's keys, and what columns of the head they are."""

    columns: tuple[int, ...]
    name: str


class _Rewriting:
    """One program's rewriting for some targets."""

    def __init__(
        self,
        program: CheckedProgram,
        targets: Collection[str],
        catalog: Catalog,
        domains: Domains,
        choices: DemandChoices,
        before: DemandChoices | None,
    ) -> None:
        self._program = program
        self._choices = choices
        self._before = before
        choices.notes.update({} if before is None else before.notes)
        self._catalog = catalog
        self._domains = domains
        needed = {*targets}.union(*map(program.read_by, targets))
        self._needed = tuple(name for name in program.derived if name in needed)
        self._sizes = Sizes(program, catalog)
        self._keys: dict[str, _Keys] = {}
        self._instead: dict[str, list[CheckedRule]] = {}  # rules of heads that have others now
        self._by_ends: dict[
            str, list[tuple[CheckedRule, CheckedHead]]
        ] = {}  # of those over ends of ways, all
        reads: dict[str, set[str]] = {name: set() for name in self._needed}
        for name in self._needed:
            for rule, _ in program.rules_of(name):
                reads[name].update(*(body.relations for body in rule.bodies))
        self._relations = KeyRelations(program, catalog, domains, reads)

    def readers_first(self) -> list[tuple[str, ...]]:
        """The components of the heads that are needed."""
        found = components(
            {name: sorted(read & {*self._needed}) for name, read in self._relations.reads.items()}
        )
        return found[::-1]

    # -- one component ---------------------------------------------------------------------

    def restrict(self, component: tuple[str, ...]) -> None:
        """Give the heads keys, if there are any and that pays."""
        inside = frozenset(component)
        if not all(self._program.rules_of(name) for name in component):
            return  # the relation of one row
        eligible = {name: eligible_columns(self._program, name) for name in component}
        reads = [read for name in self._needed for read in self._reads_by(name, inside)]
        asked = [
            (read, self._asking(read, eligible[read.atom.relation], inside))
            for read in reads
            if read.reader not in inside
        ]
        bound = dict(eligible)
        for read, asking in asked:
            bound[read.atom.relation] &= asking.columns
        if not self._program.component_of(component[0]):
            if bound[component[0]]:
                self._restrict_head(component[0], bound[component[0]], asked)
            return
        within = [read for read in reads if read.reader in inside]
        self._restrict_recursive(component, bound, asked, within)

    def _reads_by(self, name: str, inside: frozenset[str]) -> Iterator[Read]:
        """What a head reads of some heads."""
        place = itertools.count()
        for rule, head in self._by_ends.get(name) or self._program.rules_of(name):
            for body in rule.bodies:
                for atom in (*body.atoms, *body.negations):
                    at = next(place)
                    if atom.relation in inside:
                        yield Read(f"{name}/{at}", head, body, atom, self._constants(atom))

    def _constants(self, atom: Atom) -> frozenset[int]:
        """The columns of an atom with a literal that a column of keys can hold: of the domain itself."""
        columns = self._program.derived[atom.relation].columns
        return frozenset(
            at
            for at, (term, column) in enumerate(zip(atom.terms, columns, strict=True))
            if isinstance(term, Constant) and self._domains.of(literal_type(term.value)) is column.type.domain
        )

    def _restrict_head(self, name: str, bound: frozenset[int], asked: Sequence[tuple[Read, _Asking]]) -> None:
        columns = tuple(sorted(bound))
        rules, cost, rows = self._key_rules([(read, one.atoms) for read, one in asked], columns)
        rows = min(rows, self._sizes.keys_of(name, columns))
        size = self._key_size(rules, rows)
        left = cost + VIEW_ROW * rows
        for rule, head in self._program.rules_of(name):
            names = tuple(head.variables[place] for place in columns)
            for body in rule.bodies:
                left += self._sizes.listing(body.atoms, body, listed_by(head), (names, size)).cost
        whole = self._whole(name)
        if self._pays(name, columns, rows, whole, left):
            self._give(name, columns, self._relations.named(name, columns, rules), size)
            self._instead[name] = self._guarded(name)

    def _pays(self, name: str, columns: Sequence[int], rows: float, whole: float, left: float) -> bool:
        """Whether so much is spared; noted either way."""
        if self._before is not None:
            self._choices.restricted[name] = self._before.restricted.get(name, False)
            return self._choices.restricted[name]
        pays = left <= MOST_ASKED * whole and whole - left >= LEAST_SPARED
        reads = self._relations.reads
        readers = [
            shown_name(one) for one in self._program.derived if one != name and name in reads.get(one, ())
        ]
        shown = ", ".join(dict.fromkeys(readers))
        verb = "read" if "," in shown else "reads"
        keys = ", ".join(self._program.derived[name].columns[at].name for at in columns)
        number = f"about {rows:,.0f} of {self._sizes.keys_of(name, columns):,.0f}"
        if pays:
            note = f"evaluated for the keys ({keys}) that {shown} {verb} only, {number}"
        else:
            cost = f"{left:,.0f} operations instead of {whole:,.0f}"
            note = f"evaluated whole: {shown} {verb} {number} keys ({keys}), for which it takes about {cost}"
        self._choices.notes[name], self._choices.restricted[name] = note, pays
        return pays

    # -- what asks for keys ----------------------------------------------------------------

    def _asking(self, read: Read, eligible: frozenset[int], inside: frozenset[str]) -> _Asking:
        """The atoms of the reader's body that bind keys for the least; no columns where nothing does."""
        name, body = read.atom.relation, read.body
        own = self._key_atom(read.head)
        if self._before is not None:
            chosen = self._before.asking(read.place, [*body.atoms, *([] if own is None else [own])])
            return _Asking(frozenset(), ()) if chosen is None else _Asking(*chosen)
        tables = [
            one
            for one in body.atoms
            if one.relation in self._catalog
            or (holds_keys(one.relation) and not self._relations.depends(one.relation, inside))
        ]
        if own is not None and not self._relations.depends(own.relation, inside):
            tables.append(own)
        heads = [
            one
            for one in body.atoms
            if one.relation in self._program.derived
            and not is_auxiliary(one.relation)
            and not self._relations.depends(one.relation, inside)
        ]
        best, least = _Asking(frozenset(), ()), math.inf
        if not (tables or heads or read.constants):
            return best
        whole = self._whole(name)
        for atoms in ([*tables], [*tables, *heads]) if heads else ([*tables],):
            for part in parts_of(atoms):
                columns = read.columns(frozenset(bound_by(part))) & eligible
                if not columns:
                    continue
                used, cost, rows = self._narrowing(read, part, columns)
                share = min(1.0, rows / self._sizes.keys_of(name, sorted(columns)))
                left = cost + VIEW_ROW * rows + share * whole
                if left < least:
                    best, least = _Asking(columns, used), left
            if least <= MOST_ASKED * whole:  # of tables alone: several heads may have the same
                break
        return best

    def _whole(self, name: str) -> float:
        """What a head as written costs by itself."""
        if self._program.component_of(name):
            return self._sizes.of(name).rows
        rules = self._program.rules_of(name)
        listings = (
            self._sizes.listing(b.atoms, b, listed_by(head)) for rule, head in rules for b in rule.bodies
        )
        return sum(one.cost for one in listings)

    def _narrowing(
        self, read: Read, atoms: Sequence[Atom], columns: Iterable[int]
    ) -> tuple[tuple[Atom, ...], float, float]:
        """The atoms that bind the columns, less those that narrow nothing; what they cost, and the keys."""
        wanted = names_of(read.atom.terms[place] for place in columns)
        used = connected(atoms, wanted)
        found = self._sizes.listing(used, read.body, wanted)
        for atom in reversed(used) if self._before is None else ():
            fewer = [one for one in used if one is not atom]
            if not frozenset(wanted) <= frozenset(bound_by(fewer)):
                continue
            if connected(fewer, wanted) != fewer:
                continue
            without = self._sizes.listing(fewer, read.body, wanted)
            if found.rows > NARROWS * without.rows:
                used, found = fewer, without
        return tuple(used), found.cost, found.rows

    def _key_rules(
        self, asked: Iterable[tuple[Read, Sequence[Atom]]], columns: Sequence[int]
    ) -> tuple[list[KeyRule], float, float]:
        """The rules of the keys, each once, and about what they cost and give."""
        found: dict[str, KeyRule] = {}
        cost = rows = 0.0
        for read, atoms in asked:
            used, one_cost, one_rows = self._narrowing(read, atoms, columns)
            self._choices.ask(read.place, columns, used)
            rule = self._key_rule(read, used, columns)
            if rule.text not in found:
                found[rule.text] = rule
                cost, rows = cost + one_cost, rows + one_rows
        return list(found.values()), cost, rows

    def _key_rule(self, read: Read, atoms: Sequence[Atom], columns: Sequence[int]) -> KeyRule:
        body = read.body
        bound = bound_by(atoms)
        types = {name: type_of_keys(body.types[name]) for name in bound}
        assignments: list[Assignment] = []
        names = []
        for place in columns:
            term = read.atom.terms[place]
            if isinstance(term, Constant):
                name = free_name("key", types)
                arrow = literal_type(term.value)
                types[name] = ColumnType(self._domains.of(arrow), arrow)
                assignments.append(Assignment(name, term))
                names.append(name)
            else:
                assert isinstance(term, Variable)
                names.append(term.name)
        known = frozenset(bound)
        negations = tuple(
            one for one in body.negations if one.relation in self._catalog and of_atom(one) <= known
        )
        made = tuple(atoms) or (Atom(ONE_ROW, (Wildcard(),)),)
        return KeyRule(
            tuple(names), Body(made, negations, safe_filters(body, known), tuple(assignments), types)
        )

    def _key_size(self, rules: Sequence[KeyRule], rows: float) -> Size:
        """The size of a relation of keys."""
        columns = range(len(rules[0].names))
        found = (sum(self._sizes.distinct(rule.names[at], rule.body) for rule in rules) for at in columns)
        return Size(max(1.0, rows), tuple(max(1.0, min(rows, keys)) for keys in found))

    # -- heads over their keys -------------------------------------------------------------

    def _give(self, name: str, columns: Sequence[int], keys: str, size: Size) -> None:
        self._keys[name] = _Keys(tuple(columns), keys)
        self._relations.reads[name].add(keys)
        self._sizes.known.setdefault(keys, size)

    def _key_atom(self, head: CheckedHead) -> Atom | None:
        """What a body of a head reads of its keys."""
        keys = self._keys.get(head.relation)
        if keys is None:
            return None
        return Atom(keys.name, tuple(Variable(head.variables[place]) for place in keys.columns))

    def _guarded(self, name: str) -> list[CheckedRule]:
        """The rules of a head over its keys; a body that reads it with the same keys has them already."""
        found = []
        for rule, head in self._program.rules_of(name):
            own = self._key_atom(head)
            assert own is not None
            columns = self._keys[name].columns
            bodies = []
            for body in rule.bodies:
                same = any(
                    atom.relation == name and tuple(atom.terms[place] for place in columns) == own.terms
                    for atom in body.atoms
                )
                bodies.append(body if same else replace(body, atoms=(*body.atoms, own)))
            found.append(replace(rule, heads=(head,), bodies=tuple(bodies)))
        return found

    # -- recursion -------------------------------------------------------------------------

    def _restrict_recursive(
        self,
        component: tuple[str, ...],
        bound: dict[str, frozenset[int]],
        asked: Sequence[tuple[Read, _Asking]],
        within: Sequence[Read],
    ) -> None:
        first = component[0]
        read_outside = list(dict.fromkeys(read.atom.relation for read, _ in asked))
        if not all(bound[name] for name in read_outside):
            return
        static = static_columns(within) & bound[first] if len(component) == 1 else frozenset()
        ends = None if static or len(component) > 1 else RightLinear.of(self._program, first, bound[first])
        if static:
            bound = {first: static}
        elif ends is not None:
            bound = {first: frozenset(ends.columns)}
        else:
            bound = self._bound_within(bound, within)
            if not all(bound[name] for name in read_outside):
                return
        outside: dict[str, list[KeyRule]] = {}
        rows = 0.0
        for name in read_outside:
            columns = tuple(sorted(bound[name]))
            some = [(read, one.atoms) for read, one in asked if read.atom.relation == name]
            outside[name], cost, asked_for = self._key_rules(some, columns)
            keys, whole = self._sizes.keys_of(name, columns), self._whole(name)
            left = cost + VIEW_ROW * asked_for + whole * min(1.0, asked_for / keys)
            rows += asked_for
            if not self._pays(name, columns, min(asked_for, keys), whole, left):
                for other in read_outside[: read_outside.index(name)]:
                    self._choices.restricted[other] = False
                    self._choices.notes[other] = f"evaluated whole: so is {shown_name(name)}"
                return
        if not static and ends is None:
            self._close(component, bound, outside, within, rows)
            return
        columns = tuple(sorted(bound[first]))
        keys_size = self._key_size(outside[first], rows)
        named = self._relations.named(first, columns, outside[first])
        if ends is None:
            self._give(first, columns, named, keys_size)
            self._instead[first] = self._guarded(first)
            return
        self._sizes.known.setdefault(named, keys_size)
        ways, exits = ends.rules(named, self._relations)
        reached = self._reached(rows, columns, first)
        ends_size = rows * math.sqrt(self._sizes.keys_of(first, columns))
        self._sizes.known[ways] = Size(ends_size, (*keys_size.distinct, *reached.distinct))
        self._instead[first] = exits
        made = [rule for rule in self._relations.rules if rule.heads[0].relation == ways]
        self._by_ends[first] = [(rule, rule.heads[0]) for rule in (*exits, *made)]
        self._relations.reads[first] = {
            read for rule in exits for body in rule.bodies for read in body.relations
        }

    def _reached(self, rows: float, columns: Sequence[int], name: str) -> Size:
        """Keys that a recursion comes to: the guess is that one leads to the square root of all."""
        keys = self._sizes.keys_of(name, columns)
        found = min(keys, rows * math.sqrt(keys))
        return Size(found, tuple(min(found, self._sizes.of(name).distinct[at]) for at in columns))

    def _bound_within(
        self, bound: dict[str, frozenset[int]], within: Sequence[Read]
    ) -> dict[str, frozenset[int]]:
        """The columns that the component's own reads bind, too, given those of their heads."""
        while True:
            following = dict(bound)
            for read in within:
                names = frozenset(bound_by(self._asking_within(read, following)))
                following[read.atom.relation] &= read.columns(names)
            if following == bound:
                return bound
            bound = following

    def _asking_within(self, read: Read, bound: Mapping[str, frozenset[int]]) -> list[Atom]:
        """The atoms of a body of a component that say which keys of it are read: those that the head's keys
        lead to; of the component those before the read, where nothing else binds a key.
        """
        own = Atom("", tuple(Variable(read.head.variables[at]) for at in sorted(bound[read.reader])))
        inside = frozenset(bound)
        others = [one for one in read.body.atoms if one.relation not in inside]
        others = [
            one
            for one in others
            if one.relation in self._catalog
            or (one.relation != ONE_ROW and not self._relations.depends(one.relation, inside))
        ]
        wanted = bound[read.atom.relation]
        found = reached_from(own, others)
        if wanted & read.columns(frozenset(bound_by(found))) or self._has_best(inside):
            return found
        before = itertools.takewhile(lambda one: one is not read.atom, read.body.atoms)
        return reached_from(own, [*others, *(one for one in before if one.relation in inside)])

    def _has_best(self, inside: Iterable[str]) -> bool:
        return any(head.extremum for name in inside for _, head in self._program.rules_of(name))

    def _close(
        self,
        component: Sequence[str],
        bound: Mapping[str, frozenset[int]],
        outside: Mapping[str, list[KeyRule]],
        within: Sequence[Read],
        rows: float,
    ) -> None:
        """Relations of keys that go round with the component's rules."""
        names = [name for name in component if bound[name]]
        for name in names:
            columns = sorted(bound[name])
            self._give(name, columns, self._relations.new_name(name), self._reached(rows, columns, name))
        for name in names:
            keys = self._keys[name]
            rules = {rule.text: rule for rule in outside.get(name, [])}
            for read in within:
                if read.atom.relation != name:
                    continue
                own = self._key_atom(read.head)
                atoms = self._asking_within(read, bound)
                atoms = [own if one.relation == "" and own is not None else one for one in atoms]
                atoms = [one for one in atoms if one.relation]
                wanted = names_of(read.atom.terms[place] for place in keys.columns)
                rule = self._key_rule(read, connected(atoms, wanted), keys.columns)
                itself = Atom(keys.name, tuple(map(Variable, rule.names)))
                if itself not in rule.body.atoms:
                    rules[rule.text] = rule
            self._relations.define(keys.name, name, keys.columns, list(rules.values()))
        for name in names:
            self._instead[name] = self._guarded(name)

    # -- the program -----------------------------------------------------------------------

    def program(self) -> CheckedProgram:
        """As it is now."""
        notes = self._choices.notes
        if not notes:
            return self._program
        if not self._instead:
            return replace(self._program, demand=notes)
        rules = [*self._relations.rules]
        for rule in dict.fromkeys(rule for stratum in self._program.strata for rule in stratum):
            left = tuple(head for head in rule.heads if head.relation not in self._instead)
            rules += [replace(rule, heads=left)] if left and left != rule.heads else [rule] if left else []
        rules += together(itertools.chain.from_iterable(self._instead.values()))
        strata, circles = stratified(rules)
        return replace(
            self._program,
            strata=strata,
            components=circles,
            derived={**self._program.derived, **self._relations.derived},
            demand=notes,
        )
