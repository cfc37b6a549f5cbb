"""Where the configurations that come with tailstep are, and how a reference to a file is understood.

A reference is a relative path if it ends in `.yaml` or `.yml`, and else the bare name of a shipped file of
the kind that is due:
`cluster: dgx-h100-superpod` is `configs/clusters/dgx-h100-superpod.yaml`.
"""

import os
from functools import partial
from pathlib import Path

from mc.config.names import KINDS, Kind
from mc.document import ConfigError, Finder, Position, Problem, did_you_mean, is_file

_PACKAGE = Path(__file__).resolve().parents[1]


def directory() -> Path:
    """The folder of shipped configurations: inside the package in a wheel, beside it in a checkout."""
    installed = _PACKAGE / "_configs"
    return installed if installed.is_dir() else _PACKAGE.parent / "configs"


def quickstart() -> Path:
    """The experiment that runs when none is named."""
    return _shorter(directory() / "quickstart.yaml")


def names(kind: Kind) -> list[str]:
    """The shipped files of a kind, without their suffix."""
    found = sorted(path.stem for path in (directory() / f"{kind}s").glob("*.yaml"))
    return ["quickstart", *found] if kind == "experiment" else found


def finder(kind: Kind) -> Finder:
    """How references to files of a kind are found."""
    return partial(_find, kind)


def _find(kind: Kind, reference: str, position: Position) -> Path:
    if reference.endswith((".yaml", ".yml")):
        # A flag has no line, and no folder but the working directory.
        folder = Path(position.file).parent if position.line else Path()
        path = folder / reference
        if is_file(path):
            return path
        raise ConfigError(
            [Problem(position, "", f"no such file: `{reference}` (looked for {_shorter(path)})")]
        )
    if reference in names(kind):
        return (
            quickstart()
            if reference == "quickstart"
            else _shorter(directory() / f"{kind}s" / f"{reference}.yaml")
        )
    hint = did_you_mean(reference, names(kind))
    raise ConfigError(
        [Problem(position, "", f"no {kind} `{reference}` comes with tailstep; {hint} (a path ends in .yaml)")]
    )


def _shorter(path: Path) -> Path:
    """Relative to the working directory where it lies below it: that is what messages show."""
    resolved = Path(os.path.abspath(path))
    return resolved.relative_to(Path.cwd()) if resolved.is_relative_to(Path.cwd()) else resolved


def kind_of(keys: set[str], folder: str) -> Kind | None:
    """Guess what kind of file has these top-level keys; the name of its folder decides a tie."""
    telling: dict[Kind, set[str]] = {
        "cluster": {"chip", "tiers", "noise"},
        "model": {"transformer", "hugging_face", "compute", "exchange"},
        "plan": {"ranks", "algorithm", "tp", "cp", "pp", "dp", "ep", "micro_batch", "global_batch"},
        "experiment": {"cluster", "model", "plan", "run"},
    }
    scores = {kind: len(telling[kind] & keys) for kind in KINDS}
    best: list[Kind] = [kind for kind in KINDS if scores[kind] == max(scores.values())]
    by_folder: list[Kind] = [kind for kind in KINDS if folder == f"{kind}s"]
    if len(best) == 1:
        return best[0]
    return by_folder[0] if by_folder else None
