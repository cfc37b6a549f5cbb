"""The network's roofline: what a chip must compute for each byte on the wire, and what a plan has it compute.

`ridge` has the ridge points of chips, formats and links; `movement` says why they moved from one generation to the next;
`intensity` puts a plan's traffic against them. Arithmetic on the catalog's figures and a plan's bytes, without JAX.
"""

from mc.network_roofline.intensity import Load as Load
from mc.network_roofline.intensity import Point as Point
from mc.network_roofline.intensity import Roof as Roof
from mc.network_roofline.intensity import plan_points as plan_points
from mc.network_roofline.movement import Movement as Movement
from mc.network_roofline.movement import movement as movement
from mc.network_roofline.movement import movements as movements
from mc.network_roofline.ridge import ARITHMETIC as ARITHMETIC
from mc.network_roofline.ridge import TIERS as TIERS
from mc.network_roofline.ridge import WIRES as WIRES
from mc.network_roofline.ridge import Ridge as Ridge
from mc.network_roofline.ridge import RidgeError as RidgeError
from mc.network_roofline.ridge import fastest as fastest
from mc.network_roofline.ridge import ridge as ridge
from mc.network_roofline.ridge import ridges as ridges
