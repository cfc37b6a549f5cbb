"""Quantities at the border: text with a unit outside, plain SI floats inside.

The package has one idea, a closed table of spellings per dimension (`dimensions.py`), and three uses of it:
`parse` looks a spelling up, `format_quantity` picks the one that reads best, and `hints.py` finds the near
misses when nothing matches. Because the table is closed, nothing is ever guessed: a spelling is in it or it
is refused with the spellings that would do.
"""

from mc.units.dimensions import Dimension as Dimension
from mc.units.dimensions import spellings as spellings
from mc.units.errors import UnitError as UnitError
from mc.units.format import format_quantity as format_quantity
from mc.units.parse import parse as parse
