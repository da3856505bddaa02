"""Work that reaches the kernels of sources, so that it has them compiled (:mod:`lftj.database.warming`)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from maintenance.sources.pgoutput import Changes


def steps() -> Sequence[Callable[[], object]]:
    """Each reaches some kernels."""
    return [_messages]


def _messages() -> None:
    row = b"N" + struct.pack(">HcI", 1, b"t", 1) + b"x"
    Changes([struct.pack(">cQQQcI", b"w", 0, 0, 0, b"I", 1) + row]).tuples(1, 1).texts(0)
