"""What samples of a server come to: latencies, throughput, chips, memory."""

import numpy as np

from mc.config import ExperimentConfig
from mc.estimate import Estimate, estimate, mean_estimate
from mc.experiment.run_serving import Drawn, Floats
from mc.results import ServingSummary
from mc.transformer import parameters


def serving_summary(config: ExperimentConfig, drawn: Drawn) -> ServingSummary:
    """What the samples come to."""
    server, confidence = drawn.server, config.run.confidence
    serving, layout, batch = server.serving, server.layout, server.batch
    mean = mean_estimate(drawn.steps, confidence)[0]
    each_step = batch * server.tokens_per_step
    made = mean.rate(each_step)
    answered = mean.rate(each_step / (serving.output - 1))
    if serving.rate is not None:
        # Answers cannot be more than requests.
        answered = Estimate(serving.rate, serving.rate, serving.rate)
        made = answered.scaled(serving.output - 1)
    tokens = answered.scaled(serving.output)
    prompt = mean_estimate(drawn.prompt, confidence)[0]
    chips = 0.0
    if serving.prefill is not None:
        keeping_up = answered.value * prompt.value / server.prompts
        chips = (serving.prefill.replicas or keeping_up) * server.prefill_layout.ranks
    memory = server.memory(batch)
    sizes = {"weights": memory.weights, "kv_cache": memory.cache}
    most = None if memory.most is None else memory.most // layout.pp * layout.pp * layout.dp
    prefilled = prompt.rate(server.prompts * serving.prompt)
    return ServingSummary(
        plan=str(layout),
        prefill_plan=str(server.prefill_layout) if server.is_apart else None,
        parameters=float(parameters(server.shape).total),
        batch=batch,
        largest_batch=most,
        prompt=serving.prompt,
        output=serving.output,
        tokens_per_step=server.tokens_per_step,
        ttft=_latency(drawn.ttft, confidence),
        tpot=_answers(drawn.tpot, drawn.answer_steps, confidence),
        itl=_latency(drawn.steps, confidence),
        ttft_parts=drawn.ttft_parts,
        requests_per_s=answered,
        tokens_per_s=tokens,
        tokens_per_s_per_chip=tokens.scaled(1 / (layout.ranks + chips)),
        decode_tokens_per_s_per_chip=made.scaled(1 / layout.ranks),
        prefill_tokens_per_s_per_chip=prefilled.scaled(1 / server.prefill_layout.ranks),
        prefill_chips=chips,
        prefill_busy=drawn.prefill_busy,
        concurrency=answered.value * drawn.answer_s,
        kv_cache_bytes=memory.cache,
        memory_bytes=sizes if memory.available is None else {**sizes, "available": memory.available},
        is_mixed=server.lengths.are_mixed,
    )


def _latency(samples: Floats, confidence: float) -> dict[str, Estimate]:
    return dict(estimate(samples, confidence).items())


def _answers(tpot: Floats, steps: float, confidence: float) -> dict[str, Estimate]:
    """Answers that begin within one another's steps are alike: those of so many steps count as one cluster."""
    size = max(round(steps), 1)
    if tpot.shape[0] > 1 or size == 1:
        return _latency(tpot, confidence)
    blocks = tpot.shape[1] // size
    if blocks < 2:
        found = _latency(tpot, confidence)
        return {name: Estimate(each.value, -np.inf, np.inf) for name, each in found.items()}
    return _latency(tpot[:, : blocks * size].reshape(blocks, size), confidence)
