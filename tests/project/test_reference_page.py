"""What the reference page shows is text: no markup of another tool.

Examples stand in a section of their own, as they would be shown as quotations elsewhere.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.paths import ROOT

PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
NAMES = re.findall(r"^::: ([\w.]+)$", PAGE, re.MULTILINE)
ROLE = re.compile(r":[a-z]+:`")


def shown(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    """Docstrings of a documented object and of its members, inherited ones included, by their names."""
    yield name, inspect.getdoc(thing) or ""
    if not inspect.ismodule(thing) and not inspect.isclass(thing):
        return
    for member, value in inspect.getmembers(thing):
        is_private = member.startswith("_") and not member.endswith("__")
        module = getattr(value, "__module__", None) or getattr(getattr(value, "fget", None), "__module__", "")
        if is_private or str(module).split(".")[0] not in ("lftj", "maintenance", "spark_bridge", "indices"):
            continue
        if inspect.ismodule(thing) and module != thing.__name__:
            continue  # imported there
        if inspect.isclass(value) and inspect.ismodule(thing):
            yield from shown(f"{name}.{member}", value)
        elif inspect.isroutine(value) or isinstance(value, property):
            yield f"{name}.{member}", inspect.getdoc(value) or ""


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_on_the_reference_page_are_plain(name: str) -> None:
    found = dict(shown(name, pkgutil.resolve_name(name)))
    assert found[name], "nothing would be shown"
    assert [member for member, text in found.items() if ROLE.search(text)] == []
    assert [member for member, text in found.items() if ">>>" in text.partition("Examples:\n")[0]] == []
