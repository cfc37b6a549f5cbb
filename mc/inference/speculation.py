"""Tokens that are guessed ahead and checked together.

With w guesses, each right with probability α where those before it were, a step brings 1 + min(G, w) tokens, G geometric:

    E = (1 − α^(w+1))/(1 − α)

(Y. Leviathan, M. Kalman, Y. Matias, "Fast inference from transformers via speculative decoding", ICML 2023, arXiv
2211.17192, equation 1). The step computes w + 1 tokens of each request.
"""

import numpy as np
from numpy.typing import NDArray

from mc.config.serving import SpeculationConfig


def tokens_per_step(speculation: SpeculationConfig | None) -> float:
    """Tokens that a step brings a request in the mean."""
    if speculation is None:
        return 1.0
    alpha, width = speculation.acceptance, speculation.width
    return width + 1.0 if alpha == 1 else (1 - alpha ** (width + 1)) / (1 - alpha)


def chances(speculation: SpeculationConfig | None) -> NDArray[np.float64]:
    """Probabilities of 1, 2, … tokens in a step."""
    if speculation is None:
        return np.ones(1)
    alpha, width = speculation.acceptance, speculation.width
    found = np.power(alpha, np.arange(width + 1, dtype=np.float64)) * (1 - alpha)
    found[-1] = alpha**width
    return found


def steps_of_answers(
    rng: np.random.Generator,
    speculation: SpeculationConfig | None,
    tokens: int | NDArray[np.int64],
    answers: int,
) -> NDArray[np.int64]:
    """In how many steps so many answers have their tokens, as many for all, or for each."""
    if speculation is None:
        return np.full(answers, tokens, np.int64)
    law = chances(speculation)
    steps, have = np.zeros(answers, np.int64), np.zeros(answers, np.int64)
    while (missing := have < tokens).any():
        steps += missing
        have += rng.choice(law.size, size=answers, p=law) + 1
    return steps
