"""Which lines of a call are the user's: those outside of this project's packages."""

from __future__ import annotations

import contextlib
import os

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OWN_FILES = (
    contextlib.__file__,  # of decorated calls
    *(os.path.join(_ROOT, name, "") for name in ("indices", "lftj", "maintenance", "spark_bridge")),
)
"""Files, and folders of files, whose lines are ours."""
