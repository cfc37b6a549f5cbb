"""What to change: the best plan of all that there are, and what each figure of the hardware is worth.

`space` lists plans, `bound` says what one takes at least, `search` evaluates those that could be among the best; `budget`, `tail` and
`worth` say what figures of the hardware are worth.
"""

from mc.advise.space import Candidate as Candidate
from mc.advise.space import Mapping as Mapping
from mc.advise.space import Space as Space
from mc.advise.space import space_of as space_of
