"""The kernels that commits call are loaded when rules are installed, not in the commits.

To load one takes some milliseconds, many times what a commit takes; many are first called after thousands of
commits, when something is first merged.  What was never compiled still is when it is first called:
:func:`lftj.warm_up` compiles everything.

Cost: up to a tenth of a second, once per process.
"""

from __future__ import annotations

from collections.abc import Iterable

from indices.compiled import kernels, load_kernels
from maintenance.heads.head import MaintainedHead
from maintenance.heads.recursive_source import RecursiveSource
from maintenance.strategies.auto.auto_body import AutoBody
from maintenance.strategies.trace.body_trace import BodyTrace

STEPS = (
    "indices.node_pool",
    "lftj.search.regions.weighted",
    "lftj.storage.merged_trie",
    "lftj.storage.net_weights",
    "lftj.storage.runs",
    "lftj.storage.signed_rows",
    "lftj.storage.support",
    "maintenance.strategies.surgery",
)
"""The modules whose kernels every rule's commits may call, by the beginnings of their names."""

RECORDS = (
    "indices.max_scan",
    "indices.record_",
    "lftj.search.regions.search",
    "maintenance.strategies.trace.",
)
"""Those of searches that have sensitivity records, or a trace without any, or may go over to one."""

STAGES = ("lftj.search.regions.listing", "lftj.storage.patch", "maintenance.strategies.stages.")
"""Those of recursive heads."""


def load_for(heads: Iterable[MaintainedHead]) -> None:
    """Load what commits of these heads, which are built, may call.

    Building has called something of most other modules that they need: these are loaded whole.
    """
    wanted: tuple[str, ...] = STEPS
    for head in heads:
        if any(isinstance(source, RecursiveSource) for source in head.sources):
            wanted += STAGES
        if any(isinstance(search, AutoBody | BodyTrace) for search in head.searches):
            wanted += RECORDS
    begun = {one.__module__ for one in kernels if one.overloads}
    load_kernels(lambda module: module in begun or module.startswith(wanted))
