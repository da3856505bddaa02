"""Fingerprints of source code: what was made by some sources is not used with others.

Invariant: every Python file below a folder counts, with its place and its
text, however deep it lies; nothing else does.

Cost: one read of each file, some milliseconds for all packages of this project.
"""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import Protocol


class Digest(Protocol):
    """What hashes take their bytes by (``hashlib``)."""

    def update(self, data: bytes, /) -> None: ...


def add_sources(digest: Digest, folder: Traversable, name: str) -> None:
    """Add the Python files below ``folder``, which is called ``name``, in a fixed order.

    ``folder``: a path, or a folder of a zip file as ``importlib.resources`` gives it.

    >>> import hashlib, pathlib
    >>> digest = hashlib.sha256()
    >>> add_sources(digest, pathlib.Path(__file__).parent, "indices")
    >>> digest.digest() == hashlib.sha256().digest()
    False
    """
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        place = f"{name}/{entry.name}"
        if entry.is_dir():
            if entry.name == "__pycache__":  # which may hold folders that are closed to this user
                continue
            add_sources(digest, entry, place)
        elif entry.name.endswith(".py"):
            text = entry.read_bytes()
            digest.update(f"{place}\0{len(text)}\0".encode() + text)
