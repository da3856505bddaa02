"""laws: a kernel that gets arrays from a part counts references, or they would never be freed."""

from __future__ import annotations

import ast
from typing import NamedTuple

from indices.sources import KERNEL_PACKAGES
from support.paths import ROOT


class Compiled(NamedTuple):
    """A kernel or part."""

    makes_arrays: bool
    calls: frozenset[str]


def decorated(function: ast.FunctionDef) -> Compiled | None:
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = call.func if call is not None else decorator
        if isinstance(name, ast.Name) and name.id in ("kernel", "part"):
            options = [] if call is None else [keyword.arg for keyword in call.keywords]
            calls = {
                one.func.id
                for one in ast.walk(function)
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
            }
            return Compiled("makes_arrays" in options, frozenset(calls))
    return None


def by_address(value: ast.expr) -> str | None:
    """The kernel that is called by what an expression gives, if it is one of those."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "caller_of":
        return ast.unparse(value.args[0])
    return None


def compiled_functions() -> dict[tuple[str, str], Compiled]:
    """By module and name; what a module imports stands under its name there, too."""
    found: dict[tuple[str, str], Compiled] = {}
    known_as: list[tuple[str, str, str, str]] = []  # in a module by a name: what is in a module by another
    for package in KERNEL_PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and (own := decorated(node)) is not None:
                    found[module, node.name] = own
                elif isinstance(node, ast.ImportFrom) and node.module is not None:
                    known_as += [
                        (module, one.asname or one.name, node.module, one.name) for one in node.names
                    ]
                elif isinstance(node, ast.Assign) and (called := by_address(node.value)) is not None:
                    known_as += [(module, ast.unparse(node.targets[0]), module, called)]
    for module, name, source, original in known_as:
        if (source, original) in found:
            found[module, name] = found[source, original]
    return found


def test_who_calls_what_makes_arrays_counts_references() -> None:
    functions = compiled_functions()
    assert len(functions) > 300
    assert functions["maintenance.machine.kernel", "search_all_at_address"].makes_arrays
    wrong = [
        f"{module}.{name} calls {called}"
        for (module, name), function in functions.items()
        for called in function.calls
        if (module, called) in functions
        and functions[module, called].makes_arrays
        and not function.makes_arrays
    ]
    assert wrong == []
