"""`tailstep init`: a first experiment, from a few answers."""

import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mc.catalog import chip as catalog_chip
from mc.catalog import chips, links
from mc.config import ClusterConfig, ExperimentConfig, load_cluster, load_experiment, load_model
from mc.config.transformer import TransformerConfig
from mc.document import did_you_mean
from mc.errors import InputError

_TIERS = ("scale-up", "scale-out")
_CHIP, _CHIPS, _NODE, _MODEL = "H100", 1024, 8, "llama3-8b"
_MOST = 1 << 20
# Micro-batches for each stage of a pipeline, so that the bubble of 1F1B is about a fifth.
_PER_STAGE = 4


def init(
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="The file to write; it must not exist.")
    ] = Path("experiment.yaml"),
    chip: Annotated[str | None, typer.Option(help="Of the catalog.", show_default=False)] = None,
    link: Annotated[
        str | None, typer.Option(help="Of the catalog, between nodes.", show_default=False)
    ] = None,
    size: Annotated[
        int | None, typer.Option("--chips", help="How many chips.", min=1, max=_MOST, show_default=False)
    ] = None,
    node: Annotated[
        int | None, typer.Option(help="How many of them in a node.", min=1, max=_MOST, show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A shipped model, a file, or a `config.json` of Hugging Face.", show_default=False),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="A shipped cluster or a file, such as a calibrated one, instead of chip, link and node.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a commented experiment to start from.

    Asks for what no option says; without a terminal what is left out is what the question would propose.
    """
    if file.suffix not in (".yaml", ".yml"):
        raise InputError(f"FILE: expected a name that ends in .yaml; got `{file}`")
    _refuse(file)
    if cluster is not None:
        if chip or link or node:
            raise InputError("--cluster: expected it instead of --chip, --link and --node; got both")
        known = load_cluster(cluster)
        size = size or _number("--chips", _asked("chips", str(known.size)))
        if size > known.size:
            raise InputError(f"--chips: expected at most the {known.size:,} of `{cluster}`; got {size:,}")
        chip, link = known.chip.name or "chips", ""
        node = min(_first_unit(known), size)
    else:
        chip = _known("--chip", chip or _asked("chip", _CHIP), chips())
        usual = catalog_chip(chip).scale_out_link or "InfiniBand-NDR"
        between = [name for name, each in links().items() if each.tier in _TIERS]
        link = _known("--link", link or _asked("link between nodes", usual), between)
        size = size or _number("--chips", _asked("chips", str(_CHIPS)))
        node = node or min(_number("--node", _asked("chips in a node", str(min(_NODE, size)))), size)
    if size % node:
        raise InputError(f"--chips: expected whole nodes of {node}; got {size}")
    model = model or _asked("model", _MODEL)
    answers = _Answers(chip, link, size, node, model, cluster, file.absolute().parent)
    text = _checked(answers)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        _refuse(file)
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from error
    print(f"wrote {file}; next: tailstep run {file}")


@dataclass(frozen=True)
class _Answers:
    """What was said: names of the catalog, numbers of chips, a model, perhaps a cluster; and the folder of the file."""

    chip: str
    link: str
    size: int
    node: int
    model: str
    cluster: str | None
    folder: Path

    def reference(self, said: str) -> str:
        """A shipped name as it is; a file, said from the working directory, as seen from the folder."""
        return os.path.relpath(said, self.folder) if Path(said).suffix or Path(said).exists() else said

    @property
    def label(self) -> str:
        """The model's name, for people."""
        path = Path(self.model)
        return (
            path.resolve().parent.name
            if path.name == "config.json"
            else path.stem
            if path.suffix
            else self.model
        )

    @property
    def model_text(self) -> str:
        """The model as it stands in the file."""
        if self.model.endswith(".json"):
            return (
                f"{{name: {json.dumps(self.label)}, hugging_face: {json.dumps(self.reference(self.model))}}}"
            )
        return self.reference(self.model)


def _refuse(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise InputError(f"{file}: expected a file that does not exist yet; nothing is overwritten")


def _asked(question: str, proposal: str) -> str:
    if not sys.stdin.isatty():
        return proposal
    return str(typer.prompt(question, default=proposal, err=True)).strip()


def _known(option: str, name: str, known: Any) -> str:
    if name not in known:
        raise InputError(f"{option}: unknown name `{name}`; {did_you_mean(name, known)} (`tailstep catalog`)")
    return name


def _number(option: str, text: str) -> int:
    try:
        number = int(text.replace(",", "").replace("_", ""))
    except ValueError:
        number = 0
    if not 1 <= number <= _MOST:
        raise InputError(f"{option}: expected a whole number from 1 to {_MOST:,}; got `{text}`")
    return number


def _checked(answers: _Answers) -> str:
    """The file for the smallest cut of the model that fits into memory."""
    shape = _shape(answers)
    if shape is None:
        text = _text(answers, _simple_plan(answers))
        _load(text, answers.folder)
        return text
    # Here, so that `--help` does not load NumPy.
    from mc.parallel import checked_plan

    refusal: InputError | None = None
    for tp, pp, ep in _cuts(answers, shape):
        text = _text(answers, _plan(answers, shape, tp, pp, ep))
        try:
            checked_plan(_load(text, answers.folder))
        except InputError as error:
            refusal = error
            continue
        return text
    raise InputError(
        f"--chips: expected enough for {answers.model}; got {answers.size} x {answers.chip}: {refusal or 'no plan fits'}"
    )


def _load(text: str, folder: Path) -> ExperimentConfig:
    """What the file would say, read in the folder where it is to be, as its references start there."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", suffix=".yaml", prefix=".init-", dir=folder
        ) as file:
            file.write(text)
            file.flush()
            return load_experiment(file.name)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error


def _shape(answers: _Answers) -> TransformerConfig | None:
    """The transformer; None for a model that computes and exchanges."""
    if not answers.model.endswith(".json"):
        return load_model(answers.model).transformer
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".yaml") as file:
        file.write(f"{{name: model, hugging_face: {json.dumps(os.path.abspath(answers.model))}}}")
        file.flush()
        return load_model(file.name).transformer


def _first_unit(cluster: ClusterConfig) -> int:
    """How many ranks the innermost tier joins, at least, if its units differ."""
    first = cluster.fan_outs[0]
    return first if isinstance(first, int) else min(first)


def _cuts(answers: _Answers, shape: TransformerConfig) -> Iterator[tuple[int, int, int]]:
    """Sizes of tp, pp and ep, those that cut least first; tp stays in a node."""
    powers = [1 << power for power in range(answers.size.bit_length())]
    experts = powers if shape.experts else [1]
    # What layers can be shared out among, whether the ends have one less or not.
    stages = [each for each in powers if 0 in (shape.layers % each, (shape.layers + 2) % each)]
    cuts = itertools.product([each for each in powers if each <= answers.node], stages, experts)
    fitting = [cut for cut in cuts if not answers.size % (cut[0] * cut[1])]
    return iter(sorted(fitting, key=lambda cut: (cut[0] * cut[1] * cut[2], cut[1], cut[2])))


def _plan(answers: _Answers, shape: TransformerConfig, tp: int, pp: int, ep: int) -> str:
    dp = answers.size // (tp * pp)
    ranks = f"  ranks: {answers.size}\n" if answers.cluster else ""
    balance = (
        "  balance_ends: true # the first and the last stage have a layer less\n" if shape.layers % pp else ""
    )
    experts = f"  ep: {ep} # ranks that share the experts of a layer\n" if ep > 1 else ""
    return f"""\
  # Tensor, pipeline and data parallel: {tp} x {pp} x {dp} = {answers.size:,} ranks; the smallest cut that fits into memory.
  # `tailstep explain` shows every message of it, `tailstep advise` searches for better ones.
{ranks}  tp: {tp}
  pp: {pp}
  dp: {dp}
{balance}{experts}  zero: 1 # the optimizer's states are shared among replicas
  sequence_length: 4096
  global_batch: {dp * (_PER_STAGE * pp if pp > 1 else _PER_STAGE)} # sequences per step
"""


def _simple_plan(answers: _Answers) -> str:
    return f"""\
  ranks: {answers.size}
  # The fastest of those known for this collective on this cluster.
  algorithm: auto
"""


def _text(answers: _Answers, plan: str) -> str:
    return f"""\
# An experiment for `tailstep run`: what a step takes, and what it waits for. Every quantity has its unit; `tailstep show` prints
# this file with all defaults, `tailstep validate` checks it, and docs/configuration.md describes every key.
name: {answers.label} on {answers.size} {answers.chip}

cluster:
{_cluster(answers)}\
  # What makes ranks differ. These are published figures of other clusters; `tailstep calibrate` fits your own.
  noise:
    # The same work takes 2 % more or less, rank by rank and step by step (computed from the traces of arXiv 2505.05713).
    spread: {{family: lognormal, median: 1, sigma: 2 %}}
    # Chips that are slow for good: 0.5 % of the machines, by 10 % (MegaScale, arXiv 2402.15627).
    slow_chips: {{fraction: 0.5 %, slowdown: 1.1}}
    # Pauses, such as those of a garbage collector: once in 10,000 steps, for 20 ms. Assumed.
    pauses: {{probability: 0.01 %, delay: {{family: exponential, mean: 20 ms}}}}

# A model that comes with tailstep; a file of your own, or `hugging_face: config.json`, can stand here.
model: {answers.model_text}

plan:
{plan}
run:
  samples: 2000
  # How many clusters to draw: which chips are slow differs from one to the next.
  realisations: 20
  seed: 0
"""


def _cluster(answers: _Answers) -> str:
    if answers.cluster is not None:
        return f"""\
  extends: {answers.reference(answers.cluster)}
"""
    inside = catalog_chip(answers.chip).scale_up_link or answers.link
    tiers = f"    - {{name: node, link: {inside}, fan_out: {answers.node}}}\n"
    if answers.size > answers.node:
        tiers += f"    - {{name: network, link: {answers.link}, fan_out: {answers.size // answers.node}}}\n"
    return f"""\
  name: {answers.size} {answers.chip}
  # Figures and their sources: `tailstep catalog {answers.chip}`. Figures of your own can stand here instead.
  chip: {answers.chip}
  # Innermost first: who is joined to whom, and by what.
  tiers:
{tiers}"""
