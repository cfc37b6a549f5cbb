"""What every test runs under: strict rank promotion, so that a shape mistake fails instead of broadcasting."""

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key():
    """One literal key; tests that need several fold names into it."""
    return jax.random.key(20261202)
