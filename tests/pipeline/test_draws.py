"""Noise of operations: the normal law into its tails, independence, and that nothing depends on how work is cut."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from mc.pipeline import Fixed, completion, draws_of, normal_from_word, timetable_of
from mc.random import stream
from tests.stats import assert_law, assert_mean

KEY = jax.random.key(20261202)


def all_rows(table):
    """Rows of every operation, as one level."""
    active = np.flatnonzero(table.rows.active)
    return jax.tree.map(lambda column: np.asarray(column).reshape(-1)[active], table.rows)


def test_a_word_is_a_normal_number_into_the_tails():
    near = np.unique(np.concatenate([np.arange(1000), np.geomspace(1, 2**31 - 1, 5000).astype(np.uint64)]))
    words = np.concatenate([near, 2**32 - 1 - near]).astype(np.uint32)
    found = np.asarray(jax.jit(normal_from_word)(words), np.float64)
    level = (near + 0.5) * 2.0**-32
    exact = np.concatenate([special.ndtri(level), -special.ndtri(level)])
    assert found == pytest.approx(exact, rel=2e-5, abs=1e-6)
    assert (np.diff(found[np.argsort(words)]) >= 0).all()
    assert found.max() == pytest.approx(6.338, abs=1e-3)


@jax.jit
def drawn(rows, sample):
    """Two normal numbers of each operation, one of another source, and levels."""
    draws = draws_of(KEY, sample)
    return (*draws.normals(rows), draws.normals(rows, 1)[0], draws.levels(rows))


def test_draws_of_operations_are_independent():
    first, second, other, levels = (
        np.asarray(each) for each in drawn(all_rows(timetable_of("1f1b", 4, 8)), jnp.arange(500))
    )
    for normal in (first, second, other):
        assert_law(normal, stats.norm.cdf)
    for pair in ((first, second), (first, other), (first[1:], first[:-1]), (first[:, 1:], first[:, :-1])):
        assert_mean(pair[0] * pair[1], 0.0)
    # A level is the logarithm of a uniform number.
    assert_law(-levels, stats.expon.cdf)


@jax.jit
def trials(sample, replica):
    """Makespans of a small pipeline."""
    table = timetable_of("interleaved", 2, 4, 2)
    draws = draws_of(stream(KEY, "operations"), sample, replica)
    base = Fixed(table, np.ones((5, 2, 2), np.float32))
    return completion(
        table, lambda rows: base(rows) * jnp.exp(0.2 * draws.normals(rows)[0]), sample.size
    ).makespan


def test_a_trial_depends_on_its_numbers_alone():
    sample, replica = jnp.arange(12) // 3, jnp.arange(12) % 3
    whole = np.asarray(trials(sample, replica))
    parts = np.concatenate([trials(sample[:6], replica[:6]), trials(sample[6:], replica[6:])])
    assert parts == pytest.approx(whole, rel=1e-6)
    assert np.unique(whole).size == 12
    # With other replicas or without them, and with other samples: nothing changes.
    alone = trials(jnp.arange(6), jnp.ones(6, int))
    assert whole[replica == 1] == pytest.approx(np.asarray(alone[:4]), rel=1e-6)


def test_schedules_share_their_noise():
    found = []
    for schedule in ("gpipe", "1f1b"):
        rows = all_rows(timetable_of(schedule, 3, 5))
        normal = np.asarray(drawn(rows, jnp.arange(2))[0])
        found.append(normal[np.argsort(np.asarray(rows.number))])
    assert np.array_equal(*found)
