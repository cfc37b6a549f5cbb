"""The package as a user gets it: one version, public names, documented commands, a wheel that works."""

import ast
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import mc
from mc.cli.app import VERBS, command, summary

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def python(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **options)


@pytest.mark.smoke
def test_there_is_one_version():
    try:
        installed = metadata.version("tailstep")
    except metadata.PackageNotFoundError:
        pytest.skip("tailstep is not installed here; `pip install -e .` makes it")
    version = PROJECT["project"]["version"]
    (cited,) = re.findall(r"^version: (\S+)$", read("CITATION.cff"), re.MULTILINE)
    newest = re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[0]
    assert (installed, cited, newest, mc.__version__) == (version,) * 4


def exported(path: Path) -> dict[str, str]:
    """The `X as X` re-exports of a package, with where each is from."""
    return {
        alias.name: str(node.module)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }


@pytest.mark.smoke
def test_every_public_name_resolves():
    for name in dir(mc):
        if name != "__version__":  # needs an installed distribution
            assert getattr(mc, name) is not None


def test_public_names_are_the_same_to_editors_and_to_the_interpreter():
    assert exported(ROOT / "mc" / "__init__.py") == mc._HOME
    assert sum(map(len, mc._NAMES.values())) == len(mc._HOME), "a name comes from two packages"


def test_the_algebra_of_delays_is_public_as_a_whole():
    assert set(mc._NAMES["mc.delays"]) == set(exported(ROOT / "mc" / "delays" / "__init__.py"))


def test_a_public_name_is_what_its_package_calls_so():
    for name, package in mc._HOME.items():
        assert getattr(mc, name) is getattr(importlib.import_module(package), name)


def test_a_name_that_is_not_public():
    with pytest.raises(AttributeError, match="module 'mc' has no attribute 'Lognorml'"):
        _ = mc.Lognorml


def test_packages_are_imported_from_it():
    done = python("-c", "from mc import delays, units; print(delays.__name__, units.__name__)", cwd=ROOT)
    assert done.stdout == "mc.delays mc.units\n"


@pytest.mark.smoke
def test_python_m_mc_is_the_command():
    done = python("-m", "mc", "--help", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for verb in VERBS:
        assert verb in done.stdout


def test_the_list_of_verbs_says_what_the_help_of_each_says_first():
    for verb in VERBS:
        assert command(verb).help.partition("\n")[0] == summary(verb)


def code_lines(text: str) -> list[str]:
    """Lines inside fenced code blocks, with continued lines joined."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]


PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
]


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_the_documents_exist(page):
    for line in code_lines(read(page)):
        for verb in re.findall(r"\btailstep ([a-z][a-z-]*)", line):
            assert verb in VERBS, line
        for module in re.findall(r"-m ((?:mc|experiments|benchmarks)\b[\w.]*)", line):
            assert importlib.util.find_spec(module), line


@pytest.mark.parametrize("page", PAGES)
def test_links_in_the_documents_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(page)):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("what", ["pytest", "tailstep run"])
def test_the_readme_has_the_commands_that_the_checks_execute(what):
    # .ci/run looks for such a line and runs it word for word.
    found = [
        line for line in code_lines(read("README.md")) if line.startswith("python3 -m venv") and what in line
    ]
    assert len(found) == 1
    assert found[0] in read("README.md").splitlines(), "expected the command on a line of its own"


def test_the_wheel_works_on_its_own(tmp_path):
    built = python("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")

    assert {name.split("/")[0] for name in names} == {
        "mc",
        f"tailstep-{PROJECT['project']['version']}.dist-info",
    }
    assert "mc/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for folder, inside in [("configs", "mc/_configs"), ("mc/catalog/data", "mc/catalog/data")]:
        for path in (ROOT / folder).rglob("*.*"):
            assert f"{inside}/{path.relative_to(ROOT / folder).as_posix()}" in names

    program = (
        "import mc.config, mc.catalog\n"
        "print(mc.__file__); print(mc.load_experiment(None).name)\n"
        "assert mc.catalog.chips() and mc.catalog.links()"
    )
    done = python("-c", program, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "site")})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(tmp_path / "site" / "mc" / "__init__.py"), "quickstart"]
