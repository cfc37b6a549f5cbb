"""Studies, one a file or a folder: `python -m experiments.NAME`, with `--quick` for a short run."""
