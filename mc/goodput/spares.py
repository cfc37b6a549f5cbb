"""Waiting for chips: what a job loses when more have failed than stand by.

Each failure sends one chip away for a time of mean P, after which it is back. While at most s are away, each has a
spare in its place and failures come at the job's rate Λ. When s + 1 are away the job waits for the first to return, and
nothing fails. So the number away changes as the number of calls in a telephone exchange with s + 1 lines, where
calls that find all lines busy are lost: the job waits for the share of time that all are busy, Erlang's loss formula

    B(c, a) = (aᶜ/c!) / Σₖ≤c aᵏ/k!   with c = s + 1, a = Λ·P,

which depends on the mean of the time away alone, not on its law (Sevastyanov 1957).

References:
    A. K. Erlang, "Solution of some problems in the theory of probabilities of significance in automatic telephone
    exchanges" (1917).
    B. A. Sevastyanov, "An ergodic theorem for Markov processes and its application to telephone systems with
    refusals", Theory of Probability and its Applications 2 (1957).
"""


def waiting_share(spares: int, away: float) -> float:
    """Share of the time that a job waits for a chip to come back.

    Args:
        spares: s.
        away: a, how many would be away on average if the job never waited: failures per second x mean seconds away.
    """
    share = 1.0
    for lines in range(1, spares + 2):
        share = away * share / (lines + away * share)
    return share
