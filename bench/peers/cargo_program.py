"""`CargoProgram`: a peer that is a Rust program of our own, in a folder beside this file, built on demand.

What cargo makes goes to the folder's ``target``, which git ignores; ``Cargo.lock`` pins every crate.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_PEERS = Path(__file__).resolve().parent


@dataclass(frozen=True)
class CargoProgram:
    """The program ``<name>-peer`` of the folder ``name``.

    ``crate``: what it measures, a dependency of which the version is pinned.
    """

    name: str
    crate: str

    @property
    def folder(self) -> Path:
        return _PEERS / self.name

    @property
    def file(self) -> Path:
        """The program, where it is built."""
        return self.folder / "target" / "release" / f"{self.name}-peer"

    def is_built(self) -> bool:
        """The program is there; it may be older than its source."""
        return self.file.is_file()

    def version(self) -> str | None:
        """The crate's version; None where the program is not built, see :meth:`build`."""
        if not self.is_built():
            return None
        found = re.search(rf'^{self.crate} = "=(.*)"$', (self.folder / "Cargo.toml").read_text(), re.M)
        assert found is not None
        return found[1]

    def build(self) -> None:
        """Let cargo build the program where it is not up to date; the first time may take minutes.

        Raises:
            RuntimeError: There is no cargo, or it could not; what it said.
        """
        if shutil.which("cargo") is None:
            if self.is_built():
                return
            raise RuntimeError("cargo is not installed")
        command = ["cargo", "build", "--release", "--locked", "--quiet"]
        target = ["--target-dir", str(self.folder / "target")]
        done = subprocess.run([*command, *target], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"cargo: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The program with pipes to all its ends.  Raises FileNotFoundError where it is not built."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [str(self.file), *arguments], stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1
        )


def write_words(path: Path, parts: Iterable[np.ndarray]) -> None:
    """Write arrays of whole numbers one after the other, as little-endian 64-bit integers."""
    np.concatenate([part.ravel() for part in parts]).astype("<i8").tofile(path)


def last_words(process: subprocess.Popen[str]) -> str:
    """Why a program that has ended did so."""
    assert process.stderr is not None
    complaints = process.stderr.read().strip().splitlines()
    return complaints[-1] if complaints else f"exit status {process.wait()}"
