"""How classes are built and documented, checked on every class there is.

A Module is abstract or final. Abstract: its name begins with `Abstract`, and it cannot be instantiated.
Final: nothing subclasses it. Either way it implements only what was abstract, and its fields stand in one
class: to vary a Module, wrap it. The pattern is Equinox's (<https://docs.kidger.site/equinox/pattern/>), but
Equinox does not enforce it.
"""

import abc
import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import equinox as eqx
import pytest

import mc

ROOT = Path(__file__).resolve().parents[1]


class _Empty(eqx.Module):
    pass


# What every Module class has or may define: the machinery of classes, and a hook that adds to its parents'.
MACHINERY = frozenset(vars(_Empty)) | {"__init__", "__check_init__"}


def module_classes() -> list[type[eqx.Module]]:
    """Every Module class defined in the package."""
    found = {}
    for info in pkgutil.walk_packages(mc.__path__, "mc."):
        if info.name == "mc.__main__":  # importing it runs the command
            continue
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and issubclass(value, eqx.Module)
                and value.__module__.startswith("mc.")
            ):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return [found[name] for name in sorted(found)]


def is_abstract(cls: type) -> bool:
    """Whether something is still to be implemented."""
    return inspect.isabstract(cls) or bool(getattr(cls, "__abstractvars__", ()))


def bases(cls: type) -> list[type]:
    """The Modules that a class inherits from, without `eqx.Module` itself."""
    return [base for base in cls.__mro__[1:] if issubclass(base, eqx.Module) and base is not eqx.Module]


def own_fields(cls: type) -> set[str]:
    """Concrete fields that a class adds to those of its bases."""
    inherited = {field.name for base in bases(cls) for field in dataclasses.fields(base)}
    return {field.name for field in dataclasses.fields(cls)} - inherited


def mistakes(cls: type) -> list[str]:
    """What is wrong with how a Module class is built."""
    found = []
    named_abstract = cls.__name__.lstrip("_").startswith("Abstract")
    if named_abstract and not is_abstract(cls):
        found.append("is called abstract, but can be instantiated")
    if is_abstract(cls) and not named_abstract:
        found.append("is abstract, but its name does not begin with Abstract")
    for base in bases(cls):
        if not is_abstract(base):
            found.append(f"subclasses {base.__name__}, which is final")
        for name in sorted((set(vars(cls)) & set(vars(base))) - MACHINERY):
            if not getattr(vars(base)[name], "__isabstractmethod__", False):
                found.append(f"overrides {base.__name__}.{name}, which is not abstract")
        if dataclasses.fields(base) and own_fields(cls):
            found.append(f"adds fields to those of {base.__name__}")
    return found


def test_there_are_modules_to_check():
    classes = module_classes()
    assert any(is_abstract(cls) for cls in classes)
    assert sum(not is_abstract(cls) for cls in classes) >= 10


@pytest.mark.parametrize("cls", module_classes(), ids=lambda cls: f"{cls.__module__}.{cls.__qualname__}")
def test_a_module_is_abstract_or_final(cls):
    assert mistakes(cls) == []


@pytest.mark.parametrize(
    "cls", [cls for cls in module_classes() if is_abstract(cls)], ids=lambda cls: cls.__qualname__
)
def test_an_abstract_module_cannot_be_instantiated(cls):
    with pytest.raises(TypeError, match="abstract"):
        cls()


# Negative controls: one right pair, then one class per mistake.
class AbstractShape(eqx.Module):
    """Abstract, with a method for everybody."""

    @abc.abstractmethod
    def area(self):
        """To be implemented."""

    def twice(self):
        """The same for all."""
        return 2 * self.area()


class Square(AbstractShape):
    """Final."""

    side: float

    def __check_init__(self):
        assert self.side >= 0

    def area(self):
        """Implements what was abstract."""
        return self.side**2


class Overrider(AbstractShape):
    """Changes what was not abstract."""

    def area(self):
        """Implements."""

    def twice(self):
        """Overrides."""


class Heir(Square):
    """Inherits from a final class, adds a field, and overrides."""

    name: str

    def area(self):
        """Overrides."""


class Unfinished(AbstractShape):
    """Implements nothing, and does not say so."""


class AbstractInName(eqx.Module):
    """Has nothing abstract."""


def test_a_well_built_pair_passes():
    assert mistakes(AbstractShape) == []
    assert mistakes(Square) == []


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (Overrider, ["overrides AbstractShape.twice, which is not abstract"]),
        (
            Heir,
            [
                "subclasses Square, which is final",
                "overrides Square.area, which is not abstract",
                "adds fields to those of Square",
            ],
        ),
        (Unfinished, ["is abstract, but its name does not begin with Abstract"]),
        (AbstractInName, ["is called abstract, but can be instantiated"]),
    ],
)
def test_a_badly_built_class_is_caught(cls, expected):
    assert mistakes(cls) == expected


def undocumented(source: str) -> list[str]:
    """Public classes, functions and methods without a docstring, and `(module)` if the file has none."""

    def visit(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[str]:
        for child in node.body:
            if not isinstance(
                child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ) or child.name.startswith("_"):
                continue
            if ast.get_docstring(child) is None:
                yield prefix + child.name
            if isinstance(child, ast.ClassDef):
                yield from visit(child, f"{child.name}.")

    tree = ast.parse(source)
    return ([] if ast.get_docstring(tree) else ["(module)"]) + list(visit(tree, ""))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "mc").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_what_is_public_is_documented(path):
    assert undocumented(path.read_text(encoding="utf-8")) == []


def test_what_is_not_documented_is_caught():
    source = "class A:\n    def f(self): ...\n    def _g(self): ...\ndef h():\n    def inner(): ...\nx = 1"
    assert undocumented(source) == ["(module)", "A", "A.f", "h"]
