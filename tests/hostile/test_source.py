"""What would let a file take over the program is nowhere in the source: no `eval`, no pickles, no shell, no environment."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for name in ("mc", "experiments", "benchmarks") for path in (ROOT / name).rglob("*.py"))

MODULES = frozenset(
    {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "code", "runpy"}
)
CALLS = frozenset({"eval", "exec", "compile", "__import__", "breakpoint", "input"})
ATTRIBUTES = frozenset(
    {"os.system", "os.popen", "os.environ", "os.environb", "os.getenv", "tempfile.mktemp", "sys.settrace"}
)

# Where one of these is right, and why.
EXCEPTIONS = {
    # Processes of one job hand each other what they have found; nothing of it comes from a file.
    ("mc/sweep/dask.py", "pickle"),
    ("mc/sweep/distributed.py", "pickle"),
    # Git is called without the variables that would point it at another repository; none is kept.
    ("mc/results/provenance.py", "os.environ"),
}


def found(source: str) -> list[str]:
    """What stands in a source and should not."""
    tree = ast.parse(source)
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names if each.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names += [module] if module.split(".")[0] in MODULES else []
            names += [f"{module}.{each.name}" for each in node.names if f"{module}.{each.name}" in ATTRIBUTES]
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                names.append(node.func.id)
            if any(
                each.arg in ("shell", "allow_pickle") and not _is_constant(each.value, False)
                for each in node.keywords
            ):
                names.append("shell or allow_pickle")
            names += _loaders(node) if ast.unparse(node.func).endswith("YAML") else []
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ATTRIBUTES:
            names.append(ast.unparse(node))
    return names


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _loaders(call: ast.Call) -> list[str]:
    """Loaders of YAML that build any object that a file names."""
    return [
        f"YAML({each.arg}={ast.unparse(each.value)})"
        for each in call.keywords
        if each.arg == "typ" and ast.unparse(each.value) not in ("'safe'", "'rt'")
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_runs_what_a_file_says(path):
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    assert [each for each in found(text) if (name, each) not in EXCEPTIONS] == []


def test_no_exception_is_idle():
    for name, what in EXCEPTIONS:
        assert what in found((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import pickle", ["pickle"]),
        ("from pickle import loads", ["pickle"]),
        ("from os import environ", ["os.environ"]),
        ("import os\nx = dict(os.environ)", ["os.environ"]),
        ("eval(text)", ["eval"]),
        ("subprocess.run(line, shell=True)", ["shell or allow_pickle"]),
        ("np.load(path, allow_pickle=True)", ["shell or allow_pickle"]),
        ("YAML(typ='unsafe')", ["YAML(typ='unsafe')"]),
        ("YAML(typ='safe'); re.compile(x); subprocess.run([a], shell=False)", []),
    ],
)
def test_what_should_not_be_there_is_found(source, expected):
    assert found(source) == expected
