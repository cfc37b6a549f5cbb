"""A transformer that serves requests: what prompts and tokens take, what disturbs them, how many requests there are.

`layout`, `operations`, `roofline`, `tokens` and `passes` say what a pass through a stage takes; `memory` what fits;
`serve` makes steps and prompts of them, `speculation` and `queueing` answers and requests; `disturbed` and `rounds` draw.
"""

from mc.inference.disturbed import Disturbances as Disturbances
from mc.inference.disturbed import DisturbedLinks as DisturbedLinks
from mc.inference.disturbed import SharedNoise as SharedNoise
from mc.inference.disturbed import draw_stages as draw_stages
from mc.inference.layout import Layout as Layout
from mc.inference.lengths import compound as compound
from mc.inference.lengths import slowest_group as slowest_group
from mc.inference.memory import ServingError as ServingError
from mc.inference.memory import largest_batch as largest_batch
from mc.inference.passes import Fabric as Fabric
from mc.inference.passes import Model as Model
from mc.inference.queueing import batch_for_rate as batch_for_rate
from mc.inference.queueing import place_wait as place_wait
from mc.inference.queueing import waits as waits
from mc.inference.rounds import WARM_UP as WARM_UP
from mc.inference.rounds import rounds as rounds
from mc.inference.serve import Server as Server
from mc.inference.serve import Stages as Stages
from mc.inference.serve import build_server as build_server
from mc.inference.speculation import steps_of_answers as steps_of_answers
from mc.inference.speculation import tokens_per_step as tokens_per_step
from mc.inference.tokens import TokenLinks as TokenLinks
from mc.inference.tokens import token_bytes as token_bytes
from mc.inference.tokens import token_links as token_links
