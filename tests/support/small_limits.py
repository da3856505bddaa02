"""Limits so low that small data reach them: runs merge, choices are made, views come and go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from lftj.storage import index_version
from lftj.values import schema
from maintenance.groups import window_marks, window_walks
from maintenance.machine import machine
from maintenance.strategies.auto import auto_body, view_choice
from maintenance.strategies.stages import stages


@contextmanager
def wide_relations(all_are: bool = True) -> Iterator[None]:
    """Every relation that is loaded is wide, however few columns it has, unless it is a bag."""
    with mock.patch.object(schema, "MOST_NARROW", 0 if all_are else schema.MOST_NARROW):
        yield


@contextmanager
def machine_soon() -> Iterator[None]:
    """A machine for single changes is at work behind every transaction that it could have done."""
    with mock.patch.multiple(machine, FEWEST=1, MOST=1):
        yield


@contextmanager
def near_marks() -> Iterator[None]:
    """Partitions of windows have marks from two rows on, and walks go from one to the next."""
    with ExitStack() as patches:
        for module, name, value in (
            (window_marks, "SPACING", 2),
            (window_marks, "LARGE", 1),
            (window_walks, "GAP", 0),
        ):
            patches.enter_context(mock.patch.object(module, name, value))
        yield


@contextmanager
def small_limits(merges: tuple[int, int] | None) -> Iterator[None]:
    """``merges``: BASE_LEAST and BASE_FRACTION, which say when runs go into the base; None: all as it is."""
    with ExitStack() as patches:
        if merges is not None:
            for name, value in zip(("BASE_LEAST", "BASE_FRACTION"), merges, strict=True):
                patches.enter_context(mock.patch.object(index_version, name, value))
            for chooses in (auto_body, stages, view_choice):
                patches.enter_context(mock.patch.object(chooses, "LEAST_BUDGET", 20))
            for name in ("LEAST_PER_ROW", "VIEW_PRIOR"):  # so that there are views where they can be
                patches.enter_context(mock.patch.object(view_choice, name, 0.0))
            patches.enter_context(near_marks())
        yield
