"""From the congestion of a file to chains and states."""

import math

from mc.config import CongestionConfig, IncastConfig
from mc.delays import build_delay
from mc.document import StrictModel
from mc.fabric.incast import Incast
from mc.fabric.link_states import LinkStates, SharedLinks, spread_over_paths
from mc.fabric.markov import MarkovChain


def build_links(
    config: CongestionConfig, *, group: int, groups: int, ranks: int, oversubscription: float = 1.0
) -> SharedLinks:
    """The links that a tier's congestion describes.

    Args:
        config: of the tier.
        group: ranks that share a link.
        groups: how many such groups there are.
        ranks: what the load grows with: those of the job or of the cluster, as `growth.of` says.
        oversubscription: of the tier: the load of others takes that many times its share of the link.

    Raises:
        LinkStateError: the states do not make a chain.
    """
    chain = _chain(config)
    if config.growth is not None:
        doublings = math.log2(ranks / config.growth.at_ranks)
        chain = chain.loaded(config.growth.per_doubling * doublings)
    slowdowns = [
        state.slowdown if state.load is None else 1 / (1 - state.load * oversubscription)
        for state in config.states
    ]
    # A plain delay may be traced.
    laws = [state.delay if isinstance(state.delay, StrictModel) else None for state in config.states]
    fixed = [state.delay if law is None else 0.0 for state, law in zip(config.states, laws, strict=True)]
    random = tuple(None if law is None else build_delay(law) for law in laws)
    states = LinkStates(slowdowns, fixed, random if any(law is not None for law in random) else ())
    if config.spread is not None:
        chain, states = spread_over_paths(chain, states, config.spread.paths, config.spread.routing)
    return SharedLinks(chain, states, group, groups)


def build_incast(config: IncastConfig) -> Incast:
    """What a receiver's port can take."""
    return Incast(config.buffer, config.window, config.penalty)


def _chain(config: CongestionConfig) -> MarkovChain:
    if config.transition is not None:
        return MarkovChain.of(config.transition)
    probabilities = [state.probability or 0.0 for state in config.states]
    holding = [state.holding for state in config.states[1:]]
    if any(time is not None for time in holding):
        return MarkovChain.episodes(probabilities, [1.0 if time is None else time for time in holding])
    return MarkovChain.memoryless(probabilities, config.persistence or 0.0)
