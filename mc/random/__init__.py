"""Random numbers: named streams, a counter-based generator, and levels that reach deep into the tail."""

from mc.random.counts import binomial_counts as binomial_counts
from mc.random.counts import multinomial_counts as multinomial_counts
from mc.random.levels import draw_levels as draw_levels
from mc.random.levels import levels_from_words as levels_from_words
from mc.random.streams import key_words as key_words
from mc.random.streams import stream as stream
from mc.random.threefry import threefry2x32 as threefry2x32
