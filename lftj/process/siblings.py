"""The packages that belong together are looked at before they are imported.

``indices`` and ``maintenance`` are ordinary words, and a script's own folder comes first
on Python's path: a user's ``indices.py`` beside the script would be imported in place of the package.

Cost: one look along the path per package, some tens of microseconds.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

_HOME = Path(__file__).parents[2]


def check_siblings(*names: str) -> None:
    """Raise ImportError where one of these packages is not the one that lies beside this one.

    >>> check_siblings("indices")
    """
    for name in names:
        loaded = sys.modules.get(name)
        try:
            specification = find_spec(name) if loaded is None else loaded.__spec__
        except ValueError:
            specification = None
        origin = specification.origin if specification is not None else getattr(loaded, "__file__", None)
        if origin is not None and Path(origin).parents[1] != _HOME:
            raise ImportError(
                f"{origin} stands in the way of the package {name!r} of lftj: "
                "rename it, or move it out of the folder of your script",
                name=name,
                path=origin,
            )
