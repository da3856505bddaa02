"""What a commit cost, rule by rule: the figures behind ``tx.stats``."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class RuleStats:
    """One head's part of one commit.

    ``surgeries`` are branches that came or went in the indices of its rules, ``matches`` records that hold
    their keys, ``regions`` bindings that the oracle names, ``skipped_regions`` those that were not looked at,
    for a witness says that nothing changes there, ``empty_regions`` those that led nowhere (garbage, a coarse
    record, or a branch that another atom lacks): the sharper the oracle, the fewer.  ``opens``, ``nexts`` and
    ``seeks`` are the operations of evaluation.
    """

    strategy: str = "trace"
    surgeries: int = 0
    matches: int = 0
    regions: int = 0
    empty_regions: int = 0
    skipped_regions: int = 0
    opens: int = 0
    nexts: int = 0
    seeks: int = 0
    head_changes: int = 0
    rebuilt: int = 0  # bodies whose records were built anew
    seconds: float = 0.0
    index_bytes: int = 0  # sensitivity records, after the commit
    records: int = 0

    @property
    def operations(self) -> int:
        """Operations of evaluation, matches and surgeries: the cost that the claims are about."""
        return self.opens + self.nexts + self.seeks + self.matches + self.surgeries

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass
class TransactionStats:
    """All of one commit: staged and netted changes of the inputs, and each head's figures."""

    inserted: dict[str, int]
    erased: dict[str, int]
    no_changes: dict[str, int]
    rules: dict[str, RuleStats]
    seconds: float = 0.0

    def __getitem__(self, head: str) -> RuleStats:
        return self.rules[head]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)
