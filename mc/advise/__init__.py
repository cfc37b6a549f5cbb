"""What to change: the best plan of all that there are, and what each figure of the hardware is worth.

`space` lists plans, `bound` says what one takes at least, `search` evaluates those that could be among the best; `budget`, `tail` and
`worth` say what figures of the hardware are worth.
"""
