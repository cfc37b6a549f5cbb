"""The figures that people quote about large clusters, recomputed with the engine.

    python -m experiments.claims [--quick] [--json | --markdown]

One group of claims per file. A group types in the *expected* figures, as published or worked out by hand; the
computed ones come from the catalog and from the engine. `docs/claims.md` has the formulas and the origins.
"""
