"""Record the sessions anew, into ``docs/sessions``: ``python -m bench.sessions [NAME ...]``."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.sessions.doors import DOORS
from bench.sessions.film import film
from bench.sessions.recording import record

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "sessions"

if __name__ == "__main__":
    for name in sys.argv[1:] or DOORS:
        door = DOORS[name]
        frames = record(door, Path(sys.executable).parent)
        (FOLDER / name).write_text(film(frames, door.title), encoding="utf-8")
        print(f"docs/sessions/{name}: {len(frames)} frames, {(FOLDER / name).stat().st_size:,} bytes")
