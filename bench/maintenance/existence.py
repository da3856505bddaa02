"""A rule of existence over a window that slides along a stream of edges: the workloads `existence`.

docs/design/targets.md "existence rule": which vertices have two edges whose ends a third one
joins, over sx-mathoverflow by time.  The window holds the last so many arrivals.
An edge that arrives again while it is in the window is no change, and it is
there until its last arrival leaves.  Self-loops are dropped: one of them would
make its vertex a hub by itself (23 % of the arrivals are self-loops).

A step takes in one arrival, then lets the oldest go; each of the two that
changes the relation is a transaction of its own.  Beside it, each change is put
to a second workspace, which keeps the rule by strategy `delta`.
"""

from __future__ import annotations

from bench.workload import Target, Workload

RULE = "hub(a) <- e(a, b), e(b, c), e(a, c)."

WINDOWS = {"mathoverflow": (157_000, 2_539), "random-8": (2_500, 215)}
"""Stream to the arrivals in the window, and to the hubs of the first full one."""

STEPS = 20_000
"""Measured steps, where the stream has so many."""

WARM_UP_STEPS = 500


def existence(stream: str) -> Workload:
    """The rule over a stream of :mod:`bench.datasets`."""
    window, hubs = WINDOWS[stream]
    return Workload(
        f"existence-{stream}",
        f"existence rule on a sliding window, {stream}",
        {"e": f"stream-{stream}"},
        {"lftj": RULE},
        hubs,
        task="window",
        window=window,
        targets=(Target("operations ratio", 10, 50),) if stream == "mathoverflow" else (),
        note=f"the window holds {window:,} arrivals without self-loops, loaded at once; then {WARM_UP_STEPS} "
        f"steps to warm up and up to {STEPS:,} measured ones. A step is one arrival and one departure, each "
        "a transaction of its own if it changes the relation. Operations are opens, nexts, seeks and "
        "matches; those of the delta rules are of the same kernel, without matches and support counts. "
        "The changes of the head are compared after every transaction.",
    )
