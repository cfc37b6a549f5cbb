"""The exact method: its cost does not grow with the number of ranks, and it draws by the million."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp

from benchmarks.measure import Finding, at_least, at_most, best_of, ratio
from mc.delays import Lognormal, Scaled, Shifted, Slowest, draw, shared_fate, with_inverse


def run(*, quick: bool) -> Iterator[Finding]:
    """Draws per second of a plain and of a composed delay, and time(n = 10⁹)/time(n = 8)."""
    count, repeats = (1 << 18, 5) if quick else (1 << 21, 21)
    key = jax.random.key(0)
    draws = jax.jit(lambda law: draw(law, key, count))

    plain = Slowest(Shifted(Lognormal(1e-4, 0.3), 1e-3), 1024.0)
    rate = count / best_of(lambda: draws(plain), repeats=repeats) / 1e6
    yield at_least(
        "plain family, slowest of 1,024", rate, "M draws/s", 10, f"{count:,} draws of a shifted lognormal"
    )

    composed = jax.jit(with_inverse)(_composed(128.0))
    rate = count / best_of(lambda: draws(composed), repeats=repeats) / 1e6
    note = "three shared link states, 8 ranks a group, 128 groups; table built beforehand"
    yield at_least("mixture of shared states x max", rate, "M draws/s", 2, note)

    few, many = (jax.jit(with_inverse)(_composed(groups)) for groups in (1.0, 1.25e8))
    growth = ratio(lambda: draws(many), lambda: draws(few), repeats=repeats)
    yield at_most(
        "exact, composed: time(n = 1e9) / time(n = 8)", growth, "x", 1.2, "the same compiled kernel"
    )

    law = Lognormal(1e-3, 0.3)
    growth = ratio(lambda: draws(Slowest(law, 1e9)), lambda: draws(Slowest(law, 8.0)), repeats=repeats)
    yield at_most("exact, plain: time(n = 1e9) / time(n = 8)", growth, "x", 1.2, "the same compiled kernel")


def _composed(groups: float):
    return shared_fate(
        Scaled(Lognormal(1.0, 0.05), 1e-3),
        group=8.0,
        groups=groups,
        probabilities=jnp.array([0.9, 0.08, 0.02]),
        slowdowns=jnp.array([1.0, 1.5, 4.0]),
        delays=jnp.array([0.0, 1e-5, 1e-4]),
    )
