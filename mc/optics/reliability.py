"""Links that fail, as an input to goodput.

Links fail independently of chips after exponential times, so with l links a chip both interrupt a job at the rate
n·(1/mtbf_chip + l/mtbf_link): `mc.goodput` takes them as `links_per_chip` and `mtbf_per_link`. It is a job that cannot go on without
any of its links; one that can route around them loses bandwidth instead.
"""

_DAY = 86400.0


def interruptions_per_day(links: float, mtbf: float) -> float:
    """How often some of so many links fails, each after so many seconds on average."""
    return links * _DAY / mtbf
