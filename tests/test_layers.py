"""The floors: a package imports only from floors below it, never in a circle, and reading files needs no JAX.

The source is read, not imported: an import inside a function counts like any other; no cycle hides in one.
"""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Bottom to top. `docs/architecture.md` says what each floor is for.
FLOORS = (
    "errors",
    "units",
    "document",
    "catalog",
    "config",
    "logs",
    "transformer",
    "parallel",
    "goodput",
    "network_roofline",
    "optics",
    "energy",
    "random",
    "delays",
    "fabric",
    "schedules",
    "timing",
    "collectives",
    "exchange",
    "step",
    "pipeline",
    "training",
    "inference",
    "estimate",
    "results",
    "experiment",
    "calibration",
    "sensitivity",
    "advise",
    "sweep",
    "report",
    "api",
    "cli",
)
WITHOUT_JAX = (
    "errors",
    "units",
    "document",
    "catalog",
    "config",
    "logs",
    "transformer",
    "parallel",
    "goodput",
    "network_roofline",
    "optics",
    "energy",
    "estimate",
    "results",
    "report",
)
JAX_AND_KIN = frozenset({"jax", "jaxlib", "equinox", "optax", "chex"})


class Import(NamedTuple):
    """One imported module: its dotted name, and whether the import stands inside a function."""

    module: str
    line: int
    inside_function: bool


def modules() -> dict[str, str]:
    """Source text of every module of the package, by dotted name."""
    found = {}
    for path in sorted((ROOT / "mc").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def imports(source: str, known: frozenset[str]) -> Iterator[Import]:
    """What a module imports; `from mc import units` is an import of `mc.units` if that is a known module."""

    def visit(node: ast.AST, inside: bool) -> Iterator[Import]:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, node.lineno, inside)
            case ast.ImportFrom(level=level, module=module, names=names):
                assert level == 0, f"line {node.lineno}: expected an absolute import; got a relative one"
                for alias in names:
                    longer = f"{module}.{alias.name}"
                    yield Import(longer if longer in known else str(module), node.lineno, inside)
            case ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"):
                yield Import("(by name)", node.lineno, inside)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    return visit(ast.parse(source), False)


def floor(module: str) -> int | None:
    """The floor that a module is on; None for `mc` itself and for what starts it, which stand above all."""
    parts = module.split(".")
    return None if module in ("mc", "mc.__main__") else FLOORS.index(parts[1])


def violations(tree: dict[str, str]) -> list[str]:
    """Every import that points up, is made by name, or hides in a function below the command line."""
    found = []
    known = frozenset(tree)
    for name, source in tree.items():
        here = floor(name)
        if here is None:
            continue
        for module, line, inside in imports(source, known):
            where = f"{name}, line {line}: "
            if module == "(by name)" and name == "mc.cli.app":
                continue  # the verbs, files of its own floor, when they are called; tests/test_package.py imports each
            if module == "(by name)":
                found.append(where + "imports a module by its name, which nobody can check")
                continue
            if module.split(".")[0] != "mc":
                if FLOORS[here] in WITHOUT_JAX and module.split(".")[0] in JAX_AND_KIN:
                    found.append(where + f"imports {module} on a floor without JAX")
                continue
            there = floor(module)
            if there is None or there > here:
                found.append(where + f"imports {module}, which is on a floor above")
            elif inside and FLOORS[here] != "cli":
                found.append(where + f"imports {module} inside a function")
    return found


def dependencies(tree: dict[str, str]) -> dict[str, set[str]]:
    """Which modules of the package each module names in its imports."""
    known = frozenset(tree)
    return {
        name: {module for module, _, _ in imports(source, known) if module in known}
        for name, source in tree.items()
        if name != "mc"  # its imports happen on first use
    }


def test_every_package_is_on_a_floor():
    packages = {
        path.stem
        for path in (ROOT / "mc").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert packages - {"__init__", "__main__"} <= set(FLOORS)


def test_imports_point_down():
    assert violations(modules()) == []


def test_no_module_imports_itself_in_a_circle():
    graphlib.TopologicalSorter(dependencies(modules())).prepare()  # raises CycleError, which shows the circle


@pytest.mark.smoke
def test_reading_files_and_results_does_not_import_jax():
    readers = sorted(name for name in modules() if name.split(".")[1:2] and name.split(".")[1] in WITHOUT_JAX)
    program = (
        "import importlib, sys\n"
        "from mc.cli.app import VERBS, command\n"
        f"for name in {['mc', *readers]}: importlib.import_module(name)\n"
        "for verb in VERBS: command(verb)\n"
        f"print(sorted({set(JAX_AND_KIN)} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


# Negative controls: a small tree is right, and each of these changes is caught.
SOUND = {
    "mc.units": "from mc.units.parse import parse as parse",
    "mc.units.parse": "import re\nfrom mc.errors import InputError",
    "mc.errors": "",
    "mc.delays": "import jax\nfrom mc import units\nfrom mc.units import parse",
    "mc.cli": "def run():\n    from mc import delays",
}
MISTAKES = [
    (
        "mc.units.parse",
        "from mc.delays import Constant",
        "mc.units.parse, line 1: imports mc.delays, which is on a floor above",
    ),
    ("mc.units.parse", "from mc import delays", "imports mc.delays, which is on a floor above"),
    ("mc.units.parse", "from mc import delay", "imports mc, which is on a floor above"),
    (
        "mc.units.parse",
        "if TYPE_CHECKING:\n    import mc.cli",
        "line 2: imports mc.cli, which is on a floor above",
    ),
    (
        "mc.units.parse",
        "def f():\n    from mc.errors import InputError",
        "imports mc.errors inside a function",
    ),
    ("mc.units.parse", "f = lambda: importlib.import_module('mc.cli')", "imports a module by its name"),
    ("mc.units.parse", "import jax.numpy as jnp", "imports jax.numpy on a floor without JAX"),
    ("mc.units.parse", "def f():\n    from equinox import Module", "imports equinox on a floor without JAX"),
]


def test_a_sound_tree_passes():
    assert violations(SOUND) == []
    graphlib.TopologicalSorter(dependencies(SOUND)).prepare()


@pytest.mark.parametrize(("module", "source", "message"), MISTAKES)
def test_a_mistake_is_caught(module, source, message):
    (found,) = violations(SOUND | {module: source})
    assert message in found


@pytest.mark.parametrize(
    "source", ["from mc.units import parse", "from mc import units", "def f():\n    import mc.units"]
)
def test_a_circle_is_caught(source):
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(dependencies(SOUND | {"mc.units.parse": source})).prepare()


def test_a_relative_import_is_caught():
    with pytest.raises(AssertionError, match="got a relative one"):
        violations(SOUND | {"mc.units": "from . import parse"})
