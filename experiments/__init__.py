"""Studies: one a file or a folder, each run by `python -m experiments.NAME`, with `--quick` for a short one."""
