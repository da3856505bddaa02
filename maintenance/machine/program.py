"""A program of the commit machine, made of heads that are installed (:mod:`maintenance.machine.records`).

Invariants

1. What it reads are the versions that :meth:`MachineProgram.bind` got last, and the layers, which have all
   that came since.
2. All addresses are of arrays that it keeps, or that the heads keep and do not replace while it is bound.

Memory: up to `Sizes.layer_bytes` for each index of a relation that may change, `Sizes.rows` rows of each of
these relations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from indices.calls_by_address import code_address
from lftj.memory import address
from lftj.rewriting.guard import Spans
from lftj.search.regions.weighted import SEARCH_ALL, _search_all
from lftj.storage.catalog import IndexKey, IndexUse, Side
from lftj.storage.runs import MAX_RUNS
from lftj.storage.support import SupportVersion
from lftj.values.schema import Schema
from maintenance.heads.head import MaintainedHead
from maintenance.heads.rule_body import RuleBody
from maintenance.heads.rule_source import SideBySideSource
from maintenance.heads.stratum import Strata
from maintenance.machine import records
from maintenance.machine.accounting import BodyAccount, Taken, taken_since
from maintenance.machine.answers import MOST_ASKED
from maintenance.machine.dictionaries import Dictionaries
from maintenance.machine.eligible import refusals
from maintenance.machine.entry_form import EntryForm, EntryForms
from maintenance.machine.guards import guards_of, limits_of, with_seen
from maintenance.machine.interned_values import CodeLease
from maintenance.machine.ranges import SideSums, spans_of
from maintenance.machine.records import (
    ASKED,
    HEAD,
    LEFT,
    Check,
    Exist,
    Gather,
    Join,
    Net,
    Program,
    Project,
    Range,
    Relation,
    Step,
)
from maintenance.machine.row_code import RowsWriter, Wanted
from maintenance.machine.scans import Scans
from maintenance.machine.sources import (
    Aggregates,
    Source,
    alternatives_of,
    arguments_of,
    bodies_of,
    constant_row,
    is_taken,
    sharers_of,
    terms_of,
    wanted_of,
)
from maintenance.machine.staged_values import Staging
from maintenance.machine.structures import Groups, Layers, Sizes, Supports, aggregated_of
from maintenance.machine.wide_rows import WideRows, change_of, key_stagings, stagings
from maintenance.staged import StagedValue
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.range_sums import RangeSums, _Side
from maintenance.strategies.strategy import Round, Versions

STAGED = 1 << 10
"""Items that a transaction may stage."""

_PLACES = ("staged", "n_staged", "log_end", "commits", "taken", "attempt", "is_journaled", "n_written")
STAGED_AT, N_STAGED, LOG_END, COMMITS, TAKEN, ATTEMPT, IS_JOURNALED, N_WRITTEN = map(Program.place, _PLACES)
"""Of the header."""


@dataclass(frozen=True, eq=False)
class Layout:
    """What a transaction has to know to stage rows as numbers, and to read what they did.

    ``staged``: by relation its number, how many columns it has, how values of each are staged (None: all are
    int64), and its schema; ``keys``: of those with a key its columns, and how values of each are staged.
    ``chosen``: by head under `auto` what each body is kept by.  ``lease``: of the codes of all that is staged
    and in the layers.
    """

    staged: Mapping[str, tuple[int, int, Sequence[Staging] | WideRows | None, Schema]]
    keys: Mapping[str, Sequence[tuple[int, Staging]]]
    names: Sequence[str]
    arities: Sequence[int]
    shown: Mapping[str, Schema]
    strategies: Mapping[str, str]
    chosen: Mapping[str, tuple[str, ...]]
    lease: CodeLease


class MachineProgram:
    """One program, over one set of relations and heads."""

    def __init__(self, versions: Versions, strata: Strata, shown: Mapping[str, Schema], sizes: Sizes) -> None:
        heads = strata.heads
        self.sizes = sizes
        self._strata = strata
        self._known = [version.schema for version in versions.values()]  # kept: they are known by identity
        self._schemas = {name: id(version.schema) for name, version in versions.items()}
        self.refusals = refusals(versions, heads)
        self.heads = {name: head for name, head in heads.items() if name not in self.refusals}
        self._keep: list[np.ndarray] = []
        self._dictionaries = Dictionaries()
        self._rows = RowsWriter(self._kept, self._dictionaries)
        self._objects: list[object] = []
        self._read: list[tuple[str, Sequence[int]]] = []  # relations, and columns of theirs
        self._layers: dict[tuple[str, IndexKey], Layers] = {}
        self._supports: list[Supports] = []
        self._groups: list[Groups] = []
        self._scans: list[Scans] = []
        self._sides: dict[tuple[str, tuple[int, ...]], SideSums] = {}
        self._more_layers: list[Layers] = []  # of rows that stand in no relation
        self._accounts: dict[AutoBody, BodyAccount] = {}
        self._phases = [(search, search.keeps_something) for search in _under_auto(heads.values())]
        self._versions = versions
        self._changing = [name for name in versions if name not in self.refusals]
        self._records: list[Relation] = []
        self._buffers: list[tuple[np.ndarray, np.ndarray]] = []  # of their changes
        self._addresses: dict[str, int] = {}
        for name in self._changing:
            schema = versions[name].schema
            width = len(schema.columns) - schema.bag
            self._addresses[name] = self._add_relation(len(schema.columns), width)
            self._records[-1].path = 1 if schema.wide else width
        stored = [name for name in self._changing if name not in heads or not heads[name].is_beside]
        self._primaries = {name: self._layered(name, self._primary_key(name)) for name in stored}
        for name in stored:
            its = self._records[self._changing.index(name)]
            its.primary = address(self._primaries[name].words)
            schema = versions[name].schema
            if schema.key:
                its.key = address(self._layered(name, (schema.key_levels, ())).words)
                its.n_key = len(schema.key)
        self._ops: list[int] = []
        self._compile()
        words, stage = self._header(), np.zeros(STAGED, np.int64)
        written = np.zeros(2 * len(self._records), np.int64)
        self._record = Program(words)
        self._record.written = address(written)
        self.address, self.header, self.stage = address(words), words.data, stage.data
        self._written = written.data
        buffers = zip(self._changing, self._buffers, strict=False)
        self._forms = EntryForms([(name, versions[name].schema, its) for name, its in buffers])
        self.log = np.zeros(0, np.int64).data
        self._versions = {}
        base = [name for name in self._changing if name not in heads]
        self.layout = Layout(
            {
                name: (self._changing.index(name), len(s.shown.columns), stagings(s, self._read_of(name)), s)
                for name in base
                if (s := versions[name].schema)
            },
            {name: key_stagings(s) for name in base if (s := versions[name].schema).key},
            self._changing,
            [int(record.arity) for record in self._records],
            shown,
            {name: head.strategy for name, head in heads.items()},
            {name: _chosen(head) for name, head in self.heads.items()},
            CodeLease(any(versions[name].schema.dictionaries for name in self._changing)),
        )

    # -- making it --------------------------------------------------------------------------------

    def _kept(self, items: Sequence[int] | np.ndarray) -> int:
        """The address of int64 items, which stay there."""
        self._keep.append(np.array(items, np.int64).reshape(-1))
        return address(self._keep[-1])

    def _add_relation(self, arity: int, width: int) -> int:
        words, rows = np.zeros(Relation.LENGTH, np.int64), self.sizes.rows
        its = Relation(words)
        its.number, its.arity, its.width, its.room = len(self._records), arity, width, rows
        columns, weights = np.zeros(arity * rows, np.int64), np.zeros(rows, np.int64)
        its.rows, its.weights = address(columns), address(weights)
        self._buffers.append((columns, weights))
        self._keep += [words, columns, weights]
        self._records.append(its)
        return address(words)

    def _primary_key(self, name: str) -> IndexKey:
        return self._versions[name]._primary, ()

    def _layered(self, name: str, key: IndexKey) -> Layers:
        """An index in layers, made where it is not there yet."""
        self._read += [(name, key[0]), *((name, pair) for pair in key[1])]
        if (name, key) not in self._layers:
            made = Layers(key, len(key[0]), self._addresses.get(name, 0), self.sizes, self._keep)
            self._layers[name, key] = made
        return self._layers[name, key]

    def _read_of(self, name: str) -> set[int]:
        """The columns of a relation that are read."""
        return {column for relation, order in self._read for column in order if relation == name}

    def _op(self, words: Sequence[int]) -> None:
        self._ops.append(self._kept(words))

    def _compile(self) -> None:
        self._guards = guards_of(self._strata, self._addresses)
        ops = {name: self._ops_of(name, head) for name, head in self.heads.items()}
        for name, head in self.heads.items():
            if head._checks_values:
                self._layered(name, _whole_key(head))
        for name in self._changing:
            if name not in self.heads:
                self._op(Net.fields(code=records.NET, relation=self._addresses[name]))
                self._step(name)
        for name, head in self.heads.items():
            self._ops += ops[name]
            self._step(name)
            if head._checks_values:
                index = address(self._layered(name, _whole_key(head)).words)
                self._op(Check.fields(code=records.CHECK, relation=self._addresses[name], index=index))

    def _step(self, name: str) -> None:
        if name in self._guards:
            self._ops.append(self._guards[name].address)
        for (relation, _), layers in self._layers.items():
            if relation == name:
                self._op(Step.fields(code=records.STEP, index=address(layers.words)))
        self._ops += [side.address for (view, _), side in self._sides.items() if view == name]

    def _ops_of(self, name: str, head: MaintainedHead) -> list[int]:
        """The ops that find a head's change; after it all indices that they read are there."""
        where, first, behind = self._addresses[name], list[int](), list[int]()
        if head.is_beside:
            return []
        for source in head.sources:
            assert is_taken(source)
            if not isinstance(source, Aggregates):
                own, rows = self._rows_of(name, source)
                first, behind = first + own, behind + rows
                continue
            own, rows = self._rows_of(sharers_of(source)[0].head.relation, source)  # it has the figures
            first += own + rows
            if len(head.sources) == 1:
                return [*first, self._group(where, where, source)]
            arity = len(head.schema.columns)
            changes = self._add_relation(arity, arity)
            first.append(self._group(where, changes, source))
            behind.append(self._gathered(changes, self._rows.as_found(range(arity))))
        return first + behind + self._projected(where, head._support if head.counts_support else None)

    def _rows_of(self, name: str, source: Source) -> tuple[list[int], list[int]]:
        """The ops that collect a source's rows, and those before them, while nothing is collected.

        ``name``: the head that has the figures.
        """
        bodies, wanted, alternatives = bodies_of(source), wanted_of(source), alternatives_of(source)
        if alternatives is None:
            return [], self._joins_of(name, bodies, wanted)
        arity = len(alternatives.names)
        changes = self._add_relation(arity, arity)
        joins = self._joins_of(name, bodies, alternatives.wanted)
        rows = self._rows.of(alternatives.lowered, alternatives.names, range(arity), wanted)
        return joins + self._projected(changes, alternatives.support), [self._gathered(changes, rows)]

    def _gathered(self, changes: int, rows: int) -> int:
        return self._kept(Gather.fields(code=records.GATHER, relation=changes, rows=rows))

    def _projected(self, where: int, support: StagedValue[SupportVersion] | None) -> list[int]:
        """The PROJECT of the rows collected, and what counts them, if something does."""
        if support is None:
            return [self._kept(Project.fields(code=records.PROJECT, head=where))]
        relation, layers = self._apart(support.kept.arity)
        self._supports.append(Supports(support, layers))
        project = Project.fields(code=records.PROJECT, head=where, supports=relation)
        step = Step.fields(code=records.STEP, index=address(layers.words))
        return [self._kept(project), self._kept(step)]

    def _joins_of(self, name: str, bodies: Sequence[RuleBody], wanted: Sequence[Wanted]) -> list[int]:
        """The ops that collect the rows of bodies."""
        found: list[int] = []
        for body in bodies:
            if (row := constant_row(body)) is not None:
                found.append(self._exist(name, body, [row[one] for one, _ in wanted]))
                continue
            (search,) = body.searches
            if body.lowered.empty:
                continue
            if isinstance(search, RangeSums):
                found += self._ranges(name, search, self._rows.of_body(body, wanted))
                continue
            delta = terms_of(search)
            assert delta is not None
            for terms in delta.terms._groups:
                if terms._relation in self._addresses:
                    found.append(self._join(name, terms, body, wanted))
        return found

    def _exist(self, name: str, body: RuleBody, row: Sequence[int]) -> int:
        tests: list[int] = []
        for (relation, key), negated in body._unbound:
            tests += [address(self._layered(relation, key).words), negated]
        return self._kept(
            Exist.fields(
                code=records.EXIST,
                head=self._addresses[name],
                tests=self._kept(tests),
                n_tests=len(body._unbound),
                row=self._kept(row),
                columns=len(row),
            )
        )

    def _join(self, name, terms, body: RuleBody, wanted: Sequence[Wanted]) -> int:  # type: ignore[no-untyped-def]
        (search,) = body.searches
        searches, key, level = terms.searches, terms._key, terms._level
        self._objects.append(searches)
        relation = terms._relation
        self._read += [(relation, key[0]), *((relation, pair) for pair in key[1])]
        fields = {
            "code": records.JOIN,
            "relation": self._addresses[relation],
            "head": self._addresses[name],
            "order": self._kept(key[0]),
            "levels": len(key[0]),
            "equal": self._kept(key[1]),
            "n_equal": len(key[1]),
            "level": level,
            "bound": terms._bound,
            "n_searched": searches.n_searched,
            "budget": min(self.sizes.budget, search.budget or self.sizes.budget),
        }
        if isinstance(search, AutoBody):
            fields["account"] = address(self._accounts.setdefault(search, BodyAccount(search)).words)
        if level + 1 < len(key[0]):
            fields["index"] = address(self._layered(relation, key).words)
        if searches.n_searched:
            uses = [self._use(use) for use in searches.uses]
            fields |= {
                "search": code_address(_search_all, SEARCH_ALL),
                "terms": address(searches._terms),
                "n_terms": len(searches._terms),
                "memories": self._kept(np.zeros(len(uses))),
                "n_memories": len(uses),
                "uses": self._kept([item for use in uses for item in use]),
                "buffer": address(searches._buffer),
                "n_buffer": len(searches._buffer),
                "listed": len(searches.searches[0].places),
                "rows": self._rows.of_body(body, wanted),
            }
        else:
            (only,) = searches.searches
            fields |= {"sign": only.sign, "rows": self._rows.of_body(body, wanted, only.places)}
        return self._kept(Join.fields(**fields))

    def _ranges(self, name: str, search: RangeSums, rows: int) -> list[int]:
        """The RANGEs of a range join: of changes of the left side, then of the right one."""
        found, sides = [], (search._left, search._right)
        for side, other in (sides, sides[::-1]):
            own, others = self._side(side), self._side(other)
            fields = {
                "code": records.RANGE,
                "head": self._addresses[name],
                "side": own.address,
                "other": others.address,
                "is_left": side is search._left,
                "is_after": side is search._right,
                "n_both": len(side.view.groups),
                "n_own": len(side.view.own),
                "n_others": len(other.view.own),
                "spans": self._kept(spans_of(side)),
                "n_spans": len(side.spans),
                "times": side.times[0],
                "other_times": side.times[1],
                "rows": rows,
            }
            if side.relation in self._addresses:
                found.append(self._kept(Range.fields(**fields)))
        return found

    def _side(self, side: _Side) -> SideSums:
        places = (*side.view.groups, *side.view.own, side.view.key)
        key = side.relation, places
        if key in self._sides:
            self._sides[key].add(side)
        else:
            made = [self._apart(len(places)) for _ in ("counts", "sums")]
            relation = self._addresses.get(side.relation, 0)
            self._sides[key] = SideSums(side, relation, made, self.sizes.rows)
        return self._sides[key]

    def _apart(self, arity: int) -> tuple[int, Layers]:
        """A relation of rows that stand in none, and its layers."""
        relation = self._add_relation(arity, arity)
        layers = Layers((tuple(range(arity)), ()), arity, relation, self.sizes, self._keep)
        self._records[-1].primary = address(layers.words)
        self._more_layers.append(layers)
        return relation, layers

    def _use(self, use: IndexUse) -> tuple[int, int]:
        return address(self._layered(use.relation, use.key).words), int(use.side is not Side.OLD)

    def _group(self, where: int, changes: int, source: Aggregates) -> int:
        """The GROUP of a head, whose address this is; and of the Relation whose change it writes."""
        read, aggregates = wanted_of(source), []
        for sharer, accumulator in zip(sharers_of(source), source._groups._accumulators, strict=False):
            scan, at = source._intermediate.own_scan(sharer), 0
            if scan is not None:
                self._scans.append(Scans(scan, sharer.call, self._apart))
                at = self._scans[-1].address
            columns = [*range(len(sharer.groups)), *(read.index(one) for one in arguments_of(sharer))]
            summand = columns[-1] if columns else 0
            its = aggregated_of(sharer, accumulator, self._dictionaries)
            aggregates.append(replace(its, summand=summand, scan=at, columns=columns))
        shown: Sequence[int] = range(source._groups._n_keys + 1)
        beside: list[int] = []
        if isinstance(source, SideBySideSource):
            shown = source._groups._places.tolist()
            beside = [self._addresses[sharer.head.relation] for sharer in sharers_of(source)]
        made = Groups(source._groups, aggregates, shown, len(read), where, changes, self.sizes.rows, beside)
        self._groups.append(made)
        return address(made.words)

    def _header(self) -> np.ndarray:
        indexes = [address(layers.words) for layers in self._every_layer]
        columns = max((int(record.arity) for record in self._records), default=0) + 1
        relations = [address(record._words) for record in self._records]
        fields = Program.fields(
            ops=self._kept(self._ops),
            n_ops=len(self._ops),
            relations=self._kept(relations),
            n_relations=len(relations),
            indexes=self._kept(indexes),
            n_indexes=len(indexes),
            rows=self._kept(np.zeros(columns * self.sizes.rows)),
            weights=self._kept(np.zeros(self.sizes.rows)),
            room=self.sizes.rows,
            accounts=self._kept([address(account.words) for account in self._accounts.values()]),
            n_accounts=len(self._accounts),
            taken_room=self.sizes.taken if self._phases else np.iinfo(np.int64).max,
        )
        return np.array(fields, np.int64)

    @property
    def _every_layer(self) -> list[Layers]:
        return [*self._layers.values(), *self._more_layers]

    # -- at work ----------------------------------------------------------------------------------

    def is_of(self, versions: Versions, strata: object) -> bool:
        """Whether it was made of these heads, kept as they are, and of relations with these schemas."""
        known = {name: id(one.schema) for name, one in versions.items()}
        as_written = not any(domain.keeps_null for domain in self._dictionaries.without_null)
        return strata is self._strata and as_written and self.phases_stay and self._schemas == known

    @property
    def phases_stay(self) -> bool:
        """Whether `auto` keeps all bodies, those of heads that are not in as well, by what it did."""
        return all(body.keeps_something == kept for body, kept in self._phases)

    def bind(self, versions: Versions, spans: Spans) -> bool:
        """Begin anew over these versions; False where an index has too many runs for it.

        ``spans``: of guarded columns.
        """
        for (name, key), layers in self._layers.items():
            version = versions[name]
            index = version._indices.get(key) or version.index_at(key)
            if len(index.runs) + 2 > MAX_RUNS:
                return False
            layers.bind(index.memory, index)
        runs = [supports.bind() for supports in self._supports] + [scan.bind() for scan in self._scans]
        runs += [side.bind(versions[view]) for (view, _), side in self._sides.items()]
        if any(n + 2 > MAX_RUNS for n in runs):
            return False
        for groups in self._groups:
            groups.bind()
        for answered in self._dictionaries.answers:
            answered.forget()
        limits = limits_of(self._strata, spans) if self._guards else spans
        for guards in self._guards.values():
            guards.bind(limits, versions)
        self.header[COMMITS] = self.header[TAKEN] = 0
        self.new_log()
        return True

    def run(self, kernel: Callable[[int], int]) -> int:
        """What a kernel gives of it."""
        known = self._dictionaries.known
        status = self._dictionaries.running(kernel, self.address) if known else kernel(self.address)
        return status if status != ASKED else self._asked(kernel)

    def _asked(self, kernel: Callable[[int], int]) -> int:
        """What a kernel gives when it has the answers that it asks for; LEFT where there is none, or many."""
        for _ in range(MOST_ASKED):
            asked = [one for one in self._dictionaries.answers if one.is_asked]
            if not all(one.give() for one in asked):
                return LEFT
            status = self._dictionaries.running(kernel, self.address)
            if status != ASKED:
                return status
        return LEFT

    @property
    def wants_room(self) -> bool:
        """Whether an index will have more room when it is bound again."""
        return any(layers.wants_room for layers in self._every_layer)

    def entry(self, streams: Mapping[str, Sequence[int | None]]) -> EntryForm:
        """What the journal is to say of what is prepared, and moves these streams."""
        return self._forms.form(self._written[: self.header[N_WRITTEN]], streams)

    def release(self) -> None:
        """Forget the versions: it has to be bound again."""
        self.layout.lease.release()
        for layers in self._every_layer:
            layers.memories = layers.version = None
        for supports in self._supports:
            supports.release()

    def new_log(self) -> None:
        """Go on in a new log; whoever reads the one before keeps it."""
        log = np.zeros(self.sizes.log + HEAD, np.int64)  # a piece is looked for behind a full one, too
        self._record.log, self._record.log_room, self._record.log_end = address(log), self.sizes.log, 0
        self.log = log.data

    @property
    def memory_bytes(self) -> int:
        """Of layers and buffers."""
        return sum(array.nbytes for array in self._keep) + sum(
            buffer.nbytes for layers in self._every_layer for buffer in layers.buffers
        )

    def folded(self, versions: Versions) -> Round:
        """From these versions, to which it was bound, to those with all that came since; nothing is changed
        by it."""
        found = Round(versions, dict(versions), {})
        for name, layers in self._primaries.items():
            added = layers.added_to_relation()
            if added is not None:
                found.enter(name, change_of(name, versions[name].schema, *added))
        for (view, _), side in self._sides.items():
            side.fold(found.new[view])
        return found

    def taken(self) -> Taken:
        """What commits took since this was last asked; the accounts of bodies have it then."""
        for account in self._accounts.values():
            account.enter()
        return taken_since(dict(zip(self._changing, self._records, strict=False)), self.layout.strategies)

    def spans(self, spans: Spans) -> Spans:
        """The spans of guarded columns, with all that came since."""
        return with_seen(spans, self._guards)

    @property
    def bodies(self) -> Collection[AutoBody]:
        """Those that have accounts."""
        return self._accounts.keys()

    def settle(self) -> None:
        """Let heads know what came since; any number of times, before the versions are replaced."""
        for supports in self._supports:
            supports.fold()
        for groups in self._groups:
            groups.fold()
        for scan in self._scans:
            scan.fold()
        for side in self._sides.values():
            side.settle()


def _whole_key(head: MaintainedHead) -> IndexKey:
    """That of the index of a head whose last level is its value."""
    return tuple(range(len(head.schema.columns))), ()


def _under_auto(heads: Iterable[MaintainedHead]) -> Iterator[AutoBody]:
    """The bodies of heads that `auto` chooses for."""
    for head in heads:
        yield from (search for search in head.searches if isinstance(search, AutoBody))


def _chosen(head: MaintainedHead) -> tuple[str, ...]:
    """What `auto` keeps a head's bodies by, as `tx.stats` says it."""
    if head.choice is not None and head.choice.in_use:
        return ("views",)
    return tuple("delta" for _ in _under_auto([head]))
