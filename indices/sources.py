"""Sources that something was made of: by what machine code and images are known to be of these sources.

Machine code has in it what a kernel's module binds when it is imported: its own functions and
constants, and those of other modules.  So kernels are compiled again where one of these changes,
and only there: not those of the search for an edit of a strategy (:func:`sources_of`).  An image may have
objects of any module (:func:`sources_of_packages`).

Invariants

1. Every module of ``KERNEL_PACKAGES`` that unindented import statements lead to, directly or not,
   counts, with its name and its text.  (What is imported within a function, or for types alone, is not
   bound in the module; a package that only leads to a module of it binds nothing there.)
2. The text is that of the file, read when the module is imported: just after its bytecode was.

Cost: one read of each such file, once per process: 20 to 30 ms for all of them.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

KERNEL_PACKAGES = ("indices", "lftj", "maintenance")
"""The packages that hold kernels.  By place, not by import: this package imports no other."""

_IMPORT = re.compile(
    rb"^(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|.*)|import\s+([\w., \t]+))",
    re.MULTILINE,
)
_NAME = re.compile(rb"#.*|([\w.]+)(?:\s+as\s+\w+)?")


@dataclass
class Sources:
    """The modules below ``root``: a folder, or a folder of a zip file."""

    root: Traversable
    _texts: dict[str, bytes] = field(default_factory=dict)  # by module
    _read: dict[str, list[str]] = field(default_factory=dict)  # the modules that a module imports

    def closure(self, module: str) -> list[str]:
        """A module and all that it imports, sorted."""
        found = {module}
        todo = [module]
        while todo:
            new = set(self._imports(todo.pop())) - found
            found |= new
            todo += new
        return sorted(found)

    def fingerprint(self, module: str) -> str:
        return _digest((name, self._text(name)) for name in self.closure(module))[:16]

    def _imports(self, module: str) -> list[str]:
        if module not in self._read:
            self._read[module] = list(self._imported(self._text(module)))
        return self._read[module]

    def _imported(self, text: bytes) -> Iterator[str]:
        for package, names, several in _IMPORT.findall(text):
            bound = [name.decode() for name in _NAME.findall(several or names) if name]
            if several:
                yield from filter(self._is_module, bound)
            elif self._is_module(place := package.decode()):
                below = [f"{place}.{name}" for name in bound]
                modules = list(filter(self._is_module, below))
                yield from modules
                if len(modules) < len(below):
                    yield place

    def _is_module(self, name: str) -> bool:
        return name in self._files

    def _text(self, module: str) -> bytes:
        if module not in self._texts:
            self._texts[module] = self._files[module].read_bytes() if module in self._files else b""
        return self._texts[module]

    @functools.cached_property
    def _files(self) -> dict[str, Traversable]:
        """The file of every module."""
        return {
            name: file
            for package in KERNEL_PACKAGES
            for name, file in _files_below(package, self.root.joinpath(package))
        }


def _files_below(package: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    """The modules of a package and of those in it, and their files."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        stem, dot, suffix = entry.name.partition(".")
        if suffix == "py":
            yield package if stem == "__init__" else f"{package}.{stem}", entry
        elif not dot and stem != "__pycache__":  # which may hold folders that are closed to this user
            yield from _files_below(f"{package}.{stem}", entry)


def _digest(texts: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, text in texts:
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


@functools.cache
def _own() -> Sources:
    here: Any = files(__package__)  # in a folder or a zip file; both know their parents
    return Sources(here.parent)


@functools.cache
def sources_of(module: str) -> str:
    """The fingerprint of what a module's kernels are made of.

    >>> sources_of("indices.monoid") == sources_of("indices.max_scan")
    False
    """
    return _own().fingerprint(module)


@functools.cache
def sources_of_packages(*packages: str) -> str:
    """The fingerprint of all that packages hold, in folders or zip files."""
    return _digest(
        (name, file.read_bytes())
        for package in packages
        for name, file in sorted(_files_below(package, files(package)), key=lambda found: found[0])
    )
