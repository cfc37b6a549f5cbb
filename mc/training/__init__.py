"""A transformer's step: how long passes take, what disturbs them, and when all replicas are done.

`efficiency`, `roofline`, `prices` and `times` say what a pass takes (`pass_times`), `replicas` what happens where replicas meet,
`evaluate` what a step takes without noise (`evaluate_many` for arrays of numbers), `generations` where chips differ, `apart`
where replicas exchange seldom or late.
`lockstep`, `slowness`, `unit_noise`, `routing` and `documents` say what disturbs operations, `crossings` and `lateness`
what disturbs messages; `sampler` draws them (`work`, `sources`; `every_rank` without tables) and runs the pipelines.
"""

from mc.training.apart import alone as alone
from mc.training.apart import late_exchange as late_exchange
from mc.training.apart import seldom as seldom
from mc.training.crossings import crossings as crossings
from mc.training.documents import attention_law as attention_law
from mc.training.documents import mean_attention as mean_attention
from mc.training.efficiency import Chip as Chip
from mc.training.efficiency import ChipError as ChipError
from mc.training.efficiency import Efficiency as Efficiency
from mc.training.efficiency import build_chip as build_chip
from mc.training.evaluate import PARTS as PARTS
from mc.training.evaluate import Breakdown as Breakdown
from mc.training.evaluate import computing as computing
from mc.training.evaluate import evaluate as evaluate
from mc.training.evaluate import table_of as table_of
from mc.training.evaluate_many import evaluate_many as evaluate_many
from mc.training.generations import Generations as Generations
from mc.training.generations import MixedTimes as MixedTimes
from mc.training.generations import evaluate_mixes as evaluate_mixes
from mc.training.generations import generations as generations
from mc.training.generations import times_of_mixes as times_of_mixes
from mc.training.lateness import build_lateness as build_lateness
from mc.training.lockstep import Lockstep as Lockstep
from mc.training.lockstep import lockstep as lockstep
from mc.training.operations import Operations as Operations
from mc.training.operations import operations as operations
from mc.training.pass_times import Times as Times
from mc.training.prices import AbstractPrices as AbstractPrices
from mc.training.prices import ClusterPrices as ClusterPrices
from mc.training.prices import ManyPrices as ManyPrices
from mc.training.prices import Price as Price
from mc.training.prices import TabulatedPrices as TabulatedPrices
from mc.training.prices import build_prices as build_prices
from mc.training.replicas import Meeting as Meeting
from mc.training.replicas import ending as ending
from mc.training.replicas import reduction as reduction
from mc.training.routing import LoadLaw as LoadLaw
from mc.training.routing import Routing as Routing
from mc.training.routing import RoutingError as RoutingError
from mc.training.routing import load_law as load_law
from mc.training.routing import routing_of as routing_of
from mc.training.sampler import batch_of as batch_of
from mc.training.sampler import disturbed as disturbed
from mc.training.sampler import pipelines as pipelines
from mc.training.slowness import KernelNoise as KernelNoise
from mc.training.slowness import RankNoise as RankNoise
from mc.training.slowness import fit_curve as fit_curve
from mc.training.slowness import number_of_profiles as number_of_profiles
from mc.training.slowness import tabulate_slowness as tabulate_slowness
from mc.training.tables import QuantileTable as QuantileTable
from mc.training.times import times_of as times_of
from mc.training.unit_noise import UnitNoise as UnitNoise
from mc.training.work import LinksNow as LinksNow
from mc.training.work import Noise as Noise
from mc.training.work import Realisation as Realisation
from mc.training.work import Sampling as Sampling
from mc.training.work import Sent as Sent
from mc.training.work import Work as Work
