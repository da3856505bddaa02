"""Names that a rule can have: variables of columns, and terms of atoms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = {"in", "like", "not", "true", "false"}


def usable(name: str) -> bool:
    """Whether a rule can write the name as it is."""
    return _NAME.fullmatch(name) is not None and name not in _WORDS


def unused_name(wanted: str, taken: Iterable[str]) -> str:
    """The name or, where a rule can't write it or has it already, one like it.

    >>> unused_name("dst", ["src"]), unused_name("dst", ["dst", "dst_2"]), unused_name("na me", [])
    ('dst', 'dst_3', 'na_me')
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
    if not usable(name):
        name = f"x_{name.lstrip('_')}"
    taken, plain, number = set(taken), name, 2
    while name in taken:
        name, number = f"{plain}_{number}", number + 1
    return name


def atom_text(relation: str, columns: Sequence[str], terms: Mapping[str, str]) -> str:
    """An atom with a term for some columns, by name where that leaves columns out.

    >>> atom_text("edge", ["src", "dst"], {"src": "a", "dst": "b"})
    'edge(a, b)'
    >>> atom_text("edge", ["src", "dst", "day"], {"src": "a", "dst": "b"})
    'edge(src: a, dst: b)'
    """
    if terms and len(terms) < len(columns) and all(map(usable, terms)):
        return (
            f"{relation}({', '.join(f'{column}: {terms[column]}' for column in columns if column in terms)})"
        )
    return f"{relation}({', '.join(terms.get(column, '_') for column in columns)})"
