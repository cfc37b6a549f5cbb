"""From sampled step times to numbers with intervals: mean, quantiles, waterfall, cost of the slowest rank."""

from mc.estimate.estimates import QUANTILES as QUANTILES
from mc.estimate.estimates import Estimates as Estimates
from mc.estimate.estimates import estimate as estimate
from mc.estimate.mean import mean_estimate as mean_estimate
from mc.estimate.mean import ratio_estimate as ratio_estimate
from mc.estimate.quantile import quantile_estimate as quantile_estimate
from mc.estimate.samples import Estimate as Estimate
from mc.estimate.slowest import SlowestRank as SlowestRank
from mc.estimate.slowest import slowest_rank_cost as slowest_rank_cost
from mc.estimate.waterfall import Part as Part
from mc.estimate.waterfall import Waterfall as Waterfall
from mc.estimate.waterfall import waterfall as waterfall
