"""``lftj warm-up``, then a wide mix of work in the same process, for tests.

Prints ``module.name`` of each kernel that the warm-up did not reach, of each kernel or part but those of the
arguments that the work needs for more than one signature, then of each that the work had to compile.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import sys
from decimal import Decimal

import numba
import numpy as np
import pyarrow as pa
from numba.core import event

import indices
import lftj
import maintenance
from indices.compiled import kernels, parts
from lftj.shell import shell
from maintenance import Workspace
from maintenance.image import read_image, write_image
from maintenance.machine import machine
from maintenance.workspace import ready_kernels

TRIANGLES = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."
compiled: list[str] = []


class Compilations(event.Listener):
    def on_start(self, happened: event.Event) -> None:
        function = happened.data["dispatcher"].py_func
        if function.__module__.split(".")[0] in ("indices", "lftj", "maintenance"):
            compiled.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, happened: event.Event) -> None: ...


def queries() -> None:
    random = np.random.default_rng(0)
    large = random.integers(0, 20_000, (200_000, 2))  # large enough for the pilot
    names = [f"v{number}" for number in range(50)]
    for table in (
        pa.table({"a": [1, 2, 1], "b": [2, 3, 3]}),
        pa.table({"a": [1.5, 2.5, 1.5], "b": [2.5, 3.5, 3.5]}),
        pa.table({"a": random.choice(names, 200), "b": random.choice(names, 200)}),
        pa.table({"a": [Decimal("1.5"), Decimal("2.5")], "b": [Decimal("2.5"), Decimal("3.5")]}),
        pa.table({"a": large[:, 0], "b": large[:, 1]}),
    ):
        db = lftj.Database()
        db.load("edge", table.group_by(table.column_names).aggregate([]))  # each row once
        for threads in (1, 2):
            db.query(TRIANGLES, threads=threads)
            db.count(TRIANGLES, threads=threads)
            list(db.stream("n(a, count()) <- edge(a, b), edge(b, c), !edge(a, c).", threads=threads))
        db.query("two(a, c) <- edge(a, b), edge(b, c). some(a) <- two(a, _), edge(_, a).")
        print(db.explain(TRIANGLES, analyze=True), file=io.StringIO())
        if table.num_rows < 1000 and table.column(0).type == pa.int64():
            db.trace(TRIANGLES)
    db = lftj.Database()
    rows = np.arange(40).reshape(20, 2)
    for number, array in enumerate((rows, rows[::2], np.asfortranarray(rows), rows.astype(np.int32))):
        array.flags.writeable = number % 2 == 0
        db.load(f"r{number}", array, columns=["a", "b"])
        db.query(f"p(a, sum(b), avg(b), min(b), max(b)) <- r{number}(a, b), r0(a, _).")


def workspaces() -> None:
    rows = [(n % 7, n % 11) for n in range(60)]
    for rules in (
        TRIANGLES,
        "hub(a) <- edge(a, b), edge(b, c), edge(a, c).",
        "far(a, c) <- edge(a, b), edge(b, c), !edge(a, c).",
        "n[a] = count() <- edge(a, b), edge(b, c).",
        "s(a, sum(c), min(c), max(c), avg(c)) <- edge(a, b), edge(b, c).",
        "two(a, c) <- edge(a, b), edge(b, c). top(max(n)) <- m[_] = n. m[a] = count() <- two(a, _).",
    ):
        workspace = Workspace()
        workspace.load("edge", rows[:30], columns=["a", "b"])
        workspace.install(rules)
        for again in range(3):
            for part in (rows[30:32], rows[32:]):
                with workspace.transaction() as transaction:
                    transaction.insert("edge", part)
                workspace.query("pair(a, b) <- edge(a, b).")
                with workspace.transaction() as transaction:
                    transaction.erase("edge", part)
            if again == 1:  # arrays that were pickled and read again
                image = io.BytesIO()
                write_image(workspace, image)
                workspace = read_image(image.getvalue())
        workspace.verify()


def unreached() -> None:
    for package in (indices, lftj, maintenance):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for kernel in kernels:
        if not kernel.overloads:
            print("not reached", kernel.__module__, kernel.__qualname__)


if __name__ == "__main__":
    assert not numba.config.DISABLE_JIT
    loading = machine.load_kernels
    for module in (machine, ready_kernels):  # what other work had compiled before counts for nothing
        module.load_kernels = lambda is_wanted: None  # type: ignore[attr-defined]
    assert shell.run(["warm-up"]) == 0
    unreached()
    for module in (machine, ready_kernels):
        module.load_kernels = loading  # type: ignore[attr-defined]
    event.register("numba:compile", Compilations())
    queries()
    workspaces()
    for function in (*kernels, *parts):
        if len(function.overloads) > 1 and f"{function.__module__}.{function.__qualname__}" not in sys.argv:
            print("several", function.__module__, function.__qualname__, *function.overloads, sep="\n  ")
    print(*(f"compiled {name}\n" for name in compiled), sep="", end="")
