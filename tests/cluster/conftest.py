"""Tests that are asked for by `make cluster-test`: they take minutes, and packages of their own."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("LFTJ_CLUSTER") == "1" else ["test_*.py"]
