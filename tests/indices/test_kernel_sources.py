"""What a kernel's machine code is made of: nothing that it uses is left out, and not the whole project."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from indices import compiled
from indices.kernel_cache import KEPT, SUFFIX
from indices.sources import KERNEL_PACKAGES, Sources
from support.paths import ROOT

CONSTANT = re.compile(r"^([A-Z]\w* = )(\d+)", re.MULTILINE)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the packages' sources."""
    for package in KERNEL_PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def modules(root: Path) -> dict[str, Path]:
    """Every module of the packages, by name."""
    paths = (path for package in KERNEL_PACKAGES for path in (root / package).rglob("*.py"))
    named = ((path.relative_to(root).with_suffix("").as_posix().replace("/", "."), path) for path in paths)
    return {name.removesuffix(".__init__"): path for name, path in named}


def imports(name: str, known: dict[str, Path]) -> Iterator[str]:
    """The modules that one binds names of, by its syntax tree."""
    for statement in ast.parse(known[name].read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names if alias.name in known)
        elif isinstance(statement, ast.ImportFrom) and statement.module in known:
            assert statement.level == 0
            for alias in statement.names:
                below = f"{statement.module}.{alias.name}"
                yield below if below in known else statement.module


def reachable(name: str, imported: dict[str, set[str]]) -> list[str]:
    found, todo = {name}, [name]
    while todo:
        new = imported[todo.pop()] - found
        found |= new
        todo += new
    return sorted(found)


def test_the_closure_is_that_of_the_syntax_trees() -> None:
    known, sources = modules(ROOT), Sources(ROOT)
    imported = {name: set(imports(name, known)) for name in known}
    for name in known:
        assert set(reachable(name, imported)) <= set(sources.closure(name)), name
    assert sources.closure("lftj.search.machine.search") == reachable("lftj.search.machine.search", imported)


def globals_of(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(globals_of, inner))


def test_all_that_kernels_use_is_in_the_closure() -> None:
    """Whatever function or module a kernel or part of one names comes from a module that counts."""
    known, sources = modules(ROOT), Sources(ROOT)
    for name, path in known.items():
        if "from indices.compiled import" in path.read_text(encoding="utf-8"):
            importlib.import_module(name)
    functions = [one.py_func for one in (*compiled.kernels, *compiled.parts)]
    functions = [one for one in functions if one.__module__.split(".")[0] in KERNEL_PACKAGES]
    assert len(functions) > 100
    used_from_elsewhere = 0
    for function in functions:
        bound = {
            target
            for statement in ast.parse(known[function.__module__].read_text(encoding="utf-8")).body
            for target in names_bound(statement)
        }
        closure = set(sources.closure(function.__module__))
        for used in globals_of(function.__code__) & function.__globals__.keys():
            assert used in bound, f"{function}: {used} is bound by an indented statement"
            place = module_of(function.__globals__[used])
            if place.split(".")[0] in KERNEL_PACKAGES:
                assert place in closure, f"{function}: {used} of {place}"
                used_from_elsewhere += place != function.__module__
    assert used_from_elsewhere > 100


def names_bound(statement: ast.stmt) -> Iterator[str]:
    """What an unindented statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.split(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for one in targets for node in ast.walk(one) if isinstance(node, ast.Name))


def module_of(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    function = getattr(value, "py_func", value)
    return getattr(function, "__module__", None) or ""


def test_each_source_file_is_in_the_fingerprint_of_its_kernels(copy: Path) -> None:
    """A constant changed in each file of a closure, a line added to those without: another one each time."""
    kernel = "lftj.search.machine.search"
    before = Sources(copy).fingerprint(kernel)
    known, with_constants = modules(copy), set()
    closure = Sources(copy).closure(kernel)
    names = {before}
    for name in closure:
        path = known[name]
        text = path.read_text(encoding="utf-8")
        changed = CONSTANT.sub(lambda found: f"{found[1]}{int(found[2]) + 1}", text, count=1)
        if changed != text:
            with_constants.add(name)
        path.write_text(changed if changed != text else f"{text}\nADDED = 1\n", encoding="utf-8")
        names.add(Sources(copy).fingerprint(kernel))
        path.write_text(text, encoding="utf-8")
    assert len(names) == len(closure) + 1
    assert "lftj.search.records" in with_constants
    assert Sources(copy).fingerprint(kernel) == before


def test_other_files_are_not(copy: Path) -> None:
    kernel = "lftj.search.machine.search"
    before = Sources(copy).fingerprint(kernel)
    for place in ("maintenance/workspace/workspace.py", "lftj/search/scan.py", "lftj/__init__.py"):
        with open(copy / place, "a", encoding="utf-8") as file:
            file.write("\nADDED = 1\n")
    assert Sources(copy).fingerprint(kernel) == before
    assert Sources(copy).fingerprint("lftj.search.scan") != Sources(ROOT).fingerprint("lftj.search.scan")


def test_imports_are_found_however_they_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "indices"
    (folder / "deep").mkdir(parents=True)
    for name in ("a", "b", "c", "d", "e", "f", "unused", "deep/g"):
        (folder / f"{name}.py").touch()
    (folder / "__init__.py").write_text("from indices.f import anything\n", encoding="utf-8")
    (folder / "deep/__init__.py").write_text("X = 1\n", encoding="utf-8")
    (folder / "start.py").write_text(
        '"""import indices.unused, of which the text speaks."""\n'
        "from indices import (\n    a,\n    b as other,\n)\n"
        "import indices.c as c, indices.d\n"
        "import numpy\n"
        "from indices.deep import g\n"
        "def late():\n    import indices.unused\n",
        encoding="utf-8",
    )
    names = "a b c d deep.g start"
    assert Sources(tmp_path).closure("indices.start") == [f"indices.{name}" for name in names.split()]
    (folder / "g.py").write_text("from indices import nothing_below\n", encoding="utf-8")
    assert Sources(tmp_path).closure("indices.g") == ["indices", "indices.f", "indices.g"]


def test_sources_in_a_zip_file_have_the_same_fingerprint(tmp_path: Path) -> None:
    place = tmp_path / "all.zip"
    with ZipFile(place, "w") as archive:
        for path in modules(ROOT).values():
            archive.write(path, path.relative_to(ROOT))
    code = "import indices.sources as k; print(k.__file__, k.sources_of('indices.keys'))"
    environment = {**os.environ, "PYTHONPATH": str(place)}
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    file, fingerprint = told.stdout.split()
    assert file.startswith(str(place))
    assert fingerprint == Sources(ROOT).fingerprint("indices.keys")


def test_files_of_old_sources_do_not_pile_up(tmp_path: Path) -> None:
    """Of one kernel and signature those stay that were written last; of others all."""
    code = "from indices.monoid import SUM; import numpy; SUM.operation(numpy.int64)"
    environment = {**os.environ, "LFTJ_CACHE_DIR": str(tmp_path)}

    def compile_again() -> set[Path]:
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
        return set(tmp_path.glob(f"*/*{SUFFIX}"))

    for path in (first := compile_again()):
        for age in range(KEPT + 2):
            sources = f"{age:016x}"
            old = path.with_name(f"{path.name[: -len(SUFFIX) - 16]}{sources}{SUFFIX}")
            old.touch()
            os.utime(old, (1e9 - age, 1e9 - age))
        other = path.with_name(f"another.{path.name}")
        other.touch()
        path.unlink()
    after = compile_again()
    assert first <= after
    for path in first:
        same = {one.name for one in after if one.name.startswith(path.name[: -len(SUFFIX) - 16])}
        assert len(same) == KEPT
        assert {name[-len(SUFFIX) - 16 : -len(SUFFIX)] for name in same} >= {f"{0:016x}", f"{KEPT - 2:016x}"}
        assert path.with_name(f"another.{path.name}") in after
