"""What serving comes to beside the time of a step: latencies, throughput, memory. Plain data."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from mc.estimate import Estimate

Latency = Mapping[str, Estimate]


@dataclass(frozen=True)
class ServingSummary:
    """A replica that serves.

    Attributes:
        plan: of the ranks that decode, in a few words.
        prefill_plan: of those that prefill; the same ranks if None.
        parameters: of the model.
        batch: requests that are decoded at once.
        largest_batch: that would fit; None for chips of unknown memory.
        prompt: tokens of a request.
        output: tokens of its answer.
        tokens_per_step: that a request gets.
        ttft: seconds to the first token, by mean and quantile over requests.
        tpot: seconds per further token, likewise.
        itl: seconds of a step, over all steps.
        ttft_parts: the mean TTFT, by what it goes into.
        requests_per_s: that a replica answers.
        tokens_per_s: that it makes.
        tokens_per_s_per_chip: of all chips that it takes.
        decode_tokens_per_s_per_chip: of the chips that decode.
        prefill_tokens_per_s_per_chip: prompts' tokens while they prefill, of chips that do.
        prefill_chips: that it takes beside; 0 if the same ranks prefill.
        prefill_busy: part of the time that these prefill; None if they are as many as keep up.
        concurrency: requests that are decoded at once, by Little's law.
        kv_cache_bytes: on a rank of the fullest stage.
        memory_bytes: likewise: `weights`, `kv_cache`, `available`.
        is_mixed: whether requests are of several lengths, of which `prompt` and `output` are the means.
    """

    plan: str
    prefill_plan: str | None
    parameters: float
    batch: int
    largest_batch: int | None
    prompt: int
    output: int
    tokens_per_step: float
    ttft: Latency
    tpot: Latency
    itl: Latency
    ttft_parts: Mapping[str, float]
    requests_per_s: Estimate
    tokens_per_s: Estimate
    tokens_per_s_per_chip: Estimate
    decode_tokens_per_s_per_chip: Estimate
    prefill_tokens_per_s_per_chip: Estimate
    prefill_chips: float
    prefill_busy: float | None
    concurrency: float
    kv_cache_bytes: float
    memory_bytes: Mapping[str, float]
    is_mixed: bool = False


LATENCIES = ("ttft", "tpot", "itl")
RATES = (
    "requests_per_s",
    "tokens_per_s",
    "tokens_per_s_per_chip",
    "decode_tokens_per_s_per_chip",
    "prefill_tokens_per_s_per_chip",
)


def serving_to_json(serving: ServingSummary) -> dict[str, Any]:
    """As plain data, intervals as [value, low, high]."""
    found = asdict(serving)
    for name in RATES:
        found[name] = _listed(getattr(serving, name))
    for name in LATENCIES:
        found[name] = {key: _listed(each) for key, each in getattr(serving, name).items()}
    return found


def serving_from_json(found: Mapping[str, Any]) -> ServingSummary:
    """The inverse of `serving_to_json`."""
    told = {each.name: found[each.name] for each in fields(ServingSummary) if each.name in found}
    told |= {name: _estimate(*told[name]) for name in RATES}
    told |= {name: {key: _estimate(*each) for key, each in told[name].items()} for name in LATENCIES}
    return ServingSummary(**told)


def _listed(estimate: Estimate) -> list[float | None]:
    """Bounds that there are none of are left empty, since JSON has no infinity."""
    return [
        estimate.value,
        *(each if math.isfinite(each) else None for each in (estimate.low, estimate.high)),
    ]


def _estimate(value: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(value, -math.inf if low is None else low, math.inf if high is None else high)
