"""What a report cannot know: assumptions, the range that was tested, sampling error against the model's own.

The figures of the tested range are those of `docs/published.md`, `docs/inference.md`, `docs/calibration.md` and
`experiments/README.md`, where they come from measurements; a run is set beside them, so a reader sees whether it lies within.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mc.catalog import chip, chips
from mc.estimate import Estimate, Estimates
from mc.report.html.page import Section, Table
from mc.report.run_table import LABELS
from mc.results import RunResult

TITLE = "How far to trust it"
# Published training steps that predictions were compared with, nothing fitted to them (docs/published.md).
_STEPS, _RANKS, _ERROR = 1988, (8, 16_384), (0.02, 0.08)
_CHIPS = ("A100", "H100", "GB200", "GB300")
# Of published latencies and rates of serving (docs/inference.md).
_SERVED = ("-19 %", "+27 %")
_ALWAYS = (
    "Ranks are independent given the states that they share, and a step knows nothing of the step before, but for chips that stay "
    "slow and links that remember their state.",
    "There are tiers and no routes: flows collide only as far as the configuration says so.",
    "Every figure of the configuration is taken as it is written. That the machine is like its description is not tested by a run.",
)
_BARRIER = (
    "A rank computes and then exchanges once; nothing of the exchange is hidden behind computing.",
    "The exchange takes what the published formula of its algorithm says; link states and jitter are added for each tier's part, not "
    "message by message.",
)
_TRAINING = (
    "Operations take what the chip's fitted efficiencies say, messages what their tier offers; what is hidden behind "
    "computing follows from the plan and one overlap factor.",
    "Much that decides about a step of real software (chunks, what is overlapped, formats on the wire) is rarely "
    "published and is assumed here.",
)
_SERVING = (
    "Requests are of one length, and none waits for a place in the batch, which stays as it is.",
    "Kernels take what the chip's fitted efficiencies say; the scheduler of a server is a constant, not a program.",
)


def honesty(run: RunResult, config: Mapping[str, Any]) -> Section:
    """The block of a run; `config` is its resolved configuration as plain data."""
    own = _SERVING if run.serving is not None else _TRAINING if run.training is not None else _BARRIER
    return Section(
        TITLE,
        text=[_verdict(run)],
        points=[*own, *_ALWAYS, *_unseen(run)],
        tables=[_sampling(run.estimates), _tested(run, config), _noise(config), *_estimates(config)],
    )


def _unseen(run: RunResult) -> Iterator[str]:
    """What this run in particular cannot have seen, and what its calibration left open."""
    if run.realisations > 1:
        yield (
            f"The cluster was drawn {run.realisations:,} times: states of it rarer than {100 * 3 / run.realisations:.2g} % may be "
            "missing altogether, and no interval says so."
        )
    if run.model is not None:
        yield (
            f"Calibration intervals are about {run.model.figures:,} figures that {run.model.source} left open, in "
            f"{run.model.draws:,} draws; sampling is not in them, and neither is what the model leaves out."
        )


def _verdict(run: RunResult) -> str:
    """Sampling error against the model's, in a sentence or two."""
    estimates = run.estimates
    half = _half(estimates.mean)
    known = "to the last digit" if half == 0 else f"to {_percent(half)}"
    text = f"Intervals are about sampling: with {estimates.samples:,} steps the mean is known {known}."
    if run.serving is not None:
        least, most = _SERVED
        missed = f"published latencies and rates of serving, to which nothing was fitted, are missed by {least} to {most}"
    else:
        least, most = (f"{100 * each:.0f} %" for each in _ERROR)
        missed = f"means of published training steps, to which nothing was fitted, are missed by {least} to {most} on average"
    text = f"{text} The model's own error is not in them: {missed}."
    if half < _ERROR[0]:
        return f"{text} More samples would not bring the mean nearer to that of a real machine."
    return f"{text} Sampling is no smaller than that here: more samples would help."


def _sampling(estimates: Estimates) -> Table:
    rows = []
    for name, found in estimates.items():
        size = estimates.effective_samples.get(name)
        bounded = math.isfinite(found.low) and math.isfinite(found.high)
        half = _percent(_half(found)) if bounded else "unbounded: too few samples to bound it"
        rows.append((LABELS[name], half, "" if size is None else f"{size:,.0f}"))
    interval = f"half the {100 * estimates.confidence:g} % interval"
    return Table(("sampling error of", interval, "independent steps it is worth"), rows, "Sampling")


def _tested(run: RunResult, config: Mapping[str, Any]) -> Table:
    low, high = _RANKS
    within = "within" if low <= run.ranks <= high else "outside"
    name = str(at(config, "cluster", "chip", "name") or "not named")
    known = "within" if any(each in name for each in _CHIPS) else "outside"
    rows = [
        ("chips that take part", f"{low:,} to {high:,}", f"{run.ranks:,}: {within}"),
        ("kind of chip", ", ".join(_CHIPS), f"{name}: {known}"),
    ]
    if run.training is not None:
        is_mixture = at(config, "model", "transformer", "experts") is not None
        rows.append(
            (
                "kind of model",
                "dense ones, missed by 2 to 8 %; mixtures of experts by 4 to 23 %",
                "mixture of experts" if is_mixture else "dense",
            )
        )
    elif run.serving is not None:
        least, most = _SERVED
        rows.append(
            ("serving", f"14 published latencies and rates, missed by {least} to {most}", "not among them")
        )
    else:
        rows.append(
            (
                "exchange",
                "logs of nccl-tests: missed by 30 % in the median with NCCL's own constants, by 4 % where calibrated",
                "calibrated" if _has_measured_links(config) else "as the configuration says",
            )
        )
    rows.append(("slowest of n", "closed forms and brute force, up to 2·10⁹ ranks", f"{run.ranks:,}: within"))
    caption = f"Tested range: {_STEPS:,} published training steps, published logs of collectives, theorems"
    return Table(("what", "tested", "this run"), rows, caption, words=True)


def _has_measured_links(config: Mapping[str, Any]) -> bool:
    """Whether a calibration found figures of the cluster, or of its tiers as part of an experiment."""
    own = at(config, "posterior", "parameters") or []
    of_tiers = any(path.startswith("cluster.tiers.") for each in own for path in each["paths"])
    return of_tiers or at(config, "cluster", "posterior") is not None


def _noise(config: Mapping[str, Any]) -> Table:
    """What the configuration describes as random; what it does not is taken as certain."""
    noise = at(config, "cluster", "noise") or {}
    tiers = at(config, "cluster", "tiers") or []
    of_links = {
        name: [str(tier.get("name")) for tier in tiers if isinstance(tier, dict) and tier.get(key)]
        for name, key in (("jitter of messages", "jitter"), ("congested links", "congestion"))
    }
    of_ranks = {
        "scatter of compute times": noise.get("spread") or noise.get("jitter"),
        "pauses": noise.get("pauses"),
        "slow chips": noise.get("slow_chips") or noise.get("persistent"),
        "what units have in common": noise.get("transient"),
    }
    rows = [
        (name, "described" if given else "not described: taken as none") for name, given in of_ranks.items()
    ]
    rows += [
        (name, f"described for {', '.join(given)}" if given else "not described: taken as none")
        for name, given in of_links.items()
    ]
    failures = "described" if at(config, "failures") else "not described: taken as none"
    return Table(
        ("source of randomness", "in this configuration"), [*rows, ("failures", failures)], words=True
    )


def _estimates(config: Mapping[str, Any]) -> list[Table]:
    """Figures of the catalog's chip that nobody has published."""
    name = at(config, "cluster", "chip", "name")
    if not isinstance(name, str) or name not in chips():
        return []
    found = [(key, each.text, each.origin) for key, each in chip(name).figures.items() if each.is_estimate]
    if not found:
        return []
    caption = f"Figures of {name} in the catalog that are estimates; the configuration may have changed them"
    return [Table(("figure", "value", "why"), found, caption, words=True)]


def at(value: Any, *path: str) -> Any:
    """What lies at a path of plain data; None if there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _half(found: Estimate) -> float:
    """Half an interval as a part of the value; infinite where there is no bound."""
    return (found.high - found.low) / 2 / abs(found.value) if found.value else math.inf


def _percent(share: float) -> str:
    return f"± {100 * share:.2g} %" if math.isfinite(share) else "nothing"


def plain_points(sentences: Sequence[str]) -> Section:
    """The block of what is not a run: sentences alone."""
    return Section(TITLE, points=sentences)
