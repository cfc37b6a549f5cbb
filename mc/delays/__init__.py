"""The algebra of delays: random times that stay exact in the tail.

`base` says what a delay is; one family per file follows (constant, discrete, exponential, lognormal, gamma,
Weibull, generalised Pareto, empirical); `affine`, `slowest`, `order_statistic`, `mixture`, `sum`, `total` and
`shared_fate` compose them; `inverse` and `table` invert what has no closed form; `direct`, `grid` and `draw` are the three
ways to a sample.
"""

from mc.delays.affine import Scaled as Scaled
from mc.delays.affine import Shifted as Shifted
from mc.delays.base import AbstractDelay as AbstractDelay
from mc.delays.build import build_delay as build_delay
from mc.delays.checks import ParameterError as ParameterError
from mc.delays.constant import Constant as Constant
from mc.delays.discrete import Discrete as Discrete
from mc.delays.draw import Method as Method
from mc.delays.draw import draw as draw
from mc.delays.draw import sampler as sampler
from mc.delays.empirical import Empirical as Empirical
from mc.delays.exponential import Exponential as Exponential
from mc.delays.gamma import Gamma as Gamma
from mc.delays.grid import on_grid as on_grid
from mc.delays.lognormal import Lognormal as Lognormal
from mc.delays.mixture import Mixture as Mixture
from mc.delays.mixture import with_pauses as with_pauses
from mc.delays.order_statistic import BetaLevels as BetaLevels
from mc.delays.order_statistic import OrderStatistic as OrderStatistic
from mc.delays.order_statistic import beta_levels as beta_levels
from mc.delays.order_statistic import wait_for_all_but as wait_for_all_but
from mc.delays.pareto import GeneralisedPareto as GeneralisedPareto
from mc.delays.product import Product as Product
from mc.delays.product import multiply as multiply
from mc.delays.shared_fate import shared_fate as shared_fate
from mc.delays.slowest import Latest as Latest
from mc.delays.slowest import Slowest as Slowest
from mc.delays.slowest import SlowestOf as SlowestOf
from mc.delays.sum import Sum as Sum
from mc.delays.sum import add as add
from mc.delays.table import Tabulated as Tabulated
from mc.delays.table import table_error as table_error
from mc.delays.table import tabulate as tabulate
from mc.delays.table import with_inverse as with_inverse
from mc.delays.total import total as total
from mc.delays.weibull import Weibull as Weibull
