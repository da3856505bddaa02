"""What a commit cost, rule by rule: the figures behind ``tx.stats``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from lftj.display.grid import Grid
from lftj.language.diagnostics import unknown_name
from lftj.search.regions.evaluation import Operations


@dataclass
class RuleStats:
    """One head's part of one commit.

    ``surgeries`` are branches that came or went in the indices of its rules, ``matches`` records that hold
    their keys, ``regions`` bindings that the oracle names, ``skipped_regions`` those that were not looked at,
    for a witness says that nothing changes there, ``empty_regions`` those that led nowhere (garbage, a coarse
    record, or a branch that another atom lacks): the sharper the oracle, the fewer.  ``dropped_records``: of
    the records that were matched, those that are needed no more; each is dropped once.  ``opens``, ``nexts``
    and ``seeks`` are the operations of evaluation.  ``instances``: of a recursion, assignments of its rules
    that came or went, counted by the first head of those that depend on each other.  ``window_rows``: rows
    of windows that were read, before and after.
    """

    strategy: str = "auto"
    surgeries: int = 0
    matches: int = 0
    regions: int = 0
    empty_regions: int = 0
    skipped_regions: int = 0
    dropped_records: int = 0
    opens: int = 0
    nexts: int = 0
    seeks: int = 0
    instances: int = 0
    window_rows: int = 0
    shadow_operations: int = 0  # of sampling another strategy, or preparing to go over to it
    recomputed: int = 0  # bodies that were evaluated again, for their budget was spent
    chosen: tuple[str, ...] = ()  # of strategy "auto": what each body was kept by
    head_changes: int = 0
    rebuilt: int = 0  # bodies whose records were built anew, the last piece of them now
    seconds: float = 0.0
    index_bytes: int = 0  # sensitivity records, after the commit
    records: int = 0

    @property
    def operations(self) -> int:
        """Operations of evaluation, matches and surgeries: the cost that the claims are about."""
        return self.opens + self.nexts + self.seeks + self.matches + self.surgeries + self.shadow_operations

    def count(self, operations: Operations) -> None:
        """Add what a search took."""
        self.opens += operations.opens
        self.nexts += operations.nexts
        self.seeks += operations.seeks
        self.empty_regions += operations.failed_regions

    def add(self, other: RuleStats) -> None:
        """Add what another commit took."""
        for name, value in vars(other).items():
            if name != "strategy":
                setattr(self, name, getattr(self, name) + value)

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass
class TransactionStats(Mapping[str, RuleStats]):
    """All of one commit: staged and netted changes of the inputs, and each head's figures.

    A mapping of every installed head; a head whose inputs did not change has figures of 0.  ``rules`` holds
    those of which some input changed, and the parts of heads with several aggregates.  ``strategies``: of the
    installed heads.  ``one_by_one``: of a batch, the heads that were stepped one transaction after the other,
    and why.  ``fast``: 1 where the machine for single changes did it, else 0; of a batch, how many
    transactions it did for the heads one by one.  ``late``: of streams that have some, rows that were not
    taken; ``expired``: rows that left because the clock had passed them.  ``housekeeping_rows``: rows,
    records and keys that were read to be written anew, for the sake of order and space alone: each commit
    does a piece of such work, whatever it changes.  ``indices_built``: indices that were built of all rows of
    a relation amid it; their rows are among ``housekeeping_rows``.  ``indices_given_back``: indices that
    commits kept in step, that no installed rule reads, and that nobody has asked for in so long that building
    them again costs less.

    Examples:
        >>> stats = TransactionStats(strategies={"tri": "trace"})
        >>> stats["tri"].operations, stats.get("tir")
        (0, None)
        >>> TransactionStats({"edge": 2}, strategies={"tri": "trace"}, seconds=0.0125)
        a commit, 12.5 ms
        relation  inserted  erased  no change
        edge             2       0          0
    """

    inserted: dict[str, int] = field(default_factory=dict)
    erased: dict[str, int] = field(default_factory=dict)
    no_changes: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    expired: dict[str, int] = field(default_factory=dict)
    rules: dict[str, RuleStats] = field(default_factory=dict)
    strategies: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    housekeeping_rows: int = 0
    indices_built: int = 0
    indices_given_back: int = 0
    one_by_one: dict[str, str] = field(default_factory=dict)
    fast: int = 0

    def __getitem__(self, head: str) -> RuleStats:
        """The figures of a head.  Raises UnknownRelationError, which is a KeyError too."""
        if head in self.rules:
            return self.rules[head]
        if head in self.strategies:
            return RuleStats(self.strategies[head])
        raise unknown_name("head", head, self.strategies)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.strategies, *self.rules)))

    def __len__(self) -> int:
        return len(self.strategies.keys() | self.rules.keys())

    def _grids(self) -> list[Grid]:
        """Of what changed: the relations, and the heads whose inputs did."""
        by = ", by the kernel of single changes" if self.fast else ""
        title = f"a commit, {self.seconds * 1e3:.3g} ms{by}"
        counts = [self.inserted, self.erased, self.no_changes]
        names = ["relation", "inserted", "erased", "no change"]
        if self.late or self.expired:
            counts, names = [*counts, self.late, self.expired], [*names, "late", "expired"]
        relations = [
            [name, *(f"{count.get(name, 0):,}" for count in counts)]
            for name in dict.fromkeys(name for count in counts for name in count)
        ]
        heads = [
            [
                name,
                rule.strategy,
                f"{rule.head_changes:,}",
                f"{rule.operations:,}",
                f"{rule.seconds * 1e3:.3g}",
            ]
            for name, rule in self.rules.items()
        ]
        found = [Grid(names, relations, [False] + [True] * len(counts), title)]
        if heads:
            columns = ["head", "kept by", "changes", "operations", "ms"]
            found.append(Grid(columns, heads, [False, False, True, True, True]))
        return found

    def __repr__(self) -> str:
        return "\n".join(grid.text() for grid in self._grids())

    def _repr_html_(self) -> str:
        return "".join(grid.html() for grid in self._grids())
