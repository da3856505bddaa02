"""The kernels that commits call are compiled and loaded when rules are installed, not in the commits.

To load one takes some milliseconds, many times what a commit takes, and to compile one up to some seconds.
Many are first called after thousands of commits, when something is first merged, or when a head goes over
to another strategy.  Which ones a commit calls depends on its rows, and what they are compiled for is known
only from work that calls them.  So where one is not compiled yet, everything is, by the work that
:func:`lftj.warm_up` does: once per installation.

Cost: up to a tenth of a second, once per process; on an installation where nothing was compiled, that of
``warm_up``.
"""

from __future__ import annotations

from collections.abc import Iterable

from indices.compiled import all_are_compiled, kernels, load_kernels
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
    "lftj.search.machine.search",
    "maintenance.strategies.trace.",
)
"""Those of searches that have sensitivity records, or a trace without any, or may go over to one."""

STAGES = ("lftj.search.regions.listing", "lftj.storage.patch", "maintenance.strategies.stages.")
"""Those of recursive heads."""


def load_for(heads: Iterable[MaintainedHead]) -> None:
    """Load what commits of these heads, which are built, may call; what is missing is compiled.

    Building has called something of most other modules that they need: these are loaded whole.
    """
    wanted: tuple[str, ...] = STEPS
    for head in heads:
        if any(isinstance(source, RecursiveSource) for source in head.sources):
            wanted += STAGES
        if any(isinstance(search, AutoBody | BodyTrace) for search in head.searches):
            wanted += RECORDS
    begun = {kernel.__module__ for kernel in kernels if kernel.overloads}
    load_kernels(lambda module: module in begun or module.startswith(wanted))
    if not all_are_compiled():
        from lftj.database.warming import rehearse  # which brings the work of all packages with it

        rehearse()
