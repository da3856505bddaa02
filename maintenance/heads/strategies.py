"""The list of strategies: what users may name, and what stands behind each name.

Reading the list imports no engine: a strategy's module is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maintenance.strategies.component import ComponentStrategy
    from maintenance.strategies.strategy import Strategy


def _trace() -> Strategy:
    from maintenance.strategies.trace.trace import Trace

    return Trace()


def _delta() -> Strategy:
    from maintenance.strategies.delta.delta import Delta

    return Delta()


def _auto() -> Strategy:
    from maintenance.strategies.auto.auto import Auto

    return Auto()


def _recompute() -> Strategy:
    from maintenance.strategies.recompute import Recompute

    return Recompute()


def _stages() -> ComponentStrategy:
    from maintenance.strategies.stages.stages import StageStrategy

    return StageStrategy()


def _stages_within_budget() -> ComponentStrategy:
    from maintenance.strategies.stages.stages import StageStrategy

    return StageStrategy(budgeted=True)


def _recompute_component() -> ComponentStrategy:
    from maintenance.strategies.recompute import RecomputeComponent

    return RecomputeComponent()


STRATEGIES: Mapping[str, Callable[[], Strategy]] = {
    "auto": _auto,
    "trace": _trace,
    "delta": _delta,
    "recompute": _recompute,
    "views": _delta,
}
"""What makes a strategy, by its name; the first is the default."""

AUTO = "auto"

VIEWS = "views"
"""Of heads whose sums are rewritten into partial ones before they are planned (:mod:`lftj.rewriting`)."""

DEFAULT = next(iter(STRATEGIES))

COMPONENT_STRATEGIES: Mapping[str, Callable[[], ComponentStrategy]] = {
    "auto": _stages_within_budget,
    "stages": _stages,
    "recompute": _recompute_component,
}
"""The same for heads that depend on themselves, by components."""
