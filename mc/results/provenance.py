"""Where a result came from: versions, the commit, the kind of machine; nothing that says who or which one.

Environment variables and the host's name never get in, and a home folder is written as `~`. Versions are read
from the installed packages' metadata, so that JAX is not imported for its version.
"""

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("jax", "jaxlib", "equinox", "numpy", "pyarrow")


def version(package: str) -> str | None:
    """Version of an installed package; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def software() -> dict[str, Any]:
    """Versions of this package, of what it computes with, of Python, and the platform."""
    return {
        "tailstep": version("tailstep"),
        "packages": {package: version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def commit(root: Path | None = None) -> dict[str, Any] | None:
    """Commit and dirty flag of the checkout that the code runs from; None outside one.

    Args:
        root: folder that holds the package; by default the one that this file is in.
    """
    root = (root or Path(__file__).resolve().parents[2]).resolve()
    top = _git(root, "rev-parse", "--show-toplevel")
    # An installed copy may lie inside some other project's checkout: its commit says nothing about this code.
    if top is None or Path(top).resolve() != root:
        return None
    head, status = _git(root, "rev-parse", "--verify", "HEAD"), _git(root, "status", "--porcelain")
    if head is None or status is None:
        return None
    return {"commit": head, "dirty": bool(status)}


def _git(root: Path, *arguments: str) -> str | None:
    # GIT_DIR and its kin, set inside hooks, would point git at another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def without_home(value: Any) -> Any:
    """`value` (a tree of mappings, lists and strings) with the user's home folder written as `~`."""
    if isinstance(value, dict):
        return {key: without_home(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_home(item) for item in value]
    if not isinstance(value, str):
        return value
    for home in {str(Path.home()), str(Path.home().resolve())} - {"/"}:
        value = re.sub(re.escape(home) + r"(?![\w.-])", "~", value)
    return value
