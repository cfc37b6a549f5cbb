"""Fuzzing of the reader of configurations: whatever a file holds, it is a configuration, or an `InputError` in printable lines.

    python -m tests.hostile.fuzz [COUNT] [--seed N]

Inputs are shipped and small files of every kind, a `config.json`, a CSV of samples and overrides, cut, spliced and sprinkled with
what means something to YAML, to the schema or to units. What does anything else, or takes more than `SLOWEST` seconds of the
processor, is printed with its seed, and the exit code is 1.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mc.config import load_any, shipped
from mc.config.load_sweep import load_sweep
from mc.errors import InputError

SLOWEST = 5.0
SMALL = {
    "experiment": (
        "name: e\ncluster:\n  name: c\n  chip: H100\n  tiers:\n    - {name: node, link: NVLink-4, fan_out: 8}\n"
        "  noise:\n    spread: {family: lognormal, median: 1, sigma: 2 %}\n"
        "    pauses: {probability: 0.01 %, delay: {family: exponential, mean: 20 ms}}\n"
        "model:\n  name: m\n  compute: {time: 5 ms}\n  exchange: {collective: all-reduce, size: 64 MiB}\n"
        "plan: {ranks: all, algorithm: ring}\nrun: {samples: 100, seed: 0}\n"
    ),
    "transformer": (
        "name: e\ncluster: dgx-h100-superpod\nmodel:\n  name: m\n"
        "  transformer: {layers: 4, hidden: 1024, heads: 8, ffn: 4096, vocab: 1000}\n"
        "plan: {tp: 8, pp: 1, dp: 128, micro_batch: 1, global_batch: 256, sequence_length: 128, zero: 1}\n"
    ),
    "sweep": (
        "extends: experiment.yaml\nsweep:\n  grid:\n    plan.ranks: {powers of two: [2, 8]}\n"
        "    model.exchange.size: {log: [1 MB, 1 GB], points: 3}\n  samples: 10\n"
    ),
    "samples": "extends: experiment.yaml\ncluster: {noise: {jitter: {family: empirical, file: samples.csv, unit: us}}}\n",
    "imported": "name: m\nhugging_face: config.json\n",
}
BESIDE = {
    "samples.csv": "t\n" + "".join(f"{value}\n" for value in range(1, 40)),
    "config.json": '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, '
    '"num_hidden_layers": 2, "num_key_value_heads": 2, "vocab_size": 100, "tie_word_embeddings": false}',
}
TOKENS = (
    *(
        "\n",
        "\n  ",
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "'",
        '"',
        "#",
        "\\",
        "\t",
        "\0",
        "\u2028",
        "@",
        "`",
        "&a ",
        "*a",
    ),
    *(
        "!t ",
        "? ",
        "|",
        ">",
        " %",
        "<<: ",
        "--- ",
        "...",
        "1e999",
        "-1",
        "0",
        ".nan",
        ".inf",
        "~",
        "null",
        "true",
        "1_0",
        "0x1f",
    ),
    *(
        "900 GB/s",
        "us",
        "5 us",
        "64 MiB",
        "extends: ",
        "extends: e.yaml",
        "cluster: ",
        "tiers: ",
        "family: ",
        "mixture",
        "empirical",
    ),
    *(
        "file: ",
        "samples: ",
        "posterior: ",
        "sweep: ",
        "grid: ",
        "hugging_face: ",
        "9" * 400,
        "\ud800",
        "\u0661",
        "\U0001f4a5",
        "a" * 300,
    ),
)


def mutated(text: str, rng: random.Random, other: str) -> str:
    """A few cuts, doublings, splices and tokens."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randint(0, len(text))
        stop = min(len(text), start + rng.choice((0, 0, 1, 3, 12, 60)))
        kind = rng.random()
        if kind < 0.6:
            put = rng.choice(TOKENS)
        elif kind < 0.75:
            put = chr(rng.choice((rng.randint(0, 127), rng.randint(128, 0x2FFF))))
        elif kind < 0.9:
            put = text[start:stop] * rng.randint(0, 3)
        else:
            place = rng.randint(0, len(other))
            put = other[place : place + rng.randint(1, 80)]
        text = text[:start] + put + text[stop:]
    return text


def overrides(rng: random.Random) -> list[str]:
    """Now and then a `--set`, sensible or not."""
    if rng.random() < 0.7:
        return []
    keys = (
        "cluster",
        "tiers",
        "0",
        "link",
        "model",
        "compute",
        "time",
        "plan",
        "ranks",
        "run",
        "noise",
        "spread",
        "x",
        "",
    )
    path = ".".join(rng.choice(keys) for _ in range(rng.randint(1, 5)))
    return [path + rng.choice(("=", "", "=[")) + rng.choice((*TOKENS, "8", "5 ms"))]


def attempt(folder: Path, seed: int, sources: list[str]) -> str:
    """One input; what came of it in a word. Anything but a configuration or an `InputError` escapes."""
    rng = random.Random(seed)
    name, text = rng.choice(list(SMALL.items())) if rng.random() < 0.9 else ("shipped", rng.choice(sources))
    beside = dict(BESIDE)
    if name in ("samples", "imported") and rng.random() < 0.7:
        target = "samples.csv" if name == "samples" else "config.json"
        beside[target] = mutated(beside[target], rng, text)
    elif rng.random() < 0.98:
        text = mutated(text, rng, rng.choice(sources))
    for each, content in [*beside.items(), ("experiment.yaml", SMALL["experiment"]), ("e.yaml", text)]:
        (folder / each).write_bytes(content.encode("utf-8", "surrogatepass"))
    try:
        if name == "sweep" and rng.random() < 0.5:
            load_sweep(folder / "e.yaml", overrides(rng))
        else:
            load_any(folder / "e.yaml", overrides(rng))
    except InputError as error:
        message = str(error)
        if not message or not all(line.isprintable() for line in message.split("\n")):
            raise AssertionError(f"not printable: {message[:200]!r}") from error
        return "refused"
    return "read"


def run(count: int, first: int) -> tuple[Counter[str], list[str]]:
    """So many inputs; outcomes by word, and what went wrong."""
    found: Counter[str] = Counter()
    wrong: list[str] = []
    sources = [path.read_text(encoding="utf-8") for path in sorted(shipped.directory().rglob("*.yaml"))]
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            began = time.process_time()
            try:
                found[attempt(Path(folder), seed, sources)] += 1
            except Exception as error:
                found["escaped"] += 1
                wrong.append(f"seed {seed}: {type(error).__name__}: {str(error)[:200]}")
            if time.process_time() - began > SLOWEST:
                found["slow"] += 1
                wrong.append(f"seed {seed}: took {time.process_time() - began:.1f} s")
    return found, wrong


def main() -> int:
    """Runs it and says what came of it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.fuzz", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("count", nargs="?", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input; each has the next")
    options = parser.parse_args()
    found, wrong = run(options.count, options.seed)
    print(", ".join(f"{count:,} {word}" for word, count in sorted(found.items())))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
