"""What a workspace holds, structure by structure: it must not grow while its data do not.

Counts are exact; bytes have the room that arrays keep for growth.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bench.report.process_tree import resident_bytes
from lftj.values.dictionary import DictionaryDomain
from maintenance import Workspace
from maintenance.groups.grouped import GroupedAggregate
from maintenance.groups.scan import GroupScan
from maintenance.groups.text import GroupText
from maintenance.workspace.memory_by_kind import parts_of


@dataclass(frozen=True)
class Sizes:
    """One moment's."""

    tuples: int  # of all relations and heads
    base_tuples: int  # of their primary indices' bases
    run_tuples: int  # of their runs
    relation_bytes: int  # of all indices
    records: int  # sensitivity records
    record_bytes: int  # of records, witnesses and what else searches keep
    values: int  # of all dictionaries
    codes: int  # that dictionaries have arrays for
    dictionary_bytes: int
    labels: int  # order labels
    slots: int  # of groups, those that are gone included
    group_bytes: int
    resident_bytes: int  # of the process: what it freed and was not given back included

    @classmethod
    def of(cls, workspace: Workspace) -> Sizes:
        """Those of a workspace between two transactions."""
        state = workspace._state
        versions = list(state.versions.values())
        parts = list(parts_of(state.heads.values()))
        grouped = [part for part in parts if isinstance(part, GroupedAggregate)]
        scans = [part for part in parts if isinstance(part, GroupScan | GroupText)]
        dictionaries = [
            domain for domain in workspace.domains._by_name.values() if isinstance(domain, DictionaryDomain)
        ]
        labels = [labels for scan in scans if isinstance(scan, GroupScan) for labels in scan._labels.values()]
        return cls(
            tuples=sum(version.n_rows for version in versions),
            base_tuples=sum(version.primary.base.n_tuples for version in versions),
            run_tuples=sum(run.n_tuples for version in versions for run in version.primary.runs),
            relation_bytes=sum(version.nbytes for version in versions),
            records=sum(head.n_records for head in state.heads.values()),
            record_bytes=workspace.sensitivity_bytes,
            values=sum(domain.n_values for domain in dictionaries),
            codes=sum(domain.n_codes for domain in dictionaries),
            dictionary_bytes=sum(domain.nbytes for domain in dictionaries),
            labels=sum(map(len, labels)),
            slots=sum(part._table.n_rows for part in grouped),
            group_bytes=sum(part.nbytes for part in (*grouped, *scans)),
            resident_bytes=resident_bytes(),
        )

    def __str__(self) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in asdict(self).items())
