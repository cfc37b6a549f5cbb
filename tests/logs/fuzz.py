"""Readers under mutated files: whatever is in a file, it is read or refused in words.

    python -m tests.logs.fuzz [--inputs N] [--seed N]

Each input is a fragment of a format with some of its bytes, words and lines changed, cut, doubled or mixed
with those of another. A reader may refuse it (`LogError`); otherwise every row must have a time that is a
positive number, and what was understood must count the rows that there are. Anything else is a failure,
which the command prints with the seed that repeats it; it exits with 1 if there was one.
"""

import argparse
import contextlib
import math
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from mc.logs import FORMATS, Hints, Imported, LogError, read_logs
from tests.logs.fragments import FRAGMENTS

_WORDS = (
    b"0", b"-1", b"1e308", b"1e-320", b"nan", b"inf", b"N/A", b"9" * 30, b"1" * 400, b"\x00", b"\xff\xfe", b'"', b"{", b"]",
    b"\\ud800", b"#", b"##", b"### GPUS=0", b"=== 0-node ===", b",", b";", b"\t", b"\r", b"\n", b"null", b"true", b"1_000",
    "١".encode(), b"size count type redop root time algbw busbw", b"[ pairs: 0 ]", b"# #processes = 0", b"[1,0]<stdout>:",
    b" 0: ", b"0.0", b"-0", b".5", b"5.", b"1e5", b"18446744073709551616", b"## ranks: 0", b"## nodes: 99999999999",
    b"n1:1:1 [0] NCCL INFO ", b"Rank 4000000000 Pid 1 on h device 0 [0] x",
)  # fmt: skip


def mutated(source: random.Random) -> tuple[str, bytes]:
    """A file's name and content: a fragment, changed up to a dozen times."""
    name, text = source.choice(list(FRAGMENTS.values()))
    content = bytearray(text.encode())
    for _ in range(source.choice((0, 1, 1, 2, 3, 6, 12))):
        _mutate(content, source)
    if source.random() < 0.05:
        name = source.choice(("x.log", "x.csv", "x.json", "x"))
    return name, bytes(content)


def _mutate(content: bytearray, source: random.Random) -> None:
    place = source.randrange(len(content) + 1)
    length = source.choice((1, 1, 2, 8, 64, 1024))
    match source.randrange(8):
        case 0:
            del content[place : place + length]
        case 1:
            content[place:place] = source.choice(_WORDS)
        case 2:
            content[place : place + length] = source.choice(_WORDS)
        case 3:
            content[place:place] = content[place : place + length] * source.choice((1, 2, 50))
        case 4 if content:
            content[place % len(content)] ^= 1 << source.randrange(8)
        case 5:
            lines = content.split(b"\n")
            source.shuffle(lines) if source.random() < 0.3 else lines.insert(0, source.choice(lines))
            content[:] = b"\n".join(lines)
        case 6:
            other = source.choice(list(FRAGMENTS.values()))[1].encode()
            start = source.randrange(len(other))
            content[place:place] = other[start : start + length]
        case _:
            words = content.split(b" ")
            words[source.randrange(len(words))] = bytearray(source.choice(_WORDS))
            content[:] = b" ".join(words)
    del content[1 << 20 :]


def hints(source: random.Random) -> tuple[Hints, str | None]:
    """What a user may have said, and the format that may have been forced."""
    if source.random() < 0.7:
        return Hints(), None
    said = Hints(
        collective=source.choice((None, "all-reduce", "all-gather")),
        ranks=source.choice((None, 1, 2, 4, 1_000_000)),
        nodes=source.choice((None, 1, 3)),
        step_unit=source.choice((None, "s", "us")),
        bandwidth_unit=source.choice((None, "GB/s")),
        keep_conflicts=source.random() < 0.5,
    )
    return said, source.choice((None, None, *FORMATS))


def check(found: Imported) -> None:
    """Raises AssertionError if what was read cannot be."""
    kept = 0
    for row in found.table.rows():
        kept += 1
        seconds, share = row["time_s"], row["mfu"]
        assert seconds is not None or share is not None, f"neither time nor MFU: {row}"
        assert seconds is None or (math.isfinite(seconds) and seconds > 0), f"time {seconds}"
        assert share is None or (math.isfinite(share) and share > 0), f"MFU {share}"
        for name in ("bytes", "ranks", "nodes", "process", "iteration"):
            assert row[name] is None or row[name] >= 0, f"{name} {row[name]}"
        assert row["algbw_Bps"] is None or row["algbw_Bps"] > 0
    assert kept == sum(file.rows for file in found.files)


def run(inputs: int, seed: int, folder: Path) -> Iterator[tuple[int, str]]:
    """Feeds so many inputs; yields the seed of each failure, with its traceback."""
    for number in range(inputs):
        source = random.Random(f"{seed}/{number}")
        name, content = mutated(source)
        said, forced = hints(source)
        path = folder / name
        path.write_bytes(content)
        try:
            with contextlib.suppress(LogError):
                check(read_logs([path], said, format=forced))
        except Exception:
            yield number, traceback.format_exc(limit=-4)
        finally:
            path.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.logs.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    options = parser.parse_args(arguments)
    started, failures = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for number, text in run(options.inputs, options.seed, Path(folder)):
            failures += 1
            print(f"input {number} of seed {options.seed}:\n{text}")
    print(f"{options.inputs:,} inputs, {failures} failures, {time.monotonic() - started:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
