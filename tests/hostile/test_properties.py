"""Any configuration that is right runs, and any that is not is refused where the mistake stands.

    python -m tests.hostile.test_properties [COUNT]

runs so many configurations and spoils a hundred times as many; the suite does a few.
"""

import copy
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mc.config import config_hash, load_experiment
from mc.config.resolved import resolved_yaml
from mc.document import ConfigError
from mc.experiment import run
from tests.hostile.trees import Tree, barriers, paths, servers, transformers, value_at

EXPERIMENTS = barriers() | transformers() | servers()
RELAXED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
# Right as the value of nothing but what is called as one likes.
WRONG = (float("nan"), "5 furlongs", [[]])
FREE = {"name", "description"}


def load(tree: Any):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "experiment.yaml")
        # JSON is YAML; a line for each value, so that a place is a line.
        path.write_text(json.dumps(tree, indent=1).replace("NaN", ".nan"))
        return load_experiment(path)


def check_read(tree: Tree) -> None:
    """What is printed of it reads as the same."""
    config = load(tree)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "again.yaml")
        path.write_text(resolved_yaml(config))
        again = load_experiment(path)
    assert again == config
    assert config_hash(again) == config_hash(config)


def check_run(tree: Tree) -> None:
    """It runs, and what comes out is times of steps whose parts add up."""
    result = run(load(tree))
    assert np.isfinite(result.samples).all()
    assert (result.samples > 0).all()
    whole = sum((np.asarray(part) for part in result.parts.values()), np.zeros(()))
    np.testing.assert_allclose(np.broadcast_to(whole, result.samples.shape), result.samples, rtol=1e-6)
    for name in ("bandwidth", "latency_floor", "congestion"):
        assert np.asarray(result.parts[name]).min() >= -1e-9 * result.samples.mean(), name
    values = result.estimates
    assert values.p50.value <= values.p95.value <= values.p99.value <= values.p99_9.value
    assert values.mean.low <= values.mean.value <= values.mean.high


def check_spoilt(tree: Tree, chance: random.Random) -> None:
    """With one value wrong, or one key misspelt, it is refused for something at, above or below that place."""
    load(tree)
    path = chance.choice([each for each in paths(tree) if not FREE & set(map(str, each[-1:]))])
    spoilt = copy.deepcopy(tree)
    holder = value_at(spoilt, path[:-1])
    if isinstance(path[-1], str) and chance.random() < 0.5:
        name = path[-1] + "x"
        entries = [(name if key == path[-1] else key, value) for key, value in holder.items()]
        holder.clear()
        holder.update(entries)
        place = (*path[:-1], name)
    else:
        holder[path[-1]], place = chance.choice(WRONG), path
    with pytest.raises(ConfigError) as refused:
        load(spoilt)
    line = _line_of(spoilt, place)
    found = refused.value.problems
    assert any(each.position.line == line for each in found) or any(
        _related(each.key, place) for each in found
    ), f"{place}: {refused.value}"
    assert all(each.position.line and each.position.file for each in found)


def _line_of(tree: Tree, path: tuple[str | int, ...]) -> int:
    """The line where a key, or an item, begins in what `load` writes."""
    marked = copy.deepcopy(tree)
    holder, mark = value_at(marked, path[:-1]), "\x00here"
    if isinstance(path[-1], str):
        entries = [(mark if key == path[-1] else key, value) for key, value in holder.items()]
        holder.clear()
        holder.update(entries)
    else:
        holder[path[-1]] = mark
    lines = json.dumps(marked, indent=1).splitlines()
    return 1 + next(place for place, line in enumerate(lines) if "\\u0000here" in line)


def _related(key: str, path: tuple[str | int, ...]) -> bool:
    dotted = ".".join(map(str, path))
    return key == "" or dotted.startswith(key) or key.startswith(dotted)


@settings(RELAXED, max_examples=40)
@given(EXPERIMENTS)
def test_what_is_right_reads_as_it_prints(tree):
    check_read(tree)


@settings(RELAXED, max_examples=150)
@given(EXPERIMENTS, st.integers(0, 2**32))
def test_what_is_wrong_is_refused_where_it_stands(tree, seed):
    check_spoilt(tree, random.Random(seed))


@settings(RELAXED, max_examples=1, derandomize=True)
@given(barriers())
def test_what_is_right_runs(tree):
    check_run(tree)


def main() -> None:
    """More of the same."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    more = settings(RELAXED, max_examples=count, print_blob=True)
    settings(more, max_examples=100 * count)(
        given(EXPERIMENTS, st.integers(0, 2**32))(lambda tree, seed: check_spoilt(tree, random.Random(seed)))
    )()
    print(f"{100 * count:,} spoilt configurations were refused where they are wrong")
    # Runs are too dear to shrink.
    settings(more, phases=[Phase.generate])(given(EXPERIMENTS)(check_run))()
    print(f"{count:,} configurations ran")


if __name__ == "__main__":
    main()
