"""``lftj serve`` as a process of its own, and a certificate for it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.paths import ROOT, child_environment


@contextmanager
def serving(
    folder: Path, *options: str, port: int = 0, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address; killed in the end if it is still there."""
    command = [sys.executable, "-m", "lftj", "serve", str(folder), "--listen", f"127.0.0.1:{port}", *options]
    about = {**child_environment(), **environment}
    process = subprocess.Popen(command, cwd=ROOT, env=about, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"at (grpc\S+);", line)
        assert found, line + process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.wait()


def make_certificate(certificate: Path, key: Path) -> None:
    """One for this machine, PEM; the test is skipped where there is no openssl."""
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        files = ["-keyout", str(key), "-out", str(certificate)]
        subprocess.run([*made, *names, *files], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl, which makes a certificate")
