"""From a path and overrides to a configuration.

The order of events: read the file, merge what it extends, let overrides replace references, resolve the
references and import shapes of models, apply the other overrides, read files of samples, validate. Whatever goes wrong on the way is
collected as far as it can be.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mc.config import shipped
from mc.config.cluster import ClusterConfig
from mc.config.experiment import ExperimentConfig
from mc.config.hugging_face import KEY as HUGGING_FACE
from mc.config.hugging_face import import_shape
from mc.config.names import KINDS, Kind
from mc.config.plan import PlanConfig
from mc.config.posterior import without_fixed
from mc.config.references import REFERENCES, expand_catalog_ids, splice_references
from mc.config.sample_files import read_samples
from mc.config.sweep import KEY as SWEEP
from mc.config.sweep import split_sweep
from mc.config.workload import ModelConfig
from mc.document import (
    ConfigError,
    Document,
    Node,
    Override,
    Position,
    Problem,
    StrictModel,
    apply_overrides,
    is_file,
    parse_override,
    read,
    resolve_extends,
    validate,
)

MODELS: dict[Kind, type[StrictModel]] = {
    "cluster": ClusterConfig,
    "model": ModelConfig,
    "plan": PlanConfig,
    "experiment": ExperimentConfig,
}
# Where each kind of file that has a model has it.
_MODEL_PATHS: dict[Kind, tuple[str, ...]] = {"model": (), "experiment": ("model",)}
PathLike = str | os.PathLike[str]


def load_experiment(path: PathLike | None = None, overrides: Sequence[str] = ()) -> ExperimentConfig:
    """Load an experiment.

    Args:
        path: a file, or the bare name of a shipped experiment; None for the quickstart.
        overrides: `a.b=c` texts, as after `--set`.

    Raises:
        ConfigError: with everything that is wrong, each at its place.
    """
    return _load("experiment", shipped.quickstart() if path is None else path, overrides)


def load_cluster(path: PathLike, overrides: Sequence[str] = ()) -> ClusterConfig:
    """Load a cluster from a file, or a shipped one by its bare name; raises ConfigError."""
    return _load("cluster", path, overrides)


def load_model(path: PathLike, overrides: Sequence[str] = ()) -> ModelConfig:
    """Load a model from a file, or a shipped one by its bare name; raises ConfigError."""
    return _load("model", path, overrides)


def load_plan(path: PathLike, overrides: Sequence[str] = ()) -> PlanConfig:
    """Load a plan from a file, or a shipped one by its bare name; raises ConfigError."""
    return _load("plan", path, overrides)


def load_any(
    path: PathLike, overrides: Sequence[str] = (), kind: Kind | None = None
) -> tuple[Kind, StrictModel]:
    """Load a file of whatever kind it is.

    Args:
        path: the file, or the bare name of a shipped one.
        overrides: as for `load_experiment`.
        kind: what the file is; None to tell by its keys.

    Returns:
        The kind and the configuration.
    """
    found = _shipped_anywhere(path) if kind is None else None
    if found is not None:
        return found, _load(found, path, overrides)
    if kind is not None:
        return kind, _load(kind, path, overrides)
    document = read(path)
    kind = _kind_of(document)
    if kind is None:
        message = f"cannot tell what kind of file this is; name it with `--kind` ({', '.join(KINDS)})"
        raise ConfigError([Problem(Position(document.file), "", message)])
    return kind, _build(kind, document, overrides)


def _shipped_anywhere(path: PathLike) -> Kind | None:
    """The kind of a shipped file, if this is its bare name and no file of the user's own."""
    name = os.fspath(path)
    kinds: list[Kind] = [kind for kind in KINDS if name in shipped.names(kind)]
    return kinds[0] if kinds and not is_file(Path(name)) else None


def _kind_of(document: Document) -> Kind | None:
    """What a file is, by its keys, or by those it inherits if its own do not tell."""
    keys, folder = set(document.root.mapping or {}), Path(document.file).absolute().parent.name
    kind = shipped.kind_of(keys, folder)
    if kind is not None or "extends" not in keys:
        return kind
    for each in KINDS:
        try:
            merged = resolve_extends(document, shipped.finder(each))
        except ConfigError:
            continue
        return shipped.kind_of(set(merged.root.mapping or {}), folder)
    # None of them finds the base: any will say so.
    return "experiment"


def document_of(kind: Kind, path: PathLike) -> Document:
    """Reads a file, or a shipped one by its bare name; raises ConfigError."""
    name = os.fspath(path)
    if not name.endswith((".yaml", ".yml")) and not os.path.exists(name):
        path = shipped.finder(kind)(name, Position(name))
    return read(path)


def experiment_of(document: Document, overrides: Sequence[str | Override] = ()) -> ExperimentConfig:
    """The experiment that a document and overrides describe; raises ConfigError."""
    found = _build("experiment", document, overrides)
    assert isinstance(found, ExperimentConfig)
    return found


def _load(kind: Kind, path: PathLike, overrides: Sequence[str]) -> Any:
    return _build(kind, document_of(kind, path), overrides)


def _build(kind: Kind, document: Document, overrides: Sequence[str | Override]) -> StrictModel:
    document = resolve_extends(document, shipped.finder(kind))
    parsed, problems = _parse_overrides(overrides)
    stated = parsed
    failed: dict[str, list[Problem]] = {}
    if kind == "experiment":
        # A block that is not about one experiment: `mc.config.load_sweep` reads it.
        document, _, _ = split_sweep(document)
        parsed = [each for each in parsed if each.path[0] != SWEEP]
        document = apply_overrides(document, [each for each in parsed if _replaces_reference(each)])
        document, failed = splice_references(document)
        parsed = [each for each in parsed if not _replaces_reference(each) and each.path[0] not in failed]
    elif kind == "cluster":
        document = Document(document.file, expand_catalog_ids(document.root))
    if kind in _MODEL_PATHS and "model" not in failed:
        path = _MODEL_PATHS[kind]
        imports = [each for each in parsed if each.path == (*path, HUGGING_FACE)]
        document, unread = _import_shape(apply_overrides(document, imports), path)
        problems += unread
        # What overrides change below a shape that could not be read cannot be judged.
        parsed = [
            each for each in parsed if each not in imports and not (unread and each.path[: len(path)] == path)
        ]
    try:
        document = apply_overrides(document, parsed)
    except ConfigError as error:
        problems += error.problems
    root, found = read_samples(_known_now(kind, document.root, parsed, stated))
    problems += found
    for each in failed.values():
        problems += each
    try:
        config = validate(Document(document.file, root), MODELS[kind])
    except ConfigError as error:
        reported = {problem.key.rpartition(".")[0] for problem in found}
        # What was not found has been reported; that it is missing need not be.
        problems += [
            each
            for each in error.problems
            if each.key not in failed and each.key.rpartition(".")[0] not in reported
        ]
        raise ConfigError(problems) from None
    if problems:
        raise ConfigError(problems)
    return config


def _known_now(kind: Kind, root: Node, overrides: Sequence[Override], stated: Sequence[Override]) -> Node:
    """The tree with figures that overrides set taken as known, if a calibration left them uncertain.

    Args:
        kind: of the file.
        root: its tree.
        overrides: those that are put in.
        stated: those and what replaced whole parts by other files.
    """
    if kind == "cluster":
        return without_fixed(root, overrides, 0)
    if kind == "experiment":
        root = without_fixed(root, stated, 0)
    cluster = root.child("cluster") if kind == "experiment" else None
    if cluster is None or cluster.mapping is None:
        return root
    entries = {**(root.mapping or {}), "cluster": without_fixed(cluster, overrides, 1)}
    return Node(entries, root.position, root.key_position)


def _import_shape(document: Document, path: tuple[str, ...]) -> tuple[Document, list[Problem]]:
    """Read the file that a model's `hugging_face` names; `path` is the model's in the document."""
    root = document.root
    if not path:
        root, problems = import_shape(root, path)
        return Document(document.file, root), problems
    model = root.child(path[0])
    if model is None or model.mapping is None:
        return document, []
    model, problems = import_shape(model, path)
    root = Node({**(root.mapping or {}), path[0]: model}, root.position, root.key_position)
    return Document(document.file, root), problems


def _replaces_reference(override: Override) -> bool:
    return len(override.path) == 1 and override.path[0] in REFERENCES


def _parse_overrides(texts: Sequence[str | Override]) -> tuple[list[Override], list[Problem]]:
    parsed: list[Override] = []
    problems: list[Problem] = []
    for text in texts:
        try:
            parsed.append(parse_override(text) if isinstance(text, str) else text)
        except ConfigError as error:
            problems += error.problems
    return parsed, problems
