"""The `tailstep` command: one file per verb, each a thin layer over the package that does the work.

`app` lists the verbs, `options` has what several of them take. Where a verb has to put much together before it is reported, that is
in a file beside it: `calibrate_*` and `calibrated`, `collective_answer`, `explained`, `reported`.
"""
