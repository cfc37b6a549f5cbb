"""Many experiments at once: cells by samples, on all devices and many machines, and nothing finished is lost.

A sweep is cut into *batches* of neighbouring cells. A batch is a pure function of the sweep and its number
(`batch.py`): the same rows to the last bit wherever, whenever and in whatever order it is evaluated. So a batch is what
is stored (`store.py`), resumed, sharded, and sent to other machines (`dask.py`, `distributed.py`), and all of that is bookkeeping.

Nothing is imported here, so that reading and merging results needs no JAX.
"""
