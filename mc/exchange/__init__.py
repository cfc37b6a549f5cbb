"""The exchange: how long a collective takes on a cluster whose links are random.

`phase` has what noise adds to a phase that ends with its slowest group; `program` and `sample` send the
collective's own messages through its schedule; `compare` chooses among algorithms by mean or tail, `curves`
follows them over message sizes.
"""

from mc.exchange.compare import Way as Way
from mc.exchange.compare import choose as choose
from mc.exchange.compare import compare as compare
from mc.exchange.curves import Curve as Curve
from mc.exchange.curves import FastestRange as FastestRange
from mc.exchange.curves import curves as curves
from mc.exchange.curves import fastest_ranges as fastest_ranges
from mc.exchange.curves import sizes_between as sizes_between
from mc.exchange.phase import CountedExcess as CountedExcess
from mc.exchange.phase import ExchangePhase as ExchangePhase
from mc.exchange.phase import congestion_law as congestion_law
from mc.exchange.phase import congestion_of_links as congestion_of_links
from mc.exchange.sample import SampledTimes as SampledTimes
from mc.exchange.sample import sample_times as sample_times
