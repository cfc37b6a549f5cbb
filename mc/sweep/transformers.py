"""What a transformer's step comes to, as columns of a sweep: of training, and of serving."""

from mc.results import ServingSummary, TrainingSummary


def of_training(found: TrainingSummary, ranks: int) -> dict[str, float | None]:
    """The numbers of a step of training."""
    return {
        "tokens_per_s": found.tokens_per_s.value,
        "tokens_per_s_per_chip": found.tokens_per_s.value / ranks,
        "mfu": found.mfu.value,
        "hfu": found.hfu.value,
        "bubble_fraction": found.bubble_fraction,
        "memory_B": found.memory_bytes["total"],
    }


def of_serving(found: ServingSummary) -> dict[str, float | None]:
    """The numbers of a replica that serves."""
    latencies = {"ttft": found.ttft, "tpot": found.tpot}
    return {
        **{
            f"{name}_{statistic}_s": latency[statistic].value
            for name, latency in latencies.items()
            for statistic in ("mean", "p50", "p99")
        },
        "batch": float(found.batch),
        "requests_per_s": found.requests_per_s.value,
        "tokens_per_s": found.tokens_per_s.value,
        "tokens_per_s_per_chip": found.tokens_per_s_per_chip.value,
        "memory_B": found.memory_bytes["weights"] + found.memory_bytes["kv_cache"],
    }
