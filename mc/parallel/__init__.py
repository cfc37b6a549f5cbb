"""A plan: who has which part of a model, who exchanges what with whom, and what it takes in memory.

`plan` says who is where (`group`, `nodes`), `state` who has which part. `messages` lists what is sent: `passes` says how often,
`layer_messages`, `expert_messages` and `replica_messages` what; `wires` counts their bytes on each tier. `memory` is what a rank
holds, `routing_choice` how tokens choose experts.
"""

from mc.parallel.group import Group as Group
from mc.parallel.memory import Memory as Memory
from mc.parallel.memory import check_memory as check_memory
from mc.parallel.memory import checked_plan as checked_plan
from mc.parallel.memory import in_flight as in_flight
from mc.parallel.memory import memory as memory
from mc.parallel.memory import stage_memory as stage_memory
from mc.parallel.message import Message as Message
from mc.parallel.messages import messages as messages
from mc.parallel.nodes import nodes_of as nodes_of
from mc.parallel.plan import Groups as Groups
from mc.parallel.plan import Plan as Plan
from mc.parallel.plan import PlanError as PlanError
from mc.parallel.plan import build_plan as build_plan
from mc.parallel.plan import make_plan as make_plan
from mc.parallel.state import Content as Content
from mc.parallel.state import contents as contents
from mc.parallel.state import distinct_stages as distinct_stages
from mc.parallel.state import held_parts as held_parts
from mc.parallel.state import recomputed_share as recomputed_share
from mc.parallel.wires import Crossed as Crossed
from mc.parallel.wires import Traffic as Traffic
from mc.parallel.wires import sent_by_tier as sent_by_tier
from mc.parallel.wires import traffic as traffic
