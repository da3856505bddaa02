"""Relations that only grow, as the journal has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lftj.language.as_of_now import joined_now
from lftj.language.finals import Final
from lftj.values.domains import Domains
from maintenance.event_time.closing import ClosedRows
from maintenance.event_time.joining import JoinedRows
from maintenance.heads.grown import Grown


def grown_of(name: str, record: Mapping[str, Any], domains: Domains) -> Grown:
    """The inverse of :attr:`~maintenance.heads.grown.Grown.record`; ``domains``: those of the workspace."""
    if "final" in record:
        return ClosedRows(Final(**record["final"]))
    return JoinedRows(joined_now(record["joined"], name), domains)
