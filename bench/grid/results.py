"""`GridResults`: all cells of a run, with what they belong to, as JSON and as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.grid.cell import Cell
from bench.grid.view import View


@dataclass
class GridResults:
    """Cells in the order in which they were measured.

    Attributes:
        machine: What :func:`bench.report.machine.describe` said at the start.
        options: What the caller chose, in words; empty for everything.
        views: What was chosen.
        seconds: Of processor time that one cell could take.
        cells: What was measured of it so far.
        complete: All of it.
    """

    machine: dict[str, Any]
    options: str
    views: list[View]
    seconds: float
    cells: list[Cell] = field(default_factory=list)
    complete: bool = False

    def of(self, view: View, setting: str | None = None, engine: str | None = None) -> list[Cell]:
        """The cells of a view, and of one setting or engine of it."""
        return [
            cell
            for cell in self.cells
            if cell.view == view.name and setting in (None, cell.setting) and engine in (None, cell.engine)
        ]

    def wrong(self) -> list[Cell]:
        """Cells that show something broken."""
        return [cell for cell in self.cells if cell.status in ("differs", "failed")]

    def missing(self) -> int:
        """How many cells were chosen and are not measured."""
        return sum(len(view.settings) * len(view.kept_by) for view in self.views) - len(self.cells)

    def as_json(self) -> Mapping[str, Any]:
        """Everything, in plain types."""
        return {
            "complete": self.complete,
            "options": self.options,
            "seconds": self.seconds,
            "machine": self.machine,
            "views": [view.name for view in self.views],
            "cells": [cell.as_json() for cell in self.cells],
        }

    def write(self, folder: Path) -> None:
        """Write ``results.json``; it appears whole or not at all."""
        write_whole(folder / "results.json", json.dumps(self.as_json()) + "\n")


def write_whole(file: Path, text: str) -> None:
    """Write a file that appears whole or not at all; its folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)
