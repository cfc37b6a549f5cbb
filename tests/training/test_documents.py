"""Attention of packed documents: against strings of whole documents that are cut, the closed mean, and limits."""

import numpy as np
import pytest

from mc.delays import Constant, draw
from mc.training.documents import attention_law, mean_attention, simulate_attention
from tests.stats import assert_fraction, assert_mean, assert_same_law

LENGTH = 2_048
# (median, sigma): many short ones, some short and some longer than a sequence, most longer.
KINDS = [(90.0, 0.7), (400.0, 1.3), (3_000.0, 0.9)]


def cut_string(median: float, sigma: float, sequences: int, seed: int) -> np.ndarray:
    """Work of sequences cut out of one string of documents of whole tokens."""
    rng = np.random.default_rng(seed)
    mean = median * np.exp(sigma**2 / 2)
    count = int(1.3 * sequences * LENGTH / mean) + 1_000
    lengths = np.maximum(np.round(median * np.exp(sigma * rng.standard_normal(count))), 1)
    # A string that begins with a whole document is not yet what it is later on.
    ends = np.cumsum(lengths)[100:] - 7
    cuts = np.arange(ends[0] // LENGTH + 1, ends[-1] // LENGTH) * LENGTH
    edges = np.union1d(ends, cuts)
    edges = edges[(edges >= cuts[0]) & (edges <= cuts[-1])]
    pieces = np.diff(edges)
    place = ((edges[:-1] - cuts[0]) // LENGTH).astype(int)
    work = np.bincount(place, pieces**2) / LENGTH**2
    # Neighbours share a document: take them apart, and as the cut lies anywhere in a document, keep few.
    return work[::8]


@pytest.mark.parametrize(("median", "sigma"), KINDS)
def test_against_a_string_that_is_cut(median, sigma):
    """Power: starting each sequence with a whole document is caught at p < 1e-16 for the last two kinds."""
    work = simulate_attention(np.random.default_rng(4), median, sigma, LENGTH, 8_000)
    assert_same_law(work, cut_string(median, sigma, 64_000, 9))


@pytest.mark.parametrize(("median", "sigma"), KINDS)
def test_the_mean_has_a_closed_form(median, sigma):
    work = simulate_attention(np.random.default_rng(6), median, sigma, LENGTH, 40_000)
    assert_mean(work, mean_attention(median, sigma, LENGTH))


@pytest.mark.parametrize("sequences", [1, 5])
def test_the_law_of_a_micro_batch(key, sequences):
    median, sigma = KINDS[1]
    rng = np.random.default_rng(8)
    work = (
        simulate_attention(rng, median, sigma, LENGTH, 4_000 * sequences).reshape(-1, sequences).mean(axis=1)
    )
    law = attention_law(median, sigma, LENGTH, sequences)
    assert_same_law(draw(law, key, 4_000), work)
    assert float(law.mean()) == pytest.approx(mean_attention(median, sigma, LENGTH), rel=0.01)


def test_single_documents_have_a_probability_of_their_own(key):
    median, sigma = KINDS[1]
    drawn = np.asarray(draw(attention_law(median, sigma, LENGTH), key, 20_000))
    alone = simulate_attention(np.random.default_rng(1), median, sigma, LENGTH, 400_000) == 1
    assert_fraction(int((drawn > 1 - 1e-5).sum()), drawn.size, alone.mean())


def test_documents_longer_than_a_sequence():
    assert mean_attention(1e9, 0.5, LENGTH) == pytest.approx(1, abs=1e-5)
    law = attention_law(1e12, 0.0, LENGTH)
    assert isinstance(law, Constant)
    assert float(law.value) == 1


def test_documents_much_shorter_than_a_sequence():
    # Σ l²/S² → E L²/(S·E L), here with L constant and S/L = 4096.
    assert mean_attention(1.0, 0.0, 4_096) == pytest.approx(1 / 4_096, rel=1e-3)
    assert float(attention_law(16.0, 0.5, 65_536, 2).mean()) == pytest.approx(
        16 * np.exp(1.5 * 0.25) / 65_536, rel=0.01
    )


def test_documents_of_one_length():
    # A sequence of S = l·k tokens holds k − 1 whole documents and two parts u and 1 − u of one: E A = (k − 1 + 2/3)/k².
    assert mean_attention(512.0, 0.0, 2_048) == pytest.approx((3 + 2 / 3) / 16, rel=1e-12)


def test_longer_documents_are_more_work():
    means = [mean_attention(median, 1.0, LENGTH) for median in np.geomspace(1, 1e6, 30)]
    assert (np.diff(means) > 0).all()


def test_lengths_may_spread_over_hundreds_of_decades():
    assert mean_attention(1.0, 40.0, LENGTH) == pytest.approx(1)


def test_many_short_documents_are_affordable():
    assert simulate_attention(np.random.default_rng(0), 1.0, 0.0, 64, 3) == pytest.approx(1 / 64, rel=0.02)
