"""What serving comes to, on a terminal and as JSON."""

import math
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mc.estimate import Estimate
from mc.report.times import duration, scale_for
from mc.results import ServingSummary
from mc.results.serving import LATENCIES, RATES

LATENCY_NAMES = {"ttft": "time to first token", "tpot": "time per output token", "itl": "step"}


def serving_json(serving: ServingSummary) -> dict[str, Any]:
    """As plain data, SI units in the keys: `ttft_s`, `tpot_s`, `kv_cache_bytes` and so on."""
    rates = {name: getattr(serving, name) for name in RATES}
    latencies = {}
    for name in LATENCIES:
        found = getattr(serving, name)
        intervals = {key: _bounds(each) for key, each in found.items()}
        latencies[f"{name}_s"] = {**{key: each.value for key, each in found.items()}, "ci": intervals}
    return {
        "plan": serving.plan,
        "prefill_plan": serving.prefill_plan,
        "parameters": serving.parameters,
        "batch": serving.batch,
        "largest_batch": serving.largest_batch,
        "prompt_tokens": serving.prompt,
        "output_tokens": serving.output,
        "lengths_are_mixed": serving.is_mixed,
        "tokens_per_step": serving.tokens_per_step,
        **latencies,
        "ttft_parts_s": dict(serving.ttft_parts),
        **{name: found.value for name, found in rates.items()},
        "rates_ci": {name: _bounds(found) for name, found in rates.items()},
        "prefill_chips": serving.prefill_chips,
        "prefill_busy": serving.prefill_busy,
        "concurrency": serving.concurrency,
        "kv_cache_bytes": serving.kv_cache_bytes,
        "memory_bytes": dict(serving.memory_bytes),
    }


def serving_rows(serving: ServingSummary) -> list[RenderableType]:
    """Latencies as a table, and the rest in rows of words."""
    scale = scale_for([each for name in LATENCIES for each in getattr(serving, name).values()])
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(f"latencies, {scale.unit}", no_wrap=True)
    for heading in ("mean", "p50", "p95", "p99", "p99.9"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in LATENCIES:
        table.add_row(
            LATENCY_NAMES[name], *(scale.number(each.value) for each in getattr(serving, name).values())
        )
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    apart = f"; prefill {serving.prefill_plan}" if serving.prefill_plan else ""
    grid.add_row("plan", Text(f"{serving.plan}{apart}; {serving.parameters / 1e9:,.1f} billion parameters"))
    most = "" if serving.largest_batch is None else f", {serving.largest_batch:,} would fit"
    lengths = f"prompts of {serving.prompt:,} and answers of {serving.output:,} tokens"
    lengths += " in the mean" if serving.is_mixed else ""
    grid.add_row("requests", f"{serving.batch:,} at once{most}; {lengths}")
    grid.add_row(
        "throughput",
        f"{serving.tokens_per_s.value:,.0f} tokens/s, {serving.requests_per_s.value:,.3g} requests/s; "
        f"{serving.tokens_per_s_per_chip.value:,.0f} tokens/s a chip",
    )
    if serving.prefill_plan:
        busy = (
            "" if serving.prefill_busy is None else f", busy {100 * serving.prefill_busy:.0f} % of the time"
        )
        grid.add_row(
            "chips",
            f"{serving.decode_tokens_per_s_per_chip.value:,.0f} tokens/s a chip that decodes; "
            f"{serving.prefill_chips:,.3g} chips beside prefill {serving.prefill_tokens_per_s_per_chip.value:,.0f} "
            f"tokens/s each{busy}",
        )
    if serving.tokens_per_step != 1:
        grid.add_row("speculation", f"{serving.tokens_per_step:.3g} tokens a step")
    parts = ", ".join(
        f"{name.replace('_', ' ')} {duration(seconds)}"
        for name, seconds in serving.ttft_parts.items()
        if seconds
    )
    grid.add_row("first token", parts)
    memory = serving.memory_bytes
    room = f" of {memory['available'] / 1e9:.1f}" if "available" in memory else ""
    held = f"weights {memory['weights'] / 1e9:.1f}, keys and values {memory['kv_cache'] / 1e9:.1f}"
    grid.add_row("memory", f"{held}{room} GB on the fullest rank")
    return [table, Text(), grid, Text()]


def _bounds(found: Estimate) -> list[float | None]:
    return [each if math.isfinite(each) else None for each in (found.low, found.high)]
