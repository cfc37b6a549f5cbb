"""Copper against optics: how far copper reaches, what each medium takes for a bit, where one hands over to another.

`channel` is the loss of a shielded pair, `media` the energy and reach of each medium at a lane rate with intervals, `spine` the
cables of a rack and what optics in their place would take, `reliability` links that fail as an input to `mc.goodput`.
"""

from mc.optics.channel import Channel as Channel
from mc.optics.media import Interval as Interval
from mc.optics.media import Medium as Medium
from mc.optics.media import OpticsError as OpticsError
from mc.optics.media import compare as compare
from mc.optics.media import crossover as crossover
from mc.optics.media import passive_reach as passive_reach
from mc.optics.reliability import interruptions_per_day as interruptions_per_day
from mc.optics.spine import Spine as Spine
from mc.optics.spine import nvl72 as nvl72
