"""laws: the rooms of the house, imports that go down only, and a package that is cheap to import.

    indices -> lftj -> maintenance -> spark_bridge -> bench        (an arrow: is used by)

The order is read from the syntax trees of all files, so that an import inside
a function or under ``TYPE_CHECKING`` counts too.  Of the four packages only
``spark_bridge`` imports pyspark, and none imports ``bench`` or ``tests``.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT, TESTS

HOUSE = {
    "bench": """
        spark.__main__  pictures.__main__  sessions.__main__  soak.__main__  tpch.__main__  nexmark.__main__
        __main__
        harness
        child  demo
        workloads
        spark
        ablation  record_gaps  trace_distance  live_queries  kept_windows  windows  asof  month  many_changes
        single_changes  maintenance_report  sources
        grid  tpch  nexmark  sources_load
        datasets
        maintenance
        joins  distance  soak  kills  pictures  sessions
        report
        peers
        graphs  workload  digest  postgres_server  .
        """,
    "spark_bridge": """
        .  worker_daemon
        maintained_join  data_source
        places
        explanation  join_sql  motifs
        select_stages
        stages  join
        acyclic  narrowing  recursion
        state  cells  front_ends
        placing
        """,
    "maintenance": """
        shell  .  consolidation
        serving
        streams  sinks
        sources
        workspace
        machine  sql
        triggers
        durable  event_time  explanation  image
        store  heads
        strategies.auto  strategies.stages
        strategies.trace  strategies.delta
        groups  strategies
        changes  stats  staged_support
        staged
        """,
    "lftj": """
        __main__
        shell
        .
        session
        database
        evaluation
        sql.translation
        sql.reading
        rewriting
        planning
        search.queries  search.regions
        search.machine
        aggregates  search
        sql
        statements
        files  language  pictures  storage
        display
        values
        process
        errors  memory
        """,
    "indices": ".",
}
"""Packages and, in each, its floors from the roof down: a room imports from floors below its own.

A room is a sub-package, without those inside it; ``.`` is the package itself.  A module beside
the sub-packages is a room of its own, and so is what starts a command, ``__main__``.
"""

FLOORS = [
    {package if room == "." else f"{package}.{room}" for room in floor.split()}
    for package, floors in HOUSE.items()
    for floor in floors.strip().splitlines()
]
"""The rooms of every floor of the house, from the roof down."""

BY_NONE = {"bench", "tests", "support"}
OF_TESTS = {"support", "project", "mutants", "cluster", "sql/logic"}
OF_TESTS |= {"fuzz", "fuzz/corpus", "fuzz/sql", "fuzz/streams"}
"""Folders of tests that have no room of that name in the packages."""

FLAT = {package for package, floors in HOUSE.items() if floors == "."}
LAZY = (
    "numba",
    "lark",
    "rich",
    "prompt_toolkit",
    "pygments",
    "pandas",
    "duckdb",
    "polars",
    "matplotlib",
    "pyspark",
    "pyarrow.parquet",
)


def name_of(path: Path) -> str:
    """The module's full name; a package's is that of its folder."""
    below = TESTS if TESTS in path.parents else ROOT
    parts = path.relative_to(below).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for package in HOUSE for path in sorted((ROOT / package).rglob("*.py"))}
SUPPORT = {name_of(path): path for path in sorted((TESTS / "support").glob("*.py"))}
PATHS = MODULES | SUPPORT
ROOMS = [path.parent for path in MODULES.values() if path.name == "__init__.py"]


@functools.cache
def imported_names(module: str) -> frozenset[str]:
    """Full names of what the module's import statements name, modules or what is in them."""
    path = PATHS[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            names |= {f"{start}.{alias.name}" for alias in node.names}
    return frozenset(names)


def imported_modules(module: str) -> set[str]:
    """Those of ours that the module imports."""
    found = set()
    for name in imported_names(module):
        of = name if name in PATHS else name.rpartition(".")[0]
        found |= {of} & PATHS.keys()
    return found


def room_of(module: str) -> str:
    """The room that the module stands in."""
    above, _, name = module.rpartition(".")
    if MODULES[module].name == "__init__.py" or name == "__main__":
        return module
    return above if "." in above or above in FLAT else module


def floor_of(room: str) -> int:
    """Counted from the roof."""
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def test_the_picture_shows_every_room_once() -> None:
    drawn = [room for rooms in FLOORS for room in rooms]
    assert sorted(drawn) == sorted({room_of(module) for module in MODULES})


def test_imports_go_down() -> None:
    wrong = []
    for module in MODULES:
        own = room_of(module)
        floor = floor_of(own)
        others = {other: room_of(other) for other in imported_modules(module) & MODULES.keys()}
        not_below = [other for other, room in others.items() if room != own and floor_of(room) <= floor]
        wrong += [f"{module} imports {other}" for other in not_below]
    assert not wrong


def test_only_one_package_knows_spark_and_none_the_benchmarks_or_tests() -> None:
    wrong = []
    for module in MODULES:
        forbidden = BY_NONE | (set() if module.startswith("spark_bridge") else {"pyspark"})
        names = imported_names(module) if not module.startswith("bench") else ()
        wrong += [f"{module} imports {name}" for name in names if name.split(".")[0] in forbidden]
    assert not wrong


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: imported_modules(module) - {module} for module in PATHS}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])), pytrace=False)


def test_a_room_says_what_it_is_and_nothing_else() -> None:
    for folder in ROOMS:
        tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), folder
        assert len(tree.body) == 1 or folder.parent == ROOT, folder


def test_every_folder_with_modules_is_a_room() -> None:
    assert {path.parent for path in MODULES.values()} == set(ROOMS)


def test_tests_stand_in_the_rooms_of_what_they_test() -> None:
    rooms = {folder.relative_to(ROOT).as_posix().removeprefix("lftj/") for folder in ROOMS} | OF_TESTS
    folders = {path.parent for path in TESTS.rglob("*.py")} - {TESTS}
    assert {folder.relative_to(TESTS).as_posix() for folder in folders} <= rooms


def test_no_test_file_is_imported() -> None:
    """Nor by a script that a test runs: what tests share is in ``support``."""
    naming = re.compile(r"\b(?:from|import) +(?:test_\w+|conftest)")
    found = {path.name: naming.findall(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    assert not {name: lines for name, lines in found.items() if lines}


def run_fresh(code: str) -> str:
    """Standard output of the code in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_leaves_heavy_modules_alone() -> None:
    loaded = run_fresh("import sys, lftj; print(*sys.modules)").split()
    # Arrow imports pandas by itself when asked about types; nothing here may ask while importing.
    assert [name for name in LAZY if name in loaded] == []


def test_importing_brings_in_little() -> None:
    """Beside numpy and pyarrow 59 modules, 35 of them ours: what a name needs comes with the name."""
    code = (
        "import sys, numpy, pyarrow; there = len(sys.modules); import lftj; print(len(sys.modules) - there)"
    )
    assert int(run_fresh(code)) <= 75
