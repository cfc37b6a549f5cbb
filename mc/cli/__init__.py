"""The `tailstep` command: one file per verb, each a thin layer over the package that does the work."""
