"""A plan: who has which part of a model, who exchanges what with whom, and what it takes in memory."""

from mc.parallel.group import Group as Group
from mc.parallel.memory import Memory as Memory
from mc.parallel.message import Message as Message
from mc.parallel.plan import Groups as Groups
from mc.parallel.plan import Part as Part
from mc.parallel.plan import Plan as Plan
from mc.parallel.plan import PlanError as PlanError
from mc.parallel.plan import build_plan as build_plan
from mc.parallel.plan import make_plan as make_plan
