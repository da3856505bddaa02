"""Draw all pictures of the documentation anew, into ``docs/pictures``."""

from __future__ import annotations

from pathlib import Path

from bench.pictures.gallery import PICTURES

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        print(f"docs/pictures/{name}")
